//! What a follower tells its leader of itself, and what a change of the voters does to it
//! (KIP-853).

use super::change::dynamic;
use super::*;
use crate::types::CallId;

/// A follower of node 2, for so long that it may tell of itself.
fn follower(mut rig: Rig) -> (Rig, Vec<Output>) {
    let begin = BeginQuorumEpochRequest {
        cluster_id: None,
        voter: None,
        leader_id: NodeId(2),
        epoch: Epoch(1),
        endpoints: endpoints(),
    };
    let mut outputs = rig.drive(request(1, Request::BeginQuorumEpoch(begin)));
    assert!(rig.raft.leader() == Some(NodeId(2)));
    assert!(asked(&outputs).is_none(), "not before its time");
    // The leader answers every fetch until then.
    for _ in 0..4 {
        rig.now += 500;
        outputs = rig.answer_fetch(&outputs);
    }
    (rig, outputs)
}

/// The question about voters among the outputs.
fn asked(outputs: &[Output]) -> Option<(CallId, Request)> {
    outputs.iter().find_map(|output| match output {
        Output::Send {
            call,
            ask:
                Ask::Raft(
                    request @ (Request::AddVoter(_)
                    | Request::RemoveVoter(_)
                    | Request::UpdateVoter(_)),
                ),
            ..
        } => Some((*call, request.clone())),
        _ => None,
    })
}

fn hint() -> LeaderHint {
    LeaderHint {
        leader: Some(NodeId(2)),
        epoch: Epoch(1),
        endpoint: None,
    }
}

impl Rig {
    /// The leader has nothing new.
    fn answer_fetch(&mut self, outputs: &[Output]) -> Vec<Output> {
        self.give(outputs, Vec::new(), -1)
    }

    /// The leader answers the last fetch among `outputs`.
    fn give(
        &mut self,
        outputs: &[Output],
        batches: Vec<FetchedBatch>,
        high_watermark: i64,
    ) -> Vec<Output> {
        let call = outputs.iter().rev().find_map(|output| match output {
            Output::Send {
                call,
                ask: Ask::Raft(Request::Fetch(_)),
                ..
            } => Some(*call),
            _ => None,
        });
        let response = FetchResponse {
            error: RaftError::None,
            hint: hint(),
            high_watermark,
            log_start: Offset::ZERO,
            diverging: None,
            snapshot: None,
        };
        let call = call.unwrap_or_else(|| panic!("no fetch in {outputs:?}"));
        let outcome = Ok(Told::Fetch { response, batches });
        self.drive(Input::Answered { call, outcome })
    }

    fn answer(&mut self, call: CallId, response: Response) -> Vec<Output> {
        let outcome = Ok(Told::Response(response));
        self.drive(Input::Answered { call, outcome })
    }
}

fn updated(error: ErrorCode) -> Response {
    Response::UpdateVoter(UpdateVoterResponse {
        error,
        hint: hint(),
    })
}

/// KIP-853: while kraft.version is 0 the leader cannot read it in the log.
#[test]
fn a_static_voter_tells_each_new_leader_once_where_it_is() {
    for error in [ErrorCode::None, ErrorCode::UnsupportedVersion] {
        let (mut rig, outputs) = follower(Rig::new(&[1, 2], Boot::default()));
        let Some((call, Request::UpdateVoter(update))) = asked(&outputs) else {
            panic!("{outputs:?}");
        };
        assert_eq!(update.voter, key(1));
        assert_eq!(update.current_leader_epoch, 1);
        assert_eq!(update.endpoints, endpoints());
        assert_eq!(update.kraft_versions, (0, 1));
        let mut outputs = rig.answer(call, updated(error));
        for _ in 0..20 {
            assert!(asked(&outputs).is_none());
            rig.now += 500;
            outputs = rig.answer_fetch(&outputs);
        }
    }
}

#[test]
fn an_update_that_is_refused_is_told_again_after_a_while() {
    let (mut rig, outputs) = follower(Rig::new(&[1, 2], Boot::default()));
    let (call, _) = asked(&outputs).unwrap();
    rig.answer(call, updated(ErrorCode::RequestTimedOut));
    rig.now += 20;
    let mut outputs = rig.drive(Input::WakeUp);
    for _ in 0..3 {
        assert!(asked(&outputs).is_none());
        rig.now += 500;
        outputs = rig.answer_fetch(&outputs);
    }
    rig.now += 500;
    outputs = rig.answer_fetch(&outputs);
    assert!(asked(&outputs).is_some());
}

