//! One controller and three Java brokers with two log directories each, which fail one by one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::harness::{CLUSTER_ID, Controller, Driver, Java, Kind, Server, Setup, now, run_java};
use crate::harness::{free_port, until};

/// `broker.session.timeout.ms` of the controller.
pub(super) const SESSION: Duration = Duration::from_millis(3_000);
/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
const RELEASE: &str = "4.4.0";

/// What a broker says of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) index: i32,
    pub(super) leader: Option<i32>,
    pub(super) replicas: Vec<i32>,
    /// Sorted, as is `elr`.
    pub(super) isr: Vec<i32>,
    pub(super) elr: Vec<i32>,
}

impl Row {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let ids = |word: &str| -> Vec<i32> {
            let ids = word.split(',').filter(|it| *it != "-");
            ids.map(|id| id.parse().expect("a broker's id")).collect()
        };
        let sorted = |word| {
            let mut ids = ids(word);
            ids.sort_unstable();
            ids
        };
        let [index, leader, replicas, isr, elr] = words[..] else {
            panic!("not a partition: {line}");
        };
        Self {
            index: index.parse().expect("a number"),
            leader: leader.parse().ok(),
            replicas: ids(replicas),
            isr: sorted(isr),
            elr: sorted(elr),
        }
    }

    pub(super) fn is_led_by_preferred(&self) -> bool {
        self.leader == self.replicas.first().copied()
    }

    pub(super) fn is_all_in_sync(&self) -> bool {
        self.isr.len() == self.replicas.len() && self.leader.is_some()
    }
}

/// The processes and their files.
pub(super) struct Cluster {
    pub(super) driver: Driver,
    kind: Kind,
    controller: Option<Controller>,
    brokers: BTreeMap<i32, Server>,
    ports: BTreeMap<i32, u16>,
    setup: Setup,
}

impl Cluster {
    /// Brokers 2, 3 and 4 run.
    pub(super) fn start() -> Self {
        let kind = Kind::under_test();
        let mut setup = Setup::new();
        for line in [
            format!("broker.session.timeout.ms={}", SESSION.as_millis()),
            "broker.heartbeat.interval.ms=300".to_owned(),
            "auto.leader.rebalance.enable=false".to_owned(),
            "unclean.leader.election.interval.ms=500".to_owned(),
        ] {
            setup.add_controller_line(&line);
        }
        setup.format(kind, &[]);
        let controller = Some(setup.start_controller(kind));
        let mut cluster = Self {
            driver: Driver::start(),
            kind,
            controller,
            brokers: BTreeMap::new(),
            ports: [2, 3, 4].map(|id| (id, free_port())).into(),
            setup,
        };
        for id in [2, 3, 4] {
            cluster.write_config(id);
            cluster.format(id);
            cluster.spawn(id);
        }
        for id in [2, 3, 4] {
            cluster.until_started(id);
        }
        cluster
    }

    /// Starts the controller again with one line more in its file.
    pub(super) fn restart_controller_with(&mut self, line: &str) {
        if let Some(mut controller) = self.controller.take() {
            controller.server.stop();
        }
        self.setup.add_controller_line(line);
        self.controller = Some(self.setup.start_controller(self.kind));
    }

    /// One of the two log directories of a broker.
    pub(super) fn log_dir(&self, id: i32, which: char) -> PathBuf {
        self.setup.path(&format!("broker-{id}-{which}"))
    }

    fn config(&self, id: i32) -> PathBuf {
        self.setup.path(&format!("broker-{id}.properties"))
    }

