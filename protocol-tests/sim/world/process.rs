//! Processes: they start, crash, stop, lose their power, and get no time for a while.

use kraftd::raft::Input;

use super::{Event, World};
use crate::config::Chance;
use crate::node::Node;

/// How long a clean stop may take before the process is killed, milliseconds.
const STOP_MS: u64 = 5_000;

impl World {
    pub(super) fn start(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.is_up() || host.held {
            return;
        }
        host.powered = true;
        host.lives += 1;
        let renames = self.config.faults.change > 0 && host.lives > 1;
        if renames && Chance(100).hits(&mut self.dice.faults) {
            host.renamed = !host.renamed;
            *self.met.entry("node renamed").or_default() += 1;
        }
        let seed = self.dice.node.next_u64();
        let node = Node::start(host, self.now, seed, &self.config);
        let life = node.life;
        host.node = Some(node);
        if self.trace.prints() {
            let boot = self.hosts[at].disk.boot();
            self.say(at, format_args!("#{life} starts with {boot:?}"));
        }
    }

    /// The process is killed, or asked to stop.
    pub(super) fn crash(&mut self, at: usize) {
        if !self.hosts[at].is_up() {
            return;
        }
        match self.config.clean_stop.hits(&mut self.dice.faults) {
            true => self.ask_to_stop(at),
            false => self.kill(at),
        }
    }

    pub(super) fn ask_to_stop(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let paused = host.paused.is_some();
        let Some(node) = &mut host.node else { return };
        if paused || node.stopping {
            return;
        }
        node.stopping = true;
        let life = node.life;
        self.at(STOP_MS, Event::StopLate(at, life));
        self.give(at, Input::Shutdown);
    }

    pub(super) fn stop_late(&mut self, at: usize, life: u64) {
        if self.is_life(at, life) {
            self.meet("stop took too long");
            self.kill(at);
        }
    }

    pub(crate) fn kill(&mut self, at: usize) {
        if self.hosts[at].is_up() {
            let torn = self.hosts[at].disk.crash(&mut self.dice.disk);
            self.meet(torn);
            self.died(at, "crashes");
        }
    }

    /// The machine of a node is without power: nobody is told.
    pub(super) fn power_off(&mut self, at: usize) {
        self.hosts[at].powered = false;
        match self.hosts[at].is_up() {
            true => self.kill(at),
            false => {
                let down = self.config.down.draw(&mut self.dice.faults);
                self.at(down, Event::Start(at));
            }
        }
    }

    pub(super) fn died(&mut self, at: usize, how: &str) {
        let end = self.hosts[at].disk.platter().end();
        self.say(at, format_args!("{how}, its log ends at {end}"));
        let host = &mut self.hosts[at];
        host.node = None;
        host.paused = None;
        self.asked.retain(|_, asked| asked.to != at);
        self.laws.answered.process_died(at);
        self.laws.commit.process_died(at);
        let disk = self.hosts[at].disk.durable_state();
        self.laws.votes.durable(at, disk);
        self.disconnect(at);
        let down = self.config.down.draw(&mut self.dice.faults);
        self.at(down, Event::Start(at));
    }

    pub(super) fn pause(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if !host.is_up() || host.paused.is_some() {
            return;
        }
        host.paused = Some(Vec::new());
        self.meet("process paused");
        self.say(at, format_args!("gets no time"));
        let after = self.config.pause_ms.draw(&mut self.dice.faults);
        self.at(after, Event::Resume(at));
    }

    /// Everything that came meanwhile comes at once.
    pub(super) fn resume(&mut self, at: usize) {
        let Some(missed) = self.hosts[at].paused.take() else {
            return;
        };
        self.say(at, format_args!("goes on"));
        for event in missed {
            self.at(0, event);
        }
    }
}
