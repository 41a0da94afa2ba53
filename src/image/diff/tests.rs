//! A difference against what two plain maps say.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;

use super::super::tests::random::{any_record, newest, sane};
use super::super::tests::{self, TOPIC_ID, change, config, one_topic, partition, replayed};
use super::super::{Image, Partition, TopicRef, configs};
use super::*;
use crate::records::{ClientQuotaRecord, RemoveTopicRecord, TopicRecord};
use crate::types::{PartitionId, SplitMix};

/// Everything that an image says, each thing by a name of its own.
type Flat = BTreeMap<String, String>;
/// What differs, by those names.
type FlatDiff = BTreeMap<String, (Option<String>, Option<String>)>;

fn put(flat: &mut Flat, key: impl Debug, value: impl Debug) {
    let twin = flat.insert(format!("{key:?}"), format!("{value:?}"));
    assert_eq!(twin, None, "{key:?} twice");
}

fn flat_partition(p: Partition<'_>) -> String {
    let lists = [
        p.replicas(),
        p.isr(),
        p.adding(),
        p.removing(),
        p.elr(),
        p.last_known_elr(),
    ];
    let numbers = [p.leader(), p.leader_epoch(), p.partition_epoch()];
    format!(
        "{lists:?} {numbers:?} {:?} {}",
        p.directories(),
        p.recovering()
    )
}

fn flat_topic(flat: &mut Flat, topic: TopicRef<'_>) {
    put(flat, ("topic", topic.name()), topic.id());
    for (id, partition) in topic.partitions() {
        put(
            flat,
            ("partition", topic.name(), id),
            flat_partition(partition),
        );
    }
}

fn flat_image(image: &Image) -> Flat {
    let mut flat = Flat::new();
    for (name, level) in image.features().iter() {
        put(&mut flat, ("feature", name), level);
    }
    put(&mut flat, "migration", image.zk_migration());
    for (id, broker) in image.brokers() {
        put(&mut flat, ("broker", id), broker);
    }
    for (id, controller) in image.controllers() {
        put(&mut flat, ("controller", id), controller);
    }
    for topic in image.topics() {
        flat_topic(&mut flat, topic);
    }
    for (kind, name, map) in image.configs() {
        for (key, value) in map.iter() {
            put(&mut flat, ("config", kind, name, key), value);
        }
    }
    for (entity, values) in image.quotas().iter() {
        for (key, value) in values {
            put(&mut flat, ("quota", entity, key), value);
        }
    }
    if let Some(next) = image.next_producer_id {
        put(&mut flat, "producer id", next);
    }
    for (id, acl) in image.acls().by_id().iter() {
        put(&mut flat, ("acl", id), acl);
    }
    for (key, credential) in image.scram().iter() {
        let secrets = (
            &credential.salt,
            &credential.stored_key,
            &credential.server_key,
        );
        put(&mut flat, ("scram", key), (secrets, credential.iterations));
    }
    for (id, token) in image.tokens().iter() {
        put(&mut flat, ("token", id), token);
    }
    if let Some(begin) = image.open_transaction() {
        put(
            &mut flat,
            "transaction",
            (begin, image.open_transaction_name()),
        );
    }
    flat
}

/// What differs between two maps, found by asking each for every key.
fn naive(before: &Flat, after: &Flat) -> FlatDiff {
    let keys = before.keys().chain(after.keys());
    keys.map(|key| {
        (
            key.clone(),
            (before.get(key).cloned(), after.get(key).cloned()),
        )
    })
    .filter(|(_, (old, new))| old != new)
    .collect()
}

