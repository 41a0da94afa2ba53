//! `became leader(epoch)` is said at most once for an epoch, over all processes, and epochs of
//! leaders only rise. Nobody who voted for another in an epoch leads it.

use kraftd::types::Epoch;

use crate::law;

/// The newest epoch that had a leader.
#[derive(Debug, Default)]
pub(crate) struct Law {
    newest: Option<Epoch>,
}

impl Law {
    pub(crate) fn became(&mut self, epoch: Epoch, voted_for_another: bool) {
        law!(
            self.newest.is_none_or(|newest| newest < epoch),
            "{:?}, then {epoch}",
            self.newest
        );
        law!(
            !voted_for_another,
            "this node's vote in {epoch} is another's"
        );
        self.newest = Some(epoch);
    }
}
