//! Brokers, controllers, features, configurations and the small collections.

use super::super::*;
use super::{config, fault, one_topic, register, replayed};
use crate::records::{
    AccessControlEntryRecord, BrokerEndpoint, BrokerRegistrationChangeRecord, ClientQuotaRecord,
    EntityData, FeatureLevelRecord, FenceBrokerRecord, NoOpRecord, ProducerIdsRecord, Record,
    RegisterControllerRecord, RemoveAccessControlEntryRecord, RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord, UnfenceBrokerRecord, UnregisterBrokerRecord,
    UnregisterControllerRecord, ZkMigrationStateRecord,
};
use crate::types::{BrokerEpoch, ids};

#[test]
fn a_broker_registers_changes_and_leaves_under_its_epoch() {
    let image = replayed(&Image::empty(), [register(1, 10).into()]);
    let broker = image.broker(NodeId(1)).expect("registered");
    assert_eq!((broker.epoch, broker.fenced), (BrokerEpoch(10), true));
    assert_eq!(image.registered_at(NodeId(1)), Some(Offset(100)));
    // The reference sorts by signed halves, so the id of all ones comes first.
    let high = Uuid::from_u128(u128::MAX);
    assert_eq!(broker.directories, [high, Uuid::from_u128(0x2000)]);
    assert!(broker.has_online_dir(high));
    assert!(broker.has_online_dir(ids::DIR_UNASSIGNED));
    assert!(!broker.has_online_dir(ids::DIR_LOST));
    assert!(!broker.has_online_dir(Uuid::from_u128(0x2001)));

    let change = |fenced, in_controlled_shutdown| BrokerRegistrationChangeRecord {
        broker_id: 1,
        broker_epoch: 10,
        fenced,
        in_controlled_shutdown,
        ..Default::default()
    };
    let active = replayed(&image, [change(-1, 0).into()]);
    assert!(active.broker(NodeId(1)).is_some_and(Broker::is_active));
    let leaving = replayed(&active, [change(0, 1).into()]);
    let broker = leaving.broker(NodeId(1)).expect("registered");
    assert!(!broker.fenced && broker.in_controlled_shutdown && !broker.is_active());
    let cordon = BrokerRegistrationChangeRecord {
        log_dirs: vec![high],
        cordoned_log_dirs: Some(vec![high]),
        ..change(0, 0)
    };
    let cordoned = replayed(&active, [cordon.into()]);
    let broker = cordoned.broker(NodeId(1)).expect("registered");
    assert_eq!(broker.directories, [high]);
    assert!(!broker.has_uncordoned_dir());

    assert!(matches!(
        fault(&image, change(2, 0)),
        ReplayFault::BadValue {
            field: "fenced",
            value: 2,
            ..
        }
    ));
    let stale = UnregisterBrokerRecord {
        broker_id: 1,
        broker_epoch: 9,
        ..Default::default()
    };
    assert!(matches!(
        fault(&image, stale.clone()),
        ReplayFault::BrokerEpochMismatch { .. }
    ));
    let gone = UnregisterBrokerRecord {
        broker_epoch: 10,
        ..stale
    };
    assert!(replayed(&image, [gone.into()]).brokers().is_empty());
}

#[test]
fn the_records_of_old_releases_fence_and_unfence() {
    let image = replayed(&Image::empty(), [register(1, 10).into()]);
    let unfence = UnfenceBrokerRecord {
        id: 1,
        epoch: 10,
        ..Default::default()
    };
    let fence = FenceBrokerRecord {
        id: 1,
        epoch: 10,
        ..Default::default()
    };
    let unfenced = replayed(&image, [unfence.into()]);
    assert!(unfenced.broker(NodeId(1)).is_some_and(Broker::is_active));
    assert!(replayed(&unfenced, [fence.into()]) == image);
    let unknown = FenceBrokerRecord {
        id: 2,
        ..Default::default()
    };
    assert_eq!(
        fault(&image, unknown),
        ReplayFault::UnknownBroker(NodeId(2))
    );
}

#[test]
fn listeners_need_a_name_and_a_known_protocol() {
    let mut record = register(1, 10);
    record.end_points.push(BrokerEndpoint {
        port: 9093,
        ..record.end_points[0].clone()
    });
    let image = replayed(&Image::empty(), [record.clone().into()]);
    let broker = image.broker(NodeId(1)).expect("registered");
    assert_eq!(broker.endpoints.len(), 1);
    assert_eq!(broker.endpoints[0].port, 9093);
    record.end_points[1].security_protocol = 4;
    assert!(matches!(
        fault(&image, record.clone()),
        ReplayFault::BadValue {
            field: "securityProtocol",
            value: 4,
            ..
        }
    ));
    record.end_points[1].name.clear();
    assert_eq!(
        fault(&image, record),
        ReplayFault::ListenerUnnamed(NodeId(1))
    );
}

#[test]
fn controllers_come_and_go() {
    let record = RegisterControllerRecord {
        controller_id: 3000,
        incarnation_id: Uuid::from_u128(6),
        ..Default::default()
    };
    let image = replayed(&Image::empty(), [record.into()]);
    assert!(image.controllers().contains_key(&NodeId(3000)));
    let leave = UnregisterControllerRecord {
        controller_id: 3000,
        ..Default::default()
    };
    let left = replayed(&image, [leave.clone().into()]);
    assert!(left == Image::empty());
    assert_eq!(
        fault(&left, leave),
        ReplayFault::UnknownController(NodeId(3000))
    );
}

