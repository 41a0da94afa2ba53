//! Disks that lose what they had, where a quorum can survive it; `disk/damage.rs` says what and
//! why.

use kraftd::types::{Epoch, ReplicaKey};

use super::World;
use crate::config::Chance;

impl World {
    pub(super) fn damage(&mut self) {
        let at = self.any_host();
        let kind = self.dice.faults.below(5);
        if kind == 0 {
            let host = &self.hosts[at];
            if host.rotten.is_none() && (!host.is_up() || host.disk.is_idle()) {
                let copy = self.hosts[at].disk.copy();
                self.hosts[at].backup = Some(copy);
                self.meet("backup of a directory");
            }
            return;
        }
        // What was lost is found out by the next process.
        self.kill(at);
        if at >= self.config.voters {
            return self.damage_observer(at);
        }
        let rotten = self.voters().filter(|host| host.rotten.is_some()).count();
        let spare = (self.config.voters - 1) / 2;
        match kind {
            1 if self.hosts[at].rotten.is_none() && rotten < spare => self.rot(at),
            // What a damaged log once had is not known any more.
            2 | 4 if self.hosts[at].rotten.is_some() => {}
            2 if self.is_held_elsewhere(at) && self.is_forgettable(at) => self.restore(at),
            3 if self.is_forgettable(at) => {
                self.hosts[at].disk.lose_vote();
                self.forgot(at, "lost its vote");
                self.meet("vote lost");
            }
            4 if self.config.kraft_version == 0
                && self.is_held_elsewhere(at)
                && self.is_forgettable(at) =>
            {
                self.wipe(at);
            }
            _ => {}
        }
    }

    fn voters(&self) -> impl Iterator<Item = &crate::node::Host> {
        self.hosts.iter().take(self.config.voters)
    }

    fn damage_observer(&mut self, at: usize) {
        match Chance(500).hits(&mut self.dice.faults) {
            true => self.restore(at),
            false => self.wipe(at),
        }
    }

    fn rot(&mut self, at: usize) {
        let had = self.hosts[at].rotten.unwrap_or_default();
        let had = had.max(self.hosts[at].disk.platter().end());
        let all = self.laws.committed.end().max(had);
        if let Some(end) = self.hosts[at].disk.rot(&mut self.dice.faults) {
            self.damaged = true;
            self.hosts[at].rotten = Some(all);
            self.meet("bit rot");
            self.say(at, format_args!("lost its log from {end} on"));
        }
    }

    fn restore(&mut self, at: usize) {
        if let Some(old) = self.hosts[at].backup.clone() {
            self.hosts[at].disk = old;
            self.forgot(at, "got an old directory");
            self.meet("old directory restored");
        }
    }

    fn wipe(&mut self, at: usize) {
        self.hosts[at].disk = crate::disk::Disk::default();
        self.hosts[at].backup = None;
        self.forgot(at, "lost everything");
        self.meet("directory wiped");
    }

    fn forgot(&mut self, at: usize, what: &str) {
        self.damaged = true;
        self.laws.votes.forgot(at);
        self.say(at, format_args!("{what}"));
    }

    /// Whether more than half of the voters, without this one, have all that it has.
    fn is_held_elsewhere(&self, at: usize) -> bool {
        let own = self.hosts[at].disk.platter();
        let (end, chain) = (own.end(), own.chain());
        let holds = |host: &crate::node::Host| {
            let platter = host.disk.platter();
            host.rotten.is_none() && (platter.chain_at(end) == Some(chain) || platter.base() >= end)
        };
        let own: ReplicaKey = self.hosts[at].key;
        let others = self.voters().filter(|host| host.key != own);
        others.filter(|host| holds(host)).count() * 2 > self.config.voters
    }

    /// Whether nobody can be elected any more in an epoch in which this node may have voted.
    fn is_forgettable(&self, at: usize) -> bool {
        let state = self.hosts[at].disk.durable_state();
        let epoch = state.map_or(Epoch(0), |state| state.epoch);
        let own = self.hosts[at].key;
        let mut others = self.voters().filter(|host| host.key != own).peekable();
        // The only voter elects itself without asking anybody.
        others.peek().is_some()
            && others.all(|host| {
                let state = host.disk.durable_state();
                state.is_some_and(|state| {
                    state.epoch > epoch || (state.epoch == epoch && state.leader.is_some())
                })
            })
    }
}
