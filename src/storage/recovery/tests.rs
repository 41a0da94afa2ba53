//! Damage, one kind after the other, on directories of our own and of Java's.

mod ahead;
mod no_files;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::storage::snapshot::SnapshotWriter;
use crate::storage::testing::{batch, contents, copy, first_of_epoch, open, options, vote};
use crate::types::Timestamp;

/// A directory with 30 batches of one record, epochs 1 to 3, closed by a crash.
fn crashed() -> (TempDir, OpenOptions) {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let (mut log, _) = open(&options).unwrap();
    for offset in 0..30 {
        let epoch = 1 + (offset / 10) as i32;
        let next = match offset % 10 {
            0 => first_of_epoch(offset, epoch, 50),
            _ => batch(offset, epoch, 50),
        };
        log.append(next.into_bytes()).unwrap();
    }
    log.sync().unwrap();
    vote(&options);
    (dir, options)
}

fn log_file(options: &OpenOptions) -> PathBuf {
    log_path(&options.dir, Offset(0))
}

/// Changes a file's bytes.
fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn committed(options: &OpenOptions, offset: i64, epoch: i32) {
    let mark = CommitMark {
        sequence: 1,
        cluster_id: options.cluster_id.clone(),
        commit: id(offset, epoch),
    };
    commit_file::CommitFile::open(&options.dir.join(COMMIT_FILE), mark).unwrap();
}

fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    }
}

/// It covers what a log of [`batch`] has below its end.
fn snapshot_at(options: &OpenOptions, id: OffsetAndEpoch) -> PathBuf {
    let covers = Timestamp(id.offset.0.saturating_add(999));
    let writer = SnapshotWriter::create(&options.dir, id, covers, Timestamp(6_000), &[]).unwrap();
    writer.finish().unwrap();
    snapshot::path(&options.dir, id)
}

/// The start is refused, says so in one sentence with these words, and nothing was written.
fn refused(options: &OpenOptions, kind: FaultKind, words: &[&str]) {
    let before = contents(&options.dir);
    let fault = open(options).expect_err("must be refused");
    assert_eq!(fault.kind, kind, "{fault}");
    for word in words {
        assert!(fault.sentence.contains(word), "{word:?} is not in: {fault}");
    }
    assert!(!fault.sentence.contains('\n'), "{fault}");
    assert_eq!(contents(&options.dir), before, "something was written");
}

const BATCH: usize = 61 + 57;

#[test]
fn the_batches_of_these_tests_have_the_size_that_they_count_with() {
    assert_eq!(batch(29, 3, 50).size(), BATCH);
    assert_eq!(first_of_epoch(20, 3, 50).size(), BATCH);
}

#[test]
fn a_new_directory_is_created_with_an_empty_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, recovered) = open(&options(dir.path())).unwrap();
    assert_eq!(log.end(), Offset(0));
    assert_eq!(recovered.log_end, Offset(0));
    assert_eq!(recovered.quorum_state, None);
    assert_eq!(recovered.commit, None);
    let names = listing::names(&options(dir.path()).dir).unwrap();
    assert_eq!(
        names,
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "leader-epoch-checkpoint",
            "partition.metadata"
        ]
    );
}

#[test]
fn a_log_is_found_as_it_was_written() {
    let (_dir, options) = crashed();
    committed(&options, 25, 3);
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(
        (recovered.log_start, recovered.log_end),
        (Offset(0), Offset(30))
    );
    assert_eq!(
        recovered.epochs,
        [
            (Epoch(1), Offset(0)),
            (Epoch(2), Offset(10)),
            (Epoch(3), Offset(20))
        ]
    );
    assert_eq!(recovered.commit, Some(id(25, 3)));
    assert_eq!(recovered.torn_bytes, 0);
}

#[test]
fn a_tail_torn_at_any_byte_of_the_last_batch_is_cut() {
    let (_dir, options) = crashed();
    committed(&options, 29, 3);
    let good = fs::read(log_file(&options)).unwrap();
    for cut in 1..BATCH {
        fs::write(log_file(&options), &good).unwrap();
        damage(&log_file(&options), |bytes| {
            bytes.truncate(30 * BATCH - cut)
        });
        let (log, recovered) = open(&options).unwrap();
        assert_eq!(recovered.log_end, Offset(29));
        assert_eq!(recovered.torn_bytes, (BATCH - cut) as u64);
        assert_eq!(
            fs::metadata(log_file(&options)).unwrap().len(),
            29 * BATCH as u64
        );
        drop(log);
        assert!(examine(&options).is_ok());
    }
}

