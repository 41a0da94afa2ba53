//! Fetching a leader's snapshot, piece by piece, when what this node needs of the log is gone
//! there (KIP-630).
//!
//! One piece at a time: the next is asked for when the one before is on disk, so memory holds one.
//! A connection that breaks costs the piece under way. Anything that does not fit begins the
//! download anew, and what the leader does not have any more ends it. What has no room on this disk
//! is asked for by its first byte, which tells the disk the size, until there is room.

use super::calls::{Call, Kind};
use super::input::{Ask, FetchSnapshotRequest, Request, Told};
use super::machine::{Raft, Turn};
use super::output::{Output, Peer, PeerName, RaftError};
use super::refusal::Refusal;
use super::roles::Role;
use crate::types::{ErrorCode, Instant, NodeId, Offset, OffsetAndEpoch};

/// No snapshot of metadata comes near this size: 64 GiB.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 36;

/// A snapshot on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Download {
    /// Whose: another node's snapshot of the same name need not have the same bytes.
    leader: NodeId,
    id: OffsetAndEpoch,
    /// Of the whole file, once the first piece told it.
    size: Option<u64>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many bytes are on disk: the next piece begins there.
    Kept(u64),
    /// A piece that ends there is on its way to the disk.
    Keeping(u64),
    /// All bytes were given to the disk: the snapshot is being loaded. That may take longer than a
    /// leader waits for a voter, so a byte is asked for now and then: from then on, or at once.
    Loading(Option<Instant>),
    /// The disk has no room for it. Its first byte is asked for again: from then on, or at once.
    Waiting(Option<Instant>),
}

impl Download {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        match self.stage {
            Stage::Loading(Some(at)) | Stage::Waiting(Some(at)) => at,
            Stage::Kept(_) | Stage::Keeping(_) | Stage::Loading(None) | Stage::Waiting(None) => {
                Instant::NEVER
            }
        }
    }

    /// Forgets a wait that is over.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Stage::Loading(at) | Stage::Waiting(at) = &mut self.stage {
            at.take_if(|at| *at <= now);
        }
    }

    fn loading(self, touch_at: Instant) -> Self {
        let stage = Stage::Loading(Some(touch_at));
        Self { stage, ..self }
    }

    /// Where the next piece begins, if it is time for one.
    fn next_piece(&self) -> Option<u64> {
        match self.stage {
            Stage::Kept(position) => Some(position),
            Stage::Loading(None) => self.size.map(|size| size.saturating_sub(1)),
            Stage::Waiting(None) => Some(0),
            Stage::Keeping(_) | Stage::Loading(Some(_)) | Stage::Waiting(Some(_)) => None,
        }
    }

    /// The most that the next piece may have, if `most` is what this node takes otherwise.
    fn bytes_max(&self, most: u32) -> i32 {
        match self.stage {
            Stage::Waiting(_) => 1,
            _ => i32::try_from(most).unwrap_or(i32::MAX),
        }
    }
}

/// Whether a FetchSnapshot that failed so need not be asked again. Java 4.4 answers to one for a
/// snapshot that is gone, or a position behind its end, with a top-level UNKNOWN_SERVER_ERROR.
pub(super) fn is_hopeless(error: RaftError) -> bool {
    let code = match error {
        RaftError::None => return false,
        RaftError::Top(code) | RaftError::Partition(code) => code,
    };
    !matches!(
        code,
        ErrorCode::BrokerNotAvailable
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::NotLeaderOrFollower
    )
}

impl Raft {
    /// The leader offers a snapshot instead of records.
    pub(super) fn snapshot_offered(&mut self, id: OffsetAndEpoch) -> Result<(), Refusal> {
        let Role::Follower(role) = &self.role else {
            return Ok(());
        };
        // A log of a later epoch than the quorum's could not be voted for, nor started with.
        let begun = id.epoch <= self.epoch;
        if begun && (Offset(1)..self.floor()).contains(&id.offset) {
            return Err(Refusal::LostCommitted(
                "it offers a snapshot that ends before committed records of this node",
            ));
        }
        if id.offset <= Offset::ZERO || !begun || !self.takes_snapshot(id) {
            return Err(Refusal::OtherLog(
                "it offers a snapshot that does not go with this log",
            ));
        }
        let leader = role.leader;
        let download = &mut self.fetching.download;
        if download.is_none_or(|it| it.id != id || it.leader != leader) {
            tracing::info!(?id, leader = leader.0, "fetching a snapshot");
            *download = Some(Download {
                leader,
                id,
                size: None,
                stage: Stage::Kept(0),
            });
        }
        Ok(())
    }

