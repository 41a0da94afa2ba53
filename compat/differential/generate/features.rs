//! Features, and who is there: the cluster described, controllers registered.

use kafka_protocol::messages::controller_registration_request as controller;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{
    ControllerRegistrationRequest, DescribeClusterRequest, UpdateFeaturesRequest,
};
use kraftd::records::rpc::UnregisterControllerRequest;
use kraftd::types::features::supported_features;
use uuid::Uuid;

use super::{Ask, Generator, text};

/// Names, and levels that somebody may ask for.
const UPDATES: [(&str, &[i16]); 8] = [
    ("metadata.version", &[33, 7, 32, 30, 34, 0, -1]),
    ("group.version", &[0, 1, 2]),
    ("transaction.version", &[0, 1, 2, 3]),
    ("eligible.leader.replicas.version", &[0, 1, 2]),
    ("share.version", &[0, 1, 2, 3]),
    ("streams.version", &[0, 1, 2]),
    ("kraft.version", &[1, 0]),
    ("no.such.feature", &[1, 0]),
];

impl Generator {
    pub(super) fn update_features(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(10, 1), (4, 2), (1, 0)]);
        // Version 0 knows only a flag.
        let flags = self.dice.once_in(8);
        let updates = (0..count).map(|_| self.update(flags)).collect();
        UpdateFeaturesRequest::default()
            .with_timeout_ms(60_000)
            .with_feature_updates(updates)
            .with_validate_only(!flags && self.dice.once_in(4))
            .into()
    }

    fn update(&mut self, flags: bool) -> FeatureUpdateKey {
        let (name, levels) = *self.dice.pick(&UPDATES);
        let level = *self.dice.pick(levels);
        let known = self.image.features().level(name);
        let update = FeatureUpdateKey::default()
            .with_feature(text(name))
            .with_max_version_level(level);
        // UPGRADE 1, SAFE_DOWNGRADE 2, UNSAFE_DOWNGRADE 3; mostly the one that fits.
        let fitting = if level < known { 2 } else { 1 };
        let kind = if self.dice.once_in(4) {
            *self.dice.pick(&[0, 1, 2, 3, 4, -1])
        } else {
            fitting
        };
        if flags {
            return update.with_allow_downgrade(self.dice.once_in(2));
        }
        update.with_upgrade_type(kind)
    }

    pub(super) fn describe_cluster(&mut self) -> Ask {
        let kind = *self.dice.weighted(&[(6, 2), (2, 1), (1, 0), (1, 3)]);
        DescribeClusterRequest::default()
            .with_endpoint_type(kind)
            .with_include_cluster_authorized_operations(self.dice.once_in(2))
            .with_include_fenced_brokers(self.dice.once_in(4))
            .into()
    }

    /// Not of the controller itself: it would register again in its own time.
    pub(super) fn unregister_controller(&mut self) -> Ask {
        let controller_id = *self.dice.pick(&[3000, 3001, 3002, 2, 99]);
        Ask::UnregisterController(UnregisterControllerRequest {
            controller_id,
            ..Default::default()
        })
    }

    pub(super) fn controller_registration(&mut self) -> Ask {
        // Java registers a controller with an id below zero, too: see `answers`.
        let id: i32 = *self.dice.pick(&[3000, 3001, 3002, 2, 0]);
        let listeners = ["CONTROLLER", "OTHER"].map(|name| {
            controller::Listener::default()
                .with_name(text(name))
                .with_host(text("localhost"))
                .with_port(9_093)
                .with_security_protocol(0)
        });
        let listeners = self.dice.some(&listeners, self.made % 3);
        let features = supported_features(false)
            .into_iter()
            .map(|(name, low, high)| {
                controller::Feature::default()
                    .with_name(text(name))
                    .with_min_supported_version(low)
                    .with_max_supported_version(high)
            });
        let mut features: Vec<_> = features.collect();
        if self.dice.once_in(6) {
            features.pop();
        }
        let known = Uuid::from_u128(0xC0 << 64 | u128::from(id.unsigned_abs()));
        let incarnation = if self.dice.once_in(3) {
            known
        } else {
            self.dice.uuid()
        };
        ControllerRegistrationRequest::default()
            .with_controller_id(id)
            .with_incarnation_id(incarnation)
            .with_zk_migration_ready(self.dice.once_in(10))
            .with_listeners(listeners)
            .with_features(features)
            .into()
    }
}
