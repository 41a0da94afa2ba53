//! An answer as text to compare. What differs by nature is a mark, or left out where a reason says
//! so.

use std::fmt::Debug;

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::Decodable;
use kraftd::records::rpc::{ApiVersionsResponse, BrokerHeartbeatResponse, Message};

fn read<M: Decodable>(body: &Bytes, version: i16) -> M {
    let mut rest = body.clone();
    let message = M::decode(&mut rest, version).unwrap();
    assert!(rest.is_empty(), "bytes left over");
    message
}

fn plain<M: Decodable + Debug>(body: &Bytes, version: i16) -> String {
    format!("{:?}", read::<M>(body, version))
}

/// Configurations of topics that not every release has, or not with one default. kraftd has those
/// of 4.4.0.
const OF_SOME_RELEASES: [&str; 8] = [
    "errors.deadletterqueue.group.enable",
    "max.decompressed.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
];

/// Half a sentence of a refusal that is newer than log directories can be cordoned (4.3).
const CORDONED: &str = " or some brokers have all their log directories cordoned";

/// Any offset or epoch behind the first records.
fn late(offset: i64) -> i64 {
    if offset > 1 { 1_000_000 } else { offset }
}

/// The text of an answer. `newest`: it is compared with one of the release that kraftd follows, and
/// what other releases do otherwise counts.
pub(crate) fn shown(api: ApiKey, version: i16, body: &Bytes, newest: bool) -> String {
    match api {
        ApiKey::AllocateProducerIds => plain::<m::AllocateProducerIdsResponse>(body, version),
        ApiKey::AlterClientQuotas => plain::<m::AlterClientQuotasResponse>(body, version),
        ApiKey::AlterPartition => plain::<m::AlterPartitionResponse>(body, version),
        ApiKey::AlterPartitionReassignments => {
            plain::<m::AlterPartitionReassignmentsResponse>(body, version)
        }
        ApiKey::AlterUserScramCredentials => {
            plain::<m::AlterUserScramCredentialsResponse>(body, version)
        }
        ApiKey::ApiVersions => versions(body, version),
        ApiKey::AssignReplicasToDirs => plain::<m::AssignReplicasToDirsResponse>(body, version),
        ApiKey::BrokerHeartbeat => {
            format!(
                "{:?}",
                BrokerHeartbeatResponse::decode(body, version).unwrap()
            )
        }
        ApiKey::BrokerRegistration => {
            let mut answer: m::BrokerRegistrationResponse = read(body, version);
            answer.broker_epoch = late(answer.broker_epoch);
            format!("{answer:?}")
        }
        ApiKey::CreatePartitions => plain::<m::CreatePartitionsResponse>(body, version),
        ApiKey::CreateTopics => created(body, version, newest),
        ApiKey::DeleteTopics => plain::<m::DeleteTopicsResponse>(body, version),
        ApiKey::ElectLeaders => elected(body, version),
        ApiKey::Envelope => {
            // What is inside is compared by itself.
            let answer: m::EnvelopeResponse = read(body, version);
            let inside = answer.response_data.is_some();
            format!("{inside} {}", answer.error_code)
        }
        ApiKey::Fetch => fetched(body, version),
        ApiKey::IncrementalAlterConfigs => {
            plain::<m::IncrementalAlterConfigsResponse>(body, version)
        }
        ApiKey::ListPartitionReassignments => {
            plain::<m::ListPartitionReassignmentsResponse>(body, version)
        }
        ApiKey::UpdateFeatures => plain::<m::UpdateFeaturesResponse>(body, version),
        other => panic!("{other:?} was not replayed before: it needs a line here"),
    }
}

/// Which APIs and which levels of features are known is a matter of the release; the features in
/// force are not.
fn versions(body: &Bytes, version: i16) -> String {
    let answer = ApiVersionsResponse::decode(body, version).unwrap();
    let mut features = answer.finalized_features;
    features.sort_by(|a, b| a.name.cmp(&b.name));
    format!("{} {features:?}", answer.error_code)
}

/// Java lists topics and configurations in the order of a hash.
fn created(body: &Bytes, version: i16, newest: bool) -> String {
    let mut answer: m::CreateTopicsResponse = read(body, version);
    answer.topics.sort_by(|a, b| a.name.cmp(&b.name));
    for topic in &mut answer.topics {
        if let Some(configs) = &mut topic.configs {
            configs.retain(|config| newest || !OF_SOME_RELEASES.contains(&&*config.name));
            configs.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    let text = format!("{answer:?}");
    if newest {
        text
    } else {
        text.replace(CORDONED, "")
    }
}

/// Java lists topics and partitions in the order of a hash.
fn elected(body: &Bytes, version: i16) -> String {
    let mut answer: m::ElectLeadersResponse = read(body, version);
    for topic in &mut answer.replica_election_results {
        topic.partition_result.sort_by_key(|it| it.partition_id);
    }
    let topics = &mut answer.replica_election_results;
    topics.sort_by(|a, b| a.topic.cmp(&b.topic));
    format!("{answer:?}")
}

/// The records are compared when the logs are.
fn fetched(body: &Bytes, version: i16) -> String {
    let mut answer: m::FetchResponse = read(body, version);
    for partition in answer
        .responses
        .iter_mut()
        .flat_map(|it| &mut it.partitions)
    {
        partition.high_watermark = late(partition.high_watermark);
        partition.records = None;
    }
    for node in &mut answer.node_endpoints {
        node.port = 0;
    }
    format!("{answer:?}")
}
