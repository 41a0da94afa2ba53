//! Requests of peers, from the wire to what consensus takes. What the core need not see (a request
//! that does not name the metadata partition) is answered here.

use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::StrBytes;

use super::{only, text};
use crate::raft;
use crate::types::ids::{METADATA_TOPIC, METADATA_TOPIC_ID};
use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Uuid};

/// A request that consensus takes, or the answer that it gets without consensus.
pub(crate) type Parsed<R> = Result<raft::Request, R>;

fn cluster(id: Option<StrBytes>) -> Option<String> {
    id.map(|id| id.as_str().to_owned())
}

/// The code of a request that does not name exactly the metadata partition: another cluster's id
/// is noticed first.
fn misaddressed(asked: Option<&StrBytes>, cluster_id: &str) -> i16 {
    match asked {
        Some(id) if id.as_str() != cluster_id => ErrorCode::InconsistentClusterId.code(),
        _ => ErrorCode::InvalidRequest.code(),
    }
}

fn voter(id: BrokerId, directory: Uuid) -> Option<ReplicaKey> {
    (id.0 >= 0).then_some(ReplicaKey {
        id: NodeId(id.0),
        directory,
    })
}

/// Fetch (1). Below v13 a topic has no id, so nothing names the metadata topic.
pub(crate) fn fetch_request(
    request: m::FetchRequest,
    version: i16,
    cluster_id: &str,
) -> Parsed<m::FetchResponse> {
    let replica = if version >= 15 {
        request.replica_state.replica_id
    } else {
        request.replica_id
    };
    let code = misaddressed(request.cluster_id.as_ref(), cluster_id);
    let refused = || m::FetchResponse::default().with_error_code(code);
    let topic = only(request.topics)
        .filter(|topic| topic.topic_id == METADATA_TOPIC_ID)
        .ok_or_else(refused)?;
    let partition = only(topic.partitions)
        .filter(|partition| partition.partition == 0)
        .ok_or_else(refused)?;
    Ok(raft::Request::Fetch(raft::FetchRequest {
        cluster_id: cluster(request.cluster_id),
        replica: ReplicaKey {
            id: NodeId(replica.0),
            directory: partition.replica_directory_id,
        },
        current_leader_epoch: partition.current_leader_epoch,
        fetch_offset: partition.fetch_offset,
        last_fetched_epoch: partition.last_fetched_epoch,
        high_watermark: partition.high_watermark,
        max_wait_ms: request.max_wait_ms,
        max_bytes: request.max_bytes,
    }))
}

/// FetchSnapshot (59).
pub(crate) fn fetch_snapshot_request(
    request: m::FetchSnapshotRequest,
    cluster_id: &str,
) -> Parsed<m::FetchSnapshotResponse> {
    use kafka_protocol::messages::fetch_snapshot_response::{PartitionSnapshot, TopicSnapshot};

    let code = misaddressed(request.cluster_id.as_ref(), cluster_id);
    let refused = || m::FetchSnapshotResponse::default().with_error_code(code);
    let topic = only(request.topics).ok_or_else(refused)?;
    let name = topic.name;
    let partition = only(topic.partitions).ok_or_else(refused)?;
    let of_this_cluster = request
        .cluster_id
        .as_ref()
        .is_none_or(|id| id.as_str() == cluster_id);
    if !of_this_cluster {
        return Err(refused());
    }
    if name.as_str() != METADATA_TOPIC || partition.partition != 0 {
        let partition = PartitionSnapshot::default()
            .with_index(partition.partition)
            .with_error_code(ErrorCode::UnknownTopicOrPartition.code());
        let topic = TopicSnapshot::default()
            .with_name(name)
            .with_partitions(vec![partition]);
        return Err(m::FetchSnapshotResponse::default().with_topics(vec![topic]));
    }
    Ok(raft::Request::FetchSnapshot(raft::FetchSnapshotRequest {
        cluster_id: cluster(request.cluster_id),
        replica: ReplicaKey {
            id: NodeId(request.replica_id.0),
            directory: partition.replica_directory_id,
        },
        current_leader_epoch: partition.current_leader_epoch,
        id: OffsetAndEpoch {
            offset: Offset(partition.snapshot_id.end_offset),
            epoch: Epoch(partition.snapshot_id.epoch),
        },
        position: partition.position,
        max_bytes: request.max_bytes,
    }))
}