/// The two sides of a difference in the same names.
fn flat_diff(diff: &Diff<'_>) -> FlatDiff {
    let (mut old, mut new) = (Flat::new(), Flat::new());
    macro_rules! both {
        ($changes:expr, |$key:ident| $named:expr, |$value:ident| $shown:expr) => {
            for Change {
                key: $key,
                before,
                after,
            } in $changes.iter()
            {
                for (flat, value) in [(&mut old, before), (&mut new, after)] {
                    if let Some($value) = value {
                        put(flat, $named, $shown);
                    }
                }
            }
        };
    }
    both!(diff.features, |key| ("feature", key), |value| value);
    both!(diff.zk_migration, |_key| "migration", |value| value);
    both!(diff.brokers, |key| ("broker", key), |value| value);
    both!(diff.controllers, |key| ("controller", key), |value| value);
    for topic in &diff.topics {
        if topic.kind() == TopicChangeKind::Changed {
            let name = topic.name;
            both!(topic.partitions, |key| ("partition", name, key), |value| {
                flat_partition(*value)
            });
            continue;
        }
        for (flat, topic) in [(&mut old, topic.before), (&mut new, topic.after)] {
            if let Some(topic) = topic {
                flat_topic(flat, topic);
            }
        }
    }
    both!(
        diff.configs,
        |key| ("config", key.kind, key.name, key.key),
        |value| value
    );
    both!(diff.quotas, |key| ("quota", key.entity, key.key), |value| {
        value
    });
    both!(diff.next_producer_id, |_key| "producer id", |value| value);
    both!(diff.acls, |key| ("acl", key), |value| value);
    both!(diff.scram, |key| ("scram", key), |value| (
        (&value.salt, &value.stored_key, &value.server_key),
        value.iterations
    ));
    both!(diff.tokens, |key| ("token", key), |value| value);
    both!(diff.transaction, |_key| "transaction", |value| (
        value.begin,
        value.name
    ));
    naive(&old, &new)
}

/// Every place of a difference, in the order in which it stands there.
fn assert_sorted(diff: &Diff<'_>) {
    assert!(diff.features.is_sorted_by(|a, b| a.key < b.key));
    assert!(diff.brokers.is_sorted_by(|a, b| a.key < b.key));
    assert!(diff.topics.is_sorted_by(|a, b| a.name < b.name));
    for topic in &diff.topics {
        assert!(topic.partitions.is_sorted_by(|a, b| a.key < b.key));
    }
    assert!(diff.configs.is_sorted_by(|a, b| a.key < b.key));
    assert!(diff.quotas.is_sorted_by(|a, b| a.key < b.key));
}

/// The same image in other memory, with other ids and slots: by way of its own records.
fn stranger(image: &Image) -> Image {
    let mut records = Vec::new();
    image.emit(&mut |record| records.push(record.record));
    let mut copy = Image::empty();
    for record in &records {
        copy.replay(record, Offset(9)).expect("emitted by an image");
    }
    copy
}

fn assert_names_what_differs(before: &Image, after: &Image) {
    let diff = before.diff(after);
    let wanted = naive(&flat_image(before), &flat_image(after));
    assert_eq!(flat_diff(&diff), wanted);
    assert_sorted(&diff);
    assert_eq!(diff.is_empty(), before == after);
    // An open transaction may differ in what it hides alone.
    assert!(diff.is_empty() <= wanted.is_empty());
}

fn random_image(rng: &mut SplitMix, from: &Image, steps: usize, wild: bool) -> Image {
    let mut image = from.clone();
    for offset in 0..steps {
        let record = if wild {
            any_record(rng)
        } else {
            sane(&image, rng)
        };
        // A refused record leaves no trace.
        let _ = image.replay(&record, Offset(offset as i64));
    }
    image
}

proptest! {
    #[test]
    fn a_difference_names_exactly_what_two_maps_say(
        seed: u64, start in 0..150_usize, steps in 0..40_usize, wild: bool,
    ) {
        let mut rng = SplitMix::new(seed);
        let before = random_image(&mut rng, &newest(), start, wild);
        let after = random_image(&mut rng, &before, steps, wild);
        assert_names_what_differs(&before, &after);
        assert_names_what_differs(&after, &before);
        prop_assert!(before.diff(&before.clone()).is_empty());
        let unrelated = random_image(&mut rng, &newest(), start, wild);
        assert_names_what_differs(&after, &unrelated);
    }

    #[test]
    fn images_of_different_processes_are_compared_by_value(
        seed: u64, start in 0..150_usize, steps in 0..20_usize,
    ) {
        let mut rng = SplitMix::new(seed);
        let before = random_image(&mut rng, &newest(), start, false);
        let after = random_image(&mut rng, &before, steps, false);
        let (copy, elsewhere) = (stranger(&before), stranger(&after));
        prop_assert!(before.diff(&copy).is_empty() && copy.diff(&before).is_empty());
        prop_assert_eq!(flat_diff(&before.diff(&elsewhere)), flat_diff(&before.diff(&after)));
        prop_assert_eq!(flat_diff(&copy.diff(&after)), flat_diff(&before.diff(&after)));
    }
}

