//! The cluster's metadata in memory: what a snapshot and the log behind it add up to.
//!
//! An [`Image`] is immutable to everyone except [`Image::replay`], which has one arm for each
//! record type. A clone is O(1): unchanged parts are shared, and a change under a clone copies
//! only what it touches. So an image can be published, kept as a fork for an offset that has not
//! been committed, or given to a snapshot writer, at no cost.
//!
//! Two images are equal when their values are; ids of interned lists and slots of topics may
//! differ between two nodes and are never visible. What is visible in an order is either sorted
//! (by name, id or index) or says so.
//!
//! Laws, asserted by [`Image::check`] with the same words (the last one by tests):
//!
//! 1. every lookup (by name, by id, by folded name) finds exactly the topics that exist;
//! 2. the ISR and the added and removed replicas are what a partition's replicas allow, and no
//!    eligible leader is in the ISR;
//! 3. a partition has as many directories as replicas;
//! 4. the leader is none or an in-sync replica, and epochs are not negative;
//! 5. counts equal what is counted;
//! 6. what rows hold is in the pools, which hold little else;
//! 7. replaying what [`Image::emit`] writes, from empty, gives an equal image.

mod acls;
mod brokers;
mod check;
pub mod configs;
mod controllers;
pub mod diff;
mod emit;
mod features;
mod index;
mod intern;
mod ordered;
mod quotas;
mod replay;
mod replay_topics;
mod scan;
mod scram;
mod slots;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod tokens;
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

pub use acls::{Acl, Acls};
pub use brokers::{Broker, Endpoint, FeatureRange};
pub use configs::{ConfigMap, ConfigResource};
pub use controllers::Controller;
pub use emit::Losses;
pub use features::Features;
pub use ordered::OrderedMap;
pub use quotas::{QuotaEntity, QuotaValues};
pub use replay::ReplayFault;
pub use scan::{Found, Place};
pub use scram::{ScramCredential, ScramKey};
pub use tokens::DelegationToken;
pub use topics::{Partition, TopicRef};

use crate::types::{NodeId, Offset};
use configs::Configs;
use topics::Topics;

/// A migration from ZooKeeper as the log's last word on it says (3.4 to 3.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZkMigration {
    /// None was ever begun, or it is over.
    #[default]
    Done,
    /// The cluster waits for its brokers (state 1, PRE_MIGRATION).
    Waiting,
    /// Writes still go to ZooKeeper too (state 2, MIGRATION).
    Running,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Image {
    features: Arc<Features>,
    zk_migration: ZkMigration,
    brokers: Arc<BTreeMap<NodeId, Arc<Broker>>>,
    /// Where each broker's latest registration was replayed. Not part of the value: the same
    /// image from a snapshot has the snapshot's end here.
    registered_at: Arc<BTreeMap<NodeId, Offset>>,
    controllers: Arc<BTreeMap<NodeId, Controller>>,
    topics: Topics,
    configs: Configs,
    quotas: OrderedMap<QuotaEntity, QuotaValues>,
    next_producer_id: Option<i64>,
    acls: Acls,
    scram: OrderedMap<ScramKey, ScramCredential>,
    tokens: OrderedMap<String, Arc<DelegationToken>>,
    transaction: Option<Arc<Transaction>>,
}

/// A metadata transaction (KIP-868) that has begun and not ended.
#[derive(Clone, Debug)]
struct Transaction {
    name: Option<String>,
    begin: Offset,
    /// The image before the begin record: what an abort returns to.
    before: Image,
}

impl Image {
    /// The image of an empty log.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The finalized features.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Where a migration from ZooKeeper stands. Kafka 4 refuses to lead unless it is done.
    #[must_use]
    pub fn zk_migration(&self) -> ZkMigration {
        self.zk_migration
    }

    /// All registered brokers.
    #[must_use]
    pub fn brokers(&self) -> &BTreeMap<NodeId, Arc<Broker>> {
        &self.brokers
    }

    /// A registered broker.
    #[must_use]
    pub fn broker(&self, id: NodeId) -> Option<&Broker> {
        self.brokers.get(&id).map(|broker| &**broker)
    }

    /// The offset at which the broker's latest registration was replayed (for one that came with a
    /// snapshot, the offset that the snapshot's reader passed). It differs from the broker's epoch
    /// when the same incarnation registered again. Two equal images may differ here.
    #[must_use]
    pub fn registered_at(&self, id: NodeId) -> Option<Offset> {
        self.registered_at.get(&id).copied()
    }

    /// All registered controllers.
    #[must_use]
    pub fn controllers(&self) -> &BTreeMap<NodeId, Controller> {
        &self.controllers
    }

