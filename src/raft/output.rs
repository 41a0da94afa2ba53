//! Everything that the consensus core asks its driver to do.

use bytes::Bytes;

use super::input::Ask;
use crate::types::{
    CallId, Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Ticket, Timestamp, Token,
};

/// One thing to do, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Put this on stable storage, tell [`super::Input::Written`] with `token`, and execute `then`
    /// right after that `Written` has been handled.
    Write {
        /// Comes back in `Written`.
        token: Token,
        /// What is written.
        write: Write,
        /// What waits for it.
        then: Vec<Self>,
    },
    /// Answer a peer.
    Reply {
        /// Whose request.
        ticket: Ticket,
        /// The answer.
        response: Response,
    },
    /// Answer a fetch with records from `from`, at most up to `until` (exclusive) and `max_bytes`
    /// (at least one whole batch), behind the header `response`.
    ServeFetch {
        /// Whose request.
        ticket: Ticket,
        /// All of the answer but the records.
        response: FetchResponse,
        /// First offset wanted (may lie inside a batch: that whole batch is sent).
        from: Offset,
        /// End of what may be sent, exclusive.
        until: Offset,
        /// Upper bound in bytes.
        max_bytes: usize,
    },
    /// Answer with bytes of a snapshot that exists; the driver knows its size.
    ServeSnapshot {
        /// Whose request.
        ticket: Ticket,
        /// All of the answer but size and bytes; the driver answers POSITION_OUT_OF_RANGE in it
        /// when `position` is negative or not below the size.
        response: FetchSnapshotResponse,
        /// First byte.
        position: i64,
        /// Upper bound in bytes.
        max_bytes: usize,
    },
    /// Ask another node. [`super::Input::Answered`] with the same `call` follows, or the core gives
    /// the call up by its own clock and hangs up.
    Send {
        /// Names the question.
        call: CallId,
        /// Whom, and where.
        to: Peer,
        /// What.
        ask: Ask,
    },
    /// Nothing was heard from this node for too long: close the connection if there is one; what
    /// was asked on it needs no answer any more.
    Hangup(PeerName),
    /// Keep a connection to each of these open, and to no other that nobody asks: an election must
    /// not begin with a handshake. Replaces what was told before.
    KeepOpen(Vec<Peer>),
    /// Bytes of the leader's snapshot, to be written behind those before (position 0 begins anew);
    /// told back with [`super::Input::PieceKept`]. The last piece (`position` plus its length is
    /// `size`) is followed by [`super::Input::SnapshotLoaded`] or `SnapshotFailed` instead, and
    /// any by `SnapshotWithoutRoom`.
    KeepPiece {
        /// Of which snapshot.
        id: OffsetAndEpoch,
        /// Where in the file the bytes belong.
        position: u64,
        /// The bytes.
        bytes: Bytes,
        /// Size of the whole file in bytes.
        size: u64,
    },
    /// Role, epoch, leader, voters or kraft.version are others than before.
    QuorumChanged,
    /// Every record below this offset (exclusive) is committed. Rises only.
    Committed(Offset),
    /// This node leads `epoch`, and everything before its own first record is committed and told.
    BecameLeader {
        /// The epoch led.
        epoch: Epoch,
    },
    /// This node leads no more: forget what was proposed and not committed.
    LostLeadership {
        /// The epoch now.
        epoch: Epoch,
        /// The new leader if known.
        leader: Option<NodeId>,
    },
    /// Nothing holds the process any longer after [`super::Input::Shutdown`].
    MayStop,
}

/// Another node that is asked something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub name: PeerName,
    /// A host name or address, resolved anew for every connection.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// How another node is called here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerName {
    /// A node whose id is known.
    Node(NodeId),
    /// An entry of `controller.quorum.bootstrap.servers`, counted from 0.
    Bootstrap(usize),
}

/// What has to become durable.
#[derive(Clone, Debug)]
pub enum Write {
    /// The state machine's batches.
    Append {
        /// Offset of the first record.
        first: Offset,
        /// End, exclusive.
        end: Offset,
        /// Epoch of the batches.
        epoch: Epoch,
        /// Bytes as they go to disk.
        batches: Bytes,
    },
    /// One control batch, encoded by the driver.
    AppendControl {
        /// Offset of the first record.
        first: Offset,
        /// Epoch of the batch.
        epoch: Epoch,
        /// Timestamp of the batch.
        timestamp: Timestamp,
        /// The records, one offset each.
        records: Vec<ControlRecord>,
    },
    /// Cut the log: `end` is the new end, exclusive.
    Truncate {
        /// New end, exclusive.
        end: Offset,
    },
    /// Let the log begin at the end of this snapshot: older records and snapshots go.
    MoveStart {
        /// The oldest snapshot that stays.
        to: OffsetAndEpoch,
    },
    /// Drop the whole log: it begins anew, empty, at the end of this snapshot, which is durable.
    Restart {
        /// The only snapshot that stays.
        at: OffsetAndEpoch,
    },
    /// Election state.
    QuorumState(QuorumState),
}

/// What `quorum-state` holds (KIP-595, KIP-853).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumState {
    /// Current epoch.
    pub epoch: Epoch,
    /// Its leader if known.
    pub leader: Option<NodeId>,
    /// Who got this node's vote in the epoch. The directory is nil when the file did not say.
    pub voted: Option<ReplicaKey>,
    /// The voters' ids, written by format 0 only (kraft.version 0).
    pub voters: Vec<NodeId>,
    /// 0 or 1: the file's `data_version`, equal to kraft.version.
    pub kraft_version: u16,
}

