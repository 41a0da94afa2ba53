//! Requests with so many items that they are not read.

use std::collections::BTreeSet;

use kafka_protocol::protocol::Decodable;

use super::tests::{encoded, frame, harness, later, recorded_image};
use super::*;
use crate::controller::authorize::AuthorizerRules;
use crate::server::api_table::TABLE;
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
            let weight = at.dispatch.weigh(&frame).unwrap();
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

#[tokio::test]
async fn it_is_refused_by_its_own_answer_in_an_envelope_too() {
    let api = api_table::find(19).unwrap();
    let inner = too_many(api, 7).unwrap();
    let request = m::EnvelopeRequest::default()
        .with_request_data(inner)
        .with_request_principal(Some(Bytes::from_static(ANONYMOUS)))
        .with_client_host_address(Bytes::from_static(&[127, 0, 0, 1]));
    let mut at = harness(recorded_image());
    let frame = frame(58, 0, 500, &encoded(&request, 0));
    assert_eq!(at.dispatch.weigh(&frame).unwrap().bytes, frame.len());
    let answer = later(at.start(frame)).await;
    let answer = m::EnvelopeResponse::decode(&mut answer.slice(9..), 0).unwrap();
    assert_eq!(answer.error_code, 0);
    let mut inner = answer.response_data.unwrap().slice(5..);
    let inner = m::CreateTopicsResponse::decode(&mut inner, 7).unwrap();
    assert_eq!(inner.topics.len(), 1);
    let topic = &inner.topics[0];
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
