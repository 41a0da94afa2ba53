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
        PeerAnswer::Fetch { response, records } => told_records(response, records),
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

/// Fetched records as far as they are sound: what is dropped is asked for again. If nothing is
/// sound, the answer is none, so that the next question waits a while, and a leader that has
/// nothing better is replaced.
fn told_records(response: FetchResponse, records: Bytes) -> Result<Told, CallFault> {
    let fetched = fetched::sound(records, response.hint.epoch);
    if let Some(why) = fetched.bad {
        tracing::warn!(
            leader = response.hint.leader.map(|id| id.0),
            "fetched records are dropped: {why}"
        );
        if fetched.batches.is_empty() {
            return Err(CallFault::Garbage);
        }
    }
    let batches = fetched.batches;
    Ok(Told::Fetch { response, batches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::{LeaderHint, RaftError};
    use crate::types::Offset;

    /// An answer of which nothing is left was taken for "no news": it was asked for again without
    /// a pause, and gave the leader its time, for as long as its damage was not committed.
    #[test]
    fn records_of_which_none_is_sound_are_no_answer() {
        let response = FetchResponse {
            error: RaftError::None,
            hint: LeaderHint::default(),
            high_watermark: 3,
            log_start: Offset::ZERO,
            diverging: None,
            snapshot: None,
        };
        let damaged = Bytes::from_static(&[0; 80]);
        let judged = told_records(response.clone(), damaged);
        assert!(matches!(judged, Err(CallFault::Garbage)), "{judged:?}");
        let judged = told_records(response, Bytes::new());
        assert!(matches!(judged, Ok(Told::Fetch { .. })), "{judged:?}");
    }
}
