//! A start that cannot work ends with exit code 1 and one sentence, and writes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{CLUSTER_ID, Ended, Kind, Setup, run};

fn kraftd_starts(setup: &Setup) -> Ended {
    run(Command::new(env!("CARGO_BIN_EXE_kraftd")).arg(setup.controller_config()))
}

/// Every file below the controller's directory with its bytes. `.lock` is empty and may appear.
fn tree(setup: &Setup) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![setup.controller_dir()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != ".lock") {
                files.insert(path.clone(), fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

/// The start is refused: exit 1, one sentence with all the words, nothing written.
#[track_caller]
fn assert_refused(setup: &Setup, words: &[&str]) {
    let before = tree(setup);
    let ended = kraftd_starts(setup);
    assert_sentence(&ended, words);
    assert!(
        tree(setup) == before,
        "the refused start wrote below its directory"
    );
}

#[track_caller]
fn assert_sentence(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    // Log lines start with their time; the sentence is what is not a log line.
    let told: Vec<&str> = ended
        .err
        .lines()
        .filter(|line| !line.starts_with('['))
        .collect();
    assert_eq!(told.len(), 1, "one sentence: {ended:?}");
    for word in words {
        assert!(
            told[0].contains(word),
            "{word:?} is missing in: {}",
            told[0]
        );
    }
}

fn formatted() -> Setup {
    let setup = Setup::new();
    setup.format(Kind::Kraftd, &[]);
    setup
}

/// A directory with a life behind it: a log, checkpoints and a quorum state.
fn lived(name: &str) -> Setup {
    let setup = Setup::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/4.4.0/lived")
        .join(name);
    copy(&from, &setup.controller_dir());
    setup
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a writable directory");
    for entry in fs::read_dir(from).expect("a fixture") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a writable directory");
        }
    }
}

#[test]
fn an_unformatted_directory_is_refused_with_the_command_that_formats() {
    let setup = Setup::new();
    assert_refused(&setup, &["meta.properties", "kraftd format"]);
    assert!(
        !setup.controller_dir().exists(),
        "the refused start made the directory"
    );
}

/// A volume that is not mounted, a directory that was deleted, one that was emptied.
#[test]
fn a_formatted_directory_without_its_metadata_is_refused() {
    for setup in [formatted(), lived("dynamic-stopped")] {
        let partition = setup.controller_dir().join("__cluster_metadata-0");
        fs::remove_dir_all(&partition).expect("writable");
        assert_refused(&setup, &["__cluster_metadata-0 is missing", "Mount it"]);
        assert!(!partition.exists(), "the refused start made the directory");
        fs::create_dir(&partition).expect("writable");
        assert_refused(&setup, &["no log segment", "no checkpoint", "Mount it"]);
    }
}

#[test]
fn a_directory_of_another_node_is_refused() {
    let setup = formatted();
    let meta = setup.controller_dir().join("meta.properties");
    let text = fs::read_to_string(&meta).expect("formatted");
    fs::write(&meta, text.replace("node.id=1", "node.id=7")).expect("writable");
    assert_refused(&setup, &["meta.properties", "7", "1"]);
}

#[test]
fn a_meta_properties_that_is_no_such_file_is_refused() {
    let setup = formatted();
    let meta = setup.controller_dir().join("meta.properties");
    fs::write(&meta, "hello\n").expect("writable");
    assert_refused(&setup, &["meta.properties"]);
    fs::write(
        &meta,
        format!("version=9\nnode.id=1\ncluster.id={CLUSTER_ID}\n"),
    )
    .expect("writable");
    assert_refused(&setup, &["meta.properties", "9"]);
}

#[test]
fn a_directory_that_a_java_controller_uses_is_refused_and_the_other_way_round() {
    let setup = formatted();
    let mut java = setup.spawn_controller(Kind::Java("4.4.0"));
    java.until_says("Kafka Server started");
    let ended = kraftd_starts(&setup);
    assert_sentence(&ended, &[".lock"]);
    java.stop();

    let mut kraftd = setup.start_controller(Kind::Kraftd);
    let mut java = setup.spawn_controller(Kind::Java("4.4.0"));
    let status = java.until_ends();
    assert_ne!(status.code(), Some(0));
    assert!(
        !java.lines_with("lock").is_empty(),
        "Java says that the directory is locked"
    );
    assert!(kraftd.server.is_running());
    let second = kraftd_starts(&setup);
    assert_sentence(&second, &[".lock"]);
    assert!(kraftd.server.is_running());
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let setup = formatted();
    // Root may write everywhere: the start is made by another user, from a copy it can reach.
    let binary = setup.path("kraftd");
    fs::copy(env!("CARGO_BIN_EXE_kraftd"), &binary).expect("writable");
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    };
    open(binary.parent().expect("below a directory"), 0o755);
    open(&setup.metadata_dir(), 0o555);
    open(&setup.controller_dir(), 0o555);
    let before = tree(&setup);
    let mut command = Command::new(&binary);
    command.arg(setup.controller_config());
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let ended = run(&mut command);
    assert_sentence(&ended, &[setup.controller_dir().to_str().expect("UTF-8")]);
    assert!(
        tree(&setup) == before,
        "the refused start wrote below its directory"
    );
    open(&setup.metadata_dir(), 0o755);
    open(&setup.controller_dir(), 0o755);
}

#[test]
fn a_log_with_a_flipped_byte_in_its_middle_is_refused() {
    let setup = lived("static-stopped");
    let log = setup.metadata_dir().join("00000000000000000000.log");
    let mut bytes = fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).expect("writable");
    assert_refused(&setup, &["00000000000000000000.log"]);
}

#[test]
fn a_quorum_state_that_is_no_such_file_is_refused() {
    let setup = lived("dynamic-stopped");
    fs::write(setup.metadata_dir().join("quorum-state"), "{\"leaderId\":").expect("writable");
    assert_refused(&setup, &["quorum-state"]);
}

#[test]
fn a_torn_tail_is_cut_and_the_start_goes_on() {
    let setup = lived("dynamic-killed");
    let log = setup.metadata_dir().join("00000000000000000000.log");
    let mut bytes = fs::read(&log).expect("a log");
    bytes.truncate(bytes.len() - 3);
    fs::write(&log, bytes).expect("writable");
    let mut controller = setup.start_controller(Kind::Kraftd);
    assert!(controller.server.is_running());
}
