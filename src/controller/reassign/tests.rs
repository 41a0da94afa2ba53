//! Reassignments from the request to the end: what is answered, written and listed.

use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::list_partition_reassignments_request as asked;

use super::*;
use crate::controller::Request;
use crate::controller::testing::World;
use crate::records::{PartitionChangeRecord, PartitionRecord};
use crate::types::Uuid;
use crate::types::ids::DIR_UNASSIGNED;

const TOPIC: Uuid = Uuid::from_u128(0x70);

fn dir(broker: i32) -> Uuid {
    Uuid::from_u128(0x1000 + broker as u128)
}

fn dirs(brokers: &[i32]) -> Vec<Uuid> {
    brokers.iter().copied().map(dir).collect()
}

/// Brokers 1 to 5; one partition on 1, 2 and 3, all in sync.
fn world() -> World {
    with(|_| {})
}

fn with(edit: impl FnOnce(&mut PartitionRecord)) -> World {
    let mut world = World::with_brokers(&[1, 2, 3, 4, 5]);
    let mut partition = PartitionRecord {
        replicas: vec![1, 2, 3],
        isr: vec![1, 2, 3],
        leader: 1,
        ..PartitionRecord::default()
    };
    edit(&mut partition);
    partition.directories = dirs(&partition.replicas);
    world.topic("t", TOPIC, vec![partition]);
    world
}

fn name(topic: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(topic))
}

fn request(
    topic: &'static str,
    partitions: &[(i32, Option<&[i32]>)],
) -> AlterPartitionReassignmentsRequest {
    let partitions = partitions.iter().map(|(index, replicas)| {
        let replicas = replicas.map(|ids| ids.iter().copied().map(BrokerId).collect());
        ReassignablePartition::default()
            .with_partition_index(*index)
            .with_replicas(replicas)
    });
    AlterPartitionReassignmentsRequest::default().with_topics(vec![
        ReassignableTopic::default()
            .with_name(name(topic))
            .with_partitions(partitions.collect()),
    ])
}

/// The result of the first partition, and what is written.
fn take(
    world: &mut World,
    request: AlterPartitionReassignmentsRequest,
) -> (i16, Option<String>, Vec<PartitionChangeRecord>) {
    let request = Request::AlterPartitionReassignments(request);
    let decision = world.take(1, request).unwrap();
    assert!(decision.atomic);
    let Reply::AlterPartitionReassignments(reply) = decision.reply else {
        panic!("not expected: {:?}", decision.reply);
    };
    assert_eq!((reply.error_code, reply.error_message), (0, None));
    let result = &reply.responses[0].partitions[0];
    let records = decision.records.into_iter().map(|it| match it.record {
        Record::PartitionChange(record) => record,
        other => panic!("not expected: {other:?}"),
    });
    let message = result.error_message.as_ref().map(ToString::to_string);
    (result.error_code, message, records.collect())
}

/// Moves partition 0 and gives what is written.
fn moved(world: &mut World, replicas: &[i32]) -> PartitionChangeRecord {
    let (code, message, mut records) = take(world, request("t", &[(0, Some(replicas))]));
    assert_eq!((code, message, records.len()), (0, None, 1));
    records.remove(0)
}

fn refused(world: &mut World, request: AlterPartitionReassignmentsRequest) -> (i16, String) {
    let (code, message, records) = take(world, request);
    assert!(records.is_empty());
    (code, message.unwrap_or_default())
}

/// Every move under way, as (replicas, adding, removing).
fn under_way(world: &mut World) -> Vec<(Vec<i32>, Vec<i32>, Vec<i32>)> {
    let reply = list(world, None);
    let ids = |list: &[BrokerId]| list.iter().map(|id| id.0).collect();
    let partitions = reply.topics.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|it| {
            (
                ids(&it.replicas),
                ids(&it.adding_replicas),
                ids(&it.removing_replicas),
            )
        })
        .collect()
}

fn list(
    world: &mut World,
    topics: Option<Vec<asked::ListPartitionReassignmentsTopics>>,
) -> ListPartitionReassignmentsResponse {
    let request = ListPartitionReassignmentsRequest::default().with_topics(topics);
    let request = Request::ListPartitionReassignments(request);
    match world.run(0, request).unwrap() {
        Reply::ListPartitionReassignments(reply) => reply,
        other => panic!("not expected: {other:?}"),
    }
}

#[test]
fn a_move_keeps_the_old_replicas_behind_the_new_ones_and_is_listed() {
    let mut world = world();
    let record = moved(&mut world, &[4, 2, 5]);
    assert_eq!(record.replicas, Some(vec![4, 2, 5, 1, 3]));
    assert_eq!(record.adding_replicas, Some(vec![4, 5]));
    assert_eq!(record.removing_replicas, Some(vec![1, 3]));
    assert_eq!(record.directories, Some(dirs(&[4, 2, 5, 1, 3])));
    assert_eq!((record.leader, record.isr), (-2, None));
    let expected = (vec![4, 2, 5, 1, 3], vec![4, 5], vec![1, 3]);
    assert_eq!(under_way(&mut world), [expected]);
}

