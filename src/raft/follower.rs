//! Following: fetching what the leader has, and cutting what it has not (KIP-595, KIP-630).

use super::calls::Call;
use super::input::{FetchedBatch, Told};
use super::machine::{Raft, Turn};
use super::output::FetchResponse;
use crate::types::OffsetAndEpoch;

/// What a follower has under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    /// A fetch was answered by the leader of this epoch.
    pub(super) fetched: bool,
}

impl Raft {
    /// Asks for what comes next: of the leader, or of anybody who may know who leads.
    pub(super) fn follow(&mut self, _turn: &mut Turn) {}

    /// Asks anybody who may know who leads.
    pub(super) fn discover(&mut self, _turn: &mut Turn) {}

    /// Fetch was answered.
    pub(super) fn fetch_answered(
        &mut self,
        _call: Call,
        _response: FetchResponse,
        _batches: Vec<FetchedBatch>,
        _turn: &mut Turn,
    ) {
    }

    /// FetchSnapshot was answered.
    pub(super) fn fetch_snapshot_answered(&mut self, _call: Call, _told: Told, _turn: &mut Turn) {}

    /// A piece of a snapshot is on disk.
    pub(super) fn piece_kept(&mut self, _id: OffsetAndEpoch, _end: u64) {}

    /// A snapshot that came in is no good.
    pub(super) fn snapshot_failed(&mut self, _id: OffsetAndEpoch) {}
}
