//! When anything that names `epoch` leaves a node, be it an answer or a question, its
//! `quorum-state` on the platter has at least that epoch; when a vote is granted or asked for, it
//! holds that vote. In an epoch a node votes for at most one candidate, over all its processes, and
//! the epoch on its platter never goes back.

use std::collections::BTreeMap;

use kraftd::raft::QuorumState;
use kraftd::types::{Epoch, NodeId, ReplicaKey};

use crate::law;

/// Who got the vote of each node in each epoch.
#[derive(Debug, Default)]
pub(crate) struct Law {
    votes: BTreeMap<(usize, Epoch), NodeId>,
    epochs: BTreeMap<usize, Epoch>,
}

impl Law {
    /// What leaves `node` names `epoch`.
    pub(crate) fn told(&self, node: usize, epoch: Epoch, disk: Option<&QuorumState>) {
        let durable = disk.map_or(Epoch(0), |state| state.epoch);
        law!(
            epoch <= durable,
            "{node} tells {epoch}, {durable} is durable"
        );
    }

    /// `node` says that `to` has its vote in `epoch`; also said of itself by who asks for votes.
    pub(crate) fn voted(
        &mut self,
        node: usize,
        epoch: Epoch,
        to: ReplicaKey,
        disk: Option<&QuorumState>,
    ) {
        let voted = disk
            .filter(|state| state.epoch == epoch)
            .and_then(|state| state.voted);
        law!(
            voted.is_some_and(|voted| voted.id == to.id),
            "{node} tells of a vote for {to:?} in {epoch}, durable is {disk:?}"
        );
        let before = self.votes.insert((node, epoch), to.id);
        law!(
            before.is_none_or(|before| before == to.id),
            "{node} gave its vote in {epoch} to {before:?} and to {to:?}"
        );
    }

    /// What the platter has after a write.
    pub(crate) fn durable(&mut self, node: usize, disk: Option<&QuorumState>) {
        let epoch = disk.map_or(Epoch(0), |state| state.epoch);
        let before = self.epochs.insert(node, epoch);
        law!(
            before.is_none_or(|before| before <= epoch),
            "{node} had {before:?} on its platter, then {epoch}"
        );
    }

    /// Its disk lost something, where that can do no harm.
    pub(crate) fn forgot(&mut self, node: usize) {
        self.votes.retain(|(of, _), _| *of != node);
        self.epochs.remove(&node);
    }
}
