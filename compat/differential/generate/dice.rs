//! Chance, from a seed.

use kraftd::types::SplitMix;
use uuid::Uuid;

/// See the module.
pub(crate) struct Dice(SplitMix);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// A number below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).expect("below a usize")
    }

    /// A number of the range, both ends included.
    pub(crate) fn between(&mut self, low: i32, high: i32) -> i32 {
        let width = u64::from(high.abs_diff(low)) + 1;
        low + i32::try_from(self.0.below(width)).expect("within the range")
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// One of them, if there is any.
    pub(crate) fn maybe<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        (!items.is_empty()).then(|| self.pick(items))
    }

    /// `count` of them, or all when there are fewer, in an order of chance.
    pub(crate) fn some<T: Clone>(&mut self, items: &[T], count: usize) -> Vec<T> {
        let mut items = items.to_vec();
        let count = count.min(items.len());
        for at in 0..count {
            let other = at + self.below(items.len() - at);
            items.swap(at, other);
        }
        items.truncate(count);
        items
    }

    /// One of the rows, as often as its weight says.
    pub(crate) fn weighted<'a, T>(&mut self, rows: &'a [(usize, T)]) -> &'a T {
        let total = rows.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, item) in rows {
            if at < *weight {
                return item;
            }
            at -= weight;
        }
        unreachable!("below the sum of all weights")
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        self.0.uuid()
    }
}
