//! Topics, partitions, transactions.

use super::super::*;
use super::{
    TOPIC_ID, change, config, fault, one_topic, partition, replayed, the_partition, topic,
};
use crate::records::{
    AbortTransactionRecord, BeginTransactionRecord, ClearElrRecord, EndTransactionRecord,
    PartitionChangeRecord, PartitionRecord, RemoveTopicRecord,
};
use crate::types::{PartitionId, ids};

#[test]
fn a_change_raises_the_partition_epoch_and_only_a_named_leader_the_leader_epoch() {
    let image = one_topic();
    let shrunk = replayed(
        &image,
        [PartitionChangeRecord {
            isr: Some(vec![1, 2]),
            ..change()
        }
        .into()],
    );
    let partition = the_partition(&shrunk);
    assert_eq!(partition.isr(), [1, 2]);
    assert_eq!(
        (partition.leader_epoch(), partition.partition_epoch()),
        (0, 1)
    );
    let same_leader = replayed(
        &shrunk,
        [PartitionChangeRecord {
            leader: 1,
            ..change()
        }
        .into()],
    );
    let partition = the_partition(&same_leader);
    assert_eq!(
        (partition.leader(), partition.isr()),
        (1, [1, 2].as_slice())
    );
    assert_eq!(
        (partition.leader_epoch(), partition.partition_epoch()),
        (1, 2)
    );
    assert_eq!(the_partition(&image).partition_epoch(), 0);
}

#[test]
fn an_unclean_election_sets_recovering_until_a_change_clears_it() {
    let unclean = replayed(
        &one_topic(),
        [PartitionChangeRecord {
            isr: Some(vec![3]),
            leader: 3,
            leader_recovery_state: 1,
            ..change()
        }
        .into()],
    );
    assert!(the_partition(&unclean).recovering());
    let untouched = replayed(&unclean, [change().into()]);
    assert!(the_partition(&untouched).recovering());
    let recovered = replayed(
        &unclean,
        [PartitionChangeRecord {
            leader_recovery_state: 0,
            ..change()
        }
        .into()],
    );
    assert!(!the_partition(&recovered).recovering());
    assert!(matches!(
        fault(
            &unclean,
            PartitionChangeRecord {
                leader_recovery_state: 2,
                ..change()
            }
        ),
        ReplayFault::BadValue { .. }
    ));
}

#[test]
fn directories_follow_the_replicas_or_the_change_is_refused() {
    let image = one_topic();
    assert_eq!(
        fault(
            &image,
            PartitionChangeRecord {
                replicas: Some(vec![1, 2]),
                ..change()
            }
        ),
        ReplayFault::DirectoriesMismatch {
            replicas: 2,
            directories: 3
        }
    );
    let migrating = PartitionRecord {
        directories: Vec::new(),
        ..partition(0)
    };
    let image = replayed(&Image::empty(), [topic("t", TOPIC_ID), migrating.into()]);
    assert_eq!(the_partition(&image).directories(), [ids::DIR_MIGRATING; 3]);
    let grown = replayed(
        &image,
        [PartitionChangeRecord {
            replicas: Some(vec![1, 2, 3, 4]),
            adding_replicas: Some(vec![4]),
            ..change()
        }
        .into()],
    );
    let partition = the_partition(&grown);
    assert_eq!(partition.directories(), [ids::DIR_MIGRATING; 4]);
    assert_eq!(partition.adding(), [4]);
    assert!(partition.reassigning());
    assert_eq!(grown.partitions_reassigning().count(), 1);
}

#[test]
fn clearing_the_elr_raises_the_partition_epoch_of_those_that_had_one() {
    let with_elr = PartitionRecord {
        isr: vec![1],
        eligible_leader_replicas: Some(vec![2]),
        last_known_elr: Some(vec![3]),
        ..partition(0)
    };
    let image = replayed(
        &Image::empty(),
        [topic("t", TOPIC_ID), with_elr.into(), partition(1).into()],
    );
    assert_eq!(image.partitions_with_elr_member(NodeId(2)).count(), 1);
    for name in ["", "t"] {
        let cleared = replayed(
            &image,
            [ClearElrRecord {
                topic_name: name.to_owned(),
                ..Default::default()
            }
            .into()],
        );
        let topic = cleared.topic_by_name("t").expect("the topic exists");
        let epochs: Vec<i32> = topic
            .partitions()
            .map(|(_, p)| p.partition_epoch())
            .collect();
        assert_eq!(epochs, [1, 0]);
        assert!(the_partition(&cleared).elr().is_empty());
        assert!(the_partition(&cleared).last_known_elr().is_empty());
    }
    let unknown = ClearElrRecord {
        topic_name: "x".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        fault(&image, unknown),
        ReplayFault::UnknownTopicName("x".to_owned())
    );
}

#[test]
fn a_removed_topic_takes_its_partitions_and_configuration_with_it() {
    let other = Uuid::from_u128(0x1001);
    let image = replayed(
        &one_topic(),
        [
            topic("a.b", other),
            config(configs::TOPIC, "t", "retention.ms", Some("5")),
            config(configs::BROKER, "", "min.insync.replicas", Some("2")),
        ],
    );
    assert_eq!(image.colliding_topics("a_b"), ["a.b"]);
    assert!(image.colliding_topics("a.b").is_empty());
    assert!(image.colliding_topics("t").is_empty());
    let remove = |topic_id| RemoveTopicRecord {
        topic_id,
        ..Default::default()
    };
    let removed = replayed(&image, [remove(TOPIC_ID).into(), remove(other).into()]);
    assert_eq!((removed.topic_count(), removed.partition_count()), (0, 0));
    assert!(removed.topic_config("t").is_none());
    assert!(removed.config(&ConfigResource::all_brokers()).is_some());
    assert!(removed.colliding_topics("a_b").is_empty());
    assert_eq!(image.partition_count(), 2);
    let again = replayed(&removed, [topic("a_b", other)]);
    assert_eq!(again.colliding_topics("a.b"), ["a_b"]);
    assert_eq!(
        fault(&removed, remove(TOPIC_ID)),
        ReplayFault::UnknownTopic(TOPIC_ID)
    );
}

