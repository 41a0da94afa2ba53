//! Storage: what the core asks of a disk, and what it is told back.
//!
//! **Ordering contract.** Commands are executed in the order of submission by one disk thread, and
//! completions come back in that order, except for reads, which may overtake nothing before them
//! but may complete later. Appends that wait together are written together and synced once. A
//! completion of a write means: it survives a power cut. A failed write, sync or rename is final:
//! [`Completion::Failed`] is the last completion and the process stops; a failed fsync is never
//! tried again (what the page cache holds after it is unknown). Only a snapshot that has no name
//! yet is given up with its file instead: one of this node's own whatever failed, one of another
//! node when there is no room for it.
//!
//! The interface is plain data so that a simulated disk can stand in for the files.

pub mod atomic;
pub mod bootstrap;
pub(crate) mod commit_file;
mod control;
pub mod directory;
pub(crate) mod epoch_checkpoint;
pub mod fault;
pub mod files;
mod frame;
mod index;
mod judge;
mod listing;
pub mod lock;
mod log;
pub mod meta_properties;
mod pace;
pub(crate) mod partition_metadata;
pub(crate) mod presence;
pub mod quorum_state;
pub mod reader;
mod recovery;
mod room;
mod scan;
mod segment;
pub mod snapshot;
mod takeover;
#[cfg(test)]
mod testing;
pub mod verify;

pub(crate) use self::recovery::segments::RESTORE;

pub(crate) use control::{fetched as fetched_control_records, to_wire as control_record};
pub use fault::{FaultKind, StorageFault};
pub use meta_properties::MetaProperties;
pub use recovery::OpenOptions;

use std::sync::Arc;

use bytes::Bytes;

use crate::raft::{ControlRecord, QuorumState};
use crate::records::VersionedRecord;
use crate::types::{Epoch, Offset, OffsetAndEpoch, Timestamp, Token};

/// Something for the disk to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Append complete batches; `first` is the log's end. Completes with `Appended` after the sync.
    Append {
        /// Comes back in the completion.
        token: Token,
        /// Offset of the first record.
        first: Offset,
        /// End, exclusive.
        end: Offset,
        /// Epoch of the batches.
        epoch: Epoch,
        /// One or more whole batches.
        batches: Bytes,
    },
    /// Cut the log so that `end` (exclusive) is its end. Completes with `Truncated`.
    Truncate {
        /// Comes back in the completion.
        token: Token,
        /// New end, exclusive.
        end: Offset,
    },
    /// Let the log begin at the end of this snapshot, which is durable: whole segments below it and
    /// older snapshots are retired (renamed at once, deleted after a while or at the next start).
    /// Completes with `LogStartMoved`.
    MoveLogStart {
        /// Comes back in the completion.
        token: Token,
        /// The oldest snapshot that stays.
        to: OffsetAndEpoch,
    },
    /// Replace `quorum-state`. Completes with `QuorumStateSaved`.
    SaveQuorumState {
        /// Comes back in the completion.
        token: Token,
        /// What to write.
        state: QuorumState,
    },
    /// Remember that everything below `commit.offset` is committed. No completion; written with
    /// the next append's sync or soon after, so it may lag behind but never runs ahead.
    SaveCommit {
        /// Commit offset (exclusive) with the epoch of the record before it.
        commit: OffsetAndEpoch,
    },
    /// Drop the whole log: it begins anew, empty, at the end of this snapshot, which is durable.
    /// Older snapshots are retired. Completes with `LogRestarted`.
    RestartLog {
        /// Comes back in the completion.
        token: Token,
        /// The only snapshot that stays.
        at: OffsetAndEpoch,
    },
    /// Take a piece of another node's snapshot. The last one completes with `SnapshotReceived` once
    /// the whole is durable under its name, a piece that does not fit at once; each other with
    /// `SnapshotPieceKept` when it is written, and lost if the process ends before the last.
    ReceiveSnapshot(SnapshotPiece),
    /// Read whole batches from the one that holds `from`. Completes with `Read`.
    Read {
        /// Comes back in the completion.
        token: Token,
        /// First offset wanted.
        from: Offset,
        /// End, exclusive: no batch that starts at or behind it is returned.
        until: Offset,
        /// Upper bound in bytes; at least one batch is returned if there is one.
        max_bytes: usize,
    },
    /// Read bytes of a snapshot file. Completes with `SnapshotRead`.
    ReadSnapshot {
        /// Comes back in the completion.
        token: Token,
        /// Which one.
        id: OffsetAndEpoch,
        /// First byte; may be negative or behind the end, which is answered, not failed.
        position: i64,
        /// Upper bound in bytes.
        max_bytes: usize,
    },
    /// Write a snapshot file on a thread of its own; nothing waits for it. Completes with
    /// `SnapshotWritten` when it is durable under its name, else with `SnapshotNotWritten`.
    WriteSnapshot(SnapshotOrder),
    /// Sync, release the lock and end the disk thread. Completes with `Closed`.
    Close,
}

