//! Room on the disk: what a file that can wait must leave for the log, which cannot.

use std::fs::File;
use std::path::Path;

use rustix::fs::{StatVfs, fstatvfs};

use super::fault::{FaultKind, Result, StorageFault};

/// What a snapshot leaves free on its disk, in bytes: the log goes on with that until somebody
/// makes room.
pub(crate) const RESERVE_BYTES: u64 = 16 << 20;

/// Refuses `bytes` more in `file`, whose name is `path`, if fewer than `reserve_bytes` would then
/// be free on its disk. A file system that does not tell what is free refuses nothing here.
///
/// # Errors
/// `NoRoom`.
pub(crate) fn check(file: &File, path: &Path, bytes: u64, reserve_bytes: u64) -> Result<()> {
    let free = fstatvfs(file).ok().as_ref().and_then(free_bytes);
    let Some(free) = free.filter(|free| *free < bytes.saturating_add(reserve_bytes)) else {
        return Ok(());
    };
    let sentence = format!(
        "Failed to write {}: it needs {bytes} more bytes and {reserve_bytes} have to stay free for \
         the log, but its disk has {free}",
        path.display()
    );
    let fault = StorageFault::new(FaultKind::NoRoom, path, sentence);
    Err(fault.helped_by("make room on that disk."))
}

/// What a process without privileges may use.
fn free_bytes(disk: &StatVfs) -> Option<u64> {
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_would_take_the_room_of_the_log_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let path = Path::new("/d/x.part");
        check(&file, path, 1, 0).unwrap();
        for (bytes, reserve) in [(1 << 60, 0), (0, 1 << 60), (u64::MAX, u64::MAX)] {
            let fault = check(&file, path, bytes, reserve).unwrap_err();
            assert_eq!(fault.kind, FaultKind::NoRoom);
            assert_eq!(fault.help.as_deref(), Some("make room on that disk."));
            assert!(fault.sentence.contains("/d/x.part"), "{fault}");
        }
    }
}
