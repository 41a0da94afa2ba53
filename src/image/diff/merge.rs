//! Two sorted maps side by side.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Change;

/// The entries that only one map has, or for which `same` is false, in order of keys.
pub(in crate::image) fn merge<'a, K: Ord, V>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = Change<&'a K, &'a V>> {
    merge_sorted(before.iter(), after.iter(), move |a, b| same(a, b))
}

/// [`merge`] by equality, with nothing to do when both are one map.
pub(super) fn merge_shared<'a, K: Ord, V: PartialEq>(
    before: &'a Arc<BTreeMap<K, V>>,
    after: &'a Arc<BTreeMap<K, V>>,
) -> impl Iterator<Item = Change<&'a K, &'a V>> {
    let differ = !Arc::ptr_eq(before, after);
    let maps = differ.then(|| merge(before, after, |a, b| a == b));
    maps.into_iter().flatten()
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
