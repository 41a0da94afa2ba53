//! The other side of the recorded lives: what Java nodes asked one another is asked here in the
//! same bytes, and what they were answered is understood.

use super::super::answers as served;
use super::super::wire::answers;
use super::super::wire::asks::{self, APIS, Api};
use super::*;
use crate::node::{Answer, PeerAnswer};
use crate::raft::{Ask, RaftError, Response};
use crate::server::peer::link_tests::answered;
use crate::types::{Epoch, ErrorCode, SplitMix};

pub(super) fn api(key: ApiKey) -> Option<Api> {
    APIS.into_iter().find(|api| api.key == key as i16)
}

/// A request as this node would ask it. `None` for what it never asks.
pub(super) fn ask(key: ApiKey, version: i16, body: &mut Bytes) -> Option<Ask> {
    // Some come without a cluster's id, so that no other is refused.
    let cluster = "";
    let request = match key {
        ApiKey::Fetch => {
            let request = m::FetchRequest::decode(body, version).unwrap();
            wire::fetch_request(request, version, cluster).ok()
        }
        ApiKey::FetchSnapshot => {
            let request = m::FetchSnapshotRequest::decode(body, version).unwrap();
            let cluster = request.cluster_id.clone().unwrap_or_default();
            wire::fetch_snapshot_request(request, &cluster).ok()
        }
        ApiKey::Vote => {
            let request = m::VoteRequest::decode(body, version).unwrap();
            wire::vote_request(request, cluster).ok()
        }
        ApiKey::BeginQuorumEpoch => {
            let request = m::BeginQuorumEpochRequest::decode(body, version).unwrap();
            wire::begin_quorum_epoch_request(request, cluster).ok()
        }
        ApiKey::EndQuorumEpoch => {
            let request = m::EndQuorumEpochRequest::decode(body, version).unwrap();
            wire::end_quorum_epoch_request(request, version, cluster).ok()
        }
        ApiKey::AddRaftVoter => {
            let request = rpc::AddRaftVoterRequest::decode(body, version).unwrap();
            Some(wire::add_voter_request(request))
        }
        ApiKey::RemoveRaftVoter => {
            let request = m::RemoveRaftVoterRequest::decode(body, version).unwrap();
            Some(wire::remove_voter_request(request))
        }
        ApiKey::UpdateRaftVoter => {
            let request = m::UpdateRaftVoterRequest::decode(body, version).unwrap();
            Some(wire::update_voter_request(request))
        }
        _ => return None,
    };
    Some(Ask::Raft(request.unwrap()))
}

#[test]
fn every_question_of_a_voter_is_asked_in_the_same_bytes() {
    let mut asked = BTreeMap::new();
    each(|place, frame, answers| {
        if answers.is_some() {
            return;
        }
        let _at = Place(place.to_owned());
        let mut taken = taken(&frame.bytes);
        // Old brokers fetch as this node never does: with topic names, for other partitions.
        let body = taken.body.clone();
        let Some(ask) = ask(taken.key, frame.version, &mut taken.body) else {
            return;
        };
        assert_eq!(asks::api_of(&ask), api(taken.key));
        let mut ours = BytesMut::new();
        asks::encode(&ask, frame.version, &mut ours).unwrap();
        assert_eq!(ours, body);
        *asked.entry(frame.api.clone()).or_insert(0) += 1;
    });
    assert_eq!(asked.len(), 8, "{asked:?}");
}

/// What a node that serves such answers would write.
fn written(answer: PeerAnswer, version: i16) -> BytesMut {
    let mut out = BytesMut::new();
    let answer = match answer {
        PeerAnswer::Raft(response) => Answer::Raft(response),
        PeerAnswer::Fetch { response, records } => Answer::Fetch { response, records },
        PeerAnswer::Snapshot {
            response,
            size,
            position,
            bytes,
        } => Answer::Snapshot {
            response,
            size: u64::try_from(size).unwrap(),
            position,
            bytes,
        },
        PeerAnswer::Versions(_) | PeerAnswer::Registered(..) => panic!("not of consensus"),
    };
    served::encode(answer, version, &mut out).unwrap();
    out
}

