//! What the listeners need of the core: a way to ask, and what everybody may see.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::image::Image;
use crate::types::{ApiError, Epoch, NodeId, Offset};
use crate::{controller, raft};

/// A request that only the core can answer.
#[derive(Clone, Debug)]
pub enum Request {
    /// From a replica of the metadata log.
    Raft {
        /// The listener on which it came in.
        listener: Arc<str>,
        /// What is asked.
        request: raft::Request,
    },
    /// For the active controller.
    Controller {
        /// The API version of the request.
        version: i16,
        /// Who asks.
        context: controller::Context,
        /// What is asked.
        request: controller::Request,
    },
}

/// The answer to a [`Request`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// An answer without data.
    Raft(raft::Response),
    /// A fetch with records (perhaps none).
    Fetch {
        /// All but the records.
        response: raft::FetchResponse,
        /// Whole batches as they are on disk.
        records: Bytes,
    },
    /// Bytes of a snapshot.
    Snapshot {
        /// All but the bytes.
        response: raft::FetchSnapshotResponse,
        /// The whole file's size in bytes.
        size: u64,
        /// Where `bytes` begin.
        position: i64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The controller's reply, or the refusal of the whole request.
    Controller(Result<controller::Reply, ApiError>),
}

/// What readers outside of the core see: the committed image and who leads.
#[derive(Clone, Debug)]
pub struct Published {
    /// The metadata as of `end`.
    pub image: Image,
    /// End of the records in `image`, exclusive.
    pub end: Offset,
    /// The leader that this node knows.
    pub leader: Option<NodeId>,
    /// This node's raft epoch.
    pub epoch: Epoch,
    /// The finalized kraft.version.
    pub kraft_version: i16,
    /// True while this node is the active controller.
    pub active: bool,
}

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
