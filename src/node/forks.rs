//! Images ahead of the commit, one for each appended batch of records.
//!
//! The working image runs ahead of what is committed. After each appended batch a fork (an O(1)
//! clone) is remembered with the batch's end; a commit pops the forks that it covers and the last
//! popped one is what may be published. Losing leadership drops them all.

use std::collections::VecDeque;

use super::apply::Replayer;
use crate::types::Offset;

struct Fork {
    bytes: usize,
    state: Replayer,
}

/// What a commit brought.
pub(super) struct Committed {
    /// The newest image that is committed now.
    pub(super) state: Replayer,
    /// The bytes of all batches that the commit covers.
    pub(super) bytes: usize,
}

/// Forks in the order of their ends.
#[derive(Default)]
pub(crate) struct Forks {
    queue: VecDeque<Fork>,
    bytes: usize,
}

impl Forks {
    /// More appended and uncommitted batches than this refuse new work with a retriable error.
    pub(crate) const COUNT_MAX: usize = 1_000;
    /// The same in bytes of encoded batches.
    pub(crate) const BYTES_MAX: usize = 64 << 20;

    /// More bytes than this keep work that nobody waits for back: what it changes is held twice
    /// until it is committed.
    const BUSY_BYTES: usize = 4 << 20;

    /// Remembers the image behind a batch that took `bytes`.
    pub(super) fn push(&mut self, bytes: usize, state: Replayer) {
        debug_assert!(self.pending().is_none_or(|last| last < state.end));
        self.bytes += bytes;
        self.queue.push_back(Fork { bytes, state });
    }

    /// Pops all forks that end at or below `commit` (exclusive) and gives the newest of them.
    pub(super) fn commit(&mut self, commit: Offset) -> Option<Committed> {
        let mut newest = None;
        let mut bytes = 0;
        while self
            .queue
            .front()
            .is_some_and(|fork| fork.state.end <= commit)
        {
            if let Some(fork) = self.queue.pop_front() {
                self.bytes -= fork.bytes;
                bytes += fork.bytes;
                newest = Some(Committed {
                    state: fork.state,
                    bytes,
                });
            }
        }
        newest
    }

    /// The image behind the newest uncommitted batch.
    pub(super) fn newest(&self) -> Option<&Replayer> {
        self.queue.back().map(|fork| &fork.state)
    }

    /// The end of the newest uncommitted batch: what a reply without records waits for.
    pub(crate) fn pending(&self) -> Option<Offset> {
        self.newest().map(|state| state.end)
    }

    /// True when new work has to be refused for a while.
    pub(crate) fn full(&self) -> bool {
        self.queue.len() >= Self::COUNT_MAX || self.bytes >= Self::BYTES_MAX
    }

    /// True when work that nobody waits for is to be put off.
    pub(crate) fn busy(&self) -> bool {
        self.full() || self.bytes >= Self::BUSY_BYTES
    }

    /// Forgets all of them: leadership is lost.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }
}
