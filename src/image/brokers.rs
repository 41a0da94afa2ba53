//! Brokers and their registrations.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::types::{BrokerEpoch, NodeId, ids};

/// Sorts directory ids as the reference does: by the two halves as signed numbers. The order is
/// visible in snapshots.
pub(super) fn sort_directories(directories: &mut [Uuid]) {
    directories.sort_by_key(|id| {
        let (high, low) = id.as_u64_pair();
        (high.cast_signed(), low.cast_signed())
    });
}

/// A place where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name.
    pub name: String,
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: u16,
    /// Kafka's number of the security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of one feature that a node supports, both inclusive.
pub type FeatureRange = (i16, i16);

/// A broker as its registration and the changes after it say (KIP-631, KIP-858).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its `node.id`.
    pub id: NodeId,
    /// The epoch of this registration.
    pub epoch: BrokerEpoch,
    /// The id of the process; a restarted broker has another.
    pub incarnation: Uuid,
    /// In the order of the record.
    pub endpoints: Vec<Endpoint>,
    /// By feature name.
    pub features: BTreeMap<String, FeatureRange>,
    /// `None` when the broker has no rack.
    pub rack: Option<String>,
    /// A fenced broker leads nothing and is in no ISR.
    pub fenced: bool,
    /// Set from the request to shut down until the next registration.
    pub in_controlled_shutdown: bool,
    /// True for a ZooKeeper broker in migration (3.4 to 3.9).
    pub is_migrating: bool,
    /// The ids of its online log directories, in the reference's order; empty when its release
    /// has none.
    pub directories: Vec<Uuid>,
    /// The cordoned ones of its log directories (KIP-1066), as written; `None` when it never said.
    pub cordoned: Option<Vec<Uuid>>,
}

impl Broker {
    /// True when the broker may be in an ISR and may lead: neither fenced nor shutting down.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// True when a replica in `directory` of this broker can be online. A replica without a known
    /// directory (unassigned, migrating) is taken to be; so is every replica of a broker whose
    /// registration names no directories.
    #[must_use]
    pub fn has_online_dir(&self, directory: Uuid) -> bool {
        if directory == ids::DIR_UNASSIGNED || directory == ids::DIR_MIGRATING {
            return true;
        }
        if directory == ids::DIR_LOST {
            return false;
        }
        self.directories.is_empty() || self.directories.contains(&directory)
    }

    /// True when the broker can take new replicas: not every directory of it is cordoned
    /// (KIP-1066). A broker that named no directories, or never said which are cordoned, can.
    #[must_use]
    pub fn has_uncordoned_dir(&self) -> bool {
        let Some(cordoned) = &self.cordoned else {
            return true;
        };
        let mut directories = self.directories.iter();
        self.directories.is_empty() || directories.any(|id| !cordoned.contains(id))
    }
}
