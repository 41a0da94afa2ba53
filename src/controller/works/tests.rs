//! Requests of several steps: no step is large, and all of them come to what one would.

use kafka_protocol::messages::{BrokerId, ElectLeadersRequest, UnregisterBrokerRequest};

use super::*;
use crate::controller::leaders::{self, Cause, SLICE};
use crate::controller::testing::{Answer, World};
use crate::controller::{RECORDS_PER_OPERATION_MAX, Reply, Request};
use crate::image::Found;
use crate::records::{PartitionChangeRecord, PartitionRecord, Record};
use crate::types::{ErrorCode, NodeId, Uuid};

/// Topics of as many partitions, half a slice.
const TOPICS: usize = 5;
const ALL: usize = TOPICS * SLICE / 2;
const ONE: NodeId = NodeId(1);

/// A partition on brokers 1 and 2 that the first leads.
fn on_both(isr: &[i32], elr: &[i32]) -> PartitionRecord {
    PartitionRecord {
        replicas: vec![1, 2],
        isr: isr.to_vec(),
        leader: isr[0],
        eligible_leader_replicas: (!elr.is_empty()).then(|| elr.to_vec()),
        directories: (1..=2).map(|id| Uuid::from_u128(0x1000 + id)).collect(),
        ..PartitionRecord::default()
    }
}

fn topics_of(partition: &PartitionRecord, size: usize) -> World {
    let mut world = World::with_brokers(&[1, 2, 3]);
    world.config(4, "", "min.insync.replicas", "2");
    for topic in 0..TOPICS {
        let id = Uuid::from_u128(0x70 + topic as u128);
        world.topic(&format!("t{topic}"), id, vec![partition.clone(); size]);
    }
    world
}

/// Broker 1 leads all partitions, and broker 2 follows.
fn large() -> World {
    topics_of(&on_both(&[1, 2], &[]), SLICE / 2)
}

/// Broker 1 is eligible in all partitions, and broker 2 leads.
fn eligible() -> World {
    topics_of(&on_both(&[2], &[1]), SLICE / 2)
}

/// Broker 1 leads half of the partitions of each topic and is eligible in the others.
fn mixed() -> World {
    let mut world = large();
    for topic in 0..TOPICS {
        for partition_id in (0..SLICE as i32 / 2).step_by(2) {
            let change = PartitionChangeRecord {
                topic_id: Uuid::from_u128(0x70 + topic as u128),
                partition_id,
                isr: Some(vec![2]),
                eligible_leader_replicas: Some(vec![1]),
                leader: 2,
                ..PartitionChangeRecord::default()
            };
            world.replay(&Record::PartitionChange(change).at(2));
        }
    }
    world
}

/// All that can be seen of the partitions.
fn state(world: &World) -> Vec<String> {
    let topics = world.image.topics();
    let partitions = topics.flat_map(|topic| topic.partitions().collect::<Vec<_>>());
    partitions
        .map(|(id, it)| {
            let lists = (it.isr(), it.elr(), it.last_known_elr());
            let epochs = (it.leader_epoch(), it.partition_epoch());
            format!("{id} {} {lists:?} {epochs:?}", it.leader())
        })
        .collect()
}

/// The same cluster after one step of the plain rule: those in sync, then those eligible.
fn at_once(mut world: World, cause: Cause, eligible_too: bool) -> Vec<String> {
    let records = world.rule(|view, _| {
        let mut records = Vec::new();
        let in_sync: Vec<Found<'_>> = view.image.partitions_with_isr_member(ONE).collect();
        leaders::update(view, cause, in_sync.into_iter(), &mut records);
        if eligible_too {
            let eligible: Vec<Found<'_>> = view.image.partitions_with_elr_member(ONE).collect();
            leaders::update(view, cause, eligible.into_iter(), &mut records);
        }
        records
    });
    for record in &records {
        world.replay(record);
    }
    state(&world)
}

fn registration(world: &World, previous_epoch: i64) -> Request {
    Request::BrokerRegistration(world.registration(1, 0xb, previous_epoch))
}

fn epoch_of(world: &World) -> i64 {
    world.image.broker(ONE).unwrap().epoch.0
}

fn registered_as(answer: Answer) -> i64 {
    match answer.unwrap() {
        Reply::BrokerRegistration(reply) => reply.broker_epoch,
        other => panic!("not registered: {other:?}"),
    }
}

#[test]
fn a_large_broker_that_was_stopped_in_order_registers_in_slices() {
    let mut world = large();
    let request = registration(&world, epoch_of(&world));
    let (steps, answer) = world.steps_of(4, request);
    assert_eq!(steps, [SLICE, SLICE, SLICE / 2 + 1]);
    let epoch = registered_as(answer);
    // The offset of the first record of the step that registers it.
    assert_eq!(epoch, world.next_offset() - steps[2] as i64);
    assert_eq!(epoch_of(&world), epoch);
    assert_eq!(state(&world), at_once(large(), Cause::Leaves(ONE), false));
}

