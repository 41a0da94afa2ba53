//! The log as the disk thread writes it: append, roll, cut.
//!
//! Invariants: segments touch (each begins where the one before ends) and all but the last are
//! synced; `end` is behind the last batch written; bytes behind the published length of the last
//! segment belong to a write that failed, after which the process stops.

pub(crate) mod clean;
#[cfg(test)]
mod tests;

use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::atomic;
use super::epoch_checkpoint::{self, EPOCH_CHECKPOINT_FILE};
use super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::index::{self, Index, IndexFiles};
use super::scan::{BatchScan, Next};
use super::segment::{LogReader, Segment, cut, log_path};
use crate::records::batch::{Batch, BatchHeader};
use crate::types::{Epoch, Offset};

/// When a segment is full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A batch that would make it larger begins a new one.
    pub(crate) segment_bytes: u64,
    /// So does a batch that is this much younger than the segment's first, in milliseconds.
    pub(crate) segment_ms: i64,
}

/// A segment as recovery found it.
#[derive(Debug)]
pub(crate) struct ScannedSegment {
    pub(crate) base: Offset,
    /// Bytes of whole batches.
    pub(crate) bytes: u64,
    pub(crate) index: Index,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    dir: PathBuf,
    limits: Limits,
    reader: LogReader,
    active: Arc<Segment>,
    /// `None` only after a fault.
    files: Option<IndexFiles>,
    index: Index,
    end: Offset,
    /// Each epoch with its first offset.
    epochs: Vec<(Epoch, Offset)>,
    /// Bytes were written and not synced.
    dirty: bool,
}

impl Log {
    /// Opens what was scanned; when there is no segment, creates one at `start`. Index files are
    /// brought in order. What was scanned is durable afterwards: a process that was killed may have
    /// left bytes that are only in the page cache.
    pub(crate) fn open(
        dir: &Path,
        limits: Limits,
        mut scanned: Vec<ScannedSegment>,
        start: Offset,
        epochs: Vec<(Epoch, Offset)>,
        end: Offset,
    ) -> Result<Self> {
        let last = scanned.pop().unwrap_or_else(|| ScannedSegment {
            base: start,
            bytes: 0,
            index: Index::new(start),
        });
        let mut segments = Vec::with_capacity(scanned.len() + 1);
        for mut closed in scanned {
            index::repair(&log_path(dir, closed.base), &mut closed.index)?;
            let entries = closed.index.entries();
            let segment = Segment::open(dir, closed.base, closed.bytes, entries)?;
            segment.file.sync_data().context("sync", &segment.path)?;
            segments.push(Arc::new(segment));
        }
        let active = Segment::open(dir, last.base, last.bytes, last.index.entries())?;
        active.file.sync_data().context("sync", &active.path)?;
        let files = IndexFiles::create(&active.path, &last.index)?;
        atomic::sync_dir(dir)?;
        let active = Arc::new(active);
        segments.push(Arc::clone(&active));
        Ok(Self {
            dir: dir.to_path_buf(),
            limits,
            reader: LogReader::new(segments),
            active,
            files: Some(files),
            index: last.index,
            end,
            epochs,
            dirty: false,
        })
    }

    pub(crate) fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    /// Behind the last batch written, exclusive.
    pub(crate) const fn end(&self) -> Offset {
        self.end
    }

    pub(crate) fn epochs(&self) -> &[(Epoch, Offset)] {
        &self.epochs
    }

    /// Writes whole batches behind the end. Not durable before [`Self::sync`].
    pub(crate) fn append(&mut self, mut batches: Bytes) -> Result<()> {
        let whole = batches.clone();
        let mut run = 0..0;
        while !batches.is_empty() {
            let batch = match Batch::take_from(&mut batches) {
                Ok(Some(batch)) => batch,
                Ok(None) => return Err(self.misfit("the bytes end inside a batch")),
                Err(fault) => return Err(self.misfit(&fault.to_string())),
            };
            let header = *batch.header();
            self.check(&header)?;
            if self.is_full(&header, run.len() as u64) {
                self.write(&whole.slice(run.clone()))?;
                run.start = run.end;
                self.roll()?;
            }
            run.end += header.size();
            self.end = header.end_offset();
            if self
                .epochs
                .last()
                .is_none_or(|(epoch, _)| header.epoch > *epoch)
            {
                // An epoch that was cut to its last offset has no record any more.
                self.epochs.retain(|(_, start)| *start < header.base_offset);
                self.epochs.push((header.epoch, header.base_offset));
            }
        }
        self.write(&whole.slice(run))
    }

