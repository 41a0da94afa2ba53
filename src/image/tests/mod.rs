//! What each record does to an image, and the laws under random records.

mod cluster;
pub(super) mod random;
mod sweep;
mod topics;

use super::*;
use crate::records::{
    BrokerEndpoint, ConfigRecord, PartitionChangeRecord, PartitionRecord, Record,
    RegisterBrokerRecord, TopicRecord,
};
use crate::types::{PartitionId, ids};

pub(super) const TOPIC_ID: Uuid = Uuid::from_u128(0x1000);

/// Replays records at rising offsets and checks the laws at the end.
pub(super) fn replayed(image: &Image, records: impl IntoIterator<Item = Record>) -> Image {
    let mut image = image.clone();
    for (offset, record) in (100..).zip(records) {
        image.replay(&record, Offset(offset)).expect("sane record");
    }
    image.check().expect("lawful image");
    image
}

/// The fault of a record; the image must not have changed.
pub(super) fn fault(image: &Image, record: impl Into<Record>) -> ReplayFault {
    let mut changed = image.clone();
    let result = changed.replay(&record.into(), Offset(7));
    assert!(changed == *image);
    result.expect_err("a record that makes no sense")
}

pub(super) fn topic(name: &str, id: Uuid) -> Record {
    TopicRecord {
        name: name.to_owned(),
        topic_id: id,
        ..Default::default()
    }
    .into()
}

pub(super) fn partition(index: i32) -> PartitionRecord {
    PartitionRecord {
        partition_id: index,
        topic_id: TOPIC_ID,
        replicas: vec![1, 2, 3],
        isr: vec![1, 2, 3],
        leader: 1,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![ids::DIR_UNASSIGNED; 3],
        ..Default::default()
    }
}

pub(super) fn change() -> PartitionChangeRecord {
    PartitionChangeRecord {
        partition_id: 0,
        topic_id: TOPIC_ID,
        ..Default::default()
    }
}

pub(super) fn register(id: i32, epoch: i64) -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: id,
        broker_epoch: epoch,
        incarnation_id: Uuid::from_u128(5),
        end_points: vec![BrokerEndpoint {
            name: "PLAINTEXT".to_owned(),
            host: "localhost".to_owned(),
            port: 9092,
            ..Default::default()
        }],
        log_dirs: vec![Uuid::from_u128(u128::MAX), Uuid::from_u128(0x2000)],
        ..Default::default()
    }
}

pub(super) fn config(kind: i8, name: &str, key: &str, value: Option<&str>) -> Record {
    ConfigRecord {
        resource_type: kind,
        resource_name: name.to_owned(),
        name: key.to_owned(),
        value: value.map(str::to_owned),
        ..Default::default()
    }
    .into()
}

pub(super) fn one_topic() -> Image {
    replayed(
        &Image::empty(),
        [
            topic("t", TOPIC_ID),
            partition(0).into(),
            partition(1).into(),
        ],
    )
}

pub(super) fn the_partition(image: &Image) -> Partition<'_> {
    let topic = image.topic_by_id(TOPIC_ID).expect("the topic exists");
    topic.partition(PartitionId(0)).expect("partition 0 exists")
}
