//! Answers of a leader that this node cannot follow, each with what an operator can do about it.

use std::fmt;

/// See the module. The text begins with "it" or with what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The leader's log and this one cannot both be of this quorum: one of the directories was put
    /// in place of another. The cluster's id is the same, so only what the other voters have tells
    /// which.
    OtherLog(&'static str),
    /// No correct leader answers like this.
    BadAnswer(&'static str),
}

impl Refusal {
    /// What helps.
    pub(super) const fn cure(self) -> &'static str {
        match self {
            Self::OtherLog(_) => {
                "one of the two nodes has the directory of another quorum, or a copy that lost \
                 records: stop the one that parts from the other voters too, move its metadata \
                 directory (metadata.log.dir, or else the first of log.dirs) away, format it again \
                 for this cluster and let them refill it"
            }
            Self::BadAnswer(_) => {
                "stop the leader's process, so that another node leads; if that one is refused, \
                 too, run kraftd fsck on this node's metadata directory"
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::OtherLog(why) | Self::BadAnswer(why)) = self;
        write!(f, "{why}; {}", self.cure())
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn a_leader_that_is_not_followed_is_told_with_a_directory_and_what_to_do() {
        let told = Refusal::OtherLog("it would cut committed records").to_string();
        for words in [
            "it would cut committed records; ",
            "metadata.log.dir",
            "format it again for this cluster",
        ] {
            assert!(told.contains(words), "{told}");
        }
        let told = Refusal::BadAnswer("a batch holds no offset").to_string();
        for words in [
            "a batch holds no offset; ",
            "stop the leader's process",
            "kraftd fsck",
        ] {
            assert!(told.contains(words), "{told}");
        }
    }
}
