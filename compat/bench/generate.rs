//! Fills a formatted log directory with the metadata of a large cluster, for `make bench`.
//!
//! ```text
//! generate DIR PARTITIONS [SEED]
//! generate read CHECKPOINT
//! ```
//!
//! `DIR` is what `format` left, of kraftd or of Java, with its voters. It gets a checkpoint of 30
//! brokers and as many topics of 10 partitions as asked for, each partition with three replicas in
//! three racks and the directory of each, each topic with one configuration; behind it a log of
//! a thousand moved leaders. A single voter has voted in epoch 1; of several each gets the same.
//! Everything but the ids of voters and cluster follows from the seed, so that two makes of
//! controller can be given the same bytes.
//!
//! `read` takes a checkpoint in and prints the CPU time (ms) of each step with all before it, each
//! a walk of its own: what the bytes themselves cost on this machine, and what the image adds.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use anyhow::{Context as _, Result, bail};
use kraftd::image::Image;
use kraftd::raft::{ControlRecord as Control, QuorumState};
use kraftd::records::batch::BatchBuilder;
use kraftd::records::{
    BrokerEndpoint, BrokerFeature, ConfigRecord, ControlRecord, PartitionChangeRecord,
    PartitionRecord, ProducerIdsRecord, Record, RegisterBrokerRecord, TopicRecord, VersionedRecord,
};
use kraftd::storage::files::Disk;
use kraftd::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use kraftd::storage::snapshot::{SnapshotFile, SnapshotWriter, path};
use kraftd::storage::{Command, Completion, OpenOptions, bootstrap, directory, quorum_state};
use kraftd::types::features::{self, MetadataVersion};
use kraftd::types::{Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey, SplitMix, Timestamp, Uuid};

const BROKERS: i32 = 30;
const FIRST_BROKER: i32 = 101;
const PARTITIONS_A_TOPIC: u32 = 10;
const RACKS: i32 = 3;
const REPLICAS: usize = 3;
const EPOCH: Epoch = Epoch(1);
/// Changes in the log behind the checkpoint.
const CHANGES_MAX: u32 = 1_000;
/// May 2026: old enough for every clock.
const TIMESTAMP: Timestamp = Timestamp(1_780_000_000_000);

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, partitions, seed) = match args.as_slice() {
        [word, file] if word == "read" => return read(Path::new(file)),
        [dir, partitions] => (dir, partitions, "1"),
        [dir, partitions, seed] => (dir, partitions, seed.as_str()),
        _ => bail!("usage: generate DIR PARTITIONS [SEED]"),
    };
    let cluster = Cluster::new(partitions.parse()?, seed.parse()?);
    fill(&PathBuf::from(dir), &cluster)
}

/// What is written.
struct Cluster {
    topics: Vec<Topic>,
    /// The log directory of each broker.
    directories: Vec<Uuid>,
}

struct Topic {
    id: Uuid,
    name: String,
    partitions: Vec<[i32; REPLICAS]>,
}

impl Cluster {
    fn new(partitions: u32, seed: u64) -> Self {
        let mut rng = SplitMix::new(seed);
        let directories = (0..BROKERS).map(|_| rng.uuid()).collect();
        let mut topics = Vec::new();
        for first in (0..partitions).step_by(PARTITIONS_A_TOPIC as usize) {
            let number = first / PARTITIONS_A_TOPIC;
            let count = PARTITIONS_A_TOPIC.min(partitions - first);
            topics.push(Topic {
                id: rng.uuid(),
                name: format!("service-{}.events-{number}", number % 97),
                partitions: (0..count).map(|_| replicas(&mut rng)).collect(),
            });
        }
        Self {
            topics,
            directories,
        }
    }

    fn directory(&self, broker: i32) -> Uuid {
        self.directories[(broker - FIRST_BROKER) as usize]
    }

    /// Gives every record to `sink`, but for the feature levels.
    fn records(&self, sink: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        for id in (FIRST_BROKER..).take(BROKERS as usize) {
            sink(broker(id, self.directory(id)).into())?;
        }
        for topic in &self.topics {
            sink(topic.record().into())?;
            for (index, replicas) in (0..).zip(&topic.partitions) {
                sink(self.partition(topic, index, replicas).into())?;
            }
        }
        for (number, topic) in self.topics.iter().enumerate() {
            sink(topic.config(number).into())?;
        }
        let ids = ProducerIdsRecord {
            broker_id: FIRST_BROKER,
            broker_epoch: epoch_of(FIRST_BROKER),
            next_producer_id: 50_000,
            ..ProducerIdsRecord::default()
        };
        sink(ids.into())
    }

