//! Answers to raft requests, byte for byte as a Java controller encoded them: its answer is read,
//! told in the core's own types, and written again.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::{Decodable, Encodable};

use super::*;
use crate::raft::{self, LeaderHint, RaftError, VoterNode};
use crate::server::dispatch::tests::recorded;
use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Uuid};

fn code(number: i16) -> ErrorCode {
    let known = [
        ErrorCode::None,
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::BrokerNotAvailable,
        ErrorCode::InvalidRequest,
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::UnknownLeaderEpoch,
        ErrorCode::InvalidVoterKey,
    ];
    let found = known.into_iter().find(|code| code.code() == number);
    found.unwrap_or_else(|| panic!("code {number}"))
}

fn error(number: i16) -> RaftError {
    match code(number) {
        ErrorCode::None => RaftError::None,
        code => RaftError::Partition(code),
    }
}

fn hint(leader: BrokerId, epoch: i32, endpoint: Option<(&str, u16)>) -> LeaderHint {
    LeaderHint {
        leader: (leader.0 >= 0).then_some(NodeId(leader.0)),
        epoch: Epoch(epoch),
        endpoint: endpoint.map(|(host, port)| (host.to_owned(), port)),
    }
}

fn position(offset: i64, epoch: i32) -> Option<OffsetAndEpoch> {
    (offset >= 0).then_some(OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    })
}

fn fetch(message: &m::FetchResponse, version: i16) -> m::FetchResponse {
    let partition = &message.responses[0].partitions[0];
    let nodes = message.node_endpoints.first();
    let response = raft::FetchResponse {
        error: error(partition.error_code),
        hint: hint(
            partition.current_leader.leader_id,
            partition.current_leader.leader_epoch,
            nodes.map(|node| (node.host.as_str(), node.port as u16)),
        ),
        high_watermark: partition.high_watermark,
        log_start: Offset(partition.log_start_offset),
        diverging: position(
            partition.diverging_epoch.end_offset,
            partition.diverging_epoch.epoch,
        ),
        snapshot: position(
            partition.snapshot_id.end_offset,
            partition.snapshot_id.epoch,
        ),
    };
    fetch_response(&response, partition.records.clone().unwrap(), version)
}

fn fetch_snapshot(message: &m::FetchSnapshotResponse, version: i16) -> m::FetchSnapshotResponse {
    let partition = &message.topics[0].partitions[0];
    let nodes = message.node_endpoints.first();
    let response = raft::FetchSnapshotResponse {
        error: error(partition.error_code),
        hint: hint(
            partition.current_leader.leader_id,
            partition.current_leader.leader_epoch,
            nodes.map(|node| (node.host.as_str(), node.port)),
        ),
        id: OffsetAndEpoch {
            offset: Offset(partition.snapshot_id.end_offset),
            epoch: Epoch(partition.snapshot_id.epoch),
        },
    };
    let chunk = SnapshotChunk {
        size: partition.size,
        position: partition.position,
        bytes: partition.unaligned_records.clone(),
    };
    fetch_snapshot_response(&response, chunk, version)
}

fn vote(message: &m::VoteResponse, version: i16) -> m::VoteResponse {
    let partition = &message.topics[0].partitions[0];
    let node = message.node_endpoints.first();
    let endpoint = node.map(|node| (node.host.as_str(), node.port));
    let response = raft::VoteResponse {
        error: error(partition.error_code),
        hint: hint(partition.leader_id, partition.leader_epoch, endpoint),
        granted: partition.vote_granted,
    };
    vote_response(&response, version)
}

macro_rules! simple {
    ($name:ident, $message:ident, $encode:ident) => {
        fn $name(message: &m::$message, version: i16) -> m::$message {
            let partition = &message.topics[0].partitions[0];
            let node = message.node_endpoints.first();
            let endpoint = node.map(|node| (node.host.as_str(), node.port));
            let response = raft::SimpleResponse {
                error: error(partition.error_code),
                hint: hint(partition.leader_id, partition.leader_epoch, endpoint),
            };
            $encode(&response, version)
        }
    };
}

simple!(begin, BeginQuorumEpochResponse, begin_quorum_epoch_response);
simple!(end, EndQuorumEpochResponse, end_quorum_epoch_response);

