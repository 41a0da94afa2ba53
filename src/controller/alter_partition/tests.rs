//! Every answer of AlterPartition, and what is written for it.

use super::*;
use crate::controller::testing::World;
use crate::controller::{RECORDS_PER_OPERATION_MAX, Request};
use crate::records::PartitionRecord;
use crate::types::Uuid;
use kafka_protocol::messages::alter_partition_request::TopicData;

const TOPIC: Uuid = Uuid::from_u128(0x70);

fn dir(broker: i32) -> Uuid {
    Uuid::from_u128(0x1000 + broker as u128)
}

/// Brokers 1 to 4; a partition on 1, 2 and 3, led by 1 in epoch 4, partition epoch 7.
fn world(edit: impl FnOnce(&mut PartitionRecord)) -> World {
    let mut world = World::with_brokers(&[1, 2, 3, 4]);
    let mut partition = PartitionRecord {
        replicas: vec![1, 2, 3],
        isr: vec![1, 2],
        leader: 1,
        leader_epoch: 4,
        partition_epoch: 7,
        directories: vec![dir(1), dir(2), dir(3)],
        ..PartitionRecord::default()
    };
    edit(&mut partition);
    world.topic("t", TOPIC, vec![partition]);
    world
}

/// What leader 1 would ask to have `isr`.
fn wanted(isr: &[i32]) -> PartitionData {
    let member = |id: &i32| {
        BrokerState::default()
            .with_broker_id(BrokerId(*id))
            .with_broker_epoch(-1)
    };
    PartitionData::default()
        .with_leader_epoch(4)
        .with_partition_epoch(7)
        .with_new_isr_with_epochs(isr.iter().map(member).collect())
}

fn request(world: &World, sender: i32, wanted: PartitionData) -> AlterPartitionRequest {
    let epoch = world
        .image
        .broker(NodeId(sender))
        .map_or(0, |it| it.epoch.0);
    AlterPartitionRequest::default()
        .with_broker_id(BrokerId(sender))
        .with_broker_epoch(epoch)
        .with_topics(vec![
            TopicData::default()
                .with_topic_id(TOPIC)
                .with_partitions(vec![wanted]),
        ])
}

/// The answer for the one partition, and the change that is written.
fn asked(
    world: &mut World,
    sender: i32,
    wanted: PartitionData,
) -> (reply::PartitionData, Option<PartitionChangeRecord>) {
    let request = request(world, sender, wanted);
    let decision = world.ask(3, Request::AlterPartition(request)).unwrap();
    let mut records = decision.records.into_iter();
    let record = records.next().map(|it| match it.record {
        Record::PartitionChange(record) => record,
        other => panic!("not expected: {other:?}"),
    });
    assert!(records.next().is_none());
    match decision.reply {
        Reply::AlterPartition(mut reply) => (reply.topics[0].partitions.remove(0), record),
        other => panic!("not expected: {other:?}"),
    }
}

/// The code of a refusal that writes nothing.
fn refusal(world: &mut World, sender: i32, wanted: PartitionData) -> ErrorCode {
    let (answer, record) = asked(world, sender, wanted);
    assert_eq!(record, None);
    assert_eq!((answer.leader_id, answer.isr), (BrokerId(0), Vec::new()));
    let mut codes = [
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::IneligibleReplica,
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidUpdateVersion,
        ErrorCode::NotController,
        ErrorCode::UnknownTopicId,
        ErrorCode::UnknownTopicOrPartition,
    ]
    .into_iter();
    let code = codes.find(|code| code.code() == answer.error_code);
    code.unwrap_or_else(|| panic!("code {}", answer.error_code))
}

#[test]
fn a_larger_and_a_smaller_isr_are_written_and_told_with_the_new_partition_epoch() {
    for isr in [vec![1, 2, 3], vec![1]] {
        let (answer, record) = asked(&mut world(|_| {}), 1, wanted(&isr));
        assert_eq!(record.unwrap().isr, Some(isr.clone()));
        assert_eq!(answer.error_code, 0);
        assert_eq!(answer.leader_id, BrokerId(1));
        assert_eq!((answer.leader_epoch, answer.partition_epoch), (4, 8));
        let told: Vec<i32> = answer.isr.iter().map(|id| id.0).collect();
        assert_eq!(told, isr);
    }
}

#[test]
fn what_is_already_so_is_told_and_not_written() {
    let (answer, record) = asked(&mut world(|_| {}), 1, wanted(&[1, 2]));
    assert_eq!(record, None);
    assert_eq!((answer.error_code, answer.partition_epoch), (0, 7));
    assert_eq!(answer.isr, [BrokerId(1), BrokerId(2)]);
}

#[test]
fn a_sender_of_another_life_is_refused_as_a_whole() {
    let mut world = world(|_| {});
    for (sender, epoch) in [(9, 0), (1, 999)] {
        let request = request(&world, sender, wanted(&[1])).with_broker_epoch(epoch);
        let refused = world.ask(3, Request::AlterPartition(request));
        assert_eq!(refused.unwrap_err().code, ErrorCode::StaleBrokerEpoch);
    }
}

