//! Nodes with their disks, a network between them, liars, a client and an operator, in virtual
//! time.

mod damage;
mod drive;
mod faults;
mod network;
mod operator;
mod process;
mod run;
mod script;
mod snapshots;
mod traffic;

use std::collections::BTreeMap;

use bytes::Bytes;
use kraftd::raft::{Ask, CallFault, PeerName, Request, Told};
use kraftd::types::{CallId, Instant, OffsetAndEpoch, SplitMix, Ticket};

use crate::config::{Config, Kind};
use crate::law;
use crate::laws::Laws;
use crate::log::Trace;
use crate::node::Host;
use crate::scenarios::Scenario;

use network::Link;
use traffic::Asked;

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection is there, or not.
    Connect(usize, PeerName, u64),
    /// A connection that is wanted is tried again.
    Retry(usize, PeerName),
    /// A question reaches a node.
    Question(Box<network::Question>),
    /// An answer reaches who asked on this connection.
    Answer(usize, PeerName, u64, CallId, Box<Result<Told, CallFault>>),
    /// An answer is given up.
    Late(usize, PeerName, u64, CallId),
    /// A connection was closed by the other side.
    Closed(usize, PeerName, u64),
    /// A request of somebody who does not listen to the answer.
    Stray(usize, Box<Request>),
    Lie,
    Propose,
    DiskDone(usize, u64),
    SnapshotDone(usize, u64, OffsetAndEpoch, Bytes, u64),
    PieceDone(usize, u64, Box<snapshots::Piece>),
    Loaded(usize, u64, OffsetAndEpoch),
    Start(usize),
    /// A stop took too long.
    StopLate(usize, u64),
    Resume(usize),
    /// The cut with this number ends.
    Mend(u64),
    Fault(faults::Fault),
    /// A crash that no other follows.
    CrashOnce(usize),
}

/// One random stream for each purpose, so that a draw in one does not shift the others.
pub(super) struct Dice {
    disk: SplitMix,
    network: SplitMix,
    workload: SplitMix,
    faults: SplitMix,
    liars: SplitMix,
    node: SplitMix,
}

/// What the world does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Faults happen.
    Storm,
    /// No more faults.
    Heal,
    /// No more proposals either.
    Rest,
}

pub(crate) struct World {
    config: Config,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    dice: Dice,
    pub trace: Trace,
    pub laws: Laws,
    hosts: Vec<Host>,
    links: BTreeMap<(usize, PeerName), Link>,
    /// Counts connections.
    connections: u64,
    /// `cuts[a][b]`: what `a` sends to `b` is lost.
    cuts: Vec<Vec<bool>>,
    cut: u64,
    tickets: u64,
    asked: BTreeMap<Ticket, Asked>,
    next_value: u64,
    phase: Phase,
    /// The longest time that progress took, milliseconds.
    pub(crate) slowest: u64,
    /// Something durable was lost in this run.
    damaged: bool,
    /// How often each thing that a run is for really happened.
    pub(crate) met: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(seed: u64, script: Option<Scenario>, print: bool) -> Self {
        let mut root = SplitMix::new(seed);
        let config = Config::draw(&mut root, script);
        let mut split = || SplitMix::new(root.next_u64());
        let dice = Dice {
            disk: split(),
            network: split(),
            workload: split(),
            faults: split(),
            liars: split(),
            node: split(),
        };
        let nodes = config.nodes();
        let mut world = Self {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            dice,
            trace: Trace::new(print),
            laws: Laws::default(),
            hosts: (0..nodes).map(|at| Host::new(at, &config)).collect(),
            links: BTreeMap::new(),
            connections: 0,
            cuts: vec![vec![false; nodes]; nodes],
            cut: 0,
            tickets: 0,
            asked: BTreeMap::new(),
            next_value: 0,
            phase: Phase::Storm,
            slowest: 0,
            damaged: false,
            met: BTreeMap::new(),
            config,
        };
        let config = format_args!("{:?}", world.config);
        world.trace.line(0, "world", config);
        world.populate();
        world
    }

    fn populate(&mut self) {
        for at in 0..self.hosts.len() {
            let after = self.dice.node.below(200);
            self.at(after, Event::Start(at));
        }
        self.at(1, Event::Propose);
        for _ in 0..self.config.liars {
            self.at(1, Event::Lie);
        }
        if self.config.kind == Kind::Storm {
            self.arm();
        }
    }

