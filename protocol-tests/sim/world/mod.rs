//! One voter, its disk, observers, liars and a client, in virtual time.

mod traffic;

use std::collections::BTreeMap;

use kraftd::raft::{Input, Output, Request};
use kraftd::types::{
    Instant, Now, Offset, OffsetAndEpoch, ReplicaKey, SplitMix, Ticket, Timestamp,
};

use crate::config::{Chance, Config};
use crate::disk::{Disk, end_of};
use crate::laws::Laws;
use crate::log::Trace;
use crate::node::{Node, voters};
use crate::observer::{Answer, Observer, lie};
use crate::{law, trace};

/// Something that will happen.
enum Event {
    /// A request reaches the node.
    Arrive(Ticket, Box<Request>),
    /// An answer reaches an observer.
    Answer(usize, Ticket, Box<Answer>),
    /// An observer asks (again); the number tells old timers apart.
    Ask(usize, u64),
    Lie,
    Propose,
    DiskDone(u64),
    SnapshotDone(u64, OffsetAndEpoch),
    Crash,
    /// One that no other follows.
    CrashOnce,
    Start,
    ObserverCrash,
}

/// One random stream for each purpose, so that a draw in one does not shift the others.
struct Dice {
    disk: SplitMix,
    network: SplitMix,
    workload: SplitMix,
    faults: SplitMix,
    observers: SplitMix,
    liars: SplitMix,
    node: SplitMix,
}

