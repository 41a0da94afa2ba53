//! A follower of the recorded leaders: it gets what Java's replicas were answered, and has to ask
//! next what they asked next.

use super::super::wire::answers;
use super::peer_tests::{api, ask};
use super::*;
use crate::node::told;
use crate::raft::{
    Ask, Boot, FetchRequest, Input, LeaderHint, LoadedSnapshot, Output, QuorumState, Raft,
    RaftConfig, RaftError, Request, Response, Told, VoterNode,
};
use crate::types::{CallId, Epoch, Instant, NodeId, Now, Offset, OffsetAndEpoch, ReplicaKey, Uuid};

/// What a replica asked, and was answered.
struct Step {
    place: String,
    ask: Request,
    answer: Told,
}

type Connections = BTreeMap<u32, Vec<Option<Step>>>;

/// The fetches of each connection in order, of records and of snapshots, without those that failed
/// or were not answered; and the epochs of the log that they told of.
fn fetches(release: &str, life: &str) -> (Connections, Vec<(Epoch, Offset)>) {
    let all = frames(release, life);
    let mut connections = Connections::new();
    let mut epochs: BTreeMap<Epoch, Offset> = BTreeMap::new();
    for (frame, request) in &all {
        let Some(request) = request.map(|at| &all[at].0) else {
            continue;
        };
        let taken = taken(&request.bytes);
        let fetch = matches!(taken.key, ApiKey::Fetch | ApiKey::FetchSnapshot);
        let (Some(api), true) = (api(taken.key), fetch) else {
            continue;
        };
        let body = answer_body(
            taken.key,
            frame.version,
            frame.correlation,
            frame.bytes.clone(),
        );
        let answer = told(answers::decode(api, frame.version, body).unwrap()).unwrap();
        if let Told::Fetch { batches, .. } = &answer {
            for batch in batches {
                let first = epochs.entry(batch.epoch).or_insert(batch.first);
                *first = batch.first.min(*first);
            }
        }
        let asked = ask(taken.key, frame.version, &mut taken.body.clone());
        let step = match asked {
            Some(Ask::Raft(asked)) if hint(&answer).is_some() => Some(Step {
                place: format!("{release}, {life}, line {}", frame.line),
                ask: asked,
                answer,
            }),
            Some(_) | None => None,
        };
        connections.entry(frame.connection).or_default().push(step);
    }
    (connections, epochs.into_iter().collect())
}

/// Who led, if that is who answered.
fn hint(answer: &Told) -> Option<&LeaderHint> {
    let (error, hint) = match answer {
        Told::Fetch { response, .. } | Told::Response(Response::Fetch(response)) => {
            (response.error, &response.hint)
        }
        Told::Snapshot { response, .. } => (response.error, &response.hint),
        Told::Response(_) | Told::Versions { .. } => return None,
    };
    (error == RaftError::None && hint.leader.is_some()).then_some(hint)
}

/// A replica as it was when it asked this.
fn replica(fetch: &FetchRequest, leader: NodeId, epochs: &[(Epoch, Offset)]) -> Raft {
    let endpoints = vec![("CONTROLLER".to_owned(), "localhost".to_owned(), 9_090)];
    let voter = |id| VoterNode {
        key: ReplicaKey {
            id: NodeId(id),
            directory: Uuid::nil(),
        },
        endpoints: endpoints.clone(),
        kraft_versions: (0, 1),
    };
    let config = RaftConfig {
        node: fetch.replica,
        cluster_id: fetch.cluster_id.clone().unwrap_or_default(),
        endpoints: endpoints.clone(),
        election_timeout_ms: 1_000,
        fetch_timeout_ms: 2_000,
        election_backoff_ms_max: 1_000,
        static_voters: (1..=3).map(voter).collect(),
        bootstrap: Vec::new(),
        request_timeout_ms: 2_000,
        retry_backoff_ms: 20,
        fetch_bytes_max: 1 << 20,
        snapshot_bytes_max: 1 << 20,
        auto_join: false,
        kraft_versions: (0, 1),
        seed: 1,
    };
    let end = Offset(fetch.fetch_offset);
    let last = Epoch(fetch.last_fetched_epoch);
    let known = epochs.iter().copied();
    let boot = Boot {
        quorum_state: Some(QuorumState {
            epoch: Epoch(fetch.current_leader_epoch),
            leader: Some(leader),
            voters: (1..=3).map(NodeId).collect(),
            ..QuorumState::default()
        }),
        log_end: end,
        epochs: known
            .filter(|(epoch, first)| *epoch <= last && *first < end)
            .collect(),
        ..Boot::default()
    };
    Raft::new(config, boot, Instant(0))
}

