//! The tree of a small image: names, paths, masks, and what is said of a path that is not there.

use serde_json::{Value, json};

use super::*;
use crate::image::{Image, configs};
use crate::records::{
    AccessControlEntryRecord, BeginTransactionRecord, BrokerEndpoint, ClientQuotaRecord,
    ConfigRecord, DelegationTokenRecord, EntityData, FeatureLevelRecord, PartitionRecord,
    ProducerIdsRecord, Record, RegisterBrokerRecord, TopicRecord, UserScramCredentialRecord,
};
use crate::types::{Uuid, ids};

const TOPIC_ID: Uuid = Uuid::from_u128(0x1000);

fn topic(name: &str, id: u128, partitions: i32) -> Vec<Record> {
    let topic_id = Uuid::from_u128(id);
    let mut records = vec![
        TopicRecord {
            name: name.to_owned(),
            topic_id,
            ..Default::default()
        }
        .into(),
    ];
    records.extend((0..partitions).map(|partition_id| {
        PartitionRecord {
            partition_id,
            topic_id,
            replicas: vec![2, 1],
            isr: vec![1],
            leader: 1,
            leader_epoch: 4,
            partition_epoch: 5,
            directories: vec![ids::DIR_UNASSIGNED; 2],
            ..Default::default()
        }
        .into()
    }));
    records
}

fn config(kind: i8, name: &str, key: &str, value: &str) -> Record {
    ConfigRecord {
        resource_type: kind,
        resource_name: name.to_owned(),
        name: key.to_owned(),
        value: Some(value.to_owned()),
        ..Default::default()
    }
    .into()
}

fn quota(parts: &[(&str, Option<&str>)], key: &str, value: f64) -> Record {
    let entity = parts.iter().map(|(kind, name)| EntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
        ..Default::default()
    });
    ClientQuotaRecord {
        entity: entity.collect(),
        key: key.to_owned(),
        value,
        ..Default::default()
    }
    .into()
}

fn feature(name: &str, feature_level: i16) -> Record {
    FeatureLevelRecord {
        name: name.to_owned(),
        feature_level,
        ..Default::default()
    }
    .into()
}

fn records() -> Vec<Record> {
    let mut records: Vec<Record> = vec![
        feature("metadata.version", 33),
        feature("transaction.version", 2),
        RegisterBrokerRecord {
            broker_id: 1,
            broker_epoch: 7,
            end_points: vec![BrokerEndpoint {
                name: "PLAINTEXT".to_owned(),
                host: "localhost".to_owned(),
                port: 9092,
                ..Default::default()
            }],
            rack: Some("r1".to_owned()),
            ..Default::default()
        }
        .into(),
        config(configs::TOPIC, "orders", "retention.ms", "5"),
        config(configs::BROKER, "", "ssl.key.password", "hush"),
        config(configs::GROUP, "a/b", "consumer.session.timeout.ms", "6"),
        quota(&[("user", None)], "producer_byte_rate", 1.5),
        ProducerIdsRecord {
            broker_id: 1,
            broker_epoch: 7,
            next_producer_id: 1000,
            ..Default::default()
        }
        .into(),
        AccessControlEntryRecord {
            id: Uuid::from_u128(9),
            resource_type: 2,
            resource_name: "orders".to_owned(),
            pattern_type: 3,
            principal: "User:a".to_owned(),
            host: "*".to_owned(),
            operation: 3,
            permission_type: 3,
            ..Default::default()
        }
        .into(),
        UserScramCredentialRecord {
            name: "a/b".to_owned(),
            mechanism: 1,
            salt: vec![1, 255].into(),
            stored_key: vec![2].into(),
            server_key: vec![3].into(),
            iterations: 4096,
            ..Default::default()
        }
        .into(),
        DelegationTokenRecord {
            owner: "User:a".to_owned(),
            requester: "User:b".to_owned(),
            token_id: "t1".to_owned(),
            ..Default::default()
        }
        .into(),
    ];
    records.extend(topic("orders", TOPIC_ID.as_u128(), 12));
    records.extend(topic("billing", 0x2000, 1));
    records
}

