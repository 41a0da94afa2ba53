//! Nodes: registered, alive, and gone.

use kafka_protocol::messages as km;
use kafka_protocol::messages::broker_registration_request as broker;
use kafka_protocol::messages::controller_registration_request as controller;
use kafka_protocol::protocol::StrBytes;

use super::{Request, Run};
use crate::records::rpc::{BrokerHeartbeatRequest, UnregisterControllerRequest};
use crate::types::{NodeId, Uuid};

impl Run {
    pub(super) fn allocate_producer_ids(&mut self) -> (i16, Request) {
        let id = self.node();
        let request = km::AllocateProducerIdsRequest::default()
            .with_broker_id(km::BrokerId(id))
            .with_broker_epoch(self.epoch(id));
        (0, Request::AllocateProducerIds(request))
    }

    pub(super) fn heartbeat(&mut self) -> (i16, Request) {
        let id = self.node();
        let far = i64::MAX;
        let request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            current_metadata_offset: self.pick(&[far, far, far, 0, -1, i64::MIN]),
            want_fence: self.once_in(20),
            want_shut_down: self.once_in(25),
            offline_log_dirs: match self.below(12) {
                0 => self.some(Self::directory),
                _ => Vec::new(),
            },
            cordoned_log_dirs: self.once_in(12).then(|| self.some(Self::directory)),
            ..BrokerHeartbeatRequest::default()
        };
        (2, Request::BrokerHeartbeat(request))
    }

    fn protocol(&mut self) -> i16 {
        match self.below(12) {
            0 => self.pick(&[i16::MIN, -1, 4, i16::MAX]),
            _ => self.below(4) as i16,
        }
    }

    fn listener_name(&mut self) -> StrBytes {
        match self.below(8) {
            0 => self.text(),
            _ => StrBytes::from_static_str(self.pick(&["PLAINTEXT", "OTHER"])),
        }
    }

    /// What the node supports: all that this release does, mostly, and now and then more.
    fn features(&mut self) -> Vec<(StrBytes, i16, i16)> {
        let all = self.world.settings.supported_features.iter();
        let mut all: Vec<_> = all
            .map(|(name, (min, max))| (StrBytes::from_string(name.clone()), *min, *max))
            .collect();
        match self.below(8) {
            0 => drop(all.pop()),
            1 => all.push((
                self.text(),
                self.number() as i16,
                self.pick(&[i16::MIN, 0, 1, 33, i16::MAX]),
            )),
            _ => {}
        }
        all
    }

    pub(super) fn register_broker(&mut self) -> (i16, Request) {
        let id = self.node();
        let listeners = self.some(|run| {
            broker::Listener::default()
                .with_name(run.listener_name())
                .with_host(run.text())
                .with_port(run.number() as u16)
                .with_security_protocol(run.protocol())
        });
        let features = self.features().into_iter().map(|(name, min, max)| {
            broker::Feature::default()
                .with_name(name)
                .with_min_supported_version(min)
                .with_max_supported_version(max)
        });
        let known = self.world.image.broker(NodeId(id));
        let known = known
            .map(|it| it.incarnation)
            .filter(|_| self.rng.below(4) != 0);
        let mut log_dirs = self.some(Self::directory);
        if log_dirs.is_empty() && !self.once_in(6) {
            log_dirs.push(self.rng.uuid());
        }
        let request = km::BrokerRegistrationRequest::default()
            .with_broker_id(km::BrokerId(id))
            .with_cluster_id(StrBytes::from_static_str("cluster"))
            .with_incarnation_id(known.unwrap_or_else(|| Uuid::from_u128(self.below(9) as u128)))
            .with_listeners(listeners)
            .with_features(features.collect())
            .with_rack(self.once_in(2).then(|| self.text()))
            .with_is_migrating_zk_broker(self.once_in(30))
            .with_log_dirs(log_dirs)
            .with_previous_broker_epoch(self.epoch(id));
        // Sessions keep brokers from being replaced; most of them have ended here.
        if !self.once_in(4) {
            self.world.soft.brokers.remove(NodeId(id));
        }
        (self.below(5) as i16, Request::BrokerRegistration(request))
    }

    pub(super) fn register_controller(&mut self) -> (i16, Request) {
        let listeners = self.some(|run| {
            controller::Listener::default()
                .with_name(run.listener_name())
                .with_host(run.text())
                .with_port(run.number() as u16)
                .with_security_protocol(run.protocol())
        });
        let features = self.features().into_iter().map(|(name, min, max)| {
            controller::Feature::default()
                .with_name(name)
                .with_min_supported_version(min)
                .with_max_supported_version(max)
        });
        let request = km::ControllerRegistrationRequest::default()
            .with_controller_id(self.node())
            .with_incarnation_id(Uuid::from_u128(self.below(3) as u128))
            .with_zk_migration_ready(self.once_in(2))
            .with_listeners(listeners)
            .with_features(features.collect());
        (0, Request::ControllerRegistration(request))
    }

    pub(super) fn unregister_broker(&mut self) -> (i16, Request) {
        // Most stay.
        let id = match self.below(4) {
            0 => self.node(),
            _ => self.pick(&[4, 5, 99, -1]),
        };
        let id = km::BrokerId(id);
        let request = km::UnregisterBrokerRequest::default().with_broker_id(id);
        (0, Request::UnregisterBroker(request))
    }

    pub(super) fn unregister_controller(&mut self) -> (i16, Request) {
        let request = UnregisterControllerRequest {
            controller_id: self.node(),
            ..UnregisterControllerRequest::default()
        };
        (0, Request::UnregisterController(request))
    }
}
