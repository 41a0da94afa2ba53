//! Checkpoints that stand where they cannot: ahead of the log, under another's name.

use super::*;
use crate::records::control::{KRaftVersion, KRaftVoter, KRaftVoters};
use crate::storage::snapshot::OFFSET_MAX;
use crate::storage::testing::fixture;

/// What Java's killed node left: checkpoints 64, 119 and 190 of epoch 1, the log ends at 192.
fn killed(kind: &str) -> (TempDir, OpenOptions) {
    let dir = fixture(&format!("4.4.0/lived/{kind}-killed"));
    let options = OpenOptions {
        node_id: Some(NodeId(1)),
        ..options(dir.path())
    };
    (dir, options)
}

/// The directories of the metadata partition below `at`.
fn metadata_directories(at: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in entries.filter(|path| path.is_dir()) {
        match path.ends_with("__cluster_metadata-0") {
            true => found.push(path),
            false => found.extend(metadata_directories(&path)),
        }
    }
    found
}

fn newest(options: &OpenOptions) -> OffsetAndEpoch {
    *snapshot::list(&options.dir).unwrap().last().unwrap()
}

fn rename(options: &OpenOptions, from: OffsetAndEpoch, to: OffsetAndEpoch) {
    let path = |id| snapshot::path(&options.dir, id);
    fs::rename(path(from), path(to)).unwrap();
}

#[test]
fn a_checkpoint_under_another_epochs_name_is_none() {
    for kind in ["dynamic", "static"] {
        let (_dir, options) = killed(kind);
        let id = newest(&options);
        rename(&options, id, super::id(9_999_999_999, 2));
        let words = ["9999999999-0000000002", "has epoch 1", "move it away"];
        refused(&options, FaultKind::Damaged, &words);
        // Where the log covers it, the next one is taken.
        rename(
            &options,
            super::id(9_999_999_999, 2),
            super::id(id.offset.0, 0),
        );
        let (_, recovered) = open(&options).unwrap();
        assert_eq!(recovered.snapshots.len(), 2, "{kind}");
        assert!(recovered.log_end > id.offset, "{kind}");
    }
}

#[test]
fn a_checkpoint_copied_to_another_batch_end_of_its_epoch_is_none() {
    let (_dir, options) = killed("dynamic");
    let path = |offset| snapshot::path(&options.dir, id(offset, 1));
    let offsets = |recovered: &Recovered| -> Vec<i64> {
        recovered.snapshots.iter().map(|id| id.offset.0).collect()
    };
    fs::copy(path(119), path(191)).unwrap();
    let (_, recovered) = open(&options).unwrap();
    assert_eq!(offsets(&recovered), [64, 119, 190]);
    assert!(path(191).exists(), "nothing is thrown away");
    // With nothing else that covers it, the start is refused.
    let (_dir, options) = segmented();
    fs::remove_file(log_path(&options.dir, Offset(0))).unwrap();
    snapshot_at(&options, id(12, 1));
    rename(&options, id(12, 1), id(15, 1));
    let words = [
        "15-0000000001.checkpoint",
        "of 1011 ms",
        "of 1014 ms",
        "copied here. No older snapshot",
    ];
    refused(&options, FaultKind::Damaged, &words);
}

/// A metadata transaction begins with the batch behind its end, and Java has that one's time.
#[test]
fn a_checkpoint_with_the_time_of_the_batch_behind_its_end_is_no_copy() {
    for (covers, starts) in [(1_011, true), (1_012, true), (1_010, false), (1_013, false)] {
        let (_dir, options) = segmented();
        fs::remove_file(log_path(&options.dir, Offset(0))).unwrap();
        let (covers, written) = (Timestamp(covers), Timestamp(6_000));
        let writer = SnapshotWriter::create(&options.dir, id(12, 1), covers, written, &[]);
        writer.unwrap().finish().unwrap();
        assert_eq!(open(&options).is_ok(), starts, "{covers:?}");
    }
}