#[test]
fn an_unknown_topic_and_an_unknown_partition_have_their_own_codes() {
    let mut world = world(|_| {});
    let unknown = wanted(&[1]).with_partition_index(3);
    let code = refusal(&mut world, 1, unknown);
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition);
    for id in [Uuid::nil(), Uuid::from_u128(0x71)] {
        let mut request = request(&world, 1, wanted(&[1]));
        request.topics[0].topic_id = id;
        let decision = world.ask(3, Request::AlterPartition(request)).unwrap();
        match decision.reply {
            Reply::AlterPartition(reply) => assert_eq!(
                reply.topics[0].partitions[0].error_code,
                ErrorCode::UnknownTopicId.code()
            ),
            other => panic!("not expected: {other:?}"),
        }
    }
}

#[test]
fn epochs_ahead_of_the_image_can_only_come_from_a_newer_controller() {
    let mut world = world(|_| {});
    for ahead in [
        wanted(&[1]).with_leader_epoch(5),
        wanted(&[1]).with_partition_epoch(8),
        // Even from a broker that does not lead, and with the other epoch behind.
        wanted(&[1]).with_leader_epoch(3).with_partition_epoch(8),
    ] {
        assert_eq!(refusal(&mut world, 2, ahead), ErrorCode::NotController);
    }
}

#[test]
fn epochs_behind_the_image_are_told_apart() {
    let mut world = world(|_| {});
    let leader = wanted(&[1]).with_leader_epoch(3).with_partition_epoch(6);
    let code = refusal(&mut world, 1, leader);
    assert_eq!(code, ErrorCode::FencedLeaderEpoch);
    let partition = wanted(&[1]).with_partition_epoch(6);
    let code = refusal(&mut world, 1, partition);
    assert_eq!(code, ErrorCode::InvalidUpdateVersion);
}

#[test]
fn only_the_leader_may_ask_and_it_must_be_in_its_isr() {
    let mut world = world(|_| {});
    let other = wanted(&[1, 2]).with_partition_epoch(6);
    let code = refusal(&mut world, 2, other);
    assert_eq!(
        code,
        ErrorCode::InvalidRequest,
        "before the partition epoch"
    );
    for isr in [&[2, 3][..], &[], &[1, 1], &[1, 4], &[1, -1]] {
        let code = refusal(&mut world, 1, wanted(isr));
        assert_eq!(code, ErrorCode::InvalidRequest, "{isr:?}");
    }
}

#[test]
fn a_leader_that_recovers_is_alone_and_a_recovered_one_does_not_begin_again() {
    let mut recovered = world(|_| {});
    for state in [RECOVERING, 9, -1] {
        let again = wanted(&[1]).with_leader_recovery_state(state);
        let code = refusal(&mut recovered, 1, again);
        assert_eq!(code, ErrorCode::InvalidRequest, "{state}");
    }
    let mut recovers = world(|it| {
        it.isr = vec![1];
        it.leader_recovery_state = RECOVERING;
    });
    let two = wanted(&[1, 2]).with_leader_recovery_state(RECOVERING);
    let code = refusal(&mut recovers, 1, two);
    assert_eq!(code, ErrorCode::InvalidRequest);
    let same = wanted(&[1]).with_leader_recovery_state(RECOVERING);
    let (answer, record) = asked(&mut recovers, 1, same);
    assert_eq!((answer.leader_recovery_state, record), (RECOVERING, None));
    let (answer, record) = asked(&mut recovers, 1, wanted(&[1, 2]));
    let record = record.unwrap();
    assert_eq!(record.leader_recovery_state, RECOVERED);
    assert_eq!(record.isr, Some(vec![1, 2]));
    assert_eq!(answer.leader_recovery_state, RECOVERED);
}

#[test]
fn a_member_that_is_fenced_shutting_down_or_of_another_life_is_not_eligible() {
    let three = || wanted(&[1, 2, 3]);
    let mut fenced = world(|_| {});
    fenced.change(3, |it| it.fenced = 1);
    let code = refusal(&mut fenced, 1, three());
    assert_eq!(code, ErrorCode::IneligibleReplica);
    let mut leaving = world(|_| {});
    leaving.change(3, |it| it.in_controlled_shutdown = 1);
    let code = refusal(&mut leaving, 1, three());
    assert_eq!(code, ErrorCode::IneligibleReplica);
    let mut world = world(|it| it.replicas = vec![1, 2, 9]);
    let code = refusal(&mut world, 1, wanted(&[1, 9]));
    assert_eq!(code, ErrorCode::IneligibleReplica, "not registered");
    let epoch = world.image.broker(NodeId(2)).unwrap().epoch.0;
    let mut known = wanted(&[1, 2]);
    known.new_isr_with_epochs[1].broker_epoch = epoch + 1;
    let code = refusal(&mut world, 1, known.clone());
    assert_eq!(code, ErrorCode::IneligibleReplica, "another epoch");
    known.new_isr_with_epochs[1].broker_epoch = epoch;
    assert_eq!(asked(&mut world, 1, known).0.error_code, 0);
}

