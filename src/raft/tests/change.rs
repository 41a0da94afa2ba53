//! Changes of the voters as their leader sees them: gates, codes and sentences, and what a new set
//! does (KIP-853).

use super::*;
use crate::raft::input::UNKNOWN_DIRECTORY;
use crate::types::CallId;
use crate::types::ids::base64url;

pub(super) const TIMED_OUT: ErrorCode = ErrorCode::RequestTimedOut;

/// A leader at kraft.version 1 whose only voter it is.
pub(super) fn dynamic(auto_join: bool, id: i32, voters: &[i32]) -> Rig {
    let nodes = voters.iter().map(|id| VoterNode {
        key: key(*id),
        endpoints: endpoints(),
        kraft_versions: (0, 1),
    });
    let boot = Boot {
        control: vec![
            (Offset(-1), ControlRecord::KraftVersion(1)),
            (Offset(-1), ControlRecord::Voters(nodes.collect())),
        ],
        ..Boot::default()
    };
    let mut config = config(&[]);
    config.node = key(id);
    config.auto_join = auto_join;
    Rig {
        raft: Raft::new(config, boot, Instant(0)),
        now: 0,
    }
}

fn leader() -> Rig {
    let mut rig = dynamic(false, 1, &[1]);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
    assert_eq!(rig.raft.log_end(), Offset(3));
    rig
}

fn add(id: i32) -> AddVoterRequest {
    AddVoterRequest {
        cluster_id: None,
        timeout_ms: 1,
        voter: key(id),
        endpoints: endpoints(),
        ack_when_committed: true,
    }
}

pub(super) fn remove(id: i32) -> Request {
    Request::RemoveVoter(RemoveVoterRequest {
        cluster_id: Some("cluster".into()),
        voter: key(id),
    })
}

pub(super) fn update(id: i32) -> UpdateVoterRequest {
    UpdateVoterRequest {
        cluster_id: None,
        current_leader_epoch: 1,
        voter: key(id),
        endpoints: vec![("controller".into(), "elsewhere".into(), 1)],
        kraft_versions: (0, 1),
    }
}

pub(super) fn fetch(id: i32, offset: Offset) -> Request {
    Request::Fetch(FetchRequest {
        cluster_id: None,
        replica: key(id),
        current_leader_epoch: 1,
        fetch_offset: offset.0,
        last_fetched_epoch: i32::from(offset.0 > 0),
        high_watermark: i64::MAX,
        max_wait_ms: 0,
        max_bytes: 1 << 20,
    })
}

/// The answers to voter changes among the outputs, with their tickets.
fn answers(outputs: &[Output]) -> Vec<(u64, ErrorCode, Option<String>)> {
    let mut found = Vec::new();
    for output in outputs {
        let Output::Reply { ticket, response } = output else {
            continue;
        };
        let (code, text) = match response {
            Response::AddVoter(told) | Response::RemoveVoter(told) => {
                (told.error, told.message.clone())
            }
            Response::UpdateVoter(told) => (told.error, None),
            _ => continue,
        };
        found.push((ticket.0, code, text));
    }
    found
}

fn calls(outputs: &[Output]) -> Vec<(CallId, PeerName)> {
    let sends = outputs.iter().filter_map(|output| match output {
        Output::Send { call, to, .. } => Some((*call, to.name)),
        _ => None,
    });
    sends.collect()
}

fn versions(range: Option<(u16, u16)>) -> Result<Told, CallFault> {
    Ok(Told::Versions {
        kraft_versions: range,
    })
}

impl Rig {
    /// Asks and gives the one answer, if it came at once.
    fn told(&mut self, asked: Request) -> Option<(ErrorCode, Option<String>)> {
        let outputs = self.drive(request(7, asked));
        let (ticket, code, text) = answers(&outputs).pop()?;
        assert_eq!(ticket, 7);
        Some((code, text))
    }

    pub(super) fn code(&mut self, asked: Request) -> Option<ErrorCode> {
        self.told(asked).map(|(code, _)| code)
    }