fn quorum(message: &m::DescribeQuorumResponse, version: i16) -> m::DescribeQuorumResponse {
    let partition = &message.topics[0].partitions[0];
    let replicas = |list: &[m::describe_quorum_response::ReplicaState]| {
        list.iter()
            .map(|replica| raft::ReplicaState {
                key: ReplicaKey {
                    id: NodeId(replica.replica_id.0),
                    directory: replica.replica_directory_id,
                },
                log_end: replica.log_end_offset,
                last_fetch: replica.last_fetch_timestamp,
                last_caught_up: replica.last_caught_up_timestamp,
            })
            .collect()
    };
    let nodes = message.nodes.iter().map(|node| {
        let listeners = node.listeners.iter();
        VoterNode {
            key: ReplicaKey {
                id: NodeId(node.node_id.0),
                directory: Uuid::nil(),
            },
            endpoints: listeners
                .map(|end| (end.name.to_string(), end.host.to_string(), end.port))
                .collect(),
            kraft_versions: (0, 1),
        }
    });
    let response = raft::DescribeQuorumResponse {
        error: error(partition.error_code),
        message: partition.error_message.as_ref().map(ToString::to_string),
        hint: hint(partition.leader_id, partition.leader_epoch, None),
        high_watermark: partition.high_watermark,
        voters: replicas(&partition.current_voters),
        observers: replicas(&partition.observers),
        nodes: nodes.collect(),
    };
    describe_quorum_response(&response, version)
}

fn change(code: i16, message: Option<&StrBytes>) -> raft::ChangeVoterResponse {
    raft::ChangeVoterResponse {
        error: ErrorCode::of(code),
        message: message.map(ToString::to_string),
    }
}

fn update(message: &m::UpdateRaftVoterResponse, _version: i16) -> m::UpdateRaftVoterResponse {
    let leader = &message.current_leader;
    let endpoint = (!leader.host.is_empty()).then(|| {
        let port = u16::try_from(leader.port).unwrap();
        (leader.host.as_str(), port)
    });
    update_voter_response(&raft::UpdateVoterResponse {
        error: ErrorCode::of(message.error_code),
        hint: hint(leader.leader_id, leader.leader_epoch, endpoint),
    })
}

fn again<M: Decodable + Encodable>(
    answer: &[u8],
    version: i16,
    tell: impl FnOnce(&M, i16) -> M,
) -> BytesMut {
    let message = M::decode(&mut Bytes::copy_from_slice(answer), version).unwrap();
    let mut bytes = BytesMut::new();
    tell(&message, version).encode(&mut bytes, version).unwrap();
    bytes
}

/// An answer told in the core's own types and written again. `None` for one with an error at the
/// top: it has no partition, and `dispatch` has tests of it.
pub(in crate::server) fn told(key: i16, version: i16, answer: &[u8]) -> Option<BytesMut> {
    let top = match key {
        52..=54 => &answer[..2],
        1 | 59 => &answer[4..6],
        _ => &[0, 0],
    };
    if top != [0, 0] {
        return None;
    }
    Some(match key {
        1 => again(answer, version, fetch),
        52 => again(answer, version, vote),
        53 => again(answer, version, begin),
        54 => again(answer, version, end),
        55 => again(answer, version, quorum),
        59 => again(answer, version, fetch_snapshot),
        // Version 1 (KIP-1186) changed the request only.
        80 => again(answer, 0, |message: &m::AddRaftVoterResponse, _| {
            add_voter_response(&change(message.error_code, message.error_message.as_ref()))
        }),
        81 => again(answer, 0, |message: &m::RemoveRaftVoterResponse, _| {
            remove_voter_response(&change(message.error_code, message.error_message.as_ref()))
        }),
        82 => again(answer, 0, update),
        other => panic!("API {other} is no raft request"),
    })
}

#[test]
fn answers_with_a_partition_are_encoded_as_recorded() {
    let mut keys = std::collections::BTreeMap::new();
    for row in recorded("raft-requests.tsv") {
        // DescribeQuorum of another partition is answered without the core.
        let other = row.case.contains("another") || row.case.contains("no topics");
        if row.key == 55 && other {
            continue;
        }
        let Some(ours) = told(row.key, row.version, &row.answer) else {
            continue;
        };
        assert_eq!(&ours[..], &row.answer[..], "{}", row.case);
        *keys.entry(row.key).or_insert(0) += 1;
    }
    assert!(keys.len() >= 5, "recorded answers by API: {keys:?}");
}
