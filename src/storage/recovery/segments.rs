//! The segments as they are found: every batch looked at, and bad bytes judged.
//!
//! A torn tail ([`judge`](super::super::judge) says what that is) with nothing in it that is known
//! to have been durable is cut. Cutting rot would lose committed records, so it is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::super::atomic;
use super::super::control;
use super::super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::super::index::Index;
use super::super::judge::find_behind;
use super::super::log::ScannedSegment;
use super::super::scan::{BatchScan, Next, SEARCH_BYTES_MAX};
use super::super::segment::log_path;
use crate::raft::ControlRecord;
use crate::records::batch::{Batch, BatchFault};
use crate::storage::takeover::LogEnd;
use crate::types::{Epoch, Offset, Timestamp};

/// What helps against rot.
pub(crate) const RESTORE: &str = "Restore the directory from a good copy, or, if the other voters \
     are a majority without this node, move it away and let the node be refilled from them.";

/// A torn tail.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// The segment that is shortened.
    pub(crate) base: Offset,
    /// To so many bytes.
    pub(crate) bytes: u64,
    /// Segments behind it, without a whole batch.
    pub(crate) dropped: Vec<Offset>,
    /// All that is cut away.
    pub(crate) torn_bytes: u64,
    /// Why the bytes are no batch.
    pub(crate) fault: BatchFault,
}

/// Timestamps of the batches of metadata records right before and right behind a snapshot's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) before: Timestamp,
    pub(crate) after: Option<Timestamp>,
}

impl Around {
    /// What is wrong with the snapshot of `end` at `path`, whose newest record is of `covers`: one
    /// that covers another time got its name by a copy. Whoever writes one notes the timestamp of
    /// the last batch, and Java that of the next where a metadata transaction begins with it; of a
    /// last batch of control records only Java does.
    pub(crate) fn misnamed(self, path: &Path, end: Offset, covers: Timestamp) -> Option<String> {
        if covers == self.before || Some(covers) == self.after {
            return None;
        }
        Some(format!(
            "{} is not the snapshot of offset {end}: the newest record in it is of {} ms, but in \
             the log the record before that offset is of {} ms. It was renamed or copied here.",
            path.display(),
            covers.0,
            self.before.0
        ))
    }
}

/// The log as it was found.
#[derive(Debug, Default)]
pub(crate) struct FoundLog {
    /// Ascending and without gaps; empty when there are no segments.
    pub(crate) segments: Vec<ScannedSegment>,
    pub(crate) start: Offset,
    /// Behind the last whole batch.
    pub(crate) end: Offset,
    /// Each epoch with its first offset.
    pub(crate) epochs: Vec<(Epoch, Offset)>,
    pub(crate) control: Vec<(Offset, ControlRecord)>,
    /// Epoch and timestamp of the last batch with metadata records.
    pub(crate) newest: Option<(Epoch, Timestamp)>,
    /// What surrounds the ends of snapshots that end with a batch of metadata records.
    pub(crate) covered: BTreeMap<Offset, Around>,
    pub(crate) cut: Option<Cut>,
    /// An empty segment behind a gap: the beginning of a restart at a snapshot that was not ended.
    pub(crate) restarted_at: Option<Offset>,
}

impl FoundLog {
    /// The epoch of the last record.
    pub(crate) fn last_epoch(&self) -> Option<Epoch> {
        self.epochs.last().map(|(epoch, _)| *epoch)
    }

    /// How it ends.
    pub(crate) fn ending(&self) -> LogEnd {
        LogEnd {
            end: self.end,
            epoch: self.last_epoch(),
            newest: self.newest,
        }
    }

    /// The epoch of the record at `offset`, if the log has it.
    pub(crate) fn epoch_at(&self, offset: Offset) -> Option<Epoch> {
        if offset < self.start || offset >= self.end {
            return None;
        }
        let above = self.epochs.partition_point(|(_, start)| *start <= offset);
        above.checked_sub(1).map(|at| self.epochs[at].0)
    }

    /// Takes note of the time of a batch of metadata records beside a snapshot's end.
    fn surround(&mut self, batch: &Batch, is_snapshot: impl Fn(Offset) -> bool) {
        let time = batch.max_timestamp();
        if let Some(around) = self.covered.get_mut(&batch.base_offset()) {
            around.after = Some(time);
        }
        if is_snapshot(batch.end_offset()) {
            let (before, after) = (time, None);
            let around = Around { before, after };
            self.covered.insert(batch.end_offset(), around);
        }
    }

    /// Takes note of a whole batch, which must follow the one before.
    fn push(&mut self, path: &Path, position: u64, batch: &Batch) -> Result<()> {
        if batch.base_offset() != self.end {
            let what = format!(
                "the batch at byte {position} begins at offset {}, but the log continues at {}",
                batch.base_offset(),
                self.end
            );
            return Err(rot(path, &what));
        }
        if let Some(epoch) = self.last_epoch()
            && batch.epoch() < epoch
        {
            let what = format!(
                "the batch at byte {position} (offset {}) has epoch {}, but follows epoch {epoch}",
                batch.base_offset(),
                batch.epoch()
            );
            return Err(rot(path, &what));
        }
        let control = match batch.is_control() {
            true => control::records(path, batch)?,
            false => Vec::new(),
        };
        let is_change = |(_, record): &(Offset, ControlRecord)| {
            matches!(record, ControlRecord::LeaderChange { .. })
        };
        let begins = control.first().is_some_and(is_change);
        if let Some(what) = misplaced_epoch(self.last_epoch(), position, batch, begins) {
            return Err(rot(path, &what));
        }
        if batch.count() == 0 {
            // Its checksum is good, so it is no torn tail; no state machine can load it.
            let sentence = format!(
                "{} cannot be loaded: the batch at byte {position} (offset {}) has no records, \
                 which no controller writes. {RESTORE}",
                path.display(),
                batch.base_offset()
            );
            return Err(StorageFault::new(FaultKind::Unsupported, path, sentence));
        }
        if self.last_epoch() != Some(batch.epoch()) {
            self.epochs.push((batch.epoch(), batch.base_offset()));
        }
        if !batch.is_control() {
            self.newest = Some((batch.epoch(), batch.max_timestamp()));
        }
        self.control.extend(control);
        self.end = batch.end_offset();
        Ok(())
    }
}