#[test]
fn version_2_names_members_without_their_epochs() {
    let mut world = world(|_| {});
    let mut old = wanted(&[]);
    old.new_isr = vec![BrokerId(1), BrokerId(3)];
    let request = request(&world, 1, old);
    let decision = world.ask(2, Request::AlterPartition(request)).unwrap();
    match &decision.records[0].record {
        Record::PartitionChange(record) => assert_eq!(record.isr, Some(vec![1, 3])),
        other => panic!("not expected: {other:?}"),
    }
}

#[test]
fn a_change_that_moves_the_leadership_is_written_and_refused() {
    let mut world = world(|it| {
        it.replicas = vec![1, 2, 3, 4];
        it.directories = vec![dir(1), dir(2), dir(3), dir(4)];
        it.removing_replicas = vec![1];
        it.adding_replicas = vec![4];
    });
    let (answer, record) = asked(&mut world, 1, wanted(&[1, 2, 4]));
    let record = record.expect("the reassignment is over");
    assert_eq!((record.leader, record.replicas), (2, Some(vec![2, 3, 4])));
    assert_eq!(answer.error_code, ErrorCode::NewLeaderElected.code());
}

#[test]
fn a_new_epoch_of_the_same_leader_is_no_new_leader() {
    let mut world = world(|it| {
        it.replicas = vec![1, 2, 3, 4];
        it.directories = vec![dir(1), dir(2), dir(3), dir(4)];
        it.removing_replicas = vec![3];
        it.adding_replicas = vec![4];
    });
    let (answer, record) = asked(&mut world, 1, wanted(&[1, 2, 4]));
    assert_eq!(record.unwrap().leader, 1);
    assert_eq!((answer.error_code, answer.leader_epoch), (0, 5));
}

#[test]
fn a_leader_of_very_many_partitions_reports_all_of_them_at_once() {
    let count = RECORDS_PER_OPERATION_MAX + 1;
    let mut world = world(|_| {});
    let many = PartitionRecord {
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        leader_epoch: 4,
        partition_epoch: 7,
        directories: vec![dir(1), dir(2)],
        ..PartitionRecord::default()
    };
    world.topic("many", Uuid::from_u128(0x71), vec![many; count]);
    let mut request = request(&world, 1, wanted(&[1]));
    request.topics[0].topic_id = Uuid::from_u128(0x71);
    let each = |index| wanted(&[1]).with_partition_index(index);
    request.topics[0].partitions = (0..count as i32).map(each).collect();
    let decision = world.ask(3, Request::AlterPartition(request)).unwrap();
    assert_eq!(decision.records.len(), count);
    assert!(!decision.atomic, "they fit into no single batch");
}

/// The first mention completes a move from 1 and 2 to 1 and 3; decided on the same old state, the
/// second would write an ISR with broker 2, which is no replica any more.
#[test]
fn a_partition_that_is_named_twice_is_decided_once() {
    let mut world = world(|it| {
        it.replicas = vec![1, 3, 2];
        it.isr = vec![1, 2];
        it.adding_replicas = vec![3];
        it.removing_replicas = vec![2];
        it.directories = vec![dir(1), dir(3), dir(2)];
    });
    let mut request = request(&world, 1, wanted(&[1, 2, 3]));
    let again = [&[1, 2][..], &[1], &[1, 2, 3]].map(wanted);
    request.topics[0].partitions.extend(again.clone());
    // Under the topic's name in another place too.
    request.topics.push(
        TopicData::default()
            .with_topic_id(TOPIC)
            .with_partitions(again.to_vec()),
    );
    let decision = world.take(3, Request::AlterPartition(request)).unwrap();
    assert_eq!(decision.records.len(), 1);
    let Reply::AlterPartition(reply) = decision.reply else {
        panic!("another reply");
    };
    let answers = reply.topics.iter().flat_map(|topic| &topic.partitions);
    let codes: Vec<i16> = answers.map(|it| it.error_code).collect();
    let stale = ErrorCode::InvalidUpdateVersion.code();
    assert_eq!(codes, [0, stale, stale, stale, stale, stale, stale]);
    let after = world.image.topic_by_id(TOPIC).unwrap();
    let after = after.partition(PartitionId(0)).unwrap();
    assert_eq!((after.replicas(), after.isr()), (&[1, 3][..], &[1, 3][..]));
    let told = &reply.topics[0].partitions[0];
    assert_eq!((told.partition_epoch, after.partition_epoch()), (8, 8));
    assert_eq!(world.image.check(), Ok(()));
}

#[test]
fn a_partition_that_a_first_mention_left_as_it_is_may_be_named_again() {
    let mut world = world(|_| {});
    let mut request = request(&world, 1, wanted(&[1, 2]));
    request.topics[0].partitions.push(wanted(&[1, 2, 3]));
    let decision = world.take(3, Request::AlterPartition(request)).unwrap();
    assert_eq!(decision.records.len(), 1);
    assert_eq!(world.image.check(), Ok(()));
}
