//! The node under test: the core, driven as `kraftd::node` drives it, with a state machine that
//! only remembers what its clients want to be told.

use std::collections::{BTreeMap, VecDeque};

use kraftd::raft::{Output, Raft, RaftConfig, VoterNode};
use kraftd::types::{Epoch, Instant, Offset, ReplicaKey, Token, Uuid};

use crate::config::Config;
use crate::disk::Disk;
use crate::observer::{CLUSTER, key};

/// Values that a client waits for.
pub(crate) struct Pending {
    pub epoch: Epoch,
    pub first: Offset,
    pub values: Vec<u64>,
}

/// One life of the process.
pub(crate) struct Node {
    pub life: u64,
    pub raft: Raft,
    /// What waits for a write.
    pub carried: BTreeMap<Token, Vec<Output>>,
    /// The epoch in which it may propose, as the core said.
    pub leading: Option<Epoch>,
    pub pending: VecDeque<Pending>,
    /// The wake-up that is arranged: asked for, and when it comes.
    pub wake: Option<(Instant, u64)>,
    /// A snapshot is being written.
    pub snapshotting: bool,
    /// It was asked to stop.
    pub stopping: bool,
}

/// The voter set of every world: node 1 alone.
pub(crate) fn voters(config: &Config) -> Vec<VoterNode> {
    let key = match config.kraft_version {
        0 => ReplicaKey {
            directory: Uuid::nil(),
            ..key(1)
        },
        _ => key(1),
    };
    vec![VoterNode {
        key,
        endpoints: endpoints(),
        kraft_versions: (0, 1),
    }]
}

fn endpoints() -> Vec<(String, String, u16)> {
    vec![("CONTROLLER".to_owned(), "node1".to_owned(), 9_093)]
}

impl Node {
    pub(crate) fn start(life: u64, now: u64, seed: u64, config: &Config, disk: &Disk) -> Self {
        let raft_config = RaftConfig {
            node: key(1),
            cluster_id: CLUSTER.to_owned(),
            endpoints: endpoints(),
            election_timeout_ms: 1_000,
            fetch_timeout_ms: 2_000,
            election_backoff_ms_max: 1_000,
            static_voters: match config.kraft_version {
                0 => voters(config),
                _ => Vec::new(),
            },
            bootstrap: Vec::new(),
            request_timeout_ms: 2_000,
            retry_backoff_ms: 20,
            fetch_bytes_max: 1 << 20,
            snapshot_bytes_max: 1 << 20,
            auto_join: false,
            kraft_versions: (0, 1),
            seed,
        };
        Self {
            life,
            raft: Raft::new(raft_config, disk.boot(), Instant(now)),
            carried: BTreeMap::new(),
            leading: None,
            pending: VecDeque::new(),
            wake: None,
            snapshotting: false,
            stopping: false,
        }
    }
}