    fn partition(&self, topic: &Topic, index: i32, replicas: &[i32]) -> PartitionRecord {
        PartitionRecord {
            partition_id: index,
            topic_id: topic.id,
            replicas: replicas.to_vec(),
            isr: replicas.to_vec(),
            leader: replicas[0],
            leader_epoch: 3,
            partition_epoch: 5,
            directories: replicas.iter().map(|id| self.directory(*id)).collect(),
            ..PartitionRecord::default()
        }
    }
}

impl Topic {
    fn record(&self) -> TopicRecord {
        TopicRecord {
            name: self.name.clone(),
            topic_id: self.id,
            ..TopicRecord::default()
        }
    }

    fn config(&self, number: usize) -> ConfigRecord {
        let days = 1 + number % 7;
        ConfigRecord {
            resource_type: 2,
            resource_name: self.name.clone(),
            name: "retention.ms".into(),
            value: Some((days * 86_400_000).to_string()),
            ..ConfigRecord::default()
        }
    }
}

/// One broker of each rack, the racks in any order: as Kafka places replicas where there are racks.
fn replicas(rng: &mut SplitMix) -> [i32; REPLICAS] {
    let mut racks = [0, 1, 2];
    racks.swap(0, rng.below(3) as usize);
    racks.swap(1, 1 + rng.below(2) as usize);
    racks.map(|rack| {
        let brokers = (FIRST_BROKER..).take(BROKERS as usize);
        let in_rack: Vec<i32> = brokers.filter(|id| id % RACKS == rack).collect();
        in_rack[rng.below(in_rack.len() as u64) as usize]
    })
}

fn epoch_of(broker: i32) -> i64 {
    i64::from(broker)
}

fn broker(id: i32, directory: Uuid) -> RegisterBrokerRecord {
    let supported = features::supported_features(false).into_iter();
    let features = supported.map(|(name, min, max)| BrokerFeature {
        name: name.to_owned(),
        min_supported_version: min,
        max_supported_version: max,
        ..BrokerFeature::default()
    });
    RegisterBrokerRecord {
        broker_id: id,
        incarnation_id: Uuid::from_u64_pair(1, id.unsigned_abs().into()),
        broker_epoch: epoch_of(id),
        end_points: vec![BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: format!("broker-{id}.example.com"),
            port: 9092,
            ..BrokerEndpoint::default()
        }],
        features: features.collect(),
        rack: Some(format!("rack-{}", id % RACKS)),
        fenced: false,
        log_dirs: vec![directory],
        ..RegisterBrokerRecord::default()
    }
}

fn fill(dir: &Path, cluster: &Cluster) -> Result<()> {
    let meta = MetaProperties::read(&dir.join(META_PROPERTIES_FILE))?
        .with_context(|| format!("{} is not formatted", dir.display()))?;
    let found = bootstrap::load(dir)?;
    let partition = dir.join(directory::PARTITION_DIR);
    let id = write_snapshot(&partition, cluster, &found)?;
    let mut voters = found.control.iter().filter_map(|record| match record {
        Control::Voters(voters) => Some(voters),
        _ => None,
    });
    let voters = voters.next().context("formatted without voters")?;
    let id_of_node = meta.node_id.context("no node.id")?;
    let options = OpenOptions {
        dir: partition.clone(),
        node_id: Some(id_of_node),
        cluster_id: meta.cluster_id.clone().context("no cluster.id")?,
        segment_bytes: 1 << 30,
        segment_ms: i64::MAX,
        snapshot_delete_delay_ms: 60_000,
        accept_lost_vote: false,
    };
    // One of several voters has no vote to remember: whoever starts first may win.
    let voted = (voters.len() == 1).then(|| voters[0].key);
    write_state(&partition, voters.iter().map(|voter| voter.key.id), voted)?;
    write_log(&options, id, cluster)
}

