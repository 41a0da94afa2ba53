//! Files that were taken out of use and are deleted after a while: whoever copies the directory, or
//! still reads them, has time to end. What is left when the process ends goes at the next start.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::storage::atomic;

/// Files with the time at which they go.
#[derive(Debug, Default)]
pub(super) struct RetiredFiles(Vec<(Instant, PathBuf)>);

impl RetiredFiles {
    /// Lets the files go after `delay` from `now`.
    pub(super) fn add(&mut self, files: Vec<PathBuf>, now: Instant, delay: Duration) {
        self.0
            .extend(files.into_iter().map(|file| (now + delay, file)));
    }

    /// When the next of them goes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Deletes what is due. That it cannot be deleted harms nothing: the next start tries again.
    pub(super) fn delete_due(&mut self, now: Instant) {
        self.0.retain(|(at, file)| {
            if *at > now {
                return true;
            }
            match atomic::remove(file) {
                Ok(()) => info!(file = %file.display(), "deleted"),
                Err(fault) => warn!("{fault} The next start tries again"),
            }
            false
        });
    }
}
