//! Envelopes through dispatch, with a core that the test plays.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, StrBytes};

use super::tests::{delete, encoded, frame, harness, later, recorded_image};
use super::*;
use crate::server::core::Answer;

/// The principal that a Java broker sends for an anonymous client.
const ANONYMOUS: &[u8] = b"\x00\x00\x05User\x0aANONYMOUS\x00\x00";

fn envelope(principal: Option<&'static [u8]>, address: &'static [u8], inner: Bytes) -> Bytes {
    let request = m::EnvelopeRequest::default()
        .with_request_data(inner)
        .with_request_principal(principal.map(Bytes::from_static))
        .with_client_host_address(Bytes::from_static(address));
    frame(58, 0, 500, &encoded(&request, 0))
}

fn opened(answer: &Bytes) -> m::EnvelopeResponse {
    assert_eq!(answer[4..8], 500_i32.to_be_bytes());
    m::EnvelopeResponse::decode(&mut answer.slice(9..), 0).unwrap()
}

#[tokio::test]
async fn an_envelope_carries_the_inner_answer_with_its_header() {
    let mut at = harness(recorded_image());
    let inner = frame(20, 5, 9, &encoded(&delete(&["a"]), 5));
    let started = at.start(envelope(Some(ANONYMOUS), &[127, 0, 0, 1], inner));
    let (request, reply) = at.asked();
    let Request::Controller { context, .. } = request else {
        panic!("for the controller");
    };
    assert!(context.forwarded);
    assert_eq!(context.principal.to_string(), "User:ANONYMOUS");
    let answer = controller::Reply::DeleteTopics(m::DeleteTopicsResponse::default());
    reply.send(Answer::Controller(Ok(answer))).unwrap();
    let response = opened(&later(started).await);
    assert_eq!(response.error_code, 0);
    // Correlation id 9, no tags; then throttle time, no results, no tags.
    let expected = [0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(response.response_data.as_deref(), Some(&expected[..]));
}

/// KIP-599: the controller holds up whom it talks to itself; a broker holds up its own client.
#[tokio::test]
async fn only_a_client_that_asks_directly_is_muted() {
    let direct = frame(20, 5, 9, &encoded(&delete(&["a"]), 5));
    let forwarded = envelope(Some(ANONYMOUS), &[127, 0, 0, 1], direct.clone());
    for (frame, mute_ms) in [(direct, 1234), (forwarded, 0)] {
        let mut at = harness(recorded_image());
        let started = at.start(frame);
        let (_, reply) = at.asked();
        let answer = m::DeleteTopicsResponse::default().with_throttle_time_ms(1234);
        let answer = controller::Reply::DeleteTopics(answer);
        reply.send(Answer::Controller(Ok(answer))).unwrap();
        let Started::Later(later) = started.unwrap() else {
            panic!("the core works on it");
        };
        let answered = later.await.unwrap();
        assert_eq!(answered.mute_ms, mute_ms);
        let told = 1234_i32.to_be_bytes();
        assert!(answered.frame.windows(4).any(|bytes| bytes == told));
    }
}

#[tokio::test]
async fn names_in_quotas_are_looked_up_before_the_core_is_asked() {
    use m::alter_client_quotas_request::{EntityData, EntryData};
    let entry = |name: &'static str| {
        let part = EntityData::default()
            .with_entity_type("ip".into())
            .with_entity_name(Some(name.into()));
        EntryData::default().with_entity(vec![part])
    };
    let names = ["localhost", "not a host", "127.0.0.1", "[::1"];
    let request =
        m::AlterClientQuotasRequest::default().with_entries(names.into_iter().map(entry).collect());
    let mut at = harness(recorded_image());
    let frame = frame(49, 1, 9, &encoded(&request, 1));
    let Started::Later(later) = at.start(frame).unwrap() else {
        panic!("a resolver is asked");
    };
    // It is busy once.
    *at.core.refusals.lock().unwrap() = 1;
    let (answered, ()) = tokio::join!(later, async {
        loop {
            if let Some((request, reply)) = at.core.asked.lock().unwrap().pop() {
                let Request::Controller {
                    request: controller::Request::AlterClientQuotas(asked),
                    ..
                } = request
                else {
                    panic!("for the controller");
                };
                let unknown = ["[::1", "not a host"].map(str::to_owned);
                assert_eq!(asked.unknown_hosts, unknown.into());
                let answer = m::AlterClientQuotasResponse::default();
                let answer = controller::Reply::AlterClientQuotas(answer);
                reply.send(Answer::Controller(Ok(answer))).unwrap();
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(answered.unwrap().mute_ms, 0);
}

#[tokio::test]
async fn not_controller_inside_is_told_by_the_envelope() {
    let mut at = harness(recorded_image());
    let inner = frame(20, 5, 9, &encoded(&delete(&["a"]), 5));
    let started = at.start(envelope(Some(ANONYMOUS), &[0; 16], inner));
    let (_, reply) = at.asked();
    let error = ApiError::from(ErrorCode::NotController);
    reply.send(Answer::Controller(Err(error))).unwrap();
    let response = opened(&later(started).await);
    assert_eq!((response.error_code, response.response_data), (41, None));
}

/// Removes itself as a leader, and a broker goes on asking it: inside, Java's answer would keep the
/// broker there. Without an envelope it is the answer.
#[tokio::test]
async fn an_answer_of_no_leader_inside_is_told_by_the_envelope() {
    let mut at = harness(recorded_image());
    let partition = m::describe_quorum_request::PartitionData::default();
    let topic = m::describe_quorum_request::TopicData::default()
        .with_topic_name(m::TopicName(StrBytes::from_static_str(
            "__cluster_metadata",
        )))
        .with_partitions(vec![partition]);
    let asks = m::DescribeQuorumRequest::default().with_topics(vec![topic]);
    let bare = frame(55, 2, 9, &encoded(&asks, 2));
    let nobody = || {
        Answer::Raft(raft::Response::DescribeQuorum(
            raft::DescribeQuorumResponse {
                error: raft::RaftError::Partition(ErrorCode::NotLeaderOrFollower),
                message: None,
                hint: raft::LeaderHint::default(),
                high_watermark: -1,
                voters: Vec::new(),
                observers: Vec::new(),
                nodes: Vec::new(),
            },
        ))
    };
    let started = at.start(envelope(Some(ANONYMOUS), &[127, 0, 0, 1], bare.clone()));
    let (_, reply) = at.asked();
    reply.send(nobody()).unwrap();
    let response = opened(&later(started).await);
    assert_eq!((response.error_code, response.response_data), (41, None));

    let started = at.start(bare);
    let (_, reply) = at.asked();
    reply.send(nobody()).unwrap();
    let answer = later(started).await;
    let answer = m::DescribeQuorumResponse::decode(&mut answer.slice(9..), 2).unwrap();
    assert_eq!(answer.topics[0].partitions[0].error_code, 6);
}

#[tokio::test]
async fn envelopes_that_are_wrong_are_refused_by_kind() {
    let good = frame(20, 5, 9, &encoded(&delete(&["a"]), 5));
    let heartbeat = frame(52, 0, 9, &[]);
    let torn = good.slice(..good.len() - 1);
    let unknown = frame(999, 0, 9, &[]);
    let metadata = frame(3, 12, 9, &[]);
    let old = frame(20, 0, 9, &[]);
    let bad_principal: &[u8] = b"\x00\x01\x05User\x0aANONYMOUS\x00\x00";
    let local: &[u8] = &[127, 0, 0, 1];
    for (principal, address, inner, code) in [
        (None, local, &good, 97),
        (Some(bad_principal), local, &good, 97),
        (Some(&ANONYMOUS[..9]), local, &good, 97),
        (Some(ANONYMOUS), &local[..3], &good, 42),
        (Some(ANONYMOUS), local, &heartbeat, 42),
        (Some(ANONYMOUS), local, &metadata, 42),
        (Some(ANONYMOUS), local, &torn, 35),
        (Some(ANONYMOUS), local, &unknown, 35),
        (Some(ANONYMOUS), local, &old, 35),
        (Some(ANONYMOUS), local, &Bytes::new(), 35),
    ] {
        let mut at = harness(recorded_image());
        let started = at.start(envelope(principal, address, inner.clone()));
        let response = opened(&later(started).await);
        assert_eq!(
            response.error_code, code,
            "{principal:?} {address:?} {inner:?}"
        );
        assert!(at.core.asked.lock().unwrap().is_empty());
    }
}

#[test]
fn an_envelope_weighs_what_its_request_will_cost() {
    let at = harness(recorded_image());
    let names = vec!["a"; 1000];
    let inner = frame(20, 5, 9, &encoded(&delete(&names), 5));
    let weight = at.weight(&inner).unwrap();
    let outer = envelope(Some(ANONYMOUS), &[0; 4], inner);
    let wrapped = at.weight(&outer).unwrap();
    // Each name and what an answer says of it.
    assert!(weight.bytes > 1000 * 2 * 32);
    assert!(wrapped.bytes > weight.bytes && wrapped.alone);
}
