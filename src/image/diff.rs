//! What changed between two images.
//!
//! Memory that both images share is passed over without a look: an image and a fork of it, or two
//! images of one log a few records apart, cost what differs and not what they hold. What is not
//! shared is compared by value, so the images may come from different processes, whose interned
//! ids and slots have nothing in common.
//!
//! A difference is empty exactly when the images are equal. It compares them as they stand, an
//! open transaction included; who shows states compares what [`Image::settled`] gives.

mod fields;
mod merge;
#[cfg(test)]
mod tests;
mod topics;

use std::sync::Arc;

use uuid::Uuid;

pub use fields::{BrokerField, PartitionField};
pub use topics::{TopicChange, TopicChangeKind};

use super::{
    Acl, Broker, Controller, DelegationToken, Image, QuotaEntity, ScramCredential, ScramKey,
    ZkMigration,
};
use crate::types::{NodeId, Offset};
pub(super) use merge::merge_sorted;
use merge::{merge, merge_apart};

/// One thing that only one of two images has, or that they have differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<K, V> {
    /// What it is found by.
    pub key: K,
    /// Its value in the first image, `None` when it is not there.
    pub before: Option<V>,
    /// Its value in the second image, `None` when it is not there.
    pub after: Option<V>,
}

/// The name of one key of one resource's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigKey<'a> {
    /// As in [`super::ConfigResource::kind`].
    pub kind: i8,
    /// The resource's name; empty for the default of all brokers.
    pub name: &'a str,
    /// The key.
    pub key: &'a str,
}

/// Whom a quota is for, and which of its quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaKey<'a> {
    /// Whom.
    pub entity: &'a QuotaEntity,
    /// Which.
    pub key: &'a str,
}

/// An open metadata transaction (KIP-868), as a difference shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction<'a> {
    /// The offset of the record that began it.
    pub begin: Offset,
    /// Its name, for people.
    pub name: Option<&'a str>,
}

/// What differs between two images; see the module. Each list is in order of its keys and holds
/// what differs only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff<'a> {
    /// Finalized features by name; a level of 0 is no level. `metadata.version` is among them.
    pub features: Vec<Change<&'a str, i16>>,
    /// Where a migration from ZooKeeper stands.
    pub zk_migration: Option<Change<(), ZkMigration>>,
    /// Brokers; [`BrokerField`] names what of a registration differs.
    pub brokers: Vec<Change<NodeId, &'a Broker>>,
    /// Controllers.
    pub controllers: Vec<Change<NodeId, &'a Controller>>,
    /// Topics with the partitions that differ, by name.
    pub topics: Vec<TopicChange<'a>>,
    /// Configurations, each key on its own. The keys of a deleted topic are among them.
    pub configs: Vec<Change<ConfigKey<'a>, &'a str>>,
    /// Client quotas, each on its own.
    pub quotas: Vec<Change<QuotaKey<'a>, f64>>,
    /// The first producer id that was never given out.
    pub next_producer_id: Option<Change<(), i64>>,
    /// Access control entries. An entry with a new id is a new one, even if it says the same.
    pub acls: Vec<Change<Uuid, &'a Acl>>,
    /// SCRAM credentials, by user and mechanism.
    pub scram: Vec<Change<&'a ScramKey, &'a ScramCredential>>,
    /// Delegation tokens, by id.
    pub tokens: Vec<Change<&'a str, &'a DelegationToken>>,
    /// The open transaction, when it is another one, or the image before it is another one.
    pub transaction: Option<Change<(), OpenTransaction<'a>>>,
}

