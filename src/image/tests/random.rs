//! Laws under random records: sane ones, and any that decode.

use proptest::prelude::*;

use super::super::*;
use crate::records::{
    AbortTransactionRecord, BeginTransactionRecord, BrokerRegistrationChangeRecord, ClearElrRecord,
    ConfigRecord, EndTransactionRecord, FeatureLevelRecord, PartitionChangeRecord, PartitionRecord,
    ProducerIdsRecord, Record, RegisterBrokerRecord, RemoveTopicRecord, TopicRecord,
    UnregisterBrokerRecord, VersionedRecord,
};
use crate::types::{SplitMix, ids};

const NAMES: [&str; 6] = ["a.b", "a_b", "orders", "x.y.z", "x_y.z", "events"];

pub(in crate::image) fn feature(name: &str, level: i16) -> Record {
    FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..Default::default()
    }
    .into()
}

/// An image of the newest level, so that a snapshot can hold everything.
pub(in crate::image) fn newest() -> Image {
    let mut image = Image::empty();
    for record in [
        feature("metadata.version", 33),
        feature("eligible.leader.replicas.version", 1),
    ] {
        image.replay(&record, Offset(0)).expect("known levels");
    }
    image
}

fn pick(rng: &mut SplitMix, list: &[i32]) -> Vec<i32> {
    let keep = |id: &&i32| rng.below(3) != 0 || **id < 0;
    list.iter().filter(keep).copied().collect()
}

/// A record that a controller could have written on `image`.
pub(in crate::image) fn sane(image: &Image, rng: &mut SplitMix) -> Record {
    let topics: Vec<_> = image.topics().collect();
    let some_topic = match topics.len() {
        0 => None,
        count => Some(topics[rng.below(count as u64) as usize]),
    };
    let broker = rng.below(5) as i32;
    let epoch = image.broker(NodeId(broker)).map(|known| known.epoch.0);
    match (rng.below(12), some_topic, epoch) {
        (0..=2, Some(topic), _) => new_partition(topic, rng),
        (3..=5, Some(topic), _) if topic.partition_count() > 0 => changed_partition(topic, rng),
        (6, Some(topic), _) if rng.below(3) == 0 => RemoveTopicRecord {
            topic_id: topic.id(),
            ..Default::default()
        }
        .into(),
        (7, Some(topic), _) => ConfigRecord {
            resource_type: configs::TOPIC,
            resource_name: topic.name().to_owned(),
            name: ["retention.ms", "segment.ms"][rng.below(2) as usize].to_owned(),
            value: (rng.below(3) != 0).then(|| rng.below(9).to_string()),
            ..Default::default()
        }
        .into(),
        (8, _, Some(broker_epoch)) => BrokerRegistrationChangeRecord {
            broker_id: broker,
            broker_epoch,
            fenced: rng.below(3) as i8 - 1,
            cordoned_log_dirs: (rng.below(2) == 0).then(Vec::new),
            ..Default::default()
        }
        .into(),
        (9, _, Some(broker_epoch)) => UnregisterBrokerRecord {
            broker_id: broker,
            broker_epoch,
            ..Default::default()
        }
        .into(),
        (8..=9, _, None) => RegisterBrokerRecord {
            broker_id: broker,
            broker_epoch: rng.below(100) as i64,
            incarnation_id: rng.uuid(),
            log_dirs: vec![rng.uuid(), rng.uuid()],
            ..Default::default()
        }
        .into(),
        (10, Some(_), _) => ClearElrRecord::default().into(),
        (11, _, _) => ProducerIdsRecord {
            next_producer_id: image.next_producer_id().saturating_add(1000),
            ..Default::default()
        }
        .into(),
        _ => new_topic(image, rng),
    }
}

fn new_topic(image: &Image, rng: &mut SplitMix) -> Record {
    let mut name = NAMES[rng.below(NAMES.len() as u64) as usize].to_owned();
    while image.topic_by_name(&name).is_some() {
        name.push_str("-more");
    }
    TopicRecord {
        name,
        topic_id: rng.uuid(),
        ..Default::default()
    }
    .into()
}

fn new_partition(topic: TopicRef<'_>, rng: &mut SplitMix) -> Record {
    let first = rng.below(4) as i32;
    let replicas = vec![first, first + 1, first + 2];
    PartitionRecord {
        partition_id: topic.partition_count() as i32,
        topic_id: topic.id(),
        isr: replicas.clone(),
        replicas,
        leader: first,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![ids::DIR_UNASSIGNED, rng.uuid(), ids::DIR_LOST],
        ..Default::default()
    }
    .into()
}

