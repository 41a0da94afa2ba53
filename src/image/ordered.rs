//! A copy-on-write map in the order of its keys.
//!
//! Entries sit in chunks of at most [`CHUNK`], chunks in a spine; both behind `Arc`. A clone copies
//! one pointer. A change under a clone copies the spine and the one chunk that it touches: some
//! microseconds among a hundred thousand entries, where a whole map would take milliseconds.
//!
//! Invariants: no chunk is empty or holds more than [`CHUNK`] entries, and keys ascend from each
//! entry to the next, over chunks too.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Most entries in one chunk.
const CHUNK: usize = 128;
/// A chunk that has fewer is joined with a neighbour that has room for it.
const SMALL: usize = CHUNK / 4;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// See the module.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self {
            chunks: Arc::default(),
            len: 0,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// The chunk and the place in it; behind the last chunk at the end.
type At = (usize, usize);

impl<K, V> OrderedMap<K, V> {
    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when both are the same memory, and so equal. Equal maps may be different memory.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }

    /// The entries in order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.iter_at((0, 0))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values in order of keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The entries that are not in memory which `other` holds too, in order of keys. What differs
    /// between two maps is among what each has apart from the other: a change sets apart one chunk.
    pub fn apart<'a>(
        &'a self,
        other: &Self,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        // With one spine there is nothing to look at.
        let ours = (!self.is_same(other)).then_some(&*self.chunks);
        let theirs: BTreeSet<_> = match ours {
            Some(_) => other.chunks.iter().map(Arc::as_ptr).collect(),
            None => BTreeSet::new(),
        };
        let apart = ours.into_iter().flatten();
        let apart = apart.filter(move |chunk| !theirs.contains(&Arc::as_ptr(chunk)));
        apart.flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// The last entry whose key is `before`. Every key that is comes before every key that is not.
    pub(super) fn last(&self, before: impl Fn(&K) -> bool) -> Option<(&K, &V)> {
        let (chunk, at) = self.locate(before);
        let found = match at.checked_sub(1) {
            Some(at) => self.chunks[chunk].get(at),
            None => self.chunks[..chunk].last()?.last(),
        };
        found.map(|(key, value)| (key, value))
    }

    /// The place of the first entry whose key is not `before`; see [`Self::last`].
    pub(super) fn locate(&self, before: impl Fn(&K) -> bool) -> At {
        let ends_before = |chunk: &Chunk<K, V>| chunk.last().is_none_or(|(key, _)| before(key));
        let chunk = self.chunks.partition_point(ends_before);
        let entries = self.chunks.get(chunk);
        let at = entries.map_or(0, |entries| entries.partition_point(|(key, _)| before(key)));
        (chunk, at)
    }

    /// The entries from a place on.
    pub(super) fn iter_at(&self, (chunk, at): At) -> impl Iterator<Item = (&K, &V)> + Clone {
        let first = self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk[at..]);
        let rest = self.chunks.get(chunk + 1..).unwrap_or_default();
        let rest = rest.iter().flat_map(|chunk| chunk.iter());
        first.iter().chain(rest).map(|(key, value)| (key, value))
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<At>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.locate(|known| known.borrow() < key);
        let known = self.chunks.get(chunk)?.get(at)?;
        (known.0.borrow() == key).then_some((chunk, at))
    }

    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The key as it is here, and its value.
    #[must_use]
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        let (key, value) = &self.chunks[chunk][at];
        Some((key, value))
    }

    /// Whether there is an entry with this key.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    /// The entries from a key on.
    pub fn range<Q: Ord + ?Sized>(&self, start: Bound<&Q>) -> impl Iterator<Item = (&K, &V)> + Clone
    where
        K: Borrow<Q>,
    {
        self.iter_at(match start {
            Bound::Included(start) => self.locate(|key| key.borrow() < start),
            Bound::Excluded(start) => self.locate(|key| key.borrow() <= start),
            Bound::Unbounded => (0, 0),
        })
    }
}

impl<K: Ord + Clone, V: Clone> OrderedMap<K, V> {
    /// Sets the value of a key, and gives the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (mut chunk, mut at) = self.locate(|known| *known < key);
        let spine = Arc::make_mut(&mut self.chunks);
        if chunk == spine.len() {
            // Behind all others: at the end of the last chunk.
            let Some(last) = spine.len().checked_sub(1) else {
                spine.push(Arc::new(vec![(key, value)]));
                self.len = 1;
                return None;
            };
            chunk = last;
            at = spine[last].len();
        }
        let entries = Arc::make_mut(&mut spine[chunk]);
        if let Some(known) = entries.get_mut(at).filter(|known| known.0 == key) {
            return Some(std::mem::replace(&mut known.1, value));
        }
        entries.insert(at, (key, value));
        if entries.len() > CHUNK {
            // What comes in order, as from a snapshot, leaves full chunks behind.
            let cut = if at == CHUNK { CHUNK } else { CHUNK / 2 };
            let rest = entries.split_off(cut);
            spine.insert(chunk + 1, Arc::new(rest));
        }
        self.len += 1;
        None
    }

    /// The value of a key for a change.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        let chunk = &mut Arc::make_mut(&mut self.chunks)[chunk];
        Some(&mut Arc::make_mut(chunk)[at].1)
    }

    /// Takes an entry out; nothing is copied when there is none.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        let spine = Arc::make_mut(&mut self.chunks);
        let entries = Arc::make_mut(&mut spine[chunk]);
        let (_, value) = entries.remove(at);
        self.len -= 1;
        if entries.is_empty() {
            spine.remove(chunk);
        } else if entries.len() < SMALL {
            join(spine, chunk);
        }
        Some(value)
    }
}

