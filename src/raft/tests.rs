//! The core as a whole, driven by hand: what needs a look at each output. The scenario traces of
//! `protocol-tests` and the simulator cover the rest.

use crate::types::{
    Epoch, ErrorCode, Instant, NodeId, Now, Offset, ReplicaKey, Ticket, Timestamp, Token, Uuid,
};

use super::*;

pub(super) fn key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        directory: Uuid::from_u128(1_000 + id as u128),
    }
}

pub(super) fn endpoints() -> Vec<(String, String, u16)> {
    vec![("CONTROLLER".into(), "localhost".into(), 9_090)]
}

pub(super) fn config(voters: &[i32]) -> RaftConfig {
    RaftConfig {
        node: key(1),
        cluster_id: "cluster".into(),
        endpoints: endpoints(),
        election_timeout_ms: 1_000,
        fetch_timeout_ms: 2_000,
        election_backoff_ms_max: 1_000,
        static_voters: voters
            .iter()
            .map(|id| VoterNode {
                key: ReplicaKey {
                    id: NodeId(*id),
                    directory: Uuid::nil(),
                },
                endpoints: endpoints(),
                kraft_versions: (0, 1),
            })
            .collect(),
        bootstrap: Vec::new(),
        request_timeout_ms: 2_000,
        retry_backoff_ms: 20,
        fetch_bytes_max: 1 << 20,
        snapshot_bytes_max: 1 << 20,
        auto_join: false,
        kraft_versions: (0, 1),
        seed: 1,
    }
}

pub(super) struct Rig {
    pub(super) raft: Raft,
    pub(super) now: u64,
}

impl Rig {
    pub(super) fn new(voters: &[i32], boot: Boot) -> Self {
        Self {
            raft: Raft::new(config(voters), boot, Instant(0)),
            now: 0,
        }
    }

    pub(super) fn handle(&mut self, input: Input) -> Vec<Output> {
        let now = Now {
            instant: Instant(self.now),
            wall: Timestamp(1_000_000 + self.now as i64),
        };
        let mut outputs = Vec::new();
        self.raft.handle(now, input, &mut outputs);
        // What status displays and connections want to know is not what these tests are about.
        outputs.retain(|it| !matches!(it, Output::QuorumChanged | Output::KeepOpen(_)));
        outputs
    }

    /// Handles an input and completes every write at once; gives all that is not a write.
    pub(super) fn drive(&mut self, input: Input) -> Vec<Output> {
        let mut todo: std::collections::VecDeque<Output> = self.handle(input).into();
        let mut done = Vec::new();
        while let Some(output) = todo.pop_front() {
            match output {
                Output::Write { token, then, .. } => {
                    let after = self.handle(Input::Written(token));
                    for output in after.into_iter().chain(then).rev() {
                        todo.push_front(output);
                    }
                }
                other => done.push(other),
            }
        }
        done
    }

    pub(super) fn leader() -> Self {
        let mut rig = Self::new(&[1], Boot::default());
        rig.drive(Input::WakeUp);
        assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
        rig
    }
}

pub(super) fn request(ticket: u64, request: Request) -> Input {
    Input::Request {
        ticket: Ticket(ticket),
        listener: "CONTROLLER".into(),
        request,
    }
}

pub(super) fn vote(candidate: i32, epoch: i32) -> Request {
    Request::Vote(VoteRequest {
        cluster_id: None,
        voter: None,
        candidate: key(candidate),
        epoch: Epoch(epoch),
        last_epoch: Epoch(epoch - 1),
        last_offset: Offset(1_000),
        pre_vote: false,
    })
}

