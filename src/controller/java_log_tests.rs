//! Logs that real controllers wrote, read batch by batch: from the records of a topic, a deletion
//! or a changed configuration follows the request that caused them, and the rules must decide on
//! the same records (versions included) on the image before them.

use bytes::Bytes;
use kafka_protocol::messages as km;
use kafka_protocol::messages::incremental_alter_configs_request as alter;

use super::testing::World;
use super::{Request, View, decide};
use crate::image::Image;
use crate::records::batch::Batch;
use crate::records::{ConfigRecord, PartitionRecord, Record, VersionedRecord};
use crate::types::{Now, Offset, Uuid};

/// Every data record of a log with its offset.
fn read(mut log: Bytes) -> Vec<(i64, VersionedRecord)> {
    let mut all = Vec::new();
    while let Some(batch) = Batch::take_from(&mut log).unwrap() {
        if batch.header().is_control() {
            continue;
        }
        for record in batch.records() {
            let record = record.unwrap();
            let value = VersionedRecord::decode(&record.value.unwrap()).unwrap();
            all.push((record.offset.0, value));
        }
    }
    all
}

/// How many of the records belong to the operation of the first one: a batch of Java's log may hold
/// several, because they wait for each other before they are written.
fn operation_length(records: &[(i64, VersionedRecord)]) -> usize {
    let joined = |first: &Record, next: &Record| match (first, next) {
        (Record::Topic(topic), Record::Config(config)) => config.resource_name == topic.name,
        (Record::Topic(topic), Record::Partition(partition)) => {
            partition.topic_id == topic.topic_id
        }
        (Record::Partition(first), Record::Partition(next)) => first.topic_id == next.topic_id,
        _ => false,
    };
    let first = &records[0].1.record;
    let rest = records[1..].iter();
    1 + rest
        .take_while(|(_, versioned)| joined(first, &versioned.record))
        .count()
}

/// The request that the records answer, `None` for what is not asked of these rules.
fn request(image: &Image, records: &[VersionedRecord]) -> Option<Request> {
    match &records.first()?.record {
        Record::Topic(topic) => Some(create_topic(&topic.name, &records[1..])),
        Record::RemoveTopic(removed) => {
            let topic = km::delete_topics_request::DeleteTopicState::default()
                .with_name(None)
                .with_topic_id(removed.topic_id);
            let request = km::DeleteTopicsRequest::default().with_topics(vec![topic]);
            Some(Request::DeleteTopics(request))
        }
        Record::Partition(first) => {
            let topic = image.topic_by_id(first.topic_id)?;
            let count = topic.partition_count() + records.len();
            let topic = km::create_partitions_request::CreatePartitionsTopic::default()
                .with_name(km::TopicName(topic.name().to_owned().into()))
                .with_count(i32::try_from(count).unwrap())
                .with_assignments(None);
            let request = km::CreatePartitionsRequest::default().with_topics(vec![topic]);
            Some(Request::CreatePartitions(request))
        }
        Record::Config(first) => Some(alter_config(first, records)),
        _ => None,
    }
}

fn create_topic(name: &str, rest: &[VersionedRecord]) -> Request {
    let partitions: Vec<&PartitionRecord> = rest
        .iter()
        .filter_map(|versioned| match &versioned.record {
            Record::Partition(partition) => Some(partition),
            _ => None,
        })
        .collect();
    let configs = rest.iter().filter_map(|versioned| match &versioned.record {
        Record::Config(config) => Some(
            km::create_topics_request::CreatableTopicConfig::default()
                .with_name(config.name.clone().into())
                .with_value(config.value.clone().map(Into::into)),
        ),
        _ => None,
    });
    let topic = km::create_topics_request::CreatableTopic::default()
        .with_name(km::TopicName(name.to_owned().into()))
        .with_num_partitions(i32::try_from(partitions.len()).unwrap())
        .with_replication_factor(i16::try_from(partitions[0].replicas.len()).unwrap())
        .with_configs(configs.collect());
    Request::CreateTopics(km::CreateTopicsRequest::default().with_topics(vec![topic]))
}

fn alter_config(first: &ConfigRecord, records: &[VersionedRecord]) -> Request {
    let configs = records
        .iter()
        .filter_map(|versioned| match &versioned.record {
            Record::Config(config) => Some(
                alter::AlterableConfig::default()
                    .with_name(config.name.clone().into())
                    .with_config_operation(i8::from(config.value.is_none()))
                    .with_value(config.value.clone().map(Into::into)),
            ),
            _ => None,
        });
    let resource = alter::AlterConfigsResource::default()
        .with_resource_type(first.resource_type)
        .with_resource_name(first.resource_name.clone().into())
        .with_configs(configs.collect());
    let request = km::IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    Request::IncrementalAlterConfigs(request)
}

/// Both with the same mark in place of a new topic's random id.
fn marked(records: &[VersionedRecord]) -> Vec<VersionedRecord> {
    let new = records
        .iter()
        .find_map(|versioned| match &versioned.record {
            Record::Topic(topic) => Some(topic.topic_id),
            _ => None,
        });
    let mut marked = records.to_vec();
    for versioned in &mut marked {
        match &mut versioned.record {
            Record::Topic(topic) => topic.topic_id = Uuid::max(),
            Record::Partition(partition) if Some(partition.topic_id) == new => {
                partition.topic_id = Uuid::max();
            }
            _ => {}
        }
    }
    marked
}

/// Replays a log, and before each operation of these rules decides on it. Returns how many.
fn decide_on(log: &'static [u8]) -> usize {
    let mut world = World::at_level(33);
    world.image = Image::empty();
    let all = read(Bytes::from_static(log));
    let mut rest = all.as_slice();
    let mut decided = 0;
    while let Some((base, _)) = rest.first() {
        let (operation, behind) = rest.split_at(operation_length(rest));
        rest = behind;
        let records: Vec<VersionedRecord> = operation
            .iter()
            .map(|(_, versioned)| versioned.clone())
            .collect();
        // What the bootstrap transaction holds is nobody's request.
        if world.image.open_transaction().is_none()
            && let Some(request) = request(&world.image, &records)
        {
            let view = View {
                image: &world.image,
                committed: &world.image,
                settings: &world.settings,
                now: Now::default(),
                next_offset: Offset(*base),
                kraft_version: 1,
            };
            let decision = decide(&view, &mut world.soft, 6, &world.context, request).unwrap();
            assert_eq!(
                marked(&decision.records),
                marked(&records),
                "at offset {base}"
            );
            decided += 1;
        }
        for (offset, versioned) in operation {
            world
                .image
                .replay(&versioned.record, Offset(*offset))
                .unwrap();
        }
    }
    decided
}

macro_rules! logs {
    ($($name:ident: $path:literal;)*) => {$(
        #[test]
        fn $name() {
            let decided = decide_on(include_bytes!(concat!(
                "../../fixtures/",
                $path,
                "/__cluster_metadata-0/00000000000000000000.log"
            )));
            assert!(decided >= 18, "only {decided} operations");
        }
    )*};
}

logs! {
    records_are_those_of_a_4_4_controller_of_a_dynamic_quorum: "4.4.0/lived/dynamic-stopped";
    records_are_those_of_a_4_4_controller_of_a_static_quorum: "4.4.0/lived/static-stopped";
    records_are_those_of_a_3_9_controller_of_a_dynamic_quorum: "3.9.2/lived/dynamic-stopped";
    records_are_those_of_a_3_9_controller_of_a_static_quorum: "3.9.2/lived/static-stopped";
}
