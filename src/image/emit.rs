//! The image as records, in canonical order: what a snapshot holds.
//!
//! The order of kinds is the reference's: features with `metadata.version` first, brokers,
//! controllers, topics with their partitions, configurations, client quotas, producer ids, access
//! control entries, SCRAM credentials, delegation tokens. Inside a kind the reference follows its
//! hash maps; here everything is sorted, so that two equal images give equal records.
//!
//! What the image's metadata.version cannot express is left out and named in the result, as the
//! reference does: a cluster downgraded (or a standby of an older level) loses it.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Broker, Controller, Image, Partition, ZkMigration};
use crate::records::{
    BrokerEndpoint, BrokerFeature, ClientQuotaRecord, ConfigRecord, ControllerEndpoint,
    ControllerFeature, EntityData, FeatureLevelRecord, PartitionRecord, ProducerIdsRecord, Record,
    RegisterBrokerRecord, RegisterControllerRecord, TopicRecord, UserScramCredentialRecord,
    VersionedRecord, ZkMigrationStateRecord,
};
use crate::types::features::{ELR_VERSION, MetadataVersion};
use crate::types::{PartitionId, ids};

/// What of an image its metadata.version cannot express; each a phrase for a log line.
pub type Losses = BTreeSet<&'static str>;

/// Where the records go, and what a level can hold.
struct Emitter<'a> {
    sink: &'a mut dyn FnMut(VersionedRecord),
    version: MetadataVersion,
    /// Without the feature, ELR lists do not reach a snapshot.
    elr: bool,
    losses: Losses,
}

impl Image {
    /// Gives `sink` the records whose replay from empty makes an equal image (of what
    /// [`Self::settled`] shows), each at the version that the image's metadata.version asks for.
    /// Without a metadata.version it is the lowest one's. Returns what could not be expressed.
    pub fn emit(&self, sink: &mut dyn FnMut(VersionedRecord)) -> Losses {
        let image = self.settled();
        let version = image.features.metadata_version();
        let version = version.unwrap_or(MetadataVersion::MINIMUM);
        let elr = version.is_elr_supported() && image.features.level(ELR_VERSION) >= 1;
        let mut emitter = Emitter {
            sink,
            version,
            elr,
            losses: Losses::new(),
        };
        emitter.features(image);
        emitter.cluster(image);
        emitter.topics(image);
        emitter.configs(image);
        emitter.quotas(image);
        emitter.producer_ids(image);
        emitter.acls(image);
        emitter.scram(image);
        emitter.tokens(image);
        emitter.losses
    }
}