fn changed_partition(topic: TopicRef<'_>, rng: &mut SplitMix) -> Record {
    let all: Vec<_> = topic.partitions().collect();
    let (id, partition) = all[rng.below(all.len() as u64) as usize];
    let isr = pick(rng, partition.replicas());
    let out: Vec<i32> = partition
        .replicas()
        .iter()
        .filter(|id| !isr.contains(id))
        .copied()
        .collect();
    PartitionChangeRecord {
        partition_id: id.0,
        topic_id: topic.id(),
        leader: isr.first().copied().unwrap_or(-1),
        eligible_leader_replicas: Some(pick(rng, &out)),
        last_known_elr: (rng.below(4) == 0).then(|| out.clone()),
        removing_replicas: (rng.below(4) == 0).then(|| out.clone()),
        leader_recovery_state: rng.below(3) as i8 - 1,
        isr: Some(isr),
        ..Default::default()
    }
    .into()
}

/// A random record of any type, whose keys are narrowed so that some of them meet.
pub(in crate::image) fn any_record(rng: &mut SplitMix) -> Record {
    let index = rng.below(Record::TYPES.len() as u64) as usize;
    let mut record = Record::arbitrary(rng, index, Record::TYPES[index].version_max);
    let topic = Uuid::from_u128(u128::from(rng.below(4)));
    let node = rng.below(3) as i32;
    match &mut record {
        Record::Topic(record) => record.topic_id = topic,
        Record::RemoveTopic(record) => record.topic_id = topic,
        Record::Partition(record) => {
            record.topic_id = topic;
            record
                .directories
                .resize(record.replicas.len(), ids::DIR_UNASSIGNED);
            record.partition_id %= 8;
            record.leader_recovery_state &= 1;
        }
        Record::PartitionChange(record) => {
            record.topic_id = topic;
            record.partition_id = rng.below(8) as i32;
            record.leader_recovery_state &= 1;
        }
        Record::RegisterBroker(record) => {
            (record.broker_id, record.broker_epoch) = (node, 0);
            for endpoint in &mut record.end_points {
                endpoint.security_protocol &= 3;
            }
        }
        Record::BrokerRegistrationChange(record) => {
            (record.broker_id, record.broker_epoch) = (node, 0);
            (record.fenced, record.in_controlled_shutdown) = (1, 1);
        }
        Record::UnregisterBroker(record) => (record.broker_id, record.broker_epoch) = (node, 0),
        Record::FenceBroker(record) => (record.id, record.epoch) = (node, 0),
        Record::UnfenceBroker(record) => (record.id, record.epoch) = (node, 0),
        Record::Config(record) => {
            record.resource_type = configs::BROKER;
            record.resource_name = node.to_string();
        }
        // A value that is not a number would not equal itself.
        Record::ClientQuota(record) => record.value = f64::from(node),
        _ => {}
    }
    record
}

pub(in crate::image) fn emitted(image: &Image) -> (Vec<VersionedRecord>, Losses) {
    let mut records = Vec::new();
    let losses = image.emit(&mut |record| records.push(record));
    (records, losses)
}

/// Law 7, through the bytes of the records.
fn assert_survives_a_snapshot(image: &Image) {
    let (records, losses) = emitted(image);
    assert!(losses.is_empty(), "{losses:?}");
    let mut copy = Image::empty();
    for record in &records {
        let bytes = record.encode().expect("the version holds every field");
        let record = VersionedRecord::decode(&bytes).expect("just encoded");
        copy.replay(&record.record, Offset(9))
            .expect("emitted by an image");
    }
    assert!(copy == *image.settled());
    assert_eq!(emitted(&copy).0, records);
}

