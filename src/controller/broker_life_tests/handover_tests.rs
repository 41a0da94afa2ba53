//! More partitions than one step changes: what is seen in between, and that it ends the same.

use kafka_protocol::messages::{BrokerId, UnregisterBrokerRequest};

use super::*;
use crate::controller::leaders::{self, Cause, SLICE};
use crate::controller::{Soft, works};
use crate::image::Image;
use crate::records::PartitionChangeRecord;
use crate::types::{Now, Ticket};

/// Topics of as many partitions, which broker 1 leads and broker 2 follows.
const TOPICS: usize = 5;

/// Two slices and a half.
fn large() -> World {
    let mut world = World::with_brokers(&[1, 2, 3]);
    for topic in 0..TOPICS {
        let partitions = vec![on(&[1, 2]); SLICE / 2];
        let id = Uuid::from_u128(0x70 + topic as u128);
        world.topic(&format!("t{topic}"), id, partitions);
    }
    world.beats(&[1, 2, 3]);
    world
}

impl World {
    /// One step of periodic work; NoOp records are left out.
    fn step(&mut self) -> Vec<VersionedRecord> {
        let records = self.rule(periodic::run);
        for record in &records {
            self.replay(record);
        }
        let told = |it: &VersionedRecord| !matches!(it.record, Record::NoOp(_));
        records.into_iter().filter(told).collect()
    }

    /// Steps until records come.
    fn next_step(&mut self) -> Vec<VersionedRecord> {
        for _ in 0..10 {
            let records = self.step();
            if !records.is_empty() {
                return records;
            }
        }
        Vec::new()
    }

    /// Everything that is due, in the sizes of its steps.
    fn steps(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| Some(self.next_step().len()).filter(|len| *len > 0)).collect()
    }

    /// Lets the session of broker 1 end and no other.
    fn silence_1(&mut self) {
        for _ in 0..9 {
            self.now_ms += 1_000;
            self.beats(&[2, 3]);
            assert!(self.steps().is_empty());
        }
        self.now_ms += 1;
    }

    fn is_fenced(&self, id: i32) -> bool {
        self.image.broker(NodeId(id)).unwrap().fenced
    }

    fn memberships(&self, id: i32) -> usize {
        self.image.partitions_with_isr_member(NodeId(id)).count()
    }

    fn led_by(&self, id: i32) -> usize {
        self.image.leader_count(NodeId(id))
    }
}

#[test]
fn a_large_broker_is_fenced_in_slices_and_its_registration_changes_last() {
    let mut world = large();
    world.silence_1();
    let mut lengths = Vec::new();
    while !world.is_fenced(1) {
        let records = world.next_step();
        let last = records.last().map(short);
        assert_eq!(
            last == Some("change v0 of 1, fenced".into()),
            world.is_fenced(1)
        );
        lengths.push(records.len());
        // Others are heard in between.
        assert_eq!(told(&world.beat(2, |_| {}).unwrap()), (true, false, false));
    }
    assert_eq!(lengths, [SLICE, SLICE, SLICE / 2 + 1]);
    assert_eq!(world.led_by(2), world.image.partition_count());
    assert!(world.steps().is_empty());
}

/// A controller that goes on although its work could not be written comes back to it.
#[test]
fn a_silent_broker_whose_fencing_was_left_undone_is_fenced_a_session_later() {
    let mut world = World::with_brokers(&[1, 2, 3]);
    world.beats(&[1, 2, 3]);
    world.silence_1();
    let mut steps = std::iter::repeat_with(|| world.rule(periodic::run)).take(10);
    let lost = steps
        .find(|records| !records.is_empty())
        .expect("it is due");
    assert_eq!(short(&lost[0]), "change v0 of 1, fenced");
    world.rule(periodic::left_undone);
    world.silence_1();
    assert!(!world.is_fenced(1));
    assert_eq!(world.steps(), [1]);
    assert!(world.is_fenced(1) && !world.is_fenced(2));
}

