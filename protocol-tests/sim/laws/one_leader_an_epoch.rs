//! An epoch has at most one leader, and that in one life of one process: a leader that restarts
//! never leads the same epoch again. Who leads has that in its `quorum-state` before it acts.

use std::collections::BTreeMap;

use kraftd::types::Epoch;

use crate::law;

/// Who led each epoch: node and life.
#[derive(Debug, Default)]
pub(crate) struct Law {
    leaders: BTreeMap<Epoch, (usize, u64)>,
}

impl Law {
    /// After every call of a node that leads. True if it did not before.
    pub(crate) fn leads(&mut self, epoch: Epoch, node: usize, life: u64) -> bool {
        let before = self.leaders.insert(epoch, (node, life));
        law!(
            before.is_none_or(|before| before == (node, life)),
            "{before:?} and then {node} in life {life} lead {epoch}"
        );
        before.is_none()
    }
}
