//! When a snapshot of the committed image is written (KIP-630), with what in it, and when older
//! ones go.
//!
//! An image is never copied for that: the disk is given a clone that shares everything with the
//! working image, and requests go on meanwhile. One snapshot is under way at a time, and one move
//! of the log's start.

use std::fmt;
use std::sync::Arc;

use crate::image::Image;
use crate::raft::Input;
use crate::records::VersionedRecord;
use crate::storage::{Command, Content, HeldSnapshot, SnapshotOrder};
use crate::types::{Instant, Now, Offset, OffsetAndEpoch};

use super::apply::Replayer;
use super::retention::{Held, RetentionRules};
use super::{Effect, Node, control};

/// How often retention is looked at when no snapshot is written, in milliseconds; as Java.
const CLEAN_INTERVAL_MS: u64 = 60_000;

/// How long a snapshot that could not be written is not tried again unless somebody asks for one,
/// in milliseconds. Each try may fill the disk for a moment and reads the whole image.
const RETRY_INTERVAL_MS: u64 = 60_000;

/// When to write one, and how much is kept.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRules {
    /// `metadata.log.max.record.bytes.between.snapshots`: bytes of committed batches.
    pub bytes_between: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` never writes one for its age.
    pub interval_ms: Option<u64>,
    /// When the oldest go.
    pub retention: RetentionRules,
}

/// Why a snapshot is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Asked,
    Again,
    Bytes(u64),
    Age(u64),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("it was asked for"),
            Self::Again => f.write_str("the last one could not be written"),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes were committed since the last"),
            Self::Age(ms) => write!(f, "the last one is {ms} ms old"),
        }
    }
}

/// What has happened since the newest snapshot, and what is on disk.
pub(super) struct Snapshots {
    rules: SnapshotRules,
    bytes: u64,
    /// End of the newest snapshot, exclusive; 0 without one.
    newest: Offset,
    /// When `newest` became the newest, or this process began; `None` before the first look.
    since: Option<Instant>,
    /// Somebody wants one as soon as it can be.
    asked: bool,
    writing: bool,
    /// The last one could not be written; not before this is it tried again.
    retry_at: Option<Instant>,
    held: Held,
    /// The log's start is on its way to the end of this snapshot.
    cleaning: Option<OffsetAndEpoch>,
    /// When retention is looked at next; `None` before the first look.
    clean_at: Option<Instant>,
    /// When a replica was last given a piece of a snapshot.
    fetched_at: Option<Instant>,
    /// The last piece of a leader's snapshot found no room, which was told.
    pub(super) lacks_room: bool,
}

impl Snapshots {
    pub(super) const fn new(rules: SnapshotRules, newest: Offset, held: Held) -> Self {
        Self {
            rules,
            bytes: 0,
            newest,
            since: None,
            asked: false,
            writing: false,
            retry_at: None,
            held,
            cleaning: None,
            clean_at: None,
            fetched_at: None,
            lacks_room: false,
        }
    }

    /// Notes committed batches.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Notes batches that were given to the disk.
    pub(super) fn note_appended(&mut self, bytes: usize) {
        self.held.log_bytes = self.held.log_bytes.saturating_add(bytes as u64);
    }

    /// The snapshots that are known to be on disk.
    #[cfg(test)]
    pub(super) fn held_ids(&self) -> Vec<OffsetAndEpoch> {
        self.held.snapshots.iter().map(|held| held.id).collect()
    }

    /// Bytes of the log.
    #[cfg(test)]
    pub(super) const fn log_bytes(&self) -> u64 {
        self.held.log_bytes
    }

    /// Notes that the log was cut.
    pub(super) fn note_truncated(&mut self, bytes: u64) {
        self.held.log_bytes = self.held.log_bytes.saturating_sub(bytes);
    }

    /// Another node's snapshot is the newest now.
    pub(super) fn taken_over(&mut self, held: HeldSnapshot, restarted: bool, now: Instant) {
        self.bytes = 0;
        self.newest = held.id.offset;
        self.since = Some(now);
        self.retry_at = None;
        self.held.add(held);
        if restarted {
            self.held.removed(held.id, u64::MAX);
        }
    }

    /// A replica is given a piece of a snapshot.
    pub(super) fn note_fetched(&mut self, now: Instant) {
        self.fetched_at = Some(now);
    }

    /// Whether a replica may be in the middle of a snapshot.
    fn is_fetched(&self, now: Instant) -> bool {
        self.fetched_at
            .is_some_and(|at| now.since(at) < CLEAN_INTERVAL_MS)
    }

    /// When retention wants to be looked at.
    pub(super) fn next_clean(&self) -> Instant {
        self.clean_at.unwrap_or(Instant::NEVER)
    }

    /// What was ordered is no file. The node goes on: the log has everything that it would cover.
    pub(super) fn not_written(&mut self, now: Instant, id: OffsetAndEpoch, reason: &str) {
        self.writing = false;
        if id.offset <= self.newest {
            return tracing::warn!(
                "the snapshot {}-{} was not written: {reason} A newer one took its place",
                id.offset,
                id.epoch
            );
        }
        let retry_at = now.plus_ms(RETRY_INTERVAL_MS);
        self.retry_at = Some(retry_at);
        // Where nothing is committed any more, nothing else tries it again.
        self.clean_at = Some(retry_at);
        tracing::warn!(
            "the snapshot {}-{} was not written: {reason} The log goes on without it and grows \
             until one is written; it is tried again after {} s, or when it is asked for (SIGUSR1)",
            id.offset,
            id.epoch,
            RETRY_INTERVAL_MS / 1_000
        );
    }

    fn is_due(&mut self, now: Instant, end: Offset) -> Option<Why> {
        let since = *self.since.get_or_insert(now);
        if self.writing || end <= self.newest {
            return None;
        }
        let age = now.since(since);
        if self.asked {
            return Some(Why::Asked);
        }
        if let Some(at) = self.retry_at {
            return (now >= at).then_some(Why::Again);
        }
        if self.bytes >= self.rules.bytes_between {
            return Some(Why::Bytes(self.bytes));
        }
        let old = self.rules.interval_ms.is_some_and(|ms| age >= ms);
        old.then_some(Why::Age(age))
    }
}

/// An image as the content of a snapshot.
#[derive(Debug)]
struct Whole(Image);

impl Content for Whole {
    fn records(&self, sink: &mut dyn FnMut(VersionedRecord)) {
        for loss in self.0.emit(sink) {
            tracing::warn!("a snapshot at this metadata.version cannot hold {loss}");
        }
    }
}

impl Node {
    /// Somebody wants a snapshot now: it is ordered at once, or as soon as it can be.
    pub(super) fn snapshot_asked(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let (end, newest) = (self.committed.end, self.snapshots.newest);
        if self.stopping {
            return tracing::info!("no snapshot is written any more: the process stops");
        }
        if end <= newest {
            return tracing::info!(
                "no snapshot is written: nothing was committed since the newest, which ends at \
                 {newest}"
            );
        }
        self.snapshots.asked = true;
        if self.snapshots.writing {
            tracing::info!("a snapshot is being written; another follows it");
        } else if self.committed.image.open_transaction().is_some() {
            tracing::info!("a snapshot is written when the metadata transaction has ended");
        }
        self.snapshot_if_due(now, effects);
    }

    /// Orders a snapshot of what is committed, if one is due. Never inside a metadata transaction:
    /// what it holds must be all of the log below its end.
    pub(super) fn snapshot_if_due(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Replayer {
            image,
            end,
            timestamp,
            ..
        } = &self.committed;
        let (end, last_timestamp) = (*end, *timestamp);
        if self.stopping || self.halted || image.open_transaction().is_some() {
            return;
        }
        let Some(why) = self.snapshots.is_due(now.instant, end) else {
            return;
        };
        let id = OffsetAndEpoch {
            offset: end,
            epoch: self.raft.epoch_of(end.prev()),
        };
        tracing::info!("writing the snapshot {}-{}: {why}", id.offset, id.epoch);
        self.snapshots.writing = true;
        self.snapshots.asked = false;
        self.snapshots.retry_at = None;
        self.snapshots.bytes = 0;
        self.snapshots.since = Some(now.instant);
        effects.push(Effect::Disk(Command::WriteSnapshot(SnapshotOrder {
            id,
            last_timestamp,
            timestamp: now.wall,
            control: control::of_snapshot(
                self.raft.kraft_version_at(end),
                self.raft.voters_at(end),
            ),
            content: Arc::new(Whole(image.clone())),
            bytes_expected: self.snapshots.held.newest_bytes(),
        })));
    }

    /// A snapshot is durable.
    pub(super) fn snapshot_written(
        &mut self,
        now: Now,
        held: HeldSnapshot,
        effects: &mut Vec<Effect>,
    ) {
        let id = held.id;
        tracing::info!(
            "wrote the snapshot {}-{} ({} bytes)",
            id.offset,
            id.epoch,
            held.bytes
        );
        self.snapshots.writing = false;
        if id.offset < self.raft.log_start() {
            // One of a leader took the log's place meanwhile. The next start lets this file go.
            return self.snapshot_if_due(now, effects);
        }
        self.snapshots.newest = self.snapshots.newest.max(id.offset);
        self.snapshots.held.add(held);
        if self.raft.newest_snapshot().is_none_or(|newest| newest < id) {
            self.drive(now, Input::SnapshotWritten(id), effects);
        }
        // A replica in the middle of an older one would have to begin anew: it has until the next
        // regular look, which waits for nobody.
        if !self.snapshots.is_fetched(now.instant) {
            self.clean(now, effects);
        }
        self.snapshot_if_due(now, effects);
    }

    /// Looks at retention when it is time, and at a snapshot that is to be tried again.
    pub(super) fn clean_if_due(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let due = *self
            .snapshots
            .clean_at
            .get_or_insert_with(|| now.instant.plus_ms(CLEAN_INTERVAL_MS));
        if now.instant >= due {
            self.snapshots.clean_at = Some(now.instant.plus_ms(CLEAN_INTERVAL_MS));
            self.clean(now, effects);
            if self.snapshots.retry_at.is_some() {
                self.snapshot_if_due(now, effects);
            }
        }
    }

    /// Lets go of the oldest snapshot and the log up to the next one's end, if too much is kept.
    fn clean(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.stopping || self.halted || self.snapshots.cleaning.is_some() {
            return;
        }
        let rules = self.snapshots.rules.retention;
        let Some((to, why)) = self.snapshots.held.superfluous(rules, now.wall) else {
            return;
        };
        self.snapshots.cleaning = Some(to);
        self.drive(now, Input::Clean(to), effects);
        if self.raft.log_start() != to.offset {
            // Raft does not know the snapshot, so nothing was asked of the disk.
            self.snapshots.cleaning = None;
            tracing::error!(?to, "the log's start stays");
            return;
        }
        tracing::info!(
            "the log begins at the snapshot {}-{} from now on, and older ones go: {why}",
            to.offset,
            to.epoch
        );
    }

    /// What lay below the log's start is gone; perhaps that is not enough.
    pub(super) fn log_start_moved(
        &mut self,
        now: Now,
        removed_bytes: u64,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(to) = self.snapshots.cleaning.take() {
            self.snapshots.held.removed(to, removed_bytes);
        }
        self.clean(now, effects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Epoch;

    fn snapshots() -> Snapshots {
        let rules = SnapshotRules {
            bytes_between: 100,
            interval_ms: Some(1_000),
            retention: RetentionRules::default(),
        };
        Snapshots::new(rules, Offset(10), Held::default())
    }

    #[test]
    fn a_snapshot_is_due_for_bytes_or_for_age_but_not_without_anything_new() {
        let mut snapshots = snapshots();
        assert_eq!(snapshots.is_due(Instant(5_000), Offset(11)), None);
        snapshots.note(99);
        assert_eq!(snapshots.is_due(Instant(5_999), Offset(11)), None);
        let old = snapshots.is_due(Instant(6_000), Offset(11));
        assert_eq!(old, Some(Why::Age(1_000)));
        assert_eq!(snapshots.is_due(Instant(6_000), Offset(10)), None);
        snapshots.note(1);
        let full = snapshots.is_due(Instant(5_001), Offset(11));
        assert_eq!(full, Some(Why::Bytes(100)));
        snapshots.asked = true;
        assert_eq!(
            snapshots.is_due(Instant(5_001), Offset(11)),
            Some(Why::Asked)
        );
    }

    #[test]
    fn a_snapshot_that_could_not_be_written_waits_for_its_time_or_for_somebody_who_asks() {
        let mut snapshots = snapshots();
        snapshots.note(500);
        snapshots.writing = true;
        let id = OffsetAndEpoch {
            offset: Offset(11),
            epoch: Epoch(1),
        };
        snapshots.not_written(Instant(1_000), id, "No room.");
        assert_eq!(snapshots.is_due(Instant(60_999), Offset(11)), None);
        // Nobody else wakes a node that commits nothing.
        assert_eq!(snapshots.next_clean(), Instant(61_000));
        let again = snapshots.is_due(Instant(61_000), Offset(11));
        assert_eq!(again, Some(Why::Again));
        snapshots.asked = true;
        let asked = snapshots.is_due(Instant(1_001), Offset(11));
        assert_eq!(asked, Some(Why::Asked));
    }

    #[test]
    fn a_snapshot_that_could_not_be_written_is_not_tried_again_when_a_newer_one_came() {
        let held = HeldSnapshot {
            id: OffsetAndEpoch {
                offset: Offset(20),
                epoch: Epoch(1),
            },
            bytes: 1,
            last_timestamp: None,
        };
        let own = OffsetAndEpoch::default();
        for failed_first in [true, false] {
            let mut snapshots = snapshots();
            snapshots.newest = Offset(0);
            let not_written = |snapshots: &mut Snapshots| {
                let id = OffsetAndEpoch {
                    offset: Offset(10),
                    ..own
                };
                snapshots.not_written(Instant(1_000), id, "No room.");
            };
            if failed_first {
                not_written(&mut snapshots);
            }
            snapshots.taken_over(held, true, Instant(1_000));
            if !failed_first {
                not_written(&mut snapshots);
            }
            assert_eq!(snapshots.retry_at, None);
        }
    }

    #[test]
    fn one_snapshot_is_under_way_at_a_time() {
        let mut snapshots = snapshots();
        snapshots.note(500);
        snapshots.asked = true;
        snapshots.writing = true;
        assert_eq!(snapshots.is_due(Instant(0), Offset(11)), None);
    }
}