#[test]
fn zeros_and_garbage_behind_the_last_batch_are_cut() {
    for tail in [vec![0; 10_000], vec![0xff; 100], vec![b'x'; 61], vec![0; 1]] {
        let (_dir, options) = crashed();
        damage(&log_file(&options), |bytes| bytes.extend_from_slice(&tail));
        let (_, recovered) = open(&options).unwrap();
        assert_eq!(recovered.log_end, Offset(30));
        assert_eq!(recovered.torn_bytes, tail.len() as u64);
    }
}

#[test]
fn a_flipped_bit_with_whole_batches_behind_is_refused() {
    for at in [0, 7, 8, 12, 16, 17, 22, 60, 61, 100, BATCH - 1] {
        let (_dir, options) = crashed();
        // The epoch's low byte would only look like an older epoch's.
        damage(&log_file(&options), |bytes| bytes[10 * BATCH + at] ^= 0x40);
        refused(
            &options,
            FaultKind::Damaged,
            &["00000000000000000000.log", "Restore"],
        );
    }
}

#[test]
fn the_refusal_names_the_place_and_what_is_behind() {
    let (_dir, options) = crashed();
    damage(&log_file(&options), |bytes| bytes[3 * BATCH + 80] ^= 1);
    let position = format!("byte {}", 3 * BATCH);
    let behind = format!("byte {}", 4 * BATCH);
    let words = [
        position.as_str(),
        "offset 3",
        behind.as_str(),
        "offset 4",
        "checksum",
    ];
    refused(&options, FaultKind::Damaged, &words);
}

#[test]
fn a_flipped_bit_in_the_last_batch_is_cut_unless_it_was_committed_or_closed_cleanly() {
    let flip = |bytes: &mut Vec<u8>| bytes[29 * BATCH + 80] ^= 1;
    let (_dir, options) = crashed();
    damage(&log_file(&options), flip);
    committed(&options, 29, 3);
    assert_eq!(open(&options).unwrap().1.log_end, Offset(29));

    let (_dir, options) = crashed();
    damage(&log_file(&options), flip);
    committed(&options, 30, 3);
    refused(
        &options,
        FaultKind::Damaged,
        &["offset 30 was committed", "checksum"],
    );

    let (_dir, options) = crashed();
    open(&options).unwrap().0.close().unwrap();
    damage(&log_file(&options), flip);
    refused(
        &options,
        FaultKind::Damaged,
        &["closed cleanly at offset 30"],
    );
}

#[test]
fn a_log_that_ends_before_the_commit_offset_or_differs_there_is_refused() {
    let (_dir, options) = crashed();
    damage(&log_file(&options), |bytes| bytes.truncate(20 * BATCH));
    committed(&options, 25, 3);
    refused(
        &options,
        FaultKind::Damaged,
        &["ends at offset 20", "offset 25 was committed"],
    );

    let (_dir, options) = crashed();
    committed(&options, 25, 2);
    refused(
        &options,
        FaultKind::Damaged,
        &["offset 24 has epoch 3", "had epoch 2"],
    );
}

#[test]
fn pages_that_were_never_written_near_the_end_are_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let (mut log, _) = open(&options).unwrap();
    for offset in 0..10 {
        log.append(batch(offset, 1, 3000).into_bytes()).unwrap();
    }
    vote(&options);
    let path = log_file(&options);
    let good = fs::read(&path).unwrap();
    // The second page holds the end of batch 1 and the begin of batch 2.
    damage(&path, |bytes| bytes[4096..8192].fill(0));
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(recovered.log_end, Offset(1));
    // The same bytes, but known to be committed; or only a few of them.
    fs::write(&path, &good).unwrap();
    damage(&path, |bytes| bytes[4096..8192].fill(0));
    committed(&options, 5, 1);
    refused(&options, FaultKind::Damaged, &["committed"]);
    fs::remove_file(options.dir.join(COMMIT_FILE)).unwrap();
    fs::write(&path, &good).unwrap();
    damage(&path, |bytes| bytes[4096..4200].fill(0));
    refused(&options, FaultKind::Damaged, &["whole batches follow"]);
}

