//! Requests of which one step does not do it all: their answers wait until the last step.
//!
//! The first step is the decision of the request itself. If that leaves work, the decision says so,
//! and the request waits here for its turns. A step is decided on the image as it is then. What a
//! request may find changed between two steps, its rule has to say; so has it to see that what is
//! written before an end which never comes does no harm: the reference writes such decisions in
//! batches of which some may be lost, too. Whoever loses the leadership forgets the rest, and the
//! client is told to ask another.

use std::collections::VecDeque;

use super::elect_leaders::{self, Electing};
use super::heartbeat::Before;
use super::register_broker::{self, Registering};
use super::unregister::{self, Unregistering};
use super::{Reply, Request, Soft, View};
use crate::records::VersionedRecord;
use crate::types::{ApiError, Ticket};

/// What is left of a request.
#[derive(Clone, Debug)]
pub struct Work(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Elect(Electing),
    Register(Box<Registering>),
    Unregister(Unregistering),
}

impl From<Electing> for Work {
    fn from(left: Electing) -> Self {
        Self(Kind::Elect(left))
    }
}

impl From<Registering> for Work {
    fn from(left: Registering) -> Self {
        Self(Kind::Register(Box::new(left)))
    }
}

impl From<Unregistering> for Work {
    fn from(left: Unregistering) -> Self {
        Self(Kind::Unregister(left))
    }
}

/// Requests that have work left, in order of their turns.
#[derive(Clone, Debug, Default)]
pub struct Works {
    queue: VecDeque<(Ticket, Work)>,
    /// Other periodic work had the last turn.
    next: bool,
}

impl Works {
    /// Most requests that wait at once.
    pub const COUNT_MAX: usize = 64;
    /// Most of them that gather an answer about all partitions.
    const ELECTIONS_MAX: usize = 2;

    /// True when there is work.
    #[must_use]
    pub(super) fn pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True unless the request may take several steps and too many such wait already. To be asked
    /// before its first step, which writes.
    #[must_use]
    pub fn has_room(&self, request: &Request) -> bool {
        let room = self.queue.len() < Self::COUNT_MAX;
        match request {
            Request::BrokerRegistration(_) | Request::UnregisterBroker(_) => room,
            Request::ElectLeaders(body) if body.topic_partitions.is_none() => {
                let is_election = |(_, it): &&(Ticket, Work)| matches!(it.0, Kind::Elect(_));
                room && self.queue.iter().filter(is_election).count() < Self::ELECTIONS_MAX
            }
            _ => true,
        }
    }

    /// Puts a request into the queue for which there [was room](Self::has_room).
    pub fn add(&mut self, ticket: Ticket, work: Work) {
        self.queue.push_back((ticket, work));
    }

    /// Every second turn, as long as there is work.
    #[must_use]
    pub fn take_turn(&mut self) -> bool {
        self.next = self.pending() && !self.next;
        self.next
    }

    /// Forgets a request: a step of it could not be written.
    pub fn forget(&mut self, ticket: Ticket) {
        self.queue.retain(|(other, _)| *other != ticket);
    }

    /// The requests that wait; they are forgotten.
    pub fn drain(&mut self) -> impl Iterator<Item = Ticket> {
        self.queue.drain(..).map(|(ticket, _)| ticket)
    }
}

/// What one step came to.
#[derive(Debug)]
pub struct Step {
    /// Records to append; some may be written without the others.
    pub records: Vec<VersionedRecord>,
    /// Whose request it is.
    pub ticket: Ticket,
    /// The answer once they are committed; none while there is work left.
    pub answer: Option<Result<Reply, ApiError>>,
    /// What to [take back](Soft::take_back) if the records cannot be written.
    pub before: Option<Before>,
}

/// One step of the first request; if there is still work left, it waits for its next turn.
pub fn step(view: &View<'_>, soft: &mut Soft) -> Option<Step> {
    let (ticket, work) = soft.works.queue.pop_front()?;
    let about = match &work.0 {
        Kind::Elect(_) => None,
        Kind::Register(left) => Some(left.broker()),
        Kind::Unregister(left) => Some(left.broker()),
    };
    let before = about.map(|id| soft.before_about(id));
    let decided = match work.0 {
        Kind::Elect(left) => elect_leaders::go_on(view, left),
        Kind::Register(left) => register_broker::go_on(view, soft, *left),
        Kind::Unregister(left) => unregister::go_on(view, soft, left),
    };
    let (records, answer) = match decided {
        Ok(decision) => match decision.unfinished {
            Some(left) => {
                soft.works.queue.push_back((ticket, left));
                (decision.records, None)
            }
            None => (decision.records, Some(Ok(decision.reply))),
        },
        Err(error) => (Vec::new(), Some(Err(error))),
    };
    Some(Step {
        records,
        ticket,
        answer,
        before,
    })
}

#[cfg(test)]
mod tests;