#[test]
fn nothing_acts_in_a_new_epoch_before_its_election_is_durable() {
    let mut rig = Rig::new(&[1], Boot::default());
    let first = rig.handle(Input::WakeUp);
    let [Output::Write { token, write, then }] = &first[..] else {
        panic!("{first:?}");
    };
    assert!(matches!(write, Write::QuorumState(state) if state.voted.is_some()));
    assert!(then.is_empty());
    // A vote in a still newer epoch waits, and is answered inside the write that it causes.
    assert!(rig.handle(request(1, vote(7, 9))).is_empty());
    assert_eq!(rig.raft.next_wakeup(), Instant::NEVER);
    let second = rig.handle(Input::Written(*token));
    let [Output::Write { token, write, .. }] = &second[..] else {
        panic!("{second:?}");
    };
    assert!(matches!(write, Write::QuorumState(state) if state.leader == Some(NodeId(1))));
    let third = rig.handle(Input::Written(*token));
    let [
        Output::Write { write: append, .. },
        Output::Write { write, then, .. },
    ] = &third[..]
    else {
        panic!("{third:?}");
    };
    assert!(matches!(append, Write::AppendControl { .. }));
    assert!(
        matches!(write, Write::QuorumState(state) if state.voted.is_some_and(|v| v.id == NodeId(7)))
    );
    assert!(
        matches!(&then[..], [Output::Reply { response: Response::Vote(vote), .. }] if vote.granted)
    );
}

#[test]
fn a_single_voter_that_was_deposed_leads_again_by_its_election_timer() {
    let mut rig = Rig::leader();
    let outputs = rig.drive(request(1, vote(7, 5)));
    assert!(matches!(
        outputs[0],
        Output::LostLeadership {
            epoch: Epoch(5),
            leader: None
        }
    ));
    assert_eq!(rig.raft.role_name(), "unattached-voted");
    rig.now = rig.raft.next_wakeup().0;
    assert!((1_000..2_000).contains(&rig.now));
    let outputs = rig.drive(Input::WakeUp);
    assert!(matches!(
        outputs[..],
        [
            Output::Committed(Offset(2)),
            Output::BecameLeader { epoch: Epoch(6) }
        ]
    ));
}

/// Every completion used to look at the timers first, one of which had run out again: each began
/// the next election, and what waited for the write was never taken in.
#[test]
fn what_waits_for_a_write_is_heard_before_the_next_election_begins() {
    let hasty = || RaftConfig {
        election_timeout_ms: 0,
        ..config(&[1])
    };
    let raft = || Raft::new(hasty(), Boot::default(), Instant(0));
    let mut rig = Rig {
        raft: raft(),
        now: 0,
    };
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));

    let mut rig = Rig {
        raft: raft(),
        now: 0,
    };
    let outputs = rig.handle(Input::WakeUp);
    let [Output::Write { token, .. }] = outputs[..] else {
        panic!("the election state is written: {outputs:?}");
    };
    assert!(rig.handle(request(1, vote(2, 9))).is_empty());
    assert!(
        rig.handle(Input::Shutdown).is_empty(),
        "it waits for the write"
    );
    // It may lead before it hears of the stop, which is one more write.
    let mut outputs = rig.handle(Input::Written(token));
    if let [Output::Write { token, .. }] = outputs[..] {
        outputs = rig.handle(Input::Written(token));
    }
    let ends = outputs.iter().any(|it| matches!(it, Output::MayStop));
    assert!(ends, "{outputs:?}");
}

#[test]
fn a_forged_leader_cannot_stop_the_process_nor_change_its_mind() {
    let mut rig = Rig::leader();
    let begin = |leader: i32, epoch: i32| {
        Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            cluster_id: None,
            voter: None,
            leader_id: NodeId(leader),
            epoch: Epoch(epoch),
            endpoints: endpoints(),
        })
    };
    for (leader, epoch, code) in [
        (9, 1, ErrorCode::InvalidRequest),
        (1, 7, ErrorCode::InvalidRequest),
        (-1, 2, ErrorCode::InvalidRequest),
        (9, i32::MAX, ErrorCode::InvalidRequest),
        (9, i32::MAX - 1, ErrorCode::InvalidRequest),
        (9, Epoch::FAR.0 + 1, ErrorCode::InvalidRequest),
        (9, 0, ErrorCode::FencedLeaderEpoch),
        (9, i32::MIN, ErrorCode::FencedLeaderEpoch),
    ] {
        let outputs = rig.drive(request(1, begin(leader, epoch)));
        let [
            Output::Reply {
                response: Response::BeginQuorumEpoch(response),
                ..
            },
        ] = &outputs[..]
        else {
            panic!("{outputs:?}");
        };
        assert_eq!(
            response.error,
            RaftError::Partition(code),
            "{leader} {epoch}"
        );
        assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
    }
    // A plausible lie costs one fetch timeout of leadership and no more.
    rig.drive(request(2, begin(9, 3)));
    assert_eq!(rig.raft.role_name(), "follower");
    rig.now = rig.raft.next_wakeup().0;
    assert_eq!(rig.now, 2_000);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.active_epoch(), Some(Epoch(4)));
}

