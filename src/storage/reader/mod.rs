//! A read-only view of metadata files: of a directory in use, of a copy, of a single file.
//!
//! Nothing here takes or deletes `.lock`, creates, repairs or changes anything. Files are opened
//! once, all together, and stay open: a process that rolls, renames or deletes segments meanwhile
//! does not disturb a reader, and what it appends behind the size at the opening is not seen.
//!
//! [`Source`] is the files, [`walk`] their batches with damage as data, [`replay`] the metadata
//! records that lead to a given offset or moment.

pub mod replay;
mod survey;
pub mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

pub use self::replay::{Covered, Refusal, Replay, Step, Target};
pub use self::walk::{Damage, DamageKind, Item, LogWalk, Walk};
use super::atomic;
use super::bootstrap::BOOTSTRAP_FILE;
use super::directory::PARTITION_DIR;
use super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::listing::{checkpoint_id, names, numbered};
use super::partition_metadata::{self, PARTITION_METADATA_FILE};
use super::quorum_state::QUORUM_STATE_FILE;
use super::scan::{BatchScan, Next};
use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// How often a listing is made again because a file in it was gone when it was to be opened.
const LISTINGS_MAX: u32 = 100;

/// What a path turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A log directory, with the partition's directory inside.
    LogDirectory,
    /// The directory `__cluster_metadata-0`.
    PartitionDirectory,
    /// One segment.
    Segment,
    /// One checkpoint.
    Checkpoint,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A segment of the log.
    Segment {
        /// The offset of its first record: from its name, else from its first batch, else 0.
        base: Offset,
    },
    /// A checkpoint.
    Checkpoint {
        /// From its name; of a file with another name, the epoch of its first batch at offset 0.
        id: OffsetAndEpoch,
    },
}

/// An open file.
#[derive(Debug)]
pub struct MetadataFile {
    /// Where it was found; it may have been renamed or deleted since.
    pub path: PathBuf,
    /// What it is.
    pub role: Role,
    /// Its size when it was opened.
    pub bytes: u64,
    file: File,
}

/// The metadata files at a path, open for reading.
#[derive(Debug)]
pub struct Source {
    /// The path as it was given.
    pub path: PathBuf,
    /// What is there.
    pub kind: SourceKind,
    /// Segments, ascending by base offset.
    pub segments: Vec<MetadataFile>,
    /// Checkpoints, ascending by id; the bootstrap checkpoint 0-0 is among them.
    pub checkpoints: Vec<MetadataFile>,
    /// `bootstrap.checkpoint` of a log directory that a release up to 4.3 formatted.
    pub bootstrap: Option<MetadataFile>,
    /// Everything else in the partition's directory, ascending by name: indexes, `quorum-state`,
    /// leftovers, strays.
    pub others: Vec<PathBuf>,
    /// What has the name of a segment or of a checkpoint and is no file, each with a sentence.
    pub unusable: Vec<StorageFault>,
}

impl Source {
    /// Opens what is at `path`: a log directory, the directory `__cluster_metadata-0` (under any
    /// name, if it holds segments or checkpoints), a segment (`*.log`) or a checkpoint
    /// (`*.checkpoint`), the last two also with `.deleted` behind, or `.part`.
    ///
    /// # Errors
    /// When there is nothing of that kind, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).context("open", path)?;
        if metadata.is_dir() {
            return Self::open_directory(path);
        }
        if !metadata.is_file() {
            return Err(unknown(path, "is neither a directory nor a file"));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name
            .strip_suffix(".deleted")
            .or_else(|| name.strip_suffix(".part"))
            .unwrap_or(&name);
        if name.ends_with(".log") {
            let mut source = Self::empty(path, SourceKind::Segment);
            let file = MetadataFile::segment(path, numbered(name, "log"))?;
            source.segments.extend(file);
            source.check_found()
        } else if name.ends_with(".checkpoint") {
            let mut source = Self::empty(path, SourceKind::Checkpoint);
            let file = MetadataFile::checkpoint(path, checkpoint_id(name))?;
            source.checkpoints.extend(file);
            source.check_found()
        } else {
            Err(unknown(
                path,
                "is neither a segment (*.log) nor a checkpoint (*.checkpoint)",
            ))
        }
    }

