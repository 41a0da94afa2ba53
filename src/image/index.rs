//! A copy-on-write hash index: from a hash to the table positions whose keys have it.
//!
//! The index does not hold keys. Who asks says which position is the right one, by looking at the
//! row there. It is split in [`GROUP`] groups of as many parts, so that a change under a fork
//! copies one small part and two short lists of pointers. Nothing ever depends on the order inside:
//! there is no way to walk it.

use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;

use foldhash::quality::FixedState;

/// Groups of one index, and parts of one group. More make a change dearer (two lists of so many
/// pointers are copied), fewer make the parts larger.
const GROUP: usize = 16;

/// The hash of a key: the same in every process of one build, which is all that an index needs.
pub(super) fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    FixedState::default().hash_one(key)
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Index {
    groups: Arc<[Group; GROUP]>,
}

type Group = Arc<[Arc<Shard>; GROUP]>;

impl Default for Index {
    fn default() -> Self {
        // All parts share one empty shard until something is put into them.
        let empty = Arc::new(Shard::default());
        let group = Arc::new(std::array::from_fn(|_| Arc::clone(&empty)));
        Self {
            groups: Arc::new(std::array::from_fn(|_| Arc::clone(&group))),
        }
    }
}

impl Index {
    /// The first position under `hash` that `is_it` accepts.
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        self.shard(hash)
            .positions(tag_of(hash))
            .find_position(is_it)
    }

    /// All positions that may have a key with this hash (a few false ones are possible).
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = usize> {
        self.shard(hash).positions(tag_of(hash))
    }

    /// Adds `position` under `hash`. The caller knows that it is not there yet.
    pub(super) fn insert(&mut self, hash: u64, position: usize) {
        let position = u32::try_from(position).expect("tables hold fewer than 2^32 rows");
        self.shard_mut(hash).insert(Entry {
            tag: tag_of(hash),
            position: position + 1,
        });
    }

    /// Takes `position` out from under `hash`.
    pub(super) fn remove(&mut self, hash: u64, position: usize) {
        self.shard_mut(hash).remove(tag_of(hash), position);
    }

    fn shard(&self, hash: u64) -> &Shard {
        let (group, shard) = place_of(hash);
        &self.groups[group][shard]
    }

    fn shard_mut(&mut self, hash: u64) -> &mut Shard {
        let (group, shard) = place_of(hash);
        let group = &mut Arc::make_mut(&mut self.groups)[group];
        Arc::make_mut(&mut Arc::make_mut(group)[shard])
    }
}

/// The group and the part in it.
fn place_of(hash: u64) -> (usize, usize) {
    let bits = (hash >> 56) as usize;
    (bits / GROUP, bits % GROUP)
}

fn tag_of(hash: u64) -> u32 {
    hash as u32
}

/// One slot; `position` is the position plus one, 0 when the slot is free.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u32,
    position: u32,
}

/// Open addressing with linear probing; at most four fifths full, so every probe ends. It grows by
/// a quarter and not by doubling: lookups are a large part of what a topic costs in memory.
#[derive(Clone, Debug, Default)]
struct Shard {
    slots: Vec<Entry>,
    used: usize,
}

/// Where a tag belongs among so many slots.
fn home_of(tag: u32, slots: usize) -> usize {
    ((u64::from(tag) * slots as u64) >> 32) as usize
}

/// How many steps lead from one slot to another, around the end.
fn steps(from: usize, to: usize, slots: usize) -> usize {
    if to >= from {
        to - from
    } else {
        to + slots - from
    }
}

impl Shard {
    fn positions(&self, tag: u32) -> Positions<'_> {
        Positions {
            slots: &self.slots,
            tag,
            at: home_of(tag, self.slots.len()),
        }
    }

    fn insert(&mut self, entry: Entry) {
        let slots = self.slots.len();
        if (self.used + 1) * 5 > slots * 4 {
            let larger = vec![Entry::default(); (slots * 5 / 4).max(slots + 4)];
            let old = std::mem::replace(&mut self.slots, larger);
            for entry in old.into_iter().filter(|entry| entry.position != 0) {
                self.place(entry);
            }
        }
        self.place(entry);
        self.used += 1;
    }

    fn place(&mut self, entry: Entry) {
        let mut at = home_of(entry.tag, self.slots.len());
        while self.slots[at].position != 0 {
            at = self.behind(at);
        }
        self.slots[at] = entry;
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    fn remove(&mut self, tag: u32, position: usize) {
        let slots = self.slots.len();
        if slots == 0 {
            return;
        }
        let mut hole = home_of(tag, slots);
        while self.slots[hole].position as usize != position + 1 {
            if self.slots[hole].position == 0 {
                return;
            }
            hole = self.behind(hole);
        }
        self.used -= 1;
        // Entries behind the hole move up unless that would put them before their home slot;
        // otherwise a later probe would stop at the hole and miss them.
        let mut at = hole;
        loop {
            at = self.behind(at);
            let entry = self.slots[at];
            if entry.position == 0 {
                break;
            }
            let home = home_of(entry.tag, slots);
            if steps(home, at, slots) >= steps(hole, at, slots) {
                self.slots[hole] = entry;
                hole = at;
            }
        }
        self.slots[hole] = Entry::default();
    }
}

/// Walks the slots from a tag's home to the first free one.
struct Positions<'a> {
    slots: &'a [Entry],
    tag: u32,
    at: usize,
}

impl Positions<'_> {
    fn find_position(&mut self, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        self.find(|position| is_it(*position))
    }
}

impl Iterator for Positions<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        loop {
            if self.at == self.slots.len() {
                self.at = 0;
            }
            let entry = self.slots[self.at];
            if entry.position == 0 {
                return None;
            }
            self.at += 1;
            if entry.tag == self.tag {
                return Some(entry.position as usize - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_index_and_its_fork_find_what_a_btree_map_finds(
            steps in proptest::collection::vec((0..60_u64, any::<bool>()), 0..600),
            crowded in any::<bool>(),
            fork_at in 0..600_usize,
        ) {
            // The crowded hash sends every key to one shard and two home slots, the first one and
            // the last one, behind which probing goes around the end.
            let crowd = |key: u64| u64::from(u32::MAX) * (key % 2);
            let hash = |key: u64| if crowded { crowd(key) } else { hash_of(&key) };
            let mut index = Index::default();
            let mut model = BTreeMap::new();
            let mut fork = None;
            for (number, (key, add)) in steps.into_iter().enumerate() {
                if number == fork_at {
                    fork = Some((index.clone(), model.clone()));
                }
                let position = key as usize;
                if add && !model.contains_key(&key) {
                    index.insert(hash(key), position);
                    model.insert(key, position);
                } else if !add {
                    index.remove(hash(key), position);
                    model.remove(&key);
                }
            }
            for (index, model) in fork.into_iter().chain([(index, model)]) {
                for key in 0..60_u64 {
                    let found = index.find(hash(key), |position| position == key as usize);
                    prop_assert_eq!(found, model.get(&key).copied());
                }
            }
        }
    }
}
