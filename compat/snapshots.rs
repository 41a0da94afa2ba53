//! Old snapshots and the log below them go, with kraftd and with Java's controller on one directory
//! in turn. Brokers that were away meanwhile, or that have nothing, catch up by a snapshot.
//!
//! Limits are so small that this takes seconds of idling. Java looks at retention once a minute.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::harness::{Broker, Controller, Driver, Kind, Setup, until};

const LIMITS: [&str; 6] = [
    "internal.metadata.log.segment.bytes=12288",
    "internal.metadata.delete.delay.millis=1000",
    "metadata.log.max.record.bytes.between.snapshots=6000",
    "metadata.max.retention.bytes=40000",
    "metadata.max.idle.interval.ms=40",
    "metadata.log.max.snapshot.interval.ms=0",
];
const DUMP: &str = "org.apache.kafka.tools.DumpLogSegments";
const BROKER: &str = "4.4.0";

#[test]
fn java_goes_on_with_a_log_that_kraftd_cleaned_and_back() {
    take_turns([Kind::under_test(), Kind::Java("4.4.0"), Kind::under_test()]);
}

#[test]
fn kraftd_goes_on_with_a_log_that_java_cleaned_and_back() {
    take_turns([Kind::Java("4.4.0"), Kind::under_test(), Kind::Java("4.4.0")]);
}

/// The cluster while it lives.
struct Cluster {
    setup: Setup,
    driver: Driver,
    broker: Option<Broker>,
    /// All topics as the broker told them last.
    topics: Vec<String>,
}

fn take_turns(kinds: [Kind; 3]) {
    let mut setup = Setup::new();
    for line in LIMITS {
        setup.add_controller_line(line);
    }
    setup.format(kinds[0], &[]);
    let mut cluster = Cluster {
        setup,
        driver: Driver::start(),
        broker: None,
        topics: Vec::new(),
    };
    let mut controller = cluster.setup.start_controller(kinds[0]);
    cluster.broker = Some(cluster.setup.start_broker(BROKER));
    for (turn, kind) in kinds.into_iter().enumerate() {
        if turn > 0 {
            hand_over(&mut controller, turn == 2);
            assert!(first_segment(&cluster.setup) > 0, "the log was cleaned");
            controller = cluster.setup.start_controller(kind);
            cluster.expect_topics();
            cluster.refill_broker();
        }
        let name = format!("turn-{turn}");
        let address = cluster.setup.broker_address();
        for (topic, count) in [(name.clone(), "3"), (format!("{name}-gone"), "1")] {
            let job = ["create", &address, &topic, count, "retention.ms=60000"];
            cluster.driver.job(&job);
        }
        let gone = format!("{name}-gone");
        cluster.driver.job(&["delete", &address, &gone]);
        cluster.wait_led(turn + 1);
        cluster.leave_broker_behind(&name);
        if kind == Kind::Kraftd {
            ask_for_snapshot(&cluster.setup, &mut controller);
        }
        cluster.dump_all();
    }
    controller.server.stop();
    let left = names(&cluster.setup.metadata_dir());
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}

