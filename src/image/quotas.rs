//! Client quotas (KIP-546).

use std::collections::BTreeMap;

use super::ordered::OrderedMap;

/// Whom a quota is for: entity type (`user`, `client-id`, `ip`) -> name; `None` is the default
/// entity of that type.
pub type QuotaEntity = BTreeMap<String, Option<String>>;

/// Quota key -> value.
pub type QuotaValues = BTreeMap<String, f64>;

/// What an entity without quotas has.
pub(super) const NO_VALUES: &QuotaValues = &BTreeMap::new();

/// True when both are the same number, bit by bit: a value that is not a number equals itself
/// here, so that an image always does.
pub(super) fn same_value(a: &f64, b: &f64) -> bool {
    a.to_bits() == b.to_bits()
}

/// [`same_value`] for every key.
pub(super) fn same_values(a: &QuotaValues, b: &QuotaValues) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|((key, value), (other, wanted))| key == other && same_value(value, wanted))
}

/// [`same_values`] for every entity.
pub(super) fn same(
    a: &OrderedMap<QuotaEntity, QuotaValues>,
    b: &OrderedMap<QuotaEntity, QuotaValues>,
) -> bool {
    let same = |((whom, values), (other, wanted))| whom == other && same_values(values, wanted);
    a.is_same(b) || (a.len() == b.len() && a.iter().zip(b.iter()).all(same))
}
