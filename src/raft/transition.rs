//! From one role to the next: the one place where roles change, and what each takes over from the
//! one before (KIP-595, KIP-996).

use crate::types::{Epoch, Instant, NodeId, ReplicaKey};

use super::change::Change;
use super::contact::Contact;
use super::follower::Following;
use super::haste::{Doubt, HASTE_MS, Haste, PATIENCE_MS};
use super::joining::Joining;
use super::machine::{Raft, Turn};
use super::progress::Progress;
use super::roles::{
    Candidate, Endpoint, Follower, Leader, Prospective, Resigned, Role, Unattached,
};
use super::waiters::Waiters;

/// A change of role.
pub(super) enum Move {
    Unattached {
        epoch: Epoch,
        leader: Option<NodeId>,
    },
    /// Asks for pre-votes after this many milliseconds.
    Prospective {
        wait_ms: u64,
    },
    /// From a follower that lost the connection to its leader, and back again; calm, if there
    /// is no reason to try once more.
    Haste,
    Back {
        calm: bool,
    },
    Candidate,
    Follower {
        epoch: Epoch,
        leader: NodeId,
        endpoints: Vec<Endpoint>,
    },
    Leader {
        granted: Vec<NodeId>,
    },
    /// Gives leadership up; who should lead next.
    Resigned {
        preferred: Vec<ReplicaKey>,
    },
}

impl Raft {
    /// The one place where roles change.
    pub(super) fn transition(&mut self, turn: &mut Turn, to: Move, why: &'static str) {
        if matches!(to, Move::Candidate) && !self.epoch.has_next() {
            return;
        }
        let (from, from_epoch) = (self.role.name(), self.epoch);
        let tried = self.hasty_tries() > 0;
        let (epoch, next) = self.next_role(turn.now.instant, to);
        self.epoch = epoch;
        let before = std::mem::replace(&mut self.role, next);
        // What was asked in the old role, and who failed then, is of no interest.
        self.calls.forget();
        self.quorum_changed = true;
        let was_searching = matches!(before, Role::Prospective(_));
        self.told_before =
            self.is_in_vain(was_searching, from_epoch) || tried && epoch == from_epoch;
        self.log_role((from, from_epoch), why);
        if let Role::Leader(leader) = before {
            self.leave_leadership(*leader, turn);
        }
    }

    /// How often this node asked in vain whether it should lead because a connection was lost.
    fn hasty_tries(&self) -> u32 {
        match &self.role {
            Role::Follower(Follower {
                doubt: Doubt::Lost { tries, .. },
                ..
            }) => *tries,
            Role::Prospective(role) => role.haste.as_ref().map_or(0, |haste| haste.tries),
            _ => 0,
        }
    }

    /// Whether this node searches for a majority in the epoch in which it has found none before.
    fn is_in_vain(&mut self, was_searching: bool, from_epoch: Epoch) -> bool {
        let again = self.in_vain == Some(self.epoch);
        match &self.role {
            Role::Prospective(_) => again,
            Role::Unattached(_) if was_searching && self.epoch == from_epoch => {
                self.in_vain = Some(self.epoch);
                again
            }
            _ => {
                self.in_vain = None;
                false
            }
        }
    }

    /// One line for each change; for tries of the same kind again and again only the first.
    fn log_role(&self, (from, from_epoch): (&str, Epoch), why: &str) {
        let (node, to) = (self.config.node.id, self.role.name());
        let (epoch, leader) = (self.epoch, self.role.leader(node).map(|id| id.0));
        if self.told_before && !matches!(self.role, Role::Leader(_)) {
            tracing::debug!(%node, from, to, %from_epoch, %epoch, leader, why, "role");
        } else {
            tracing::info!(%node, from, to, %from_epoch, %epoch, leader, why, "role");
        }
    }

    /// Where a move leads: its epoch, and the role with what it takes over from the one before.
    fn next_role(&mut self, now: Instant, to: Move) -> (Epoch, Role) {
        let own = self.config.node;
        match to {
            Move::Unattached { epoch, leader } => {
                let deadline = self.unattached_deadline(now);
                let voted = self.vote_in(epoch);
                let role = Unattached {
                    leader,
                    voted,
                    deadline,
                };
                (epoch, Role::Unattached(role))
            }
            Move::Prospective { wait_ms } => {
                let mut role = self.prospective(now);
                role.ask_at = (wait_ms > 0).then(|| now.plus_ms(wait_ms));
                (self.epoch, Role::Prospective(role))
            }
            Move::Haste => (self.epoch, Role::Prospective(self.hasty(now))),
            Move::Back { calm } => {
                let haste = match &self.role {
                    Role::Prospective(role) => role.haste.as_ref(),
                    _ => None,
                };
                let haste = haste.expect("only a hasty election is given up so");
                let mut role = Self::follower_again(haste, self.calls.last(), now);
                if calm {
                    role.doubt = Doubt::None;
                }
                (self.epoch, Role::Follower(role))
            }
            Move::Candidate => {
                let role = Candidate {
                    granted: vec![own.id],
                    refused: Vec::new(),
                    gone: self.lost_leader(),
                    deadline: self.election_deadline(now),
                };
                (self.epoch.next(), Role::Candidate(role))
            }
            Move::Follower {
                epoch,
                leader,
                endpoints,
            } => {
                self.lost_elections = 0;
                let role = self.new_follower(epoch, leader, endpoints, now);
                (epoch, Role::Follower(role))
            }
            Move::Leader { granted } => {
                self.lost_elections = 0;
                (
                    self.epoch,
                    Role::Leader(Box::new(self.new_leader(granted, now))),
                )
            }
            Move::Resigned { preferred } => {
                let deadline = self.election_deadline(now);
                let role = Resigned {
                    preferred,
                    told: Vec::new(),
                    unreachable: Vec::new(),
                    deadline: self.resigned_deadline(deadline, now),
                };
                (self.epoch, Role::Resigned(role))
            }
        }
    }

