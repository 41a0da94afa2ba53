//! What the listeners need of the core: a way to ask, and what everybody may see.

use std::sync::Arc;

use tokio::sync::oneshot;

pub use crate::node::{Answer, Published, Request};

/// The core's queue is full: here is the request again.
#[derive(Debug)]
pub struct Busy(pub Box<Request>);

/// How the listeners reach the core.
pub trait Core: Send + Sync + 'static {
    /// Asks. The receiver fails when the core ends without an answer; dropping it says that nobody
    /// waits any more.
    ///
    /// # Errors
    /// [`Busy`] when as many requests wait as may.
    fn submit(&self, request: Box<Request>) -> Result<oneshot::Receiver<Answer>, Busy>;

    /// What readers may see now.
    fn published(&self) -> Arc<Published>;
}
