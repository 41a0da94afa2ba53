//! What one request may ask of one step: items are bounded, and no item costs a look at all others.

use std::collections::BTreeSet;

use kafka_protocol::messages as km;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::protocol::StrBytes;

use super::quotas::AlterClientQuotas;
use super::testing::World;
use super::{ITEMS_MAX, RECORDS_PER_OPERATION_MAX, Reply, Request, leaders};
use crate::image::Place;
use crate::records::PartitionRecord;
use crate::records::rpc::BrokerHeartbeatRequest;
use crate::types::{ApiError, ErrorCode, NodeId, Uuid};

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic_name(name: &str) -> km::TopicName {
    km::TopicName(text(name))
}

fn code(world: &mut World, version: i16, request: Request) -> ErrorCode {
    match world.ask(version, request) {
        Ok(_) => ErrorCode::None,
        Err(ApiError { code, .. }) => code,
    }
}

/// Brokers 1 and 2; a topic of so many partitions on both, led by 1.
fn world(partitions: usize) -> World {
    let mut world = World::with_brokers(&[1, 2]);
    let partition = PartitionRecord {
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        directories: [1, 2].map(|id| Uuid::from_u128(0x1000 + id)).to_vec(),
        ..PartitionRecord::default()
    };
    world.topic("t", Uuid::from_u128(0x70), vec![partition; partitions]);
    world
}

fn quotas(entries: usize, operations: usize) -> Request {
    use km::alter_client_quotas_request::{EntityData, EntryData, OpData};
    let operation = |at: usize| {
        OpData::default()
            .with_key(text(&format!("key-{at}")))
            .with_remove(true)
    };
    let entry = |at: usize| {
        let user = EntityData::default()
            .with_entity_type(text("user"))
            .with_entity_name(Some(text(&format!("u{at}"))));
        EntryData::default()
            .with_entity(vec![user])
            .with_ops((0..operations).map(operation).collect())
    };
    let body = km::AlterClientQuotasRequest::default();
    Request::AlterClientQuotas(AlterClientQuotas {
        body: body.with_entries((0..entries).map(entry).collect()),
        unknown_hosts: BTreeSet::new(),
    })
}

fn elections(name: &str, partitions: usize) -> Request {
    use km::elect_leaders_request::TopicPartitions;
    let topic = TopicPartitions::default()
        .with_topic(topic_name(name))
        .with_partitions((0..partitions as i32).collect());
    let request = km::ElectLeadersRequest::default().with_topic_partitions(Some(vec![topic]));
    Request::ElectLeaders(request)
}

fn moves(name: &str, partitions: usize, replicas: &[i32]) -> Request {
    use km::alter_partition_reassignments_request as asked;
    let to: Vec<km::BrokerId> = replicas.iter().map(|id| km::BrokerId(*id)).collect();
    let partition = |index| {
        asked::ReassignablePartition::default()
            .with_partition_index(index)
            .with_replicas(Some(to.clone()))
    };
    let topic = asked::ReassignableTopic::default()
        .with_name(topic_name(name))
        .with_partitions((0..partitions as i32).map(partition).collect());
    let request = km::AlterPartitionReassignmentsRequest::default();
    Request::AlterPartitionReassignments(request.with_topics(vec![topic]))
}

fn listed(partitions: usize) -> Request {
    use km::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
    let topic = ListPartitionReassignmentsTopics::default()
        .with_name(topic_name("t"))
        .with_partition_indexes((0..partitions as i32).collect());
    let request = km::ListPartitionReassignmentsRequest::default();
    Request::ListPartitionReassignments(request.with_topics(Some(vec![topic])))
}

#[test]
fn a_request_of_more_items_than_one_step_looks_at_is_refused() {
    let mut world = world(1);
    let too_many = ITEMS_MAX + 1;
    let policy = ErrorCode::PolicyViolation;
    assert_eq!(code(&mut world, 1, quotas(ITEMS_MAX / 2 + 1, 1)), policy);
    assert_eq!(code(&mut world, 1, quotas(1, too_many)), policy);
    assert_eq!(code(&mut world, 1, quotas(1, 1_000)), ErrorCode::None);
    assert_eq!(code(&mut world, 2, elections("t", too_many)), policy);
    assert_eq!(code(&mut world, 1, moves("t", too_many, &[1])), policy);
    assert_eq!(code(&mut world, 0, listed(too_many)), policy);
    assert_eq!(code(&mut world, 0, listed(20_000)), ErrorCode::None);
}

