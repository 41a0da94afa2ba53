//! AssignReplicasToDirs (KIP-858): a broker with several directories tells where a replica lies.

use std::collections::BTreeSet;

use kafka_protocol::messages::assign_replicas_to_dirs_response as reply;
use kafka_protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

use super::leaders::{self, Cause};
use super::partition_change::{Change, Rules};
use super::register_broker::check_epoch;
use super::{Decision, RECORDS_PER_OPERATION_MAX, Reply, View};
use crate::image::TopicRef;
use crate::records::VersionedRecord;
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId, PartitionId, Uuid};

/// Notes each assignment; replicas in an offline directory leave the in-sync set.
///
/// # Errors
/// UNSUPPORTED_VERSION below 3.7-IV2; STALE_BROKER_EPOCH; POLICY_VIOLATION above the bound of
/// assignments in one request.
pub(super) fn decide(
    view: &View<'_>,
    request: AssignReplicasToDirsRequest,
) -> Result<Decision, ApiError> {
    let rules = Rules::of(view.image);
    if !rules.metadata_version.directory_assignment() {
        return Err(ApiError::new(
            ErrorCode::UnsupportedVersion,
            "Directory assignment is not supported yet.",
        ));
    }
    let id = NodeId(request.broker_id.0);
    let broker = check_epoch(view, id, BrokerEpoch(request.broker_epoch))?;
    let topics = request
        .directories
        .iter()
        .flat_map(|directory| &directory.topics);
    if topics.map(|topic| topic.partitions.len()).sum::<usize>() > RECORDS_PER_OPERATION_MAX {
        return Err(ApiError::new(
            ErrorCode::PolicyViolation,
            "Unable to perform excessively large batch operation.",
        ));
    }
    let mut records = Vec::new();
    let mut offline = BTreeSet::new();
    let mut directories = Vec::with_capacity(request.directories.len());
    for directory in request.directories {
        let online = broker.has_online_dir(directory.id);
        let mut topics = Vec::with_capacity(directory.topics.len());
        for asked in directory.topics {
            let topic = view.image.topic_by_id(asked.topic_id);
            let partitions = asked.partitions.into_iter().map(|it| it.partition_index);
            let answers = partitions.map(|index| {
                let code = assign(view, topic, index, (id, directory.id), &mut records);
                if code.is_none() && !online {
                    offline.insert((asked.topic_id, PartitionId(index)));
                }
                reply::PartitionData::default()
                    .with_partition_index(index)
                    .with_error_code(code.map_or(0, ErrorCode::code))
            });
            let answers = answers.collect();
            topics.push(
                reply::TopicData::default()
                    .with_topic_id(asked.topic_id)
                    .with_partitions(answers),
            );
        }
        directories.push(
            reply::DirectoryData::default()
                .with_id(directory.id)
                .with_topics(topics),
        );
    }
    let moved = offline.into_iter().filter_map(|(topic, index)| {
        let topic = view.image.topic_by_id(topic)?;
        Some((topic, index, topic.partition(index)?))
    });
    leaders::update(view, Cause::Leaves(id), moved, &mut records);
    let reply = AssignReplicasToDirsResponse::default().with_directories(directories);
    Ok(Decision {
        records,
        reply: Reply::AssignReplicasToDirs(reply),
        atomic: false,
    })
}

fn assign(
    view: &View<'_>,
    topic: Option<TopicRef<'_>>,
    index: i32,
    (broker, directory): (NodeId, Uuid),
    records: &mut Vec<VersionedRecord>,
) -> Option<ErrorCode> {
    let Some(topic) = topic else {
        return Some(ErrorCode::UnknownTopicId);
    };
    let Some(old) = topic.partition(PartitionId(index)) else {
        return Some(ErrorCode::UnknownTopicOrPartition);
    };
    if !old.replicas().contains(&broker.0) {
        return Some(ErrorCode::NotLeaderOrFollower);
    }
    let rules = Rules::of(view.image);
    let acceptable = |id: i32| rules.can_lead(id, rules.is_active(id), old.directory_of(id));
    let min_isr = leaders::min_isr(view.image, view.settings, topic);
    let change = Change::of(
        topic.id(),
        PartitionId(index),
        old,
        rules,
        &acceptable,
        min_isr,
    );
    records.extend(change.directory(broker.0, directory).record());
    None
}
