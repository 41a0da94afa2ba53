//! Several cores together, without faults but those that a test makes: how elections end, and how
//! soon. A message takes one millisecond, a write one more.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{
    CallId, Epoch, Instant, NodeId, Now, Offset, ReplicaKey, Ticket, Timestamp, Token, Uuid,
};

use super::*;

mod handover;

const WIRE_MS: u64 = 1;
const DISK_MS: u64 = 1;

fn key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        directory: Uuid::from_u128(1_000 + id as u128),
    }
}

fn endpoints(id: i32) -> Vec<(String, String, u16)> {
    vec![("CONTROLLER".into(), format!("node{id}"), 9_093)]
}

fn voter(id: i32) -> VoterNode {
    VoterNode {
        key: ReplicaKey {
            directory: Uuid::nil(),
            ..key(id)
        },
        endpoints: endpoints(id),
        kraft_versions: (0, 1),
    }
}

enum Happening {
    Wake,
    Written(Token),
    Request(i32, CallId, Ask),
    Answer(CallId, Result<Told, CallFault>),
    Lost(i32),
}

struct Member {
    raft: Raft,
    /// Batches with their epochs: what was appended, durable or not.
    log: Vec<FetchedBatch>,
    carried: BTreeMap<Token, Vec<Output>>,
    /// Who waits for an answer, and what the call is called there.
    asked: BTreeMap<Ticket, (i32, CallId)>,
    may_stop: bool,
}

struct Quorum {
    now: u64,
    members: BTreeMap<i32, Member>,
    /// By time and order.
    queue: BTreeMap<(u64, u64), (i32, Happening)>,
    count: u64,
    /// Connections that are cut without a word: from, to.
    cut: Vec<(i32, i32)>,
    /// Does not know the pre-vote.
    old: Vec<i32>,
    /// How long a write takes.
    disk_ms: u64,
    /// Asks for votes as if its log were empty.
    shorter: Option<i32>,
}

impl Quorum {
    fn start(ids: &[i32]) -> Self {
        let mut quorum = Self {
            now: 1,
            members: BTreeMap::new(),
            queue: BTreeMap::new(),
            count: 0,
            cut: Vec::new(),
            old: Vec::new(),
            disk_ms: DISK_MS,
            shorter: None,
        };
        for id in ids {
            let config = RaftConfig {
                node: key(*id),
                cluster_id: "cluster".into(),
                endpoints: endpoints(*id),
                election_timeout_ms: 1_000,
                fetch_timeout_ms: 2_000,
                election_backoff_ms_max: 1_000,
                static_voters: ids.iter().map(|id| voter(*id)).collect(),
                bootstrap: Vec::new(),
                request_timeout_ms: 2_000,
                retry_backoff_ms: 20,
                fetch_bytes_max: 1 << 20,
                snapshot_bytes_max: 1 << 20,
                auto_join: false,
                kraft_versions: (0, 1),
                seed: 7 * *id as u64,
            };
            let member = Member {
                raft: Raft::new(config, Boot::default(), Instant(1)),
                log: Vec::new(),
                carried: BTreeMap::new(),
                asked: BTreeMap::new(),
                may_stop: false,
            };
            quorum.members.insert(*id, member);
            quorum.later(0, *id, Happening::Wake);
        }
        quorum
    }

    fn later(&mut self, ms: u64, id: i32, what: Happening) {
        self.count += 1;
        self.queue.insert((self.now + ms, self.count), (id, what));
    }

    fn drive(&mut self, id: i32, input: Input) {
        let now = Now {
            instant: Instant(self.now),
            wall: Timestamp(1_000_000 + self.now as i64),
        };
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let mut outputs = Vec::new();
        member.raft.handle(now, input, &mut outputs);
        self.execute(id, outputs);
        let Some(member) = self.members.get(&id) else {
            return;
        };
        let wake = member.raft.next_wakeup();
        if wake != Instant::NEVER {
            assert!(wake.0 >= self.now, "{id} wakes in the past");
            self.later(wake.0 - self.now, id, Happening::Wake);
        }
    }

    fn execute(&mut self, id: i32, outputs: Vec<Output>) {
        for output in outputs {
            self.execute_one(id, output);
        }
    }