/// What the world does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
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
    /// Wake-ups in a row in which no time passed.
    idle_wakes: u64,
    dice: Dice,
    pub trace: Trace,
    pub laws: Laws,
    disk: Disk,
    node: Option<Node>,
    lives: u64,
    observers: Vec<Observer>,
    /// Counts the questions of each observer.
    asks: Vec<u64>,
    tickets: u64,
    /// Who asked: an observer, or nobody who listens; and for a vote, whose.
    asked: BTreeMap<Ticket, (Option<usize>, Option<ReplicaKey>)>,
    next_value: u64,
    phase: Phase,
    /// How often each thing that a run is for really happened.
    pub(crate) met: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(seed: u64, print: bool) -> Self {
        let mut root = SplitMix::new(seed);
        let config = Config::draw(&mut root);
        let mut split = || SplitMix::new(root.next_u64());
        let mut dice = Dice {
            disk: split(),
            network: split(),
            workload: split(),
            faults: split(),
            observers: split(),
            liars: split(),
            node: split(),
        };
        let observers: Vec<Observer> = (0..config.observers)
            .map(|at| Observer::new(2 + at as i32, &mut dice.observers))
            .collect();
        let mut world = Self {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            idle_wakes: 0,
            dice,
            trace: Trace::new(print),
            laws: Laws::default(),
            disk: Disk::default(),
            node: None,
            lives: 0,
            asks: vec![0; observers.len()],
            observers,
            tickets: 0,
            asked: BTreeMap::new(),
            next_value: 0,
            phase: Phase::Storm,
            met: BTreeMap::new(),
            config,
        };
        if world.config.kraft_version > 0 {
            world.disk.bootstrap = Some(voters(&world.config));
        }
        world
            .trace
            .line(0, "world", format_args!("{:?}", world.config));
        world.populate();
        world
    }

    fn populate(&mut self) {
        self.at(0, Event::Start);
        self.at(1, Event::Propose);
        for observer in 0..self.observers.len() {
            self.at(1, Event::Ask(observer, 0));
        }
        for _ in 0..self.config.liars {
            self.at(1, Event::Lie);
        }
        self.arrange(self.config.crash_every_ms, Event::Crash);
        self.arrange(self.config.observer_crash_every_ms, Event::ObserverCrash);
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn at(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + after, self.sequence), event);
    }

    /// A fault within about `every` milliseconds, if there are such faults.
    fn arrange(&mut self, every: u64, event: Event) {
        if every > 0 {
            let after = 1 + self.dice.faults.below(2 * every);
            self.at(after, event);
        }
    }

    /// Faults for a while; then none, and everything has to work; then nothing new, and all have
    /// the same.
    pub(crate) fn run(&mut self) {
        let storm_ms = self.config.storm_ms;
        self.run_until(storm_ms, |_| false);
        self.trace.line(self.now, "world", format_args!("heals"));
        self.phase = Phase::Heal;
        self.config.heal();
        if self.node.is_none() {
            self.at(0, Event::Start);
        }
        let oldest = Ticket(self.tickets);
        let done = self.laws.acknowledged.count() + 20;
        // A write that hangs since the storm may still be under way, then comes an election.
        let deadline = self.now + 15_000;
        self.run_until(deadline, |world| world.laws.acknowledged.count() >= done);
        law!(
            self.laws.acknowledged.count() >= done,
            "liveness: nothing is acknowledged any more"
        );
        self.trace.line(self.now, "world", format_args!("rests"));
        self.phase = Phase::Rest;
        // What was asked in the storm may wait for as long as a liar said, 5 s at most.
        let calm = self.now + 6_000;
        self.run_until(calm, |_| false);
        self.laws.answered.at_rest(oldest);
        let committed = self.laws.commit.committed();
        for observer in &self.observers {
            self.laws.observers.caught_up(observer, committed);
        }
    }

    fn run_until(&mut self, deadline: u64, done: impl Fn(&Self) -> bool) {
        while self.now < deadline && !done(self) {
            let wake = self.arranged_wake();
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            match (next, wake) {
                (Some(at), Some(wake)) if wake < at => self.wake(wake),
                (Some(_), _) => {
                    let ((at, _), event) = self.events.pop_first().expect("looked at above");
                    self.now = at;
                    self.happen(event);
                }
                (None, Some(wake)) => self.wake(wake),
                (None, None) => return,
            }
        }
    }

    /// When the node is woken: as asked for, or a little late.
    fn arranged_wake(&mut self) -> Option<u64> {
        let late = self.config.wake_late;
        let node = self.node.as_mut()?;
        let asked = node.raft.next_wakeup();
        if asked == Instant::NEVER {
            return None;
        }
        if let Some((arranged, at)) = node.wake
            && arranged == asked
        {
            return Some(at);
        }
        let at = asked.0.max(self.now) + late.draw(&mut self.dice.node);
        node.wake = Some((asked, at));
        Some(at)
    }

    fn wake(&mut self, at: u64) {
        self.idle_wakes = match at > self.now {
            true => 0,
            false => self.idle_wakes + 1,
        };
        law!(
            self.idle_wakes < 100,
            "liveness: the node wants to be woken without end"
        );
        self.now = self.now.max(at);
        if let Some(node) = &mut self.node {
            node.wake = None;
        }
        self.give(Input::WakeUp);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(ticket, request) => self.arrive(ticket, *request),
            Event::Answer(observer, ticket, answer) => self.answer(observer, ticket, *answer),
            Event::Ask(observer, ask) => {
                if self.asks[observer] == ask {
                    self.ask(observer);
                }
            }
            Event::Lie => {
                if self.phase == Phase::Storm {
                    let committed = self.laws.commit.committed().len() as i64;
                    let epoch = self
                        .disk
                        .durable_state()
                        .map_or_else(Default::default, |s| s.epoch);
                    let request = lie(&mut self.dice.liars, epoch, Offset(committed));
                    self.send(None, request);
                    let after = self.config.lie_every.draw(&mut self.dice.liars);
                    self.at(after, Event::Lie);
                }
            }
            Event::Propose => self.propose(),
            Event::DiskDone(life) => self.disk_done(life),
            Event::SnapshotDone(life, id) => self.snapshot_done(life, id),
            Event::Crash => {
                if self.phase == Phase::Storm {
                    self.crash();
                    self.arrange(self.config.crash_every_ms, Event::Crash);
                }
            }
            Event::CrashOnce => {
                if self.phase == Phase::Storm {
                    self.crash();
                }
            }
            Event::Start => self.start(),
            Event::ObserverCrash => {
                if self.phase == Phase::Storm {
                    let observer = self.dice.faults.below(self.observers.len() as u64) as usize;
                    self.observers[observer].crash(&mut self.dice.observers);
                    self.trace
                        .line(self.now, "observer", format_args!("{observer} crashes"));
                    self.ask_after(observer, 50);
                    self.arrange(self.config.observer_crash_every_ms, Event::ObserverCrash);
                }
            }
        }
    }

    fn start(&mut self) {
        if self.node.is_some() {
            return;
        }
        self.lives += 1;
        self.trace.line(
            self.now,
            "node",
            format_args!("life {} starts with {:?}", self.lives, self.disk.boot()),
        );
        let seed = self.dice.node.next_u64();
        let node = Node::start(self.lives, self.now, seed, &self.config, &self.disk);
        self.node = Some(node);
    }

    /// Power off, or a request to stop.
    fn crash(&mut self) {
        let Some(node) = &mut self.node else {
            return;
        };
        if self.config.clean_stop.hits(&mut self.dice.faults) {
            if !node.stopping {
                node.stopping = true;
                self.give(Input::Shutdown);
            }
            return;
        }
        let torn = self.disk.crash(&mut self.dice.disk);
        self.meet(torn);
        self.died("crashes");
    }

    fn died(&mut self, how: &str) {
        self.trace.line(
            self.now,
            "node",
            format_args!("{how}, its log ends at {}", end_of(self.disk.platter())),
        );
        self.node = None;
        self.asked.clear();
        self.laws.answered.process_died();
        self.laws.commit.process_died();
        self.laws.commit.crashed(self.disk.platter());
        self.laws.acknowledged.crashed(self.disk.platter());
        let down = self.config.down.draw(&mut self.dice.faults);
        self.at(down, Event::Start);
    }

    fn disk_done(&mut self, life: u64) {
        if self.node.as_ref().is_none_or(|node| node.life != life) {
            return;
        }
        for token in self.disk.finish() {
            let Some(node) = &mut self.node else {
                return;
            };
            let carried = node
                .carried
                .remove(&token)
                .expect("a completion belongs to a write");
            if self.config.carried_first {
                self.execute(carried);
                self.give(Input::Written(token));
            } else {
                self.give(Input::Written(token));
                self.execute(carried);
            }
        }
        self.drive_disk();
    }

    fn drive_disk(&mut self) {
        let Some(node) = &self.node else {
            return;
        };
        let life = node.life;
        if self.disk.begin() {
            let mut takes = self.config.disk.draw(&mut self.dice.disk);
            if self.config.stall.hits(&mut self.dice.disk) {
                takes += self.config.stall_ms.draw(&mut self.dice.disk);
                self.meet("disk hangs");
            }
            self.at(takes, Event::DiskDone(life));
        }
    }

    fn snapshot_done(&mut self, life: u64, id: OffsetAndEpoch) {
        if let Some(node) = &mut self.node
            && node.life == life
        {
            node.snapshotting = false;
            self.disk.snapshots.push(id);
            self.give(Input::SnapshotWritten(id));
            self.clean();
        }
    }

    /// Lets go of old snapshots, if there are such; now and then asks for nonsense.
    fn clean(&mut self) {
        if !self.config.clean.hits(&mut self.dice.disk) {
            return;
        }
        let known = self.disk.snapshots.len() as u64;
        let at = self.dice.disk.below(known) as usize;
        let mut id = self.disk.snapshots[at];
        if self.dice.disk.below(20) == 0 {
            id.offset = id.offset.plus(self.dice.disk.below(9) as i64 - 4);
        }
        let before = self.disk.start;
        self.give(Input::Clean(id));
        if self.disk.start > before {
            self.meet("old log cleaned");
            // The move takes moments, so a crash in it has to be meant.
            if self.config.crash_every_ms > 0 && Chance(200).hits(&mut self.dice.faults) {
                self.at(0, Event::CrashOnce);
            }
        }
    }

    /// One call of the core and all that it wants done.
    fn give(&mut self, input: Input) {
        let Some(node) = &mut self.node else {
            return;
        };
        let time = self.now;
        self.trace
            .line(time, "node <-", format_args!("{}", trace::input(&input)));
        let now = Now {
            instant: Instant(time),
            wall: Timestamp(1_700_000_000_000 + time as i64),
        };
        let mut outputs = Vec::new();
        node.raft.handle(now, input, &mut outputs);
        self.execute(outputs);
        self.drive_disk();
    }

    fn execute(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            // A stop in the middle ends the process; the rest is never done.
            if self.node.is_none() {
                return;
            }
            for line in trace::output(&output) {
                self.trace.line(self.now, "node ->", format_args!("{line}"));
            }
            self.execute_one(output);
        }
    }

    fn execute_one(&mut self, output: Output) {
        let Some(node) = &mut self.node else {
            return;
        };
        match output {
            Output::Write { token, write, then } => {
                node.carried.insert(token, then);
                let first = end_of(self.disk.view());
                let written = self.disk.submit(token, write);
                self.laws.observers.wrote(first, written);
            }
            Output::Reply { ticket, response } => self.reply(ticket, response),
            Output::ServeFetch {
                ticket,
                response,
                from,
                until,
                max_bytes,
            } => {
                let records = self.disk.read(from, until, max_bytes);
                law!(!records.is_empty(), "t{} is served nothing", ticket.0);
                law!(from >= self.disk.start, "{from} is not in the log any more");
                self.told(ticket, response.hint.epoch);
                self.carry(ticket, Answer::Fetch(response, records));
            }
            Output::ServeSnapshot {
                ticket, response, ..
            } => {
                law!(
                    self.disk.snapshots.contains(&response.id)
                        && response.id.offset >= self.disk.start,
                    "{:?} is no snapshot",
                    response.id
                );
                self.told(ticket, response.hint.epoch);
                self.carry(ticket, Answer::Snapshot(response.error, response.id));
            }
            Output::Committed(offset) => self.committed(offset),
            Output::BecameLeader { epoch } => {
                *self.met.entry("became leader").or_default() += 1;
                node.leading = Some(epoch);
                let voted = self.laws.votes.voted_for(epoch);
                self.laws.leaders.became(epoch, voted.is_some());
            }
            Output::LostLeadership { .. } => {
                node.leading = None;
                node.pending.clear();
                self.meet("leadership lost");
            }
            // Its only peers are those that ask it.
            Output::Send { .. }
            | Output::Hangup(_)
            | Output::KeepOpen(_)
            | Output::KeepPiece { .. }
            | Output::QuorumChanged => {}
            Output::MayStop => {
                self.disk.close();
                self.meet("clean stop");
                self.died("stops");
            }
        }
    }

    /// The state machine applies, and tells its clients.
    fn committed(&mut self, offset: Offset) {
        let Some(node) = &mut self.node else {
            return;
        };
        self.laws.commit.advanced(self.disk.view(), offset);
        self.disk.submit_commit(offset);
        while let Some(pending) = node.pending.front() {
            if pending.first.plus(pending.values.len() as i64) > offset {
                break;
            }
            let pending = node.pending.pop_front().expect("looked at above");
            self.laws.replies.proposed(pending.epoch, node.leading);
            for (at, value) in (0..).zip(pending.values) {
                let at = pending.first.plus(at);
                let (commit, platter) = (node.raft.high_watermark(), self.disk.platter());
                self.laws.replies.told(at, commit, end_of(platter));
                self.laws.acknowledged.acknowledge(platter, at, value);
            }
        }
        self.maybe_snapshot(offset);
    }

    fn maybe_snapshot(&mut self, offset: Offset) {
        let every = self.config.snapshot_every;
        let Some(node) = &mut self.node else {
            return;
        };
        let newest = self.disk.snapshots.last().map_or(0, |id| id.offset.0);
        if every == 0 || node.snapshotting || offset.0 < newest + every {
            return;
        }
        node.snapshotting = true;
        let id = OffsetAndEpoch {
            offset,
            epoch: self.disk.view()[offset.0 as usize - 1].epoch,
        };
        let life = node.life;
        let takes = self.dice.disk.below(200);
        self.at(takes, Event::SnapshotDone(life, id));
    }
}
