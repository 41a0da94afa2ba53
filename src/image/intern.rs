//! Pools that turn values which many rows share into small ids.
//!
//! Lists are interned in order as written: the order of replicas and of ISR members is visible in
//! records and in replies. Two equal lists have one id, so a healthy partition's ISR is the same
//! id as its replicas. Id 0 is the empty list (for rare fields: none set).
//!
//! Nobody counts who uses a value. A pool grows until it may hold more dead values than live ones;
//! then its owner, who can see every use, marks the live ones and has the rest swept out. A live
//! value keeps its id, so no row is written, and older images keep the pool that they had.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use super::index::{Index, hash_of};
use super::table::Table;

/// So many values more than twice the live ones do not make a sweep worth while.
const SLACK: usize = 1024;

/// Values with ids in order of first appearance, as long as no id is free.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    values: Table<T>,
    index: Index,
    /// Ids of values that were swept out, to be given away again; the lowest one last.
    free: Arc<Vec<u32>>,
    /// How many values were live at the last sweep.
    kept: usize,
}

impl<T> Pool<T> {
    /// A pool in which `first` has id 0.
    pub(super) fn starting_with<Q: Hash + ?Sized>(first: T) -> Self
    where
        T: Borrow<Q> + Clone,
    {
        let mut pool = Self {
            values: Table::default(),
            index: Index::default(),
            free: Arc::default(),
            kept: 1,
        };
        let hash = hash_of(first.borrow());
        pool.add(hash, first);
        pool
    }

    /// The value of an id that this pool (or the pool it is a clone of) gave and did not sweep out.
    pub(super) fn value(&self, id: u32) -> &T {
        self.values
            .get(id as usize)
            .expect("sweeps keep what rows hold, and rows hold only ids of their own image's pools")
    }

    /// The id of `value`, which is added if it is new.
    pub(super) fn intern<Q>(&mut self, value: &Q) -> u32
    where
        T: Borrow<Q> + Clone + for<'a> From<&'a Q>,
        Q: Hash + Eq + ?Sized,
    {
        // The first value is that of most fields, and so is worth a comparison before the hash.
        if self.value(0).borrow() == value {
            return 0;
        }
        let hash = hash_of(value);
        let values = &self.values;
        let known = self.index.find(hash, |at| {
            values.get(at).is_some_and(|known| known.borrow() == value)
        });
        match known {
            Some(at) => at as u32,
            None => self.add(hash, T::from(value)),
        }
    }

    fn add(&mut self, hash: u64, value: T) -> u32
    where
        T: Clone,
    {
        let at = match self.free.is_empty() {
            true => self.values.push(value),
            false => {
                let free = Arc::make_mut(&mut self.free).pop();
                let at = free.expect("the list is not empty") as usize;
                *self.values.get_mut(at).expect("free ids are ids") = value;
                at
            }
        };
        self.index.insert(hash, at);
        u32::try_from(at).expect("a pool holds fewer than 2^32 values")
    }

    /// All values in order of their ids; the empty one for an id that is free.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// How many values there are, live or dead.
    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// For every id, whether its value satisfies `wanted`: "mark the lists, then scan the rows".
    pub(super) fn mark(&self, wanted: impl FnMut(&T) -> bool) -> Vec<bool> {
        self.values.iter().map(wanted).collect()
    }

    /// No id marked, for a sweep.
    pub(super) fn unmarked(&self) -> Vec<bool> {
        vec![false; self.values.len()]
    }

    /// True when more than half of the values may be dead. `users` is how many things hold ids:
    /// looking at all of them must not cost more than a few looks for each value that was added
    /// since the last sweep.
    pub(super) fn is_sweep_due(&self, users: usize) -> bool {
        self.len() > 2 * self.kept + users / 16 + SLACK
    }

    /// Drops every value but those whose id is marked as live, and id 0.
    pub(super) fn sweep<Q>(&mut self, live: &[bool])
    where
        T: Borrow<Q> + Clone,
        Q: Hash + ?Sized,
    {
        let end = live.iter().rposition(|live| *live).map_or(1, |at| at + 1);
        self.values.truncate(end);
        let empty = self.value(0).clone();
        let mut index = Index::default();
        let mut free = Vec::new();
        for at in (0..end).rev() {
            if live[at] || at == 0 {
                let value = self.values.get(at).expect("marks are of this pool");
                index.insert(hash_of(value.borrow()), at);
            } else {
                let value = self.values.get_mut(at);
                *value.expect("marks are of this pool") = empty.clone();
                free.push(at as u32);
            }
        }
        self.index = index;
        self.kept = end - free.len();
        self.free = Arc::new(free);
    }

    /// Whether every marked id has a value.
    pub(super) fn has_all(&self, marked: &[bool]) -> bool {
        let mut free = self.free.iter();
        free.all(|id| !marked.get(*id as usize).is_some_and(|marked| *marked))
    }
}