    fn open_directory(path: &Path) -> Result<Self> {
        let inner = path.join(PARTITION_DIR);
        let bootstrap = path.join(BOOTSTRAP_FILE);
        let (kind, dir) = if inner.is_dir() {
            (SourceKind::LogDirectory, inner)
        } else if is_partition(path)? {
            (SourceKind::PartitionDirectory, path.to_path_buf())
        } else if bootstrap.is_file() {
            (SourceKind::LogDirectory, inner)
        } else {
            let what = format!("holds no {PARTITION_DIR}, and no segments or checkpoints");
            return Err(unknown(path, &what));
        };
        let mut source = Self::empty(path, kind);
        if kind == SourceKind::LogDirectory && bootstrap.is_file() {
            source.bootstrap = MetadataFile::checkpoint(&bootstrap, None)?;
        }
        for _ in 0..LISTINGS_MAX {
            if source.list(&dir)? {
                return Ok(source);
            }
        }
        let sentence = format!(
            "The files in {} are replaced faster than they can be opened; try again.",
            dir.display()
        );
        Err(StorageFault::new(FaultKind::Io, &dir, sentence))
    }

    fn empty(path: &Path, kind: SourceKind) -> Self {
        Self {
            path: path.to_path_buf(),
            kind,
            segments: Vec::new(),
            checkpoints: Vec::new(),
            bootstrap: None,
            others: Vec::new(),
            unusable: Vec::new(),
        }
    }

    fn check_found(self) -> Result<Self> {
        if self.files().next().is_none() {
            return Err(unknown(&self.path, "was removed while it was opened"));
        }
        Ok(self)
    }

    /// That the directory is a partition's of another topic, by its `partition.metadata`.
    #[must_use]
    pub fn of_another_topic(&self) -> Option<StorageFault> {
        let name = |path: &&PathBuf| path.ends_with(PARTITION_METADATA_FILE);
        let path = self.others.iter().find(name)?;
        let fault = partition_metadata::check(path).err()?;
        (fault.kind == FaultKind::Identity).then_some(fault)
    }

    /// Opens everything in the partition's directory; false when a file was gone.
    fn list(&mut self, dir: &Path) -> Result<bool> {
        let (mut logs, mut checkpoints) = (BTreeMap::new(), BTreeMap::new());
        self.others.clear();
        self.unusable.clear();
        self.segments.clear();
        self.checkpoints.clear();
        if !dir.exists() {
            return Ok(true); // Only formatted, by a release up to 4.3.
        }
        for name in names(dir)? {
            let path = dir.join(&name);
            if let Some(base) = numbered(&name, "log") {
                logs.insert(base, path);
            } else if let Some(id) = checkpoint_id(&name) {
                checkpoints.insert(id, path);
            } else {
                self.others.push(path);
            }
        }
        for (id, path) in checkpoints {
            match MetadataFile::checkpoint(&path, Some(id)) {
                Ok(Some(file)) => self.checkpoints.push(file),
                Ok(None) => return Ok(false),
                Err(fault) => self.set_aside(fault)?,
            }
        }
        // In order and behind the listing: when a segment is in it, the one before is complete.
        for (base, path) in logs {
            match MetadataFile::segment(&path, Some(base)) {
                Ok(Some(file)) => self.segments.push(file),
                Ok(None) => return Ok(false),
                Err(fault) => self.set_aside(fault)?,
            }
        }
        Ok(true)
    }

    /// What is no file is told beside what the others say; that a file cannot be opened is all.
    fn set_aside(&mut self, fault: StorageFault) -> Result<()> {
        if fault.kind != FaultKind::Damaged {
            return Err(fault);
        }
        self.unusable.push(fault);
        Ok(())
    }

