//! A checkpoint that is ahead of the log: whether a take-over can have left it there.
//!
//! A node whose log the leader cannot continue fetches the leader's snapshot, gives it its name and
//! begins its log anew behind it (KIP-630). A crash in between leaves a whole checkpoint beside a
//! whole log that ends before it, or that has an older epoch; Java leaves the same. A start may end
//! what was begun, which throws the log away, only if nothing speaks against it: the same files are
//! there when a checkpoint was renamed or copied, or when the log lost records. What was really
//! fetched can be fetched again, so a refusal loses nothing.

use std::path::Path;

use super::recovery::is_ahead;
use crate::raft::{QuorumState, VoterNode};
use crate::types::{Epoch, NodeId, Offset, OffsetAndEpoch, Timestamp};

/// How the log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Behind the last whole batch.
    pub(crate) end: Offset,
    /// The epoch of the last batch.
    pub(crate) epoch: Option<Epoch>,
    /// Epoch and timestamp of the last batch with metadata records.
    pub(crate) newest: Option<(Epoch, Timestamp)>,
}

/// What the node knows of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    /// Its id; without it, it cannot be told whether it is the only voter.
    pub(crate) id: Option<NodeId>,
    /// Its election state.
    pub(crate) state: Option<&'a QuorumState>,
    /// The newest voter set of the log, else of the checkpoint.
    pub(crate) voters: Option<&'a [VoterNode]>,
}

impl Node<'_> {
    fn is_only_voter(&self) -> bool {
        let Some(own) = self.id else { return false };
        match (self.voters, self.state) {
            (Some([voter]), _) => voter.key.id == own,
            (None, Some(state)) => state.voters == [own],
            _ => false,
        }
    }
}

/// Why the checkpoint `id`, which covers records up to the timestamp `covers`, cannot stand where
/// it does beside the log; `None` when it is not ahead of the log or may be.
pub(crate) fn contradiction(
    id: OffsetAndEpoch,
    covers: Timestamp,
    log: &LogEnd,
    node: &Node<'_>,
) -> Option<String> {
    if !is_ahead(id, log.epoch, log.end) {
        let epoch = log.epoch.filter(|_| id.offset > log.end)?;
        return Some(format!("the log is in epoch {epoch} there already"));
    }
    if let Some(state) = node.state.filter(|state| state.epoch < id.epoch) {
        let epoch = state.epoch;
        return Some(format!("this node knows of no epoch above {epoch}"));
    }
    if node.is_only_voter() {
        return Some("this node is the only voter, so no leader can have sent it".to_owned());
    }
    let (_, newest) = log.newest.filter(|(epoch, _)| *epoch == id.epoch)?;
    (covers < newest).then(|| {
        format!(
            "the newest record in it is of {} ms, and the log has records of that epoch of {} ms",
            covers.0, newest.0
        )
    })
}

/// Whether a log without records had some: `leader-epoch-checkpoint` says that an epoch began at
/// `begun`. A log that is to begin anew may have been one that did so before and stayed empty.
pub(crate) fn is_emptied(begun: Offset, start: Offset, end: Offset, is_restarted: bool) -> bool {
    match is_restarted {
        true => begun > start || start == Offset::ZERO,
        false => begun > end,
    }
}

/// The sentence about a checkpoint that is ahead and cannot be.
pub(crate) fn sentence(path: &Path, id: OffsetAndEpoch, log: &LogEnd, why: &str) -> String {
    format!(
        "{} has the epoch {} and ends at offset {}, but the log ends at {} and no snapshot of a \
         leader took its place: {why}.",
        path.display(),
        id.epoch,
        id.offset,
        log.end
    )
}

/// What helps.
pub(crate) const ADVICE: &str = "If the file was renamed or copied here, move it away; otherwise \
     the log lost records: restore the directory from a good copy.";
