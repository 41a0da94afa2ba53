//! Answers that refuse a whole request: each API has its own place for the code and the sentence,
//! most of them once per item of the request.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::alter_client_quotas_request::EntryData;
use kafka_protocol::messages::{self as m, ApiKey};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::api_table::Api;
use super::shape::Checked;
use crate::controller;
use crate::records::rpc::{Message, UnregisterControllerResponse};
use crate::types::{ApiError, ErrorCode};

/// A request that can be refused as a whole.
pub(crate) trait Refusable {
    /// Its answer.
    type Answer: Encodable;
    /// The answer that says `error` of every part of the request.
    fn refusal(self, error: &ApiError) -> Self::Answer;
}

/// The encoded refusal.
pub(crate) fn refuse<R: Refusable>(
    request: R,
    version: i16,
    error: &ApiError,
) -> anyhow::Result<BytesMut> {
    let mut body = BytesMut::new();
    request.refusal(error).encode(&mut body, version)?;
    Ok(body)
}

/// What of a body with too many items is read, to be refused: the first item of each list. Java's
/// clients say of the others that the answer leaves them out, with two exceptions: there they would
/// wait for ever, but for an answer that makes no sense to them.
///
/// # Errors
/// The bytes so far are no body of this API.
pub(crate) fn first_items(api: &Api, body: &[u8], version: i16) -> anyhow::Result<Checked> {
    // The one rule for what is decoded holds for what was made here too.
    let checked = |body: &Bytes| {
        let checked = api.shape.checked(body, version, usize::MAX);
        checked.map_err(|misfit| anyhow::anyhow!("{misfit}"))
    };
    let first = api.shape.first_items(body, version);
    let first = checked(&first.map_err(|fault| anyhow::anyhow!("{fault}"))?.into())?;
    let mut body = BytesMut::new();
    if api.key == ApiKey::AlterClientQuotas as i16 {
        // An entity of no type: nobody can have asked for that.
        let mut request = m::AlterClientQuotasRequest::decode(&mut first.into_bytes(), version)?;
        request.entries.push(EntryData::default());
        request.encode(&mut body, version)?;
    } else if api.key == ApiKey::AlterPartitionReassignments as i16 {
        // None at all: with one they do not count.
        let request = m::AlterPartitionReassignmentsRequest::default();
        request.encode(&mut body, version)?;
    } else {
        return Ok(first);
    }
    checked(&body.freeze())
}

/// ApiVersions is decoded by our own code, and no version of it has a sentence.
pub(crate) fn refuse_api_versions(version: i16, error: &ApiError) -> anyhow::Result<BytesMut> {
    let response = m::ApiVersionsResponse::default().with_error_code(error.code.code());
    let mut body = BytesMut::new();
    // Version 5 changed the request only.
    response.encode(&mut body, version.min(4))?;
    Ok(body)
}

/// BrokerHeartbeat is decoded by our own code, and no version of it has a sentence.
pub(crate) fn refuse_broker_heartbeat(version: i16, error: &ApiError) -> anyhow::Result<BytesMut> {
    let response = m::BrokerHeartbeatResponse::default().with_error_code(error.code.code());
    let mut body = BytesMut::new();
    // Version 2 changed the request only.
    response.encode(&mut body, version.min(1))?;
    Ok(body)
}

/// AddRaftVoter is decoded by our own code.
pub(crate) fn refuse_add_raft_voter(error: &ApiError) -> anyhow::Result<BytesMut> {
    let response = m::AddRaftVoterResponse::default()
        .with_error_code(error.code.code())
        .with_error_message(sentence(error));
    let mut body = BytesMut::new();
    // Version 1 changed the request only.
    response.encode(&mut body, 0)?;
    Ok(body)
}

/// UnregisterController is decoded by our own code.
pub(crate) fn refuse_unregister_controller(
    version: i16,
    error: &ApiError,
) -> anyhow::Result<BytesMut> {
    let response = UnregisterControllerResponse {
        error_code: error.code.code(),
        error_message: error.message.clone(),
        ..UnregisterControllerResponse::default()
    };
    let mut body = Vec::new();
    response.encode(&mut body, version)?;
    Ok(BytesMut::from(&body[..]))
}

/// ElectLeaders has a code for the whole request since version 1 only.
pub(crate) fn refuse_elect_leaders(
    request: m::ElectLeadersRequest,
    version: i16,
    error: &ApiError,
) -> anyhow::Result<BytesMut> {
    let mut answer = request.refusal(error);
    if version < 1 {
        answer.error_code = 0;
    }
    let mut body = BytesMut::new();
    answer.encode(&mut body, version)?;
    Ok(body)
}

/// CreateDelegationToken names somebody in its answer, from version 3 on twice.
pub(crate) fn refuse_create_token(version: i16, error: &ApiError) -> anyhow::Result<BytesMut> {
    let mut body = BytesMut::new();
    controller::tokens::refused_create(version, error.code).encode(&mut body, version)?;
    Ok(body)
}

