//! A simulated disk that keeps the contract of `kraftd::storage`, and breaks all that it does not
//! promise.
//!
//! **Fault model.** Commands reach the platter in the order of submission; appends that wait
//! together are synced together; a completion means that its write survives. A crash may happen at
//! any moment and
//!
//! * loses any suffix of the writes that were not completed; so it may also keep writes whose
//!   completion was never told;
//! * tears the first lost append: some of its whole batches stay, the rest is cut by recovery as a
//!   torn tail (a batch is never half there, because its checksum says so);
//! * leaves `quorum-state` old or new, never half (it is replaced by a rename);
//! * may lose the newest durable commit offsets, never invents one;
//! * ends in the middle of a move of the log's start: some of the old segments are gone from the
//!   front, some of the old snapshots are still there. A start finds the log at the begin of its
//!   first segment, so usually somewhat below where it was told to begin;
//! * leaves a snapshot of the leader beside the old log, which the next start takes over;
//! * loses the pieces of a snapshot that is not whole.
//!
//! A disk may be slow and may hang for seconds. What it completed can be lost only by the damages
//! in `damage.rs`, which happen to a minority of the voters: a quorum whose majority forgets is
//! not a bug of ours.

mod crash;
mod damage;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use kraftd::raft::{Boot, ControlRecord, QuorumState, VoterNode, Write};
use kraftd::types::{Epoch, Offset, OffsetAndEpoch, Token};

use crate::codec::{self, Batch, Content};
use crate::journal::Journal;

#[derive(Clone, Debug)]
struct Queued {
    token: Token,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Append(Vec<std::sync::Arc<Batch>>),
    Truncate(Offset),
    MoveStart(OffsetAndEpoch),
    Restart(OffsetAndEpoch),
    QuorumState(QuorumState),
}

/// A snapshot that is durable.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub bytes: Bytes,
    /// The hash of the log up to its end.
    pub chain: u64,
}

/// The disk of one node; it outlives its processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    /// What is on the platter.
    platter: Journal,
    /// What a read sees: the platter and all that was submitted.
    view: Journal,
    quorum_state: Option<QuorumState>,
    commit: Option<OffsetAndEpoch>,
    commit_submitted: Option<OffsetAndEpoch>,
    /// How far a log that rotted once reached.
    reached: Option<OffsetAndEpoch>,
    /// Where the log begins for the running process.
    pub start: Offset,
    /// The begin of the first segment: where it begins for the next one.
    floor: Offset,
    /// Durable snapshots.
    pub snapshots: BTreeMap<OffsetAndEpoch, Snapshot>,
    /// The voters in the bootstrap snapshot, at kraft.version 1.
    pub bootstrap: Option<Vec<VoterNode>>,
    /// The snapshot that is coming in.
    pub part: Option<(OffsetAndEpoch, Vec<u8>)>,
    queue: VecDeque<Queued>,
    /// How many of the queue are being written and synced now.
    busy: usize,
}

/// What a write brought to the view.
pub(crate) enum Seen {
    /// Batches, each with the hash of the log up to its end.
    Appended(Vec<(std::sync::Arc<Batch>, u64)>),
    Cut(Offset),
    /// The log begins anew behind a snapshot.
    Anew,
    Other,
}

impl Disk {
    pub(crate) fn view(&self) -> &Journal {
        &self.view
    }

    pub(crate) fn platter(&self) -> &Journal {
        &self.platter
    }

    pub(crate) fn durable_state(&self) -> Option<&QuorumState> {
        self.quorum_state.as_ref()
    }

    /// Whether nothing waits to be written.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes a write. Gives what became visible to reads.
    pub(crate) fn submit(&mut self, token: Token, write: Write) -> Seen {
        let (change, seen) = match write {
            Write::QuorumState(state) => (Change::QuorumState(state), Seen::Other),
            Write::Append {
                first,
                end,
                batches,
                ..
            } => {
                let found = codec::batches(&batches).expect("an append holds whole batches");
                let at = found.first().map(|batch| batch.first);
                assert_eq!(at, Some(first), "an append of another place");
                self.append(found, end)
            }
            Write::AppendControl {
                first,
                epoch,
                records,
                ..
            } => {
                let batch = Batch::new(first, epoch, Content::Control(records));
                let end = batch.end;
                self.append(vec![batch], end)
            }
            Write::Truncate { end } => {
                assert!(end >= self.start, "a cut to {end} below the log's start");
                self.view.truncate(end);
                (Change::Truncate(end), Seen::Cut(end))
            }
            Write::MoveStart { to } => {
                assert!(self.snapshots.contains_key(&to), "{to:?} is no snapshot");
                assert!(to.offset >= self.start, "the start moves back to {to:?}");
                self.start = to.offset;
                (Change::MoveStart(to), Seen::Other)
            }
            Write::Restart { at } => {
                let chain = self.snapshots[&at].chain;
                self.view = Journal::new(at, chain);
                self.start = at.offset;
                (Change::Restart(at), Seen::Anew)
            }
        };
        self.queue.push_back(Queued { token, change });
        seen
    }