#[test]
fn a_large_broker_that_lost_records_registers_in_slices_and_is_eligible_nowhere() {
    for start in [large, eligible, mixed] {
        let mut world = start();
        let request = registration(&world, -1);
        let (steps, answer) = world.steps_of(4, request);
        assert_eq!(steps, [SLICE, SLICE, SLICE / 2 + 1]);
        assert_eq!(registered_as(answer), epoch_of(&world));
        assert_eq!(world.image.partitions_with_elr_member(ONE).count(), 0);
        let expected = at_once(start(), Cause::LostRecords(ONE), true);
        assert_eq!(state(&world), expected);
    }
}

#[test]
fn a_registration_that_is_refused_amid_its_steps_is_answered_so() {
    let mut world = large();
    let request = registration(&world, -1);
    let left = world.take(4, request).unwrap().unfinished.unwrap();
    world.soft.works.add(Ticket(1), left);
    world.settings.cluster_id = "another".into();
    let (len, answer) = world.step_of_work().unwrap();
    let refused = answer.unwrap().unwrap_err();
    assert_eq!((len, refused.code), (0, ErrorCode::InconsistentClusterId));
    assert!(world.step_of_work().is_none());
}

#[test]
fn an_older_process_does_not_register_over_a_newer_one_that_came_amid_its_steps() {
    let mut world = large();
    let older = registration(&world, -1);
    let left = world.take(4, older).unwrap().unfinished.unwrap();
    world.soft.works.add(Ticket(1), left);
    while world.image.partitions_with_isr_member(ONE).count() > SLICE {
        let (_, answer) = world.step_of_work().unwrap();
        assert!(answer.is_none());
    }
    let newer = world.registration(1, 0xbeef, -1);
    let decided = world.take(4, Request::BrokerRegistration(newer)).unwrap();
    assert!(decided.unfinished.is_none());
    let Reply::BrokerRegistration(told) = decided.reply else {
        panic!("another answer");
    };
    let mut refused = None;
    while let Some((len, answer)) = world.step_of_work() {
        assert_eq!(len, 0);
        refused = answer;
    }
    let refused = refused.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::DuplicateBrokerRegistration);
    let broker = world.image.broker(ONE).unwrap();
    assert_eq!(broker.epoch.0, told.broker_epoch);
    assert_eq!(broker.incarnation, Uuid::from_u128(0xbeef));
}

fn unregister() -> Request {
    Request::UnregisterBroker(UnregisterBrokerRequest::default().with_broker_id(BrokerId(1)))
}

#[test]
fn a_large_broker_is_unregistered_in_slices_and_its_registration_goes_last() {
    for (start, slices) in [(large as fn() -> World, 5), (mixed, 4)] {
        let mut world = start();
        let (steps, answer) = world.steps_of(0, unregister());
        answer.unwrap();
        assert!(steps.len() > slices, "{steps:?}");
        assert!(steps.iter().all(|len| *len <= SLICE + 1), "{steps:?}");
        assert_eq!(*steps.last().unwrap(), 1);
        assert!(world.image.broker(ONE).is_none());
        assert_eq!(state(&world), at_once(start(), Cause::Leaves(ONE), true));
    }
}

