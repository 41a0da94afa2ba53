//! Everything that can happen to the consensus core: the closed list of its inputs.

use std::sync::Arc;

use bytes::Bytes;

use super::output::{ControlRecord, FetchResponse, FetchSnapshotResponse, Response};
use crate::types::{
    CallId, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Ticket, Token, Uuid,
};

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A peer asks. Exactly one [`super::Output::Reply`], `ServeFetch` or `ServeSnapshot` with the
    /// same ticket follows, now or later.
    Request {
        /// Names the waiting peer.
        ticket: Ticket,
        /// The listener on which the request came in: replies name endpoints of that listener.
        listener: Arc<str>,
        /// What is asked.
        request: Request,
    },
    /// The time told by `next_wakeup` has come (or passed).
    WakeUp,
    /// The write with this token is on stable storage.
    Written(Token),
    /// The leader's state machine wants these records appended.
    Propose(Proposal),
    /// A snapshot of the state machine became durable on this node.
    SnapshotWritten(OffsetAndEpoch),
    /// A snapshot of the leader is durable on this node and the state machine has taken it over.
    /// Ignored by a leader, and if everything in it was known to be committed already.
    SnapshotLoaded(LoadedSnapshot),
    /// What lies below the end of this snapshot may go: the log begins there from now on (KIP-630).
    /// Ignored unless it is a known snapshot and no other such move is under way.
    Clean(OffsetAndEpoch),
    /// Another node answered what [`super::Output::Send`] asked, or will not. At most one for each
    /// call; one that comes after the core gave the call up is ignored.
    Answered {
        /// Which question.
        call: CallId,
        /// The answer, or why there is none.
        outcome: Result<Told, CallFault>,
    },
    /// A connection to this node is open, and what it can do is known.
    PeerFound {
        /// The other node.
        peer: NodeId,
        /// It knows the pre-vote of KIP-996 (Vote v2).
        pre_vote: bool,
    },
    /// A connection to this node was closed by the other side, or was refused: its process is
    /// probably gone.
    PeerLost {
        /// The other node.
        peer: NodeId,
    },
    /// A piece that [`super::Output::KeepPiece`] gave is on disk, so that the next may come.
    PieceKept {
        /// Of which snapshot.
        id: OffsetAndEpoch,
        /// End of what is kept of the file, exclusive, in bytes.
        end: u64,
    },
    /// What came in of this snapshot is no good and was dropped.
    SnapshotFailed(OffsetAndEpoch),
    /// There is no room for this snapshot, and what came in of it was dropped.
    SnapshotWithoutRoom(OffsetAndEpoch),
    /// The state machine agreed to finalize this kraft.version (KIP-853); see
    /// [`super::Raft::check_kraft_version`].
    UpgradeKraftVersion(u16),
    /// The state machine cannot go on leading: somebody else should, after a pause.
    Resign,
    /// Give leadership up and let go of the quorum: the process is about to stop.
    Shutdown,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The connection was refused or closed.
    Closed,
    /// Nothing was heard in time, or the name could not be resolved.
    Silent,
    /// The other node does not know the request in a version that can carry it.
    Unsupported,
    /// What came back is no answer, or the other side did not let this node in.
    Garbage,
}

/// What another node answered.
#[derive(Clone, Debug)]
pub enum Told {
    /// An answer without data.
    Response(Response),
    /// Fetch with records.
    Fetch {
        /// All but the records.
        response: FetchResponse,
        /// The whole batches in it, as far as they are sound; offsets ascend without overlap.
        batches: Vec<FetchedBatch>,
    },
    /// FetchSnapshot with bytes.
    Snapshot {
        /// All but the bytes.
        response: FetchSnapshotResponse,
        /// Size of the whole file. Raw.
        size: i64,
        /// Where the bytes begin. Raw.
        position: i64,
        /// The bytes.
        bytes: Bytes,
    },
    /// ApiVersions.
    Versions {
        /// The range of kraft.version that the node supports, both inclusive; `None` if it does
        /// not say.
        kraft_versions: Option<(u16, u16)>,
    },
}

/// A batch of the leader's log.
#[derive(Clone, Debug)]
pub struct FetchedBatch {
    /// Offset of the first record.
    pub first: Offset,
    /// End, exclusive.
    pub end: Offset,
    /// The epoch in which it was written.
    pub epoch: Epoch,
    /// Its control records that matter here, if it is a control batch.
    pub control: Vec<(Offset, ControlRecord)>,
    /// The bytes as they go to disk.
    pub bytes: Bytes,
}

/// A snapshot of another node, as far as consensus needs it.
#[derive(Clone, Debug)]
pub struct LoadedSnapshot {
    /// Which one.
    pub id: OffsetAndEpoch,
    /// Its control records: kraft.version and voters, if they live in the log.
    pub control: Vec<ControlRecord>,
}

/// Records of the state machine, already encoded as complete batches of `epoch`, with the offsets
/// that the core will give them. Refused (dropped, with a trace line) unless this node leads
/// `epoch` and `first` is its log end: the driver runs on one thread, so a mismatch is our bug.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The epoch in which the batches are written.
    pub epoch: Epoch,
    /// Offset of the first record.
    pub first: Offset,
    /// End offset, exclusive: `first` plus the number of records.
    pub end: Offset,
    /// The batches' bytes, opaque here.
    pub batches: Bytes,
}

