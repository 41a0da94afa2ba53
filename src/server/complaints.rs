//! Warnings about peers that send garbage, counted and held back so that ten thousand bad
//! connections cannot flood the log.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Warnings written at once before they are held back.
const BURST: u32 = 20;
/// After that, one more in each of these.
const PERIOD: Duration = Duration::from_secs(1);

/// All complaints of one process.
#[derive(Debug)]
pub(crate) struct Complaints {
    total: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: u32,
    refilled: Instant,
    held_back: u64,
    last: String,
}

/// What becomes of one complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Say { held_back: u64 },
    HoldBack,
}

impl Complaints {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            total: AtomicU64::new(0),
            state: Mutex::new(State {
                tokens: BURST,
                refilled: now,
                held_back: 0,
                last: String::new(),
            }),
        }
    }

    /// How many there were since the start.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts a complaint and writes it unless too many were written lately.
    pub(crate) fn warn(&self, peer: SocketAddr, listener: &str, what: &dyn fmt::Display) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let text = format!("{peer} on listener {listener}: {what}");
        match self.decide(&text, Instant::now()) {
            Line::HoldBack => {}
            Line::Say { held_back: 0 } => tracing::warn!("closed the connection from {text}"),
            Line::Say { held_back } => tracing::warn!(
                "closed the connection from {text} ({held_back} more since the last such line)"
            ),
        }
    }

    /// Writes one line for what was held back, if there is any and time has passed.
    pub(crate) fn flush(&self) {
        let mut state = self.lock();
        state.refill(Instant::now());
        if state.held_back > 0 && state.tokens > 0 {
            state.tokens -= 1;
            let count = std::mem::take(&mut state.held_back);
            tracing::warn!(
                "closed {count} more bad connections, the last from {}",
                state.last
            );
        }
    }

    fn decide(&self, text: &str, now: Instant) -> Line {
        let mut state = self.lock();
        state.refill(now);
        if state.tokens == 0 {
            state.held_back += 1;
            text.clone_into(&mut state.last);
            return Line::HoldBack;
        }
        state.tokens -= 1;
        Line::Say {
            held_back: std::mem::take(&mut state.held_back),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic while the lock is held leaves only counters behind: go on with them.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn refill(&mut self, now: Instant) {
        let periods = now.saturating_duration_since(self.refilled).as_millis() / PERIOD.as_millis();
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        if periods > 0 {
            self.tokens = self.tokens.saturating_add(periods).min(BURST);
            self.refilled = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_held_back_and_counted_in_the_next_line() {
        let start = Instant::now();
        let complaints = Complaints::new(start);
        let said = (0..10_000)
            .filter(|_| complaints.decide("x", start) != Line::HoldBack)
            .count();
        assert_eq!(said, BURST as usize);
        assert_eq!(
            complaints.decide("x", start + PERIOD),
            Line::Say { held_back: 9980 }
        );
        assert_eq!(complaints.decide("x", start + PERIOD), Line::HoldBack);
    }

    #[test]
    fn quiet_time_gives_back_the_burst_and_no_more() {
        let start = Instant::now();
        let complaints = Complaints::new(start);
        let later = start + PERIOD * 1000;
        let said = (0..100)
            .filter(|_| complaints.decide("x", later) != Line::HoldBack)
            .count();
        assert_eq!(said, BURST as usize);
    }
}
