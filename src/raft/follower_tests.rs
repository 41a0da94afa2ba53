//! A follower driven by hand: each answer of a leader, and what it may do to the log.

use std::collections::VecDeque;

use bytes::Bytes;

use super::refusal::Refusal;
use super::roles::Role;
use super::tests::{Rig, config, endpoints, key, request, vote};
use super::*;
use crate::types::{CallId, Epoch, Instant, NodeId, Offset, OffsetAndEpoch, Token};

pub(super) fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    }
}

/// Node 1, which follows node 2 in epoch 5.
pub(super) struct Node {
    pub(super) rig: Rig,
    pub(super) disk: VecDeque<(Token, Write)>,
    pub(super) sent: VecDeque<(CallId, Peer, Ask)>,
    pub(super) rest: Vec<Output>,
}

impl Node {
    /// With a log of these epochs that ends there.
    pub(super) fn start(end: i64, epochs: &[(i32, i64)]) -> Self {
        Self::boot(Boot {
            log_end: Offset(end),
            epochs: epochs
                .iter()
                .map(|(epoch, first)| (Epoch(*epoch), Offset(*first)))
                .collect(),
            ..Boot::default()
        })
    }

    pub(super) fn boot(mut boot: Boot) -> Self {
        boot.quorum_state = Some(QuorumState {
            epoch: Epoch(5),
            leader: Some(NodeId(2)),
            voted: None,
            voters: vec![NodeId(1), NodeId(2), NodeId(3)],
            kraft_version: 0,
        });
        let mut node = Self {
            rig: Rig::new(&[1, 2, 3], boot),
            disk: VecDeque::new(),
            sent: VecDeque::new(),
            rest: Vec::new(),
        };
        node.input(Input::WakeUp);
        node
    }

    pub(super) fn input(&mut self, input: Input) {
        for output in self.rig.handle(input) {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Write { token, write, then } => {
                self.disk.push_back((token, write));
                assert!(then.is_empty(), "{then:?}");
            }
            Output::Send { call, to, ask } => self.sent.push_back((call, to, ask)),
            Output::QuorumChanged | Output::KeepOpen(_) => {}
            other => self.rest.push(other),
        }
    }

    /// Everything on its way to the disk arrives there; gives it.
    pub(super) fn sync(&mut self) -> Vec<Write> {
        let mut done = Vec::new();
        while let Some((token, write)) = self.disk.pop_front() {
            done.push(write);
            self.input(Input::Written(token));
        }
        done
    }

