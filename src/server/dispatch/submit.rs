//! Requests on their way to the core, and answers on their way back.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::{Asked, Dispatch};
use crate::server::connection::{Answered, BUSY_MAX, BUSY_RETRY, Closing, Later, Started};
use crate::server::core::{Answer, Busy, Core, Request};
use crate::server::hosts;
use crate::types::{ApiError, ErrorCode};

impl Dispatch {
    /// Asks the core, which may have to be offered the request again.
    pub(super) fn submit(&self, asked: Asked, request: Box<Request>) -> Started {
        let names = hosts::to_resolve(&request);
        if !names.is_empty() {
            let core = Arc::clone(&self.core);
            return Started::Later(Box::pin(resolved(core, asked, request, names)));
        }
        match self.core.submit(request) {
            Ok(receiver) => Started::Later(later(asked, receiver)),
            Err(Busy(request)) => {
                let core = Arc::clone(&self.core);
                let mut waiting = Some((asked, request));
                Started::Busy(Box::new(move |give_up| {
                    let (asked, request) = waiting.take()?;
                    match core.submit(request) {
                        Ok(receiver) => Some(later(asked, receiver)),
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
            Ok(receiver) => return later(asked, receiver).await,
            Err(Busy(_)) if Instant::now() > give_up => {
                return Ok(asked.refuse(&too_busy()).into());
            }
            Err(Busy(back)) => request = back,
        }
        tokio::time::sleep(BUSY_RETRY).await;
    }
}

fn later(asked: Asked, receiver: tokio::sync::oneshot::Receiver<Answer>) -> Later {
    Box::pin(async move {
        match receiver.await {
            Ok(answer) => Ok(asked.finish(answer)),
            Err(_) => Err(Closing::Quiet("the core has ended".to_owned())),
        }
    })
}
