//! Starts on directories that were recorded, and on what they must not be.

use std::fs;

use super::*;
use crate::raft::ControlRecord;
use crate::storage::Command;
use crate::storage::testing::{contents, fixture};
use crate::types::Offset;

fn options(dirs: &[&Path]) -> DirectoryOptions {
    DirectoryOptions {
        node_id: NodeId(1),
        log_dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(),
        metadata_log_dir: dirs[0].to_path_buf(),
        config_file: Some("/etc/kafka/controller.properties".into()),
        segment_bytes: 1 << 30,
        segment_ms: 1 << 40,
        snapshot_delete_delay_ms: 60_000,
        accept_lost_vote: false,
    }
}

fn meta(cluster: &str, node: i32, directory: u128) -> MetaProperties {
    MetaProperties::new(cluster.into(), NodeId(node), Uuid::from_u128(directory))
}

/// Two log directories with these files.
fn two(first: &MetaProperties, second: &MetaProperties) -> (tempfile::TempDir, [PathBuf; 2]) {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|name| root.path().join(name));
    for (dir, meta) in dirs.iter().zip([first, second]) {
        fs::create_dir(dir).unwrap();
        meta.write(&dir.join(META_PROPERTIES_FILE)).unwrap();
        let bootstrap = fixture("4.3.1/formatted/static-voters");
        let bootstrap = bootstrap.path().join(bootstrap::BOOTSTRAP_FILE);
        fs::copy(bootstrap, dir.join(bootstrap::BOOTSTRAP_FILE)).unwrap();
    }
    (root, dirs)
}

/// Refused with one sentence that has these words, and nothing written.
fn refused(options: &DirectoryOptions, kind: FaultKind, words: &[&str]) {
    let before: Vec<_> = options.log_dirs.iter().map(|dir| contents(dir)).collect();
    let fault = open(options, |_| ()).expect_err("must be refused");
    assert_eq!(fault.kind, kind, "{fault}");
    for word in words {
        assert!(fault.sentence.contains(word), "{word:?} is not in: {fault}");
    }
    assert!(!fault.sentence.contains('\n'), "{fault}");
    let after: Vec<_> = options.log_dirs.iter().map(|dir| contents(dir)).collect();
    assert_eq!(after, before, "something was written");
}

fn close(opened: Opened) {
    opened.disk.submit(Command::Close);
    opened.disk.join();
}

#[test]
fn an_unformatted_directory_is_refused_with_the_command_that_helps() {
    let root = tempfile::tempdir().unwrap();
    let words = [
        "No readable meta.properties files found",
        "kraftd format -t CLUSTER_ID -c /etc/kafka/controller.properties",
        "--standalone",
        "--no-initial-controllers",
    ];
    refused(&options(&[root.path()]), FaultKind::NotFormatted, &words);
}

#[test]
fn a_file_under_the_name_of_the_directory_is_refused_with_its_key_and_what_helps() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, b"").unwrap();
    let fault = open(&options(&[&file]), |_| ()).expect_err("must be refused");
    assert_eq!(fault.kind, FaultKind::Identity, "{fault}");
    for word in ["log.dirs (or log.dir) names ", "/file", "kraftd format"] {
        assert!(fault.sentence.contains(word), "{fault}");
    }
    let mut other = options(&[root.path()]);
    other.metadata_log_dir.clone_from(&file);
    let fault = open(&other, |_| ()).expect_err("must be refused");
    assert!(
        fault.sentence.starts_with("metadata.log.dir names "),
        "{fault}"
    );
}

