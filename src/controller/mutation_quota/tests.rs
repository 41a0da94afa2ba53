//! The quota beside Java's own, and in the requests that it is for.

use kafka_protocol::messages as km;
use kafka_protocol::messages::create_topics_request::CreatableTopic;

use super::*;
use crate::controller::testing::World;
use crate::controller::{Reply, Request};
use crate::records::{ClientQuotaRecord, EntityData, PartitionRecord, Record};
use crate::types::Uuid;

const PARTS: [&str; 2] = [USER, CLIENT_ID];

/// Sets the rate of an entity, or removes it. `-` is no part of the entity, `*` its default.
fn set(world: &mut World, parts: [&str; 2], rate: Option<f64>) {
    let entity = PARTS.iter().zip(parts).filter(|(_, name)| *name != "-");
    let record = ClientQuotaRecord {
        entity: entity
            .map(|(kind, name)| EntityData {
                entity_type: (*kind).to_owned(),
                entity_name: (name != "*").then(|| name.to_owned()),
                ..EntityData::default()
            })
            .collect(),
        key: MUTATION_RATE.into(),
        value: rate.unwrap_or_default(),
        remove: rate.is_none(),
        ..ClientQuotaRecord::default()
    };
    world.replay(&Record::ClientQuota(record).at(0));
}

fn client(user: &str, client_id: &str) -> Context {
    let mut context = Context::default();
    context.principal.name = user.to_owned();
    context.client_id = client_id.to_owned();
    context
}

/// One step of a trace: what Java's quota said of each charge, and how long the client is to wait.
fn charged(world: &mut World, cells: &[&str]) -> Vec<String> {
    let [user, client_id, mode, charges @ .., _] = cells else {
        panic!("{cells:?}")
    };
    let context = client(user, client_id);
    let version = i16::from(*mode == "strict");
    let mut told: Vec<String> = cells[..3].iter().map(|cell| (*cell).to_owned()).collect();
    world.rule(|view, soft| {
        let mut meter = Meter::new(view, soft, &context, version, 1);
        for charge in charges {
            let partitions = charge.split(' ').next().unwrap();
            let outcome = meter.charge(view, soft, partitions.parse().unwrap());
            let word = match outcome {
                Ok(()) => "ok",
                Err(error) => {
                    assert_eq!(error, ErrorCode::ThrottlingQuotaExceeded.into());
                    "refused"
                }
            };
            told.push(format!("{partitions} {word}"));
        }
        told.push(meter.throttle_time_ms().to_string());
    });
    told
}

