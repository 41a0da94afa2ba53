//! Work that may take long, on threads beside the one that runs the core and the sockets.
//!
//! What a frame asks for is read, and its answer written, on the core's own thread as long as that
//! is cheaper than another thread's wake-up and nobody notices. Two kinds of requests are not like
//! that: large ones, which may have a hundred thousand items, and those whose answer lists whatever
//! there is of a kind.

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::api_table::{self, Api};
use super::connection::Closing;

/// A frame of up to this size is read and answered in about 0.1 ms, whatever is in it.
pub(crate) const SMALL_BYTES_MAX: usize = 16 * 1024;
/// More threads would only take turns with the core's.
const THREADS_MAX: usize = 2;

static THREADS: Semaphore = Semaphore::const_new(THREADS_MAX);

/// Whether a frame (without its length) is to be read beside the core.
pub(crate) fn may_take_long(frame: &[u8]) -> bool {
    let key = frame.first_chunk().map(|key| i16::from_be_bytes(*key));
    let api = key.and_then(api_table::find);
    frame.len() > SMALL_BYTES_MAX || api.is_some_and(Api::lists)
}

/// Does `work` on a thread of its own; a panic goes on in the caller.
///
/// # Errors
/// The process is about to end.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Closing> {
    let stops = || Closing::Quiet("the server stops".to_owned());
    let permit = THREADS.acquire().await.map_err(|_| stops())?;
    let work = spawn_blocking(move || {
        // Given back when the thread is free, also when nobody waits for the outcome any more.
        let _permit = permit;
        work()
    });
    work.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => stops(),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn small_requests_of_one_item_stay_and_lists_and_large_ones_go() {
        let frame = |key: i16, bytes: usize| {
            let mut frame = key.to_be_bytes().to_vec();
            frame.resize(bytes, 0);
            frame
        };
        for (key, bytes, long) in [
            (63, 40, false),
            (19, SMALL_BYTES_MAX, false),
            (19, SMALL_BYTES_MAX + 1, true),
            (32, 40, true),
            (-1, 40, false),
            (-1, SMALL_BYTES_MAX + 1, true),
        ] {
            assert_eq!(may_take_long(&frame(key, bytes)), long, "{key}, {bytes}");
        }
        assert!(!may_take_long(&[]));
    }

    #[tokio::test]
    async fn it_is_another_thread_and_a_panic_is_the_callers() {
        let here = thread::current().id();
        let there = run(|| thread::current().id()).await.unwrap();
        assert_ne!(there, here);
        let panics = tokio::spawn(run(|| panic!("as the test wants")));
        assert!(panics.await.expect_err("it panics").is_panic());
    }
}
