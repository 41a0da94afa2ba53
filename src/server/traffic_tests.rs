//! What Java brokers and voters sent and heard in their recorded lives: every frame is read by the
//! code that reads it here, and written again byte for byte. What nobody here reads yet (answers,
//! requests of APIs that are not served) goes through `kafka-protocol` the same way.

mod follow_tests;
mod fuzz_tests;
mod peer_tests;
#[path = "../../protocol-tests/traffic/recording.rs"]
mod recording;

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::{ApiKey, EnvelopeRequest, EnvelopeResponse, RequestHeader};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use self::recording::{Frame, RELEASES, frames};
use super::api_table::{self, Api};
use super::dispatch::tests::{harness, recorded_image};
use super::frame::{HeaderStart, parse_header_rest};
use super::{envelope, wire};
use crate::records::batch::{Batch, BatchBuilder};
use crate::records::rpc::{self, Message};
use crate::records::{ControlRecord, VersionedRecord};

/// APIs that brokers and tools use and that are not served here.
const NOT_SERVED: &[&str] = &[];

/// The API of a key in words, whether it is served or not.
fn key_of(number: i16) -> ApiKey {
    ApiKey::try_from(number).unwrap_or_else(|()| panic!("no API {number}"))
}

/// One body, whole, read and written again by `kafka-protocol`.
fn again<M: Decodable + Encodable>(body: &Bytes, version: i16) -> Vec<u8> {
    let mut rest = body.clone();
    let message = M::decode(&mut rest, version).unwrap();
    assert!(rest.is_empty(), "{} bytes left over", rest.len());
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    bytes.to_vec()
}

/// The same by the project's own codec.
fn own<M: Message>(body: &Bytes, version: i16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let message = M::decode(body, version).unwrap();
    message.encode(&mut bytes, version).unwrap();
    bytes
}

macro_rules! again {
    ($key:expr, $request:expr, $body:expr, $version:expr;
     $($api:ident $asks:ident $answers:ident,)*) => {
        match $key {
            $(ApiKey::$api if $request => again::<m::$asks>($body, $version),
            ApiKey::$api => again::<m::$answers>($body, $version),)*
            other => panic!("{other:?} was not recorded before: it needs a line here"),
        }
    };
}

/// A body read and written again.
fn rewritten(key: ApiKey, version: i16, request: bool, body: &Bytes) -> Vec<u8> {
    match (key, request) {
        (ApiKey::ApiVersions, true) => return own::<rpc::ApiVersionsRequest>(body, version),
        (ApiKey::ApiVersions, false) => return own::<rpc::ApiVersionsResponse>(body, version),
        (ApiKey::BrokerHeartbeat, true) => {
            return own::<rpc::BrokerHeartbeatRequest>(body, version);
        }
        (ApiKey::BrokerHeartbeat, false) => {
            return own::<rpc::BrokerHeartbeatResponse>(body, version);
        }
        (ApiKey::AddRaftVoter, true) => return own::<rpc::AddRaftVoterRequest>(body, version),
        // Version 1 (KIP-1186) changed the request only.
        (ApiKey::AddRaftVoter, false) => return again::<m::AddRaftVoterResponse>(body, 0),
        _ => {}
    }
    again!(key, request, body, version;
        AllocateProducerIds AllocateProducerIdsRequest AllocateProducerIdsResponse,
        AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse,
        AlterPartition AlterPartitionRequest AlterPartitionResponse,
        AlterPartitionReassignments AlterPartitionReassignmentsRequest
            AlterPartitionReassignmentsResponse,
        AlterUserScramCredentials AlterUserScramCredentialsRequest
            AlterUserScramCredentialsResponse,
        AssignReplicasToDirs AssignReplicasToDirsRequest AssignReplicasToDirsResponse,
        BeginQuorumEpoch BeginQuorumEpochRequest BeginQuorumEpochResponse,
        BrokerRegistration BrokerRegistrationRequest BrokerRegistrationResponse,
        ControllerRegistration ControllerRegistrationRequest ControllerRegistrationResponse,
        CreatePartitions CreatePartitionsRequest CreatePartitionsResponse,
        CreateTopics CreateTopicsRequest CreateTopicsResponse,
        DeleteTopics DeleteTopicsRequest DeleteTopicsResponse,
        DescribeCluster DescribeClusterRequest DescribeClusterResponse,
        DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse,
        ElectLeaders ElectLeadersRequest ElectLeadersResponse,
        EndQuorumEpoch EndQuorumEpochRequest EndQuorumEpochResponse,
        Envelope EnvelopeRequest EnvelopeResponse,
        Fetch FetchRequest FetchResponse,
        FetchSnapshot FetchSnapshotRequest FetchSnapshotResponse,
        IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
        ListPartitionReassignments ListPartitionReassignmentsRequest
            ListPartitionReassignmentsResponse,
        RemoveRaftVoter RemoveRaftVoterRequest RemoveRaftVoterResponse,
        UnregisterBroker UnregisterBrokerRequest UnregisterBrokerResponse,
        UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse,
        UpdateRaftVoter UpdateRaftVoterRequest UpdateRaftVoterResponse,
        Vote VoteRequest VoteResponse,
    )
}