    /// Asks the leader for the next piece of the download, if there is one. False if there is none.
    pub(super) fn fetch_piece(&mut self, leader: &Peer, turn: &mut Turn) -> bool {
        let Role::Follower(role) = &self.role else {
            return false;
        };
        let Some(download) = self.fetching.download else {
            return false;
        };
        if download.leader != role.leader || !self.takes_snapshot(download.id) {
            self.fetching.download = None;
            return false;
        }
        let Some(position) = download.next_piece() else {
            return true;
        };
        let request = FetchSnapshotRequest {
            cluster_id: Some(self.config.cluster_id.clone()),
            replica: self.config.node,
            current_leader_epoch: self.epoch.0,
            id: download.id,
            // Below the greatest size.
            position: i64::try_from(position).unwrap_or(i64::MAX),
            max_bytes: download.bytes_max(self.config.snapshot_bytes_max),
        };
        let kind = Kind::FetchSnapshot(download.id, position);
        let ask = Ask::Raft(Request::FetchSnapshot(request));
        self.ask(leader.clone(), kind, ask, turn);
        true
    }

    /// FetchSnapshot was answered by the leader in this node's epoch, perhaps with an error.
    pub(super) fn fetch_snapshot_answered(&mut self, call: Call, told: Told, turn: &mut Turn) {
        let Kind::FetchSnapshot(id, position) = call.kind else {
            return;
        };
        let wanted = |it: Download| it.id == id && it.next_piece() == Some(position);
        let Some(download) = self.fetching.download.filter(|it| wanted(*it)) else {
            tracing::debug!(?id, position, "a piece that nobody waits for is ignored");
            return;
        };
        let Told::Snapshot {
            response,
            size,
            position: told_position,
            bytes,
        } = told
        else {
            return self.abandon_download(call, turn);
        };
        let none = response.id.offset < Offset::ZERO || response.id.epoch.0 < 0;
        if none || response.error != RaftError::None {
            return self.abandon_download(call, turn);
        }
        let again = self.touch_at(turn);
        let size = u64::try_from(size).unwrap_or(0);
        let end = position.saturating_add(bytes.len() as u64);
        let fits = response.id == id
            && u64::try_from(told_position) == Ok(position)
            && download.size.is_none_or(|known| known == size)
            && (1..=SNAPSHOT_BYTES_MAX).contains(&size)
            && (position + 1..=size).contains(&end);
        if !fits {
            self.fetching.download = Some(match download.stage {
                Stage::Loading(_) => download.loading(again),
                Stage::Kept(_) | Stage::Keeping(_) | Stage::Waiting(_) => Download {
                    size: None,
                    stage: Stage::Kept(0),
                    ..download
                },
            });
            let why = Refusal::BadAnswer("a piece of a snapshot does not fit");
            return self.refuse(call.peer, why, turn);
        }
        let download = Download {
            size: Some(size),
            ..download
        };
        self.fetching.download = Some(match end == size {
            true => download.loading(again),
            false => Download {
                stage: Stage::Keeping(end),
                ..download
            },
        });
        if !matches!(download.stage, Stage::Loading(_)) {
            turn.outputs.push(Output::KeepPiece {
                id,
                position,
                bytes,
                size,
            });
        }
        self.heard_leader(turn);
    }

    /// The leader cannot give the snapshot: it is asked what to do instead.
    pub(super) fn abandon_download(&mut self, call: Call, turn: &Turn) {
        if let Kind::FetchSnapshot(id, _) = call.kind {
            self.rest(call.peer, turn.now.instant);
            let again = self.touch_at(turn);
            match &mut self.fetching.download {
                // This node has all of it.
                Some(it) if matches!(it.stage, Stage::Loading(_)) => *it = it.loading(again),
                Some(_) | None => {
                    tracing::warn!(?id, "the leader does not have the snapshot any more");
                    self.end_download(id);
                }
            }
        }
    }

    /// When a leader is to hear again of a node that loads its snapshot.
    fn touch_at(&self, turn: &Turn) -> Instant {
        turn.now.instant.plus_ms(self.config.fetch_timeout_ms / 4)
    }

    /// A piece of a snapshot is on disk.
    pub(super) fn piece_kept(&mut self, id: OffsetAndEpoch, end: u64) {
        if let Some(download) = &mut self.fetching.download
            && download.id == id
            && download.stage == Stage::Keeping(end)
        {
            download.stage = Stage::Kept(end);
        }
    }

    /// A snapshot that came in is no good.
    pub(super) fn snapshot_failed(&mut self, id: OffsetAndEpoch, turn: &Turn) {
        if self.end_download(id)
            && let Role::Follower(role) = &self.role
        {
            let leader = PeerName::Node(role.leader);
            self.rest(leader, turn.now.instant);
        }
    }

    /// There is no room for a snapshot. The leader still hears of this node, which goes on as soon
    /// as there is.
    pub(super) fn snapshot_without_room(&mut self, id: OffsetAndEpoch, turn: &Turn) {
        let again = self.touch_at(turn);
        if let Some(download) = self.fetching.download.as_mut().filter(|it| it.id == id) {
            download.size = None;
            download.stage = Stage::Waiting(Some(again));
        }
    }

    /// There is nothing more to fetch of it.
    pub(super) fn end_download(&mut self, id: OffsetAndEpoch) -> bool {
        self.fetching.download.take_if(|it| it.id == id).is_some()
    }
}