#[test]
fn a_voter_whose_entry_is_right_has_nothing_to_tell() {
    let (_, outputs) = follower(dynamic(true, 1, &[1, 2]));
    assert!(asked(&outputs).is_none(), "{outputs:?}");
}

/// KIP-1186: an observer makes itself a voter, and first removes what it was in another directory.
#[test]
fn an_observer_joins_by_itself_if_it_is_to() {
    let (_, outputs) = follower(dynamic(false, 1, &[2, 3]));
    assert!(asked(&outputs).is_none(), "it is not to");

    let (mut rig, outputs) = follower(dynamic(true, 1, &[2, 3]));
    let Some((call, Request::AddVoter(add))) = asked(&outputs) else {
        panic!("{outputs:?}");
    };
    assert_eq!(add.voter, key(1));
    assert_eq!(add.timeout_ms, 2_000);
    assert!(!add.ack_when_committed);
    let told = ChangeVoterResponse {
        error: ErrorCode::RequestTimedOut,
        message: None,
    };
    let mut outputs = rig.answer(call, Response::AddVoter(told));
    for _ in 0..3 {
        rig.now += 500;
        outputs = rig.answer_fetch(&outputs);
        assert!(asked(&outputs).is_none());
    }
    rig.now += 500;
    outputs = rig.answer_fetch(&outputs);
    assert!(asked(&outputs).is_some(), "and tries again");

    let mut rig = dynamic(true, 1, &[1, 2]);
    rig.raft.config.node.directory = Uuid::from_u128(5);
    let (mut rig, outputs) = follower(rig);
    let Some((call, Request::RemoveVoter(remove))) = asked(&outputs) else {
        panic!("{outputs:?}");
    };
    assert_eq!(remove.voter, key(1), "the old directory");
    let told = ChangeVoterResponse {
        error: ErrorCode::None,
        message: None,
    };
    let outputs = rig.answer(call, Response::RemoveVoter(told));
    assert!(asked(&outputs).is_none(), "one at a time");
}

fn batch(first: i64, nodes: &[i32]) -> FetchedBatch {
    let nodes = nodes.iter().map(|id| VoterNode {
        key: key(*id),
        endpoints: endpoints(),
        kraft_versions: (0, 1),
    });
    FetchedBatch {
        first: Offset(first),
        end: Offset(first + 1),
        epoch: Epoch(1),
        control: vec![(Offset(first), ControlRecord::Voters(nodes.collect()))],
        bytes: bytes::Bytes::from_static(&[0]),
    }
}

/// KIP-853: a set counts from the moment its record is in the log, and its timers with it.
#[test]
fn an_observer_that_becomes_a_voter_has_a_fetch_timer_and_loses_it_again() {
    let mut rig = dynamic(false, 1, &[2, 3]);
    let begin = BeginQuorumEpochRequest {
        cluster_id: None,
        voter: None,
        leader_id: NodeId(2),
        epoch: Epoch(1),
        endpoints: endpoints(),
    };
    let outputs = rig.drive(request(1, Request::BeginQuorumEpoch(begin)));
    assert_eq!(rig.raft.role_name(), "observer");
    let outputs = rig.give(&outputs, vec![batch(0, &[1, 2, 3])], 1);
    assert_eq!(rig.raft.role_name(), "follower");
    assert_eq!(rig.raft.role.deadline(), Instant(2_000));
    let outputs = rig.give(&outputs, vec![batch(1, &[2, 3])], 2);
    assert_eq!(rig.raft.role_name(), "observer");
    assert_eq!(rig.raft.role.deadline(), Instant::NEVER);
    let outputs = rig.give(&outputs, vec![batch(2, &[1, 2, 3])], 3);
    assert_eq!(rig.raft.role_name(), "follower");
    assert!(!outputs.is_empty());
    // The leader falls silent: this node is a voter and tries to lead.
    rig.now += 2_000;
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.role_name(), "prospective");
}