    /// A replica has everything.
    pub(super) fn catch_up(&mut self, id: i32) {
        let end = self.raft.log_end();
        self.drive(request(99, fetch(id, end)));
    }

    /// Asks for a new voter up to the question what it supports.
    fn begin_add(&mut self, ticket: u64, asked: AddVoterRequest) -> CallId {
        let name = PeerName::Node(asked.voter.id);
        let outputs = self.drive(request(ticket, Request::AddVoter(asked)));
        assert!(answers(&outputs).is_empty(), "{outputs:?}");
        let asked = calls(&outputs);
        let found = asked.iter().find(|(_, to)| *to == name);
        found.expect("the new voter is asked").0
    }

    /// Adds a voter up to the record in the log.
    fn append_add(&mut self, ticket: u64, id: i32) -> Vec<Output> {
        self.catch_up(id);
        let call = self.begin_add(ticket, add(id));
        let outcome = versions(Some((0, 1)));
        self.drive(Input::Answered { call, outcome })
    }

    pub(super) fn ids(&self) -> Vec<i32> {
        self.raft.voters().iter().map(|it| it.key.id.0).collect()
    }
}

fn text_of(id: i32) -> String {
    let directory = base64url(key(id).directory);
    format!("ReplicaKey(id={id}, directoryId={directory})")
}

/// KIP-853, AddRaftVoter: all that a request alone can have wrong, in the order of the checks:
/// each one has everything wrong that the ones behind it have.
#[test]
fn an_addition_is_refused_for_the_first_thing_that_is_wrong() {
    let mut rig = leader();
    let wrong_cluster = AddVoterRequest {
        cluster_id: Some("other".into()),
        voter: ReplicaKey {
            id: NodeId(-1),
            directory: UNKNOWN_DIRECTORY,
        },
        endpoints: Vec::new(),
        ..add(1)
    };
    let no_voter = AddVoterRequest {
        cluster_id: None,
        ..wrong_cluster.clone()
    };
    let no_directory = AddVoterRequest {
        voter: ReplicaKey {
            id: NodeId(1),
            directory: UNKNOWN_DIRECTORY,
        },
        ..no_voter.clone()
    };
    let nowhere = AddVoterRequest {
        endpoints: vec![("OTHER".into(), "h".into(), 9)],
        ..add(1)
    };
    let table = [
        (
            wrong_cluster,
            ErrorCode::InconsistentClusterId,
            "The given id \"other\" doesn't match the cluster id \"cluster\"".to_owned(),
        ),
        (
            no_voter,
            ErrorCode::InvalidRequest,
            "Add voter request didn't include a valid voter".to_owned(),
        ),
        (
            no_directory,
            ErrorCode::InvalidRequest,
            "Add voter request didn't include a valid voter".to_owned(),
        ),
        (
            nowhere,
            ErrorCode::InvalidRequest,
            "Add voter request didn't include the endpoint (Endpoints(endpoints={ListenerName(\
             OTHER)=h/<unresolved>:9})) for the default listener ListenerName(CONTROLLER)"
                .to_owned(),
        ),
        (
            add(1),
            ErrorCode::DuplicateVoter,
            format!(
                "The voter id for {} is already part of the set of voters [{}].",
                text_of(1),
                text_of(1)
            ),
        ),
    ];
    for (asked, code, text) in table {
        let told = rig.told(Request::AddVoter(asked.clone()));
        assert_eq!(told, Some((code, Some(text))), "{asked:?}");
    }
}

#[test]
fn only_the_leader_changes_voters_and_says_nothing_more() {
    let mut rig = leader();
    rig.drive(request(1, vote(7, 5)));
    for asked in [Request::AddVoter(add(4)), remove(1)] {
        let told = rig.told(asked);
        assert_eq!(told, Some((ErrorCode::NotLeaderOrFollower, None)));
    }
    let stale = Request::UpdateVoter(update(1));
    assert_eq!(rig.code(stale), Some(ErrorCode::FencedLeaderEpoch));
}