/// The one partition of a request that names topics: the metadata partition, or the answer that
/// says what is wrong. Each message has its own types for the same three fields.
macro_rules! addressed {
    ($request:ident, $cluster_id:ident, $response:ident) => {
        only($request.topics)
            .filter(|topic| topic.topic_name.as_str() == METADATA_TOPIC)
            .and_then(|topic| only(topic.partitions))
            .filter(|partition| partition.partition_index == 0)
            .ok_or_else(|| {
                let code = misaddressed($request.cluster_id.as_ref(), $cluster_id);
                m::$response::default().with_error_code(code)
            })
    };
}

/// Vote (52).
pub(crate) fn vote_request(request: m::VoteRequest, cluster_id: &str) -> Parsed<m::VoteResponse> {
    let partition = addressed!(request, cluster_id, VoteResponse)?;
    Ok(raft::Request::Vote(raft::VoteRequest {
        cluster_id: cluster(request.cluster_id),
        voter: voter(request.voter_id, partition.voter_directory_id),
        candidate: ReplicaKey {
            id: NodeId(partition.replica_id.0),
            directory: partition.replica_directory_id,
        },
        epoch: Epoch(partition.replica_epoch),
        last_epoch: Epoch(partition.last_offset_epoch),
        last_offset: Offset(partition.last_offset),
        pre_vote: partition.pre_vote,
    }))
}

/// BeginQuorumEpoch (53).
pub(crate) fn begin_quorum_epoch_request(
    request: m::BeginQuorumEpochRequest,
    cluster_id: &str,
) -> Parsed<m::BeginQuorumEpochResponse> {
    let partition = addressed!(request, cluster_id, BeginQuorumEpochResponse)?;
    let endpoints = request
        .leader_endpoints
        .into_iter()
        .map(|end| (end.name.to_string(), end.host.to_string(), end.port))
        .collect();
    Ok(raft::Request::BeginQuorumEpoch(
        raft::BeginQuorumEpochRequest {
            cluster_id: cluster(request.cluster_id),
            voter: voter(request.voter_id, partition.voter_directory_id),
            leader_id: NodeId(partition.leader_id.0),
            epoch: Epoch(partition.leader_epoch),
            endpoints,
        },
    ))
}

/// EndQuorumEpoch (54).
pub(crate) fn end_quorum_epoch_request(
    request: m::EndQuorumEpochRequest,
    version: i16,
    cluster_id: &str,
) -> Parsed<m::EndQuorumEpochResponse> {
    let partition = addressed!(request, cluster_id, EndQuorumEpochResponse)?;
    let preferred = if version == 0 {
        let key = |id: i32| ReplicaKey {
            id: NodeId(id),
            directory: Uuid::nil(),
        };
        partition
            .preferred_successors
            .into_iter()
            .map(key)
            .collect()
    } else {
        let candidates = partition.preferred_candidates.into_iter();
        candidates
            .map(|candidate| ReplicaKey {
                id: NodeId(candidate.candidate_id.0),
                directory: candidate.candidate_directory_id,
            })
            .collect()
    };
    Ok(raft::Request::EndQuorumEpoch(raft::EndQuorumEpochRequest {
        cluster_id: cluster(request.cluster_id),
        leader_id: NodeId(partition.leader_id.0),
        epoch: Epoch(partition.leader_epoch),
        preferred,
    }))
}

/// DescribeQuorum (55). Any other partition is answered one by one.
pub(crate) fn describe_quorum_request(
    request: m::DescribeQuorumRequest,
) -> Parsed<m::DescribeQuorumResponse> {
    let asked = match &request.topics[..] {
        [topic] if topic.topic_name.as_str() == METADATA_TOPIC => &topic.partitions[..],
        _ => &[],
    };
    if matches!(asked, [partition] if partition.partition_index == 0) {
        Ok(raft::Request::DescribeQuorum(raft::DescribeQuorumRequest))
    } else {
        Err(unknown_quorum(request))
    }
}

fn unknown_quorum(request: m::DescribeQuorumRequest) -> m::DescribeQuorumResponse {
    use kafka_protocol::messages::describe_quorum_response::{PartitionData, TopicData};

    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| {
            PartitionData::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(ErrorCode::UnknownTopicOrPartition.code())
                .with_error_message(Some(text(
                    "This server does not host this topic-partition.",
                )))
        });
        TopicData::default()
            .with_topic_name(topic.topic_name)
            .with_partitions(partitions.collect())
    });
    m::DescribeQuorumResponse::default().with_topics(topics.collect())
}
