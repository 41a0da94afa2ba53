//! Processes from outside: signals before a start is done, limits of the system.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;

use crate::fixture::fixtures;
use crate::process::{self, command};
use crate::unreadable::{config, copy};

/// So many bytes behind the log that may each begin a batch, as far as one can be told by its
/// format, are looked at one by one, for seconds: a torn tail.
const TAIL_BYTES: u64 = 128 << 20;

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

/// Stops a start that reads a torn tail. Returns what it told when it was done before the signal
/// came, which says nothing about the signal.
fn stop_a_start(signal: Signal, tail_bytes: u64) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    copy(&fixtures().join("4.4.0/lived/dynamic-killed"), root);
    let log = root.join("__cluster_metadata-0/00000000000000000000.log");
    let mut log = OpenOptions::new().append(true).open(log).unwrap();
    io::copy(&mut io::repeat(2).take(tail_bytes), &mut log).unwrap();
    let config = config(root);
    let before = files(root);
    let mut child = command(env!("CARGO_BIN_EXE_kraftd"))
        .arg("start")
        .arg(&config)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = Vec::new();
    for line in stderr.lines().map(Result::unwrap) {
        if line.contains(&format!("opening {}", root.display())) {
            process::signal(&child, signal);
        }
        told.push(line);
    }
    let ended = child.wait().unwrap();
    let told = told.join("\n");
    assert_eq!(ended.code(), Some(0), "{told}");
    if told.contains("torn tail") {
        return Err(told);
    }
    assert!(told.contains("before the start was done"), "{told}");
    assert_eq!(files(root), before);
    Ok(())
}

/// On a busy machine the signal may come late. Then the tail is longer the next time: a start that
/// hears no signal while it reads is done before every one.
#[test]
fn a_stop_that_is_asked_for_while_a_start_reads_ends_it_and_changes_nothing() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let tails = [TAIL_BYTES, 2 * TAIL_BYTES, 4 * TAIL_BYTES];
        let late: Vec<_> = tails
            .into_iter()
            .map_while(|bytes| stop_a_start(signal, bytes).err())
            .collect();
        assert!(late.len() < tails.len(), "{late:?}");
    }
}

/// Peers above the limit wait in the backlog, and see nothing else than a timeout.
#[test]
fn connections_that_find_no_open_file_are_told_of_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    copy(&fixtures().join("4.4.0/lived/dynamic-killed"), root);
    let config = config(root);
    let mut child = command("sh")
        .args(["-c", "ulimit -n 64 && exec timeout 60 \"$0\" start \"$1\""])
        .arg(env!("CARGO_BIN_EXE_kraftd"))
        .arg(&config)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let address = process::address(&config);
    let mut open = Vec::new();
    let mut told = Vec::new();
    for line in stderr.lines().map(Result::unwrap) {
        if line.contains("kraftd started") {
            open.extend((0..40).map(|_| TcpStream::connect(&address).unwrap()));
        }
        let is_full = line.contains("takes no more connections");
        told.push(line);
        if is_full {
            open.clear();
            process::signal(&child, Signal::TERM);
        }
    }
    child.wait().unwrap();
    let words = "32 places for connections are taken, as many as the limit of 64 open files \
                 leaves room for: raise";
    let told = told.join("\n");
    assert!(told.contains(words), "{told}");
}
