//! Files that are either wholly old or wholly new after a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::fault::{IoContext as _, Result};

/// The name under which [`replace`] writes: the target's with `.tmp` behind it, as Java's.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// Replaces the file at `path`: write a temporary, sync it, rename it, sync the directory.
///
/// # Errors
/// When any of these fails; the old file, if any, is then still whole.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = temporary(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&temporary)
        .context("create", &temporary)?;
    file.write_all(bytes).context("write", &temporary)?;
    file.sync_all().context("sync", &temporary)?;
    drop(file);
    rename(&temporary, path)
}

/// Renames `from` to `to` in the same directory and syncs the directory.
///
/// # Errors
/// When either fails.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).context("rename", from)?;
    sync_parent(to)
}

/// Makes the names in `dir` durable.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .context("sync directory", dir)
}

/// Makes the name of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => sync_dir(dir),
        _ => sync_dir(Path::new(".")),
    }
}

/// Removes a file; that there is none is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("delete", path)
        }
        _ => Ok(()),
    }
}

/// The bytes of a file that may be absent. `limit` bounds what is read: the small files of a log
/// directory have no business being large.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    use std::io::Read as _;
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.context("open", path)?,
    };
    let mut bytes = Vec::new();
    file.take(limit)
        .read_to_end(&mut bytes)
        .context("read", path)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("quorum-state");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_replacement_keeps_the_old_file_and_names_the_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("quorum-state");
        replace(&path, b"one").unwrap();
        fs::create_dir(temporary(&path)).unwrap();
        let fault = replace(&path, b"two").unwrap_err();
        assert!(fault.sentence.contains("quorum-state.tmp"), "{fault}");
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn reading_an_absent_file_is_not_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_small(&dir.path().join("x"), 10).unwrap().is_none());
        remove(&dir.path().join("x")).unwrap();
    }
}
