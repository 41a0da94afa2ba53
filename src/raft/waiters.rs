//! Fetches that wait for something to answer (KIP-595, long poll).
//!
//! A fetch waits only when it asks for the log's end, so every append answers all of them, and so
//! does every advance of the commit offset (the replicas learn it without waiting for their poll
//! time). What is left to order by is the deadline.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{Instant, Ticket};

use super::input::FetchRequest;

/// Fetches held at most; one more is answered at once. Every broker and voter holds one.
const WAITERS_MAX: usize = 10_000;

/// One parked fetch.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) listener: Arc<str>,
    pub(super) request: FetchRequest,
}

/// All parked fetches.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters(BTreeMap<(Instant, Ticket), Waiter>);

impl Waiters {
    /// Holds a fetch until `deadline`. Given back if there are too many already.
    pub(super) fn park(&mut self, deadline: Instant, waiter: Waiter) -> Result<(), Waiter> {
        if self.0.len() >= WAITERS_MAX {
            return Err(waiter);
        }
        self.0.insert((deadline, waiter.ticket), waiter);
        Ok(())
    }

    /// When the first one has waited long enough.
    pub(super) fn deadline(&self) -> Instant {
        self.0
            .first_key_value()
            .map_or(Instant::NEVER, |((deadline, _), _)| *deadline)
    }

    /// Lets go of those whose time has come, the longest overdue first.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Waiter> {
        let later = self.0.split_off(&(now.plus_ms(1), Ticket(0)));
        std::mem::replace(&mut self.0, later)
            .into_values()
            .collect()
    }

    /// Lets go of all.
    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.0).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{NodeId, ReplicaKey, Uuid};

    fn waiter(ticket: u64) -> Waiter {
        Waiter {
            ticket: Ticket(ticket),
            listener: "CONTROLLER".into(),
            request: FetchRequest {
                cluster_id: None,
                replica: ReplicaKey {
                    id: NodeId(2),
                    directory: Uuid::nil(),
                },
                current_leader_epoch: 1,
                fetch_offset: 0,
                last_fetched_epoch: 0,
                high_watermark: -1,
                max_wait_ms: 500,
                max_bytes: 1,
            },
        }
    }

    #[test]
    fn only_fetches_whose_deadline_has_come_are_let_go() {
        let mut waiters = Waiters::default();
        for (deadline, ticket) in [(30, 1), (10, 2), (20, 3), (20, 4)] {
            waiters.park(Instant(deadline), waiter(ticket)).unwrap();
        }
        assert_eq!(waiters.deadline(), Instant(10));
        let due: Vec<u64> = waiters
            .take_due(Instant(20))
            .iter()
            .map(|w| w.ticket.0)
            .collect();
        assert_eq!(due, [2, 3, 4]);
        assert_eq!(waiters.deadline(), Instant(30));
        assert_eq!(waiters.take_all().len(), 1);
        assert_eq!(waiters.deadline(), Instant::NEVER);
    }

    #[test]
    fn one_fetch_too_many_is_given_back() {
        let mut waiters = Waiters::default();
        for ticket in 0..WAITERS_MAX as u64 {
            waiters.park(Instant(1), waiter(ticket)).unwrap();
        }
        assert!(waiters.park(Instant(1), waiter(u64::MAX)).is_err());
    }
}
