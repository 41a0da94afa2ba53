//! Every answer of ElectLeaders, and what is written for it.

use kafka_protocol::messages::elect_leaders_request::TopicPartitions;

use super::*;
use crate::controller::testing::World;
use crate::controller::{RECORDS_PER_OPERATION_MAX, Request};
use crate::records::{PartitionChangeRecord, PartitionRecord, Record};

const TOPIC: Uuid = Uuid::from_u128(0x70);

/// A partition on brokers 1, 2 and 3.
fn partition(leader: i32, isr: &[i32]) -> PartitionRecord {
    PartitionRecord {
        replicas: vec![1, 2, 3],
        isr: isr.to_vec(),
        leader,
        directories: (1..=3).map(|id| Uuid::from_u128(0x1000 + id)).collect(),
        ..PartitionRecord::default()
    }
}

/// Partition 0 is led by its first replica, 1 by another, 2 by another while the first lags, 3 by
/// nobody although all brokers live and nobody is eligible.
fn world() -> World {
    let mut world = World::with_brokers(&[1, 2, 3]);
    let partitions = vec![
        partition(1, &[1, 2, 3]),
        partition(2, &[1, 2, 3]),
        partition(3, &[2, 3]),
        partition(-1, &[]),
    ];
    world.topic("t", TOPIC, partitions);
    world.topic("all-well", Uuid::from_u128(0x71), vec![partition(1, &[1])]);
    world
}

fn of(topic: &'static str, partitions: &[i32]) -> TopicPartitions {
    TopicPartitions::default()
        .with_topic(TopicName(StrBytes::from_static_str(topic)))
        .with_partitions(partitions.to_vec())
}

fn asked(
    world: &mut World,
    kind: i8,
    topics: Option<Vec<TopicPartitions>>,
) -> Result<Decision, ApiError> {
    let request = ElectLeadersRequest::default()
        .with_election_type(kind)
        .with_topic_partitions(topics);
    world.ask(2, Request::ElectLeaders(request))
}

/// Results as (topic, partition, code, text), and what is written.
type Told = Vec<(String, i32, i16, Option<String>)>;

fn told(decision: &Decision) -> (Told, Vec<PartitionChangeRecord>) {
    let Reply::ElectLeaders(reply) = &decision.reply else {
        panic!("not expected: {:?}", decision.reply);
    };
    assert_eq!((reply.error_code, reply.throttle_time_ms), (0, 0));
    let topics = reply.replica_election_results.iter();
    let results = topics.flat_map(|topic| {
        topic.partition_result.iter().map(|it| {
            let message = it.error_message.as_ref().map(ToString::to_string);
            (
                topic.topic.to_string(),
                it.partition_id,
                it.error_code,
                message,
            )
        })
    });
    let records = decision.records.iter().map(|it| match &it.record {
        Record::PartitionChange(record) => record.clone(),
        other => panic!("not expected: {other:?}"),
    });
    (results.collect(), records.collect())
}

fn result(index: i32, code: i16, message: &str) -> (String, i32, i16, Option<String>) {
    let message = (!message.is_empty()).then(|| message.to_owned());
    ("t".to_owned(), index, code, message)
}

const NOT_NEEDED: &str = "Leader election not needed for topic partition.";
const NO_PREFERRED: &str = "The preferred leader was not available.";
const NOBODY: &str = "Eligible topic partition leaders are not available.";

#[test]
fn a_preferred_election_moves_the_leadership_where_the_first_replica_is_in_sync() {
    let decision = asked(&mut world(), 0, Some(vec![of("t", &[0, 1, 2, 3])])).unwrap();
    let (results, records) = told(&decision);
    let expected = [
        result(0, 84, NOT_NEEDED),
        result(1, 0, ""),
        result(2, 80, NO_PREFERRED),
        result(3, 80, NO_PREFERRED),
    ];
    assert_eq!(results, expected);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].partition_id, records[0].leader), (1, 1));
    assert!(!decision.atomic);
}

#[test]
fn a_preferred_election_without_the_preferred_replica_takes_another_in_sync() {
    let mut world = world();
    world.change(3, |it| it.fenced = 1);
    let (results, records) = told(&asked(&mut world, 0, Some(vec![of("t", &[2])])).unwrap());
    assert_eq!(results, [result(2, 0, "")]);
    assert_eq!(
        records[0].leader, 2,
        "the leader is away, and so is the first replica"
    );
}

