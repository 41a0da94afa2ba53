//! The image of a snapshot file.

use std::path::Path;

use crate::image::Image;
use crate::records::VersionedRecord;
use crate::storage::snapshot::{self, SnapshotFile};
use crate::types::OffsetAndEpoch;

/// Replays the snapshot `id` of the partition's directory from the empty image.
///
/// # Errors
/// One sentence with file and record: a record that this release does not know, or that makes no
/// sense, is never skipped.
pub(super) fn load(dir: &Path, id: OffsetAndEpoch) -> Result<Image, String> {
    let path = snapshot::path(dir, id);
    let file = SnapshotFile::open(&path).map_err(|fault| fault.sentence)?;
    let mut image = Image::empty();
    let offset = id.offset.prev();
    for batch in file.batches() {
        let batch = batch.map_err(|fault| fault.sentence)?;
        if batch.is_control() {
            continue;
        }
        for record in batch.records() {
            let record = record.map_err(|fault| format!("{}: {fault}", path.display()))?;
            let at = |reason: &dyn std::fmt::Display| {
                format!(
                    "{}: record {} of the snapshot: {reason}",
                    path.display(),
                    record.offset
                )
            };
            let value = record.value.as_deref().unwrap_or_default();
            let decoded = VersionedRecord::decode(value).map_err(|fault| at(&fault))?;
            if decoded.record.is_transaction_mark() {
                return Err(at(&format!(
                    "{} has no place in a snapshot, which holds what was committed as a whole",
                    decoded.record.record_type().name
                )));
            }
            image
                .replay(&decoded.record, offset)
                .map_err(|fault| at(&fault))?;
        }
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BeginTransactionRecord, EndTransactionRecord, Record};
    use crate::storage::snapshot::SnapshotWriter;
    use crate::types::{Epoch, Offset, Timestamp};

    #[test]
    fn marks_of_a_transaction_are_refused() {
        let id = OffsetAndEpoch {
            offset: Offset(9),
            epoch: Epoch(2),
        };
        let begin = Record::from(BeginTransactionRecord::default());
        let end = Record::from(EndTransactionRecord::default());
        for (marks, allowed) in [
            (vec![], true),
            (vec![begin.clone()], false),
            (vec![begin, end.clone()], false),
            (vec![end], false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer =
                SnapshotWriter::create(dir.path(), id, Timestamp(1), Timestamp(1), &[]).unwrap();
            for mark in marks {
                writer.push(&mark.at(0)).unwrap();
            }
            writer.finish().unwrap();
            match load(dir.path(), id) {
                Ok(_) => assert!(allowed),
                Err(sentence) => {
                    assert!(!allowed, "{sentence}");
                    assert!(sentence.contains("no place in a snapshot"), "{sentence}");
                }
            }
        }
    }
}
