//! Several controllers of either kind, each behind a proxy, and one Java broker.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::ask::{View, describe_quorum};
use super::cluster::{CLUSTER_ID, Kind, Release, kraftd, storage};
use super::driver::Driver;
use super::java::Java;
use super::network::Network;
use super::process::Server;
use super::wait::{free_port, until, until_connects};

/// The broker's node id.
pub(crate) const BROKER: i32 = 100;
/// How long anything in a quorum may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the set of voters stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voters {
    /// In everybody's file.
    Static,
    /// In the log (KIP-853).
    Dynamic,
}

/// One controller.
pub(crate) struct Member {
    pub(crate) id: i32,
    /// What runs it, or ran it last.
    pub(crate) kind: Kind,
    /// Its own port.
    port: u16,
    /// The port that others know.
    pub(crate) proxy: u16,
    /// Of its directory, as the list of initial voters has it.
    directory_id: String,
    is_voter: bool,
    server: Option<Server>,
    is_paused: bool,
}

/// Controllers, their network and the broker. Dropping it ends and removes all.
pub(crate) struct Quorum {
    pub(crate) network: Network,
    voters: Voters,
    members: Vec<Member>,
    /// Lines of every controller's file.
    lines: Vec<String>,
    broker_port: u16,
    pub(crate) broker: Option<Server>,
    /// Who was seen as an epoch's leader.
    pub(crate) leaders: BTreeMap<i32, i32>,
    /// Goes last, after the processes that write there.
    dir: TempDir,
}

impl Quorum {
    /// Formats a directory for each kind (nodes 1, 2, ...); nothing runs yet.
    #[track_caller]
    pub(crate) fn new(voters: Voters, kinds: &[Kind], lines: &[&str]) -> Self {
        let mut quorum = Self {
            dir: TempDir::with_prefix("kraftd-quorum-").expect("a temporary directory"),
            network: Network::default(),
            voters,
            members: Vec::new(),
            lines: lines.iter().map(|line| String::from(*line)).collect(),
            broker_port: free_port(),
            broker: None,
            leaders: BTreeMap::new(),
        };
        for kind in kinds {
            quorum.add_member(*kind, true);
        }
        quorum
    }

    fn add_member(&mut self, kind: Kind, is_voter: bool) -> i32 {
        let id = i32::try_from(self.members.len()).expect("few") + 1;
        let port = free_port();
        self.members.push(Member {
            id,
            kind,
            port,
            proxy: self.network.guard(id, port),
            directory_id: directory_id(id),
            is_voter,
            server: None,
            is_paused: false,
        });
        id
    }

    /// Adds a controller that is no voter; it is neither formatted nor started.
    pub(crate) fn add_observer(&mut self, kind: Kind) -> i32 {
        self.add_member(kind, false)
    }

    /// Adds a line to the file of every controller that is formatted or started from now on.
    pub(crate) fn add_line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// Adds a controller that is no voter, formats it and starts it.
    #[track_caller]
    pub(crate) fn start_observer(&mut self, kind: Kind) -> i32 {
        let id = self.add_observer(kind);
        self.format(id, &[]);
        self.start(id);
        id
    }

