//! Letting go of leadership, and of the quorum (KIP-595, EndQuorumEpoch).

use crate::types::{Instant, ReplicaKey};

use super::machine::{Raft, Turn};
use super::output::Output;
use super::roles::Role;
use super::transition::Move;

/// How long a leader that was told to stop waits for the next one, milliseconds (as the reference
/// does).
const STOP_PATIENCE_MS: u64 = 5_000;

/// The end of a process, as far as consensus has a part in it.
#[derive(Debug)]
pub(super) struct Stop {
    /// When it ends whatever the others do.
    pub(super) at: Instant,
    /// It led when it was told to stop: somebody else should before it goes.
    led: bool,
    /// The driver knows that it may end.
    told: bool,
}

impl Raft {
    /// The leader is no voter any more: one of those should lead.
    pub(super) fn resign(&mut self, turn: &mut Turn) {
        if let Role::Leader(_) = &self.role {
            let preferred = self.successors();
            let to = Move::Resigned { preferred };
            self.transition(turn, to, "it gives leadership up");
        }
    }

    /// The state machine cannot go on as a leader. Nobody is named to try at once: what it could
    /// not do may fail on the next one too, and elections must not follow each other as fast as
    /// messages go.
    pub(super) fn resign_to_nobody(&mut self, turn: &mut Turn) {
        if let Role::Leader(_) = &self.role {
            let preferred = Vec::new();
            let to = Move::Resigned { preferred };
            self.transition(turn, to, "its state machine cannot go on");
        }
    }

    /// Whether the process is about to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) fn shutdown(&mut self, turn: &mut Turn) {
        let led = matches!(self.role, Role::Leader(_));
        self.quorum_changed = true;
        self.stop = Some(Stop {
            at: turn.now.instant.plus_ms(STOP_PATIENCE_MS),
            led,
            told: false,
        });
        if led {
            let preferred = self.successors();
            self.transition(turn, Move::Resigned { preferred }, "shutdown");
        }
    }

    /// Lets the process end once nobody needs it any more.
    pub(super) fn stop_if_free(&mut self, turn: &mut Turn) {
        let Some(stop) = &self.stop else {
            return;
        };
        if stop.told {
            return;
        }
        let free = !stop.led || turn.now.instant >= stop.at || self.is_succeeded();
        if free {
            if let Some(stop) = &mut self.stop {
                stop.told = true;
                stop.at = Instant::NEVER;
            }
            // Behind the answers to the parked fetches.
            turn.tell(Output::MayStop);
        }
    }

    /// Whether another node leads, or nobody could be told that it should.
    fn is_succeeded(&self) -> bool {
        match &self.role {
            Role::Resigned(role) => {
                let others = self.other_voters();
                let lost = |id| role.unreachable.contains(&id);
                others.iter().all(|(node, _)| lost(node.key.id))
            }
            Role::Follower(_) => true,
            Role::Unattached(role) => role.leader.is_some(),
            Role::Prospective(_) | Role::Candidate(_) | Role::Leader(_) => false,
        }
    }

    /// The other voters, those first who have the most of the log.
    pub(super) fn successors(&self) -> Vec<ReplicaKey> {
        let Role::Leader(leader) = &self.role else {
            return Vec::new();
        };
        let others = self.voters.others(self.config.node.id);
        let mut keys: Vec<ReplicaKey> = others.map(|node| node.key).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(leader.progress.voter_end(*key)));
        keys
    }
}
