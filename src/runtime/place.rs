//! Where a record stands on disk, for the sentence that ends the process.

use std::path::Path;

use crate::storage::reader::{Item, Role, Source};
use crate::types::Offset;

/// File and position of the batch with `offset` in the log of `directory`, in words; `None` when it
/// is not found. Reads one segment up to there: for a process that is about to end.
pub(super) fn of(directory: &Path, offset: Offset) -> Option<String> {
    let source = Source::open(directory).ok()?;
    let segment = source
        .segments
        .iter()
        .rfind(|segment| matches!(segment.role, Role::Segment { base } if base <= offset))?;
    let found = source.walk(segment).find_map(|item| match item {
        Ok(Item::Batch { position, batch }) if batch.last_offset() >= offset => {
            Some((position, batch.base_offset()))
        }
        Ok(_) | Err(_) => None,
    });
    let (position, base) = found.filter(|(_, base)| *base <= offset)?;
    Some(format!(
        "{}, in the batch of offset {base} at byte {position}",
        segment.path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::batch::BatchBuilder;
    use crate::records::{NoOpRecord, Record};
    use crate::types::{Epoch, Timestamp};

    #[test]
    fn a_record_is_told_by_file_and_the_position_of_its_batch() {
        let directory = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for base in [0, 3, 6] {
            starts.push(bytes.len());
            let mut builder = BatchBuilder::data(Offset(base), Epoch(1), Timestamp(5));
            for _ in 0..3 {
                let record = Record::from(NoOpRecord::default()).at(0);
                builder.push_record(&record).unwrap();
            }
            bytes.extend_from_slice(builder.build().bytes());
        }
        let log = directory.path().join("00000000000000000000.log");
        std::fs::write(&log, &bytes).unwrap();
        let place = of(directory.path(), Offset(4)).expect("the log has it");
        let wanted = format!(
            "{}, in the batch of offset 3 at byte {}",
            log.display(),
            starts[1]
        );
        assert_eq!(place, wanted);
        assert_eq!(of(directory.path(), Offset(9)), None);
    }
}
