//! The control records of a snapshot.

use crate::raft::{ControlRecord, VoterNode};
use crate::records;
use crate::storage;

/// The control records behind the header of a snapshot: none while the voters are static.
pub(super) fn of_snapshot(kraft_version: u16, voters: &[VoterNode]) -> Vec<records::ControlRecord> {
    if kraft_version == 0 {
        return Vec::new();
    }
    let records = [
        ControlRecord::KraftVersion(kraft_version),
        ControlRecord::Voters(voters.to_vec()),
    ];
    records.iter().map(storage::control_record).collect()
}