    fn append(&mut self, found: Vec<std::sync::Arc<Batch>>, end: Offset) -> (Change, Seen) {
        let with = |batch: &std::sync::Arc<Batch>| {
            let chain = self.view.push(batch.clone());
            (batch.clone(), chain)
        };
        let appended = found.iter().map(with).collect();
        assert_eq!(end, self.view.end(), "an append of another length");
        (Change::Append(found), Seen::Appended(appended))
    }

    /// Remembers a commit offset, with the next sync.
    pub(crate) fn submit_commit(&mut self, end: Offset) {
        let epoch = self.view.epoch_below(end);
        self.commit_submitted = epoch.map(|epoch| OffsetAndEpoch { offset: end, epoch });
        if self.queue.is_empty() {
            self.keep_commit();
        }
    }

    fn keep_commit(&mut self) {
        let end = self.platter.end();
        let held = |commit: &OffsetAndEpoch| {
            // A mark never goes back.
            commit.offset <= end
                && self
                    .commit
                    .is_none_or(|known| known.offset <= commit.offset)
        };
        self.commit = self.commit_submitted.filter(held).or(self.commit);
    }

    /// Begins to write, if there is something and the disk is idle: all appends that wait, or one
    /// other change.
    pub(crate) fn begin(&mut self) -> bool {
        if self.busy > 0 || self.queue.is_empty() {
            return false;
        }
        let appends = self
            .queue
            .iter()
            .take_while(|queued| matches!(queued.change, Change::Append(_)))
            .count();
        self.busy = appends.max(1);
        true
    }

    /// Ends what was begun: it is durable.
    pub(crate) fn finish(&mut self) -> Vec<Token> {
        let done: Vec<Queued> = self.queue.drain(..std::mem::take(&mut self.busy)).collect();
        let tokens = done.iter().map(|queued| queued.token).collect();
        for queued in done {
            self.persist(queued.change);
        }
        tokens
    }

    fn persist(&mut self, change: Change) {
        match change {
            Change::QuorumState(state) => self.quorum_state = Some(state),
            Change::MoveStart(to) => {
                self.floor = self.segment_of(to.offset);
                self.platter.drop_below(self.floor);
                self.snapshots.retain(|id, _| *id >= to);
            }
            Change::Restart(at) => {
                self.platter = Journal::new(at, self.snapshots[&at].chain);
                self.floor = at.offset;
                self.snapshots.retain(|id, _| *id >= at);
            }
            Change::Truncate(end) => self.platter.truncate(end),
            Change::Append(batches) => batches.into_iter().for_each(|batch| {
                self.platter.push(batch);
            }),
        }
        self.keep_commit();
    }

    /// The begin of the segment that holds `offset`, or that a record there would get into.
    fn segment_of(&self, offset: Offset) -> Offset {
        let mut base = self.platter.base();
        for batch in self.platter.batches().take_while(|it| it.first < offset) {
            if batch.first.0 / SEGMENT_RECORDS != base.0 / SEGMENT_RECORDS {
                base = batch.first;
            }
        }
        base
    }

    /// The snapshot of a new life: the newest one.
    pub(crate) fn newest(&self) -> Option<(OffsetAndEpoch, &Snapshot)> {
        self.snapshots.last_key_value().map(|(id, it)| (*id, it))
    }

    /// What recovery finds, behind [`Self::recover`].
    pub(crate) fn boot(&self) -> Boot {
        let (base, mut control) = match (self.newest(), &self.bootstrap) {
            (Some((id, snapshot)), _) => {
                let at = id.offset.prev();
                let (records, _) =
                    codec::open_snapshot(&snapshot.bytes).expect("what is durable is whole");
                let at = records.into_iter().map(|record| (at, record)).collect();
                (id.offset, at)
            }
            (None, Some(voters)) => {
                let version = (Offset(-1), ControlRecord::KraftVersion(1));
                let voters = (Offset(-1), ControlRecord::Voters(voters.clone()));
                (Offset::ZERO, vec![version, voters])
            }
            (None, None) => (Offset::ZERO, Vec::new()),
        };
        let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
        for batch in self.platter.batches() {
            let known = epochs
                .last()
                .is_some_and(|(epoch, _)| *epoch == batch.epoch);
            if !known {
                epochs.push((batch.epoch, batch.first));
            }
            let behind = batch.control().into_iter().filter(|(at, _)| *at >= base);
            control.extend(behind);
        }
        Boot {
            quorum_state: self.quorum_state.clone(),
            log_start: self.start,
            log_end: self.platter.end(),
            epochs,
            snapshots: self.snapshots.keys().copied().collect(),
            control,
            commit: match self.reached {
                // Until it is refilled, that stands for what must be there.
                Some(reached) if reached.offset > self.platter.end() => Some(reached),
                _ => self.commit,
            },
        }
    }
}

/// About how many records fill a segment.
const SEGMENT_RECORDS: i64 = 16;