#[test]
fn an_unclean_election_is_for_partitions_without_a_leader_whatever_the_topic_allows() {
    let (results, records) =
        told(&asked(&mut world(), 1, Some(vec![of("t", &[0, 2, 3])])).unwrap());
    let expected = [
        result(0, 84, NOT_NEEDED),
        result(2, 84, NOT_NEEDED),
        result(3, 0, ""),
    ];
    assert_eq!(results, expected);
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].leader, records[0].leader_recovery_state),
        (1, 1)
    );
    assert_eq!(records[0].isr, Some(vec![1]));
}

#[test]
fn an_unclean_election_without_a_living_replica_has_nobody_to_elect() {
    let mut world = world();
    for id in 1..=3 {
        world.change(id, |it| it.fenced = 1);
    }
    let (results, records) = told(&asked(&mut world, 1, Some(vec![of("t", &[3])])).unwrap());
    assert_eq!(results, [result(3, 83, NOBODY)]);
    assert!(records.is_empty());
}

#[test]
fn what_does_not_exist_is_told_by_its_name() {
    let topics = vec![of("nosuch", &[0, 7]), of("t", &[4, -1])];
    let (results, records) = told(&asked(&mut world(), 0, Some(topics)).unwrap());
    let sentences: Vec<_> = results
        .iter()
        .map(|(_, _, code, text)| (*code, text.as_deref().unwrap()))
        .collect();
    let expected = [
        (3, "No such topic as nosuch"),
        (3, "No such topic as nosuch"),
        (3, "No such partition as t-4"),
        (3, "No such partition as t--1"),
    ];
    assert_eq!(sentences, expected);
    assert!(records.is_empty());
}

#[test]
fn all_partitions_means_those_that_need_it_and_names_every_topic() {
    let decision = asked(&mut world(), 0, None).unwrap();
    let Reply::ElectLeaders(reply) = &decision.reply else {
        panic!("not expected: {:?}", decision.reply);
    };
    let topics = reply.replica_election_results.iter();
    let mut names: Vec<_> = topics.map(|topic| topic.topic.to_string()).collect();
    names.sort();
    assert_eq!(names, ["all-well", "t"]);
    let expected = [
        result(1, 0, ""),
        result(2, 80, NO_PREFERRED),
        result(3, 80, NO_PREFERRED),
    ];
    assert_eq!(told(&decision).0, expected);
    let (results, _) = told(&asked(&mut world(), 1, None).unwrap());
    assert_eq!(results, [result(3, 0, "")]);
}

#[test]
fn what_is_named_twice_is_answered_twice() {
    let topics = vec![of("t", &[1, 1]), of("t", &[0])];
    let (results, records) = told(&asked(&mut world(), 0, Some(topics)).unwrap());
    let expected = [
        result(1, 0, ""),
        result(1, 0, ""),
        result(0, 84, NOT_NEEDED),
    ];
    assert_eq!(results, expected);
    assert_eq!(records.len(), 2);
}

#[test]
fn a_type_that_does_not_exist_is_refused_unless_nothing_is_asked() {
    for kind in [2, -1] {
        let refused = asked(&mut world(), kind, None).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
        let text = format!("Unknown election type {kind}");
        assert_eq!(refused.message, Some(text));
    }
    let (results, records) = told(&asked(&mut world(), 9, Some(Vec::new())).unwrap());
    assert!(results.is_empty() && records.is_empty());
}

#[test]
fn more_elections_than_an_operation_may_have_are_refused() {
    let mut partitions = vec![1; RECORDS_PER_OPERATION_MAX];
    let request = |partitions: &[i32]| Some(vec![of("t", partitions)]);
    let all = asked(&mut world(), 0, request(&partitions)).unwrap();
    assert_eq!(all.records.len(), RECORDS_PER_OPERATION_MAX);
    partitions.push(1);
    let refused = asked(&mut world(), 0, request(&partitions)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
    let text = "Unable to perform excessively large batch operation.";
    assert_eq!(refused.message.as_deref(), Some(text));
}