/// What whoever wrote it says of the last batch before its end is what the log says.
#[test]
fn no_checkpoint_of_any_release_is_thought_to_be_a_copy() {
    let mut compared = 0;
    for dir in metadata_directories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        let listing = listing::list(&dir).unwrap();
        let ends = |offset| listing.checkpoints.iter().any(|id| id.offset == offset);
        let log = segments::read(&dir, &listing.logs, ends).unwrap();
        for id in &listing.checkpoints {
            let path = snapshot::path(&dir, *id);
            if log.covered.contains_key(&id.offset) {
                let summary = SnapshotFile::open(&path).unwrap().verify().unwrap();
                let fault = choice::misnamed(&path, *id, &summary, &log);
                assert!(fault.is_none(), "{fault:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 250, "{compared}");
}

#[test]
fn no_snapshot_takes_the_log_of_the_only_voter() {
    for kind in ["dynamic", "static"] {
        let (_dir, options) = killed(kind);
        let id = newest(&options);
        let ahead = OffsetAndEpoch {
            offset: Offset(9_999_999_999),
            ..id
        };
        rename(&options, id, ahead);
        let words = ["9999999999-0000000001", "only voter", "move it away"];
        refused(&options, FaultKind::Damaged, &words);
        // Nor if it is another node's log: it has what an older one of the epoch has not.
        let other = OpenOptions {
            node_id: Some(NodeId(7)),
            ..options
        };
        refused(
            &other,
            FaultKind::Damaged,
            &["of that epoch", "move it away"],
        );
    }
}

#[test]
fn a_snapshot_ahead_of_the_log_must_be_of_an_epoch_that_is_known() {
    let (_dir, options) = crashed();
    snapshot_at(&options, id(40, 1001));
    refused(&options, FaultKind::Damaged, &["no epoch above 1000"]);
}

#[test]
fn a_snapshot_ahead_of_the_log_and_of_an_epoch_before_it_is_refused() {
    let (_dir, options) = crashed();
    for offset in [31, 400, 9_999_999_999] {
        let path = snapshot_at(&options, id(offset, 2));
        refused(
            &options,
            FaultKind::Damaged,
            &["in epoch 3", "move it away"],
        );
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_snapshot_named_after_an_offset_that_no_log_reaches_is_refused() {
    for offset in [i64::MAX, i64::MAX - 1, OFFSET_MAX.0 + 1] {
        for log in [true, false] {
            let (_dir, options) = crashed();
            snapshot_at(&options, id(offset, 3));
            if !log {
                fs::remove_file(log_file(&options)).unwrap();
                fs::write(log_path(&options.dir, Offset(offset)), b"").unwrap();
            }
            refused(&options, FaultKind::Damaged, &["no log reaches"]);
        }
    }
}

#[test]
fn bad_bytes_below_the_end_of_a_snapshot_are_rot() {
    let (_dir, options) = killed("dynamic");
    let good = fs::read(log_file(&options)).unwrap();
    for at in [0, 61, good.len() / 2] {
        damage(&log_file(&options), |bytes| bytes[at..].fill(0));
        let words = ["00000000000000000000.log", "190 was committed", "Restore"];
        refused(&options, FaultKind::Damaged, &words);
        fs::write(log_file(&options), &good).unwrap();
    }
    // Behind it, they are a torn tail.
    damage(&log_file(&options), |bytes| bytes.truncate(good.len() - 1));
    let (_, recovered) = open(&options).unwrap();
    assert!(recovered.torn_bytes > 0 && recovered.log_end >= Offset(190));
}

#[test]
fn a_log_that_was_emptied_does_not_begin_anew() {
    let (_dir, options) = crashed();
    drop(open(&options).unwrap());
    fs::write(log_file(&options), b"").unwrap();
    snapshot_at(&options, id(40, 3));
    refused(
        &options,
        FaultKind::Damaged,
        &["epoch 3 began at offset 20"],
    );
}

#[test]
fn of_two_snapshots_at_one_offset_that_of_the_logs_epoch_is_taken() {
    for stranger in [1, 3] {
        let (_dir, options) = crashed();
        snapshot_at(&options, id(15, 2));
        let path = snapshot_at(&options, id(15, stranger));
        let (_, recovered) = open(&options).unwrap();
        assert_eq!(recovered.snapshots, [id(15, 2)]);
        assert!(path.exists(), "nothing is thrown away");
    }
}

#[test]
fn a_voter_among_others_takes_the_snapshot_that_it_fetched() {
    let (_dir, options) = crashed();
    let options = OpenOptions {
        node_id: Some(NodeId(1)),
        ..options
    };
    let voter = |voter_id| KRaftVoter {
        voter_id,
        ..KRaftVoter::default()
    };
    let voters = KRaftVoters {
        voters: vec![voter(1), voter(2)],
        ..KRaftVoters::default()
    };
    let control = [KRaftVersion::default().into(), voters.into()];
    let at = id(40, 5);
    let writer =
        SnapshotWriter::create(&options.dir, at, Timestamp(9000), Timestamp(1), &control).unwrap();
    writer.finish().unwrap();
    assert_eq!(open(&options).unwrap().1.log_start, Offset(40));
}