    /// How many topics there are.
    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.topic_count()
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.topics.partition_count()
    }

    /// How many partitions have no leader.
    #[must_use]
    pub fn leaderless_count(&self) -> usize {
        self.topics.leaderless_count()
    }

    /// How many partitions have another leader than their first replica, or none.
    #[must_use]
    pub fn not_led_by_preferred_count(&self) -> usize {
        self.topics.unpreferred_count()
    }

    /// The topic with this name.
    #[must_use]
    pub fn topic_by_name(&self, name: &str) -> Option<TopicRef<'_>> {
        let at = self.topics.find_name(name)?;
        self.topics.slot(at).map(|topic| self.view(topic))
    }

    /// The topic with this id.
    #[must_use]
    pub fn topic_by_id(&self, id: Uuid) -> Option<TopicRef<'_>> {
        let at = self.topics.find_id(id)?;
        self.topics.slot(at).map(|topic| self.view(topic))
    }

    /// All topics in order of their names (sorts; O(n log n)).
    pub fn topics(&self) -> impl Iterator<Item = TopicRef<'_>> {
        let mut all: Vec<_> = self.topics_unordered().collect();
        all.sort_unstable_by_key(|topic| topic.name());
        all.into_iter()
    }

    /// All topics in an order that depends on how this image came about: two equal images may
    /// differ in it. For questions whose answer has no order.
    pub fn topics_unordered(&self) -> impl Iterator<Item = TopicRef<'_>> {
        self.topics.in_slot_order().map(|topic| self.view(topic))
    }

    /// The names of the topics that cannot exist beside `name`, because their names differ from it
    /// only in `.` and `_`; sorted. `name` itself is not among them.
    #[must_use]
    pub fn colliding_topics(&self, name: &str) -> Vec<&str> {
        let topics = self.topics.colliding(name);
        let mut names: Vec<&str> = topics.into_iter().map(|topic| &*topic.name).collect();
        names.sort_unstable();
        names
    }

    /// The configuration of a resource, `None` when no key of it is set.
    #[must_use]
    pub fn config(&self, resource: &ConfigResource) -> Option<&ConfigMap> {
        self.configs.get(resource.kind, &resource.name)
    }

    /// The configuration of a topic, `None` when no key of it is set.
    #[must_use]
    pub fn topic_config(&self, topic: &str) -> Option<&ConfigMap> {
        self.configs.get(configs::TOPIC, topic)
    }

    /// Every configured resource, in order of type and name (sorts; O(n log n)).
    pub fn configs(&self) -> impl Iterator<Item = (i8, &str, &ConfigMap)> {
        let mut all: Vec<_> = self.configs.iter().collect();
        all.sort_unstable_by_key(|(kind, name, _)| (*kind, *name));
        all.into_iter()
    }

    /// The configured resources of one type, in order of their names.
    pub fn configs_of(&self, kind: i8) -> impl Iterator<Item = (&str, &ConfigMap)> {
        let all = self.configs.iter().filter(|(it, ..)| *it == kind);
        let mut found: Vec<_> = all.map(|(_, name, map)| (name, map)).collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        found.into_iter()
    }

    /// All client quotas.
    #[must_use]
    pub const fn quotas(&self) -> &OrderedMap<QuotaEntity, QuotaValues> {
        &self.quotas
    }

    /// The first producer id that was never given out; 0 when none was.
    #[must_use]
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id.unwrap_or(0)
    }

    /// The same as a record said it, `None` when none did.
    #[must_use]
    pub fn recorded_producer_id(&self) -> Option<i64> {
        self.next_producer_id
    }

    /// All access control entries.
    #[must_use]
    pub const fn acls(&self) -> &Acls {
        &self.acls
    }

    /// All SCRAM credentials.
    #[must_use]
    pub const fn scram(&self) -> &OrderedMap<ScramKey, ScramCredential> {
        &self.scram
    }

    /// All delegation tokens.
    #[must_use]
    pub const fn tokens(&self) -> &OrderedMap<String, Arc<DelegationToken>> {
        &self.tokens
    }

    /// The offset of the record that began the open metadata transaction, if one is open.
    #[must_use]
    pub fn open_transaction(&self) -> Option<Offset> {
        self.transaction.as_ref().map(|open| open.begin)
    }

    /// The name of the open metadata transaction.
    #[must_use]
    pub fn open_transaction_name(&self) -> Option<&str> {
        self.transaction.as_ref()?.name.as_deref()
    }

    /// What may be shown: the image as it was before the open transaction began, or the whole image
    /// when none is open. Published images and snapshots are this.
    #[must_use]
    pub fn settled(&self) -> &Self {
        match &self.transaction {
            Some(open) => &open.before,
            None => self,
        }
    }

    fn view<'a>(&'a self, topic: &'a topics::Topic) -> TopicRef<'a> {
        TopicRef {
            topic,
            pools: &self.topics.pools,
        }
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        let topics_equal = self.topics.is_same(&other.topics)
            || (self.topic_count() == other.topic_count()
                && self.partition_count() == other.partition_count()
                && self
                    .topics_unordered()
                    .all(|topic| other.topic_by_id(topic.id()) == Some(topic)));
        let configs_equal = self.configs.len() == other.configs.len()
            && self
                .configs
                .iter()
                .all(|(kind, name, map)| other.configs.get(kind, name) == Some(map));
        topics_equal
            && configs_equal
            && self.features == other.features
            && self.zk_migration == other.zk_migration
            && self.brokers == other.brokers
            && self.controllers == other.controllers
            && quotas::same(&self.quotas, &other.quotas)
            && self.next_producer_id == other.next_producer_id
            && self.acls == other.acls
            && self.scram == other.scram
            && self.tokens == other.tokens
            && self.transaction == other.transaction
    }
}

impl PartialEq for Transaction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.begin == other.begin && self.before == other.before
    }
}