/// Writes the checkpoint and returns its id, which is not the count of its records, as in life.
fn write_snapshot(
    dir: &Path,
    cluster: &Cluster,
    found: &bootstrap::Bootstrap,
) -> Result<OffsetAndEpoch> {
    let partitions: usize = cluster.topics.iter().map(|it| it.partitions.len()).sum();
    let id = OffsetAndEpoch {
        offset: Offset(1_000 + 2 * partitions as i64),
        epoch: EPOCH,
    };
    let control = voters_of(dir)?;
    let mut writer = SnapshotWriter::create(dir, id, TIMESTAMP, TIMESTAMP, &control)?;
    for record in &found.records {
        writer.push(record)?;
    }
    let level = MetadataVersion::LATEST_PRODUCTION;
    let mut in_batch = 0;
    cluster.records(&mut |record| {
        let version = match &record {
            Record::RegisterBroker(_) => level.register_broker_record_version(),
            Record::Partition(_) => level.partition_record_version(),
            _ => 0,
        };
        writer.push(&record.at(version))?;
        in_batch += 1;
        // As many as Java's controller puts into one.
        if in_batch % 1_024 == 0 {
            writer.end_batch()?;
        }
        Ok(())
    })?;
    writer.finish()?;
    Ok(id)
}

/// The control records of the snapshot 0-0 that `format` wrote, without its header and footer.
fn voters_of(dir: &Path) -> Result<Vec<ControlRecord>> {
    let file = SnapshotFile::open(&path(dir, OffsetAndEpoch::BOOTSTRAP))?;
    let mut found = Vec::new();
    for batch in file.batches() {
        let batch = batch?;
        for record in batch.records().filter(|_| batch.is_control()) {
            let record = record?;
            let control = ControlRecord::decode(record.key.as_ref(), record.value.as_ref())?;
            if !matches!(
                control,
                ControlRecord::SnapshotHeader(_) | ControlRecord::SnapshotFooter(_)
            ) {
                found.push(control);
            }
        }
    }
    Ok(found)
}

fn write_state(
    dir: &Path,
    voters: impl Iterator<Item = NodeId>,
    voted: Option<ReplicaKey>,
) -> Result<()> {
    let state = QuorumState {
        epoch: EPOCH,
        leader: None,
        voted,
        voters: voters.collect(),
        kraft_version: 1,
    };
    quorum_state::write(&dir.join(quorum_state::QUORUM_STATE_FILE), &state)?;
    Ok(())
}

/// Writes a log that was cleaned up to the checkpoint: it moves the leader of one partition of each
/// of the first topics. Opening it once adds the files beside it.
fn write_log(options: &OpenOptions, id: OffsetAndEpoch, cluster: &Cluster) -> Result<()> {
    let mut builder = BatchBuilder::data(id.offset, EPOCH, TIMESTAMP);
    let version = MetadataVersion::LATEST_PRODUCTION.partition_change_record_version();
    for topic in cluster.topics.iter().take(CHANGES_MAX as usize) {
        let change = PartitionChangeRecord {
            partition_id: 0,
            topic_id: topic.id,
            leader: topic.partitions[0][1],
            ..PartitionChangeRecord::default()
        };
        builder.push_record(&Record::from(change).at(version))?;
    }
    let end = builder.next_offset();
    let log = options.dir.join(format!("{:020}.log", id.offset.0));
    std::fs::write(log, builder.build().bytes())?;
    let (sender, completions) = channel();
    let tell = move |completion| drop(sender.send(completion));
    let (disk, _) = Disk::open(options, Vec::new(), tell)?;
    disk.submit(Command::SaveCommit {
        commit: OffsetAndEpoch {
            offset: end,
            epoch: EPOCH,
        },
    });
    disk.submit(Command::Close);
    for completion in completions {
        match completion {
            Completion::Failed(sentence) => bail!(sentence),
            Completion::Closed => break,
            _ => {}
        }
    }
    disk.join();
    Ok(())
}

/// Reads a checkpoint four times, each time doing more.
fn read(file: &Path) -> Result<()> {
    let file = SnapshotFile::open(file)?;
    let mut image = Image::empty();
    for step in ["read+crc", "records", "decode", "replay"] {
        let start = cpu_ms()?;
        for batch in file.batches() {
            let batch = batch?;
            if step == "read+crc" || batch.is_control() {
                continue;
            }
            for record in batch.records() {
                let record = record?;
                if step == "records" {
                    continue;
                }
                let value = record.value.as_deref().unwrap_or_default();
                let decoded = VersionedRecord::decode(value)?;
                if step == "replay" {
                    image.replay(&decoded.record, Offset::ZERO)?;
                }
            }
        }
        println!("{step}\t{:.1}", cpu_ms()? - start);
    }
    println!("partitions\t{}", image.partition_count());
    Ok(())
}

/// What this thread has run so far, by the scheduler's exact clock.
fn cpu_ms() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ran = stat.split(' ').next().context("/proc has no schedstat")?;
    Ok(ran.parse::<f64>()? / 1e6)
}