/// Gives an input and does what follows: all writes succeed at once, and so does the load of a
/// snapshot. Returns what is asked then.
fn drive(raft: &mut Raft, input: Input) -> Option<(CallId, Request)> {
    let mut inputs = vec![input];
    let mut asked = None;
    while let Some(input) = inputs.pop() {
        let mut outputs = Vec::new();
        raft.handle(Now::default(), input, &mut outputs);
        let mut next = Vec::new();
        for output in outputs {
            match output {
                Output::Write { token, .. } => next.push(Input::Written(token)),
                Output::Send {
                    call,
                    ask: Ask::Raft(request),
                    ..
                } => asked = Some((call, request)),
                Output::KeepPiece {
                    id,
                    position,
                    bytes,
                    size,
                } => next.push(kept(id, position + bytes.len() as u64, size)),
                _ => {}
            }
        }
        inputs.extend(next.into_iter().rev());
    }
    asked
}

fn kept(id: OffsetAndEpoch, end: u64, size: u64) -> Input {
    match end == size {
        true => Input::SnapshotLoaded(LoadedSnapshot {
            id,
            control: Vec::new(),
        }),
        false => Input::PieceKept { id, end },
    }
}

/// What has to be the same in both questions.
fn same(before: &Request, ours: &Request, theirs: &Request, kind: &mut &'static str) {
    match (ours, theirs) {
        (Request::Fetch(ours), Request::Fetch(theirs)) => {
            assert_eq!(ours.fetch_offset, theirs.fetch_offset);
            assert_eq!(ours.last_fetched_epoch, theirs.last_fetched_epoch);
            assert_eq!(ours.current_leader_epoch, theirs.current_leader_epoch);
            assert_eq!(ours.max_wait_ms, theirs.max_wait_ms);
            // Below version 18 nothing is said of it. What was known before is known still.
            let before = match before {
                Request::Fetch(before) => before.high_watermark,
                _ => -1,
            };
            if theirs.high_watermark != i64::MAX {
                assert_eq!(ours.high_watermark.max(before), theirs.high_watermark);
            }
        }
        (Request::FetchSnapshot(ours), Request::FetchSnapshot(theirs)) => {
            assert_eq!(ours.id, theirs.id);
            assert_eq!(ours.position, theirs.position);
            *kind = "snapshot";
        }
        (ours, theirs) => panic!("{ours:?} instead of {theirs:?}"),
    }
}

/// Whether a replica of this epoch still asks the same leader.
fn goes_on(before: &Request, next: &Request) -> bool {
    let of = |request: &Request| match request {
        Request::Fetch(it) => Some((it.replica, it.current_leader_epoch)),
        Request::FetchSnapshot(it) => Some((it.replica, it.current_leader_epoch)),
        _ => None,
    };
    of(before) == of(next)
}

#[test]
fn a_follower_of_recorded_leaders_asks_next_what_javas_replicas_asked_next() {
    let mut compared: BTreeMap<&'static str, u32> = BTreeMap::new();
    for release in RELEASES {
        for life in lives(release) {
            let (connections, epochs) = fetches(release, life);
            for steps in connections.into_values() {
                follow(&steps, &epochs, &mut compared);
            }
        }
    }
    for (kind, least) in [
        ("records", 500),
        ("nothing", 50),
        ("cut", 1),
        ("snapshot", 1),
    ] {
        let seen = compared.get(kind).copied().unwrap_or(0);
        assert!(seen >= least, "{kind}: {compared:?}");
    }
}

/// Goes through the questions of one connection.
fn follow(
    steps: &[Option<Step>],
    epochs: &[(Epoch, Offset)],
    compared: &mut BTreeMap<&'static str, u32>,
) {
    let mut state: Option<(Raft, CallId)> = None;
    for pair in steps.windows(2) {
        let [Some(step), Some(next)] = pair else {
            state = None;
            continue;
        };
        let _at = Place(step.place.clone());
        let (Some(hint), true) = (hint(&step.answer), goes_on(&step.ask, &next.ask)) else {
            state = None;
            continue;
        };
        let leader = hint.leader.unwrap();
        let fresh = || match &step.ask {
            Request::Fetch(fetch) if fetch.replica.id != leader => {
                let mut raft = replica(fetch, leader, epochs);
                let (call, asked) = drive(&mut raft, Input::WakeUp)?;
                let Request::Fetch(asked) = asked else {
                    panic!("{asked:?}");
                };
                assert_eq!(asked.fetch_offset, fetch.fetch_offset);
                assert_eq!(asked.last_fetched_epoch, fetch.last_fetched_epoch);
                Some((raft, call))
            }
            _ => None,
        };
        let Some((mut raft, call)) = state.take().or_else(fresh) else {
            continue;
        };
        let mut kind = match &step.answer {
            Told::Response(Response::Fetch(response)) if response.diverging.is_some() => "cut",
            Told::Response(_) => "nothing",
            _ => "records",
        };
        let outcome = Ok(step.answer.clone());
        let asked = drive(&mut raft, Input::Answered { call, outcome });
        let (call, asked) = asked.expect("a follower always asks");
        same(&step.ask, &asked, &next.ask, &mut kind);
        *compared.entry(kind).or_insert(0) += 1;
        state = Some((raft, call));
    }
}
