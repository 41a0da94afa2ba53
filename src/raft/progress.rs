//! What the leader knows of each replica, and the commit offset that follows from it (KIP-595).
//!
//! Voters and observers are kept apart because only voters count.

use std::collections::BTreeMap;

use crate::types::{Instant, Now, Offset, ReplicaKey, Uuid};

use super::output::{ReplicaState, VoterNode};

/// An observer that did not fetch for this long is forgotten, in milliseconds (KIP-595).
pub(super) const OBSERVER_SESSION_MS: u64 = 300_000;

/// A node that did not fetch for this long cannot become a voter, in milliseconds (KIP-853).
const JOIN_SILENCE_MS: u64 = 3_600_000;

/// Observers remembered at most: any peer may name any id, and this bounds what they cost.
const OBSERVERS_MAX: usize = 10_000;

/// How often a full list is looked through for silent observers, in milliseconds.
const SWEEP_MS: u64 = 1_000;

/// The largest offset that more than half of `ends` have reached; `None` for an unknown end, and
/// for the answer if a majority is unknown.
pub(super) fn majority_end(ends: &[Option<Offset>]) -> Option<Offset> {
    ends.iter()
        .flatten()
        .copied()
        .filter(|end| {
            let reached = ends.iter().flatten().filter(|other| *other >= end).count();
            reached * 2 > ends.len()
        })
        .max()
}

/// One replica as the leader sees it.
#[derive(Clone, Copy, Debug)]
struct Replica {
    /// Everything below is durable there: the offset of its last valid fetch.
    end: Offset,
    /// When it fetched last.
    seen: Now,
    /// Wall time at which it last had everything, -1 if never.
    caught_up: i64,
    /// The leader's log end at its last fetch.
    leader_end: Offset,
}

/// All replicas that fetched in the leader's epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    voters: BTreeMap<ReplicaKey, Replica>,
    observers: BTreeMap<ReplicaKey, Replica>,
    /// When the silent observers were forgotten last.
    swept: Instant,
}

impl Progress {
    /// A voter, named by its key in the voter set, has everything below `end`.
    pub(super) fn voter_fetched(
        &mut self,
        now: Now,
        key: ReplicaKey,
        end: Offset,
        leader_end: Offset,
    ) {
        note(&mut self.voters, now, key, end, leader_end);
    }

    /// An observer has everything below `end`. Beyond the bound a new one is served all the same,
    /// only not listed.
    pub(super) fn observer_fetched(
        &mut self,
        now: Now,
        key: ReplicaKey,
        end: Offset,
        leader_end: Offset,
    ) {
        if self.observers.len() >= OBSERVERS_MAX && !self.observers.contains_key(&key) {
            // Looking through all of them for every invented id would cost more than they do.
            if now.instant.since(self.swept) >= SWEEP_MS {
                self.forget_silent(now.instant);
            }
            if self.observers.len() >= OBSERVERS_MAX {
                return;
            }
        }
        note(&mut self.observers, now, key, end, leader_end);
    }

    /// The voters are others than before: who changes sides keeps what is known of it. A voter of
    /// a static quorum is known by its id alone until the set names its directory.
    pub(super) fn regroup(&mut self, nodes: &[VoterNode], own: ReplicaKey) {
        let mut before = std::mem::take(&mut self.voters);
        for node in nodes {
            let unnamed = ReplicaKey {
                id: node.key.id,
                directory: Uuid::nil(),
            };
            let known = before
                .remove(&node.key)
                .or_else(|| before.remove(&unnamed))
                .or_else(|| self.observers.remove(&node.key));
            if let Some(replica) = known {
                self.voters.insert(node.key, replica);
            }
        }
        before.retain(|key, _| key.id != own.id);
        self.observers.extend(before);
    }

    /// Whether an observer may become a voter: it had everything at some time and still fetches.
    pub(super) fn is_caught_up(&self, key: ReplicaKey, now: Instant) -> bool {
        self.observers.get(&key).is_some_and(|replica| {
            replica.caught_up > 0 && now.since(replica.seen.instant) < JOIN_SILENCE_MS
        })
    }

    /// Up to where a voter's log is known to be durable.
    pub(super) fn voter_end(&self, key: ReplicaKey) -> Option<Offset> {
        self.voters.get(&key).map(|replica| replica.end)
    }

    /// A voter as DescribeQuorum shows it.
    pub(super) fn describe_voter(&self, key: ReplicaKey) -> ReplicaState {
        match self.voters.get(&key) {
            Some(replica) => describe(key, replica),
            None => ReplicaState {
                key,
                log_end: -1,
                last_fetch: -1,
                last_caught_up: -1,
            },
        }
    }

