//! CreateTopics: names, partitions by count or by hand, configurations; what can be created is
//! created although other topics of the request fail.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::authorize::{self, Audit, Resource};
use super::configs::incremental::{self, Operation};
use super::mutation_quota::{self, Meter};
use super::new_partitions::{self, NewPartition};
use super::{
    Context, Decision, RECORDS_PER_OPERATION_MAX, Reply, Soft, View, bounded, topic_names,
};
use crate::image::ConfigResource;
use crate::records::{Record, TopicRecord, VersionedRecord};
use crate::types::ids::METADATA_TOPIC;
use crate::types::{ApiError, ErrorCode};

/// The rule of CreateTopics v2 to v7.
///
/// # Errors
/// `POLICY_VIOLATION` when the request asks for too many topics, partitions or records in all.
pub(super) fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    version: i16,
    context: &Context,
    request: CreateTopicsRequest,
) -> Result<Decision, ApiError> {
    // Each that can be created is a record; each other one would cost its look all the same.
    if request.topics.len() > RECORDS_PER_OPERATION_MAX {
        return Err(too_many());
    }
    let strict = mutation_quota::CREATE_TOPICS_STRICT;
    let mut meter = Meter::new(view, soft, context, version, strict);
    let (mut topics, mut refused) = split(request.topics);
    keep_authorized(view, context, &mut topics, &mut refused);
    check_partition_total(view, &topics)?;
    let mut records = Vec::new();
    let mut results = Vec::with_capacity(topics.len() + refused.len());
    for topic in topics {
        let made = create(view, soft, context, &mut meter, &topic);
        results.push(match made {
            Ok(created) => {
                records.extend(created.records);
                created.result
            }
            Err(error) => failed(topic.name, error),
        });
        bounded(&records)?;
    }
    let refused = refused.into_iter();
    results.extend(refused.map(|(name, code, message)| failed(name, ApiError::new(code, message))));
    if request.validate_only {
        records.clear();
    }
    let reply = CreateTopicsResponse::default()
        .with_throttle_time_ms(meter.throttle_time_ms())
        .with_topics(results);
    Ok(Decision::atomic(records, Reply::CreateTopics(reply)))
}

