//! Configurations: what keys exist, what their values may be, who sets them.
//!
//! One resource is changed as a whole: the operations of a request are applied to what is set
//! now, and the merged map must be valid. Topics, groups and client metrics subscriptions are
//! validated here; values of brokers are not: a broker checks them before it forwards a request,
//! and only it knows all of its keys.

mod alter;
pub mod client_metrics;
pub mod definition;
pub mod describe;
#[cfg(test)]
mod describe_tests;
mod dynamic;
pub mod group;
pub mod incremental;
pub(super) mod legacy;
pub mod loggers;
pub mod server_keys;
#[cfg(test)]
mod tests;
pub mod topic;

pub use self::dynamic::{NOBODY_CONNECTS, Unusable, min_isr_below_one, number, unusable};

/// A key's new value; `None` deletes it.
pub(super) type ConfigChange = (String, Option<String>);
