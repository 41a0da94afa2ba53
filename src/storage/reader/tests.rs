//! Directories of our own and of Java's, read while they are whole, torn, rotten and in use.

use std::fs;
use std::path::Path;

use super::*;
use crate::records::batch::{Batch, BatchBuilder};
use crate::records::{NoOpRecord, Record};
use crate::storage::snapshot::{SnapshotWriter, path as checkpoint_path};
use crate::storage::testing::{contents, fixture};
use crate::types::Timestamp;
use tempfile::TempDir;

fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    }
}

/// Two no-op records at `offset`, written at ten times that.
fn pair(offset: i64, epoch: i32) -> Batch {
    let mut builder = BatchBuilder::data(Offset(offset), Epoch(epoch), Timestamp(10 * offset));
    for _ in 0..2 {
        let record = Record::from(NoOpRecord::default()).at(0);
        builder.push_record(&record).unwrap();
    }
    builder.build()
}

fn segment(dir: &Path, offsets: std::ops::Range<i64>) -> PathBuf {
    let path = dir.join(format!("{:020}.log", offsets.start));
    let batches = offsets.step_by(2).map(|offset| pair(offset, 1));
    let bytes: Vec<u8> = batches.flat_map(|batch| batch.bytes().to_vec()).collect();
    fs::write(&path, bytes).unwrap();
    path
}

fn checkpoint(dir: &Path, id: OffsetAndEpoch) -> PathBuf {
    let last = Timestamp(10 * (id.offset.0 - 2));
    let mut writer = SnapshotWriter::create(dir, id, last, Timestamp(9), &[]).unwrap();
    let record = Record::from(NoOpRecord::default()).at(0);
    writer.push(&record).unwrap();
    writer.finish().unwrap();
    checkpoint_path(dir, id)
}

/// Segments 0 to 10, 10 to 20 and a checkpoint at each of the offsets.
fn directory(checkpoints: &[i64]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    segment(dir.path(), 0..10);
    segment(dir.path(), 10..20);
    for offset in checkpoints {
        checkpoint(dir.path(), id(*offset, 1));
    }
    dir
}

fn damages(source: &Source) -> Vec<(DamageKind, u64, Offset)> {
    let items = source.walk_log().map(Result::unwrap);
    items
        .filter_map(|(_, item)| match item {
            Item::Damage(it) => Some((it.kind, it.position, it.offset)),
            Item::Batch { .. } => None,
        })
        .collect()
}

fn offsets(replay: Replay<'_>) -> Vec<i64> {
    replay.map(|step| step.unwrap().offset.0).collect()
}

