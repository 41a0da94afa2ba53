//! The image of a snapshot file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use super::core::Message;
use crate::image::Image;
use crate::node::{Event, Loaded};
use crate::records::VersionedRecord;
use crate::storage::HeldSnapshot;
use crate::storage::snapshot::{self, SnapshotFile};
use crate::types::OffsetAndEpoch;

/// Loads snapshots beside the core, and tells it.
#[derive(Clone)]
pub(super) struct Loader {
    /// The partition's directory.
    pub(super) dir: PathBuf,
    pub(super) core: Sender<Message>,
}

impl Loader {
    /// Begins to load the snapshot `id` on a thread of its own.
    pub(super) fn begin(&self, id: OffsetAndEpoch) {
        let loader = self.clone();
        let thread = std::thread::Builder::new().name("kraftd-load".to_owned());
        let begun = thread.spawn(move || {
            let loaded = catch_unwind(AssertUnwindSafe(|| load_whole(&loader.dir, id)));
            let bug = || Err("a snapshot's load ended by a panic, which is a bug".to_owned());
            loader.tell(loaded.unwrap_or_else(|_| bug()));
        });
        if let Err(error) = begun {
            self.tell(Err(format!(
                "no thread can be started to load a snapshot: {error}"
            )));
        }
    }

    fn tell(&self, loaded: Result<Loaded, String>) {
        let event = Event::SnapshotLoaded(loaded.map(Box::new));
        // The core may have ended; nobody waits for the snapshot then.
        let _ = self.core.send(Message::Event(event));
    }
}

/// The snapshot with all that a running node has to know of it.
fn load_whole(dir: &Path, id: OffsetAndEpoch) -> Result<Loaded, String> {
    let file = SnapshotFile::open(&snapshot::path(dir, id)).map_err(|fault| fault.sentence)?;
    let summary = file.verify().map_err(|fault| fault.sentence)?;
    Ok(Loaded {
        held: HeldSnapshot {
            id,
            bytes: file.bytes(),
            last_timestamp: Some(summary.last_timestamp),
        },
        image: load(dir, id)?,
        control: summary.control,
    })
}

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
    let mut end = 0;
    for batch in file.batches() {
        let batch = batch.map_err(|fault| fault.sentence)?;
        // Batches follow one another without a gap.
        let position = end;
        end += batch.size() as u64;
        if batch.is_control() {
            continue;
        }
        for record in batch.records() {
            let record = record.map_err(|fault| format!("{}: {fault}", path.display()))?;
            let at = |reason: &dyn std::fmt::Display| {
                format!(
                    "{}: record {} of the snapshot, in the batch at byte {position}: {reason}",
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

    #[test]
    fn a_changed_byte_is_refused() {
        let id = OffsetAndEpoch {
            offset: Offset(64),
            epoch: Epoch(0),
        };
        let recorded = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/fixtures/4.4.0/formatted/standalone/__cluster_metadata-0/",
            "00000000000000000000-0000000000.checkpoint"
        );
        let good = std::fs::read(recorded).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = snapshot::path(dir.path(), id);
        std::fs::write(&path, &good).unwrap();
        load(dir.path(), id).unwrap();
        for at in 0..good.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= mask;
                std::fs::write(&path, &bytes).unwrap();
                // The epoch of a batch, which no checksum covers, is in the name too.
                let sentence = load(dir.path(), id).expect_err("must be refused");
                assert!(sentence.contains(path.to_str().unwrap()), "{sentence}");
                assert!(!sentence.contains('\n'), "{sentence}");
            }
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(load(dir.path(), id).is_err(), "cut at {at}");
        }
    }
}
