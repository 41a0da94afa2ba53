//! Logs that Java controllers wrote, decided again: before each batch that a broker or the clock
//! caused, the same cause is given to the rules on the image of what comes before, and they must
//! decide the batch's records.
//!
//! Java takes partitions in the order of a hash, so changes of partitions are compared sorted.

use bytes::Bytes;
use kafka_protocol::messages::{
    AllocateProducerIdsRequest, BrokerId, BrokerRegistrationRequest, broker_registration_request,
    controller_registration_request,
};
use kafka_protocol::protocol::StrBytes;

use super::register_controller::Registration;
use super::testing::settings;
use super::{Context, Request, Settings, Soft, View, activation, decide, periodic};
use crate::image::Image;
use crate::records::batch::Batch;
use crate::records::rpc::BrokerHeartbeatRequest;
use crate::records::{
    BrokerRegistrationChangeRecord, Record, RegisterBrokerRecord, RegisterControllerRecord,
    VersionedRecord,
};
use crate::types::{Instant, NodeId, Now, Offset};

macro_rules! log {
    ($path:literal) => {
        (
            $path,
            include_bytes!(concat!(
                "../../fixtures/",
                $path,
                "/__cluster_metadata-0/00000000000000000000.log"
            ))
            .as_slice(),
        )
    };
}

/// The controller that the log makes active, followed record by record.
struct Follower {
    image: Image,
    settings: Settings,
    soft: Soft,
    end: Offset,
    now: u64,
    /// How many batches were decided again, by cause.
    decided: std::collections::BTreeMap<&'static str, usize>,
}

impl Follower {
    fn new() -> Self {
        let settings = settings();
        let image = Image::empty();
        let soft = Soft::new(&settings, &image, Now::default(), 1);
        Self {
            image,
            settings,
            soft,
            end: Offset::ZERO,
            now: 0,
            decided: std::collections::BTreeMap::new(),
        }
    }

