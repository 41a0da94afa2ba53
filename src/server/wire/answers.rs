//! What other nodes answer: from the wire to what consensus takes.
//!
//! Nothing of it is trusted. The shape is checked before anything is decoded, an answer has exactly
//! the metadata partition (or an error at the top), numbers that consensus calls raw stay as they
//! came, and texts are cut to a length that a log line can bear.

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::Decodable;

use super::asks::{self, Api};
use super::only;
use crate::node::PeerAnswer;
use crate::raft::{self, LeaderHint, RaftError, Response};
use crate::records::rpc::{self, Message};
use crate::server::shape::Shape;
use crate::server::shapes;
use crate::types::features::KRAFT_VERSION;
use crate::types::ids::{METADATA_TOPIC, METADATA_TOPIC_ID};
use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch};

/// Elements of all arrays and unknown tagged fields of one answer: far more than a quorum has
/// nodes or a release has APIs, and little enough to be decoded without a thought.
const ELEMENTS_MAX: usize = 10_000;
/// No host name is longer (RFC 1035), and no address as text.
const HOST_BYTES_MAX: usize = 255;
/// How much of a peer's sentence is kept.
const MESSAGE_CHARS_MAX: usize = 500;

/// Why bytes are no answer, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Garbage(pub(crate) String);

impl std::fmt::Display for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn garbage<T>(what: &str) -> Result<T, Garbage> {
    Err(Garbage(what.to_owned()))
}

/// Reads the whole body of an answer to `api` at `version`.
///
/// # Errors
/// It is not such an answer, or not one about the metadata partition.
pub(crate) fn decode(api: Api, version: i16, body: Bytes) -> Result<PeerAnswer, Garbage> {
    match api {
        asks::VOTE => vote(read(&shapes::VOTE_ANSWER, version, body)?),
        asks::BEGIN_QUORUM_EPOCH => begin(read(&shapes::QUORUM_EPOCH_ANSWER, version, body)?),
        asks::END_QUORUM_EPOCH => end(read(&shapes::QUORUM_EPOCH_ANSWER, version, body)?),
        asks::FETCH => fetch(read(&shapes::FETCH_ANSWER, version, body)?),
        asks::FETCH_SNAPSHOT => {
            fetch_snapshot(read(&shapes::FETCH_SNAPSHOT_ANSWER, version, body)?)
        }
        // Version 1 of the answer is version 0 (KIP-1186).
        asks::ADD_VOTER => add_voter(read(&shapes::CHANGE_VOTER_ANSWER, 0, body)?),
        asks::REMOVE_VOTER => remove_voter(read(&shapes::CHANGE_VOTER_ANSWER, version, body)?),
        asks::UPDATE_VOTER => update_voter(read(&shapes::UPDATE_VOTER_ANSWER, version, body)?),
        asks::REGISTER_CONTROLLER => registered(read(&shapes::REGISTRATION_ANSWER, version, body)?),
        _ => match api_versions(version, &body)? {
            Versions::Known { kraft, .. } => Ok(PeerAnswer::Versions(kraft)),
            Versions::Lower(_) => garbage("ApiVersions is refused in a version that was served"),
        },
    }
}

fn check(shape: &Shape, version: i16, body: &[u8]) -> Result<(), Garbage> {
    match shape.check(body, version) {
        Ok(size) if size.elements > ELEMENTS_MAX => garbage("more elements than an answer has"),
        Ok(_) => Ok(()),
        Err(misfit) => Err(Garbage(misfit.to_string())),
    }
}

fn read<M: Decodable>(shape: &Shape, version: i16, mut body: Bytes) -> Result<M, Garbage> {
    check(shape, version, &body)?;
    let message = M::decode(&mut body, version);
    message.map_err(|error| Garbage(error.to_string()))
}

/// What an ApiVersions answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// The version asked is not served, the highest that is served is this.
    Lower(i16),
    /// Everything.
    Known {
        /// (api key, lowest version, highest version).
        ranges: Vec<(i16, i16, i16)>,
        /// The range of kraft.version, both inclusive.
        kraft: Option<(u16, u16)>,
    },
}