/// Joins a small chunk with the one behind or before it, if both leave room for more.
fn join<K: Clone, V: Clone>(spine: &mut Vec<Chunk<K, V>>, small: usize) {
    for first in [Some(small), small.checked_sub(1)].into_iter().flatten() {
        let Some([a, b]) = spine.get(first..first + 2) else {
            continue;
        };
        if a.len() + b.len() <= CHUNK / 2 {
            let behind = spine.remove(first + 1);
            Arc::make_mut(&mut spine[first]).extend(behind.iter().cloned());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl<K: Ord, V> OrderedMap<K, V> {
        /// Asserts the invariants.
        fn check(&self) {
            let sizes: Vec<usize> = self.chunks.iter().map(|chunk| chunk.len()).collect();
            assert!(
                sizes.iter().all(|size| (1..=CHUNK).contains(size)),
                "{sizes:?}"
            );
            assert_eq!(sizes.iter().sum::<usize>(), self.len);
            assert!(self.keys().is_sorted_by(|a, b| a < b));
        }
    }

    proptest! {
        #[test]
        fn a_map_and_its_fork_hold_what_a_btree_map_holds(
            steps in proptest::collection::vec((0..900_u16, 0..4_u8), 0..3_000),
            fork_at in 0..3_000_usize,
        ) {
            let mut map = OrderedMap::default();
            let mut model = BTreeMap::new();
            let mut fork = None;
            for (number, (key, what)) in steps.into_iter().enumerate() {
                if number == fork_at {
                    fork = Some((map.clone(), model.clone()));
                }
                // More comes than goes until half of the way, and then the other way round.
                if (what == 0) == (number < 1_500) {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                } else {
                    prop_assert_eq!(map.insert(key, number), model.insert(key, number));
                }
            }
            map.check();
            let (old, old_model) = fork.unwrap_or_else(|| (map.clone(), model.clone()));
            for (map, model) in [(&map, &model), (&old, &old_model)] {
                prop_assert!(map.iter().eq(model.iter()));
                for key in [0, 1, 450, 899] {
                    prop_assert_eq!(map.get(&key), model.get(&key));
                    for start in [Bound::Included(&key), Bound::Excluded(&key)] {
                        let wanted = model.range((start, Bound::Unbounded));
                        prop_assert!(map.range(start).eq(wanted));
                    }
                    prop_assert_eq!(map.last(|known| *known < key), model.range(..key).next_back());
                    let place = map.locate(|known| *known < key);
                    prop_assert!(map.iter_at(place).eq(model.range(key..)));
                }
            }
            // What differs is among what each has apart from the other.
            for (map, other, model) in [(&map, &old, &old_model), (&old, &map, &model)] {
                let apart: BTreeMap<_, _> = map.apart(other).collect();
                let differing = map.iter().filter(|(key, value)| model.get(key) != Some(value));
                for (key, value) in differing {
                    prop_assert_eq!(apart.get(key), Some(&value));
                }
            }
        }
    }

    #[test]
    fn a_change_under_a_fork_copies_one_chunk_of_many() {
        let mut map: OrderedMap<u32, u32> = (0..10_000).map(|key| (2 * key, key)).collect();
        map.check();
        // In order, so all chunks but the last are full.
        assert_eq!(map.chunks.len(), 10_000_usize.div_ceil(CHUNK));
        let fork = map.clone();
        map.insert(7_001, 1);
        assert_eq!(map.remove(&9_000), Some(4_500));
        assert_eq!(map.remove(&9_001), None);
        assert!(map.apart(&fork).count() <= 3 * CHUNK);
        assert!(fork.apart(&map).count() <= 2 * CHUNK);
        assert_eq!((fork.len(), map.len()), (10_000, 10_000));
        assert_eq!(fork.apart(&fork.clone()).count(), 0);
        assert_ne!(map, fork);
    }

    #[test]
    fn what_is_removed_leaves_no_crowd_of_small_chunks() {
        let mut map: OrderedMap<u32, ()> = (0..10_000).map(|key| (key, ())).collect();
        for key in (0..10_000).filter(|key| key % 100 != 0) {
            map.remove(&key);
        }
        map.check();
        assert_eq!(map.len(), 100);
        assert!(map.chunks.len() <= 5, "{}", map.chunks.len());
        map.remove(&0);
        for key in 0..10_000 {
            map.remove(&key);
        }
        assert!(map.is_empty() && map.chunks.is_empty());
    }
}
