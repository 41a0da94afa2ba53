//! Operators change what a running controller logs, and whom it lets in, with Kafka's own tool.

use std::time::Duration;

use crate::harness::{Controller, Driver, Kind, Setup, until};

const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const ACTIVE: &str = "org.apache.kafka.controller.QuorumController";

struct World {
    kind: Kind,
    setup: Setup,
    controller: Controller,
    driver: Driver,
    threads: u32,
}

impl World {
    fn new() -> Self {
        let kind = Kind::under_test();
        let setup = Setup::new();
        setup.format(kind, &[]);
        let controller = setup.start_controller(kind);
        let driver = Driver::start();
        Self {
            kind,
            setup,
            controller,
            driver,
            threads: 1,
        }
    }

    #[track_caller]
    fn tool(&mut self, args: &[&str]) -> Vec<String> {
        let address = self.setup.controller_address();
        let mut words = vec!["--bootstrap-controller", &address];
        words.extend(args);
        let told = self.driver.tool(CONFIGS, &words);
        assert_eq!(told.code, 0, "{args:?}: {told:?}");
        told.out
    }

    fn alter(&mut self, change: [&str; 2]) {
        let entity = ["--entity-type", "broker-loggers", "--entity-name", "1"];
        self.tool(&[&entity[..], &["--alter"], &change].concat());
    }

    /// The level that the tool shows.
    #[track_caller]
    fn level(&mut self, logger: &str) -> String {
        let lines = self.tool(&["--describe", "--broker-logger", "1"]);
        let begin = format!("  {logger}=");
        let mut levels = lines.iter().filter_map(|line| line.strip_prefix(&begin));
        let level = levels.next().and_then(|rest| rest.split(' ').next());
        level
            .unwrap_or_else(|| panic!("no {logger} in {lines:#?}"))
            .to_owned()
    }

    /// Has the active controller decide something.
    fn work(&mut self) {
        self.threads += 1;
        let change = format!("log.cleaner.threads={}", self.threads);
        let entity = ["--entity-type", "brokers", "--entity-name", "1", "--alter"];
        self.tool(&[&entity[..], &["--add-config", &change]].concat());
    }

    /// How often it said in detail that it decided.
    fn details(&self) -> usize {
        let lines = self.controller.server.lines_with(" DEBUG ");
        let about = |line: &&String| line.to_lowercase().contains("incrementalalterconfigs");
        lines.iter().filter(about).count()
    }

    fn says(&self, text: &str) -> usize {
        self.controller.server.lines_with(text).len()
    }
}

#[test]
fn the_tool_changes_what_a_running_controller_logs() {
    let patience = Duration::from_secs(30);
    let mut world = World::new();
    world.work();
    assert_eq!(world.level(ACTIVE), "INFO");
    world.alter([
        "--add-config",
        "org.apache.kafka.controller.QuorumController=DEBUG",
    ]);
    // It said nothing in detail before, and it says all there is from now on.
    assert_eq!(world.details(), 0);
    assert_eq!(world.level(ACTIVE), "DEBUG");
    world.work();
    until("a decision in detail", patience, || world.details() > 0);

    world.alter(["--delete-config", ACTIVE]);
    assert_eq!(world.level(ACTIVE), "INFO");
    let before = world.details();
    world.work();
    // The line about this change comes behind those of the work.
    world.alter(["--add-config", "root=WARN"]);
    until("a line about the root", patience, || {
        world.says(" WARN ") > 0 && world.says("root") > 0
    });
    assert_eq!(world.details(), before);

    // As in Java, a restart knows nothing of it.
    world.controller.server.stop();
    world.controller = world.setup.start_controller(world.kind);
    assert_eq!(world.level("root"), "INFO");
}

#[test]
fn the_levels_of_the_root_and_of_single_rooms_are_changed_by_their_names() {
    let patience = Duration::from_secs(30);
    let mut world = World::new();
    if world.kind != Kind::Kraftd {
        return;
    }
    world.alter(["--add-config", "root=DEBUG"]);
    // The tool's connection ends, which is told in detail.
    let ended = |world: &World| {
        let lines = world.controller.server.lines_with(" DEBUG ");
        lines
            .iter()
            .filter(|line| line.ends_with(" (server)"))
            .count()
    };
    until("an end of a connection", patience, || ended(&world) > 0);
    for (logger, level) in [
        ("root", "DEBUG"),
        ("kraftd", "DEBUG"),
        ("kafka", "DEBUG"),
        ("kraftd.node.load", "DEBUG"),
    ] {
        assert_eq!(world.level(logger), level, "{logger}");
    }
    world.alter([
        "--add-config",
        "kraftd.server=INFO,org.apache.kafka.raft=TRACE",
    ]);
    assert_eq!(world.level("kafka.network.SocketServer"), "INFO");
    assert_eq!(world.level("kraftd.server.peer"), "INFO");
    assert_eq!(world.level("kraftd.raft"), "TRACE");
    let before = ended(&world);
    let details = world.details();
    world.work();
    until("a decision in detail", patience, || {
        world.details() > details
    });
    world.alter(["--add-config", "root=WARN"]);
    until("the root's change", patience, || {
        world.says("the log level of root is WARN now") > 0
    });
    assert_eq!(ended(&world), before);
}

#[test]
fn a_limit_that_would_let_nobody_in_is_told_and_the_door_stays_open() {
    let patience = Duration::from_secs(30);
    let mut world = World::new();
    let all = ["--entity-type", "brokers", "--entity-default", "--alter"];
    world.tool(&[&all[..], &["--add-config", "max.connections=0"]].concat());
    let told = |world: &World| {
        // Java logs the exception of a whole resource.
        if world.kind == Kind::Kraftd {
            until("a sentence about the limit", patience, || {
                world.says("max.connections=0 of all nodes is stored and has no effect: ") > 0
            });
        }
    };
    told(&world);
    // Each call of the tool connects anew.
    world.work();
    assert_eq!(world.level("root"), "INFO");

    // It is stored, and told at every start.
    world.controller.server.stop();
    world.controller = world.setup.start_controller(world.kind);
    told(&world);
    world.tool(&[&all[..], &["--delete-config", "max.connections"]].concat());
    world.work();
}
