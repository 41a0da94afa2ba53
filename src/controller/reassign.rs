//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860): replicas move to
//! other brokers.
//!
//! While they do, the partition has the replicas of both: the wanted ones first, behind them those
//! to be removed. Any later change of the partition that finds the wanted ones in sync completes
//! the move: see `partition_change`.

use std::collections::BTreeSet;

use kafka_protocol::messages::alter_partition_reassignments_request::ReassignablePartition;
use kafka_protocol::messages::alter_partition_reassignments_response as reply;
use kafka_protocol::messages::list_partition_reassignments_response as listed;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, BrokerId,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::leaders::{ClusterRules, TopicRules};
use super::levels::metadata_version;
use super::new_partitions::check_assignment;
use super::partition_change::{Change, Election, Rules};
use super::{Decision, RECORDS_PER_OPERATION_MAX, Reply, View, bounded_looks, topic_names};
use crate::image::{Partition, TopicRef};
use crate::records::{Record, VersionedRecord};
use crate::types::{ApiError, ErrorCode, PartitionId};

/// The rule of AlterPartitionReassignments v0 and v1. Each partition is refused by itself; what is
/// written is written together. Version 0 allows other replication factors.
///
/// # Errors
/// `POLICY_VIOLATION` when more partitions are named than one step looks at.
pub(super) fn decide(
    view: &View<'_>,
    request: AlterPartitionReassignmentsRequest,
) -> Result<Decision, ApiError> {
    let answer = AlterPartitionReassignmentsResponse::default();
    if request.topics.is_empty() {
        let reply = Reply::AlterPartitionReassignments(answer);
        return Ok(Decision::only(reply));
    }
    let named = request.topics.iter();
    bounded_looks(named.map(|topic| 1 + topic.partitions.len()).sum())?;
    let any_factor = request.allow_replication_factor_change;
    let mut records = Vec::new();
    let mut changed = BTreeSet::new();
    let cluster = ClusterRules::of(view.image, view.settings);
    let mut responses = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = view.image.topic_by_name(&asked.name);
        let known = topic.map(|it| (it, cluster.of_topic(view.image, view.settings, it)));
        let partitions = asked.partitions.iter().map(|wanted| {
            let altered = match known {
                // As in Java: what is too much is refused, the rest is written. What comes behind
                // it is not worked out any more, whether it needed a record or not.
                Some(_) if records.len() >= RECORDS_PER_OPERATION_MAX => {
                    Err(ErrorCode::UnknownServerError.into())
                }
                Some((topic, topic_rules)) => alter(view, topic, topic_rules, wanted, any_factor),
                None => Err(ApiError::new(
                    ErrorCode::UnknownTopicOrPartition,
                    format!(
                        "Unable to find a topic named {}.",
                        topic_names::shown(&asked.name)
                    ),
                )),
            };
            let altered = altered.map(|record| {
                let place = known.map(|(topic, _)| (topic.id(), wanted.partition_index));
                records.extend(match (record, place) {
                    (Some(record), Some((topic, index))) if !changed.insert((topic, index)) => {
                        Some(with_directories(view, record))
                    }
                    (record, _) => record,
                });
            });
            let result = reply::ReassignablePartitionResponse::default()
                .with_partition_index(wanted.partition_index)
                .with_error_message(None);
            match altered {
                Ok(()) => result,
                Err(error) => result
                    .with_error_code(error.code.code())
                    .with_error_message(error.message.map(StrBytes::from_string)),
            }
        });
        let partitions = partitions.collect();
        responses.push(
            reply::ReassignableTopicResponse::default()
                .with_name(asked.name)
                .with_partitions(partitions),
        );
    }
    let answer = answer
        .with_error_message(None)
        .with_allow_replication_factor_change(any_factor)
        .with_responses(responses);
    let reply = Reply::AlterPartitionReassignments(answer);
    Ok(Decision::atomic(records, reply))
}

fn alter(
    view: &View<'_>,
    topic: TopicRef<'_>,
    topic_rules: TopicRules,
    wanted: &ReassignablePartition,
    any_factor: bool,
) -> Result<Option<VersionedRecord>, ApiError> {
    let id = PartitionId(wanted.partition_index);
    let Some(old) = topic.partition(id) else {
        return Err(ApiError::new(
            ErrorCode::UnknownTopicOrPartition,
            format!("Unable to find partition {}:{id}.", topic.name()),
        ));
    };
    let rules = Rules::of(view.image);
    let acceptable = |broker: i32| rules.may_lead(old, broker);
    let change = Change::of(topic.id(), id, old, rules, &acceptable, topic_rules.min_isr);
    let change = match &wanted.replicas {
        None => cancel(
            change.election(topic_rules.election),
            topic,
            id,
            old,
            topic_rules,
        )?,
        Some(replicas) => {
            let replicas: Vec<i32> = replicas.iter().map(|id| id.0).collect();
            check_assignment(view.image, &replicas, None)
                .map_err(|message| ApiError::new(ErrorCode::InvalidReplicaAssignment, message))?;
            if !any_factor {
                check_factor(old, replicas.len())?;
            }
            retarget(change, old, replicas)
        }
    };
    Ok(change.record())
}

/// A later change of a partition that the request names again. All of them are made of what was
/// before the request: where an earlier one changes the number of replicas, one that leaves the
/// directories as they were has to say so, or it makes no sense behind the other.
fn with_directories(view: &View<'_>, mut again: VersionedRecord) -> VersionedRecord {
    if let Record::PartitionChange(change) = &mut again.record
        && change.replicas.is_some()
        && change.directories.is_none()
        && metadata_version(view.image).directory_assignment()
    {
        let topic = view.image.topic_by_id(change.topic_id);
        let old = topic.and_then(|topic| topic.partition(PartitionId(change.partition_id)));
        change.directories = old.map(|old| old.directories().to_vec());
    }
    again
}