fn not_covered(source: &Source, target: Target) -> Vec<(i64, i64)> {
    match source.replay(target) {
        Err(Refusal::NotCovered { covered, sentence }) => {
            assert!(sentence.contains(&source.path.display().to_string()));
            let range = |it: &Covered| (it.first.0, it.last.0);
            covered.iter().map(range).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_path_is_shows_in_what_is_there() {
    let java = fixture("4.4.0/lived/dynamic-stopped");
    let before = contents(java.path());
    let whole = Source::open(java.path()).unwrap();
    assert_eq!(whole.kind, SourceKind::LogDirectory);
    let inner = Source::open(&java.path().join(PARTITION_DIR)).unwrap();
    assert_eq!(inner.kind, SourceKind::PartitionDirectory);
    assert_eq!(whole.segments.len(), inner.segments.len());
    assert!(
        whole
            .others
            .iter()
            .any(|path| path.ends_with("quorum-state"))
    );
    for file in whole.files() {
        let alone = Source::open(&file.path).unwrap();
        assert_eq!(alone.files().count(), 1);
        let count = |source: &Source, file| source.walk(file).map(Result::unwrap).count();
        assert!(count(&whole, file) > 0);
        assert_eq!(
            count(&whole, file),
            count(&alone, alone.files().next().unwrap())
        );
        assert_eq!(alone.files().next().unwrap().role, file.role);
    }
    assert_eq!(damages(&whole), []);
    assert_eq!(contents(java.path()), before);
    let properties = java.path().join("meta.properties");
    assert!(Source::open(&properties).is_err());
    assert!(Source::open(&java.path().join("nothing")).is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(Source::open(empty.path()).is_err());
}

#[test]
fn a_directory_that_an_older_release_formatted_has_its_bootstrap_file() {
    let java = fixture("3.9.2/formatted/static-voters");
    let source = Source::open(java.path()).unwrap();
    assert_eq!(source.files().count(), 1);
    let file = source.bootstrap.as_ref().unwrap();
    assert!(
        source
            .walk(file)
            .all(|item| matches!(item.unwrap(), Item::Batch { .. }))
    );
}

#[test]
fn a_file_under_another_name_tells_its_offsets_itself() {
    let dir = directory(&[14]);
    let named = dir.path().join("00000000000000000010.log");
    let other = dir.path().join("copy.log");
    fs::rename(named, &other).unwrap();
    let source = Source::open(&other).unwrap();
    assert_eq!(source.segments[0].role, Role::Segment { base: Offset(10) });
    let named = checkpoint_path(dir.path(), id(14, 1));
    let other = dir.path().join("copy.checkpoint");
    fs::rename(named, &other).unwrap();
    let source = Source::open(&other).unwrap();
    assert_eq!(
        source.checkpoints[0].role,
        Role::Checkpoint { id: id(0, 1) }
    );
    assert_eq!(offsets(source.replay(Target::Newest).unwrap()), [-1]);
}

#[test]
fn files_that_are_renamed_and_removed_stay_readable() {
    let dir = directory(&[]);
    let source = Source::open(dir.path()).unwrap();
    let log = dir.path().join("00000000000000000000.log");
    fs::rename(&log, log.with_extension("log.deleted")).unwrap();
    fs::remove_file(dir.path().join("00000000000000000010.log")).unwrap();
    assert_eq!(damages(&source), []);
    assert_eq!(offsets(source.replay(Target::Newest).unwrap()).len(), 20);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_there() {
    let dir = directory(&[]);
    let source = Source::open(dir.path()).unwrap();
    let path = dir.path().join("00000000000000000010.log");
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let size = pair(0, 1).size() as u64;
    file.set_len(2 * size).unwrap();
    assert_eq!(damages(&source), []);
    assert_eq!(
        offsets(source.replay(Target::Offset(Offset(13))).unwrap()).len(),
        14
    );
    file.set_len(size + 5).unwrap();
    let torn = (DamageKind::TornTail, size, Offset(12));
    assert_eq!(damages(&source), [torn]);
}

#[test]
fn a_torn_end_and_rot_are_told_apart_and_read_behind() {
    let dir = directory(&[]);
    let path = dir.path().join("00000000000000000000.log");
    let good = fs::read(&path).unwrap();
    let size = pair(0, 1).size();
    let kinds = |path: &Path| damages(&Source::open(path).unwrap());
    let mut bytes = good.clone();
    bytes[size + 70] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let rot = (DamageKind::Rot, size as u64, Offset(2));
    assert_eq!(kinds(dir.path()), [rot]);
    let source = Source::open(&path).unwrap();
    let items: Vec<Item> = source.walk_log().map(|item| item.unwrap().1).collect();
    assert_eq!(items.len(), 5, "four batches and the damage");
    let Item::Damage(damage) = &items[1] else {
        panic!("{items:?}");
    };
    assert_eq!(damage.header.unwrap().base_offset, Offset(2));
    assert_eq!(
        damage.behind,
        Some((path.clone(), 2 * size as u64, Offset(4)))
    );
    assert_eq!(damage.bytes_left, 4 * size as u64);
    // A cut end: torn when it is the end of the log, rot when a segment follows.
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    let position = 4 * size as u64;
    assert_eq!(kinds(&path), [(DamageKind::TornTail, position, Offset(8))]);
    assert_eq!(kinds(dir.path()), [(DamageKind::Rot, position, Offset(8))]);
}

#[test]
fn gaps_falling_epochs_and_missing_segments_are_told() {
    let dir = directory(&[]);
    let mut bytes = Vec::new();
    for batch in [pair(20, 3), pair(24, 3), pair(26, 2)] {
        bytes.extend_from_slice(batch.bytes());
    }
    let size = pair(0, 1).size() as u64;
    fs::write(dir.path().join("00000000000000000020.log"), bytes).unwrap();
    fs::write(dir.path().join("00000000000000000030.log"), b"").unwrap();
    let source = Source::open(dir.path()).unwrap();
    let expected = [
        (DamageKind::Gap, size, Offset(22)),
        (DamageKind::EpochFalls, 2 * size, Offset(26)),
        (DamageKind::Gap, 0, Offset(28)),
    ];
    assert_eq!(damages(&source), expected);
}

#[test]
fn a_checkpoint_that_is_not_whole_is_told() {
    let dir = directory(&[14]);
    let path = checkpoint_path(dir.path(), id(14, 1));
    let good = fs::read(&path).unwrap();
    let damages = |bytes: &[u8]| -> Vec<DamageKind> {
        let path = dir.path().join("x.checkpoint");
        fs::write(&path, bytes).unwrap();
        let source = Source::open(&path).unwrap();
        let items = source.walk(&source.checkpoints[0]).map(Result::unwrap);
        items
            .filter_map(|item| match item {
                Item::Damage(damage) => Some(damage.kind),
                Item::Batch { .. } => None,
            })
            .collect()
    };
    assert_eq!(damages(&good), []);
    for cut in 0..good.len() {
        assert_eq!(
            damages(&good[..cut]),
            [DamageKind::NotWhole],
            "cut at {cut}"
        );
    }
    let mut twice = good.clone();
    twice.extend_from_slice(&good);
    assert!(damages(&twice).contains(&DamageKind::NotWhole));
    let mut rot = good.clone();
    rot[70] ^= 1;
    assert_eq!(damages(&rot)[0], DamageKind::Rot);
}

#[test]
fn a_replay_begins_with_the_newest_checkpoint_at_or_below_the_target() {
    let dir = directory(&[6, 14]);
    let source = Source::open(dir.path()).unwrap();
    let replay = |target| source.replay(target).unwrap();
    let newest = replay(Target::Newest);
    assert_eq!(newest.checkpoint(), Some(id(14, 1)));
    assert_eq!(newest.last_offset(), Offset(19));
    assert_eq!(offsets(newest), [13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(offsets(replay(Target::Offset(Offset(13)))), [13]);
    assert_eq!(offsets(replay(Target::Offset(Offset(12)))).len(), 1 + 7);
    assert_eq!(offsets(replay(Target::Offset(Offset(5)))), [5]);
    assert_eq!(offsets(replay(Target::Offset(Offset(4)))), [0, 1, 2, 3, 4]);
    assert_eq!(not_covered(&source, Target::Offset(Offset(20))), [(0, 19)]);
}

#[test]
fn a_moment_is_that_of_the_last_batch_at_or_before_it() {
    let dir = directory(&[6]);
    let source = Source::open(dir.path()).unwrap();
    let last = |time| {
        source
            .replay(Target::Time(Timestamp(time)))
            .unwrap()
            .last_offset()
            .0
    };
    assert_eq!(last(0), 1);
    assert_eq!(last(19), 1);
    assert_eq!(last(20), 3);
    assert_eq!(last(10_000), 19);
    assert_eq!(not_covered(&source, Target::Time(Timestamp(-1))), [(0, 19)]);
}

#[test]
fn a_log_that_was_cleaned_is_covered_from_its_checkpoint_on() {
    let dir = directory(&[4, 14]);
    fs::remove_file(dir.path().join("00000000000000000000.log")).unwrap();
    let source = Source::open(dir.path()).unwrap();
    // What the older checkpoint covers is one moment: the log behind it is gone.
    assert_eq!(
        not_covered(&source, Target::Offset(Offset(12))),
        [(3, 3), (13, 19)]
    );
    assert_eq!(
        offsets(source.replay(Target::Offset(Offset(3))).unwrap()),
        [3]
    );
    let moment = source.replay(Target::Time(Timestamp(25))).unwrap();
    assert_eq!(moment.last_offset(), Offset(3));
    fs::remove_file(checkpoint_path(dir.path(), id(14, 1))).unwrap();
    fs::remove_file(checkpoint_path(dir.path(), id(4, 1))).unwrap();
    let source = Source::open(dir.path()).unwrap();
    assert!(not_covered(&source, Target::Newest).is_empty());
}

#[test]
fn a_damaged_checkpoint_is_skipped_when_an_older_one_leads_there() {
    let dir = directory(&[6, 14]);
    let path = checkpoint_path(dir.path(), id(14, 1));
    let good = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &good[..good.len() - 3]).unwrap();
    let source = Source::open(dir.path()).unwrap();
    for target in [Target::Newest, Target::Offset(Offset(19))] {
        let replay = source.replay(target).unwrap();
        assert_eq!(replay.checkpoint(), Some(id(6, 1)));
        assert_eq!(replay.skipped().len(), 1);
        assert_eq!(offsets(replay).len(), 1 + 14);
    }
    fs::remove_file(dir.path().join("00000000000000000000.log")).unwrap();
    let source = Source::open(dir.path()).unwrap();
    assert_eq!(not_covered(&source, Target::Offset(Offset(19))), [(5, 5)]);
}

#[test]
fn damaged_checkpoints_and_nothing_else_are_no_empty_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = checkpoint(dir.path(), id(14, 1));
    let mut bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bytes[70] ^= 1;
    fs::write(&path, bytes).unwrap();
    for place in [dir.path(), &path] {
        let source = Source::open(place).unwrap();
        assert!(not_covered(&source, Target::Newest).is_empty());
    }
}

#[test]
fn a_checkpoint_of_a_later_epoch_is_not_followed_by_the_log_that_a_start_drops() {
    let dir = directory(&[6]);
    checkpoint(dir.path(), id(14, 2));
    let source = Source::open(dir.path()).unwrap();
    let replay = source.replay(Target::Newest).unwrap();
    assert_eq!(replay.checkpoint(), Some(id(14, 2)));
    assert_eq!(offsets(replay), [13]);
    assert_eq!(
        source
            .replay(Target::Offset(Offset(19)))
            .unwrap()
            .checkpoint(),
        Some(id(6, 1))
    );
}

#[test]
fn rot_in_the_log_ends_what_is_covered_unless_a_checkpoint_is_behind_it() {
    let dir = directory(&[]);
    let path = dir.path().join("00000000000000000010.log");
    let mut bytes = fs::read(&path).unwrap();
    bytes[70] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let source = Source::open(dir.path()).unwrap();
    let replay = source.replay(Target::Newest).unwrap();
    assert_eq!(replay.last_offset(), Offset(9));
    assert_eq!(replay.damage().unwrap().kind, DamageKind::Rot);
    assert_eq!(not_covered(&source, Target::Offset(Offset(15))), [(0, 9)]);
    checkpoint(dir.path(), id(12, 1));
    let source = Source::open(dir.path()).unwrap();
    let replay = source.replay(Target::Newest).unwrap();
    assert_eq!(replay.last_offset(), Offset(19));
    assert_eq!(offsets(replay).len(), 1 + 8);
    assert_eq!(
        not_covered(&source, Target::Offset(Offset(10))),
        [(0, 9), (11, 19)]
    );
}

#[test]
fn a_directory_of_java_is_replayed_whole() {
    for version in ["3.9.2", "4.4.0"] {
        for name in [
            "static-killed",
            "static-stopped",
            "dynamic-killed",
            "dynamic-stopped",
        ] {
            let java = fixture(&format!("{version}/lived/{name}"));
            let source = Source::open(java.path()).unwrap();
            let replay = source.replay(Target::Newest).unwrap();
            assert!(replay.damage().is_none() && replay.skipped().is_empty());
            let last = replay.last_offset();
            let steps: Vec<Step> = replay.map(Result::unwrap).collect();
            assert!(!steps.is_empty(), "{version} {name}");
            assert!(steps.iter().all(|step| step.offset <= last));
        }
    }
}

#[test]
fn a_replay_tells_epoch_and_timestamp_of_the_newest_record() {
    let dir = directory(&[10]);
    let source = Source::open(dir.path()).unwrap();
    for (target, newest) in [(3, 20), (9, 80), (10, 100), (19, 180)] {
        let mut replay = source.replay(Target::Offset(Offset(target))).unwrap();
        assert_eq!(replay.newest(), None);
        for step in replay.by_ref() {
            step.unwrap();
        }
        let newest = (Epoch(1), Timestamp(newest));
        assert_eq!(replay.newest(), Some(newest), "{target}");
    }
}