#[test]
fn topics_and_partitions_that_make_no_sense_are_refused() {
    let image = one_topic();
    let elsewhere = Uuid::from_u128(0x1002);
    assert_eq!(
        fault(&image, topic("t", elsewhere)),
        ReplayFault::TopicNameTaken("t".to_owned())
    );
    assert_eq!(
        fault(&image, topic("u", TOPIC_ID)),
        ReplayFault::TopicIdTaken(TOPIC_ID)
    );
    let lost = PartitionRecord {
        topic_id: elsewhere,
        ..partition(0)
    };
    assert_eq!(fault(&image, lost), ReplayFault::UnknownTopic(elsewhere));
    assert!(matches!(
        fault(&image, partition(-1)),
        ReplayFault::BadValue { value: -1, .. }
    ));
    for index in [2, -1, i32::MAX, i32::MIN] {
        let record = PartitionChangeRecord {
            partition_id: index,
            ..change()
        };
        assert_eq!(
            fault(&image, record),
            ReplayFault::UnknownPartition(TOPIC_ID, index)
        );
    }
}

#[test]
fn partitions_may_come_in_any_order_and_a_huge_index_costs_one_row() {
    let indexes = [i32::MAX, 3, 1, 0, 2, 2, 500];
    let records = indexes.map(|index| partition(index).into());
    let image = replayed(&one_topic(), records);
    let topic = image.topic_by_name("t").expect("the topic exists");
    let found: Vec<i32> = topic.partitions().map(|(id, _)| id.0).collect();
    assert_eq!(found, [0, 1, 2, 3, 500, i32::MAX]);
    assert_eq!(image.partition_count(), 6);
    assert!(topic.partition(PartitionId(i32::MAX)).is_some());
    assert!(topic.partition(PartitionId(4)).is_none());
}

/// Partition 2 before 0 left the image looking for partition 1 for ever.
#[test]
fn a_gap_right_behind_the_first_partitions_waits_for_its_partition() {
    for order in [[2, 0, 1], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let records = order.map(|index| partition(index).into());
        let made = [topic("gaps", TOPIC_ID)].into_iter().chain(records);
        let image = replayed(&Image::empty(), made);
        let topic = image.topic_by_name("gaps").expect("it was made");
        let indexes: Vec<i32> = topic.partitions().map(|(id, _)| id.0).collect();
        assert_eq!(indexes, [0, 1, 2], "told in the order {order:?}");
    }
}

#[test]
fn an_open_transaction_is_withheld_and_an_abort_takes_it_back() {
    let begin = BeginTransactionRecord {
        name: Some("n".to_owned()),
        ..Default::default()
    };
    let image = one_topic();
    let other = topic("u", Uuid::from_u128(0x1003));
    let open = replayed(&image, [begin.clone().into(), other]);
    assert_eq!(open.open_transaction(), Some(Offset(100)));
    assert_eq!(open.open_transaction_name(), Some("n"));
    assert!(*open.settled() == image);
    assert!(open.topic_by_name("u").is_some());
    assert_eq!(
        fault(&open, begin),
        ReplayFault::TransactionOpen(Offset(100))
    );
    let aborted = replayed(&open, [AbortTransactionRecord::default().into()]);
    assert!(aborted == image);
    let ended = replayed(&open, [EndTransactionRecord::default().into()]);
    assert_eq!(ended.open_transaction(), None);
    assert_eq!(ended.settled().topic_count(), 2);
    let end = EndTransactionRecord::default();
    assert_eq!(fault(&image, end), ReplayFault::NoTransaction);
    let abort = AbortTransactionRecord::default();
    assert_eq!(fault(&image, abort), ReplayFault::NoTransaction);
}

#[test]
fn scans_find_partitions_by_broker_and_directory() {
    let directory = Uuid::from_u128(0x3000);
    let moved = PartitionChangeRecord {
        isr: Some(vec![2]),
        leader: -1,
        directories: Some(vec![ids::DIR_UNASSIGNED, directory, ids::DIR_UNASSIGNED]),
        ..change()
    };
    let image = replayed(&one_topic(), [moved.into()]);
    let found = |partitions: Vec<Found<'_>>| {
        let ids = partitions.into_iter().map(|(_, id, _)| id.0);
        ids.collect::<Vec<_>>()
    };
    let (one, two) = (NodeId(1), NodeId(2));
    assert_eq!(found(image.partitions_with_replica(one).collect()), [0, 1]);
    assert_eq!(found(image.partitions_with_isr_member(one).collect()), [1]);
    assert_eq!(found(image.partitions_with_leader(one).collect()), [1]);
    assert_eq!(found(image.partitions_without_leader().collect()), [0]);
    let leaderless = image.partitions_without_leader_with_replica(NodeId(4));
    assert_eq!(found(leaderless.collect()), [0; 0]);
    let preferred = image.partitions_not_led_by_preferred();
    assert_eq!(found(preferred.collect()), [0]);
    let directories = [directory];
    let in_directory = |broker| {
        let there = image.partitions_in_directories_from(broker, &directories, Place::default());
        there.map(|(_, found)| found).collect()
    };
    assert_eq!(found(in_directory(two)), [0]);
    assert_eq!(found(in_directory(one)), [0; 0]);
    assert_eq!((image.leader_count(one), image.leader_count(two)), (1, 0));
}
