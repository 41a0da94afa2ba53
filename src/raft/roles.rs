//! The roles of a node, each with the data that exists only in it (KIP-595, KIP-996).

use crate::types::{Instant, NodeId, Offset, ReplicaKey};

use super::change::Change;
use super::contact::Contact;
use super::follower::Following;
use super::haste::{Doubt, Haste};
use super::joining::Joining;
use super::progress::Progress;
use super::vote::Stance;
use super::waiters::Waiters;

/// Listener name, host and port.
pub(super) type Endpoint = (String, String, u16);

/// What this node is in the current epoch.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// Has no leader it could reach; holds the vote of the epoch.
    Unattached(Unattached),
    /// Asks whether an election could be won, without consequences.
    Prospective(Prospective),
    /// Voted for itself and asks for votes.
    Candidate(Candidate),
    /// Knows the leader of the epoch.
    Follower(Follower),
    /// Leads the epoch.
    Leader(Box<Leader>),
    /// Led the epoch, in this process or in an earlier one, and does not any more.
    Resigned(Resigned),
}

#[derive(Clone, Debug)]
pub(super) struct Unattached {
    pub(super) leader: Option<NodeId>,
    pub(super) voted: Option<ReplicaKey>,
    /// When to try an election; never for an observer.
    pub(super) deadline: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Prospective {
    /// Who led the epoch, and where: the way back if the election cannot be won.
    pub(super) leader: Option<NodeId>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) voted: Option<ReplicaKey>,
    /// Whose pre-vote this node has; its own from the start.
    pub(super) granted: Vec<NodeId>,
    /// Who said no.
    pub(super) refused: Vec<NodeId>,
    /// Where nobody is.
    pub(super) gone: Vec<NodeId>,
    /// When the others are asked, if not already: not at once after an election was lost.
    pub(super) ask_at: Option<Instant>,
    /// How often they were asked in vain.
    pub(super) tries: u32,
    /// The leader itself said that it leads no more.
    pub(super) resigned: bool,
    pub(super) deadline: Instant,
    /// Set if only the connection to the leader is lost.
    pub(super) haste: Option<Box<Haste>>,
}

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Whose vote this node has; its own counts once it is durable.
    pub(super) granted: Vec<NodeId>,
    /// Who said no.
    pub(super) refused: Vec<NodeId>,
    /// Where nobody is.
    pub(super) gone: Vec<NodeId>,
    pub(super) deadline: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) leader: NodeId,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) voted: Option<ReplicaKey>,
    /// When the leader counts as lost.
    pub(super) deadline: Instant,
    /// What is under way to become like the leader.
    pub(super) following: Following,
    /// Telling the leader about this node.
    pub(super) joining: Joining,
    /// Why the leader may be gone although its time is not over.
    pub(super) doubt: Doubt,
}

#[derive(Clone, Debug)]
pub(super) struct Leader {
    /// Whose votes made it leader.
    pub(super) granted: Vec<NodeId>,
    /// First offset of the epoch, once its control batch is in the log.
    pub(super) epoch_start: Option<Offset>,
    /// The state machine was told. Invariant: the control batch of the epoch is committed.
    pub(super) announced: bool,
    pub(super) progress: Progress,
    pub(super) waiters: Waiters,
    /// How it stands with each voter.
    pub(super) contact: Contact,
    /// A change of the voters that is under way.
    pub(super) change: Change,
}

#[derive(Clone, Debug)]
pub(super) struct Resigned {
    pub(super) deadline: Instant,
    /// Who should lead next, most caught up first; empty if all should wait before they try.
    pub(super) preferred: Vec<ReplicaKey>,
    /// Who knows of it.
    pub(super) told: Vec<NodeId>,
    /// Who cannot be told.
    pub(super) unreachable: Vec<NodeId>,
}

impl Follower {
    /// The leader gave an answer. One that resigned may have sent it before: it leads no more.
    pub(super) fn heard(&mut self, deadline: Instant) {
        self.following.fetched = true;
        if self.doubt != Doubt::Resigned {
            self.deadline = deadline;
        }
    }
}

impl Role {
    /// The name in metrics and traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Unattached(Unattached { voted: None, .. }) => "unattached",
            Self::Unattached(_) => "unattached-voted",
            Self::Prospective(Prospective { voted: None, .. }) => "prospective",
            Self::Prospective(_) => "prospective-voted",
            Self::Candidate(_) => "candidate",
            Self::Follower(_) => "follower",
            Self::Leader(_) => "leader",
            Self::Resigned(_) => "resigned",
        }
    }

    /// The leader of the epoch as far as this node, `own`, knows.
    pub(super) fn leader(&self, own: NodeId) -> Option<NodeId> {
        match self {
            Self::Unattached(role) => role.leader,
            Self::Prospective(role) => role.leader,
            Self::Candidate(_) => None,
            Self::Follower(role) => Some(role.leader),
            Self::Leader(_) | Self::Resigned(_) => Some(own),
        }
    }

    /// Where another node that leads was said to listen; empty if that is not known.
    pub(super) fn leader_endpoints(&self) -> &[Endpoint] {
        match self {
            Self::Prospective(role) => &role.endpoints,
            Self::Follower(role) => &role.endpoints,
            Self::Unattached(_) | Self::Candidate(_) | Self::Leader(_) | Self::Resigned(_) => &[],
        }
    }

    /// The vote given in the epoch. A leader's is spent on itself and not kept.
    pub(super) fn voted(&self, own: ReplicaKey) -> Option<ReplicaKey> {
        match self {
            Self::Unattached(role) => role.voted,
            Self::Prospective(role) => role.voted,
            Self::Candidate(_) => Some(own),
            Self::Follower(role) => role.voted,
            Self::Leader(_) | Self::Resigned(_) => None,
        }
    }

    /// When time alone changes the role, or answers a parked fetch.
    pub(super) fn deadline(&self) -> Instant {
        match self {
            Self::Unattached(role) => role.deadline,
            Self::Prospective(role) => role.deadline.min(role.due()),
            Self::Candidate(role) => role.deadline,
            Self::Follower(role) => role
                .deadline
                .min(role.doubt.ask_at())
                .min(role.joining.deadline()),
            Self::Leader(role) => role
                .waiters
                .deadline()
                .min(role.contact.deadline())
                .min(role.change.deadline()),
            Self::Resigned(role) => role.deadline,
        }
    }

    /// The election timer, where there is one: a higher epoch does not wind it up anew, else a
    /// stream of hopeless candidates could keep this node from ever trying.
    pub(super) fn election_deadline(&self) -> Option<Instant> {
        match self {
            Self::Unattached(role) => Some(role.deadline),
            Self::Prospective(role) if role.haste.is_some() => None,
            Self::Prospective(role) => Some(role.deadline),
            Self::Candidate(role) => Some(role.deadline),
            Self::Resigned(role) => Some(role.deadline),
            Self::Follower(_) | Self::Leader(_) => None,
        }
    }

    /// What a vote depends on.
    pub(super) fn stance(&self) -> Stance {
        match self {
            Self::Unattached(Unattached { leader, voted, .. })
            | Self::Prospective(Prospective { leader, voted, .. }) => Stance::Free {
                voted: *voted,
                leader: *leader,
            },
            Self::Candidate(_) | Self::Resigned(_) => Stance::Spent,
            Self::Follower(role) => Stance::Follower {
                hears: role.following.fetched && role.doubt.hears(),
            },
            Self::Leader(_) => Stance::Leader,
        }
    }
}
