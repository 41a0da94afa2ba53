//! The rules of elections, eligible replicas, reassignment and directories, one by one.

use super::*;
use crate::controller::testing::World;
use crate::records::PartitionRecord;

const TOPIC: Uuid = Uuid::from_u128(0x70);

fn dir(broker: i32) -> Uuid {
    Uuid::from_u128(0x1000 + broker as u128)
}

/// A partition on brokers 1, 2 and 3, led by 1, all in sync.
fn healthy() -> PartitionRecord {
    PartitionRecord {
        partition_id: 0,
        topic_id: TOPIC,
        replicas: vec![1, 2, 3],
        isr: vec![1, 2, 3],
        leader: 1,
        leader_epoch: 4,
        partition_epoch: 7,
        directories: vec![dir(1), dir(2), dir(3)],
        ..PartitionRecord::default()
    }
}

/// Nobody in sync, led by 1 last.
fn leaderless(elr: &[i32], last_known: &[i32]) -> PartitionRecord {
    PartitionRecord {
        isr: Vec::new(),
        leader: NO_LEADER,
        eligible_leader_replicas: Some(elr.to_vec()),
        last_known_elr: Some(last_known.to_vec()),
        ..healthy()
    }
}

/// One partition in a cluster of brokers 1 to 5.
struct One {
    world: World,
    acceptable: Vec<i32>,
    min_isr: usize,
}

impl One {
    fn at_level(level: i16, mut partition: PartitionRecord) -> Self {
        let mut world = World::at_level(level);
        let has_directories = MetadataVersion(level).directory_assignment();
        for id in 1..=5 {
            let directories = [dir(id)];
            world.broker(id, &directories[..usize::from(has_directories)]);
        }
        if !has_directories {
            partition.directories = Vec::new();
        }
        if !MetadataVersion(level).is_elr_supported() {
            partition.eligible_leader_replicas = None;
            partition.last_known_elr = None;
        }
        world.topic("t", TOPIC, vec![partition]);
        Self {
            world,
            acceptable: vec![1, 2, 3, 4, 5],
            min_isr: 1,
        }
    }

    /// At the newest level, where eligible replicas are kept.
    fn of(partition: PartitionRecord) -> Self {
        Self::at_level(33, partition)
    }

    /// At 4.0-IV0: directories, but no eligible replicas.
    fn without_elr(partition: PartitionRecord) -> Self {
        Self::at_level(22, partition)
    }

    fn acceptable(mut self, acceptable: &[i32]) -> Self {
        self.acceptable = acceptable.to_vec();
        self
    }

    fn min_isr(mut self, min_isr: usize) -> Self {
        self.min_isr = min_isr;
        self
    }

    fn versioned(
        &self,
        edit: impl for<'a> FnOnce(Change<'a>) -> Change<'a>,
    ) -> Option<VersionedRecord> {
        let image = &self.world.image;
        let topic = image.topic_by_id(TOPIC).unwrap();
        let old = topic.partition(PartitionId(0)).unwrap();
        let acceptable = |broker: i32| self.acceptable.contains(&broker);
        let rules = Rules::of(image);
        let change = Change::of(TOPIC, PartitionId(0), old, rules, &acceptable, self.min_isr);
        let record = edit(change).record();
        if let Some(record) = &record {
            record.encode().expect("the version has a place for it");
        }
        record
    }

    fn change(
        &self,
        edit: impl for<'a> FnOnce(Change<'a>) -> Change<'a>,
    ) -> Option<PartitionChangeRecord> {
        self.versioned(edit).map(|it| match it.record {
            Record::PartitionChange(record) => record,
            other => panic!("not expected: {other:?}"),
        })
    }
}

/// A record that says nothing yet.
fn says() -> PartitionChangeRecord {
    PartitionChangeRecord {
        partition_id: 0,
        topic_id: TOPIC,
        ..PartitionChangeRecord::default()
    }
}