/// A leader begins its epoch with a leader change and writes no other (KIP-595). So the epoch in a
/// batch's header, which no checksum covers, is wrong where one comes without the other. `last` is
/// the epoch before, if it is known; `begins` says whether the batch begins with a leader change.
/// Nobody leads behind [`Epoch::END`].
pub(crate) fn misplaced_epoch(
    last: Option<Epoch>,
    position: u64,
    batch: &Batch,
    begins: bool,
) -> Option<String> {
    let place = format!(
        "the batch at byte {position} (offset {})",
        batch.base_offset()
    );
    if batch.epoch() >= Epoch::END {
        return Some(format!(
            "{place} has epoch {}, behind which no election can come",
            batch.epoch()
        ));
    }
    let last = last?;
    match (batch.epoch() == last, begins) {
        (true, true) => Some(format!(
            "{place} is a leader change in the middle of epoch {last}"
        )),
        (false, false) => Some(format!(
            "{place} has epoch {}, follows epoch {last} and is no leader change",
            batch.epoch()
        )),
        _ => None,
    }
}

/// A segment file that is open for the scan.
struct Found {
    base: Offset,
    path: PathBuf,
    file: File,
    bytes: u64,
}

/// Reads all segments in `dir`. Nothing is changed.
///
/// # Errors
/// `Damaged` for rot.
pub(crate) fn read(
    dir: &Path,
    bases: &BTreeSet<Offset>,
    is_snapshot: impl Fn(Offset) -> bool,
) -> Result<FoundLog> {
    let mut files = Vec::with_capacity(bases.len());
    for base in bases {
        let path = log_path(dir, *base);
        let file = atomic::open_existing(&path)?;
        let bytes = file.metadata().context("read", &path)?.len();
        files.push(Found {
            base: *base,
            path,
            file,
            bytes,
        });
    }
    let mut log = FoundLog::default();
    if let Some(first) = files.first() {
        log.start = first.base;
        log.end = first.base;
    }
    for (at, found) in files.iter().enumerate() {
        if found.base != log.end {
            let is_last = at + 1 == files.len();
            if is_last && found.bytes == 0 && is_snapshot(found.base) {
                log.restarted_at = Some(found.base);
                break;
            }
            let what = format!(
                "the segment before it ends at offset {}: a segment is missing between them",
                log.end
            );
            return Err(rot(&found.path, &what));
        }
        if let Some((position, fault)) = read_segment(&mut log, found, &is_snapshot)? {
            log.cut = Some(judge(&log, &files[at..], position, fault)?);
            break;
        }
    }
    Ok(log)
}

/// Reads one segment; returns where the bad bytes begin, if there are any.
fn read_segment(
    log: &mut FoundLog,
    found: &Found,
    is_snapshot: impl Fn(Offset) -> bool,
) -> Result<Option<(u64, BatchFault)>> {
    let mut scan = BatchScan::new(&found.file, 0, found.bytes);
    let mut segment = ScannedSegment {
        base: found.base,
        bytes: 0,
        index: Index::new(found.base),
    };
    let bad = loop {
        match scan.next().context("read", &found.path)? {
            Next::End => break None,
            Next::Bad(position, fault) => break Some((position, fault)),
            Next::Batch(position, batch) => {
                log.push(&found.path, position, &batch)?;
                if !batch.is_control() {
                    log.surround(&batch, &is_snapshot);
                }
                segment.index.push(batch.header(), position);
                segment.bytes = position + batch.size() as u64;
            }
        }
    };
    log.segments.push(segment);
    Ok(bad)
}

/// Says whether bad bytes at `position` of the first of `files` are a torn tail.
fn judge(log: &FoundLog, files: &[Found], position: u64, fault: BatchFault) -> Result<Cut> {
    let damaged = &files[0];
    let pieces: Vec<(&File, u64)> = files.iter().map(|it| (&it.file, it.bytes)).collect();
    let mut budget = SEARCH_BYTES_MAX;
    let behind =
        find_behind(&pieces, position, log.end, &mut budget).context("read", &damaged.path)?;
    if let Some(behind) = behind.filter(|behind| !behind.torn) {
        let what = format!(
            "the batch at byte {position} (offset {}) is bad ({fault}), but whole batches follow, \
             the first at byte {} of {} (offset {})",
            log.end,
            behind.position,
            files[behind.file].path.display(),
            behind.offset
        );
        return Err(rot(&damaged.path, &what));
    }
    let behind: u64 = files[1..].iter().map(|found| found.bytes).sum();
    Ok(Cut {
        base: damaged.base,
        bytes: position,
        dropped: files[1..].iter().map(|found| found.base).collect(),
        torn_bytes: damaged.bytes - position + behind,
        fault,
    })
}

/// The refusal of bytes that must not be cut.
pub(super) fn rot(path: &Path, what: &str) -> StorageFault {
    let sentence = format!(
        "{} is damaged: {what}. This is not the torn tail that a crash leaves, and cutting it \
         could lose committed metadata. {RESTORE}",
        path.display()
    );
    StorageFault::new(FaultKind::Damaged, path, sentence)
}