#[test]
fn every_charge_is_answered_as_javas_quota_answers_it() {
    let traces = include_str!("../../../fixtures/4.4.0/quotas/mutations.tsv");
    let mut world = World::empty();
    let mut charges = 0;
    for (at, line) in traces.lines().enumerate() {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells[..] {
            ["start", windows, seconds] => {
                world = World::at_level(33);
                world.settings.quota_windows = windows.parse().unwrap();
                world.settings.quota_window_seconds = seconds.parse().unwrap();
            }
            [ms, "quota", user, client_id, rate] => {
                world.now_ms = ms.parse().unwrap();
                set(&mut world, [user, client_id], rate.parse().ok());
            }
            [ms, "charge", ref rest @ ..] => {
                world.now_ms = ms.parse().unwrap();
                assert_eq!(charged(&mut world, rest), rest, "line {}", at + 1);
                charges += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert!(charges > 4_000);
}

#[test]
fn nobody_is_limited_by_quotas_of_other_kinds() {
    let mut world = World::at_level(33);
    set(&mut world, ["bob", "-"], Some(1.0));
    let told = charged(
        &mut world,
        &["alice", "app", "strict", "9000 ok", "9000 ok", "0"],
    );
    assert_eq!(told[3..], ["9000 ok", "9000 ok", "0"]);
    assert!(world.soft.mutations.buckets.is_empty());
}

#[test]
fn buckets_are_bounded_and_who_owes_most_is_remembered() {
    let mut world = World::at_level(33);
    set(&mut world, ["-", "*"], Some(1.0));
    for id in 0..3 * BUCKETS_MAX {
        let id = format!("client-{id}");
        charged(&mut world, &["alice", &id, "strict", "12 ok", "0"]);
        if id == "client-5" {
            charged(&mut world, &["alice", &id, "permissive", "5000 ok", "0"]);
        }
        assert!(world.soft.mutations.buckets.len() <= BUCKETS_MAX);
    }
    let told = charged(
        &mut world,
        &["alice", "client-5", "strict", "1 refused", "0"],
    );
    assert_eq!(told[3], "1 refused");
    // What is full again makes room first.
    world.now_ms += 100_000;
    charged(&mut world, &["alice", "new", "strict", "1 ok", "0"]);
    assert!(world.soft.mutations.buckets.len() <= BUCKETS_MAX);
}

/// Who chooses names of the longest kind must not choose how much memory is taken.
#[test]
fn buckets_are_bounded_in_bytes_however_long_names_are() {
    let mut world = World::at_level(33);
    set(&mut world, ["*", "*"], Some(1.0));
    let long = |end: String| format!("{:x<32760}{end}", "");
    let ask = |world: &mut World, user: &str, client_id: &str, told: &str| {
        let cells = [user, client_id, "strict", told, "0"];
        assert_eq!(charged(world, &cells)[3], told);
    };
    for number in 0..40 {
        let (user, client_id) = (long(number.to_string()), long(format!("c{number}")));
        ask(&mut world, &user, &client_id, "12 ok");
    }
    let buckets = &world.soft.mutations.buckets;
    assert_eq!(buckets.len(), 40);
    // What a bucket holds is all in place: nothing of it can grow with a name.
    fn in_place<T: Copy>(_: &T) -> usize {
        size_of::<T>()
    }
    let (owner, bucket) = buckets.first_key_value().unwrap();
    assert!((in_place(owner) + in_place(bucket)) * BUCKETS_MAX <= BYTES_MAX);
    // Each is still whose it was, and no two owners share one.
    ask(
        &mut world,
        &long("7".into()),
        &long("c7".into()),
        "12 refused",
    );
    ask(&mut world, "ab", "c", "12 ok");
    ask(&mut world, "a", "bc", "12 ok");
    ask(&mut world, "ab", "c", "12 refused");
}

#[test]
fn kinds_of_quotas_are_right_when_quotas_come_and_go_and_few_others_are_beside_them() {
    let mut world = World::at_level(33);
    for at in 0..1_000 {
        set(&mut world, [&format!("user-{at:04}"), "-"], Some(1.0));
        set(&mut world, ["-", &format!("app-{at:04}")], Some(1.0));
    }
    let mut buckets = Buckets::default();
    let kinds = buckets.kinds(&world.image);
    assert_eq!(
        (kinds.users, kinds.client_ids, kinds.pairs),
        (1_000, 1_000, 0)
    );
    let before = world.image.clone();
    set(&mut world, ["user-0500", "-"], None);
    set(&mut world, ["user-0501", "app"], Some(1.0));
    let come = world.image.quotas().apart(before.quotas());
    assert!(come.count() < 400);
    let counted = buckets.kinds(&world.image);
    assert_eq!(counted, Kinds::of(world.image.quotas().iter()));
    assert_eq!(
        (counted.users, counted.client_ids, counted.pairs),
        (999, 1_000, 1)
    );
    // Back again, as when a leader loses what was not committed.
    assert_eq!(buckets.kinds(&before), kinds);
}

#[test]
fn a_rate_that_no_record_should_have_limits_without_a_panic() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
        let mut world = World::at_level(33);
        set(&mut world, ["*", "-"], Some(rate));
        for id in 0..=BUCKETS_MAX {
            let id = format!("user-{id}");
            charged(&mut world, &[&id, "app", "strict", "12 ok", "1 ok", "0"]);
        }
    }
}

/// Topics of these partitions as CreateTopics asks for them.
fn topics(names: &[(&'static str, i32)]) -> km::CreateTopicsRequest {
    let topic = |(name, partitions): &(&'static str, i32)| {
        CreatableTopic::default()
            .with_name(km::TopicName((*name).into()))
            .with_num_partitions(*partitions)
            .with_replication_factor(1)
    };
    km::CreateTopicsRequest::default().with_topics(names.iter().map(topic).collect())
}

/// The codes of a CreateTopics answer in the order of the request, and the time to wait.
fn created(world: &mut World, version: i16, request: km::CreateTopicsRequest) -> (Vec<i16>, i32) {
    let request = Request::CreateTopics(request);
    let Reply::CreateTopics(reply) = world.run(version, request).unwrap() else {
        unreachable!()
    };
    for topic in &reply.topics {
        assert_eq!(topic.error_message, None);
    }
    let codes = reply.topics.iter().map(|topic| topic.error_code).collect();
    (codes, reply.throttle_time_ms)
}

/// As Kafka's ControllerMutationQuotaTest has it: a rate of 2 in windows of 11 seconds.
#[test]
fn topics_beyond_the_quota_are_refused_from_version_6_on_and_delayed_before() {
    let refused = ErrorCode::ThrottlingQuotaExceeded.code();
    for (version, second) in [(6, refused), (5, 0)] {
        let mut world = World::with_brokers(&[2]);
        world.context = client("alice", "app");
        set(&mut world, ["alice", "-"], Some(2.0));
        let (codes, wait) = created(&mut world, version, topics(&[("a", 30), ("b", 30)]));
        assert_eq!(codes, [0, second]);
        // 22 tokens are 8 below zero after the first, 38 after the second.
        assert_eq!(wait, if version == 6 { 4_000 } else { 19_000 });
        // What was refused is not owed; what was done is.
        world.now_ms += 4_001;
        let (codes, wait) = created(&mut world, 7, topics(&[("c", 1)]));
        assert_eq!(
            (codes, wait > 0),
            (vec![[0, refused][usize::from(second == 0)]], second == 0)
        );
    }
}

#[test]
fn what_is_only_validated_is_charged_as_well() {
    let mut world = World::with_brokers(&[2]);
    world.context = client("alice", "app");
    set(&mut world, ["*", "*"], Some(1.0));
    let request = || topics(&[("a", 20)]).with_validate_only(true);
    assert_eq!(created(&mut world, 7, request()), (vec![0], 0));
    let (codes, wait) = created(&mut world, 7, request());
    assert_eq!((codes, wait), (vec![89], 9_000));
}

#[test]
fn partitions_that_are_added_or_deleted_are_charged() {
    let mut world = World::with_brokers(&[2]);
    world.context = client("alice", "app");
    let partition = || PartitionRecord {
        replicas: vec![2],
        isr: vec![2],
        leader: 2,
        ..PartitionRecord::default()
    };
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let partitions = (0..30).map(|_| partition()).collect();
        world.topic(name, Uuid::from_u128(at as u128 + 1), partitions);
    }
    set(&mut world, ["-", "app"], Some(2.0));
    let names = ["a", "b"].map(|name| km::TopicName(name.into()));
    let delete = km::DeleteTopicsRequest::default().with_topic_names(names.into());
    for (version, codes, wait) in [(5, [0, 89], 4_000), (4, [0, 0], 19_000)] {
        world.soft.mutations = Buckets::default();
        let request = Request::DeleteTopics(delete.clone());
        let Reply::DeleteTopics(reply) = world.ask(version, request).unwrap().reply else {
            unreachable!()
        };
        let mut told: Vec<i16> = reply.responses.iter().map(|it| it.error_code).collect();
        told.sort_unstable();
        assert_eq!(
            (told.as_slice(), reply.throttle_time_ms),
            (&codes[..], wait)
        );
    }
    let grow = |name: &str| {
        km::create_partitions_request::CreatePartitionsTopic::default()
            .with_name(km::TopicName(name.to_owned().into()))
            .with_count(60)
            .with_assignments(None)
    };
    let grow = km::CreatePartitionsRequest::default().with_topics(vec![grow("a"), grow("b")]);
    for (version, codes, wait) in [(3, [0, 89], 4_000), (2, [0, 0], 19_000)] {
        world.soft.mutations = Buckets::default();
        let request = Request::CreatePartitions(grow.clone());
        let Reply::CreatePartitions(reply) = world.ask(version, request).unwrap().reply else {
            unreachable!()
        };
        let told: Vec<i16> = reply.results.iter().map(|it| it.error_code).collect();
        assert_eq!(
            (told.as_slice(), reply.throttle_time_ms),
            (&codes[..], wait)
        );
        assert_eq!(
            Reply::CreatePartitions(reply).throttle_time_ms(),
            wait as u32
        );
    }
}
