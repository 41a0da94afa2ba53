//! Replies that wait for an offset.

use std::collections::VecDeque;

use crate::types::{Offset, Ticket};

/// Replies in the order in which they were decided; their offsets never fall.
pub(crate) struct Deferred<R> {
    queue: VecDeque<(Offset, Ticket, R)>,
}

impl<R> Default for Deferred<R> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
        }
    }
}

/// Replies held at most. Peers that go away leave theirs here until the disk is done, so the bound
/// on open requests of a connection bounds nothing.
const REPLIES_MAX: usize = 10_000;

impl<R> Deferred<R> {
    /// True when new work has to be refused for a while.
    pub(crate) fn full(&self) -> bool {
        self.queue.len() >= REPLIES_MAX
    }

    /// Holds `reply` until every record below `end` (exclusive) is committed.
    pub(crate) fn push(&mut self, end: Offset, ticket: Ticket, reply: R) {
        debug_assert!(self.queue.back().is_none_or(|(last, ..)| *last <= end));
        self.queue.push_back((end, ticket, reply));
    }

    /// The next reply that a commit up to `commit` (exclusive) lets go.
    pub(crate) fn pop(&mut self, commit: Offset) -> Option<(Ticket, R)> {
        if self.queue.front()?.0 > commit {
            return None;
        }
        self.queue
            .pop_front()
            .map(|(_, ticket, reply)| (ticket, reply))
    }

    /// All tickets that still wait, oldest first: leadership is lost and they are to be told.
    pub(crate) fn drain(&mut self) -> Vec<Ticket> {
        self.queue.drain(..).map(|(_, ticket, _)| ticket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_leaves_at_its_offset_and_not_before() {
        let mut deferred = Deferred::default();
        deferred.push(Offset(5), Ticket(1), 'a');
        deferred.push(Offset(5), Ticket(2), 'b');
        deferred.push(Offset(7), Ticket(3), 'c');
        assert_eq!(deferred.pop(Offset(4)), None);
        assert_eq!(deferred.pop(Offset(5)), Some((Ticket(1), 'a')));
        assert_eq!(deferred.pop(Offset(6)), Some((Ticket(2), 'b')));
        assert_eq!(deferred.pop(Offset(6)), None);
        assert_eq!(deferred.drain(), [Ticket(3)]);
    }
}
