//! The life of a broker as the controller sees it: registration, heartbeats, fencing, controlled
//! shutdown, lost directories; with every record that is written on the way.

mod handover_tests;
mod incarnation_tests;

use kafka_protocol::messages::{
    BrokerHeartbeatResponse, BrokerRegistrationRequest, ControllerRegistrationRequest,
    broker_registration_request,
};
use kafka_protocol::protocol::StrBytes;

use super::new_partitions::{check_assignment, place};
use super::testing::World;
use super::{Decision, Reply, Request, periodic};
use crate::records::rpc::BrokerHeartbeatRequest;
use crate::records::{PartitionRecord, Record, VersionedRecord};
use crate::types::{ApiError, ErrorCode, NodeId, Uuid};

const TOPIC: Uuid = Uuid::from_u128(0x70);

fn dir(broker: i32) -> Uuid {
    Uuid::from_u128(0x1000 + broker as u128)
}

/// A partition whose replicas are all in sync, led by the first.
fn on(replicas: &[i32]) -> PartitionRecord {
    PartitionRecord {
        replicas: replicas.to_vec(),
        isr: replicas.to_vec(),
        leader: replicas[0],
        directories: replicas.iter().copied().map(dir).collect(),
        ..PartitionRecord::default()
    }
}

/// A record in a few words: what it says and nothing of what it leaves open.
fn short(record: &VersionedRecord) -> String {
    let version = record.version;
    let mut words = Vec::new();
    match &record.record {
        Record::BrokerRegistrationChange(it) => {
            words.push(format!("change v{version} of {}", it.broker_id));
            match it.fenced {
                1 => words.push("fenced".into()),
                -1 => words.push("unfenced".into()),
                _ => {}
            }
            if it.in_controlled_shutdown == 1 {
                words.push("shutting down".into());
            }
            if !it.log_dirs.is_empty() {
                words.push(format!("{} dirs", it.log_dirs.len()));
            }
            if let Some(cordoned) = &it.cordoned_log_dirs {
                words.push(format!("{} cordoned", cordoned.len()));
            }
        }
        Record::PartitionChange(it) => {
            words.push(format!("p{}", it.partition_id));
            if let Some(isr) = &it.isr {
                words.push(format!("isr {isr:?}"));
            }
            if it.leader != -2 {
                words.push(format!("leader {}", it.leader));
            }
            if let Some(elr) = &it.eligible_leader_replicas {
                words.push(format!("elr {elr:?}"));
            }
            if let Some(last) = &it.last_known_elr {
                words.push(format!("last {last:?}"));
            }
            if it.leader_recovery_state != -1 {
                words.push(format!("recovery {}", it.leader_recovery_state));
            }
        }
        Record::RegisterBroker(it) => {
            let state = if it.fenced { "fenced" } else { "unfenced" };
            let id = it.broker_id;
            words.push(format!("register {id} epoch {} {state}", it.broker_epoch));
        }
        other => words.push(format!("{other:?}")),
    }
    words.join(", ")
}

fn shorts(decision: &Decision) -> Vec<String> {
    decision.records.iter().map(short).collect()
}

impl World {
    fn beat(
        &mut self,
        id: i32,
        edit: impl FnOnce(&mut BrokerHeartbeatRequest),
    ) -> Result<Decision, ApiError> {
        let broker = self.image.broker(NodeId(id));
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: broker.map_or(-1, |broker| broker.epoch.0),
            current_metadata_offset: self.next_offset() - 1,
            ..BrokerHeartbeatRequest::default()
        };
        edit(&mut request);
        self.take(2, Request::BrokerHeartbeat(request))
    }

    /// Heartbeats of brokers that want nothing; the records of all of them.
    fn beats(&mut self, ids: &[i32]) -> Vec<String> {
        let all = ids
            .iter()
            .map(|id| shorts(&self.beat(*id, |_| {}).unwrap()));
        all.collect::<Vec<_>>().concat()
    }

    fn register(
        &mut self,
        id: i32,
        incarnation: u128,
        previous_epoch: i64,
    ) -> Result<Decision, ApiError> {
        let request = self.registration(id, incarnation, previous_epoch);
        self.take(4, Request::BrokerRegistration(request))
    }

    /// What the passing of time writes until `ms`, in steps as a process that is not held up sees
    /// it.
    fn pass_until(&mut self, ms: u64) -> Vec<String> {
        let mut written = Vec::new();
        while self.now_ms < ms {
            self.now_ms += 100;
            while periodic::next_due(&self.soft).0 <= self.now_ms {
                let records = self.rule(periodic::run);
                for record in records {
                    self.replay(&record);
                    if !matches!(record.record, Record::NoOp(_)) {
                        written.push(short(&record));
                    }
                }
            }
        }
        written
    }
}

