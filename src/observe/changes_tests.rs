//! Changes of each sort, as text and as JSON.

use serde_json::Value;

use super::*;
use crate::image::configs;
use crate::records::{
    BrokerRegistrationChangeRecord, ClientQuotaRecord, ConfigRecord, EntityData,
    FeatureLevelRecord, PartitionChangeRecord, PartitionRecord, Record, RegisterBrokerRecord,
    RemoveTopicRecord, TopicRecord, UserScramCredentialRecord,
};
use crate::types::{Offset, Uuid, ids};

const KEPT: Uuid = Uuid::from_u128(0x1000);
const GONE: Uuid = Uuid::from_u128(0x2000);
const NEW: Uuid = Uuid::from_u128(0x3000);

fn topic(name: &str, topic_id: Uuid) -> [Record; 2] {
    let topic = TopicRecord {
        name: name.to_owned(),
        topic_id,
        ..Default::default()
    };
    [topic.into(), partition(topic_id, 0)]
}

fn partition(topic_id: Uuid, partition_id: i32) -> Record {
    PartitionRecord {
        partition_id,
        topic_id,
        replicas: vec![1, 2, 3],
        isr: vec![1, 2, 3],
        leader: 1,
        leader_epoch: 4,
        partition_epoch: 0,
        directories: vec![ids::DIR_UNASSIGNED; 3],
        ..Default::default()
    }
    .into()
}

fn config(kind: i8, name: &str, key: &str, value: Option<&str>) -> Record {
    ConfigRecord {
        resource_type: kind,
        resource_name: name.to_owned(),
        name: key.to_owned(),
        value: value.map(str::to_owned),
        ..Default::default()
    }
    .into()
}

fn level(name: &str, feature_level: i16) -> Record {
    FeatureLevelRecord {
        name: name.to_owned(),
        feature_level,
        ..Default::default()
    }
    .into()
}

fn credential(stored_key: u8) -> Record {
    UserScramCredentialRecord {
        name: "a".to_owned(),
        mechanism: 2,
        stored_key: vec![stored_key].into(),
        iterations: 4096,
        ..Default::default()
    }
    .into()
}

fn replayed(image: &Image, records: Vec<Record>) -> Image {
    let mut image = image.clone();
    for (offset, record) in (100..).zip(records) {
        image.replay(&record, Offset(offset)).unwrap();
    }
    image
}

fn first() -> Image {
    let mut records = vec![
        level("metadata.version", 30),
        RegisterBrokerRecord {
            broker_id: 1,
            broker_epoch: 7,
            fenced: false,
            ..Default::default()
        }
        .into(),
        config(configs::TOPIC, "kept", "retention.ms", Some("1")),
        config(configs::BROKER, "", "ssl.key.password", Some("old hush")),
        credential(1),
    ];
    records.extend(topic("kept", KEPT));
    records.extend(topic("gone", GONE));
    replayed(&Image::empty(), records)
}

fn second(first: &Image) -> Image {
    let quota = ClientQuotaRecord {
        entity: vec![EntityData {
            entity_type: "user".to_owned(),
            entity_name: None,
            ..Default::default()
        }],
        key: "producer_byte_rate".to_owned(),
        value: 10.0,
        ..Default::default()
    };
    let mut records = vec![
        level("metadata.version", 33),
        level("group.version", 1),
        BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 7,
            fenced: 1,
            ..Default::default()
        }
        .into(),
        PartitionChangeRecord {
            partition_id: 0,
            topic_id: KEPT,
            isr: Some(vec![2, 3]),
            leader: 2,
            ..Default::default()
        }
        .into(),
        partition(KEPT, 1),
        config(configs::TOPIC, "kept", "retention.ms", Some("2")),
        config(configs::TOPIC, "kept", "cleanup.policy", Some("compact")),
        config(configs::BROKER, "", "ssl.key.password", Some("new hush")),
        RemoveTopicRecord {
            topic_id: GONE,
            ..Default::default()
        }
        .into(),
        quota.into(),
        credential(2),
    ];
    records.extend(topic("new", NEW));
    replayed(first, records)
}

