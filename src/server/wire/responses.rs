//! Answers of this node to its peers, as consensus gives them, to the wire.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::StrBytes;

use super::{metadata_topic, text};
use crate::raft::{self, LeaderHint, RaftError, VoterNode};
use crate::types::NodeId;
use crate::types::ids::METADATA_TOPIC_ID;

/// Fetch names the leader's endpoint from this version on. (The schema allows it one version
/// earlier; a real controller does not send it there.)
const FETCH_ENDPOINTS_SINCE: i16 = 17;
/// The other raft responses name the leader's endpoint from this version on.
const ENDPOINTS_SINCE: i16 = 1;

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