fn answer(decision: &Decision) -> &BrokerHeartbeatResponse {
    match &decision.reply {
        Reply::BrokerHeartbeat(reply) => reply,
        other => panic!("not expected: {other:?}"),
    }
}

/// (caught up, fenced, shut down)
fn told(decision: &Decision) -> (bool, bool, bool) {
    let it = answer(decision);
    (it.is_caught_up, it.is_fenced, it.should_shut_down)
}

fn code(refused: Result<Decision, ApiError>) -> ErrorCode {
    refused.expect_err("it is to be refused").code
}

#[test]
fn a_new_broker_is_fenced_until_it_has_applied_its_registration_and_wants_no_fence() {
    let mut world = World::at_level(33);
    let epoch = world.next_offset();
    let decision = world.register(1, 0xa, -1).unwrap();
    assert_eq!(
        shorts(&decision),
        [format!("register 1 epoch {epoch} fenced")]
    );
    let behind = world
        .beat(1, |it| it.current_metadata_offset = epoch - 1)
        .unwrap();
    assert_eq!(told(&behind), (false, true, false));
    assert!(behind.records.is_empty());
    let fence = world.beat(1, |it| it.want_fence = true).unwrap();
    assert_eq!(told(&fence), (true, true, false));
    assert!(fence.records.is_empty());
    let decision = world.beat(1, |it| it.current_metadata_offset = epoch);
    let decision = decision.unwrap();
    assert_eq!(told(&decision), (true, false, false));
    assert_eq!(shorts(&decision), ["change v0 of 1, unfenced"]);
    assert!(world.beats(&[1]).is_empty());
    let behind = world.beat(1, |it| it.current_metadata_offset = 0).unwrap();
    assert_eq!(told(&behind), (false, false, false), "it stays unfenced");
}

#[test]
fn a_broker_that_is_unfenced_leads_the_partitions_that_wait_for_it() {
    let mut world = World::with_brokers(&[2]);
    world.register(1, 0xa, -1).unwrap();
    let waiting = PartitionRecord {
        isr: Vec::new(),
        leader: -1,
        eligible_leader_replicas: Some(vec![1]),
        last_known_elr: Some(vec![1]),
        ..on(&[1, 2])
    };
    let others = PartitionRecord {
        isr: Vec::new(),
        leader: -1,
        eligible_leader_replicas: Some(vec![3]),
        last_known_elr: Some(vec![3]),
        ..on(&[3, 1])
    };
    world.topic("t", TOPIC, vec![waiting, others, on(&[2])]);
    assert_eq!(
        world.beats(&[1]),
        [
            "change v0 of 1, unfenced",
            "p0, isr [1], leader 1, elr [], last []"
        ]
    );
}

#[test]
fn an_unfenced_broker_may_ask_for_a_fence_or_for_an_end_at_once() {
    let mut world = World::with_brokers(&[1, 2]);
    world.topic("t", TOPIC, vec![on(&[1, 2])]);
    let decision = world.beat(1, |it| it.want_fence = true).unwrap();
    assert_eq!(told(&decision), (true, true, false));
    // The partitions first: nobody may see a fenced leader.
    let expected = ["p0, isr [2], leader 2", "change v0 of 1, fenced"];
    assert_eq!(shorts(&decision), expected);
    let again = world.beat(1, |it| it.want_fence = true).unwrap();
    assert!(again.records.is_empty());
    let both = world.beat(2, |it| {
        it.want_fence = true;
        it.want_shut_down = true;
    });
    let both = both.unwrap();
    assert_eq!(told(&both), (true, true, true));
    let expected = [
        "p0, isr [], leader -1, elr [2], last [2]",
        "change v0 of 2, fenced",
    ];
    assert_eq!(shorts(&both), expected);
}

#[test]
fn a_fenced_broker_or_one_that_leads_nothing_may_end_at_once() {
    let mut world = World::with_brokers(&[1, 2]);
    world.topic("t", TOPIC, vec![on(&[1, 2])]);
    let follower = world.beat(2, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&follower), (true, true, true));
    assert_eq!(shorts(&follower), ["p0, isr [1]", "change v0 of 2, fenced"]);
    let again = world.beat(2, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&again), (true, true, true));
    // As in Java: the end of a fenced broker is a fence once more.
    assert_eq!(shorts(&again), ["change v0 of 2, fenced"]);
}

#[test]
fn the_only_replica_of_a_partition_shuts_down_in_two_steps_and_stays_eligible() {
    let mut world = World::with_brokers(&[1]);
    world.topic("t", TOPIC, vec![on(&[1]), on(&[1])]);
    let first = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&first), (true, false, false));
    assert_eq!(
        shorts(&first),
        [
            "change v1 of 1, shutting down",
            "p0, isr [], leader -1, elr [1], last [1]",
            "p1, isr [], leader -1, elr [1], last [1]",
        ]
    );
    let second = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&second), (true, true, true));
    assert_eq!(shorts(&second), ["change v0 of 1, fenced"]);
}

