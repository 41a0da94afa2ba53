//! Processes from outside, seen by who reads their stderr, or does not.

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::Signal;

use crate::fixture::fixtures;
use crate::process::{address, command, signal};
use crate::unreadable::{config, copy};

const PIPE_BYTES: usize = 4096;

/// An answer that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// ApiVersions v0 with correlation id 7 and no client id, behind its length.
const API_VERSIONS: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];

fn small_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    assert_eq!(fcntl_setpipe_size(&writer, PIPE_BYTES), Ok(PIPE_BYTES));
    (reader, writer)
}

/// `timeout` ends one that hangs, without an exit code, and passes signals on.
fn start(config: &Path, stderr: Stdio) -> Child {
    command("timeout")
        .args(["-s", "KILL", "120", env!("CARGO_BIN_EXE_kraftd"), "start"])
        .arg(config)
        .args(["--log-level", "trace"])
        .stderr(stderr)
        .spawn()
        .unwrap()
}

#[test]
fn a_controller_whose_stderr_nobody_reads_answers_and_stops() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join("4.4.0/lived/dynamic-killed"), dir.path());
    let config = config(dir.path());
    let (reader, mut writer) = small_pipe();
    let mut child = start(&config, writer.try_clone().unwrap().into());
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    while !line.contains("kraftd started") {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "it ended");
    }
    // Nobody reads any more. This writer takes what room is left, whatever the log leaves.
    let filler = std::thread::spawn(move || writer.write_all(&[b'x'; 2 * PIPE_BYTES]));
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address(&config)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&API_VERSIONS).unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[4..], [0, 0, 0, 7, 0, 0], "its id, and no error");
    }
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!filler.is_finished(), "stderr had room for all");
    drop(reader);
    assert!(filler.join().unwrap().is_err(), "the reader is gone");
}

#[test]
fn a_refusal_is_the_last_line_and_ends_the_process_even_where_nobody_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let (mut reader, writer) = small_pipe();
    let mut child = start(&config, writer.into());
    let mut told = String::new();
    reader.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let (last, log) = lines.split_last().unwrap();
    assert!(last.starts_with("kraftd: "), "{told}");
    assert!(!log.is_empty(), "{told}");
    assert!(log.iter().all(|line| line.starts_with('[')), "{told}");

    let (reader, mut writer) = small_pipe();
    writer.write_all(&[b'x'; PIPE_BYTES]).unwrap();
    let mut child = start(&config, writer.into());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(reader);
}

/// `nohup` has a process ignore SIGHUP, and what ignores a signal has no handler of it.
#[test]
fn a_hangup_that_is_ignored_from_the_start_stays_ignored() {
    for (trap, is_ignored) in [("trap '' HUP", true), ("trap - HUP", false)] {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixtures().join("4.4.0/lived/dynamic-killed"), dir.path());
        let mut child = command("sh")
            .args(["-c", &format!("{trap}; exec \"$0\" start \"$1\"")])
            .arg(env!("CARGO_BIN_EXE_kraftd"))
            .arg(config(dir.path()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ignored = None;
        let stderr = BufReader::new(child.stderr.take().unwrap());
        for line in stderr.lines().map(Result::unwrap) {
            if line.contains("kraftd started") {
                let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
                let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
                let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
                ignored = Some(mask & 1 == 1);
                let stop = if is_ignored {
                    Signal::TERM
                } else {
                    Signal::HUP
                };
                signal(&child, stop);
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(ignored, Some(is_ignored), "{trap}");
    }
}