#[test]
fn a_topic_under_the_name_of_a_deleted_one_is_recreated_and_not_changed() {
    let before = one_topic();
    let other = Uuid::from_u128(0x99);
    let removed = RemoveTopicRecord {
        topic_id: TOPIC_ID,
        ..Default::default()
    };
    let after = replayed(
        &before,
        [
            removed.clone().into(),
            tests::topic("t", other),
            tests::topic("new", Uuid::from_u128(0x98)),
        ],
    );
    let diff = before.diff(&after);
    let told: Vec<_> = diff.topics.iter().map(|t| (t.name, t.kind())).collect();
    assert_eq!(
        told,
        [
            ("new", TopicChangeKind::Created),
            ("t", TopicChangeKind::Recreated)
        ]
    );
    assert!(diff.topics[1].partitions.is_empty());
    assert_eq!(diff.topics[1].after.map(TopicRef::id), Some(other));
    let gone = replayed(&before, [removed.into()]);
    assert_eq!(
        before.diff(&gone).topics[0].kind(),
        TopicChangeKind::Deleted
    );
}

#[test]
fn a_quota_that_is_not_a_number_equals_itself() {
    let quota = ClientQuotaRecord {
        key: "consumer_byte_rate".to_owned(),
        value: f64::NAN,
        ..Default::default()
    };
    let image = replayed(&Image::empty(), [quota.into()]);
    let copy = stranger(&image);
    assert!(image == copy && image.diff(&copy).is_empty());
    assert_eq!(Image::empty().diff(&image).quotas.len(), 1);
}

#[test]
fn a_moved_leader_is_told_by_partition_and_field() {
    let before = one_topic();
    let mut moved = change();
    moved.leader = 2;
    moved.isr = Some(vec![2, 3]);
    let after = replayed(
        &before,
        [
            moved.into(),
            config(configs::TOPIC, "t", "retention.ms", Some("5")),
        ],
    );
    let diff = before.diff(&after);
    let [topic] = &diff.topics[..] else {
        panic!("{:?}", diff.topics);
    };
    assert_eq!((topic.name, topic.kind()), ("t", TopicChangeKind::Changed));
    let [partition] = &topic.partitions[..] else {
        panic!("{:?}", topic.partitions);
    };
    let (Some(old), Some(new)) = (partition.before, partition.after) else {
        panic!("{partition:?}");
    };
    assert_eq!(partition.key, PartitionId(0));
    assert_eq!(
        PartitionField::between(old, new),
        [
            PartitionField::Isr,
            PartitionField::Leader,
            PartitionField::LeaderEpoch,
            PartitionField::PartitionEpoch
        ]
    );
    let key = ConfigKey {
        kind: configs::TOPIC,
        name: "t",
        key: "retention.ms",
    };
    let set = Change {
        key,
        before: None,
        after: Some("5"),
    };
    assert_eq!(diff.configs, [set]);
}

/// Pointers first: what a difference looks at does not grow with what the images share.
#[test]
fn neighbours_in_a_large_image_share_what_they_do_not_differ_in() {
    let mut before = Image::empty();
    for number in 0..2_000_u128 {
        let topic_id = Uuid::from_u128(number + 1);
        let record = TopicRecord {
            name: format!("topic-{number}"),
            topic_id,
            ..Default::default()
        };
        before
            .replay(&record.into(), Offset(1))
            .expect("a new topic");
        for index in 0..100 {
            let mut record = partition(index);
            record.topic_id = topic_id;
            before.replay(&record.into(), Offset(1)).expect("a new row");
        }
    }
    let mut after = before.clone();
    let mut moved = change();
    (moved.topic_id, moved.partition_id, moved.leader) = (Uuid::from_u128(1_000), 70, 3);
    after.replay(&moved.into(), Offset(2)).expect("a known row");
    let slots = before.topics.differing(&after.topics).count();
    assert_eq!(slots, 16, "one chunk of topics");
    let rows: usize = before
        .topics
        .differing(&after.topics)
        .filter_map(|(old, new)| Some(old?.differing(new?).count()))
        .sum();
    assert_eq!(rows, 36, "one chunk of rows: 64 to 99");
    let diff = before.diff(&after);
    assert_eq!(diff.topics.len(), 1);
    assert_eq!(diff.topics[0].partitions.len(), 1);
}
