//! The voter set and kraft.version by offset of the log (KIP-853).
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
///
/// A history by offset: what an uncommitted record brought goes again when the log is cut, and a
/// snapshot holds what was true at its end.
#[derive(Clone, Debug)]
pub(super) struct Voters {
    /// The configuration: true as long as no record says anything else.
    configured: Vec<VoterNode>,
    /// Offset of each record, ascending, with the set from there on.
    sets: Vec<(Offset, Vec<VoterNode>)>,
    /// Offset of each record, ascending, with kraft.version from there on.
    versions: Vec<(Offset, u16)>,
    /// Not as they were when this was looked at last.
    changed: bool,
}

impl Voters {
    /// From the configuration and the control records found on disk, ascending by offset.
    pub(super) fn new(configured: Vec<VoterNode>, control: Vec<(Offset, ControlRecord)>) -> Self {
        let mut voters = Self {
            configured,
            sets: Vec::new(),
            versions: Vec::new(),
            changed: false,
        };
        for (offset, record) in control {
            voters.apply(offset, record);
        }
        voters.changed = false;
        voters
    }

    /// A control record is in the log at `offset`; -1 stands for the bootstrap snapshot. Whatever
    /// was known of this offset or of later ones is forgotten.
    pub(super) fn apply(&mut self, offset: Offset, record: ControlRecord) {
        match record {
            ControlRecord::LeaderChange { .. } => {}
            ControlRecord::KraftVersion(version) => {
                self.versions.retain(|(at, _)| *at < offset);
                self.versions.push((offset, version));
                self.changed = true;
            }
            ControlRecord::Voters(nodes) => {
                self.sets.retain(|(at, _)| *at < offset);
                self.sets.push((offset, nodes));
                self.changed = true;
            }
        }
    }

    /// The log is cut to `end`, exclusive: what records at or above it brought is undone.
    pub(super) fn truncate(&mut self, end: Offset) {
        let before = self.versions.len() + self.sets.len();
        self.versions.retain(|(at, _)| *at < end);
        self.sets.retain(|(at, _)| *at < end);
        self.changed |= self.versions.len() + self.sets.len() < before;
    }

    /// Nobody asks any more for what was true before `start`.
    pub(super) fn compact(&mut self, start: Offset) {
        forget_older(&mut self.versions, start);
        forget_older(&mut self.sets, start);
    }

    /// The log begins anew at `end`, exclusive, behind a snapshot with these control records. One
    /// without any is of a quorum with static voters.
    pub(super) fn restart(&mut self, end: Offset, control: Vec<ControlRecord>) {
        self.versions.clear();
        self.sets.clear();
        self.changed = true;
        for record in control {
            self.apply(end.prev(), record);
        }
    }

    /// Whether the set or kraft.version may be another one than at the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The voters as of `end`, exclusive.
    pub(super) fn nodes_at(&self, end: Offset) -> &[VoterNode] {
        last_below(&self.sets, end).map_or(&self.configured, |(_, nodes)| nodes)
    }

    /// kraft.version as of `end`, exclusive.
    pub(super) fn kraft_version_at(&self, end: Offset) -> u16 {
        last_below(&self.versions, end).map_or(0, |(_, version)| *version)
    }

    pub(super) fn nodes(&self) -> &[VoterNode] {
        self.sets
            .last()
            .map_or(&self.configured, |(_, nodes)| nodes)
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        self.nodes().iter().map(|node| node.key.id).collect()
    }

    /// All voters but this node.
    pub(super) fn others(&self, own: NodeId) -> impl Iterator<Item = &VoterNode> {
        self.nodes().iter().filter(move |node| node.key.id != own)
    }

    pub(super) fn kraft_version(&self) -> u16 {
        self.versions.last().map_or(0, |(_, version)| *version)
    }

    pub(super) fn source(&self) -> Source {
        match self.changed_at() {
            None => Source::Static,
            Some(offset) if offset < Offset::ZERO => Source::Bootstrap,
            Some(_) => Source::Log,
        }
    }

    /// Offset of the record that brought the set: the last one below its end for a snapshot (-1
    /// for the bootstrap one). `None` for the configuration.
    pub(super) fn changed_at(&self) -> Option<Offset> {
        self.sets.last().map(|(offset, _)| *offset)
    }

    /// The entry that `key` is. An entry without a directory (static quorum) matches any.
    pub(super) fn find(&self, key: ReplicaKey) -> Option<&VoterNode> {
        find(self.nodes(), key)
    }

    /// The entry that `key` was as of `end`, exclusive.
    pub(super) fn find_at(&self, end: Offset, key: ReplicaKey) -> Option<&VoterNode> {
        find(self.nodes_at(end), key)
    }

    /// Whether `key` is the whole set.
    pub(super) fn is_only(&self, key: ReplicaKey) -> bool {
        self.nodes().len() == 1 && self.find(key).is_some()
    }

    /// Where the voter with this id listens; empty if there is none.
    pub(super) fn endpoints(&self, id: NodeId) -> &[(String, String, u16)] {
        self.nodes()
            .iter()
            .find(|node| node.key.id == id)
            .map_or(&[], |node| &node.endpoints)
    }

    /// Whether more than half of the voters are among `granted`.
    pub(super) fn majority_in(&self, granted: &[NodeId]) -> bool {
        self.count_in(granted) * 2 > self.nodes().len()
    }