/// A topic that is not even looked at: its name and why.
type Refused = (TopicName, ErrorCode, &'static str);

/// Takes out what the API layer refuses: names that occur twice, and the metadata topic.
fn split(topics: Vec<CreatableTopic>) -> (Vec<CreatableTopic>, Vec<Refused>) {
    const INVALID: ErrorCode = ErrorCode::InvalidRequest;
    let mut by_name: IndexMap<TopicName, Option<CreatableTopic>> = IndexMap::new();
    for topic in topics {
        by_name
            .entry(topic.name.clone())
            .and_modify(|known| *known = None)
            .or_insert(Some(topic));
    }
    let mut kept = Vec::with_capacity(by_name.len());
    let mut refused = Vec::new();
    for (name, topic) in by_name {
        match topic {
            None => refused.push((name, INVALID, "Duplicate topic name.")),
            Some(_) if name.as_str() == METADATA_TOPIC => {
                refused.push((
                    name,
                    INVALID,
                    "Creation of internal topic __cluster_metadata is prohibited.",
                ));
            }
            Some(topic) => kept.push(topic),
        }
    }
    (kept, refused)
}

/// Takes out what whoever asks may not create.
fn keep_authorized(
    view: &View<'_>,
    context: &Context,
    topics: &mut Vec<CreatableTopic>,
    refused: &mut Vec<Refused>,
) {
    let anywhere = (authorize::Operation::Create, Resource::Cluster);
    if view.allows_with(context, anywhere.0, anywhere.1, Audit::Allowed) {
        return;
    }
    topics.retain(|topic| {
        let named = Resource::Topic(topic.name.as_str());
        let allowed = view.allows(context, authorize::Operation::Create, named);
        if !allowed {
            let code = ErrorCode::TopicAuthorizationFailed;
            refused.push((topic.name.clone(), code, "Authorization failed."));
        }
        allowed
    });
}

/// Whether nothing of the request is left for the rule: what is refused before it is not late.
pub fn creates_nothing(request: &CreateTopicsRequest) -> bool {
    // Only a deadline that has passed already meets such a request in time.
    request.timeout_ms <= 0
        && request.topics.len() <= RECORDS_PER_OPERATION_MAX
        && split(request.topics.clone()).0.is_empty()
}

/// Refuses the request before anything is made of it: what it asks for is counted in 64 bits, so
/// that no number in it can wrap.
fn check_partition_total(view: &View<'_>, topics: &[CreatableTopic]) -> Result<(), ApiError> {
    let count = |topic: &CreatableTopic| {
        if !topic.assignments.is_empty() {
            topic.assignments.len() as u64
        } else if topic.num_partitions == -1 {
            u64::try_from(view.settings.num_partitions).unwrap_or(0)
        } else {
            u64::try_from(topic.num_partitions).unwrap_or(0)
        }
    };
    if topics.iter().map(count).sum::<u64>() > RECORDS_PER_OPERATION_MAX as u64 {
        return Err(too_many());
    }
    Ok(())
}

fn too_many() -> ApiError {
    ApiError::new(
        ErrorCode::PolicyViolation,
        "Excessively large number of partitions per request.",
    )
}

struct Created {
    records: Vec<VersionedRecord>,
    result: CreatableTopicResult,
}

fn create(
    view: &View<'_>,
    soft: &mut Soft,
    context: &Context,
    meter: &mut Meter,
    topic: &CreatableTopic,
) -> Result<Created, ApiError> {
    let name = topic.name.as_str();
    check_name(view, name)?;
    let configs = config_values(topic)?;
    let config_records = config_records(view, context, name, &configs)?;
    let partitions = if topic.assignments.is_empty() {
        automatic(view, soft, topic)?
    } else {
        manual(view, topic)?
    };
    let factor = partitions.first().map_or(0, NewPartition::replica_count);
    let policies = &view.settings.policies;
    policies.check_new_topic(name, partitions.len(), factor)?;
    meter.charge(view, soft, partitions.len())?;
    let topic_id = soft.rng.uuid();
    let result = CreatableTopicResult::default()
        .with_name(topic.name.clone())
        .with_topic_id(topic_id)
        .with_error_message(None);
    let named = Resource::Topic(name);
    let describe = authorize::Operation::DescribeConfigs;
    let result = if view.allows_with(context, describe, named, Audit::Allowed) {
        shown(result, &partitions).with_configs(Some(soft.described.of(view, &configs)))
    } else {
        result.with_topic_config_error_code(ErrorCode::TopicAuthorizationFailed.code())
    };
    let record = TopicRecord {
        name: name.to_owned(),
        topic_id,
        ..TopicRecord::default()
    };
    let mut records = vec![Record::Topic(record).at(0)];
    records.extend(config_records);
    let partitions = (0..).zip(partitions);
    records.extend(partitions.map(|(index, new)| new.record(view.image, topic_id, index)));
    Ok(Created { records, result })
}

/// The result with what those may see who may describe the topic's configuration.
fn shown(result: CreatableTopicResult, partitions: &[NewPartition]) -> CreatableTopicResult {
    let first = partitions.first();
    let factor = first.and_then(|first| i16::try_from(first.replica_count()).ok());
    result
        .with_num_partitions(i32::try_from(partitions.len()).unwrap_or(i32::MAX))
        .with_replication_factor(factor.unwrap_or(i16::MAX))
}

fn check_name(view: &View<'_>, name: &str) -> Result<(), ApiError> {
    if view.image.topic_by_name(name).is_some() {
        return Err(ApiError::new(
            ErrorCode::TopicAlreadyExists,
            format!("Topic '{name}' already exists."),
        ));
    }
    let invalid = |message| ApiError::new(ErrorCode::InvalidTopicException, message);
    if let Some(other) = view.image.colliding_topics(name).first() {
        return Err(invalid(format!(
            "Topic '{name}' collides with existing topic: {other}"
        )));
    }
    topic_names::check(name).map_err(invalid)
}

/// The last value of each key, as Java keeps it.
fn config_values(topic: &CreatableTopic) -> Result<BTreeMap<&str, &str>, ApiError> {
    let mut values = BTreeMap::new();
    let mut nulls = Vec::new();
    for config in &topic.configs {
        match &config.value {
            Some(value) => {
                values.insert(config.name.as_str(), value.as_str());
            }
            None => nulls.push(config.name.as_str()),
        }
    }
    if nulls.is_empty() {
        return Ok(values);
    }
    Err(ApiError::new(
        ErrorCode::InvalidConfig,
        format!(
            "Null value not supported for topic configs: {}",
            nulls.join(",")
        ),
    ))
}

fn config_records(
    view: &View<'_>,
    context: &Context,
    name: &str,
    configs: &BTreeMap<&str, &str>,
) -> Result<Vec<VersionedRecord>, ApiError> {
    if configs.is_empty() {
        return Ok(Vec::new());
    }
    let resource = ConfigResource::topic(name);
    let operations = configs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Operation::Set(Some((*value).to_owned()))))
        .collect();
    let subject = incremental::Subject::New(&resource);
    incremental::alter_and_clear_elr(view, context, subject, &operations)
}

