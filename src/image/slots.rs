//! Values in numbered slots: a position stays a value's own until it is removed, and is given away
//! again then.

use std::sync::Arc;

use super::table::Table;

/// Slots in one chunk: a change under a fork clones so many values, and each holds others.
const CHUNK: usize = 16;

/// See the module. A clone costs two pointers.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    /// `None` after the value was removed.
    table: Table<Option<T>, CHUNK>,
    /// The positions whose value was removed.
    free: Arc<Vec<u32>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            table: Table::default(),
            free: Arc::default(),
        }
    }
}

impl<T> Slots<T> {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// The positions of all slots, used or not.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        0..self.table.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.table.get(at)?.as_ref()
    }

    /// The values in order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.table.iter().flatten()
    }

    /// What is in the slots that are not in memory which both share: ours and theirs, `None` where
    /// there is nothing.
    pub(super) fn differing<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a T>, Option<&'a T>)> {
        let positions = self.table.differing(&other.table);
        positions.map(|at| (self.get(at), other.get(at)))
    }

    /// True when both hold the same memory.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.table.is_same(&other.table)
    }
}

impl<T: Clone> Slots<T> {
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.table.get_mut(at)?.as_mut()
    }

    /// Puts a value into a free slot, or a new one, and says which.
    pub(super) fn add(&mut self, value: T) -> usize {
        if self.free.is_empty() {
            return self.table.push(Some(value));
        }
        let slot = Arc::make_mut(&mut self.free).pop();
        let at = slot.expect("the list is not empty") as usize;
        *self.table.get_mut(at).expect("free slots are slots") = Some(value);
        at
    }

    /// Takes the value out of a slot, which is free then.
    pub(super) fn remove(&mut self, at: usize) -> Option<T> {
        self.get(at)?;
        let value = self.table.get_mut(at)?.take()?;
        let slot = u32::try_from(at).expect("tables hold fewer than 2^32 rows");
        Arc::make_mut(&mut self.free).push(slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_and_a_copy_keeps_what_it_had() {
        let mut slots = Slots::default();
        let places: Vec<usize> = ('a'..='c').map(|value| slots.add(value)).collect();
        assert_eq!(places, [0, 1, 2]);
        let copy = slots.clone();
        assert_eq!(slots.remove(1), Some('b'));
        assert_eq!(slots.remove(1), None);
        assert_eq!((slots.len(), slots.range()), (2, 0..3));
        assert_eq!(slots.add('d'), 1);
        assert_eq!(slots.add('e'), 3);
        assert_eq!(slots.iter().collect::<String>(), "adce");
        assert_eq!(copy.iter().collect::<String>(), "abc");
    }
}
