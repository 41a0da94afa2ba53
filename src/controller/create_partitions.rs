//! CreatePartitions: more partitions for topics that exist.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::authorize::{Operation, Resource};
use super::mutation_quota::{self, Meter};
use super::new_partitions::{self, NewPartition};
use super::{
    Context, Decision, RECORDS_PER_OPERATION_MAX, Reply, Soft, View, bounded, bounded_items,
};
use crate::records::VersionedRecord;
use crate::types::{ApiError, ErrorCode, PartitionId};

/// The rule of CreatePartitions v0 to v3.
///
/// # Errors
/// `POLICY_VIOLATION` when the request asks for too much in all.
pub(super) fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    version: i16,
    context: &Context,
    request: CreatePartitionsRequest,
) -> Result<Decision, ApiError> {
    bounded_items(request.topics.len())?;
    let mut by_name: IndexMap<TopicName, Option<CreatePartitionsTopic>> = IndexMap::new();
    for topic in request.topics {
        by_name
            .entry(topic.name.clone())
            .and_modify(|known| *known = None)
            .or_insert(Some(topic));
    }
    let allowed =
        |name: &TopicName| view.allows(context, Operation::Alter, Resource::Topic(name.as_str()));
    let denied: BTreeSet<TopicName> = by_name
        .iter()
        .filter(|(name, topic)| topic.is_some() && !allowed(name))
        .map(|(name, _)| name.clone())
        .collect();
    let kept = by_name.iter().filter(|(name, _)| !denied.contains(*name));
    check_total(view, kept.filter_map(|(_, topic)| topic.as_ref()))?;
    let strict = mutation_quota::CREATE_PARTITIONS_STRICT;
    let mut meter = Meter::new(view, soft, context, version, strict);
    let mut records = Vec::new();
    let mut results = Vec::with_capacity(by_name.len());
    for (name, topic) in by_name {
        let made = match &topic {
            // As in Java, there is no sentence here.
            Some(_) if denied.contains(&name) => Err(ErrorCode::TopicAuthorizationFailed.into()),
            Some(topic) => create(view, soft, &mut meter, topic),
            None => Err(ApiError::new(
                ErrorCode::InvalidRequest,
                "Duplicate topic name.",
            )),
        };
        let mut result = CreatePartitionsTopicResult::default()
            .with_name(name)
            .with_error_message(None);
        match made {
            Ok(made) => records.extend(made),
            Err(error) => {
                result.error_code = error.code.code();
                result.error_message = error.message.map(StrBytes::from_string);
            }
        }
        results.push(result);
        bounded(&records)?;
    }
    if request.validate_only {
        records.clear();
    }
    let reply = CreatePartitionsResponse::default()
        .with_throttle_time_ms(meter.throttle_time_ms())
        .with_results(results);
    Ok(Decision::atomic(records, Reply::CreatePartitions(reply)))
}

/// Refuses before anything is made: a count is any number that fits the wire.
fn check_total<'a>(
    view: &View<'_>,
    topics: impl Iterator<Item = &'a CreatePartitionsTopic>,
) -> Result<(), ApiError> {
    let additional = |topic: &CreatePartitionsTopic| {
        let known = view.image.topic_by_name(&topic.name)?.partition_count() as u64;
        u64::try_from(topic.count).ok()?.checked_sub(known)
    };
    if topics.filter_map(additional).sum::<u64>() > RECORDS_PER_OPERATION_MAX as u64 {
        return Err(ApiError::new(
            ErrorCode::PolicyViolation,
            "Excessively large number of additional partitions per request.",
        ));
    }
    Ok(())
}

fn create(
    view: &View<'_>,
    soft: &mut Soft,
    meter: &mut Meter,
    asked: &CreatePartitionsTopic,
) -> Result<Vec<VersionedRecord>, ApiError> {
    let topic = view
        .image
        .topic_by_name(&asked.name)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let known = topic.partition_count();
    let invalid = |message| ApiError::new(ErrorCode::InvalidPartitions, message);
    let known_count = i32::try_from(known).unwrap_or(i32::MAX);
    if asked.count == known_count {
        return Err(invalid(format!("Topic already has {known} partition(s).")));
    }
    let additional = usize::try_from(asked.count)
        .ok()
        .and_then(|count| count.checked_sub(known));
    let Some(additional) = additional else {
        return Err(invalid(format!(
            "The topic {} currently has {known} partition(s); {} would not be an increase.",
            asked.name.as_str(),
            asked.count
        )));
    };
    if let Some(assignments) = &asked.assignments
        && assignments.len() != additional
    {
        return Err(ApiError::new(
            ErrorCode::InvalidReplicaAssignment,
            format!(
                "Attempted to add {additional} additional partition(s), but only {} \
                 assignment(s) were specified.",
                assignments.len()
            ),
        ));
    }
    meter.charge(view, soft, additional)?;
    // A topic grows with the replication factor of its first partition.
    let Some(first) = topic.partition(PartitionId(0)) else {
        return Err(ApiError::new(
            ErrorCode::UnknownServerError,
            format!(
                "Invalid state: topic {} appears to have no partitions.",
                topic.name()
            ),
        ));
    };
    let factor = first.replicas().len();
    let partitions = match &asked.assignments {
        Some(_) => manual(view, asked, known, factor)?,
        None => automatic(view, soft, additional, factor)?,
    };
    let partitions = (known_count..).zip(partitions);
    let record = |(index, new): (i32, NewPartition)| new.record(view.image, topic.id(), index);
    Ok(partitions.map(record).collect())
}

fn manual(
    view: &View<'_>,
    asked: &CreatePartitionsTopic,
    known: usize,
    factor: usize,
) -> Result<Vec<NewPartition>, ApiError> {
    let invalid = |message| ApiError::new(ErrorCode::InvalidReplicaAssignment, message);
    let mut partitions = Vec::new();
    for (index, assignment) in (known..).zip(asked.assignments.iter().flatten()) {
        let replicas: Vec<i32> = assignment.broker_ids.iter().map(|id| id.0).collect();
        new_partitions::check_assignment(view.image, &replicas, Some(factor)).map_err(invalid)?;
        let partition = NewPartition::assigned(view.image, replicas)
            .ok_or_else(|| invalid(new_partitions::none_active(index)))?;
        partitions.push(partition);
    }
    Ok(partitions)
}

fn automatic(
    view: &View<'_>,
    soft: &mut Soft,
    additional: usize,
    factor: usize,
) -> Result<Vec<NewPartition>, ApiError> {
    let invalid = |message| ApiError::new(ErrorCode::InvalidReplicationFactor, message);
    let placed = new_partitions::place(view.image, soft, additional, factor);
    let all_fenced = || {
        invalid(format!(
            "Unable to replicate the partition {factor} time(s): All brokers are currently \
             fenced or in controlled shutdown."
        ))
    };
    placed
        .map_err(invalid)?
        .into_iter()
        .map(|replicas| NewPartition::assigned(view.image, replicas).ok_or_else(all_fenced))
        .collect()
}
