//! Pools stay in proportion to what is live, and a sweep shows nowhere.

use super::super::*;
use super::*;
use crate::records::{PartitionRecord, RemoveTopicRecord};
use crate::types::SplitMix;

const ROWS: i32 = 100;
/// What the pools may hold for so few rows: twice the live values, a fixed rest, and what comes
/// while a sweep is under way.
const BOUND: usize = 2_500;

fn row(index: i32, rng: &mut SplitMix) -> PartitionRecord {
    let replicas: Vec<i32> = (0..3).map(|_| rng.below(1 << 30) as i32).collect();
    PartitionRecord {
        isr: replicas.clone(),
        leader: replicas[0],
        directories: vec![rng.uuid(), rng.uuid(), rng.uuid()],
        replicas,
        ..partition(index)
    }
}

fn sizes(image: &Image) -> [usize; 3] {
    let pools = &image.topics.pools;
    [pools.lists.len(), pools.directories.len(), pools.rare.len()]
}

/// The image by way of its records: the same value, with pools that never saw anything else.
fn rebuilt(image: &Image) -> Image {
    let mut records = Vec::new();
    image.emit(&mut |record| records.push(record.record));
    let mut copy = Image::empty();
    for record in &records {
        copy.replay(record, Offset(1)).expect("emitted by an image");
    }
    copy
}

/// The newest level: an older one has no directories in its records.
fn newest() -> Image {
    random::newest()
}

#[test]
fn a_million_reassignments_leave_pools_in_proportion_to_the_rows() {
    let mut rng = SplitMix::new(7);
    let mut image = replayed(&newest(), [topic("t", TOPIC_ID)]);
    let first: Vec<Record> = (0..ROWS).map(|index| row(index, &mut rng).into()).collect();
    image = replayed(&image, first);
    // Held by a reader from here on, beside one that is held for a while.
    let held = image.clone();
    let shown = random::emitted(&held).0;
    let mut neighbour = image.clone();
    let mut largest = 0;
    for step in 0..1_000_000_i64 {
        let target: Vec<i32> = (0..3).map(|_| rng.below(1 << 30) as i32).collect();
        let reassigned = PartitionChangeRecord {
            partition_id: rng.below(ROWS as u64) as i32,
            directories: Some(vec![rng.uuid(), rng.uuid(), rng.uuid()]),
            adding_replicas: Some(target[..1].to_vec()),
            leader: target[0],
            isr: Some(target.clone()),
            replicas: Some(target),
            ..change()
        };
        let offset = Offset(1_000 + step);
        image
            .replay(&reassigned.into(), offset)
            .expect("a sane change");
        largest = largest.max(*sizes(&image).iter().max().expect("three pools"));
        if step % 100_000 == 0 {
            image.check().expect("a lawful image");
            assert!(image == rebuilt(&image));
            neighbour.check().expect("a lawful image");
            neighbour = image.clone();
        }
    }
    assert!(largest <= BOUND, "{largest} values for {ROWS} rows");
    assert!(image == rebuilt(&image));
    assert_eq!(random::emitted(&held).0, shown);
    assert!(held == rebuilt(&held));
    assert!(neighbour == rebuilt(&neighbour));
}

#[test]
fn topics_that_come_and_go_leave_nothing_in_the_pools() {
    let mut rng = SplitMix::new(8);
    let mut image = newest();
    for round in 0..2_000_u128 {
        let id = Uuid::from_u128(0x5000 + round);
        let mut records = vec![topic(&format!("t{round}"), id)];
        for index in 0..10 {
            let record = PartitionRecord {
                topic_id: id,
                ..row(index, &mut rng)
            };
            records.push(record.into());
        }
        records.push(
            RemoveTopicRecord {
                topic_id: id,
                ..Default::default()
            }
            .into(),
        );
        for record in &records {
            image.replay(record, Offset(1)).expect("a sane record");
        }
    }
    image.check().expect("a lawful image");
    assert!(image == newest());
    assert!(sizes(&image).iter().all(|size| *size <= BOUND));
}

#[test]
fn a_live_value_keeps_its_id_through_a_sweep_and_a_dead_id_is_used_again() {
    use super::super::intern::Pool;
    let mut pool: Pool<Arc<[i32]>> = Pool::starting_with::<[i32]>(Arc::from([]));
    let ids: Vec<u32> = (1..=300).map(|n| pool.intern(&[n][..])).collect();
    let before = pool.clone();
    pool.begin_sweep();
    for id in ids.iter().filter(|id| **id % 100 == 7) {
        pool.mark_live(*id);
    }
    assert_eq!(pool.intern(&[105][..]), 105, "interned, so live");
    pool.begin_drops();
    assert!(!pool.drop_some::<[i32]>(200));
    assert_eq!(pool.intern(&[5][..]), 5, "not dropped yet, and never");
    assert!(pool.drop_some::<[i32]>(200));
    assert_eq!((pool.len(), pool.values().count()), (6, 208));
    assert_eq!(pool.value(207), &Arc::from([207]));
    assert_eq!(pool.intern(&[107][..]), 107, "found where it was");
    assert_eq!(pool.intern(&[][..]), 0);
    assert_eq!(pool.intern(&[-1][..]), 1, "the lowest free id");
    assert_eq!(pool.intern(&[1][..]), 2, "a swept value is new again");
    assert!(ids.iter().all(|id| before.value(*id)[..] == [*id as i32]));
}
