//! The log on real files.

use super::*;
use crate::storage::recovery::OpenOptions;
use crate::storage::testing::{batch, batch_at, first_of_epoch, open, options};

/// Segments of about ten batches.
fn small(dir: &Path) -> OpenOptions {
    OpenOptions {
        segment_bytes: 2000,
        segment_ms: 1000,
        ..options(dir)
    }
}

fn filled(dir: &Path, count: i64) -> Log {
    let (mut log, _) = open(&small(dir)).unwrap();
    for offset in 0..count {
        let epoch = 1 + (offset / 10) as i32;
        let next = match offset % 10 {
            0 => first_of_epoch(offset, epoch, 100),
            _ => batch(offset, epoch, 100),
        };
        log.append(next.into_bytes()).unwrap();
    }
    log.sync().unwrap();
    log
}

fn read_all(log: &Log) -> Vec<i64> {
    let (mut next, mut found) = (Offset::ZERO, Vec::new());
    loop {
        let mut bytes = log.reader().read(next, Offset(i64::MAX), 700).unwrap();
        if bytes.is_empty() {
            return found;
        }
        while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
            found.push(batch.base_offset().0);
            next = batch.end_offset();
        }
    }
}

/// The bytes of all segments.
fn log_bytes(dir: &Path) -> u64 {
    let sizes = segments(dir).into_iter().map(|name| {
        let path = dir.join("__cluster_metadata-0").join(name);
        std::fs::metadata(path).unwrap().len()
    });
    sizes.sum()
}

fn segments(dir: &Path) -> Vec<String> {
    let mut names = super::super::listing::names(&dir.join("__cluster_metadata-0")).unwrap();
    names.retain(|name| name.ends_with(".log"));
    names
}

#[test]
fn a_full_segment_is_followed_by_another_and_reads_go_on_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path(), 35);
    assert_eq!(segments(dir.path()).len(), 4, "{:?}", segments(dir.path()));
    assert_eq!(read_all(&log), (0..35).collect::<Vec<_>>());
    let closed = dir
        .path()
        .join("__cluster_metadata-0/00000000000000000011.snapshot");
    assert_eq!(std::fs::read(closed).unwrap(), NO_PRODUCERS);
}

#[test]
fn a_log_that_was_removed_replaced_or_written_by_another_takes_nothing_more() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("was removed", |path| std::fs::remove_file(path).unwrap()),
        ("was replaced", |path| {
            let copy = std::fs::read(path).unwrap();
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, copy).unwrap();
        }),
        ("another process", |path| {
            let more = [std::fs::read(path).unwrap(), vec![1]].concat();
            std::fs::write(path, more).unwrap();
        }),
    ];
    for (told, change) in changes {
        let dir = tempfile::tempdir().unwrap();
        let mut log = filled(dir.path(), 3);
        change(&log.active.path);
        let refusal = log.append(batch(3, 1, 100).into_bytes()).unwrap_err();
        assert!(refusal.sentence.contains(told), "{refusal}");
    }
}

#[test]
fn an_old_segment_is_followed_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = open(&small(dir.path())).unwrap();
    for (offset, timestamp) in [(0, 5000), (1, 6000), (2, 6001), (3, 6500)] {
        log.append(batch_at(offset, 1, 10, timestamp).into_bytes())
            .unwrap();
    }
    assert_eq!(
        segments(dir.path()),
        ["00000000000000000000.log", "00000000000000000002.log"]
    );
}

#[test]
fn one_append_may_fill_several_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = open(&small(dir.path())).unwrap();
    let mut bytes = Vec::new();
    for offset in 0..50 {
        bytes.extend_from_slice(batch(offset, 1, 100).bytes());
    }
    log.append(Bytes::from(bytes)).unwrap();
    assert_eq!(read_all(&log), (0..50).collect::<Vec<_>>());
    assert_eq!(segments(dir.path()).len(), 5);
}

#[test]
fn a_read_begins_with_the_batch_that_holds_the_offset_and_ends_before_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = open(&options(dir.path())).unwrap();
    let mut offsets = Vec::new();
    for n in 0..200 {
        let mut builder = crate::records::batch::BatchBuilder::data(
            Offset(n * 3),
            Epoch(1),
            crate::types::Timestamp(1),
        );
        for _ in 0..3 {
            builder.push(None, Some(&[1; 100]));
        }
        log.append(builder.build().into_bytes()).unwrap();
        offsets.extend([n * 3; 3]);
    }
    for (offset, base) in offsets.iter().enumerate() {
        let from = Offset(offset as i64);
        let mut bytes = log.reader().read(from, Offset(500), 1).unwrap();
        if *base >= 500 {
            assert!(bytes.is_empty());
            continue;
        }
        let batch = Batch::take_from(&mut bytes).unwrap().unwrap();
        assert_eq!(batch.base_offset(), Offset(*base));
        assert!(
            bytes.is_empty(),
            "one batch, although it is larger than the limit"
        );
    }
    let reader = log.reader();
    assert!(
        reader
            .read(Offset(600), Offset(i64::MAX), 100)
            .unwrap()
            .is_empty()
    );
    assert!(
        reader
            .read(Offset(-1), Offset(i64::MAX), 100)
            .unwrap()
            .is_empty()
    );
    let all = reader
        .read(Offset(0), Offset(i64::MAX), usize::MAX)
        .unwrap();
    assert_eq!(all.len() as u64, log.active.bytes());
}

#[test]
fn a_cut_at_any_offset_leaves_the_log_before_it() {
    for end in (0..35).step_by(2) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = filled(dir.path(), 35);
        let (before, cut) = (log_bytes(dir.path()), log.truncate(Offset(end)).unwrap());
        assert_eq!(read_all(&log), (0..end).collect::<Vec<_>>());
        assert_eq!(before - log_bytes(dir.path()), cut);
        assert_eq!(log.epochs().len() as i64, (end + 9) / 10);
        log.append(first_of_epoch(end, 9, 100).into_bytes())
            .unwrap();
        log.sync().unwrap();
        assert_eq!(read_all(&log), (0..=end).collect::<Vec<_>>());
        crate::storage::testing::vote(&small(dir.path()));
        let (again, recovered) = open(&small(dir.path())).unwrap();
        assert_eq!(recovered.log_end, Offset(end + 1));
        assert_eq!(recovered.epochs, log.epochs());
        assert_eq!(read_all(&again), (0..=end).collect::<Vec<_>>());
    }
}

#[test]
fn a_write_that_does_not_fit_is_a_fault_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path(), 15);
    for bad in [batch(14, 2, 10), batch(16, 2, 10), batch(15, 1, 10)] {
        assert!(log.append(bad.into_bytes()).is_err());
    }
    assert!(
        log.append(batch(15, 2, 10).into_bytes().slice(..70))
            .is_err()
    );
    assert!(log.append(Bytes::from_static(&[0; 70])).is_err());
    assert_eq!(read_all(&log), (0..15).collect::<Vec<_>>());
}

#[test]
fn a_cut_inside_a_batch_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = open(&options(dir.path())).unwrap();
    let mut builder =
        crate::records::batch::BatchBuilder::data(Offset(0), Epoch(1), crate::types::Timestamp(1));
    builder.push(None, Some(b"a"));
    builder.push(None, Some(b"b"));
    log.append(builder.build().into_bytes()).unwrap();
    assert!(log.truncate(Offset(1)).is_err());
}

#[test]
fn bytes_that_changed_under_a_running_process_are_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path(), 5);
    let path = log_path(&dir.path().join("__cluster_metadata-0"), Offset(0));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let fault = log.reader().read(Offset(0), Offset(5), 1000).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Damaged);
}