    /// Whether the voters that are not among `refused` are no majority any more.
    pub(super) fn cannot_win(&self, refused: &[NodeId]) -> bool {
        let voters = self.nodes().len();
        (voters - self.count_in(refused)) * 2 <= voters
    }

    fn count_in(&self, ids: &[NodeId]) -> usize {
        let nodes = self.nodes().iter();
        nodes.filter(|node| ids.contains(&node.key.id)).count()
    }
}

fn find(nodes: &[VoterNode], key: ReplicaKey) -> Option<&VoterNode> {
    nodes.iter().find(|node| node.key.names(key))
}

/// The last entry below `end`.
fn last_below<T>(entries: &[(Offset, T)], end: Offset) -> Option<&(Offset, T)> {
    entries.iter().rev().find(|(at, _)| *at < end)
}

/// Drops the entries before the one that counts at `start`.
fn forget_older<T>(entries: &mut Vec<(Offset, T)>, start: Offset) {
    let counts = entries.iter().rposition(|(at, _)| *at < start);
    entries.drain(..counts.unwrap_or(0));
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

    /// Voters 1, 1-2, 1-2-3 with directories by id, at offsets -1, 10 and 20; kraft.version 1.
    fn history() -> Voters {
        let set = |count| ControlRecord::Voters((1..=count).map(|id| node(id, 7)).collect());
        let control = vec![
            (Offset(-1), ControlRecord::KraftVersion(1)),
            (Offset(-1), set(1)),
            (Offset(10), set(2)),
            (Offset(20), set(3)),
        ];
        Voters::new(vec![node(9, 0)], control)
    }

    fn counts(voters: &Voters, ends: &[i64]) -> Vec<usize> {
        let count = |end: &i64| voters.nodes_at(Offset(*end)).len();
        ends.iter().map(count).collect()
    }

    /// KIP-853: a set counts from its record on, and one in a snapshot from the beginning.
    #[test]
    fn the_voters_as_of_an_offset_are_those_of_the_last_record_below_it() {
        let voters = history();
        assert_eq!(
            counts(&voters, &[0, 10, 11, 20, 21, 99]),
            [1, 1, 2, 2, 3, 3]
        );
        assert_eq!(voters.changed_at(), Some(Offset(20)));
        assert_eq!(voters.kraft_version_at(Offset::ZERO), 1);
        let fixed = Voters::new(vec![node(1, 0)], Vec::new());
        assert_eq!(counts(&fixed, &[0, 99]), [1, 1]);
        assert_eq!(fixed.kraft_version_at(Offset(99)), 0);
        assert_eq!(fixed.changed_at(), None);
    }

    /// KIP-853: an uncommitted change is undone with its record.
    #[test]
    fn a_cut_log_takes_the_voters_back() {
        let mut voters = history();
        voters.truncate(Offset(21));
        assert_eq!(voters.nodes().len(), 3);
        voters.truncate(Offset(20));
        assert_eq!(voters.nodes().len(), 2);
        voters.truncate(Offset::ZERO);
        assert_eq!(voters.nodes().len(), 1);
        assert_eq!(voters.source(), Source::Bootstrap);
        let mut upgraded = Voters::new(vec![node(1, 0)], Vec::new());
        upgraded.apply(Offset(5), ControlRecord::KraftVersion(1));
        upgraded.apply(Offset(6), ControlRecord::Voters(vec![node(1, 7)]));
        upgraded.truncate(Offset(5));
        assert_eq!(upgraded.kraft_version(), 0);
        assert_eq!(upgraded.source(), Source::Static);
        assert_eq!(upgraded.nodes(), [node(1, 0)]);
    }

    #[test]
    fn a_start_that_moves_keeps_the_voters_that_count_there() {
        let mut voters = history();
        voters.compact(Offset(20));
        assert_eq!(counts(&voters, &[20, 21]), [2, 3]);
        assert_eq!(voters.sets.len(), 2);
        voters.compact(Offset(50));
        assert_eq!((voters.sets.len(), voters.versions.len()), (1, 1));
        assert_eq!((voters.nodes().len(), voters.kraft_version()), (3, 1));
    }

    #[test]
    fn a_snapshot_without_voters_goes_back_to_the_configured_ones() {
        let mut voters = history();
        voters.restart(Offset(40), vec![ControlRecord::Voters(vec![node(4, 7)])]);
        assert_eq!(voters.changed_at(), Some(Offset(39)));
        assert_eq!(voters.nodes(), [node(4, 7)]);
        voters.restart(Offset(60), Vec::new());
        assert_eq!(voters.nodes(), [node(9, 0)]);
        assert_eq!(voters.kraft_version(), 0);
    }

    /// Every number of voters and of refusals: a majority of the rest could still be found, or not.
    #[test]
    fn an_election_cannot_be_won_once_half_of_the_voters_refuse() {
        for (voters, refusals, lost) in [
            (1, 0, false),
            (1, 1, true),
            (2, 1, true),
            (3, 1, false),
            (3, 2, true),
            (4, 1, false),
            (4, 2, true),
            (5, 2, false),
            (5, 3, true),
        ] {
            let nodes = (1..=voters).map(|id| node(id, 0)).collect();
            let set = Voters::new(nodes, Vec::new());
            let refused: Vec<NodeId> = (1..=refusals).chain([77]).map(NodeId).collect();
            assert_eq!(set.cannot_win(&refused), lost, "{voters} {refusals}");
        }
    }
}
