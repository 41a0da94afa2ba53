//! Room on the disk: what a file that can wait must leave for the log, which cannot.

use std::fs::File;
use std::path::Path;

use rustix::fs::{StatVfs, fstatvfs};

use super::fault::{FaultKind, Result, StorageFault};

/// What a snapshot leaves free on its disk, in bytes: the log goes on with that until somebody
/// makes room. Of a disk that is smaller than 256 MiB it is a sixteenth.
const RESERVE_BYTES: u64 = 16 << 20;

/// Refuses `bytes` more in `file`, whose name is `path`, if the reserve of the log would then not
/// be free on its disk. A file system that does not tell what is free refuses nothing here.
///
/// # Errors
/// `NoRoom`.
pub(crate) fn check(file: &File, path: &Path, bytes: u64) -> Result<()> {
    let Some(disk) = fstatvfs(file).ok().filter(|disk| disk.f_blocks > 0) else {
        return Ok(());
    };
    let (free, reserve) = (free_bytes(&disk), reserve_bytes(&disk));
    if free >= bytes.saturating_add(reserve) {
        return Ok(());
    }
    let sentence = format!(
        "Failed to write {}: it needs {bytes} more bytes and {reserve} have to stay free for the \
         log, but its disk has {free}",
        path.display()
    );
    let fault = StorageFault::new(FaultKind::NoRoom, path, sentence);
    Err(fault.helped_by("make room on that disk."))
}

/// What a process without privileges may use.
const fn free_bytes(disk: &StatVfs) -> u64 {
    disk.f_bavail.saturating_mul(disk.f_frsize)
}

fn reserve_bytes(disk: &StatVfs) -> u64 {
    RESERVE_BYTES.min(disk.f_blocks.saturating_mul(disk.f_frsize) / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_would_take_the_room_of_the_log_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let path = Path::new("/d/x.part");
        let mut disk = fstatvfs(&file).unwrap();
        for bytes in [free_bytes(&disk), 1 << 60, u64::MAX] {
            let fault = check(&file, path, bytes).unwrap_err();
            assert_eq!(fault.kind, FaultKind::NoRoom);
            assert_eq!(fault.help.as_deref(), Some("make room on that disk."));
            assert!(fault.sentence.contains("/d/x.part"), "{fault}");
        }
        disk.f_frsize = 4096;
        for (blocks, reserve) in [
            (1 << 30, 16 << 20),
            (1 << 16, 16 << 20),
            (1 << 10, 256 << 10),
        ] {
            disk.f_blocks = blocks;
            assert_eq!(reserve_bytes(&disk), reserve);
        }
    }
}
