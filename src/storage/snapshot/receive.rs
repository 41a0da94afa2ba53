//! A snapshot of another node, as it comes in: piece by piece into a part file, which gets its name
//! when it is whole (KIP-630, FetchSnapshot).

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::{SnapshotFile, path};
use crate::storage::atomic;
use crate::storage::fault::{FaultKind, IoContext as _, Result, StorageFault};
use crate::storage::listing::checkpoint_name;
use crate::storage::{HeldSnapshot, SnapshotPiece};
use crate::types::OffsetAndEpoch;

/// The part file of a snapshot that is on its way.
#[derive(Debug)]
pub(crate) struct Receiving {
    id: OffsetAndEpoch,
    part: PathBuf,
    file: File,
    bytes: u64,
}

/// What became of a piece.
#[derive(Debug)]
pub(crate) enum Received {
    /// It was written; more is to come.
    Part(Receiving),
    /// It was the last: all are there.
    All(Receiving),
    /// It does not go behind the one before.
    Misfit(String),
}

impl Receiving {
    /// Takes a piece: the first begins a file, each other goes behind the one before.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(crate) fn take(
        dir: &Path,
        under_way: Option<Self>,
        piece: &SnapshotPiece,
    ) -> Result<Received> {
        let mut receiving = match under_way {
            _ if piece.position == 0 => Self::begin(dir, piece.id)?,
            Some(it) if it.id == piece.id && it.bytes == piece.position => it,
            other => {
                let has = other.map_or(0, |it| it.bytes);
                return Ok(Received::Misfit(format!(
                    "a piece of the snapshot {}-{} begins at byte {}, but {has} bytes of it are \
                     here",
                    piece.id.offset, piece.id.epoch, piece.position
                )));
            }
        };
        let file = &receiving.file;
        file.write_all_at(&piece.bytes, receiving.bytes)
            .context("write", &receiving.part)?;
        receiving.bytes += piece.bytes.len() as u64;
        Ok(match receiving.bytes.cmp(&piece.size) {
            std::cmp::Ordering::Less => Received::Part(receiving),
            std::cmp::Ordering::Equal => Received::All(receiving),
            std::cmp::Ordering::Greater => Received::Misfit(format!(
                "the snapshot {}-{} shall have {} bytes and has {} already",
                piece.id.offset, piece.id.epoch, piece.size, receiving.bytes
            )),
        })
    }

    /// How many bytes are there.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn begin(dir: &Path, id: OffsetAndEpoch) -> Result<Self> {
        // Not the name under which an own snapshot of the same id would be written meanwhile.
        let part = dir.join(checkpoint_name(id).replace(".checkpoint", "-fetched.checkpoint.part"));
        atomic::remove(&part)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part)
            .context("create", &part)?;
        Ok(Self {
            id,
            part,
            file,
            bytes: 0,
        })
    }

    /// Reads the whole file, makes it durable and read-only, and gives it its name.
    ///
    /// # Errors
    /// `Damaged` when it is not a whole snapshot: the fault of who sent it. Anything else is the
    /// disk's.
    pub(crate) fn finish(self, dir: &Path) -> Result<HeldSnapshot> {
        let summary = match SnapshotFile::open(&self.part)?.expect(self.id).verify() {
            Ok(summary) => summary,
            Err(fault) => {
                atomic::remove(&self.part)?;
                return Err(fault);
            }
        };
        self.file.sync_all().context("sync", &self.part)?;
        self.file
            .set_permissions(Permissions::from_mode(0o400))
            .context("make read-only", &self.part)?;
        atomic::rename(&self.part, &path(dir, self.id))?;
        Ok(HeldSnapshot {
            id: self.id,
            bytes: self.bytes,
            last_timestamp: Some(summary.last_timestamp),
        })
    }
}

/// True when the fault is the sender's.
pub(crate) fn is_senders(fault: &StorageFault) -> bool {
    matches!(fault.kind, FaultKind::Damaged | FaultKind::Unsupported)
}
