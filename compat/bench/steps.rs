//! How long the core is busy at once on a large cluster: what everybody else waits for, heartbeats
//! too.
//!
//! ```text
//! steps PARTITIONS [WORD]
//! ```
//!
//! Makes a cluster of 30 brokers in memory, topics of 10 partitions with three replicas each, and
//! lets the rules of the active controller do what touches much of it. A step is a decision, the
//! bytes of its records, and their replay while the image from before it is held; it ends where
//! other events may come in between. Prints for each event how many steps it took, how many records
//! they wrote, the CPU time (ms) of the longest and of all. With a WORD only the events whose names
//! contain it.
//!
//! At a million partitions no step is to be longer than about 30 ms.

use anyhow::{Context as _, Result, bail};
use kafka_protocol::messages as km;
use kraftd::controller::{Context, Request, Settings, Soft, View, decide, periodic, works};
use kraftd::image::Image;
use kraftd::records::rpc::BrokerHeartbeatRequest;
use kraftd::records::{
    BrokerFeature, ClearElrRecord, FeatureLevelRecord, PartitionChangeRecord, PartitionRecord,
    Record, RegisterBrokerRecord, TopicRecord, VersionedRecord,
};
use kraftd::types::{Instant, NodeId, Now, Offset, SplitMix, Ticket, Timestamp, Uuid, features};

const BROKERS: i32 = 30;
const FIRST: i32 = 101;
const PARTITIONS_A_TOPIC: i32 = 10;
const RACKS: i32 = 3;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (partitions, word) = match args.as_slice() {
        [partitions] => (partitions.parse()?, ""),
        [partitions, word] => (partitions.parse()?, word.as_str()),
        _ => bail!("usage: steps PARTITIONS [WORD]"),
    };
    let cluster = Core::new(partitions)?;
    println!("event\tsteps\trecords\tlongest ms\tall ms");
    for (name, event) in EVENTS {
        if name.contains(word) {
            event(name, cluster.again())?;
        }
    }
    Ok(())
}

/// An event on a cluster of its own.
type Event = (&'static str, fn(&str, Core) -> Result<()>);

const EVENTS: &[Event] = &[
    ("fence", |name, mut core| core.fence(name, &[FIRST])),
    ("shutdown", |name, mut core| {
        core.start(name);
        core.beat(FIRST, |it| it.want_shut_down = true)?;
        core.finish()
    }),
    ("unfence, a rack leaderless", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &rack(1))?;
        core.start(name);
        core.beat(rack(1)[0], |_| {})?;
        core.finish()
    }),
    ("unfence, nothing to lead", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &rack(1))?;
        core.fence("", &[rack(0)[0]])?;
        core.start(name);
        core.beat(rack(0)[0], |_| {})?;
        core.finish()
    }),
    ("new controller, all leaderless", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &rack(1))?;
        core.start(name);
        core.step(|view, soft| {
            *soft = Soft::new(view.settings, view.image, view.now, 2);
            Ok(Vec::new())
        })?;
        core.finish()
    }),
    ("registration, clean", |name, mut core| {
        core.start(name);
        core.register(FIRST, true)?;
        core.finish()
    }),
    ("registration, unclean", |name, mut core| {
        core.start(name);
        core.register(FIRST, false)?;
        core.finish()
    }),
    ("registration, unclean, eligible", |name, mut core| {
        core.eligible(FIRST)?;
        core.start(name);
        core.register(FIRST, false)?;
        core.finish()
    }),
    ("lost directory", |name, mut core| {
        core.start(name);
        let lost = vec![directory(FIRST)];
        core.beat(FIRST, |it| it.offline_log_dirs = lost)?;
        core.finish()
    }),
    ("unregister, too much", |name, mut core| {
        core.start(name);
        core.unregister(FIRST)?;
        core.finish()
    }),
    ("unregister, 9999", |name, mut core| {
        core.leave_isr(FIRST, 9_999)?;
        core.start(name);
        core.unregister(FIRST)?;
        core.finish()
    }),
    ("unregister, eligible", |name, mut core| {
        core.eligible(FIRST)?;
        core.start(name);
        core.unregister(FIRST)?;
        core.finish()
    }),
    ("elect preferred, all led by them", |name, mut core| {
        core.start(name);
        core.elect(0)?;
        core.finish()
    }),
    ("elect preferred, a rack away", |name, mut core| {
        core.fence("", &rack(1))?;
        core.start(name);
        core.elect(0)?;
        core.finish()
    }),
    ("elect preferred, 10000", |name, mut core| {
        core.move_leaders(10_000)?;
        core.start(name);
        core.elect(0)?;
        core.finish()
    }),
    ("elect preferred, too much", |name, mut core| {
        core.move_leaders(1_000_000)?;
        core.start(name);
        core.elect(0)?;
        core.finish()
    }),
    ("elect unclean, none possible", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &all())?;
        core.start(name);
        core.elect(1)?;
        core.finish()
    }),
    ("elect unclean, too much", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &rack(1))?;
        core.start(name);
        core.elect(1)?;
        core.finish()
    }),
    ("preferred round", |name, mut core| {
        core.move_leaders(100_000)?;
        core.start(name);
        core.now_ms += 300_001;
        core.finish()
    }),
    ("unclean round", |name, mut core| {
        core.only_rack_1()?;
        core.fence("", &rack(1))?;
        core.start(name);
        core.now_ms += 300_001;
        core.finish()
    }),
    ("clear ELR of all topics", |name, mut core| {
        core.eligible(FIRST)?;
        core.start(name);
        let record = Record::ClearElr(ClearElrRecord::default()).at(0);
        core.step(|_, _| Ok(vec![record]))?;
        core.finish()
    }),
    ("features", |name, mut core| {
        core.start(name);
        let update = km::update_features_request::FeatureUpdateKey::default()
            .with_feature("eligible.leader.replicas.version".into())
            .with_max_version_level(1)
            .with_upgrade_type(1);
        let request = km::UpdateFeaturesRequest::default().with_feature_updates(vec![update]);
        core.ask(2, Request::UpdateFeatures(request))?;
        core.finish()
    }),
    ("all moves listed", |name, mut core| {
        core.start(name);
        let request = km::ListPartitionReassignmentsRequest::default();
        core.ask(0, Request::ListPartitionReassignments(request))?;
        core.finish()
    }),
];