/// A vote asked at the end of the epochs let the node lead in the last one, which its next start
/// refused to read.
#[test]
fn the_greatest_epoch_that_is_believed_leaves_room_for_elections_and_restarts() {
    let mut rig = Rig::leader();
    rig.drive(request(1, vote(7, Epoch::FAR.0 + 1)));
    assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
    rig.drive(request(2, vote(7, Epoch::FAR.0)));
    rig.now = rig.raft.next_wakeup().0;
    rig.drive(Input::WakeUp);
    let led = Epoch::FAR.next();
    assert_eq!(rig.raft.active_epoch(), Some(led));
    // Others who went as far are believed from here on, and no further than a step.
    rig.drive(request(3, vote(7, Epoch::END.0 - 1)));
    assert_eq!(rig.raft.active_epoch(), Some(led));
    rig.drive(request(4, vote(7, led.0 + 3)));
    assert_eq!(rig.raft.role_name(), "unattached-voted");

    let quorum_state = Some(QuorumState {
        epoch: led,
        leader: Some(NodeId(1)),
        ..QuorumState::default()
    });
    let boot = Boot {
        quorum_state,
        ..Boot::default()
    };
    let mut rig = Rig::new(&[1], boot);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.active_epoch(), Some(led.next()));
}

/// Whether it may lead was asked before it knew its epoch: a lone voter without its quorum-state
/// led once more in the last epoch, which its log had a leader change of.
#[test]
fn nobody_leads_again_in_the_last_epoch_that_there_is() {
    let last = Epoch(Epoch::END.0 - 1);
    for epoch in [last, Epoch::END, Epoch(i32::MAX)] {
        for leader in [None, Some(NodeId(1))] {
            let lost = Boot {
                log_end: Offset(9),
                epochs: vec![(epoch, Offset(0))],
                ..Boot::default()
            };
            let kept = Boot {
                quorum_state: Some(QuorumState {
                    epoch,
                    leader,
                    voted: Some(key(1)),
                    ..QuorumState::default()
                }),
                ..Boot::default()
            };
            for boot in [lost, kept] {
                let mut rig = Rig::new(&[1], boot);
                for _ in 0..9 {
                    rig.drive(Input::WakeUp);
                    rig.now += 10_000;
                    assert_eq!(rig.raft.active_epoch(), None);
                }
                assert_eq!(rig.raft.next_wakeup(), Instant::NEVER);
            }
        }
    }
    let before = QuorumState {
        epoch: Epoch(last.0 - 1),
        leader: Some(NodeId(1)),
        ..QuorumState::default()
    };
    let boot = Boot {
        quorum_state: Some(before),
        ..Boot::default()
    };
    let mut rig = Rig::new(&[1], boot);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.active_epoch(), Some(last));
    // It gives up what nobody can take over, and stays alone.
    rig.drive(Input::Resign);
    for _ in 0..9 {
        rig.now += 10_000;
        rig.drive(Input::WakeUp);
    }
    assert_eq!(rig.raft.active_epoch(), None);
}

#[test]
fn a_node_that_lost_committed_records_neither_votes_nor_leads() {
    let commit = crate::types::OffsetAndEpoch {
        offset: Offset(10),
        epoch: Epoch(0),
    };
    let boot = Boot {
        log_end: Offset(9),
        commit: Some(commit),
        ..Boot::default()
    };
    let mut rig = Rig::new(&[1], boot);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.role_name(), "unattached");
    assert_eq!(rig.raft.next_wakeup(), Instant::NEVER);
    let outputs = rig.drive(request(1, vote(7, 5)));
    let [Output::Reply { response, .. }] = &outputs[..] else {
        panic!("{outputs:?}");
    };
    assert!(matches!(response, Response::Vote(vote) if !vote.granted));
}

