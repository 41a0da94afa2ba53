//! Failover without waiting for a timer.
//!
//! A connection to the leader that is closed or refused is a hint that its process is gone. A
//! follower that gets it asks the others at once whether they would vote for it (KIP-996): that
//! changes no epoch, and whoever still hears the leader says no. The leader is asked too. If it
//! says no, only the connection was lost, and all stays as it was; if it cannot be reached either,
//! or leads no more, and a majority agrees, an election begins.
//!
//! A follower that lost the connection hears the leader all the same, as far as others are
//! concerned, until it could not connect again either: a connection that flaps must not help to
//! depose a leader.
//!
//! The followers of a leader get the hint at the same moment, and two candidates would split the
//! votes, so they ask one after the other, in the order of their ids. While a voter of the quorum
//! does not know the pre-vote (3.9), nothing here happens: only the timers decide.

use crate::types::{CallId, Instant, NodeId};

use super::machine::{Raft, Turn};
use super::output::PeerName;
use super::roles::{Follower, Prospective, Role};
use super::transition::Move;

/// How long a follower leaves the election to each one before it, milliseconds: longer than a
/// pre-vote, a vote and their writes take.
const STAGGER_MS: u64 = 25;

/// The first pause after a hasty try in vain against a leader that is not there, milliseconds.
pub(super) const RETRY_MS: u64 = 5;

/// The longest pause between two hasty tries, milliseconds.
const PAUSE_MAX_MS: u64 = 500;

/// How long a hasty election may take before the follower goes back to its leader, milliseconds.
pub(super) const HASTE_MS: u64 = 200;

/// How long a leader that neither answers nor refuses holds a hasty election up, milliseconds.
pub(super) const PATIENCE_MS: u64 = 100;

/// The pause after so many tries in vain, milliseconds: it doubles from `first_ms`.
pub(super) fn pause_ms(first_ms: u64, tries: u32) -> u64 {
    (first_ms << tries.min(10)).min(PAUSE_MAX_MS)
}

/// Why a follower may have no leader any more although its fetch timer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doubt {
    /// No reason.
    #[default]
    None,
    /// The connection to it was closed or refused.
    Lost {
        /// When this node asks for pre-votes.
        ask_at: Instant,
        /// How often it did in vain.
        tries: u32,
        /// The last question before the connection was lost.
        last: CallId,
        /// A question after it found nobody there.
        refused: bool,
    },
    /// It said so.
    Resigned,
}

impl Doubt {
    /// When something here changes by time alone.
    pub(super) fn ask_at(self) -> Instant {
        match self {
            Self::Lost { ask_at, .. } => ask_at,
            Self::None | Self::Resigned => Instant::NEVER,
        }
    }

    /// Whether there is still reason to believe that the leader lives.
    pub(super) fn hears(self) -> bool {
        matches!(self, Self::None | Self::Lost { refused: false, .. })
    }

    /// Whether this node should ask for pre-votes now.
    pub(super) fn is_due(self, now: Instant) -> bool {
        self.ask_at() <= now
    }
}

/// What a hasty election has besides the votes.
#[derive(Clone, Debug)]
pub(super) struct Haste {
    /// What this node was, and is again if the leader lives or the others hear it.
    pub(super) back: Follower,
    /// How often it was tried in vain.
    pub(super) tries: u32,
    /// The leader cannot be reached, or leads no more.
    pub(super) refused: bool,
    /// When the leader counts as out of reach though nothing says so; `None` from then on.
    pub(super) patience: Option<Instant>,
}

impl Prospective {
    /// Whether a majority is enough to go on.
    pub(super) fn may_run(&self) -> bool {
        self.haste
            .as_ref()
            .is_none_or(|haste| haste.refused || haste.patience.is_none())
    }

    /// The leader that this node may go back to says that it leads no more: nothing else has to
    /// be known of it. If the election is lost all the same, the next is tried at `deadline`.
    pub(super) fn leader_resigned(&mut self, deadline: Instant) {
        if let Some(haste) = &mut self.haste {
            haste.refused = true;
            haste.back.deadline = deadline;
        }
    }

