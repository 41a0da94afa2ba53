//! Checkpoint files: a snapshot of the metadata at an offset (KIP-630).
//!
//! A control batch with the header (and `kraft.version` and voters), data batches, a control batch
//! with the footer. Offsets inside begin at 0 and have nothing to do with the log's; every batch
//! carries the epoch of the snapshot's id. A file without its footer is not a snapshot.

mod part;
pub(crate) mod receive;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use self::part::Part;
use super::atomic;
use super::control;
use super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::frame::Frame;
use super::listing::{checkpoint_id, checkpoint_name};
use super::pace::Pace;
use super::room::{self, Leave};
use super::scan::{BatchScan, Next};
use super::{SnapshotChunk, SnapshotOrder, listing};
use crate::raft::ControlRecord;
use crate::records::batch::{BATCH_BYTES_MAX, Batch, BatchBuilder, BatchFault};
use crate::records::control::{self as wire, SnapshotFooter, SnapshotHeader};
use crate::records::{RecordFault, VersionedRecord};
use crate::types::{Offset, OffsetAndEpoch, Timestamp};

/// No log reaches an offset beyond this: a name that says so is no snapshot's.
pub(crate) const OFFSET_MAX: Offset = Offset(i64::MAX >> 1);

/// Where the snapshot `id` of the partition in `dir` is.
#[must_use]
pub fn path(dir: &Path, id: OffsetAndEpoch) -> PathBuf {
    dir.join(checkpoint_name(id))
}

/// The ids of the finished snapshots in `dir`, ascending, the bootstrap one included. Their content
/// is not looked at.
///
/// # Errors
/// When the directory cannot be read.
pub fn list(dir: &Path) -> Result<Vec<OffsetAndEpoch>> {
    Ok(listing::list(dir)?.checkpoints.into_iter().collect())
}

/// An open checkpoint file.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// What its name says that it is.
    id: Option<OffsetAndEpoch>,
}

/// What a checkpoint holds beside its metadata records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Control records, in order.
    pub control: Vec<ControlRecord>,
    /// Timestamp of the newest record that it covers, as its header says.
    pub last_timestamp: Timestamp,
}

impl SnapshotFile {
    /// Opens the file; nothing is checked yet.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let file = atomic::open_existing(path)?;
        let bytes = file.metadata().context("read", path)?.len();
        Ok(Self::of(path, file, bytes))
    }

    fn of(path: &Path, file: File, bytes: u64) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self {
            path: path.to_path_buf(),
            file,
            bytes,
            id: name.and_then(checkpoint_id),
        }
    }

    /// Says which snapshot it has to be, whatever its name.
    pub(crate) const fn expect(mut self, id: OffsetAndEpoch) -> Self {
        self.id = Some(id);
        self
    }

    /// The file's size.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens the file unless there is none (any more).
    ///
    /// # Errors
    /// When it cannot be opened for another reason.
    pub fn open_if_present(path: &Path) -> Result<Option<Self>> {
        let Some(file) = atomic::open_plain(path)? else {
            return Ok(None);
        };
        let bytes = file.metadata().context("read", path)?.len();
        Ok(Some(Self::of(path, file, bytes)))
    }

    /// Timestamp of the newest record that it covers, from its header alone; `None` when that
    /// cannot be read.
    #[must_use]
    pub fn last_timestamp(&self) -> Option<Timestamp> {
        let batch = self.batches().next()?.ok()?;
        let records = control::wire_records(&self.path, &batch).ok()?;
        records.into_iter().find_map(|(_, record)| match record {
            wire::ControlRecord::SnapshotHeader(header) => {
                Some(Timestamp(header.last_contained_log_timestamp))
            }
            _ => None,
        })
    }

    /// Walks the batches, a window at a time. A walk that ends without an error has seen a whole
    /// snapshot: every checksum, the header first and the footer last, and the epoch of its name in
    /// every batch.
    #[must_use]
    pub fn batches(&self) -> Batches<'_> {
        Batches {
            path: &self.path,
            scan: BatchScan::new(&self.file, 0, self.bytes),
            next: Offset::ZERO,
            id: self.id,
            frame: Frame::default(),
            done: false,
        }
    }

    /// Walks the whole file and returns what is not metadata.
    ///
    /// # Errors
    /// `Damaged` when it is not a whole snapshot.
    pub fn verify(&self) -> Result<Summary> {
        let mut summary = Summary {
            control: Vec::new(),
            last_timestamp: Timestamp(0),
        };
        for batch in self.batches() {
            let batch = batch?;
            if !batch.is_control() {
                continue;
            }
            for (_, record) in control::wire_records(&self.path, &batch)? {
                if let wire::ControlRecord::SnapshotHeader(header) = record {
                    summary.last_timestamp = Timestamp(header.last_contained_log_timestamp);
                }
            }
            let records = control::records(&self.path, &batch)?;
            summary
                .control
                .extend(records.into_iter().map(|(_, record)| record));
        }
        Ok(summary)
    }

    /// Up to `bytes_max` bytes from `position`, not aligned to batches.
    ///
    /// # Errors
    /// When the read fails.
    pub fn read(&self, position: i64, bytes_max: usize) -> Result<SnapshotChunk> {
        let Some(position) = u64::try_from(position)
            .ok()
            .filter(|position| *position < self.bytes)
        else {
            return Ok(SnapshotChunk::OutOfRange);
        };
        let left = usize::try_from(self.bytes - position).unwrap_or(usize::MAX);
        let mut buffer = vec![0; left.min(bytes_max).min(BATCH_BYTES_MAX)];
        self.file
            .read_exact_at(&mut buffer, position)
            .context("read", &self.path)?;
        Ok(SnapshotChunk::Bytes {
            size: self.bytes,
            bytes: Bytes::from(buffer),
        })
    }
}

