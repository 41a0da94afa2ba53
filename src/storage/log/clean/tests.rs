//! Letting go of the beginning of the log, and crashes in the middle of it.

use super::*;
use crate::records::batch::Batch;
use crate::storage::Recovered;
use crate::storage::recovery::OpenOptions;
use crate::storage::snapshot::{self, SnapshotWriter};
use crate::storage::testing::{batch, contents, copy, first_of_epoch, open, options, vote};
use crate::types::{SplitMix, Timestamp};

/// Segments of about ten batches.
fn small(dir: &Path) -> OpenOptions {
    OpenOptions {
        segment_bytes: 2000,
        ..options(dir)
    }
}

fn id(offset: i64) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(1 + ((offset - 1) / 10) as i32),
    }
}

/// 45 batches in epochs of ten, in segments that begin at 0, 11, 22, 33 and 44, and four snapshots.
fn filled(dir: &Path) -> Log {
    let (mut log, _) = open(&small(dir)).unwrap();
    for offset in 0..45 {
        let epoch = 1 + (offset / 10) as i32;
        let next = match offset % 10 {
            0 => first_of_epoch(offset, epoch, 100),
            _ => batch(offset, epoch, 100),
        };
        log.append(next.into_bytes()).unwrap();
    }
    log.sync().unwrap();
    vote(&small(dir));
    for offset in [8, 15, 30, 42] {
        let time = Timestamp(999 + offset);
        let partition = small(dir).dir;
        let writer = SnapshotWriter::create(&partition, id(offset), time, time, &[]).unwrap();
        writer.finish().unwrap();
    }
    log
}

fn names(dir: &Path) -> Vec<String> {
    listing::names(&small(dir).dir).unwrap()
}

fn segments(dir: &Path) -> Vec<i64> {
    let names = names(dir);
    let numbered = names.iter().filter_map(|it| listing::numbered(it, "log"));
    numbered.map(|base| base.0).collect()
}

fn first_offset(log: &Log, from: i64) -> Option<i64> {
    let reader = log.reader();
    let mut bytes = reader.read(Offset(from), Offset(i64::MAX), 1).unwrap();
    Batch::take_from(&mut bytes)
        .unwrap()
        .map(|batch| batch.base_offset().0)
}

#[test]
fn whole_segments_and_older_snapshots_below_the_new_start_are_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path());
    let retired = log.move_start(id(30)).unwrap();
    assert_eq!(segments(dir.path()), [22, 33, 44]);
    assert!(snapshot::path(&small(dir.path()).dir, id(30)).exists());
    let gone: Vec<String> = names(dir.path())
        .into_iter()
        .filter(|name| name.ends_with(".deleted"))
        .collect();
    let expected: Vec<String> = [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000008-0000000001.checkpoint.deleted",
        "00000000000000000011.index.deleted",
        "00000000000000000011.log.deleted",
        "00000000000000000011.snapshot.deleted",
        "00000000000000000011.timeindex.deleted",
        "00000000000000000015-0000000002.checkpoint.deleted",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(gone, expected);
    assert_eq!(
        retired.segment_files.len() + retired.snapshot_files.len(),
        9
    );
    let bytes = |path: &PathBuf| std::fs::metadata(path).unwrap().len();
    let logs = retired.segment_files.iter();
    let logs = logs.filter(|path| path.to_string_lossy().contains(".log."));
    assert_eq!(retired.log_bytes, logs.map(bytes).sum::<u64>());
    // As Java's file looks after the same.
    let epochs = std::fs::read_to_string(small(dir.path()).dir.join(EPOCH_CHECKPOINT_FILE));
    assert_eq!(epochs.unwrap(), "0\n2\n4 30\n5 40\n");
}

#[test]
fn reads_go_on_behind_the_new_start_and_find_nothing_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path());
    let reader = log.reader();
    log.move_start(id(42)).unwrap();
    assert_eq!(first_offset(&log, 21), None);
    assert_eq!(first_offset(&log, 33), Some(33));
    let held = reader.read(Offset(44), Offset(45), 1).unwrap();
    assert!(!held.is_empty(), "readers share the list");
    log.append(batch(45, 5, 100).into_bytes()).unwrap();
    assert_eq!(first_offset(&log, 45), Some(45));
}

