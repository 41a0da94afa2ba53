//! The consensus core of KRaft (KIP-595, 630, 853, 996) as one state machine without IO.
//!
//! **Contract.** One call changes the state: `Raft::handle(now, input, &mut outputs)`. One getter
//! says when to call again without an input: `Raft::next_wakeup()`; the driver then sends
//! [`Input::WakeUp`]. Time never goes back. Outputs are executed in the order in which they were
//! pushed. An [`Output::Write`] is told back with [`Input::Written`] when it is on stable storage,
//! in the order of submission; what it *carries* (`then`) is executed only after that, so "persist
//! before reply" is a data type. A failed write is never told back: the process stops.
//!
//! A node starts with its first `handle`, whatever the input; `next_wakeup` asks for one at once.
//! While the election state is being written, requests, wake-ups and the shutdown wait inside the
//! core, so whoever is answered sees only what is durable. Every request gets exactly one answer,
//! also when leadership is lost; parked fetches are answered by an append, an advance of the
//! commit offset, their deadline, or the loss of leadership.
//!
//! ```text
//!             election timer                   majority              majority, durable
//!  Unattached --------------> Prospective ---------------> Candidate ----------------> Leader
//!    ^  |  ^                   ^    |   ^                      |                         |
//!    |  |  '---- not won ------|----'   '------ not won -------'                shutdown |
//!    |  | a leader is named    | the leader is silent                                    v
//!    |  '-----> Follower ------'                           (a leader that restarts) Resigned
//!    '---- a newer epoch, from any role
//! ```
//!
//! A leader resigns at a shutdown, when too few voters fetch (`contact.rs`), and when a committed
//! voter set is without it (`change.rs`). A follower becomes prospective before its timer fires
//! when nobody is at the other end of its connection to the leader (`haste.rs`).
//!
//! What a role has to ask of others is looked at after every call (`dial.rs`): one question at a
//! time for each of them ([`Output::Send`]), given up by the core's own clock (`calls.rs`). A
//! driver answers each with [`Input::Answered`]; whatever comes too late is ignored.
//!
//! The laws that hold after every call are in `check.rs`. One law has no formula: *a leader never
//! leads the same epoch twice*. It serves records before they are durable (so do Kafka's own), and
//! a crash may take them back; the next epoch is what tells the replicas that have them.
//!
//! Raft knows nothing of metadata records: what is proposed is opaque bytes that cover a range of
//! offsets (KIP-630 wants the layers apart).

mod boot;
mod calls;
mod change;
mod check;
mod contact;
mod dial;
mod download;
mod election;
mod epochs;
mod fetch;
mod follower;
mod getters;
mod haste;
pub mod input;
mod joining;
mod leader;
mod log;
mod machine;
pub mod output;
mod progress;
mod refusal;
mod resign;
mod roles;
mod snapshots;
mod transition;
mod update;
mod vote;
mod voters;
mod waiters;

pub use boot::{Boot, RaftConfig};
pub use input::{
    AddVoterRequest, Ask, BeginQuorumEpochRequest, CallFault, DescribeQuorumRequest,
    EndQuorumEpochRequest, FetchRequest, FetchSnapshotRequest, FetchedBatch, Input, LoadedSnapshot,
    Proposal, RemoveVoterRequest, Request, Told, UpdateVoterRequest, VoteRequest,
};
pub use machine::Raft;
pub use output::{
    ChangeVoterResponse, ControlRecord, DescribeQuorumResponse, FetchResponse,
    FetchSnapshotResponse, LeaderHint, Output, Peer, PeerName, QuorumState, RaftError,
    ReplicaState, Response, SimpleResponse, UpdateVoterResponse, VoteResponse, VoterNode, Write,
};

#[cfg(test)]
mod download_tests;
#[cfg(test)]
mod follower_tests;
#[cfg(test)]
mod haste_tests;
#[cfg(test)]
mod quorum_tests;
#[cfg(test)]
mod tests;
