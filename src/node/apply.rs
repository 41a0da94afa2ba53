//! Replaying: records onto the image, and committed batches of the log while this node does not
//! lead.

use bytes::Bytes;

use crate::image::Image;
use crate::records::batch::Batch;
use crate::records::{Record, VersionedRecord};
use crate::storage::Command;
use crate::types::{Now, Offset, OffsetAndEpoch, Timestamp};

use super::serve::{Range, Reading};
use super::{Effect, Leading, Node};

/// Bytes of committed log read at once for replay.
const REPLAY_BYTES_MAX: usize = 4 << 20;

/// An image and how far it is replayed.
#[derive(Clone)]
pub(super) struct Replayer {
    pub(super) image: Image,
    /// End of the records in `image`, exclusive.
    pub(super) end: Offset,
    /// Timestamp of the last batch in `image`; 0 while there is none.
    pub(super) timestamp: Timestamp,
    /// End of the decision by which the features changed last, exclusive: a batch may hold others
    /// behind it, and a commit many batches. For a loaded image, the end of what it was loaded
    /// from.
    pub(super) features_end: Offset,
}

impl Replayer {
    /// Replays the record at `offset`; the fault is a sentence with type and offset.
    pub(super) fn replay(&mut self, record: &Record, offset: Offset) -> Result<(), String> {
        // The end of a transaction shows what was changed in it.
        let speaks = matches!(record, Record::FeatureLevel(_)) || record.is_transaction_mark();
        let before = speaks.then(|| self.image.settled().features().clone());
        self.image.replay(record, offset).map_err(|fault| {
            format!("{} at offset {offset}: {fault}", record.record_type().name)
        })?;
        self.end = offset.next();
        if before.is_some_and(|before| before != *self.image.settled().features()) {
            self.features_end = self.end;
        }
        Ok(())
    }

    /// What was replayed from `begin` on was decided as one: if features changed in it, then at its
    /// end.
    pub(super) fn features_since(&mut self, begin: Offset) {
        if self.features_end > begin {
            self.features_end = self.end;
        }
    }

    /// Replays a whole batch of the log; control batches only move the end. The fault comes with
    /// the offset that is to blame.
    fn replay_batch(&mut self, batch: &Batch) -> Result<(), (Offset, String)> {
        if !batch.is_control() {
            for record in batch.records() {
                let record = record.map_err(|fault| (batch.base_offset(), fault.to_string()))?;
                let value = record.value.unwrap_or_default();
                let decoded = VersionedRecord::decode(&value).map_err(|fault| {
                    let offset = record.offset;
                    (offset, format!("record at offset {offset}: {fault}"))
                })?;
                self.replay(&decoded.record, record.offset)
                    .map_err(|reason| (record.offset, reason))?;
            }
        }
        self.end = batch.end_offset();
        self.timestamp = batch.max_timestamp();
        self.features_since(batch.base_offset());
        Ok(())
    }
}

impl Node {
    /// Everything below `commit` is committed.
    pub(super) fn committed(&mut self, now: Now, commit: Offset, effects: &mut Vec<Effect>) {
        if commit <= self.commit {
            return;
        }
        self.commit = commit;
        let epoch = self.raft.epoch_of(commit.prev());
        effects.push(Effect::Disk(Command::SaveCommit {
            commit: OffsetAndEpoch {
                offset: commit,
                epoch,
            },
        }));
        if !matches!(self.leading, Leading::Active { .. }) {
            self.replay_more(now, effects);
            return;
        }
        // Control batches alone, such as new voters, leave the image as it is.
        let mut committed = self.committed.clone();
        if let Some(forked) = self.forks.commit(commit) {
            committed = forked.state;
            self.snapshots.note(forked.bytes);
        }
        committed.end = commit;
        self.publish(committed, effects);
        self.snapshot_if_due(now, effects);
        while let Some((ticket, reply)) = self.deferred.pop(commit) {
            let answer = super::Answer::Controller(reply);
            effects.push(Effect::Reply { ticket, answer });
        }
        self.register_self(now, effects);
    }

    /// Goes on from what is replayed to what is committed: from memory as far as that reaches, as
    /// it does in a node that keeps up with its leader; else the disk is read, unless a read is
    /// under way.
    pub(super) fn replay_more(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let reading = self
            .readings
            .values()
            .any(|r| matches!(r, Reading::Replay { .. }));
        if reading || self.halted || matches!(self.leading, Leading::Active { .. }) {
            return;
        }
        let from = self.working.end;
        while self.working.end < self.commit
            && let Some(batch) = self.tail.batch(self.working.end)
        {
            let bytes = batch.len();
            match self.replay_batches(batch) {
                Ok(Stop::NotCommitted) => break,
                Ok(Stop::AtEnd) => self.snapshots.note(bytes),
                Err(blame) => return self.halt_for_record(blame, effects),
            }
        }
        if self.working.end > from {
            self.show_if_complete(now, effects);
        }
        if self.working.end >= self.commit {
            self.activate_if_ready(now, effects);
        } else if self.tail.batch(self.working.end).is_none() {
            let range = Range {
                from: self.working.end,
                until: self.commit,
                max_bytes: REPLAY_BYTES_MAX,
            };
            self.submit_read(range, Reading::Replay { from: range.from }, effects);
        }
    }

    /// Readers wait for the whole: an image held on to makes the next changes copy.
    fn show_if_complete(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.working.end >= self.commit {
            self.publish(self.working.clone(), effects);
            self.snapshot_if_due(now, effects);
            self.register_self(now, effects);
        }
    }

    pub(super) fn replay_read(
        &mut self,
        now: Now,
        from: Offset,
        batches: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        if from != self.working.end {
            // Leadership was lost and the image set back while the read was under way.
            self.replay_more(now, effects);
            return;
        }
        self.snapshots.note(batches.len());
        match self.replay_batches(batches) {
            Ok(Stop::NotCommitted) if self.working.end == from => {}
            Ok(Stop::AtEnd) if self.working.end == from => self.halt(
                format!("the log has no batch at offset {from}, which is committed"),
                effects,
            ),
            Ok(Stop::NotCommitted | Stop::AtEnd) => {
                self.show_if_complete(now, effects);
                self.replay_more(now, effects);
            }
            Err(blame) => self.halt_for_record(blame, effects),
        }
    }

    fn halt_for_record(&mut self, (offset, reason): (Offset, String), effects: &mut Vec<Effect>) {
        self.halt_for(
            format!("a committed record cannot be replayed, so the image would be wrong: {reason}"),
            Some(offset),
            effects,
        );
    }

    fn replay_batches(&mut self, mut bytes: Bytes) -> Result<Stop, (Offset, String)> {
        loop {
            let next = Batch::take_from(&mut bytes);
            let next = next.map_err(|fault| (self.working.end, fault.to_string()))?;
            let Some(batch) = next else {
                return Ok(Stop::AtEnd);
            };
            if batch.last_offset() < self.working.end {
                continue;
            }
            if batch.last_offset() >= self.commit {
                return Ok(Stop::NotCommitted);
            }
            self.working.replay_batch(&batch)?;
        }
    }
}

/// Why no more batches were replayed.
enum Stop {
    /// There are no more.
    AtEnd,
    /// The next is not committed as a whole yet: a later commit looks at it again.
    NotCommitted,
}