#[test]
fn other_replicas_that_are_all_in_sync_are_taken_at_once() {
    let mut world = world();
    let record = moved(&mut world, &[3, 2]);
    assert_eq!(record.replicas, Some(vec![3, 2]));
    assert_eq!(
        (record.removing_replicas, record.adding_replicas),
        (None, None)
    );
    assert_eq!(record.isr, Some(vec![2, 3]));
    assert_eq!(record.leader, 3, "the old leader is none of them");
    assert_eq!(record.directories, Some(dirs(&[3, 2])));
    assert!(under_way(&mut world).is_empty());
}

#[test]
fn another_order_is_a_change_without_a_move_and_the_same_order_none() {
    let mut world = world();
    let record = moved(&mut world, &[2, 1, 3]);
    assert_eq!(record.replicas, Some(vec![2, 1, 3]));
    assert_eq!((record.leader, record.isr), (-2, None));
    assert!(under_way(&mut world).is_empty());
    let (code, message, records) = take(&mut world, request("t", &[(0, Some(&[2, 1, 3]))]));
    assert_eq!((code, message, records.len()), (0, None, 0));
}

#[test]
fn a_second_target_replaces_the_first() {
    let mut world = world();
    moved(&mut world, &[4, 5, 3]);
    let record = moved(&mut world, &[1, 2, 4]);
    assert_eq!(record.replicas, Some(vec![1, 2, 4, 3, 5]));
    assert_eq!(record.removing_replicas, Some(vec![3, 5]));
    // What the first move adds stays so: the second one names nothing that is new.
    assert_eq!(record.adding_replicas, None);
}

#[test]
fn cancelling_goes_back_to_the_replicas_before() {
    let mut world = world();
    moved(&mut world, &[4, 5, 1]);
    let (code, message, records) = take(&mut world, request("t", &[(0, None)]));
    assert_eq!((code, message), (0, None));
    let record = &records[0];
    assert_eq!(record.replicas, Some(vec![1, 2, 3]));
    assert_eq!(record.adding_replicas, Some(Vec::new()));
    assert_eq!(record.removing_replicas, Some(Vec::new()));
    assert_eq!(record.directories, Some(dirs(&[1, 2, 3])));
    assert_eq!(record.leader, 1, "replicas go: a new leader epoch");
    assert!(under_way(&mut world).is_empty());
    // As in Java without a sentence: it would be that of the code.
    let again = refused(&mut world, request("t", &[(0, None)]));
    assert_eq!(again, (85, String::new()));
}

/// 4 alone is in sync while it is added.
fn only_the_new_one_is_in_sync() -> World {
    with(|it| {
        it.replicas = vec![4, 1, 2];
        it.adding_replicas = vec![4];
        it.removing_replicas = vec![1, 2];
        it.isr = vec![4];
        it.leader = 4;
    })
}

#[test]
fn cancelling_is_refused_where_it_needs_an_unclean_election() {
    let mut world = only_the_new_one_is_in_sync();
    let text = "Unable to revert partition assignment for t:0 because it would require an \
                unclean leader election.";
    let answer = refused(&mut world, request("t", &[(0, None)]));
    assert_eq!(answer, (39, text.to_owned()));
    world.config(2, "t", "unclean.leader.election.enable", "true");
    let (code, _, records) = take(&mut world, request("t", &[(0, None)]));
    assert_eq!(code, 0);
    assert_eq!(records[0].replicas, Some(vec![1, 2]));
    assert_eq!((records[0].leader, &records[0].isr), (1, &Some(vec![1])));
}

#[test]
fn cancelling_is_refused_where_nothing_was_before() {
    let mut world = with(|it| {
        it.replicas = vec![4];
        it.adding_replicas = vec![4];
        it.isr = vec![4];
        it.leader = 4;
    });
    let text = "Invalid replica assignment: addingReplicas contains all replicas.";
    let answer = refused(&mut world, request("t", &[(0, None)]));
    assert_eq!(answer, (39, text.to_owned()));
}

#[test]
fn what_does_not_exist_is_told_by_its_name() {
    let mut world = world();
    let answer = refused(&mut world, request("nosuch", &[(0, Some(&[1]))]));
    assert_eq!(
        answer,
        (3, "Unable to find a topic named nosuch.".to_owned())
    );
    for replicas in [None, Some(&[1][..])] {
        let answer = refused(&mut world, request("t", &[(7, replicas)]));
        assert_eq!(answer, (3, "Unable to find partition t:7.".to_owned()));
    }
}

#[test]
fn a_bad_target_is_refused_and_the_rest_of_the_request_is_written() {
    let mut world = world();
    for (replicas, text) in [
        (&[][..], "an empty replica list."),
        (&[1, 9], "broker 9, but no such broker is registered."),
        (&[-1], "broker -1, but no such broker is registered."),
        (&[1, 2, 1], "the broker 1 more than once."),
    ] {
        let answer = refused(&mut world, request("t", &[(0, Some(replicas))]));
        let text = format!("The manual partition assignment includes {text}");
        assert_eq!(answer, (39, text));
    }
    let both = request("t", &[(3, None), (0, Some(&[4, 5]))]);
    let (code, _, records) = take(&mut world, both);
    assert_eq!((code, records.len()), (3, 1));
}

