//! Raft messages there and back.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::*;
use crate::raft::{self, LeaderHint, RaftError, VoterNode};
use crate::types::ids::METADATA_TOPIC_ID;
use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Uuid};

const CLUSTER: &str = "Wzcj35nCRX2Fr9sV_scdUw";

/// The first fetch of a broker, as a Java broker sends it.
fn first_fetch() -> m::FetchRequest {
    let partition = FetchPartition::default()
        .with_current_leader_epoch(3)
        .with_fetch_offset(7)
        .with_last_fetched_epoch(2)
        .with_replica_directory_id(Uuid::from_u128(5))
        .with_high_watermark(6);
    let topic = FetchTopic::default()
        .with_topic_id(METADATA_TOPIC_ID)
        .with_partitions(vec![partition]);
    m::FetchRequest::default()
        .with_cluster_id(Some(text(CLUSTER)))
        .with_replica_id(BrokerId(4))
        .with_replica_state(ReplicaState::default().with_replica_id(BrokerId(2)))
        .with_max_wait_ms(500)
        .with_max_bytes(1_048_576)
        .with_topics(vec![topic])
}

fn hint() -> LeaderHint {
    LeaderHint {
        leader: Some(NodeId(1)),
        epoch: Epoch(4),
        endpoint: Some(("127.0.0.1".to_owned(), 19093)),
    }
}

/// Encodes at a version and reads it back: what a peer sees.
fn seen<M: Encodable + Decodable>(message: &M, version: i16) -> M {
    let mut bytes = bytes::BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    M::decode(&mut bytes, version).unwrap()
}

#[test]
fn a_fetch_names_its_replica_where_the_version_has_it() {
    for (version, id) in [(13, 4), (14, 4), (15, 2), (18, 2)] {
        let Ok(raft::Request::Fetch(fetch)) = fetch_request(first_fetch(), version, CLUSTER) else {
            panic!("v{version} is served");
        };
        assert_eq!(fetch.replica.id, NodeId(id));
        assert_eq!(fetch.replica.directory, Uuid::from_u128(5));
        assert_eq!(fetch.current_leader_epoch, 3);
        assert_eq!(fetch.fetch_offset, 7);
        assert_eq!(fetch.last_fetched_epoch, 2);
        assert_eq!(fetch.high_watermark, 6);
        assert_eq!((fetch.max_wait_ms, fetch.max_bytes), (500, 1_048_576));
    }
}

#[test]
fn a_fetch_by_topic_name_is_an_invalid_request_at_the_top() {
    // What a v12 body decodes to: a name and no id.
    let mut request = first_fetch();
    request.topics[0].topic = metadata_topic();
    request.topics[0].topic_id = Uuid::nil();
    let refused = fetch_request(request, 12, CLUSTER).unwrap_err();
    assert_eq!(refused.error_code, 42);
    assert!(refused.responses.is_empty());
}

#[test]
fn another_cluster_is_noticed_before_a_wrong_topic() {
    let mut request = first_fetch();
    request.topics.clear();
    assert_eq!(
        fetch_request(request.clone(), 17, "other")
            .unwrap_err()
            .error_code,
        104
    );
    request.cluster_id = None;
    assert_eq!(
        fetch_request(request, 17, "other").unwrap_err().error_code,
        42
    );
}

#[test]
fn a_fetch_response_names_endpoints_from_v17_on() {
    let response = raft::FetchResponse {
        error: RaftError::Partition(ErrorCode::FencedLeaderEpoch),
        hint: hint(),
        high_watermark: -1,
        log_start: Offset(0),
        diverging: None,
        snapshot: None,
    };
    for version in 13..=18 {
        let message = seen(&fetch_response(&response, Bytes::new(), version), version);
        let topic = &message.responses[0];
        assert_eq!(topic.topic_id, METADATA_TOPIC_ID);
        let partition = &topic.partitions[0];
        assert_eq!(partition.error_code, 74);
        assert_eq!(partition.current_leader.leader_id, BrokerId(1));
        assert_eq!(partition.current_leader.leader_epoch, 4);
        assert_eq!(partition.last_stable_offset, -1);
        assert_eq!(partition.diverging_epoch.end_offset, -1);
        assert_eq!(partition.snapshot_id.end_offset, -1);
        assert_eq!(message.node_endpoints.len(), usize::from(version >= 17));
    }
}

#[test]
fn a_fetch_response_carries_divergence_snapshot_and_records() {
    let response = raft::FetchResponse {
        error: RaftError::None,
        hint: LeaderHint::default(),
        high_watermark: 9,
        log_start: Offset(3),
        diverging: Some(OffsetAndEpoch {
            offset: Offset(531),
            epoch: Epoch(4),
        }),
        snapshot: Some(OffsetAndEpoch {
            offset: Offset(320),
            epoch: Epoch(1),
        }),
    };
    let message = seen(
        &fetch_response(&response, Bytes::from_static(b"abc"), 18),
        18,
    );
    let partition = &message.responses[0].partitions[0];
    assert_eq!(partition.diverging_epoch.epoch, 4);
    assert_eq!(partition.diverging_epoch.end_offset, 531);
    assert_eq!(partition.snapshot_id.end_offset, 320);
    assert_eq!(partition.snapshot_id.epoch, 1);
    assert_eq!(partition.high_watermark, 9);
    assert_eq!(partition.log_start_offset, 3);
    assert_eq!(partition.current_leader.leader_id, BrokerId(-1));
    assert_eq!(partition.records.as_deref(), Some(&b"abc"[..]));
}

