//! Files that are either wholly old or wholly new after a power cut.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::fault::{FaultKind, IoContext as _, Result, StorageFault};

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

/// Opens a file, which may be absent, for reading. What has a plain file's name may be anything: a
/// pipe would be waited for, and a device read without end.
///
/// # Errors
/// `Damaged` when it is a pipe, a device, a socket or a directory; `Io` when it cannot be opened.
pub(crate) fn open_plain(path: &Path) -> Result<Option<File>> {
    let waits_for_nobody = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(waits_for_nobody)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return no_link(path).map(|()| None);
        }
        // Sockets, and devices that nothing stands behind.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(not_plain(path, "a socket or a device"));
        }
        Err(error) => return Err(error).context("open", path),
    };
    match what_else(file.metadata().context("read", path)?.file_type()) {
        None => Ok(Some(file)),
        Some(what) => Err(not_plain(path, what)),
    }
}

/// Opens for reading a file that has to be there; see [`open_plain`].
///
/// # Errors
/// As [`open_plain`]; `Io` when there is none.
pub(crate) fn open_existing(path: &Path) -> Result<File> {
    let absent = || StorageFault::io("open", path, &Errno::NOENT.into());
    open_plain(path)?.ok_or_else(absent)
}

/// Refuses what [`open_plain`] refuses, without opening it. That there is nothing is fine.
///
/// # Errors
/// `Damaged` when it is no file; `Io` when it cannot be looked at.
pub(crate) fn check_plain(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) => match what_else(found.file_type()) {
            None => Ok(()),
            Some(what) => Err(not_plain(path, what)),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => no_link(path),
        Err(error) => Err(error).context("look at", path),
    }
}

/// Refuses a link whose target is not there.
fn no_link(path: &Path) -> Result<()> {
    let Ok(target) = fs::read_link(path) else {
        return Ok(());
    };
    let sentence = format!("{} is a link to nothing", path.display());
    let help = format!("put {} back, or mount what it is on.", target.display());
    Err(StorageFault::new(FaultKind::Damaged, path, sentence).helped_by(help))
}

fn what_else(found: FileType) -> Option<&'static str> {
    match found {
        plain if plain.is_file() => None,
        found if found.is_dir() => Some("a directory"),
        found if found.is_fifo() => Some("a pipe"),
        found if found.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

fn not_plain(path: &Path, what: &str) -> StorageFault {
    let sentence = format!("{} is {what} where a file has to be", path.display());
    StorageFault::new(FaultKind::Damaged, path, sentence).helped_by("remove or rename it.")
}

/// The bytes of a file that may be absent. `limit` bounds what is read: the small files of a log
/// directory have no business being large. See [`open_plain`] for what is no file.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    use std::io::Read as _;
    let Some(file) = open_plain(path)? else {
        return Ok(None);
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
    fn what_is_no_file_is_refused_at_once_and_a_link_to_nothing_is_called_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        fs::create_dir(path("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
        for (name, word) in [
            ("fifo", "a pipe"),
            ("dir", "a directory"),
            ("zero", "a device"),
            ("link", "a link to nothing; put nowhere back"),
        ] {
            for refused in [
                open_plain(&path(name)).map(drop),
                open_existing(&path(name)).map(drop),
                check_plain(&path(name)),
            ] {
                let fault = refused.unwrap_err();
                assert_eq!(fault.kind, FaultKind::Damaged, "{fault}");
                assert!(fault.sentence.contains(word), "{fault}");
            }
        }
        assert!(open_plain(&path("absent")).unwrap().is_none());
        check_plain(&path("absent")).unwrap();
        let fault = open_existing(&path("absent")).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Io);
    }

    #[test]
    fn reading_an_absent_file_is_not_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_small(&dir.path().join("x"), 10).unwrap().is_none());
        remove(&dir.path().join("x")).unwrap();
    }
}
