//! Requests on their way to the core, and answers on their way back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::{Asked, Dispatch};
use crate::controller::Reply;
use crate::server::budget::{Budget, FREE_BYTES, Held};
use crate::server::connection::{Answered, BUSY_MAX, BUSY_RETRY, Closing, Later, Started};
use crate::server::core::{Answer, Busy, Core, Request};
use crate::server::hosts;
use crate::types::{ApiError, ErrorCode};

/// How long a read waits that has no memory, before it is answered without what was read. A voter
/// has to hear of its leader within `controller.quorum.fetch.timeout.ms`, 2 s if nobody sets it.
const READ_WAIT: Duration = Duration::from_millis(500);

impl Dispatch {
    /// Asks the core, which may have to be offered the request again.
    pub(super) fn submit(&self, asked: Asked, request: Box<Request>) -> Started {
        let names = hosts::to_resolve(&request);
        if !names.is_empty() {
            let core = Arc::clone(&self.core);
            let budget = self.budget.clone();
            return Started::Later(Box::pin(resolved(core, asked, request, names, budget)));
        }
        match self.core.submit(request) {
            Ok(receiver) => Started::Later(later(asked, receiver, self.budget.clone())),
            Err(Busy(request)) => {
                let core = Arc::clone(&self.core);
                let budget = self.budget.clone();
                let mut waiting = Some((asked, request));
                Started::Busy(Box::new(move |give_up| {
                    let (asked, request) = waiting.take()?;
                    match core.submit(request) {
                        Ok(receiver) => Some(later(asked, receiver, budget.clone())),
                        Err(Busy(_)) if give_up => {
                            let refusal = asked.refuse(&too_busy()).into();
                            Some(Box::pin(std::future::ready(Ok(refusal))))
                        }
                        Err(Busy(request)) => {
                            waiting = Some((asked, request));
                            None
                        }
                    }
                }))
            }
        }
    }
}

fn too_busy() -> ApiError {
    let text = "The controller has too many requests waiting.";
    ApiError::new(ErrorCode::RequestTimedOut, text)
}

/// Looks up the names that a request asks about, and then has it decided.
async fn resolved(
    core: Arc<dyn Core>,
    asked: Asked,
    mut request: Box<Request>,
    names: BTreeSet<String>,
    budget: Budget,
) -> Result<Answered, Closing> {
    let Some(unknown) = hosts::unknown(names).await else {
        let text = "The names in the request could not be looked up in time.";
        let error = ApiError::new(ErrorCode::RequestTimedOut, text);
        return Ok(asked.refuse(&error).into());
    };
    hosts::note(&mut request, unknown);
    let give_up = Instant::now() + BUSY_MAX;
    loop {
        match core.submit(request) {
            Ok(receiver) => return later(asked, receiver, budget).await,
            Err(Busy(_)) if Instant::now() > give_up => {
                return Ok(asked.refuse(&too_busy()).into());
            }
            Err(Busy(back)) => request = back,
        }
        tokio::time::sleep(BUSY_RETRY).await;
    }
}

fn later(asked: Asked, receiver: tokio::sync::oneshot::Receiver<Answer>, budget: Budget) -> Later {
    Box::pin(async move {
        match receiver.await {
            Ok(answer) => Ok(finish(&asked, answer, &budget).await),
            Err(_) => Err(Closing::Quiet("the core has ended".to_owned())),
        }
    })
}

/// The frame of an answer. A few bytes may ask for millions: those are in the budget until their
/// peer has them. What is answered to a change says no more than what the request was weighed for.
async fn finish(asked: &Asked, answer: Answer, budget: &Budget) -> Answered {
    let (answer, held) = with_memory(answer, budget).await;
    let lists = matches!(
        answer,
        Answer::Controller(Ok(Reply::ListPartitionReassignments(_)))
    );
    let answered = asked.finish(answer);
    let held = if lists {
        budget.take_now(answered.frame.len())
    } else {
        Some(held)
    };
    match held {
        Some(held) => Answered { held, ..answered },
        None => asked.refuse(&too_busy()).into(),
    }
}

/// What was read for a peer, with its memory. Where there is none, what was read is let go at once,
/// and after a while the peer is answered without, or with a piece of a snapshot that takes
/// nothing: it asks again.
async fn with_memory(answer: Answer, budget: &Budget) -> (Answer, Held) {
    let bytes = match &answer {
        Answer::Fetch { records, .. } => records.len(),
        Answer::Snapshot { bytes, .. } => bytes.len(),
        _ => 0,
    };
    if let Some(held) = budget.take_now(bytes) {
        return (answer, held);
    }
    let less = without_memory(answer);
    // Whether there is memory then or not: others were asked to give back what they hold.
    let _ = timeout(READ_WAIT, budget.raise(&Held::default(), bytes)).await;
    (less, Held::default())
}

/// An answer with as much of what was read as is free.
fn without_memory(answer: Answer) -> Answer {
    match answer {
        Answer::Fetch { response, .. } => Answer::Fetch {
            response,
            records: Bytes::new(),
        },
        Answer::Snapshot {
            response,
            size,
            position,
            bytes,
        } => Answer::Snapshot {
            response,
            size,
            position,
            bytes: Bytes::copy_from_slice(&bytes[..bytes.len().min(FREE_BYTES)]),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::{FetchResponse, FetchSnapshotResponse, LeaderHint, RaftError};
    use crate::types::{Offset, OffsetAndEpoch};

    const BYTES: usize = 600_000;

    fn fetched() -> Answer {
        let response = FetchResponse {
            error: RaftError::None,
            hint: LeaderHint::default(),
            high_watermark: 7,
            log_start: Offset(0),
            diverging: None,
            snapshot: None,
        };
        let records = Bytes::from(vec![1; BYTES]);
        Answer::Fetch { response, records }
    }

    fn piece() -> Answer {
        let response = FetchSnapshotResponse {
            error: RaftError::None,
            hint: LeaderHint::default(),
            id: OffsetAndEpoch::default(),
        };
        Answer::Snapshot {
            response,
            size: 1 << 20,
            position: 5,
            bytes: Bytes::from(vec![1; BYTES]),
        }
    }

    /// How many bytes were read for the peer.
    fn data(answer: &Answer) -> usize {
        match answer {
            Answer::Fetch { records, .. } => records.len(),
            Answer::Snapshot { bytes, .. } => bytes.len(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_is_read_for_peers_that_do_not_take_it_is_within_the_budget() {
        let budget = Budget::new(Some(1 << 20), 1 << 20);
        let all = budget.left_bytes();
        for (answer, least) in [(fetched as fn() -> Answer, 0), (piece, FREE_BYTES)] {
            let (first, held) = with_memory(answer(), &budget).await;
            assert_eq!(data(&first), BYTES);
            assert!(all - budget.left_bytes() >= BYTES - FREE_BYTES);
            let (second, nothing) = with_memory(answer(), &budget).await;
            assert_eq!(data(&second), least);
            assert!(!nothing.takes());
            drop(held);
            assert_eq!(budget.left_bytes(), all);
            // The peer asks again.
            let (again, _) = with_memory(answer(), &budget).await;
            assert_eq!(data(&again), BYTES);
        }
    }
}
