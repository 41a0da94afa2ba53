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
}

impl StorageFault {
    pub(crate) fn new(kind: FaultKind, path: &Path, sentence: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.to_path_buf(),
            sentence: sentence.into(),
        }
    }

    /// The operating system's refusal to `action` (an infinitive) the file at `path`.
    pub(crate) fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let sentence = format!("Failed to {action} {}: {error}.", path.display());
        Self::new(FaultKind::Io, path, sentence)
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
