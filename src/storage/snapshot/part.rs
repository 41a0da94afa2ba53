//! A snapshot's file before it has its name.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::storage::atomic;
use crate::storage::fault::{IoContext as _, Result};

/// Where the file is. Dropping this deletes it, unless it got its name.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    is_named: bool,
}

impl Part {
    /// Begins an empty file; one that was left there is deleted.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(super) fn create(path: PathBuf) -> Result<(Self, File)> {
        atomic::remove(&path)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .context("create", &path)?;
        let is_named = false;
        Ok((Self { path, is_named }, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the whole `file`, which is this one, durable and read-only, and gives it its `name`,
    /// which the sync of the directory makes durable. A fault leaves no file.
    ///
    /// # Errors
    /// When anything of that fails.
    pub(super) fn finish(mut self, file: &File, name: &Path) -> Result<()> {
        file.sync_all().context("sync", &self.path)?;
        file.set_permissions(Permissions::from_mode(0o400))
            .context("make read-only", &self.path)?;
        std::fs::rename(&self.path, name).context("rename", &self.path)?;
        self.is_named = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_named {
            // One that stays is removed at the next start.
            drop(std::fs::remove_file(&self.path));
        }
    }
}
