//! Dynamic configurations: (resource type, name) -> key -> value.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::diff::{Change, ConfigKey, merge_sorted};
use super::index::{Index, hash_of};
use super::intern::Pool;
use super::slots::Slots;
pub use crate::types::config_keys::{BROKER, CLIENT_METRICS, GROUP, TOPIC};
use crate::types::{NodeId, config_keys};

/// What a configuration belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// [`TOPIC`], [`BROKER`], [`CLIENT_METRICS`] or [`GROUP`].
    pub kind: i8,
    /// The resource's name; empty for the default of all brokers.
    pub name: String,
}

impl ConfigResource {
    /// A topic.
    #[must_use]
    pub fn topic(name: impl Into<String>) -> Self {
        Self {
            kind: TOPIC,
            name: name.into(),
        }
    }

    /// One node.
    #[must_use]
    pub fn broker(id: NodeId) -> Self {
        Self {
            kind: BROKER,
            name: id.to_string(),
        }
    }

    /// The default for all brokers.
    #[must_use]
    pub const fn all_brokers() -> Self {
        Self {
            kind: BROKER,
            name: String::new(),
        }
    }
}

/// The keys and values of one resource, sorted by key. A clone copies a pointer.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigMap(Arc<[(Arc<str>, Arc<str>)]>);

impl ConfigMap {
    /// The value of `key`, `None` when it is not set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.position(key).ok()?;
        Some(&self.0[at].1)
    }

    /// Keys and values in order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many keys are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when no key is set; the image holds no such map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(key))
    }

    fn with(&self, key: Arc<str>, value: &str) -> Self {
        let mut pairs = self.0.to_vec();
        let value = Arc::from(value);
        match self.position(&key) {
            Ok(at) => pairs[at].1 = value,
            Err(at) => pairs.insert(at, (key, value)),
        }
        Self(pairs.into())
    }

    fn without(&self, key: &str) -> Self {
        match self.position(key) {
            Ok(at) => {
                let mut pairs = self.0.to_vec();
                pairs.remove(at);
                Self(pairs.into())
            }
            Err(_) => self.clone(),
        }
    }
}

impl fmt::Debug for ConfigMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[derive(Clone, Debug)]
struct Row {
    kind: i8,
    name: Arc<str>,
    map: ConfigMap,
}

/// Maps that were written lately, so that resources with equal ones share them: in most clusters
/// many topics are configured alike. A map stays until another one takes its place, so this holds
/// a fixed number of them whatever is written.
#[derive(Clone, Debug)]
struct Recent(Arc<[Option<ConfigMap>; 64]>);

impl Default for Recent {
    fn default() -> Self {
        Self(Arc::new([const { None }; 64]))
    }
}

impl Recent {
    /// `map`, or an equal one that is here already.
    fn shared(&mut self, map: ConfigMap) -> ConfigMap {
        let at = hash_of(&map.0) as usize % self.0.len();
        match &self.0[at] {
            Some(known) if *known == map => known.clone(),
            Some(_) | None => {
                Arc::make_mut(&mut self.0)[at] = Some(map.clone());
                map
            }
        }
    }
}

/// All configurations.
#[derive(Clone, Debug)]
pub(super) struct Configs {
    slots: Slots<Row>,
    index: Index,
    keys: Pool<Arc<str>>,
    recent: Recent,
}

impl Default for Configs {
    fn default() -> Self {
        Self {
            slots: Slots::default(),
            index: Index::default(),
            keys: Pool::starting_with::<str>(Arc::from("")),
            recent: Recent::default(),
        }
    }
}

impl Configs {
    pub(super) fn get(&self, kind: i8, name: &str) -> Option<&ConfigMap> {
        let at = self.find(kind, name)?;
        Some(&self.slots.get(at)?.map)
    }

    /// All resources in order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i8, &str, &ConfigMap)> {
        let rows = self.slots.iter();
        rows.map(|row| (row.kind, &*row.name, &row.map))
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Sets one key, or removes it when `value` is `None`. `shared` gives the memory for the name
    /// of a new resource: a topic's configuration shares the topic's name.
    pub(super) fn set(
        &mut self,
        (kind, name): (i8, &str),
        key: &str,
        value: Option<&str>,
        shared: impl FnOnce() -> Arc<str>,
    ) {
        match (self.find(kind, name), value) {
            (Some(at), value) => {
                let row = self.slots.get(at);
                let known = &row.expect("the index names live slots only").map;
                let map = match value {
                    Some(value) => known.clone().with(self.shared_key(kind, key), value),
                    None => known.without(key),
                };
                if map.is_empty() {
                    self.remove(kind, name);
                    return;
                }
                let map = self.shared_map(kind, map);
                let row = self.slots.get_mut(at);
                row.expect("the index names live slots only").map = map;
            }
            (None, Some(value)) => {
                let key = self.shared_key(kind, key);
                let map = ConfigMap(Arc::from([(key, Arc::from(value))]));
                let map = self.shared_map(kind, map);
                let name = shared();
                self.add(Row { kind, name, map });
            }
            (None, None) => {}
        }
    }

