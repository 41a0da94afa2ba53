//! The one place that reads the clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::types::{Instant, Now, Timestamp};

/// Both clocks, as plain numbers for the core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// A clock whose monotonic side starts at 0 now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock for everybody"
    )]
    pub(super) fn start() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }

    /// The present moment.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock for everybody"
    )]
    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Now {
            instant: Instant(milliseconds(self.start.elapsed())),
            wall: Timestamp(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
