//! Room on the disk: what a file that can wait must leave for the log, which cannot.
//!
//! Another node's snapshot may be of any size and lets nothing go at once: it leaves the log a
//! reserve to go on with until somebody makes room. An own one is what lets the log be cut, so it
//! may use that reserve: kept from it, the log would fill the disk and stop the process. It takes
//! about what the one before took. What the log needs while it is written stays free, and this is
//! looked at batch by batch: one that grew beyond the one before is given up, and its part removed,
//! before an append finds no room.

use std::fs::File;
use std::path::Path;

use rustix::fs::{StatVfs, fstatvfs};

use super::fault::{FaultKind, Result, StorageFault};

/// What a file leaves free on its disk. Of a small disk it is a sixteenth.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leave {
    /// 16 MiB, for the log until somebody makes room.
    Reserve,
    /// 1 MiB, for the log while an own snapshot is written.
    Meanwhile,
}

impl Leave {
    fn bytes(self, disk: &StatVfs) -> u64 {
        let bytes = match self {
            Self::Reserve => 16 << 20,
            Self::Meanwhile => 1 << 20,
        };
        disk.f_blocks.saturating_mul(disk.f_frsize).min(bytes * 16) / 16
    }
}

/// Refuses `bytes` more in `file`, whose name is `path`, if what it has to leave would then not be
/// free on its disk. A file system that does not tell what is free refuses nothing here.
///
/// # Errors
/// `NoRoom`.
pub(crate) fn check(file: &File, path: &Path, bytes: u64, leave: Leave) -> Result<()> {
    match fstatvfs(file) {
        Ok(disk) if disk.f_blocks > 0 => fits(&disk, path, bytes, leave),
        _ => Ok(()),
    }
}

fn fits(disk: &StatVfs, path: &Path, bytes: u64, leave: Leave) -> Result<()> {
    // What a process without privileges may use.
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let left = leave.bytes(disk);
    if free >= bytes.saturating_add(left) {
        return Ok(());
    }
    let sentence = format!(
        "Failed to write {}: it needs about {bytes} more bytes and {left} have to stay free for \
         the log, but its disk has {free}",
        path.display()
    );
    let fault = StorageFault::new(FaultKind::NoRoom, path, sentence);
    Err(fault.helped_by("make room on that disk."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(blocks: u64, free: u64) -> StatVfs {
        let mut disk = fstatvfs(tempfile::tempfile().unwrap()).unwrap();
        (disk.f_frsize, disk.f_blocks, disk.f_bavail) = (4096, blocks, free);
        disk
    }

    #[test]
    fn a_file_that_would_take_the_room_of_the_log_is_refused() {
        let path = Path::new("/d/x.part");
        let disk = disk(1 << 30, 5120);
        let free = 5120 * 4096;
        for (leave, left) in [(Leave::Reserve, 16 << 20), (Leave::Meanwhile, 1 << 20)] {
            fits(&disk, path, free - left, leave).unwrap();
            for bytes in [free - left + 1, free, 1 << 60, u64::MAX] {
                let fault = fits(&disk, path, bytes, leave).unwrap_err();
                assert_eq!(fault.kind, FaultKind::NoRoom);
                assert_eq!(fault.help.as_deref(), Some("make room on that disk."));
                assert!(fault.sentence.contains("/d/x.part"), "{fault}");
            }
        }
    }

    #[test]
    fn a_file_leaves_a_sixteenth_of_a_small_disk() {
        for (blocks, reserve, meanwhile) in [
            (1 << 30, 16 << 20, 1 << 20),
            (1 << 16, 16 << 20, 1 << 20),
            (1 << 12, 1 << 20, 1 << 20),
            (1 << 10, 256 << 10, 256 << 10),
        ] {
            let disk = disk(blocks, 0);
            assert_eq!(Leave::Reserve.bytes(&disk), reserve);
            assert_eq!(Leave::Meanwhile.bytes(&disk), meanwhile);
        }
    }

    /// A disk of 128 MiB, 8 of them free, and a snapshot of 200 KB: only with it, something of
    /// the log can go.
    #[test]
    fn an_own_snapshot_may_use_the_reserve_of_the_log() {
        let disk = disk(128 << 8, 2048);
        let path = Path::new("/d/x.part");
        fits(&disk, path, 200_000, Leave::Meanwhile).unwrap();
        fits(&disk, path, 200_000, Leave::Reserve).unwrap_err();
        // One that is already larger than the one before goes on as long as the log has room.
        fits(&disk, path, 0, Leave::Meanwhile).unwrap();
    }
}
