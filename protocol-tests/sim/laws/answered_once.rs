//! Every request gets at most one answer of the process that it reached, and exactly one before the
//! world comes to rest, unless that process died.

use std::collections::BTreeMap;

use kraftd::types::Ticket;

use crate::law;

/// The requests that wait, each with the node that has it.
#[derive(Debug, Default)]
pub(crate) struct Law {
    open: BTreeMap<Ticket, usize>,
}

impl Law {
    pub(crate) fn asked(&mut self, ticket: Ticket, node: usize) {
        self.open.insert(ticket, node);
    }

    pub(crate) fn answered(&mut self, ticket: Ticket, node: usize) {
        law!(
            self.open.remove(&ticket) == Some(node),
            "t{} was not asked of {node}, or is answered again",
            ticket.0
        );
    }

    pub(crate) fn process_died(&mut self, node: usize) {
        self.open.retain(|_, asked| *asked != node);
    }

    /// Nothing that was asked before `oldest` may still wait.
    pub(crate) fn at_rest(&self, oldest: Ticket) {
        let stuck = self.open.first_key_value();
        let stuck = stuck.filter(|(ticket, _)| **ticket < oldest);
        law!(stuck.is_none(), "{stuck:?} was never answered");
    }
}