#[test]
fn nothing_wanted_is_no_record() {
    assert_eq!(One::of(healthy()).change(|it| it), None);
    let same = One::of(healthy()).change(|it| it.isr(vec![1, 2, 3]).recovery(RECOVERED));
    assert_eq!(same, None);
    // The leader is not its first replica, but nobody asked for the preferred one.
    let moved = PartitionRecord {
        leader: 2,
        ..healthy()
    };
    assert_eq!(One::of(moved).change(|it| it), None);
}

#[test]
fn an_isr_in_another_order_is_a_change() {
    let record = One::of(healthy()).change(|it| it.isr(vec![3, 2, 1]));
    let isr = Some(vec![3, 2, 1]);
    assert_eq!(record, Some(PartitionChangeRecord { isr, ..says() }));
}

#[test]
fn a_leader_that_is_not_acceptable_gives_way_to_the_next_replica_in_sync() {
    let one = One::of(healthy()).acceptable(&[2, 3]);
    let record = one.change(|it| it.isr(vec![3, 2]));
    let expected = PartitionChangeRecord {
        isr: Some(vec![3, 2]),
        leader: 2,
        ..says()
    };
    assert_eq!(record, Some(expected), "the order of the replicas counts");
}

#[test]
fn an_acceptable_replica_outside_of_the_isr_is_not_elected() {
    let partition = PartitionRecord {
        isr: vec![1],
        ..healthy()
    };
    let one = One::without_elr(partition).acceptable(&[2, 3]);
    let expected = PartitionChangeRecord {
        leader: NO_LEADER,
        ..says()
    };
    assert_eq!(one.change(|it| it), Some(expected));
}

#[test]
fn a_preferred_election_moves_to_the_first_replica() {
    let partition = PartitionRecord {
        leader: 3,
        ..healthy()
    };
    let record = One::of(partition).change(|it| it.election(Election::Preferred));
    let leader = 1;
    assert_eq!(record, Some(PartitionChangeRecord { leader, ..says() }));
}

#[test]
fn without_the_first_replica_a_preferred_election_keeps_the_leader() {
    let partition = PartitionRecord {
        leader: 3,
        ..healthy()
    };
    let one = One::of(partition).acceptable(&[2, 3]);
    assert_eq!(one.change(|it| it.election(Election::Preferred)), None);
}

#[test]
fn without_the_leader_too_a_preferred_election_takes_the_next_in_sync() {
    let partition = PartitionRecord {
        leader: 3,
        ..healthy()
    };
    let one = One::of(partition).acceptable(&[2]);
    let record = one.change(|it| it.election(Election::Preferred));
    assert_eq!(record.unwrap().leader, 2);
}

#[test]
fn a_preferred_election_is_never_unclean() {
    let partition = PartitionRecord {
        isr: vec![1],
        ..healthy()
    };
    let one = One::without_elr(partition).acceptable(&[2, 3]);
    let record = one.change(|it| it.election(Election::Preferred));
    assert_eq!(record.unwrap().leader, NO_LEADER);
}