/// KIP-853: one change at a time, and none before the last one is committed.
#[test]
fn a_change_waits_for_the_one_before_it() {
    let mut rig = leader();
    rig.begin_add(1, add(4));
    let previous =
        "Request timed out waiting for leader to handle previous voter change request".to_owned();
    for asked in [Request::AddVoter(add(5)), remove(1)] {
        assert_eq!(rig.told(asked), Some((TIMED_OUT, Some(previous.clone()))));
    }
    assert_eq!(rig.code(Request::UpdateVoter(update(4))), Some(TIMED_OUT));

    // Node 2 is a voter that does not fetch, so the set with it is never committed.
    let mut rig = leader();
    rig.append_add(1, 2);
    assert_eq!(rig.ids(), [1, 2]);
    rig.now += 2_000;
    let outputs = rig.drive(Input::WakeUp);
    let expected = (1, TIMED_OUT, Some("The request timed out.".to_owned()));
    assert_eq!(answers(&outputs), [expected]);
    let uncommitted = "Request timed out waiting for voters to commit the latest voter change at \
                       Optional[3] with HWM 3"
        .to_owned();
    for asked in [Request::AddVoter(add(5)), remove(2)] {
        assert_eq!(
            rig.told(asked),
            Some((TIMED_OUT, Some(uncommitted.clone())))
        );
    }
    assert_eq!(rig.code(Request::UpdateVoter(update(2))), Some(TIMED_OUT));
    assert_eq!(rig.ids(), [1, 2], "the record stays in the log");
}

#[test]
fn a_static_quorum_has_no_voters_to_add_or_remove() {
    let mut rig = Rig::leader();
    let told = rig.told(Request::AddVoter(add(4)));
    let text = "Cluster doesn't support adding voter because the kraft.version feature is 0";
    assert_eq!(
        told,
        Some((ErrorCode::UnsupportedVersion, Some(text.into())))
    );
    let text = "Cluster doesn't support removing voter because the kraft.version feature is 0";
    assert_eq!(
        rig.told(remove(1)),
        Some((ErrorCode::UnsupportedVersion, Some(text.into())))
    );
}

/// KIP-853: a leader knows what is committed only once a record of its own epoch is.
#[test]
fn a_leader_that_has_committed_nothing_of_its_own_changes_no_voters() {
    let mut rig = dynamic(false, 1, &[1]);
    let mut outputs = rig.handle(Input::WakeUp);
    // Everything but the first batch of the epoch becomes durable.
    while let Some(Output::Write { token, write, .. }) = outputs
        .iter()
        .find(|output| matches!(output, Output::Write { .. }))
        && matches!(write, Write::QuorumState(_))
    {
        let token = *token;
        outputs = rig.handle(Input::Written(token));
    }
    assert_eq!(rig.raft.role_name(), "leader");
    let text = "Request timed out waiting for leader to establish HWM and fence previous voter \
                changes";
    let expected = Some((TIMED_OUT, Some(text.to_owned())));
    assert_eq!(rig.told(Request::AddVoter(add(4))), expected);
    assert_eq!(rig.told(remove(1)), expected);
}

#[test]
fn a_new_voter_counts_from_its_record_on_and_is_told_when_that_is_committed() {
    let mut rig = leader();
    let outputs = rig.append_add(1, 2);
    assert!(answers(&outputs).is_empty());
    assert_eq!(rig.ids(), [1, 2]);
    assert_eq!(rig.raft.high_watermark(), Some(Offset(3)), "one of two");
    let outputs = rig.drive(request(2, fetch(2, Offset(4))));
    assert_eq!(answers(&outputs), [(1, ErrorCode::None, None)]);
    assert_eq!(rig.raft.high_watermark(), Some(Offset(4)));
    // What it had told as an observer is not forgotten with the change of sides.
    rig.append_add(3, 3);
    let outputs = rig.drive(request(4, fetch(3, Offset(5))));
    assert_eq!(answers(&outputs), [(3, ErrorCode::None, None)]);
}

