//! Pools that turn values which many rows share into small ids.
//!
//! Lists are interned in order as written: the order of replicas and of ISR members is visible in
//! records and in replies. Two equal lists have one id, so a healthy partition's ISR is the same
//! id as its replicas. Id 0 is the empty list (for rare fields: none set).
//!
//! Pools only grow: a list that no row uses any more stays until a pool is rebuilt, which the
//! image does not do yet.

use std::borrow::Borrow;
use std::hash::Hash;

use super::index::{Index, hash_of};
use super::table::Table;

/// Values with ids in order of first appearance.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    values: Table<T>,
    index: Index,
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
        };
        let hash = hash_of(first.borrow());
        pool.add(hash, first);
        pool
    }

    /// The value of an id that this pool (or the pool it is a clone of) gave.
    pub(super) fn value(&self, id: u32) -> &T {
        self.values
            .get(id as usize)
            .expect("pools never shrink, and rows hold only ids of their own image's pools")
    }

    /// The id of `value`, which is added if it is new.
    pub(super) fn intern<Q>(&mut self, value: &Q) -> u32
    where
        T: Borrow<Q> + Clone + for<'a> From<&'a Q>,
        Q: Hash + Eq + ?Sized,
    {
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
        let at = self.values.push(value);
        self.index.insert(hash, at);
        u32::try_from(at).expect("a pool holds fewer than 2^32 values")
    }

    /// All values in order of their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// For every id, whether its value satisfies `wanted`: "mark the lists, then scan the rows".
    pub(super) fn mark(&self, wanted: impl FnMut(&T) -> bool) -> Vec<bool> {
        self.values.iter().map(wanted).collect()
    }
}