#[test]
fn every_log_directory_must_be_formatted() {
    let (root, [first, _]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
    let third = root.path().join("third");
    fs::create_dir(&third).unwrap();
    let options = options(&[&first, &third]);
    refused(
        &options,
        FaultKind::NotFormatted,
        &["meta.properties", "third"],
    );
}

#[test]
fn directories_that_contradict_each_other_or_the_configuration_are_refused() {
    let good = meta("c", 1, 500);
    for (second, words) in [
        (
            meta("d", 1, 501),
            ["Invalid cluster.id", "Expected c", "read d"],
        ),
        (
            meta("c", 7, 501),
            ["Stored node id 7", "node id 1", "node.id=7"],
        ),
        (meta("c", 1, 500), ["Duplicate directory ID", "/a", "/b"]),
        (
            meta("c", 1, 42),
            ["reserved directory ID", "KgAA"[..0].into(), "/b"],
        ),
        (
            MetaProperties {
                cluster_id: None,
                ..meta("c", 1, 501)
            },
            ["cluster.id was not specified", "/b", ""],
        ),
        (
            MetaProperties {
                node_id: None,
                ..meta("c", 1, 501)
            },
            ["node.id was not specified", "/b", ""],
        ),
    ] {
        let (_root, [first, second]) = two(&good, &second);
        refused(&options(&[&first, &second]), FaultKind::Identity, &words);
    }
}

#[test]
fn metadata_in_another_log_directory_is_refused() {
    let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
    fs::create_dir(second.join(PARTITION_DIR)).unwrap();
    refused(
        &options(&[&first, &second]),
        FaultKind::Identity,
        &["metadata.log.dir", "/b/"],
    );
}

#[test]
fn a_locked_directory_is_refused() {
    let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
    let _lock = DirLock::acquire(&second).unwrap();
    refused(
        &options(&[&first, &second]),
        FaultKind::Locked,
        &[".lock", "/b"],
    );
}

#[test]
fn a_directory_without_an_id_gets_one_and_keeps_it() {
    let first = MetaProperties {
        directory_id: None,
        ..meta("c", 1, 0)
    };
    let (_root, [first, second]) = two(&first, &meta("c", 1, 501));
    let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
    let id = opened.directory_id;
    assert!(!is_reserved(id));
    assert_eq!(opened.log_dirs[1].1, Uuid::from_u128(501));
    close(opened);
    let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
    assert_eq!(opened.directory_id, id);
    close(opened);
}

#[test]
fn a_damaged_second_directory_is_left_out() {
    let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
    fs::write(second.join(META_PROPERTIES_FILE), "version=9\n").unwrap();
    let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
    assert_eq!(opened.log_dirs.len(), 1);
    close(opened);
    refused(
        &options(&[&second, &first]),
        FaultKind::Unsupported,
        &["'9'", "/b/"],
    );
}

#[test]
fn directories_that_java_formatted_are_opened_with_their_bootstrap_records() {
    for (name, records, voters) in [
        ("3.9.2/formatted/initial-controllers", true, true),
        ("3.9.2/formatted/standalone", true, true),
        ("3.9.2/formatted/static-voters", true, false),
        ("4.4.0/formatted/initial-controllers", true, true),
        ("4.4.0/formatted/no-initial-controllers", true, false),
        ("4.4.0/formatted/standalone", true, true),
        ("4.4.0/formatted/standalone-scram", true, true),
        ("4.4.0/formatted/static-voters", true, false),
        ("4.4.0/formatted/static-voters-3.3", true, false),
    ] {
        let dir = fixture(name);
        let path = dir.path().join(META_PROPERTIES_FILE);
        let node_id = MetaProperties::read(&path)
            .unwrap()
            .unwrap()
            .node_id
            .unwrap();
        let options = DirectoryOptions {
            node_id,
            ..options(&[dir.path()])
        };
        let opened = open(&options, |_| ()).unwrap();
        assert_eq!(!opened.bootstrap.records.is_empty(), records, "{name}");
        let is_voters = |record: &ControlRecord| matches!(record, ControlRecord::Voters(_));
        assert_eq!(
            opened.bootstrap.control.iter().any(is_voters),
            voters,
            "{name}"
        );
        // Consensus learns the voters from the same file, at offset -1.
        let recovered = &opened.recovered.control;
        assert_eq!(recovered.len(), opened.bootstrap.control.len(), "{name}");
        assert!(
            recovered.iter().all(|(offset, _)| *offset == Offset(-1)),
            "{name}"
        );
        assert_eq!(opened.recovered.quorum_state, None);
        close(opened);
        assert!(!dir.path().join(".lock").exists());
    }
}

#[test]
fn an_empty_bootstrap_snapshot_is_as_good_as_none_and_a_flipped_bit_is_refused() {
    let dir = fixture("4.4.0/lived/dynamic-stopped");
    let zero = dir
        .path()
        .join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint");
    let mut bytes = fs::read(&zero).unwrap();
    bytes[200] ^= 1;
    fs::remove_file(&zero).unwrap();
    fs::write(&zero, bytes).unwrap();
    let options = options(&[dir.path()]);
    refused(
        &options,
        FaultKind::Damaged,
        &["0000000000.checkpoint", "corrupt", "crc"],
    );
    fs::write(&zero, b"").unwrap();
    let opened = open(&options, |_| ()).unwrap();
    assert!(opened.bootstrap.records.is_empty());
    close(opened);
}