/// A request of another replica, as far as consensus needs it. The shell has checked that it
/// names the metadata partition (else it answered by itself); ids are as on the wire.
#[derive(Clone, Debug)]
pub enum Request {
    /// KIP-595, KIP-996.
    Vote(VoteRequest),
    /// KIP-595.
    BeginQuorumEpoch(BeginQuorumEpochRequest),
    /// KIP-595.
    EndQuorumEpoch(EndQuorumEpochRequest),
    /// KIP-595, KIP-630; the acknowledgement of a replica.
    Fetch(FetchRequest),
    /// KIP-630.
    FetchSnapshot(FetchSnapshotRequest),
    /// KIP-595, KIP-836.
    DescribeQuorum(DescribeQuorumRequest),
    /// KIP-853.
    AddVoter(AddVoterRequest),
    /// KIP-853.
    RemoveVoter(RemoveVoterRequest),
    /// KIP-853.
    UpdateVoter(UpdateVoterRequest),
}

/// What this node asks another.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A request as peers send it to this node.
    Raft(Request),
    /// What the other node supports (ApiVersions).
    Versions,
}

/// Vote (52).
#[derive(Clone, Debug)]
pub struct VoteRequest {
    /// `None` is accepted; another cluster's id is refused.
    pub cluster_id: Option<String>,
    /// Who should vote; `None` below v1.
    pub voter: Option<ReplicaKey>,
    /// Who asks; the directory is nil below v1.
    pub candidate: ReplicaKey,
    /// The candidate's epoch: bumped for a real vote, current for a pre-vote.
    pub epoch: Epoch,
    /// Epoch of the candidate's last record.
    pub last_epoch: Epoch,
    /// The candidate's log end, exclusive.
    pub last_offset: Offset,
    /// True asks without consequences (KIP-996).
    pub pre_vote: bool,
}

/// BeginQuorumEpoch (53).
#[derive(Clone, Debug)]
pub struct BeginQuorumEpochRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// Who is told; `None` below v1.
    pub voter: Option<ReplicaKey>,
    /// The new leader.
    pub leader_id: NodeId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The leader's endpoints as (listener, host, port); empty below v1.
    pub endpoints: Vec<(String, String, u16)>,
}

/// EndQuorumEpoch (54).
#[derive(Clone, Debug)]
pub struct EndQuorumEpochRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// The leader that steps down.
    pub leader_id: NodeId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Who should try first, most caught up first; directories are nil below v1.
    pub preferred: Vec<ReplicaKey>,
}

/// Fetch (1) of the metadata partition.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// Who fetches; id -1 reads without counting as a replica. Directory nil below v17.
    pub replica: ReplicaKey,
    /// The epoch the replica believes in. Raw, so that -1 can be refused.
    pub current_leader_epoch: i32,
    /// First offset wanted: everything below it is durable at the replica. Raw, may be negative.
    pub fetch_offset: i64,
    /// Epoch of the replica's last record. Raw, may be negative.
    pub last_fetched_epoch: i32,
    /// The high watermark that the replica knows; `i64::MAX` (the default below v18) never wakes.
    pub high_watermark: i64,
    /// How long the reply may be held, milliseconds. Raw, may be negative.
    pub max_wait_ms: i32,
    /// Upper bound of the answer's bytes (at least one batch is sent). Raw, may be 0 or negative.
    pub max_bytes: i32,
}

/// FetchSnapshot (59).
#[derive(Clone, Debug)]
pub struct FetchSnapshotRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// Who asks.
    pub replica: ReplicaKey,
    /// Raw epoch of the leader as the replica knows it.
    pub current_leader_epoch: i32,
    /// Which snapshot.
    pub id: OffsetAndEpoch,
    /// First byte wanted. Raw, may be negative.
    pub position: i64,
    /// Upper bound of the bytes sent. Raw.
    pub max_bytes: i32,
}

/// AddRaftVoter (80).
#[derive(Clone, Debug)]
pub struct AddVoterRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// How long the caller waits, milliseconds. Raw.
    pub timeout_ms: i32,
    /// Who is to vote. Raw: the id may be negative, the directory nil.
    pub voter: ReplicaKey,
    /// Where it listens, as (listener, host, port).
    pub endpoints: Vec<(String, String, u16)>,
    /// Answer only once the new set is committed; always true below v1.
    pub ack_when_committed: bool,
}

/// RemoveRaftVoter (81).
#[derive(Clone, Debug)]
pub struct RemoveVoterRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// Who is to vote no longer. Raw.
    pub voter: ReplicaKey,
}

/// UpdateRaftVoter (82).
#[derive(Clone, Debug)]
pub struct UpdateVoterRequest {
    /// See [`VoteRequest::cluster_id`].
    pub cluster_id: Option<String>,
    /// Raw epoch of the leader as the voter knows it.
    pub current_leader_epoch: i32,
    /// Who tells.
    pub voter: ReplicaKey,
    /// Where it listens now, as (listener, host, port).
    pub endpoints: Vec<(String, String, u16)>,
    /// kraft.version range that it supports, both inclusive. Raw.
    pub kraft_versions: (i16, i16),
}

/// DescribeQuorum (55) of the metadata partition.
#[derive(Clone, Copy, Debug)]
pub struct DescribeQuorumRequest;

/// The directory id that stands for "not known".
pub const UNKNOWN_DIRECTORY: Uuid = Uuid::nil();
