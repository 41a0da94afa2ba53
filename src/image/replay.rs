//! A record changes the image: the only writer.
//!
//! The rules are those of the reference's controller and of its image, where they agree; a record
//! that makes no sense there (an unknown topic id, a broker epoch that is not the current one) is
//! a [`ReplayFault`] here, and what to do about it is the caller's decision: for a committed
//! record, stop. A fault leaves the image as it was.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use uuid::Uuid;

use super::brokers::{Broker, Endpoint, FeatureRange, sort_directories};
use super::controllers::Controller;
use super::{
    Acl, DelegationToken, Image, QuotaEntity, ScramCredential, Transaction, ZkMigration, configs,
};
use crate::records::{
    AccessControlEntryRecord, BeginTransactionRecord, BrokerRegistrationChangeRecord,
    ClientQuotaRecord, ConfigRecord, DelegationTokenRecord, FeatureLevelRecord, ProducerIdsRecord,
    Record, RegisterBrokerRecord, RegisterControllerRecord, RemoveUserScramCredentialRecord,
    UnregisterBrokerRecord, UserScramCredentialRecord, ZkMigrationStateRecord,
};
use crate::types::features::{Feature, KRAFT_VERSION, METADATA_VERSION, MetadataVersion};
use crate::types::{BrokerEpoch, NodeId, Offset, SecurityProtocol, Timestamp};

/// Why a record makes no sense on an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayFault {
    /// A field has a value that means nothing.
    BadValue {
        /// The record's name.
        record: &'static str,
        /// The field's name.
        field: &'static str,
        /// The value.
        value: i64,
    },
    /// A broker change names an epoch that is not the registered one.
    BrokerEpochMismatch {
        /// The broker.
        id: NodeId,
        /// The epoch of its registration.
        registered: BrokerEpoch,
        /// The epoch in the record.
        record: BrokerEpoch,
    },
    /// A partition does not have as many directories as replicas.
    DirectoriesMismatch {
        /// How many replicas.
        replicas: usize,
        /// How many directories.
        directories: usize,
    },
    /// A feature level that this release does not know.
    FeatureLevelUnknown {
        /// The feature.
        name: String,
        /// The level.
        level: i16,
    },
    /// A listener without a name.
    ListenerUnnamed(NodeId),
    /// The end or abort of a transaction while none is open.
    NoTransaction,
    /// The next producer id is not larger than the known one.
    ProducerIdsNotRising {
        /// The known one.
        known: i64,
        /// The one in the record.
        record: i64,
    },
    /// A topic with this id exists.
    TopicIdTaken(Uuid),
    /// A topic with this name exists.
    TopicNameTaken(String),
    /// A transaction begins while the one that began at this offset is open.
    TransactionOpen(Offset),
    /// No access control entry has this id.
    UnknownAcl(Uuid),
    /// No broker has this id.
    UnknownBroker(NodeId),
    /// No controller has this id.
    UnknownController(NodeId),
    /// The topic has no partition with this index.
    UnknownPartition(Uuid, i32),
    /// The user has no credential of this mechanism.
    UnknownScram(String, i8),
    /// No topic has this id.
    UnknownTopic(Uuid),
    /// No topic has this name.
    UnknownTopicName(String),
}

impl fmt::Display for ReplayFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue {
                record,
                field,
                value,
            } => write!(f, "{record} with {field} {value}"),
            Self::BrokerEpochMismatch {
                id,
                registered,
                record,
            } => write!(
                f,
                "broker {id} is registered with epoch {registered}, the record says {record}"
            ),
            Self::DirectoriesMismatch {
                replicas,
                directories,
            } => write!(f, "{replicas} replicas with {directories} directories"),
            Self::FeatureLevelUnknown { name, level } => {
                write!(f, "feature {name} at the unknown level {level}")
            }
            Self::ListenerUnnamed(id) => write!(f, "node {id} with a listener without a name"),
            Self::NoTransaction => f.write_str("end of a transaction that never began"),
            Self::ProducerIdsNotRising { known, record } => {
                write!(f, "next producer id {record} is not above {known}")
            }
            Self::TopicIdTaken(id) => write!(f, "a topic with id {id} exists already"),
            Self::TopicNameTaken(name) => write!(f, "a topic named {name:?} exists already"),
            Self::TransactionOpen(begin) => {
                write!(f, "begin of a transaction inside the one of offset {begin}")
            }
            Self::UnknownAcl(id) => write!(f, "no access control entry has id {id}"),
            Self::UnknownBroker(id) => write!(f, "no broker has id {id}"),
            Self::UnknownController(id) => write!(f, "no controller has id {id}"),
            Self::UnknownPartition(topic, index) => {
                write!(f, "topic {topic} has no partition {index}")
            }
            Self::UnknownScram(user, mechanism) => {
                write!(
                    f,
                    "user {user:?} has no credential of mechanism {mechanism}"
                )
            }
            Self::UnknownTopic(id) => write!(f, "no topic has id {id}"),
            Self::UnknownTopicName(name) => write!(f, "no topic is named {name:?}"),
        }
    }
}

