//! What a node asks of others in its role, and what follows from their answers.

use super::input::{CallFault, Told};
use super::machine::{Raft, Turn};
use crate::types::{CallId, NodeId};

impl Raft {
    /// Another node answered, or will not.
    pub(super) fn answered(
        &mut self,
        call: CallId,
        _outcome: Result<Told, CallFault>,
        _turn: &mut Turn,
    ) {
        let _ = self.calls.end(call);
    }

    /// What another node can do.
    pub(super) fn peer_found(&mut self, _peer: NodeId, _pre_vote: bool) {}

    /// A connection was closed or refused.
    pub(super) fn peer_lost(&mut self, _peer: NodeId, _turn: &mut Turn) {}

    /// Somebody else should lead.
    pub(super) fn resign(&mut self, _turn: &mut Turn) {}
}
