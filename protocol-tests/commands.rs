//! How commands end, as processes: with an output that takes nothing, and beside files that are
//! not what their names say.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::fixture::fixtures;

/// Runs kraftd. It ends with 124 when it waits for what never comes.
fn run(words: &[&str], out: Stdio) -> Output {
    let mut command = Command::new("timeout");
    let child = command
        .args(["30", env!("CARGO_BIN_EXE_kraftd")])
        .args(words)
        .stdout(out)
        .stderr(Stdio::piped());
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

fn copy(to: &Path) -> PathBuf {
    let from = fixtures().join("4.4.0/lived/dynamic-stopped");
    let inner = to.join("__cluster_metadata-0");
    fs::create_dir_all(&inner).unwrap();
    for (from, to) in [
        (from.clone(), to),
        (from.join("__cluster_metadata-0"), &*inner),
    ] {
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    inner
}

fn told(words: &[&str]) -> (i32, String, String) {
    let ended = run(words, Stdio::piped());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = ended.status.code().expect("no signal");
    (code, text(&ended.stdout), text(&ended.stderr))
}

/// Makes something of a name that is no file.
type Make = fn(&Path);

const NO_FILES: [(&str, Make); 3] = [
    ("a pipe", |path| {
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).unwrap();
    }),
    ("a device", |path| {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap()
    }),
    ("a directory", |path| fs::create_dir(path).unwrap()),
];

#[test]
fn what_has_a_files_name_and_is_no_file_is_told_and_not_waited_for() {
    let names = [
        "meta.properties",
        ".lock",
        "__cluster_metadata-0/quorum-state",
        "__cluster_metadata-0/kraftd-commit",
        "__cluster_metadata-0/leader-epoch-checkpoint",
        "__cluster_metadata-0/partition.metadata",
        "__cluster_metadata-0/00000000000000000000.index",
        "__cluster_metadata-0/00000000000000000000.timeindex",
        "__cluster_metadata-0/00000000000000000000.log",
        "__cluster_metadata-0/00000000000000009999.log",
        "__cluster_metadata-0/00000000000000000100-0000000001.checkpoint",
    ];
    for (name, (kind, make)) in names.iter().flat_map(|name| NO_FILES.map(|it| (name, it))) {
        let root = tempfile::tempdir().unwrap();
        copy(root.path());
        let path = root.path().join(name);
        drop(fs::remove_file(&path));
        make(&path);
        let root = root.path().to_str().unwrap();
        let (code, out, err) = told(&["fsck", root]);
        assert_eq!(code, 2, "{name} {kind}: {out}{err}");
        assert!(
            out.contains(&format!("{name} is {kind}")),
            "{name} {kind}: {out}"
        );
        let is_metadata = name.ends_with(".log") || name.ends_with(".checkpoint");
        for command in ["state", "dump"] {
            let (code, out, err) = told(&[command, root]);
            assert_eq!(
                code,
                i32::from(is_metadata),
                "{command} {name} {kind}: {err}"
            );
            assert!(!out.is_empty(), "{command} {name} {kind}: {err}");
            assert_eq!(
                err.contains(&format!("{name} is {kind}")),
                is_metadata,
                "{name} {err}"
            );
        }
    }
}

/// A log that lost its `meta.properties` is somebody's: another format would relabel it.
#[test]
fn a_log_without_meta_properties_is_neither_formatted_nor_said_to_need_a_format() {
    let root = tempfile::tempdir().unwrap();
    let (config, [dir, _]) = config(root.path());
    let config = config.to_str().unwrap();
    copy(&dir);
    fs::remove_file(dir.join("meta.properties")).unwrap();
    let id = "MkU3OEVBNTcwNTJENDM2Qg";
    for words in [
        &["format", "-c", config, "-t", id, "--no-initial-controllers"][..],
        &[config],
    ] {
        let (code, _, err) = told(words);
        assert_eq!(code, 1, "{words:?}: {err}");
        assert!(err.contains("put the file back"), "{words:?}: {err}");
        assert!(!err.contains("random-uuid"), "{words:?}: {err}");
        assert!(!dir.join("meta.properties").exists(), "{words:?}");
    }
}

#[test]
fn nothing_is_not_shown_where_something_cannot_be_read() {
    let root = tempfile::tempdir().unwrap();
    let partition = copy(root.path());
    let good = fs::read(partition.join("00000000000000000261-0000000002.checkpoint")).unwrap();
    let files: [(&str, &[u8]); 6] = [
        ("00000000000000000000.log", b"just a text\nof two lines\n"),
        ("00000000000000000000.log", &[0xa5; 3000]),
        ("x.log", &[0; 100]),
        (
            "00000000000000000261-0000000002.checkpoint",
            &good[..good.len() - 1],
        ),
        ("00000000000000000261-0000000002.checkpoint", &good[..40]),
        ("00000000000000000261-0000000002.checkpoint", b""),
    ];
    for (name, bytes) in files {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        for words in [
            &["state", path][..],
            &["diff", path, path],
            &["diff", path, "--from", "0"],
        ] {
            let (code, out, err) = told(words);
            assert_eq!((code, out.as_str()), (1, ""), "{words:?}: {err}");
            assert!(err.contains(name), "{words:?}: {err}");
        }
    }
    // Without its segments, what a directory held is not all there.
    fs::remove_file(partition.join("00000000000000000000.log")).unwrap();
    let (code, out, err) = told(&["state", root.path().to_str().unwrap()]);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("no segment (*.log)") && !out.is_empty(),
        "{err}"
    );
}

