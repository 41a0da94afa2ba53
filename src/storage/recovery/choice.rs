//! Which snapshots a start goes by: those that are whole and of this log.

use std::path::Path;

use tracing::warn;

use super::super::fault::{FaultKind, Result, StorageFault};
use super::super::listing::Listing;
use super::super::snapshot::{self, SnapshotFile, Summary};
use super::is_ahead;
use super::segments::{FoundLog, RESTORE};
use crate::types::{Offset, OffsetAndEpoch};

/// The snapshots that can be used, ascending. The last one was read as a whole and comes with its
/// summary.
pub(super) fn choose(
    dir: &Path,
    listing: &Listing,
    log: &FoundLog,
) -> Result<Vec<(OffsetAndEpoch, Option<Summary>)>> {
    let mut ids: Vec<OffsetAndEpoch> = listing
        .checkpoints
        .iter()
        .copied()
        .filter(|id| *id != OffsetAndEpoch::BOOTSTRAP && id.offset >= log.start)
        .collect();
    ids.retain(|id| !is_stranger(dir, *id, log));
    let mut summary = None;
    while let Some(newest) = ids.last().copied() {
        let path = snapshot::path(dir, newest);
        let fault = match SnapshotFile::open(&path).and_then(|file| file.verify()) {
            Ok(found) => match misnamed(&path, newest, &found, log) {
                None => {
                    summary = Some(found);
                    break;
                }
                Some(fault) => fault,
            },
            Err(fault) if fault.kind == FaultKind::Damaged => fault,
            Err(fault) => return Err(fault),
        };
        ids.pop();
        let covered = log.start == Offset::ZERO || !ids.is_empty();
        if !covered || newest.offset > log.end || log.segments.is_empty() {
            let sentence = format!(
                "{fault} No older snapshot with the log behind it covers it (the log has offsets \
                 {} to {}). {RESTORE}",
                log.start, log.end
            );
            return Err(StorageFault::new(FaultKind::Damaged, &path, sentence));
        }
        warn!(
            "{fault} It is left aside, because an older snapshot or the log covers it: move it away"
        );
    }
    if log.start > Offset::ZERO && ids.is_empty() {
        let sentence = format!(
            "{} has no snapshot, but its log begins at offset {}: the metadata before that is \
             gone. {RESTORE}",
            dir.display(),
            log.start
        );
        return Err(StorageFault::new(FaultKind::Missing, dir, sentence));
    }
    let last = ids.len().saturating_sub(1);
    let with = |(at, id)| (id, if at == last { summary.take() } else { None });
    Ok(ids.into_iter().enumerate().map(with).collect())
}

/// What is wrong with a snapshot that was copied to another end in the log.
pub(super) fn misnamed(
    path: &Path,
    id: OffsetAndEpoch,
    summary: &Summary,
    log: &FoundLog,
) -> Option<StorageFault> {
    let around = log.covered.get(&id.offset)?;
    let what = around.misnamed(path, id.offset, summary.last_timestamp)?;
    let is_ahead = is_ahead(id, log.last_epoch(), log.end);
    (!is_ahead).then(|| StorageFault::new(FaultKind::Damaged, path, what))
}

/// Whether the log has another epoch where the snapshot ends: then that is of another log. One of
/// a later epoch than the log's may take its place.
fn is_stranger(dir: &Path, id: OffsetAndEpoch, log: &FoundLog) -> bool {
    let Some(epoch) = log.epoch_at(id.offset.prev()) else {
        return false;
    };
    let is_stranger = epoch != id.epoch && !is_ahead(id, log.last_epoch(), log.end);
    if is_stranger {
        warn!(
            file = %snapshot::path(dir, id).display(),
            "left aside: it is of epoch {}, but in the log the record before offset {} has epoch \
             {epoch}",
            id.epoch,
            id.offset
        );
    }
    is_stranger
}
