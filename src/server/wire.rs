//! Raft messages of the wire <-> the small types of the consensus core.
//!
//! Wire words that differ from ours are translated here and nowhere else: the high watermark is the
//! commit offset, `-1` is no leader, `BrokerId` is any node's id. What the core need not see (a
//! request that does not name the metadata partition) is answered here.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::raft::{self, LeaderHint, RaftError, VoterNode};
use crate::types::ids::{METADATA_TOPIC, METADATA_TOPIC_ID};
use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Uuid};

/// Fetch names the leader's endpoint from this version on. (The schema allows it one version
/// earlier; a real controller does not send it there.)
const FETCH_ENDPOINTS_SINCE: i16 = 17;
/// The other raft responses name the leader's endpoint from this version on.
const ENDPOINTS_SINCE: i16 = 1;

/// A request that consensus takes, or the answer that it gets without consensus.
pub(crate) type Parsed<R> = Result<raft::Request, R>;

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

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

fn only<T>(mut items: Vec<T>) -> Option<T> {
    if items.len() == 1 { items.pop() } else { None }
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

/// Top-level code and, unless the error is there, the partition's code.
const fn codes(error: RaftError) -> (i16, Option<i16>) {
    match error {
        RaftError::None => (0, Some(0)),
        RaftError::Top(code) => (code.code(), None),
        RaftError::Partition(code) => (0, Some(code.code())),
    }
}

fn leader_id(hint: &LeaderHint) -> BrokerId {
    BrokerId(hint.leader.unwrap_or(NodeId::NONE).0)
}

/// The leader with its endpoint, when both are known and the version has room for it.
fn endpoint(hint: &LeaderHint, version: i16, since: i16) -> Option<(BrokerId, StrBytes, u16)> {
    if version < since {
        return None;
    }
    let (host, port) = hint.endpoint.as_ref()?;
    hint.leader.map(|id| (BrokerId(id.0), text(host), *port))
}

/// The same as the list that each message has of its own type; `port` makes its port.
macro_rules! endpoints {
    ($node:ident, $response:ident, $version:ident, $since:ident, $port:path) => {
        endpoint(&$response.hint, $version, $since)
            .map(|(id, host, port)| {
                $node::default()
                    .with_node_id(id)
                    .with_host(host)
                    .with_port($port(port))
            })
            .into_iter()
            .collect()
    };
}

fn metadata_topic() -> TopicName {
    TopicName(StrBytes::from_static_str(METADATA_TOPIC))
}

/// Fetch (1) with the records that go with it (empty when there are none).
pub(crate) fn fetch_response(
    response: &raft::FetchResponse,
    records: Bytes,
    version: i16,
) -> m::FetchResponse {
    use kafka_protocol::messages::fetch_response::{
        EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
        SnapshotId,
    };

    let (top, code) = codes(response.error);
    let mut message = m::FetchResponse::default().with_error_code(top);
    let Some(code) = code else {
        return message;
    };
    let leader = LeaderIdAndEpoch::default()
        .with_leader_id(leader_id(&response.hint))
        .with_leader_epoch(response.hint.epoch.0);
    let mut partition = PartitionData::default()
        .with_error_code(code)
        .with_high_watermark(response.high_watermark)
        .with_log_start_offset(response.log_start.0)
        .with_current_leader(leader)
        .with_records(Some(records));
    if let Some(diverging) = response.diverging {
        partition.diverging_epoch = EpochEndOffset::default()
            .with_epoch(diverging.epoch.0)
            .with_end_offset(diverging.offset.0);
    }
    if let Some(snapshot) = response.snapshot {
        partition.snapshot_id = SnapshotId::default()
            .with_end_offset(snapshot.offset.0)
            .with_epoch(snapshot.epoch.0);
    }
    let topic = FetchableTopicResponse::default()
        .with_topic_id(METADATA_TOPIC_ID)
        .with_partitions(vec![partition]);
    message.responses = vec![topic];
    message.node_endpoints = endpoints!(
        NodeEndpoint,
        response,
        version,
        FETCH_ENDPOINTS_SINCE,
        i32::from
    );
    message
}

/// The part of a snapshot that answers a FetchSnapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotChunk {
    /// Size of the whole snapshot in bytes.
    pub(crate) size: i64,
    /// Where `bytes` begin in it.
    pub(crate) position: i64,
    /// The bytes; they may cut a batch.
    pub(crate) bytes: Bytes,
}

/// FetchSnapshot (59).
pub(crate) fn fetch_snapshot_response(
    response: &raft::FetchSnapshotResponse,
    chunk: SnapshotChunk,
    version: i16,
) -> m::FetchSnapshotResponse {
    use kafka_protocol::messages::fetch_snapshot_response::{
        LeaderIdAndEpoch, NodeEndpoint, PartitionSnapshot, SnapshotId, TopicSnapshot,
    };

    let (top, code) = codes(response.error);
    let mut message = m::FetchSnapshotResponse::default().with_error_code(top);
    let Some(code) = code else {
        return message;
    };
    let id = SnapshotId::default()
        .with_end_offset(response.id.offset.0)
        .with_epoch(response.id.epoch.0);
    let leader = LeaderIdAndEpoch::default()
        .with_leader_id(leader_id(&response.hint))
        .with_leader_epoch(response.hint.epoch.0);
    let partition = PartitionSnapshot::default()
        .with_error_code(code)
        .with_snapshot_id(id)
        .with_current_leader(leader)
        .with_size(chunk.size)
        .with_position(chunk.position)
        .with_unaligned_records(chunk.bytes);
    let topic = TopicSnapshot::default()
        .with_name(metadata_topic())
        .with_partitions(vec![partition]);
    message.topics = vec![topic];
    message.node_endpoints =
        endpoints!(NodeEndpoint, response, version, ENDPOINTS_SINCE, u16::from);
    message
}