impl std::error::Error for ReplayFault {}

impl Image {
    /// Applies `record`, which stands at `offset` (for a record of a snapshot: the last offset that
    /// the snapshot contains).
    ///
    /// # Errors
    /// When the record makes no sense on this image, which is then unchanged.
    pub fn replay(&mut self, record: &Record, offset: Offset) -> Result<(), ReplayFault> {
        match record {
            Record::RegisterBroker(record) => self.register_broker(record, offset)?,
            Record::UnregisterBroker(record) => self.unregister_broker(record)?,
            Record::Topic(record) => self.add_topic(record)?,
            Record::Partition(record) => self.set_partition(record)?,
            Record::Config(record) => self.set_config(record),
            Record::PartitionChange(record) => self.change_partition(record)?,
            Record::FenceBroker(record) => {
                self.change_broker(record.id, record.epoch, |broker| broker.fenced = true)?;
            }
            Record::UnfenceBroker(record) => {
                self.change_broker(record.id, record.epoch, |broker| broker.fenced = false)?;
            }
            Record::RemoveTopic(record) => self.remove_topic(record.topic_id)?,
            Record::DelegationToken(record) => self.set_token(record),
            Record::UserScramCredential(record) => self.set_scram(record),
            Record::FeatureLevel(record) => self.set_feature(record)?,
            Record::ClientQuota(record) => self.set_quota(record),
            Record::ProducerIds(record) => self.set_producer_ids(record)?,
            Record::BrokerRegistrationChange(record) => self.change_registration(record)?,
            Record::AccessControlEntry(record) => self.set_acl(record),
            Record::RemoveAccessControlEntry(record) => self.remove_acl(record.id)?,
            Record::NoOp(_) => {}
            Record::ZkMigrationState(record) => self.set_zk_migration(record)?,
            Record::RemoveUserScramCredential(record) => self.remove_scram(record)?,
            Record::BeginTransaction(record) => self.begin_transaction(record, offset)?,
            Record::EndTransaction(_) => {
                self.transaction.take().ok_or(ReplayFault::NoTransaction)?;
            }
            Record::AbortTransaction(_) => {
                let open = self.transaction.take().ok_or(ReplayFault::NoTransaction)?;
                *self = open.before.clone();
            }
            Record::RemoveDelegationToken(record) => {
                self.tokens.remove(&record.token_id);
            }
            Record::RegisterController(record) => self.register_controller(record)?,
            Record::ClearElr(record) => self.clear_elr(&record.topic_name)?,
            Record::UnregisterController(record) => {
                self.unregister_controller(NodeId(record.controller_id))?;
            }
        }
        Ok(())
    }

    fn register_broker(
        &mut self,
        record: &RegisterBrokerRecord,
        offset: Offset,
    ) -> Result<(), ReplayFault> {
        let id = NodeId(record.broker_id);
        let endpoints = record.end_points.iter().map(|end_point| Endpoint {
            name: end_point.name.clone(),
            host: end_point.host.clone(),
            port: end_point.port,
            security_protocol: end_point.security_protocol,
        });
        let mut directories = record.log_dirs.clone();
        sort_directories(&mut directories);
        let broker = Broker {
            id,
            epoch: BrokerEpoch(record.broker_epoch),
            incarnation: record.incarnation_id,
            endpoints: checked_endpoints(id, "REGISTER_BROKER_RECORD", endpoints)?,
            features: ranges(record.features.iter().map(|feature| {
                let range = (feature.min_supported_version, feature.max_supported_version);
                (&feature.name, range)
            })),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            is_migrating: record.is_migrating_zk_broker,
            directories,
            cordoned: record.cordoned_log_dirs.clone(),
        };
        Arc::make_mut(&mut self.brokers).insert(id, Arc::new(broker));
        Arc::make_mut(&mut self.registered_at).insert(id, offset);
        Ok(())
    }

    fn unregister_broker(&mut self, record: &UnregisterBrokerRecord) -> Result<(), ReplayFault> {
        let id = NodeId(record.broker_id);
        self.check_broker(id, BrokerEpoch(record.broker_epoch))?;
        Arc::make_mut(&mut self.brokers).remove(&id);
        Arc::make_mut(&mut self.registered_at).remove(&id);
        Ok(())
    }

