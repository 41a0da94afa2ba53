//! Replicas that fetch: an honest observer that behaves as a broker does, and a liar that sends
//! whatever a hostile or broken peer could.

use kraftd::raft::{
    BeginQuorumEpochRequest, DescribeQuorumRequest, EndQuorumEpochRequest, FetchRequest,
    FetchResponse, FetchSnapshotRequest, RaftError, Request, VoteRequest,
};
use kraftd::types::{Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey, SplitMix, Ticket, Uuid};

use crate::disk::Entry;

pub(crate) const CLUSTER: &str = "simulated";

pub(crate) fn key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        directory: Uuid::from_u128(1_000 + u128::from(id.unsigned_abs())),
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Fetch(FetchResponse, Vec<(Offset, Entry)>),
    Snapshot(RaftError, OffsetAndEpoch),
    Other,
}

/// What an observer did with an answer; the laws look at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// Offsets of the records it took over.
    pub appended: Vec<(Offset, Entry)>,
    /// It was told to cut its log to here.
    pub truncated: Option<Offset>,
    /// It was told to start over from here.
    pub loaded: Option<OffsetAndEpoch>,
    /// It was told to fetch a snapshot.
    pub sent_to_snapshot: bool,
    /// The snapshot that it was fetching is not there any more.
    pub snapshot_gone: bool,
    /// Whether it should ask again at once.
    pub news: bool,
}

/// In how many pieces a snapshot is fetched: it may be deleted between two.
const SNAPSHOT_PIECES: u64 = 3;

/// An honest observer.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    pub key: ReplicaKey,
    /// Its log begins behind this snapshot.
    pub base: OffsetAndEpoch,
    pub log: Vec<Entry>,
    /// What it knows to be committed, exclusive; -1 if nothing.
    pub commit: i64,
    epoch: i32,
    /// A snapshot that it was told to fetch, and how many pieces of it are missing.
    wanted: Option<(OffsetAndEpoch, u64)>,
    /// The request that it waits for.
    pub waiting: Option<Ticket>,
    /// Whether it tells the commit offset that it knows (Fetch version 18).
    tells_commit: bool,
}

impl Observer {
    pub(crate) fn new(id: i32, rng: &mut SplitMix) -> Self {
        Self {
            key: key(id),
            base: OffsetAndEpoch::BOOTSTRAP,
            log: Vec::new(),
            commit: -1,
            epoch: 0,
            wanted: None,
            waiting: None,
            tells_commit: rng.below(2) == 0,
        }
    }

    pub(crate) fn end(&self) -> Offset {
        self.base.offset.plus(self.log.len() as i64)
    }

    fn last_epoch(&self) -> Epoch {
        self.log.last().map_or(self.base.epoch, |entry| entry.epoch)
    }

    /// The entry at `offset`, which is in its log.
    pub(crate) fn entry(&self, offset: Offset) -> Option<&Entry> {
        let at = usize::try_from(offset.0 - self.base.offset.0).ok()?;
        self.log.get(at)
    }

    /// Its next request, and how long it may take.
    pub(crate) fn request(&self, rng: &mut SplitMix) -> (Request, u64) {
        if let Some((id, missing)) = self.wanted {
            let request = FetchSnapshotRequest {
                cluster_id: Some(CLUSTER.to_owned()),
                replica: self.key,
                current_leader_epoch: self.epoch,
                id,
                position: (SNAPSHOT_PIECES - missing) as i64 * 1_000,
                max_bytes: 1_000,
            };
            return (Request::FetchSnapshot(request), 0);
        }
        let wait_ms = [0, 100, 500][rng.below(3) as usize];
        let request = FetchRequest {
            cluster_id: Some(CLUSTER.to_owned()),
            replica: self.key,
            current_leader_epoch: self.epoch,
            fetch_offset: self.end().0,
            last_fetched_epoch: self.last_epoch().0,
            high_watermark: if self.tells_commit {
                self.commit
            } else {
                i64::MAX
            },
            max_wait_ms: wait_ms,
            max_bytes: [0, 120, 1_048_576][rng.below(3) as usize],
        };
        (Request::Fetch(request), wait_ms as u64)
    }