fn directory(broker: i32) -> Uuid {
    Uuid::from_u64_pair(7, broker.unsigned_abs().into())
}

fn all() -> Vec<i32> {
    (FIRST..FIRST + BROKERS).collect()
}

fn rack(rack: i32) -> Vec<i32> {
    all().into_iter().filter(|id| id % RACKS == rack).collect()
}

/// An active controller without a disk and a quorum.
struct Core {
    image: Image,
    settings: Settings,
    soft: Soft,
    now_ms: u64,
    end: Offset,
    topics: Vec<Uuid>,
    name: String,
    steps: usize,
    records: usize,
    longest_ms: f64,
    all_ms: f64,
}

impl Core {
    fn new(partitions: i32) -> Result<Self> {
        let settings = Settings {
            cluster_id: "cluster".into(),
            idle_interval_ms: 0,
            supported_features: supported().collect(),
            ..Settings::default()
        };
        let image = Image::empty();
        let soft = Soft::new(&settings, &image, Now::default(), 1);
        let mut core = Self {
            image,
            settings,
            soft,
            now_ms: 0,
            end: Offset::ZERO,
            topics: Vec::new(),
            name: String::new(),
            steps: 0,
            records: 0,
            longest_ms: 0.0,
            all_ms: 0.0,
        };
        core.fill(partitions)?;
        Ok(core)
    }

    fn fill(&mut self, partitions: i32) -> Result<()> {
        for (name, level) in [
            ("metadata.version", 33),
            ("eligible.leader.replicas.version", 1),
        ] {
            self.replay(
                &FeatureLevelRecord {
                    name: name.into(),
                    feature_level: level,
                    ..FeatureLevelRecord::default()
                }
                .into(),
            )?;
        }
        self.replay(
            &kraftd::records::ConfigRecord {
                resource_type: 4,
                name: "min.insync.replicas".into(),
                value: Some("2".into()),
                ..kraftd::records::ConfigRecord::default()
            }
            .into(),
        )?;
        for id in all() {
            self.replay(&broker(id, i64::from(id)).into())?;
        }
        let mut rng = SplitMix::new(1);
        for number in 0..partitions / PARTITIONS_A_TOPIC {
            let topic_id = rng.uuid();
            self.topics.push(topic_id);
            self.replay(
                &TopicRecord {
                    name: format!("service-{}.events-{number}", number % 97),
                    topic_id,
                    ..TopicRecord::default()
                }
                .into(),
            )?;
            for partition_id in 0..PARTITIONS_A_TOPIC {
                let mut racks = [0, 1, 2];
                racks.swap(0, rng.below(3) as usize);
                racks.swap(1, 1 + rng.below(2) as usize);
                let replicas = racks.map(|of| rack(of)[rng.below(10) as usize]);
                self.replay(
                    &PartitionRecord {
                        partition_id,
                        topic_id,
                        replicas: replicas.to_vec(),
                        isr: replicas.to_vec(),
                        leader: replicas[0],
                        directories: replicas.map(directory).to_vec(),
                        ..PartitionRecord::default()
                    }
                    .into(),
                )?;
            }
        }
        Ok(())
    }

