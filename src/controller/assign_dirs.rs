//! AssignReplicasToDirs (KIP-858): a broker with several directories tells where a replica lies.

use std::collections::BTreeSet;

use kafka_protocol::messages::assign_replicas_to_dirs_response as reply;
use kafka_protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

use super::leaders::{self, Cause, ClusterRules, TopicRules};
use super::partition_change::{Change, Rules};
use super::register_broker::check_epoch;
use super::{Decision, Reply, View, bounded_items, bounded_looks};
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
    let (count, partitions) = topics.fold((request.directories.len(), 0), |sum, topic| {
        (sum.0 + 1, sum.1 + topic.partitions.len())
    });
    bounded_items(partitions)?;
    bounded_looks(count)?;
    let cluster = ClusterRules::of(view.image, view.settings);
    let mut records = Vec::new();
    let mut offline = BTreeSet::new();
    let mut directories = Vec::with_capacity(request.directories.len());
    for directory in request.directories {
        let online = broker.has_online_dir(directory.id);
        let mut topics = Vec::with_capacity(directory.topics.len());
        for asked in directory.topics {
            let topic = view.image.topic_by_id(asked.topic_id);
            let topic = topic.map(|it| (it, cluster.of_topic(view.image, view.settings, it)));
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
    Ok(Decision::loose(records, Reply::AssignReplicasToDirs(reply)))
}

fn assign(
    view: &View<'_>,
    topic: Option<(TopicRef<'_>, TopicRules)>,
    index: i32,
    (broker, directory): (NodeId, Uuid),
    records: &mut Vec<VersionedRecord>,
) -> Option<ErrorCode> {
    let Some((topic, topic_rules)) = topic else {
        return Some(ErrorCode::UnknownTopicId);
    };
    let Some(old) = topic.partition(PartitionId(index)) else {
        return Some(ErrorCode::UnknownTopicOrPartition);
    };
    if !old.replicas().contains(&broker.0) {
        return Some(ErrorCode::NotLeaderOrFollower);
    }
    let rules = Rules::of(view.image);
    let acceptable = |id: i32| rules.may_lead(old, id);
    let change = Change::of(
        topic.id(),
        PartitionId(index),
        old,
        rules,
        &acceptable,
        topic_rules.min_isr,
    );
    records.extend(change.directory(broker.0, directory).record());
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Request;
    use crate::controller::testing::World;
    use crate::records::{PartitionRecord, Record};
    use kafka_protocol::messages::BrokerId;
    use kafka_protocol::messages::assign_replicas_to_dirs_request as asked;

    const TOPIC: Uuid = Uuid::from_u128(0x70);
    const A: Uuid = Uuid::from_u128(0x1001);
    const B: Uuid = Uuid::from_u128(0x1011);
    const LOST: Uuid = Uuid::from_u128(0x1099);
    const OTHER: Uuid = Uuid::from_u128(0x1002);

    /// Broker 1 has directories A and B, broker 2 one; a partition on both, led by 1 in A.
    fn world() -> World {
        let mut world = World::at_level(33);
        world.broker(1, &[A, B]);
        world.broker(2, &[OTHER]);
        let partition = PartitionRecord {
            replicas: vec![1, 2],
            isr: vec![1, 2],
            leader: 1,
            directories: vec![A, OTHER],
            ..PartitionRecord::default()
        };
        world.topic("t", TOPIC, vec![partition]);
        world
    }

    fn request(world: &World, broker: i32, directory: Uuid, index: i32) -> Request {
        let partition = asked::PartitionData::default().with_partition_index(index);
        let topic = asked::TopicData::default()
            .with_topic_id(TOPIC)
            .with_partitions(vec![partition]);
        let directory = asked::DirectoryData::default()
            .with_id(directory)
            .with_topics(vec![topic]);
        let epoch = world
            .image
            .broker(NodeId(broker))
            .map_or(0, |it| it.epoch.0);
        Request::AssignReplicasToDirs(
            AssignReplicasToDirsRequest::default()
                .with_broker_id(BrokerId(broker))
                .with_broker_epoch(epoch)
                .with_directories(vec![directory]),
        )
    }

    /// The code of the one partition, and what is written: directories, ISR and leader.
    type Written = (Option<Vec<Uuid>>, Option<Vec<i32>>, i32);

    fn answered(world: &mut World, request: Request) -> (i16, Vec<Written>) {
        let decision = world.take(0, request).unwrap();
        let code = match decision.reply {
            Reply::AssignReplicasToDirs(reply) => {
                reply.directories[0].topics[0].partitions[0].error_code
            }
            other => panic!("not expected: {other:?}"),
        };
        let written = decision.records.into_iter().map(|it| match it.record {
            Record::PartitionChange(it) => (it.directories, it.isr, it.leader),
            other => panic!("not expected: {other:?}"),
        });
        (code, written.collect())
    }

    #[test]
    fn a_new_directory_is_written_once() {
        let mut world = world();
        let request = request(&world, 1, B, 0);
        let expected = vec![(Some(vec![B, OTHER]), None, -2)];
        assert_eq!(answered(&mut world, request.clone()), (0, expected));
        assert_eq!(answered(&mut world, request), (0, Vec::new()));
    }

    #[test]
    fn a_replica_in_a_directory_that_is_not_online_leaves_the_isr() {
        let mut world = world();
        let request = request(&world, 1, LOST, 0);
        let expected = vec![
            (Some(vec![LOST, OTHER]), None, -2),
            (None, Some(vec![2]), 2),
        ];
        assert_eq!(answered(&mut world, request), (0, expected));
    }

    #[test]
    fn what_is_unknown_or_not_the_brokers_has_its_own_code() {
        let mut world = world();
        world.broker(3, &[Uuid::from_u128(0x1003)]);
        let unknown = request(&world, 1, B, 7);
        let code = ErrorCode::UnknownTopicOrPartition.code();
        assert_eq!(answered(&mut world, unknown), (code, Vec::new()));
        let stranger = request(&world, 3, B, 0);
        let code = ErrorCode::NotLeaderOrFollower.code();
        assert_eq!(answered(&mut world, stranger), (code, Vec::new()));
        let unregistered = request(&world, 9, B, 0);
        let refused = world.take(0, unregistered).unwrap_err();
        assert_eq!(refused.code, ErrorCode::StaleBrokerEpoch);
    }

    #[test]
    fn below_3_7_iv2_there_are_no_directories() {
        let mut world = World::at_level(16);
        world.broker(1, &[]);
        let request = request(&world, 1, A, 0);
        let refused = world.take(0, request).unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnsupportedVersion);
    }
}
