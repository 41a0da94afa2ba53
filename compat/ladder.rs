//! From the lowest metadata.version that 4.4 can run to its newest, one level at a time, with a
//! Java broker up: first one of 3.9.2, which goes as far as it knows levels and then is in the way,
//! then one of 4.4.0 on the same directory.
//!
//! At each level the directory is Java's too: its loader has the image that kraftd shows, and, at
//! some levels or at all with `LADDER=full` (`make ladder`), a Java controller started on a copy
//! takes over and goes on.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Broker, Driver, Kind, Release, Setup, until};
use crate::levels::{LEVELS, name};
use crate::state::assert_javas_image;

const FEATURES: &str = "org.apache.kafka.tools.FeatureCommand";
const CLUSTER: &str = "org.apache.kafka.tools.ClusterTool";
const METADATA_VERSION: &str = "metadata.version";

/// The newest level that release 3.9 knows, 3.9-IV0.
const OLD_BROKER_MAX: u16 = 21;
/// Where a Java controller takes over by default: the lowest level, the first with transactions,
/// with directories and with eligible leader replicas, the newest.
const TAKEN_OVER: [u16; 5] = [7, 13, 17, 23, 33];

fn is_taken_over(level: u16) -> bool {
    match std::env::var("LADDER").as_deref() {
        Ok("full") => true,
        Ok(other) => panic!("LADDER={other}: only `full` is known"),
        Err(_) => TAKEN_OVER.contains(&level),
    }
}

#[test]
fn a_cluster_climbs_from_3_3_iv3_to_4_4_iv2_level_by_level_and_java_can_take_over_everywhere() {
    let kind = Kind::under_test();
    let setup = Setup::static_quorum();
    setup.format_static(kind, &["-r", name(*LEVELS.start())]);
    let mut controller = setup.start_controller(kind);
    let mut ladder = Ladder {
        broker: Some(setup.start_broker("3.9.2")),
        setup,
        driver: Driver::start(),
    };
    ladder.stay(*LEVELS.start());
    for level in LEVELS.skip(1) {
        if level == OLD_BROKER_MAX + 1 {
            ladder.replace_the_broker_that_is_in_the_way(level);
        }
        ladder.climb(level);
        ladder.stay(level);
    }
    ladder.enable_the_other_features();
    let address = ladder.setup.broker_address();
    let driver = &mut ladder.driver;
    driver.job(&["produce", &address, "level-7", "1000", "idempotent"]);
    driver.job(&["consume", &address, "level-7", "1000"]);
    assert!(controller.server.is_running());
}

struct Ladder {
    setup: Setup,
    broker: Option<Broker>,
    driver: Driver,
}

impl Ladder {
    /// Up to `level`, by the tool through the broker or straight at the controller.
    #[track_caller]
    fn climb(&mut self, level: u16) {
        if level.is_multiple_of(2) {
            let feature = format!("{METADATA_VERSION}={level}");
            let told = self.upgrade(&feature);
            assert_eq!(told.code, 0, "{told:?}");
        } else {
            let answer = self.raise_directly(level);
            assert_eq!(answer["errorCode"], 0, "{answer}");
        }
    }

    fn upgrade(&mut self, feature: &str) -> crate::harness::ToolOutput {
        let address = self.setup.broker_address();
        let args = [
            "--bootstrap-server",
            &address,
            "upgrade",
            "--feature",
            feature,
        ];
        self.driver.tool(FEATURES, &args)
    }

    fn raise_directly(&mut self, level: u16) -> Value {
        let update = json!({
            "timeoutMs": 10_000,
            "featureUpdates": [
                {"feature": METADATA_VERSION, "maxVersionLevel": level, "upgradeType": 1}
            ],
            "validateOnly": false,
        });
        ask(
            &mut self.driver,
            self.setup.controller_port,
            "UpdateFeatures",
            2,
            &update,
        )
    }

    /// The cluster works at `level`, and Java can go on from here.
    #[track_caller]
    fn stay(&mut self, level: u16) {
        let address = self.setup.broker_address();
        let topic = format!("level-{level}");
        self.driver
            .job(&["create", &address, &topic, "2", "retention.ms=60000"]);
        let count = level - LEVELS.start() + 1;
        self.driver.job(&["led", &address, &count.to_string()]);
        let copy = Setup::static_quorum();
        copy_all(&self.setup.controller_dir(), &copy.controller_dir());
        assert_javas_image(&mut self.driver, &copy.controller_dir());
        if is_taken_over(level) {
            self.take_over(&copy, level);
        }
    }

