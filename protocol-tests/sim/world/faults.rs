//! What goes wrong, and when.

use kraftd::raft::Input;

use super::{Event, Phase, World};

/// A kind of fault, which comes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash,
    Power,
    Pause,
    Cut,
    Flap,
    Damage,
    Resign,
    Change,
}

impl World {
    /// Arranges the first fault of every kind that this run has.
    pub(super) fn arm(&mut self) {
        for fault in [
            Fault::Crash,
            Fault::Power,
            Fault::Pause,
            Fault::Cut,
            Fault::Flap,
            Fault::Damage,
            Fault::Resign,
            Fault::Change,
        ] {
            self.arrange(fault);
        }
    }

    fn arrange(&mut self, fault: Fault) {
        let faults = self.config.faults;
        let every = match fault {
            Fault::Crash => faults.crash,
            Fault::Power => faults.power,
            Fault::Pause => faults.pause,
            Fault::Cut => faults.cut,
            Fault::Flap => faults.flap,
            Fault::Damage => faults.damage,
            Fault::Resign => faults.resign,
            Fault::Change => faults.change,
        };
        if every > 0 {
            let after = 1 + self.dice.faults.below(2 * every);
            self.at(after, Event::Fault(fault));
        }
    }

    pub(super) fn any_host(&mut self) -> usize {
        self.dice.faults.below(self.hosts.len() as u64) as usize
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        if self.phase != Phase::Storm {
            return;
        }
        match fault {
            Fault::Crash => {
                let at = self.any_host();
                self.crash(at);
            }
            Fault::Power => {
                let all = self.dice.faults.below(3) == 0;
                self.meet("power cut");
                for at in 0..self.hosts.len() {
                    if all || self.dice.faults.below(2) == 0 {
                        self.power_off(at);
                    }
                }
            }
            Fault::Pause => {
                let at = self.any_host();
                self.pause(at);
            }
            Fault::Cut => self.cut_links(),
            Fault::Flap => {
                let open = self.open_links(|_, _| true);
                let at = self.dice.faults.below(open.len() as u64) as usize;
                if let Some((from, name, number)) = open.get(at).copied() {
                    self.meet("connection closed");
                    self.at(0, Event::Closed(from, name, number));
                }
            }
            Fault::Damage => self.damage(),
            Fault::Resign => {
                let leads = |at: &usize| {
                    let node = self.hosts[*at].node.as_ref();
                    node.is_some_and(|node| node.leading.is_some())
                        && self.hosts[*at].paused.is_none()
                };
                if let Some(at) = (0..self.hosts.len()).find(leads) {
                    self.meet("leader's state machine gave up");
                    self.give(at, Input::Resign);
                }
            }
            Fault::Change => self.change_voters(),
        }
        self.arrange(fault);
    }

    /// Cuts links for a while; what was cut before is whole again.
    fn cut_links(&mut self) {
        let nodes = self.hosts.len();
        self.clear_cuts();
        let one = self.any_host();
        let other = self.any_host();
        let sides: Vec<bool> = (0..nodes).map(|_| self.dice.faults.below(2) == 0).collect();
        let (what, is_cut): (_, Box<dyn Fn(usize, usize) -> bool>) = match self.dice.faults.below(6)
        {
            0 => ("cut one way", Box::new(move |a, b| a == one && b == other)),
            1 => ("cut: a node is not heard", Box::new(move |a, _| a == one)),
            2 => ("cut: a node does not hear", Box::new(move |_, b| b == one)),
            3 => (
                "cut: a node is alone",
                Box::new(move |a, b| a == one || b == one),
            ),
            4 => ("cut in two", Box::new(move |a, b| sides[a] != sides[b])),
            _ => (
                "cut in two with a bridge",
                Box::new(move |a, b| a != one && b != one && sides[a] != sides[b]),
            ),
        };
        self.meet(what);
        let time = self.now;
        self.trace
            .line(time, "network", format_args!("{what}: {one} {other}"));
        for a in 0..nodes {
            for b in 0..nodes {
                self.cuts[a][b] = a != b && is_cut(a, b);
            }
        }
        let lasts = self.config.cut_ms.draw(&mut self.dice.faults);
        self.at(lasts, Event::Mend(self.cut));
    }

    pub(super) fn clear_cuts(&mut self) {
        self.cut += 1;
        for row in &mut self.cuts {
            row.fill(false);
        }
    }

    pub(super) fn mend(&mut self, cut: u64) {
        if cut == self.cut {
            self.trace.line(self.now, "network", format_args!("whole"));
            self.clear_cuts();
        }
    }
}