/// ApiVersions (18).
///
/// # Errors
/// It is no such answer, or the other side did not let this node in.
pub(crate) fn api_versions(version: i16, body: &[u8]) -> Result<Versions, Garbage> {
    // A version that is not served is answered as version 0, so that everybody can read it.
    let unsupported = body.starts_with(&ErrorCode::UnsupportedVersion.code().to_be_bytes());
    let version = if unsupported { 0 } else { version };
    check(&shapes::API_VERSIONS_ANSWER, version, body)?;
    let answer = rpc::ApiVersionsResponse::decode(body, version)
        .map_err(|fault| Garbage(fault.to_string()))?;
    if unsupported {
        let own = answer
            .api_keys
            .iter()
            .find(|api| api.api_key == asks::API_VERSIONS.key);
        return Ok(Versions::Lower(own.map_or(0, |api| api.max_version)));
    }
    if answer.error_code != 0 {
        let code = ErrorCode::of(answer.error_code);
        return Err(Garbage(format!("ApiVersions is answered with {code}")));
    }
    let kraft = answer
        .supported_features
        .iter()
        .find(|feature| feature.name == KRAFT_VERSION)
        .and_then(|feature| {
            let min = u16::try_from(feature.min_version).ok()?;
            let max = u16::try_from(feature.max_version).ok()?;
            Some((min, max))
        });
    let ranges = answer.api_keys.iter();
    Ok(Versions::Known {
        ranges: ranges
            .map(|api| (api.api_key, api.min_version, api.max_version))
            .collect(),
        kraft,
    })
}

/// The error at the top, if there is one.
fn top(code: i16) -> Option<RaftError> {
    (code != 0).then(|| RaftError::Top(ErrorCode::of(code)))
}

fn partition_error(code: i16) -> RaftError {
    match code {
        0 => RaftError::None,
        code => RaftError::Partition(ErrorCode::of(code)),
    }
}

/// The leader with its address, if that is one. `nodes` are those of the answer.
fn hint<'a>(
    leader: BrokerId,
    epoch: i32,
    nodes: impl IntoIterator<Item = (BrokerId, &'a str, i32)>,
) -> LeaderHint {
    let leader = (leader.0 >= 0).then_some(NodeId(leader.0));
    let mut nodes = nodes.into_iter();
    let node = nodes.find(|(id, ..)| leader == Some(NodeId(id.0)));
    LeaderHint {
        leader,
        // An epoch that is not known is -1; nothing follows from epoch 0 either.
        epoch: Epoch(epoch.max(0)),
        endpoint: node.and_then(|(_, host, port)| endpoint(host, port)),
    }
}

fn endpoint(host: &str, port: i32) -> Option<(String, u16)> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    let sound = !host.is_empty() && host.len() <= HOST_BYTES_MAX;
    sound.then(|| (host.to_owned(), port))
}

/// Each message has its own type for the same three fields.
macro_rules! nodes {
    ($message:ident) => {
        $message
            .node_endpoints
            .iter()
            .map(|node| (node.node_id, node.host.as_str(), i32::from(node.port)))
    };
}

/// The one partition of an answer that names topics, which must be that of the metadata.
macro_rules! partition {
    ($message:ident) => {
        only($message.topics)
            .filter(|topic| topic.topic_name.as_str() == METADATA_TOPIC)
            .and_then(|topic| only(topic.partitions))
            .filter(|partition| partition.partition_index == 0)
            .ok_or_else(not_the_partition)
    };
}

fn not_the_partition() -> Garbage {
    Garbage("it is not about exactly the metadata partition".to_owned())
}

fn vote(message: m::VoteResponse) -> Result<PeerAnswer, Garbage> {
    let response = match top(message.error_code) {
        Some(error) => raft::VoteResponse {
            error,
            hint: LeaderHint::default(),
            granted: false,
        },
        None => {
            let partition = partition!(message)?;
            raft::VoteResponse {
                error: partition_error(partition.error_code),
                hint: hint(partition.leader_id, partition.leader_epoch, nodes!(message)),
                granted: partition.vote_granted,
            }
        }
    };
    Ok(PeerAnswer::Raft(Response::Vote(response)))
}

/// BeginQuorumEpoch and EndQuorumEpoch: two messages of the same fields.
macro_rules! simple {
    ($message:ident) => {
        match top($message.error_code) {
            Some(error) => raft::SimpleResponse {
                error,
                hint: LeaderHint::default(),
            },
            None => {
                let partition = partition!($message)?;
                raft::SimpleResponse {
                    error: partition_error(partition.error_code),
                    hint: hint(
                        partition.leader_id,
                        partition.leader_epoch,
                        nodes!($message),
                    ),
                }
            }
        }
    };
}

fn begin(message: m::BeginQuorumEpochResponse) -> Result<PeerAnswer, Garbage> {
    let response = simple!(message);
    Ok(PeerAnswer::Raft(Response::BeginQuorumEpoch(response)))
}

fn end(message: m::EndQuorumEpochResponse) -> Result<PeerAnswer, Garbage> {
    let response = simple!(message);
    Ok(PeerAnswer::Raft(Response::EndQuorumEpoch(response)))
}

/// An offset with an epoch where both may be absent (-1).
fn position(offset: i64, epoch: i32) -> Result<Option<OffsetAndEpoch>, Garbage> {
    match (offset >= 0, epoch >= 0) {
        (true, true) => Ok(Some(OffsetAndEpoch {
            offset: Offset(offset),
            epoch: Epoch(epoch),
        })),
        (false, false) => Ok(None),
        _ => garbage("an offset without an epoch, or the other way round"),
    }
}