#[test]
fn a_broker_does_not_wait_for_the_end_of_a_handover_that_was_left_undone() {
    let mut world = large();
    let leaving = |world: &mut World| world.beat(1, |it| it.want_shut_down = true).unwrap();
    leaving(&mut world);
    let mut steps = 0;
    loop {
        let records = world.rule(periodic::run);
        if world.soft.brokers.shutdown_offset(NodeId(1)) != Some(i64::MAX) {
            assert!(!records.is_empty(), "the last step is the one that is lost");
            break;
        }
        for record in &records {
            world.replay(record);
        }
        steps += 1;
        assert!(steps < 100, "it has no last step");
    }
    world.rule(periodic::left_undone);
    for _ in 0..3 * TOPICS {
        leaving(&mut world);
        world.steps();
    }
    assert_eq!(world.led_by(1), 0);
}

#[test]
fn slices_end_where_one_step_would() {
    let mut at_once = large();
    let records = at_once.rule(|view, _| {
        let mut records = Vec::new();
        let members = view.image.partitions_with_isr_member(NodeId(1));
        leaders::update(view, Cause::Leaves(NodeId(1)), members, &mut records);
        records
    });
    assert_eq!(records.len(), TOPICS * SLICE / 2);
    for record in &records {
        at_once.replay(record);
    }
    let mut sliced = large();
    sliced.silence_1();
    sliced.steps();
    let topics = |image: &Image| {
        image
            .topics()
            .flat_map(|topic| topic.partitions().collect::<Vec<_>>())
            .map(|(id, it)| (id, it.isr().to_vec(), it.leader(), it.partition_epoch()))
            .collect::<Vec<_>>()
    };
    assert_eq!(topics(&sliced.image), topics(&at_once.image));
}

#[test]
fn who_is_heard_of_amid_fencing_keeps_what_is_left() {
    let mut world = large();
    world.silence_1();
    assert_eq!(world.next_step().len(), SLICE);
    assert_eq!(told(&world.beat(1, |_| {}).unwrap()), (true, false, false));
    assert!(world.steps().is_empty());
    assert_eq!(world.led_by(1), world.image.partition_count() - SLICE);
    // The session is a new one, and ends as any other.
    world.silence_1();
    assert_eq!(world.steps(), [SLICE, SLICE / 2 + 1]);
}

#[test]
fn a_heartbeat_that_is_not_decided_amid_fencing_counts_as_well() {
    let mut world = large();
    world.silence_1();
    assert_eq!(world.next_step().len(), SLICE);
    let request = Request::BrokerHeartbeat(BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: world.image.broker(NodeId(1)).unwrap().epoch.0,
        ..BrokerHeartbeatRequest::default()
    });
    world.rule(|view, soft| crate::controller::note_undecided(view, soft, &request));
    assert!(world.steps().is_empty());
}

/// Broker 1 leads the partition again that it was just taken from.
fn come_back(world: &mut World, taken: VersionedRecord) {
    let Record::PartitionChange(change) = taken.record else {
        panic!("leaders move first");
    };
    let back = PartitionChangeRecord {
        isr: Some(vec![2, 1]),
        leader: 1,
        ..change
    };
    world.replay(&Record::PartitionChange(back).at(2));
}

#[test]
fn who_comes_back_into_an_isr_behind_a_slice_leaves_it_after_all() {
    let mut world = large();
    world.silence_1();
    let change = world.next_step().remove(0);
    come_back(&mut world, change);
    assert_eq!(world.steps(), [SLICE, SLICE / 2 + 2]);
    assert_eq!(world.memberships(1), 0);
}

#[test]
fn a_new_incarnation_amid_fencing_is_let_alone() {
    let mut world = large();
    world.silence_1();
    assert_eq!(world.next_step().len(), SLICE);
    let request = Request::BrokerRegistration(world.registration(1, 0xb, -2));
    let (steps, answer) = world.steps_of(4, request);
    answer.unwrap();
    assert_eq!(steps, [SLICE, SLICE / 2 + 1]);
    assert_eq!(world.memberships(1), 0);
    assert!(world.steps().is_empty());
    assert_eq!(told(&world.beat(1, |_| {}).unwrap()), (true, false, false));
    assert!(world.steps().is_empty());
    assert!(!world.is_fenced(1));
}

#[test]
fn two_silent_brokers_are_fenced_one_after_the_other() {
    let mut world = large();
    for _ in 0..9 {
        world.now_ms += 1_000;
        world.beats(&[3]);
        assert!(world.steps().is_empty());
    }
    world.now_ms += 1;
    let all = world.image.partition_count();
    assert_eq!(world.steps().iter().sum::<usize>(), 2 * all + 2);
    assert!(world.is_fenced(1) && world.is_fenced(2) && !world.is_fenced(3));
    assert_eq!(world.led_by(NodeId::NONE.0), all);
}

