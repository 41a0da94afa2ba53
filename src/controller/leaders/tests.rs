//! What is passed over without being worked out would come to nothing.

use super::*;
use crate::controller::testing::World;
use crate::records::PartitionRecord;

/// A partition on brokers 1 and 2.
fn on_both(isr: &[i32], leader: i32) -> PartitionRecord {
    PartitionRecord {
        replicas: vec![1, 2],
        isr: isr.to_vec(),
        leader,
        directories: (1..=2).map(|id| Uuid::from_u128(0x1000 + id)).collect(),
        ..PartitionRecord::default()
    }
}

/// One topic with a partition of each kind.
fn world(elr: bool, follower_lives: bool, unclean: bool) -> World {
    let mut world = World::at_level(if elr { 33 } else { 20 });
    world.broker(1, &[Uuid::from_u128(0x1001)]);
    world.broker(2, &[Uuid::from_u128(0x1002)]);
    if !follower_lives {
        world.change(2, |it| it.fenced = 1);
    }
    if unclean {
        world.config(2, "t", UNCLEAN, "true");
    }
    let moving = PartitionRecord {
        adding_replicas: vec![2],
        ..on_both(&[1], NO_LEADER)
    };
    let kinds = vec![
        on_both(&[1], NO_LEADER),
        on_both(&[1], 1),
        on_both(&[2], NO_LEADER),
        on_both(&[2], 2),
        on_both(&[1, 2], NO_LEADER),
        on_both(&[1, 2], 1),
        moving,
    ];
    world.topic("t", Uuid::from_u128(0x70), kinds);
    world
}

/// Those that are passed over when broker 1 is looked at for this cause.
fn passed_over(world: &mut World, cause: Cause) -> Vec<i32> {
    world.rule(|view, _| {
        let rules = Many::of(view, cause);
        let mut over = Vec::new();
        for (topic, id, old) in view.image.partitions() {
            let topic_rules = rules.cluster.of_topic(view.image, view.settings, topic);
            if rules.stays(old, topic_rules.election) {
                let change = rules.worked_out((topic, id, old), topic_rules);
                assert_eq!(change, None, "{id} {cause:?}");
                over.push(id.0);
            }
        }
        over
    })
}

/// The usual case was missed: that the others live and lag. It was worked out for all partitions
/// in the last step.
#[test]
fn without_a_leader_the_last_in_sync_is_passed_over_unless_another_is_elected_uncleanly() {
    let one = NodeId(1);
    for (elr, follower_lives, unclean, wanted) in [
        (false, false, false, &[0][..]),
        (false, true, false, &[0]),
        (false, false, true, &[0]),
        (false, true, true, &[]),
        (true, true, false, &[]),
        (true, false, true, &[]),
    ] {
        let mut world = world(elr, follower_lives, unclean);
        for cause in [Cause::Leaves(one), Cause::LostRecords(one)] {
            let over = passed_over(&mut world, cause);
            assert_eq!(over, wanted, "{elr} {follower_lives} {unclean} {cause:?}");
        }
        for cause in [Cause::Comes(one), Cause::Came] {
            assert_eq!(passed_over(&mut world, cause), [0; 0], "{cause:?}");
        }
    }
}
