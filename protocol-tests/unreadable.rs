//! Logs at the edge of what can be read. A record that nobody here can read is never passed over:
//! dump, state, fsck and a start end with its file, its offset and the position of its batch.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bytes::Bytes;
use kraftd::records::batch::{BATCH_BYTES_MAX, Batch, BatchBuilder};
use kraftd::records::{ConfigRecord, Record};

use crate::fixture::fixtures;

/// The value of a record, and why it cannot be read.
const UNREADABLE: [(&[u8], &str); 3] = [
    (&[1, 99, 0, 0], "unknown metadata record type 99"),
    (&[1, 2, 77, 0], "TOPIC_RECORD has no version 77"),
    (&[1, 2, 0], "the bytes end inside a field"),
];

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}

/// Adds a batch behind the end of a log. Gives its first offset and where it begins.
fn add(log: &Path, fill: impl FnOnce(&mut BatchBuilder)) -> (i64, usize) {
    let good = fs::read(log).unwrap();
    let mut rest = Bytes::from(good.clone());
    let mut last = None;
    while let Some(batch) = Batch::take_from(&mut rest).unwrap() {
        last = Some(batch);
    }
    let last = last.expect("a log");
    let mut builder = BatchBuilder::data(last.end_offset(), last.epoch(), last.max_timestamp());
    fill(&mut builder);
    fs::write(log, [&good, builder.build().bytes().as_ref()].concat()).unwrap();
    (last.end_offset().0, good.len())
}

fn kraftd(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kraftd"));
    command.args(words).output().unwrap()
}

/// A configuration that starts node 1 on the directory.
pub(crate) fn config(dir: &Path) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let lines = [
        "process.roles=controller".to_owned(),
        "node.id=1".to_owned(),
        "controller.listener.names=CONTROLLER".to_owned(),
        format!("listeners=CONTROLLER://{address}"),
        format!("controller.quorum.bootstrap.servers={address}"),
        format!("log.dirs={}", dir.display()),
    ];
    let path = dir.join("server.properties");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn a_record_that_cannot_be_read_ends_every_command_with_its_file_offset_and_position() {
    for (value, why) in UNREADABLE {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        copy(&fixtures().join("4.4.0/lived/dynamic-killed"), root);
        let log = root.join("__cluster_metadata-0/00000000000000000000.log");
        let (offset, position) = add(&log, |batch| batch.push(None, Some(value)));
        let path = root.to_str().unwrap();
        let config = config(root);
        for words in [
            &["dump", path][..],
            &["state", path],
            &["fsck", path],
            &["start", config.to_str().unwrap()],
        ] {
            let output = kraftd(words);
            let found = if words[0] == "fsck" { 2 } else { 1 };
            let told = [&output.stdout[..], &output.stderr[..]].concat();
            let told = String::from_utf8(told).unwrap();
            assert_eq!(output.status.code(), Some(found), "{words:?}: {told}");
            let sentence = told.lines().find(|line| {
                let file = line.contains(log.to_str().unwrap());
                let at = line.contains(&format!("offset {offset}"));
                let byte = line.contains(&format!("at byte {position}"));
                file && at && byte && line.contains(why)
            });
            assert!(sentence.is_some(), "{words:?}: {told}");
            assert!(!told.contains("panicked"), "{words:?}: {told}");
            let cure = format!(
                "the log in {} is damaged or of another cluster",
                root.display()
            );
            let is_cured = told.contains(&cure) && told.contains("move it away");
            assert_eq!(is_cured, words[0] == "start", "{words:?}: {told}");
        }
        // Below it the past can still be seen.
        let before = (offset - 1).to_string();
        let output = kraftd(&["state", path, "--at", &before]);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_batch_as_large_as_they_may_be_is_dumped_loaded_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join("4.4.0/lived/dynamic-killed"), dir.path());
    let log = dir
        .path()
        .join("__cluster_metadata-0/00000000000000000000.log");
    let mut count = 0;
    let (offset, position) = add(&log, |batch| {
        loop {
            let record = ConfigRecord {
                resource_type: 4,
                resource_name: "2".into(),
                name: format!("key.{count}"),
                value: Some("x".repeat(10_000)),
                ..ConfigRecord::default()
            };
            let value = Record::from(record).at(0).encode().unwrap();
            if batch.size_with(None, Some(value.len())) > BATCH_BYTES_MAX {
                break;
            }
            batch.push(None, Some(&value));
            count += 1;
        }
    });
    let size = fs::metadata(&log).unwrap().len() - position as u64;
    assert!(size > BATCH_BYTES_MAX as u64 - 11_000, "{size}");
    let path = dir.path().to_str().unwrap();
    let told = |words: &[&str]| {
        let output = kraftd(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let state = [
        "state",
        path,
        "configs/BROKER:2",
        "--json",
        "--show-secrets",
    ];
    assert_eq!(told(&state).matches("\"key.").count(), count);
    let offsets = format!("{offset}..");
    let dump = ["dump", log.to_str().unwrap(), "--offsets", &offsets];
    assert_eq!(told(&dump).matches("CONFIG_RECORD").count(), count);
    told(&["fsck", path]);
    // Cut inside of it, which is how a crash leaves it.
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    let output = kraftd(&["fsck", path, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    let wanted = format!("\"position\":{position}");
    assert!(
        text.contains("\"verdict\":\"torn\"") && text.contains(&wanted),
        "{text}"
    );
}
