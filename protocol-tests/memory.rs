//! What an image costs in memory, by an allocator that counts.
//!
//! Everything that the image holds is counted, at the size that was asked for: rows, the lists that
//! they share, names, lookups, configurations. Only what the allocator adds is not.

use allocation_counter::measure;
use kraftd::image::Image;
use kraftd::records::{ConfigRecord, FeatureLevelRecord, PartitionRecord, Record, TopicRecord};
use kraftd::types::{Offset, SplitMix};
use uuid::Uuid;

const PARTITIONS: i32 = 10;
const BROKERS: u64 = 30;
/// What the design promises.
const BYTES_PER_PARTITION: f64 = 64.0;

fn replay(image: &mut Image, record: impl Into<Record>) {
    image.replay(&record.into(), Offset(1)).unwrap();
}

/// Three different brokers at random: all 24,360 lists there are, more than any placement makes.
fn replicas(rng: &mut SplitMix) -> Vec<i32> {
    let mut replicas = Vec::with_capacity(3);
    while replicas.len() < 3 {
        let id = rng.below(BROKERS) as i32;
        if !replicas.contains(&id) {
            replicas.push(id);
        }
    }
    replicas
}

/// Topics of ten partitions, each with one configuration of its own or the same for all.
fn cluster(topics: u32, alike: bool) -> Image {
    let mut rng = SplitMix::new(1);
    let directories: Vec<Uuid> = (0..BROKERS).map(|_| rng.uuid()).collect();
    let mut image = Image::empty();
    let level = FeatureLevelRecord {
        name: "metadata.version".to_owned(),
        feature_level: 33,
        ..Default::default()
    };
    replay(&mut image, level);
    for topic in 0..topics {
        let (name, topic_id) = (format!("topic-{topic:06}"), rng.uuid());
        let record = TopicRecord {
            name: name.clone(),
            topic_id,
            ..Default::default()
        };
        replay(&mut image, record);
        for partition_id in 0..PARTITIONS {
            let replicas = replicas(&mut rng);
            let directories = replicas.iter().map(|id| directories[*id as usize]);
            let record = PartitionRecord {
                partition_id,
                topic_id,
                directories: directories.collect(),
                isr: replicas.clone(),
                leader: replicas[0],
                leader_epoch: 0,
                partition_epoch: 0,
                replicas,
                ..Default::default()
            };
            replay(&mut image, record);
        }
        let record = ConfigRecord {
            resource_type: 2,
            resource_name: name,
            name: "retention.ms".to_owned(),
            value: Some((86_400_000 + if alike { 0 } else { topic }).to_string()),
            ..Default::default()
        };
        replay(&mut image, record);
    }
    image
}

/// The bytes that an image of so many topics holds, for each partition.
fn bytes_each(topics: u32, alike: bool) -> f64 {
    let mut image = Image::empty();
    let heap = measure(|| image = cluster(topics, alike));
    let partitions = image.partition_count();
    assert_eq!(partitions, topics as usize * PARTITIONS as usize);
    let each = heap.bytes_current as f64 / partitions as f64;
    println!("{partitions} partitions, configured alike: {alike}: {each:.2} bytes each");
    each
}

#[test]
fn a_million_partitions_cost_at_most_64_bytes_each() {
    assert!(bytes_each(100_000, false) <= BYTES_PER_PARTITION);
}

#[test]
fn topics_that_are_configured_alike_cost_less() {
    assert!(bytes_each(10_000, true) + 5.0 < bytes_each(10_000, false));
}