    /// A batch in the wrong place would spoil the log for good, so it is looked at once more.
    fn check(&self, header: &BatchHeader) -> Result<()> {
        if header.base_offset != self.end {
            return Err(self.misfit(&format!(
                "the batch begins at offset {}",
                header.base_offset
            )));
        }
        match self.epochs.last() {
            Some((epoch, _)) if header.epoch < *epoch => {
                Err(self.misfit(&format!("epoch {} follows epoch {epoch}", header.epoch)))
            }
            _ => Ok(()),
        }
    }

    fn is_full(&self, header: &BatchHeader, pending: u64) -> bool {
        let bytes = self.active.bytes() + pending;
        if bytes == 0 {
            return false;
        }
        let age = self
            .index
            .first_timestamp()
            .map_or(0, |first| header.max_timestamp.0.saturating_sub(first));
        bytes + header.size() as u64 > self.limits.segment_bytes
            || age > self.limits.segment_ms
            || self.index.is_beyond(header.last_offset())
    }

    /// Writes batches that were checked to the active segment.
    fn write(&mut self, batches: &Bytes) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let segment = Arc::clone(&self.active);
        let start = segment.bytes();
        check_still_ours(&segment, start)?;
        self.dirty = true;
        segment
            .file
            .write_all_at(batches, start)
            .context("write", &segment.path)?;
        let mut at = 0;
        while let Some(Ok(header)) = batches.get(at..).map(BatchHeader::parse) {
            let entry = self.index.push(&header, start + at as u64);
            at += header.size();
            segment.publish(start + at as u64, entry);
        }
        if let Some(files) = &mut self.files {
            files.append(&segment.path, &self.index)?;
        }
        Ok(())
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.dirty {
            self.active
                .file
                .sync_data()
                .context("sync", &self.active.path)?;
            self.dirty = false;
        }
        Ok(())
    }

    /// Ends the active segment and begins one at the end of the log.
    fn roll(&mut self) -> Result<()> {
        self.finish()?;
        let base = self.end;
        self.index = Index::new(base);
        let segment = Arc::new(Segment::open(&self.dir, base, 0, &[])?);
        cut(&segment.file, 0).context("truncate", &segment.path)?;
        self.files = Some(IndexFiles::create(&segment.path, &self.index)?);
        atomic::sync_dir(&self.dir)?;
        self.active = Arc::clone(&segment);
        self.reader.push(segment);
        Ok(())
    }

    /// Syncs the active segment and writes what a closed one has beside it.
    fn finish(&mut self) -> Result<()> {
        self.sync()?;
        if let Some(files) = self.files.take() {
            files.close(&self.active.path, &mut self.index)?;
        }
        write_producer_snapshot(&self.dir, self.end)
    }

    /// Ends writing for good.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.finish()?;
        atomic::sync_dir(&self.dir)
    }

    /// Cuts the log so that it ends at `end`, and says how many bytes are gone. Segments go from
    /// the last to the first, so that a crash leaves a log that is only longer.
    pub(crate) fn truncate(&mut self, end: Offset) -> Result<u64> {
        if end >= self.end {
            return Ok(0);
        }
        // What tells how far the log reached goes first: a crash in between must not leave a log
        // that looks as if it had lost something.
        remove_producer_snapshots_above(&self.dir, end)?;
        self.epochs.retain(|(_, start)| *start < end);
        epoch_checkpoint::write(&self.dir.join(EPOCH_CHECKPOINT_FILE), &self.epochs)?;
        let reader = self.reader.clone();
        let mut removed_bytes = 0;
        reader.change(|segments| {
            let start = segments.first().map_or(end, |segment| segment.base);
            if end < start {
                return Err(self.misfit(&format!("cannot be cut to {end}: it begins at {start}")));
            }
            while segments.len() > 1
                && let Some(last) = segments.pop_if(|segment| segment.base >= end)
            {
                removed_bytes += last.bytes();
                remove_segment(&last.path)?;
                atomic::sync_dir(&self.dir)?;
            }
            let active = segments.last().expect("the first segment stays");
            let before = active.bytes();
            self.cut_segment(active, end)?;
            removed_bytes += before - active.bytes();
            self.active = Arc::clone(active);
            Ok(())
        })?;
        self.end = end;
        self.dirty = false;
        Ok(removed_bytes)
    }

    fn cut_segment(&mut self, segment: &Segment, end: Offset) -> Result<()> {
        let mut index = Index::new(segment.base);
        let mut bytes = 0;
        let mut reached = segment.base;
        let mut scan = BatchScan::new(&segment.file, 0, segment.bytes());
        while reached < end {
            let next = scan.next().context("read", &segment.path)?;
            let Next::Batch(position, batch) = next else {
                return Err(self.misfit("the batches to be kept cannot be read any more"));
            };
            if batch.end_offset() > end {
                return Err(
                    self.misfit(&format!("offset {end} is inside a batch, not between two"))
                );
            }
            index.push(batch.header(), position);
            reached = batch.end_offset();
            bytes = position + batch.size() as u64;
        }
        segment.reset(bytes, index.entries());
        cut(&segment.file, bytes).context("truncate", &segment.path)?;
        self.files = Some(IndexFiles::create(&segment.path, &index)?);
        self.index = index;
        Ok(())
    }

    /// The fault of a command that does not fit the log: a bug, not the disk's doing.
    fn misfit(&self, what: &str) -> StorageFault {
        let sentence = format!(
            "The log in {} ends at offset {} and a write does not fit it: {what}; this \
             is a bug of kraftd, report it and start again.",
            self.dir.display(),
            self.end
        );
        StorageFault::new(FaultKind::Damaged, &self.dir, sentence)
    }
}

