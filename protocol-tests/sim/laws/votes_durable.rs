//! When an answer that names `epoch` leaves, `quorum-state` on the platter has at least that
//! epoch; when a vote is granted, it holds that vote. In an epoch at most one candidate ever gets
//! the vote, over all processes.

use std::collections::BTreeMap;

use kraftd::raft::QuorumState;
use kraftd::types::{Epoch, ReplicaKey};

use crate::law;

/// Who got the vote of each epoch.
#[derive(Debug, Default)]
pub(crate) struct Law {
    votes: BTreeMap<Epoch, ReplicaKey>,
}

impl Law {
    pub(crate) fn told(&self, epoch: Epoch, disk: Option<&QuorumState>) {
        let durable = disk.map_or(Epoch(0), |state| state.epoch);
        law!(epoch <= durable, "{epoch} is told, {durable} is durable");
    }

    pub(crate) fn granted(&mut self, epoch: Epoch, to: ReplicaKey, disk: Option<&QuorumState>) {
        let voted = disk
            .filter(|state| state.epoch == epoch)
            .and_then(|state| state.voted);
        law!(
            voted.is_some_and(|voted| voted.id == to.id),
            "{to:?} is told of a vote in {epoch}, durable is {disk:?}"
        );
        let before = self.votes.insert(epoch, to);
        law!(
            before.is_none_or(|before| before.id == to.id),
            "{before:?} and {to:?} have a vote in {epoch}"
        );
    }

    pub(crate) fn voted_for(&self, epoch: Epoch) -> Option<ReplicaKey> {
        self.votes.get(&epoch).copied()
    }
}
