//! One pass over the log before it is replayed: where it is good, and where a moment is.

use super::super::fault::Result;
use super::super::recovery::is_ahead;
use super::Source;
use super::walk::{Damage, Item};
use crate::types::{Epoch, Offset, OffsetAndEpoch, Timestamp};

/// A run of good batches without a gap.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) first: Offset,
    /// Exclusive.
    pub(super) end: Offset,
    /// The epoch of its last batch.
    pub(super) epoch: Epoch,
    pub(super) times: (Timestamp, Timestamp),
    pub(super) damage: Option<Box<Damage>>,
}

impl Run {
    /// Whether a start would drop it and begin the log anew at the checkpoint.
    pub(super) fn is_behind(&self, checkpoint: OffsetAndEpoch) -> bool {
        is_ahead(checkpoint, Some(self.epoch), self.end)
    }
}

/// More runs than this are not looked at.
const RUNS_MAX: usize = 1000;

/// What one pass over the log finds.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) runs: Vec<Run>,
    /// The last offset of the last batch at or before the wanted time.
    pub(super) at_time: Option<Offset>,
    /// Damage before the first run.
    pub(super) damage: Option<Box<Damage>>,
}

pub(super) fn survey(source: &Source, time: Option<Timestamp>) -> Result<Survey> {
    let mut found = Survey::default();
    let mut open = false;
    for item in source.walk_log() {
        let batch = match item?.1 {
            Item::Batch { batch, .. } => batch,
            Item::Damage(damage) => {
                match found.runs.last_mut() {
                    Some(run) if open => run.damage = Some(damage),
                    Some(_) => {}
                    None => found.damage = Some(damage),
                }
                open = false;
                continue;
            }
        };
        let stamp = batch.max_timestamp();
        let is_full = found.runs.len() == RUNS_MAX;
        match found.runs.last_mut().filter(|_| open) {
            Some(run) => {
                run.end = batch.end_offset();
                run.epoch = batch.epoch();
                run.times.1 = stamp;
            }
            None if is_full => return Ok(found),
            None => found.runs.push(Run {
                first: batch.base_offset(),
                end: batch.end_offset(),
                epoch: batch.epoch(),
                times: (stamp, stamp),
                damage: None,
            }),
        }
        open = true;
        if time.is_some_and(|time| stamp <= time) {
            found.at_time = Some(batch.last_offset());
        }
    }
    Ok(found)
}
