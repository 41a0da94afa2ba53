//! A small cluster for tests of rules: what they decide is replayed on its image.

use kafka_protocol::messages::{BrokerId, BrokerRegistrationRequest, broker_registration_request};
use kafka_protocol::protocol::StrBytes;

use super::{Context, Decision, Reply, Request, Settings, Soft, View, decide, works};
use crate::image::Image;
use crate::records::{
    BrokerFeature, BrokerRegistrationChangeRecord, ConfigRecord, FeatureLevelRecord,
    PartitionRecord, Record, RegisterBrokerRecord, TopicRecord, VersionedRecord,
};
use crate::types::{ApiError, Instant, NodeId, Now, Offset, Ticket, Timestamp, Uuid, features};

/// What a request comes to.
pub(super) type Answer = Result<Reply, ApiError>;

/// A controller (node 1) with its image.
pub(super) struct World {
    pub(super) image: Image,
    pub(super) settings: Settings,
    pub(super) soft: Soft,
    pub(super) context: Context,
    /// The monotonic clock, in milliseconds.
    pub(super) now_ms: u64,
    pub(super) kraft_version: i16,
    /// What is published, where that is behind the image.
    pub(super) committed: Option<Image>,
    offset: i64,
}

impl World {
    /// An empty log.
    pub(super) fn empty() -> Self {
        let settings = settings();
        let image = Image::empty();
        let soft = Soft::new(&settings, &image, Now::default(), 1);
        Self {
            image,
            settings,
            soft,
            context: Context::default(),
            now_ms: 0,
            kraft_version: 1,
            committed: None,
            offset: 0,
        }
    }

    /// A cluster without brokers that release 4.4 formatted at this level of `metadata.version`,
    /// and with the other features that the level brings.
    pub(super) fn at_level(level: i16) -> Self {
        let mut world = Self::empty();
        world.feature(features::METADATA_VERSION, level);
        for (name, since, value) in [
            ("group.version", 22, 1),
            ("transaction.version", 24, 2),
            ("eligible.leader.replicas.version", 26, 1),
            ("share.version", 28, if level >= 31 { 2 } else { 1 }),
            ("streams.version", 29, 1),
        ] {
            if level >= since {
                world.feature(name, value);
            }
        }
        if level >= 26 {
            world.config(4, "", "min.insync.replicas", "1");
        }
        world
    }

    /// The newest level, with unfenced brokers of one log directory each.
    pub(super) fn with_brokers(ids: &[i32]) -> Self {
        let mut world = Self::at_level(33);
        for id in ids {
            world.broker(
                *id,
                &[Uuid::from_u128(0x1000 + u128::from(id.unsigned_abs()))],
            );
        }
        world
    }

    /// Registers a broker and unfences it.
    pub(super) fn broker(&mut self, id: i32, directories: &[Uuid]) {
        let level = super::levels::metadata_version(&self.image);
        let version = level.register_broker_record_version();
        let ranges = self.settings.supported_features.iter();
        let features = ranges.map(|(name, (min, max))| BrokerFeature {
            name: name.clone(),
            min_supported_version: *min,
            max_supported_version: *max,
            ..BrokerFeature::default()
        });
        let record = RegisterBrokerRecord {
            broker_id: id,
            incarnation_id: Uuid::from_u128(u128::from(id.unsigned_abs()) + 1),
            broker_epoch: self.offset,
            features: features.collect(),
            // Below 3.7-IV2 a registration has no place for directories.
            log_dirs: if version >= 3 {
                directories.to_vec()
            } else {
                Vec::new()
            },
            fenced: true,
            ..RegisterBrokerRecord::default()
        };
        self.replay(&Record::RegisterBroker(record).at(version));
        self.change(id, |change| change.fenced = -1);
    }

    /// Changes a broker's registration.
    pub(super) fn change(
        &mut self,
        id: i32,
        edit: impl FnOnce(&mut BrokerRegistrationChangeRecord),
    ) {
        let mut record = BrokerRegistrationChangeRecord {
            broker_id: id,
            broker_epoch: self.image.broker(NodeId(id)).unwrap().epoch.0,
            ..BrokerRegistrationChangeRecord::default()
        };
        edit(&mut record);
        self.replay(&Record::BrokerRegistrationChange(record).at(3));
    }

    /// Sets a key.
    pub(super) fn config(&mut self, kind: i8, name: &str, key: &str, value: &str) {
        let record = ConfigRecord {
            resource_type: kind,
            resource_name: name.into(),
            name: key.into(),
            value: Some(value.into()),
            ..ConfigRecord::default()
        };
        self.replay(&Record::Config(record).at(0));
    }

    /// Finalizes a level.
    pub(super) fn feature(&mut self, name: &str, level: i16) {
        let record = FeatureLevelRecord {
            name: name.into(),
            feature_level: level,
            ..FeatureLevelRecord::default()
        };
        self.replay(&Record::FeatureLevel(record).at(0));
    }

