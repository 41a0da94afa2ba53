//! What a leader learns of its voters, and kraft.version 1 that follows from it (KIP-853).

use super::change::{TIMED_OUT, fetch, leader_of_three, remove, update};
use super::*;
use crate::raft::input::UNKNOWN_DIRECTORY;

/// KIP-853, UpdateRaftVoter: what a request can have wrong.
#[test]
fn an_update_is_of_a_voter_that_can_be_reached_and_understood() {
    let mut rig = leader_of_three();
    let with = |bend: &dyn Fn(&mut UpdateVoterRequest)| {
        let mut asked = update(2);
        bend(&mut asked);
        Request::UpdateVoter(asked)
    };
    let invalid = ErrorCode::InvalidRequest;
    let table: [(Request, ErrorCode); 11] = [
        (
            with(&|it| it.cluster_id = Some("other".into())),
            ErrorCode::InconsistentClusterId,
        ),
        (
            with(&|it| it.current_leader_epoch = 0),
            ErrorCode::FencedLeaderEpoch,
        ),
        (
            with(&|it| it.current_leader_epoch = 2),
            ErrorCode::UnknownLeaderEpoch,
        ),
        (with(&|it| it.voter.id = NodeId(-1)), invalid),
        (with(&|it| it.voter.directory = UNKNOWN_DIRECTORY), invalid),
        (with(&|it| it.voter = key(1)), invalid),
        (with(&|it| it.endpoints.clear()), invalid),
        (with(&|it| it.kraft_versions = (-1, 1)), invalid),
        (with(&|it| it.kraft_versions = (1, 0)), invalid),
        (with(&|it| it.kraft_versions = (0, 0)), invalid),
        (
            with(&|it| it.voter.directory = Uuid::from_u128(5)),
            ErrorCode::VoterNotFound,
        ),
    ];
    for (asked, code) in table {
        let shown = format!("{asked:?}");
        assert_eq!(rig.code(asked), Some(code), "{shown}");
    }
    let end = rig.raft.log_end();
    let told = rig.code(with(&|_| {}));
    assert_eq!(told, Some(ErrorCode::None), "at once, not at the commit");
    assert_eq!(rig.raft.log_end(), end.next());
    let two = &rig.raft.voters()[1];
    assert_eq!(
        two.endpoints,
        [("CONTROLLER".to_owned(), "elsewhere".to_owned(), 1)]
    );
    assert_eq!(rig.code(with(&|_| {})), Some(TIMED_OUT), "not committed");
    rig.catch_up(3);
    assert_eq!(rig.code(with(&|_| {})), Some(ErrorCode::None));
}

impl Rig {
    /// Two static voters, of which this node leads with the vote of the other.
    fn static_leader_of_two() -> Self {
        let mut rig = Self::elected_of_two(Boot::default());
        rig.drive(request(1, fetch(2, Offset(1))));
        assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
        rig
    }

    /// The same before the other has fetched anything.
    fn elected_of_two(boot: Boot) -> Self {
        let mut rig = Self::new(&[1, 2], boot);
        rig.drive(Input::WakeUp);
        let mut rounds = 0;
        while rig.raft.role_name() != "leader" {
            rounds += 1;
            assert!(rounds < 10, "{}", rig.raft.role_name());
            rig.now = rig.raft.next_wakeup().0.max(rig.now);
            let mut outputs = rig.drive(Input::WakeUp);
            while let Some(call) = outputs.iter().find_map(|output| match output {
                Output::Send {
                    call,
                    ask: Ask::Raft(Request::Vote(vote)),
                    ..
                } => Some((*call, vote.epoch)),
                _ => None,
            }) {
                let (call, epoch) = call;
                let hint = LeaderHint {
                    epoch,
                    ..LeaderHint::default()
                };
                let vote = VoteResponse {
                    error: RaftError::None,
                    hint,
                    granted: true,
                };
                let outcome = Ok(Told::Response(Response::Vote(vote)));
                outputs = rig.drive(Input::Answered { call, outcome });
            }
        }
        rig
    }
}

