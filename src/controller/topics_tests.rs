//! Rules of topics that no recorded answer meets: levels, directories, fenced and cordoned brokers,
//! limits, and what is not committed yet.

use kafka_protocol::messages as km;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};

use super::testing::World;
use super::{Decision, Reply, Request, View, decide};
use crate::records::{PartitionRecord, Record};
use crate::types::{ErrorCode, NodeId, Now, Offset, Uuid};

fn topic(name: &str, partitions: i32, factor: i16) -> CreatableTopic {
    CreatableTopic::default()
        .with_name(km::TopicName(name.to_owned().into()))
        .with_num_partitions(partitions)
        .with_replication_factor(factor)
}

fn create(topics: Vec<CreatableTopic>) -> Request {
    Request::CreateTopics(km::CreateTopicsRequest::default().with_topics(topics))
}

fn by_hand(name: &str, brokers: &[i32]) -> CreatableTopic {
    let assignment = CreatableReplicaAssignment::default()
        .with_broker_ids(brokers.iter().map(|id| km::BrokerId(*id)).collect());
    topic(name, -1, -1).with_assignments(vec![assignment])
}

fn partitions(decision: &Decision) -> Vec<(i16, &PartitionRecord)> {
    decision
        .records
        .iter()
        .filter_map(|versioned| match &versioned.record {
            Record::Partition(partition) => Some((versioned.version, partition)),
            _ => None,
        })
        .collect()
}

