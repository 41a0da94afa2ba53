//! Control records between their wire form and what consensus knows of them.

use std::path::Path;

use super::fault::{FaultKind, Result, StorageFault};
use crate::raft::{ControlRecord, VoterNode};
use crate::records::batch::Batch;
use crate::records::control as wire;
use crate::types::{NodeId, Offset, ReplicaKey};

/// The records of a control batch that consensus wants, with their offsets. Snapshot headers and
/// footers are not among them. `path` is where the batch comes from.
pub(crate) fn records(path: &Path, batch: &Batch) -> Result<Vec<(Offset, ControlRecord)>> {
    let mut found = Vec::new();
    for (offset, record) in wire_records(path, batch)? {
        if let Some(record) = from_wire(record) {
            found.push((offset, record));
        }
    }
    Ok(found)
}

/// All records of a control batch in their wire form.
pub(crate) fn wire_records(
    path: &Path,
    batch: &Batch,
) -> Result<Vec<(Offset, wire::ControlRecord)>> {
    let refuse = |offset: Offset, why: &str| {
        let sentence = format!(
            "{} holds a control record at offset {offset} that this release cannot read: {why}.",
            path.display()
        );
        StorageFault::new(FaultKind::Unsupported, path, sentence)
    };
    let mut found = Vec::new();
    for record in batch.records() {
        let record = record.map_err(|fault| refuse(batch.base_offset(), &fault.to_string()))?;
        let control = wire::ControlRecord::decode(record.key.as_ref(), record.value.as_ref())
            .map_err(|fault| refuse(record.offset, &fault.to_string()))?;
        found.push((record.offset, control));
    }
    Ok(found)
}

fn from_wire(record: wire::ControlRecord) -> Option<ControlRecord> {
    let ids = |voters: &[wire::LeaderChangeVoter]| {
        voters.iter().map(|voter| NodeId(voter.voter_id)).collect()
    };
    Some(match record {
        wire::ControlRecord::LeaderChange(change) => ControlRecord::LeaderChange {
            leader: NodeId(change.leader_id),
            voters: ids(&change.voters),
            granting: ids(&change.granting_voters),
        },
        wire::ControlRecord::KRaftVersion(version) => {
            // A negative level is no level; 0 is the one without records.
            ControlRecord::KraftVersion(u16::try_from(version.k_raft_version).unwrap_or(0))
        }
        wire::ControlRecord::KRaftVoters(voters) => {
            ControlRecord::Voters(voters.voters.into_iter().map(voter).collect())
        }
        wire::ControlRecord::SnapshotHeader(_) | wire::ControlRecord::SnapshotFooter(_) => {
            return None;
        }
    })
}

fn voter(voter: wire::KRaftVoter) -> VoterNode {
    let versions = &voter.k_raft_version_feature;
    let level = |level: i16| u16::try_from(level).unwrap_or(0);
    VoterNode {
        key: ReplicaKey {
            id: NodeId(voter.voter_id),
            directory: voter.voter_directory_id,
        },
        kraft_versions: (
            level(versions.min_supported_version),
            level(versions.max_supported_version),
        ),
        endpoints: voter
            .endpoints
            .into_iter()
            .map(|endpoint| (endpoint.name, endpoint.host, endpoint.port))
            .collect(),
    }
}