    fn new_follower(
        &self,
        epoch: Epoch,
        leader: NodeId,
        endpoints: Vec<Endpoint>,
        now: Instant,
    ) -> Follower {
        Follower {
            leader,
            endpoints,
            voted: self.vote_in(epoch),
            deadline: self.fetch_deadline(now),
            following: Following::default(),
            joining: Joining::default(),
            doubt: Doubt::default(),
        }
    }

    /// The leader whose loss made this node try: if votes are split, its is not waited for.
    fn lost_leader(&self) -> Vec<NodeId> {
        let own = self.config.node.id;
        let lost = match &self.role {
            Role::Prospective(role) => role.leader,
            _ => None,
        };
        lost.filter(|id| *id != own).into_iter().collect()
    }

    fn prospective(&mut self, now: Instant) -> Prospective {
        let own = self.config.node;
        let resigned = match &self.role {
            Role::Follower(role) => role.doubt == Doubt::Resigned,
            _ => false,
        };
        Prospective {
            leader: self.role.leader(own.id),
            endpoints: self.role.leader_endpoints().to_vec(),
            voted: self.role.voted(own),
            granted: vec![own.id],
            refused: Vec::new(),
            gone: Vec::new(),
            ask_at: None,
            tries: 0,
            resigned,
            deadline: self.election_deadline(now),
            haste: None,
        }
    }

    /// From a follower in doubt.
    fn hasty(&mut self, now: Instant) -> Prospective {
        let mut role = self.prospective(now);
        let Role::Follower(back) = &self.role else {
            return role;
        };
        let tries = match back.doubt {
            Doubt::Lost { tries, .. } => tries,
            Doubt::None | Doubt::Resigned => 0,
        };
        role.deadline = now.plus_ms(HASTE_MS);
        role.haste = Some(Box::new(Haste {
            back: back.clone(),
            tries,
            refused: false,
            patience: Some(now.plus_ms(PATIENCE_MS)),
        }));
        role
    }

    fn new_leader(&self, granted: Vec<NodeId>, now: Instant) -> Leader {
        let mut contact = Contact::default();
        let own = self.config.node;
        let others = self.voters.others(own.id).map(|node| node.key.id);
        let counts = self.voters.find(own).is_some();
        contact.set_voters(others, counts, now, self.config.fetch_timeout_ms);
        Leader {
            granted,
            epoch_start: None,
            announced: false,
            progress: Progress::default(),
            waiters: Waiters::default(),
            contact,
            change: Change::default(),
        }
    }

    /// When a node that leads no more looks for the next leader: as an election, or, if it is no
    /// voter any more, in time to hear of the next one that nobody tells it. Where no epoch
    /// follows there is nothing to look for.
    pub(super) fn resigned_deadline(&self, election: Instant, now: Instant) -> Instant {
        match election {
            _ if !self.epoch.has_next() => Instant::NEVER,
            Instant::NEVER if !self.is_stopping() => {
                now.plus_ms(2 * self.config.election_timeout_ms)
            }
            deadline => deadline,
        }
    }

    /// A running election timer is kept. One that ran out in an election that could not be won is
    /// wound up anew, else the next try would follow at once.
    fn unattached_deadline(&mut self, now: Instant) -> Instant {
        match (self.role.election_deadline(), &self.role) {
            _ if !self.eligible() => Instant::NEVER,
            (Some(deadline), Role::Resigned(_)) => deadline,
            (Some(deadline), _) if deadline > now => deadline,
            (Some(_) | None, _) => self.election_deadline(now),
        }
    }

    /// The vote given in `epoch`: none yet in a new one.
    fn vote_in(&self, epoch: Epoch) -> Option<ReplicaKey> {
        if epoch == self.epoch {
            self.role.voted(self.config.node)
        } else {
            None
        }
    }
}