#[test]
fn the_last_segment_stays_and_a_second_move_finds_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path());
    let time = Timestamp(1);
    let partition = small(dir.path()).dir;
    let newest = id(45);
    let writer = SnapshotWriter::create(&partition, newest, time, time, &[]).unwrap();
    writer.finish().unwrap();
    log.move_start(newest).unwrap();
    assert_eq!(segments(dir.path()), [44]);
    let again = log.move_start(newest).unwrap();
    assert_eq!(again.log_bytes, 0);
    assert!(again.segment_files.is_empty() && again.snapshot_files.is_empty());
    // A new epoch begins where the log was cut to.
    log.append(batch(45, 9, 100).into_bytes()).unwrap();
    assert_eq!(log.epochs(), [(Epoch(9), Offset(45))]);
}

fn reopen(dir: &Path) -> Recovered {
    let (log, recovered) = open(&small(dir)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(recovered.log_end, Offset(45));
    assert_eq!(first_offset(&log, 42), Some(42));
    let newest = recovered.snapshots.last().copied();
    assert_eq!(newest, Some(id(42)));
    assert!(recovered.log_start <= Offset(30), "{recovered:?}");
    let left = names(dir).into_iter().find(|it| it.ends_with(".deleted"));
    assert_eq!(left, None);
    recovered
}

#[test]
fn the_next_start_finds_a_log_that_begins_above_zero() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path());
    log.move_start(id(30)).unwrap();
    drop(log);
    let recovered = reopen(dir.path());
    assert_eq!(recovered.log_start, Offset(22), "the first segment's base");
    assert_eq!(recovered.snapshots, [id(30), id(42)]);
    assert_eq!(recovered.held.len(), 2);
    assert_eq!(recovered.held[0].last_timestamp, Some(Timestamp(1_029)));
    let all: u64 = [22, 33, 44]
        .map(|base| small(dir.path()).dir.join(format!("{base:020}.log")))
        .iter()
        .map(|path| std::fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(recovered.log_bytes, all);
}

/// The renames in their order: a crash leaves the first of them done. Of what is not a segment any
/// may be done or not, because only the segments' names are synced one by one.
#[test]
fn a_crash_at_any_point_leaves_a_directory_that_starts() {
    let before = tempfile::tempdir().unwrap();
    drop(filled(before.path()));
    let after = tempfile::tempdir().unwrap();
    copy(before.path(), after.path());
    let (mut log, _) = open(&small(after.path())).unwrap();
    let retired = log.move_start(id(30)).unwrap();
    drop(log);
    let epochs = EPOCH_CHECKPOINT_FILE;
    let new_epochs = std::fs::read(small(after.path()).dir.join(epochs)).unwrap();
    let files: Vec<String> = [retired.segment_files, retired.snapshot_files]
        .concat()
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let mut rng = SplitMix::new(7);
    for round in 0..60 {
        let crashed = tempfile::tempdir().unwrap();
        copy(before.path(), crashed.path());
        let partition = small(crashed.path()).dir;
        let logs = rng.below(3) as usize;
        if logs > 0 || rng.below(2) == 0 {
            std::fs::write(partition.join(epochs), &new_epochs).unwrap();
        }
        let mut seen = 0;
        for name in &files {
            let is_log = name.ends_with(".log.deleted");
            seen += usize::from(is_log);
            let done = match is_log {
                true => seen <= logs,
                // What lies beside a segment follows it; snapshots follow all segments.
                false if name.contains(".checkpoint.") => logs == 2 && rng.below(2) == 0,
                false => seen <= logs && rng.below(2) == 0,
            };
            if done {
                let old = partition.join(name.trim_end_matches(".deleted"));
                std::fs::rename(old, partition.join(name)).unwrap();
            }
        }
        let left = contents(crashed.path()).len();
        let recovered = reopen(crashed.path());
        assert!(recovered.snapshots.contains(&id(30)), "round {round}");
        let oldest = recovered.held[0].id.offset;
        assert!(recovered.log_start <= oldest, "round {round}, {left} files");
        assert_eq!(reopen(crashed.path()).log_start, recovered.log_start);
    }
}