fn header_version(key: ApiKey, version: i16) -> i16 {
    // Every version that the library does not know is flexible.
    key.request_header_version(version.min(key.valid_versions().max))
}

fn answer_is_flexible(key: ApiKey, version: i16) -> bool {
    key != ApiKey::ApiVersions && header_version(key, version) == 2
}

/// A request frame taken apart.
struct Taken {
    key: ApiKey,
    start: HeaderStart,
    client_id: Option<String>,
    body: Bytes,
}

/// Reads a request's header and writes it again.
fn taken(frame: &Bytes) -> Taken {
    let mut body = frame.clone();
    let start = HeaderStart::parse(&mut body).unwrap();
    let key = key_of(start.api_key);
    let header_version = header_version(key, start.version);
    let client_id = parse_header_rest(&mut body, header_version == 2).unwrap();
    let header = RequestHeader::default()
        .with_request_api_key(start.api_key)
        .with_request_api_version(start.version)
        .with_correlation_id(start.correlation_id)
        .with_client_id(client_id.clone().map(StrBytes::from_string));
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, header_version).unwrap();
    assert_eq!(bytes[..], frame[..frame.len() - body.len()]);
    Taken {
        key,
        start,
        client_id,
        body,
    }
}

/// The body of an answer, behind a header with nothing but the correlation id.
fn answer_body(key: ApiKey, version: i16, correlation: i32, mut bytes: Bytes) -> Bytes {
    assert_eq!(bytes.get_i32(), correlation);
    if answer_is_flexible(key, version) {
        assert_eq!(bytes.get_u8(), 0, "tags of the header");
    }
    bytes
}

/// The row of a served API, after the shape check of the body.
fn checked(taken: &Taken) -> Option<&'static Api> {
    let name = format!("{:?}", taken.key);
    let Some(api) = api_table::find(taken.start.api_key) else {
        assert!(NOT_SERVED.contains(&name.as_str()), "{name} has no row");
        return None;
    };
    assert!(api.serves(taken.start.version), "{name}");
    assert!(!NOT_SERVED.contains(&name.as_str()), "{name} has a row");
    api.shape.check(&taken.body, taken.start.version).unwrap();
    Some(api)
}

/// The lives that are recorded of a release.
fn lives(release: &str) -> &'static [&'static str] {
    match release {
        "4.4.0" => &["broker", "voter", "quorum"],
        _ => &["broker", "voter"],
    }
}

/// Every recorded frame with where it is from, requests and answers apart.
fn each(mut look: impl FnMut(&str, &Frame, Option<&Frame>)) {
    for release in RELEASES {
        for life in lives(release) {
            let all = frames(release, life);
            assert!(all.len() > 100, "{release} {life}: {} frames", all.len());
            for (frame, request) in &all {
                let line = frame.line;
                let place = format!("{release}, {life}, line {line} ({})", frame.step);
                let request = request.map(|at| &all[at].0);
                look(&place, frame, request);
            }
        }
    }
}

/// Says which frame it was that a test failed at.
struct Place(String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at {}", self.0);
        }
    }
}

#[test]
fn every_request_in_recorded_lives_is_read_and_written_again_byte_for_byte() {
    let mut read = BTreeMap::new();
    each(|place, frame, answers| {
        if answers.is_some() {
            return;
        }
        let _at = Place(place.to_owned());
        let taken = taken(&frame.bytes);
        assert_eq!(format!("{:?}", taken.key), frame.api);
        assert_eq!(taken.start.version, frame.version);
        assert_eq!(taken.start.correlation_id, frame.correlation);
        assert!(taken.client_id.is_some());
        let version = frame.version;
        assert_eq!(rewritten(taken.key, version, true, &taken.body), taken.body);
        if checked(&taken).is_some() {
            let mut at = harness(recorded_image());
            let started = at.start(frame.bytes.clone());
            assert!(started.is_ok(), "{:?}", started.err());
            *read.entry(frame.api.clone()).or_insert(0) += 1;
        }
    });
    assert!(read.len() >= 15, "{read:?}");
}