#[test]
fn whoever_does_not_wait_for_the_commit_is_told_at_the_append() {
    let mut rig = leader();
    rig.catch_up(2);
    let asked = AddVoterRequest {
        ack_when_committed: false,
        ..add(2)
    };
    let call = rig.begin_add(1, asked);
    let outcome = versions(Some((1, 1)));
    let outputs = rig.drive(Input::Answered { call, outcome });
    assert_eq!(answers(&outputs), [(1, ErrorCode::None, None)]);
    assert_eq!(rig.code(remove(2)), Some(TIMED_OUT), "still under way");
    rig.catch_up(2);
    assert_eq!(rig.raft.voters()[1].kraft_versions, (1, 1));
    let outputs = rig.drive(request(2, remove(2)));
    assert_eq!(answers(&outputs), [(2, ErrorCode::None, None)]);
}

/// KIP-853: what ends an addition before its record, with the sentences clients know.
#[test]
fn an_addition_ends_when_the_new_voter_is_unknown_old_or_far_behind() {
    let aborted = |error: &str| {
        format!("Aborted add voter operation for since API_VERSIONS returned an error {error}")
    };
    let range = |range: &str| {
        format!(
            "Aborted add voter operation for {} since the kraft.version range {range} doesn't \
             support the finalized version 1",
            text_of(2)
        )
    };
    let behind = format!(
        "Aborted add voter operation for {} since it is lagging behind",
        text_of(2)
    );
    let invalid = ErrorCode::InvalidRequest;
    let table = [
        (
            Err(CallFault::Closed),
            TIMED_OUT,
            aborted("BROKER_NOT_AVAILABLE"),
        ),
        (
            Err(CallFault::Unsupported),
            TIMED_OUT,
            aborted("UNSUPPORTED_VERSION"),
        ),
        (
            Err(CallFault::Garbage),
            TIMED_OUT,
            aborted("NETWORK_EXCEPTION"),
        ),
        (versions(Some((0, 0))), invalid, range("(min: 0, max: 0")),
        (versions(None), invalid, range("(min: 0, max: 0)")),
        (versions(Some((0, 1))), TIMED_OUT, behind),
    ];
    for (outcome, code, text) in table {
        let mut rig = leader();
        let call = rig.begin_add(1, add(2));
        let outputs = rig.drive(Input::Answered { call, outcome });
        assert_eq!(answers(&outputs), [(1, code, Some(text))]);
        assert_eq!(rig.raft.log_end(), Offset(3), "nothing is written");
        rig.now += 20;
        rig.begin_add(2, add(2));
    }
}

#[test]
fn a_replica_of_another_directory_or_an_hour_ago_is_not_caught_up() {
    let mut rig = leader();
    rig.catch_up(2);
    let mut other = add(2);
    other.voter.directory = Uuid::from_u128(77);
    let call = rig.begin_add(1, other);
    let outcome = versions(Some((0, 1)));
    let outputs = rig.drive(Input::Answered { call, outcome });
    assert_eq!(answers(&outputs)[0].1, TIMED_OUT);
    rig.now += 3_600_000;
    let call = rig.begin_add(2, add(2));
    let outcome = versions(Some((0, 1)));
    let outputs = rig.drive(Input::Answered { call, outcome });
    assert_eq!(answers(&outputs)[0].1, TIMED_OUT);
    assert_eq!(rig.ids(), [1]);
}

#[test]
fn a_new_voter_that_is_silent_costs_the_request_its_time_and_no_more() {
    let mut rig = leader();
    let call = rig.begin_add(1, add(2));
    assert_eq!(rig.raft.next_wakeup(), Instant(2_000));
    rig.now = 2_000;
    let outputs = rig.drive(Input::WakeUp);
    let expected = (1, TIMED_OUT, Some("The request timed out.".to_owned()));
    assert_eq!(answers(&outputs), [expected]);
    // It left the line for a moment, and its late answer is nobody's.
    let told = rig.told(Request::AddVoter(add(2)));
    let text = format!("New voter {} is not ready to receive requests", text_of(2));
    assert_eq!(told, Some((TIMED_OUT, Some(text))));
    let outcome = versions(Some((0, 1)));
    rig.drive(Input::Answered { call, outcome });
    assert_eq!(rig.ids(), [1]);
    assert_eq!(rig.raft.next_wakeup(), Instant(2_020));
}