impl Emitter<'_> {
    fn put(&mut self, record: impl Into<Record>, version: i16) {
        (self.sink)(record.into().at(version));
    }

    /// Whether something that is set is written; notes a loss when the level cannot.
    fn can(&mut self, supported: bool, is_set: bool, loss: &'static str) -> bool {
        if is_set && !supported {
            self.losses.insert(loss);
        }
        is_set && supported
    }

    fn features(&mut self, image: &Image) {
        for (name, level) in image.features.iter() {
            let record = FeatureLevelRecord {
                name: name.to_owned(),
                feature_level: level,
                ..FeatureLevelRecord::default()
            };
            self.put(record, 0);
        }
        // The reference has forgotten this state since 4.0. Keeping it keeps every later start
        // as careful as the first.
        let state = match image.zk_migration {
            ZkMigration::Done => return,
            ZkMigration::Waiting => 1,
            ZkMigration::Running => 2,
        };
        let record = ZkMigrationStateRecord {
            zk_migration_state: state,
            ..ZkMigrationStateRecord::default()
        };
        self.put(record, 0);
    }

    fn cluster(&mut self, image: &Image) {
        for broker in image.brokers.values() {
            let record = self.broker(broker);
            self.put(record, self.version.register_broker_record_version());
        }
        let any = !image.controllers.is_empty();
        if self.can(
            self.version.controller_registration(),
            any,
            "the registrations of controllers",
        ) {
            for controller in image.controllers.values() {
                self.put(controller_record(controller), 0);
            }
        }
    }

    fn broker(&mut self, broker: &Broker) -> RegisterBrokerRecord {
        let mut record = RegisterBrokerRecord {
            broker_id: broker.id.0,
            incarnation_id: broker.incarnation,
            broker_epoch: broker.epoch.0,
            rack: broker.rack.clone(),
            fenced: broker.fenced,
            in_controlled_shutdown: broker.in_controlled_shutdown,
            ..RegisterBrokerRecord::default()
        };
        for endpoint in &broker.endpoints {
            record.end_points.push(BrokerEndpoint {
                name: endpoint.name.clone(),
                host: endpoint.host.clone(),
                port: endpoint.port,
                security_protocol: endpoint.security_protocol,
                ..BrokerEndpoint::default()
            });
        }
        for (name, (min, max)) in &broker.features {
            record.features.push(BrokerFeature {
                name: name.clone(),
                min_supported_version: *min,
                max_supported_version: *max,
                ..BrokerFeature::default()
            });
        }
        let migrating = broker.is_migrating;
        record.is_migrating_zk_broker = self.can(
            self.version.supports_migration(),
            migrating,
            "the migration state of brokers",
        );
        let any = !broker.directories.is_empty();
        if self.can(
            self.version.directory_assignment(),
            any,
            "the log directories of brokers",
        ) {
            record.log_dirs.clone_from(&broker.directories);
        }
        let any = broker.cordoned.is_some();
        if self.can(
            self.version.cordoned_log_dirs(),
            any,
            "the cordoned log directories of brokers",
        ) {
            record.cordoned_log_dirs.clone_from(&broker.cordoned);
        }
        record
    }

    fn topics(&mut self, image: &Image) {
        let version = self.version.partition_record_version();
        for topic in image.topics() {
            let record = TopicRecord {
                name: topic.name().to_owned(),
                topic_id: topic.id(),
                ..TopicRecord::default()
            };
            self.put(record, 0);
            for (id, partition) in topic.partitions() {
                let record = self.partition(topic.id(), id, partition);
                self.put(record, version);
            }
        }
    }

    fn partition(
        &mut self,
        topic: Uuid,
        id: PartitionId,
        partition: Partition<'_>,
    ) -> PartitionRecord {
        let mut record = PartitionRecord {
            partition_id: id.0,
            topic_id: topic,
            replicas: partition.replicas().to_vec(),
            isr: partition.isr().to_vec(),
            removing_replicas: partition.removing().to_vec(),
            adding_replicas: partition.adding().to_vec(),
            leader: partition.leader(),
            leader_recovery_state: i8::from(partition.recovering()),
            leader_epoch: partition.leader_epoch(),
            partition_epoch: partition.partition_epoch(),
            ..PartitionRecord::default()
        };
        let directories = partition.directories();
        if self.version.directory_assignment() {
            record.directories = directories.to_vec();
        } else if directories.iter().any(|id| *id != ids::DIR_MIGRATING) {
            self.losses.insert("the directories of replicas");
        }
        if self.elr {
            record.eligible_leader_replicas = unless_empty(partition.elr());
            record.last_known_elr = unless_empty(partition.last_known_elr());
        } else if !partition.elr().is_empty() || !partition.last_known_elr().is_empty() {
            self.losses
                .insert("the eligible leader replicas of partitions");
        }
        record
    }

    fn configs(&mut self, image: &Image) {
        for (kind, name, map) in image.configs() {
            for (key, value) in map.iter() {
                let record = ConfigRecord {
                    resource_type: kind,
                    resource_name: name.to_owned(),
                    name: key.to_owned(),
                    value: Some(value.to_owned()),
                    ..ConfigRecord::default()
                };
                self.put(record, 0);
            }
        }
    }

    fn quotas(&mut self, image: &Image) {
        for (entity, values) in image.quotas.iter() {
            for (key, value) in values {
                let parts = entity.iter().map(|(kind, name)| EntityData {
                    entity_type: kind.clone(),
                    entity_name: name.clone(),
                    ..EntityData::default()
                });
                let record = ClientQuotaRecord {
                    entity: parts.collect(),
                    key: key.clone(),
                    value: *value,
                    ..ClientQuotaRecord::default()
                };
                self.put(record, 0);
            }
        }
    }

    fn producer_ids(&mut self, image: &Image) {
        if let Some(next_producer_id) = image.next_producer_id {
            let record = ProducerIdsRecord {
                broker_id: -1,
                broker_epoch: -1,
                next_producer_id,
                ..ProducerIdsRecord::default()
            };
            self.put(record, 0);
        }
    }

    fn acls(&mut self, image: &Image) {
        for (id, acl) in image.acls.by_id().iter() {
            self.put(acl.record(*id), 0);
        }
    }

    fn scram(&mut self, image: &Image) {
        if !self.can(
            self.version.supports_scram(),
            !image.scram.is_empty(),
            "SCRAM credentials",
        ) {
            return;
        }
        for ((name, mechanism), credential) in image.scram.iter() {
            let record = UserScramCredentialRecord {
                name: name.clone(),
                mechanism: *mechanism,
                salt: credential.salt.clone(),
                stored_key: credential.stored_key.clone(),
                server_key: credential.server_key.clone(),
                iterations: credential.iterations,
                ..UserScramCredentialRecord::default()
            };
            self.put(record, 0);
        }
    }

    fn tokens(&mut self, image: &Image) {
        if !self.can(
            self.version.supports_delegation_tokens(),
            !image.tokens.is_empty(),
            "delegation tokens",
        ) {
            return;
        }
        for (id, token) in image.tokens.iter() {
            self.put(token.record(id), 0);
        }
    }
}

fn controller_record(controller: &Controller) -> RegisterControllerRecord {
    let endpoints = controller
        .endpoints
        .iter()
        .map(|endpoint| ControllerEndpoint {
            name: endpoint.name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
            ..ControllerEndpoint::default()
        });
    let ranges = controller.features.iter();
    let features = ranges.map(|(name, (min, max))| ControllerFeature {
        name: name.clone(),
        min_supported_version: *min,
        max_supported_version: *max,
        ..ControllerFeature::default()
    });
    RegisterControllerRecord {
        controller_id: controller.id.0,
        incarnation_id: controller.incarnation,
        zk_migration_ready: controller.zk_migration_ready,
        end_points: endpoints.collect(),
        features: features.collect(),
        ..RegisterControllerRecord::default()
    }
}

fn unless_empty(list: &[i32]) -> Option<Vec<i32>> {
    (!list.is_empty()).then(|| list.to_vec())
}
