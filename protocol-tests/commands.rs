//! How commands end, as processes: with an output that takes nothing, and beside files that are
//! not what their names say.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::fixture::fixtures;

fn run(words: &[&str], out: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kraftd"));
    let child = command.args(words).stdout(out).stderr(Stdio::piped());
    child.spawn().unwrap().wait_with_output().unwrap()
}

/// A stdout whose reader went away.
fn closed() -> Stdio {
    std::io::pipe().unwrap().1.into()
}

fn full() -> Stdio {
    let device = OpenOptions::new().write(true).open("/dev/full");
    device.map_or_else(|_| closed(), Stdio::from)
}

/// A configuration with two directories, none of which is formatted.
fn config(root: &Path) -> (PathBuf, [PathBuf; 2]) {
    let dirs = ["one", "two"].map(|name| root.join(name));
    let text = format!(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         listeners=CONTROLLER://localhost:9093\n\
         controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={},{}\n",
        dirs[0].display(),
        dirs[1].display()
    );
    let path = root.join("server.properties");
    fs::write(&path, text).unwrap();
    (path, dirs)
}

#[test]
fn no_command_panics_or_stops_half_way_when_its_output_takes_nothing() {
    let source = fixtures().join("4.4.0/lived/dynamic-stopped");
    let source = source.to_str().unwrap();
    for (is_full, out) in [(true, full as fn() -> Stdio), (false, closed)] {
        let root = tempfile::tempdir().unwrap();
        let (config, dirs) = config(root.path());
        let config = config.to_str().unwrap();
        let id = "MkU3OEVBNTcwNTJENDM2Qg";
        let commands: [&[&str]; 13] = [
            &["format", "-c", config, "-t", id, "--standalone"],
            &["format", "-c", config, "-t", id, "--standalone", "-g"],
            &["info", "-c", config],
            &["random-uuid"],
            &["version-mapping"],
            &["feature-dependencies", "-f", "group.version=1"],
            &["check-config", config],
            &["check-config", config, "--json"],
            &["dump", source],
            &["state", source],
            &["diff", source, source, "--json"],
            &["fsck", source],
            &["help", "json"],
        ];
        for words in commands {
            let ended = run(words, out());
            let told = String::from_utf8_lossy(&ended.stderr);
            let code = ended.status.code();
            assert_eq!(code, Some(i32::from(is_full)), "{words:?}: {told}");
            assert!(!told.contains("panicked"), "{words:?}: {told}");
            assert_eq!(
                told.contains("cannot be printed"),
                is_full,
                "{words:?}: {told}"
            );
        }
        for dir in dirs {
            assert!(dir.join("meta.properties").is_file(), "{}", dir.display());
        }
    }
}