#[test]
fn what_is_said_of_a_directory_is_not_said_of_the_file_that_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let (config, [one, _]) = config(dir.path());
    let id = "MkU3OEVBNTcwNTJENDM2Qg";
    let config = config.to_str().unwrap();
    assert_eq!(
        told(&["format", "-c", config, "-t", id, "--standalone"]).0,
        0
    );
    let name = "00000000000000000000-0000000000.checkpoint";
    let path = one.join("__cluster_metadata-0").join(name);
    let hint = "name that file to see it";
    let (code, _, err) = told(&["state", one.to_str().unwrap()]);
    assert_eq!((code, err.contains(hint)), (0, true), "{err}");
    let (code, out, err) = told(&["state", path.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("features"), "{out}");
    fs::remove_file(&path).unwrap();
    let empty = path.parent().unwrap().to_str().unwrap();
    let (code, out, err) = told(&["dump", empty]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("neither a segment"), "{err}");
}

#[test]
fn usage_that_is_nearly_right_is_answered_with_what_is_right() {
    let source = fixtures().join("4.4.0/lived/dynamic-stopped");
    let source = source.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 13] = [
        (&["state", source, "--at", "-5"], 2, "offsets begin at 0"),
        (&["diff", source, "--from", "-5"], 2, "offsets begin at 0"),
        (
            &["diff", source, "--from", "0", "--to", "-5"],
            2,
            "offsets begin at 0",
        ),
        (
            &["dump", source, "--offsets", "-5..5"],
            2,
            "A..B has 0 <= A <= B",
        ),
        (
            &["dump", source, "--type", "TOPC_RECORD"],
            2,
            "near it: TOPIC_RECORD",
        ),
        (&["dump", source, "--type", "zzz"], 2, "there are "),
        (&["stat", "x"], 2, "did you mean the command 'state'?"),
        (&["stat"], 1, "did you mean the command 'state'?"),
        (
            &["frobnicate", "f"],
            2,
            "'frobnicate' is neither a command nor a file",
        ),
        (
            &["frobnicate"],
            1,
            "'frobnicate' is neither a command nor a file",
        ),
        (&["diff", source], 2, "kraftd diff SOURCE --from"),
        (
            &["state", source, "--at", "9999"],
            1,
            "does not cover offset 9999: it covers offsets",
        ),
        (
            &["state", source, "--at", "1000000000001"],
            1,
            "the moment 2001-09-09T01:46:40.001Z",
        ),
    ];
    for (words, code, part) in cases {
        let (ended, out, err) = told(words);
        assert_eq!((ended, out.as_str()), (code, ""), "{words:?}: {err}");
        assert!(err.contains(part), "{words:?}: {err}");
    }
    let (code, _, err) = told(&["dump", source, "--topic", "nobody"]);
    assert_eq!(code, 0);
    assert!(err.contains("no record is one of those"), "{err}");
}

#[test]
fn names_from_outside_do_not_reach_a_terminal_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("a\u{1b}[31mred.log");
    fs::write(&odd, [0xa5; 100]).unwrap();
    for command in ["state", "dump", "fsck", "check-config"] {
        let (_, _, err) = told(&[command, odd.to_str().unwrap()]);
        assert!(!err.contains('\u{1b}'), "{command}: {err:?}");
    }
}

#[test]
fn another_topics_directory_is_not_shown_as_if_it_were_the_metadatas() {
    let root = tempfile::tempdir().unwrap();
    let partition = copy(root.path());
    let path = partition.join("partition.metadata");
    fs::write(path, "version: 0\ntopic_id: MkU3OEVBNTcwNTJENDM2Qg\n").unwrap();
    for command in ["state", "dump"] {
        let (code, _, err) = told(&[command, partition.to_str().unwrap()]);
        assert_eq!(code, 1, "{command}: {err}");
        assert!(
            err.contains("if the directory is another topic's, correct metadata.log.dir"),
            "{command}: {err}"
        );
    }
}

#[test]
fn states_of_two_clusters_are_compared_with_a_word_about_it() {
    let roots = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = roots.each_ref().map(|root| root.path().to_str().unwrap());
    for (root, id) in roots
        .iter()
        .zip(["MkU3OEVBNTcwNTJENDM2Qg", "NkU3OEVBNTcwNTJENDM2Qg"])
    {
        copy(root.path());
        let text = format!("version=1\ncluster.id={id}\nnode.id=1\n");
        fs::write(root.path().join("meta.properties"), text).unwrap();
    }
    let (code, _, err) = told(&["diff", paths[0], paths[1]]);
    assert_eq!((code, err.contains("two clusters")), (0, true), "{err}");
    let (_, _, err) = told(&["diff", paths[0], paths[0]]);
    assert!(!err.contains("two clusters"), "{err}");
}