    /// The registered broker, when `epoch` is its registration's.
    fn check_broker(&self, id: NodeId, epoch: BrokerEpoch) -> Result<(), ReplayFault> {
        let broker = self.broker(id).ok_or(ReplayFault::UnknownBroker(id))?;
        if broker.epoch == epoch {
            return Ok(());
        }
        Err(ReplayFault::BrokerEpochMismatch {
            id,
            registered: broker.epoch,
            record: epoch,
        })
    }

    fn change_broker(
        &mut self,
        id: i32,
        epoch: i64,
        change: impl FnOnce(&mut Broker),
    ) -> Result<(), ReplayFault> {
        let id = NodeId(id);
        self.check_broker(id, BrokerEpoch(epoch))?;
        let broker = Arc::make_mut(&mut self.brokers).get_mut(&id);
        change(Arc::make_mut(broker.expect("checked just before")));
        Ok(())
    }

    fn change_registration(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), ReplayFault> {
        let bad = |field, value: i8| ReplayFault::BadValue {
            record: "BROKER_REGISTRATION_CHANGE_RECORD",
            field,
            value: i64::from(value),
        };
        let fenced = match record.fenced {
            0 => None,
            1 => Some(true),
            -1 => Some(false),
            other => return Err(bad("fenced", other)),
        };
        let shutting_down = match record.in_controlled_shutdown {
            0 => false,
            1 => true,
            other => return Err(bad("inControlledShutdown", other)),
        };
        self.change_broker(record.broker_id, record.broker_epoch, |broker| {
            broker.fenced = fenced.unwrap_or(broker.fenced);
            broker.in_controlled_shutdown |= shutting_down;
            if !record.log_dirs.is_empty() {
                broker.directories.clone_from(&record.log_dirs);
                sort_directories(&mut broker.directories);
            }
            if record.cordoned_log_dirs.is_some() {
                broker.cordoned.clone_from(&record.cordoned_log_dirs);
            }
        })
    }

    fn register_controller(
        &mut self,
        record: &RegisterControllerRecord,
    ) -> Result<(), ReplayFault> {
        let id = NodeId(record.controller_id);
        let endpoints = record.end_points.iter().map(|end_point| Endpoint {
            name: end_point.name.clone(),
            host: end_point.host.clone(),
            port: end_point.port,
            security_protocol: end_point.security_protocol,
        });
        let controller = Controller {
            id,
            incarnation: record.incarnation_id,
            zk_migration_ready: record.zk_migration_ready,
            endpoints: checked_endpoints(id, "REGISTER_CONTROLLER_RECORD", endpoints)?,
            features: ranges(record.features.iter().map(|feature| {
                let range = (feature.min_supported_version, feature.max_supported_version);
                (&feature.name, range)
            })),
        };
        Arc::make_mut(&mut self.controllers).insert(id, controller);
        Ok(())
    }

    fn unregister_controller(&mut self, id: NodeId) -> Result<(), ReplayFault> {
        if !self.controllers.contains_key(&id) {
            return Err(ReplayFault::UnknownController(id));
        }
        Arc::make_mut(&mut self.controllers).remove(&id);
        Ok(())
    }

    /// Whose configuration it is does not matter here: the reference writes that of a broker under
    /// any name that its language reads as a number, in digits of any script.
    fn set_config(&mut self, record: &ConfigRecord) {
        let (kind, name) = (record.resource_type, record.resource_name.as_str());
        if !configs::is_known(kind, &record.name) {
            return;
        }
        let topic = if kind == configs::TOPIC {
            self.topics.find_name(name)
        } else {
            None
        };
        let topic = topic.and_then(|at| self.topics.slot(at));
        let shared = || topic.map_or_else(|| Arc::from(name), |topic| Arc::clone(&topic.name));
        let value = record.value.as_deref();
        self.configs.set((kind, name), &record.name, value, shared);
    }

    fn set_feature(&mut self, record: &FeatureLevelRecord) -> Result<(), ReplayFault> {
        let (name, level) = (&record.name, record.feature_level);
        let unknown = || ReplayFault::FeatureLevelUnknown {
            name: name.clone(),
            level,
        };
        if name == METADATA_VERSION {
            let version = MetadataVersion::from_level(level).ok_or_else(unknown)?;
            Arc::make_mut(&mut self.features).metadata_version = Some(version);
            return Ok(());
        }
        // What a level means is not known here, so neither is what a later record means.
        if level != 0 && Feature::by_name(name).is_none_or(|known| known.at(level).is_none()) {
            return Err(unknown());
        }
        if name == KRAFT_VERSION {
            // It belongs to control records; the reference passes over it too.
        } else if level == 0 {
            Arc::make_mut(&mut self.features).others.remove(name);
        } else {
            let others = &mut Arc::make_mut(&mut self.features).others;
            others.insert(name.clone(), level);
        }
        Ok(())
    }