    fn write_config(&self, id: i32) {
        let (a, b) = (self.log_dir(id, 'a'), self.log_dir(id, 'b'));
        let lines = [
            "process.roles=broker".to_owned(),
            format!("node.id={id}"),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=PLAINTEXT://{}", self.address_of(id)),
            format!(
                "controller.quorum.bootstrap.servers={}",
                self.setup.controller_address()
            ),
            format!("log.dirs={},{}", a.display(), b.display()),
            format!("broker.session.timeout.ms={}", SESSION.as_millis()),
            "broker.heartbeat.interval.ms=300".to_owned(),
            "replica.lag.time.max.ms=3000".to_owned(),
            // A directory that fails is noticed when something is written there.
            "replica.high.watermark.checkpoint.interval.ms=300".to_owned(),
            "offsets.topic.replication.factor=1".to_owned(),
            "offsets.topic.num.partitions=1".to_owned(),
            "group.initial.rebalance.delay.ms=0".to_owned(),
        ];
        fs::write(self.config(id), lines.join("\n") + "\n").expect("a writable directory");
    }

    /// Formats those directories of a broker that are not formatted.
    pub(super) fn format(&self, id: i32) {
        let config = self.config(id).display().to_string();
        let args = [
            "format",
            "--ignore-formatted",
            "-c",
            &config,
            "-t",
            CLUSTER_ID,
        ];
        let ended = run_java(RELEASE, "kafka.tools.StorageTool", &args);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    }

    fn spawn(&mut self, id: i32) {
        let java = Java {
            release: RELEASE,
            heap_mb: 256,
            logging: "server",
        };
        let config = self.config(id).display().to_string();
        let command = &mut java.command("kafka.Kafka", &[&config]);
        let server = Server::start(&format!("broker {id}"), command);
        self.brokers.insert(id, server);
    }

    fn until_started(&mut self, id: i32) {
        let server = self.brokers.get_mut(&id).expect("it was started");
        server.until_says("Kafka Server started");
    }

    pub(super) fn start_broker(&mut self, id: i32) {
        self.spawn(id);
        self.until_started(id);
    }

    /// SIGKILL.
    pub(super) fn kill_broker(&mut self, id: i32) {
        let mut server = self.brokers.remove(&id).expect("it runs");
        server.kill();
    }

    /// A controlled shutdown; how long it took.
    pub(super) fn stop_broker(&mut self, id: i32) -> Duration {
        let mut server = self.brokers.remove(&id).expect("it runs");
        server.stop().1
    }

    pub(super) fn address_of(&self, id: i32) -> String {
        format!("localhost:{}", self.ports[&id])
    }

    /// A broker that runs.
    pub(super) fn address(&self) -> String {
        let first = self.brokers.keys().next().expect("a broker runs");
        self.address_of(*first)
    }

    pub(super) fn rows(&mut self, topic: &str) -> Result<Vec<Row>, String> {
        let address = self.address();
        let lines = self.driver.try_job(&["partitions", &address, topic])?;
        Ok(lines.iter().map(|line| Row::parse(line)).collect())
    }

    /// Waits until all partitions of a topic are as they should be; how long that took.
    #[track_caller]
    pub(super) fn until_rows(
        &mut self,
        what: &str,
        topic: &str,
        wanted: impl Fn(&Row) -> bool,
    ) -> Duration {
        let start = now();
        let mut last = Ok(Vec::new());
        let deadline = start + PATIENCE;
        until(what, PATIENCE + PATIENCE, || {
            last = self.rows(topic);
            let good = matches!(&last, Ok(rows) if !rows.is_empty() && rows.iter().all(&wanted));
            assert!(good || now() < deadline, "not in time: {what}: {last:?}");
            good
        });
        start.elapsed()
    }

    /// Runs one of Kafka's tools against a broker that runs; what it printed.
    #[track_caller]
    pub(super) fn tool(&mut self, main: &str, args: &[&str]) -> String {
        let address = self.address();
        let args = [&["--bootstrap-server", &address], args].concat();
        let output = self.driver.tool(main, &args);
        let out = output.out.join("\n");
        assert_eq!(output.code, 0, "{main} {args:?}: {out}\n{:?}", output.err);
        out
    }

    /// A file for a tool.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.setup.path(name);
        fs::write(&path, text).expect("a writable directory");
        path.display().to_string()
    }
}
