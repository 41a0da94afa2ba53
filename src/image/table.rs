//! A copy-on-write table with dense `u32` positions: the sharing structure of topics, partitions
//! and configurations. What has an order of its own is in an [`OrderedMap`](super::OrderedMap).
//!
//! Values sit in chunks of [`CHUNK`], chunks in a spine; both behind `Arc`. A clone copies one
//! pointer. A change through [`Table::get_mut`] or [`Table::push`] happens in place when nobody
//! else holds the chunk, and otherwise copies the spine and the one chunk that it touches.
//! A table that fits in one chunk has no spine, so that a topic of ten partitions pays for its
//! rows and one pointer.

use std::sync::Arc;

/// Values in one chunk.
pub(super) const CHUNK: usize = 64;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    chunks: Chunks<T>,
}

#[derive(Clone, Debug)]
enum Chunks<T> {
    /// At most [`CHUNK`] values.
    One(Arc<Vec<T>>),
    /// Every chunk but the last one is full.
    Many(Arc<Vec<Arc<Vec<T>>>>),
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            chunks: Chunks::One(Arc::new(Vec::new())),
        }
    }
}

impl<T> Table<T> {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        match &self.chunks {
            Chunks::One(chunk) => chunk.len(),
            Chunks::Many(spine) => {
                (spine.len() - 1) * CHUNK + spine.last().map_or(0, |last| last.len())
            }
        }
    }

    /// The value at `at`, `None` beyond the end.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        match &self.chunks {
            Chunks::One(chunk) => chunk.get(at),
            Chunks::Many(spine) => spine.get(at / CHUNK)?.get(at % CHUNK),
        }
    }

    /// All values in order of position.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        let (one, many) = match &self.chunks {
            Chunks::One(chunk) => (chunk.as_slice(), [].as_slice()),
            Chunks::Many(spine) => ([].as_slice(), spine.as_slice()),
        };
        one.iter().chain(many.iter().flat_map(|chunk| chunk.iter()))
    }

    /// The positions of either table whose values are not in memory that both share, ascending.
    pub(super) fn differing(&self, other: &Self) -> impl Iterator<Item = usize> {
        let (ours, theirs) = (self.chunks(), other.chunks());
        let chunks = 0..ours.len().max(theirs.len());
        let chunks = chunks.map(|at| (at, ours.get(at), theirs.get(at)));
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

    fn chunks(&self) -> &[Arc<Vec<T>>] {
        match &self.chunks {
            Chunks::One(chunk) => std::slice::from_ref(chunk),
            Chunks::Many(spine) => spine,
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

impl<T: Clone> Table<T> {
    /// The value at `at` for a change, `None` beyond the end.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        match &mut self.chunks {
            // The bound is checked first: make_mut would copy for nothing.
            Chunks::One(chunk) if at < chunk.len() => Arc::make_mut(chunk).get_mut(at),
            Chunks::One(_) => None,
            Chunks::Many(spine) if at / CHUNK < spine.len() => {
                let chunk = &mut Arc::make_mut(spine)[at / CHUNK];
                if at % CHUNK < chunk.len() {
                    Arc::make_mut(chunk).get_mut(at % CHUNK)
                } else {
                    None
                }
            }
            Chunks::Many(_) => None,
        }
    }

    /// Adds a value at the end and returns its position.
    pub(super) fn push(&mut self, value: T) -> usize {
        let at = self.len();
        match &mut self.chunks {
            Chunks::One(chunk) if chunk.len() < CHUNK => push_tight(Arc::make_mut(chunk), value),
            Chunks::One(chunk) => {
                let full = Arc::clone(chunk);
                self.chunks = Chunks::Many(Arc::new(vec![full, Arc::new(vec![value])]));
            }
            Chunks::Many(spine) => {
                let spine = Arc::make_mut(spine);
                match spine.last_mut() {
                    Some(last) if last.len() < CHUNK => push_tight(Arc::make_mut(last), value),
                    Some(_) | None => spine.push(Arc::new(vec![value])),
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
            Chunks::Many(spine) if length <= CHUNK => {
                let mut first = Arc::clone(&spine[0]);
                Arc::make_mut(&mut first).truncate(length);
                self.chunks = Chunks::One(first);
            }
            Chunks::Many(spine) => {
                let spine = Arc::make_mut(spine);
                spine.truncate(length.div_ceil(CHUNK));
                spine.shrink_to_fit();
                if let Some(last) = spine.last_mut()
                    && !length.is_multiple_of(CHUNK)
                {
                    Arc::make_mut(last).truncate(length % CHUNK);
                }
            }
        }
    }
}

/// Grows by a few values and not by doubling: most topics have few partitions, and half-empty
/// vectors would be most of the image.
fn push_tight<T>(chunk: &mut Vec<T>, value: T) {
    if chunk.len() == chunk.capacity() {
        chunk.reserve_exact((chunk.len() / 4).max(2).min(CHUNK - chunk.len()));
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
            40 => any::<u32>().prop_map(Step::Push),
            20 => (0..300_usize, any::<u32>()).prop_map(|(at, v)| Step::Set(at, v)),
            1 => (0..300_usize).prop_map(Step::Truncate),
            4 => Just(Step::Fork),
            3 => Just(Step::Back),
        ]
    }

    fn assert_equal(table: &Table<u32>, model: &BTreeMap<usize, u32>) {
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
            steps in proptest::collection::vec(step(), 0..500)
        ) {
            let mut table = Table::default();
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
    fn a_change_copies_only_the_chunk_that_it_touches() {
        let mut table = Table::default();
        for value in 0..(3 * CHUNK) {
            table.push(value);
        }
        let before = table.clone();
        *table.get_mut(CHUNK).expect("within the table") = 0;
        let (Chunks::Many(new), Chunks::Many(old)) = (&table.chunks, &before.chunks) else {
            panic!("three chunks have a spine");
        };
        assert!(Arc::ptr_eq(&new[0], &old[0]));
        assert!(!Arc::ptr_eq(&new[1], &old[1]));
        assert!(Arc::ptr_eq(&new[2], &old[2]));
        assert_eq!(before.get(CHUNK), Some(&CHUNK));
    }
}