#[test]
fn a_top_level_error_sends_no_partition() {
    let response = raft::FetchResponse {
        error: RaftError::Top(ErrorCode::InconsistentClusterId),
        hint: hint(),
        high_watermark: -1,
        log_start: Offset(0),
        diverging: None,
        snapshot: None,
    };
    let message = seen(&fetch_response(&response, Bytes::new(), 18), 18);
    assert_eq!(message.error_code, 104);
    assert!(message.responses.is_empty());
    assert!(message.node_endpoints.is_empty());
}

#[test]
fn votes_translate_at_every_version() {
    use kafka_protocol::messages::vote_request::{PartitionData, TopicData};

    let partition = PartitionData::default()
        .with_replica_epoch(5)
        .with_replica_id(BrokerId(3))
        .with_last_offset_epoch(4)
        .with_last_offset(99);
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    let request = m::VoteRequest::default().with_topics(vec![topic]);
    let parse = |request: &m::VoteRequest, version| {
        let Ok(raft::Request::Vote(vote)) = vote_request(seen(request, version), CLUSTER) else {
            panic!("v{version} is served");
        };
        vote
    };
    let vote = parse(&request, 0);
    assert_eq!(vote.voter, None);
    assert_eq!(vote.candidate.id, NodeId(3));
    assert_eq!((vote.epoch, vote.last_epoch), (Epoch(5), Epoch(4)));
    assert_eq!(vote.last_offset, Offset(99));

    let mut request = request.with_voter_id(BrokerId(1));
    request.topics[0].partitions[0].voter_directory_id = Uuid::from_u128(8);
    request.topics[0].partitions[0].pre_vote = true;
    let vote = parse(&request, 2);
    let key = ReplicaKey {
        id: NodeId(1),
        directory: Uuid::from_u128(8),
    };
    assert_eq!(vote.voter, Some(key));
    assert!(vote.pre_vote);

    request.topics[0].partitions[0].partition_index = 1;
    assert_eq!(vote_request(request, CLUSTER).unwrap_err().error_code, 42);

    let response = raft::VoteResponse {
        error: RaftError::None,
        hint: hint(),
        granted: true,
    };
    for version in 0..=2 {
        let message = seen(&vote_response(&response, version), version);
        assert!(message.topics[0].partitions[0].vote_granted);
        assert_eq!(message.node_endpoints.len(), usize::from(version >= 1));
    }
}

#[test]
fn the_end_of_an_epoch_names_successors_by_version() {
    use kafka_protocol::messages::end_quorum_epoch_request::{
        PartitionData, ReplicaInfo, TopicData,
    };

    let candidate = ReplicaInfo::default()
        .with_candidate_id(BrokerId(7))
        .with_candidate_directory_id(Uuid::from_u128(9));
    let partition = PartitionData::default()
        .with_leader_id(BrokerId(1))
        .with_leader_epoch(6);
    let topic = TopicData::default().with_topic_name(metadata_topic());
    for version in 0..=1 {
        let mut partition = partition.clone();
        if version == 0 {
            partition.preferred_successors = vec![5];
        } else {
            partition.preferred_candidates = vec![candidate.clone()];
        }
        let topics = vec![topic.clone().with_partitions(vec![partition])];
        let request = m::EndQuorumEpochRequest::default().with_topics(topics);
        let parsed = end_quorum_epoch_request(seen(&request, version), version, CLUSTER);
        let Ok(raft::Request::EndQuorumEpoch(end)) = parsed else {
            panic!("v{version} is served");
        };
        let (id, directory) = if version == 0 { (5, 0) } else { (7, 9) };
        let expected = ReplicaKey {
            id: NodeId(id),
            directory: Uuid::from_u128(directory),
        };
        assert_eq!(end.preferred, [expected]);
        assert_eq!((end.leader_id, end.epoch), (NodeId(1), Epoch(6)));
    }
}

#[test]
fn simple_responses_encode_at_every_version() {
    let response = raft::SimpleResponse {
        error: RaftError::Partition(ErrorCode::FencedLeaderEpoch),
        hint: hint(),
    };
    for version in 0..=1 {
        let begin = seen(&begin_quorum_epoch_response(&response, version), version);
        assert_eq!(begin.topics[0].partitions[0].error_code, 74);
        let end = seen(&end_quorum_epoch_response(&response, version), version);
        assert_eq!(end.topics[0].partitions[0].leader_epoch, 4);
        assert_eq!(end.node_endpoints.len(), usize::from(version >= 1));
    }
}

