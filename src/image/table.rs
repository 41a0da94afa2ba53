//! A copy-on-write table with dense `u32` positions: the sharing structure of topics, partitions
//! and configurations. What has an order of its own is in an [`OrderedMap`](super::OrderedMap).
//!
//! Values sit in chunks of `CHUNK`, chunks in branches of [`FAN`], branches in a list; all behind
//! `Arc`. A clone copies one pointer. A change through [`Table::get_mut`] or [`Table::push`]
//! happens in place when nobody else holds the chunk, and otherwise copies the way to it: the list
//! of branches, one branch and one chunk. Among a million values these are a few hundred pointers.
//! A table that fits in one chunk has no branches, so that a topic of ten partitions pays for its
//! rows and one pointer.

use std::sync::Arc;

/// Values in one chunk of most tables.
pub(super) const ROWS: usize = 64;
/// Chunks in one branch.
const FAN: usize = 64;

type Chunk<T> = Arc<Vec<T>>;
type Branch<T> = Arc<Vec<Chunk<T>>>;

/// See the module. Values that are dear to clone want small chunks.
#[derive(Clone, Debug)]
pub(super) struct Table<T, const CHUNK: usize = ROWS> {
    chunks: Chunks<T>,
}

#[derive(Clone, Debug)]
enum Chunks<T> {
    /// At most `CHUNK` values.
    One(Chunk<T>),
    /// Every chunk and every branch but the last one is full; none is empty.
    Many(Arc<Vec<Branch<T>>>),
}

impl<T, const CHUNK: usize> Default for Table<T, CHUNK> {
    fn default() -> Self {
        Self {
            chunks: Chunks::One(Arc::new(Vec::new())),
        }
    }
}

impl<T, const CHUNK: usize> Table<T, CHUNK> {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        match &self.chunks {
            Chunks::One(chunk) => chunk.len(),
            Chunks::Many(branches) => {
                let last = branches.last().map_or(0, |branch| {
                    let last = branch.last().map_or(0, |chunk| chunk.len());
                    branch.len().saturating_sub(1) * CHUNK + last
                });
                branches.len().saturating_sub(1) * FAN * CHUNK + last
            }
        }
    }

    /// The value at `at`, `None` beyond the end.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunk(at / CHUNK)?.get(at % CHUNK)
    }

    /// All values in order of position.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        let (one, many) = match &self.chunks {
            Chunks::One(chunk) => (chunk.as_slice(), [].as_slice()),
            Chunks::Many(branches) => ([].as_slice(), branches.as_slice()),
        };
        let many = many.iter().flat_map(|branch| branch.iter());
        one.iter().chain(many.flat_map(|chunk| chunk.iter()))
    }

    /// The positions of either table whose values are not in memory that both share, ascending.
    pub(super) fn differing(&self, other: &Self) -> impl Iterator<Item = usize> {
        let chunks = 0..self.chunk_count().max(other.chunk_count());
        let chunks = chunks.map(|at| (at, self.chunk(at), other.chunk(at)));
        chunks.flat_map(|(at, ours, theirs)| {
            let length = match (ours, theirs) {
                (Some(ours), Some(theirs)) if Arc::ptr_eq(ours, theirs) => 0,
                _ => ours
                    .map_or(0, |chunk| chunk.len())
                    .max(theirs.map_or(0, |chunk| chunk.len())),
            };
            at * CHUNK..at * CHUNK + length
        })
    }

    fn chunk_count(&self) -> usize {
        self.len().div_ceil(CHUNK)
    }

    fn chunk(&self, at: usize) -> Option<&Chunk<T>> {
        match &self.chunks {
            Chunks::One(chunk) => (at == 0).then_some(chunk),
            Chunks::Many(branches) => branches.get(at / FAN)?.get(at % FAN),
        }
    }

    /// True when both are the same memory, so that a comparison by value can be left out.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.chunks, &other.chunks) {
            (Chunks::One(a), Chunks::One(b)) => Arc::ptr_eq(a, b),
            (Chunks::Many(a), Chunks::Many(b)) => Arc::ptr_eq(a, b),
            (Chunks::One(_), Chunks::Many(_)) | (Chunks::Many(_), Chunks::One(_)) => false,
        }
    }
}

