//! Requests with so many items that they are not read.

use std::collections::BTreeSet;

use kafka_protocol::protocol::Decodable;

use super::tests::{encoded, frame, harness, later, recorded_image};
use super::*;
use crate::controller::authorize::AuthorizerRules;
use crate::server::api_table::TABLE;
use crate::server::core::Answer;
use crate::server::shape::tests::Writer;

/// The principal that a Java broker sends for an anonymous client.
const ANONYMOUS: &[u8] = b"\x00\x00\x05User\x0aANONYMOUS\x00\x00";

/// A frame of as many items as are read, and of one more; `None` of a request without any.
fn too_many(api: &Api, version: i16) -> Option<Bytes> {
    let items = u32::try_from(api.items_max).unwrap() + 1;
    let body = Writer::of_items(api.shape, version, items)?;
    Some(frame(api.key, version, 9, &body))
}

/// Whether bytes have this error code in them.
fn tells(answer: &[u8], code: ErrorCode) -> bool {
    answer
        .windows(2)
        .any(|two| two == code.code().to_be_bytes())
}

#[tokio::test]
async fn a_request_far_beyond_a_bound_is_refused_without_being_decoded() {
    let mut names = BTreeSet::new();
    for api in TABLE {
        for version in api.min..=api.max {
            let Some(frame) = too_many(api, version) else {
                continue;
            };
            let mut at = harness(recorded_image());
            let bytes = frame.len();
            let weight = at.weight(&frame).unwrap();
            assert_eq!(weight.bytes, bytes, "{} v{version} is decoded", api.name);
            let answer = later(at.start(frame)).await;
            assert!(at.core.asked.lock().unwrap().is_empty(), "{}", api.name);
            // A Fetch has a place for a code since version 7; before, its answer is empty.
            let told = tells(&answer, ErrorCode::PolicyViolation);
            let has_place = api.name != "Fetch" || version >= 7;
            assert_eq!(told, has_place, "{} v{version}: {answer:?}", api.name);
            assert!(answer.len() < 500, "{} v{version}: {answer:?}", api.name);
            names.insert(api.name);
        }
    }
    for name in ["CreateTopics", "DescribeConfigs", "AlterPartition", "Fetch"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert_eq!(names.len(), 30, "{names:?}");
}

/// What an envelope around a request is answered; the core is not asked.
async fn enveloped(inner: Bytes) -> m::EnvelopeResponse {
    let request = m::EnvelopeRequest::default()
        .with_request_data(inner)
        .with_request_principal(Some(Bytes::from_static(ANONYMOUS)))
        .with_client_host_address(Bytes::from_static(&[127, 0, 0, 1]));
    let mut at = harness(recorded_image());
    let frame = frame(58, 0, 500, &encoded(&request, 0));
    assert_eq!(at.weight(&frame).unwrap().bytes, frame.len());
    let answer = later(at.start(frame)).await;
    assert!(at.core.asked.lock().unwrap().is_empty());
    m::EnvelopeResponse::decode(&mut answer.slice(9..), 0).unwrap()
}

/// The only topic that a CreateTopics v7 in an envelope is answered.
fn only_topic(answer: m::EnvelopeResponse) -> m::create_topics_response::CreatableTopicResult {
    assert_eq!(answer.error_code, 0);
    let mut inner = answer.response_data.unwrap().slice(5..);
    let mut inner = m::CreateTopicsResponse::decode(&mut inner, 7).unwrap();
    assert_eq!(inner.topics.len(), 1);
    inner.topics.remove(0)
}

#[tokio::test]
async fn it_is_refused_by_its_own_answer_in_an_envelope_too() {
    let api = api_table::find(19).unwrap();
    let topic = only_topic(enveloped(too_many(api, 7).unwrap()).await);
    assert_eq!(topic.error_code, ErrorCode::PolicyViolation.code());
    assert_eq!(
        topic.error_message.as_deref(),
        Some("More than 50000 items in one request.")
    );
}

/// Who may not ask at all is told that, and not how much may be asked.
#[tokio::test]
async fn it_is_refused_for_lack_of_a_permission_first() {
    let mut at = harness(recorded_image());
    let mut settings = Settings::clone(&at.dispatch.settings);
    settings.authorizer = Some(AuthorizerRules::default());
    at.dispatch.settings = Arc::new(settings);
    let frame = too_many(api_table::find(56).unwrap(), 3).unwrap();
    let answer = later(at.start(frame)).await;
    assert!(tells(&answer, ErrorCode::ClusterAuthorizationFailed));
}

/// For an entity that is left out, Java's client would wait for ever; one that it did not ask for
/// ends its call.
#[tokio::test]
async fn refused_quotas_name_an_entity_that_nobody_asked_for() {
    let mut at = harness(recorded_image());
    let frame = too_many(api_table::find(49).unwrap(), 1).unwrap();
    let answer = later(at.start(frame)).await;
    let answer = m::AlterClientQuotasResponse::decode(&mut answer.slice(9..), 1).unwrap();
    assert_eq!(answer.entries.len(), 2);
    assert!(answer.entries[1].entity.is_empty());
    for entry in answer.entries {
        assert_eq!(entry.error_code, ErrorCode::PolicyViolation.code());
    }
}

/// Of moves that are left out, Java's client takes note only where none is told of.
#[tokio::test]
async fn refused_moves_name_no_partition() {
    let mut at = harness(recorded_image());
    let frame = too_many(api_table::find(45).unwrap(), 1).unwrap();
    let answer = later(at.start(frame)).await;
    let mut body = answer.slice(9..);
    let answer = m::AlterPartitionReassignmentsResponse::decode(&mut body, 1).unwrap();
    assert_eq!(answer.error_code, ErrorCode::PolicyViolation.code());
    assert!(answer.error_message.is_some() && answer.responses.is_empty());
}

/// A CreateTopics v7 that claims `count` topics (128 at least): one of this name, and another with
/// 2^32 - 2 assignments. Bytes enough for `count` follow.
fn lying_topics(count: u32, name: &[u8]) -> Bytes {
    let mut body = claimed(count).to_vec();
    body.push(name.len() as u8 + 1);
    body.extend_from_slice(name);
    body.extend([0, 0, 0, 1, 0, 1, 1, 1, 0]);
    body.extend([2, b'b', 0, 0, 0, 1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    body.resize(body.len() + count as usize * 10, 0);
    frame(19, 7, 9, &body)
}

/// A compact count in three bytes, the longest that is needed here.
fn claimed(count: u32) -> [u8; 3] {
    let count = count + 1;
    [
        count as u8 | 0x80,
        (count >> 7) as u8 | 0x80,
        (count >> 14) as u8,
    ]
}

/// Lists in lists may claim the same bytes: more items than there are bytes, in a body that was
/// therefore taken for one of few items. Nobody had looked behind the claims, where the decoder
/// would have found a list of 137 GB.
#[tokio::test]
async fn a_false_count_behind_too_many_claimed_items_never_reaches_the_decoder() {
    let mut body = claimed(12_400).to_vec();
    body.extend([4, 1]);
    body.extend(claimed(37_601));
    body.extend([1; 37_601]);
    body.push(0);
    body.extend([4, 1, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    body.resize(50_000, 0);
    assert_eq!(body.len(), api_table::find(32).unwrap().items_max);
    let lie = frame(32, 4, 9, &body);

    let mut at = harness(recorded_image());
    assert_eq!(at.weight(&lie).unwrap().bytes, lie.len());
    let answer = later(at.start(lie.clone())).await;
    let answer = m::DescribeConfigsResponse::decode(&mut answer.slice(9..), 4).unwrap();
    assert_eq!(answer.results.len(), 1);
    let error_code = answer.results[0].error_code;
    assert_eq!(error_code, ErrorCode::PolicyViolation.code());

    // No broker forwards a DescribeConfigs.
    let answer = enveloped(lie).await;
    assert_eq!(answer.error_code, ErrorCode::InvalidRequest.code());
    let topic = only_topic(enveloped(lying_topics(50_001, b"a")).await);
    assert_eq!(topic.error_code, ErrorCode::PolicyViolation.code());
}

/// Nothing was decoded of it, and still it is no request: as one with a name that is read.
#[tokio::test]
async fn an_unread_name_that_is_not_utf_8_is_garbage_as_one_that_is_read() {
    let name: &[u8] = &[0xff, 0xfe];
    let unread = lying_topics(50_001, name);
    let mut read = vec![2, 3];
    read.extend_from_slice(name);
    read.extend([0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 9, 0, 0]);
    let read = frame(19, 7, 9, &read);
    for frame in [unread.clone(), read] {
        let mut at = harness(recorded_image());
        let Err(Closing::Garbage(why)) = at.start(frame) else {
            panic!("a name that is no text");
        };
        let told = why.starts_with("a body that is no CreateTopics v7: ");
        assert!(told && why.to_lowercase().contains("utf-8"), "{why}");
    }
    let answer = enveloped(unread).await;
    assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.code());
}

/// ElectLeaders and ListPartitionReassignments of so many partitions of one topic.
fn partitions(count: usize) -> [Bytes; 2] {
    use m::elect_leaders_request::TopicPartitions;
    use m::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
    let indexes: Vec<i32> = (0..).take(count).collect();
    let topic = TopicPartitions::default().with_partitions(indexes.clone());
    let elect = m::ElectLeadersRequest::default().with_topic_partitions(Some(vec![topic]));
    let topic = ListPartitionReassignmentsTopics::default().with_partition_indexes(indexes);
    let list = m::ListPartitionReassignmentsRequest::default().with_topics(Some(vec![topic]));
    [
        frame(43, 2, 9, &encoded(&elect, 2)),
        frame(46, 0, 9, &encoded(&list, 0)),
    ]
}

/// A partition is four bytes of a request; of its answer it is a structure and a sentence, this one
/// three times: in bytes that grow, and then in those of the frame.
#[tokio::test]
async fn partitions_named_by_a_number_weigh_what_a_refusal_says_of_each() {
    use m::elect_leaders_response::PartitionResult;
    use m::list_partition_reassignments_response::OngoingPartitionReassignment;
    let structures = [
        size_of::<PartitionResult>(),
        size_of::<OngoingPartitionReassignment>(),
    ];
    let count = 100_000;
    for (frame, structure) in partitions(count).into_iter().zip(structures) {
        let mut at = harness(recorded_image());
        let weight = at.weight(&frame).unwrap().bytes;
        let asked = frame.len();
        let started = at.start(frame);
        let (_, reply) = at.asked();
        let text = "Unable to perform excessively large batch operation.";
        let error = ApiError::new(ErrorCode::PolicyViolation, text.to_owned());
        reply.send(Answer::Controller(Err(error))).unwrap();
        let answer = later(started).await.len();
        assert!(answer > count * 4, "each is named: {answer}");
        let costs = asked + count * (4 + structure) + 3 * answer;
        assert!(weight >= costs, "{weight} for {costs}");
    }
}

#[tokio::test]
async fn too_many_partitions_named_by_a_number_are_not_read() {
    for frame in partitions(200_000) {
        let mut at = harness(recorded_image());
        let bytes = frame.len();
        assert_eq!(at.weight(&frame).unwrap().bytes, bytes);
        let answer = later(at.start(frame)).await;
        assert!(at.core.asked.lock().unwrap().is_empty());
        assert!(tells(&answer, ErrorCode::PolicyViolation) && answer.len() < 500);
    }
}
