//! What other nodes answered: from bytes to what consensus takes.

use crate::raft::{CallFault, Input, Told};
use crate::types::{CallId, Now};

use super::{Effect, Node, PeerAnswer};

impl Node {
    /// Hands an answer of another node to consensus.
    pub(super) fn answered(
        &mut self,
        now: Now,
        call: CallId,
        outcome: Result<PeerAnswer, CallFault>,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = outcome.and_then(|answer| match answer {
            PeerAnswer::Raft(response) => Ok(Told::Response(response)),
            PeerAnswer::Fetch { .. } => Err(CallFault::Garbage),
            PeerAnswer::Snapshot {
                response,
                size,
                position,
                bytes,
            } => Ok(Told::Snapshot {
                response,
                size,
                position,
                bytes,
            }),
            PeerAnswer::Versions(kraft_versions) => Ok(Told::Versions { kraft_versions }),
        });
        self.drive(now, Input::Answered { call, outcome }, effects);
    }
}