#[test]
fn without_eligible_replicas_the_last_member_stays_in_the_isr() {
    let partition = PartitionRecord {
        isr: vec![1],
        ..healthy()
    };
    let one = One::without_elr(partition).acceptable(&[2, 3]);
    let record = one.change(|it| it.isr(Vec::new()));
    let expected = PartitionChangeRecord {
        leader: NO_LEADER,
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn with_eligible_replicas_the_isr_may_be_empty_and_its_members_stay_eligible() {
    let partition = PartitionRecord {
        isr: vec![1],
        ..healthy()
    };
    let one = One::of(partition).acceptable(&[2, 3]);
    let record = one.change(|it| it.isr(Vec::new()));
    let expected = PartitionChangeRecord {
        isr: Some(Vec::new()),
        leader: NO_LEADER,
        eligible_leader_replicas: Some(vec![1]),
        last_known_elr: Some(vec![1]),
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn who_leaves_a_too_small_isr_is_eligible_and_nobody_once_it_is_large_enough() {
    let partition = PartitionRecord {
        isr: vec![1, 2],
        eligible_leader_replicas: Some(vec![3]),
        ..healthy()
    };
    let one = One::of(partition).min_isr(2);
    let record = one.change(|it| it.isr(vec![1]));
    let expected = PartitionChangeRecord {
        isr: Some(vec![1]),
        eligible_leader_replicas: Some(vec![2, 3]),
        ..says()
    };
    assert_eq!(record, Some(expected));
    let record = one.change(|it| it.isr(vec![1, 2, 3]));
    let expected = PartitionChangeRecord {
        isr: Some(vec![1, 2, 3]),
        eligible_leader_replicas: Some(Vec::new()),
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn a_replica_that_lost_records_is_not_eligible() {
    let partition = PartitionRecord {
        isr: vec![1],
        eligible_leader_replicas: Some(vec![2, 3]),
        ..healthy()
    };
    let one = One::of(partition).min_isr(3);
    let record = one.change(|it| it.unclean_shutdown(2));
    let expected = PartitionChangeRecord {
        eligible_leader_replicas: Some(vec![3]),
        ..says()
    };
    assert_eq!(record, Some(expected));
    let one = one.acceptable(&[]);
    let record = one.change(|it| it.isr(Vec::new()).unclean_shutdown(1));
    let expected = PartitionChangeRecord {
        isr: Some(Vec::new()),
        leader: NO_LEADER,
        last_known_elr: Some(vec![1]),
        ..says()
    };
    assert_eq!(record, Some(expected), "1 is not among the eligible");
}

#[test]
fn eligible_replicas_are_listed_in_the_order_of_javas_set() {
    let partition = PartitionRecord {
        replicas: vec![17, 3, 2, 1],
        isr: vec![17, 3, 2, 1],
        directories: vec![dir(17), dir(3), dir(2), dir(1)],
        leader: 1,
        ..healthy()
    };
    let one = One::of(partition).min_isr(2);
    let record = one.change(|it| it.isr(vec![1]));
    // 17 falls into the bucket of 1.
    assert_eq!(
        record.unwrap().eligible_leader_replicas,
        Some(vec![17, 2, 3])
    );
}

#[test]
fn an_eligible_replica_leads_when_nobody_is_in_sync() {
    let one = One::of(leaderless(&[2, 3], &[1])).min_isr(2);
    let record = one.acceptable(&[3]).change(|it| it);
    let expected = PartitionChangeRecord {
        isr: Some(vec![3]),
        leader: 3,
        eligible_leader_replicas: Some(vec![2]),
        last_known_elr: Some(Vec::new()),
        ..says()
    };
    assert_eq!(record, Some(expected), "a clean election: no recovery");
}

#[test]
fn eligible_replicas_do_not_count_while_somebody_is_in_sync() {
    let partition = PartitionRecord {
        isr: vec![1],
        eligible_leader_replicas: Some(vec![2, 3]),
        ..healthy()
    };
    let one = One::of(partition).min_isr(2).acceptable(&[2, 3]);
    let record = one.change(|it| it).unwrap();
    assert_eq!(record.leader, NO_LEADER);
    assert_eq!(record.isr, None);
}

#[test]
fn the_one_replica_that_led_last_leads_uncleanly_when_nobody_else_has_a_claim() {
    let one = One::of(leaderless(&[], &[1]));
    let expected = PartitionChangeRecord {
        isr: Some(vec![1]),
        leader: 1,
        leader_recovery_state: RECOVERING,
        last_known_elr: Some(Vec::new()),
        ..says()
    };
    for election in [Election::Preferred, Election::Online, Election::Unclean] {
        let record = one.change(|it| it.election(election));
        assert_eq!(record, Some(expected.clone()), "{election:?}");
    }
}

#[test]
fn the_replica_that_led_last_does_not_lead_if_it_is_away_or_not_the_only_one() {
    let away = One::of(leaderless(&[], &[1])).acceptable(&[2, 3]);
    assert_eq!(away.change(|it| it), None);
    let several = One::of(leaderless(&[], &[1, 2]));
    assert_eq!(several.change(|it| it), None);
    let claim = One::of(leaderless(&[2], &[1])).acceptable(&[1, 3]);
    assert_eq!(claim.min_isr(2).change(|it| it), None);
    let mut off = One::of(leaderless(&[], &[1]));
    off.world.feature("eligible.leader.replicas.version", 0);
    assert_eq!(off.change(|it| it), None);
}

#[test]
fn an_unclean_election_takes_the_first_acceptable_replica_and_its_copy_alone() {
    let partition = PartitionRecord {
        isr: vec![1],
        eligible_leader_replicas: Some(vec![3]),
        ..healthy()
    };
    let one = One::of(partition).min_isr(2).acceptable(&[2, 3]);
    let record = one.change(|it| it.election(Election::Unclean));
    let expected = PartitionChangeRecord {
        isr: Some(vec![2]),
        leader: 2,
        leader_recovery_state: RECOVERING,
        eligible_leader_replicas: Some(Vec::new()),
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn an_unclean_election_of_a_partition_that_recovers_says_so_no_second_time() {
    let partition = PartitionRecord {
        isr: vec![1],
        leader_recovery_state: RECOVERING,
        ..healthy()
    };
    let one = One::without_elr(partition).acceptable(&[2]);
    let record = one.change(|it| it.election(Election::Unclean)).unwrap();
    assert_eq!((record.leader, record.leader_recovery_state), (2, -1));
}

#[test]
fn an_unclean_election_prefers_whoever_is_in_sync() {
    let one = One::of(healthy()).acceptable(&[2, 3]);
    let record = one.change(|it| it.isr(vec![3]).election(Election::Unclean));
    let expected = PartitionChangeRecord {
        isr: Some(vec![3]),
        leader: 3,
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn the_end_of_the_recovery_is_written() {
    let partition = PartitionRecord {
        isr: vec![1],
        leader_recovery_state: RECOVERING,
        ..healthy()
    };
    let record = One::of(partition).change(|it| it.recovery(RECOVERED));
    let expected = PartitionChangeRecord {
        leader_recovery_state: RECOVERED,
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn a_smaller_isr_makes_a_new_leader_epoch_below_3_6_iv0_only() {
    let leader = |level| {
        let record = One::at_level(level, healthy()).change(|it| it.isr(vec![1, 2]));
        record.unwrap().leader
    };
    assert_eq!(leader(11), 1);
    assert_eq!(leader(12), NO_LEADER_CHANGE);
    let small = PartitionRecord {
        isr: vec![1],
        ..healthy()
    };
    let grown = One::at_level(11, small).change(|it| it.isr(vec![1, 2]));
    assert_eq!(grown.unwrap().leader, NO_LEADER_CHANGE);
}

#[test]
fn the_version_of_the_record_follows_the_level() {
    for (level, version) in [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (33, 2)] {
        let record = One::at_level(level, healthy()).versioned(|it| it.isr(vec![1]));
        assert_eq!(record.unwrap().version, version, "at level {level}");
    }
}

/// A partition that moves from `removing` to `adding`.
fn moving(isr: &[i32], adding: &[i32], removing: &[i32]) -> PartitionRecord {
    PartitionRecord {
        replicas: vec![1, 2, 3, 4],
        directories: vec![dir(1), dir(2), dir(3), dir(4)],
        isr: isr.to_vec(),
        adding_replicas: adding.to_vec(),
        removing_replicas: removing.to_vec(),
        ..healthy()
    }
}

#[test]
fn a_reassignment_ends_once_the_isr_has_what_it_adds() {
    let one = One::of(moving(&[1, 2, 3], &[4], &[3]));
    let record = one.change(|it| it.isr(vec![1, 2, 3, 4]));
    let expected = PartitionChangeRecord {
        isr: Some(vec![1, 2, 4]),
        // The same leader in a new epoch: fetches of the replica that goes fail at once.
        leader: 1,
        replicas: Some(vec![1, 2, 4]),
        directories: Some(vec![dir(1), dir(2), dir(4)]),
        adding_replicas: Some(Vec::new()),
        removing_replicas: Some(Vec::new()),
        ..says()
    };
    assert_eq!(record, Some(expected));
}

#[test]
fn a_reassignment_goes_on_while_a_new_replica_is_not_in_sync() {
    let one = One::of(moving(&[1, 2, 3], &[4], &[3]));
    assert_eq!(one.change(|it| it), None);
    let record = one.change(|it| it.isr(vec![1, 2]));
    let isr = Some(vec![1, 2]);
    assert_eq!(record, Some(PartitionChangeRecord { isr, ..says() }));
}

#[test]
fn a_reassignment_that_removes_more_than_it_adds_waits_for_all_that_stay() {
    let one = One::of(moving(&[1, 2, 3], &[], &[3, 4]));
    let record = one.change(|it| it.isr(vec![1, 3])).unwrap();
    assert_eq!(record.replicas, None);
    let record = one.change(|it| it).unwrap();
    assert_eq!(record.replicas, Some(vec![1, 2]));
    assert_eq!(record.isr, Some(vec![1, 2]));
}

#[test]
fn a_reassignment_never_ends_without_anybody_in_sync() {
    let one = One::without_elr(moving(&[3], &[], &[3]));
    let record = one.acceptable(&[3]).change(|it| it);
    assert_eq!(record.unwrap().replicas, None);
}

#[test]
fn a_reassignment_that_removes_the_leader_elects_another() {
    let one = One::of(moving(&[1, 2, 3], &[4], &[1]));
    let record = one.change(|it| it.isr(vec![1, 2, 3, 4])).unwrap();
    assert_eq!(record.leader, 2);
    assert_eq!(record.replicas, Some(vec![2, 3, 4]));
}

#[test]
fn a_reassignment_that_only_adds_makes_no_new_leader_epoch() {
    let one = One::of(moving(&[1, 2, 3], &[4], &[]));
    let record = one.change(|it| it.isr(vec![1, 2, 3, 4])).unwrap();
    assert_eq!(record.leader, NO_LEADER_CHANGE);
    assert_eq!(record.replicas, None);
    assert_eq!(record.adding_replicas, Some(Vec::new()));
    assert_eq!(record.removing_replicas, None);
}

#[test]
fn a_new_directory_of_a_replica_is_written_with_those_of_the_others() {
    let other = Uuid::from_u128(0x9999);
    let record = One::of(healthy()).change(|it| it.directory(2, other));
    let expected = PartitionChangeRecord {
        directories: Some(vec![dir(1), other, dir(3)]),
        ..says()
    };
    assert_eq!(record, Some(expected));
    assert_eq!(
        One::of(healthy()).change(|it| it.directory(2, dir(2))),
        None
    );
    let old = One::at_level(16, healthy());
    assert_eq!(old.change(|it| it.directory(2, other)), None);
}

#[test]
fn the_directory_of_a_new_replica_is_the_only_one_or_not_assigned_or_migrating() {
    let mut world = World::at_level(33);
    world.broker(1, &[dir(1)]);
    world.broker(2, &[dir(2), dir(22)]);
    world.broker(3, &[]);
    let rules = Rules::of(&world.image);
    assert_eq!(rules.default_directory(1), dir(1));
    assert_eq!(rules.default_directory(2), DIR_UNASSIGNED);
    assert_eq!(rules.default_directory(3), DIR_MIGRATING);
    assert_eq!(rules.default_directory(9), DIR_UNASSIGNED);
}

#[test]
fn a_replica_in_a_directory_that_its_broker_lost_cannot_lead() {
    let mut world = World::at_level(33);
    world.broker(1, &[dir(1), dir(11)]);
    let rules = Rules::of(&world.image);
    for (directory, can) in [
        (dir(1), true),
        (dir(12), false),
        (DIR_UNASSIGNED, true),
        (DIR_MIGRATING, true),
        (crate::types::ids::DIR_LOST, false),
    ] {
        assert_eq!(rules.can_lead(1, true, Some(directory)), can, "{directory}");
        assert!(!rules.can_lead(1, false, Some(directory)));
    }
    assert!(!rules.can_lead(1, true, None), "no replica there");
    assert!(!rules.can_lead(9, true, Some(dir(9))), "no such broker");
}
