//! One segment file as readers see it, and reads over all of them.
//!
//! The disk thread appends, rolls and cuts; a second thread reads. They share the list of segments
//! (locked only while it changes shape) and each segment's published length: bytes below it are
//! whole batches that no append touches any more. A cut takes the write lock, so it waits for the
//! read that is under way.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::index::Entry;
use super::scan::read_at;
use crate::records::batch::{Batch, BatchFault, BatchHeader, HEADER_BYTES};
use crate::types::Offset;

/// The most that one read returns, unless a single batch is larger.
const READ_BYTES_MAX: usize = 8 << 20;

/// The name of the segment that begins at `base`.
pub(crate) fn log_path(dir: &Path, base: Offset) -> PathBuf {
    dir.join(format!("{:020}.log", base.0))
}

/// One segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Offset of its first record, in its name.
    pub(crate) base: Offset,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    bytes: AtomicU64,
    entries: RwLock<Vec<Entry>>,
}

impl Segment {
    /// Opens the file of the segment that begins at `base`, or creates it.
    pub(crate) fn open(dir: &Path, base: Offset, bytes: u64, entries: &[Entry]) -> Result<Self> {
        let path = log_path(dir, base);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .context("open", &path)?;
        Ok(Self {
            base,
            path,
            file,
            bytes: AtomicU64::new(bytes),
            entries: RwLock::new(entries.to_vec()),
        })
    }

    /// How many bytes readers may look at.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Lets readers see `bytes` bytes, and a new index entry.
    pub(crate) fn publish(&self, bytes: u64, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.entries
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .push(entry);
        }
        self.bytes.store(bytes, Ordering::Release);
    }

    /// Lets readers see this much and these entries only.
    pub(crate) fn reset(&self, bytes: u64, entries: &[Entry]) {
        self.bytes.store(bytes, Ordering::Release);
        *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries.to_vec();
    }

    /// Where the batch that holds `from`, or the first behind it, begins; `None` if there is none.
    fn find(&self, from: Offset) -> Result<Option<u64>> {
        let end = self.bytes();
        let relative = from.0.saturating_sub(self.base.0);
        let mut position = {
            let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
            let above = entries.partition_point(|entry| i64::from(entry.relative) <= relative);
            above
                .checked_sub(1)
                .map_or(0, |at| u64::from(entries[at].position))
        };
        while position + HEADER_BYTES as u64 <= end {
            let mut bytes = [0; HEADER_BYTES];
            self.file
                .read_exact_at(&mut bytes, position)
                .context("read", &self.path)?;
            let header = BatchHeader::parse(&bytes).map_err(|fault| self.rot(position, &fault))?;
            if header.last_offset() >= from {
                return Ok(Some(position));
            }
            position += header.size() as u64;
        }
        Ok(None)
    }

    /// Whole batches from `position` on: those below `until`, up to `bytes_max` but at least one.
    fn read(&self, position: u64, until: Offset, bytes_max: usize) -> Result<Bytes> {
        let left = self.bytes().saturating_sub(position);
        let bytes = left.min(bytes_max.clamp(HEADER_BYTES, READ_BYTES_MAX) as u64);
        let mut buffer = read_at(&self.file, position, bytes).context("read", &self.path)?;
        let first = BatchHeader::parse(&buffer).map_err(|fault| self.rot(position, &fault))?;
        if first.size() as u64 > left {
            return Err(self.rot(position, &BatchFault::Truncated));
        }
        if first.size() > buffer.len() {
            buffer =
                read_at(&self.file, position, first.size() as u64).context("read", &self.path)?;
        }
        let mut rest = buffer.clone();
        let mut whole = 0;
        loop {
            match Batch::take_from(&mut rest) {
                Ok(Some(batch)) => {
                    if batch.base_offset() >= until
                        || (whole > 0 && whole + batch.size() > bytes_max)
                    {
                        break;
                    }
                    batch
                        .verify_crc()
                        .map_err(|fault| self.rot(position + whole as u64, &fault))?;
                    whole += batch.size();
                }
                Ok(None) => break,
                Err(fault) => return Err(self.rot(position + whole as u64, &fault)),
            }
        }
        Ok(buffer.slice(..whole))
    }

    /// The fault of bytes that were good when they were written and are not any more.
    fn rot(&self, position: u64, fault: &BatchFault) -> StorageFault {
        let sentence = format!(
            "{} is damaged at byte {position}: {fault}. The bytes were good when this process \
             started or wrote them, so the disk or the file system changed them; check the disk.",
            self.path.display()
        );
        StorageFault::new(FaultKind::Damaged, &self.path, sentence)
    }
}

/// The segments in ascending order; what the reading thread has of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogReader {
    segments: Arc<RwLock<Vec<Arc<Segment>>>>,
}

impl LogReader {
    pub(crate) fn new(segments: Vec<Arc<Segment>>) -> Self {
        Self {
            segments: Arc::new(RwLock::new(segments)),
        }
    }

    /// Whole batches from the one that holds `from`, as [`super::Command::Read`] says.
    pub(crate) fn read(&self, from: Offset, until: Offset, bytes_max: usize) -> Result<Bytes> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let above = segments.partition_point(|segment| segment.base <= from);
        let Some(first) = above.checked_sub(1) else {
            return Ok(Bytes::new());
        };
        for segment in &segments[first..] {
            if segment.base >= until {
                break;
            }
            if let Some(position) = segment.find(from)? {
                return segment.read(position, until, bytes_max);
            }
        }
        Ok(Bytes::new())
    }

    pub(crate) fn push(&self, segment: Arc<Segment>) {
        self.segments
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(segment);
    }

    /// Changes the list while no read is under way.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Arc<Segment>>) -> Result<T>,
    ) -> Result<T> {
        let mut segments = self
            .segments
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut segments)
    }
}

/// Cuts a file to `bytes` and makes that durable.
pub(crate) fn cut(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    file.sync_all()
}
