//! Lines for stderr: nobody waits for who reads them.
//!
//! A pipe whose reader hangs blocks every write to it. So one thread writes, and the others only
//! add to what is pending. What has no room there is dropped, and the log tells how much once the
//! writer gets on. At its end the process waits for the writer, but not for long.
//!
//! Not `tracing-appender`: its guard is its only flush, waits 0.1 s for room in the queue and tells
//! on stdout that there was none, and what does not come from the log cannot be put behind it.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// So many bytes may be pending before log lines are dropped.
const PENDING_BYTES_MAX: usize = 4 << 20;

/// The same for what is said outside of the log: panics, and why the process ends.
const SAID_BYTES_MAX: usize = 2 * PENDING_BYTES_MAX;

/// How long the writer is waited for at the end of the process and after a panic.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

static STDERR: Lines = Lines::new();

/// Starts the writer, for the rest of the process. Panics are told through it too.
///
/// # Errors
/// The system gives no thread.
pub fn start() -> io::Result<()> {
    let write = || {
        let mut stderr = io::stderr();
        loop {
            STDERR.write_pending(&mut stderr, |dropped| {
                tracing::error!("{dropped} log lines were dropped: stderr did not take them");
            });
        }
    };
    let name = "kraftd-stderr".to_owned();
    thread::Builder::new().name(name).spawn(write)?;
    STDERR.lock().has_writer = true;
    std::panic::set_hook(Box::new(tell_of_panic));
    Ok(())
}

/// A log line's way to stderr: each write is one line.
#[derive(Debug)]
pub struct LogLine;

impl Write for LogLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        STDERR.add(line, PENDING_BYTES_MAX);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says something behind the log lines so far. In a process without a writer this writes at once.
pub fn say(text: &str) {
    let line = format!("{text}\n");
    if STDERR.lock().has_writer {
        STDERR.add(line.as_bytes(), SAID_BYTES_MAX);
    } else {
        // Where nobody reads stderr, nobody misses it.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// Waits until all is written, for 2 s at most.
pub fn flush() {
    STDERR.flush(FLUSH_PATIENCE);
}

/// Ends the process without its threads; what is pending is written before, if stderr takes it.
pub(super) fn exit(code: i32) -> ! {
    flush();
    std::process::exit(code)
}

/// An abort may follow, so this waits for the writer.
fn tell_of_panic(panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    say(&format!("thread '{name}' {panic}"));
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        say(&trace.to_string());
    }
    flush();
}

/// Lines on their way from all threads to the one that writes them.
struct Lines {
    pending: Mutex<Pending>,
    changed: Condvar,
}

struct Pending {
    bytes: Vec<u8>,
    /// Lines that found no room behind `bytes`.
    dropped: u64,
    /// Some that were taken are not yet written.
    is_writing: bool,
    has_writer: bool,
}

impl Lines {
    const fn new() -> Self {
        let pending = Pending {
            bytes: Vec::new(),
            dropped: 0,
            is_writing: false,
            has_writer: false,
        };
        Self {
            pending: Mutex::new(pending),
            changed: Condvar::new(),
        }
    }

    /// Held for moments only, never while something is written.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, or drops it when `bytes_max` are pending.
    fn add(&self, line: &[u8], bytes_max: usize) {
        let mut pending = self.lock();
        if pending.bytes.len() < bytes_max {
            pending.bytes.extend_from_slice(line);
        } else {
            pending.dropped += 1;
        }
        drop(pending);
        self.changed.notify_all();
    }

    /// Waits for lines and writes them; `tell` is called when some behind them were dropped.
    fn write_pending(&self, out: &mut impl Write, tell: impl FnOnce(u64)) {
        let nothing = |pending: &mut Pending| pending.bytes.is_empty();
        let pending = self.changed.wait_while(self.lock(), nothing);
        let mut pending = pending.unwrap_or_else(PoisonError::into_inner);
        pending.is_writing = true;
        let bytes = std::mem::take(&mut pending.bytes);
        let dropped = std::mem::take(&mut pending.dropped);
        drop(pending);
        // One by one: a short write to a pipe that others write to as well is not torn apart.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A full disk under the log, or a reader that is gone, must not end a controller.
            let _ = out.write_all(line);
        }
        if dropped > 0 {
            tell(dropped);
        }
        self.lock().is_writing = false;
        self.changed.notify_all();
    }

    /// Waits until all is written, but no longer than `patience`.
    fn flush(&self, patience: Duration) {
        let under_way = |pending: &mut Pending| pending.is_writing || !pending.bytes.is_empty();
        // What is not written by then stays unwritten.
        let _ = self
            .changed
            .wait_timeout_while(self.lock(), patience, under_way);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    fn fill(lines: &Lines, count: usize) {
        for number in 0..count {
            lines.add(format!("{number}\n").as_bytes(), 6);
        }
    }

    #[test]
    fn lines_without_room_are_dropped_and_their_number_is_told_behind_those_before() {
        let lines = Lines::new();
        fill(&lines, 5);
        lines.add(b"why it ends\n", 12);
        let (mut out, mut told) = (Vec::new(), 0);
        lines.write_pending(&mut out, |dropped| told = dropped);
        assert_eq!(out, b"0\n1\n2\nwhy it ends\n");
        assert_eq!(told, 2);
        fill(&lines, 1);
        lines.write_pending(&mut out, |dropped| panic!("{dropped} are told again"));
        assert_eq!(out, b"0\n1\n2\nwhy it ends\n0\n");
    }

    /// A pipe whose reader takes a line when the test says so.
    struct Slow {
        came: Sender<Vec<u8>>,
        go_on: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.came.send(line.to_vec()).unwrap();
            self.go_on.recv().unwrap();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_hangs_but_a_flush_and_that_not_for_long() {
        let lines = Lines::new();
        let (came, arrived) = channel();
        let (go, go_on) = channel();
        let mut out = Slow { came, go_on };
        thread::scope(|scope| {
            scope.spawn(|| lines.write_pending(&mut out, |_| {}));
            fill(&lines, 1);
            assert_eq!(arrived.recv().unwrap(), b"0\n");
            fill(&lines, 9);
            lines.flush(Duration::from_millis(1));
            assert!(lines.lock().is_writing);
            assert_eq!(lines.lock().dropped, 6);
            go.send(()).unwrap();
        });
        let mut out = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| lines.write_pending(&mut out, |_| {}));
            lines.flush(Duration::from_secs(60));
        });
        assert_eq!(out, b"0\n1\n2\n");
    }
}