    /// When something besides the end of the role comes by time alone.
    pub(super) fn due(&self) -> Instant {
        let patience = self.haste.as_ref().and_then(|haste| haste.patience);
        let earliest = [self.ask_at, patience].into_iter().flatten().min();
        earliest.unwrap_or(Instant::NEVER)
    }

    /// Forgets waits that are over.
    pub(super) fn wake(&mut self, now: Instant) {
        let over = |at: &mut Instant| *at <= now;
        self.ask_at.take_if(over);
        if let Some(haste) = &mut self.haste {
            haste.patience.take_if(over);
        }
    }
}

impl Raft {
    /// A connection to this node was closed or refused.
    pub(super) fn peer_lost(&mut self, peer: NodeId, turn: &mut Turn) {
        let now = turn.now.instant;
        let hurried = self.may_hurry();
        let own = self.config.node.id;
        let before = |id: NodeId| id < own && id != peer;
        let rank = self.voters.ids().into_iter().filter(|id| before(*id));
        let ask_at = now.plus_ms(STAGGER_MS * rank.count() as u64);
        let last = self.calls.last();
        let Role::Follower(role) = &mut self.role else {
            return;
        };
        // Who never heard this leader has no reason to miss it: after a time without anybody to
        // elect, only the timers go on trying.
        let heard = role.following.fetched && role.leader == peer;
        if !heard || role.doubt != Doubt::None || !hurried {
            return;
        }
        role.doubt = Doubt::Lost {
            ask_at,
            tries: 0,
            last,
            refused: false,
        };
        // Whether it is there at all is worth knowing at once.
        self.calls.wake_up(PeerName::Node(peer));
        if ask_at <= now {
            self.hurry(turn);
        }
    }

    /// Whether an election may begin before a timer says so.
    fn may_hurry(&self) -> bool {
        let known = |id| self.without_pre_vote.contains(&id);
        self.eligible() && !self.voters.ids().into_iter().any(known)
    }

    /// Asks for pre-votes now. What is known of the voters may be other than it was when the
    /// connection was lost.
    pub(super) fn hurry(&mut self, turn: &mut Turn) {
        if self.may_hurry() {
            self.transition(turn, Move::Haste, "the connection to the leader is lost");
        } else if let Role::Follower(role) = &mut self.role {
            role.doubt = Doubt::None;
        }
    }

    /// What a follower asked its leader found nobody there.
    pub(super) fn leader_refused(&mut self, peer: NodeId, call: CallId, turn: &mut Turn) {
        self.peer_lost(peer, turn);
        if let Role::Follower(role) = &mut self.role
            && role.leader == peer
            && let Doubt::Lost { last, refused, .. } = &mut role.doubt
        {
            if call > *last {
                *refused = true;
            } else {
                self.calls.wake_up(PeerName::Node(peer));
            }
        }
    }

    /// Another node has this node's pre-vote: it goes first.
    pub(super) fn give_way(&mut self, now: Instant) {
        if let Role::Follower(role) = &mut self.role
            && let Doubt::Lost { ask_at, .. } = &mut role.doubt
        {
            *ask_at = (*ask_at).max(now.plus_ms(3 * STAGGER_MS));
        }
    }

    /// A successor of a leader that resigned asks, and its log is behind: what the leader wrote
    /// last came only here. This node, which was to wait for that one, is the better successor.
    pub(super) fn go_first(&mut self, now: Instant) {
        if let Role::Follower(role) = &mut self.role
            && role.doubt == Doubt::Resigned
        {
            role.deadline = role.deadline.min(now);
        }
    }

    /// What a follower is again after a hasty election in vain.
    pub(super) fn follower_again(haste: &Haste, last: CallId, now: Instant) -> Follower {
        let tries = haste.tries.saturating_add(1);
        // Who knows that nobody is there only waits for others to find out.
        let shortest = if haste.refused { RETRY_MS } else { STAGGER_MS };
        let pause = pause_ms(shortest, haste.tries);
        let mut follower = haste.back.clone();
        follower.doubt = Doubt::Lost {
            ask_at: now.plus_ms(pause),
            tries,
            last,
            refused: haste.refused,
        };
        follower
    }
}
