//! Controllers that have registered themselves (KIP-919).

use std::collections::BTreeMap;

use uuid::Uuid;

use super::brokers::{Endpoint, FeatureRange};
use crate::types::NodeId;

/// A controller as its registration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its `node.id`.
    pub id: NodeId,
    /// The id of the process.
    pub incarnation: Uuid,
    /// Whether it could take part in a migration from ZooKeeper (3.x).
    pub zk_migration_ready: bool,
    /// In the order of the record.
    pub endpoints: Vec<Endpoint>,
    /// By feature name.
    pub features: BTreeMap<String, FeatureRange>,
}
