//! The voter set and kraft.version as of the end of the log (KIP-853).
//!
//! A set counts from the moment its record is in the log, committed or not.

use crate::types::{NodeId, Offset, ReplicaKey};

use super::output::{ControlRecord, VoterNode};

/// Where the voter set came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The configuration (kraft.version 0).
    Static,
    /// The bootstrap snapshot, which no other node can fetch.
    Bootstrap,
    /// The log or a snapshot that is served to others.
    Log,
}

/// The voters.
#[derive(Clone, Debug)]
pub(super) struct Voters {
    nodes: Vec<VoterNode>,
    kraft_version: u16,
    source: Source,
}

impl Voters {
    /// From the configuration and the control records found on disk, ascending by offset.
    pub(super) fn new(configured: Vec<VoterNode>, control: Vec<(Offset, ControlRecord)>) -> Self {
        let mut voters = Self {
            nodes: configured,
            kraft_version: 0,
            source: Source::Static,
        };
        for (offset, record) in control {
            voters.apply(offset, record);
        }
        voters
    }

    /// A control record is in the log at `offset`; -1 stands for the bootstrap snapshot.
    pub(super) fn apply(&mut self, offset: Offset, record: ControlRecord) {
        match record {
            ControlRecord::LeaderChange { .. } => {}
            ControlRecord::KraftVersion(version) => self.kraft_version = version,
            ControlRecord::Voters(nodes) => {
                self.nodes = nodes;
                self.source = if offset < Offset::ZERO {
                    Source::Bootstrap
                } else {
                    Source::Log
                };
            }
        }
    }

    pub(super) fn nodes(&self) -> &[VoterNode] {
        &self.nodes
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        self.nodes.iter().map(|node| node.key.id).collect()
    }

    pub(super) fn kraft_version(&self) -> u16 {
        self.kraft_version
    }

    pub(super) fn source(&self) -> Source {
        self.source
    }

    /// The entry that `key` is. An entry without a directory (static quorum) matches any.
    pub(super) fn find(&self, key: ReplicaKey) -> Option<&VoterNode> {
        self.nodes.iter().find(|node| {
            node.key.id == key.id
                && (node.key.directory.is_nil() || node.key.directory == key.directory)
        })
    }

    /// Whether `key` is the whole set.
    pub(super) fn is_only(&self, key: ReplicaKey) -> bool {
        self.nodes.len() == 1 && self.find(key).is_some()
    }

    /// Where the voter with this id listens; empty if there is none.
    pub(super) fn endpoints(&self, id: NodeId) -> &[(String, String, u16)] {
        self.nodes
            .iter()
            .find(|node| node.key.id == id)
            .map_or(&[], |node| &node.endpoints)
    }

    /// Whether more than half of the voters are among `granted`.
    pub(super) fn majority_in(&self, granted: &[NodeId]) -> bool {
        let votes = self
            .nodes
            .iter()
            .filter(|node| granted.contains(&node.key.id))
            .count();
        votes * 2 > self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Uuid;

    fn node(id: i32, directory: u128) -> VoterNode {
        VoterNode {
            key: ReplicaKey {
                id: NodeId(id),
                directory: Uuid::from_u128(directory),
            },
            endpoints: Vec::new(),
            kraft_versions: (0, 1),
        }
    }

    /// KIP-853: a static entry has no directory and matches any, a recorded one matches exactly.
    #[test]
    fn a_voter_with_a_directory_matches_only_that_directory() {
        let fixed = Voters::new(vec![node(1, 0)], Vec::new());
        assert!(fixed.is_only(node(1, 5).key));
        let recorded = ControlRecord::Voters(vec![node(1, 5), node(2, 6)]);
        let voters = Voters::new(vec![node(9, 0)], vec![(Offset(-1), recorded)]);
        assert_eq!(voters.source(), Source::Bootstrap);
        assert!(voters.find(node(1, 5).key).is_some());
        assert!(voters.find(node(1, 6).key).is_none());
        assert!(voters.find(node(9, 0).key).is_none());
        assert!(!voters.majority_in(&[NodeId(1), NodeId(9)]));
        assert!(voters.majority_in(&[NodeId(1), NodeId(2)]));
    }
}