fn hand_over(controller: &mut Controller, kill: bool) {
    if kill {
        controller.server.kill();
    } else {
        controller.server.stop();
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a metadata directory");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Where the oldest segment begins.
fn first_segment(setup: &Setup) -> u64 {
    let names = names(&setup.metadata_dir());
    let bases = names.iter().filter_map(|name| name.strip_suffix(".log"));
    let bases = bases.filter_map(|digits| digits.parse().ok());
    bases.min().expect("a log")
}

/// SIGUSR1: a snapshot of everything, now.
fn ask_for_snapshot(setup: &Setup, controller: &mut Controller) {
    let newest = |setup: &Setup| {
        let names = names(&setup.metadata_dir());
        let finished = names.into_iter().filter(|it| it.ends_with(".checkpoint"));
        finished.max()
    };
    let before = newest(setup);
    let pid = i32::try_from(controller.server.pid()).ok();
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("it runs");
    controller
        .server
        .until_says("SIGUSR1: a snapshot is asked for");
    controller.server.until_says(": it was asked for");
    until("a new snapshot", Duration::from_secs(20), || {
        newest(setup) > before
    });
}

impl Cluster {
    fn expect_topics(&mut self) {
        let address = self.setup.broker_address();
        let count = self.topics.len();
        self.wait_led(count);
        let topics = self.driver.job(&["topics", &address]);
        assert_eq!(topics, self.topics);
    }

    fn wait_led(&mut self, count: usize) {
        let address = self.setup.broker_address();
        let driver = &mut self.driver;
        // A topic that was deleted a moment ago may be listed and then not be there.
        until("all have leaders", Duration::from_secs(90), || {
            let led = driver.try_job(&["led", &address, &count.to_string()]);
            led.is_ok()
        });
    }

    fn stop_broker(&mut self) {
        self.broker.take().expect("it runs").shut_down();
    }

    /// Starts the broker, which must have caught up by a snapshot.
    fn start_broker_by_snapshot(&mut self) {
        let broker = self.setup.start_broker(BROKER);
        let loaded = broker.server.lines_with("Fully truncated the log at");
        assert!(!loaded.is_empty(), "it fetched a snapshot");
        self.broker = Some(broker);
    }

    /// The broker starts with no metadata at all.
    fn refill_broker(&mut self) {
        self.stop_broker();
        let metadata = self.setup.path("broker").join("__cluster_metadata-0");
        fs::remove_dir_all(metadata).expect("it had one");
        self.start_broker_by_snapshot();
        self.expect_topics();
    }

    /// The broker is away while a config changes and the log goes on, until what the broker needs
    /// next is gone.
    fn leave_broker_behind(&mut self, topic: &str) {
        self.stop_broker();
        let address = self.setup.controller_address();
        let left_at = self.log_end();
        let change = [
            "--bootstrap-controller",
            &address,
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            topic,
            "--add-config",
            "segment.bytes=2000000",
        ];
        let done = self
            .driver
            .tool("org.apache.kafka.tools.ConfigCommand", &change);
        assert_eq!(done.code, 0, "{done:?}");
        let setup = &self.setup;
        until("old segments are gone", Duration::from_secs(150), || {
            first_segment(setup) > left_at
        });
        self.start_broker_by_snapshot();
        let address = self.setup.broker_address();
        let mut topics = Vec::new();
        let driver = &mut self.driver;
        until("the broker has the change", Duration::from_secs(30), || {
            topics = driver.job(&["topics", &address]);
            let mut rows = topics.iter().filter(|row| row.starts_with(topic));
            rows.any(|row| row.contains("segment.bytes=2000000"))
        });
        self.topics = topics;
        self.expect_topics();
    }

    /// The log's end, asked from the quorum.
    fn log_end(&mut self) -> u64 {
        let address = self.setup.controller_address();
        let args = ["--bootstrap-controller", &address, "describe", "--status"];
        let output = self
            .driver
            .tool("org.apache.kafka.tools.MetadataQuorumCommand", &args);
        let line = output
            .out
            .iter()
            .find_map(|line| line.strip_prefix("HighWatermark:"));
        line.and_then(|n| n.trim().parse().ok())
            .unwrap_or_else(|| panic!("{output:?}"))
    }

    /// Java's tool reads every checkpoint and every segment but the one that is being written.
    fn dump_all(&mut self) {
        let dir = self.setup.metadata_dir();
        let mut names = names(&dir);
        names.retain(|name| name.ends_with(".checkpoint") || name.ends_with(".log"));
        let active = names.iter().rfind(|name| name.ends_with(".log")).cloned();
        names.retain(|name| Some(name) != active.as_ref());
        let mut checkpoints = 0;
        for name in names {
            let file = dir.join(&name);
            // What goes while this looks at it is looked at all the same, as a copy.
            let copy = self.setup.path(&name);
            if fs::copy(&file, &copy).is_err() {
                continue;
            }
            let path = copy.to_str().expect("UTF-8");
            let args = ["--cluster-metadata-decoder", "--files", path];
            let output = self.driver.tool(DUMP, &args);
            let text = output.out.join("\n");
            assert_eq!(output.code, 0, "{name}: {output:?}");
            assert!(text.contains("isvalid: true"), "{name}: {text}");
            for bad in ["isvalid: false", "Exception", "Error at", "bytes remain"] {
                assert!(!text.contains(bad), "{name}: {bad}\n{text}");
            }
            checkpoints += usize::from(name.ends_with(".checkpoint"));
            fs::remove_file(&copy).expect("just written");
        }
        assert!(checkpoints > 0, "no checkpoint was read");
    }
}
