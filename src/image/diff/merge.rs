//! Two sorted maps side by side.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Change;
use crate::image::OrderedMap;

/// The entries that only one map has, or for which `same` is false, in order of keys.
pub(in crate::image) fn merge<'a, K: Ord, V>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = Change<&'a K, &'a V>> {
    merge_sorted(before.iter(), after.iter(), move |a, b| same(a, b))
}

/// [`merge`] of maps whose shared memory is passed over.
pub(super) fn merge_apart<'a, K: Ord, V>(
    before: &'a OrderedMap<K, V>,
    after: &'a OrderedMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = Change<&'a K, &'a V>> {
    let apart = (before.apart(after), after.apart(before));
    merge_sorted(apart.0, apart.1, move |a, b| same(a, b))
}

/// The entries that only one side has, or for which `same` is false. Both sides ascend.
pub(in crate::image) fn merge_sorted<K: Ord, V>(
    before: impl Iterator<Item = (K, V)>,
    after: impl Iterator<Item = (K, V)>,
    same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = Change<K, V>> {
    let mut before = before.peekable();
    let mut after = after.peekable();
    std::iter::from_fn(move || {
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let (key, old, new) = match order {
                Ordering::Less => before.next().map(|(key, old)| (key, Some(old), None))?,
                Ordering::Greater => after.next().map(|(key, new)| (key, None, Some(new)))?,
                Ordering::Equal => {
                    let ((key, old), (_, new)) = (before.next()?, after.next()?);
                    if same(&old, &new) {
                        continue;
                    }
                    (key, Some(old), Some(new))
                }
            };
            return Some(Change {
                key,
                before: old,
                after: new,
            });
        }
    })
}
