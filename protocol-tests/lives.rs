//! What the recorded lives hold: every record that a release can write, told in a table of
//! `fixtures/README.md`, and equal bytes on the nodes of one quorum.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kraftd::records::batch::Batch;
use kraftd::records::{ControlRecord, Record, VersionedRecord};

use crate::fixture::fixtures;

const RELEASES: [&str; 6] = ["3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"];

/// Types of control records that are in logs and checkpoints of metadata.
const CONTROL: [&str; 5] = [
    "LeaderChange",
    "SnapshotHeader",
    "SnapshotFooter",
    "KRaftVersion",
    "KRaftVoters",
];

/// The most that one recorded directory may weigh.
const DIRECTORY_BYTES_MAX: u64 = 1_000_000;

/// Why a release cannot write a record, when that is so.
fn never(release: &str, record: &str) -> Option<&'static str> {
    let old = release == "3.9.2";
    match record {
        "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD" if !old => {
            Some("of metadata versions below 3.3-IV2, and 4.0 begins at 3.3-IV3")
        }
        "ZK_MIGRATION_STATE_RECORD" if !old => Some("4.0 has no ZooKeeper"),
        "CLEAR_ELR_RECORD" if old => Some("eligible leader replicas came with 4.0"),
        "UNREGISTER_CONTROLLER_RECORD" if release != "4.4.0" => Some("it came with 4.4"),
        _ => None,
    }
}

/// The newest version of a record that a release writes.
fn newest(release: &str, record: &str) -> i16 {
    let release = RELEASES.iter().position(|it| *it == release).unwrap();
    let by_release = match record {
        "REGISTER_BROKER_RECORD" => [3, 3, 3, 3, 4, 4],
        "PARTITION_RECORD" | "PARTITION_CHANGE_RECORD" => [1, 2, 2, 2, 2, 2],
        "BROKER_REGISTRATION_CHANGE_RECORD" => [2, 2, 2, 2, 3, 3],
        _ => [0; 6],
    };
    by_release[release]
}

/// Files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The records in a log or a checkpoint, by name with their versions.
fn note(path: &Path, seen: &mut BTreeMap<String, BTreeSet<i16>>) {
    let mut bytes = Bytes::from(fs::read(path).unwrap());
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
        for raw in batch.records() {
            let raw = raw.unwrap();
            let (name, version) = if batch.is_control() {
                let record = ControlRecord::decode(raw.key.as_ref(), raw.value.as_ref()).unwrap();
                (record.name().to_owned(), record.version())
            } else {
                let record = VersionedRecord::decode(&raw.value.unwrap()).unwrap();
                (record.record.name().to_owned(), record.version)
            };
            seen.entry(name).or_default().insert(version);
        }
    }
}

/// Everything that was recorded of a release: names with versions.
fn recorded(release: &str) -> BTreeMap<String, BTreeSet<i16>> {
    let mut seen = BTreeMap::new();
    for made in ["formatted", "lived", "full", "old-levels"] {
        let folder = fixtures().join(release).join(made);
        let paths = if folder.exists() {
            files(&folder)
        } else {
            Vec::new()
        };
        for path in paths {
            let extension = path.extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("log" | "checkpoint")) {
                note(&path, &mut seen);
            }
        }
    }
    seen
}

#[test]
fn every_record_that_a_release_can_write_is_recorded_as_the_table_says() {
    let found: Vec<_> = RELEASES.iter().map(|release| recorded(release)).collect();
    let mut table = format!("| record | {} |\n", RELEASES.join(" | "));
    table += &format!("|---{}|\n", "|---".repeat(RELEASES.len()));
    let mut missing = Vec::new();
    let types = Record::TYPES.iter().map(|known| known.name);
    for name in types.chain(CONTROL) {
        table += &format!("| {name} |");
        for (release, seen) in RELEASES.iter().zip(&found) {
            let versions = seen.get(name).cloned().unwrap_or_default();
            let told: Vec<String> = versions.iter().map(ToString::to_string).collect();
            table += &format!(
                " {} |",
                if told.is_empty() {
                    "-".into()
                } else {
                    told.join(" ")
                }
            );
            let wanted = never(release, name).is_none();
            if wanted && versions.last() != Some(&newest(release, name)) {
                missing.push(format!("{release}: {name}, only {versions:?}"));
            }
            assert!(wanted || versions.is_empty(), "{release} writes {name}");
        }
        table += "\n";
    }
    assert_eq!(missing, Vec::<String>::new(), "\n{table}");
    let readme = fs::read_to_string(fixtures().join("README.md")).unwrap();
    assert!(readme.contains(&table), "the table is now:\n{table}");
}