/// KIP-595, high watermark: others may know of more commits than a new leader does, and Java's
/// processes halt on a leader that tells them less than the one before it.
#[test]
fn a_new_leader_tells_no_commit_offset_before_its_epoch_has_one() {
    let mut rig = Rig::elected_of_two(Boot {
        log_end: Offset(10),
        epochs: vec![(Epoch(1), Offset(0))],
        ..Boot::default()
    });
    // From its time as a follower.
    rig.raft.commit = Some(Offset(8));
    let epoch = rig.raft.epoch();
    let told = |rig: &mut Rig, offset: i64, last_fetched_epoch: i32| {
        let fetch = Request::Fetch(FetchRequest {
            cluster_id: None,
            replica: key(2),
            current_leader_epoch: epoch.0,
            fetch_offset: offset,
            last_fetched_epoch,
            high_watermark: -1,
            max_wait_ms: 0,
            max_bytes: 1,
        });
        let asked = [fetch, Request::DescribeQuorum(DescribeQuorumRequest)];
        let outputs = asked.map(|it| rig.drive(request(1, it))).concat();
        let told = outputs.iter().filter_map(|output| match output {
            Output::ServeFetch { response, .. } => Some(response.high_watermark),
            Output::Reply {
                response: Response::Fetch(told),
                ..
            } => Some(told.high_watermark),
            Output::Reply {
                response: Response::DescribeQuorum(told),
                ..
            } => Some(told.high_watermark),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(&mut rig, 10, 1), [-1, -1]);
    let end = rig.raft.log_end().0;
    assert_eq!(told(&mut rig, end, epoch.0), [end, end]);
}

/// KIP-853: kraft.version rises once the leader knows where every voter is and what it can.
#[test]
fn kraft_version_rises_when_all_static_voters_have_told_of_themselves() {
    let mut rig = Rig::static_leader_of_two();
    let not_all = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the \
                   voters support it";
    assert_eq!(
        rig.raft.check_kraft_version(1),
        Err(not_all.to_owned()),
        "node 2 has told nothing"
    );
    assert_eq!(rig.raft.check_kraft_version(0), Ok(()));
    rig.drive(Input::UpgradeKraftVersion(1));
    assert_eq!(rig.raft.kraft_version(), 0, "it is checked again");
    let mut old = update(2);
    old.kraft_versions = (0, 0);
    assert_eq!(
        rig.code(Request::UpdateVoter(old)),
        Some(ErrorCode::None),
        "it is noted all the same"
    );
    assert!(rig.raft.check_kraft_version(1).is_err());
    let stranger = Request::UpdateVoter(update(3));
    assert_eq!(rig.code(stranger), Some(ErrorCode::VoterNotFound));
    assert_eq!(
        rig.code(Request::UpdateVoter(update(2))),
        Some(ErrorCode::None)
    );
    assert_eq!(rig.raft.log_end(), Offset(1), "all in memory");
    assert_eq!(rig.raft.check_kraft_version(1), Ok(()));

    let outputs = rig.handle(Input::UpgradeKraftVersion(1));
    let records = outputs.iter().find_map(|output| match output {
        Output::Write {
            write: Write::AppendControl { records, .. },
            ..
        } => Some(records.clone()),
        _ => None,
    });
    let [ControlRecord::KraftVersion(1), ControlRecord::Voters(nodes)] = &records.unwrap()[..]
    else {
        panic!("{outputs:?}");
    };
    assert_eq!([nodes[0].key, nodes[1].key], [key(1), key(2)]);
    assert_eq!(nodes[1].endpoints[0].1, "elsewhere");
    let state = outputs.iter().find_map(|output| match output {
        Output::Write {
            write: Write::QuorumState(state),
            ..
        } => Some(state.kraft_version),
        _ => None,
    });
    assert_eq!(state, Some(1), "quorum-state is of format 1 from now on");
    assert_eq!(rig.raft.kraft_version(), 1);
    let text = "Invalid upgrade of kraft.version from version KRAFT_VERSION_1 to KRAFT_VERSION_0 \
                because the new version is a downgrade";
    assert_eq!(rig.raft.check_kraft_version(0), Err(text.to_owned()));
}

#[test]
fn voters_that_reached_kraft_version_1_keep_what_they_had() {
    let mut rig = Rig::static_leader_of_two();
    rig.code(Request::UpdateVoter(update(2)));
    rig.drive(Input::UpgradeKraftVersion(1));
    assert_eq!(rig.code(Request::UpdateVoter(update(2))), Some(TIMED_OUT));
    let end = rig.raft.log_end();
    rig.drive(request(3, fetch(2, end)));
    assert_eq!(rig.raft.high_watermark(), Some(end));
    assert_eq!(rig.code(remove(2)), Some(ErrorCode::None));
    assert_eq!(rig.ids(), [1]);
}