impl Diff<'_> {
    /// True when nothing differs: the images are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Image {
    /// What is different in `after`, in order of keys everywhere. Costs what is not shared
    /// memory: nothing for a clone, O(n log n) for strangers.
    #[must_use]
    pub fn diff<'a>(&'a self, after: &'a Self) -> Diff<'a> {
        Diff {
            features: self.diff_features(after),
            zk_migration: whole(Some(self.zk_migration), Some(after.zk_migration)),
            brokers: self.diff_brokers(after),
            controllers: merge(&self.controllers, &after.controllers, |a, b| a == b)
                .map(|change| change.map_key(|id| *id))
                .collect(),
            topics: topics::diff(self, after),
            configs: self.configs.diff(&after.configs),
            quotas: self.diff_quotas(after),
            next_producer_id: whole(self.next_producer_id, after.next_producer_id),
            acls: merge_apart(self.acls.by_id(), after.acls.by_id(), |a, b| a == b)
                .map(|change| change.map_key(|id| *id).map_values(|acl| &**acl))
                .collect(),
            scram: merge_apart(&self.scram, &after.scram, |a, b| a == b).collect(),
            tokens: merge_apart(&self.tokens, &after.tokens, |a, b| a == b)
                .map(|change| change.map_key(String::as_str).map_values(|token| &**token))
                .collect(),
            transaction: self.diff_transaction(after),
        }
    }

    fn diff_features<'a>(&'a self, after: &'a Self) -> Vec<Change<&'a str, i16>> {
        let (old, new) = (&self.features, &after.features);
        let level = |known: &super::Features| known.metadata_version().map(|version| version.0);
        let first = whole(level(old), level(new))
            .map(|change| change.map_key(|()| crate::types::features::METADATA_VERSION));
        let others = merge(&old.others, &new.others, |a, b| a == b)
            .map(|change| change.map_key(String::as_str).map_values(|level| *level));
        let mut all: Vec<_> = first.into_iter().chain(others).collect();
        all.sort_unstable_by_key(|change| change.key);
        all
    }

    fn diff_brokers<'a>(&'a self, after: &'a Self) -> Vec<Change<NodeId, &'a Broker>> {
        if Arc::ptr_eq(&self.brokers, &after.brokers) {
            return Vec::new();
        }
        let same = |a: &Arc<Broker>, b: &Arc<Broker>| Arc::ptr_eq(a, b) || a == b;
        merge(&self.brokers, &after.brokers, same)
            .map(|change| change.map_key(|id| *id).map_values(|broker| &**broker))
            .collect()
    }

    fn diff_quotas<'a>(&'a self, after: &'a Self) -> Vec<Change<QuotaKey<'a>, f64>> {
        let none = super::quotas::NO_VALUES;
        let entities = merge_apart(&self.quotas, &after.quotas, super::quotas::same_values);
        entities
            .flat_map(|Change { key, before, after }| {
                let (before, after) = (before.unwrap_or(none), after.unwrap_or(none));
                merge(before, after, super::quotas::same_value).map(move |change| {
                    let whom = |name: &'a String| QuotaKey {
                        entity: key,
                        key: name,
                    };
                    change.map_key(whom).map_values(|value| *value)
                })
            })
            .collect()
    }

    fn diff_transaction<'a>(&'a self, after: &'a Self) -> Option<Change<(), OpenTransaction<'a>>> {
        let same = match (&self.transaction, &after.transaction) {
            (None, None) => true,
            (Some(old), Some(new)) => {
                Arc::ptr_eq(old, new)
                    || (old.begin == new.begin
                        && old.name == new.name
                        && old.before.diff(&new.before).is_empty())
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        (!same).then(|| Change {
            key: (),
            before: self.shown_transaction(),
            after: after.shown_transaction(),
        })
    }

    fn shown_transaction(&self) -> Option<OpenTransaction<'_>> {
        let begin = self.open_transaction()?;
        let name = self.open_transaction_name();
        Some(OpenTransaction { begin, name })
    }
}

impl<K, V> Change<K, V> {
    pub(super) fn map_key<L>(self, key: impl FnOnce(K) -> L) -> Change<L, V> {
        Change {
            key: key(self.key),
            before: self.before,
            after: self.after,
        }
    }

    pub(super) fn map_values<W>(self, value: impl Fn(V) -> W) -> Change<K, W> {
        Change {
            key: self.key,
            before: self.before.map(&value),
            after: self.after.map(&value),
        }
    }
}

/// The change of a part of which there is one at most.
fn whole<V: PartialEq>(before: Option<V>, after: Option<V>) -> Option<Change<(), V>> {
    (before != after).then_some(Change {
        key: (),
        before,
        after,
    })
}