#[test]
fn a_deleted_log_is_refused() {
    let (_dir, options) = crashed();
    fs::remove_file(log_file(&options)).unwrap();
    refused(&options, FaultKind::Missing, &["no log segment"]);
    // With nothing but our own mark left, too.
    fs::remove_file(options.dir.join(QUORUM_STATE_FILE)).unwrap();
    committed(&options, 5, 1);
    refused(&options, FaultKind::Missing, &["no log segment"]);
}

#[test]
fn an_emptied_log_is_refused() {
    let (_dir, options) = crashed();
    // The epochs are written by the disk thread; here by the second start.
    drop(open(&options).unwrap());
    fs::write(log_file(&options), b"").unwrap();
    refused(
        &options,
        FaultKind::Damaged,
        &["epoch 3 began at offset 20"],
    );
}

#[test]
fn a_missing_quorum_state_is_refused_and_can_be_accepted() {
    let (_dir, mut options) = crashed();
    fs::remove_file(options.dir.join(QUORUM_STATE_FILE)).unwrap();
    refused(
        &options,
        FaultKind::Missing,
        &["quorum-state", "--accept-lost-vote"],
    );
    options.accept_lost_vote = true;
    assert_eq!(open(&options).unwrap().1.log_end, Offset(30));
}

#[test]
fn an_empty_or_later_quorum_state_is_refused() {
    let (_dir, options) = crashed();
    let path = options.dir.join(QUORUM_STATE_FILE);
    fs::write(&path, b"").unwrap();
    refused(
        &options,
        FaultKind::Damaged,
        &["quorum-state", "empty", "--accept-lost-vote"],
    );
    let text = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":9}"#;
    fs::write(&path, text).unwrap();
    refused(&options, FaultKind::Unsupported, &["data_version 9"]);
}

#[test]
fn a_log_at_the_end_of_the_epochs_is_refused_even_if_the_vote_is_given_up() {
    let (_dir, mut options) = crashed();
    options.accept_lost_vote = true;
    fs::remove_file(options.dir.join(QUORUM_STATE_FILE)).unwrap();
    damage(&log_file(&options), |bytes| {
        bytes[20 * BATCH + 12..][..4].copy_from_slice(&Epoch::END.0.to_be_bytes());
    });
    refused(&options, FaultKind::Damaged, &["no election can come"]);
}

#[test]
fn a_quorum_state_older_than_the_log_is_refused() {
    let (_dir, options) = crashed();
    let state = QuorumState {
        epoch: Epoch(2),
        ..QuorumState::default()
    };
    quorum_state::write(&options.dir.join(QUORUM_STATE_FILE), &state).unwrap();
    let words = [
        "has epoch 2",
        "epoch 3 from offset 20",
        "--accept-lost-vote",
    ];
    refused(&options, FaultKind::Damaged, &words);
}

#[test]
fn an_epoch_begins_with_a_leader_change_and_has_no_other() {
    let (_dir, options) = crashed();
    let set = |at: usize, epoch: u8| move |bytes: &mut Vec<u8>| bytes[at * BATCH + 15] = epoch;
    // Neither is out of order with its neighbours: the last batch of epoch 1 and the first of 2.
    for (at, epoch, words) in [
        (9, 2, ["offset 9", "has epoch 2", "no leader change"]),
        (
            10,
            1,
            ["offset 10", "leader change in the middle", "epoch 1"],
        ),
    ] {
        damage(&log_file(&options), set(at, epoch));
        refused(&options, FaultKind::Damaged, &words);
        damage(&log_file(&options), set(at, 3 - epoch));
    }
    assert!(open(&options).is_ok());
}

#[test]
fn another_cluster_id_in_meta_properties_is_taken_and_what_was_committed_stays_so() {
    let (_dir, mut options) = crashed();
    committed(&options, 5, 1);
    options.cluster_id = "AnotherClustersIdXXXXX".into();
    let (log, recovered) = open(&options).unwrap();
    assert_eq!(recovered.commit, Some(id(5, 1)));
    drop(log);
}