/// Back to the replicas before the move.
fn cancel<'a>(
    change: Change<'a>,
    topic: TopicRef<'_>,
    id: PartitionId,
    old: Partition<'_>,
    topic_rules: TopicRules,
) -> Result<Change<'a>, ApiError> {
    if !old.reassigning() {
        return Err(ErrorCode::NoReassignmentInProgress.into());
    }
    let refuse = |message: String| Err(ApiError::new(ErrorCode::InvalidReplicaAssignment, message));
    let without_added = |list: &[i32]| -> Vec<i32> {
        let kept = list.iter().filter(|id| !old.adding().contains(id));
        kept.copied().collect()
    };
    let replicas = without_added(old.replicas());
    let mut isr = without_added(old.isr());
    if isr.is_empty() {
        // Everyone who is in sync would go.
        let Some(&first) = replicas.first() else {
            return refuse(
                "Invalid replica assignment: addingReplicas contains all replicas.".to_owned(),
            );
        };
        if topic_rules.election != Election::Unclean {
            return refuse(format!(
                "Unable to revert partition assignment for {}:{id} because it would require an \
                 unclean leader election.",
                topic.name()
            ));
        }
        isr.push(first);
    }
    Ok(change
        .isr(isr)
        .replicas(replicas)
        .removing(Vec::new())
        .adding(Vec::new()))
}

/// On to the replicas in `target`.
fn retarget<'a>(mut change: Change<'a>, old: Partition<'_>, target: Vec<i32>) -> Change<'a> {
    let removing: BTreeSet<i32> = old.replicas().iter().copied().collect();
    let adding: BTreeSet<i32> = target.iter().copied().collect();
    let (removing, adding): (Vec<i32>, Vec<i32>) = (
        removing.difference(&adding).copied().collect(),
        adding.difference(&removing).copied().collect(),
    );
    let mut replicas = target;
    replicas.extend(&removing);
    if replicas != old.replicas() {
        change = change.replicas(replicas);
    }
    // What an earlier move adds or removes stays so when this one names nothing of the kind.
    if !removing.is_empty() {
        change = change.removing(removing);
    }
    if !adding.is_empty() {
        change = change.adding(adding);
    }
    change
}

/// Refuses another replication factor than the partition has, or will have after the move that is
/// under way (KIP-860).
fn check_factor(old: Partition<'_>, wanted: usize) -> Result<(), ApiError> {
    let current = if old.reassigning() {
        let members = old.replicas().iter().chain(old.adding());
        let members: BTreeSet<i32> = members
            .filter(|id| !old.removing().contains(id))
            .copied()
            .collect();
        members.len()
    } else {
        old.replicas().len()
    };
    if current == wanted {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::InvalidReplicationFactor,
        format!("The replication factor is changed from {current} to {wanted}"),
    ))
}

/// The rule of ListPartitionReassignments v0: the moves under way as far as they are committed, by
/// topic name. What is not moving, or not there, is left out.
///
/// # Errors
/// `POLICY_VIOLATION` when more partitions are named than one step looks at.
pub(super) fn list(
    view: &View<'_>,
    request: &ListPartitionReassignmentsRequest,
) -> Result<Decision, ApiError> {
    let named = request.topics.iter().flatten();
    bounded_looks(named.map(|topic| 1 + topic.partition_indexes.len()).sum())?;
    let image = view.committed;
    let topics = match &request.topics {
        None => {
            let mut all: Vec<_> = image.partitions_reassigning().collect();
            all.sort_unstable_by_key(|(topic, id, _)| (topic.name(), *id));
            all.chunk_by(|(a, ..), (b, ..)| a.id() == b.id())
                .map(|moves| {
                    let partitions = moves.iter().map(|(_, id, it)| ongoing(*id, *it));
                    ongoing_of(moves[0].0, partitions.collect())
                })
                .collect()
        }
        Some(asked) => {
            let known = asked.iter().filter_map(|asked| {
                let topic = image.topic_by_name(&asked.name)?;
                let partitions: Vec<_> = asked
                    .partition_indexes
                    .iter()
                    .filter_map(|&index| {
                        let id = PartitionId(index);
                        let partition = topic.partition(id)?;
                        partition.reassigning().then(|| ongoing(id, partition))
                    })
                    .collect();
                (!partitions.is_empty()).then(|| ongoing_of(topic, partitions))
            });
            known.collect()
        }
    };
    let answer = ListPartitionReassignmentsResponse::default()
        .with_error_message(None)
        .with_topics(topics);
    let reply = Reply::ListPartitionReassignments(answer);
    Ok(Decision::only(reply))
}

fn ongoing_of(
    topic: TopicRef<'_>,
    partitions: Vec<listed::OngoingPartitionReassignment>,
) -> listed::OngoingTopicReassignment {
    let name = TopicName(StrBytes::from_string(topic.name().to_owned()));
    listed::OngoingTopicReassignment::default()
        .with_name(name)
        .with_partitions(partitions)
}

fn ongoing(id: PartitionId, it: Partition<'_>) -> listed::OngoingPartitionReassignment {
    let ids = |list: &[i32]| list.iter().copied().map(BrokerId).collect();
    listed::OngoingPartitionReassignment::default()
        .with_partition_index(id.0)
        .with_replicas(ids(it.replicas()))
        .with_adding_replicas(ids(it.adding()))
        .with_removing_replicas(ids(it.removing()))
}

#[cfg(test)]
mod tests;
