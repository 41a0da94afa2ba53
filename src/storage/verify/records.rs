//! The records of one batch: each read, and replayed where there is a state to replay it on.

use std::path::Path;

use super::{Finding, Report, Severity, State};
use crate::records::batch::Batch;
use crate::records::control::ControlRecord;
use crate::records::{RecordFault, VersionedRecord};
use crate::storage::control;
use crate::types::Offset;

/// Where a batch is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) path: &'a Path,
    pub(super) position: u64,
    /// Of a checkpoint: the offset at which its records are replayed.
    pub(super) checkpoint: Option<Offset>,
}

const AS_WRITTEN: &str = "The checksum is good, so it was written like this: keep a copy of the \
     directory, and restore it or refill the node from the other voters";

/// Reads the metadata records of `batch` and replays them. Without a state they are only read. A
/// record that cannot be read or replayed ends the state. Returns whether all is well.
pub(super) fn replay<S: State>(
    report: &mut Report,
    at: At<'_>,
    batch: &Batch,
    state: &mut Option<S>,
) -> bool {
    let mut sound = true;
    let mut wrong = |offset: Offset, what: &str, advice: &str| {
        let what = format!(
            "{}: the record at offset {offset} (in the batch at byte {}) {what}.",
            at.path.display(),
            at.position
        );
        let finding = Finding::new(Severity::Wrong, "record", at.path, what)
            .at(at.position, offset)
            .advise(format!("{advice}."));
        report.add(finding);
        sound = false;
    };
    for record in batch.records() {
        let record = match record {
            Ok(record) => record,
            Err(fault) => {
                wrong(
                    batch.base_offset(),
                    &format!("or one behind it is malformed: {fault}"),
                    AS_WRITTEN,
                );
                *state = None;
                break;
            }
        };
        let value = record.value.unwrap_or_default();
        let decoded = match VersionedRecord::decode(&value) {
            Ok(decoded) => decoded,
            Err(fault) => {
                wrong(
                    record.offset,
                    &format!("cannot be read: {fault}"),
                    unread(&fault),
                );
                *state = None;
                continue;
            }
        };
        if at.checkpoint.is_some() && decoded.record.is_transaction_mark() {
            let what = format!(
                "is a {}, which has no place in a checkpoint",
                decoded.record.name()
            );
            wrong(record.offset, &what, AS_WRITTEN);
            *state = None;
            continue;
        }
        let offset = at.checkpoint.unwrap_or(record.offset);
        if let Some(replayed) = state
            && let Err(reason) = replayed.replay(&decoded.record, offset)
        {
            let what = format!(
                "is a {} that makes no sense there: {reason}",
                decoded.record.name()
            );
            wrong(record.offset, &what, AS_WRITTEN);
            *state = None;
        }
    }
    sound
}

const fn unread(fault: &RecordFault) -> &'static str {
    match fault {
        RecordFault::UnknownType(_) | RecordFault::UnknownVersion { .. } => {
            "A later release may have written it: start that release, or a kraftd that knows it"
        }
        _ => AS_WRITTEN,
    }
}

/// The control records of `batch`, `None` after a finding.
pub(super) fn controls(
    report: &mut Report,
    at: At<'_>,
    batch: &Batch,
) -> Option<Vec<(Offset, ControlRecord)>> {
    match control::wire_records(at.path, batch) {
        Ok(records) => Some(records),
        Err(fault) => {
            let finding = Finding::new(Severity::Wrong, "control-record", at.path, fault.sentence)
                .at(at.position, batch.base_offset())
                .advise(format!("{AS_WRITTEN}."));
            report.add(finding);
            None
        }
    }
}

/// Tells of a control record where it must not be.
pub(super) fn misplaced(report: &mut Report, at: At<'_>, offset: Offset, record: &ControlRecord) {
    let inside = if at.checkpoint.is_some() {
        "a checkpoint"
    } else {
        "the log"
    };
    let what = format!(
        "{}: the control record at offset {offset} (in the batch at byte {}) is a {}, which has no \
         place in {inside}.",
        at.path.display(),
        at.position,
        record.name()
    );
    let finding = Finding::new(Severity::Wrong, "control-record", at.path, what)
        .at(at.position, offset)
        .advise(format!("{AS_WRITTEN}."));
    report.add(finding);
}