/// Where the bytes of an answer are that have been taken out of it.
fn payload(answer: &PeerAnswer) -> Option<&Bytes> {
    match answer {
        PeerAnswer::Fetch { records, .. } => Some(records),
        PeerAnswer::Snapshot { bytes, .. } => Some(bytes),
        PeerAnswer::Raft(_) | PeerAnswer::Versions(_) | PeerAnswer::Registered(..) => None,
    }
}

/// Each answer of the consensus APIs, with its request.
fn each_raft_answer(mut look: impl FnMut(Api, &Frame, &Frame)) {
    each(|place, frame, request| {
        let Some(request) = request else {
            return;
        };
        let consensus = |api: &Api| ![asks::API_VERSIONS, asks::REGISTER_CONTROLLER].contains(api);
        let key = key_of(taken(&request.bytes).start.api_key);
        if let Some(api) = api(key).filter(consensus) {
            let _at = Place(place.to_owned());
            look(api, frame, request);
        }
    });
}

/// Everything that an answer says is in what consensus gets: written again it is the same bytes.
#[test]
fn every_answer_to_a_voter_is_understood() {
    let mut understood = BTreeMap::new();
    each_raft_answer(|api, frame, request| {
        let key = key_of(taken(&request.bytes).start.api_key);
        let version = frame.version;
        let body = answer_body(key, version, frame.correlation, frame.bytes.clone());
        let answer = answers::decode(api, version, body.clone()).unwrap();
        if let Some(bytes) = payload(&answer).filter(|bytes| !bytes.is_empty()) {
            let range = body.as_ptr_range();
            assert!(range.contains(&bytes.as_ptr()), "the bytes were copied");
        }
        assert_eq!(written(answer, version), body);
        // And so does a connection that asked it.
        let taken = taken(&request.bytes);
        let mut asked = taken.body.clone();
        let ask = ask(taken.key, version, &mut asked).unwrap();
        let told = answered(&ask, version, &body).unwrap();
        assert_eq!(written(told, version), body);
        *understood.entry(frame.api.clone()).or_insert(0) += 1;
    });
    assert_eq!(understood.len(), 8, "{understood:?}");
}

#[test]
fn every_registration_and_its_answer_are_read_and_written_as_they_were() {
    let mut seen = 0;
    each(|place, frame, request| {
        if frame.api != "ControllerRegistration" {
            return;
        }
        let _at = Place(place.to_owned());
        let version = frame.version;
        let Some(_) = request else {
            let mut body = taken(&frame.bytes).body;
            let whole = body.clone();
            let registration = m::ControllerRegistrationRequest::decode(&mut body, version);
            let mut ours = BytesMut::new();
            asks::registration(&registration.unwrap(), version, &mut ours).unwrap();
            assert_eq!(ours, whole);
            return;
        };
        let key = ApiKey::ControllerRegistration;
        let body = answer_body(key, version, frame.correlation, frame.bytes.clone());
        match answers::decode(asks::REGISTER_CONTROLLER, version, body).unwrap() {
            PeerAnswer::Registered(..) => seen += 1,
            other => panic!("{other:?}"),
        }
    });
    assert!(seen > 0);
}

#[test]
fn every_recorded_server_says_what_it_can_do() {
    let mut ranges = BTreeMap::new();
    each(|place, frame, request| {
        if request.is_none() || frame.api != "ApiVersions" {
            return;
        }
        let _at = Place(place.to_owned());
        let version = frame.version;
        let body = answer_body(
            ApiKey::ApiVersions,
            version,
            frame.correlation,
            frame.bytes.clone(),
        );
        match answers::api_versions(version, &body).unwrap() {
            answers::Versions::Lower(max) => assert!(max < version),
            answers::Versions::Known {
                ranges: known,
                kraft,
            } => {
                let release = place.split(',').next().unwrap().to_owned();
                let max = |key: ApiKey| {
                    let found = known.iter().find(|(it, ..)| *it == key as i16);
                    found.map_or(-1, |(.., max)| *max)
                };
                let maxima = [ApiKey::Fetch, ApiKey::Vote, ApiKey::AddRaftVoter].map(max);
                if version >= 4 {
                    ranges.insert(release, (maxima, kraft));
                }
            }
        }
    });
    let of = |release: &str| ranges[release];
    assert_eq!(of("3.9.2"), ([17, 1, 0], Some((0, 1))));
    assert_eq!(of("4.0.2"), ([17, 2, 0], Some((0, 1))));
    assert_eq!(of("4.4.0"), ([18, 2, 1], Some((0, 1))));
}

