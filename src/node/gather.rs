//! What a leader decided and has not yet given to raft: the records of requests that came together,
//! or while the log was being written, share one batch, one fork of the image and one turn of the
//! disk.

use crate::controller::RECORDS_PER_OPERATION_MAX;
use crate::raft::{Input, Proposal};
use crate::records::VersionedRecord;
use crate::records::batch::{BATCH_BYTES_MAX, BatchBuilder, HEADER_BYTES, record_bytes};
use crate::types::{ApiError, Epoch, ErrorCode, Instant, Now, Offset};

use super::apply::Replayer;
use super::{Effect, Leading, Node};

/// A batch of this many bytes takes no more requests in: what comes next need not wait for it.
const SHARED_BYTES_MAX: usize = 64 << 10;

/// How long what is decided may wait for a write that is under way, in milliseconds: the other
/// voters can commit it without this one's disk, which may be slow or hang.
pub(super) const HELD_MS_MAX: u64 = 5;

/// The batch that is being filled. Its records are on the working image.
pub(super) struct Gathered {
    since: Now,
    builder: BatchBuilder,
}

impl Gathered {
    /// Adds a record, and tells its offset.
    fn push(&mut self, value: &[u8]) -> Offset {
        let offset = self.builder.next_offset();
        self.builder.push(None, Some(value));
        offset
    }

    /// Room for so many more records of so many bytes?
    fn fits(&self, records: usize, bytes: usize) -> bool {
        fits(
            self.builder.count() as usize + records,
            self.builder.size() + bytes,
        )
    }
}

const fn fits(records: usize, bytes: usize) -> bool {
    records <= RECORDS_PER_OPERATION_MAX && bytes <= BATCH_BYTES_MAX
}

/// Records as they are written, one behind the other.
struct Encoded {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
}

impl Encoded {
    /// # Errors
    /// UNKNOWN_SERVER_ERROR for a record that cannot be written at its version, and for what does
    /// not fit into a batch: one record, or with `atomic` all of them.
    fn of(records: &[VersionedRecord], atomic: bool) -> Result<Self, ApiError> {
        let mut encoded = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(records.len()),
        };
        let mut fitting = true;
        for record in records {
            let start = encoded.bytes.len();
            record
                .encode_into(&mut encoded.bytes)
                .map_err(|fault| unwritable(&fault.to_string()))?;
            let value = encoded.bytes.len() - start;
            fitting &= fits(1, HEADER_BYTES + record_bytes(0, None, Some(value)));
            encoded.ends.push(encoded.bytes.len());
        }
        if atomic {
            fitting &= fits(records.len(), HEADER_BYTES + encoded.bytes_behind(0));
        }
        if fitting {
            Ok(encoded)
        } else {
            Err(too_large(records.len()))
        }
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
    }

    /// What they take in a batch behind so many other records.
    fn bytes_behind(&self, others: u32) -> usize {
        let values = (others..).zip(self.values());
        let each = values.map(|(at, value)| record_bytes(at, None, Some(value.len())));
        each.sum()
    }
}

impl Node {
    /// The offset of the next record.
    pub(super) fn next_offset(&self) -> Offset {
        let gathered = self.gathered.as_ref();
        gathered.map_or_else(|| self.raft.log_end(), |it| it.builder.next_offset())
    }

    /// The end of what is not committed, exclusive: what a reply without records waits for.
    pub(super) fn pending(&self) -> Option<Offset> {
        let gathered = self.gathered.as_ref().map(|it| it.builder.next_offset());
        gathered.or_else(|| self.forks.pending())
    }

