//! When a snapshot of the committed image is written (KIP-630), and with what in it.
//!
//! An image is never copied for that: the disk is given a clone that shares everything with the
//! working image, and requests go on meanwhile. One snapshot is under way at a time.

use std::sync::Arc;

use crate::image::Image;
use crate::records::VersionedRecord;
use crate::storage::{Command, Content, SnapshotOrder};
use crate::types::{Instant, Now, Offset, OffsetAndEpoch};

use super::apply::Replayer;
use super::{Effect, Node, control};

/// When to write one.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRules {
    /// `metadata.log.max.record.bytes.between.snapshots`: bytes of committed batches.
    pub bytes_between: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` never writes one for its age.
    pub interval_ms: Option<u64>,
}

/// What has happened since the newest snapshot.
pub(super) struct Snapshots {
    rules: SnapshotRules,
    bytes: u64,
    /// End of the newest snapshot, exclusive; 0 without one.
    newest: Offset,
    /// When `newest` became the newest, or this process began; `None` before the first look.
    since: Option<Instant>,
    writing: bool,
}

impl Snapshots {
    pub(super) const fn new(rules: SnapshotRules, newest: Offset) -> Self {
        Self {
            rules,
            bytes: 0,
            newest,
            since: None,
            writing: false,
        }
    }

    /// Notes committed batches.
    pub(super) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn is_due(&mut self, now: Instant, end: Offset) -> bool {
        let since = *self.since.get_or_insert(now);
        let old = self
            .rules
            .interval_ms
            .is_some_and(|ms| now.since(since) >= ms);
        let due = self.bytes >= self.rules.bytes_between || old;
        due && !self.writing && end > self.newest
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
    /// Orders a snapshot of what is committed, if one is due. Never inside a metadata transaction:
    /// what it holds must be all of the log below its end.
    pub(super) fn snapshot_if_due(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Replayer {
            image,
            end,
            timestamp,
        } = &self.committed;
        let (end, last_timestamp) = (*end, *timestamp);
        let open = image.open_transaction().is_some();
        if self.stopping || open || !self.snapshots.is_due(now.instant, end) {
            return;
        }
        let id = OffsetAndEpoch {
            offset: end,
            epoch: self.raft.epoch_of(end.prev()),
        };
        self.snapshots.writing = true;
        self.snapshots.bytes = 0;
        self.snapshots.since = Some(now.instant);
        effects.push(Effect::Disk(Command::WriteSnapshot(SnapshotOrder {
            id,
            last_timestamp,
            timestamp: now.wall,
            control: control::of_snapshot(self.raft.kraft_version(), self.raft.voters()),
            content: Arc::new(Whole(image.clone())),
        })));
    }

    /// A snapshot is durable.
    pub(super) fn snapshot_written(&mut self, id: OffsetAndEpoch) {
        tracing::info!("wrote the snapshot {}-{}", id.offset, id.epoch);
        self.snapshots.writing = false;
        self.snapshots.newest = id.offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots() -> Snapshots {
        let rules = SnapshotRules {
            bytes_between: 100,
            interval_ms: Some(1_000),
        };
        Snapshots::new(rules, Offset(10))
    }

    #[test]
    fn a_snapshot_is_due_for_bytes_or_for_age_but_not_without_anything_new() {
        let mut snapshots = snapshots();
        assert!(!snapshots.is_due(Instant(5_000), Offset(11)));
        snapshots.note(99);
        assert!(!snapshots.is_due(Instant(5_999), Offset(11)));
        assert!(snapshots.is_due(Instant(6_000), Offset(11)));
        assert!(!snapshots.is_due(Instant(6_000), Offset(10)));
        snapshots.note(1);
        assert!(snapshots.is_due(Instant(5_001), Offset(11)));
    }

    #[test]
    fn one_snapshot_is_under_way_at_a_time() {
        let mut snapshots = snapshots();
        snapshots.note(500);
        snapshots.writing = true;
        assert!(!snapshots.is_due(Instant(0), Offset(11)));
    }
}
