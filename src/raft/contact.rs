//! How a leader and its voters hear of each other: who fetched when, who has to be told that there
//! is a leader, and when too few are left (KIP-595, BeginQuorumEpoch; KIP-835, check quorum).

use std::collections::BTreeMap;

use crate::types::{Instant, NodeId};

/// One other voter.
#[derive(Clone, Copy, Debug)]
struct Voter {
    /// When it last sent a valid fetch, or the leader began.
    heard: Instant,
    /// When it is to be told of the leader, unless it fetches before.
    begin_at: Instant,
}

/// All other voters.
#[derive(Clone, Debug, Default)]
pub(super) struct Contact {
    voters: BTreeMap<NodeId, Voter>,
    /// When a majority will have been silent for too long.
    resign_at: Option<Instant>,
}

impl Contact {
    /// Takes over the voter set. Those who are new have from `now` on. `counts` says whether the
    /// leader itself is one of the voters.
    pub(super) fn set_voters(
        &mut self,
        others: impl Iterator<Item = NodeId>,
        counts: bool,
        now: Instant,
        patience_ms: u64,
    ) {
        let before = std::mem::take(&mut self.voters);
        self.voters = others
            .map(|id| {
                let new = Voter {
                    heard: now,
                    begin_at: now,
                };
                (id, before.get(&id).copied().unwrap_or(new))
            })
            .collect();
        self.judge(counts, patience_ms);
    }

    /// A voter sent something that only a voter sends who knows the leader.
    pub(super) fn heard(&mut self, id: NodeId, now: Instant, counts: bool, fetch_timeout_ms: u64) {
        if let Some(voter) = self.voters.get_mut(&id) {
            voter.heard = now;
            voter.begin_at = now.plus_ms(fetch_timeout_ms / 2);
            self.judge(counts, fetch_timeout_ms);
        }
    }

    /// It is being told of the leader.
    pub(super) fn told(&mut self, id: NodeId, now: Instant, fetch_timeout_ms: u64) {
        if let Some(voter) = self.voters.get_mut(&id) {
            voter.begin_at = now.plus_ms(fetch_timeout_ms / 2);
        }
    }

    /// Those who are to be told now.
    pub(super) fn to_tell(&self, now: Instant) -> Vec<NodeId> {
        let due = self
            .voters
            .iter()
            .filter(|(_, voter)| voter.begin_at <= now);
        due.map(|(id, _)| *id).collect()
    }

    /// Whether too few voters were heard of.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        self.resign_at.is_some_and(|at| at <= now)
    }

    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        let begin = self.voters.values().map(|voter| voter.begin_at).min();
        let resign = self.resign_at.unwrap_or(Instant::NEVER);
        begin.unwrap_or(Instant::NEVER).min(resign)
    }

    /// When the youngest majority will be too old: one and a half fetch time-outs after its oldest
    /// member was heard. Never, if the leader is a majority alone.
    fn judge(&mut self, counts: bool, fetch_timeout_ms: u64) {
        let voters = self.voters.len() + usize::from(counts);
        let needed = (voters / 2 + 1) - usize::from(counts);
        let mut heard: Vec<Instant> = self.voters.values().map(|voter| voter.heard).collect();
        heard.sort_unstable_by(|a, b| b.cmp(a));
        let oldest = needed.checked_sub(1).and_then(|at| heard.get(at));
        self.resign_at = oldest.map(|at| at.plus_ms(fetch_timeout_ms * 3 / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: [NodeId; 4] = [NodeId(2), NodeId(3), NodeId(4), NodeId(5)];

    #[test]
    fn a_leader_counts_on_a_majority_with_itself_in_it() {
        let mut contact = Contact::default();
        contact.set_voters(OTHERS.into_iter(), true, Instant(0), 2_000);
        assert!(!contact.is_lost(Instant(2_999)));
        assert!(contact.is_lost(Instant(3_000)));
        contact.heard(NodeId(2), Instant(1_000), true, 2_000);
        assert!(contact.is_lost(Instant(3_000)), "one of two is not enough");
        contact.heard(NodeId(3), Instant(1_500), true, 2_000);
        assert!(!contact.is_lost(Instant(3_999)));
        assert!(contact.is_lost(Instant(4_000)));
    }

    #[test]
    fn a_leader_that_is_no_voter_counts_on_the_others_alone() {
        let mut contact = Contact::default();
        contact.set_voters(OTHERS[..1].iter().copied(), false, Instant(0), 2_000);
        assert!(contact.is_lost(Instant(3_000)));
        let mut alone = Contact::default();
        alone.set_voters([].into_iter(), true, Instant(0), 2_000);
        assert!(!alone.is_lost(Instant(1_000_000)));
        assert_eq!(alone.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_voter_that_fetches_need_not_be_told() {
        let mut contact = Contact::default();
        contact.set_voters(OTHERS[..2].iter().copied(), true, Instant(0), 2_000);
        assert_eq!(contact.to_tell(Instant(0)), OTHERS[..2]);
        contact.told(NodeId(2), Instant(0), 2_000);
        contact.heard(NodeId(3), Instant(700), true, 2_000);
        assert_eq!(contact.to_tell(Instant(999)), []);
        assert_eq!(contact.to_tell(Instant(1_000)), [NodeId(2)]);
        assert_eq!(contact.to_tell(Instant(1_700)), OTHERS[..2]);
    }
}