    /// Replays records on the working image and puts them into the batch that is being filled: all
    /// into one batch if `atomic`, else into as many as the limits ask for.
    ///
    /// # Errors
    /// NOT_CONTROLLER when leadership is lost before the last batch is appended. With
    /// UNKNOWN_SERVER_ERROR a record cannot be written or makes no sense on the image, or an atomic
    /// decision has too many records or bytes: nothing is changed then, but that what is not atomic
    /// keeps its batches that were full before. The reference stops in these cases: one request
    /// that no rule foresaw would take the active controller away from all others.
    pub(super) fn append(
        &mut self,
        now: Now,
        records: Vec<VersionedRecord>,
        atomic: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ApiError> {
        if records.is_empty() {
            return self.active_epoch().map(drop);
        }
        let encoded = Encoded::of(&records, atomic)?;
        let begin = self.next_offset();
        let features_end = self.working.features_end;
        if let Some(open) = &self.gathered
            && !open.fits(records.len(), encoded.bytes_behind(open.builder.count()))
        {
            self.propose(now, effects);
        }
        for (record, value) in records.iter().zip(encoded.values()) {
            if let Some(open) = &self.gathered
                && !open.fits(
                    1,
                    record_bytes(open.builder.count(), None, Some(value.len())),
                )
            {
                self.propose(now, effects);
            }
            let offset = self.open_batch(now)?.push(value);
            if let Err(reason) = self.working.replay(&record.record, offset) {
                tracing::error!("refused, as what was decided makes no sense: {reason}");
                self.take_back(begin, features_end, effects);
                return Err(senseless(&reason));
            }
        }
        self.working.features_since(begin);
        let bytes = self.gathered.as_ref().map(|it| it.builder.size());
        if bytes.is_some_and(|bytes| bytes >= SHARED_BYTES_MAX) {
            self.propose(now, effects);
        }
        self.active_epoch().map(drop)
    }

    /// Sets the open batch and the working image back to what they were before the decision whose
    /// first record got the offset `begin`, when the features had changed last at `features_end`.
    /// What of it is in batches before the open one stays.
    ///
    /// No image is held for this: that would make each request copy what it changes once more. The
    /// image behind the last full batch is replayed on instead.
    fn take_back(&mut self, begin: Offset, features_end: Offset, effects: &mut Vec<Effect>) {
        let Some(gathered) = self.gathered.take() else {
            return;
        };
        let mut state = self.forks.newest().unwrap_or(&self.committed).clone();
        match self.keep_until(begin, gathered, &mut state) {
            Ok(kept) => self.gathered = kept,
            Err(reason) => {
                let reason = format!("a decision cannot be taken back: {reason}");
                return self.halt(reason, effects);
            }
        }
        if self.gathered.is_some() {
            state.features_end = features_end;
        }
        self.working = state;
    }

    /// What of a batch is before `begin` (exclusive), replayed on `state` too; `None` if nothing
    /// is.
    ///
    /// # Errors
    /// A sentence, when the records that were replayed and written before cannot be again.
    fn keep_until(
        &self,
        begin: Offset,
        gathered: Gathered,
        state: &mut Replayer,
    ) -> Result<Option<Gathered>, String> {
        let (since, first) = (gathered.since, self.raft.log_end());
        if begin <= first {
            return Ok(None);
        }
        let batch = gathered.builder.build();
        let mut builder = BatchBuilder::data(first, batch.epoch(), since.wall);
        for record in batch.records() {
            let record = record.map_err(|fault| fault.to_string())?;
            if record.offset >= begin {
                break;
            }
            let value = record.value.unwrap_or_default();
            let decoded = VersionedRecord::decode(&value).map_err(|fault| fault.to_string())?;
            state.replay(&decoded.record, record.offset)?;
            builder.push(None, Some(&value));
        }
        Ok(Some(Gathered { since, builder }))
    }

    /// When what is gathered is to be given to raft, whatever the disk does.
    pub(super) fn held_until(&self) -> Instant {
        let gathered = self.gathered.as_ref();
        gathered.map_or(Instant::NEVER, |it| it.since.instant.plus_ms(HELD_MS_MAX))
    }

    /// To be called when no event is left to be taken in: gives what is gathered to raft, unless
    /// the log is being written. The next write waits for that one anyway, and what is decided
    /// meanwhile goes with it; the completion lets it go, or the next wake-up.
    pub fn settle(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.writes.is_empty() {
            self.propose(now, effects);
        }
    }

    /// Gives what is gathered to raft, and remembers a fork for it.
    pub(super) fn propose(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.halted {
            return;
        }
        let Some(gathered) = self.gathered.take() else {
            return;
        };
        let batch = gathered.builder.build();
        let mut state = self.working.clone();
        state.timestamp = gathered.since.wall;
        let (first, end) = (batch.base_offset(), batch.end_offset());
        let epoch = batch.epoch();
        let batches = batch.into_bytes();
        self.forks.push(batches.len(), state);
        let proposal = Proposal {
            epoch,
            first,
            end,
            batches,
        };
        self.drive(now, Input::Propose(proposal), effects);
    }

    fn open_batch(&mut self, now: Now) -> Result<&mut Gathered, ApiError> {
        let epoch = self.active_epoch()?;
        let first = self.raft.log_end();
        Ok(self.gathered.get_or_insert_with(|| Gathered {
            since: now,
            builder: BatchBuilder::data(first, epoch, now.wall),
        }))
    }

    /// # Errors
    /// NOT_CONTROLLER when this node is not the active controller.
    fn active_epoch(&self) -> Result<Epoch, ApiError> {
        match self.leading {
            Leading::Active { epoch, .. } => Ok(epoch),
            Leading::No | Leading::Soon(_) => Err(self.not_controller()),
        }
    }
}

fn unwritable(reason: &str) -> ApiError {
    ApiError::new(
        ErrorCode::UnknownServerError,
        format!("a record cannot be written: {reason}"),
    )
}

fn senseless(reason: &str) -> ApiError {
    ApiError::new(
        ErrorCode::UnknownServerError,
        format!("the request would write a record that makes no sense: {reason}"),
    )
}

fn too_large(records: usize) -> ApiError {
    ApiError::new(
        ErrorCode::UnknownServerError,
        format!(
            "the request would write {records} records at once; at most \
             {RECORDS_PER_OPERATION_MAX} records and {BATCH_BYTES_MAX} bytes fit into one batch"
        ),
    )
}