#[test]
fn a_large_broker_may_go_when_the_others_know_its_last_slice() {
    let mut world = large();
    let leave = |it: &mut BrokerHeartbeatRequest| it.want_shut_down = true;
    let decision = world.beat(1, leave).unwrap();
    assert_eq!(short(&decision.records[0]), "change v1 of 1, shutting down");
    assert_eq!(decision.records.len(), SLICE);
    world.beats(&[2, 3]);
    assert_eq!(world.step().len(), SLICE);
    assert_eq!(told(&world.beat(1, leave).unwrap()), (true, false, false));
    assert_eq!(world.led_by(1), 0);
    // The last slice came with the heartbeat: the others have not said that they know it.
    assert_eq!(told(&world.beat(1, leave).unwrap()), (true, false, false));
    assert!(world.steps().is_empty());
    world.beats(&[2, 3]);
    assert_eq!(told(&world.beat(1, leave).unwrap()), (true, true, true));
}

#[test]
fn a_large_broker_that_falls_silent_while_it_leaves_is_fenced_and_may_still_come_back() {
    let mut world = large();
    let leave = |it: &mut BrokerHeartbeatRequest| it.want_shut_down = true;
    world.beat(1, leave).unwrap();
    world.now_ms += 9_001;
    world.beats(&[2, 3]);
    // What is due first is to look at the sessions.
    assert!(world.step().is_empty());
    assert_eq!(world.next_step().len(), SLICE);
    // Its leaving goes on where its fencing came to.
    world.beat(1, leave).unwrap();
    assert_eq!((world.memberships(1), world.is_fenced(1)), (0, false));
    world.beats(&[2, 3]);
    assert_eq!(told(&world.beat(1, leave).unwrap()), (true, true, true));
}

#[test]
fn a_broker_that_wants_a_fence_is_told_of_it_after_the_last_slice() {
    let mut world = large();
    let fence = |it: &mut BrokerHeartbeatRequest| it.want_fence = true;
    let decision = world.beat(1, fence).unwrap();
    assert_eq!(told(&decision), (true, false, false));
    assert_eq!(decision.records.len(), SLICE);
    assert_eq!(world.steps(), [SLICE, SLICE / 2 + 1]);
    assert_eq!(told(&world.beat(1, fence).unwrap()), (true, true, false));
}

/// The large cluster without leaders: both brokers that have replicas are fenced.
fn leaderless() -> World {
    let mut world = large();
    for id in [2, 1] {
        while !world.is_fenced(id) {
            world.beat(id, |it| it.want_fence = true).unwrap();
        }
    }
    assert_eq!(world.led_by(NodeId::NONE.0), world.image.partition_count());
    assert!(world.steps().is_empty());
    world
}

#[test]
fn a_broker_that_comes_is_unfenced_first_and_leads_slice_after_slice() {
    let mut world = leaderless();
    let decision = world.beat(1, |_| {}).unwrap();
    assert_eq!(short(&decision.records[0]), "change v0 of 1, unfenced");
    assert_eq!(decision.records.len(), SLICE);
    assert_eq!(told(&decision), (true, false, false));
    assert_eq!(world.steps(), [SLICE, SLICE / 2 + 1]);
    assert_eq!(world.led_by(1), world.image.partition_count());
}

#[test]
fn a_controller_that_takes_over_amid_elections_goes_on_with_them() {
    let mut world = leaderless();
    world.beat(1, |_| {}).unwrap();
    world.soft = Soft::new(&world.settings, &world.image, Now::default(), 2);
    world.steps();
    assert_eq!(world.led_by(1), world.image.partition_count());
}