    /// The keys that differ, in order of type, name and key. What is in memory that both share is
    /// passed over.
    pub(super) fn diff<'a>(&'a self, other: &'a Self) -> Vec<Change<ConfigKey<'a>, &'a str>> {
        let rows = self.slots.differing(&other.slots);
        let mut names = BTreeSet::new();
        for (ours, theirs) in rows {
            let both = [ours, theirs].into_iter().flatten();
            names.extend(both.map(|row| (row.kind, &*row.name)));
        }
        let pairs = |map: Option<&'a ConfigMap>| map.into_iter().flat_map(ConfigMap::iter);
        let changes = names.into_iter().flat_map(|(kind, name)| {
            let (ours, theirs) = (self.get(kind, name), other.get(kind, name));
            let keys = merge_sorted(pairs(ours), pairs(theirs), |a, b| a == b);
            keys.map(move |change| change.map_key(|key| ConfigKey { kind, name, key }))
        });
        changes.collect()
    }

    /// Removes a resource with all its keys.
    pub(super) fn remove(&mut self, kind: i8, name: &str) {
        let Some(at) = self.find(kind, name) else {
            return;
        };
        self.slots.remove(at);
        self.index.remove(hash_of(&(kind, name)), at);
    }

    fn find(&self, kind: i8, name: &str) -> Option<usize> {
        self.index.find(hash_of(&(kind, name)), |at| {
            let row = self.slots.get(at);
            row.is_some_and(|row| row.kind == kind && &*row.name == name)
        })
    }

    fn add(&mut self, row: Row) {
        let hash = hash_of(&(row.kind, &*row.name));
        let at = self.slots.add(row);
        self.index.insert(hash, at);
    }

    /// Brokers are few, and may have many keys: to compare those at each change would cost more
    /// than it saves.
    fn shared_map(&mut self, kind: i8, map: ConfigMap) -> ConfigMap {
        match kind {
            BROKER => map,
            _ => self.recent.shared(map),
        }
    }

    /// Keys that a list has are shared. Any key of a broker is taken, so those are not: they would
    /// stay in the pool for ever, and there are few brokers.
    fn shared_key(&mut self, kind: i8, key: &str) -> Arc<str> {
        if kind == BROKER {
            return Arc::from(key);
        }
        let id = self.keys.intern(key);
        Arc::clone(self.keys.value(id))
    }
}

/// Whether release 4.4 knows the key. It drops the others when it replays them, so that keys of
/// older releases (`message.format.version` and its like) vanish from the image.
pub(super) fn is_known(kind: i8, key: &str) -> bool {
    kind == BROKER || config_keys::is_number(kind, key).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(configs: &mut Configs, kind: i8, name: &str, key: &str, value: Option<&str>) {
        configs.set((kind, name), key, value, || Arc::from(name));
    }

    #[test]
    fn keys_of_older_releases_are_known_of_brokers_only() {
        assert!(is_known(TOPIC, "retention.ms"));
        assert!(is_known(GROUP, "share.isolation.level"));
        assert!(is_known(CLIENT_METRICS, "match"));
        assert!(is_known(BROKER, "log.message.format.version"));
        assert!(!is_known(TOPIC, "message.format.version"));
        assert!(!is_known(GROUP, "retention.ms"));
        assert!(!is_known(BROKER + 1, "retention.ms"));
    }

    #[test]
    fn resources_that_are_configured_alike_share_one_map() {
        let mut configs = Configs::default();
        for name in ["a", "b"] {
            set(&mut configs, TOPIC, name, "retention.ms", Some("1"));
            set(&mut configs, TOPIC, name, "segment.ms", Some("2"));
        }
        let map = |configs: &Configs, name| configs.get(TOPIC, name).cloned().expect("set");
        assert!(Arc::ptr_eq(&map(&configs, "a").0, &map(&configs, "b").0));
        set(&mut configs, TOPIC, "b", "segment.ms", Some("3"));
        assert_eq!(map(&configs, "a").get("segment.ms"), Some("2"));
        assert_eq!(map(&configs, "b").get("segment.ms"), Some("3"));
        // However many maps there are, only the last few are remembered.
        for number in 0..1_000 {
            let value = number.to_string();
            set(&mut configs, TOPIC, "a", "retention.ms", Some(&value));
        }
        assert_eq!(map(&configs, "a").get("retention.ms"), Some("999"));
        assert_eq!(map(&configs, "b").get("retention.ms"), Some("1"));
    }

    #[test]
    fn a_resource_vanishes_with_its_last_key_and_its_slot_is_used_again() {
        let mut configs = Configs::default();
        set(&mut configs, TOPIC, "a", "segment.ms", Some("1"));
        set(&mut configs, TOPIC, "a", "retention.ms", Some("2"));
        set(&mut configs, BROKER, "a", "retention.ms", Some("3"));
        let before = configs.clone();
        set(&mut configs, TOPIC, "a", "retention.ms", Some("4"));
        set(&mut configs, TOPIC, "a", "segment.ms", None);
        let map = configs.get(TOPIC, "a").expect("one key is left");
        assert_eq!(map.iter().collect::<Vec<_>>(), [("retention.ms", "4")]);
        set(&mut configs, TOPIC, "a", "retention.ms", None);
        assert_eq!(configs.get(TOPIC, "a"), None);
        assert_eq!(configs.len(), 1);
        set(&mut configs, GROUP, "g", "share.isolation.level", Some("x"));
        assert_eq!(configs.slots.range(), 0..2);
        assert_eq!(before.get(TOPIC, "a").map(ConfigMap::len), Some(2));
    }
}
