//! Control records between their wire form and what consensus knows of them.

use std::path::Path;

use super::fault::{FaultKind, Result, StorageFault};
use crate::raft::{ControlRecord, VoterNode};
use crate::records::batch::Batch;
use crate::records::control::{
    self as wire, KRaftVersion, KRaftVersionFeature, KRaftVoter, KRaftVoters, LeaderChange,
    LeaderChangeVoter, VoterEndpoint,
};
use crate::types::{NodeId, Offset, ReplicaKey};

/// The records of a control batch that consensus wants, with their offsets. Snapshot headers and
/// footers are not among them. `path` is where the batch comes from.
pub(crate) fn records(path: &Path, batch: &Batch) -> Result<Vec<(Offset, ControlRecord)>> {
    Ok(wanted(wire_records(path, batch)?))
}

/// Nodes write three in a batch. They are held together, and a small compressed batch can have
/// millions of them.
const BATCH_RECORDS_MAX: u32 = 1000;

/// All records of a control batch in their wire form. `path` is where the batch comes from.
pub(crate) fn wire_records(
    path: &Path,
    batch: &Batch,
) -> Result<Vec<(Offset, wire::ControlRecord)>> {
    decode(batch).map_err(|(offset, why)| {
        let sentence = format!(
            "{} holds a control record at offset {offset} that this release cannot read: {why}.",
            path.display()
        );
        StorageFault::new(FaultKind::Unsupported, path, sentence)
    })
}

/// All records of a control batch in their wire form, or the offset to blame and why.
fn decode(batch: &Batch) -> std::result::Result<Vec<(Offset, wire::ControlRecord)>, Blame> {
    if batch.count() > BATCH_RECORDS_MAX {
        let why = format!("there are {} in one batch", batch.count());
        return Err((batch.base_offset(), why));
    }
    let mut found = Vec::new();
    for record in batch.records() {
        let record = record.map_err(|fault| (batch.base_offset(), fault.to_string()))?;
        let control = wire::ControlRecord::decode(record.key.as_ref(), record.value.as_ref())
            .map_err(|fault| (record.offset, fault.to_string()))?;
        found.push((record.offset, control));
    }
    Ok(found)
}

/// An offset and what is wrong with its record.
type Blame = (Offset, String);

/// The records of a control batch that consensus wants, with their offsets, of a batch that comes
/// from another node.
///
/// # Errors
/// The offset to blame and why it cannot be read.
pub(crate) fn fetched(batch: &Batch) -> std::result::Result<Vec<(Offset, ControlRecord)>, Blame> {
    Ok(wanted(decode(batch)?))
}

fn wanted(records: Vec<(Offset, wire::ControlRecord)>) -> Vec<(Offset, ControlRecord)> {
    let known = |(offset, record)| from_wire(record).map(|record| (offset, record));
    records.into_iter().filter_map(known).collect()
}

/// The record that is written for what raft says. Version 0 throughout, as every release up to
/// 4.4 writes them (a leader change names no directory ids, even with kraft.version 1).
pub(crate) fn to_wire(record: &ControlRecord) -> wire::ControlRecord {
    match record {
        ControlRecord::LeaderChange {
            leader,
            voters,
            granting,
        } => wire::ControlRecord::LeaderChange(LeaderChange {
            leader_id: leader.0,
            voters: voters_of(voters),
            granting_voters: voters_of(granting),
            ..LeaderChange::default()
        }),
        ControlRecord::KraftVersion(level) => wire::ControlRecord::KRaftVersion(KRaftVersion {
            k_raft_version: level.cast_signed(),
            ..KRaftVersion::default()
        }),
        ControlRecord::Voters(voters) => wire::ControlRecord::KRaftVoters(KRaftVoters {
            voters: voters.iter().map(voter_of).collect(),
            ..KRaftVoters::default()
        }),
    }
}

fn voters_of(ids: &[NodeId]) -> Vec<LeaderChangeVoter> {
    let voter = |id: &NodeId| LeaderChangeVoter {
        voter_id: id.0,
        ..LeaderChangeVoter::default()
    };
    ids.iter().map(voter).collect()
}

fn voter_of(voter: &VoterNode) -> KRaftVoter {
    let endpoint = |(name, host, port): &(String, String, u16)| VoterEndpoint {
        name: name.clone(),
        host: host.clone(),
        port: *port,
        ..VoterEndpoint::default()
    };
    KRaftVoter {
        voter_id: voter.key.id.0,
        voter_directory_id: voter.key.directory,
        endpoints: voter.endpoints.iter().map(endpoint).collect(),
        k_raft_version_feature: KRaftVersionFeature {
            min_supported_version: voter.kraft_versions.0.cast_signed(),
            max_supported_version: voter.kraft_versions.1.cast_signed(),
            ..KRaftVersionFeature::default()
        },
        ..KRaftVoter::default()
    }
}

pub(crate) fn from_wire(record: wire::ControlRecord) -> Option<ControlRecord> {
    let ids =
        |voters: &[LeaderChangeVoter]| voters.iter().map(|voter| NodeId(voter.voter_id)).collect();
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

fn voter(voter: KRaftVoter) -> VoterNode {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::batch::BatchBuilder;
    use crate::types::{Epoch, Timestamp, Uuid};

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let voter = VoterNode {
            key: ReplicaKey {
                id: NodeId(3),
                directory: Uuid::from_u128(9),
            },
            endpoints: vec![("CONTROLLER".to_owned(), "host".to_owned(), 9093)],
            kraft_versions: (0, 1),
        };
        let records = [
            ControlRecord::LeaderChange {
                leader: NodeId(3),
                voters: vec![NodeId(3), NodeId(4)],
                granting: vec![NodeId(3)],
            },
            ControlRecord::KraftVersion(1),
            ControlRecord::Voters(vec![voter]),
        ];
        for record in records {
            assert_eq!(from_wire(to_wire(&record)), Some(record));
        }
    }

    #[test]
    fn more_records_than_any_node_writes_into_a_batch_are_refused_before_they_are_read() {
        let path = Path::new("x.log");
        let batch = |count| {
            let mut builder = BatchBuilder::control(Offset(5), Epoch(1), Timestamp(1));
            for _ in 0..count {
                builder
                    .push_control(&wire::SnapshotFooter::default().into())
                    .unwrap();
            }
            builder.build()
        };
        assert_eq!(wire_records(path, &batch(1000)).unwrap().len(), 1000);
        let fault = wire_records(path, &batch(1001)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unsupported);
        assert!(fault.sentence.contains("at offset 5"), "{fault}");
    }
}