    pub(super) fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    pub(super) fn at(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + after, self.sequence), event);
    }

    /// Lets time pass until `deadline` or until something is so. True if it is so.
    pub(super) fn run_until(&mut self, deadline: u64, done: impl Fn(&Self) -> bool) -> bool {
        while self.now < deadline {
            if done(self) {
                return true;
            }
            let wake = self.arranged_wake();
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            match (next, wake) {
                (Some(at), Some((wake, node))) if wake < at => self.wake(wake, node),
                (Some(_), _) => {
                    let ((at, _), event) = self.events.pop_first().expect("looked at above");
                    self.now = at;
                    self.happen(event);
                }
                (None, Some((wake, node))) => self.wake(wake, node),
                (None, None) => break,
            }
        }
        done(self)
    }

    /// Which node is woken next, and when: as asked for, or a little late.
    fn arranged_wake(&mut self) -> Option<(u64, usize)> {
        let late = self.config.wake_late;
        let mut first: Option<(u64, usize)> = None;
        for (at, host) in self.hosts.iter_mut().enumerate() {
            let Some(node) = host.node.as_mut().filter(|_| host.paused.is_none()) else {
                continue;
            };
            let asked = node.raft.next_wakeup();
            if asked == Instant::NEVER {
                continue;
            }
            let when = match node.wake {
                Some((arranged, when)) if arranged == asked => when,
                _ => {
                    let due = node.global(asked.0).max(self.now);
                    let when = due + late.draw(&mut self.dice.node);
                    node.wake = Some((asked, when));
                    when
                }
            };
            if first.is_none_or(|(best, _)| when < best) {
                first = Some((when, at));
            }
        }
        first
    }

    fn wake(&mut self, at: u64, node: usize) {
        self.now = self.now.max(at);
        let now = self.now;
        if let Some(node) = &mut self.hosts[node].node {
            node.wake = None;
            node.idle_wakes = match node.idle_wakes {
                (at, times) if at == now => (at, times + 1),
                _ => (now, 0),
            };
            law!(
                node.idle_wakes.1 < 50,
                "liveness: node {} wants to be woken without end",
                node.raft.role_name()
            );
        }
        self.give(node, kraftd::raft::Input::WakeUp);
    }

    fn happen(&mut self, event: Event) {
        if let Some(paused) = self
            .owner(&event)
            .and_then(|at| self.hosts[at].paused.as_mut())
        {
            paused.push(event);
            return;
        }
        match event {
            Event::Connect(from, name, number) => self.connected(from, name, number),
            Event::Retry(from, name) => self.retry(from, name),
            Event::Question(question) => self.question(*question),
            Event::Answer(from, name, number, call, outcome) => {
                self.answered(from, name, number, call, *outcome);
            }
            Event::Late(from, name, number, call) => self.late(from, name, number, call),
            Event::Closed(from, name, number) => self.closed(from, name, number),
            Event::Stray(at, request) => self.stray(at, *request),
            Event::Lie => self.lie(),
            Event::Propose => self.propose(),
            Event::DiskDone(at, life) => self.disk_done(at, life),
            Event::SnapshotDone(at, life, id, bytes, chain) => {
                self.snapshot_done(at, life, id, bytes, chain);
            }
            Event::PieceDone(at, life, piece) => self.piece_done(at, life, *piece),
            Event::Loaded(at, life, id) => self.snapshot_loaded(at, life, id),
            Event::Start(at) => self.start(at),
            Event::StopLate(at, life) => self.stop_late(at, life),
            Event::Resume(at) => self.resume(at),
            Event::Mend(cut) => self.mend(cut),
            Event::Fault(fault) => self.fault(fault),
            Event::CrashOnce(at) => {
                if self.phase == Phase::Storm {
                    self.crash(at);
                }
            }
        }
    }

    /// Whose process has to do something about it.
    fn owner(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Answer(at, ..)
            | Event::Late(at, ..)
            | Event::Closed(at, ..)
            | Event::Stray(at, _)
            | Event::Retry(at, _)
            | Event::DiskDone(at, _)
            | Event::SnapshotDone(at, ..)
            | Event::PieceDone(at, ..)
            | Event::Loaded(at, ..) => Some(*at),
            Event::Question(question) => Some(question.to),
            // The system of a paused process takes connections, but it says nothing on them.
            Event::Connect(from, name, _) => {
                let to = self.links.get(&(*from, *name)).and_then(|link| link.to);
                to.filter(|to| self.hosts[*to].paused.is_some())
                    .or(Some(*from))
            }
            Event::Lie
            | Event::Propose
            | Event::Start(_)
            | Event::StopLate(..)
            | Event::Resume(_)
            | Event::Mend(_)
            | Event::Fault(_)
            | Event::CrashOnce(_) => None,
        }
    }

    /// The process of `at`, if it is still the one of that life.
    pub(super) fn is_life(&self, at: usize, life: u64) -> bool {
        let node = self.hosts[at].node.as_ref();
        node.is_some_and(|node| node.life == life)
    }

    pub(super) fn say(&self, at: usize, what: std::fmt::Arguments<'_>) {
        if self.trace.prints() {
            let who = format!("node {}", self.hosts[at].key.id);
            self.trace.line(self.now, &who, what);
        }
    }
}

/// A question that only the node's program answers, without consensus.
pub(super) fn versions(ask: &Ask) -> Option<Told> {
    match ask {
        Ask::Versions => Some(Told::Versions {
            kraft_versions: Some((0, 1)),
        }),
        Ask::Raft(_) => None,
    }
}
