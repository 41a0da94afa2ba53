//! The `kraftd-commit` file: what is known to be committed here, and of which cluster it is.
//!
//! Java keeps neither. Without a durable commit offset, bad bytes at the end of a log cannot be
//! told from a torn write, and with the cluster id only in `meta.properties` an edited file goes
//! unnoticed. Java ignores the file.
//!
//! Two slots of one line each are written in turn, in place: a torn write spoils only the slot with
//! the older value to come, never the last durable one. The offset in it may lag behind the truth;
//! it is never ahead of what is durable in the log (`files` sees to that).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::atomic;
use super::fault::{IoContext as _, Result};
use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// Its name in the partition's directory.
pub(crate) const COMMIT_FILE: &str = "kraftd-commit";

/// Each slot is a disk sector, so that one write touches one sector.
const SLOT_BYTES: usize = 512;

/// What the newest good slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitMark {
    /// Counts writes; the slot with the higher one is newer.
    pub(crate) sequence: u64,
    /// The cluster's id.
    pub(crate) cluster_id: String,
    /// Everything below is committed.
    pub(crate) commit: OffsetAndEpoch,
}

/// What is on disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No file: a directory of Java's, or a new one.
    Absent,
    /// A file without a good slot.
    Damaged,
    /// The newest good slot.
    Mark(CommitMark),
}

pub(crate) fn read(path: &Path) -> Result<Found> {
    let Some(bytes) = atomic::read_small(path, 2 * SLOT_BYTES as u64)? else {
        return Ok(Found::Absent);
    };
    let newest = bytes
        .chunks(SLOT_BYTES)
        .filter_map(decode)
        .max_by_key(|mark| mark.sequence);
    Ok(newest.map_or(Found::Damaged, Found::Mark))
}

/// How many of the two slots have a good checksum.
pub(crate) fn good_slots(path: &Path) -> Result<usize> {
    let bytes = atomic::read_small(path, 2 * SLOT_BYTES as u64)?.unwrap_or_default();
    Ok(bytes.chunks(SLOT_BYTES).filter_map(decode).count())
}

/// The sentence about a file without a good slot. A crash does not leave that: each write touches
/// one slot, and the file is made under another name.
pub(crate) fn unreadable(path: &Path) -> String {
    format!(
        "{} Run `kraftd fsck` on the directory; if it finds nothing else, delete this file, and \
         the next start writes a new one.",
        damage(path)
    )
}

/// What is wrong with a file that cannot be read, without what helps.
pub(crate) fn damage(path: &Path) -> String {
    format!(
        "{} is damaged: neither of its two slots has a good checksum, so it is not known any more \
         what is committed, and records that were lost would go unnoticed.",
        path.display()
    )
}

/// The open file, for updates in place.
#[derive(Debug)]
pub(crate) struct CommitFile {
    path: PathBuf,
    file: File,
    mark: CommitMark,
}

impl CommitFile {
    /// Opens the file, or creates it with `mark`.
    pub(crate) fn open(path: &Path, mark: CommitMark) -> Result<Self> {
        if read(path)? != Found::Mark(mark.clone()) {
            atomic::replace(path, &[encode(&mark), encode(&mark)].concat())?;
        }
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .context("open", path)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            mark,
        })
    }

    /// What was written last.
    pub(crate) const fn commit(&self) -> OffsetAndEpoch {
        self.mark.commit
    }

    /// Writes `commit` into the older slot; [`Self::sync`] makes it durable.
    pub(crate) fn write(&mut self, commit: OffsetAndEpoch) -> Result<()> {
        self.mark.sequence += 1;
        self.mark.commit = commit;
        let slot = (self.mark.sequence % 2) * SLOT_BYTES as u64;
        self.file
            .write_all_at(&encode(&self.mark), slot)
            .context("write", &self.path)
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().context("sync", &self.path)
    }
}

/// One slot: a line of text with its checksum in front, filled up with spaces.
fn encode(mark: &CommitMark) -> Vec<u8> {
    let text = format!(
        "v1 {} {} {} {}",
        mark.sequence, mark.commit.offset, mark.commit.epoch, mark.cluster_id
    );
    let mut slot = format!("{:08x} {text}", crc32c::crc32c(text.as_bytes())).into_bytes();
    slot.resize(slot.len().max(SLOT_BYTES - 1), b' ');
    slot.truncate(SLOT_BYTES - 1);
    slot.push(b'\n');
    slot
}

fn decode(slot: &[u8]) -> Option<CommitMark> {
    let text = std::str::from_utf8(slot).ok()?;
    let (crc, text) = text.split_once(' ')?;
    let text = text.trim_end();
    if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(text.as_bytes()) {
        return None;
    }
    let mut words = text.splitn(5, ' ');
    if words.next()? != "v1" {
        return None;
    }
    let sequence = words.next()?.parse().ok()?;
    let offset = Offset(words.next()?.parse().ok()?);
    let epoch = Epoch(words.next()?.parse().ok()?);
    Some(CommitMark {
        sequence,
        cluster_id: words.next()?.to_owned(),
        commit: OffsetAndEpoch { offset, epoch },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(sequence: u64, offset: i64) -> CommitMark {
        CommitMark {
            sequence,
            cluster_id: "MkU3OEVBNTcwNTJENDM2Qk".into(),
            commit: at(offset),
        }
    }

    fn at(offset: i64) -> OffsetAndEpoch {
        OffsetAndEpoch {
            offset: Offset(offset),
            epoch: Epoch(3),
        }
    }

    #[test]
    fn the_newest_slot_wins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(COMMIT_FILE);
        assert_eq!(read(&path).unwrap(), Found::Absent);
        let mut file = CommitFile::open(&path, mark(0, 0)).unwrap();
        for offset in 1..6 {
            file.write(at(offset)).unwrap();
            file.sync().unwrap();
            let sequence = u64::try_from(offset).unwrap();
            assert_eq!(read(&path).unwrap(), Found::Mark(mark(sequence, offset)));
        }
        let again = CommitFile::open(&path, mark(5, 5)).unwrap();
        assert_eq!(again.commit(), at(5));
    }

    #[test]
    fn a_write_torn_at_any_byte_leaves_the_value_before_or_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(COMMIT_FILE);
        let mut file = CommitFile::open(&path, mark(0, 0)).unwrap();
        file.write(at(10)).unwrap();
        let before = std::fs::read(&path).unwrap();
        file.write(at(20)).unwrap();
        let after = std::fs::read(&path).unwrap();
        for torn in 0..=SLOT_BYTES {
            let mut bytes = before.clone();
            bytes[..torn].copy_from_slice(&after[..torn]);
            std::fs::write(&path, &bytes).unwrap();
            let found = read(&path).unwrap();
            assert!(
                found == Found::Mark(mark(1, 10)) || found == Found::Mark(mark(2, 20)),
                "torn at {torn}: {found:?}"
            );
        }
    }

    #[test]
    fn a_file_without_a_good_slot_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(COMMIT_FILE);
        for bytes in [&b""[..], b"\0\0\0\0", &[b' '; 1024], &[0xff; 1024]] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path).unwrap(), Found::Damaged);
        }
    }
}
