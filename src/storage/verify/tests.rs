//! Directories of Java's, whole and damaged, and what is found in them.

mod flips;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::image::Image;
use crate::storage::OpenOptions;
use crate::storage::directory::{self, DirectoryOptions};
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::storage::recovery;
use crate::storage::testing::{contents, copy, fixture};
use crate::storage::{Command, FaultKind, StorageFault};
use crate::types::NodeId;

/// The image, as the command line has it.
#[derive(Default)]
struct Metadata(Image);

impl State for Metadata {
    fn replay(&mut self, record: &Record, offset: Offset) -> std::result::Result<(), String> {
        let replayed = self.0.replay(record, offset);
        replayed.map_err(|fault| fault.to_string())
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.0.settled().check()
    }

    fn open_transaction(&self) -> Option<Offset> {
        self.0.open_transaction()
    }

    fn difference(&self, other: &Self) -> Option<String> {
        (self.0 != other.0).then(|| "they differ".to_owned())
    }
}

fn report(path: &Path) -> Report {
    verify::<Metadata>(path, &mut |_, _| ()).unwrap()
}

fn partition(root: &Path) -> PathBuf {
    root.join(PARTITION_DIR)
}

fn log_of(root: &Path) -> PathBuf {
    partition(root).join("00000000000000000000.log")
}

/// The findings, notes left out.
fn findings(report: &Report) -> Vec<&Finding> {
    let all = report.findings.iter();
    all.filter(|it| it.severity > Severity::Note).collect()
}

fn shown(report: &Report) -> String {
    let rows = report.findings.iter();
    rows.map(|it| {
        format!(
            "{} {} {} {}\n",
            it.severity.name(),
            it.check,
            it.what,
            it.advice
        )
    })
    .collect()
}

/// What a start of node 1 says of the directory, without a change of it.
fn judged(root: &Path) -> std::result::Result<recovery::Plan, StorageFault> {
    let meta = MetaProperties::read(&root.join(META_PROPERTIES_FILE))?;
    recovery::examine(&OpenOptions {
        dir: partition(root),
        node_id: Some(NodeId(1)),
        cluster_id: meta.and_then(|meta| meta.cluster_id).unwrap_or_default(),
        segment_bytes: 1 << 30,
        segment_ms: 1 << 40,
        snapshot_delete_delay_ms: 60_000,
        accept_lost_vote: false,
    })
}

/// Starts node 1 on the directory, and stops it after `meanwhile`.
fn start_and(root: &Path, meanwhile: impl FnOnce()) -> std::result::Result<(), StorageFault> {
    let options = DirectoryOptions {
        node_id: NodeId(1),
        log_dirs: vec![root.to_path_buf()],
        metadata_log_dir: root.to_path_buf(),
        config_file: None,
        segment_bytes: 1 << 30,
        segment_ms: 1 << 40,
        snapshot_delete_delay_ms: 60_000,
        accept_lost_vote: false,
    };
    let opened = directory::open(&options, |_| ())?;
    meanwhile();
    opened.disk.submit(Command::Close);
    opened.disk.join();
    Ok(())
}

fn start(root: &Path) -> std::result::Result<(), StorageFault> {
    start_and(root, || ())
}

/// Changes a file's bytes, also those of a read-only one.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The log directories of every recorded release that were formatted or lived in.
fn recorded() -> Vec<String> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (mut found, mut waiting) = (Vec::new(), vec![fixtures.clone()]);
    while let Some(path) = waiting.pop() {
        if path.join(META_PROPERTIES_FILE).is_file() {
            let name = path.strip_prefix(&fixtures).unwrap();
            found.push(name.to_str().unwrap().to_owned());
            continue;
        }
        for entry in fs::read_dir(&path).unwrap() {
            waiting.extend(Some(entry.unwrap().path()).filter(|path| path.is_dir()));
        }
    }
    found.sort();
    found
}

