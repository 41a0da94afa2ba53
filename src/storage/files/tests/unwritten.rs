//! Snapshots that cannot be written.

use super::*;
use crate::storage::Content;
use crate::storage::snapshot::path;

/// No room, no permission, or, as here, something in the way of its name.
#[test]
fn a_snapshot_that_cannot_be_written_leaves_no_part_and_the_log_goes_on() {
    #[derive(Debug)]
    struct Nothing;
    impl Content for Nothing {
        fn records(&self, _sink: &mut dyn FnMut(crate::records::VersionedRecord)) {}
    }
    let dir = tempfile::tempdir().unwrap();
    let running = start(dir.path());
    let id = OffsetAndEpoch {
        offset: Offset(1),
        epoch: Epoch(1),
    };
    let path = path(&options(dir.path()).dir, id);
    let part = path.with_extension("checkpoint.part");
    // Before the first byte, and after the last.
    for in_the_way in [&part, &path] {
        std::fs::create_dir(in_the_way).unwrap();
        running.disk.submit(Command::WriteSnapshot(SnapshotOrder {
            id,
            last_timestamp: Timestamp(1),
            timestamp: Timestamp(1),
            control: Vec::new(),
            content: Arc::new(Nothing),
        }));
        match running.next() {
            Completion::SnapshotNotWritten { id: told, reason } => {
                assert_eq!(told, id);
                assert!(reason.contains(part.to_str().unwrap()), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        std::fs::remove_dir(in_the_way).unwrap();
        assert!(!part.exists());
    }
    running.append(0);
    assert!(matches!(running.next(), Completion::Appended(Token(0))));
    written(&running, 1);
    running.close();
}
