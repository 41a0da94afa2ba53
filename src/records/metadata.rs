//! Every record of the metadata log (Kafka 3.9 to 4.4), ordered by api key.
//!
//! Sources: KIP-631 (the controller's records), KIP-841 and KIP-858 (controlled shutdown, directory
//! ids), KIP-868 (transactions), KIP-919 (controller registration), KIP-966 (eligible leader
//! replicas). All are flexible from version 0. Keys 6, 13 and 16 are not in use.

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::fault::RecordFault;
use super::schema::message;
use super::wire::{Format, Reader, Wire};
use crate::types::SplitMix;

/// What the log calls one record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordType {
    /// The number in front of each record.
    pub api_key: u32,
    /// The name that Kafka's tools print, such as `REGISTER_BROKER_RECORD`.
    pub name: &'static str,
    /// The highest version known; every type starts at version 0.
    pub version_max: i16,
}

/// The encoding of every metadata record.
const fn format(version: i16) -> Format {
    Format {
        version,
        flexible: true,
    }
}

macro_rules! records {
    ($(
        $key:literal $label:literal versions 0-$max:literal
        $(#[$meta:meta])*
        $variant:ident($name:ident) { $($body:tt)* }
    )*) => {
        $(message! { $(#[$meta])* pub struct $name { $($body)* } })*

        /// One record of the metadata log.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Record {
            $( $(#[$meta])* $variant($name), )*
        }

        impl Record {
            /// Every type, ordered by api key.
            pub const TYPES: &[RecordType] = &[
                $( RecordType { api_key: $key, name: $label, version_max: $max }, )*
            ];

            /// The type of this record.
            #[must_use]
            pub const fn record_type(&self) -> RecordType {
                match self {
                    $( Self::$variant(_) =>
                        RecordType { api_key: $key, name: $label, version_max: $max }, )*
                }
            }

            /// Appends the body (without frame).
            ///
            /// # Errors
            /// When a field has a value that `version` cannot hold.
            pub(super) fn put(&self, out: &mut Vec<u8>, version: i16) -> Result<(), RecordFault> {
                match self {
                    $( Self::$variant(record) => record.put(out, format(version)), )*
                }
            }

            /// Reads the body (without frame) of the type with this key, which must be in
            /// [`Self::TYPES`] at this version.
            ///
            /// # Errors
            /// When there is no such type, or the bytes are not one.
            pub(super) fn take(
                api_key: u32,
                version: i16,
                input: &mut Reader<'_>,
            ) -> Result<Self, RecordFault> {
                match api_key {
                    $( $key => Wire::take(input, format(version)).map(Self::$variant), )*
                    _ => Err(RecordFault::UnknownType(api_key)),
                }
            }

            /// The fields at `version`, as Kafka's tools print them.
            #[must_use]
            pub fn json(&self, version: i16) -> Value {
                match self {
                    $( Self::$variant(record) => record.json(format(version)), )*
                }
            }

            /// A random record of the type at `index` of [`Self::TYPES`] (modulo its length).
            #[must_use]
            pub fn arbitrary(rng: &mut SplitMix, index: usize, version: i16) -> Self {
                let generators = [
                    $( |rng: &mut SplitMix, version: i16|
                        Self::$variant($name::arbitrary(rng, format(version))), )*
                ];
                generators[index % generators.len()](rng, version)
            }
        }

        $(
            impl From<$name> for Record {
                fn from(record: $name) -> Self {
                    Self::$variant(record)
                }
            }
        )*
    };
}

impl Record {
    /// True for the marks of a metadata transaction (KIP-868): its begin, end and abort. They
    /// belong to the log and are never part of a snapshot.
    #[must_use]
    pub const fn is_transaction_mark(&self) -> bool {
        matches!(
            self,
            Self::BeginTransaction(_) | Self::EndTransaction(_) | Self::AbortTransaction(_)
        )
    }

    /// The number in front of the record.
    #[must_use]
    pub const fn api_key(&self) -> u32 {
        self.record_type().api_key
    }

    /// The name that Kafka's tools print, such as `REGISTER_BROKER_RECORD`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.record_type().name
    }

    /// This record, to be written at `version`.
    #[must_use]
    pub const fn at(self, version: i16) -> super::VersionedRecord {
        super::VersionedRecord {
            version,
            record: self,
        }
    }
}

message! {
    /// A listener of a broker.
    pub struct BrokerEndpoint {
        /// The listener's name.
        name: String, 0+;
        /// The advertised host.
        host: String, 0+;
        /// The advertised port.
        port: u16, 0+;
        /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
        security_protocol: i16, 0+;
    }

    /// A feature that a broker supports, as an inclusive range of levels.
    pub struct BrokerFeature {
        /// The feature's name.
        name: String, 0+;
        /// The lowest level.
        min_supported_version: i16, 0+;
        /// The highest level.
        max_supported_version: i16, 0+;
    }

    /// One part of the entity that a quota holds for.
    pub struct EntityData {
        /// `user`, `client-id` or `ip`.
        entity_type: String, 0+;
        /// Null is the default entity of the type.
        entity_name: Option<String>, 0+;
    }

    /// A listener of a controller.
    pub struct ControllerEndpoint {
        /// The listener's name.
        name: String, 0+;
        /// The advertised host.
        host: String, 0+;
        /// The advertised port.
        port: u16, 0+;
        /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
        security_protocol: i16, 0+;
    }

    /// A feature that a controller supports, as an inclusive range of levels.
    pub struct ControllerFeature {
        /// The feature's name.
        name: String, 0+;
        /// The lowest level.
        min_supported_version: i16, 0+;
        /// The highest level.
        max_supported_version: i16, 0+;
    }
}

records! {
    0 "REGISTER_BROKER_RECORD" versions 0-4
    /// A broker joined, or joined again. Its epoch is this record's offset.
    RegisterBroker(RegisterBrokerRecord) {
        /// The broker.
        broker_id: i32, 0+;
        /// True for a broker of the ZooKeeper era that migrates.
        is_migrating_zk_broker: bool, 2+;
        /// The broker process's own id, new at each start.
        incarnation_id: Uuid, 0+;
        /// The broker epoch.
        broker_epoch: i64, 0+;
        /// Where it listens.
        end_points: Vec<BrokerEndpoint>, 0+;
        /// What it supports.
        features: Vec<BrokerFeature>, 0+;
        /// Its rack.
        rack: Option<String>, 0+;
        /// True until it has caught up.
        fenced: bool, 0+, default true;
        /// True while it hands its leaderships over.
        in_controlled_shutdown: bool, 1+;
        /// Ids of its log directories.
        log_dirs: Vec<Uuid>, 3+, tag 0;
        /// Log directories that take no new partitions; null when the broker does not know them.
        cordoned_log_dirs: Option<Vec<Uuid>>, 4+, tag 1;
    }

    1 "UNREGISTER_BROKER_RECORD" versions 0-0
    /// A broker was removed for good.
    UnregisterBroker(UnregisterBrokerRecord) {
        /// The broker.
        broker_id: i32, 0+;
        /// The epoch of the registration that ends.
        broker_epoch: i64, 0+;
    }

    2 "TOPIC_RECORD" versions 0-0
    /// A topic was created.
    Topic(TopicRecord) {
        /// Its name.
        name: String, 0+;
        /// Its id.
        topic_id: Uuid, 0+;
    }

    3 "PARTITION_RECORD" versions 0-2
    /// The whole state of a partition.
    Partition(PartitionRecord) {
        /// The partition's index.
        partition_id: i32, 0+, default -1;
        /// The topic.
        topic_id: Uuid, 0+;
        /// Its replicas, the preferred leader first.
        replicas: Vec<i32>, 0+;
        /// The replicas in sync.
        isr: Vec<i32>, 0+;
        /// Replicas that a reassignment takes away.
        removing_replicas: Vec<i32>, 0+;
        /// Replicas that a reassignment adds.
        adding_replicas: Vec<i32>, 0+;
        /// The leader, -1 for none.
        leader: i32, 0+, default -1;
        /// 0 recovered, 1 recovering after an unclean election.
        leader_recovery_state: i8, 0+, tag 0;
        /// Grows with each change of leader.
        leader_epoch: i32, 0+, default -1;
        /// Grows with each change.
        partition_epoch: i32, 0+, default -1;
        /// The log directory of each replica, in the order of `replicas`.
        directories: Vec<Uuid>, 1+;
        /// Eligible leader replicas outside the ISR (KIP-966).
        eligible_leader_replicas: Option<Vec<i32>>, 2+, tag 1;
        /// The last known eligible leader replicas.
        last_known_elr: Option<Vec<i32>>, 2+, tag 2;
    }

    4 "CONFIG_RECORD" versions 0-0
    /// A dynamic configuration was set, or deleted.
    Config(ConfigRecord) {
        /// 2 topic, 4 broker, 16 client metrics, 32 group.
        resource_type: i8, 0+;
        /// The resource; empty is the cluster-wide default of its type.
        resource_name: String, 0+;
        /// The key.
        name: String, 0+;
        /// The value; null deletes.
        value: Option<String>, 0+;
    }

    5 "PARTITION_CHANGE_RECORD" versions 0-2
    /// Some fields of a partition changed; a field at its default did not.
    PartitionChange(PartitionChangeRecord) {
        /// The partition's index.
        partition_id: i32, 0+, default -1;
        /// The topic.
        topic_id: Uuid, 0+;
        /// The new ISR.
        isr: Option<Vec<i32>>, 0+, tag 0;
        /// The new leader: -1 none, -2 no change.
        leader: i32, 0+, tag 1, default -2;
        /// The new replicas.
        replicas: Option<Vec<i32>>, 0+, tag 2;
        /// The replicas that a reassignment takes away.
        removing_replicas: Option<Vec<i32>>, 0+, tag 3;
        /// The replicas that a reassignment adds.
        adding_replicas: Option<Vec<i32>>, 0+, tag 4;
        /// 0 recovered, 1 recovering, -1 no change.
        leader_recovery_state: i8, 0+, tag 5, default -1;
        /// The new directories, in the order of the replicas.
        directories: Option<Vec<Uuid>>, 1+, tag 8;
        /// The new eligible leader replicas.
        eligible_leader_replicas: Option<Vec<i32>>, 2+, tag 6;
        /// The new last known eligible leader replicas.
        last_known_elr: Option<Vec<i32>>, 2+, tag 7;
    }

    7 "FENCE_BROKER_RECORD" versions 0-0
    /// A broker was fenced (written before 3.3-IV2 only).
    FenceBroker(FenceBrokerRecord) {
        /// The broker.
        id: i32, 0+;
        /// Its epoch.
        epoch: i64, 0+;
    }

    8 "UNFENCE_BROKER_RECORD" versions 0-0
    /// A broker was unfenced (written before 3.3-IV2 only).
    UnfenceBroker(UnfenceBrokerRecord) {
        /// The broker.
        id: i32, 0+;
        /// Its epoch.
        epoch: i64, 0+;
    }

    9 "REMOVE_TOPIC_RECORD" versions 0-0
    /// A topic was deleted, with its partitions and configuration.
    RemoveTopic(RemoveTopicRecord) {
        /// The topic.
        topic_id: Uuid, 0+;
    }

    10 "DELEGATION_TOKEN_RECORD" versions 0-0
    /// A delegation token was created or renewed.
    DelegationToken(DelegationTokenRecord) {
        /// The owner, as `Type:name`.
        owner: String, 0+;
        /// Who asked for it.
        requester: String, 0+;
        /// Who may renew it.
        renewers: Vec<String>, 0+;
        /// When it was issued, ms since 1970.
        issue_timestamp: i64, 0+;
        /// When it ends for good, ms since 1970.
        max_timestamp: i64, 0+;
        /// When it ends unless renewed, ms since 1970.
        expiration_timestamp: i64, 0+;
        /// Its id.
        token_id: String, 0+;
    }

    11 "USER_SCRAM_CREDENTIAL_RECORD" versions 0-0
    /// A user's SCRAM credential was set.
    UserScramCredential(UserScramCredentialRecord) {
        /// The user.
        name: String, 0+;
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8, 0+;
        /// The salt.
        salt: Bytes, 0+;
        /// RFC 5802's StoredKey.
        stored_key: Bytes, 0+;
        /// RFC 5802's ServerKey.
        server_key: Bytes, 0+;
        /// Rounds of the hash.
        iterations: i32, 0+;
    }

    12 "FEATURE_LEVEL_RECORD" versions 0-0
    /// A feature's finalized level; 0 removes it.
    FeatureLevel(FeatureLevelRecord) {
        /// The feature.
        name: String, 0+;
        /// The level.
        feature_level: i16, 0+;
    }

    14 "CLIENT_QUOTA_RECORD" versions 0-0
    /// A quota was set or removed.
    ClientQuota(ClientQuotaRecord) {
        /// Whom it holds for.
        entity: Vec<EntityData>, 0+;
        /// What it limits.
        key: String, 0+;
        /// The limit.
        value: f64, 0+;
        /// True removes it.
        remove: bool, 0+;
    }

    15 "PRODUCER_IDS_RECORD" versions 0-0
    /// A block of producer ids was handed out.
    ProducerIds(ProducerIdsRecord) {
        /// To which broker.
        broker_id: i32, 0+;
        /// That broker's epoch.
        broker_epoch: i64, 0+, default -1;
        /// The first id of the next block: one past the block handed out.
        next_producer_id: i64, 0+;
    }

    17 "BROKER_REGISTRATION_CHANGE_RECORD" versions 0-3
    /// Some fields of a broker's registration changed.
    BrokerRegistrationChange(BrokerRegistrationChangeRecord) {
        /// The broker.
        broker_id: i32, 0+;
        /// Its epoch.
        broker_epoch: i64, 0+;
        /// 1 fence, -1 unfence, 0 no change.
        fenced: i8, 0+, tag 0;
        /// 1 it is shutting down, 0 no change.
        in_controlled_shutdown: i8, 1+, tag 1;
        /// Its log directories; empty is no change.
        log_dirs: Vec<Uuid>, 2+, tag 2;
        /// Its cordoned log directories; null is no change.
        cordoned_log_dirs: Option<Vec<Uuid>>, 3+, tag 3;
    }

    18 "ACCESS_CONTROL_ENTRY_RECORD" versions 0-0
    /// An ACL was created.
    AccessControlEntry(AccessControlEntryRecord) {
        /// The ACL's id.
        id: Uuid, 0+;
        /// 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.
        resource_type: i8, 0+;
        /// The resource.
        resource_name: String, 0+;
        /// 3 literal, 4 prefixed.
        pattern_type: i8, 0+;
        /// Who, as `Type:name`.
        principal: String, 0+;
        /// From where; `*` is anywhere.
        host: String, 0+;
        /// Which operation.
        operation: i8, 0+;
        /// 2 deny, 3 allow.
        permission_type: i8, 0+;
    }

    19 "REMOVE_ACCESS_CONTROL_ENTRY_RECORD" versions 0-0
    /// An ACL was deleted.
    RemoveAccessControlEntry(RemoveAccessControlEntryRecord) {
        /// The ACL's id.
        id: Uuid, 0+;
    }

    20 "NO_OP_RECORD" versions 0-0
    /// Nothing changed: written so that the commit offset keeps moving (KIP-835).
    NoOp(NoOpRecord) {}

    21 "ZK_MIGRATION_STATE_RECORD" versions 0-0
    /// Where the migration from ZooKeeper stands; 3.9 writes 0 (none) at first.
    ZkMigrationState(ZkMigrationStateRecord) {
        /// The state.
        zk_migration_state: i8, 0+;
    }

    22 "REMOVE_USER_SCRAM_CREDENTIAL_RECORD" versions 0-0
    /// A user's SCRAM credential was deleted.
    RemoveUserScramCredential(RemoveUserScramCredentialRecord) {
        /// The user.
        name: String, 0+;
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8, 0+;
    }

    23 "BEGIN_TRANSACTION_RECORD" versions 0-0
    /// The records behind take effect together, at the end record (KIP-868).
    BeginTransaction(BeginTransactionRecord) {
        /// For people.
        name: Option<String>, 0+, tag 0;
    }

    24 "END_TRANSACTION_RECORD" versions 0-0
    /// The transaction's records take effect.
    EndTransaction(EndTransactionRecord) {}

    25 "ABORT_TRANSACTION_RECORD" versions 0-0
    /// The transaction's records are dropped.
    AbortTransaction(AbortTransactionRecord) {
        /// For people.
        reason: Option<String>, 0+, tag 0;
    }

    26 "REMOVE_DELEGATION_TOKEN_RECORD" versions 0-0
    /// A delegation token ended.
    RemoveDelegationToken(RemoveDelegationTokenRecord) {
        /// Its id.
        token_id: String, 0+;
    }

    27 "REGISTER_CONTROLLER_RECORD" versions 0-0
    /// A controller registered (KIP-919).
    RegisterController(RegisterControllerRecord) {
        /// The controller.
        controller_id: i32, 0+;
        /// The process's own id, new at each start.
        incarnation_id: Uuid, 0+;
        /// True when it is ready to migrate from ZooKeeper.
        zk_migration_ready: bool, 0+;
        /// Where it listens.
        end_points: Vec<ControllerEndpoint>, 0+;
        /// What it supports.
        features: Vec<ControllerFeature>, 0+;
    }

    28 "CLEAR_ELR_RECORD" versions 0-0
    /// Eligible leader replicas were forgotten.
    ClearElr(ClearElrRecord) {
        /// The topic; empty is every topic.
        topic_name: String, 0+;
    }

    29 "UNREGISTER_CONTROLLER_RECORD" versions 0-0
    /// A controller was removed for good.
    UnregisterController(UnregisterControllerRecord) {
        /// The controller.
        controller_id: i32, 0+;
    }
}