/// Only 3.9 reads these: to every later release, and so here, they cannot be a controller's state.
#[test]
fn metadata_versions_that_4_0_dropped_are_told_by_their_level() {
    let old: Vec<String> = recorded();
    let old = old.iter().filter(|name| name.contains("/old-levels/"));
    let mut seen = 0;
    for name in old {
        let report = report(fixture(name).path());
        assert_eq!(report.verdict(), Severity::Wrong, "{name}");
        let text = shown(&report);
        assert!(
            text.contains("metadata.version at the unknown level 4"),
            "{text}"
        );
        assert_eq!(
            text.matches(" level ").count(),
            text.lines().count(),
            "{text}"
        );
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn nothing_is_found_in_what_java_left_and_nothing_is_changed() {
    let mut checkpoints = 0;
    let readable = recorded().into_iter();
    for name in readable.filter(|name| !name.contains("/old-levels/")) {
        let dir = fixture(&name);
        let before = contents(dir.path());
        let report = report(dir.path());
        assert_eq!(
            report.verdict(),
            Severity::Note,
            "{name}\n{}",
            shown(&report)
        );
        assert_eq!(
            contents(dir.path()),
            before,
            "{name}: something was written"
        );
        assert!(!report.in_use);
        // With the first that is left, a cleaned log begins.
        let begin = report.log.start;
        let of_begin = |it: &&CheckedCheckpoint| begin > Offset::ZERO && it.id.offset >= begin;
        let first = report.checkpoints.iter().find(of_begin).map(|it| it.id);
        for checkpoint in &report.checkpoints {
            let path = checkpoint.path.display();
            assert!(checkpoint.sound, "{path}");
            let is_first = checkpoint.id.offset == Offset::ZERO || Some(checkpoint.id) == first;
            assert!(
                checkpoint.equals_log || is_first,
                "{path} is not the log's state"
            );
            checkpoints += usize::from(checkpoint.equals_log);
        }
        if let Ok(state) = fs::read(partition(dir.path()).join("quorum-state")) {
            assert!(!state.is_empty() && report.log.end > Offset::ZERO, "{name}");
        }
    }
    assert!(checkpoints >= 60, "only {checkpoints} compared with a log");
}

#[test]
fn a_directory_in_use_is_verified_and_its_lock_left_alone() {
    let dir = fixture("4.4.0/lived/dynamic-stopped");
    let lock = lock::DirLock::acquire(dir.path()).unwrap();
    // An append that is under way.
    change(&log_of(dir.path()), |bytes| {
        bytes.extend_from_slice(&[0, 0, 0, 0])
    });
    let live = report(dir.path());
    assert!(live.in_use);
    assert_eq!(live.verdict(), Severity::Note, "{}", shown(&live));
    assert!(shown(&live).contains("in use") || shown(&live).contains("is held"));
    assert!(dir.path().join(".lock").exists());
    drop(lock);
    let stopped = report(dir.path());
    assert_eq!(stopped.verdict(), Severity::Torn, "{}", shown(&stopped));
}

/// Java deletes a checkpoint after it has moved the first epoch to the next one; between the two
/// looks of a reader, the one that the list began at may go.
#[test]
fn a_checkpoint_deleted_between_the_looks_at_a_directory_in_use_is_no_fault() {
    let dir = fixture("4.4.0/full/cleaned");
    let oldest = "00000000000000000398-0000000001.checkpoint";
    fs::remove_file(partition(dir.path()).join(oldest)).unwrap();
    let stopped = report(dir.path());
    assert_eq!(stopped.verdict(), Severity::Wrong, "{}", shown(&stopped));
    let _lock = lock::DirLock::acquire(dir.path()).unwrap();
    let live = report(dir.path());
    assert_eq!(live.verdict(), Severity::Note, "{}", shown(&live));
}

#[test]
fn the_partitions_directory_alone_can_be_verified() {
    let dir = fixture("4.4.0/lived/dynamic-stopped");
    let whole = report(dir.path());
    let inner = report(&partition(dir.path()));
    assert_eq!(
        (whole.log, inner.verdict()),
        (inner.log.clone(), Severity::Note)
    );
    let alone = tempfile::tempdir().unwrap();
    let copied = alone.path().join("copied");
    fs::rename(partition(dir.path()), &copied).unwrap();
    let copied = report(&copied);
    assert_eq!(copied.verdict(), Severity::Note);
    assert!(shown(&copied).contains("no meta.properties to compare with"));
    for nothing in [
        alone.path().join("x"),
        dir.path().join(META_PROPERTIES_FILE),
    ] {
        assert!(verify::<Metadata>(&nothing, &mut |_, _| ()).is_err());
    }
}

#[test]
fn what_kraftd_leaves_is_sound_after_a_stop_and_after_a_crash() {
    let dir = fixture("4.4.0/lived/dynamic-killed");
    start(dir.path()).unwrap();
    let stopped = report(dir.path());
    assert_eq!(stopped.verdict(), Severity::Note, "{}", shown(&stopped));
    let copied = tempfile::tempdir().unwrap();
    let meanwhile = || {
        copy(dir.path(), copied.path());
        let running = report(dir.path());
        assert!(running.in_use);
        assert_eq!(running.verdict(), Severity::Note, "{}", shown(&running));
    };
    start_and(dir.path(), meanwhile).unwrap();
    let crashed = report(copied.path());
    assert_eq!(crashed.verdict(), Severity::Note, "{}", shown(&crashed));
}

/// Changes files of a copy as (file, how, place, value) say: cut, changed, grown, emptied, deleted.
fn mutate(root: &Path, files: &[PathBuf], mutations: Vec<(usize, u8, u16, u8)>) {
    for (file, how, place, value) in mutations {
        let path = root.join(&files[file]);
        let Ok(mut bytes) = fs::read(&path) else {
            continue;
        };
        let place = usize::from(place) % bytes.len().max(1);
        match how {
            0 => bytes.truncate(place),
            1 if !bytes.is_empty() => bytes[place] ^= value | 1,
            2 => bytes.extend_from_slice(&vec![value; place]),
            3 => bytes.clear(),
            _ => {}
        }
        fs::remove_file(&path).unwrap();
        if how != 4 {
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn what_is_called_sound_or_torn_starts_whatever_was_changed() {
    for name in ["4.4.0/lived/dynamic-killed", "3.9.2/lived/static-stopped"] {
        let source = fixture(name);
        let files: Vec<PathBuf> = contents(source.path())
            .into_keys()
            .filter(|path| path.is_file())
            .map(|path| path.strip_prefix(source.path()).unwrap().to_path_buf())
            .collect();
        let mutation = (0..files.len(), 0..5_u8, any::<u16>(), any::<u8>());
        let config = ProptestConfig::with_cases(60);
        proptest!(config, |(mutations in prop::collection::vec(mutation, 1..4))| {
            let dir = tempfile::tempdir().unwrap();
            copy(source.path(), dir.path());
            mutate(dir.path(), &files, mutations);
            let found = report(dir.path());
            let started = judged(dir.path());
            if let Err(fault) = &started {
                prop_assert!(found.verdict() > Severity::Torn, "{}\n{}", fault, shown(&found));
            }
            // What reads the same directory for people ends too.
            let source = Source::open(dir.path()).unwrap();
            if let Ok(replay) = source.replay(crate::storage::reader::Target::Newest) {
                let _ = replay.take_while(std::result::Result::is_ok).count();
            }
        });
    }
}