/// Fetch (1). Without records it is an answer without data, as this node gives it.
fn fetch(message: m::FetchResponse) -> Result<PeerAnswer, Garbage> {
    if let Some(error) = top(message.error_code) {
        return Ok(PeerAnswer::Raft(Response::Fetch(raft::FetchResponse {
            error,
            hint: LeaderHint::default(),
            high_watermark: -1,
            log_start: Offset::ZERO,
            diverging: None,
            snapshot: None,
        })));
    }
    let nodes = message.node_endpoints;
    let partition = only(message.responses)
        .filter(|topic| topic.topic_id == METADATA_TOPIC_ID)
        .and_then(|topic| only(topic.partitions))
        .filter(|partition| partition.partition_index == 0)
        .ok_or_else(not_the_partition)?;
    let leader = partition.current_leader;
    let nodes = nodes
        .iter()
        .map(|node| (node.node_id, node.host.as_str(), node.port));
    let (diverging, snapshot) = (partition.diverging_epoch, partition.snapshot_id);
    let response = raft::FetchResponse {
        error: partition_error(partition.error_code),
        hint: hint(leader.leader_id, leader.leader_epoch, nodes),
        high_watermark: partition.high_watermark,
        log_start: Offset(partition.log_start_offset.max(0)),
        diverging: position(diverging.end_offset, diverging.epoch)?,
        snapshot: position(snapshot.end_offset, snapshot.epoch)?,
    };
    match partition.records {
        Some(records) if !records.is_empty() && response.error == RaftError::None => {
            Ok(PeerAnswer::Fetch { response, records })
        }
        _ => Ok(PeerAnswer::Raft(Response::Fetch(response))),
    }
}

/// FetchSnapshot (59). An error has no bytes.
fn fetch_snapshot(message: m::FetchSnapshotResponse) -> Result<PeerAnswer, Garbage> {
    if let Some(error) = top(message.error_code) {
        let response = raft::FetchSnapshotResponse {
            error,
            hint: LeaderHint::default(),
            id: OffsetAndEpoch::default(),
        };
        return Ok(PeerAnswer::Raft(Response::FetchSnapshot(response)));
    }
    let nodes = nodes!(message);
    let topic = message.topics.first().filter(|_| message.topics.len() == 1);
    let partition = topic
        .filter(|topic| topic.name.as_str() == METADATA_TOPIC && topic.partitions.len() == 1)
        .and_then(|topic| topic.partitions.first())
        .filter(|partition| partition.index == 0)
        .ok_or_else(not_the_partition)?;
    let leader = &partition.current_leader;
    // The field is left out where both are 0, and nobody leads epoch 0.
    let leader_id = if leader.leader_epoch > 0 {
        leader.leader_id
    } else {
        BrokerId(-1)
    };
    let id = &partition.snapshot_id;
    let response = raft::FetchSnapshotResponse {
        error: partition_error(partition.error_code),
        hint: hint(leader_id, leader.leader_epoch, nodes),
        id: OffsetAndEpoch {
            offset: Offset(id.end_offset),
            epoch: Epoch(id.epoch),
        },
    };
    Ok(match response.error {
        RaftError::None => PeerAnswer::Snapshot {
            response,
            size: partition.size,
            position: partition.position,
            bytes: partition.unaligned_records.clone(),
        },
        RaftError::Top(_) | RaftError::Partition(_) => {
            PeerAnswer::Raft(Response::FetchSnapshot(response))
        }
    })
}

fn changed(code: i16, message: Option<&str>) -> raft::ChangeVoterResponse {
    raft::ChangeVoterResponse {
        error: ErrorCode::of(code),
        message: message.map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect()),
    }
}

fn registered(message: m::ControllerRegistrationResponse) -> Result<PeerAnswer, Garbage> {
    let answer = changed(message.error_code, message.error_message.as_deref());
    Ok(PeerAnswer::Registered(answer.error, answer.message))
}

fn add_voter(message: m::AddRaftVoterResponse) -> Result<PeerAnswer, Garbage> {
    let response = changed(message.error_code, message.error_message.as_deref());
    Ok(PeerAnswer::Raft(Response::AddVoter(response)))
}

fn remove_voter(message: m::RemoveRaftVoterResponse) -> Result<PeerAnswer, Garbage> {
    let response = changed(message.error_code, message.error_message.as_deref());
    Ok(PeerAnswer::Raft(Response::RemoveVoter(response)))
}

fn update_voter(message: m::UpdateRaftVoterResponse) -> Result<PeerAnswer, Garbage> {
    let leader = &message.current_leader;
    let node = (leader.leader_id, leader.host.as_str(), leader.port);
    let response = raft::UpdateVoterResponse {
        error: ErrorCode::of(message.error_code),
        hint: hint(leader.leader_id, leader.leader_epoch, [node]),
    };
    Ok(PeerAnswer::Raft(Response::UpdateVoter(response)))
}