/// Partitions by count. The order of the checks decides which error shows.
fn automatic(
    view: &View<'_>,
    soft: &mut Soft,
    topic: &CreatableTopic,
) -> Result<Vec<NewPartition>, ApiError> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(ApiError::new(
            ErrorCode::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    if topic.num_partitions < -1 || topic.num_partitions == 0 {
        return Err(ApiError::new(
            ErrorCode::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    let count = match topic.num_partitions {
        -1 => view.settings.num_partitions,
        count => count,
    };
    let factor = match topic.replication_factor {
        -1 => view.settings.default_replication_factor,
        factor => factor,
    };
    let failed = |reason: String| {
        ApiError::new(
            ErrorCode::InvalidReplicationFactor,
            format!("Unable to replicate the partition {factor} time(s): {reason}"),
        )
    };
    let replicas = new_partitions::place(
        view.image,
        soft,
        usize::try_from(count).unwrap_or(0),
        usize::try_from(factor).unwrap_or(0),
    )
    .map_err(failed)?;
    let all_fenced =
        || failed("All brokers are currently fenced or in controlled shutdown.".to_owned());
    replicas
        .into_iter()
        .map(|replicas| NewPartition::assigned(view.image, replicas).ok_or_else(all_fenced))
        .collect()
}

/// Partitions by hand, in order of their indexes.
fn manual(view: &View<'_>, topic: &CreatableTopic) -> Result<Vec<NewPartition>, ApiError> {
    let invalid = |what| {
        ApiError::new(
            ErrorCode::InvalidRequest,
            format!("A manual partition assignment was specified, but {what} was not set to -1."),
        )
    };
    if topic.replication_factor != -1 {
        return Err(invalid("replication factor"));
    }
    if topic.num_partitions != -1 {
        return Err(invalid("numPartitions"));
    }
    let partitions = manual_partitions(view, &topic.assignments)
        .map_err(|message| ApiError::new(ErrorCode::InvalidReplicaAssignment, message))?;
    Ok(partitions.into_values().collect())
}

fn manual_partitions(
    view: &View<'_>,
    assignments: &[CreatableReplicaAssignment],
) -> Result<BTreeMap<i32, NewPartition>, String> {
    let mut partitions = BTreeMap::new();
    let mut expected = None;
    for assignment in assignments {
        let index = assignment.partition_index;
        if partitions.contains_key(&index) {
            return Err(format!(
                "Found multiple manual partition assignments for partition {index}"
            ));
        }
        let replicas: Vec<i32> = assignment.broker_ids.iter().map(|id| id.0).collect();
        new_partitions::check_assignment(view.image, &replicas, expected)?;
        expected = Some(replicas.len());
        let partition = NewPartition::assigned(view.image, replicas)
            .ok_or_else(|| new_partitions::none_active(index))?;
        partitions.insert(index, partition);
    }
    let indexes: BTreeSet<i32> = partitions.keys().copied().collect();
    if !(0..)
        .zip(indexes)
        .all(|(expected, index)| expected == index)
    {
        return Err("partitions should be a consecutive 0-based integer sequence".into());
    }
    Ok(partitions)
}

fn failed(name: TopicName, error: ApiError) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_error_code(error.code.code())
        .with_error_message(error.message.map(StrBytes::from_string))
}