/// What the disk tells back.
#[derive(Clone, Debug)]
pub enum Completion {
    /// The append is durable.
    Appended(Token),
    /// The cut is durable.
    Truncated {
        /// The command's token.
        token: Token,
        /// Bytes of the log that are gone.
        removed_bytes: u64,
    },
    /// The election state is durable.
    QuorumStateSaved(Token),
    /// What lies below the new start of the log is retired, durably.
    LogStartMoved {
        /// The command's token.
        token: Token,
        /// Bytes of the segments that were retired.
        removed_bytes: u64,
    },
    /// The log is empty and begins at the snapshot, durably.
    LogRestarted {
        /// The command's token.
        token: Token,
    },
    /// A piece of another node's snapshot is in its file, and the next may come.
    SnapshotPieceKept {
        /// Of which one.
        id: OffsetAndEpoch,
        /// End of what is there, exclusive, in bytes.
        end: u64,
    },
    /// Another node's snapshot came in: it is durable, or there is no such file.
    SnapshotReceived {
        /// Which one.
        id: OffsetAndEpoch,
        /// What it is.
        outcome: Result<HeldSnapshot, Unreceived>,
    },
    /// Batches read; empty when there is nothing at `from` (yet). Reads see all appends submitted
    /// before them.
    Read {
        /// The command's token.
        token: Token,
        /// Whole batches.
        batches: Bytes,
    },
    /// Bytes of a snapshot.
    SnapshotRead {
        /// The command's token.
        token: Token,
        /// What was found.
        chunk: SnapshotChunk,
    },
    /// The snapshot is durable.
    SnapshotWritten(HeldSnapshot),
    /// The snapshot that was ordered could not be written, and there is no such file. Nothing is
    /// lost by that: the log, which it would have covered, goes on.
    SnapshotNotWritten {
        /// Which one.
        id: OffsetAndEpoch,
        /// A sentence that names file and reason.
        reason: String,
    },
    /// The disk thread ended.
    Closed,
    /// A write failed: the sentence names file and reason. Nothing follows.
    Failed(String),
}

/// A snapshot on disk, as far as retention has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSnapshot {
    /// What it is called.
    pub id: OffsetAndEpoch,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Timestamp of the newest batch that it covers; `None` when the file does not tell.
    pub last_timestamp: Option<Timestamp>,
}

/// Why another node's snapshot left no file. Each has a sentence that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreceived {
    /// What came in is no good.
    NoGood(String),
    /// The disk has no room for it.
    NoRoom(String),
}

/// A piece of another node's snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotPiece {
    /// Of which one.
    pub id: OffsetAndEpoch,
    /// Where in the file the bytes belong; 0 begins it (anew).
    pub position: u64,
    /// The bytes.
    pub bytes: Bytes,
    /// The size of the whole file.
    pub size: u64,
}

/// A snapshot to write.
#[derive(Clone, Debug)]
pub struct SnapshotOrder {
    /// What it is called.
    pub id: OffsetAndEpoch,
    /// Timestamp of the newest batch that it covers.
    pub last_timestamp: Timestamp,
    /// Timestamp of its own batches.
    pub timestamp: Timestamp,
    /// `kraft.version` and voters, if they live in the log.
    pub control: Vec<crate::records::ControlRecord>,
    /// What it holds.
    pub content: Arc<dyn Content>,
    /// About how large its file will be, as the one before is; 0 when there was none.
    pub bytes_expected: u64,
}

/// The state of a state machine, as records. It does not change while they are asked for.
pub trait Content: std::fmt::Debug + Send + Sync {
    /// Gives every record to `sink`, in order.
    fn records(&self, sink: &mut dyn FnMut(VersionedRecord));
}

/// The answer to [`Command::ReadSnapshot`].
#[derive(Clone, Debug)]
pub enum SnapshotChunk {
    /// No such snapshot (any more).
    NotFound,
    /// `position` is negative or not below the size.
    OutOfRange,
    /// Bytes from `position`.
    Bytes {
        /// The file's size in bytes.
        size: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The file is there and cannot be read; the sentence says why. The others can be served.
    Failed(String),
}

/// What was found on disk at start, after repair of a torn tail.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// `quorum-state`, if there is one.
    pub quorum_state: Option<QuorumState>,
    /// First offset of the log.
    pub log_start: Offset,
    /// End of the log, exclusive.
    pub log_end: Offset,
    /// Each epoch with its first offset, ascending.
    pub epochs: Vec<(Epoch, Offset)>,
    /// Complete snapshots, ascending; the bootstrap snapshot 0-0 is not among them.
    pub snapshots: Vec<OffsetAndEpoch>,
    /// Those snapshots with sizes and ages, and the bootstrap snapshot: it takes part in retention.
    pub held: Vec<HeldSnapshot>,
    /// Bytes of all segments of the log.
    pub log_bytes: u64,
    /// The durable commit offset, if this directory has one.
    pub commit: Option<OffsetAndEpoch>,
    /// Control records of the newest snapshot (or of 0-0, at offset -1) and then of the log, with
    /// their offsets, ascending.
    pub control: Vec<(Offset, ControlRecord)>,
    /// Bytes that were cut off as a torn tail.
    pub torn_bytes: u64,
}