/// Control records that consensus writes and reads (KIP-595, KIP-853).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// First record of an epoch.
    LeaderChange {
        /// The leader.
        leader: NodeId,
        /// All voters.
        voters: Vec<NodeId>,
        /// Those who voted for it.
        granting: Vec<NodeId>,
    },
    /// The finalized kraft.version.
    KraftVersion(u16),
    /// The voter set from here on.
    Voters(Vec<VoterNode>),
}

/// A member of the voter set (KIP-853).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterNode {
    /// Id and directory.
    pub key: ReplicaKey,
    /// (listener, host, port) of each controller listener.
    pub endpoints: Vec<(String, String, u16)>,
    /// kraft.version range that the voter supports, both inclusive.
    pub kraft_versions: (u16, u16),
}

/// Who leads, as told to peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderHint {
    /// The leader if known.
    pub leader: Option<NodeId>,
    /// The answering node's epoch.
    pub epoch: Epoch,
    /// Where the leader listens (host, port), on the listener that was asked, if known.
    pub endpoint: Option<(String, u16)>,
}

/// An answer to a peer.
#[derive(Clone, Debug)]
pub enum Response {
    /// Vote.
    Vote(VoteResponse),
    /// BeginQuorumEpoch.
    BeginQuorumEpoch(SimpleResponse),
    /// EndQuorumEpoch.
    EndQuorumEpoch(SimpleResponse),
    /// Fetch without records.
    Fetch(FetchResponse),
    /// FetchSnapshot without bytes (an error).
    FetchSnapshot(FetchSnapshotResponse),
    /// DescribeQuorum.
    DescribeQuorum(DescribeQuorumResponse),
    /// AddRaftVoter.
    AddVoter(ChangeVoterResponse),
    /// RemoveRaftVoter.
    RemoveVoter(ChangeVoterResponse),
    /// UpdateRaftVoter.
    UpdateVoter(UpdateVoterResponse),
}

impl Response {
    /// Whether it says that the one who was asked does not lead: NOT_LEADER_OR_FOLLOWER in an
    /// answer to a request that brokers forward for admin clients (KIP-595, KIP-853).
    #[must_use]
    pub fn is_of_no_leader(&self) -> bool {
        let no_leader = ErrorCode::NotLeaderOrFollower;
        match self {
            Self::DescribeQuorum(response) => {
                matches!(response.error, RaftError::Top(code) | RaftError::Partition(code)
                    if code == no_leader)
            }
            Self::AddVoter(response) | Self::RemoveVoter(response) => response.error == no_leader,
            _ => false,
        }
    }
}

/// AddRaftVoter and RemoveRaftVoter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeVoterResponse {
    /// The outcome.
    pub error: ErrorCode,
    /// A sentence for it.
    pub message: Option<String>,
}

/// UpdateRaftVoter.
#[derive(Clone, Debug)]
pub struct UpdateVoterResponse {
    /// The outcome.
    pub error: ErrorCode,
    /// Who leads.
    pub hint: LeaderHint,
}

/// Where an error belongs in a raft response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaftError {
    /// None: the partition's data is good.
    None,
    /// The response's top-level code; no partition is sent.
    Top(ErrorCode),
    /// The partition's code.
    Partition(ErrorCode),
}

/// Vote.
#[derive(Clone, Debug)]
pub struct VoteResponse {
    /// Error, if any.
    pub error: RaftError,
    /// Who leads.
    pub hint: LeaderHint,
    /// The vote.
    pub granted: bool,
}

/// BeginQuorumEpoch and EndQuorumEpoch.
#[derive(Clone, Debug)]
pub struct SimpleResponse {
    /// Error, if any.
    pub error: RaftError,
    /// Who leads.
    pub hint: LeaderHint,
}

/// Fetch, all but the records.
#[derive(Clone, Debug)]
pub struct FetchResponse {
    /// Error, if any.
    pub error: RaftError,
    /// Who leads.
    pub hint: LeaderHint,
    /// Commit offset, exclusive; -1 while unknown.
    pub high_watermark: i64,
    /// First offset of the log.
    pub log_start: Offset,
    /// Where the logs part: largest epoch not above the asked one, and its end (exclusive).
    pub diverging: Option<OffsetAndEpoch>,
    /// "Fetch this snapshot instead."
    pub snapshot: Option<OffsetAndEpoch>,
}

/// FetchSnapshot, all but size and bytes.
#[derive(Clone, Debug)]
pub struct FetchSnapshotResponse {
    /// Error, if any.
    pub error: RaftError,
    /// Who leads.
    pub hint: LeaderHint,
    /// Which snapshot.
    pub id: OffsetAndEpoch,
}

/// DescribeQuorum.
#[derive(Clone, Debug)]
pub struct DescribeQuorumResponse {
    /// Error, if any.
    pub error: RaftError,
    /// Text for the error.
    pub message: Option<String>,
    /// Leader and epoch.
    pub hint: LeaderHint,
    /// Commit offset, exclusive; -1 while unknown.
    pub high_watermark: i64,
    /// The voters with what they have.
    pub voters: Vec<ReplicaState>,
    /// The observers heard of within the last five minutes.
    pub observers: Vec<ReplicaState>,
    /// The voters' endpoints.
    pub nodes: Vec<VoterNode>,
}

/// What the leader knows of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// Which replica.
    pub key: ReplicaKey,
    /// Its log end, exclusive; -1 while unknown.
    pub log_end: i64,
    /// Wall time of its last fetch, -1 if never.
    pub last_fetch: i64,
    /// Wall time at which it last had everything, -1 if never.
    pub last_caught_up: i64,
}
