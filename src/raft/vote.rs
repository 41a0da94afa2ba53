//! May this node grant this vote (KIP-595, "Vote"; KIP-996, pre-vote)? One pure function.

use crate::types::{NodeId, ReplicaKey};

/// What the answer depends on, of the node that is asked. The candidate asks in the node's own
/// epoch: a higher epoch moves the node on before this is looked at, a lower one is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stance {
    /// Unattached or prospective: the states that hold the vote of an epoch.
    Free {
        /// Who has this node's vote in the epoch.
        voted: Option<ReplicaKey>,
        /// The leader of the epoch if known.
        leader: Option<NodeId>,
    },
    /// Candidate (voted for itself) or resigned (led the epoch).
    Spent,
    /// Follows a leader.
    Follower {
        /// A fetch was answered in the epoch, and nothing says that the leader is gone since.
        hears: bool,
    },
    /// Leads the epoch.
    Leader,
}

/// Whether `candidate` gets the vote. `up_to_date` says that its log is not behind this node's.
///
/// A pre-vote has no consequences, so only a node that knows of a living leader refuses it: the
/// leader itself, and a follower that hears it.
pub(super) fn grant(
    stance: Stance,
    pre_vote: bool,
    candidate: ReplicaKey,
    up_to_date: bool,
) -> bool {
    if pre_vote {
        let led = matches!(stance, Stance::Leader | Stance::Follower { hears: true });
        return up_to_date && !led;
    }
    match stance {
        Stance::Free {
            voted: Some(voted), ..
        } => voted.names(candidate),
        Stance::Free {
            voted: None,
            leader: Some(_),
        }
        | Stance::Spent
        | Stance::Follower { .. }
        | Stance::Leader => false,
        Stance::Free {
            voted: None,
            leader: None,
        } => up_to_date,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Uuid;

    fn key(id: i32, directory: u128) -> ReplicaKey {
        ReplicaKey {
            id: NodeId(id),
            directory: Uuid::from_u128(directory),
        }
    }

    fn free(voted: Option<ReplicaKey>, leader: Option<i32>) -> Stance {
        Stance::Free {
            voted,
            leader: leader.map(NodeId),
        }
    }

    /// KIP-595 and KIP-996: every stance against both kinds of vote and both logs. The candidate
    /// is node 2 in directory 20.
    #[test]
    fn votes_are_granted_by_the_table() {
        // stance, (vote, log ok), (vote, log behind), (pre-vote, log ok), (pre-vote, log behind)
        let table = [
            (free(None, None), [true, false, true, false]),
            (free(None, Some(3)), [false, false, true, false]),
            (free(Some(key(2, 20)), None), [true, true, true, false]),
            (free(Some(key(2, 20)), Some(3)), [true, true, true, false]),
            (free(Some(key(2, 0)), None), [true, true, true, false]),
            (free(Some(key(2, 21)), None), [false, false, true, false]),
            (free(Some(key(3, 20)), None), [false, false, true, false]),
            (Stance::Spent, [false, false, true, false]),
            (
                Stance::Follower { hears: false },
                [false, false, true, false],
            ),
            (
                Stance::Follower { hears: true },
                [false, false, false, false],
            ),
            (Stance::Leader, [false, false, false, false]),
        ];
        for (stance, expected) in table {
            let asked = [(false, true), (false, false), (true, true), (true, false)];
            for ((pre_vote, up_to_date), granted) in asked.into_iter().zip(expected) {
                assert_eq!(
                    grant(stance, pre_vote, key(2, 20), up_to_date),
                    granted,
                    "{stance:?} pre_vote={pre_vote} up_to_date={up_to_date}"
                );
            }
        }
    }
}
