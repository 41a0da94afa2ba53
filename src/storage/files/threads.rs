//! Threads of the disk.

use std::path::Path;
use std::thread::JoinHandle;

use crate::storage::fault::{Result, StorageFault};
use crate::storage::pace::Stop;

/// Starts a thread that works on `dir`.
pub(super) fn spawn(
    name: &str,
    dir: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| StorageFault::io("start the thread for", dir, &error))
}

/// A snapshot being written. Dropping it gives the snapshot up and waits for the thread, which so
/// never touches a directory that is not locked any more.
#[derive(Debug)]
pub(super) struct SnapshotThread {
    pub(super) stop: Option<Stop>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Drop for SnapshotThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
