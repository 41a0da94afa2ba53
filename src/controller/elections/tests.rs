//! Rounds of elections: when they come, what they change, and how much of it at once.

use super::*;
use crate::controller::Soft;
use crate::controller::periodic;
use crate::controller::testing::World;
use crate::records::{PartitionChangeRecord, PartitionRecord, Record};
use crate::types::{Now, Uuid};

const INTERVAL_MS: u64 = 5_000;

fn partition(leader: i32, isr: &[i32]) -> PartitionRecord {
    PartitionRecord {
        replicas: vec![1, 2, 3],
        isr: isr.to_vec(),
        leader,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: (1..=3).map(|id| Uuid::from_u128(0x1000 + id)).collect(),
        ..PartitionRecord::default()
    }
}

fn world(partitions: Vec<PartitionRecord>) -> World {
    let mut world = World::with_brokers(&[1, 2, 3]);
    world.topic("t", Uuid::from_u128(0x70), partitions);
    with_intervals(world, Some(INTERVAL_MS), INTERVAL_MS)
}

/// Active since the beginning of the clock; no other periodic work.
fn with_intervals(mut world: World, preferred: Option<u64>, unclean: u64) -> World {
    world.settings.rebalance_interval_ms = preferred;
    world.settings.unclean_election_interval_ms = unclean;
    world.settings.idle_interval_ms = 0;
    world.settings.session_timeout_ms = 1_000_000_000;
    world.soft = Soft::new(&world.settings, &world.image, Now::default(), 1);
    world
}

/// Every step until the clock is at `end`: when, and what it wrote.
fn until(world: &mut World, end: u64) -> Vec<(u64, Vec<PartitionChangeRecord>)> {
    let mut steps = Vec::new();
    loop {
        let due = periodic::next_due(&world.soft);
        if due.0 > end {
            return steps;
        }
        world.now_ms = due.0;
        let records = world.rule(periodic::run);
        for record in &records {
            world.replay(record);
        }
        let changes = records.into_iter().map(|it| match it.record {
            Record::PartitionChange(record) => record,
            other => panic!("not expected: {other:?}"),
        });
        let changes: Vec<_> = changes.collect();
        if !changes.is_empty() {
            steps.push((due.0, changes));
        }
        world.image.check().unwrap();
    }
}

#[test]
fn leadership_goes_back_to_the_first_replicas_that_are_in_sync_once_an_interval() {
    let mut world = world(vec![
        partition(1, &[1, 2, 3]),
        partition(2, &[1, 2, 3]),
        partition(3, &[2, 3]),
    ]);
    let steps = until(&mut world, INTERVAL_MS);
    let [(at, changes)] = &steps[..] else {
        panic!("not expected: {steps:?}");
    };
    assert_eq!((*at, changes.len()), (INTERVAL_MS, 1));
    assert_eq!((changes[0].partition_id, changes[0].leader), (1, 1));
    assert!(until(&mut world, 3 * INTERVAL_MS).is_empty());
}

#[test]
fn it_stays_where_it_is_if_rebalancing_is_off() {
    let moved = world(vec![partition(2, &[1, 2, 3])]);
    let mut world = with_intervals(moved, None, INTERVAL_MS);
    assert!(until(&mut world, 5 * INTERVAL_MS).is_empty());
}

#[test]
fn a_step_changes_a_thousand_partitions_and_the_next_one_comes_ten_milliseconds_later() {
    let mut world = world(vec![partition(2, &[1, 2, 3]); 2 * CHANGES_MAX + 3]);
    let steps = until(&mut world, 2 * INTERVAL_MS);
    let sizes: Vec<_> = steps.iter().map(|(at, it)| (*at, it.len())).collect();
    let expected = [
        (INTERVAL_MS, CHANGES_MAX),
        (INTERVAL_MS + PAUSE_MS, CHANGES_MAX),
        (INTERVAL_MS + 2 * PAUSE_MS, 3),
    ];
    assert_eq!(sizes, expected);
    assert_eq!(world.image.not_led_by_preferred_count(), 0);
}

