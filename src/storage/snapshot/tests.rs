//! Snapshots written, read, cut and damaged.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::records::{FeatureLevelRecord, Record};
use crate::types::Epoch;

const ID: OffsetAndEpoch = OffsetAndEpoch {
    offset: Offset(773),
    epoch: Epoch(5),
};

fn feature(level: i16) -> VersionedRecord {
    let record = FeatureLevelRecord {
        name: "metadata.version".into(),
        feature_level: level,
        ..FeatureLevelRecord::default()
    };
    Record::from(record).at(0)
}

fn control() -> Vec<wire::ControlRecord> {
    let version = wire::KRaftVersion {
        version: 0,
        k_raft_version: 1,
        ..wire::KRaftVersion::default()
    };
    vec![version.into()]
}

fn write(dir: &Path) -> PathBuf {
    let mut writer =
        SnapshotWriter::create(dir, ID, Timestamp(7), Timestamp(9), &control()).unwrap();
    for level in 1..=5 {
        writer.push(&feature(level)).unwrap();
        if level % 2 == 0 {
            writer.end_batch().unwrap();
        }
    }
    let bytes = writer.finish().unwrap();
    let path = path(dir, ID);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
    path
}

#[test]
fn a_written_snapshot_is_whole_read_only_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path());
    assert_eq!(list(dir.path()).unwrap(), [ID]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let file = SnapshotFile::open(&path).unwrap();
    let summary = file.verify().unwrap();
    assert_eq!(summary.control, [ControlRecord::KraftVersion(1)]);
    assert_eq!(summary.last_timestamp, Timestamp(7));
    let batches: Vec<Batch> = file.batches().map(Result::unwrap).collect();
    assert!(batches.iter().all(|batch| batch.epoch() == Epoch(5)));
    let values: Vec<VersionedRecord> = batches
        .iter()
        .filter(|batch| !batch.is_control())
        .flat_map(Batch::records)
        .map(|record| VersionedRecord::decode(&record.unwrap().value.unwrap()).unwrap())
        .collect();
    assert_eq!(values, (1..=5).map(feature).collect::<Vec<_>>());
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let writer = SnapshotWriter::create(dir.path(), ID, Timestamp(7), Timestamp(9), &[]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_snapshot_cut_at_any_byte_or_with_any_bit_flipped_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let good = std::fs::read(write(dir.path())).unwrap();
    let path = dir.path().join("damaged");
    let verify = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        SnapshotFile::open(&path).unwrap().verify()
    };
    for cut in 0..good.len() {
        assert!(verify(&good[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        // The epoch of a batch is not covered by its checksum and not used.
        let accepted = verify(&bytes).is_ok();
        assert!(!accepted || is_in_an_epoch(&good, at), "flipped at {at}");
    }
    let mut twice = good.clone();
    twice.extend_from_slice(&good);
    assert!(verify(&twice).is_err());
    assert!(verify(&good).is_ok());
}

fn is_in_an_epoch(good: &[u8], at: usize) -> bool {
    let mut rest = Bytes::copy_from_slice(good);
    let mut start = 0;
    while let Ok(Some(batch)) = Batch::take_from(&mut rest) {
        if (start + 12..start + 16).contains(&at) {
            return true;
        }
        start += batch.size();
    }
    false
}

#[test]
fn ranges_are_served_and_positions_outside_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path());
    let good = std::fs::read(&path).unwrap();
    let file = SnapshotFile::open(&path).unwrap();
    let end = good.len() as i64;
    for (position, max, expected) in [
        (0, 10, &good[..10]),
        (3, usize::MAX, &good[3..]),
        (end - 1, 5, &good[good.len() - 1..]),
    ] {
        let SnapshotChunk::Bytes { size, bytes } = file.read(position, max).unwrap() else {
            panic!("no bytes at {position}");
        };
        assert_eq!((size, &bytes[..]), (good.len() as u64, expected));
    }
    for position in [i64::MIN, -1, end, i64::MAX] {
        let chunk = file.read(position, 10).unwrap();
        assert!(matches!(chunk, SnapshotChunk::OutOfRange));
    }
}