/// What goes on in a cluster, as its records show it.
fn note_deeds(path: &Path, levels: &mut BTreeMap<String, i16>, deeds: &mut BTreeSet<&'static str>) {
    let some = |list: &Option<Vec<i32>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let mut bytes = Bytes::from(fs::read(path).unwrap());
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
        for raw in batch.records() {
            let raw = raw.unwrap();
            if batch.is_control() {
                match ControlRecord::decode(raw.key.as_ref(), raw.value.as_ref()).unwrap() {
                    ControlRecord::KRaftVoters(it) if it.voters.len() > 1 => {
                        deeds.insert("a voter is added");
                    }
                    // In a log that began without one.
                    ControlRecord::KRaftVersion(it)
                        if it.k_raft_version == 1 && raw.offset.0 > 10 =>
                    {
                        deeds.insert("kraft.version rises");
                    }
                    _ => {}
                }
                continue;
            }
            let record = VersionedRecord::decode(&raw.value.unwrap()).unwrap().record;
            match record {
                Record::RegisterBroker(it) if it.log_dirs.len() > 1 => {
                    deeds.insert("a broker has two directories");
                }
                Record::PartitionChange(it) => {
                    if some(&it.adding_replicas) || some(&it.removing_replicas) {
                        deeds.insert("a reassignment begins");
                    }
                    if some(&it.eligible_leader_replicas) {
                        deeds.insert("a replica stays eligible");
                    }
                }
                Record::FeatureLevel(it) => {
                    let before = levels.insert(it.name, it.feature_level).unwrap_or(0);
                    if it.feature_level < before {
                        deeds.insert("a feature goes down");
                    }
                    if before > 0 && it.feature_level > before {
                        deeds.insert("a feature goes up");
                    }
                }
                Record::AbortTransaction(_) => {
                    deeds.insert("a transaction is aborted");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn every_releases_lives_have_what_is_hard_to_come_by() {
    for release in RELEASES {
        let mut deeds = BTreeSet::new();
        for life in fs::read_dir(fixtures().join(release).join("full")).unwrap() {
            let mut levels = BTreeMap::new();
            for path in files(&life.unwrap().path()) {
                if path.extension().is_some_and(|extension| extension == "log") {
                    note_deeds(&path, &mut levels, &mut deeds);
                }
            }
        }
        let mut wanted = BTreeSet::from([
            "a broker has two directories",
            "a feature goes up",
            "a reassignment begins",
            "a transaction is aborted",
            "a voter is added",
        ]);
        // 3.9 has metadata.version alone, and 20 goes down to 19 there too.
        wanted.insert("a feature goes down");
        if release != "3.9.2" {
            wanted.insert("a replica stays eligible");
        }
        if !["3.9.2", "4.0.2"].contains(&release) {
            wanted.insert("kraft.version rises");
        }
        assert_eq!(deeds, wanted, "{release}");
    }
}

#[test]
fn recorded_directories_are_small() {
    for release in RELEASES {
        for made in ["lived", "full"] {
            for directory in fs::read_dir(fixtures().join(release).join(made)).unwrap() {
                let directory = directory.unwrap().path();
                let sizes = files(&directory).into_iter();
                let bytes: u64 = sizes.map(|path| fs::metadata(path).unwrap().len()).sum();
                let name = directory.display();
                assert!(bytes <= DIRECTORY_BYTES_MAX, "{name}: {bytes} bytes");
            }
        }
    }
}

#[test]
fn two_nodes_of_one_quorum_hold_equal_logs() {
    for release in RELEASES {
        let log = |end: &str| {
            let folder = fixtures().join(release).join("full").join(end);
            fs::read(folder.join("__cluster_metadata-0/00000000000000000000.log")).unwrap()
        };
        // Node 1 was killed some records before node 2 ended.
        let (first, second) = (log("dynamic-killed"), log("dynamic-stopped"));
        let both = first.len().min(second.len());
        assert!(both > 20_000, "{release}: {both} bytes");
        assert!(first[..both] == second[..both], "{release}");
    }
}