    /// The same cluster, with a controller that has just become active.
    fn again(&self) -> Self {
        Self {
            image: self.image.clone(),
            settings: self.settings.clone(),
            soft: Soft::new(&self.settings, &self.image, Now::default(), 1),
            topics: self.topics.clone(),
            name: String::new(),
            ..*self
        }
    }

    fn replay(&mut self, record: &Record) -> Result<()> {
        let replayed = self.image.replay(record, self.end);
        replayed.map_err(|fault| anyhow::anyhow!("{fault}"))?;
        self.end = self.end.next();
        Ok(())
    }

    /// One step of the core.
    fn step(
        &mut self,
        rule: impl FnOnce(&View<'_>, &mut Soft) -> Result<Vec<VersionedRecord>>,
    ) -> Result<usize> {
        let before = self.image.clone();
        let start = cpu_ms()?;
        let now = Now {
            instant: Instant(self.now_ms),
            wall: Timestamp(self.now_ms.cast_signed()),
        };
        let view = View {
            image: &self.image,
            committed: &before,
            settings: &self.settings,
            now,
            next_offset: self.end,
            kraft_version: 1,
        };
        let records = rule(&view, &mut self.soft)?;
        let mut bytes = Vec::new();
        for record in &records {
            bytes.clear();
            record.encode_into(&mut bytes)?;
            self.replay(&record.record)?;
        }
        let ms = cpu_ms()? - start;
        self.steps += 1;
        self.records += records.len();
        self.longest_ms = self.longest_ms.max(ms);
        self.all_ms += ms;
        Ok(records.len())
    }

    fn ask(&mut self, version: i16, request: Request) -> Result<()> {
        let context = Context::default();
        self.step(|view, soft| {
            let decided = decide(view, soft, version, &context, request);
            let Ok(decision) = decided else {
                return Ok(Vec::new());
            };
            if let Some(left) = decision.unfinished {
                soft.works.add(Ticket(1), left);
            }
            Ok(decision.records)
        })?;
        self.due()
    }

    /// All that is due now.
    fn due(&mut self) -> Result<()> {
        while periodic::next_due(&self.soft).0 <= self.now_ms {
            self.step(|view, soft| {
                if soft.works.take_turn() {
                    let step = works::step(view, soft);
                    return Ok(step.map_or_else(Vec::new, |step| step.records));
                }
                Ok(periodic::run(view, soft))
            })?;
        }
        Ok(())
    }

    fn start(&mut self, name: &str) {
        self.name = name.to_owned();
        (self.steps, self.records) = (0, 0);
        (self.longest_ms, self.all_ms) = (0.0, 0.0);
    }

    /// Goes on until nothing is due for a second.
    fn finish(&mut self) -> Result<()> {
        for _ in 0..2_000 {
            self.due()?;
            self.now_ms += 10;
            let records = self.records;
            self.due()?;
            if self.records == records && periodic::next_due(&self.soft).0 > self.now_ms + 1_000 {
                break;
            }
        }
        println!(
            "{}\t{}\t{}\t{:.1}\t{:.1}",
            self.name, self.steps, self.records, self.longest_ms, self.all_ms
        );
        Ok(())
    }

    fn beat(&mut self, id: i32, edit: impl FnOnce(&mut BrokerHeartbeatRequest)) -> Result<()> {
        let broker = self.image.broker(NodeId(id)).context("no such broker")?;
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: broker.epoch.0,
            current_metadata_offset: self.end.0,
            ..BrokerHeartbeatRequest::default()
        };
        edit(&mut request);
        self.ask(1, Request::BrokerHeartbeat(request))
    }

    fn fence(&mut self, name: &str, ids: &[i32]) -> Result<()> {
        self.start(name);
        for id in ids {
            while !self
                .image
                .broker(NodeId(*id))
                .context("no such broker")?
                .fenced
            {
                self.beat(*id, |it| it.want_fence = true)?;
            }
        }
        if name.is_empty() {
            Ok(())
        } else {
            self.finish()
        }
    }