#[test]
fn every_forwarded_request_is_opened_and_its_answer_wrapped_as_recorded() {
    let mut inner = BTreeSet::new();
    each(|place, frame, request| {
        let (Some(request), "Envelope") = (request, &*frame.api) else {
            return;
        };
        let _at = Place(place.to_owned());
        let envelope = EnvelopeRequest::decode(&mut taken(&request.bytes).body, 0).unwrap();
        let taken = taken(&envelope.request_data);
        let version = taken.start.version;
        assert_eq!(rewritten(taken.key, version, true, &taken.body), taken.body);
        if checked(&taken).is_some() {
            let opened = envelope::open(envelope).unwrap();
            assert_eq!(opened.principal.to_string(), "User:ANONYMOUS");
            assert!(opened.address.is_loopback());
            assert_eq!(opened.body, taken.body);
        }
        let mut body = answer_body(ApiKey::Envelope, 0, frame.correlation, frame.bytes.clone());
        let whole = body.clone();
        let answer = EnvelopeResponse::decode(&mut body, 0).unwrap();
        let data = answer.response_data.unwrap();
        let correlation = taken.start.correlation_id;
        let body = answer_body(taken.key, version, correlation, data.clone());
        assert_eq!(rewritten(taken.key, version, false, &body), body);
        let mut bytes = BytesMut::new();
        envelope::wrap(data).encode(&mut bytes, 0).unwrap();
        assert_eq!(bytes, whole);
        inner.insert(format!("{:?}", taken.key));
    });
    assert!(inner.len() >= 5, "{inner:?}");
}

#[test]
fn every_answer_in_recorded_lives_is_read_and_written_again_byte_for_byte() {
    let mut read = BTreeMap::new();
    each(|place, frame, request| {
        let Some(request) = request else {
            return;
        };
        let _at = Place(place.to_owned());
        let key = key_of(taken(&request.bytes).start.api_key);
        let body = answer_body(key, frame.version, frame.correlation, frame.bytes.clone());
        let unsupported = key == ApiKey::ApiVersions && body[..2] == [0, 35];
        let version = if unsupported { 0 } else { frame.version };
        assert_eq!(rewritten(key, version, false, &body), body);
        *read.entry(frame.api.clone()).or_insert(0) += 1;
    });
    assert!(read.len() >= 18, "{read:?}");
}

/// The raft answers also through the core's own types, as the server writes its own.
#[test]
fn every_raft_answer_in_recorded_lives_can_be_told_in_the_types_of_the_core() {
    let mut told = BTreeMap::new();
    each(|place, frame, request| {
        let raft = matches!(
            &*frame.api,
            "BeginQuorumEpoch"
                | "DescribeQuorum"
                | "EndQuorumEpoch"
                | "Fetch"
                | "FetchSnapshot"
                | "Vote"
        );
        let Some(request) = request.filter(|_| raft) else {
            return;
        };
        let _at = Place(place.to_owned());
        let key = key_of(taken(&request.bytes).start.api_key);
        let body = answer_body(key, frame.version, frame.correlation, frame.bytes.clone());
        if let Some(ours) = wire::recorded_tests::told(key as i16, frame.version, &body) {
            assert_eq!(ours, body);
            *told.entry(frame.api.clone()).or_insert(0) += 1;
        }
    });
    assert_eq!(told.len(), 6, "{told:?}");
}

/// Decodes every record of every batch and builds the batches anew. Gives how many there are.
fn batches_again(mut bytes: Bytes) -> usize {
    let mut count = 0;
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
        batch.verify_crc().unwrap();
        let timestamp = batch.header().base_timestamp;
        let mut builder = if batch.is_control() {
            BatchBuilder::control(batch.base_offset(), batch.epoch(), timestamp)
        } else {
            BatchBuilder::data(batch.base_offset(), batch.epoch(), timestamp)
        };
        for raw in batch.records() {
            let raw = raw.unwrap();
            if batch.is_control() {
                let record = ControlRecord::decode(raw.key.as_ref(), raw.value.as_ref()).unwrap();
                builder.push_control(&record).unwrap();
            } else {
                let record = VersionedRecord::decode(&raw.value.unwrap()).unwrap();
                builder.push_record(&record).unwrap();
            }
        }
        assert_eq!(builder.build(), batch);
        count += 1;
    }
    assert!(bytes.is_empty(), "bytes of a cut batch");
    count
}

