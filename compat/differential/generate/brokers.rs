//! Brokers, played by hand: registered, fenced, shutting down, with directories that fail and
//! directories that are cordoned.

use kafka_protocol::messages::broker_registration_request::{Feature, Listener};
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, BrokerId, BrokerRegistrationRequest, UnregisterBrokerRequest,
};
use kraftd::image::Broker;
use kraftd::records::rpc::BrokerHeartbeatRequest;
use kraftd::types::NodeId;
use kraftd::types::features::supported_features;
use uuid::Uuid;

use super::{Ask, Generator, text};
use crate::harness::CLUSTER_ID;

/// Brokers that are there from the start.
const FIRST: i32 = 2;
const LAST: i32 = 8;
/// An offset that no log of a run reaches.
const FAR: i64 = 1 << 40;

/// The directories of a broker: one, two or three. A broker that comes back under its id after it
/// was unregistered has others.
fn directories(broker: i32, life: u64) -> Vec<Uuid> {
    let count = broker.rem_euclid(3) + 1;
    let ids = (0..count).map(|at| directory(broker, life, at));
    ids.collect()
}

pub(super) fn directory(broker: i32, life: u64, at: i32) -> Uuid {
    let (broker, at) = (broker.unsigned_abs(), at.unsigned_abs());
    let low = u64::from(broker) << 8 | u64::from(at);
    Uuid::from_u64_pair(0xD1 << 32 | life, low)
}

impl Generator {
    /// All brokers register, and all but the last are unfenced.
    pub(super) fn introduce_brokers(&mut self) {
        for broker in FIRST..=LAST {
            let registration = self.sound_registration(broker);
            self.force(registration);
        }
        for broker in FIRST..LAST {
            // Its epoch is not known yet: see `with_its_epoch`.
            self.force(BrokerHeartbeatRequest {
                broker_id: broker,
                broker_epoch: -1,
                current_metadata_offset: FAR,
                ..Default::default()
            });
        }
    }

    /// The broker that is to take this place, when none does: another one under a new id when the
    /// last one may not come back.
    fn missing(&self, slot: i32) -> Option<i32> {
        let ids = (0..100).map(|step| slot + 10 * step);
        let last = ids
            .clone()
            .find(|id| !self.entangled.contains(id) || self.image.broker(NodeId(*id)).is_some());
        last.filter(|id| self.image.broker(NodeId(*id)).is_none())
    }

    /// The broker, unless it left and may not come back: then one that may, or that is here. Where
    /// nobody is missing the first place is taken.
    fn who_may_come(&self, broker: i32, missing: Option<i32>) -> i32 {
        let here = |id: i32| self.image.broker(NodeId(id)).is_some();
        if here(broker) || !self.entangled.contains(&broker) {
            return broker;
        }
        let first = (0..100).map(|step| FIRST + 10 * step).find(|id| here(*id));
        missing
            .or(first)
            .expect("the first place is taken when nobody is missing")
    }

    pub(super) fn sound_registration(&mut self, broker: i32) -> BrokerRegistrationRequest {
        let port = u16::try_from(9_000 + broker.rem_euclid(1_000)).expect("small");
        let listener = Listener::default()
            .with_name(text("PLAINTEXT"))
            .with_host(text("localhost"))
            .with_port(port)
            .with_security_protocol(0);
        let features = supported_features(false)
            .into_iter()
            .map(|(name, low, high)| {
                Feature::default()
                    .with_name(text(name))
                    .with_min_supported_version(low)
                    .with_max_supported_version(high)
            });
        let rack = ["r1", "r2", "r3"].get(usize::try_from(broker % 4).unwrap_or(3));
        let known = self.image.broker(NodeId(broker));
        let epoch = known.map_or(-1, |broker| broker.epoch.0);
        BrokerRegistrationRequest::default()
            .with_broker_id(BrokerId(broker))
            .with_cluster_id(text(CLUSTER_ID))
            .with_incarnation_id(self.dice.uuid())
            .with_listeners(vec![listener])
            .with_features(features.collect())
            .with_rack(rack.map(|rack| text(rack)))
            .with_log_dirs(self.directories(broker))
            .with_previous_broker_epoch(epoch)
    }

    /// Those that it has already, or new ones.
    fn directories(&self, broker: i32) -> Vec<Uuid> {
        let known = self.image.broker(NodeId(broker));
        let told = known.and_then(|broker| broker.directories.first());
        let life = told.map_or(self.made as u64, |id| id.as_u64_pair().0 & 0xFFFF_FFFF);
        directories(broker, life)
    }

    /// One that is registered, mostly.
    pub(super) fn some_broker(&mut self) -> i32 {
        let brokers: Vec<i32> = self.image.brokers().keys().map(|id| id.0).collect();
        match self.dice.maybe(&brokers) {
            Some(id) if !self.dice.once_in(20) => *id,
            _ => *self.dice.pick(&[2, 3, 4, 5, 6, 7, 8, 9, 10, 99, -1]),
        }
    }

    /// The epoch of its registration, mostly.
    pub(super) fn epoch_of(&mut self, broker: i32) -> i64 {
        let known = self.image.broker(NodeId(broker));
        let epoch = known.map_or(-1, |broker| broker.epoch.0);
        match self.dice.below(40) {
            0 => -1,
            1 => epoch - 1,
            2 => FAR,
            _ => epoch,
        }
    }