/// Copies of it share the text: there may be one for each item of a request.
fn sentence(error: &ApiError) -> Option<StrBytes> {
    error.message.clone().map(StrBytes::from_string)
}

/// Answers with a code at the top and nothing else.
macro_rules! at_the_top {
    ($($request:ident => $response:ident;)*) => {
        $(impl Refusable for m::$request {
            type Answer = m::$response;
            fn refusal(self, error: &ApiError) -> Self::Answer {
                m::$response::default().with_error_code(error.code.code())
            }
        })*
    };
}

at_the_top! {
    AllocateProducerIdsRequest => AllocateProducerIdsResponse;
    AlterPartitionRequest => AlterPartitionResponse;
    AssignReplicasToDirsRequest => AssignReplicasToDirsResponse;
    BeginQuorumEpochRequest => BeginQuorumEpochResponse;
    BrokerRegistrationRequest => BrokerRegistrationResponse;
    DescribeDelegationTokenRequest => DescribeDelegationTokenResponse;
    EndQuorumEpochRequest => EndQuorumEpochResponse;
    ExpireDelegationTokenRequest => ExpireDelegationTokenResponse;
    FetchRequest => FetchResponse;
    FetchSnapshotRequest => FetchSnapshotResponse;
    SaslHandshakeRequest => SaslHandshakeResponse;
    RenewDelegationTokenRequest => RenewDelegationTokenResponse;
    UpdateRaftVoterRequest => UpdateRaftVoterResponse;
    VoteRequest => VoteResponse;
}

impl Refusable for m::EnvelopeRequest {
    type Answer = m::EnvelopeResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        super::envelope::refuse(error.code)
    }
}

/// Answers with a code and a sentence at the top.
macro_rules! with_a_sentence {
    ($($request:ident => $response:ident;)*) => {
        $(impl Refusable for m::$request {
            type Answer = m::$response;
            fn refusal(self, error: &ApiError) -> Self::Answer {
                m::$response::default()
                    .with_error_code(error.code.code())
                    .with_error_message(sentence(error))
            }
        })*
    };
}

with_a_sentence! {
    ControllerRegistrationRequest => ControllerRegistrationResponse;
    DescribeAclsRequest => DescribeAclsResponse;
    DescribeClusterRequest => DescribeClusterResponse;
    DescribeQuorumRequest => DescribeQuorumResponse;
    RemoveRaftVoterRequest => RemoveRaftVoterResponse;
    SaslAuthenticateRequest => SaslAuthenticateResponse;
    UnregisterBrokerRequest => UnregisterBrokerResponse;
    UpdateFeaturesRequest => UpdateFeaturesResponse;
}

impl Refusable for m::CreateTopicsRequest {
    type Answer = m::CreateTopicsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let topics = self.topics.into_iter().map(|topic| {
            m::create_topics_response::CreatableTopicResult::default()
                .with_name(topic.name)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::CreateTopicsResponse::default().with_topics(topics.collect())
    }
}

impl Refusable for m::DeleteTopicsRequest {
    type Answer = m::DeleteTopicsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let result = |name| {
            // As in Java, there is no sentence here.
            m::delete_topics_response::DeletableTopicResult::default()
                .with_name(name)
                .with_error_code(error.code.code())
                .with_error_message(None)
        };
        let by_name = self.topic_names.into_iter().map(|name| result(Some(name)));
        let by_either = self
            .topics
            .into_iter()
            .map(|topic| result(topic.name).with_topic_id(topic.topic_id));
        m::DeleteTopicsResponse::default().with_responses(by_name.chain(by_either).collect())
    }
}