fn damage(dir: &Path, id: OffsetAndEpoch) {
    let path = snapshot::path(&small(dir).dir, id);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[70] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_damaged_newest_snapshot_is_left_aside_only_while_an_older_one_and_the_log_cover_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = filled(dir.path());
    log.move_start(id(30)).unwrap();
    drop(log);
    damage(dir.path(), id(42));
    let (log, recovered) = open(&small(dir.path())).unwrap();
    assert_eq!(recovered.snapshots, [id(30)]);
    assert_eq!(recovered.log_end, Offset(45));
    drop(log);
    damage(dir.path(), id(30));
    let before = contents(dir.path());
    let fault = open(&small(dir.path())).unwrap_err();
    for word in ["0003.checkpoint", "No older snapshot", "offsets 22 to 45"] {
        assert!(fault.sentence.contains(word), "{word} is not in: {fault}");
    }
    assert_eq!(contents(dir.path()), before, "nothing is changed");
}

fn restarted(dir: &Path, at: OffsetAndEpoch) -> Recovered {
    let (mut log, recovered) = open(&small(dir)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(recovered.log_start, at.offset);
    assert_eq!(recovered.log_end, at.offset);
    assert_eq!(recovered.snapshots, [at]);
    assert_eq!(recovered.epochs, [(at.epoch, at.offset)]);
    assert_eq!(segments(dir), [at.offset.0]);
    let next = batch(at.offset.0, at.epoch.0, 100);
    log.append(next.into_bytes()).unwrap();
    log.sync().unwrap();
    assert_eq!(first_offset(&log, at.offset.0), Some(at.offset.0));
    assert_eq!(first_offset(&log, at.offset.0 - 1), None);
    recovered
}

/// KIP-630, loading: also when the end of the log lies in the middle of its last segment, or just
/// where the snapshot ends.
#[test]
fn a_log_begins_anew_at_a_snapshot_and_a_crash_at_any_point_ends_the_same() {
    for at in [
        OffsetAndEpoch {
            offset: Offset(100),
            epoch: Epoch(7),
        },
        OffsetAndEpoch {
            offset: Offset(44),
            epoch: Epoch(7),
        },
    ] {
        let before = tempfile::tempdir().unwrap();
        let mut log = filled(before.path());
        let time = Timestamp(1);
        let partition = small(before.path()).dir;
        let writer = SnapshotWriter::create(&partition, at, time, time, &[]).unwrap();
        writer.finish().unwrap();
        let untouched = tempfile::tempdir().unwrap();
        copy(before.path(), untouched.path());

        let retired = log.restart(at).unwrap();
        assert_eq!(first_offset(&log, 44), None);
        assert_eq!(
            (log.end(), log.epochs()),
            (at.offset, &[(at.epoch, at.offset)][..])
        );
        drop(log);
        restarted(before.path(), at);

        // Crashes: the new segment is there, and the last of the old are gone.
        let bases = retired.segment_files.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".deleted")?;
            listing::numbered(name, "log")
        });
        let mut bases: Vec<Offset> = bases.collect();
        if at.offset == Offset(44) {
            bases.insert(0, at.offset);
        }
        for gone in 0..=bases.len() {
            let crashed = tempfile::tempdir().unwrap();
            copy(untouched.path(), crashed.path());
            let partition = small(crashed.path()).dir;
            drop(Segment::open(&partition, at.offset, 0, &[]).unwrap());
            for base in &bases[..gone] {
                let mut ignored = Vec::new();
                let path = crate::storage::segment::log_path(&partition, *base);
                match *base == at.offset {
                    true => std::fs::write(&path, b"").unwrap(),
                    false => retire(&path, &mut ignored).unwrap(),
                }
            }
            restarted(crashed.path(), at);
        }
    }
}