/// Vote (52).
pub(crate) fn vote_response(response: &raft::VoteResponse, version: i16) -> m::VoteResponse {
    use kafka_protocol::messages::vote_response::{NodeEndpoint, PartitionData, TopicData};

    let (top, code) = codes(response.error);
    let mut message = m::VoteResponse::default().with_error_code(top);
    let Some(code) = code else {
        return message;
    };
    let partition = PartitionData::default()
        .with_error_code(code)
        .with_leader_id(leader_id(&response.hint))
        .with_leader_epoch(response.hint.epoch.0)
        .with_vote_granted(response.granted);
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    message.topics = vec![topic];
    message.node_endpoints =
        endpoints!(NodeEndpoint, response, version, ENDPOINTS_SINCE, u16::from);
    message
}

macro_rules! simple_response {
    ($(#[$doc:meta])* $name:ident, $message:ident, $module:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(response: &raft::SimpleResponse, version: i16) -> m::$message {
            use kafka_protocol::messages::$module::{NodeEndpoint, PartitionData, TopicData};

            let (top, code) = codes(response.error);
            let mut message = m::$message::default().with_error_code(top);
            let Some(code) = code else {
                return message;
            };
            let partition = PartitionData::default()
                .with_error_code(code)
                .with_leader_id(leader_id(&response.hint))
                .with_leader_epoch(response.hint.epoch.0);
            let topic = TopicData::default()
                .with_topic_name(metadata_topic())
                .with_partitions(vec![partition]);
            message.topics = vec![topic];
            message.node_endpoints =
                endpoints!(NodeEndpoint, response, version, ENDPOINTS_SINCE, u16::from);
            message
        }
    };
}

simple_response! {
    /// BeginQuorumEpoch (53).
    begin_quorum_epoch_response, BeginQuorumEpochResponse, begin_quorum_epoch_response
}
simple_response! {
    /// EndQuorumEpoch (54).
    end_quorum_epoch_response, EndQuorumEpochResponse, end_quorum_epoch_response
}

/// DescribeQuorum (55). An error carries no leader: only codes and the text.
pub(crate) fn describe_quorum_response(
    response: &raft::DescribeQuorumResponse,
    version: i16,
) -> m::DescribeQuorumResponse {
    use kafka_protocol::messages::describe_quorum_response::{PartitionData, TopicData};

    let (top, code) = codes(response.error);
    let failure = response.message.as_deref().map(text);
    let Some(code) = code else {
        return m::DescribeQuorumResponse::default()
            .with_error_code(top)
            .with_error_message(failure);
    };
    let mut partition = PartitionData::default().with_error_code(code);
    if code == 0 {
        let replicas = |list: &[raft::ReplicaState]| {
            list.iter()
                .map(|replica| replica_state(replica, version))
                .collect()
        };
        partition.leader_id = leader_id(&response.hint);
        partition.leader_epoch = response.hint.epoch.0;
        partition.high_watermark = response.high_watermark;
        partition.current_voters = replicas(&response.voters);
        partition.observers = replicas(&response.observers);
    } else {
        partition.error_message = failure;
    }
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    let nodes = if version >= 2 && code == 0 {
        response.nodes.iter().map(quorum_node).collect()
    } else {
        Vec::new()
    };
    m::DescribeQuorumResponse::default()
        .with_topics(vec![topic])
        .with_nodes(nodes)
}

fn replica_state(
    replica: &raft::ReplicaState,
    version: i16,
) -> m::describe_quorum_response::ReplicaState {
    let mut state = m::describe_quorum_response::ReplicaState::default()
        .with_replica_id(BrokerId(replica.key.id.0))
        .with_log_end_offset(replica.log_end);
    if version >= 1 {
        state.last_fetch_timestamp = replica.last_fetch;
        state.last_caught_up_timestamp = replica.last_caught_up;
    }
    if version >= 2 {
        state.replica_directory_id = replica.key.directory;
    }
    state
}

fn quorum_node(voter: &VoterNode) -> m::describe_quorum_response::Node {
    use kafka_protocol::messages::describe_quorum_response::{Listener, Node};

    let listeners = voter.endpoints.iter().map(|(name, host, port)| {
        Listener::default()
            .with_name(text(name))
            .with_host(text(host))
            .with_port(*port)
    });
    Node::default()
        .with_node_id(BrokerId(voter.key.id.0))
        .with_listeners(listeners.collect())
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "wire_recorded_tests.rs"]
pub(super) mod recorded_tests;