    /// Takes everything from a controller that does not run, and formats it as at first.
    #[track_caller]
    pub(crate) fn wipe(&mut self, id: i32) {
        assert!(!self.is_running(id), "its files are in use");
        fs::remove_dir_all(self.log_dir(id)).expect("a directory");
        self.format(id, &[]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A controller's log directory.
    pub(crate) fn log_dir(&self, id: i32) -> PathBuf {
        self.path(&format!("controller-{id}"))
    }

    pub(crate) fn metadata_dir(&self, id: i32) -> PathBuf {
        self.log_dir(id).join("__cluster_metadata-0")
    }

    pub(crate) fn ids(&self) -> Vec<i32> {
        self.members.iter().map(|member| member.id).collect()
    }

    pub(crate) fn member(&self, id: i32) -> &Member {
        let found = self.members.iter().find(|member| member.id == id);
        found.expect("a member of the quorum")
    }

    fn member_mut(&mut self, id: i32) -> &mut Member {
        let found = self.members.iter_mut().find(|member| member.id == id);
        found.expect("a member of the quorum")
    }

    pub(crate) fn kind(&self, id: i32) -> Kind {
        self.member(id).kind
    }

    /// `localhost:port` of every controller, behind the proxies.
    pub(crate) fn controller_addresses(&self) -> String {
        let all = self.members.iter();
        let all: Vec<String> = all.map(|it| format!("localhost:{}", it.proxy)).collect();
        all.join(",")
    }

    pub(crate) fn broker_address(&self) -> String {
        format!("localhost:{}", self.broker_port)
    }

    /// How voters, or others, find the quorum.
    fn quorum_line(&self, for_voter: bool) -> String {
        if self.voters == Voters::Dynamic || !for_voter {
            let known = self.controller_addresses();
            return format!("controller.quorum.bootstrap.servers={known}");
        }
        let voters = self.members.iter().filter(|it| it.is_voter);
        let voters: Vec<String> = voters
            .map(|it| format!("{}@localhost:{}", it.id, it.proxy))
            .collect();
        format!("controller.quorum.voters={}", voters.join(","))
    }

    /// Writes a controller's file and gives its path.
    pub(crate) fn config(&self, id: i32) -> PathBuf {
        let member = self.member(id);
        let own = [
            "process.roles=controller".to_owned(),
            format!("node.id={id}"),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=CONTROLLER://localhost:{}", member.port),
            format!(
                "advertised.listeners=CONTROLLER://localhost:{}",
                member.proxy
            ),
            self.quorum_line(member.is_voter),
            format!("log.dirs={}", self.log_dir(id).display()),
        ];
        let path = self.path(&format!("controller-{id}.properties"));
        let lines = [&own, self.lines.as_slice()].concat().join("\n");
        fs::write(&path, lines + "\n").expect("a writable directory");
        path
    }

    /// Formats a controller's directory by the tool of its kind.
    #[track_caller]
    pub(crate) fn format(&self, id: i32, more: &[&str]) {
        let member = self.member(id);
        let config = self.config(id).display().to_string();
        let initial: Vec<String> = self
            .members
            .iter()
            .filter(|it| it.is_voter)
            .map(|it| format!("{}@localhost:{}:{}", it.id, it.proxy, it.directory_id))
            .collect();
        let initial = initial.join(",");
        let voters: &[&str] = match (self.voters, member.is_voter) {
            (Voters::Static, true) => &[],
            (Voters::Dynamic, true) => &["--initial-controllers", &initial],
            (_, false) => &["--no-initial-controllers"],
        };
        let args = [&["format", "-c", &config, "-t", CLUSTER_ID], voters, more].concat();
        let ended = storage(member.kind, &args);
        assert_eq!(ended.code, Some(0), "format of {id}: {ended:?}");
    }

    /// Starts a controller's process, as another kind than before if one is given.
    pub(crate) fn spawn(&mut self, id: i32, kind: Kind) {
        let config = self.config(id).display().to_string();
        let member = self.member_mut(id);
        member.kind = kind;
        let server = match kind {
            Kind::Kraftd => Server::start(&format!("kraftd {id}"), kraftd().arg(&config)),
            Kind::Java(release) => {
                let java = Java {
                    release,
                    heap_mb: 256,
                    logging: "server",
                };
                let name = format!("controller {id} {release}");
                Server::start(&name, &mut java.command("kafka.Kafka", &[&config]))
            }
        };
        member.server = Some(server);
    }

    /// Starts a controller as the kind that it is; it listens when this returns.
    #[track_caller]
    pub(crate) fn start(&mut self, id: i32) {
        self.spawn(id, self.kind(id));
        until_connects(self.member(id).port);
    }

    /// Formats and starts all of them, and waits for a leader.
    #[track_caller]
    pub(crate) fn start_all(&mut self, format: &[&str]) -> View {
        for id in self.ids() {
            self.format(id, format);
        }
        for id in self.ids() {
            self.spawn(id, self.kind(id));
        }
        for id in self.ids() {
            until_connects(self.member(id).port);
        }
        self.until_led(&[])
    }

    pub(crate) fn server(&mut self, id: i32) -> &mut Server {
        let server = self.member_mut(id).server.as_mut();
        server.expect("this controller runs")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, id: i32) {
        let mut server = self.member_mut(id).server.take().expect("it runs");
        server.kill();
    }

    /// SIGTERM, and gone when this returns.
    #[track_caller]
    pub(crate) fn stop(&mut self, id: i32) {
        let mut server = self.member_mut(id).server.take().expect("it runs");
        server.stop();
    }

    /// SIGSTOP: it stands still, its sockets stay.
    pub(crate) fn pause(&mut self, id: i32) {
        self.signal(id, Signal::STOP);
        self.member_mut(id).is_paused = true;
    }

    /// SIGCONT.
    pub(crate) fn go_on(&mut self, id: i32) {
        self.signal(id, Signal::CONT);
        self.member_mut(id).is_paused = false;
    }

    pub(crate) fn signal(&mut self, id: i32, signal: Signal) {
        let pid = i32::try_from(self.server(id).pid()).ok();
        let pid = pid.and_then(Pid::from_raw).expect("a pid above zero");
        kill_process(pid, signal).expect("it runs");
    }

    pub(crate) fn is_running(&self, id: i32) -> bool {
        self.member(id).server.is_some()
    }

    /// The view of the leader with the highest epoch, if any of them leads now. No epoch was ever
    /// seen with two leaders.
    #[track_caller]
    pub(crate) fn view(&mut self) -> Option<View> {
        let mut newest: Option<View> = None;
        let asked: Vec<u16> = self
            .members
            .iter()
            .filter(|it| it.server.is_some() && !it.is_paused)
            .map(|it| it.port)
            .collect();
        for view in asked.into_iter().filter_map(describe_quorum) {
            let leader = *self.leaders.entry(view.epoch).or_insert(view.leader);
            assert_eq!(leader, view.leader, "two leaders of epoch {}", view.epoch);
            if newest.as_ref().is_none_or(|it| it.epoch < view.epoch) {
                newest = Some(view);
            }
        }
        newest
    }

    /// Waits for a leader that is none of these and that has committed something of its epoch.
    #[track_caller]
    pub(crate) fn until_led(&mut self, not_by: &[i32]) -> View {
        let mut found = None;
        until("a leader", PATIENCE, || {
            self.fail_if_ended();
            found = self.view().filter(|view| {
                let is_other = !not_by.contains(&view.leader);
                is_other && view.high_watermark >= 0
            });
            found.is_some()
        });
        found.expect("the wait ended with one")
    }

    /// Waits until every running voter and observer has what is committed now; gives that offset.
    #[track_caller]
    pub(crate) fn until_caught_up(&mut self) -> i64 {
        let mut target = -1;
        let running: Vec<i32> = self
            .ids()
            .into_iter()
            .filter(|id| self.is_running(*id))
            .collect();
        until(&format!("{running:?} have caught up"), PATIENCE, || {
            self.fail_if_ended();
            let Some(view) = self.view() else {
                return false;
            };
            if target < 0 {
                target = view.high_watermark;
            }
            // A node that lost its disk is told of twice for some minutes, as the old one too.
            let mut ends: BTreeMap<i32, i64> = BTreeMap::new();
            for (id, end) in view.voters.iter().chain(&view.observers) {
                let known = ends.entry(*id).or_insert(*end);
                *known = (*known).max(*end);
            }
            let is_there = |id: &i32| ends.get(id).is_some_and(|end| *end >= target);
            target >= 0 && view.high_watermark >= target && running.iter().all(is_there)
        });
        target
    }

    /// A controller that ended by itself is what a scenario has to hear of first.
    #[track_caller]
    fn fail_if_ended(&mut self) {
        for member in &mut self.members {
            if let Some(server) = &mut member.server {
                assert!(server.is_running(), "controller {} ended", member.id);
            }
        }
        if let Some(broker) = &mut self.broker {
            assert!(broker.is_running(), "the broker ended");
        }
    }

    /// Formats and starts the broker; it is unfenced when this returns.
    #[track_caller]
    pub(crate) fn start_broker(&mut self, release: Release) {
        let lines = [
            "process.roles=broker".to_owned(),
            format!("node.id={BROKER}"),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=PLAINTEXT://{}", self.broker_address()),
            self.quorum_line(true),
            // A request to a controller that stands still is given up in time.
            "controller.socket.timeout.ms=3000".to_owned(),
            "socket.connection.setup.timeout.ms=2000".to_owned(),
            "log.cleaner.dedupe.buffer.size=2097152".to_owned(),
            format!("log.dirs={}", self.path("broker").display()),
        ];
        let config = self.path("broker.properties");
        fs::write(&config, lines.join("\n") + "\n").expect("a writable directory");
        let config = config.display().to_string();
        let args = ["format", "-c", &config, "-t", CLUSTER_ID];
        let ended = storage(Kind::Java(release), &args);
        assert_eq!(ended.code, Some(0), "format of the broker: {ended:?}");
        let java = Java {
            release,
            heap_mb: 300,
            logging: "server",
        };
        let command = &mut java.command("kafka.Kafka", &[&config]);
        let mut server = Server::start(&format!("broker {release}"), command);
        server.until_says("Kafka Server started");
        self.broker = Some(server);
    }

    /// Ends everything at once: nobody has the time to change what is on disk.
    pub(crate) fn kill_all(&mut self) {
        drop(self.broker.take());
        for member in &mut self.members {
            drop(member.server.take());
        }
    }

    /// Starts clients that work all the time: one creates topics and sets configs through the
    /// broker, another sets configs at the controllers.
    pub(crate) fn start_load(&self, driver: &mut Driver, pause_ms: u32) {
        let (broker, controllers) = (self.broker_address(), self.controller_addresses());
        driver.job(&["load", &broker, &controllers, &pause_ms.to_string()]);
    }
}

impl Drop for Quorum {
    fn drop(&mut self) {
        self.network.close();
    }
}

/// A directory id for each node, the same in every run.
fn directory_id(id: i32) -> String {
    format!("kraftdCompatNode0000{id}w")
}
