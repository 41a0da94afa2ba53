//! What this node asks others: from what consensus says to the wire, in the version that the other
//! side understands.

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::{ApiKey, BrokerId};
use kafka_protocol::protocol::{Encodable, StrBytes};

use super::{metadata_topic, text};
use crate::raft::{self, Ask, CallFault, Request};
use crate::records::rpc::{self, Message};
use crate::types::Uuid;
use crate::types::ids::METADATA_TOPIC_ID;

/// The ApiVersions that is asked at first: the one in which a range that begins at 0 is told
/// (KIP-584), which every release of a quorum knows.
pub(crate) const API_VERSIONS_MAX: i16 = 4;
/// The first ApiVersions with the software's name in it, and with tagged fields.
const API_VERSIONS_FLEXIBLE_SINCE: i16 = 3;

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Api {
    /// Which.
    pub(crate) key: i16,
    /// The versions in which it is asked, both inclusive.
    pub(crate) min: i16,
    /// See `min`.
    pub(crate) max: i16,
    /// First version with tagged fields, in the body and in both headers.
    pub(crate) flexible_since: i16,
}

const fn api(key: ApiKey, versions: (i16, i16), flexible_since: i16) -> Api {
    Api {
        key: key as i16,
        min: versions.0,
        max: versions.1,
        flexible_since,
    }
}

pub(crate) const VOTE: Api = api(ApiKey::Vote, (0, 2), 0);
pub(crate) const BEGIN_QUORUM_EPOCH: Api = api(ApiKey::BeginQuorumEpoch, (0, 1), 1);
pub(crate) const END_QUORUM_EPOCH: Api = api(ApiKey::EndQuorumEpoch, (0, 1), 1);
/// Below version 13 a topic has a name, and a controller refuses it.
pub(crate) const FETCH: Api = api(ApiKey::Fetch, (13, 18), 12);
pub(crate) const FETCH_SNAPSHOT: Api = api(ApiKey::FetchSnapshot, (0, 1), 0);
/// Version 1 is version 0 and a flag (KIP-1186).
pub(crate) const ADD_VOTER: Api = api(ApiKey::AddRaftVoter, (0, 1), 0);
pub(crate) const REMOVE_VOTER: Api = api(ApiKey::RemoveRaftVoter, (0, 0), 0);
pub(crate) const UPDATE_VOTER: Api = api(ApiKey::UpdateRaftVoter, (0, 0), 0);
pub(crate) const API_VERSIONS: Api = api(
    ApiKey::ApiVersions,
    (0, API_VERSIONS_MAX),
    API_VERSIONS_FLEXIBLE_SINCE,
);

/// Asked on a connection of its own: see `server::peer`.
pub(crate) const REGISTER_CONTROLLER: Api = api(ApiKey::ControllerRegistration, (0, 0), 0);

/// Everything that is asked.
pub(crate) const APIS: [Api; 10] = [
    FETCH,
    API_VERSIONS,
    VOTE,
    BEGIN_QUORUM_EPOCH,
    END_QUORUM_EPOCH,
    FETCH_SNAPSHOT,
    ADD_VOTER,
    REMOVE_VOTER,
    UPDATE_VOTER,
    REGISTER_CONTROLLER,
];

/// The API of a question; `None` for what no node asks another.
pub(crate) const fn api_of(ask: &Ask) -> Option<Api> {
    Some(match ask {
        Ask::Versions => API_VERSIONS,
        Ask::Raft(Request::Vote(_)) => VOTE,
        Ask::Raft(Request::BeginQuorumEpoch(_)) => BEGIN_QUORUM_EPOCH,
        Ask::Raft(Request::EndQuorumEpoch(_)) => END_QUORUM_EPOCH,
        Ask::Raft(Request::Fetch(_)) => FETCH,
        Ask::Raft(Request::FetchSnapshot(_)) => FETCH_SNAPSHOT,
        Ask::Raft(Request::AddVoter(_)) => ADD_VOTER,
        Ask::Raft(Request::RemoveVoter(_)) => REMOVE_VOTER,
        Ask::Raft(Request::UpdateVoter(_)) => UPDATE_VOTER,
        // Tools ask it, and the leader answers it by itself.
        Ask::Raft(Request::DescribeQuorum(_)) => return None,
    })
}

