//! The course of a run: what it is about, then no more faults and progress, then rest and equality.

use super::{Event, Phase, World};
use crate::config::{Kind, Setup};
use crate::laws::liveness;
use crate::node::Host;
use kraftd::types::Ticket;

/// Within so many milliseconds after the faults there is a leader that commits something new. A
/// write that hangs since the storm may still be under way, then come time-outs and elections.
const PROGRESS_MS: u64 = 40_000;

/// So long after the last proposal everybody has everything. What was asked in the storm may wait
/// for as long as a liar said, 5 s at most.
const REST_MS: u64 = 8_000;

impl World {
    pub(crate) fn run(&mut self) {
        match self.config.kind {
            Kind::Storm => {
                let storm_ms = self.config.storm_ms;
                self.run_until(storm_ms, |_| false);
            }
            Kind::Gray => self.gray(),
            Kind::Script(scenario) => {
                scenario.run(self);
                self.meet(scenario.name());
            }
        }
        self.heal();
        self.until_progress("after the faults", 20);
        self.rest();
    }

    fn heal(&mut self) {
        self.trace.line(self.now, "world", format_args!("heals"));
        self.phase = Phase::Heal;
        self.config.heal();
        self.clear_cuts();
        for at in 0..self.hosts.len() {
            self.resume(at);
            self.hosts[at].held = false;
            self.hosts[at].setup = Setup {
                drift: 0,
                ..self.hosts[at].setup
            };
            self.at(0, Event::Start(at));
        }
    }

    fn rest(&mut self) {
        self.trace.line(self.now, "world", format_args!("rests"));
        let oldest = Ticket(self.tickets);
        self.phase = Phase::Rest;
        let calm = self.now + REST_MS;
        self.run_until(calm, |_| false);
        let more = calm + PROGRESS_MS;
        let equal = self.run_until(more, Self::all_have_all);
        liveness::in_time("all nodes have all", equal, || self.state());
        self.laws.answered.at_rest(oldest);
        for host in &self.hosts {
            if let Some(node) = &host.node
                && node.machine.end == self.laws.committed.end()
            {
                self.laws.acknowledged.at_rest(&node.machine.state);
            }
        }
    }

    /// A node that is no voter and was moved to a later epoch, by an election of former voters
    /// without the pre-vote, waits for the quorum to get there: nobody hears of its epoch. (So it
    /// is with Java's.)
    fn all_have_all(&self) -> bool {
        let end = self.laws.committed.end();
        let leader = self.hosts[self.leader_now()].node.as_ref();
        let is_ahead = |host: &Host| {
            let (Some(leader), Some(node)) = (leader, &host.node) else {
                return false;
            };
            let mut voters = leader.raft.voters().iter();
            node.raft.epoch() > leader.raft.epoch() && voters.all(|it| it.key.id != host.key.id)
        };
        self.hosts.iter().all(|host| {
            let node = host.node.as_ref();
            let has_all =
                node.is_some_and(|node| node.machine.end == end && node.raft.log_end() == end);
            has_all || is_ahead(host)
        })
    }

    /// Lets time pass until a client was told of so many more records.
    pub(crate) fn until_progress(&mut self, what: &str, records: usize) {
        let done = self.laws.acknowledged.count() + records;
        let deadline = self.now + PROGRESS_MS;
        let moved = self.run_until(deadline, |world| world.laws.acknowledged.count() >= done);
        liveness::in_time(&format!("progress {what}"), moved, || self.state());
        self.slowest = self
            .slowest
            .max(PROGRESS_MS - deadline.saturating_sub(self.now));
    }

    /// Lets time pass until a node leads, another one than `not`.
    pub(crate) fn until_leader(&mut self, what: &str, not: Option<usize>) {
        let deadline = self.now + PROGRESS_MS;
        let found = self.run_until(deadline, |world| {
            world.leaders().any(|leader| Some(leader) != not)
        });
        liveness::in_time(what, found, || self.state());
    }

    /// Those that lead and may propose.
    pub(super) fn leaders(&self) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(|at| {
            let node = self.hosts[*at].node.as_ref();
            node.is_some_and(|node| node.leading.is_some())
        })
    }

    /// Everything in a line, for who looks for a cause.
    fn state(&self) -> String {
        let mut text = format!("{} are committed", self.laws.committed.end());
        for host in &self.hosts {
            text += &match &host.node {
                None => format!("; {} is down", host.key.id),
                Some(node) => format!(
                    "; {} {} epoch={} leader={:?} {}..{} commit={:?} applied={} disk={}",
                    host.key.id,
                    node.raft.role_name(),
                    node.raft.epoch(),
                    node.raft.leader().map(|id| id.0),
                    node.raft.log_start(),
                    node.raft.log_end(),
                    node.raft.high_watermark().map(|it| it.0),
                    node.machine.end,
                    host.disk.platter().end(),
                ),
            };
        }
        text
    }
}