#[test]
fn every_batch_that_was_fetched_is_written_again_byte_for_byte() {
    let mut count = 0;
    each(|place, frame, request| {
        if request.is_none() || frame.api != "Fetch" {
            return;
        }
        let _at = Place(place.to_owned());
        let (version, correlation) = (frame.version, frame.correlation);
        let mut body = answer_body(ApiKey::Fetch, version, correlation, frame.bytes.clone());
        let answer = m::FetchResponse::decode(&mut body, version).unwrap();
        for partition in answer.responses.iter().flat_map(|topic| &topic.partitions) {
            count += batches_again(partition.records.clone().unwrap_or_default());
        }
    });
    assert!(count > 100, "{count} batches");
}

/// A snapshot comes in parts that may cut a batch: they are put together as a follower does.
#[test]
fn every_snapshot_that_was_fetched_is_written_again_byte_for_byte() {
    let mut snapshots: BTreeMap<(String, u32, i64), BytesMut> = BTreeMap::new();
    let mut whole = 0;
    let mut parts_max = 0;
    each(|place, frame, request| {
        let Some(request) = request.filter(|_| frame.api == "FetchSnapshot") else {
            return;
        };
        let _at = Place(place.to_owned());
        let version = frame.version;
        let mut body = answer_body(
            ApiKey::FetchSnapshot,
            version,
            frame.correlation,
            frame.bytes.clone(),
        );
        let answer = m::FetchSnapshotResponse::decode(&mut body, version).unwrap();
        let partition = &answer.topics[0].partitions[0];
        let file = place.split(", line").next().unwrap().to_owned();
        let key = (file, request.connection, partition.snapshot_id.end_offset);
        let got = snapshots.entry(key).or_default();
        assert_eq!(partition.position, got.len() as i64);
        got.extend_from_slice(&partition.unaligned_records);
        parts_max = parts_max.max(partition.position);
        if got.len() as i64 == partition.size {
            assert!(batches_again(got.clone().freeze()) >= 3);
            whole += 1;
        }
    });
    assert!(whole >= RELEASES.len(), "{whole} whole snapshots");
    assert!(parts_max > 0, "no snapshot came in several parts");
}

/// What a recording is worth: that the rare things are in it.
#[test]
fn a_voter_of_every_release_elects_diverges_and_takes_a_snapshot() {
    let mut seen: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    each(|place, frame, request| {
        let release = place.split(',').next().unwrap().to_owned();
        if !place.contains(", voter,") {
            return;
        }
        let seen = seen.entry(release).or_default();
        let version = frame.version;
        match (&*frame.api, request) {
            ("Vote", None) => {
                let body = &mut taken(&frame.bytes).body;
                let request = m::VoteRequest::decode(body, version).unwrap();
                let pre_vote = request.topics[0].partitions[0].pre_vote;
                seen.insert(if pre_vote { "pre-vote" } else { "vote" });
            }
            ("Fetch", Some(_)) => {
                let correlation = frame.correlation;
                let mut body =
                    answer_body(ApiKey::Fetch, version, correlation, frame.bytes.clone());
                let answer = m::FetchResponse::decode(&mut body, version).unwrap();
                let partition = &answer.responses[0].partitions[0];
                if partition.diverging_epoch.end_offset >= 0 {
                    seen.insert("diverging epoch");
                }
                if partition.snapshot_id.end_offset >= 0 {
                    seen.insert("snapshot id");
                }
            }
            ("EndQuorumEpoch", None) => {
                let body = &mut taken(&frame.bytes).body;
                let request = m::EndQuorumEpochRequest::decode(body, version).unwrap();
                if !request.topics[0].partitions[0]
                    .preferred_candidates
                    .is_empty()
                {
                    seen.insert("preferred candidates");
                }
            }
            _ => {}
        }
    });
    let all = [
        "diverging epoch",
        "pre-vote",
        "preferred candidates",
        "snapshot id",
        "vote",
    ];
    for release in RELEASES {
        // 3.9 knows no pre-vote (KIP-996 came with 4.0).
        let expected = all
            .into_iter()
            .filter(|it| release != "3.9.2" || *it != "pre-vote");
        assert_eq!(seen[release], expected.collect(), "{release}");
    }
}
