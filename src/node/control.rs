//! Control records: raft says what, `records` knows how it is written.

use crate::raft;
use crate::records::ControlRecord;
use crate::records::control::{
    KRaftVersion, KRaftVersionFeature, KRaftVoter, KRaftVoters, LeaderChange, LeaderChangeVoter,
    VoterEndpoint,
};
use crate::types::NodeId;

/// The record that is written for what raft says. Version 0 throughout, as every release up to
/// 4.4 writes them (a leader change names no directory ids, even with kraft.version 1).
pub(super) fn record_of(record: &raft::ControlRecord) -> ControlRecord {
    match record {
        raft::ControlRecord::LeaderChange {
            leader,
            voters,
            granting,
        } => ControlRecord::LeaderChange(LeaderChange {
            leader_id: leader.0,
            voters: voters_of(voters),
            granting_voters: voters_of(granting),
            ..LeaderChange::default()
        }),
        raft::ControlRecord::KraftVersion(level) => ControlRecord::KRaftVersion(KRaftVersion {
            k_raft_version: level.cast_signed(),
            ..KRaftVersion::default()
        }),
        raft::ControlRecord::Voters(voters) => ControlRecord::KRaftVoters(KRaftVoters {
            voters: voters.iter().map(voter_of).collect(),
            ..KRaftVoters::default()
        }),
    }
}

/// The control records behind the header of a snapshot: none while the voters are static.
pub(super) fn of_snapshot(kraft_version: u16, voters: &[raft::VoterNode]) -> Vec<ControlRecord> {
    if kraft_version == 0 {
        return Vec::new();
    }
    let records = [
        raft::ControlRecord::KraftVersion(kraft_version),
        raft::ControlRecord::Voters(voters.to_vec()),
    ];
    records.iter().map(record_of).collect()
}

fn voters_of(ids: &[NodeId]) -> Vec<LeaderChangeVoter> {
    let voter = |id: &NodeId| LeaderChangeVoter {
        voter_id: id.0,
        ..LeaderChangeVoter::default()
    };
    ids.iter().map(voter).collect()
}

fn voter_of(voter: &raft::VoterNode) -> KRaftVoter {
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