    fn set_quota(&mut self, record: &ClientQuotaRecord) {
        let entity: QuotaEntity = record
            .entity
            .iter()
            .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
            .collect();
        match self.quotas.get_mut(&entity) {
            Some(values) if record.remove => {
                values.remove(&record.key);
                if values.is_empty() {
                    self.quotas.remove(&entity);
                }
            }
            Some(values) => {
                values.insert(record.key.clone(), record.value);
            }
            None if record.remove => {}
            None => {
                let values = [(record.key.clone(), record.value)].into();
                self.quotas.insert(entity, values);
            }
        }
    }

    fn set_producer_ids(&mut self, record: &ProducerIdsRecord) -> Result<(), ReplayFault> {
        let next = record.next_producer_id;
        if let Some(known) = self.next_producer_id
            && next <= known
        {
            return Err(ReplayFault::ProducerIdsNotRising {
                known,
                record: next,
            });
        }
        self.next_producer_id = Some(next);
        Ok(())
    }

    fn set_acl(&mut self, record: &AccessControlEntryRecord) {
        let acl = Acl {
            resource_type: record.resource_type,
            resource_name: record.resource_name.clone(),
            pattern_type: record.pattern_type,
            principal: record.principal.clone(),
            host: record.host.clone(),
            operation: record.operation,
            permission_type: record.permission_type,
        };
        self.acls.insert(record.id, acl);
    }

    fn remove_acl(&mut self, id: Uuid) -> Result<(), ReplayFault> {
        if self.acls.remove(id) {
            Ok(())
        } else {
            Err(ReplayFault::UnknownAcl(id))
        }
    }

    fn set_scram(&mut self, record: &UserScramCredentialRecord) {
        let credential = ScramCredential {
            salt: record.salt.clone(),
            stored_key: record.stored_key.clone(),
            server_key: record.server_key.clone(),
            iterations: record.iterations,
        };
        let key = (record.name.clone(), record.mechanism);
        self.scram.insert(key, credential);
    }

    fn remove_scram(
        &mut self,
        record: &RemoveUserScramCredentialRecord,
    ) -> Result<(), ReplayFault> {
        let key = (record.name.clone(), record.mechanism);
        match self.scram.remove(&key) {
            Some(_) => Ok(()),
            None => Err(ReplayFault::UnknownScram(key.0, key.1)),
        }
    }

    fn set_token(&mut self, record: &DelegationTokenRecord) {
        let token = DelegationToken {
            owner: record.owner.clone(),
            requester: record.requester.clone(),
            renewers: record.renewers.clone(),
            issued_at: Timestamp(record.issue_timestamp),
            max_at: Timestamp(record.max_timestamp),
            expires_at: Timestamp(record.expiration_timestamp),
        };
        self.tokens.insert(record.token_id.clone(), Arc::new(token));
    }

    fn set_zk_migration(&mut self, record: &ZkMigrationStateRecord) -> Result<(), ReplayFault> {
        self.zk_migration = match record.zk_migration_state {
            // None, and the state after a migration.
            0 | 3 => ZkMigration::Done,
            1 => ZkMigration::Waiting,
            2 => ZkMigration::Running,
            other => {
                return Err(ReplayFault::BadValue {
                    record: "ZK_MIGRATION_STATE_RECORD",
                    field: "zkMigrationState",
                    value: i64::from(other),
                });
            }
        };
        Ok(())
    }

    fn begin_transaction(
        &mut self,
        record: &BeginTransactionRecord,
        offset: Offset,
    ) -> Result<(), ReplayFault> {
        if let Some(begin) = self.open_transaction() {
            return Err(ReplayFault::TransactionOpen(begin));
        }
        self.transaction = Some(Arc::new(Transaction {
            name: record.name.clone(),
            begin: offset,
            before: self.clone(),
        }));
        Ok(())
    }
}

/// The endpoints of a registration: named, with a known protocol; of two with one name the later
/// one holds.
fn checked_endpoints(
    id: NodeId,
    record: &'static str,
    endpoints: impl Iterator<Item = Endpoint>,
) -> Result<Vec<Endpoint>, ReplayFault> {
    let mut checked: IndexMap<String, Endpoint> = IndexMap::new();
    for endpoint in endpoints {
        if endpoint.name.is_empty() {
            return Err(ReplayFault::ListenerUnnamed(id));
        }
        if !SecurityProtocol::has_id(endpoint.security_protocol) {
            return Err(ReplayFault::BadValue {
                record,
                field: "securityProtocol",
                value: i64::from(endpoint.security_protocol),
            });
        }
        checked.insert(endpoint.name.clone(), endpoint);
    }
    Ok(checked.into_values().collect())
}

fn ranges<'a>(
    features: impl Iterator<Item = (&'a String, FeatureRange)>,
) -> BTreeMap<String, FeatureRange> {
    features
        .map(|(name, range)| (name.clone(), range))
        .collect()
}
