//! One node: what outlives its processes, and one life of a process, which drives the core as
//! `kraftd::node` does.

use std::collections::{BTreeMap, VecDeque};

use kraftd::raft::{Output, Peer, PeerName, Raft, RaftConfig, VoterNode};
use kraftd::types::{Epoch, Instant, NodeId, Offset, OffsetAndEpoch, ReplicaKey, Token, Uuid};

use crate::codec;
use crate::config::{Config, Setup};
use crate::disk::Disk;
use crate::machine::Machine;
use crate::world::Event;

pub(crate) const CLUSTER: &str = "simulated";
pub(crate) const LISTENER: &str = "CONTROLLER";
pub(crate) const PORT: u16 = 9_093;

pub(crate) fn key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        directory: Uuid::from_u128(1_000 + u128::from(id.unsigned_abs())),
    }
}

/// Values that a client waits for.
pub(crate) struct Pending {
    pub epoch: Epoch,
    pub first: Offset,
    pub values: Vec<u64>,
}

/// A machine with a disk.
pub(crate) struct Host {
    pub key: ReplicaKey,
    pub setup: Setup,
    pub disk: Disk,
    /// An older copy of the disk.
    pub backup: Option<Disk>,
    pub node: Option<Node>,
    pub lives: u64,
    /// The machine is on: what reaches no process is refused, not lost.
    pub powered: bool,
    /// It is not started again for now.
    pub held: bool,
    /// What reached the process while it got no time; `None` while it gets some.
    pub paused: Option<Vec<Event>>,
    /// Connections that its process wants to have open.
    pub keep: Vec<Peer>,
    /// How long it waits before it connects again.
    pub backoff: BTreeMap<PeerName, u64>,
    /// It has another name than the voter set says at first.
    pub renamed: bool,
    /// Its log lost committed records and has to get back to here.
    pub rotten: Option<Offset>,
}

impl Host {
    pub(crate) fn new(at: usize, config: &Config) -> Self {
        let mut disk = Disk::default();
        if config.kraft_version > 0 && at < config.voters {
            disk.bootstrap = Some(voters(config));
        }
        Self {
            key: key(at as i32 + 1),
            setup: config.setups[at],
            disk,
            backup: None,
            node: None,
            lives: 0,
            powered: true,
            held: false,
            paused: None,
            keep: Vec::new(),
            backoff: BTreeMap::new(),
            renamed: false,
            rotten: None,
        }
    }

    /// Its process, if that is there.
    pub(crate) fn is_up(&self) -> bool {
        self.node.is_some()
    }
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
    /// What is committed, applied.
    pub machine: Machine,
    /// The wake-up that is arranged: asked for, and when it comes.
    pub wake: Option<(Instant, u64)>,
    /// When it was woken last, and how often in that moment.
    pub idle_wakes: (u64, u64),
    /// A snapshot is being written.
    pub snapshotting: bool,
    /// It was asked to stop.
    pub stopping: bool,
    /// Its clock: what it says at 0, and how much too fast it is, in 1,000.
    clock: (u64, i64),
}

/// The first voters of every world.
pub(crate) fn voters(config: &Config) -> Vec<VoterNode> {
    let voter = |at: usize| {
        let key = key(at as i32 + 1);
        VoterNode {
            key: match config.kraft_version {
                0 => ReplicaKey {
                    directory: Uuid::nil(),
                    ..key
                },
                _ => key,
            },
            endpoints: endpoints(key.id),
            kraft_versions: (0, 1),
        }
    };
    (0..config.voters).map(voter).collect()
}

pub(crate) fn endpoints(id: NodeId) -> Vec<(String, String, u16)> {
    vec![(LISTENER.to_owned(), format!("node{id}"), PORT)]
}

/// Which node a name leads to. A node may have been called otherwise before.
pub(crate) fn resolve(host: &str) -> Option<usize> {
    let id = host
        .strip_prefix("node")
        .or_else(|| host.strip_prefix("other"))?;
    id.parse::<usize>().ok()?.checked_sub(1)
}

fn bootstrap(config: &Config) -> Vec<(String, u16)> {
    let lost = config.lost_name.then(|| ("nowhere".to_owned(), PORT));
    let voters = (1..=config.voters).map(|id| (format!("node{id}"), PORT));
    match config.kraft_version {
        0 => Vec::new(),
        _ => lost.into_iter().chain(voters).collect(),
    }
}

impl Node {
    pub(crate) fn start(host: &Host, now: u64, seed: u64, config: &Config) -> Self {
        let timers = host.setup.timers;
        let clock = (1 + seed % 5_000, host.setup.drift);
        let raft_config = RaftConfig {
            node: host.key,
            cluster_id: CLUSTER.to_owned(),
            endpoints: match host.renamed {
                false => endpoints(host.key.id),
                true => vec![(LISTENER.to_owned(), format!("other{}", host.key.id), PORT)],
            },
            election_timeout_ms: timers.election_ms,
            fetch_timeout_ms: timers.fetch_ms,
            election_backoff_ms_max: timers.backoff_ms_max,
            static_voters: match config.kraft_version {
                0 => voters(config),
                _ => Vec::new(),
            },
            bootstrap: bootstrap(config),
            request_timeout_ms: timers.request_ms,
            retry_backoff_ms: 20,
            fetch_bytes_max: config.fetch_bytes,
            snapshot_bytes_max: config.piece_bytes,
            auto_join: host.setup.auto_join,
            kraft_versions: (0, 1),
            seed,
        };
        let machine = match host.disk.newest() {
            Some((id, snapshot)) => {
                load(config, id, &snapshot.bytes)
                    .expect("what is durable is whole")
                    .0
            }
            None => Machine::new(config.machine, host.disk.bootstrap.as_ref()),
        };
        let at = local(clock, now);
        Self {
            life: host.lives,
            raft: Raft::new(raft_config, host.disk.boot(), Instant(at)),
            carried: BTreeMap::new(),
            leading: None,
            pending: VecDeque::new(),
            machine,
            wake: None,
            idle_wakes: (0, 0),
            snapshotting: false,
            stopping: false,
            clock,
        }
    }

    /// What its clock says.
    pub(crate) fn local(&self, now: u64) -> u64 {
        local(self.clock, now)
    }

    /// When its clock says `at`, or a little later.
    pub(crate) fn global(&self, at: u64) -> u64 {
        let (base, drift) = self.clock;
        let rate = (1_000 + drift) as u64;
        (at.saturating_sub(base) * 1_000).div_ceil(rate)
    }

    pub(crate) fn leads(&self) -> bool {
        self.raft.role_name() == "leader"
    }
}

fn local((base, drift): (u64, i64), now: u64) -> u64 {
    base + now * (1_000 + drift) as u64 / 1_000
}

/// The image of a snapshot file with its control records. `None` if the file is damaged.
pub(crate) fn load(
    config: &Config,
    id: OffsetAndEpoch,
    bytes: &[u8],
) -> Option<(Machine, Vec<kraftd::raft::ControlRecord>)> {
    let (control, state) = codec::open_snapshot(bytes)?;
    let machine = Machine::load(config.machine, id.offset, &control, &state)?;
    Some((machine, control))
}