    fn register(&mut self, id: i32, clean: bool) -> Result<()> {
        let request = km::BrokerRegistrationRequest::default()
            .with_broker_id(id.into())
            .with_cluster_id(km::BrokerRegistrationRequest::default().cluster_id)
            .with_incarnation_id(Uuid::from_u64_pair(2, 2))
            .with_log_dirs(vec![directory(id)])
            .with_previous_broker_epoch(if clean { i64::from(id) } else { -1 });
        let features = supported().map(|(name, (min, max))| {
            km::broker_registration_request::Feature::default()
                .with_name(name.into())
                .with_min_supported_version(min)
                .with_max_supported_version(max)
        });
        let mut request = request.with_features(features.collect());
        request.cluster_id = "cluster".into();
        // The session of the old one is over, and nobody has looked at that yet.
        self.soft = Soft::new(&self.settings, &Image::empty(), Now::default(), 1);
        self.ask(4, Request::BrokerRegistration(request))
    }

    fn unregister(&mut self, id: i32) -> Result<()> {
        let request = km::UnregisterBrokerRequest::default().with_broker_id(id.into());
        self.ask(0, Request::UnregisterBroker(request))
    }

    fn elect(&mut self, kind: i8) -> Result<()> {
        let request = km::ElectLeadersRequest::default()
            .with_election_type(kind)
            .with_topic_partitions(None)
            .with_timeout_ms(60_000);
        self.ask(2, Request::ElectLeaders(request))
    }

    /// Changes every partition.
    fn change(&mut self, edit: impl Fn(&[i32], &mut PartitionChangeRecord) -> bool) -> Result<()> {
        for topic_id in self.topics.clone() {
            for partition_id in 0..PARTITIONS_A_TOPIC {
                let topic = self.image.topic_by_id(topic_id).context("no such topic")?;
                let old = topic.partition(kraftd::types::PartitionId(partition_id));
                let mut record = PartitionChangeRecord {
                    topic_id,
                    partition_id,
                    ..PartitionChangeRecord::default()
                };
                if edit(old.context("no such partition")?.replicas(), &mut record) {
                    self.replay(&record.into())?;
                }
            }
        }
        Ok(())
    }

    /// Every partition is in sync on its replica in rack 1 only, which leads it.
    fn only_rack_1(&mut self) -> Result<()> {
        self.change(|replicas, record| {
            let only = replicas.iter().copied().find(|id| id % RACKS == 1);
            record.isr = Some(only.into_iter().collect());
            record.leader = only.unwrap_or(-1);
            true
        })
    }

    /// The broker is eligible wherever it was in sync.
    fn eligible(&mut self, broker: i32) -> Result<()> {
        self.change(|replicas, record| {
            let other = replicas.iter().copied().find(|id| *id != broker);
            record.isr = Some(other.into_iter().collect());
            record.leader = other.unwrap_or(-1);
            record.eligible_leader_replicas = Some(vec![broker]);
            replicas.contains(&broker)
        })
    }

    /// The broker stays in sync in so many partitions.
    fn leave_isr(&mut self, broker: i32, left: usize) -> Result<()> {
        let seen = std::cell::Cell::new(0);
        self.change(|replicas, record| {
            let isr: Vec<i32> = replicas
                .iter()
                .copied()
                .filter(|id| *id != broker)
                .collect();
            let has = isr.len() < replicas.len();
            seen.set(seen.get() + usize::from(has));
            record.leader = isr[0];
            record.isr = Some(isr);
            has && seen.get() > left
        })
    }

    /// The second replica leads so many partitions.
    fn move_leaders(&mut self, count: usize) -> Result<()> {
        let seen = std::cell::Cell::new(0);
        self.change(|replicas, record| {
            record.leader = replicas[1];
            seen.set(seen.get() + 1);
            seen.get() <= count
        })
    }
}

fn supported() -> impl Iterator<Item = (String, (i16, i16))> {
    let supported = features::supported_features(false).into_iter();
    supported.map(|(name, min, max)| (name.to_owned(), (min, max)))
}

fn broker(id: i32, epoch: i64) -> RegisterBrokerRecord {
    let features = supported().map(|(name, (min, max))| BrokerFeature {
        name,
        min_supported_version: min,
        max_supported_version: max,
        ..BrokerFeature::default()
    });
    RegisterBrokerRecord {
        broker_id: id,
        incarnation_id: Uuid::from_u64_pair(1, id.unsigned_abs().into()),
        broker_epoch: epoch,
        features: features.collect(),
        rack: Some(format!("rack-{}", id % RACKS)),
        fenced: false,
        log_dirs: vec![directory(id)],
        ..RegisterBrokerRecord::default()
    }
}

/// What this thread has run so far, by the scheduler's exact clock.
fn cpu_ms() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ran = stat.split(' ').next().context("/proc has no schedstat")?;
    Ok(ran.parse::<f64>()? / 1e6)
}