    fn execute_one(&mut self, id: i32, output: Output) {
        let member = self.members.get_mut(&id).expect("it lives");
        match output {
            Output::Write { token, write, then } => {
                member.carried.insert(token, then);
                write_log(&mut member.log, write);
                self.later(self.disk_ms, id, Happening::Written(token));
            }
            Output::Send { call, to, ask } => self.send(id, call, &to, ask),
            Output::Reply { ticket, response } => {
                self.reply(id, ticket, Told::Response(response));
            }
            Output::ServeFetch {
                ticket,
                response,
                from,
                until,
                ..
            } => {
                let wanted = |it: &&FetchedBatch| it.end > from && it.first < until;
                let batches = member.log.iter().filter(wanted).cloned().collect();
                self.reply(id, ticket, Told::Fetch { response, batches });
            }
            Output::MayStop => member.may_stop = true,
            Output::ServeSnapshot { .. } | Output::KeepPiece { .. } => {
                unreachable!("there are no snapshots")
            }
            Output::Hangup(_)
            | Output::KeepOpen(_)
            | Output::QuorumChanged
            | Output::Committed(_)
            | Output::BecameLeader { .. }
            | Output::LostLeadership { .. } => {}
        }
    }

    fn send(&mut self, from: i32, call: CallId, to: &Peer, mut ask: Ask) {
        let PeerName::Node(NodeId(id)) = to.name else {
            unreachable!("there are no bootstrap servers");
        };
        assert_eq!(to.host, format!("node{id}"));
        if self.cut.contains(&(from, id)) {
            return;
        }
        if let (true, Ask::Raft(Request::Vote(vote))) = (self.shorter == Some(from), &mut ask) {
            (vote.last_epoch, vote.last_offset) = (Epoch(0), Offset::ZERO);
        }
        let pre_vote = matches!(&ask, Ask::Raft(Request::Vote(vote)) if vote.pre_vote);
        if !self.members.contains_key(&id) {
            self.later(WIRE_MS, from, Happening::Lost(id));
            self.later(
                WIRE_MS,
                from,
                Happening::Answer(call, Err(CallFault::Closed)),
            );
        } else if pre_vote && self.old.contains(&id) {
            let fault = Err(CallFault::Unsupported);
            self.later(WIRE_MS, from, Happening::Answer(call, fault));
        } else {
            self.later(WIRE_MS, id, Happening::Request(from, call, ask));
        }
    }

    fn reply(&mut self, id: i32, ticket: Ticket, told: Told) {
        let member = self.members.get_mut(&id).expect("it lives");
        let (to, call) = member.asked.remove(&ticket).expect("one answer each");
        if !self.cut.contains(&(id, to)) {
            self.later(WIRE_MS, to, Happening::Answer(call, Ok(told)));
        }
    }

    fn happen(&mut self, id: i32, what: Happening) {
        if !self.members.contains_key(&id) {
            // What was on its way to a process that died ends with its connection.
            if let Happening::Request(from, call, _) = what {
                self.later(0, from, Happening::Answer(call, Err(CallFault::Closed)));
            }
            return;
        }
        match what {
            Happening::Wake => {
                let due = self.members[&id].raft.next_wakeup();
                if due.0 <= self.now {
                    self.drive(id, Input::WakeUp);
                }
            }
            Happening::Written(token) => {
                self.drive(id, Input::Written(token));
                let member = self.members.get_mut(&id).expect("it lives");
                let then = member.carried.remove(&token).unwrap_or_default();
                self.execute(id, then);
            }
            Happening::Request(from, call, Ask::Raft(request)) => {
                let ticket = Ticket(self.count);
                self.count += 1;
                let member = self.members.get_mut(&id).expect("it lives");
                member.asked.insert(ticket, (from, call));
                let listener = Arc::from("CONTROLLER");
                self.drive(
                    id,
                    Input::Request {
                        ticket,
                        listener,
                        request,
                    },
                );
            }
            Happening::Request(_, _, Ask::Versions) => {}
            Happening::Answer(call, outcome) => self.drive(id, Input::Answered { call, outcome }),
            Happening::Lost(peer) => self.drive(id, Input::PeerLost { peer: NodeId(peer) }),
        }
    }

    /// Goes on until `done`, at most for `ms`. Gives the time that it took.
    fn until(&mut self, ms: u64, done: impl Fn(&Self) -> bool) -> u64 {
        let began = self.now;
        while !done(self) {
            let Some(((at, _), (id, what))) = self.queue.pop_first() else {
                panic!("nothing happens any more");
            };
            assert!(at <= began + ms, "not within {ms} ms: {}", self.show());
            self.now = at;
            self.happen(id, what);
        }
        self.now - began
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= end
        {
            let ((at, _), (id, what)) = self.queue.pop_first().expect("looked at above");
            self.now = at;
            self.happen(id, what);
        }
        self.now = end;
    }

