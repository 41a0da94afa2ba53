//! The order in which Java's hash maps give their entries, for the rules whose records and errors
//! come in that order.

use indexmap::IndexMap;

use crate::types::java_order::{bucket, grown, string_hash};

/// A map from text that is walked as a `java.util.HashMap` of the same history is. Buckets of many
/// entries, which Java turns into trees, keep the order of their making there too.
#[derive(Debug)]
pub(super) struct JavaMap<V> {
    /// What is taken out leaves its place empty: to close it would move all that is behind.
    entries: IndexMap<String, Option<V>>,
    len: usize,
    buckets: usize,
}

impl<V> JavaMap<V> {
    /// A map as `new HashMap(capacity)` makes it.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: IndexMap::new(),
            len: 0,
            buckets: capacity.next_power_of_two(),
        }
    }

    /// Sets the value of a key; a known key keeps its place.
    pub(super) fn insert(&mut self, key: &str, value: V) {
        match self.entries.get_mut(key) {
            Some(Some(known)) => *known = value,
            taken => {
                if taken.is_some() {
                    // It comes behind all others again.
                    self.entries.shift_remove(key);
                }
                self.entries.insert(key.to_owned(), Some(value));
                self.len += 1;
            }
        }
        self.buckets = grown(self.buckets, self.len);
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, key: &str) -> Option<V> {
        let value = self.entries.get_mut(key)?.take()?;
        self.len -= 1;
        Some(value)
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(Option::is_some)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in Java's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        let mut order: Vec<(usize, &str, &V)> = self
            .entries
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_ref()?)))
            .map(|(key, value)| (bucket(string_hash(key), self.buckets), key.as_str(), value))
            .collect();
        order.sort_by_key(|(bucket, ..)| *bucket);
        order.into_iter().map(|(_, key, value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::java_order::CAPACITY_DEFAULT;

    fn order(capacity: usize, keys: &[&str]) -> Vec<String> {
        let mut map = JavaMap::with_capacity(capacity);
        for key in keys {
            map.insert(key, ());
        }
        map.iter().map(|(key, ())| key.to_owned()).collect()
    }

    /// Printed by a Java 17 program that walks such maps.
    #[test]
    fn entries_come_in_javas_order() {
        let entity = ["user", "client-id", "ip"];
        assert_eq!(order(3, &entity), ["client-id", "user", "ip"]);
        let keys = [
            "producer_byte_rate",
            "consumer_byte_rate",
            "request_percentage",
            "controller_mutation_rate",
        ];
        let walked = [
            "producer_byte_rate",
            "consumer_byte_rate",
            "controller_mutation_rate",
            "request_percentage",
        ];
        assert_eq!(order(4, &keys), walked);
        let users: Vec<String> = (0..20).map(|i| format!("user-{i}")).collect();
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        assert_eq!(
            order(CAPACITY_DEFAULT, &users).join(" "),
            "user-1 user-0 user-19 user-17 user-18 user-5 user-11 user-4 user-12 user-3 user-2 \
             user-10 user-9 user-15 user-8 user-16 user-7 user-13 user-6 user-14"
        );
        assert_eq!(order(0, &["b", "a"]), ["a", "b"]);
    }

    #[test]
    fn what_is_taken_out_and_put_in_again_comes_last_in_its_bucket() {
        let mut map = JavaMap::with_capacity(1);
        for key in ["a", "q", "A"] {
            map.insert(key, 1);
        }
        assert_eq!(map.remove("a"), Some(1));
        assert_eq!((map.remove("a"), map.contains("a")), (None, false));
        map.insert("a", 2);
        map.insert("q", 3);
        let all: Vec<_> = map
            .iter()
            .map(|(key, value)| (key.to_owned(), *value))
            .collect();
        let mut fresh = JavaMap::with_capacity(1);
        for (key, value) in [("q", 3), ("A", 1), ("a", 2)] {
            fresh.insert(key, value);
        }
        let wanted: Vec<_> = fresh
            .iter()
            .map(|(key, value)| (key.to_owned(), *value))
            .collect();
        assert_eq!(all, wanted);
        for key in ["a", "q", "A"] {
            map.remove(key);
        }
        assert!(map.is_empty());
    }
}
