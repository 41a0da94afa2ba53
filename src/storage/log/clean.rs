//! Letting go of the beginning of the log, once a snapshot holds it (KIP-630).
//!
//! Files are not deleted at once but renamed with `.deleted` behind their name, as Java does: who
//! copies the directory meanwhile finds whole files, and a start removes what is left of them.
//!
//! **Order.** The epochs first (they are only evidence), then segments from the first to the last,
//! each with its name durable before the next, then older snapshots. A crash at any point leaves a
//! log without gaps that begins at or below the end of a snapshot which is not touched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::listing;
use super::{IndexFiles, Log, atomic, cut, epoch_checkpoint};
use crate::storage::epoch_checkpoint::EPOCH_CHECKPOINT_FILE;
use crate::storage::fault::{IoContext as _, Result};
use crate::storage::index::Index;
use crate::storage::segment::Segment;
use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// What was taken out of use.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    /// Bytes of the segments among it.
    pub(crate) log_bytes: u64,
    /// Segments with what lies beside them, under their new names.
    pub(crate) segment_files: Vec<PathBuf>,
    /// Snapshots, under their new names.
    pub(crate) snapshot_files: Vec<PathBuf>,
}

impl Log {
    /// Retires whole segments below the end of the snapshot `to`, and snapshots older than it. The
    /// last segment always stays. Reads that are under way end before.
    pub(crate) fn move_start(&mut self, to: OffsetAndEpoch) -> Result<Retired> {
        let mut retired = Retired::default();
        if begin_epochs_at(&mut self.epochs, to.offset) {
            epoch_checkpoint::write(&self.dir.join(EPOCH_CHECKPOINT_FILE), &self.epochs)?;
        }
        let old = self
            .reader
            .change(|segments| Ok(take_below(segments, to.offset)))?;
        for segment in &old {
            retired.log_bytes += segment.bytes();
            retire(&segment.path, &mut retired.segment_files)?;
            // A hole in the log would look like a lost segment.
            atomic::sync_dir(&self.dir)?;
            for extension in ["index", "timeindex"] {
                let path = segment.path.with_extension(extension);
                retire(&path, &mut retired.segment_files)?;
            }
        }
        let base = self.reader.change(|segments| Ok(segments[0].base))?;
        for name in listing::names(&self.dir)? {
            let old_state = listing::numbered(&name, "snapshot").is_some_and(|end| end < base);
            if old_state {
                retire(&self.dir.join(name), &mut retired.segment_files)?;
            } else if listing::checkpoint_id(&name).is_some_and(|id| id < to) {
                retire(&self.dir.join(name), &mut retired.snapshot_files)?;
            }
        }
        atomic::sync_dir(&self.dir)?;
        Ok(retired)
    }
}

impl Log {
    /// Drops everything: the log begins anew, empty, at the end of the snapshot `at`, and older
    /// snapshots are retired. The new segment comes first, so that a crash in between is recognised
    /// and the restart done again by the next start.
    pub(crate) fn restart(&mut self, at: OffsetAndEpoch) -> Result<Retired> {
        let mut retired = Retired::default();
        self.index = Index::new(at.offset);
        let segment = Arc::new(Segment::open(&self.dir, at.offset, 0, &[])?);
        atomic::sync_dir(&self.dir)?;
        let old = self.reader.change(|segments| {
            let fresh = vec![Arc::clone(&segment)];
            Ok(std::mem::replace(segments, fresh))
        })?;
        for old in old.iter().rev() {
            // One with the same name held nothing below the snapshot: it is emptied.
            if old.base == at.offset {
                cut(&segment.file, 0).context("truncate", &segment.path)?;
            } else {
                for extension in ["log", "index", "timeindex"] {
                    let path = old.path.with_extension(extension);
                    retire(&path, &mut retired.segment_files)?;
                }
            }
            atomic::sync_dir(&self.dir)?;
        }
        cut(&segment.file, 0).context("truncate", &segment.path)?;
        self.files = Some(IndexFiles::create(&segment.path, &self.index)?);
        self.active = segment;
        self.end = at.offset;
        self.dirty = false;
        self.epochs = vec![(at.epoch, at.offset)];
        epoch_checkpoint::write(&self.dir.join(EPOCH_CHECKPOINT_FILE), &self.epochs)?;
        for name in listing::names(&self.dir)? {
            let path = self.dir.join(&name);
            if listing::numbered(&name, "snapshot").is_some() {
                retire(&path, &mut retired.segment_files)?;
            } else if listing::checkpoint_id(&name).is_some_and(|id| id < at) {
                retire(&path, &mut retired.snapshot_files)?;
            }
        }
        atomic::sync_dir(&self.dir)?;
        Ok(retired)
    }
}

/// Takes the segments that end at or below `to` out of the list, but never the last.
fn take_below(segments: &mut Vec<Arc<Segment>>, to: Offset) -> Vec<Arc<Segment>> {
    let stays = segments
        .partition_point(|segment| segment.base <= to)
        .saturating_sub(1);
    segments.drain(..stays).collect()
}

/// The epochs of a log that begins at `start`. True if that changes them.
fn begin_epochs_at(epochs: &mut Vec<(Epoch, Offset)>, start: Offset) -> bool {
    let above = epochs.partition_point(|(_, first)| *first <= start);
    let Some(at) = above.checked_sub(1) else {
        return false;
    };
    let changes = at > 0 || epochs[at].1 != start;
    epochs[at].1 = start;
    epochs.drain(..at);
    changes
}

/// Renames the file, if it is there.
fn retire(path: &Path, retired: &mut Vec<PathBuf>) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".deleted");
    let new = PathBuf::from(name);
    match std::fs::rename(path, &new) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        other => {
            other.context("rename", path)?;
            retired.push(new);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
