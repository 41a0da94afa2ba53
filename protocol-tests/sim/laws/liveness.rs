//! When the faults are over: within a bounded time there is a leader, what is proposed gets
//! committed, and every node has all of it and knows so.

use crate::law;

/// The bound was kept.
pub(crate) fn in_time(what: &str, kept: bool, state: impl FnOnce() -> String) {
    law!(kept, "not in time: {what}; {}", state());
}
