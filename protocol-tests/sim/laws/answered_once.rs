//! Every request gets at most one answer, and exactly one before the world comes to rest, unless
//! the process that had it died.

use std::collections::BTreeSet;

use kraftd::types::Ticket;

use crate::law;

/// The requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Law {
    open: BTreeSet<Ticket>,
}

impl Law {
    pub(crate) fn asked(&mut self, ticket: Ticket) {
        self.open.insert(ticket);
    }

    pub(crate) fn answered(&mut self, ticket: Ticket) {
        law!(
            self.open.remove(&ticket),
            "t{} was not asked, or is answered again",
            ticket.0
        );
    }

    pub(crate) fn process_died(&mut self) {
        self.open.clear();
    }

    /// Nothing that was asked before `oldest` may still wait.
    pub(crate) fn at_rest(&self, oldest: Ticket) {
        let stuck = self.open.first().filter(|ticket| **ticket < oldest);
        law!(stuck.is_none(), "{stuck:?} was never answered");
    }
}
