//! `kraftd fsck` as a process: its exit codes, and how little memory lies make it take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIXTURE: &str = "fixtures/4.4.0/lived/dynamic-killed";
/// The second batch of the log.
const BATCH: std::ops::Range<usize> = 174..504;
const HEADER: usize = 61;

/// A process may take so many KiB of address space, program and libraries included.
const MEMORY_KIB: u32 = 256 << 10;

fn copy(from: &Path, to: &Path) {
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

fn directory() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE),
        dir.path(),
    );
    let log = dir
        .path()
        .join("__cluster_metadata-0/00000000000000000000.log");
    (dir, log)
}

/// Exit code and stdout of `kraftd fsck ARGUMENTS`, with little memory.
fn fsck(arguments: &[&str]) -> (Option<i32>, String) {
    let limited = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" fsck \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, env!("CARGO_BIN_EXE_kraftd")])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty() || !output.stderr.is_empty());
    (output.status.code(), text)
}

#[test]
fn the_exit_code_says_what_was_found() {
    let (dir, log) = directory();
    let path = dir.path().to_str().unwrap();
    let (code, text) = fsck(&[path]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        dir.path().join(".lock").exists(),
        "the killed process's lock file stays"
    );
    let mut bytes = fs::read(&log).unwrap();
    bytes.truncate(bytes.len() - 1);
    fs::write(&log, bytes).unwrap();
    let (code, text) = fsck(&[path, "--json"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("\"verdict\":\"torn\""), "{text}");
    let absent = dir.path().join("absent");
    assert_eq!(fsck(&[absent.to_str().unwrap()]).0, Some(1));
    assert_eq!(fsck(&["--what"]).0, Some(2));
}

/// The batch with a checksum that fits.
fn sign(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn numbers_that_lie_take_no_memory() {
    let (dir, log) = directory();
    let good = fs::read(&log).unwrap();
    let mut lies: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [i32::MAX, 64 << 20, (64 << 20) - 12, 1 << 20, -1] {
        let mut bytes = good.clone();
        bytes[BATCH][8..12].copy_from_slice(&length.to_be_bytes());
        lies.push((format!("a batch of {length} bytes"), bytes));
    }
    for count in [i32::MAX, 1 << 30, 1 << 20] {
        let mut bytes = good.clone();
        let batch = &mut bytes[BATCH];
        batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        batch[57..61].copy_from_slice(&count.to_be_bytes());
        sign(batch);
        lies.push((format!("a batch of {count} records"), bytes));
    }
    // Every length and count of the records is somewhere in here.
    for at in (HEADER..BATCH.len() - 5).step_by(3) {
        let mut bytes = good.clone();
        let batch = &mut bytes[BATCH];
        batch[at..at + 5].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x07]);
        sign(batch);
        lies.push((format!("2^31 - 1 at byte {at}"), bytes));
    }
    let path = dir.path().to_str().unwrap();
    let mut found = 0;
    for (lie, bytes) in lies {
        fs::write(&log, bytes).unwrap();
        let (code, text) = fsck(&[path]);
        // What was written over may have been text.
        assert!(matches!(code, Some(0 | 2)), "{lie}: {code:?}\n{text}");
        found += usize::from(code == Some(2));
    }
    assert!(found > 80, "only {found} were found");
}