proptest! {
    #[test]
    fn sane_records_keep_the_laws_and_forks_do_not_move(seed: u64, steps in 0..250_usize) {
        let mut rng = SplitMix::new(seed);
        let mut image = newest();
        let mut forks = Vec::new();
        for offset in 0..steps {
            if rng.below(20) == 0 {
                forks.push((image.clone(), emitted(&image).0));
            }
            let record = sane(&image, &mut rng);
            image.replay(&record, Offset(offset as i64)).expect("a sane record");
            image.check().expect("a lawful image");
        }
        assert_survives_a_snapshot(&image);
        for (fork, records) in forks {
            fork.check().expect("a lawful fork");
            prop_assert_eq!(emitted(&fork).0, records);
        }
    }

    #[test]
    fn any_record_is_replayed_or_refused_without_a_trace(seed: u64, steps in 0..150_usize) {
        let mut rng = SplitMix::new(seed);
        let mut image = newest();
        for offset in 0..steps {
            let record = any_record(&mut rng);
            let before = image.clone();
            if image.replay(&record, Offset(offset as i64)).is_err() {
                prop_assert!(image == before);
            }
        }
        // A random feature record may have switched eligible leader replicas off.
        let elr = feature("eligible.leader.replicas.version", 1);
        image.replay(&elr, Offset(999)).expect("a known level");
        assert_survives_a_snapshot(&image);
    }

    #[test]
    fn an_older_level_writes_what_it_can_hold_and_names_the_rest(seed: u64, level in 7..34_i16) {
        let mut rng = SplitMix::new(seed);
        let mut image = newest();
        for offset in 0..100 {
            let record = match rng.below(4) {
                0 => any_record(&mut rng),
                _ => sane(&image, &mut rng),
            };
            // A wild record may be refused, and leaves no trace then.
            let _ = image.replay(&record, Offset(offset));
        }
        if image.open_transaction().is_some() {
            let end = Record::from(EndTransactionRecord::default());
            image.replay(&end, Offset(998)).expect("one is open");
        }
        let metadata_version = feature("metadata.version", level);
        image.replay(&metadata_version, Offset(999)).expect("a known level");
        let (records, losses) = emitted(&image);
        let mut copy = Image::empty();
        for record in &records {
            let highest = highest_version(record.record.name(), level);
            prop_assert_eq!(Some(record.version), highest, "{} at {}", record.record.name(), level);
            record.encode().expect("the version holds every field");
            copy.replay(&record.record, Offset(9)).expect("emitted by an image");
        }
        prop_assert_eq!(copy == image, losses.is_empty());
    }

    #[test]
    fn a_transaction_is_withheld_until_its_end_and_dropped_on_abort(
        seed: u64, before in 0..60_usize, inside in 0..60_usize,
    ) {
        let mut rng = SplitMix::new(seed);
        let mut image = newest();
        for offset in 0..before {
            let record = sane(&image, &mut rng);
            image.replay(&record, Offset(offset as i64)).expect("a sane record");
        }
        let untouched = image.clone();
        let mut plain = image.clone();
        let begin = Record::from(BeginTransactionRecord::default());
        image.replay(&begin, Offset(1_000)).expect("none is open");
        for offset in 0..inside {
            let record = sane(&image, &mut rng);
            image.replay(&record, Offset(1_001 + offset as i64)).expect("a sane record");
            plain.replay(&record, Offset(1_001 + offset as i64)).expect("a sane record");
            // Left open, it is not shown: neither to readers nor in a snapshot.
            prop_assert!(*image.settled() == untouched);
        }
        prop_assert_eq!(emitted(&image).0, emitted(&untouched).0);
        prop_assert_eq!(image.open_transaction(), Some(Offset(1_000)));
        let mut aborted = image.clone();
        let abort = Record::from(AbortTransactionRecord::default());
        aborted.replay(&abort, Offset(2_000)).expect("one is open");
        prop_assert!(aborted == untouched);
        prop_assert!(aborted.diff(&untouched).is_empty());
        let end = Record::from(EndTransactionRecord::default());
        image.replay(&end, Offset(2_000)).expect("one is open");
        prop_assert!(image == plain && *image.settled() == plain);
        image.check().expect("a lawful image");
    }
}

/// The version that a level writes a snapshot's record at, `None` when it must not write it: the
/// levels that brought each version (see the release's records).
fn highest_version(name: &str, level: i16) -> Option<i16> {
    let steps: &[i16] = match name {
        "REGISTER_BROKER_RECORD" => &[0, 0, 8, 17, 30],
        "PARTITION_RECORD" => &[0, 17, 23],
        "USER_SCRAM_CREDENTIAL_RECORD" => &[11],
        "DELEGATION_TOKEN_RECORD" => &[14],
        "REGISTER_CONTROLLER_RECORD" => &[15],
        "ACCESS_CONTROL_ENTRY_RECORD"
        | "CLIENT_QUOTA_RECORD"
        | "CONFIG_RECORD"
        | "FEATURE_LEVEL_RECORD"
        | "PRODUCER_IDS_RECORD"
        | "TOPIC_RECORD"
        | "ZK_MIGRATION_STATE_RECORD" => &[0],
        _ => &[],
    };
    let versions = 0..steps.len() as i16;
    versions
        .rev()
        .find(|version| steps[*version as usize] <= level)
}