/// Rare answers, by what consensus must see of them.
#[test]
fn the_rare_answers_are_told_as_what_they_are() {
    let mut seen = BTreeSet::new();
    each_raft_answer(|api, frame, request| {
        let key = key_of(taken(&request.bytes).start.api_key);
        let body = answer_body(key, frame.version, frame.correlation, frame.bytes.clone());
        match answers::decode(api, frame.version, body).unwrap() {
            PeerAnswer::Raft(Response::Fetch(fetch)) => {
                let hint = fetch.hint;
                if fetch.diverging.is_some() {
                    assert_eq!(fetch.error, RaftError::None);
                    seen.insert("diverging");
                }
                if let Some(id) = fetch.snapshot {
                    assert!(id.offset.0 > 0);
                    seen.insert("snapshot");
                }
                if fetch.error == RaftError::Partition(ErrorCode::FencedLeaderEpoch)
                    && hint.leader.is_some()
                {
                    assert!(hint.epoch > Epoch(0));
                    let (host, port) = hint.endpoint.unwrap();
                    assert!(!host.is_empty() && port > 0);
                    seen.insert("another leader");
                }
                if fetch.error == RaftError::Partition(ErrorCode::NotLeaderOrFollower)
                    && hint.leader.is_none()
                {
                    seen.insert("no leader");
                }
            }
            PeerAnswer::Raft(Response::Vote(vote)) => {
                seen.insert(if vote.granted { "granted" } else { "denied" });
            }
            PeerAnswer::Raft(Response::AddVoter(add)) if add.error != ErrorCode::None => {
                assert!(add.message.is_some());
                seen.insert("not added");
            }
            PeerAnswer::Snapshot { size, position, .. } => {
                assert!(position < size);
                seen.insert("snapshot bytes");
            }
            _ => {}
        }
    });
    let all = [
        "another leader",
        "denied",
        "diverging",
        "granted",
        "no leader",
        "not added",
        "snapshot",
        "snapshot bytes",
    ];
    assert_eq!(seen, all.into_iter().collect());
}

/// Changed copies of each kind of recorded answer are an answer or garbage, cut ones are garbage.
#[test]
fn changed_and_cut_answers_never_panic_nor_cost_more_than_their_bytes() {
    let mut samples: BTreeMap<(i16, i16), Vec<Bytes>> = BTreeMap::new();
    each(|_, frame, request| {
        let Some(request) = request else {
            return;
        };
        let key = key_of(taken(&request.bytes).start.api_key);
        if api(key).is_some_and(|api| frame.version <= api.max) {
            let body = answer_body(key, frame.version, frame.correlation, frame.bytes.clone());
            let kind = samples.entry((key as i16, frame.version)).or_default();
            kind.push(body);
        }
    });
    let (mut read, mut refused) = (0, 0);
    for ((key, version), mut bodies) in samples {
        let api = APIS.into_iter().find(|api| api.key == key).unwrap();
        bodies.sort_by_key(|body| (std::cmp::Reverse(body.len()), body.clone()));
        bodies.dedup();
        bodies.truncate(4);
        for body in bodies {
            for end in 0..body.len().min(400) {
                let cut = answers::decode(api, version, body.slice(..end));
                assert!(cut.is_err(), "API {key} v{version} cut at {end}");
            }
            for seed in 0..300 {
                let bytes = fuzz_tests::changed(&body, 0, &mut SplitMix::new(seed));
                let _at = Place(format!("API {key} v{version}, seed {seed}"));
                match answers::decode(api, version, Bytes::from(bytes)) {
                    Ok(_) => read += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(
        read > 500 && refused > 500,
        "{read} read, {refused} refused"
    );
}