#[test]
fn feature_level_zero_removes_and_an_unknown_level_is_refused() {
    let level = |name: &str, level| FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..Default::default()
    };
    let image = replayed(
        &Image::empty(),
        [
            level("group.version", 1).into(),
            level("metadata.version", 33).into(),
            level("kraft.version", 1).into(),
            level("share.version", 1).into(),
            level("share.version", 0).into(),
        ],
    );
    let features: Vec<_> = image.features().iter().collect();
    assert_eq!(features, [("metadata.version", 33), ("group.version", 1)]);
    assert_eq!(image.features().level("metadata.version"), 33);
    assert_eq!(image.features().level("share.version"), 0);
    for (name, bad) in [
        ("share.version", 3),
        ("group.version", -1),
        ("new.version", 1),
    ] {
        assert!(matches!(
            fault(&image, level(name, bad)),
            ReplayFault::FeatureLevelUnknown { .. }
        ));
    }
    for bad in [0, 6, 35, -1] {
        assert!(matches!(
            fault(&image, level("metadata.version", bad)),
            ReplayFault::FeatureLevelUnknown { .. }
        ));
    }
}

#[test]
fn keys_that_release_4_4_does_not_know_are_passed_over() {
    let image = replayed(
        &one_topic(),
        [
            config(configs::TOPIC, "t", "message.format.version", Some("3.0")),
            config(configs::BROKER, "7", "anything.at.all", Some("x")),
            config(99, "t", "retention.ms", Some("5")),
            config(configs::TOPIC, "t", "retention.ms", None),
        ],
    );
    let all: Vec<_> = image
        .configs()
        .map(|(kind, name, _)| (kind, name))
        .collect();
    assert_eq!(all, [(configs::BROKER, "7")]);
}

/// Java's controller writes what a client asks for under "\u{662}", which its language reads as 2:
/// a follower that refused to replay it would stop for ever.
#[test]
fn a_broker_configuration_under_digits_of_another_script_is_kept() {
    let record = config(configs::BROKER, "\u{662}", "log.cleaner.threads", Some("1"));
    let image = replayed(&Image::empty(), [record]);
    let all: Vec<_> = image.configs().map(|(_, name, _)| name).collect();
    assert_eq!(all, ["\u{662}"]);
    assert!(image.check().is_ok());
}

#[test]
fn a_quota_entity_vanishes_with_its_last_quota() {
    let quota = |key: &str, remove| {
        let record = ClientQuotaRecord {
            entity: vec![EntityData {
                entity_type: "user".to_owned(),
                entity_name: None,
                ..Default::default()
            }],
            key: key.to_owned(),
            value: 1.5,
            remove,
            ..Default::default()
        };
        Record::from(record)
    };
    let image = replayed(&Image::empty(), [quota("a", false), quota("b", false)]);
    let values: Vec<_> = image.quotas().values().flat_map(BTreeMap::keys).collect();
    assert_eq!(values, ["a", "b"]);
    let removed = replayed(
        &image,
        [quota("a", true), quota("b", true), quota("c", true)],
    );
    assert!(removed == Image::empty());
}

#[test]
fn producer_ids_only_rise() {
    let next = |next_producer_id| ProducerIdsRecord {
        next_producer_id,
        ..Default::default()
    };
    assert_eq!(Image::empty().next_producer_id(), 0);
    let image = replayed(&Image::empty(), [next(1000).into(), next(2000).into()]);
    assert_eq!(image.next_producer_id(), 2000);
    assert_eq!(
        fault(&image, next(2000)),
        ReplayFault::ProducerIdsNotRising {
            known: 2000,
            record: 2000
        }
    );
}

#[test]
fn acls_credentials_and_tokens_are_removed_by_their_keys() {
    let id = Uuid::from_u128(9);
    let acl = AccessControlEntryRecord {
        id,
        principal: "User:a".to_owned(),
        ..Default::default()
    };
    let image = replayed(&Image::empty(), [acl.into()]);
    let remove = RemoveAccessControlEntryRecord {
        id,
        ..Default::default()
    };
    let removed = replayed(&image, [remove.clone().into()]);
    assert!(removed == Image::empty());
    assert_eq!(fault(&removed, remove), ReplayFault::UnknownAcl(id));
    let scram = RemoveUserScramCredentialRecord {
        name: "u".to_owned(),
        mechanism: 1,
        ..Default::default()
    };
    assert_eq!(
        fault(&image, scram),
        ReplayFault::UnknownScram("u".to_owned(), 1)
    );
    // The reference accepts the removal of a token that it does not know.
    let token = RemoveDelegationTokenRecord {
        token_id: "t".to_owned(),
        ..Default::default()
    };
    assert!(replayed(&image, [token.into(), NoOpRecord::default().into()]) == image);
}

#[test]
fn a_migration_from_zookeeper_is_remembered_until_it_is_over() {
    let state = |zk_migration_state| ZkMigrationStateRecord {
        zk_migration_state,
        ..Default::default()
    };
    let image = Image::empty();
    assert!(replayed(&image, [state(0).into(), state(3).into()]) == image);
    let waiting = replayed(&image, [state(1).into()]);
    assert_eq!(waiting.zk_migration(), ZkMigration::Waiting);
    let running = replayed(&waiting, [state(2).into()]);
    assert_eq!(running.zk_migration(), ZkMigration::Running);
    assert!(matches!(
        fault(&image, state(4)),
        ReplayFault::BadValue { value: 4, .. }
    ));
}