/// Deletes a segment's files, the log first: an index without a log is deleted at the next start.
pub(crate) fn remove_segment(log: &Path) -> Result<()> {
    for extension in ["log", "index", "timeindex"] {
        atomic::remove(&log.with_extension(extension))?;
    }
    Ok(())
}

/// The state of idempotent producers that Java keeps at the end of each closed segment: none, in
/// this log. Version 1, CRC-32C of the count, count 0.
pub(crate) const NO_PRODUCERS: [u8; 10] = [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0];

/// The name must still lead to the open file, and the file must end where this process left it.
/// A directory that was removed or replaced would swallow acknowledged records, and a second writer
/// (the lock file can be deleted) would have both spoil the log.
fn check_still_ours(segment: &Segment, end: u64) -> Result<()> {
    let path = &segment.path;
    let open = segment.file.metadata().context("read", path)?;
    let refuse = |what: &str| {
        let sentence = format!(
            "{} {what} while it was in use; nothing more is written to it.",
            path.display()
        );
        Err(StorageFault::new(FaultKind::Identity, path, sentence))
    };
    match std::fs::metadata(path) {
        Ok(named) if (named.dev(), named.ino()) != (open.dev(), open.ino()) => {
            refuse("was replaced by another file")
        }
        Ok(_) if open.len() != end => refuse("was written by another process"),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => refuse("was removed"),
        Err(error) => Err(error).context("read", path),
    }
}

fn write_producer_snapshot(dir: &Path, end: Offset) -> Result<()> {
    let path = log_path(dir, end).with_extension("snapshot");
    std::fs::write(&path, NO_PRODUCERS).context("write", &path)
}

/// They tell how far the log once reached, so before a cut those that tell more have to go.
pub(crate) fn remove_producer_snapshots_above(dir: &Path, end: Offset) -> Result<()> {
    for name in super::listing::names(dir)? {
        if super::listing::numbered(&name, "snapshot").is_some_and(|offset| offset > end) {
            atomic::remove(&dir.join(name))?;
        }
    }
    atomic::sync_dir(dir)
}