    pub(super) fn registration(&mut self) -> Ask {
        let missing = (FIRST..=LAST).find_map(|slot| self.missing(slot));
        let broker = match missing {
            Some(id) if !self.dice.once_in(4) => id,
            // Java registers a broker with the id -1, and never answers again: see `answers`.
            _ => self.some_broker().max(FIRST),
        };
        let broker = self.who_may_come(broker, missing);
        let mut request = self.sound_registration(broker);
        let known = self.image.broker(NodeId(broker));
        let same = self.entangled.contains(&broker) || !self.dice.once_in(5);
        if let Some(incarnation) = known.map(|broker| broker.incarnation)
            && same
        {
            request.incarnation_id = incarnation;
        }
        match self.dice.below(40) {
            0 => request.cluster_id = text("AAAAAAAAQACAAAAAAAAAAQ"),
            1 => request.log_dirs = Vec::new(),
            2 => request.log_dirs.push(Uuid::from_u128(5)),
            3 => request.log_dirs.extend(request.log_dirs.first().copied()),
            4 => request.log_dirs.push(directory(broker + 1, 0, 0)),
            5 => request.log_dirs.push(directory(broker, 0, 7)),
            6 => request.is_migrating_zk_broker = true,
            7 => request.features.clear(),
            8 => drop(request.features.pop()),
            9 => request.features[0].max_supported_version = 0,
            10 => {
                let versions = request.features.iter_mut();
                let mut version = versions.filter(|it| it.name.as_str() == "metadata.version");
                version.next().expect("it is there").max_supported_version = 8;
            }
            11 => request.listeners.clear(),
            12 => request.listeners.extend(request.listeners.first().cloned()),
            13 => request.rack = Some(text("")),
            14 => request.previous_broker_epoch = 3,
            _ => {}
        }
        request.into()
    }

    pub(super) fn heartbeat(&mut self) -> Ask {
        let broker = self.some_broker();
        let registered = self.registered_at(broker).0;
        let epoch = self.epoch_of(broker);
        let mut request = BrokerHeartbeatRequest {
            broker_id: broker,
            broker_epoch: epoch,
            current_metadata_offset: FAR,
            ..Default::default()
        };
        let inactive = self
            .image
            .brokers()
            .values()
            .filter(|it| !it.is_active())
            .count();
        let few = inactive * 2 > self.image.brokers().len();
        // What makes a broker inactive is rarer when few are active.
        let action = if few {
            self.dice.below(4)
        } else {
            self.dice.below(11)
        };
        match action {
            0..4 => {}
            4 => request.want_fence = true,
            5 => request.want_shut_down = true,
            6 => (request.want_fence, request.want_shut_down) = (true, true),
            7 => {
                let offset = *self.dice.pick(&[0, registered - 1, registered, -1]);
                request.current_metadata_offset = offset;
            }
            8 => {
                let mut failed = self.some_dirs(broker);
                failed.retain(|id| !self.haunted.contains(id) && !self.holds_others(broker, *id));
                request.offline_log_dirs = failed;
            }
            _ => request.cordoned_log_dirs = Some(self.some_dirs(broker)),
        }
        Ask::BrokerHeartbeat(request)
    }

    /// Directories of the broker: some, and now and then one that it does not have.
    fn some_dirs(&mut self, broker: i32) -> Vec<Uuid> {
        let known = self.image.broker(NodeId(broker));
        let online = known.map_or(Vec::new(), |broker| broker.directories.clone());
        let count = self.dice.below(online.len() + 1).min(2);
        let mut some = self.dice.some(&online, count);
        if self.dice.once_in(10) {
            some.push(directory(broker, 0, 9));
        }
        some
    }

    /// Whether this directory holds replicas of other brokers, too. Java writes the change of a
    /// partition once for each failed directory that holds any replica of it. FINDINGS.md has it.
    fn holds_others(&self, broker: i32, directory: Uuid) -> bool {
        let topics = self.image.topics();
        let partitions = &mut topics.flat_map(|topic| topic.partitions());
        partitions.any(|(_, partition)| {
            let replicas = partition.replicas().iter().zip(partition.directories());
            let mut others = replicas.filter(|(replica, _)| **replica != broker);
            others.any(|(_, other)| *other == directory)
        })
    }

    pub(super) fn allocate_producer_ids(&mut self) -> Ask {
        let broker = self.some_broker();
        AllocateProducerIdsRequest::default()
            .with_broker_id(BrokerId(broker))
            .with_broker_epoch(self.epoch_of(broker))
            .into()
    }

    pub(super) fn unregister_broker(&mut self) -> Ask {
        let mut broker = self.some_broker();
        if self.entangled.contains(&broker) {
            broker = 98;
        }
        UnregisterBrokerRequest::default()
            .with_broker_id(BrokerId(broker))
            .into()
    }

    /// A heartbeat whose epoch was not known when it was planned.
    pub(super) fn with_its_epoch(&self, ask: Ask) -> Ask {
        let Ask::BrokerHeartbeat(mut request) = ask else {
            return ask;
        };
        let known: Option<&Broker> = self.image.broker(NodeId(request.broker_id));
        if let Some(broker) = known.filter(|_| request.broker_epoch == -1) {
            request.broker_epoch = broker.epoch.0;
        }
        Ask::BrokerHeartbeat(request)
    }
}
