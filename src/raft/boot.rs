//! What a node starts with: its configuration, what its disk held, and the role that follows.

use crate::types::{Epoch, Instant, NodeId, Offset, OffsetAndEpoch, ReplicaKey};

use super::follower::Following;
use super::haste::Doubt;
use super::joining::Joining;
use super::log::Log;
use super::output::{ControlRecord, QuorumState, VoterNode};
use super::roles::{Candidate, Endpoint, Follower, Resigned, Role, Unattached};
use super::voters::Voters;

/// What does not change while the node runs.
#[derive(Clone, Debug)]
pub struct RaftConfig {
    /// This node: its id and the id of its metadata log directory.
    pub node: ReplicaKey,
    /// Requests that name another cluster are refused.
    pub cluster_id: String,
    /// Where this node is reached, as (listener, host, port), one for each controller listener.
    pub endpoints: Vec<Endpoint>,
    /// `controller.quorum.election.timeout.ms`: elections are tried after a random time between
    /// this and its double.
    pub election_timeout_ms: u64,
    /// `controller.quorum.fetch.timeout.ms`: a leader that was silent for this long is lost.
    pub fetch_timeout_ms: u64,
    /// `controller.quorum.election.backoff.max.ms`.
    pub election_backoff_ms_max: u64,
    /// `controller.quorum.voters`, with nil directories; used while no voter set is on disk.
    pub static_voters: Vec<VoterNode>,
    /// `controller.quorum.bootstrap.servers` as (host, port): whom to ask for the leader.
    pub bootstrap: Vec<(String, u16)>,
    /// `controller.quorum.request.timeout.ms`: how long an answer of another node may take.
    pub request_timeout_ms: u64,
    /// `controller.quorum.retry.backoff.ms`: how long a node that failed is left alone, at first.
    pub retry_backoff_ms: u64,
    /// `controller.quorum.fetch.max.bytes`.
    pub fetch_bytes_max: u32,
    /// `controller.quorum.fetch.snapshot.max.bytes`.
    pub snapshot_bytes_max: u32,
    /// `controller.quorum.auto.join.enable`: an observer makes itself a voter.
    pub auto_join: bool,
    /// The kraft.version range that this program supports, both inclusive.
    pub kraft_versions: (u16, u16),
    /// Seed of the election timers.
    pub seed: u64,
}

/// What the disk held, after repair of a torn tail.
#[derive(Clone, Debug, Default)]
pub struct Boot {
    /// `quorum-state`, if there is one.
    pub quorum_state: Option<QuorumState>,
    /// First offset of the log.
    pub log_start: Offset,
    /// End of the log, exclusive.
    pub log_end: Offset,
    /// Each epoch of the log with its first offset, ascending.
    pub epochs: Vec<(Epoch, Offset)>,
    /// Complete snapshots. The bootstrap snapshot 0-0 may be among them and is not served.
    pub snapshots: Vec<OffsetAndEpoch>,
    /// Control records of the newest snapshot (the bootstrap one at offset -1) and of the log
    /// behind it, ascending.
    pub control: Vec<(Offset, ControlRecord)>,
    /// What was once known to be committed. A log that ends below has lost committed records:
    /// such a node neither votes nor tries to lead, so that they survive where they still are.
    pub commit: Option<OffsetAndEpoch>,
}

/// How a role is chosen from the election state on disk.
pub(super) struct Start<'a> {
    pub(super) own: ReplicaKey,
    pub(super) log: &'a Log,
    pub(super) voters: &'a Voters,
    /// Whether this node may lead.
    pub(super) eligible: bool,
    /// When an election is tried, if this node may.
    pub(super) election: Instant,
    /// When a former leader looks for the next one.
    pub(super) resigned: Instant,
    /// When the leader on disk counts as lost, if this node may try.
    pub(super) fetch: Instant,
}

impl Start<'_> {
    /// The epoch and role at start (KIP-595, "Initialization").
    ///
    /// A leader comes back as resigned and never leads the same epoch again: records that it gave
    /// to observers but lost in the crash would otherwise be replaced under the same epoch, and
    /// nobody could tell the difference.
    pub(super) fn role(&self, disk: QuorumState) -> (Epoch, Role) {
        let unattached = |leader: Option<NodeId>, voted: Option<ReplicaKey>| {
            Role::Unattached(Unattached {
                leader,
                voted,
                deadline: self.election,
            })
        };
        if disk.epoch < self.log.last_epoch() {
            tracing::warn!(
                quorum_state = disk.epoch.0,
                log = self.log.last_epoch().0,
                "the log's epoch is newer than the one in quorum-state"
            );
            return (self.log.last_epoch(), unattached(None, None));
        }
        let epoch = disk.epoch;
        if disk.leader == Some(self.own.id) {
            let deadline = self.resigned;
            let role = Resigned {
                deadline,
                preferred: Vec::new(),
                told: Vec::new(),
                unreachable: Vec::new(),
            };
            return (epoch, Role::Resigned(role));
        }
        // An epoch that has records had a leader; if that was this node, see above. Who may not
        // lead gives nobody its vote, itself included.
        let open = disk.epoch > self.log.last_epoch() && self.eligible;
        if open && disk.voted.is_some_and(|voted| voted.names(self.own)) {
            let granted = vec![self.own.id];
            let deadline = self.election;
            let role = Candidate {
                granted,
                refused: Vec::new(),
                gone: Vec::new(),
                deadline,
            };
            return (epoch, Role::Candidate(role));
        }
        let Some(leader) = disk.leader else {
            return (epoch, unattached(None, disk.voted));
        };
        let endpoints = self.voters.endpoints(leader).to_vec();
        if endpoints.is_empty() {
            return (epoch, unattached(Some(leader), disk.voted));
        }
        let role = Role::Follower(Follower {
            leader,
            endpoints,
            voted: disk.voted,
            deadline: self.fetch,
            following: Following::default(),
            joining: Joining::default(),
            doubt: Doubt::default(),
        });
        (epoch, role)
    }
}
