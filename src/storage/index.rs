//! The offset and time index of a segment: built while batches go by, kept in memory for reads,
//! written to files for Java.
//!
//! `.index` holds 8-byte entries (offset relative to the segment's base u32, position u32), one per
//! 4096 bytes of log; the offset is the last one of the batch at that position. `.timeindex` holds
//! 12-byte entries (timestamp i64, relative offset u32), with ascending timestamps; one more is
//! written when the segment is closed. Recovery never reads either: both are built from the log.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use super::fault::{IoContext as _, Result};
use crate::records::batch::BatchHeader;
use crate::types::Offset;

/// An entry is written when more than this many bytes of log have gone by since the last.
const INTERVAL_BYTES: u64 = 4096;

/// One entry of the offset index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Last offset of the batch, minus the segment's base.
    pub(crate) relative: u32,
    /// Where the batch begins in the file.
    pub(crate) position: u32,
}

impl Entry {
    const fn encode(self) -> [u8; 8] {
        let high = self.relative.to_be_bytes();
        let low = self.position.to_be_bytes();
        [
            high[0], high[1], high[2], high[3], low[0], low[1], low[2], low[3],
        ]
    }
}

fn encode_time(timestamp: i64, relative: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&timestamp.to_be_bytes());
    bytes[8..].copy_from_slice(&relative.to_be_bytes());
    bytes
}

/// Both indexes of one segment in memory.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    base: Offset,
    entries: Vec<Entry>,
    times: Vec<(i64, u32)>,
    bytes_since_entry: u64,
    /// Timestamp of the first batch: the segment's age counts from it.
    first_timestamp: Option<i64>,
    /// Highest timestamp with the last offset of its batch.
    max_timestamp: Option<(i64, u32)>,
}

impl Index {
    pub(crate) const fn new(base: Offset) -> Self {
        Self {
            base,
            entries: Vec::new(),
            times: Vec::new(),
            bytes_since_entry: 0,
            first_timestamp: None,
            max_timestamp: None,
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) const fn first_timestamp(&self) -> Option<i64> {
        self.first_timestamp
    }

    /// True when `offset` is too far from the base for an entry.
    pub(crate) const fn is_beyond(&self, offset: Offset) -> bool {
        offset.0.saturating_sub(self.base.0) > i32::MAX as i64
    }

    /// Takes note of a batch that was appended at `position`. Returns the new offset entry, if one
    /// was made. Offsets and positions that do not fit are not indexed; the log rolls before.
    pub(crate) fn push(&mut self, header: &BatchHeader, position: u64) -> Option<Entry> {
        let relative = u32::try_from(header.last_offset().0.saturating_sub(self.base.0)).ok();
        let position = u32::try_from(position).ok();
        let timestamp = header.max_timestamp.0;
        self.first_timestamp.get_or_insert(timestamp);
        if let Some(relative) = relative
            && self.max_timestamp.is_none_or(|(max, _)| timestamp > max)
        {
            self.max_timestamp = Some((timestamp, relative));
        }
        let mut made = None;
        if self.bytes_since_entry > INTERVAL_BYTES
            && let (Some(relative), Some(position)) = (relative, position)
        {
            let entry = Entry { relative, position };
            self.entries.push(entry);
            self.push_time();
            self.bytes_since_entry = 0;
            made = Some(entry);
        }
        self.bytes_since_entry += header.size() as u64;
        made
    }

    /// Adds the time entry that a closed segment has.
    fn push_time(&mut self) {
        if let Some((timestamp, relative)) = self.max_timestamp
            && self
                .times
                .last()
                .is_none_or(|(last, at)| timestamp > *last && relative > *at)
        {
            self.times.push((timestamp, relative));
        }
    }
}

/// The files of the active segment's indexes.
#[derive(Debug)]
pub(crate) struct IndexFiles {
    offsets: File,
    times: File,
    /// How many entries of each are in the file.
    written: (usize, usize),
}

impl IndexFiles {
    /// Makes the two files hold exactly `index`, whatever they held.
    pub(crate) fn create(log: &Path, index: &Index) -> Result<Self> {
        let mut files = Self {
            offsets: open(&log.with_extension("index"))?,
            times: open(&log.with_extension("timeindex"))?,
            written: (0, 0),
        };
        files.append(log, index)?;
        Ok(files)
    }