/// The batches of a checkpoint.
#[derive(Debug)]
pub struct Batches<'a> {
    path: &'a Path,
    scan: BatchScan<'a>,
    next: Offset,
    id: Option<OffsetAndEpoch>,
    frame: Frame,
    done: bool,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.step();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Batches<'_> {
    fn step(&mut self) -> Option<Result<Batch>> {
        match self.scan.next().context("read", self.path) {
            Err(fault) => Some(Err(fault)),
            Ok(Next::Bad(position, fault)) => Some(Err(
                self.damaged(&format!("at byte {position} {}", describe(&fault)))
            )),
            Ok(Next::End) if self.frame.is_whole() => None,
            Ok(Next::End) => Some(Err(self.damaged("it ends without a footer"))),
            Ok(Next::Batch(position, batch)) => Some(self.check(position, &batch).map(|()| batch)),
        }
    }

    /// Order and frame of the snapshot.
    fn check(&mut self, position: u64, batch: &Batch) -> Result<()> {
        if batch.base_offset() != self.next {
            return Err(self.damaged(&format!(
                "at byte {position} a batch begins at offset {} and not at {}",
                batch.base_offset(),
                self.next
            )));
        }
        self.next = batch.end_offset();
        if let Some(what) = self.id.and_then(|id| misnamed(id, batch)) {
            return Err(self.damaged(&format!("at byte {position} {what}")));
        }
        if batch.is_control() {
            // What cannot be read is of another release and no damage.
            control::wire_records(self.path, batch)?;
        }
        let frame = self.frame.take(batch);
        frame.map_err(|what| self.damaged(&format!("at byte {position} {what}")))
    }

    fn damaged(&self, what: &str) -> StorageFault {
        let sentence = format!("{} is not a whole snapshot: {what}.", self.path.display());
        StorageFault::new(FaultKind::Damaged, self.path, sentence)
    }
}

/// What a checkpoint's name says against a batch in it: each has the epoch of the id.
pub(crate) fn misnamed(id: OffsetAndEpoch, batch: &Batch) -> Option<String> {
    if id.offset > OFFSET_MAX {
        return Some(format!(
            "it is named after the offset {}, which no log reaches: move the file away",
            id.offset
        ));
    }
    (batch.epoch() != id.epoch).then(|| {
        format!(
            "a batch has epoch {}, but the name says {}: if the file was renamed or copied, move \
             it away",
            batch.epoch(),
            id.epoch
        )
    })
}

fn describe(fault: &BatchFault) -> String {
    match fault {
        BatchFault::BadCrc { stored, computed } => format!(
            "the record batch is corrupt (stored crc {stored:#010x}, computed crc {computed:#010x})"
        ),
        other => other.to_string(),
    }
}

/// Records in one batch of a snapshot.
const BATCH_RECORDS_MAX: u32 = 1024;

/// What became of a snapshot that was ordered.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is durable under its name; its size in bytes.
    Whole(u64),
    /// It was given up, and there is no such file.
    GivenUp,
    /// It could not be written, and there is no such file.
    Unwritten(StorageFault),
}

/// Writes the whole snapshot that is ordered.
///
/// # Errors
/// When the file has its name and the directory cannot be synced: whether a power cut leaves it
/// there is not known then.
pub(crate) fn write(dir: &Path, order: &SnapshotOrder, pace: Pace) -> Result<Outcome> {
    match write_unsynced(dir, order, pace) {
        Ok(Some(bytes)) => atomic::sync_dir(dir).map(|()| Outcome::Whole(bytes)),
        Ok(None) => Ok(Outcome::GivenUp),
        Err(fault) => Ok(Outcome::Unwritten(fault)),
    }
}

/// The file, durable but for its name; its size, or `None` when it was given up. A fault leaves
/// none.
fn write_unsynced(dir: &Path, order: &SnapshotOrder, mut pace: Pace) -> Result<Option<u64>> {
    let SnapshotOrder {
        id,
        last_timestamp,
        timestamp,
        control,
        content,
        bytes_expected,
    } = order;
    let mut writer = SnapshotWriter::create(dir, *id, *last_timestamp, *timestamp, control)?;
    let mut going = writer.check_room(*bytes_expected).map(|()| true);
    content.records(&mut |record| {
        if matches!(going, Ok(true)) {
            let pushed = writer.push(&record);
            going = pushed.and_then(|()| writer.keep_pace(*bytes_expected, &mut pace));
        }
    });
    if !going? || pace.is_given_up() {
        return Ok(None);
    }
    writer.name().map(Some)
}