    /// The observers as DescribeQuorum shows them; forgets the silent ones first.
    pub(super) fn describe_observers(&mut self, now: Instant) -> Vec<ReplicaState> {
        self.forget_silent(now);
        self.observers
            .iter()
            .map(|(key, replica)| describe(*key, replica))
            .collect()
    }

    fn forget_silent(&mut self, now: Instant) {
        self.swept = now;
        self.observers
            .retain(|_, replica| now.since(replica.seen.instant) < OBSERVER_SESSION_MS);
    }
}

fn describe(key: ReplicaKey, replica: &Replica) -> ReplicaState {
    ReplicaState {
        key,
        log_end: replica.end.0,
        last_fetch: replica.seen.wall.0,
        last_caught_up: replica.caught_up,
    }
}

/// A replica had everything now if it asks for the leader's end; it had everything at its previous
/// fetch if it now has what was the end then (KIP-836). The wall clock may step back, the times
/// told never do.
fn note(
    replicas: &mut BTreeMap<ReplicaKey, Replica>,
    now: Now,
    key: ReplicaKey,
    end: Offset,
    leader_end: Offset,
) {
    let before = replicas.get(&key).copied();
    let last_fetch = before.map_or(-1, |replica| replica.seen.wall.0);
    let known = before.map_or(-1, |replica| replica.caught_up);
    let caught_up = if end >= leader_end {
        now.wall.0
    } else if before.is_some_and(|replica| end >= replica.leader_end) {
        last_fetch
    } else {
        -1
    };
    let mut seen = now;
    seen.wall.0 = seen.wall.0.max(last_fetch);
    replicas.insert(
        key,
        Replica {
            end,
            seen,
            caught_up: caught_up.max(known),
            leader_end,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{NodeId, SplitMix, Timestamp};

    /// The slow way: unknown last, sort descending, take index n/2 (KIP-595, high watermark).
    fn sort_and_pick(ends: &[Option<Offset>]) -> Option<Offset> {
        let mut sorted = ends.to_vec();
        sorted.sort_by(|a, b| b.cmp(a));
        sorted.get(ends.len() / 2).copied().flatten()
    }

    #[test]
    fn the_commit_rule_equals_sort_and_pick_for_any_number_of_voters() {
        let mut rng = SplitMix::new(7);
        for voters in 0..=9 {
            for _ in 0..2_000 {
                let ends: Vec<Option<Offset>> = (0..voters)
                    .map(|_| match rng.below(5) {
                        0 => None,
                        _ => Some(Offset(rng.below(6) as i64)),
                    })
                    .collect();
                assert_eq!(majority_end(&ends), sort_and_pick(&ends), "{ends:?}");
            }
        }
    }

    fn key(id: i32) -> ReplicaKey {
        ReplicaKey {
            id: NodeId(id),
            directory: Uuid::nil(),
        }
    }

    fn at(ms: u64) -> Now {
        Now {
            instant: Instant(ms),
            wall: Timestamp(1_000_000 + ms as i64),
        }
    }

    /// KIP-836: lastCaughtUpTimestamp.
    #[test]
    fn a_replica_that_has_the_end_of_its_previous_fetch_was_caught_up_then() {
        let mut progress = Progress::default();
        progress.observer_fetched(at(0), key(2), Offset(0), Offset(10));
        assert_eq!(
            progress.describe_observers(Instant(0))[0].last_caught_up,
            -1
        );
        progress.observer_fetched(at(5), key(2), Offset(10), Offset(12));
        let seen = &progress.describe_observers(Instant(5))[0];
        assert_eq!(seen.last_caught_up, 1_000_000);
        assert_eq!(seen.last_fetch, 1_000_005);
        progress.observer_fetched(at(9), key(2), Offset(12), Offset(12));
        assert_eq!(
            progress.describe_observers(Instant(9))[0].last_caught_up,
            1_000_009
        );
    }

    #[test]
    fn an_observer_is_forgotten_after_five_minutes_of_silence() {
        let mut progress = Progress::default();
        progress.observer_fetched(at(0), key(2), Offset(0), Offset(1));
        progress.observer_fetched(at(1), key(3), Offset(0), Offset(1));
        let left = progress.describe_observers(Instant(300_000));
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].key, key(3));
    }

    #[test]
    fn invented_observers_cost_a_bounded_amount_and_silent_ones_make_room() {
        let mut progress = Progress::default();
        for id in 0..20_000 {
            progress.observer_fetched(at(0), key(id), Offset(0), Offset(1));
        }
        assert_eq!(progress.observers.len(), OBSERVERS_MAX);
        progress.observer_fetched(at(300_000), key(20_001), Offset(0), Offset(1));
        assert_eq!(progress.observers.len(), 1);
    }
}
