//! What other nodes answered: from bytes to what consensus takes.

use bytes::Bytes;

use crate::raft::{CallFault, FetchResponse, Input, Told};
use crate::types::{CallId, Now};

use super::{Effect, Node, PeerAnswer, fetched};

impl Node {
    /// Hands an answer of another node to consensus.
    pub(super) fn answered(
        &mut self,
        now: Now,
        call: CallId,
        outcome: Result<PeerAnswer, CallFault>,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = outcome.and_then(told);
        self.drive(now, Input::Answered { call, outcome }, effects);
    }
}

/// An answer as consensus takes it.
pub(crate) fn told(answer: PeerAnswer) -> Result<Told, CallFault> {
    match answer {
        PeerAnswer::Raft(response) => Ok(Told::Response(response)),
        PeerAnswer::Fetch { response, records } => Ok(told_records(response, records)),
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
        // Consensus asks for none.
        PeerAnswer::Registered(..) => Err(CallFault::Garbage),
    }
}

/// Fetched records as far as they are sound. Damage is no fault of the whole answer: what is
/// dropped is asked for again.
fn told_records(response: FetchResponse, records: Bytes) -> Told {
    let fetched = fetched::sound(records, response.hint.epoch);
    if let Some(why) = fetched.bad {
        tracing::warn!(
            leader = response.hint.leader.map(|id| id.0),
            "fetched records are dropped: {why}"
        );
    }
    let batches = fetched.batches;
    Told::Fetch { response, batches }
}
