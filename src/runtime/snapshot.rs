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
            let value = record.value.clone().unwrap_or_default();
            let decoded = VersionedRecord::decode(&value).map_err(|fault| at(&fault))?;
            image
                .replay(&decoded.record, offset)
                .map_err(|fault| at(&fault))?;
        }
    }
    Ok(image)
}
