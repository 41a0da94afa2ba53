//! Why a directory cannot be used or a disk is given up: one kind and one sentence.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What sort of trouble it is. Tests and exit codes look at this, people read the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Bytes that do not mean what they must mean, with something of worth behind them.
    Damaged,
    /// A directory of another cluster or node, or two directories that contradict each other.
    Identity,
    /// The operating system refused a read, write, sync or rename.
    Io,
    /// Another process holds the directory.
    Locked,
    /// A file is gone that must be there.
    Missing,
    /// The disk or a quota is full, or what is free on it is kept for the log.
    NoRoom,
    /// The directory was never formatted.
    NotFormatted,
    /// A version that this release does not know.
    Unsupported,
}

/// A refusal or a failure: names the file, what was found, what was expected and what helps.
#[derive(Clone, Debug)]
pub struct StorageFault {
    /// The sort.
    pub kind: FaultKind,
    /// The file or directory that it is about.
    pub path: PathBuf,
    /// One sentence, complete in itself (it names the path where that helps).
    pub sentence: String,
    /// What helps, as the sentence says it at its end; `None` where nothing is told alone.
    pub help: Option<String>,
}

impl StorageFault {
    pub(crate) fn new(kind: FaultKind, path: &Path, sentence: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.to_path_buf(),
            sentence: sentence.into(),
            help: None,
        }
    }

    /// Ends the sentence, which has no full stop yet, with what helps, which has one.
    pub(crate) fn helped_by(mut self, help: impl Into<String>) -> Self {
        let help = help.into();
        self.sentence.push_str("; ");
        self.sentence.push_str(&help);
        self.help = Some(help);
        self
    }

    /// The operating system's refusal to `action` (an infinitive) the file at `path`.
    pub(crate) fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let cure = cure(error.kind());
        let sentence = format!("Failed to {action} {}: {error}", path.display());
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FaultKind::NoRoom,
            _ => FaultKind::Io,
        };
        Self::new(kind, path, sentence).helped_by(format!("{cure}."))
    }
}

/// What an operator does about a refusal of the operating system.
const fn cure(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as Kind;
    match kind {
        Kind::PermissionDenied => "give the user of this process the right to do that",
        Kind::ReadOnlyFilesystem => "mount the file system so that it can be written",
        Kind::StorageFull | Kind::QuotaExceeded => "make room on that disk",
        Kind::NotADirectory | Kind::IsADirectory | Kind::NotFound => {
            "correct the path, or put back what was there"
        }
        _ => "look at the disk and at the log of the operating system",
    }
}

impl fmt::Display for StorageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Error for StorageFault {}

/// What nearly everything in this room returns.
pub type Result<T> = std::result::Result<T, StorageFault>;

/// Turns an [`io::Error`] into a fault that names the action and the path.
pub(crate) trait IoContext<T> {
    fn context(self, action: &str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &str, path: &Path) -> Result<T> {
        self.map_err(|error| StorageFault::io(action, path, &error))
    }
}

impl<T> IoContext<T> for std::result::Result<T, rustix::io::Errno> {
    fn context(self, action: &str, path: &Path) -> Result<T> {
        self.map_err(|error| StorageFault::io(action, path, &error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_holds_makes_no_sentence_long() {
        use crate::storage::quorum_state;
        use crate::storage::{commit_file, epoch_checkpoint, meta_properties, partition_metadata};

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for filling in ["x", "\0", "\u{1b}", "日"] {
            let long = filling.repeat(1 << 20);
            for head in [
                "",
                "version=",
                "version=1\nnode.id=",
                "version=1\ndirectory.id=",
                "version=1\ncluster.id=",
                "version=1\ncluster.id=node.id=",
                "version: ",
                "version: 0\ntopic_id: ",
                "{\"data_version\":",
                "{\"",
            ] {
                // As much as the readers take of a small file.
                for bytes in [1 << 20, 2000] {
                    let mut text = format!("{head}{long}").into_bytes();
                    text.truncate(bytes);
                    std::fs::write(&path, text).unwrap();
                    let faults = [
                        meta_properties::MetaProperties::read(&path).err(),
                        partition_metadata::check(&path).err(),
                        quorum_state::read(&path).err(),
                        commit_file::read(&path).err(),
                        epoch_checkpoint::read(&path).err(),
                    ];
                    for fault in faults.into_iter().flatten() {
                        let said = fault.sentence.replace(path.to_str().unwrap(), "");
                        assert!(said.len() < 700, "{head}: {} bytes: {fault}", said.len());
                        let help = fault.help.as_ref().expect("fsck tells it");
                        assert!(said.ends_with(help.as_str()), "{fault}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_refusal_of_the_operating_system_says_what_helps() {
        for (kind, words) in [
            (io::ErrorKind::PermissionDenied, "the right to do that."),
            (io::ErrorKind::StorageFull, "make room on that disk."),
            (io::ErrorKind::Other, "of the operating system."),
        ] {
            let fault = StorageFault::io("read", Path::new("/d/x: y; z"), &kind.into());
            assert!(fault.sentence.starts_with("Failed to read /d/x: y; z: "));
            assert!(fault.sentence.ends_with(words), "{fault}");
            assert!(fault.help.unwrap().ends_with(words));
        }
    }
}
