//! Java's tools read what the controller under test wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{Driver, Kind, Setup, run_java, until};
use crate::normal::{Normal, difference};

const DUMP: &str = "org.apache.kafka.tools.DumpLogSegments";
const SHELL: &str = "org.apache.kafka.shell.MetadataShell";

/// A checkpoint each second, so that there is one of every state.
const CHECKPOINTS: &str = "metadata.log.max.snapshot.interval.ms=1000";

/// Files of the metadata directory with this ending, sorted by name.
fn files(setup: &Setup, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(setup.metadata_dir()).expect("a metadata directory");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

/// The offset behind the last record of a checkpoint, from its name.
fn end_offset(checkpoint: &Path) -> u64 {
    let name = checkpoint
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    name.split('-')
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// Changes of every kind that the path has, the same on every cluster.
fn administer(setup: &Setup, driver: &mut Driver) {
    let address = setup.broker_address();
    for i in 1..=6 {
        let (name, partitions) = (format!("topic-{i}"), i.to_string());
        driver.job(&["create", &address, &name, &partitions, "retention.ms=60000"]);
    }
    driver.job(&["grow", &address, "topic-1", "4"]);
    driver.job(&[
        "alter",
        &address,
        "TOPIC",
        "topic-2",
        "cleanup.policy=compact",
    ]);
    driver.job(&["alter", &address, "TOPIC", "topic-3", "retention.ms"]);
    driver.job(&["alter", &address, "BROKER", "", "log.cleaner.threads=1"]);
    driver.job(&["alter", &address, "BROKER", "2", "log.cleaner.threads=2"]);
    driver.job(&["delete", &address, "topic-6"]);
    driver.job(&["produce", &address, "topic-4", "10", "idempotent"]);
}

/// The log's end, asked from the quorum.
fn log_end(setup: &Setup, driver: &mut Driver) -> u64 {
    let args = [
        "--bootstrap-controller",
        &setup.controller_address(),
        "describe",
        "--status",
    ];
    let output = driver.tool("org.apache.kafka.tools.MetadataQuorumCommand", &args);
    let line = output
        .out
        .iter()
        .find_map(|line| line.strip_prefix("HighWatermark:"));
    line.and_then(|n| n.trim().parse().ok())
        .unwrap_or_else(|| panic!("{output:?}"))
}

/// A checkpoint that has everything up to the offset.
#[track_caller]
fn checkpoint_behind(setup: &Setup, offset: u64) -> PathBuf {
    until(
        "a checkpoint of everything",
        Duration::from_secs(60),
        || {
            files(setup, ".checkpoint")
                .last()
                .is_some_and(|last| end_offset(last) >= offset)
        },
    );
    files(setup, ".checkpoint").pop().expect("there was one")
}

#[test]
fn dump_log_reads_every_segment_checkpoint_and_index() {
    let kind = Kind::under_test();
    let mut setup = Setup::new();
    setup.add_controller_line(CHECKPOINTS);
    setup.format(kind, &[]);
    let mut controller = setup.start_controller(kind);
    let broker = setup.start_broker("4.4.0");
    let mut driver = Driver::start();
    administer(&setup, &mut driver);
    let end = log_end(&setup, &mut driver);
    checkpoint_behind(&setup, end);
    broker.shut_down();
    controller.server.stop();

    let mut topics = 0;
    for path in files(&setup, ".log")
        .into_iter()
        .chain(files(&setup, ".checkpoint"))
    {
        let file = path.to_str().expect("UTF-8");
        let output = driver.tool(DUMP, &["--cluster-metadata-decoder", "--files", file]);
        let text = output.out.join("\n");
        assert_eq!(output.code, 0, "{file}: {output:?}");
        assert!(output.err.is_empty(), "{file}: {:?}", output.err);
        assert!(text.contains("isvalid: true"), "{file}: no batch:\n{text}");
        for bad in [
            "isvalid: false",
            "Exception",
            "Error at",
            "Could not",
            "unknown",
            "bytes remain",
        ] {
            assert!(!text.contains(bad), "{file}: {bad}\n{text}");
        }
        topics += text.matches(r#""type":"TOPIC_RECORD""#).count();
    }
    assert!(
        topics >= 6,
        "the log tells of {topics} topics, the test created six"
    );
    // A Java controller leaves zeros behind the entries of its time index, and its tool refuses it.
    let endings: &[&str] = if kind == Kind::Kraftd {
        &["index"]
    } else {
        &[".index"]
    };
    for path in endings.iter().flat_map(|ending| files(&setup, ending)) {
        let file = path.to_str().expect("UTF-8");
        let output = driver.tool(DUMP, &["--index-sanity-check", "--files", file]);
        let text = output.out.join("\n");
        assert_eq!(output.code, 0, "{file}: {output:?}");
        assert!(
            !text.contains("Mismatches") && !text.contains("Exception"),
            "{file}: {text}"
        );
    }
}

#[test]
fn the_metadata_shell_shows_of_a_formatted_directory_what_it_shows_of_javas() {
    let shown = |kind| {
        let setup = Setup::new();
        setup.format(kind, &["--release-version", "4.3-IV0"]);
        let checkpoint = files(&setup, ".checkpoint")
            .pop()
            .expect("formatting writes one");
        tree(&setup, &checkpoint)
    };
    let (java, kraftd) = (shown(Kind::Java("4.4.0")), shown(Kind::under_test()));
    assert!(
        java.iter().any(|line| line.contains("4.3-IV0")),
        "{java:#?}"
    );
    let difference = difference(&java, &kraftd);
    assert!(
        difference.is_empty(),
        "- formatted by Java, + by kraftd\n{difference}"
    );
}

#[test]
fn the_metadata_shell_shows_of_a_lived_in_directory_what_it_shows_of_javas() {
    let java = lived(Kind::Java("4.4.0"));
    let kraftd = lived(Kind::under_test());
    assert!(
        java.iter().any(|line| line.contains("topic-5")),
        "{java:#?}"
    );
    let difference = difference(&java, &kraftd);
    assert!(
        difference.is_empty(),
        "- after Java's controller, + kraftd\n{difference}"
    );
}

/// The whole tree after a controller of this kind did all the work.
fn lived(kind: Kind) -> Vec<String> {
    let mut setup = Setup::new();
    setup.add_controller_line(CHECKPOINTS);
    setup.format(kind, &["--release-version", "4.3-IV0"]);
    let controller = setup.start_controller(kind);
    let broker = setup.start_broker("4.4.0");
    let mut driver = Driver::start();
    administer(&setup, &mut driver);
    driver.job(&["led", &setup.broker_address(), "5"]);
    let end = log_end(&setup, &mut driver);
    let checkpoint = checkpoint_behind(&setup, end);
    // On a busy machine the shell runs its command before it has loaded the file.
    drop((driver, broker, controller));
    tree(&setup, &checkpoint)
}

/// The tree that the shell shows of a checkpoint, in normal form. The shell of 4.3.1 is the newest
/// one published and knows no level above 4.3-IV0.
fn tree(setup: &Setup, checkpoint: &Path) -> Vec<String> {
    // The shell locks the directory around the file: it gets a copy.
    let shown = setup.path("shown/__cluster_metadata-0");
    fs::create_dir_all(&shown).expect("a writable directory");
    let shown = shown.join(checkpoint.file_name().expect("a name"));
    fs::copy(checkpoint, &shown).expect("a writable directory");
    let file = shown.to_str().expect("UTF-8");
    // It may still be too fast for itself, and then shows an empty image.
    let mut told = String::new();
    until("the shell shows the file", Duration::from_secs(60), || {
        let ended = run_java("shell-4.3.1", SHELL, &["--snapshot", file, "tree", "/"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        told = ended.out;
        !told.lines().any(|line| line.trim() == "Optional.empty")
    });
    let normal = Normal::new(setup)
        .with(
            r"offset -?\d+, epoch -?\d+, time .*",
            "offset <n>, epoch <n>, time <time>",
        )
        .with(r"(BrokerRegistration\(id=\d+, epoch)=\d+", "$1=<n>");
    without_ids(told.lines().map(|line| normal.line(line)).collect())
}

/// Topics by id come in the order of random ids: the same topics are below `byName`.
fn without_ids(lines: Vec<String>) -> Vec<String> {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        inside = if depth == 4 {
            line.trim() == "byId:"
        } else {
            inside && depth > 4
        };
        if !inside {
            kept.push(line);
        }
    }
    kept
}
