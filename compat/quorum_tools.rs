//! The tools that look at a quorum and change it say of kraftd's leaders what they say of Java's,
//! and of quorums of both.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use crate::harness::{Driver, Kind, Quorum, Voters, until};
use crate::normal::{Normal, difference};

const QUORUM: &str = "org.apache.kafka.tools.MetadataQuorumCommand";
const FEATURES: &str = "org.apache.kafka.tools.FeatureCommand";

/// A directory that no controller has.
const STRANGER: &str = "kraftdCompatStranger0w";
const PATIENCE: Duration = Duration::from_secs(60);
const JAVA: Kind = Kind::Java("4.4.0");

/// The directory id in a controller's meta.properties.
fn directory_of(quorum: &Quorum, id: i32) -> String {
    let path = quorum.log_dir(id).join("meta.properties");
    let text = fs::read_to_string(path).expect("formatted");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("directory.id="));
    line.expect("a directory id").to_owned()
}

/// What the tools printed, as normal lines, below its command.
struct Transcript {
    quorum: Quorum,
    driver: Driver,
    normal: Normal,
    lines: Vec<String>,
}

impl Transcript {
    /// Three static voters, none of which runs yet.
    fn new(kinds: &[Kind; 3]) -> Self {
        let normal = Normal::without_ports()
            .with(
                r"(LeaderId|HighWatermark|MaxFollowerLag(?:TimeMs)?|LeaderEpoch|Epoch):(\s*)-?\d+",
                "$1:$2<n>",
            )
            .with(
                r"^out\| \d+\s+\S+\s+\d+\s+-?\d+\s+.*?(Leader|Follower|Observer)$",
                "out| <n> ... $1",
            )
            // Which node led is chance, and so is the order of a hash set.
            .with(r#""id": \d"#, r#""id": <n>"#)
            .with(r"ReplicaKey\(id=[1-4]", "ReplicaKey(id=<n>")
            .with(r"(controller|Controller) [1-3]\b", "$1 <n>")
            .with(r"-i [1-4]\b", "-i <n>")
            .with(r"localhost:\d+", "localhost:<port>")
            .with(r"/\S*controller-\d\.properties", "<config>");
        Self {
            quorum: Quorum::new(Voters::Static, kinds, &[]),
            driver: Driver::start(),
            normal,
            lines: Vec::new(),
        }
    }

    /// Runs a tool against all controllers and gives its exit code.
    fn tool(&mut self, main: &str, before: &[&str], args: &[&str]) -> (i32, Vec<String>) {
        let addresses = self.quorum.controller_addresses();
        let at = ["--bootstrap-controller", &addresses];
        let output = self.driver.tool(main, &[before, &at, args].concat());
        let out = output.out.iter().map(|line| format!("out| {line}"));
        // Of an exception its own line counts; the stack is that of the helper JVM.
        let told = output.err.iter();
        let told = told.filter(|line| !line.starts_with("\tat ") && !line.is_empty());
        let lines = out.chain(told.map(|line| format!("err| {line}")));
        let lines = lines.map(|line| self.normal.line(&line)).collect();
        (output.code, lines)
    }

    fn note(&mut self, command: &str, (code, lines): (i32, Vec<String>)) {
        self.lines.push(format!("$ {command}"));
        self.lines.extend(lines);
        self.lines.push(format!("exit| {code}"));
    }

    fn quorum_tool(&mut self, args: &[&str]) {
        let said = self.tool(QUORUM, &[], args);
        let command = self.normal.line(&args.join(" "));
        self.note(&command, said);
    }

    fn features(&mut self, args: &[&str]) {
        let said = self.tool(FEATURES, &[], args);
        self.note(&args.join(" "), said);
    }

    fn add(&mut self, id: i32) -> (i32, Vec<String>) {
        let config = self.quorum.config(id).display().to_string();
        self.tool(QUORUM, &["--command-config", &config], &["add-controller"])
    }

    /// Tries until it succeeds: a node that lags behind is refused.
    fn add_at_last(&mut self, id: i32) {
        let mut said = (1, Vec::new());
        until("the controller is added", PATIENCE, || {
            said = self.add(id);
            said.0 == 0
        });
        self.note("add-controller", said);
    }

    fn remove(&mut self, id: i32, directory: &str) {
        self.quorum_tool(&["remove-controller", "-i", &id.to_string(), "-d", directory]);
    }

    /// A static quorum refuses changes.
    fn at_version_0(&mut self, leader: i32) {
        self.quorum_tool(&["describe", "--status"]);
        self.quorum_tool(&["describe", "--replication"]);
        self.features(&["describe"]);
        let refused = self.add(4);
        self.note("add-controller", refused);
        let follower = leader % 3 + 1;
        let directory = directory_of(&self.quorum, follower);
        self.remove(follower, &directory);
    }

    fn upgrade(&mut self) {
        self.features(&["upgrade", "--feature", "kraft.version=2"]);
        self.features(&["downgrade", "--feature", "kraft.version=0"]);
        let trial = ["upgrade", "--feature", "kraft.version=1", "--dry-run"];
        // Every voter has to tell the leader first that it can.
        let mut said = (1, Vec::new());
        until("all voters support it", PATIENCE, || {
            said = self.tool(FEATURES, &[], &trial);
            said.0 == 0
        });
        self.note(&trial.join(" "), said);
        self.features(&["upgrade", "--feature", "kraft.version=1"]);
        self.features(&["upgrade", "--feature", "kraft.version=1"]);
        self.features(&["downgrade", "--feature", "kraft.version=0"]);
        self.features(&["describe"]);
        self.quorum_tool(&["describe", "--status"]);
    }

    fn refused_changes(&mut self, leader: i32) {
        // It does not run.
        let refused = self.add(4);
        self.note("add-controller", refused);
        let refused = self.add(leader);
        self.note("add-controller", refused);
        self.remove(9, STRANGER);
        self.remove(leader, STRANGER);
    }

    /// An observer becomes a voter, then the leader goes and comes back.
    fn changes(&mut self) {
        self.quorum.start(4);
        self.add_at_last(4);
        self.quorum.until_caught_up();
        self.quorum_tool(&["describe", "--status"]);
        self.quorum_tool(&["describe", "--replication"]);
        let refused = self.add(4);
        self.note("add-controller", refused);
        let directory = directory_of(&self.quorum, 4);
        self.remove(4, &directory);
        self.quorum_tool(&["describe", "--status"]);
        let leader = self.quorum.until_led(&[]).leader;
        let directory = directory_of(&self.quorum, leader);
        self.remove(leader, &directory);
        self.quorum.until_led(&[leader]);
        self.quorum.until_caught_up();
        self.quorum_tool(&["describe", "--status"]);
        self.quorum_tool(&["describe", "--replication"]);
        self.add_at_last(leader);
        self.quorum.until_caught_up();
        self.quorum_tool(&["describe", "--status"]);
    }
}

/// The whole life of a quorum of these kinds; the fourth controller is of the first's kind.
fn play(kinds: [Kind; 3]) -> Vec<String> {
    let mut transcript = Transcript::new(&kinds);
    let leader = transcript.quorum.start_all(&[]).leader;
    transcript.quorum.until_caught_up();
    transcript.quorum.add_observer(kinds[0]);
    // Not a static voter: its file names the others.
    transcript.quorum.format(4, &[]);
    transcript.at_version_0(leader);
    transcript.upgrade();
    transcript.refused_changes(leader);
    transcript.changes();
    transcript.lines
}

/// A quorum of these kinds must say what Java's says.
#[track_caller]
fn compare(kinds: [Kind; 3]) {
    static JAVAS: OnceLock<Vec<String>> = OnceLock::new();
    let java = JAVAS.get_or_init(|| play([JAVA; 3]));
    let difference = difference(java, &play(kinds));
    assert!(
        difference.is_empty(),
        "- Java's controllers, + {kinds:?}\n{difference}"
    );
}

#[test]
fn a_quorum_of_kraftds_is_shown_upgraded_and_changed_as_one_of_javas() {
    compare([Kind::under_test(); 3]);
}

#[test]
fn one_kraftd_among_javas_controllers_is_shown_upgraded_and_changed_as_they_are() {
    compare([Kind::under_test(), JAVA, JAVA]);
}

#[test]
fn one_java_controller_among_kraftds_is_shown_upgraded_and_changed_as_they_are() {
    compare([JAVA, Kind::under_test(), Kind::under_test()]);
}

/// Whether the tool shows this directory as a voter's.
fn is_voter(quorum: &Quorum, driver: &mut Driver, directory: &str) -> bool {
    let addresses = quorum.controller_addresses();
    let args = [
        "--bootstrap-controller",
        &addresses,
        "describe",
        "--replication",
    ];
    let output = driver.tool(QUORUM, &args);
    let mut lines = output.out.iter();
    lines.any(|line| line.contains(directory) && !line.contains("Observer"))
}

/// Three voters and a fourth controller that joins by itself, loses its disk and joins again.
#[track_caller]
fn joins(voters: Kind, newcomer: Kind) {
    let mut quorum = Quorum::new(Voters::Dynamic, &[voters; 3], &[]);
    let mut driver = Driver::start();
    quorum.start_all(&[]);
    quorum.add_line("controller.quorum.auto.join.enable=true");
    let id = quorum.add_observer(newcomer);
    for round in ["a new disk", "another disk"] {
        quorum.format(id, &[]);
        let directory = directory_of(&quorum, id);
        quorum.start(id);
        until(&format!("{id} joins with {round}"), PATIENCE, || {
            is_voter(&quorum, &mut driver, &directory)
        });
        quorum.until_caught_up();
        let view = quorum.until_led(&[]);
        assert_eq!(view.voters.len(), 4, "{round}: {view:?}");
        quorum.stop(id);
        fs::remove_dir_all(quorum.log_dir(id)).expect("its directory");
    }
}

#[test]
fn a_kraftd_joins_javas_voters_by_itself_and_again_after_it_lost_its_disk() {
    joins(JAVA, Kind::under_test());
}

#[test]
fn a_java_controller_joins_kraftds_by_itself_and_again_after_it_lost_its_disk() {
    joins(Kind::under_test(), JAVA);
}

#[test]
fn a_kraftd_joins_kraftds_by_itself_and_again_after_it_lost_its_disk() {
    joins(Kind::under_test(), Kind::under_test());
}
