//! The `.lock` file that keeps two processes out of one log directory.
//!
//! Java's `FileChannel.lock` is an fcntl lock of the whole file, so this is one too (flock does not
//! conflict with it). An fcntl lock belongs to the process, not to the descriptor: a second lock by
//! the same process succeeds, and closing any descriptor of the file loses it. Hence the table of
//! directories that this process holds, and nobody else here opens the file.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Access, FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};

use super::atomic;
use super::fault::{FaultKind, IoContext as _, Result, StorageFault};

/// The name of the lock file in a log directory.
pub const LOCK_FILE: &str = ".lock";

static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A log directory that nobody else uses. Dropping it gives the directory free and deletes the lock
/// file, like Java's clean stop.
#[derive(Debug)]
pub struct DirLock {
    path: PathBuf,
    /// The directory without links, as it stands in [`HELD`].
    held: PathBuf,
    /// Holds the lock while it is open.
    _file: File,
}

impl DirLock {
    /// Locks `dir`, which must exist.
    ///
    /// # Errors
    /// `Locked` when this or another process has it.
    pub fn acquire(dir: &Path) -> Result<Self> {
        let held = dir.canonicalize().context("open directory", dir)?;
        {
            let mut table = HELD.lock().unwrap_or_else(PoisonError::into_inner);
            if !table.insert(held.clone()) {
                return Err(taken(dir));
            }
        }
        let path = dir.join(LOCK_FILE);
        match lock_file(dir, &path) {
            Ok(file) => Ok(Self {
                path,
                held,
                _file: file,
            }),
            Err(fault) => {
                release(&held);
                Err(fault)
            }
        }
    }
}

/// Whether a process, this one or another, holds `dir`. The file is neither locked nor changed.
///
/// # Errors
/// When the directory cannot be read, or the name is not that of a file (`Damaged`); a lock file
/// that this user may not open counts as held.
pub fn is_held(dir: &Path) -> Result<bool> {
    let known = dir.canonicalize().context("open directory", dir)?;
    // Closing a descriptor of the file would lose a lock that this process has.
    let table = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if table.contains(&known) {
        return Ok(true);
    }
    let path = dir.join(LOCK_FILE);
    // Asked before it is opened: a lock file that this user may not open is no fault.
    if rustix::fs::access(&path, Access::READ_OK) == Err(Errno::ACCESS) {
        return Ok(true);
    }
    let Some(file) = atomic::open_plain(&path)? else {
        return Ok(false);
    };
    let whole = Flock::from(FlockType::WriteLock);
    let holder = fcntl_getlk(&file, &whole).context("look at the lock of", &path)?;
    Ok(holder.is_some())
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Deleted while it is still locked: nobody can get in between and lose his own file. A
        // failure leaves an unlocked file behind, which hinders nobody.
        drop(std::fs::remove_file(&self.path));
        release(&self.held);
    }
}

fn release(held: &Path) {
    HELD.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(held);
}

/// Opens and locks the file, and makes sure that it is still the one under that name: its holder
/// may have deleted it between our open and our lock.
fn lock_file(dir: &Path, path: &Path) -> Result<File> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .context("create", path)?;
        if !file.metadata().context("read", path)?.is_file() {
            let sentence = format!("{} is not a file", path.display());
            let fault = StorageFault::new(FaultKind::Damaged, path, sentence);
            return Err(fault.helped_by("remove it."));
        }
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(taken(dir)),
            Err(error) => return Err(error).context("lock", path),
        }
        let ours = file.metadata().context("read", path)?;
        match std::fs::metadata(path) {
            Ok(named) if named.ino() == ours.ino() && named.dev() == ours.dev() => return Ok(file),
            // Deleted or replaced: the lock on the nameless file is worth nothing.
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context("read", path),
        }
    }
}

fn taken(dir: &Path) -> StorageFault {
    let sentence = format!(
        "Failed to acquire lock on file .lock in {}. A Kafka instance in another process or \
         thread is using this directory; stop that process first.",
        dir.display()
    );
    StorageFault::new(FaultKind::Locked, dir, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_locked_once_and_again_after_release() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::acquire(dir.path()).unwrap();
        let second = DirLock::acquire(dir.path()).unwrap_err();
        assert_eq!(second.kind, FaultKind::Locked);
        assert!(dir.path().join(LOCK_FILE).exists());
        drop(first);
        assert!(!dir.path().join(LOCK_FILE).exists());
        drop(DirLock::acquire(dir.path()).unwrap());
    }

    #[test]
    fn a_file_left_by_a_killed_process_hinders_nobody() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOCK_FILE), b"").unwrap();
        drop(DirLock::acquire(dir.path()).unwrap());
    }

    /// The lock must be of the kind that other processes see: Python's `lockf` is fcntl, as Java's.
    #[test]
    fn another_process_sees_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let script = "import fcntl,sys\nf=open(sys.argv[1],'r+')\n\
                      fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)";
        let run = |path: &Path| {
            std::process::Command::new("python3")
                .args(["-c", script])
                .arg(path)
                .stderr(std::process::Stdio::null())
                .status()
        };
        let lock = DirLock::acquire(dir.path()).unwrap();
        let path = dir.path().join(LOCK_FILE);
        let Ok(status) = run(&path) else {
            return; // No python3 here; the compatibility tests prove it with Java.
        };
        assert!(!status.success());
        drop(lock);
        std::fs::write(&path, b"").unwrap();
        assert!(run(&path).unwrap().success());
    }

    #[test]
    fn who_holds_a_directory_is_seen_without_taking_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_held(dir.path()).unwrap());
        let lock = DirLock::acquire(dir.path()).unwrap();
        assert!(is_held(dir.path()).unwrap());
        drop(lock);
        let path = dir.path().join(LOCK_FILE);
        std::fs::write(&path, b"").unwrap();
        assert!(!is_held(dir.path()).unwrap());
        let script = "import fcntl,sys\nf=open(sys.argv[1],'r+')\n\
                      fcntl.lockf(f,fcntl.LOCK_EX)\nprint('held',flush=True)\nsys.stdin.read()";
        let other = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let Ok(mut other) = other else {
            return; // No python3 here.
        };
        let mut said = [0; 4];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
        assert!(is_held(dir.path()).unwrap());
        drop(other.stdin.take());
        other.wait().unwrap();
        assert!(!is_held(dir.path()).unwrap());
        assert!(path.exists());
    }
}