fn changes<'a>(before: &'a Image, after: &'a Image) -> Changes<'a> {
    let at = |offset| Provenance {
        offset: Offset(offset),
        ..Provenance::NONE
    };
    Changes {
        before: (before, at(5)),
        after: (after, at(9)),
        show_secrets: false,
    }
}

fn text(changes: Changes<'_>) -> String {
    let mut out = Vec::new();
    changes.write_text(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn document(changes: Changes<'_>) -> Value {
    let mut out = Vec::new();
    changes.write_json(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn every_change_has_a_line_in_the_images_own_terms() {
    let before = first();
    let after = second(&before);
    let told = text(changes(&before, &after));
    let expected = "\
+ features/finalized_group.version  set to 1
~ features/metadataVersion  4.3-IV0 -> 4.4-IV2
~ cluster/brokers/1  fenced
- topics/byName/gone  topic deleted, had 1 partition, id AAAAAAAAAAAAAAAAAAAgAA
~ topics/byName/kept/0  leader moved from 1 to 2, leader epoch 4 -> 5; ISR shrank 1,2,3 -> 2,3
+ topics/byName/kept/1  partition added: leader 1, replicas 1,2,3
+ topics/byName/new  topic created, 1 partition, id AAAAAAAAAAAAAAAAAAAwAA
+ configs/TOPIC:kept/cleanup.policy  set to compact
~ configs/TOPIC:kept/retention.ms  1 -> 2
~ configs/BROKER/ssl.key.password  another secret
+ clientQuotas/user(<default>)/producer_byte_rate  set to 10.0
~ scram/SCRAM-SHA-512/a  credential changed
12 changes between the state after offset 5 and after offset 9
";
    assert_eq!(told, expected);
}

#[test]
fn json_has_the_fields_that_differ_before_and_after() {
    let before = first();
    let after = second(&before);
    let document = document(changes(&before, &after));
    assert_eq!(document["from"]["offset"], 5);
    assert_eq!(document["to"]["offset"], 9);
    let changes = document["changes"].as_array().unwrap();
    let at = |path: &str| {
        changes
            .iter()
            .find(|change| change["path"] == path)
            .unwrap()
    };
    let leader = at("topics/byName/kept/0");
    assert_eq!(leader["type"], "partition");
    assert_eq!(leader["change"], "changed");
    assert_eq!(
        leader["before"],
        json!({"isr": [1, 2, 3], "leader": 1, "leaderEpoch": 4, "partitionEpoch": 0})
    );
    assert_eq!(
        leader["after"],
        json!({"isr": [2, 3], "leader": 2, "leaderEpoch": 5, "partitionEpoch": 1})
    );
    let gone = at("topics/byName/gone");
    assert_eq!(
        (&gone["change"], &gone["after"]),
        (&json!("removed"), &Value::Null)
    );
    let set = at("configs/TOPIC:kept/cleanup.policy");
    assert_eq!(
        (&set["before"], &set["after"]),
        (&Value::Null, &json!("compact"))
    );
    let scram = at("scram/SCRAM-SHA-512/a");
    assert_eq!(scram["before"], json!({"storedKey": "[redacted]"}));
    let all = document.to_string();
    assert!(!all.contains("hush"), "{all}");
}

#[test]
fn the_other_way_round_what_was_added_is_removed() {
    let before = first();
    let after = second(&before);
    let told = text(changes(&after, &before));
    assert!(
        told.contains("\n+ topics/byName/gone  topic created"),
        "{told}"
    );
    assert!(
        told.contains("\n- topics/byName/kept/1  partition removed"),
        "{told}"
    );
    assert!(told.contains("\n~ cluster/brokers/1  unfenced"), "{told}");
}

#[test]
fn equal_images_have_no_difference() {
    let image = first();
    assert_eq!(
        text(changes(&image, &image)),
        "no difference between the state after offset 5 and after offset 9\n"
    );
    assert_eq!(document(changes(&image, &image))["changes"], json!([]));
}