    /// Replays one record at the next offset. Its version has a place for each of its fields.
    pub(super) fn replay(&mut self, versioned: &VersionedRecord) {
        versioned.encode().unwrap();
        self.image
            .replay(&versioned.record, Offset(self.offset))
            .unwrap_or_else(|fault| panic!("{fault:?}: {versioned:?}"));
        self.offset += 1;
    }

    /// Creates a topic with these partitions; their ids and that of the topic are set here.
    pub(super) fn topic(&mut self, name: &str, id: Uuid, partitions: Vec<PartitionRecord>) {
        let topic = TopicRecord {
            name: name.into(),
            topic_id: id,
            ..TopicRecord::default()
        };
        self.replay(&Record::Topic(topic).at(0));
        let version = super::levels::metadata_version(&self.image).partition_record_version();
        for (index, mut partition) in partitions.into_iter().enumerate() {
            partition.topic_id = id;
            partition.partition_id = index as i32;
            self.replay(&Record::Partition(partition).at(version));
        }
    }

    /// The offset of the next record.
    pub(super) const fn next_offset(&self) -> i64 {
        self.offset
    }

    /// Runs a rule on the image, which stays as it is.
    pub(super) fn rule<T>(&mut self, rule: impl FnOnce(&View<'_>, &mut Soft) -> T) -> T {
        let view = View {
            image: &self.image,
            committed: self.committed.as_ref().unwrap_or(&self.image),
            settings: &self.settings,
            now: Now {
                instant: Instant(self.now_ms),
                wall: Timestamp(self.now_ms.cast_signed()),
            },
            next_offset: Offset(self.offset),
            kraft_version: self.kraft_version,
        };
        rule(&view, &mut self.soft)
    }

    /// Decides a request on the image, which stays as it is.
    pub(super) fn ask(&mut self, version: i16, request: Request) -> Result<Decision, ApiError> {
        let context = self.context.clone();
        self.rule(|view, soft| decide(view, soft, version, &context, request))
    }

    /// Decides a request of a broker and replays what was decided, batch or not.
    pub(super) fn take(&mut self, version: i16, request: Request) -> Result<Decision, ApiError> {
        let decision = self.ask(version, request)?;
        for record in &decision.records {
            self.replay(record);
        }
        Ok(decision)
    }

    /// The registration of a process with all features that are supported and one log directory.
    pub(super) fn registration(
        &self,
        id: i32,
        incarnation: u128,
        previous_epoch: i64,
    ) -> BrokerRegistrationRequest {
        let ranges = self.settings.supported_features.iter();
        let feature = |(name, (min, max)): (&String, &(i16, i16))| {
            broker_registration_request::Feature::default()
                .with_name(StrBytes::from_string(name.clone()))
                .with_min_supported_version(*min)
                .with_max_supported_version(*max)
        };
        BrokerRegistrationRequest::default()
            .with_broker_id(BrokerId(id))
            .with_cluster_id(StrBytes::from_string(self.settings.cluster_id.clone()))
            .with_incarnation_id(Uuid::from_u128(incarnation))
            .with_features(ranges.map(feature).collect())
            .with_log_dirs(vec![Uuid::from_u128(
                0x1000 + u128::from(id.unsigned_abs()),
            )])
            .with_previous_broker_epoch(previous_epoch)
    }

    /// Decides a request in as many steps as it takes, and replays what each of them writes: how
    /// many records that was, step by step, and the answer.
    pub(super) fn steps_of(&mut self, version: i16, request: Request) -> (Vec<usize>, Answer) {
        let first = match self.take(version, request) {
            Ok(decision) => decision,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let mut steps = vec![first.records.len()];
        let Some(left) = first.unfinished else {
            return (steps, Ok(first.reply));
        };
        self.soft.works.add(Ticket(1), left);
        loop {
            let (len, answer) = self.step_of_work().expect("there is work until the answer");
            steps.push(len);
            if let Some(answer) = answer {
                return (steps, answer);
            }
        }
    }

    /// One step of the first request that has work left; what it writes is replayed.
    pub(super) fn step_of_work(&mut self) -> Option<(usize, Option<Answer>)> {
        let step = self.rule(works::step)?;
        for record in &step.records {
            self.replay(record);
        }
        Some((step.records.len(), step.answer))
    }

    /// Decides a request and replays what was decided.
    pub(super) fn run(&mut self, version: i16, request: Request) -> Result<Reply, ApiError> {
        let decision = self.ask(version, request)?;
        assert!(decision.atomic);
        for record in &decision.records {
            self.replay(record);
        }
        Ok(decision.reply)
    }
}

/// The settings of a controller whose file sets nothing.
pub(super) fn settings() -> Settings {
    Settings {
        cluster_id: "cluster".into(),
        supported_features: features::supported_features(false)
            .into_iter()
            .map(|(name, min, max)| (name.to_owned(), (min, max)))
            .collect(),
        ..Settings::default()
    }
}