/// Appends the body of `ask` at `version`, which is one of [`api_of`]'s.
///
/// # Errors
/// [`CallFault::Unsupported`]: this version cannot carry it.
pub(crate) fn encode(ask: &Ask, version: i16, out: &mut BytesMut) -> Result<(), CallFault> {
    match ask {
        Ask::Versions => put_own(&api_versions(), version, out),
        Ask::Raft(Request::Vote(ask)) if ask.pre_vote && version < 2 => Err(CallFault::Unsupported),
        Ask::Raft(Request::Vote(ask)) => put(&vote(ask, version), version, out),
        Ask::Raft(Request::BeginQuorumEpoch(ask)) => put(&begin(ask, version), version, out),
        Ask::Raft(Request::EndQuorumEpoch(ask)) => put(&end(ask, version), version, out),
        Ask::Raft(Request::Fetch(ask)) => put(&fetch(ask, version), version, out),
        Ask::Raft(Request::FetchSnapshot(ask)) => put(&fetch_snapshot(ask, version), version, out),
        Ask::Raft(Request::AddVoter(ask)) => put_own(&add_voter(ask, version), version, out),
        Ask::Raft(Request::RemoveVoter(ask)) => put(&remove_voter(ask), version, out),
        Ask::Raft(Request::UpdateVoter(ask)) => put(&update_voter(ask), version, out),
        Ask::Raft(Request::DescribeQuorum(_)) => Err(CallFault::Unsupported),
    }
}

/// Appends the body of a registration at `version`.
///
/// # Errors
/// [`CallFault::Unsupported`]: this version cannot carry it.
pub(crate) fn registration(
    message: &m::ControllerRegistrationRequest,
    version: i16,
    out: &mut BytesMut,
) -> Result<(), CallFault> {
    put(message, version, out)
}

/// A message that does not fit its version, such as a name of 40 kB, cannot be asked.
fn put(message: &impl Encodable, version: i16, out: &mut BytesMut) -> Result<(), CallFault> {
    let encoded = message.encode(out, version);
    encoded.map_err(|_| CallFault::Unsupported)
}

fn put_own(message: &impl Message, version: i16, out: &mut BytesMut) -> Result<(), CallFault> {
    let mut body = Vec::new();
    let encoded = message.encode(&mut body, version);
    encoded.map_err(|_| CallFault::Unsupported)?;
    out.put_slice(&body);
    Ok(())
}

/// ApiVersions (18).
fn api_versions() -> rpc::ApiVersionsRequest {
    rpc::ApiVersionsRequest {
        client_software_name: "kraftd".to_owned(),
        client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
}

fn cluster(id: Option<&String>) -> Option<StrBytes> {
    id.map(|id| text(id))
}

fn vote(ask: &raft::VoteRequest, version: i16) -> m::VoteRequest {
    use kafka_protocol::messages::vote_request::{PartitionData, TopicData};

    let mut partition = PartitionData::default()
        .with_replica_id(BrokerId(ask.candidate.id.0))
        .with_replica_epoch(ask.epoch.0)
        .with_last_offset_epoch(ask.last_epoch.0)
        .with_last_offset(ask.last_offset.0);
    let mut message = m::VoteRequest::default().with_cluster_id(cluster(ask.cluster_id.as_ref()));
    if version >= 1 {
        partition.replica_directory_id = ask.candidate.directory;
        message.voter_id = BrokerId(ask.voter.map_or(-1, |voter| voter.id.0));
        partition.voter_directory_id = ask.voter.map_or(Uuid::nil(), |voter| voter.directory);
    }
    if version >= 2 {
        partition.pre_vote = ask.pre_vote;
    }
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    message.with_topics(vec![topic])
}

fn begin(ask: &raft::BeginQuorumEpochRequest, version: i16) -> m::BeginQuorumEpochRequest {
    use kafka_protocol::messages::begin_quorum_epoch_request::{
        LeaderEndpoint, PartitionData, TopicData,
    };

    let mut partition = PartitionData::default()
        .with_leader_id(BrokerId(ask.leader_id.0))
        .with_leader_epoch(ask.epoch.0);
    let mut message =
        m::BeginQuorumEpochRequest::default().with_cluster_id(cluster(ask.cluster_id.as_ref()));
    if version >= 1 {
        message.voter_id = BrokerId(ask.voter.map_or(-1, |voter| voter.id.0));
        partition.voter_directory_id = ask.voter.map_or(Uuid::nil(), |voter| voter.directory);
        let endpoints = ask.endpoints.iter().map(|(name, host, port)| {
            LeaderEndpoint::default()
                .with_name(text(name))
                .with_host(text(host))
                .with_port(*port)
        });
        message.leader_endpoints = endpoints.collect();
    }
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    message.with_topics(vec![topic])
}

fn end(ask: &raft::EndQuorumEpochRequest, version: i16) -> m::EndQuorumEpochRequest {
    use kafka_protocol::messages::end_quorum_epoch_request::{
        PartitionData, ReplicaInfo, TopicData,
    };

    let mut partition = PartitionData::default()
        .with_leader_id(BrokerId(ask.leader_id.0))
        .with_leader_epoch(ask.epoch.0);
    let preferred = ask.preferred.iter();
    if version >= 1 {
        let candidates = preferred.map(|key| {
            ReplicaInfo::default()
                .with_candidate_id(BrokerId(key.id.0))
                .with_candidate_directory_id(key.directory)
        });
        partition.preferred_candidates = candidates.collect();
    } else {
        partition.preferred_successors = preferred.map(|key| key.id.0).collect();
    }
    let topic = TopicData::default()
        .with_topic_name(metadata_topic())
        .with_partitions(vec![partition]);
    m::EndQuorumEpochRequest::default()
        .with_cluster_id(cluster(ask.cluster_id.as_ref()))
        .with_topics(vec![topic])
}

fn fetch(ask: &raft::FetchRequest, version: i16) -> m::FetchRequest {
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};

    let replica = BrokerId(ask.replica.id.0);
    let mut partition = FetchPartition::default()
        .with_current_leader_epoch(ask.current_leader_epoch)
        .with_fetch_offset(ask.fetch_offset)
        .with_last_fetched_epoch(ask.last_fetched_epoch)
        .with_partition_max_bytes(0);
    if version >= 17 {
        partition.replica_directory_id = ask.replica.directory;
    }
    if version >= 18 {
        partition.high_watermark = ask.high_watermark;
    }
    let topic = FetchTopic::default()
        .with_topic_id(METADATA_TOPIC_ID)
        .with_partitions(vec![partition]);
    let message = m::FetchRequest::default()
        .with_cluster_id(cluster(ask.cluster_id.as_ref()))
        .with_max_wait_ms(ask.max_wait_ms)
        .with_min_bytes(0)
        .with_max_bytes(ask.max_bytes)
        .with_topics(vec![topic]);
    if version >= 15 {
        message.with_replica_state(ReplicaState::default().with_replica_id(replica))
    } else {
        message.with_replica_id(replica)
    }
}

