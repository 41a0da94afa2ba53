//! The directory of a running Java controller, read by `dump`, `state`, `diff` and `fsck` while it
//! is written: what was acknowledged is shown, nothing is changed, and Java does not notice.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Controller, Driver, Ended, Kind, Setup, kraftd, run, until};

/// Small segments and checkpoints, and a record each 40 ms: files come, are renamed and go. Java
/// looks at retention once a minute.
const LIMITS: [&str; 6] = [
    "internal.metadata.log.segment.bytes=12288",
    "internal.metadata.delete.delay.millis=1000",
    "metadata.log.max.record.bytes.between.snapshots=4000",
    "metadata.max.retention.bytes=20000",
    "metadata.max.idle.interval.ms=40",
    "metadata.log.max.snapshot.interval.ms=0",
];

/// Everything of a file that a reader has to leave alone: bytes, inode, mode, and the nanoseconds
/// of the last change of its bytes and of the inode.
type Kept = (Vec<u8>, u64, u32, (i64, i64), (i64, i64));

/// Every file and directory below.
fn kept(dir: &Path) -> BTreeMap<PathBuf, Kept> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let meta = fs::metadata(&path).expect("readable");
        let mut bytes = Vec::new();
        if meta.is_dir() {
            let entries = fs::read_dir(&path).expect("readable");
            waiting.extend(entries.map(|entry| entry.expect("readable").path()));
        } else {
            bytes = fs::read(&path).expect("readable");
        }
        let changed = (meta.mtime(), meta.mtime_nsec());
        let inode_changed = (meta.ctime(), meta.ctime_nsec());
        found.insert(
            path,
            (bytes, meta.ino(), meta.mode(), changed, inode_changed),
        );
    }
    found
}

fn kraftd_reads(words: &[&str], dir: &Path) -> Ended {
    run(kraftd().arg(words[0]).arg(dir).args(&words[1..]))
}

/// What a reading command prints as JSON; it must not fail.
#[track_caller]
fn document(words: &[&str], dir: &Path) -> Value {
    let ended = kraftd_reads(words, dir);
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{words:?}: {e}: {}", ended.out))
}

#[track_caller]
fn signal(controller: &Controller, signal: Signal) {
    let pid = i32::try_from(controller.server.pid()).ok();
    let pid = pid.and_then(Pid::from_raw).expect("a pid above zero");
    kill_process(pid, signal).expect("it runs");
}

/// Sets the cluster-wide default of `log.retention.ms`; it is committed when this returns.
#[track_caller]
fn alter(setup: &Setup, driver: &mut Driver, value: u64) {
    let address = setup.controller_address();
    let change = format!("log.retention.ms={value}");
    let args = [
        "--bootstrap-controller",
        &address,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        &change,
    ];
    let done = driver.tool("org.apache.kafka.tools.ConfigCommand", &args);
    assert_eq!(done.code, 0, "{done:?}");
}

/// The value that `state` shows, and the offset that it stands at.
#[track_caller]
fn shown(dir: &Path) -> (String, i64) {
    let state = document(&["state", "--json"], dir);
    let value = &state["configs"]["BROKER"]["log.retention.ms"];
    let offset = state["provenance"]["offset"].as_i64().expect("an offset");
    (value.as_str().unwrap_or_default().to_owned(), offset)
}

/// All commands, on the directory as it is at this moment; gives the offset of the state.
#[track_caller]
fn read_all(dir: &Path, value: &str, at_least: i64) -> i64 {
    let (now, offset) = shown(dir);
    assert_eq!(now, value, "acknowledged before the look");
    assert!(offset >= at_least, "{offset} after {at_least}");
    let dumped = kraftd_reads(&["dump", "--json"], dir);
    assert_eq!(dumped.code, Some(0), "{dumped:?}");
    let mut lines = dumped.out.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("a JSON object a line");
        (line["isValid"] == true).then(|| line["lastOffset"].as_i64())
    });
    assert!(lines.any(|last| last.flatten() >= Some(offset)), "{offset}");
    let checked = document(&["fsck", "--json"], dir);
    assert_eq!(checked["verdict"], "sound", "{checked}");
    assert_eq!(checked["inUse"], true, "{checked}");
    offset
}

fn first_segment(setup: &Setup) -> u64 {
    let entries = fs::read_dir(setup.metadata_dir()).expect("a metadata directory");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let bases = names.filter_map(|name| name.strip_suffix(".log")?.parse().ok());
    bases.min().expect("a log")
}

#[test]
fn the_directory_of_a_running_java_controller_is_read_and_left_alone() {
    let java = Kind::Java("4.4.0");
    let mut setup = Setup::new();
    LIMITS
        .iter()
        .for_each(|line| setup.add_controller_line(line));
    setup.format(java, &[]);
    let mut controller = setup.start_controller(java);
    let mut driver = Driver::start();
    let dir = setup.controller_dir();
    let mut seen = -1;
    for round in 1..=5 {
        alter(&setup, &mut driver, 60_000 + round);
        seen = read_all(&dir, &(60_000 + round).to_string(), seen);
    }

    // Nothing moves while Java stands still: whatever changes now is our doing.
    signal(&controller, Signal::STOP);
    let before = kept(&dir);
    assert!(before.contains_key(&dir.join(".lock")));
    seen = read_all(&dir, "60005", seen);
    let at = (seen / 2).to_string();
    document(&["state", "--json", "--at", &at], &dir);
    document(
        &["diff", "--json", "--from", &at, "--to", &seen.to_string()],
        &dir,
    );
    for path in before.keys() {
        let ending = path.extension().and_then(|it| it.to_str());
        if matches!(ending, Some("log" | "checkpoint")) {
            let dumped = kraftd_reads(&["dump", "--verify"], path);
            assert_eq!(dumped.code, Some(0), "{dumped:?}");
        }
    }
    let after = kept(&dir);
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    for (path, was) in &before {
        assert!(&after[path] == was, "{} was touched", path.display());
    }
    signal(&controller, Signal::CONT);

    // Until Java has removed what the log began with, and a little longer.
    let mut removed = 0;
    until("the log was cleaned", Duration::from_secs(150), || {
        seen = read_all(&dir, "60005", seen);
        removed += usize::from(first_segment(&setup) > 0);
        removed == 10
    });

    // Java still has its lock, and goes on.
    let refused = run(kraftd().arg(setup.controller_config()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains(".lock"), "{refused:?}");
    alter(&setup, &mut driver, 61_000);
    read_all(&dir, "61000", seen);
    for bad in ["ERROR", "FATAL", "Exception"] {
        let mut lines = controller.server.lines_with(bad);
        // What Java says of the small segments.
        lines.retain(|line| !line.contains("is only supported for testing"));
        assert!(lines.is_empty(), "{lines:?}");
    }
    controller.server.stop();
    let checked = document(&["fsck", "--json"], &dir);
    assert_eq!(checked["inUse"], false, "{checked}");
    assert_eq!(shown(&dir).0, "61000");
}