    /// Takes an answer as a broker does (KIP-595, follower).
    pub(crate) fn take(&mut self, answer: Answer) -> Change {
        let mut change = Change::default();
        match answer {
            Answer::Fetch(response, records) => {
                if response.error != RaftError::None {
                    self.epoch = self.epoch.max(response.hint.epoch.0);
                } else if let Some(end) = response.diverging {
                    change.truncated = Some(self.cut(end));
                    change.news = true;
                } else if let Some(id) = response.snapshot {
                    self.wanted = Some((id, SNAPSHOT_PIECES));
                    change.sent_to_snapshot = true;
                    change.news = true;
                } else {
                    for (offset, entry) in records {
                        if offset == self.end() {
                            self.log.push(entry.clone());
                            change.appended.push((offset, entry));
                        }
                    }
                    change.news = !change.appended.is_empty();
                    let known = response.high_watermark.min(self.end().0);
                    self.commit = self.commit.max(known);
                }
            }
            Answer::Snapshot(error, id) => {
                match self.wanted.take() {
                    Some((wanted, missing)) if wanted == id && error == RaftError::None => {
                        if missing > 1 {
                            self.wanted = Some((id, missing - 1));
                        } else {
                            self.base = id;
                            self.log.clear();
                            self.commit = id.offset.0;
                            change.loaded = Some(id);
                        }
                    }
                    // It is gone meanwhile: the next fetch tells a newer one.
                    _ => change.snapshot_gone = true,
                }
                change.news = true;
            }
            Answer::Other => {}
        }
        change
    }

    /// Cuts the log to `end`, or to the end of that epoch in its own log if that is lower.
    fn cut(&mut self, end: OffsetAndEpoch) -> Offset {
        let own = self.log.partition_point(|entry| entry.epoch <= end.epoch);
        let kept = own.min(usize::try_from(end.offset.0 - self.base.offset.0).unwrap_or(0));
        self.log.truncate(kept);
        self.end()
    }

    /// Dies and comes back: without the end of its log, or with an empty disk.
    pub(crate) fn crash(&mut self, rng: &mut SplitMix) {
        self.waiting = None;
        self.wanted = None;
        self.commit = -1;
        if rng.below(4) == 0 {
            self.base = OffsetAndEpoch::BOOTSTRAP;
            self.log.clear();
            self.epoch = 0;
            return;
        }
        let kept = rng.below(self.log.len() as u64 + 1) as usize;
        let kept = self.log.get(kept).map_or(self.log.len(), |entry| {
            usize::try_from(entry.batch.0 - self.base.offset.0).unwrap_or(0)
        });
        self.log.truncate(kept);
        self.epoch = self.last_epoch().0;
    }
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

/// Like [`wild`], in 32 bits. A correct epoch is never so large that no election could follow:
/// keeping such peers out is the work of authorization.
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
    let id = rng.below(6) as i32 - 1;
    let voter = [None, Some(key(1)), Some(key(9))][rng.below(3) as usize];
    let near = wild_epoch(rng, epoch.0);
    match rng.below(13) {
        // A lie that convinces: the next epoch, and a log that is not behind.
        12 => Request::Vote(VoteRequest {
            cluster_id: None,
            voter: None,
            candidate: key(2 + rng.below(3) as i32),
            epoch: Epoch(epoch.0 + rng.below(2) as i32),
            last_epoch: Epoch(epoch.0 - rng.below(2) as i32),
            last_offset: end.plus(5),
            pre_vote: false,
        }),
        0 => Request::Vote(VoteRequest {
            cluster_id,
            voter,
            candidate: key(id),
            epoch: Epoch(near),
            last_epoch: Epoch(wild_epoch(rng, epoch.0)),
            last_offset: Offset(wild(rng, end.0)),
            pre_vote: rng.below(2) == 0,
        }),
        1 => Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
            cluster_id,
            voter,
            leader_id: NodeId(id),
            epoch: Epoch(near),
            endpoints: match rng.below(2) {
                0 => Vec::new(),
                _ => vec![("CONTROLLER".to_owned(), "nowhere".to_owned(), 1)],
            },
        }),
        2 => Request::EndQuorumEpoch(EndQuorumEpochRequest {
            cluster_id,
            leader_id: NodeId(id),
            epoch: Epoch(near),
            preferred: (0..rng.below(90)).map(|other| key(other as i32)).collect(),
        }),
        3 => Request::DescribeQuorum(DescribeQuorumRequest),
        4 | 5 => Request::FetchSnapshot(FetchSnapshotRequest {
            cluster_id,
            replica: key(id),
            current_leader_epoch: near,
            id: OffsetAndEpoch {
                offset: Offset(wild(rng, end.0)),
                epoch: Epoch(wild_epoch(rng, epoch.0)),
            },
            position: wild(rng, 100),
            max_bytes: wild_epoch(rng, 1_000),
        }),
        _ => Request::Fetch(FetchRequest {
            cluster_id,
            replica: key(id),
            current_leader_epoch: near,
            fetch_offset: wild(rng, end.0),
            last_fetched_epoch: wild_epoch(rng, epoch.0),
            high_watermark: wild(rng, end.0),
            max_wait_ms: wild_epoch(rng, 300).min(5_000),
            max_bytes: wild_epoch(rng, 100),
        }),
    }
}