#[test]
fn a_step_gives_up_after_so_many_partitions_without_a_way_out() {
    // Nobody is left, and nobody will come: each is tried once a round.
    let mut world = world(vec![partition(-1, &[]); TRIES_MAX + 1]);
    world.config(2, "t", "unclean.leader.election.enable", "true");
    for id in 1..=3 {
        world.change(id, |it| it.fenced = 1);
    }
    world.now_ms = INTERVAL_MS;
    for expected in [INTERVAL_MS + PAUSE_MS, 2 * INTERVAL_MS + PAUSE_MS] {
        assert!(world.rule(|view, soft| soft.unclean.step(view)).is_empty());
        assert_eq!(world.soft.unclean.due().0, expected);
        world.now_ms = expected;
    }
}

#[test]
fn a_walk_over_slices_sees_every_partition_once() {
    let world = world(vec![partition(2, &[2]); 150]);
    for slice in [1, 7, 64, 1_000] {
        let mut place = Some(Place::default());
        let mut seen = Vec::new();
        while let Some(from) = place {
            place = world.image.walk(
                from,
                slice,
                |_| true,
                |(_, id, _)| {
                    seen.push(id.0);
                    seen.len() % 10 != 0
                },
            );
        }
        assert_eq!(seen, (0..150).collect::<Vec<i32>>());
    }
}

/// What each level of configuration says of unclean elections, and whether one comes.
#[test]
fn an_unclean_election_comes_where_the_topic_allows_it_however_it_came_to() {
    const KEY: &str = "unclean.leader.election.enable";
    let lost = || world(vec![partition(-1, &[])]);
    assert!(until(&mut lost(), 2 * INTERVAL_MS).is_empty());

    let mut of_topic = lost();
    of_topic.config(2, "t", KEY, "true");
    let mut of_cluster = lost();
    of_cluster.config(4, "", KEY, "true");
    let mut of_controller = lost();
    of_controller.config(4, "1", KEY, "true");
    let mut of_file = lost();
    let line = (KEY.to_owned(), "true".to_owned());
    of_file.settings.static_configs.extend([line]);
    for mut world in [of_topic, of_cluster, of_controller, of_file] {
        let steps = until(&mut world, INTERVAL_MS);
        let change = &steps[0].1[0];
        assert_eq!((change.leader, &change.isr), (1, &Some(vec![1])));
        assert_eq!(change.leader_recovery_state, 1);
    }

    let mut of_another_node = lost();
    of_another_node.config(4, "2", KEY, "true");
    assert!(until(&mut of_another_node, 2 * INTERVAL_MS).is_empty());
    let mut forbidden = lost();
    forbidden.config(4, "", KEY, "true");
    forbidden.config(2, "t", KEY, "false");
    assert!(until(&mut forbidden, 2 * INTERVAL_MS).is_empty());
    // Allowed while the controller runs: the next round does it, as in Java.
    forbidden.config(2, "t", KEY, "TRUE");
    assert_eq!(until(&mut forbidden, 3 * INTERVAL_MS).len(), 1);
}

#[test]
fn what_a_round_leaves_out_at_a_glance_would_not_change() {
    let subsets = [
        &[][..],
        &[1],
        &[2],
        &[3],
        &[1, 2],
        &[1, 3],
        &[2, 3],
        &[1, 2, 3],
    ];
    let mut left_out = 0;
    for fenced in subsets {
        for isr in subsets {
            for leader in [-1, 1, 2, 3] {
                let mut world = world(vec![partition(leader, isr)]);
                world.config(2, "t", "min.insync.replicas", "2");
                for &id in fenced {
                    world.change(id, |it| it.fenced = 1);
                }
                left_out += world.rule(|view, _| {
                    let elections = Elections {
                        view,
                        kind: Kind::Preferred,
                        rules: Rules::of(view.image),
                        cluster: ClusterRules::of(view.image, view.settings),
                    };
                    let found = view.image.partitions().next().unwrap();
                    let candidate = elections.is_candidate(found.2);
                    if candidate || found.2.led_by_preferred() {
                        return 0;
                    }
                    assert_eq!(elections.change(found), None, "{leader} {isr:?} {fenced:?}");
                    1
                });
            }
        }
    }
    assert!(left_out > 10, "{left_out}");
}
