//! The consensus core of KRaft (KIP-595, KIP-630, KIP-853, KIP-996) as one state machine without IO.
//!
//! **Contract.** One call changes the state: `Raft::handle(now, input, &mut outputs)`. One getter
//! says when to call again without an input: `Raft::next_wakeup()`; the driver then sends
//! [`Input::WakeUp`]. Time never goes back. Outputs are executed in the order in which they were
//! pushed. An [`Output::Write`] is told back with [`Input::Written`] when it is on stable storage,
//! in the order of submission; what it *carries* (`then`) is executed only after that, so "persist
//! before reply" is a data type. A failed write is never told back: the process stops.
//!
//! Raft knows nothing of metadata records: what is proposed is opaque bytes that cover a range of
//! offsets (KIP-630 wants the layers apart).

pub mod input;
pub mod output;

pub use input::{
    BeginQuorumEpochRequest, DescribeQuorumRequest, EndQuorumEpochRequest, FetchRequest,
    FetchSnapshotRequest, Input, Proposal, Request, VoteRequest,
};
pub use output::{
    ControlRecord, DescribeQuorumResponse, FetchResponse, FetchSnapshotResponse, LeaderHint,
    Output, QuorumState, RaftError, ReplicaState, Response, SimpleResponse, VoteResponse,
    VoterNode, Write,
};