#[test]
fn the_replication_factor_is_kept_if_the_request_says_so() {
    let keeping = |replicas: &'static [i32]| {
        request("t", &[(0, Some(replicas))]).with_allow_replication_factor_change(false)
    };
    let mut world = world();
    let answer = refused(&mut world, keeping(&[1, 2]));
    let text = "The replication factor is changed from 3 to 2";
    assert_eq!(answer, (38, text.to_owned()));
    assert_eq!(take(&mut world, keeping(&[1, 4, 5])).0, 0);
    // Five replicas now, three in the end.
    let answer = refused(&mut world, keeping(&[1, 2, 3, 4, 5]));
    let text = "The replication factor is changed from 3 to 5";
    assert_eq!(answer, (38, text.to_owned()));
    assert_eq!(take(&mut world, keeping(&[2, 4, 5])).0, 0);
    // The assignment is looked at first.
    assert_eq!(refused(&mut world, keeping(&[9])).0, 39);
}

#[test]
fn the_answer_says_whether_the_replication_factor_may_change() {
    let mut world = world();
    for allowed in [true, false] {
        let request = request("t", &[(0, None)]).with_allow_replication_factor_change(allowed);
        let decision = world.ask(1, Request::AlterPartitionReassignments(request));
        match decision.unwrap().reply {
            Reply::AlterPartitionReassignments(reply) => {
                assert_eq!(reply.allow_replication_factor_change, allowed);
            }
            other => panic!("not expected: {other:?}"),
        }
    }
}

#[test]
fn moves_beyond_what_one_operation_writes_are_refused_one_by_one() {
    let partitions: Vec<(i32, Option<&[i32]>)> =
        vec![(0, Some(&[4, 5])); RECORDS_PER_OPERATION_MAX + 1];
    let request = Request::AlterPartitionReassignments(request("t", &partitions));
    let decision = world().ask(1, request).unwrap();
    assert_eq!(decision.records.len(), RECORDS_PER_OPERATION_MAX);
    let Reply::AlterPartitionReassignments(reply) = decision.reply else {
        panic!("not expected: {:?}", decision.reply);
    };
    let last = reply.responses[0].partitions.last().unwrap();
    assert_eq!((last.error_code, &last.error_message), (-1, &None));
}

/// The second change left out the directories, which it does not change, and had fewer of them than
/// replicas behind the first: the leader stopped over its own record.
#[test]
fn a_partition_that_is_named_twice_and_grows_the_first_time_keeps_a_directory_for_each_replica() {
    let mut world = World::with_brokers(&[]);
    for id in 1..=3 {
        world.broker(id, &[dir(id), dir(id + 100)]);
    }
    let unassigned = PartitionRecord {
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        directories: vec![DIR_UNASSIGNED; 2],
        ..PartitionRecord::default()
    };
    world.topic("t", TOPIC, vec![unassigned]);
    let twice = request("t", &[(0, Some(&[1, 2, 3])), (0, Some(&[2, 1]))]);
    let (code, _, records) = take(&mut world, twice);
    assert_eq!((code, records.len()), (0, 2));
    let topic = world.image.topic_by_name("t").unwrap();
    let partition = topic.partition(PartitionId(0)).unwrap();
    assert_eq!(partition.replicas(), [2, 1]);
    assert_eq!(partition.directories().len(), 2);
}

#[test]
fn only_what_is_asked_for_and_moves_is_listed() {
    let mut world = world();
    let still = PartitionRecord {
        replicas: vec![1],
        isr: vec![1],
        leader: 1,
        directories: dirs(&[1]),
        ..PartitionRecord::default()
    };
    world.topic("a", Uuid::from_u128(0x71), vec![still.clone(), still]);
    moved(&mut world, &[4, 5]);
    for target in [&[2, 3][..], &[3, 4]] {
        take(&mut world, request("a", &[(1, Some(target))]));
    }
    let named = |topic, indexes: &[i32]| {
        asked::ListPartitionReassignmentsTopics::default()
            .with_name(name(topic))
            .with_partition_indexes(indexes.to_vec())
    };
    let told = |reply: ListPartitionReassignmentsResponse| -> Vec<(String, Vec<i32>)> {
        assert_eq!((reply.error_code, reply.error_message), (0, None));
        let topics = reply.topics.iter().map(|topic| {
            let indexes = topic.partitions.iter().map(|it| it.partition_index);
            (topic.name.to_string(), indexes.collect())
        });
        topics.collect()
    };
    let all = told(list(&mut world, None));
    assert_eq!(all, [("a".to_owned(), vec![1]), ("t".to_owned(), vec![0])]);
    let asked = vec![
        named("t", &[0, 0, 5]),
        named("a", &[0]),
        named("nosuch", &[0]),
    ];
    let some = told(list(&mut world, Some(asked)));
    assert_eq!(some, [("t".to_owned(), vec![0, 0])]);
    assert!(told(list(&mut world, Some(Vec::new()))).is_empty());
}
