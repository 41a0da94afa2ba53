//! Signals that reach a process before its start is done.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::fixtures;
use crate::unreadable::{config, copy};

/// So many bytes behind the log that may each begin a batch, as far as one can be told by its
/// format, are looked at one by one, for seconds: a torn tail.
const TAIL_BYTES: usize = 128 << 20;

/// The files of a directory with their lengths and changes. Who is killed leaves its `.lock`.
fn files(dir: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != ".lock") {
            let file = path.metadata().unwrap();
            found.insert(path, (file.len(), file.modified().unwrap()));
        }
    }
    found
}

#[test]
fn a_stop_that_is_asked_for_while_a_start_reads_ends_it_and_changes_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        copy(&fixtures().join("4.4.0/lived/dynamic-killed"), root);
        let log = root.join("__cluster_metadata-0/00000000000000000000.log");
        let mut log = OpenOptions::new().append(true).open(log).unwrap();
        log.write_all(&vec![2; TAIL_BYTES]).unwrap();
        let config = config(root);
        let before = files(root);
        let mut child = Command::new(env!("CARGO_BIN_EXE_kraftd"))
            .arg("start")
            .arg(&config)
            .env_remove("RUST_LOG")
            .env_remove("KRAFTD_LOG_FORMAT")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut told = Vec::new();
        for line in stderr.lines().map(Result::unwrap) {
            if line.contains(&format!("opening {}", root.display())) {
                let pid = i32::try_from(child.id()).unwrap();
                kill_process(Pid::from_raw(pid).unwrap(), signal).expect("it runs");
            }
            told.push(line);
        }
        let ended = child.wait().unwrap();
        let told = told.join("\n");
        assert_eq!(ended.code(), Some(0), "{told}");
        assert!(told.contains("before the start was done"), "{told}");
        assert!(!told.contains("torn tail"), "{told}");
        assert_eq!(files(root), before);
    }
}