/// A step that looked at nothing but partitions which nobody here may lead went on with the first
/// of the same topic again, for ever, and whoever came behind it stayed without a leader.
#[test]
fn a_topic_of_which_nothing_can_be_elected_does_not_hold_up_those_behind_it() {
    let mut world = World::with_brokers(&[1, 2, 3]);
    let left_by_2 = PartitionRecord {
        isr: vec![2],
        leader: NodeId::NONE.0,
        ..on(&[1, 2])
    };
    let left_by_1 = PartitionRecord {
        isr: vec![1],
        ..left_by_2.clone()
    };
    let partitions = vec![left_by_2; 4 * SLICE + 1];
    world.topic("hopeless", Uuid::from_u128(0x70), partitions);
    world.topic("behind", Uuid::from_u128(0x71), vec![left_by_1]);
    world.change(1, |it| it.fenced = 1);
    world.change(2, |it| it.fenced = 1);
    world.soft = Soft::new(&world.settings, &world.image, Now::default(), 2);
    world.beats(&[3]);
    world.beat(1, |_| {}).unwrap();
    assert_eq!(world.steps(), [1]);
    assert_eq!(world.led_by(1), 1);
    assert!(!world.soft.handovers.pending());
}

/// Only those that the broker may lead were looked at, and Java's records for the others missing.
#[test]
fn a_broker_that_comes_has_leaderless_partitions_forget_their_eligible_ones_led_or_not() {
    let mut world = World::with_brokers(&[1, 2, 3]);
    let enough_in_sync = PartitionRecord {
        isr: vec![1],
        leader: NodeId::NONE.0,
        eligible_leader_replicas: Some(vec![2]),
        ..on(&[1, 2])
    };
    world.topic("t", Uuid::from_u128(0x70), vec![enough_in_sync]);
    for id in [1, 2, 3] {
        world.change(id, |it| it.fenced = 1);
    }
    let decision = world.beat(3, |_| {}).unwrap();
    assert_eq!(
        shorts(&decision),
        ["change v0 of 3, unfenced", "p0, elr []"]
    );
}

/// The large cluster; broker 1 has a second directory with nothing in it.
fn with_two_directories() -> World {
    let mut world = large();
    world.change(1, |it| it.log_dirs = vec![dir(1), dir(11)]);
    world.beats(&[1, 2, 3]);
    world
}

#[test]
fn a_large_directory_is_lost_in_slices_and_the_registration_changes_last() {
    let mut world = with_two_directories();
    let offline = |it: &mut BrokerHeartbeatRequest| it.offline_log_dirs = vec![dir(1)];
    let decision = world.beat(1, offline).unwrap();
    assert_eq!(decision.records.len(), SLICE);
    assert_eq!(told(&decision), (true, false, false));
    let directories = |world: &World| world.image.broker(NodeId(1)).unwrap().directories.len();
    assert_eq!((world.next_step().len(), directories(&world)), (SLICE, 2));
    assert_eq!(world.steps(), [SLICE / 2, 1]);
    assert_eq!((world.memberships(1), directories(&world)), (0, 1));
    assert!(world.beat(1, offline).unwrap().records.is_empty());
}

#[test]
fn who_comes_back_into_a_lost_directory_behind_a_slice_leaves_it_after_all() {
    let mut world = with_two_directories();
    let offline = |it: &mut BrokerHeartbeatRequest| it.offline_log_dirs = vec![dir(1)];
    let change = world.beat(1, offline).unwrap().records.remove(0);
    come_back(&mut world, change);
    assert_eq!(world.steps(), [SLICE, SLICE / 2, 2]);
    assert_eq!(world.memberships(1), 0);
}

#[test]
fn a_controller_that_takes_over_amid_a_lost_directory_is_told_of_it_again() {
    let mut world = with_two_directories();
    let offline = |it: &mut BrokerHeartbeatRequest| it.offline_log_dirs = vec![dir(1)];
    world.beat(1, offline).unwrap();
    world.soft = Soft::new(&world.settings, &world.image, Now::default(), 2);
    assert!(world.steps().is_empty());
    world.beat(1, offline).unwrap();
    world.steps();
    assert_eq!(world.memberships(1), 0);
    assert_eq!(
        world.image.broker(NodeId(1)).unwrap().directories,
        [dir(11)]
    );
}

