//! A broker comes back: the same incarnation, or another one.

use kafka_protocol::messages::{BrokerId, UnregisterBrokerRequest};

use super::*;
use crate::records::{ClearElrRecord, RemoveTopicRecord};

/// A cluster in which broker 1 crashed: still unfenced, but its session is over.
fn after_a_crash() -> World {
    let mut world = World::with_brokers(&[1, 2]);
    let eligible = PartitionRecord {
        isr: vec![2],
        leader: 2,
        eligible_leader_replicas: Some(vec![1]),
        ..on(&[2, 1])
    };
    world.topic("t", TOPIC, vec![on(&[1, 2]), eligible, on(&[1])]);
    world.config(2, "t", "min.insync.replicas", "2");
    world
}

#[test]
fn a_new_incarnation_without_proof_of_a_clean_end_is_not_eligible_either() {
    let mut world = after_a_crash();
    let epoch = world.next_offset();
    let decision = world.register(1, 0xb, -1).unwrap();
    assert_eq!(
        shorts(&decision),
        [
            "p0, isr [2], leader 2".to_owned(),
            "p1, elr []".to_owned(),
            "p2, isr [], leader -1, last [1]".to_owned(),
            // The epoch is the offset of the first record of the decision, as in Java.
            format!("register 1 epoch {epoch} fenced"),
        ]
    );
}

#[test]
fn a_new_incarnation_that_names_the_old_epoch_stays_eligible() {
    let mut world = after_a_crash();
    let old = world.image.broker(NodeId(1)).unwrap().epoch.0;
    let epoch = world.next_offset();
    let decision = world.register(1, 0xb, old).unwrap();
    assert_eq!(
        shorts(&decision),
        [
            "p0, isr [2], leader 2, elr [1]".to_owned(),
            "p2, isr [], leader -1, elr [1], last [1]".to_owned(),
            format!("register 1 epoch {epoch} fenced"),
        ]
    );
}

#[test]
fn requests_before_version_3_can_prove_no_clean_end() {
    let mut world = after_a_crash();
    let old = world.image.broker(NodeId(1)).unwrap().epoch.0;
    let request = world.registration(1, 0xb, old);
    let decision = world.take(2, Request::BrokerRegistration(request)).unwrap();
    assert!(shorts(&decision).contains(&"p1, elr []".to_owned()));
}

#[test]
fn the_same_incarnation_keeps_its_epoch_and_its_state() {
    let mut world = World::at_level(33);
    let epoch = world.next_offset();
    world.register(1, 0xa, -1).unwrap();
    world.beats(&[1]);
    let again = world.register(1, 0xa, -1).unwrap();
    assert_eq!(
        shorts(&again),
        [format!("register 1 epoch {epoch} unfenced")]
    );
    // It must apply the new record before it counts as caught up again.
    let offset = world.next_offset() - 1;
    let behind = world.beat(1, |it| it.current_metadata_offset = offset - 1);
    assert_eq!(told(&behind.unwrap()), (false, false, false));
}

#[test]
fn another_incarnation_waits_until_the_session_of_the_old_one_is_over() {
    let mut world = World::at_level(33);
    world.register(1, 0xa, -1).unwrap();
    world.beats(&[1]);
    let refused = world.register(1, 0xb, -1);
    assert_eq!(code(refused), ErrorCode::DuplicateBrokerRegistration);
    world.pass_until(9_000);
    let refused = world.register(1, 0xb, -1);
    assert_eq!(code(refused), ErrorCode::DuplicateBrokerRegistration);
    world.pass_until(9_100);
    assert!(world.register(1, 0xb, -1).is_ok());
}

#[test]
fn a_session_ends_with_the_old_leader_and_begins_again_with_the_new_one() {
    let mut world = World::with_brokers(&[1]);
    world.now_ms = 100_000;
    let (settings, image) = (world.settings.clone(), world.image.clone());
    let now = world.rule(|view, _| view.now);
    world.soft = crate::controller::Soft::new(&settings, &image, now, 7);
    assert!(world.pass_until(108_900).is_empty());
    assert_eq!(world.pass_until(111_000), ["change v0 of 1, fenced"]);
}

