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
//!   first segment, so usually somewhat below where it was told to begin.
//!
//! A disk may be slow and may hang for seconds. It never loses a completed write: with one voter
//! there is no second copy, and a disk that lies about a sync is not a bug of ours.

use std::collections::VecDeque;

use kraftd::raft::{Boot, ControlRecord, QuorumState, VoterNode, Write};
use kraftd::types::{Epoch, Offset, OffsetAndEpoch, SplitMix, Token};

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub epoch: Epoch,
    /// First offset of its batch.
    pub batch: Offset,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Control(ControlRecord),
    Value(u64),
}

#[derive(Clone, Debug)]
struct Queued {
    token: Token,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Append(Vec<Entry>),
    MoveStart(OffsetAndEpoch),
    QuorumState(QuorumState),
}

/// The disk of the node; it outlives its processes.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// What is on the platter, from offset 0 even where the log starts later: the laws look at it.
    platter: Vec<Entry>,
    /// What a read sees: the platter and all that was submitted.
    view: Vec<Entry>,
    quorum_state: Option<QuorumState>,
    commit: Option<OffsetAndEpoch>,
    commit_submitted: Option<OffsetAndEpoch>,
    /// Where the log begins for the running process.
    pub start: Offset,
    /// The begin of the first segment: where it begins for the next one.
    floor: Offset,
    /// Durable snapshots, ascending.
    pub snapshots: Vec<OffsetAndEpoch>,
    /// The voters in the bootstrap snapshot, at kraft.version 1.
    pub bootstrap: Option<Vec<VoterNode>>,
    queue: VecDeque<Queued>,
    /// How many of the queue are being written and synced now.
    busy: usize,
}

impl Disk {
    pub(crate) fn view(&self) -> &[Entry] {
        &self.view
    }

    pub(crate) fn platter(&self) -> &[Entry] {
        &self.platter
    }

    pub(crate) fn durable_state(&self) -> Option<&QuorumState> {
        self.quorum_state.as_ref()
    }

    /// Takes a write. Gives what became visible to reads.
    pub(crate) fn submit(&mut self, token: Token, write: Write) -> &[Entry] {
        let before = self.view.len();
        let change = match write {
            Write::QuorumState(state) => Change::QuorumState(state),
            Write::Append {
                first,
                end,
                epoch,
                batches,
            } => {
                assert_eq!(first, end_of(&self.view), "an append not at the log's end");
                let entries = decode(first, epoch, &batches);
                self.view.extend_from_slice(&entries);
                assert_eq!(end, end_of(&self.view), "an append of another length");
                Change::Append(entries)
            }
            Write::AppendControl {
                first,
                epoch,
                records,
                ..
            } => {
                assert_eq!(first, end_of(&self.view), "an append not at the log's end");
                let entries: Vec<Entry> = records
                    .into_iter()
                    .map(|record| Entry {
                        epoch,
                        batch: first,
                        content: Content::Control(record),
                    })
                    .collect();
                self.view.extend_from_slice(&entries);
                Change::Append(entries)
            }
            Write::MoveStart { to } => {
                assert!(self.snapshots.contains(&to), "{to:?} is no snapshot");
                assert!(to.offset >= self.start, "the start moves back to {to:?}");
                self.start = to.offset;
                Change::MoveStart(to)
            }
            Write::Restart { at } => panic!("the only voter drops its log for {at:?}"),
            Write::Truncate { end } => panic!("the only voter truncates its log to {end}"),
        };
        self.queue.push_back(Queued { token, change });
        &self.view[before..]
    }

    /// Remembers a commit offset, with the next sync of an append.
    pub(crate) fn submit_commit(&mut self, end: Offset) {
        let last = usize::try_from(end.0 - 1)
            .ok()
            .and_then(|at| self.view.get(at));
        self.commit_submitted = last.map(|entry| OffsetAndEpoch {
            offset: end,
            epoch: entry.epoch,
        });
    }