#[test]
fn a_leader_moves_its_partitions_and_waits_until_the_others_know() {
    let mut world = World::with_brokers(&[1, 2, 3]);
    world.topic("t", TOPIC, vec![on(&[1, 2]), on(&[2, 1])]);
    world.beats(&[1, 2, 3]);
    let first = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&first), (true, false, false));
    assert_eq!(
        shorts(&first),
        [
            "change v1 of 1, shutting down",
            "p0, isr [2], leader 2",
            "p1, isr [2]",
        ]
    );
    let moved = world.next_offset() - 1;
    world.beats(&[2]);
    let early = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&early), (true, false, false), "3 does not know yet");
    assert!(early.records.is_empty());
    world
        .beat(3, |it| it.current_metadata_offset = moved - 1)
        .unwrap();
    let early = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&early), (true, false, false), "one record is missing");
    world
        .beat(3, |it| it.current_metadata_offset = moved)
        .unwrap();
    let last = world.beat(1, |it| it.want_shut_down = true).unwrap();
    assert_eq!(told(&last), (true, true, true));
    assert_eq!(shorts(&last), ["change v0 of 1, fenced"]);
}

#[test]
fn a_broker_that_shuts_down_is_given_what_nobody_else_can_lead() {
    let mut world = World::at_level(22);
    for id in [1, 2] {
        world.broker(id, &[dir(id)]);
    }
    let partition = PartitionRecord {
        isr: vec![1],
        ..on(&[1, 2])
    };
    world.topic("t", TOPIC, vec![partition]);
    let first = world.beat(1, |it| it.want_shut_down = true).unwrap();
    // Below eligible replicas the last member stays in the ISR.
    assert_eq!(
        shorts(&first),
        ["change v1 of 1, shutting down", "p0, leader -1"]
    );
}

#[test]
fn a_heartbeat_of_another_life_is_stale() {
    let mut world = World::with_brokers(&[1]);
    assert_eq!(code(world.beat(9, |_| {})), ErrorCode::StaleBrokerEpoch);
    let refused = world.beat(1, |it| it.broker_epoch += 1);
    assert_eq!(code(refused), ErrorCode::StaleBrokerEpoch);
}

#[test]
fn a_silent_broker_is_fenced_when_its_session_ends_and_the_others_are_not() {
    let mut world = World::with_brokers(&[1, 2]);
    world.topic("t", TOPIC, vec![on(&[1, 2])]);
    world.beats(&[1, 2]);
    let mut written = Vec::new();
    for second in 1..=9 {
        written.extend(world.pass_until(second * 1_000));
        world.beats(&[2]);
    }
    assert!(written.is_empty(), "{written:?}");
    let mut fenced_at = 0;
    while written.is_empty() {
        world.beats(&[2]);
        written = world.pass_until(world.now_ms + 100);
        fenced_at = world.now_ms;
    }
    assert_eq!(written, ["p0, isr [2], leader 2", "change v0 of 1, fenced"]);
    // A session of 9 s, which is over as soon as it is longer than that.
    assert_eq!(fenced_at, 9_100);
}

#[test]
fn a_controller_that_was_held_up_hears_brokers_before_it_fences_them() {
    let mut world = World::with_brokers(&[1]);
    world.beats(&[1]);
    world.now_ms = 60_000;
    assert!(world.rule(periodic::run).is_empty());
    // What waited in the sockets is heard now.
    world.beats(&[1]);
    assert!(world.pass_until(68_000).is_empty());
    // And whoever is really gone is found all the same.
    assert_eq!(world.pass_until(72_000), ["change v0 of 1, fenced"]);
}

#[test]
fn a_heartbeat_that_waited_too_long_still_keeps_the_session() {
    let mut world = World::with_brokers(&[1]);
    world.beats(&[1]);
    assert!(world.pass_until(8_000).is_empty());
    let request = Request::BrokerHeartbeat(BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: world.image.broker(NodeId(1)).unwrap().epoch.0,
        ..BrokerHeartbeatRequest::default()
    });
    world.rule(|view, soft| super::note_undecided(view, soft, &request));
    assert!(world.pass_until(16_000).is_empty());
    assert_eq!(world.pass_until(19_000), ["change v0 of 1, fenced"]);
}

#[test]
fn a_broker_that_ended_in_order_is_not_fenced_a_second_time() {
    let mut world = World::with_brokers(&[1]);
    world.beats(&[1]);
    world.beat(1, |it| it.want_shut_down = true).unwrap();
    // Java writes the fence again here, which changes nothing.
    assert!(world.pass_until(30_000).is_empty());
}

