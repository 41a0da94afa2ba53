//! Client quotas (KIP-546).

use std::collections::BTreeMap;

/// Whom a quota is for: entity type (`user`, `client-id`, `ip`) -> name; `None` is the default
/// entity of that type.
pub type QuotaEntity = BTreeMap<String, Option<String>>;

/// Quota key -> value.
pub type QuotaValues = BTreeMap<String, f64>;