/// Its own vote counted when it had asked for votes before it was started anew: with a voter that
/// never had the lost records it was a majority.
#[test]
fn a_node_that_lost_committed_records_does_not_go_on_with_its_own_election() {
    let boot = Boot {
        quorum_state: Some(QuorumState {
            epoch: Epoch(5),
            voted: Some(key(1)),
            ..QuorumState::default()
        }),
        log_end: Offset(9),
        epochs: vec![(Epoch(1), Offset(0))],
        commit: Some(crate::types::OffsetAndEpoch {
            offset: Offset(10),
            epoch: Epoch(1),
        }),
        ..Boot::default()
    };
    let mut rig = Rig::new(&[1, 2, 3], boot);
    let outputs = rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.role_name(), "unattached-voted");
    let votes = outputs.iter().filter(|output| {
        matches!(
            output,
            Output::Send {
                ask: Ask::Raft(Request::Vote(_)),
                ..
            }
        )
    });
    assert_eq!(votes.count(), 0);
}

#[test]
fn a_candidate_that_lost_committed_records_does_not_go_on_after_a_restart() {
    let lost = crate::types::OffsetAndEpoch {
        offset: Offset(10),
        epoch: Epoch(1),
    };
    let state = QuorumState {
        epoch: Epoch(2),
        voted: Some(key(1)),
        voters: vec![NodeId(1), NodeId(2), NodeId(3)],
        ..QuorumState::default()
    };
    for (commit, role) in [(None, "candidate"), (Some(lost), "unattached-voted")] {
        let boot = Boot {
            quorum_state: Some(state.clone()),
            log_end: Offset(9),
            epochs: vec![(Epoch(1), Offset(0))],
            commit,
            ..Boot::default()
        };
        let rig = Rig::new(&[1, 2, 3], boot);
        assert_eq!(rig.raft.role_name(), role);
    }
}

#[test]
fn one_of_several_voters_does_not_elect_itself_and_keeps_trying() {
    let mut rig = Rig::new(&[1, 2, 3], Boot::default());
    rig.drive(Input::WakeUp);
    let mut roles = vec![rig.raft.role_name()];
    for _ in 0..4 {
        rig.now = rig.raft.next_wakeup().0;
        rig.drive(Input::WakeUp);
        roles.push(rig.raft.role_name());
    }
    assert_eq!(
        roles,
        [
            "unattached",
            "prospective",
            "unattached",
            "prospective",
            "unattached"
        ]
    );
    assert_eq!(rig.raft.epoch(), Epoch(0));
}

#[test]
fn only_the_first_search_for_a_majority_is_told() {
    let mut rig = Rig::new(&[1, 2, 3], Boot::default());
    rig.drive(Input::WakeUp);
    let mut told = Vec::new();
    for _ in 0..6 {
        let before = rig.raft.role_name();
        rig.now = rig.raft.next_wakeup().0;
        rig.drive(Input::WakeUp);
        assert_ne!(rig.raft.role_name(), before);
        told.push(!rig.raft.told_before);
    }
    assert_eq!(told, [true, true, false, false, false, false]);
}

#[test]
fn completions_and_proposals_that_fit_nothing_are_ignored() {
    let mut rig = Rig::leader();
    assert!(rig.handle(Input::Written(Token(999))).is_empty());
    for (epoch, first, end) in [(0, 1, 2), (2, 1, 2), (1, 0, 1), (1, 2, 3), (1, 1, 1)] {
        let proposal = Proposal {
            epoch: Epoch(epoch),
            first: Offset(first),
            end: Offset(end),
            batches: bytes::Bytes::new(),
        };
        assert!(rig.handle(Input::Propose(proposal)).is_empty());
    }
    assert_eq!(rig.raft.log_end(), Offset(1));
}

mod any_peer;
mod change;
mod joining;
mod update;
