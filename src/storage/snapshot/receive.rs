//! A snapshot of another node, as it comes in: piece by piece into a part file, which gets its name
//! when it is whole (KIP-630, FetchSnapshot).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::part::Part;
use super::{SnapshotFile, path};
use crate::storage::atomic;
use crate::storage::fault::{FaultKind, IoContext as _, Result, StorageFault};
use crate::storage::listing::checkpoint_name;
use crate::storage::room::{self, Leave};
use crate::storage::{HeldSnapshot, SnapshotPiece, Unreceived};
use crate::types::OffsetAndEpoch;

/// The part file of a snapshot that is on its way.
#[derive(Debug)]
pub(crate) struct Receiving {
    id: OffsetAndEpoch,
    part: Part,
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
    /// It does not go behind the one before, or there is no room for it.
    Refused(Unreceived),
}

impl Receiving {
    /// Takes a piece: the first begins a file, each other goes behind the one before.
    ///
    /// # Errors
    /// When the file cannot be made or written for another reason than a lack of room.
    pub(crate) fn take(
        dir: &Path,
        under_way: Option<Self>,
        piece: &SnapshotPiece,
    ) -> Result<Received> {
        let taken = Self::write(dir, under_way, piece);
        taken.or_else(|fault| unreceived(fault).map(Received::Refused))
    }

    fn write(dir: &Path, under_way: Option<Self>, piece: &SnapshotPiece) -> Result<Received> {
        let misfit = |sentence| Ok(Received::Refused(Unreceived::NoGood(sentence)));
        let mut receiving = match under_way {
            other if piece.position == 0 => {
                drop(other); // Its file may have the name of the one that begins.
                Self::begin(dir, piece)?
            }
            Some(it) if it.id == piece.id && it.bytes == piece.position => it,
            other => {
                let has = other.map_or(0, |it| it.bytes);
                return misfit(format!(
                    "a piece of the snapshot {}-{} begins at byte {}, but {has} bytes of it are \
                     here",
                    piece.id.offset, piece.id.epoch, piece.position
                ));
            }
        };
        let file = &receiving.file;
        file.write_all_at(&piece.bytes, receiving.bytes)
            .context("write", receiving.part.path())?;
        receiving.bytes += piece.bytes.len() as u64;
        match receiving.bytes.cmp(&piece.size) {
            std::cmp::Ordering::Less => Ok(Received::Part(receiving)),
            std::cmp::Ordering::Equal => Ok(Received::All(receiving)),
            std::cmp::Ordering::Greater => misfit(format!(
                "the snapshot {}-{} shall have {} bytes and has {} already",
                piece.id.offset, piece.id.epoch, piece.size, receiving.bytes
            )),
        }
    }

    /// How many bytes are there.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins the file, if all of it has room.
    fn begin(dir: &Path, piece: &SnapshotPiece) -> Result<Self> {
        let id = piece.id;
        // Not the name under which an own snapshot of the same id would be written meanwhile.
        let part = dir.join(checkpoint_name(id).replace(".checkpoint", "-fetched.checkpoint.part"));
        let (part, file) = Part::create(part)?;
        let receiving = Self {
            id,
            part,
            file,
            bytes: 0,
        };
        room::check(
            &receiving.file,
            receiving.part.path(),
            piece.size,
            Leave::Reserve,
        )?;
        Ok(receiving)
    }

    /// Reads the whole file, makes it durable and read-only, and gives it its name, durably.
    ///
    /// # Errors
    /// The disk's, but for a lack of room.
    pub(crate) fn finish(
        self,
        dir: &Path,
    ) -> Result<std::result::Result<HeldSnapshot, Unreceived>> {
        match self.name(dir) {
            // Whether a name that is not durable stays is not known: final, whatever the reason.
            Ok(held) => atomic::sync_dir(dir).map(|()| Ok(held)),
            Err(fault) => unreceived(fault).map(Err),
        }
    }

    /// [`Self::finish`] without the sync of the directory. A fault leaves no file.
    fn name(self, dir: &Path) -> Result<HeldSnapshot> {
        let summary = SnapshotFile::open(self.part.path())?
            .expect(self.id)
            .verify()?;
        self.part.finish(&self.file, &path(dir, self.id))?;
        Ok(HeldSnapshot {
            id: self.id,
            bytes: self.bytes,
            last_timestamp: Some(summary.last_timestamp),
        })
    }
}

/// What is no fault of this disk: what the sender did, or a lack of room, which may end.
///
/// # Errors
/// Any other fault.
fn unreceived(fault: StorageFault) -> Result<Unreceived> {
    match fault.kind {
        FaultKind::Damaged | FaultKind::Unsupported => Ok(Unreceived::NoGood(fault.sentence)),
        FaultKind::NoRoom => Ok(Unreceived::NoRoom(fault.sentence)),
        _ => Err(fault),
    }
}