/// Writes a checkpoint file under a temporary name and gives it its own when it is whole.
#[derive(Debug)]
pub struct SnapshotWriter {
    dir: PathBuf,
    id: OffsetAndEpoch,
    part: Part,
    timestamp: Timestamp,
    out: BufWriter<File>,
    batch: BatchBuilder,
    /// The record being encoded.
    value: Vec<u8>,
    /// Size of the file, with what `out` holds.
    bytes: u64,
}

impl SnapshotWriter {
    /// Begins the snapshot `id` in `dir`, which must exist. `last_timestamp` goes into the header,
    /// `timestamp` into every batch; `control` holds `kraft.version` and voters, if any.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(
        dir: &Path,
        id: OffsetAndEpoch,
        last_timestamp: Timestamp,
        timestamp: Timestamp,
        control: &[wire::ControlRecord],
    ) -> Result<Self> {
        let name = checkpoint_name(id);
        let (part, file) = Part::create(dir.join(format!("{name}.part")))?;
        let mut writer = Self {
            dir: dir.to_path_buf(),
            id,
            part,
            timestamp,
            out: BufWriter::with_capacity(1 << 17, file),
            batch: BatchBuilder::control(Offset::ZERO, id.epoch, timestamp),
            value: Vec::new(),
            bytes: 0,
        };
        let header = SnapshotHeader {
            version: 0,
            last_contained_log_timestamp: last_timestamp.0,
            ..SnapshotHeader::default()
        };
        writer.push_control(&header.into())?;
        for record in control {
            writer.push_control(record)?;
        }
        writer.end_batch()?;
        Ok(writer)
    }

    /// Adds a metadata record; a batch that gets too large ends before it.
    ///
    /// # Errors
    /// When the record cannot be encoded or a write fails.
    pub fn push(&mut self, record: &VersionedRecord) -> Result<()> {
        self.value.clear();
        record
            .encode_into(&mut self.value)
            .map_err(|fault| self.unwritable(&fault))?;
        if self.batch.size_with(None, Some(self.value.len())) > BATCH_BYTES_MAX {
            self.end_batch()?;
        }
        self.batch.push(None, Some(&self.value));
        Ok(())
    }

    /// Ends the batch, so that the next record begins another.
    ///
    /// # Errors
    /// When a write fails.
    pub fn end_batch(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let next = self.batch.next_offset();
        let following = BatchBuilder::data(next, self.id.epoch, self.timestamp);
        let batch = std::mem::replace(&mut self.batch, following).build();
        self.bytes += batch.size() as u64;
        self.out
            .write_all(batch.bytes())
            .context("write", self.part.path())
    }

    /// Refuses to go on when what is left of the expected bytes does not fit beside the log.
    fn check_room(&self, bytes_expected: u64) -> Result<()> {
        let left = bytes_expected.saturating_sub(self.bytes);
        room::check(self.out.get_ref(), self.part.path(), left, Leave::Meanwhile)
    }

    /// Ends a batch that is large enough. False when the snapshot is given up.
    fn keep_pace(&mut self, bytes_expected: u64, pace: &mut Pace) -> Result<bool> {
        if self.batch.count() < BATCH_RECORDS_MAX {
            return Ok(true);
        }
        self.end_batch()?;
        self.check_room(bytes_expected)?;
        if pace.is_due(self.bytes) {
            self.out.flush().context("write", self.part.path())?;
            return Ok(!pace.pause(self.out.get_ref(), self.bytes));
        }
        Ok(!pace.is_given_up())
    }

    /// Writes the footer, makes the file durable and read-only, and gives it its name, durably.
    /// Returns its size.
    ///
    /// # Errors
    /// When anything of that fails. Only if it was the sync of the directory is there a file.
    pub fn finish(self) -> Result<u64> {
        let dir = self.dir.clone();
        let bytes = self.name()?;
        atomic::sync_dir(&dir)?;
        Ok(bytes)
    }

    /// [`Self::finish`] without the sync of the directory. A fault leaves no file.
    fn name(mut self) -> Result<u64> {
        self.end_batch()?;
        let next = self.batch.next_offset();
        self.batch = BatchBuilder::control(next, self.id.epoch, self.timestamp);
        self.push_control(&SnapshotFooter::default().into())?;
        self.end_batch()?;
        self.out.flush().context("write", self.part.path())?;
        let file = self.out.get_ref();
        let bytes = file.metadata().context("read", self.part.path())?.len();
        self.part.finish(file, &path(&self.dir, self.id))?;
        Ok(bytes)
    }

    fn push_control(&mut self, record: &wire::ControlRecord) -> Result<()> {
        self.batch
            .push_control(record)
            .map_err(|fault| self.unwritable(&fault))
    }

    fn unwritable(&self, fault: &RecordFault) -> StorageFault {
        let sentence = format!("{} cannot be written: {fault}.", self.part.path().display());
        StorageFault::new(FaultKind::Unsupported, self.part.path(), sentence)
    }
}