#[test]
fn those_in_which_a_broker_is_eligible_are_looked_at_in_parts() {
    let mut world = topics_of(&on_both(&[2], &[1]), 2 * leaders::LOOKS / TOPICS + 1);
    let (steps, answer) = world.steps_of(0, unregister());
    answer.unwrap();
    // Counted in three steps, looked at in three, and once more in sync.
    assert_eq!(steps, [0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn who_comes_back_into_an_isr_while_it_is_unregistered_leaves_it_after_all() {
    let mut world = large();
    let left = world.take(0, unregister()).unwrap().unfinished.unwrap();
    world.soft.works.add(Ticket(1), left);
    while world.image.partitions_with_isr_member(ONE).count() == ALL {
        world.step_of_work().unwrap();
    }
    let back = PartitionChangeRecord {
        topic_id: Uuid::from_u128(0x70),
        partition_id: 0,
        isr: Some(vec![2, 1]),
        eligible_leader_replicas: Some(Vec::new()),
        ..PartitionChangeRecord::default()
    };
    world.replay(&Record::PartitionChange(back).at(2));
    while let Some((_, answer)) = world.step_of_work() {
        answer.map(Result::unwrap);
    }
    assert!(world.image.broker(ONE).is_none());
    assert_eq!(world.image.partitions_with_isr_member(ONE).count(), 0);
}

#[test]
fn a_process_that_registers_while_its_id_is_unregistered_stays() {
    let mut world = large();
    let left = world.take(0, unregister()).unwrap().unfinished.unwrap();
    let request = registration(&world, epoch_of(&world));
    registered_as(world.steps_of(4, request).1);
    world.soft.works.add(Ticket(1), left);
    let (len, answer) = world.step_of_work().unwrap();
    answer.unwrap().unwrap();
    assert_eq!(len, 0);
    assert!(world.image.broker(ONE).is_some());
}

fn elect(kind: i8) -> Request {
    let request = ElectLeadersRequest::default()
        .with_election_type(kind)
        .with_topic_partitions(None);
    Request::ElectLeaders(request)
}

/// How many partitions have which code, and how many topics are named.
fn codes(answer: Answer) -> (Vec<(i16, usize)>, usize) {
    let Reply::ElectLeaders(reply) = answer.unwrap() else {
        panic!("another answer");
    };
    let topics = &reply.replica_election_results;
    let mut counts = std::collections::BTreeMap::new();
    for result in topics.iter().flat_map(|topic| &topic.partition_result) {
        *counts.entry(result.error_code).or_default() += 1;
    }
    (counts.into_iter().collect(), topics.len())
}

/// Broker 2 leads all partitions and broker 1 is preferred.
fn moved(size: usize) -> World {
    topics_of(&on_both(&[2, 1], &[]), size)
}

#[test]
fn all_preferred_leaders_are_elected_in_slices() {
    let mut world = moved(SLICE / 2);
    let (steps, answer) = world.steps_of(2, elect(0));
    assert_eq!(steps, [SLICE, SLICE, SLICE / 2]);
    assert_eq!(codes(answer), (vec![(0, ALL)], TOPICS));
    assert_eq!(world.image.leader_count(ONE), ALL);
    let (steps, answer) = world.steps_of(2, elect(0));
    assert_eq!((steps, codes(answer)), (vec![0], (Vec::new(), TOPICS)));
}

#[test]
fn too_many_elections_are_refused_before_one_is_made() {
    let most = RECORDS_PER_OPERATION_MAX / TOPICS;
    let mut world = moved(most);
    let (_, answer) = world.steps_of(2, elect(0));
    assert_eq!(codes(answer), (vec![(0, most * TOPICS)], TOPICS));
    let mut world = moved(most + 1);
    let before = world.image.clone();
    let (steps, answer) = world.steps_of(2, elect(0));
    assert_eq!(answer.unwrap_err().code, ErrorCode::PolicyViolation);
    assert_eq!(steps, [0; RECORDS_PER_OPERATION_MAX / SLICE + 1]);
    assert!(world.image == before);
}

#[test]
fn partitions_that_nobody_can_lead_are_told_part_by_part() {
    let mut world = topics_of(&on_both(&[1], &[]), SLICE);
    world.change(1, |it| it.fenced = 1);
    world.change(2, |it| it.fenced = 1);
    for topic in 0..TOPICS {
        for partition_id in 0..SLICE as i32 {
            let change = PartitionChangeRecord {
                topic_id: Uuid::from_u128(0x70 + topic as u128),
                partition_id,
                isr: Some(Vec::new()),
                eligible_leader_replicas: Some(vec![1]),
                last_known_elr: Some(vec![1]),
                leader: -1,
                ..PartitionChangeRecord::default()
            };
            world.replay(&Record::PartitionChange(change).at(2));
        }
    }
    let (steps, answer) = world.steps_of(2, elect(1));
    let all = TOPICS * SLICE;
    assert_eq!(steps, vec![0; all / elect_leaders::TRIES_MAX + 1]);
    assert_eq!(codes(answer), (vec![(83, all)], TOPICS));
}

#[test]
fn so_many_requests_wait_and_no_more() {
    let election = moved(SLICE).take(2, elect(0)).unwrap().unfinished.unwrap();
    let mut works = Works::default();
    for ticket in 0..2 {
        assert!(works.has_room(&elect(0)));
        works.add(Ticket(ticket), election.clone());
    }
    assert!(!works.has_room(&elect(1)), "each gathers a large answer");
    let mut world = large();
    let request = registration(&world, -1);
    let left = world.take(4, request.clone()).unwrap().unfinished.unwrap();
    for ticket in 2..Works::COUNT_MAX as u64 {
        assert!(works.has_room(&request) && works.has_room(&unregister()));
        works.add(Ticket(ticket), left.clone());
    }
    assert!(!works.has_room(&request) && !works.has_room(&unregister()));
    let named = ElectLeadersRequest::default().with_topic_partitions(Some(Vec::new()));
    assert!(works.has_room(&Request::ElectLeaders(named)), "one step");
    assert_eq!(works.drain().count(), Works::COUNT_MAX);
}

#[test]
fn other_work_has_every_second_turn() {
    let mut works = Works::default();
    assert!(!works.take_turn());
    let left = large().take(0, unregister()).unwrap().unfinished.unwrap();
    works.add(Ticket(1), left);
    let turns: Vec<bool> = (0..4).map(|_| works.take_turn()).collect();
    assert_eq!(turns, [true, false, true, false]);
}
