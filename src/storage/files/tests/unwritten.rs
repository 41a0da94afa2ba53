//! Snapshots that cannot be written.

use super::*;
use crate::storage::Content;
use crate::storage::snapshot::path;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const ID: OffsetAndEpoch = OffsetAndEpoch {
    offset: Offset(1),
    epoch: Epoch(1),
};

fn order(content: impl Content + 'static) -> SnapshotOrder {
    SnapshotOrder {
        id: ID,
        last_timestamp: Timestamp(1),
        timestamp: Timestamp(1),
        control: Vec::new(),
        content: Arc::new(content),
        bytes_expected: 0,
    }
}

#[derive(Debug)]
struct Nothing;

impl Content for Nothing {
    fn records(&self, _sink: &mut dyn FnMut(crate::records::VersionedRecord)) {}
}

/// Lets names be given in the directory, and nobody open it: no sync of it succeeds.
#[derive(Debug)]
struct Closes(PathBuf);

impl Content for Closes {
    fn records(&self, _sink: &mut dyn FnMut(crate::records::VersionedRecord)) {
        // The superuser opens what he likes; this is of the thread alone, which ends soon.
        let mut own = capabilities(None).unwrap();
        own.effective = CapabilitySet::empty();
        set_capabilities(None, own).unwrap();
        std::fs::set_permissions(&self.0, Permissions::from_mode(0o300)).unwrap();
    }
}

/// The file has its name, and whether it keeps that is not known: nobody may go on from there.
#[test]
fn a_snapshot_whose_name_cannot_be_made_durable_ends_the_disk() {
    let running = fresh();
    let dir = options(running._dir.as_ref().unwrap().path()).dir;
    let content = Closes(dir.clone());
    running.disk.submit(Command::WriteSnapshot(order(content)));
    match running.next() {
        Completion::Failed(sentence) => {
            assert!(
                sentence.starts_with("Failed to sync directory "),
                "{sentence}"
            );
            assert!(sentence.contains(dir.to_str().unwrap()), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    assert!(path(&dir, ID).exists());
}

#[test]
fn a_snapshot_that_would_take_the_room_of_the_log_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (_stop, pace) = pace();
    let mut order = order(Nothing);
    order.bytes_expected = 1 << 60;
    match snapshot::write(dir.path(), &order, pace).unwrap() {
        Outcome::Unwritten(fault) => assert_eq!(fault.kind, FaultKind::NoRoom, "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// No room, no permission, or, as here, something in the way of its name.
#[test]
fn a_snapshot_that_cannot_be_written_leaves_no_part_and_the_log_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let running = start(dir.path());
    let path = path(&options(dir.path()).dir, ID);
    let part = path.with_extension("checkpoint.part");
    // Before the first byte, and after the last.
    for in_the_way in [&part, &path] {
        std::fs::create_dir(in_the_way).unwrap();
        running.disk.submit(Command::WriteSnapshot(order(Nothing)));
        match running.next() {
            Completion::SnapshotNotWritten { id: told, reason } => {
                assert_eq!(told, ID);
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

/// A follower cannot do without it, and somebody may make room.
#[test]
fn a_fetched_snapshot_without_room_is_known_by_its_first_byte_and_the_disk_goes_on() {
    let running = fresh();
    let mut large = pieces(&[7; 2], ID, 1).remove(0);
    large.size = 1 << 60; // More than any disk has.
    running.disk.submit(Command::ReceiveSnapshot(large));
    match received(&running).unwrap_err() {
        Unreceived::NoRoom(sentence) => {
            assert!(sentence.ends_with("make room on that disk."), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
    let root = running._dir.as_ref().unwrap().path();
    assert!(!has_snapshots(&options(root).dir));
    running.append(0);
    assert!(matches!(running.next(), Completion::Appended(Token(0))));
    running.close();
}
