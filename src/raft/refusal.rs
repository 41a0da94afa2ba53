//! Answers of a leader that this node cannot follow, each with what an operator can do about it.

use std::fmt;

/// See the module. The text begins with "it" or with what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The leader lost records that this node knows to be committed. What is here may be the last
    /// copy of them.
    LostCommitted(&'static str),
    /// The leader's log and this one cannot both be of this quorum: one of the directories was put
    /// in place of another. The cluster's id is the same, so only what the other voters have tells
    /// which.
    OtherLog(&'static str),
    /// No correct leader answers like this.
    BadAnswer(&'static str),
}

impl Refusal {
    /// What helps, the leader being refused for the first time or `again`. One answer alone that
    /// is no good needs nobody: the leader is asked once more.
    pub(super) const fn cure(self, again: bool) -> Option<&'static str> {
        match self {
            Self::LostCommitted(_) => Some(
                "the leader lost committed metadata: keep this node's metadata directory as it \
                 is, stop the leader and restore its directory from a good copy",
            ),
            Self::OtherLog(_) => Some(
                "one of the two nodes has the directory of another quorum, or a copy that lost \
                 records: stop the one that parts from the other voters too; restore its metadata \
                 directory from a good copy, or, if the other voters are a majority without it, \
                 move that away and format it again, so that they refill it",
            ),
            Self::BadAnswer(_) if again => Some(
                "stop the leader's process, so that another node leads; if that one is refused, \
                 too, check this node's metadata directory with kraftd fsck",
            ),
            Self::BadAnswer(_) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::LostCommitted(why) | Self::OtherLog(why) | Self::BadAnswer(why)) = self;
        f.write_str(why)
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_node_that_holds_committed_records_is_never_told_to_give_its_copy_away() {
        for again in [false, true] {
            let cure = Refusal::LostCommitted("").cure(again).unwrap();
            for words in [
                "keep this node's metadata directory",
                "restore its directory",
            ] {
                assert!(cure.contains(words), "{cure}");
            }
            for words in ["format", "move"] {
                assert!(!cure.contains(words), "{cure}");
            }
        }
    }

    #[test]
    fn a_directory_is_moved_away_only_where_the_other_voters_are_a_majority() {
        let cure = Refusal::OtherLog("").cure(false).unwrap();
        let guard = cure.find("if the other voters are a majority without it");
        assert!(guard.is_some() && guard < cure.find("move"), "{cure}");
        assert!(guard < cure.find("format"), "{cure}");
    }

    #[test]
    fn one_answer_that_does_not_fit_stops_no_leader_and_a_second_one_does() {
        let refusal = Refusal::BadAnswer("a batch holds no offset");
        assert_eq!(refusal.cure(false), None);
        let cure = refusal.cure(true).unwrap();
        for words in ["stop the leader's process", "kraftd fsck"] {
            assert!(cure.contains(words), "{cure}");
        }
        assert_eq!(refusal.to_string(), "a batch holds no offset");
    }
}