    fn rule<T>(&mut self, rule: impl FnOnce(&View<'_>, &mut Soft) -> T) -> T {
        let now = Now {
            instant: Instant(self.now),
            ..Now::default()
        };
        let view = View {
            image: &self.image,
            committed: &self.image,
            settings: &self.settings,
            now,
            next_offset: self.end,
            kraft_version: 0,
        };
        rule(&view, &mut self.soft)
    }

    fn decide(&mut self, version: i16, request: Request) -> Vec<VersionedRecord> {
        let context = Context::default();
        self.rule(|view, soft| decide(view, soft, version, &context, request))
            .expect("Java took it")
            .records
    }

    fn heartbeat(
        &mut self,
        edit: impl FnOnce(&mut BrokerHeartbeatRequest),
    ) -> Vec<VersionedRecord> {
        let mut request = BrokerHeartbeatRequest {
            broker_id: 2,
            broker_epoch: self.image.broker(NodeId(2)).unwrap().epoch.0,
            current_metadata_offset: self.end.0,
            ..BrokerHeartbeatRequest::default()
        };
        edit(&mut request);
        self.decide(2, Request::BrokerHeartbeat(request))
    }

    /// The cause of a batch and what is decided for it; `None` for what administrators ask.
    fn again(&mut self, batch: &[VersionedRecord]) -> Option<(&'static str, Vec<VersionedRecord>)> {
        let fenced = |record: &Record| match record {
            Record::BrokerRegistrationChange(it) => it.fenced == 1,
            _ => false,
        };
        match &batch.first()?.record {
            Record::BeginTransaction(_) => {
                let bootstrap = bootstrap(batch);
                let decided = self.rule(|view, _| activation::records(view, &bootstrap));
                Some(("activation", decided.unwrap().0))
            }
            Record::RegisterController(record) => {
                let request = controller_registration(record);
                let request = Request::ControllerRegistration(request);
                Some(("controller registers", self.decide(0, request)))
            }
            Record::RegisterBroker(record) => {
                // Java knows that the old process is gone: its session is over.
                self.now += self.settings.session_timeout_ms + 1;
                let known = self.image.broker(NodeId(record.broker_id));
                let previous = known.map_or(-1, |broker| broker.epoch.0);
                let request = broker_registration(record, &self.settings, previous);
                let decided = self.decide(4, Request::BrokerRegistration(request));
                Some(("broker registers", decided))
            }
            Record::ProducerIds(record) => {
                let request = AllocateProducerIdsRequest::default()
                    .with_broker_id(BrokerId(record.broker_id))
                    .with_broker_epoch(record.broker_epoch);
                let decided = self.decide(0, Request::AllocateProducerIds(request));
                Some(("producer ids", decided))
            }
            _ if batch.last().is_some_and(|last| fenced(&last.record)) => Some(self.fenced()),
            Record::BrokerRegistrationChange(first) => Some(self.changed(first, batch)),
            _ => None,
        }
    }

    /// After the controlled shutdown the broker asks again; later it falls silent.
    fn fenced(&mut self) -> (&'static str, Vec<VersionedRecord>) {
        if self.soft.brokers.shutdown_offset(NodeId(2)).is_some() {
            return (
                "shuts down now",
                self.heartbeat(|it| it.want_shut_down = true),
            );
        }
        // Step by step, as time goes by: a clock that jumps looks like a process held up.
        let end = self.now + 2 * self.settings.session_timeout_ms;
        while self.now < end {
            self.now += 100;
            while periodic::next_due(&self.soft) <= Instant(self.now) {
                let mut decided = self.rule(periodic::run);
                decided.retain(|it| !matches!(it.record, Record::NoOp(_)));
                if !decided.is_empty() {
                    return ("falls silent", decided);
                }
            }
        }
        panic!("a silent broker is not fenced");
    }

    fn changed(
        &mut self,
        first: &BrokerRegistrationChangeRecord,
        batch: &[VersionedRecord],
    ) -> (&'static str, Vec<VersionedRecord>) {
        let cordoned = batch.iter().find_map(|it| match &it.record {
            Record::BrokerRegistrationChange(it) => it.cordoned_log_dirs.clone(),
            _ => None,
        });
        if first.in_controlled_shutdown == 1 {
            let decided = self.heartbeat(|it| it.want_shut_down = true);
            return ("wants to shut down", decided);
        }
        let unfenced = first.fenced == -1;
        let decided = self.heartbeat(|it| {
            it.want_fence = !unfenced;
            it.cordoned_log_dirs = cordoned;
        });
        (if unfenced { "unfenced" } else { "cordons" }, decided)
    }

    fn replay(&mut self, records: &[VersionedRecord], place: &str) {
        for record in records {
            self.image.replay(&record.record, self.end).expect(place);
            self.end = self.end.next();
        }
    }

    fn follow(&mut self, path: &str, mut log: Bytes) {
        while let Some(batch) = Batch::take_from(&mut log).unwrap() {
            let mut records = Vec::new();
            if !batch.is_control() {
                for raw in batch.records() {
                    records.push(VersionedRecord::decode(&raw.unwrap().value.unwrap()).unwrap());
                }
            }
            let place = format!("{path} at offset {}", batch.base_offset());
            // Java puts what happens within a few milliseconds into one batch.
            let idle = |it: &VersionedRecord| matches!(it.record, Record::NoOp(_));
            let rest = records.split_off(records.iter().take_while(|it| idle(it)).count());
            self.replay(&records, &place);
            let caused: Vec<_> = rest.iter().filter(|it| !idle(it)).cloned().collect();
            if let Some((cause, decided)) = self.again(&caused) {
                assert_eq!(sorted(&decided), sorted(&caused), "{place}: {cause}");
                *self.decided.entry(cause).or_default() += 1;
            }
            self.replay(&rest, &place);
            self.end = batch.end_offset();
        }
    }
}

/// Each record as text; runs of partition changes sorted among themselves.
fn sorted(records: &[VersionedRecord]) -> Vec<String> {
    let mut lines: Vec<(bool, String)> = Vec::new();
    for record in records {
        let change = matches!(record.record, Record::PartitionChange(_));
        // Java 3 wrote that no migration from ZooKeeper took place; Java 4 does not.
        if !matches!(record.record, Record::ZkMigrationState(_)) {
            lines.push((change, format!("{record:?}")));
        }
    }
    for run in lines.chunk_by_mut(|a, b| a.0 && b.0) {
        run.sort();
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The feature levels of a bootstrap transaction.
fn bootstrap(batch: &[VersionedRecord]) -> Vec<VersionedRecord> {
    let levels = batch.iter();
    levels
        .filter(|it| matches!(it.record, Record::FeatureLevel(_)))
        .cloned()
        .collect()
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn controller_registration(record: &RegisterControllerRecord) -> Registration {
    let listeners = record.end_points.iter().map(|it| {
        controller_registration_request::Listener::default()
            .with_name(text(&it.name))
            .with_host(text(&it.host))
            .with_port(it.port)
            .with_security_protocol(it.security_protocol)
    });
    let features = record.features.iter().map(|it| {
        controller_registration_request::Feature::default()
            .with_name(text(&it.name))
            .with_min_supported_version(it.min_supported_version)
            .with_max_supported_version(it.max_supported_version)
    });
    Registration::default()
        .with_controller_id(record.controller_id)
        .with_incarnation_id(record.incarnation_id)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
}

fn broker_registration(
    record: &RegisterBrokerRecord,
    settings: &Settings,
    previous_epoch: i64,
) -> BrokerRegistrationRequest {
    let listeners = record.end_points.iter().map(|it| {
        broker_registration_request::Listener::default()
            .with_name(text(&it.name))
            .with_host(text(&it.host))
            .with_port(it.port)
            .with_security_protocol(it.security_protocol)
    });
    let features = record.features.iter().map(|it| {
        broker_registration_request::Feature::default()
            .with_name(text(&it.name))
            .with_min_supported_version(it.min_supported_version)
            .with_max_supported_version(it.max_supported_version)
    });
    BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(record.broker_id))
        .with_cluster_id(text(&settings.cluster_id))
        .with_incarnation_id(record.incarnation_id)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
        .with_rack(record.rack.as_deref().map(text))
        .with_log_dirs(record.log_dirs.clone())
        .with_previous_broker_epoch(previous_epoch)
}

#[test]
fn what_brokers_and_the_clock_cause_is_written_as_java_wrote_it() {
    for (path, log) in [
        log!("4.4.0/lived/dynamic-stopped"),
        log!("4.4.0/lived/static-stopped"),
        log!("3.9.2/lived/dynamic-stopped"),
        log!("3.9.2/lived/static-stopped"),
    ] {
        let mut follower = Follower::new();
        follower.follow(path, Bytes::from_static(log));
        for cause in [
            "activation",
            "broker registers",
            "controller registers",
            "falls silent",
            "producer ids",
            "shuts down now",
            "unfenced",
            "wants to shut down",
        ] {
            assert!(
                follower.decided.contains_key(cause),
                "{path}: {cause} did not happen: {:?}",
                follower.decided
            );
        }
    }
}