#[test]
fn directories_that_went_offline_leave_the_isr_and_the_registration() {
    let mut world = World::at_level(33);
    world.broker(1, &[dir(1), dir(11)]);
    world.broker(2, &[dir(2)]);
    let elsewhere = PartitionRecord {
        directories: vec![dir(11), dir(2)],
        ..on(&[1, 2])
    };
    world.topic("t", TOPIC, vec![on(&[1, 2]), elsewhere, on(&[2, 1])]);
    let decision = world.beat(1, |it| it.offline_log_dirs = vec![dir(1), dir(99)]);
    let decision = decision.unwrap();
    assert_eq!(
        shorts(&decision),
        [
            "p0, isr [2], leader 2",
            "p2, isr [2]",
            "change v2 of 1, 1 dirs"
        ]
    );
    let again = world
        .beat(1, |it| it.offline_log_dirs = vec![dir(1)])
        .unwrap();
    assert!(again.records.is_empty(), "brokers repeat what is offline");
    let broker = world.image.broker(NodeId(1)).unwrap();
    assert_eq!(broker.directories, [dir(11)]);
}

#[test]
fn the_first_word_about_cordoned_directories_is_written_and_then_changes_alone() {
    let mut world = World::at_level(33);
    world.broker(1, &[dir(1), dir(11), dir(12)]);
    let mut cordon = |list: Option<Vec<Uuid>>| {
        let decision = world.beat(1, |it| it.cordoned_log_dirs = list).unwrap();
        shorts(&decision)
    };
    assert!(cordon(None).is_empty());
    assert_eq!(cordon(Some(Vec::new())), ["change v3 of 1, 0 cordoned"]);
    assert!(cordon(Some(Vec::new())).is_empty());
    let two = vec![dir(12), dir(11)];
    assert_eq!(cordon(Some(two.clone())), ["change v3 of 1, 2 cordoned"]);
    assert!(cordon(Some(two)).is_empty());
    assert!(cordon(Some(vec![dir(11), dir(12)])).is_empty(), "a set");
}

#[test]
fn old_levels_have_no_place_for_directories() {
    let mut world = World::at_level(16);
    world.broker(1, &[]);
    let decision = world.beat(1, |it| {
        it.offline_log_dirs = vec![dir(1)];
        it.cordoned_log_dirs = Some(vec![dir(1)]);
    });
    assert!(decision.unwrap().records.is_empty());
}

#[test]
fn a_topic_that_allows_it_is_led_by_a_replica_that_may_lack_records() {
    let partition = || PartitionRecord {
        isr: vec![1],
        ..on(&[1, 2])
    };
    for (kind, name, value, leads) in [
        (2, "t", "true", true),
        (2, "t", "TRUE", true),
        (2, "t", "false", false),
        (4, "", "true", true),
        (4, "1", "true", true),
        (4, "2", "true", false),
    ] {
        let mut world = World::with_brokers(&[1, 2]);
        world.topic("t", TOPIC, vec![partition()]);
        world.config(kind, name, "unclean.leader.election.enable", value);
        let fenced = world.beat(1, |it| it.want_fence = true).unwrap();
        let expected = if leads {
            "p0, isr [2], leader 2, recovery 1"
        } else {
            "p0, isr [], leader -1, elr [1], last [1]"
        };
        assert_eq!(shorts(&fenced)[0], expected, "{kind} '{name}' {value}");
    }
}

#[test]
fn a_node_that_registers_with_a_negative_id_is_refused_and_nothing_is_written() {
    for id in [-1, -2, i32::MIN] {
        let mut world = World::with_brokers(&[1]);
        let request = world.registration(id, 7, -1);
        let mut refused = |request: Request, code| {
            let refusal = world.take(0, request).unwrap_err();
            assert_eq!(refusal.code, code, "{id}");
        };
        let broker = Request::BrokerRegistration(request.clone());
        refused(broker, ErrorCode::InvalidRegistration);
        let other = request.with_cluster_id("another".into());
        let broker = Request::BrokerRegistration(other);
        refused(broker, ErrorCode::InconsistentClusterId);
        let controller = ControllerRegistrationRequest::default().with_controller_id(id);
        let controller = Request::ControllerRegistration(controller);
        refused(controller, ErrorCode::InvalidRequest);
    }
}

#[test]
fn a_broker_of_a_java_log_with_a_negative_id_gets_no_replicas() {
    let mut world = World::with_brokers(&[1, -1]);
    let image = world.image.clone();
    for _ in 0..20 {
        let placed = place(&image, &mut world.soft, 4, 1).unwrap();
        assert!(placed.iter().all(|it| it == &[1]), "{placed:?}");
    }
    let refused = check_assignment(&image, &[1, -1], None).unwrap_err();
    assert!(
        refused.contains("broker -1, but no such broker"),
        "{refused}"
    );
    assert!(check_assignment(&image, &[1], None).is_ok());
}
