//! A peer that sends whatever a hostile or broken program could. It does not pretend to be a voter:
//! keeping such peers out is the work of authorization, and no quorum survives them.

use kraftd::raft::{
    BeginQuorumEpochRequest, DescribeQuorumRequest, EndQuorumEpochRequest, FetchRequest,
    FetchSnapshotRequest, Request, VoteRequest,
};
use kraftd::types::{Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey, SplitMix};

use crate::node::{CLUSTER, key};

/// The first id that no node has.
const STRANGERS: u64 = 50;

fn stranger(rng: &mut SplitMix) -> ReplicaKey {
    key((STRANGERS + rng.below(4)) as i32)
}

/// A number that a peer could send where one around `near` is right.
fn wild(rng: &mut SplitMix, near: i64) -> i64 {
    match rng.below(8) {
        0 => -1,
        1 => 0,
        2 => i64::MAX,
        3 => i64::MIN,
        _ => near + rng.below(5) as i64 - 2,
    }
}

/// Like [`wild`], in 32 bits. A correct epoch is never so large that no election could follow.
fn wild_epoch(rng: &mut SplitMix, near: i32) -> i32 {
    match rng.below(10) {
        0 => i32::MAX,
        1 => i32::MIN,
        2 => near.saturating_add(rng.below(40) as i32),
        _ => near + rng.below(3) as i32 - 1,
    }
}

/// A hostile request. `epoch` and `end` are the truth, so that some lies are plausible.
pub(crate) fn lie(rng: &mut SplitMix, epoch: Epoch, end: Offset) -> Request {
    let cluster_id = [None, Some(CLUSTER), Some("another")][rng.below(3) as usize];
    let cluster_id = cluster_id.map(str::to_owned);
    let who = stranger(rng);
    let voter = [None, Some(key(1)), Some(key(9))][rng.below(3) as usize];
    let near = wild_epoch(rng, epoch.0);
    // Whoever may name the leader of an epoch that has none yet keeps the nodes that believe it
    // out of that epoch, whatever they are told later.
    let past = match rng.below(3) {
        0 => i32::MAX,
        1 => i32::MIN,
        _ => epoch.0 - 1 - rng.below(3) as i32,
    };
    match rng.below(13) {
        // A lie that convinces: the next epoch, and a log that is not behind.
        12 => Request::Vote(VoteRequest {
            cluster_id: None,
            voter: None,
            candidate: who,
            epoch: Epoch(epoch.0 + rng.below(2) as i32),
            last_epoch: Epoch(epoch.0 - rng.below(2) as i32),
            last_offset: end.plus(5),
            pre_vote: false,
        }),
        0 => Request::Vote(VoteRequest {
            cluster_id,
            voter,
            candidate: who,
            epoch: Epoch(near),
            last_epoch: Epoch(wild_epoch(rng, epoch.0)),
            last_offset: Offset(wild(rng, end.0)),
            pre_vote: rng.below(2) == 0,
        }),
        1 => Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            cluster_id,
            voter,
            leader_id: who.id,
            epoch: Epoch(past),
            endpoints: match rng.below(2) {
                0 => Vec::new(),
                _ => vec![("CONTROLLER".to_owned(), "nowhere".to_owned(), 1)],
            },
        }),
        2 => Request::EndQuorumEpoch(EndQuorumEpochRequest {
            cluster_id,
            leader_id: who.id,
            epoch: Epoch(past),
            preferred: (0..rng.below(90)).map(|other| key(other as i32)).collect(),
        }),
        3 => Request::DescribeQuorum(DescribeQuorumRequest),
        4 | 5 => Request::FetchSnapshot(FetchSnapshotRequest {
            cluster_id,
            replica: who,
            current_leader_epoch: near,
            id: OffsetAndEpoch {
                offset: Offset(wild(rng, end.0)),
                epoch: Epoch(wild_epoch(rng, epoch.0)),
            },
            position: wild(rng, 100),
            max_bytes: wild_epoch(rng, 1_000),
        }),
        _ => fetch(rng, cluster_id, (near, epoch), end),
    }
}

fn fetch(
    rng: &mut SplitMix,
    cluster_id: Option<String>,
    (near, epoch): (i32, Epoch),
    end: Offset,
) -> Request {
    let who = stranger(rng);
    Request::Fetch(FetchRequest {
        cluster_id,
        replica: match rng.below(4) {
            0 => ReplicaKey {
                id: NodeId(-1),
                ..who
            },
            _ => who,
        },
        current_leader_epoch: near,
        fetch_offset: wild(rng, end.0),
        last_fetched_epoch: wild_epoch(rng, epoch.0),
        high_watermark: wild(rng, end.0),
        max_wait_ms: wild_epoch(rng, 300).min(5_000),
        max_bytes: wild_epoch(rng, 100),
    })
}