fn fetch_snapshot(ask: &raft::FetchSnapshotRequest, version: i16) -> m::FetchSnapshotRequest {
    use kafka_protocol::messages::fetch_snapshot_request::{
        PartitionSnapshot, SnapshotId, TopicSnapshot,
    };

    let id = SnapshotId::default()
        .with_end_offset(ask.id.offset.0)
        .with_epoch(ask.id.epoch.0);
    let mut partition = PartitionSnapshot::default()
        .with_current_leader_epoch(ask.current_leader_epoch)
        .with_snapshot_id(id)
        .with_position(ask.position);
    if version >= 1 {
        partition.replica_directory_id = ask.replica.directory;
    }
    let topic = TopicSnapshot::default()
        .with_name(metadata_topic())
        .with_partitions(vec![partition]);
    m::FetchSnapshotRequest::default()
        .with_cluster_id(cluster(ask.cluster_id.as_ref()))
        .with_replica_id(BrokerId(ask.replica.id.0))
        .with_max_bytes(ask.max_bytes)
        .with_topics(vec![topic])
}

/// AddRaftVoter (80). Below version 1 the answer always waits for the commit.
fn add_voter(ask: &raft::AddVoterRequest, version: i16) -> rpc::AddRaftVoterRequest {
    let listeners = ask.endpoints.iter();
    rpc::AddRaftVoterRequest {
        cluster_id: ask.cluster_id.clone(),
        timeout_ms: ask.timeout_ms,
        voter_id: ask.voter.id.0,
        voter_directory_id: ask.voter.directory,
        listeners: listeners
            .map(|(name, host, port)| rpc::RaftVoterListener {
                name: name.clone(),
                host: host.clone(),
                port: *port,
                ..Default::default()
            })
            .collect(),
        ack_when_committed: version < 1 || ask.ack_when_committed,
        ..Default::default()
    }
}

fn remove_voter(ask: &raft::RemoveVoterRequest) -> m::RemoveRaftVoterRequest {
    m::RemoveRaftVoterRequest::default()
        .with_cluster_id(cluster(ask.cluster_id.as_ref()))
        .with_voter_id(ask.voter.id.0)
        .with_voter_directory_id(ask.voter.directory)
}

fn update_voter(ask: &raft::UpdateVoterRequest) -> m::UpdateRaftVoterRequest {
    use kafka_protocol::messages::update_raft_voter_request::{KRaftVersionFeature, Listener};

    let listeners = ask.endpoints.iter().map(|(name, host, port)| {
        Listener::default()
            .with_name(text(name))
            .with_host(text(host))
            .with_port(*port)
    });
    let range = KRaftVersionFeature::default()
        .with_min_supported_version(ask.kraft_versions.0)
        .with_max_supported_version(ask.kraft_versions.1);
    m::UpdateRaftVoterRequest::default()
        .with_cluster_id(cluster(ask.cluster_id.as_ref()))
        .with_current_leader_epoch(ask.current_leader_epoch)
        .with_voter_id(ask.voter.id.0)
        .with_voter_directory_id(ask.voter.directory)
        .with_listeners(listeners.collect())
        .with_k_raft_version_feature(range)
}