    /// Writes the entries that the files lack. They are not synced: nobody trusts them.
    pub(crate) fn append(&mut self, log: &Path, index: &Index) -> Result<()> {
        let mut bytes = Vec::new();
        for entry in index.entries.iter().skip(self.written.0) {
            bytes.extend_from_slice(&entry.encode());
        }
        self.offsets
            .write_all(&bytes)
            .context("write", &log.with_extension("index"))?;
        bytes.clear();
        for (timestamp, relative) in index.times.iter().skip(self.written.1) {
            bytes.extend_from_slice(&encode_time(*timestamp, *relative));
        }
        self.times
            .write_all(&bytes)
            .context("write", &log.with_extension("timeindex"))?;
        self.written = (index.entries.len(), index.times.len());
        Ok(())
    }

    /// Writes what a closed segment has, and syncs both.
    pub(crate) fn close(mut self, log: &Path, index: &mut Index) -> Result<()> {
        index.push_time();
        self.append(log, index)?;
        self.offsets
            .sync_data()
            .context("sync", &log.with_extension("index"))?;
        self.times
            .sync_data()
            .context("sync", &log.with_extension("timeindex"))
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .context("create", path)
}

/// Makes the index files of a closed segment hold what was built from its log. Files that are right
/// are left alone.
pub(crate) fn repair(log: &Path, index: &mut Index) -> Result<()> {
    index.push_time();
    let offsets: Vec<u8> = index
        .entries
        .iter()
        .flat_map(|entry| entry.encode())
        .collect();
    let times = index
        .times
        .iter()
        .flat_map(|(timestamp, at)| encode_time(*timestamp, *at));
    rewrite(&log.with_extension("index"), &offsets)?;
    rewrite(
        &log.with_extension("timeindex"),
        &times.collect::<Vec<u8>>(),
    )
}

fn rewrite(path: &Path, bytes: &[u8]) -> Result<()> {
    // A file of another size is not read: it may have any.
    let has_size = fs::metadata(path).is_ok_and(|found| found.len() == bytes.len() as u64);
    if has_size && fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).context("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::testing::batch_at;

    /// 100 batches of 500 bytes and more: an entry whenever more than 4096 bytes went by.
    fn filled(files: Option<&Path>) -> Index {
        let mut index = Index::new(Offset(1000));
        let mut open = files.map(|log| IndexFiles::create(log, &index).unwrap());
        let mut position = 0;
        for n in 0..100 {
            let batch = batch_at(1000 + n, 1, 500, 5000 + n);
            let made = index.push(batch.header(), position);
            assert_eq!(made.is_some(), n > 0 && n % 8 == 0, "{n}");
            position += batch.size() as u64;
            if let (Some(open), Some(log)) = (&mut open, files) {
                open.append(log, &index).unwrap();
            }
        }
        if let (Some(open), Some(log)) = (open, files) {
            open.close(log, &mut index).unwrap();
        }
        index
    }

    #[test]
    fn an_entry_points_at_the_batch_that_its_offset_ends() {
        let index = filled(None);
        assert_eq!(index.entries().len(), 12);
        let size = batch_at(1000, 1, 500, 5000).size();
        assert_eq!(
            index.entries()[0],
            Entry {
                relative: 8,
                position: u32::try_from(8 * size).unwrap()
            }
        );
        assert_eq!(index.first_timestamp(), Some(5000));
    }

    #[test]
    fn written_files_are_whole_entries_and_a_repair_gives_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("00000000000000001000.log");
        let mut index = filled(Some(&log));
        let offsets = fs::read(log.with_extension("index")).unwrap();
        let times = fs::read(log.with_extension("timeindex")).unwrap();
        assert_eq!(offsets.len(), 12 * 8);
        assert_eq!(times.len(), 13 * 12, "one more at the end");
        assert_eq!(times[144..], encode_time(5099, 99));
        for damage in [&b""[..], b"rubbish", &[0; 96]] {
            fs::write(log.with_extension("index"), damage).unwrap();
            fs::remove_file(log.with_extension("timeindex")).unwrap();
            repair(&log, &mut index).unwrap();
            assert_eq!(fs::read(log.with_extension("index")).unwrap(), offsets);
            assert_eq!(fs::read(log.with_extension("timeindex")).unwrap(), times);
        }
    }

    #[test]
    fn timestamps_that_go_back_are_not_indexed() {
        let mut index = Index::new(Offset(0));
        let mut position = 0;
        for n in 0..30 {
            let batch = batch_at(n, 1, 5000, 100 - n);
            index.push(batch.header(), position);
            position += batch.size() as u64;
        }
        assert_eq!(index.entries().len(), 29);
        assert_eq!(index.times, [(100, 0)]);
    }

    #[test]
    fn offsets_beyond_the_range_of_an_entry_are_told() {
        let index = Index::new(Offset(10));
        assert!(!index.is_beyond(Offset(10 + i64::from(i32::MAX))));
        assert!(index.is_beyond(Offset(11 + i64::from(i32::MAX))));
    }
}
