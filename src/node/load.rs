//! Taking over a snapshot of the leader while running: this node is so far behind that the log it
//! would need is gone (KIP-630).
//!
//! Piece by piece it goes to the disk; the whole is looked at there and gets its name; the shell
//! replays it beside everything else; then, in one step, the image is swapped and raft moves the
//! log. No fork and no held reply can be left then: a leader takes no snapshot over. A crash before
//! the last step leaves a snapshot ahead of the log, which a start takes over.

use crate::image::Image;
use crate::raft::{ControlRecord, Input, LoadedSnapshot};
use crate::storage::{HeldSnapshot, Unreceived};
use crate::types::{Now, OffsetAndEpoch, Timestamp};

use super::apply::Replayer;
use super::{Effect, Node};

/// A snapshot that was replayed.
#[derive(Debug)]
pub struct Loaded {
    /// What it is on disk.
    pub held: HeldSnapshot,
    /// What it holds.
    pub image: Image,
    /// kraft.version and voters, if they live in the log.
    pub control: Vec<ControlRecord>,
}

impl Node {
    /// All pieces are on disk.
    pub(super) fn snapshot_received(
        &mut self,
        now: Now,
        id: OffsetAndEpoch,
        outcome: Result<HeldSnapshot, Unreceived>,
        effects: &mut Vec<Effect>,
    ) {
        let lacks_room = matches!(outcome, Err(Unreceived::NoRoom(_)));
        let lacked_room = std::mem::replace(&mut self.snapshots.lacks_room, lacks_room);
        match outcome {
            Ok(_) => effects.push(Effect::LoadSnapshot(id)),
            Err(Unreceived::NoGood(reason)) => {
                tracing::warn!("a fetched snapshot is no good: {reason}");
                self.drive(now, Input::SnapshotFailed(id), effects);
            }
            Err(Unreceived::NoRoom(reason)) => {
                if !lacked_room {
                    tracing::warn!(
                        "the leader's snapshot {}-{} is not fetched: {reason} Until there is room \
                         it is asked for again and again, as this node cannot follow without it",
                        id.offset,
                        id.epoch
                    );
                }
                self.drive(now, Input::SnapshotWithoutRoom(id), effects);
            }
        }
    }

    /// Takes over what was loaded. A snapshot that cannot be replayed is nothing that this node
    /// could go on with: the log before its end is gone at the leader.
    pub(super) fn snapshot_loaded(
        &mut self,
        now: Now,
        loaded: Result<Box<Loaded>, String>,
        effects: &mut Vec<Effect>,
    ) {
        let Loaded {
            held,
            image,
            control,
        } = match loaded {
            Ok(loaded) => *loaded,
            Err(reason) => return self.halt(reason, effects),
        };
        let id = held.id;
        if self.stopping || !self.raft.takes_snapshot(id) || id.offset <= self.committed.end {
            tracing::warn!(
                "the snapshot {}-{} is not taken over: this node has all that it holds",
                id.offset,
                id.epoch
            );
            return self.drive(now, Input::SnapshotFailed(id), effects);
        }
        tracing::info!("taking over the snapshot {}-{}", id.offset, id.epoch);
        let restarts = self.raft.is_behind(id);
        let same_features = image.settled().features() == self.published.image.features();
        self.working = Replayer {
            image,
            end: id.offset,
            timestamp: held.last_timestamp.unwrap_or(Timestamp(0)),
            features_end: if same_features {
                self.published.features_end
            } else {
                id.offset
            },
        };
        if restarts {
            self.restart_tail(id.offset);
        }
        self.snapshots.taken_over(held, restarts, now.instant);
        let loaded = LoadedSnapshot { id, control };
        self.publish(self.working.clone(), effects);
        self.drive(now, Input::SnapshotLoaded(loaded), effects);
    }
}