    fn show(&self) -> String {
        let shown = self.members.iter().map(|(id, member)| {
            let raft = &member.raft;
            format!("{id}: {} epoch {}", raft.role_name(), raft.epoch())
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// The node that leads with all others behind it.
    fn settled(&self) -> Option<i32> {
        let (leader, epoch) = self.active()?;
        let follows = |member: &Member| {
            member.raft.epoch() == epoch
                && member.raft.leader() == Some(NodeId(leader))
                && member.raft.high_watermark() == self.members[&leader].raft.high_watermark()
        };
        self.members.values().all(follows).then_some(leader)
    }

    fn active(&self) -> Option<(i32, Epoch)> {
        let found = self.members.iter().filter_map(|(id, member)| {
            let epoch = member.raft.active_epoch()?;
            Some((*id, epoch))
        });
        found.max_by_key(|(_, epoch)| *epoch)
    }

    /// Three that settled on a leader.
    fn settle(ids: &[i32]) -> (Self, i32) {
        let mut quorum = Self::start(ids);
        quorum.until(10_000, |it| it.settled().is_some());
        let leader = quorum.settled().expect("as waited for");
        (quorum, leader)
    }

    /// The process dies: every connection to it is closed.
    fn kill(&mut self, id: i32) {
        let dead = self.members.remove(&id).expect("it lives");
        for other in self.members.keys().copied().collect::<Vec<_>>() {
            self.later(WIRE_MS, other, Happening::Lost(id));
        }
        for (from, call) in dead.asked.into_values() {
            let fault = Err(CallFault::Closed);
            self.later(WIRE_MS, from, Happening::Answer(call, fault));
        }
    }

    fn lose_connection(&mut self, from: i32, to: i32) {
        let member = self.members.get_mut(&to).expect("it lives");
        let lost: Vec<Ticket> = member
            .asked
            .iter()
            .filter(|(_, (asker, _))| *asker == from)
            .map(|(ticket, _)| *ticket)
            .collect();
        let calls: Vec<CallId> = lost.iter().map(|it| member.asked[it].1).collect();
        // Answers of the other side go nowhere.
        for ticket in lost {
            member.asked.insert(ticket, (from, CallId(u64::MAX)));
        }
        self.later(WIRE_MS, from, Happening::Lost(to));
        for call in calls {
            self.later(
                WIRE_MS,
                from,
                Happening::Answer(call, Err(CallFault::Closed)),
            );
        }
    }
}

fn write_log(log: &mut Vec<FetchedBatch>, write: Write) {
    let batch = |first: Offset, end: Offset, epoch, control| FetchedBatch {
        first,
        end,
        epoch,
        control,
        bytes: bytes::Bytes::new(),
    };
    match write {
        Write::Append {
            first, end, epoch, ..
        } => log.push(batch(first, end, epoch, Vec::new())),
        Write::AppendControl {
            first,
            epoch,
            records,
            ..
        } => {
            let control: Vec<_> = (0..).map(|at| first.plus(at)).zip(records).collect();
            let end = first.plus(control.len() as i64);
            log.push(batch(first, end, epoch, control));
        }
        Write::Truncate { end } => log.retain(|batch| batch.end <= end),
        Write::MoveStart { .. } | Write::Restart { .. } | Write::QuorumState(_) => {}
    }
}

/// Each way to lose a leader of three and of five: how soon the next one leads, in milliseconds of
/// which a message and a write take one each.
#[test]
fn a_killed_leader_is_replaced_without_waiting_for_a_timer() {
    for ids in [&[1, 2, 3][..], &[1, 2, 3, 4, 5]] {
        let (mut quorum, leader) = Quorum::settle(ids);
        for _ in 0..(ids.len() - 1) / 2 {
            let (leader, epoch) = quorum.active().expect("settled");
            quorum.kill(leader);
            let took = quorum.until(100, |it| {
                it.active().is_some_and(|(_, later)| later > epoch)
            });
            assert!(took <= 30, "{took} ms: {}", quorum.show());
            assert_eq!(quorum.active().map(|(_, it)| it), Some(epoch.next()));
            quorum.until(1_000, |it| it.settled().is_some());
        }
        assert!(!quorum.members.contains_key(&leader));
    }
}

/// Two candidates of one epoch, and nobody else who could vote.
#[test]
fn votes_that_are_split_are_asked_for_again_at_once() {
    for disk_ms in [30, 45, 60, 75, 90] {
        let (mut quorum, _) = Quorum::settle(&[1, 2, 3]);
        let (leader, epoch) = quorum.active().expect("settled");
        quorum.disk_ms = disk_ms;
        quorum.kill(leader);
        let took = quorum.until(900, |it| {
            it.active().is_some_and(|(_, later)| later > epoch)
        });
        assert!(took <= 12 * disk_ms, "{took} ms: {}", quorum.show());
    }
}

#[test]
fn a_leader_that_stops_hands_over_at_once() {
    let (mut quorum, leader) = Quorum::settle(&[1, 2, 3]);
    let epoch = quorum.members[&leader].raft.epoch();
    quorum.drive(leader, Input::Shutdown);
    let took = quorum.until(100, |it| {
        it.active().is_some_and(|(_, later)| later > epoch)
    });
    assert!(took <= 20, "{took} ms: {}", quorum.show());
    assert_eq!(quorum.active().map(|(_, it)| it), Some(epoch.next()));
    quorum.until(100, |it| it.members[&leader].may_stop);
}

#[test]
fn a_leader_that_stops_alone_does_not_wait_for_the_dead() {
    let (mut quorum, leader) = Quorum::settle(&[1, 2, 3]);
    for id in [1, 2, 3] {
        if id != leader {
            quorum.kill(id);
        }
    }
    quorum.drive(leader, Input::Shutdown);
    quorum.until(100, |it| it.members[&leader].may_stop);
}

#[test]
fn a_silent_leader_is_replaced_by_the_timers_and_resigns() {
    let (mut quorum, leader) = Quorum::settle(&[1, 2, 3]);
    let epoch = quorum.members[&leader].raft.epoch();
    for other in [1, 2, 3] {
        quorum.cut.push((leader, other));
        quorum.cut.push((other, leader));
    }
    let took = quorum.until(5_000, |it| {
        it.active().is_some_and(|(_, later)| later > epoch)
    });
    assert!((1_400..4_100).contains(&took), "{took} ms");
    let took = quorum.until(4_000, |it| it.members[&leader].raft.role_name() != "leader");
    assert!(took <= 3_100, "{took} ms");
}

/// The law of failover: a flapping connection neither raises the epoch nor deposes a leader.
#[test]
fn connections_that_flap_change_nothing() {
    let (mut quorum, leader) = Quorum::settle(&[1, 2, 3]);
    let epoch = quorum.members[&leader].raft.epoch();
    let followers = [1, 2, 3].into_iter().filter(|id| *id != leader);
    // One that never gets an answer, not even before its fetch timer fires: the other hears.
    for flapping in followers.clone() {
        for round in 0..300 {
            quorum.lose_connection(flapping, leader);
            quorum.run(17);
            assert_eq!(quorum.active(), Some((leader, epoch)), "round {round}");
        }
        quorum.run(1_000);
    }
    // All at once, as when a switch restarts.
    for round in 0..50 {
        for follower in followers.clone() {
            quorum.lose_connection(follower, leader);
        }
        quorum.run(631);
        assert_eq!(quorum.active(), Some((leader, epoch)), "round {round}");
    }
    quorum.until(1_000, |it| it.settled() == Some(leader));
}

#[test]
fn while_a_voter_knows_no_pre_vote_only_the_timers_decide() {
    for old in [1, 2, 3] {
        let mut quorum = Quorum::start(&[1, 2, 3]);
        quorum.old = vec![old];
        for id in [1, 2, 3] {
            let peer = NodeId(old);
            quorum.drive(
                id,
                Input::PeerFound {
                    peer,
                    pre_vote: false,
                },
            );
        }
        quorum.until(10_000, |it| it.settled().is_some());
        let (leader, epoch) = quorum.active().expect("settled");
        quorum.kill(leader);
        quorum.run(1_000);
        assert!(quorum.active().is_none(), "{}", quorum.show());
        let survivors = quorum.members.values();
        assert!(survivors.clone().all(|it| it.raft.epoch() == epoch));
        quorum.until(10_000, |it| {
            it.active().is_some_and(|(_, later)| later > epoch)
        });
    }
}

#[test]
fn a_minority_elects_nobody_and_raises_no_epoch() {
    let (mut quorum, leader) = Quorum::settle(&[1, 2, 3]);
    let last = [1, 2, 3]
        .into_iter()
        .find(|id| *id != leader)
        .expect("two others");
    for id in [1, 2, 3] {
        if id != last {
            quorum.kill(id);
        }
    }
    let epoch = quorum.members[&last].raft.epoch();
    quorum.run(60_000);
    assert_eq!(quorum.members[&last].raft.epoch(), epoch);
    assert!(quorum.active().is_none());
}
