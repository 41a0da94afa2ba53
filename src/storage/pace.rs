//! The pace at which a snapshot is written beside the log, and the word that gives it up.
//!
//! Nobody waits for a snapshot, but everybody for the log: a sync of the log has to wait for what
//! the file system has not yet written of a large file, and with few cores a request waits for the
//! one that encodes. So what was written is sent on to the disk in portions, and there is a pause
//! behind each of them.

use std::convert::Infallible;
use std::fs::File;
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

/// Bytes between two pauses.
const PORTION_BYTES: u64 = 1 << 20;
/// Three times as long as a portion takes: what a million partitions need is written in 2 seconds.
const PAUSE: Duration = Duration::from_millis(10);

/// Gives the snapshot up when it is dropped.
#[derive(Debug)]
pub(crate) struct Stop(#[expect(dead_code, reason = "its end is the word")] Sender<Infallible>);

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Pace {
    stop: Receiver<Infallible>,
    /// Bytes of the file at the last pause.
    sent: u64,
}

/// The two sides, for one snapshot.
pub(crate) fn pace() -> (Stop, Pace) {
    let (sender, stop) = channel();
    let pace = Pace { stop, sent: 0 };
    (Stop(sender), pace)
}

impl Pace {
    /// Whether the snapshot is given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Whether a portion is full when `bytes` of the file were written.
    pub(super) const fn is_due(&self, bytes: u64) -> bool {
        bytes - self.sent >= PORTION_BYTES
    }

    /// Sends the last portion on, without waiting for the disk, and pauses. True when the snapshot
    /// is given up.
    pub(super) fn pause(&mut self, file: &File, bytes: u64) -> bool {
        // What the system does not do for the advice, the sync at the end does.
        let length = NonZeroU64::new(bytes - self.sent);
        let _ = fadvise(file, self.sent, length, Advice::DontNeed);
        self.sent = bytes;
        self.stop.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_stop_gives_up_and_ends_a_pause() {
        let (stop, mut pace) = pace();
        let file = tempfile::tempfile().unwrap();
        assert!(!pace.is_due(PORTION_BYTES - 1));
        assert!(pace.is_due(PORTION_BYTES));
        assert!(!pace.pause(&file, PORTION_BYTES));
        assert!(!pace.is_due(PORTION_BYTES + 1));
        assert!(!pace.is_given_up());
        drop(stop);
        assert!(pace.is_given_up());
        assert!(pace.pause(&file, 2 * PORTION_BYTES));
    }
}