fn snapshot_request(name: &'static str) -> m::FetchSnapshotRequest {
    use kafka_protocol::messages::fetch_snapshot_request::{
        PartitionSnapshot, SnapshotId, TopicSnapshot,
    };

    let partition = PartitionSnapshot::default()
        .with_current_leader_epoch(4)
        .with_snapshot_id(SnapshotId::default().with_end_offset(320).with_epoch(1))
        .with_position(100);
    let topic = TopicSnapshot::default()
        .with_name(TopicName(StrBytes::from_static_str(name)))
        .with_partitions(vec![partition]);
    m::FetchSnapshotRequest::default()
        .with_replica_id(BrokerId(14))
        .with_max_bytes(1000)
        .with_topics(vec![topic])
}

#[test]
fn a_snapshot_of_another_topic_is_unknown() {
    let refused = fetch_snapshot_request(snapshot_request("other"), CLUSTER).unwrap_err();
    assert_eq!(refused.error_code, 0);
    assert_eq!(refused.topics[0].partitions[0].error_code, 3);

    let parsed = fetch_snapshot_request(snapshot_request(METADATA_TOPIC), CLUSTER);
    let Ok(raft::Request::FetchSnapshot(fetch)) = parsed else {
        panic!("the metadata topic is served");
    };
    assert_eq!(fetch.id.offset, Offset(320));
    assert_eq!((fetch.position, fetch.max_bytes), (100, 1000));
}

#[test]
fn a_snapshot_response_carries_bytes_size_and_position() {
    let response = raft::FetchSnapshotResponse {
        error: RaftError::None,
        hint: hint(),
        id: OffsetAndEpoch {
            offset: Offset(320),
            epoch: Epoch(1),
        },
    };
    let chunk = SnapshotChunk {
        size: 16579,
        position: 100,
        bytes: Bytes::from_static(b"xyz"),
    };
    for version in 0..=1 {
        let message = fetch_snapshot_response(&response, chunk.clone(), version);
        let message = seen(&message, version);
        let partition = &message.topics[0].partitions[0];
        assert_eq!((partition.size, partition.position), (16579, 100));
        assert_eq!(&partition.unaligned_records[..], b"xyz");
        assert_eq!(partition.snapshot_id.end_offset, 320);
        assert_eq!(message.node_endpoints.len(), usize::from(version >= 1));
    }
}

fn quorum() -> raft::DescribeQuorumResponse {
    let key = ReplicaKey {
        id: NodeId(1),
        directory: Uuid::from_u128(3),
    };
    let state = raft::ReplicaState {
        key,
        log_end: 50,
        last_fetch: 7,
        last_caught_up: 6,
    };
    raft::DescribeQuorumResponse {
        error: RaftError::None,
        message: None,
        hint: hint(),
        high_watermark: 44,
        voters: vec![state.clone()],
        observers: vec![state],
        nodes: vec![VoterNode {
            key,
            endpoints: vec![("CONTROLLER".to_owned(), "host".to_owned(), 9093)],
            kraft_versions: (0, 1),
        }],
    }
}

#[test]
fn a_quorum_is_described_at_every_version() {
    for version in 0..=2 {
        let message = seen(&describe_quorum_response(&quorum(), version), version);
        let partition = &message.topics[0].partitions[0];
        assert_eq!(partition.leader_id, BrokerId(1));
        assert_eq!(partition.high_watermark, 44);
        let voter = &partition.current_voters[0];
        assert_eq!(voter.log_end_offset, 50);
        assert_eq!(voter.last_fetch_timestamp == 7, version >= 1);
        assert_eq!(voter.replica_directory_id.is_nil(), version < 2);
        assert_eq!(partition.observers.len(), 1);
        assert_eq!(message.nodes.len(), usize::from(version >= 2));
    }
}

#[test]
fn a_quorum_that_is_led_elsewhere_is_an_error_with_text_and_no_leader() {
    let response = raft::DescribeQuorumResponse {
        error: RaftError::Partition(ErrorCode::NotLeaderOrFollower),
        message: Some("not here".to_owned()),
        ..quorum()
    };
    let message = seen(&describe_quorum_response(&response, 2), 2);
    let partition = &message.topics[0].partitions[0];
    assert_eq!(partition.error_code, 6);
    assert_eq!(partition.leader_id, BrokerId(0));
    assert_eq!(partition.error_message.as_deref(), Some("not here"));
    assert!(message.nodes.is_empty());
}

#[test]
fn the_quorum_of_another_topic_is_unknown_partition_by_partition() {
    use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};

    let partitions = vec![
        PartitionData::default(),
        PartitionData::default().with_partition_index(1),
    ];
    let topic = TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str("other")))
        .with_partitions(partitions);
    let request = m::DescribeQuorumRequest::default().with_topics(vec![topic]);
    let refused = describe_quorum_request(request).unwrap_err();
    let partitions = &refused.topics[0].partitions;
    assert_eq!(partitions.len(), 2);
    assert!(partitions.iter().all(|partition| partition.error_code == 3));
}
