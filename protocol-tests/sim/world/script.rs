//! What scripts do to a world, and the run in which one voter has bad connections.

use super::{Event, World};
use crate::laws::liveness;

impl World {
    /// The node that leads in the newest epoch.
    pub(crate) fn leader_now(&self) -> usize {
        let epoch = |at: &usize| self.hosts[*at].node.as_ref().map(|node| node.raft.epoch());
        self.leaders().max_by_key(epoch).unwrap_or_default()
    }

    /// Asks a node to stop; it stays down.
    pub(crate) fn stop(&mut self, at: usize) {
        self.hosts[at].held = true;
        self.ask_to_stop(at);
    }

    pub(crate) fn start_again(&mut self, at: usize) {
        self.hosts[at].held = false;
        self.at(0, Event::Start(at));
    }

    pub(crate) fn kill_all(&mut self) {
        (0..self.hosts.len()).for_each(|at| self.kill(at));
    }

    /// Kills as many voters as a quorum survives; they stay down.
    pub(crate) fn keep_a_majority(&mut self) {
        let voters = self.config.voters;
        let first = self.any_host();
        for at in (0..(voters - 1) / 2).map(|at| (first + at) % voters) {
            self.hosts[at].held = true;
            self.kill(at);
        }
    }

    /// Nobody hears this node, and it hears nobody.
    pub(crate) fn isolate(&mut self, at: usize) {
        for other in (0..self.hosts.len()).filter(|other| *other != at) {
            self.cuts[at][other] = true;
            self.cuts[other][at] = true;
        }
    }

    pub(crate) fn hold_observers(&mut self) {
        for host in self.hosts.iter_mut().skip(self.config.voters) {
            host.held = true;
        }
    }

    pub(crate) fn let_observers_in(&mut self) {
        for at in self.config.voters..self.hosts.len() {
            self.start_again(at);
        }
    }

    /// One voter that does not lead has bad connections for a while. The others hear their leader,
    /// so that nothing may change.
    pub(super) fn gray(&mut self) {
        self.until_leader("an initial leader", None);
        let follows = |world: &Self| {
            let leader = world.hosts[world.leader_now()].key.id;
            world.hosts.iter().all(|host| {
                let node = host.node.as_ref();
                node.is_some_and(|node| {
                    node.raft.leader() == Some(leader) && node.raft.high_watermark().is_some()
                })
            })
        };
        let deadline = self.now + 30_000;
        let all = self.run_until(deadline, follows);
        liveness::in_time("all follow the first leader", all, String::new);
        self.until_progress("with all nodes", 10);
        let leader = self.leader_now();
        let Some(epoch) = self.hosts[leader]
            .node
            .as_ref()
            .map(|node| node.raft.epoch())
        else {
            return;
        };
        let others = self.config.voters as u64 - 1;
        let victim = (leader + 1 + self.dice.faults.below(others) as usize) % self.config.voters;
        self.laws.stable.begin(epoch, leader);
        let until = self.now + 6_000 + self.dice.faults.below(6_000);
        while self.now < until {
            self.trouble(victim);
            let next = self.now + 1 + self.dice.faults.below(600);
            self.run_until(next, |_| false);
        }
        self.clear_cuts();
        let calm = self.now + 3_000;
        self.run_until(calm, |_| false);
        self.laws.stable.end();
        self.meet("epoch stable beside a voter with bad connections");
    }

    fn trouble(&mut self, victim: usize) {
        let nodes = self.hosts.len();
        match self.dice.faults.below(5) {
            0 => (0..nodes).for_each(|other| self.cuts[victim][other] = other != victim),
            1 => (0..nodes).for_each(|other| self.cuts[other][victim] = other != victim),
            2 => self.clear_cuts(),
            _ => {
                let open = self.open_links(|from, to| from == victim || to == victim);
                for (from, name, number) in open {
                    if self.dice.faults.below(2) == 0 {
                        self.meet("connection closed");
                        self.at(0, Event::Closed(from, name, number));
                    }
                }
            }
        }
    }
}
