//! Requests that change the voters, and their answers (KIP-853).

use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;

use super::text;
use crate::raft;
use crate::records::rpc;
use crate::types::{NodeId, ReplicaKey, Uuid};

const fn key(id: i32, directory: Uuid) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        directory,
    }
}

/// AddRaftVoter (80). Below v1 the answer always waits for the commit.
pub(crate) fn add_voter_request(request: rpc::AddRaftVoterRequest) -> raft::Request {
    let listeners = request.listeners.into_iter();
    raft::Request::AddVoter(raft::AddVoterRequest {
        cluster_id: request.cluster_id,
        timeout_ms: request.timeout_ms,
        voter: key(request.voter_id, request.voter_directory_id),
        endpoints: listeners.map(|it| (it.name, it.host, it.port)).collect(),
        ack_when_committed: request.ack_when_committed,
    })
}

/// RemoveRaftVoter (81).
pub(crate) fn remove_voter_request(request: m::RemoveRaftVoterRequest) -> raft::Request {
    raft::Request::RemoveVoter(raft::RemoveVoterRequest {
        cluster_id: request.cluster_id.map(|id| id.to_string()),
        voter: key(request.voter_id, request.voter_directory_id),
    })
}

/// UpdateRaftVoter (82).
pub(crate) fn update_voter_request(request: m::UpdateRaftVoterRequest) -> raft::Request {
    let listeners = request.listeners.into_iter();
    let range = request.k_raft_version_feature;
    raft::Request::UpdateVoter(raft::UpdateVoterRequest {
        cluster_id: request.cluster_id.map(|id| id.to_string()),
        current_leader_epoch: request.current_leader_epoch,
        voter: key(request.voter_id, request.voter_directory_id),
        endpoints: listeners
            .map(|it| (it.name.to_string(), it.host.to_string(), it.port))
            .collect(),
        kraft_versions: (range.min_supported_version, range.max_supported_version),
    })
}

/// The answer to AddRaftVoter (80).
pub(crate) fn add_voter_response(response: &raft::ChangeVoterResponse) -> m::AddRaftVoterResponse {
    m::AddRaftVoterResponse::default()
        .with_error_code(response.error.code())
        .with_error_message(response.message.as_deref().map(text))
}

/// The answer to RemoveRaftVoter (81).
pub(crate) fn remove_voter_response(
    response: &raft::ChangeVoterResponse,
) -> m::RemoveRaftVoterResponse {
    m::RemoveRaftVoterResponse::default()
        .with_error_code(response.error.code())
        .with_error_message(response.message.as_deref().map(text))
}

/// The answer to UpdateRaftVoter (82).
pub(crate) fn update_voter_response(
    response: &raft::UpdateVoterResponse,
) -> m::UpdateRaftVoterResponse {
    let hint = &response.hint;
    let mut leader = m::update_raft_voter_response::CurrentLeader::default()
        .with_leader_id(BrokerId(hint.leader.unwrap_or(NodeId::NONE).0))
        .with_leader_epoch(hint.epoch.0);
    if let Some((host, port)) = &hint.endpoint {
        leader.host = text(host);
        leader.port = i32::from(*port);
    }
    m::UpdateRaftVoterResponse::default()
        .with_error_code(response.error.code())
        .with_current_leader(leader)
}
