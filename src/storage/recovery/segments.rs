//! The segments as they are found: every batch looked at, and bad bytes judged.
//!
//! A **torn tail** is what a crash leaves: bad bytes at the end of the log, with no whole batch
//! behind them, and nothing there that is known to have been durable. It is cut. Anything else
//! is **rot**: the bytes were good once and the disk changed them. Cutting rot would lose committed
//! records, so it is refused.
//!
//! One crash looks like rot: the batches of one unsynced write may reach the disk in any order, so
//! that a whole batch is behind pages that were never written. Such pages are zeros, which a
//! changed bit is not, and they are near the end.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::super::control;
use super::super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::super::index::Index;
use super::super::log::ScannedSegment;
use super::super::scan::{BatchScan, Next, find_batch};
use super::super::segment::log_path;
use crate::raft::ControlRecord;
use crate::records::batch::{BATCH_BYTES_MAX, Batch, BatchFault};
use crate::types::{Epoch, Offset};

/// What helps against rot.
pub(super) const RESTORE: &str = "Restore the directory from a good copy, or, if the other voters \
     are a majority without this node, move it away and let the node be refilled from them.";

const PAGE_BYTES: u64 = 4096;

/// The most that a hole can have behind it: what is written between two syncs.
const UNSYNCED_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX as u64;

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
    pub(crate) cut: Option<Cut>,
    /// An empty segment behind a gap: the beginning of a restart at a snapshot that was not ended.
    pub(crate) restarted_at: Option<Offset>,
}

impl FoundLog {
    /// The epoch of the last record.
    pub(crate) fn last_epoch(&self) -> Option<Epoch> {
        self.epochs.last().map(|(epoch, _)| *epoch)
    }

    /// The epoch of the record at `offset`, if the log has it.
    pub(crate) fn epoch_at(&self, offset: Offset) -> Option<Epoch> {
        if offset < self.start || offset >= self.end {
            return None;
        }
        let above = self.epochs.partition_point(|(_, start)| *start <= offset);
        above.checked_sub(1).map(|at| self.epochs[at].0)
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
        if let Some(what) = self.check_begin(position, batch, &control) {
            return Err(rot(path, &what));
        }
        if self.last_epoch() != Some(batch.epoch()) {
            self.epochs.push((batch.epoch(), batch.base_offset()));
        }
        self.control.extend(control);
        self.end = batch.end_offset();
        Ok(())
    }

    /// A leader begins its epoch with a leader change and writes no other (KIP-595). So the epoch
    /// in a batch's header, which no checksum covers, is wrong where one comes without the other.
    fn check_begin(
        &self,
        position: u64,
        batch: &Batch,
        control: &[(Offset, ControlRecord)],
    ) -> Option<String> {
        let last = self.last_epoch()?;
        let is_change = |(_, record): &(Offset, ControlRecord)| {
            matches!(record, ControlRecord::LeaderChange { .. })
        };
        let place = format!(
            "the batch at byte {position} (offset {})",
            batch.base_offset()
        );
        match (
            batch.epoch() == last,
            control.first().is_some_and(is_change),
        ) {
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
        let file = File::open(&path).context("open", &path)?;
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
        if let Some((position, fault)) = read_segment(&mut log, found)? {
            log.cut = Some(judge(&log, &files[at..], position, fault)?);
            break;
        }
    }
    Ok(log)
}

/// Reads one segment; returns where the bad bytes begin, if there are any.
fn read_segment(log: &mut FoundLog, found: &Found) -> Result<Option<(u64, BatchFault)>> {
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
    for (at, found) in files.iter().enumerate() {
        let from = if at == 0 { position + 1 } else { 0 };
        let behind =
            find_batch(&found.file, from, found.bytes, log.end).context("read", &found.path)?;
        let Some((place, header)) = behind else {
            continue;
        };
        let is_last = files.len() == 1;
        if is_last
            && found.bytes - position <= UNSYNCED_BYTES_MAX
            && has_hole(&found.file, position, place).context("read", &found.path)?
        {
            break;
        }
        let what = format!(
            "the batch at byte {position} (offset {}) is bad ({fault}), but whole batches follow, \
             the first at byte {place} of {} (offset {})",
            log.end,
            found.path.display(),
            header.base_offset
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

/// Whether a page in `file[from..to]` was never written: all zeros, from its begin (or from `from`,
/// if that is inside it and far enough from the end for a batch to show) to its end.
fn has_hole(file: &File, from: u64, to: u64) -> std::io::Result<bool> {
    let mut page = from / PAGE_BYTES * PAGE_BYTES;
    let mut buffer = [0; PAGE_BYTES as usize];
    while page + PAGE_BYTES <= to {
        let start = page.max(from);
        let bytes = &mut buffer[..(page + PAGE_BYTES - start) as usize];
        file.read_exact_at(bytes, start)?;
        // A batch's first 17 bytes are never all zero: the last of them is its format.
        if bytes.len() >= 17 && bytes.iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        page += PAGE_BYTES;
    }
    Ok(false)
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