fn image() -> Image {
    let mut image = Image::empty();
    for (offset, record) in (0..).zip(records()) {
        image.replay(&record, Offset(offset)).unwrap();
    }
    image
}

fn view(image: &Image) -> View<'_> {
    View {
        image,
        provenance: Provenance {
            offset: Offset(40),
            epoch: Epoch(3),
            time: Timestamp(1_700_000_000_123),
            committed: Some(Offset(38)),
        },
        show_secrets: false,
    }
}

fn json_of(view: View<'_>, selector: &str) -> Value {
    let (_, node) = view.find(selector).unwrap();
    let mut out = Vec::new();
    json::write(view, node, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn text_of(view: View<'_>, selector: &str) -> String {
    let (_, node) = view.find(selector).unwrap();
    let mut out = Vec::new();
    text::write(view, node, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_node_of_a_listing_is_found_by_its_path() {
    let image = image();
    let view = view(&image);
    let mut open = vec![(String::new(), Directory::Root)];
    let mut seen = 0;
    while let Some((path, directory)) = open.pop() {
        for (name, node) in view.children(directory) {
            let below = format!("{path}/{name}");
            let (found, same) = view.find(&below).expect(&below);
            assert_eq!(format!("/{found}"), below);
            assert_eq!(format!("{same:?}"), format!("{node:?}"));
            seen += 1;
            if let Node::Directory(inner) = node {
                open.push((below, inner));
            }
        }
    }
    assert_eq!(seen, 70);
}

#[test]
fn the_document_has_the_names_of_the_metadata_shell() {
    let image = image();
    let document = json_of(view(&image), "/");
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    let shell = [
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "provenance",
        "scram",
        "topics",
    ];
    assert_eq!(keys, shell);
    assert_eq!(
        document["features"],
        json!({"finalized_transaction.version": 2, "metadataVersion": "4.4-IV2"})
    );
    assert_eq!(
        document["provenance"],
        json!({"offset": 40, "epoch": 3, "timestamp": 1_700_000_000_123_i64,
            "time": "2023-11-14T22:13:20.123Z", "knownCommitted": 38})
    );
    let id = ids::base64url(TOPIC_ID);
    assert_eq!(
        document["topics"]["byId"][&id],
        document["topics"]["byName"]["orders"]
    );
    assert_eq!(
        document["topics"]["byName"]["orders"]["11"],
        json!({"replicas": [2, 1],
            "directories": ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAQ"],
            "isr": [1], "removingReplicas": [], "addingReplicas": [], "elr": [],
            "lastKnownElr": [], "leader": 1, "leaderRecoveryState": "RECOVERED",
            "leaderEpoch": 4, "partitionEpoch": 5})
    );
    assert_eq!(
        document["acls"]["byId"]["AAAAAAAAAAAAAAAAAAAACQ"]["operation"],
        "READ"
    );
    assert_eq!(
        document["clientQuotas"]["user(<default>)"]["producer_byte_rate"],
        1.5
    );
    assert_eq!(document["producerIds"]["nextProducerId"], 1000);
}

#[test]
fn secrets_are_masked_unless_they_are_asked_for() {
    let image = image();
    let masked = view(&image);
    let shown = View {
        show_secrets: true,
        ..masked
    };
    let password = "configs/BROKER/ssl.key.password";
    assert_eq!(json_of(masked, password), "[redacted]");
    assert_eq!(json_of(shown, password), "hush");
    assert_eq!(json_of(masked, "configs/TOPIC:orders/retention.ms"), "5");
    let salt = |view| json_of(view, "scram/SCRAM-SHA-256/a/b")["salt"].clone();
    assert_eq!(
        (salt(masked), salt(shown)),
        (json!("[redacted]"), json!("01ff"))
    );
    let owner = |view| json_of(view, "delegationTokens/t1")["owner"].clone();
    assert_eq!(
        (owner(masked), owner(shown)),
        (json!("[redacted]"), json!("User:a"))
    );
    for selector in [
        "/",
        "configs",
        "configs/BROKER",
        "scram/SCRAM-SHA-256",
        "delegationToken",
    ] {
        let text = text_of(masked, selector);
        assert!(!text.contains("hush") && !text.contains("01ff"), "{text}");
    }
}

#[test]
fn selectors_may_be_written_as_in_the_shell_or_shorter() {
    let image = image();
    let view = view(&image);
    for (written, path) in [
        ("", ""),
        ("/", ""),
        ("image", ""),
        ("/image/topics/byName/", "topics/byName"),
        ("brokers/1", "cluster/brokers/1"),
        ("delegationTokens", "delegationToken"),
        (
            "configs/GROUP:a/b/consumer.session.timeout.ms",
            "configs/GROUP:a/b/consumer.session.timeout.ms",
        ),
        (
            "clientQuotas/user(<default>)",
            "clientQuotas/user(<default>)",
        ),
    ] {
        assert_eq!(view.find(written).unwrap().0, path, "{written}");
    }
}

#[test]
fn an_unknown_selector_is_told_with_the_names_near_it() {
    let image = image();
    let view = view(&image);
    let told = |selector| view.find(selector).unwrap_err().to_string();
    for (selector, sentence) in [
        (
            "topics/byname/orders",
            r#"there is no "byname/orders" in topics; near it: byName"#,
        ),
        (
            "topic",
            r#"there is no "topic" in the image; near it: topics"#,
        ),
        (
            "topics/byName/oders",
            r#"there is no "oders" in topics/byName; near it: orders"#,
        ),
        (
            "topics/byName/xyz/1",
            r#"there is no "xyz/1" in topics/byName, and nothing like it among its 2 names"#,
        ),
        (
            "topics/byName/orders/0/isr",
            r#"topics/byName/orders/0 has no "isr" below it: it is a value"#,
        ),
        (
            "cluster/controllers/1",
            r#"there is no "1" in cluster/controllers, which is empty"#,
        ),
        (
            "topics/byName/orders/01",
            r#"there is no "01" in topics/byName/orders; near it: 0, 1, 11"#,
        ),
    ] {
        assert_eq!(told(selector), sentence);
    }
}

#[test]
fn text_lists_a_directory_in_columns_and_a_leaf_by_its_fields() {
    let image = image();
    let view = view(&image);
    assert_eq!(
        text_of(view, "topics/byName"),
        "NAME     PARTITIONS  ID\n\
         billing  1           AAAAAAAAAAAAAAAAAAAgAA\n\
         orders   12          AAAAAAAAAAAAAAAAAAAQAA\n"
    );
    let partitions = text_of(view, "topics/byName/billing");
    assert_eq!(
        partitions.lines().next().unwrap(),
        "PARTITION  LEADER  LEADER-EPOCH  EPOCH  REPLICAS  ISR  MORE"
    );
    let broker = text_of(view, "brokers/1");
    assert!(broker.contains("\nrack                  r1\n"), "{broker}");
    assert!(text_of(view, "/").contains("topics/           2 topics, 13 partitions\n"));
    assert!(
        text_of(view, "brokers").contains("\n1   fenced  7      r1    PLAINTEXT://localhost:9092")
    );
}

#[test]
fn an_open_transaction_is_not_shown() {
    let mut image = image();
    let begin = BeginTransactionRecord::default().into();
    image.replay(&begin, Offset(50)).unwrap();
    for record in topic("late", 0x3000, 1) {
        image.replay(&record, Offset(51)).unwrap();
    }
    let view = view(&image);
    assert!(view.find("topics/byName/late").is_err());
    assert!(text_of(view, "/").contains("2 topics, 13 partitions"));
}

#[test]
fn many_names_are_listed_in_order_and_one_of_them_is_found() {
    let mut image = Image::empty();
    let records = (0..20_000_u128).flat_map(|n| topic(&format!("topic-{n}"), 0x1_0000 + n, 1));
    for (offset, record) in (0..).zip(records) {
        image.replay(&record, Offset(offset)).unwrap();
    }
    let view = view(&image);
    let Ok((_, Node::Directory(names))) = view.find("topics/byName") else {
        panic!("a directory");
    };
    assert_eq!(view.children(names).next().unwrap().0, "topic-0");
    assert_eq!(view.children(names).count(), 20_000);
    assert_eq!(json_of(view, "topics/byName/topic-19999/0")["leader"], 1);
    assert_eq!(text_of(view, "topics/byName").lines().count(), 20_001);
}