fn codes(reply: &Reply) -> Vec<i16> {
    match reply {
        Reply::CreateTopics(reply) => reply.topics.iter().map(|topic| topic.error_code).collect(),
        Reply::DeleteTopics(reply) => reply.responses.iter().map(|it| it.error_code).collect(),
        Reply::CreatePartitions(reply) => reply.results.iter().map(|it| it.error_code).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_version_of_a_partition_follows_the_metadata_version() {
    for (level, version, has_directories) in [(7, 0, false), (16, 0, false), (17, 1, true)]
        .into_iter()
        .chain([(22, 1, true), (23, 2, true), (33, 2, true)])
    {
        let mut world = World::at_level(level);
        world.broker(2, &[Uuid::from_u128(0x200)]);
        let decision = world.ask(7, create(vec![topic("t", 1, 1)])).unwrap();
        let (found, partition) = partitions(&decision)[0];
        assert_eq!(found, version, "level {level}");
        assert_eq!(
            !partition.directories.is_empty(),
            has_directories,
            "level {level}"
        );
    }
}

#[test]
fn a_replica_goes_to_the_only_directory_or_waits_for_the_broker_to_choose() {
    let mut world = World::at_level(33);
    let (only, other) = (Uuid::from_u128(0x200), Uuid::from_u128(0x300));
    world.broker(1, &[only]);
    world.broker(2, &[other, Uuid::from_u128(0x301)]);
    world.broker(3, &[]);
    let decision = world
        .ask(7, create(vec![by_hand("t", &[1, 2, 3])]))
        .unwrap();
    let expected = [only, Uuid::from_u128(1), Uuid::nil()];
    assert_eq!(partitions(&decision)[0].1.directories, expected);
}

#[test]
fn only_active_replicas_start_in_sync_and_the_first_of_them_leads() {
    let mut world = World::with_brokers(&[1, 2, 3]);
    world.change(1, |change| change.fenced = 1);
    world.change(3, |change| change.in_controlled_shutdown = 1);
    let decision = world
        .ask(7, create(vec![by_hand("t", &[1, 3, 2])]))
        .unwrap();
    let (_, partition) = partitions(&decision)[0];
    assert_eq!(partition.replicas, [1, 3, 2]);
    assert_eq!(
        (partition.isr.as_slice(), partition.leader),
        ([2].as_slice(), 2)
    );

    world.change(2, |change| change.fenced = 1);
    let decision = world.ask(7, create(vec![by_hand("t", &[1, 3, 2]), topic("u", 1, 1)]));
    let codes = codes(&decision.unwrap().reply);
    let invalid = ErrorCode::InvalidReplicaAssignment.code();
    assert_eq!(codes, [invalid, ErrorCode::InvalidReplicationFactor.code()]);
}

#[test]
fn a_broker_on_its_way_out_gets_no_replica_until_it_registers_again() {
    let mut world = World::with_brokers(&[1, 2]);
    let two = || create(vec![topic("t", 1, 2)]);
    world.change(1, |change| change.in_controlled_shutdown = 1);
    world.soft.brokers.register(NodeId(1));
    world.soft.brokers.begin_shutdown(NodeId(1), 5);
    let refused = world.ask(7, two()).unwrap();
    let invalid = ErrorCode::InvalidReplicationFactor.code();
    assert_eq!(codes(&refused.reply), [invalid]);
    world.soft.brokers.register(NodeId(1));
    let placed = world.ask(7, two()).unwrap();
    assert_eq!(codes(&placed.reply), [0]);
    assert_eq!(partitions(&placed)[0].1.isr, [2]);
}

#[test]
fn a_broker_with_only_cordoned_directories_gets_no_replica() {
    let mut world = World::with_brokers(&[1, 2]);
    let directory = Uuid::from_u128(0x1001);
    world.change(1, |change| change.cordoned_log_dirs = Some(vec![directory]));
    for seed in 0..20 {
        world.soft.rng = crate::types::SplitMix::new(seed);
        let decision = world.ask(7, create(vec![topic("t", 3, 1)])).unwrap();
        assert!(
            partitions(&decision)
                .iter()
                .all(|(_, it)| it.replicas == [2])
        );
    }
    let decision = world
        .ask(7, create(vec![topic("t", 1, 2), by_hand("u", &[1])]))
        .unwrap();
    let invalid = ErrorCode::InvalidReplicaAssignment.code();
    assert_eq!(
        codes(&decision.reply),
        [ErrorCode::InvalidReplicationFactor.code(), invalid]
    );
    world.change(1, |change| change.cordoned_log_dirs = Some(Vec::new()));
    let decision = world.ask(7, create(vec![topic("t", 1, 2)])).unwrap();
    assert_eq!(codes(&decision.reply), [0]);
}

#[test]
fn a_smallest_isr_of_a_new_topic_is_followed_by_a_cleared_elr() {
    let mut world = World::with_brokers(&[1]);
    let config = CreatableTopicConfig::default()
        .with_name("min.insync.replicas".into())
        .with_value(Some("2".into()));
    let asked = topic("t", 1, 1).with_configs(vec![config]);
    let decision = world.ask(7, create(vec![asked])).unwrap();
    let names: Vec<&str> = decision.records.iter().map(|it| it.record.name()).collect();
    let expected = [
        "TOPIC_RECORD",
        "CONFIG_RECORD",
        "CLEAR_ELR_RECORD",
        "PARTITION_RECORD",
    ];
    assert_eq!(names, expected);
    assert_eq!(decision.records.len(), names.len());
}

#[test]
fn validating_writes_nothing_and_answers_the_same() {
    let mut world = World::with_brokers(&[1]);
    let mut request = km::CreateTopicsRequest::default();
    request.topics = vec![topic("t", 3, 1), topic("bad name", 1, 1)];
    request.validate_only = true;
    let decision = world.ask(7, Request::CreateTopics(request)).unwrap();
    assert!(decision.records.is_empty());
    let Reply::CreateTopics(reply) = decision.reply else {
        unreachable!()
    };
    assert!(!reply.topics[0].topic_id.is_nil());
    assert_eq!(reply.topics[0].num_partitions, 3);
    assert_eq!(
        reply.topics[1].error_code,
        ErrorCode::InvalidTopicException.code()
    );
}

#[test]
fn counts_that_would_overflow_or_exhaust_memory_are_refused_up_front() {
    let mut world = World::with_brokers(&[1]);
    world.run(7, create(vec![topic("grows", 1, 1)])).unwrap();
    let huge = vec![topic("a", i32::MAX, 1), topic("b", i32::MAX, 1)];
    let grow = |name: &str, count| {
        km::create_partitions_request::CreatePartitionsTopic::default()
            .with_name(km::TopicName(name.to_owned().into()))
            .with_count(count)
            .with_assignments(None)
    };
    let growing = km::CreatePartitionsRequest::default().with_topics(vec![grow("grows", i32::MAX)]);
    let names = (0..10_001).map(|index| km::TopicName(format!("t{index}").into()));
    let deleting = km::DeleteTopicsRequest::default().with_topic_names(names.collect());
    for (version, request) in [
        (7, create(huge)),
        (3, Request::CreatePartitions(growing)),
        (5, Request::DeleteTopics(deleting)),
    ] {
        let error = world.ask(version, request).unwrap_err();
        assert_eq!(error.code, ErrorCode::PolicyViolation);
    }
    let negative = vec![topic("a", i32::MIN, i16::MIN)];
    assert_eq!(
        codes(&world.ask(7, create(negative)).unwrap().reply),
        [ErrorCode::InvalidReplicationFactor.code()]
    );
}

#[test]
fn deleting_looks_names_up_in_what_is_committed_and_deletes_what_is_left() {
    let mut world = World::with_brokers(&[1]);
    world.run(7, create(vec![topic("old", 1, 1)])).unwrap();
    let committed = world.image.clone();
    let id = committed.topic_by_name("old").unwrap().id();
    world.run(7, create(vec![topic("new", 1, 1)])).unwrap();
    let ask = |world: &mut World, name: &str| {
        let request = km::DeleteTopicsRequest::default()
            .with_topic_names(vec![km::TopicName(name.to_owned().into())]);
        let view = View {
            image: &world.image,
            committed: &committed,
            settings: &world.settings,
            now: Now::default(),
            next_offset: Offset(0),
            kraft_version: 1,
        };
        let request = Request::DeleteTopics(request);
        decide(&view, &mut world.soft, 5, &world.context, request).unwrap()
    };
    let decision = ask(&mut world, "new");
    assert_eq!(
        codes(&decision.reply),
        [ErrorCode::UnknownTopicOrPartition.code()]
    );
    let decision = ask(&mut world, "old");
    assert_eq!(codes(&decision.reply), [0]);
    assert!(matches!(&decision.records[..], [it] if it.record.name() == "REMOVE_TOPIC_RECORD"));
    world.replay(&decision.records[0]);
    let decision = ask(&mut world, "old");
    assert_eq!(codes(&decision.reply), [ErrorCode::UnknownTopicId.code()]);
    assert!(decision.records.is_empty(), "{id} is gone already");
}

#[test]
fn a_name_and_the_id_it_belongs_to_are_a_duplicate() {
    let mut world = World::with_brokers(&[1]);
    world.run(7, create(vec![topic("t", 1, 1)])).unwrap();
    let id = world.image.topic_by_name("t").unwrap().id();
    let state = |name: Option<&str>, id| {
        km::delete_topics_request::DeleteTopicState::default()
            .with_name(name.map(|name| km::TopicName(name.to_owned().into())))
            .with_topic_id(id)
    };
    let both = vec![state(None, id), state(Some("t"), Uuid::nil())];
    let request = km::DeleteTopicsRequest::default().with_topics(both);
    let decision = world.ask(6, Request::DeleteTopics(request)).unwrap();
    assert_eq!(codes(&decision.reply), [ErrorCode::InvalidRequest.code()]);
    assert!(decision.records.is_empty());
    // An id that is named twice does not let its name through.
    let twice = vec![
        state(None, id),
        state(Some("t"), Uuid::nil()),
        state(None, id),
    ];
    let request = km::DeleteTopicsRequest::default().with_topics(twice);
    let decision = world.ask(6, Request::DeleteTopics(request)).unwrap();
    assert_eq!(
        codes(&decision.reply),
        [ErrorCode::InvalidRequest.code(); 2]
    );
    assert!(decision.records.is_empty());
}

#[test]
fn deletion_can_be_switched_off() {
    let mut world = World::with_brokers(&[1]);
    world.settings.delete_topic_enable = false;
    for (version, code) in [
        (1, ErrorCode::InvalidRequest),
        (3, ErrorCode::TopicDeletionDisabled),
        (6, ErrorCode::TopicDeletionDisabled),
    ] {
        let request = Request::DeleteTopics(km::DeleteTopicsRequest::default());
        assert_eq!(world.ask(version, request).unwrap_err().code, code);
    }
}

#[test]
fn defaults_of_the_file_apply_to_what_is_not_said() {
    let mut world = World::with_brokers(&[1, 2]);
    world.settings.num_partitions = 4;
    world.settings.default_replication_factor = 2;
    let decision = world.ask(7, create(vec![topic("t", -1, -1)])).unwrap();
    let made = partitions(&decision);
    assert_eq!(made.len(), 4);
    assert!(
        made.iter()
            .all(|(_, partition)| partition.replicas.len() == 2)
    );
    world.settings.num_partitions = 10_001;
    let error = world.ask(7, create(vec![topic("t", -1, -1)])).unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyViolation);
}