impl Refusable for m::CreateAclsRequest {
    type Answer = m::CreateAclsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let results = self.creations.into_iter().map(|_| {
            m::create_acls_response::AclCreationResult::default()
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::CreateAclsResponse::default().with_results(results.collect())
    }
}

impl Refusable for m::DeleteAclsRequest {
    type Answer = m::DeleteAclsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let results = self.filters.into_iter().map(|_| {
            m::delete_acls_response::DeleteAclsFilterResult::default()
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::DeleteAclsResponse::default().with_filter_results(results.collect())
    }
}

impl Refusable for m::CreatePartitionsRequest {
    type Answer = m::CreatePartitionsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let results = self.topics.into_iter().map(|topic| {
            m::create_partitions_response::CreatePartitionsTopicResult::default()
                .with_name(topic.name)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::CreatePartitionsResponse::default().with_results(results.collect())
    }
}

impl Refusable for m::DescribeConfigsRequest {
    type Answer = m::DescribeConfigsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let results = self.resources.into_iter().map(|resource| {
            m::describe_configs_response::DescribeConfigsResult::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::DescribeConfigsResponse::default().with_results(results.collect())
    }
}

impl Refusable for m::AlterConfigsRequest {
    type Answer = m::AlterConfigsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let responses = self.resources.into_iter().map(|resource| {
            m::alter_configs_response::AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::AlterConfigsResponse::default().with_responses(responses.collect())
    }
}

impl Refusable for m::IncrementalAlterConfigsRequest {
    type Answer = m::IncrementalAlterConfigsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let responses = self.resources.into_iter().map(|resource| {
            m::incremental_alter_configs_response::AlterConfigsResourceResponse::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
    }
}

impl Refusable for m::ElectLeadersRequest {
    type Answer = m::ElectLeadersResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        use m::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
        let message = sentence(error);
        let partition = |index| {
            PartitionResult::default()
                .with_partition_id(index)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        };
        let results = self.topic_partitions.into_iter().flatten().map(|topic| {
            ReplicaElectionResult::default()
                .with_topic(topic.topic)
                .with_partition_result(topic.partitions.into_iter().map(partition).collect())
        });
        m::ElectLeadersResponse::default()
            .with_error_code(error.code.code())
            .with_replica_election_results(results.collect())
    }
}

impl Refusable for m::AlterPartitionReassignmentsRequest {
    type Answer = m::AlterPartitionReassignmentsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        use m::alter_partition_reassignments_request::ReassignablePartition;
        use m::alter_partition_reassignments_response as reply;
        let message = sentence(error);
        let partition = |asked: ReassignablePartition| {
            reply::ReassignablePartitionResponse::default()
                .with_partition_index(asked.partition_index)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        };
        let responses = self.topics.into_iter().map(|topic| {
            reply::ReassignableTopicResponse::default()
                .with_name(topic.name)
                .with_partitions(topic.partitions.into_iter().map(partition).collect())
        });
        m::AlterPartitionReassignmentsResponse::default()
            .with_error_code(error.code.code())
            .with_error_message(message.clone())
            .with_responses(responses.collect())
    }
}

impl Refusable for m::ListPartitionReassignmentsRequest {
    type Answer = m::ListPartitionReassignmentsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        use m::list_partition_reassignments_response as reply;
        let message = sentence(error);
        let partition =
            |index| reply::OngoingPartitionReassignment::default().with_partition_index(index);
        let topics = self.topics.into_iter().flatten().map(|topic| {
            reply::OngoingTopicReassignment::default()
                .with_name(topic.name)
                .with_partitions(topic.partition_indexes.into_iter().map(partition).collect())
        });
        m::ListPartitionReassignmentsResponse::default()
            .with_error_code(error.code.code())
            .with_error_message(message.clone())
            .with_topics(topics.collect())
    }
}

impl Refusable for m::AlterClientQuotasRequest {
    type Answer = m::AlterClientQuotasResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        use m::alter_client_quotas_response as reply;
        // As in Java, which has only the code's own sentence here.
        let message = match error.code {
            ErrorCode::ClusterAuthorizationFailed => {
                Some(StrBytes::from_static_str("Cluster authorization failed."))
            }
            _ => sentence(error),
        };
        let entries = self.entries.into_iter().map(|entry| {
            let parts = entry.entity.into_iter().map(|part| {
                reply::EntityData::default()
                    .with_entity_type(part.entity_type)
                    .with_entity_name(part.entity_name)
            });
            reply::EntryData::default()
                .with_entity(parts.collect())
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::AlterClientQuotasResponse::default().with_entries(entries.collect())
    }
}

impl Refusable for m::AlterUserScramCredentialsRequest {
    type Answer = m::AlterUserScramCredentialsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        let message = sentence(error);
        let deleted = self.deletions.into_iter().map(|deletion| deletion.name);
        let upserted = self.upsertions.into_iter().map(|upsertion| upsertion.name);
        // As in Java: each user once, in order.
        let users: std::collections::BTreeSet<StrBytes> = deleted.chain(upserted).collect();
        let results = users.into_iter().map(|user| {
            m::alter_user_scram_credentials_response::AlterUserScramCredentialsResult::default()
                .with_user(user)
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::AlterUserScramCredentialsResponse::default().with_results(results.collect())
    }
}

impl Refusable for m::DescribeUserScramCredentialsRequest {
    type Answer = m::DescribeUserScramCredentialsResponse;
    fn refusal(self, error: &ApiError) -> Self::Answer {
        use m::describe_user_scram_credentials_response::DescribeUserScramCredentialsResult;
        let message = sentence(error);
        let results = self.users.into_iter().flatten().map(|_| {
            // As in Java, nobody is named here.
            DescribeUserScramCredentialsResult::default()
                .with_error_code(error.code.code())
                .with_error_message(message.clone())
        });
        m::DescribeUserScramCredentialsResponse::default()
            .with_error_code(error.code.code())
            .with_error_message(message.clone())
            .with_results(results.collect())
    }
}