    /// All files: `bootstrap.checkpoint`, checkpoints, segments.
    pub fn files(&self) -> impl Iterator<Item = &MetadataFile> {
        let checkpoints = self.bootstrap.iter().chain(&self.checkpoints);
        checkpoints.chain(&self.segments)
    }

    /// Walks the batches of one of [`Self::files`]. A segment's bad end is judged with the
    /// segments behind it.
    #[must_use]
    pub fn walk<'a>(&'a self, file: &'a MetadataFile) -> Walk<'a> {
        match file.role {
            Role::Checkpoint { .. } => Walk::checkpoint(file),
            Role::Segment { base } => {
                let at = self.segments.iter().position(|it| it.path == file.path);
                let alone = std::slice::from_ref(file);
                let files = at.map_or(alone, |at| &self.segments[at..]);
                Walk::segment(files, base, None)
            }
        }
    }

    /// Walks the batches of all segments as one log: a segment that does not begin where the one
    /// before ends is told as damage too.
    #[must_use]
    pub fn walk_log(&self) -> LogWalk<'_> {
        LogWalk::new(&self.segments)
    }

    /// The metadata records that lead to `target`, from the newest checkpoint that helps.
    ///
    /// # Errors
    /// [`Refusal::NotCovered`] when no checkpoint and log lead there; [`Refusal::Fault`] when a
    /// read fails.
    pub fn replay(&self, target: Target) -> std::result::Result<Replay<'_>, Refusal> {
        Replay::new(self, target)
    }
}

impl MetadataFile {
    /// Opens a segment; `None` when it is gone.
    fn segment(path: &Path, base: Option<Offset>) -> Result<Option<Self>> {
        let unnamed = Role::Segment { base: Offset::ZERO };
        let Some(mut opened) = Self::open(path, unnamed)? else {
            return Ok(None);
        };
        let base = match base {
            Some(base) => base,
            None => opened.first_id()?.offset,
        };
        opened.role = Role::Segment { base };
        Ok(Some(opened))
    }

    /// Opens a checkpoint; `None` when it is gone.
    fn checkpoint(path: &Path, id: Option<OffsetAndEpoch>) -> Result<Option<Self>> {
        let unnamed = Role::Checkpoint {
            id: OffsetAndEpoch::default(),
        };
        let Some(mut opened) = Self::open(path, unnamed)? else {
            return Ok(None);
        };
        let id = match id {
            Some(id) => id,
            None => OffsetAndEpoch {
                offset: Offset::ZERO,
                ..opened.first_id()?
            },
        };
        opened.role = Role::Checkpoint { id };
        Ok(Some(opened))
    }

    fn open(path: &Path, role: Role) -> Result<Option<Self>> {
        let Some(file) = atomic::open_plain(path)? else {
            return Ok(None);
        };
        let bytes = file.metadata().context("read", path)?.len();
        Ok(Some(Self {
            path: path.to_path_buf(),
            role,
            bytes,
            file,
        }))
    }

    /// Base offset and epoch of the first batch, 0 and 0 if there is none.
    fn first_id(&self) -> Result<OffsetAndEpoch> {
        let first = BatchScan::new(&self.file, 0, self.bytes).next();
        Ok(match first.context("read", &self.path)? {
            Next::Batch(_, batch) => OffsetAndEpoch {
                offset: batch.base_offset(),
                epoch: batch.epoch(),
            },
            Next::End | Next::Bad(..) => OffsetAndEpoch {
                offset: Offset::ZERO,
                epoch: Epoch(0),
            },
        })
    }
}

/// Whether a directory that has no partition inside is one itself.
fn is_partition(dir: &Path) -> Result<bool> {
    if dir.file_name().is_some_and(|name| name == PARTITION_DIR) {
        return Ok(true);
    }
    let known = |name: &String| {
        numbered(name, "log").is_some()
            || checkpoint_id(name).is_some()
            || name == QUORUM_STATE_FILE
    };
    Ok(names(dir)?.iter().any(known))
}

fn unknown(path: &Path, what: &str) -> StorageFault {
    let sentence = format!("{} {what}.", path.display());
    StorageFault::new(FaultKind::Missing, path, sentence)
}