    /// Begins to write, if there is something and the disk is idle: all appends that wait, or one
    /// election state.
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
                self.snapshots.retain(|id| *id >= to);
            }
            Change::Append(entries) => {
                self.platter.extend(entries);
                let end = end_of(&self.platter);
                self.commit = self
                    .commit_submitted
                    .filter(|commit| commit.offset <= end)
                    .or(self.commit);
            }
        }
    }

    /// The process or the machine dies. Says what that did.
    pub(crate) fn crash(&mut self, rng: &mut SplitMix) -> &'static str {
        let kept = rng.below(self.queue.len() as u64 + 1) as usize;
        let lost: Vec<Queued> = self.queue.drain(..).collect();
        let mut what = match (lost.len(), kept) {
            (0, _) => "crash of an idle disk",
            (_, 0) => "crash that lost all that was under way",
            (some, all) if some == all => "crash with no completion told",
            (_, _) => "crash that lost a suffix",
        };
        for (at, queued) in lost.into_iter().enumerate() {
            if at < kept {
                self.persist(queued.change);
                continue;
            }
            if let Change::MoveStart(to) = queued.change {
                what = "crash in a move of the log's start";
                let below = to.offset.0 - self.floor.0 + 1;
                let reached = self.floor.plus(rng.below(below as u64) as i64);
                self.floor = self.segment_of(reached).max(self.floor);
                if self.floor == self.segment_of(to.offset) {
                    self.snapshots.retain(|id| *id >= to || rng.below(2) == 0);
                }
            } else if let Change::Append(mut entries) = queued.change {
                // Some whole batches of the first lost append.
                let cut = rng.below(entries.len() as u64 + 1) as usize;
                let cut = entries.get(cut).map_or(entries.len(), |entry| {
                    (entry.batch.0 - self.platter.len() as i64) as usize
                });
                if cut > 0 && cut < entries.len() {
                    what = "crash that tore an append";
                }
                entries.truncate(cut);
                self.persist(Change::Append(entries));
            }
            break;
        }
        self.busy = 0;
        self.view.clone_from(&self.platter);
        self.restart();
        self.commit_submitted = None;
        what
    }

    /// A clean stop: all that was submitted is written.
    pub(crate) fn close(&mut self) {
        self.busy = self.queue.len();
        self.finish();
        self.restart();
    }

    /// The next process finds the log where its first segment begins, and removes snapshots that
    /// end below.
    fn restart(&mut self) {
        self.start = self.floor;
        let start = self.start;
        self.snapshots.retain(|id| id.offset >= start);
    }

    /// The begin of the segment that holds `offset`, or that a record there would get into.
    fn segment_of(&self, offset: Offset) -> Offset {
        let before = &self.platter[..(offset.0 as usize).min(self.platter.len())];
        let mut base = 0;
        for entry in before {
            if entry.batch.0 / SEGMENT_RECORDS != base / SEGMENT_RECORDS {
                base = entry.batch.0;
            }
        }
        Offset(base)
    }

    /// What recovery finds.
    pub(crate) fn boot(&self) -> Boot {
        let mut control = Vec::new();
        if let Some(voters) = &self.bootstrap {
            control.push((Offset(-1), ControlRecord::KraftVersion(1)));
            control.push((Offset(-1), ControlRecord::Voters(voters.clone())));
        }
        let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
        for (offset, entry) in (0..).map(Offset).zip(&self.platter) {
            if let Content::Control(record) = &entry.content {
                control.push((offset, record.clone()));
            }
            let known = epochs
                .last()
                .is_some_and(|(epoch, _)| *epoch == entry.epoch);
            if offset >= self.start && !known {
                epochs.push((entry.epoch, offset));
            }
        }
        Boot {
            quorum_state: self.quorum_state.clone(),
            log_start: self.start,
            log_end: end_of(&self.platter),
            epochs,
            snapshots: self.snapshots.clone(),
            control,
            commit: self.commit,
        }
    }

    /// Whole batches from the one that holds `from`, none that starts at or behind `until`, at
    /// least one, about `bytes` in all.
    pub(crate) fn read(&self, from: Offset, until: Offset, bytes: usize) -> Vec<(Offset, Entry)> {
        let Some(first) = self.view.get(from.0 as usize) else {
            return Vec::new();
        };
        let mut found: Vec<(Offset, Entry)> = Vec::new();
        for (offset, entry) in (0..)
            .map(Offset)
            .zip(&self.view)
            .skip(first.batch.0 as usize)
        {
            let full = entry.batch != first.batch && found.len() * ENTRY_BYTES >= bytes;
            if entry.batch == offset && (offset >= until || full) {
                break;
            }
            found.push((offset, entry.clone()));
        }
        found
    }
}

/// About how many records fill a segment.
const SEGMENT_RECORDS: i64 = 16;

/// What one record counts for in a read.
const ENTRY_BYTES: usize = 50;

pub(crate) fn end_of(log: &[Entry]) -> Offset {
    Offset(log.len() as i64)
}

/// Batches of values as the client writes them: each a count and its values.
pub(crate) fn encode(batches: &[Vec<u64>]) -> bytes::Bytes {
    let mut bytes = Vec::new();
    for batch in batches {
        bytes.extend((batch.len() as u64).to_be_bytes());
        for value in batch {
            bytes.extend(value.to_be_bytes());
        }
    }
    bytes.into()
}

fn decode(first: Offset, epoch: Epoch, bytes: &[u8]) -> Vec<Entry> {
    let mut words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_be_bytes(word.try_into().expect("chunks of 8")));
    let mut entries: Vec<Entry> = Vec::new();
    while let Some(count) = words.next() {
        let batch = first.plus(entries.len() as i64);
        entries.extend(words.by_ref().take(count as usize).map(|value| Entry {
            epoch,
            batch,
            content: Content::Value(value),
        }));
    }
    entries
}
