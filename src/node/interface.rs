//! What goes into a node and what comes out, as plain data.

use std::sync::Arc;

use bytes::Bytes;

use super::{Held, Loaded, SnapshotRules};
use crate::controller::register_controller::Registration;
use crate::controller::{self, Settings};
use crate::image::Image;
use crate::raft::{
    self, Ask, CallFault, FetchResponse, FetchSnapshotResponse, Peer, PeerName, Raft,
};
use crate::records::VersionedRecord;
use crate::storage::{Command, Completion};
use crate::types::{
    ApiError, CallId, Epoch, ErrorCode, Instant, NodeId, Offset, OffsetAndEpoch, Ticket,
};

/// Something that happened outside of the core.
#[derive(Debug)]
pub enum Event {
    /// A request came in. Exactly one [`Effect::Reply`] with the same ticket follows.
    Request {
        /// Names the waiting peer.
        ticket: Ticket,
        /// When the request was read from its connection.
        arrived: Instant,
        /// What is asked.
        request: Box<Request>,
    },
    /// The disk is done with something.
    Disk(Completion),
    /// The time told by `next_wakeup` has come.
    WakeUp,
    /// Another node answered what [`Effect::Send`] asked, or will not.
    Answered {
        /// Which question.
        call: CallId,
        /// The answer, or why there is none.
        outcome: Result<PeerAnswer, CallFault>,
    },
    /// A connection to another node is open; it knows the pre-vote, or not.
    PeerFound {
        /// The other node.
        peer: NodeId,
        /// It knows the pre-vote of KIP-996.
        pre_vote: bool,
    },
    /// A connection to another node was closed by it, or refused.
    PeerLost {
        /// The other node.
        peer: NodeId,
    },
    /// The active controller answered [`Effect::Register`], or did not.
    Registered(Result<ErrorCode, CallFault>),
    /// The snapshot that [`Effect::LoadSnapshot`] named is an image now; or a sentence says why it
    /// is none.
    SnapshotLoaded(Result<Box<Loaded>, String>),
    /// Somebody wants a snapshot of what is committed, now.
    SnapshotAsked,
    /// The process wants to stop.
    Shutdown,
}

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
        context: Box<controller::Context>,
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
        response: FetchResponse,
        /// Whole batches as they are on disk.
        records: Bytes,
    },
    /// Bytes of a snapshot.
    Snapshot {
        /// All but the bytes.
        response: FetchSnapshotResponse,
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

/// What another node answered, as the shell read it.
#[derive(Clone, Debug)]
pub enum PeerAnswer {
    /// An answer without data.
    Raft(raft::Response),
    /// Fetch with records as they came; nothing about them is checked.
    Fetch {
        /// All but the records.
        response: FetchResponse,
        /// The records' bytes.
        records: Bytes,
    },
    /// FetchSnapshot with bytes.
    Snapshot {
        /// All but the bytes.
        response: FetchSnapshotResponse,
        /// The whole file's size in bytes. Raw.
        size: i64,
        /// Where `bytes` begin. Raw.
        position: i64,
        /// The bytes.
        bytes: Bytes,
    },
    /// ApiVersions: the range of kraft.version that it supports, both inclusive.
    Versions(Option<(u16, u16)>),
    /// ControllerRegistration: the outcome, with a sentence for it.
    Registered(ErrorCode, Option<String>),
}

/// Something for the shell to do, in order.
#[derive(Debug)]
pub enum Effect {
    /// Answer a request.
    Reply {
        /// Whose.
        ticket: Ticket,
        /// With what.
        answer: Answer,
    },
    /// Give this to the disk.
    Disk(Command),
    /// Replay this snapshot, which is whole and on disk, from the empty image, beside everything
    /// else; [`Event::SnapshotLoaded`] tells the end.
    LoadSnapshot(OffsetAndEpoch),
    /// Ask another node; [`Event::Answered`] with the same `call` tells the answer.
    Send {
        /// Names the question.
        call: CallId,
        /// Whom, and where.
        to: Peer,
        /// What.
        ask: Ask,
    },
    /// Register this controller with the active one, on a connection that nothing else waits for;
    /// [`Event::Registered`] tells the outcome.
    Register {
        /// The active controller.
        to: Peer,
        /// What it is told.
        registration: Box<Registration>,
    },
    /// Close the connection to this node: it was silent for too long.
    Hangup(PeerName),
    /// Keep connections open to exactly these.
    KeepOpen(Vec<Peer>),
    /// Let readers see this from now on.
    Publish(Box<Published>),
    /// Stop the process at once and say why: going on could do harm.
    Halt {
        /// Why.
        reason: String,
        /// The committed record that is to blame, whose place on disk the shell can tell.
        record: Option<Offset>,
    },
    /// The core has let go: the process may end after the effects before this one.
    Stopped,
}

/// What readers outside of the core see: the committed image and who leads.
#[derive(Clone, Debug)]
pub struct Published {
    /// The metadata as of `end`.
    pub image: Image,
    /// End of the records in `image`, exclusive.
    pub end: Offset,
    /// End of the decision by which the finalized features of `image` changed last, exclusive:
    /// brokers and clients take the offset below it as the epoch of the features.
    pub features_end: Offset,
    /// What this node is in the quorum; see [`Raft::role_name`].
    pub role: &'static str,
    /// The leader that this node knows.
    pub leader: Option<NodeId>,
    /// Where that leader listens for controllers (host, port), if it is another node and known.
    pub leader_endpoint: Option<(String, u16)>,
    /// This node's raft epoch.
    pub epoch: Epoch,
    /// The finalized kraft.version.
    pub kraft_version: i16,
    /// True while this node is the active controller.
    pub active: bool,
}

impl Published {
    /// Before anything is known.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            image: Image::empty(),
            end: Offset::ZERO,
            features_end: Offset::ZERO,
            role: "unattached",
            leader: None,
            leader_endpoint: None,
            epoch: Epoch(0),
            kraft_version: 0,
            active: false,
        }
    }
}

/// What a node is made of at start.
pub struct Parts {
    /// Consensus, as recovered.
    pub raft: Raft,
    /// The image of the newest snapshot, or the empty one.
    pub image: Image,
    /// End of the records in `image` (exclusive): the snapshot's offset or 0.
    pub image_end: Offset,
    /// When snapshots are written and deleted.
    pub snapshots: SnapshotRules,
    /// What is on disk.
    pub held: Held,
    /// Settings for the rules.
    pub settings: Settings,
    /// Records that the first active controller of an empty log writes.
    pub bootstrap: Vec<VersionedRecord>,
    /// How this controller registers itself.
    pub registration: Registration,
    /// Seed of everything random that the rules do.
    pub seed: u64,
}
