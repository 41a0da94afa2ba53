//! The thread that runs the core: the process's first one.
//!
//! It loads the image too. The C library gives each thread an area of memory of its own, and what
//! is freed in the area of another thread is not used again by this one. The core goes on changing
//! the image for as long as the process runs; loaded elsewhere, a million partitions would in time
//! be kept twice. And the first thread's area grows in large steps, those of others page by page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Gives work to the core's thread, which does one after the other.
pub(super) struct CoreThread(Sender<Work>);

/// The other side: whoever [`Self::run`]s it is the core's thread.
pub(super) struct Seat(Receiver<Work>);

/// Both sides.
pub(super) fn seat() -> (CoreThread, Seat) {
    let (sender, receiver) = channel();
    (CoreThread(sender), Seat(receiver))
}

impl CoreThread {
    /// Has the thread do `work`. What comes back is an error when that panicked.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (tell, done) = oneshot::channel();
        // Nobody is left to hear it only when the process is ending anyway.
        let work = move || drop(tell.send(work()));
        // The thread stays until this side is dropped.
        drop(self.0.send(Box::new(work)));
        done
    }
}

impl Seat {
    /// Does what is given, until the other side is dropped.
    pub(super) fn run(self) {
        while let Ok(work) = self.0.recv() {
            // Whoever waits for work that panicked hears of it: the answer will never come.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_order_and_a_panic_is_told_to_the_one_who_waits() {
        let (thread, seat) = seat();
        let first = thread.run(|| 1);
        let second = thread.run(|| -> i32 { panic!("as the test wants") });
        let third = thread.run(|| 3);
        drop(thread);
        seat.run();
        assert_eq!(first.blocking_recv(), Ok(1));
        assert!(second.blocking_recv().is_err());
        assert_eq!(third.blocking_recv(), Ok(3));
    }
}