/// Without eligible leader replicas they stay in sync for as long as their broker is away, and were
/// worked out anew in every last step.
#[test]
fn those_that_nobody_else_can_lead_keep_their_last_in_sync() {
    let behind = PartitionRecord {
        isr: vec![1],
        ..on(&[1, 2])
    };
    for partition in [on(&[1]), behind] {
        let mut world = World::at_level(20);
        world.broker(1, &[dir(1)]);
        world.broker(2, &[dir(2)]);
        world.topic("t", Uuid::from_u128(0x70), vec![partition; SLICE + 1]);
        world.beats(&[1, 2]);
        let fence = |it: &mut BrokerHeartbeatRequest| it.want_fence = true;
        assert_eq!(world.beat(1, fence).unwrap().records.len(), SLICE);
        assert_eq!(world.steps(), [2]);
        assert!(world.is_fenced(1));
        assert_eq!(world.memberships(1), SLICE + 1);
        assert_eq!(world.led_by(NodeId::NONE.0), SLICE + 1);
    }
}

/// What a decision about a broker moves together with its records.
fn tied(world: &World) -> String {
    format!("{:?}, {:?}", world.soft.brokers, world.soft.handovers)
}

/// The large cluster, in which a task of broker 2 stands between two of broker 1.
fn with_tasks() -> World {
    let mut world = with_two_directories();
    let offline = |it: &mut BrokerHeartbeatRequest| it.offline_log_dirs = vec![dir(1)];
    world.beat(1, offline).unwrap();
    world.beat(2, |it| it.want_fence = true).unwrap();
    world.beat(1, |it| it.want_shut_down = true).unwrap();
    let places = |id| {
        let tasks = world.soft.handovers.tasks_of(NodeId(id)).into_iter();
        tasks.map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!((places(1), places(2)), (vec![0, 2], vec![1]));
    world
}

#[test]
fn a_decision_that_is_taken_back_leaves_the_tasks_and_words_of_all_brokers_as_they_were() {
    let mut world = with_tasks();
    let heartbeat = |world: &World, id, edit: &dyn Fn(&mut BrokerHeartbeatRequest)| {
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: world.image.broker(NodeId(id)).unwrap().epoch.0,
            current_metadata_offset: world.next_offset() - 1,
            ..BrokerHeartbeatRequest::default()
        };
        edit(&mut request);
        (2, Request::BrokerHeartbeat(request))
    };
    let again = world.registration(2, 3, -1);
    let unregister = UnregisterBrokerRequest::default().with_broker_id(BrokerId(3));
    let requests = [
        heartbeat(&world, 1, &|it| {
            it.want_shut_down = true;
            it.offline_log_dirs = vec![dir(1)];
        }),
        heartbeat(&world, 1, &|it| it.offline_log_dirs = vec![dir(11)]),
        heartbeat(&world, 2, &|_| {}),
        heartbeat(&world, 2, &|it| it.want_fence = true),
        heartbeat(&world, 3, &|it| it.want_fence = true),
        (4, Request::BrokerRegistration(again)),
        (0, Request::UnregisterBroker(unregister)),
    ];
    let was = tied(&world);
    for (version, request) in requests {
        let text = format!("{request:?}");
        let before = world.soft.before(&request).expect("it is about a broker");
        world.ask(version, request).unwrap();
        assert_ne!(tied(&world), was, "{text}");
        world.soft.take_back(before);
        assert_eq!(tied(&world), was, "{text}");
    }
}

#[test]
fn a_last_step_that_is_taken_back_leaves_the_tasks_and_words_of_all_brokers_as_they_were() {
    let mut world = with_tasks();
    let unregister = UnregisterBrokerRequest::default().with_broker_id(BrokerId(2));
    let first = world.take(0, Request::UnregisterBroker(unregister));
    let left = first.unwrap().unfinished.expect("it takes several steps");
    world.soft.works.add(Ticket(1), left);
    loop {
        let was = tied(&world);
        let step = world.rule(works::step).expect("no step was the last");
        if step.answer.is_none() {
            step.records.iter().for_each(|record| world.replay(record));
            continue;
        }
        assert_ne!(tied(&world), was);
        world.soft.take_back(step.before.unwrap());
        return assert_eq!(tied(&world), was);
    }
}

/// Every broker sends one every two seconds, and nearly all of them have no task.
#[test]
fn a_broker_without_tasks_costs_its_heartbeat_no_copy() {
    let world = with_tasks();
    assert_eq!(world.soft.handovers.tasks_of(NodeId(1)).len(), 2);
    assert_eq!(world.soft.handovers.tasks_of(NodeId(3)).capacity(), 0);
}
