//! The moment a leader first says that an offset is committed, more than half of its voters have
//! everything below on the platter (the log, or a snapshot in its place).

use kraftd::raft::VoterNode;
use kraftd::types::{Offset, ReplicaKey};

use crate::disk::Disk;
use crate::law;

/// No memory: the law is about one moment.
pub(crate) fn holds<'a>(
    voters: &[VoterNode],
    hosts: impl Iterator<Item = (ReplicaKey, &'a Disk)>,
    to: Offset,
    chain: Option<u64>,
) {
    let has = |disk: &Disk| {
        let platter = disk.platter();
        platter.base() >= to || (chain.is_some() && platter.chain_at(to) == chain)
    };
    let keys: Vec<ReplicaKey> = hosts.filter(|(_, disk)| has(disk)).map(|it| it.0).collect();
    let is = |voter: &ReplicaKey, key: &ReplicaKey| {
        voter.id == key.id && (voter.directory.is_nil() || voter.directory == key.directory)
    };
    let durable = voters
        .iter()
        .filter(|voter| keys.iter().any(|key| is(&voter.key, key)))
        .count();
    law!(
        durable * 2 > voters.len(),
        "{to} is told, on the platters of {durable} of {}",
        voters.len()
    );
}