    /// The one question that was sent last, if it is a fetch.
    pub(super) fn fetch(&mut self) -> (CallId, Peer, FetchRequest) {
        assert_eq!(self.sent.len(), 1, "{:?}", self.sent);
        match self.sent.pop_front() {
            Some((call, to, Ask::Raft(Request::Fetch(fetch)))) => (call, to, fetch),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn answer(&mut self, call: CallId, told: Told) {
        let outcome = Ok(told);
        self.input(Input::Answered { call, outcome });
    }

    /// Answers the fetch under way.
    pub(super) fn fetched(&mut self, answer: Answer) {
        let (call, ..) = self.fetch();
        self.answer(call, answer.told());
    }

    pub(super) fn deadline(&self) -> Instant {
        match &self.rig.raft.role {
            Role::Follower(role) => role.deadline,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn refused(&self) -> u64 {
        self.rig.raft.fetching.refused
    }

    /// Is the last refusal for committed records that the leader lost?
    pub(super) fn leader_lost_records(&self) -> bool {
        let last = self.rig.raft.fetching.refused_last;
        last.is_some_and(|(_, why)| matches!(why, Refusal::LostCommitted(_)))
    }

    pub(super) fn committed(&mut self) -> Vec<i64> {
        let offsets = std::mem::take(&mut self.rest).into_iter();
        offsets
            .map(|output| match output {
                Output::Committed(offset) => offset.0,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn grants_pre_vote(&mut self) -> bool {
        let Request::Vote(mut ask) = vote(3, 5) else {
            unreachable!()
        };
        ask.pre_vote = true;
        ask.last_epoch = Epoch(5);
        self.input(request(77, Request::Vote(ask)));
        match self.rest.pop() {
            Some(Output::Reply {
                response: Response::Vote(vote),
                ..
            }) => vote.granted,
            other => panic!("{other:?}"),
        }
    }
}

/// What node 2 answers to a fetch.
#[derive(Clone, Default)]
pub(super) struct Answer {
    pub(super) high_watermark: i64,
    pub(super) diverging: Option<OffsetAndEpoch>,
    pub(super) snapshot: Option<OffsetAndEpoch>,
    pub(super) batches: Vec<FetchedBatch>,
}

impl Answer {
    pub(super) fn told(self) -> Told {
        Told::Fetch {
            response: FetchResponse {
                error: RaftError::None,
                hint: hint(),
                high_watermark: self.high_watermark,
                log_start: Offset::ZERO,
                diverging: self.diverging,
                snapshot: self.snapshot,
            },
            batches: self.batches,
        }
    }
}

pub(super) fn hint() -> LeaderHint {
    LeaderHint {
        leader: Some(NodeId(2)),
        epoch: Epoch(5),
        endpoint: Some(("localhost".into(), 9_090)),
    }
}

fn batch(first: i64, end: i64, epoch: i32) -> FetchedBatch {
    FetchedBatch {
        first: Offset(first),
        end: Offset(end),
        epoch: Epoch(epoch),
        control: Vec::new(),
        bytes: Bytes::from(format!("<{first}..{end}@{epoch}>")),
    }
}

pub(super) fn records(high_watermark: i64, batches: &[(i64, i64, i32)]) -> Answer {
    Answer {
        high_watermark,
        batches: batches.iter().map(|(f, e, p)| batch(*f, *e, *p)).collect(),
        ..Answer::default()
    }
}

fn appended(write: &Write) -> (i64, i64, i32, String) {
    match write {
        Write::Append {
            first,
            end,
            epoch,
            batches,
        } => {
            let text = String::from_utf8(batches.to_vec()).unwrap();
            (first.0, end.0, epoch.0, text)
        }
        other => panic!("{other:?}"),
    }
}

/// KIP-595, fetch; KIP-1166 for the commit offset in it.
#[test]
fn a_fetch_says_where_the_log_ends_and_what_is_known_to_be_committed() {
    let mut node = Node::start(30, &[(1, 0), (3, 20)]);
    let (call, to, fetch) = node.fetch();
    assert_eq!(to.name, PeerName::Node(NodeId(2)));
    assert_eq!((to.host.as_str(), to.port), ("localhost", 9_090));
    assert_eq!(fetch.cluster_id.as_deref(), Some("cluster"));
    assert_eq!(fetch.replica, key(1));
    assert_eq!((fetch.fetch_offset, fetch.last_fetched_epoch), (30, 3));
    assert_eq!((fetch.current_leader_epoch, fetch.high_watermark), (5, -1));
    assert_eq!((fetch.max_wait_ms, fetch.max_bytes), (500, 1 << 20));
    node.answer(call, records(25, &[]).told());
    assert_eq!(node.committed(), [25]);
    assert_eq!(node.fetch().2.high_watermark, 25);
}

#[test]
fn records_are_appended_by_epoch_and_asked_beyond_only_when_they_are_durable() {
    let mut node = Node::start(30, &[(1, 0), (3, 20)]);
    node.fetched(records(
        33,
        &[(30, 32, 3), (32, 33, 4), (33, 36, 4), (36, 37, 5)],
    ));
    assert_eq!(node.committed(), [33]);
    assert!(node.sent.is_empty(), "{:?}", node.sent);
    let writes: Vec<_> = node.disk.iter().map(|(_, write)| appended(write)).collect();
    assert_eq!(
        writes,
        [
            (30, 32, 3, "<30..32@3>".to_owned()),
            (32, 36, 4, "<32..33@4><33..36@4>".to_owned()),
            (36, 37, 5, "<36..37@5>".to_owned()),
        ]
    );
    let (first, _) = node.disk.pop_front().unwrap();
    node.input(Input::Written(first));
    assert!(node.sent.is_empty(), "two writes are under way");
    node.sync();
    let (_, _, fetch) = node.fetch();
    assert_eq!((fetch.fetch_offset, fetch.last_fetched_epoch), (37, 5));
    assert_eq!(node.rig.raft.epoch_of(Offset(35)), Epoch(4));
    assert_eq!(node.rig.raft.epoch_of(Offset(31)), Epoch(3));
}

/// KIP-595: the smaller of the leader's high watermark and the own log end, and never back.
#[test]
fn the_commit_offset_follows_the_leaders_as_far_as_the_log_goes() {
    for (high_watermark, committed) in [(-1, &[][..]), (0, &[0]), (7, &[7]), (31, &[31])] {
        let mut node = Node::start(30, &[(1, 0)]);
        node.fetched(records(high_watermark, &[(30, 31, 5)]));
        assert_eq!(node.committed(), committed, "{high_watermark}");
    }
    let mut node = Node::start(30, &[(1, 0)]);
    for (high_watermark, committed) in [(99, &[31][..]), (20, &[]), (-1, &[]), (31, &[])] {
        let end = node.rig.raft.log_end().0;
        let batches = [(end, end + 1, 5)];
        let new = if committed.is_empty() {
            &[]
        } else {
            &batches[..]
        };
        node.fetched(records(high_watermark, new));
        assert_eq!(node.committed(), committed, "{high_watermark}");
        node.sync();
    }
}

#[test]
fn a_batch_that_does_not_follow_the_log_ends_what_is_taken() {
    for (batches, taken) in [
        (&[(31, 32, 5)][..], 30),
        (&[(29, 32, 5)], 30),
        (&[(30, 30, 5)], 30),
        (&[(30, 29, 5)], 30),
        (&[(30, 31, 2)], 30),
        (&[(30, 31, 6)], 30),
        (&[(30, 31, -1)], 30),
        (&[(30, 31, 4), (31, 33, 3)], 31),
        (&[(30, 31, 4), (32, 33, 4)], 31),
        (&[(30, 31, 4), (31, i64::MIN, 4)], 31),
    ] {
        let mut node = Node::start(30, &[(1, 0), (3, 20)]);
        node.rig.now = 100;
        node.fetched(records(i64::MAX, batches));
        let expected = Offset(taken);
        assert_eq!(node.rig.raft.log_end(), expected, "{batches:?}");
        assert_eq!(node.committed(), [taken], "{batches:?}");
        // An answer that brings nothing on does not prove that the leader leads.
        let useless = taken == 30;
        assert_eq!(node.refused(), u64::from(useless), "{batches:?}");
        let deadline = if useless { 2_000 } else { 2_100 };
        assert_eq!(node.deadline(), Instant(deadline), "{batches:?}");
    }
}

#[test]
fn each_good_answer_gives_the_leader_its_time_and_ends_the_pre_votes() {
    let mut node = Node::start(30, &[(1, 0)]);
    assert!(node.grants_pre_vote());
    node.rig.now = 700;
    node.fetched(records(30, &[]));
    assert_eq!(node.committed(), [30]);
    assert_eq!(node.deadline(), Instant(2_700));
    assert!(!node.grants_pre_vote());
    node.rig.now = 900;
    node.fetched(Answer {
        diverging: Some(id(30, 1)),
        ..Answer::default()
    });
    assert_eq!(node.deadline(), Instant(2_700), "it says nothing");
}

/// KIP-595, divergence: the epoch ends where the leader's does, or where its own does.
#[test]
fn a_log_that_parts_from_the_leaders_is_cut_there_and_compared_again() {
    for (diverging, end) in [
        (id(25, 3), 25),
        (id(27, 3), 27),
        (id(99, 2), 20),
        (id(15, 2), 20),
        (id(15, 1), 15),
        (id(99, 1), 20),
        (id(0, 0), 0),
    ] {
        let mut node = Node::start(30, &[(1, 0), (3, 20)]);
        node.rig.now = 100;
        node.fetched(Answer {
            high_watermark: 30,
            diverging: Some(diverging),
            ..Answer::default()
        });
        assert!(node.sent.is_empty(), "the cut is not durable");
        assert!(node.committed().is_empty());
        let writes = node.sync();
        assert!(
            matches!(writes[..], [Write::Truncate { end: Offset(at) }] if at == end),
            "{diverging:?} {writes:?}"
        );
        assert_eq!(node.rig.raft.log_end(), Offset(end));
        assert_eq!(node.deadline(), Instant(2_100));
        let (_, _, fetch) = node.fetch();
        let last = if end > 20 { 3 } else { i32::from(end > 0) };
        assert_eq!((fetch.fetch_offset, fetch.last_fetched_epoch), (end, last));
    }
}

#[test]
fn a_cut_that_makes_no_sense_or_costs_committed_records_is_refused() {
    for diverging in [
        id(30, 3),
        id(99, 3),
        id(10, 7),
        id(9, 1),
        id(0, 0),
        id(-1, 1),
        id(i64::MIN, i32::MIN),
        id(i64::MAX, i32::MAX),
    ] {
        let mut node = Node::start(30, &[(1, 0), (3, 20)]);
        node.fetched(records(10, &[]));
        node.rig.now = 100;
        assert_eq!(node.committed(), [10]);
        node.fetched(Answer {
            diverging: Some(diverging),
            ..Answer::default()
        });
        assert!(node.disk.is_empty(), "{diverging:?}");
        assert_eq!(node.refused(), 1);
        assert_eq!(node.rig.raft.role_name(), "follower");
        assert_eq!(
            node.deadline(),
            Instant(2_000),
            "it does not count as heard"
        );
        // Others are asked in the pause, and the leader again behind it.
        let (_, to, _) = node.fetch();
        assert_eq!(to.name, PeerName::Node(NodeId(3)));
        node.rig.now = 120;
        node.input(Input::WakeUp);
        let (_, to, _) = node.fetch();
        assert_eq!(to.name, PeerName::Node(NodeId(2)));
    }
}

#[test]
fn what_the_disk_or_a_snapshot_knows_to_be_committed_is_not_cut_either() {
    let log = Boot {
        log_end: Offset(30),
        epochs: vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(20))],
        ..Boot::default()
    };
    let marked = Boot {
        commit: Some(id(25, 3)),
        ..log.clone()
    };
    let snapshot = Boot {
        snapshots: vec![id(25, 3)],
        ..log
    };
    for boot in [marked, snapshot] {
        for (at, cut) in [(24, false), (25, true)] {
            let mut node = Node::boot(boot.clone());
            node.fetched(Answer {
                diverging: Some(id(at, 3)),
                ..Answer::default()
            });
            assert_eq!(node.sync().len(), usize::from(cut), "{at}");
            assert_eq!(node.refused(), u64::from(!cut), "{at}");
            assert_eq!(node.leader_lost_records(), !cut, "{at}");
        }
    }
}

#[test]
fn a_cut_takes_back_the_voters_that_were_in_it() {
    let voters = |ids: &[i32]| {
        let voter = |id: &i32| VoterNode {
            key: key(*id),
            endpoints: endpoints(),
            kraft_versions: (0, 1),
        };
        ControlRecord::Voters(ids.iter().map(voter).collect())
    };
    let mut node = Node::start(30, &[(1, 0)]);
    let mut control = batch(30, 32, 5);
    control.control = vec![
        (Offset(30), ControlRecord::KraftVersion(1)),
        (Offset(31), voters(&[1, 2, 3, 4])),
    ];
    node.fetched(Answer {
        batches: vec![control],
        ..records(30, &[])
    });
    assert_eq!(node.rig.raft.voters().len(), 4);
    assert_eq!(node.rig.raft.kraft_version(), 1);
    node.sync();
    node.fetched(Answer {
        diverging: Some(id(31, 5)),
        ..Answer::default()
    });
    assert_eq!(node.rig.raft.voters().len(), 3);
    assert_eq!(node.rig.raft.kraft_version(), 1);
    node.sync();
    node.fetched(Answer {
        diverging: Some(id(30, 1)),
        ..Answer::default()
    });
    assert_eq!(node.rig.raft.kraft_version(), 0);
}

/// The same question may be answered twice: by the leader under two of its names.
#[test]
fn an_answer_to_an_older_question_cuts_nothing() {
    let mut node = Node::start(30, &[(1, 0)]);
    let (call, ..) = node.fetch();
    let outcome = Err(CallFault::Silent);
    node.input(Input::Answered { call, outcome });
    let (older, to, _) = node.fetch();
    assert_eq!(to.name, PeerName::Node(NodeId(3)));
    node.rig.now = 20;
    node.input(Input::WakeUp);
    node.fetched(records(30, &[(30, 31, 5)]));
    node.sync();
    let (call, ..) = node.fetch();
    let answer = Answer {
        diverging: Some(id(30, 1)),
        ..Answer::default()
    };
    node.answer(older, answer.told());
    assert!(node.disk.is_empty());
    assert_eq!(node.rig.raft.log_end(), Offset(31));
    node.answer(call, records(31, &[]).told());
    assert_eq!(node.committed(), [30, 31]);
}

#[test]
fn a_node_that_lost_committed_records_votes_again_when_they_are_back() {
    let mut node = Node::boot(Boot {
        log_end: Offset(10),
        epochs: vec![(Epoch(1), Offset(0))],
        commit: Some(id(30, 1)),
        ..Boot::default()
    });
    assert_eq!(node.deadline(), Instant::NEVER);
    // The mark says nothing about what is left of the log: it may be an older copy.
    node.fetched(Answer {
        diverging: Some(id(8, 1)),
        ..Answer::default()
    });
    assert_eq!(node.sync().len(), 1);
    node.fetched(records(8, &[(8, 40, 1), (40, 41, 5)]));
    node.sync();
    assert!(!node.grants_pre_vote());
    assert_eq!(node.deadline(), Instant::NEVER);
    node.fetched(records(29, &[]));
    assert!(!node.rig.raft.intact());
    // It may have acknowledged more than the mark tells: only what the leader commits itself
    // comes behind all of that.
    node.fetched(records(30, &[]));
    assert!(!node.rig.raft.intact());
    node.fetched(records(41, &[]));
    assert!(node.rig.raft.intact());
    assert_eq!(node.deadline(), Instant(2_000));
}

#[test]
fn records_that_are_back_count_only_once_they_are_durable() {
    let mut node = Node::boot(Boot {
        log_end: Offset(10),
        epochs: vec![(Epoch(1), Offset(0))],
        commit: Some(id(30, 1)),
        ..Boot::default()
    });
    node.fetched(records(31, &[(10, 30, 1), (30, 31, 5)]));
    assert_eq!(node.committed(), [31]);
    assert!(!node.rig.raft.intact());
    node.sync();
    node.fetched(records(31, &[]));
    assert!(node.rig.raft.intact());
}

#[test]
fn a_node_without_a_leader_asks_others_who_leads_but_never_itself() {
    let mut config = config(&[1, 2, 3]);
    config.bootstrap = vec![
        ("localhost".into(), 9_090),
        ("elsewhere".into(), 9_090),
        ("localhost".into(), 9_091),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        config.seed = seed;
        let mut node = Node {
            rig: Rig {
                raft: Raft::new(config.clone(), Boot::default(), Instant(0)),
                now: 0,
            },
            disk: VecDeque::new(),
            sent: VecDeque::new(),
            rest: Vec::new(),
        };
        node.input(Input::WakeUp);
        node.sync();
        let (_, to, fetch) = node.fetch();
        assert_eq!((fetch.current_leader_epoch, fetch.fetch_offset), (0, 0));
        seen.insert(to.name);
    }
    let expected = [
        PeerName::Node(NodeId(2)),
        PeerName::Node(NodeId(3)),
        PeerName::Bootstrap(1),
        PeerName::Bootstrap(2),
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn nothing_is_fetched_while_something_is_on_its_way_to_the_disk() {
    let boot = Boot {
        log_end: Offset(30),
        epochs: vec![(Epoch(1), Offset(0))],
        snapshots: vec![id(20, 1)],
        ..Boot::default()
    };
    let mut node = Node::boot(boot);
    let (call, ..) = node.fetch();
    node.input(Input::Clean(id(20, 1)));
    node.answer(call, records(30, &[]).told());
    assert!(node.sent.is_empty());
    assert_eq!(node.sync().len(), 1);
    node.fetch();
}