#[test]
fn a_removal_needs_the_exact_voter_and_leaves_at_least_one() {
    let mut rig = leader();
    let text = |asked: String| {
        let text = format!(
            "Cannot remove voter {asked} from the set of voters [{}]",
            text_of(1)
        );
        Some((ErrorCode::VoterNotFound, Some(text)))
    };
    assert_eq!(rig.told(remove(9)), text(text_of(9)));
    assert_eq!(rig.told(remove(1)), text(text_of(1)), "the last one stays");
    let other = Request::RemoveVoter(RemoveVoterRequest {
        cluster_id: None,
        voter: ReplicaKey {
            id: NodeId(1),
            directory: UNKNOWN_DIRECTORY,
        },
    });
    let invalid = "Remove voter request didn't include a valid voter".to_owned();
    assert_eq!(
        rig.told(other),
        Some((ErrorCode::InvalidRequest, Some(invalid)))
    );
}

/// A leader of the voters 1, 2 and 3.
pub(super) fn leader_of_three() -> Rig {
    let mut rig = leader();
    for id in [2, 3] {
        rig.append_add(1, id);
        rig.catch_up(2);
        rig.catch_up(id);
    }
    assert_eq!(rig.ids(), [1, 2, 3]);
    assert_eq!(rig.raft.high_watermark(), Some(rig.raft.log_end()));
    rig
}

/// KIP-853: a leader that is removed leads until that is committed, by the others alone.
#[test]
fn a_leader_that_removes_itself_does_not_count_itself_and_resigns_at_the_commit() {
    let mut rig = leader_of_three();
    let before = rig.raft.high_watermark();
    let outputs = rig.drive(request(1, remove(1)));
    assert!(answers(&outputs).is_empty());
    assert_eq!(rig.ids(), [2, 3]);
    rig.catch_up(2);
    assert_eq!(rig.raft.high_watermark(), before, "one of two");
    assert_eq!(rig.raft.active_epoch(), Some(Epoch(1)));
    let outputs = rig.drive(request(8, Request::DescribeQuorum(DescribeQuorumRequest)));
    let Output::Reply {
        response: Response::DescribeQuorum(quorum),
        ..
    } = &outputs[0]
    else {
        panic!("{outputs:?}");
    };
    assert_eq!(quorum.voters.len(), 2);
    assert!(quorum.observers.iter().any(|it| it.key == key(1)));

    let end = rig.raft.log_end();
    let mut asked = fetch(3, end);
    if let Request::Fetch(fetch) = &mut asked {
        fetch.max_wait_ms = 500;
    }
    let outputs = rig.drive(request(2, asked));
    let order: Vec<&str> = outputs
        .iter()
        .map(|output| match output {
            Output::Committed(_) => "committed",
            Output::Reply {
                response: Response::RemoveVoter(told),
                ..
            } if told.error == ErrorCode::None => "answered",
            Output::LostLeadership { .. } => "lost",
            Output::Reply {
                response: Response::Fetch(_),
                ..
            } => "fetch",
            Output::Send { .. } => "end",
            _ => "-",
        })
        .filter(|what| *what != "-")
        .collect();
    assert_eq!(order[..2], ["committed", "lost"], "{outputs:?}");
    for told in ["answered", "fetch", "end"] {
        assert!(order.contains(&told), "{told} in {outputs:?}");
    }
    assert_eq!(rig.raft.role_name(), "resigned");
    rig.now = rig.raft.next_wakeup().0.max(rig.now + 2_000);
    rig.drive(Input::WakeUp);
    assert_eq!(rig.raft.role_name(), "unattached", "it looks for the next");
    assert_eq!(rig.raft.epoch(), Epoch(2));
}

#[test]
fn a_leader_that_is_deposed_tells_whoever_waits_for_its_change() {
    let mut rig = leader();
    rig.append_add(1, 2);
    let outputs = rig.drive(request(2, vote(7, 5)));
    let told = answers(&outputs);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, ErrorCode::NotLeaderOrFollower);
    assert!(told[0].2.as_ref().unwrap().starts_with("For requests"));
}
