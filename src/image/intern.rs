//! Pools that turn values which many rows share into small ids.
//!
//! Lists are interned in order as written: the order of replicas and of ISR members is visible in
//! records and in replies. Two equal lists have one id, so a healthy partition's ISR is the same
//! id as its replicas. Id 0 is the empty list (for rare fields: none set).
//!
//! Nobody counts who uses a value. A pool grows until it may hold more dead values than live ones;
//! then its owner, who can see every use, marks the live ones and has the rest swept out, some at a
//! time: what is interned meanwhile is live without a mark of the owner. A live value keeps its id,
//! so no row is written, and older images keep the pool that they had.

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
    /// Ids of values that were swept out, to be given away again; the one freed last is first.
    free: Arc<Vec<u32>>,
    /// How many values were live at the last sweep.
    kept: usize,
    /// While a sweep is under way, for every id whether it is known to be live.
    live: Option<Arc<Vec<bool>>>,
    /// While a sweep is under way, ids at and above this one have been looked at; 0 outside.
    swept: usize,
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
            live: None,
            swept: 0,
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
        let id = match known {
            Some(at) => at as u32,
            None => self.add(hash, T::from(value)),
        };
        self.mark_live(id);
        id
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

    /// No id marked.
    pub(super) fn unmarked(&self) -> Vec<bool> {
        vec![false; self.values.len()]
    }

    /// True when more than half of the values may be dead. `users` is how many things hold ids:
    /// looking at all of them must not cost more than a few looks for each value that was added
    /// since the last sweep.
    pub(super) fn is_sweep_due(&self, users: usize) -> bool {
        self.len() > 2 * self.kept + users / 16 + SLACK
    }

    /// Begins a sweep: nothing is known to be live but id 0.
    pub(super) fn begin_sweep(&mut self) {
        self.live = Some(Arc::new(self.unmarked()));
        self.mark_live(0);
    }

    /// Keeps a value from being swept out, if a sweep is under way.
    pub(super) fn mark_live(&mut self, id: u32) {
        let Some(live) = &mut self.live else {
            return;
        };
        let at = id as usize;
        // A copy that shares the marks costs one of them, so nothing is written in vain.
        if live.get(at).is_some_and(|live| *live) {
            return;
        }
        let live = Arc::make_mut(live);
        if at >= live.len() {
            live.resize(at + 1, false);
        }
        live[at] = true;
    }

    /// Is the value kept by the sweep that is under way, as far as is known?
    pub(super) fn is_live(&self, id: usize) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.get(id).is_some_and(|live| *live))
    }

    /// All that is live is marked: from now on the rest is swept out.
    pub(super) fn begin_drops(&mut self) {
        self.swept = self.values.len();
    }

    /// Looks at up to `count` values, the newest first, and drops those that are not live. True
    /// when the sweep is over.
    pub(super) fn drop_some<Q>(&mut self, count: usize) -> bool
    where
        T: Borrow<Q> + Clone,
        Q: Hash + Eq + ?Sized,
    {
        let from = self.swept;
        self.swept = from.saturating_sub(count);
        for at in (self.swept..from).rev() {
            if !self.is_live(at) {
                self.drop_value(at);
            }
        }
        let over = self.swept == 0;
        if over && self.live.take().is_some() {
            self.kept = self.len();
        }
        over
    }

    fn drop_value<Q>(&mut self, at: usize)
    where
        T: Borrow<Q> + Clone,
        Q: Hash + Eq + ?Sized,
    {
        let empty = self.value(0).clone();
        let value = self.values.get(at).expect("the walk began at the end");
        if value.borrow() == empty.borrow() {
            // The id is free already.
            return;
        }
        self.index.remove(hash_of(value.borrow()), at);
        if at + 1 == self.values.len() {
            self.values.truncate(at);
            return;
        }
        let value = self.values.get_mut(at);
        *value.expect("the walk began at the end") = empty;
        Arc::make_mut(&mut self.free).push(at as u32);
    }

    /// Whether every marked id has a value.
    pub(super) fn has_all(&self, marked: &[bool]) -> bool {
        let mut free = self.free.iter();
        free.all(|id| !marked.get(*id as usize).is_some_and(|marked| *marked))
    }
}