    /// A Java controller starts on a copy of the directory and leads. Broker 2 of the copy is in
    /// its records alone, and has a session until it is missed.
    #[track_caller]
    fn take_over(&mut self, copy: &Setup, level: u16) {
        let _controller = copy.start_controller(Kind::Java("4.4.0"));
        let topic = json!({
            "topics": [{
                "name": "taken-over", "numPartitions": -1, "replicationFactor": -1,
                "assignments": [{"partitionIndex": 0, "brokerIds": [2]}], "configs": [],
            }],
            "timeoutMs": 10_000, "validateOnly": false,
        });
        let mut answer = Value::Null;
        let what = format!("Java's controller goes on at level {level}");
        until(&what, Duration::from_secs(60), || {
            answer = ask(
                &mut self.driver,
                copy.controller_port,
                "CreateTopics",
                7,
                &topic,
            );
            answer["topics"][0]["errorCode"] == 0
        });
        let request = json!({"clientSoftwareName": "t", "clientSoftwareVersion": "1"});
        let versions = ask(
            &mut self.driver,
            copy.controller_port,
            "ApiVersions",
            4,
            &request,
        );
        let finalized = versions["finalizedFeatures"].as_array().expect("a list");
        let found = finalized.iter().find(|it| it["name"] == METADATA_VERSION);
        assert_eq!(found.expect("a level")["maxVersionLevel"], level);
    }

    /// A broker that does not know a level is named, also when it is gone and only its registration
    /// is left, until it has come back with a newer release.
    #[track_caller]
    fn replace_the_broker_that_is_in_the_way(&mut self, level: u16) {
        let sentence = format!("Broker 2 only supports versions 1-{OLD_BROKER_MAX}");
        let refused = |answer: &Value| {
            let text = answer["errorMessage"].as_str().unwrap_or_default();
            assert_eq!(answer["errorCode"], 95, "{answer}");
            assert!(text.ends_with(&sentence), "{text}");
        };
        refused(&self.raise_directly(level));
        let broker = self.broker.take().expect("a broker runs");
        broker.shut_down();
        refused(&self.raise_directly(level));
        self.broker = Some(self.start_broker_again("4.4.0"));
    }

    fn start_broker_again(&self, release: Release) -> Broker {
        self.setup.start_broker(release)
    }

    /// One after the other, in the order of what they need.
    #[track_caller]
    fn enable_the_other_features(&mut self) {
        for feature in [
            "group.version=1",
            "transaction.version=2",
            "share.version=2",
            "streams.version=1",
            "eligible.leader.replicas.version=1",
        ] {
            let told = self.upgrade(feature);
            assert_eq!(told.code, 0, "{told:?}");
        }
        // What never was there cannot be unregistered, and what runs comes back by itself.
        let address = self.setup.broker_address();
        let args = ["unregister", "--bootstrap-server", &address, "--id", "99"];
        let told = self.driver.tool(CLUSTER, &args);
        assert_eq!(told.code, 1, "{told:?}");
        let copy = Setup::static_quorum();
        copy_all(&self.setup.controller_dir(), &copy.controller_dir());
        assert_javas_image(&mut self.driver, &copy.controller_dir());
    }
}

/// Sends one request and gives the answer.
#[track_caller]
fn ask(driver: &mut Driver, port: u16, api: &str, version: u16, body: &Value) -> Value {
    let (port, version, body) = (port.to_string(), version.to_string(), body.to_string());
    let lines = driver.job(&["ask", "localhost", &port, api, &version, &body]);
    serde_json::from_str(&lines.concat()).expect("an answer in JSON")
}

/// Copies a directory that a controller goes on writing to: the copy may end in the middle of a
/// batch, as after a crash. Segments come last, so that nothing else is ahead of the log.
fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a writable directory");
    let entries = fs::read_dir(from).expect("a readable directory");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort_by_key(|path| path.extension().is_some_and(|it| it == "log"));
    for path in paths {
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            // A snapshot that is being written gets another name meanwhile.
            let copied = fs::copy(&path, &target);
            assert!(copied.is_ok() || !path.exists(), "{}", path.display());
        }
    }
}
