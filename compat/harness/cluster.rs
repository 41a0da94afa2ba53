//! One controller (node 1) and one broker (node 2) in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::java::{Java, run_java};
use super::process::{Ended, Server, run};
use super::wait::{free_port, until_connects};

/// The cluster id of every scenario.
pub(crate) const CLUSTER_ID: &str = "MkU3OEVBNTcwNTJENDM2Qg";

/// A release of Kafka, by the name of its jars' folder.
pub(crate) type Release = &'static str;

/// What plays the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kraftd,
    Java(Release),
}

impl Kind {
    /// kraftd, or Java's controller when `COMPAT_CONTROLLER=java` asks to prove the scenarios
    /// themselves.
    pub(crate) fn under_test() -> Self {
        match std::env::var("COMPAT_CONTROLLER").as_deref() {
            Ok("java") => Self::Java("4.4.0"),
            Ok(other) => panic!("COMPAT_CONTROLLER={other}: only `java` is known"),
            Err(_) => Self::Kraftd,
        }
    }
}

/// Ports, files and directories of a scenario. Dropping it removes them.
pub(crate) struct Setup {
    dir: TempDir,
    pub(crate) controller_port: u16,
    pub(crate) broker_port: u16,
    extra: Vec<String>,
    broker_extra: Vec<String>,
    /// The controller is the only voter of a static quorum.
    fixed: bool,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::of(false)
    }

    /// With the quorum of `controller.quorum.voters`.
    pub(crate) fn static_quorum() -> Self {
        Self::of(true)
    }

    fn of(fixed: bool) -> Self {
        let setup = Self {
            dir: TempDir::with_prefix("kraftd-compat-").expect("a temporary directory"),
            controller_port: free_port(),
            broker_port: free_port(),
            extra: Vec::new(),
            broker_extra: Vec::new(),
            fixed,
        };
        setup.write_configs();
        setup
    }

    /// Adds a line to the controller's configuration for its next start.
    pub(crate) fn add_controller_line(&mut self, line: &str) {
        self.extra.push(line.to_owned());
        self.write_configs();
    }

    /// Adds a line to the broker's configuration for its next start.
    pub(crate) fn add_broker_line(&mut self, line: &str) {
        self.broker_extra.push(line.to_owned());
        self.write_configs();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn controller_config(&self) -> PathBuf {
        self.path("controller.properties")
    }

    pub(crate) fn controller_dir(&self) -> PathBuf {
        self.path("controller")
    }

    pub(crate) fn metadata_dir(&self) -> PathBuf {
        self.controller_dir().join("__cluster_metadata-0")
    }

    pub(crate) fn controller_address(&self) -> String {
        format!("localhost:{}", self.controller_port)
    }

    pub(crate) fn broker_address(&self) -> String {
        format!("localhost:{}", self.broker_port)
    }

    fn write_configs(&self) {
        let quorum = match self.fixed {
            true => format!("controller.quorum.voters=1@{}", self.controller_address()),
            false => format!(
                "controller.quorum.bootstrap.servers={}",
                self.controller_address()
            ),
        };
        let controller = [
            "process.roles=controller".to_owned(),
            "node.id=1".to_owned(),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=CONTROLLER://{}", self.controller_address()),
            quorum.clone(),
            format!("log.dirs={}", self.controller_dir().display()),
        ];
        let lines = [&controller, self.extra.as_slice()].concat().join("\n");
        fs::write(self.controller_config(), lines + "\n").expect("a writable directory");
        let broker = [
            "process.roles=broker".to_owned(),
            "node.id=2".to_owned(),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=PLAINTEXT://{}", self.broker_address()),
            quorum,
            "offsets.topic.replication.factor=1".to_owned(),
            "offsets.topic.num.partitions=1".to_owned(),
            "transaction.state.log.replication.factor=1".to_owned(),
            "transaction.state.log.min.isr=1".to_owned(),
            "group.initial.rebalance.delay.ms=0".to_owned(),
            format!("log.dirs={}", self.path("broker").display()),
        ];
        let lines = [&broker, self.broker_extra.as_slice()].concat().join("\n");
        fs::write(self.path("broker.properties"), lines + "\n").expect("writable");
    }

    /// Formats the controller's directory as a standalone voter, by the tool of its kind.
    #[track_caller]
    pub(crate) fn format(&self, kind: Kind, more: &[&str]) {
        self.format_static(kind, &[&["--standalone"], more].concat());
    }

    /// The same for a static quorum.
    #[track_caller]
    pub(crate) fn format_static(&self, kind: Kind, more: &[&str]) {
        let config = self.controller_config();
        let args = ["format", "-c", path(&config), "-t", CLUSTER_ID];
        let ended = storage(kind, &[&args, more].concat());
        assert_eq!(
            ended.code,
            Some(0),
            "format failed:\n{}{}",
            ended.out,
            ended.err
        );
    }

    /// Starts the controller; it listens when this returns.
    #[track_caller]
    pub(crate) fn start_controller(&self, kind: Kind) -> Controller {
        let server = self.spawn_controller(kind);
        until_connects(self.controller_port);
        Controller { server }
    }

    /// Starts the controller's process without waiting for anything.
    pub(crate) fn spawn_controller(&self, kind: Kind) -> Server {
        let config = self.controller_config();
        match kind {
            Kind::Kraftd => Server::start("kraftd", kraftd().arg(&config)),
            Kind::Java(release) => {
                let java = Java {
                    release,
                    heap_mb: 256,
                    logging: "server",
                };
                let name = format!("controller {release}");
                Server::start(&name, &mut java.command("kafka.Kafka", &[path(&config)]))
            }
        }
    }

    /// Formats the broker's directory on first use and starts it; it is unfenced when this returns.
    #[track_caller]
    pub(crate) fn start_broker(&self, release: Release) -> Broker {
        let config = self.path("broker.properties");
        if !self.path("broker").exists() {
            let args = ["format", "-c", path(&config), "-t", CLUSTER_ID];
            let ended = run_java(release, "kafka.tools.StorageTool", &args);
            assert_eq!(
                ended.code,
                Some(0),
                "format failed:\n{}{}",
                ended.out,
                ended.err
            );
        }
        let java = Java {
            release,
            heap_mb: 300,
            logging: "server",
        };
        let name = format!("broker {release}");
        let command = &mut java.command("kafka.Kafka", &[path(&config)]);
        let mut server = Server::start(&name, command);
        server.until_says("Kafka Server started");
        Broker { server }
    }
}

/// A running controller.
pub(crate) struct Controller {
    pub(crate) server: Server,
}

/// A running Java broker.
pub(crate) struct Broker {
    pub(crate) server: Server,
}

impl Broker {
    /// Asks for a controlled shutdown and tells how long it took.
    #[track_caller]
    pub(crate) fn shut_down(mut self) -> Duration {
        self.server.stop().1
    }
}

/// The binary under test.
pub(crate) fn kraftd() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kraftd"))
}

/// Runs the storage tool: a process of kraftd's, or Java's.
pub(crate) fn storage(kind: Kind, args: &[&str]) -> Ended {
    match kind {
        Kind::Kraftd => run(kraftd().args(args)),
        Kind::Java(release) => run_java(release, "kafka.tools.StorageTool", args),
    }
}

fn path(path: &Path) -> &str {
    path.to_str()
        .expect("temporary directories have UTF-8 names")
}