#[test]
fn registrations_are_refused_in_javas_order() {
    let mut world = World::with_brokers(&[2]);
    let mut refused = |edit: &dyn Fn(&mut BrokerRegistrationRequest)| {
        let mut request = world.registration(1, 0xa, -1);
        edit(&mut request);
        code(world.take(4, Request::BrokerRegistration(request)))
    };
    let cluster = |it: &mut BrokerRegistrationRequest| {
        it.cluster_id = StrBytes::from_static_str("other");
    };
    assert_eq!(refused(&cluster), ErrorCode::InconsistentClusterId);
    let zookeeper = |it: &mut BrokerRegistrationRequest| it.is_migrating_zk_broker = true;
    assert_eq!(refused(&zookeeper), ErrorCode::BrokerIdNotRegistered);
    for log_dirs in [
        vec![],
        vec![Uuid::from_u128(1)],
        vec![dir(1), dir(1)],
        vec![dir(1), dir(2)],
    ] {
        let directories = |it: &mut BrokerRegistrationRequest| it.log_dirs = log_dirs.clone();
        assert_eq!(refused(&directories), ErrorCode::InvalidRegistration);
    }
    let protocol = |it: &mut BrokerRegistrationRequest| {
        let listener = broker_registration_request::Listener::default();
        it.listeners = vec![listener.with_security_protocol(4)];
    };
    assert_eq!(refused(&protocol), ErrorCode::InvalidRegistration);
    let low = |it: &mut BrokerRegistrationRequest| {
        it.features
            .iter_mut()
            .for_each(|it| it.max_supported_version = it.max_supported_version.min(32));
    };
    assert_eq!(refused(&low), ErrorCode::UnsupportedVersion);
    let none = |it: &mut BrokerRegistrationRequest| it.features.clear();
    assert_eq!(refused(&none), ErrorCode::InvalidRegistration);
    let one = |it: &mut BrokerRegistrationRequest| {
        it.features.retain(|it| &*it.name == "metadata.version");
    };
    assert_eq!(refused(&one), ErrorCode::UnsupportedVersion);
}

/// Broker 1 was struck off, and so became eligible where it was the last in sync. Then changes of
/// `min.insync.replicas` cleared what was known of eligible leaders of `gone` and of `kept`, and
/// the first was deleted. Java's controller goes on looking for the broker in both, and resigns
/// over the one that is gone.
fn after_it_was_cleared_out_of_elrs() -> World {
    let mut world = World::with_brokers(&[1, 2]);
    let [gone, kept, eligible] = [1, 2, 3].map(Uuid::from_u128);
    world.topic("gone", gone, vec![on(&[1]), on(&[1])]);
    world.topic("kept", kept, vec![on(&[1]), on(&[1, 2])]);
    world.topic("eligible", eligible, vec![on(&[1])]);
    let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(1));
    let left = world.take(0, Request::UnregisterBroker(request)).unwrap();
    let leaderless = "p0, isr [], leader -1, elr [1], last [1]";
    assert_eq!(
        shorts(&left)[..5],
        [
            leaderless,
            "p1, isr [], leader -1, elr [1], last [1]",
            leaderless,
            "p1, isr [2], leader 2",
            leaderless,
        ]
    );
    for topic_name in ["gone", "kept"] {
        let cleared = ClearElrRecord {
            topic_name: topic_name.into(),
            ..ClearElrRecord::default()
        };
        world.replay(&Record::ClearElr(cleared).at(0));
    }
    let removed = RemoveTopicRecord {
        topic_id: gone,
        ..RemoveTopicRecord::default()
    };
    world.replay(&Record::RemoveTopic(removed).at(0));
    world
}

#[test]
fn a_broker_that_was_cleared_out_of_elrs_comes_back_whatever_became_of_the_topics() {
    let mut world = after_it_was_cleared_out_of_elrs();
    let epoch = world.next_offset();
    let decision = world.register(1, 0xb, -1).unwrap();
    assert_eq!(
        shorts(&decision),
        [
            // Of `eligible`: nothing is known of a clean end.
            "p0, elr []".to_owned(),
            format!("register 1 epoch {epoch} fenced"),
        ]
    );
}

#[test]
fn a_partition_that_was_cleared_out_of_an_elr_changes_once_when_its_broker_crashes_again() {
    let mut world = after_it_was_cleared_out_of_elrs();
    world.register(1, 0xb, -1).unwrap();
    world.config(2, "kept", "unclean.leader.election.enable", "true");
    let elected = world.beat(1, |_| {}).unwrap();
    assert!(shorts(&elected).contains(&"p0, isr [1], leader 1, recovery 1".to_owned()));
    // It leads both again, and Java's still takes it for eligible in `kept`-0 as well.
    world.now_ms += 100_000;
    let decision = world.register(1, 0xc, -1).unwrap();
    let changed = decision.records.iter().filter_map(|it| match &it.record {
        Record::PartitionChange(it) => Some((it.topic_id, it.partition_id)),
        _ => None,
    });
    let each_once = [2, 3].map(|topic| (Uuid::from_u128(topic), 0));
    assert_eq!(changed.collect::<Vec<_>>(), each_once);
}
