//! What others may know of the core: plain reads.

use crate::types::{Epoch, NodeId, Offset, OffsetAndEpoch};

use super::check::Facts;
use super::machine::Raft;
use super::output::VoterNode;
use super::roles::Role;

impl Raft {
    /// The role as metrics name it: `leader`, `candidate`, `follower`, `observer`, `unattached`,
    /// `unattached-voted`, `prospective`, `prospective-voted`, `resigned`.
    #[must_use]
    pub fn role_name(&self) -> &'static str {
        match &self.role {
            Role::Follower(_) if self.voters.find(self.config.node).is_none() => "observer",
            role => role.name(),
        }
    }

    /// The current epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The leader of the epoch if known; this node itself also after it resigned.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.role.leader(self.config.node.id)
    }

    /// Whether this node leads the epoch, with or without what is committed before known.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// The epoch that this node leads with everything before its first own record committed:
    /// only then may it propose.
    #[must_use]
    pub fn active_epoch(&self) -> Option<Epoch> {
        match &self.role {
            Role::Leader(leader) if leader.announced => Some(self.epoch),
            Role::Leader(_)
            | Role::Unattached(_)
            | Role::Prospective(_)
            | Role::Candidate(_)
            | Role::Follower(_)
            | Role::Resigned(_) => None,
        }
    }

    /// Everything below is committed, exclusive; `None` while unknown.
    #[must_use]
    pub fn high_watermark(&self) -> Option<Offset> {
        self.commit
    }

    /// First offset of the log.
    #[must_use]
    pub fn log_start(&self) -> Offset {
        self.log.start
    }

    /// End of the log, exclusive, with what is still on its way to the disk.
    #[must_use]
    pub fn log_end(&self) -> Offset {
        self.log.end
    }

    /// Epoch of the log's last record.
    #[must_use]
    pub fn log_epoch(&self) -> Epoch {
        self.log.last_epoch()
    }

    /// The epoch of the record at `offset`; of the newest snapshot if that lies behind it.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> Epoch {
        self.log
            .epochs
            .at(offset)
            .unwrap_or_else(|| self.log.snapshot_epoch())
    }

    /// The newest snapshot that is offered to replicas, if there is one.
    #[must_use]
    pub fn newest_snapshot(&self) -> Option<OffsetAndEpoch> {
        self.log.newest_snapshot()
    }

    /// The voter set as of the end of the log.
    #[must_use]
    pub fn voters(&self) -> &[VoterNode] {
        self.voters.nodes()
    }

    /// The finalized kraft.version as of the end of the log.
    #[must_use]
    pub fn kraft_version(&self) -> u16 {
        self.voters.kraft_version()
    }

    /// The voter set as of `end`, exclusive; not below the newest snapshot this node began with.
    #[must_use]
    pub fn voters_at(&self, end: Offset) -> &[VoterNode] {
        self.voters.nodes_at(end)
    }

    /// The finalized kraft.version as of `end`, exclusive; see [`Self::voters_at`].
    #[must_use]
    pub fn kraft_version_at(&self, end: Offset) -> u16 {
        self.voters.kraft_version_at(end)
    }

    /// What the laws are about.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            epoch: self.epoch,
            start: self.log.start,
            snapshot: self.log.newest_snapshot().map(|id| id.offset),
            commit: self.commit,
            durable_end: self.log.durable_end,
            end: self.log.end,
            alone: self.voters.is_only(self.config.node) && matches!(self.role, Role::Leader(_)),
            begun: match &self.role {
                Role::Leader(leader) => leader.epoch_start.map(|start| (self.epoch, start)),
                Role::Unattached(_)
                | Role::Prospective(_)
                | Role::Candidate(_)
                | Role::Follower(_)
                | Role::Resigned(_) => None,
            },
        }
    }
}