#[test]
fn more_topics_than_one_operation_creates_are_refused_although_each_is_wrong() {
    let mut world = world(1);
    let wrong = |name: usize| {
        CreatableTopic::default()
            .with_name(topic_name(&format!("{name}")))
            .with_num_partitions(0)
            .with_replication_factor(1)
    };
    let (most, policy) = (RECORDS_PER_OPERATION_MAX, ErrorCode::PolicyViolation);
    // With a second topic of each name, nothing is left for the rule: such a request is not late.
    for (count, names, wanted, nothing_left) in [
        (most + 1, most + 1, policy, false),
        (1_000, 1_000, ErrorCode::None, false),
        (most + 2, most / 2 + 1, policy, false),
        (1_000, 500, ErrorCode::None, true),
    ] {
        let topics = (0..count).map(|at| wrong(at % names)).collect();
        let request = km::CreateTopicsRequest::default()
            .with_timeout_ms(0)
            .with_topics(topics);
        assert_eq!(super::creates_nothing(&request), nothing_left, "{count}");
        assert_eq!(code(&mut world, 7, Request::CreateTopics(request)), wanted);
    }
}

/// A name of 32 KiB that an answer repeats for each of a hundred thousand partitions would take
/// gigabytes.
#[test]
fn a_long_name_that_no_topic_has_is_not_repeated_whole_for_every_partition() {
    let mut world = world(1);
    let long = "n".repeat(32_000);
    let Reply::ElectLeaders(reply) = world.ask(2, elections(&long, 50)).unwrap().reply else {
        panic!("another reply");
    };
    let results = &reply.replica_election_results[0].partition_result;
    assert_eq!(results.len(), 50);
    for result in results {
        let message = result.error_message.as_deref().unwrap();
        assert!(
            message.len() < 300 && message.contains("nnn..."),
            "{message}"
        );
    }
    let reply = world.ask(1, moves(&long, 50, &[1])).unwrap().reply;
    let Reply::AlterPartitionReassignments(reply) = reply else {
        panic!("another reply");
    };
    for result in &reply.responses[0].partitions {
        let message = result.error_message.as_deref().unwrap();
        assert!(
            message.len() < 300 && message.contains("nnn..."),
            "{message}"
        );
    }
}

#[test]
fn moves_behind_the_last_record_that_fits_are_refused_without_being_worked_out() {
    let most = RECORDS_PER_OPERATION_MAX;
    let mut world = world(most + 2);
    let decision = world.ask(1, moves("t", most + 2, &[2])).unwrap();
    assert_eq!(decision.records.len(), most);
    let Reply::AlterPartitionReassignments(reply) = decision.reply else {
        panic!("another reply");
    };
    let results = &reply.responses[0].partitions;
    let codes: Vec<i16> = results.iter().map(|it| it.error_code).collect();
    assert!(codes[..most].iter().all(|code| *code == 0));
    assert_eq!(codes[most..], [-1, -1]);
}

#[test]
fn a_broker_of_many_partitions_is_worked_out_a_slice_in_a_step() {
    let step = |partitions: usize| {
        let mut records = Vec::new();
        let rest = world(partitions)
            .rule(|view, _| leaders::abandon(view, NodeId(2), Place::default(), &mut records));
        (records.len(), rest.is_some())
    };
    assert_eq!(step(50), (50, false));
    assert_eq!(step(leaders::SLICE + 50), (leaders::SLICE, true));
}

#[test]
fn of_many_directories_that_fail_at_once_replicas_leave_the_isr_and_no_others() {
    let mut world = World::at_level(33);
    let dir = |number: u32| Uuid::from_u128(0x2000 + u128::from(number));
    let directories: Vec<Uuid> = (0..2_000).map(dir).collect();
    world.broker(1, &directories);
    world.broker(2, &[Uuid::from_u128(0x1002)]);
    let on = |number: u32| PartitionRecord {
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        directories: vec![dir(number), Uuid::from_u128(0x1002)],
        ..PartitionRecord::default()
    };
    world.topic(
        "t",
        Uuid::from_u128(0x70),
        vec![on(9), on(5), on(1_999), on(7)],
    );
    let mut offline: Vec<Uuid> = (0..1_999).rev().map(dir).collect();
    // Of others it may say what it wants.
    offline.extend((0..1_999).map(|number| Uuid::from_u128(0x9_0000 + number)));
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: world.image.broker(NodeId(1)).unwrap().epoch.0,
        current_metadata_offset: world.next_offset() - 1,
        offline_log_dirs: offline,
        ..BrokerHeartbeatRequest::default()
    };
    let decision = world.ask(1, Request::BrokerHeartbeat(heartbeat)).unwrap();
    let records = decision.records.iter();
    let changes: Vec<String> = records
        .map(|it| it.record.json(it.version).to_string())
        .collect();
    assert_eq!(changes.len(), 4, "{changes:?}");
    for (change, partition) in changes.iter().zip([0, 1, 3]) {
        let wanted = format!("\"partitionId\":{partition},");
        assert!(
            change.contains(&wanted) && change.contains("\"isr\":[2]"),
            "{change}"
        );
    }
}