#[test]
fn a_commit_mark_that_cannot_be_read_is_refused_until_it_is_deleted() {
    let (_dir, options) = crashed();
    committed(&options, 30, 3);
    let path = options.dir.join(COMMIT_FILE);
    // One slot is what a torn write leaves.
    damage(&path, |bytes| bytes[20] ^= 1);
    assert_eq!(open(&options).unwrap().1.commit, Some(id(30, 3)));
    for rubbish in [&b""[..], b"rubbish", &[0; 1024]] {
        fs::write(&path, rubbish).unwrap();
        let words = ["kraftd-commit", "kraftd fsck", "delete this file"];
        refused(&options, FaultKind::Damaged, &words);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(open(&options).unwrap().1.commit, None);
}

#[test]
fn leftovers_are_removed_and_strays_kept() {
    let (_dir, options) = crashed();
    let gone = [
        "00000000000000000020-0000000003-77.checkpoint.part",
        "00000000000000000020-0000000003.checkpoint.deleted",
        "00000000000000000000.log.deleted",
        "quorum-state.tmp",
        "00000000000000000077.index",
        "00000000000000000077.timeindex",
    ];
    let kept = ["stray", "lost+found", "core.deleted", "x.checkpoint.part"];
    for name in gone.iter().chain(&kept) {
        fs::write(options.dir.join(name), b"x").unwrap();
    }
    open(&options).unwrap();
    let names = listing::names(&options.dir).unwrap();
    for name in gone {
        assert!(!names.contains(&name.to_owned()), "{name}");
    }
    for name in kept {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
}

#[test]
fn broken_indexes_are_built_anew() {
    let (_dir, options) = crashed();
    drop(open(&options).unwrap());
    let index = log_file(&options).with_extension("index");
    let good = fs::read(&index).unwrap();
    for bytes in [vec![1, 2, 3], vec![0; 10 << 20], vec![0xff; 16]] {
        fs::write(&index, bytes).unwrap();
        open(&options).unwrap();
        assert_eq!(fs::read(&index).unwrap(), good);
    }
}

/// Segments of about ten batches.
fn segmented() -> (TempDir, OpenOptions) {
    let (dir, mut options) = crashed();
    fs::remove_dir_all(&options.dir).unwrap();
    options.segment_bytes = 10 * BATCH as u64;
    let (mut log, _) = open(&options).unwrap();
    for offset in 0..30 {
        log.append(batch(offset, 1, 50).into_bytes()).unwrap();
    }
    log.sync().unwrap();
    vote(&options);
    (dir, options)
}

#[test]
fn a_missing_segment_in_the_middle_is_refused() {
    let (_dir, options) = segmented();
    assert_eq!(listing::list(&options.dir).unwrap().logs.len(), 3);
    fs::remove_file(log_path(&options.dir, Offset(10))).unwrap();
    refused(
        &options,
        FaultKind::Damaged,
        &["00000000000000000020.log", "segment is missing"],
    );
}

#[test]
fn a_bad_batch_in_a_segment_before_the_last_is_refused() {
    for at in [0, 9] {
        let (_dir, options) = segmented();
        let path = log_path(&options.dir, Offset(10));
        damage(&path, |bytes| bytes[at * BATCH + 70] ^= 1);
        refused(&options, FaultKind::Damaged, &["00000000000000000010.log"]);
    }
}

#[test]
fn a_missing_first_segment_needs_a_snapshot() {
    let (_dir, options) = segmented();
    fs::remove_file(log_path(&options.dir, Offset(0))).unwrap();
    refused(
        &options,
        FaultKind::Missing,
        &["no snapshot", "begins at offset 10"],
    );
    let snapshot = snapshot_at(&options, id(15, 1));
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(
        (recovered.log_start, recovered.log_end),
        (Offset(10), Offset(30))
    );
    assert_eq!(recovered.snapshots, [id(15, 1)]);
    fs::remove_file(&snapshot).unwrap();
    fs::write(&snapshot, b"").unwrap();
    refused(
        &options,
        FaultKind::Damaged,
        &["-0000000001.checkpoint", "footer"],
    );
}

#[test]
fn snapshots_older_than_the_log_are_removed() {
    let (_dir, options) = segmented();
    let bootstrap = snapshot_at(&options, OffsetAndEpoch::BOOTSTRAP);
    let old = snapshot_at(&options, id(5, 1));
    snapshot_at(&options, id(10, 1));
    fs::remove_file(log_path(&options.dir, Offset(0))).unwrap();
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(recovered.snapshots, [id(10, 1)]);
    assert!(!old.exists());
    assert!(!bootstrap.exists());
}

#[test]
fn a_damaged_newest_snapshot_is_left_aside_when_the_log_covers_it() {
    let (_dir, options) = crashed();
    snapshot_at(&options, id(10, 1));
    let newest = snapshot_at(&options, id(20, 2));
    damage(&newest, |bytes| bytes[70] ^= 1);
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(recovered.snapshots, [id(10, 1)]);
    assert!(newest.exists(), "nothing is thrown away");
    // Ahead of the log, nothing covers it.
    let ahead = snapshot_at(&options, id(40, 3));
    damage(&ahead, |bytes| bytes.truncate(100));
    refused(
        &options,
        FaultKind::Damaged,
        &["00000000000000000040-0000000003.checkpoint"],
    );
}

#[test]
fn a_log_behind_its_snapshot_begins_anew_there() {
    let (_dir, options) = crashed();
    snapshot_at(&options, id(40, 3));
    let (mut log, recovered) = open(&options).unwrap();
    assert_eq!(
        (recovered.log_start, recovered.log_end),
        (Offset(40), Offset(40))
    );
    assert_eq!(recovered.epochs, [(Epoch(3), Offset(40))]);
    assert_eq!(recovered.snapshots, [id(40, 3)]);
    log.append(batch(40, 3, 10).into_bytes()).unwrap();
    log.sync().unwrap();
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(
        (recovered.log_start, recovered.log_end),
        (Offset(40), Offset(41))
    );
}

#[test]
fn a_restart_at_a_snapshot_that_a_crash_interrupted_is_done_again() {
    let (_dir, options) = segmented();
    snapshot_at(&options, id(40, 1));
    fs::write(log_path(&options.dir, Offset(40)), b"").unwrap();
    for gone in [None, Some(20), Some(10), Some(0)] {
        if let Some(base) = gone {
            fs::remove_file(log_path(&options.dir, Offset(base))).unwrap();
        }
        let copied = tempfile::tempdir().unwrap();
        let again = OpenOptions {
            dir: copied.path().join("partition"),
            ..options.clone()
        };
        copy(&options.dir, &again.dir);
        let (_, recovered) = open(&again).unwrap();
        assert_eq!(
            (recovered.log_start, recovered.log_end),
            (Offset(40), Offset(40))
        );
        assert_eq!(listing::list(&again.dir).unwrap().logs.len(), 1);
    }
}

#[test]
fn a_snapshot_of_a_later_epoch_takes_the_logs_place() {
    let (_dir, options) = crashed();
    snapshot_at(&options, id(12, 7));
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(
        (recovered.log_start, recovered.log_end),
        (Offset(12), Offset(12))
    );
    // Not when that would lose what was committed.
    let (_dir, options) = crashed();
    snapshot_at(&options, id(12, 7));
    committed(&options, 20, 2);
    refused(&options, FaultKind::Damaged, &["committed"]);
}

#[test]
fn a_batch_without_records_is_refused_and_not_cut() {
    let (_dir, options) = crashed();
    // As Java's writer of empty batches writes it, at offset 30 and epoch 3.
    let header = "000000000000001e 00000031 00000003 02 61226a29 0000 00000002 ffffffffffffffff
        0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000000";
    let before = fs::metadata(log_file(&options)).unwrap().len();
    damage(&log_file(&options), |bytes| {
        bytes.extend_from_slice(&crate::records::testing::hex(header));
    });
    let fault = open(&options).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unsupported, "{fault}");
    assert!(fault.sentence.contains("offset 30"), "{fault}");
    assert_eq!(fs::metadata(log_file(&options)).unwrap().len(), before + 61);
}