impl<T: Clone, const CHUNK: usize> Table<T, CHUNK> {
    /// The value at `at` for a change, `None` beyond the end.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        // The bound is checked first: make_mut would copy for nothing.
        self.get(at)?;
        let chunk = match &mut self.chunks {
            Chunks::One(chunk) => chunk,
            Chunks::Many(branches) => {
                let branch = Arc::make_mut(branches).get_mut(at / CHUNK / FAN)?;
                Arc::make_mut(branch).get_mut(at / CHUNK % FAN)?
            }
        };
        Arc::make_mut(chunk).get_mut(at % CHUNK)
    }

    /// Adds a value at the end and returns its position.
    pub(super) fn push(&mut self, value: T) -> usize {
        let at = self.len();
        match &mut self.chunks {
            Chunks::One(chunk) if at < CHUNK => push_tight(Arc::make_mut(chunk), value, CHUNK),
            Chunks::One(chunk) => {
                let branch = Arc::new(vec![Arc::clone(chunk), Arc::new(vec![value])]);
                self.chunks = Chunks::Many(Arc::new(vec![branch]));
            }
            Chunks::Many(branches) => {
                let branches = Arc::make_mut(branches);
                if at.is_multiple_of(FAN * CHUNK) {
                    branches.push(Arc::default());
                }
                let branch = branches.last_mut().expect("a table of many has branches");
                let branch = Arc::make_mut(branch);
                match branch.last_mut() {
                    Some(last) if last.len() < CHUNK => {
                        push_tight(Arc::make_mut(last), value, CHUNK);
                    }
                    Some(_) | None => push_tight(branch, Arc::new(vec![value]), FAN),
                }
            }
        }
        at
    }

    /// Drops the values behind the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        if length >= self.len() {
            return;
        }
        match &mut self.chunks {
            Chunks::One(chunk) => Arc::make_mut(chunk).truncate(length),
            Chunks::Many(branches) if length <= CHUNK => {
                let mut first = Arc::clone(&branches[0][0]);
                Arc::make_mut(&mut first).truncate(length);
                self.chunks = Chunks::One(first);
            }
            Chunks::Many(branches) => {
                let chunks = length.div_ceil(CHUNK);
                let branches = Arc::make_mut(branches);
                branches.truncate(chunks.div_ceil(FAN));
                branches.shrink_to_fit();
                let Some(branch) = branches.last_mut() else {
                    return;
                };
                let branch = Arc::make_mut(branch);
                branch.truncate((chunks - 1) % FAN + 1);
                branch.shrink_to_fit();
                if let Some(last) = branch.last_mut() {
                    Arc::make_mut(last).truncate((length - 1) % CHUNK + 1);
                }
            }
        }
    }
}

/// Grows by a few values and not by doubling: most topics have few partitions, and half-empty
/// vectors would be most of the image.
fn push_tight<T>(chunk: &mut Vec<T>, value: T, most: usize) {
    if chunk.len() == chunk.capacity() {
        let more = (chunk.len() / 4).max(2);
        chunk.reserve_exact(more.min(most - chunk.len()));
    }
    chunk.push(value);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Set(usize, u32),
        Truncate(usize),
        Fork,
        Back,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            90 => any::<u32>().prop_map(Step::Push),
            20 => (0..600_usize, any::<u32>()).prop_map(|(at, v)| Step::Set(at, v)),
            1 => (0..600_usize).prop_map(Step::Truncate),
            4 => Just(Step::Fork),
            3 => Just(Step::Back),
        ]
    }

    /// Small enough for a few branches.
    const CHUNK: usize = 4;

    fn assert_equal(table: &Table<u32, CHUNK>, model: &BTreeMap<usize, u32>) {
        assert_eq!(table.len(), model.len());
        let values: Vec<u32> = table.iter().copied().collect();
        let expected: Vec<u32> = model.values().copied().collect();
        assert_eq!(values, expected);
        for at in 0..=model.len() {
            assert_eq!(table.get(at), model.get(&at));
        }
    }

    proptest! {
        #[test]
        fn a_table_and_its_forks_behave_as_a_btree_map(
            steps in proptest::collection::vec(step(), 0..900)
        ) {
            let mut table = Table::<u32, CHUNK>::default();
            let mut model = BTreeMap::new();
            let mut forks = Vec::new();
            for step in steps {
                match step {
                    Step::Push(value) => {
                        let at = table.push(value);
                        prop_assert_eq!(at, model.len());
                        model.insert(at, value);
                    }
                    Step::Set(at, value) => {
                        let slot = table.get_mut(at);
                        prop_assert_eq!(slot.is_some(), model.contains_key(&at));
                        if let Some(slot) = slot {
                            *slot = value;
                            model.insert(at, value);
                        }
                    }
                    Step::Truncate(length) => {
                        table.truncate(length);
                        model.retain(|at, _| *at < length);
                    }
                    Step::Fork => forks.push((table.clone(), model.clone())),
                    Step::Back => {
                        if let Some((old_table, old_model)) = forks.last() {
                            table = old_table.clone();
                            model = old_model.clone();
                        }
                    }
                }
            }
            assert_equal(&table, &model);
            for (table, model) in &forks {
                assert_equal(table, model);
            }
        }
    }

    #[test]
    fn a_change_copies_only_the_way_to_the_chunk_that_it_touches() {
        let mut table = Table::<usize, CHUNK>::default();
        for value in 0..(3 * FAN * CHUNK) {
            table.push(value);
        }
        let before = table.clone();
        *table.get_mut(FAN * CHUNK).expect("within the table") = 0;
        assert_eq!(before.get(FAN * CHUNK), Some(&(FAN * CHUNK)));
        let (Chunks::Many(new), Chunks::Many(old)) = (&table.chunks, &before.chunks) else {
            panic!("three branches are many chunks");
        };
        let shared = |at: usize| Arc::ptr_eq(&new[at], &old[at]);
        assert_eq!([0, 1, 2].map(shared), [true, false, true]);
        let shared = |at: usize| Arc::ptr_eq(&new[1][at], &old[1][at]);
        assert!(!shared(0) && (1..FAN).all(shared));
        let differing: Vec<usize> = table.differing(&before).collect();
        assert_eq!(
            differing,
            (FAN * CHUNK..FAN * CHUNK + CHUNK).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_change_beyond_the_end_copies_nothing() {
        let mut table = Table::<usize, CHUNK>::default();
        for value in 0..(2 * CHUNK) {
            table.push(value);
        }
        let before = table.clone();
        assert_eq!(table.get_mut(2 * CHUNK), None);
        assert!(table.is_same(&before));
    }
}
