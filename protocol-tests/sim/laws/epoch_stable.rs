//! While the only faults are those of the connections of one voter that does not lead (they are
//! closed, lose what is sent one way, or are refused), and every voter knows the pre-vote: no node
//! enters another epoch, and the leader that the others hear goes on leading.

use kraftd::types::Epoch;

use crate::law;

/// The epoch and leader that must stay; nothing while other things happen.
#[derive(Debug, Default)]
pub(crate) struct Law {
    stays: Option<(Epoch, usize)>,
}

impl Law {
    pub(crate) fn begin(&mut self, epoch: Epoch, leader: usize) {
        self.stays = Some((epoch, leader));
    }

    pub(crate) fn end(&mut self) {
        self.stays = None;
    }

    /// After every call of a node.
    pub(crate) fn is(&self, node: usize, epoch: Epoch, role: &str) {
        let Some((stays, leader)) = self.stays else {
            return;
        };
        law!(epoch == stays, "{node} went from epoch {stays} to {epoch}");
        law!(
            node != leader || role == "leader",
            "{node} was heard by a majority and is {role}"
        );
    }
}
