//! The command line tools say about a cluster of kraftd's what they say about one of Java's.

use std::time::Duration;

use crate::harness::{Driver, Kind, Setup};
use crate::normal::{Normal, difference};

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";
const QUORUM: &str = "org.apache.kafka.tools.MetadataQuorumCommand";
const FEATURES: &str = "org.apache.kafka.tools.FeatureCommand";
const CLUSTER: &str = "org.apache.kafka.tools.ClusterTool";

const ACLS: &str = "org.apache.kafka.tools.AclCommand";

/// What switches authorization on; whoever connects without a name may do everything.
const AUTHORIZER: [&str; 2] = [
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
];

/// Entries are added, listed and removed; see [`COMMANDS`].
const ACL_COMMANDS: [(&str, &str); 19] = [
    (
        ACLS,
        "--bootstrap-server BROKER --add --allow-principal User:alice --operation Read --topic a",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:bob --operation Write \
         --topic a",
    ),
    (ACLS, "--bootstrap-server BROKER --list"),
    (ACLS, "--bootstrap-controller CONTROLLER --list"),
    (
        ACLS,
        "--bootstrap-server BROKER --remove --allow-principal User:alice --operation Read \
         --topic a --force",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --remove --topic a --force",
    ),
    (
        ACLS,
        "--bootstrap-server BROKER --add --deny-principal User:* --deny-host 10.0.0.1 --operation \
         All --topic p --resource-pattern-type prefixed",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:c --producer --topic o \
         --transactional-id t",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:d --consumer --topic o \
         --group g",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:e --operation Alter \
         --cluster",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:e --allow-host \
         10.0.0.0/8 --operation Describe --cluster",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --add --allow-principal User:e --allow-host \
         10.0.0.0/80 --operation Describe --cluster",
    ),
    (ACLS, "--bootstrap-controller CONTROLLER --list"),
    (ACLS, "--bootstrap-server BROKER --list"),
    (ACLS, "--bootstrap-server BROKER --list --topic o"),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --list --topic pq --resource-pattern-type match",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --list --principal User:d",
    ),
    (
        ACLS,
        "--bootstrap-controller CONTROLLER --remove --topic pq --resource-pattern-type match \
         --force",
    ),
    (ACLS, "--bootstrap-controller CONTROLLER --list"),
];

/// Levels of loggers are changed; see [`COMMANDS`].
const LOGGER_COMMANDS: [(&str, &str); 17] = [
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --entity-type broker-loggers --entity-name 1 --alter \
         --add-config org.apache.kafka.controller.QuorumController=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config \
         root=WARN,org.apache.kafka.controller=ERROR",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config root=INFO \
         --delete-config org.apache.kafka.controller",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config root=LOUD",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config root=off",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config nosuch=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --add-config ROOT=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --delete-config nosuch,root",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --delete-config root",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 1 --alter --delete-config \
         org.apache.kafka.controller.QuorumController",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger 2 --alter --add-config root=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --broker-logger x --alter --add-config root=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --entity-type broker-loggers --entity-default --alter \
         --add-config root=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --entity-type broker-loggers --alter --add-config \
         root=DEBUG",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --describe --broker-logger 2",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --describe --broker-logger x",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --broker-logger 2 --alter --add-config root=INFO",
    ),
];

/// Differences that are meant, by command; FINDINGS.md has the reasons.
const ALLOWED: [&str; 0] = [];

/// The commands, in order; BROKER and CONTROLLER stand for the addresses.
const COMMANDS: [(&str, &str); 63] = [
    (TOPICS, "--bootstrap-server BROKER --list"),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic a --partitions 3 --replication-factor 1",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic a --partitions 3",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic a --partitions 3 --if-not-exists",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic b --config retention.ms=60000 --config \
         cleanup.policy=compact",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic c --replica-assignment 2,2",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic d --replication-factor 2",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic d --replica-assignment 2,9",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic d --partitions 0",
    ),
    (TOPICS, "--bootstrap-server BROKER --create --topic d/e"),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic d --config nosuch=1",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic d --config retention.ms=x",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic my.topic",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --create --topic my_topic",
    ),
    (TOPICS, "--bootstrap-server BROKER --list"),
    (TOPICS, "--bootstrap-server BROKER --describe"),
    (TOPICS, "--bootstrap-server BROKER --describe --topic a"),
    (
        TOPICS,
        "--bootstrap-server BROKER --describe --topic nosuch",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --describe --under-replicated-partitions",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --describe --unavailable-partitions",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --describe --topics-with-overrides",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --alter --topic a --partitions 5",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --alter --topic a --partitions 2",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --alter --topic nosuch --partitions 2",
    ),
    (TOPICS, "--bootstrap-server BROKER --describe --topic a"),
    (
        TOPICS,
        "--bootstrap-server BROKER --delete --topic my.topic",
    ),
    (
        TOPICS,
        "--bootstrap-server BROKER --delete --topic my.topic",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type topics --entity-name b",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type topics --entity-name b --all",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type topics",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name a --add-config \
         segment.bytes=2000000,retention.ms=5000",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name a --add-config \
         nosuch=1",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name a --add-config \
         retention.ms=x",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name a --delete-config \
         segment.bytes",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name nosuch \
         --add-config retention.ms=1",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type topics --entity-name a",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type brokers --entity-name 2 --add-config \
         log.cleaner.threads=2",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type brokers --entity-default --add-config \
         log.cleaner.threads=1",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type brokers",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type brokers --entity-default",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --describe --entity-type brokers --entity-default",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --describe --entity-type brokers --entity-name 1",
    ),
    (
        CONFIGS,
        "--bootstrap-controller CONTROLLER --alter --entity-type topics --entity-name a \
         --add-config retention.ms=6000",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type client-metrics --entity-name sub \
         --add-config interval.ms=30000",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type client-metrics --entity-name sub",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --alter --entity-type groups --entity-name g --add-config \
         consumer.session.timeout.ms=50000",
    ),
    (
        CONFIGS,
        "--bootstrap-server BROKER --describe --entity-type groups --entity-name g",
    ),
    (QUORUM, "--bootstrap-server BROKER describe --status"),
    (QUORUM, "--bootstrap-server BROKER describe --replication"),
    (
        QUORUM,
        "--bootstrap-server BROKER describe --replication --human-readable",
    ),
    (
        QUORUM,
        "--bootstrap-controller CONTROLLER describe --status",
    ),
    (
        QUORUM,
        "--bootstrap-controller CONTROLLER describe --replication",
    ),
    (FEATURES, "--bootstrap-server BROKER describe"),
    (FEATURES, "--bootstrap-controller CONTROLLER describe"),
    (
        FEATURES,
        "--bootstrap-server BROKER upgrade --feature group.version=1",
    ),
    (
        FEATURES,
        "--bootstrap-server BROKER downgrade --feature group.version=0 --dry-run",
    ),
    (
        FEATURES,
        "--bootstrap-controller CONTROLLER upgrade --feature nosuch.version=1",
    ),
    (CLUSTER, "cluster-id --bootstrap-server BROKER"),
    (CLUSTER, "cluster-id --bootstrap-controller CONTROLLER"),
    (CLUSTER, "list-endpoints --bootstrap-server BROKER"),
    (CLUSTER, "list-endpoints --bootstrap-controller CONTROLLER"),
    (CLUSTER, "unregister --bootstrap-server BROKER --id 77"),
    (
        CLUSTER,
        "list-endpoints --bootstrap-server BROKER --include-fenced-brokers",
    ),
];

#[test]
fn the_tools_say_of_kraftd_what_they_say_of_javas_controller() {
    compare(&COMMANDS, &[], &ALLOWED);
}

#[test]
fn the_tools_say_of_kraftds_loggers_what_they_say_of_those_of_javas_controller() {
    compare(&LOGGER_COMMANDS, &[], &[]);
}

/// The tool for access control entries, through a broker and straight to the controller.
#[test]
fn the_acl_tool_says_of_kraftd_what_it_says_of_javas_controller() {
    compare(&ACL_COMMANDS, &AUTHORIZER, &[]);
}

/// The same tool where nobody is authorized.
#[test]
fn the_acl_tool_is_told_that_there_is_no_authorizer() {
    compare(&ACL_COMMANDS[..6], &[], &[]);
}

/// Plays the commands on clusters with these lines in the files of controller and broker.
fn compare(commands: &[(&str, &str)], lines: &[&str], allowed: &[&str]) {
    let java = play(Kind::Java("4.4.0"), commands, lines, &[]);
    let kraftd = play(Kind::under_test(), commands, lines, &java);
    let mut differences = String::new();
    for ((command, expected), (_, found)) in java.iter().zip(&kraftd) {
        let difference = difference(expected, found);
        if !difference.is_empty() && !allowed.contains(&command.as_str()) {
            differences += &format!("$ {command}\n{difference}");
        }
    }
    assert!(
        differences.is_empty(),
        "- Java's controller, + kraftd\n{differences}"
    );
    let unused = allowed.iter().filter(|allowed| {
        let mut pairs = java.iter().zip(&kraftd);
        !pairs.any(|((command, java), (_, kraftd))| command == **allowed && java != kraftd)
    });
    assert_eq!(
        unused.count(),
        0,
        "a difference is gone: take it off ALLOWED and FINDINGS.md"
    );
}

/// A command with the normal form of what it printed.
type Answer = (String, Vec<String>);

/// Plays the commands on a new cluster.
fn play(kind: Kind, commands: &[(&str, &str)], lines: &[&str], expected: &[Answer]) -> Vec<Answer> {
    let mut setup = Setup::new();
    for line in lines {
        setup.add_controller_line(line);
        setup.add_broker_line(line);
    }
    setup.format(kind, &[]);
    let _controller = setup.start_controller(kind);
    let _broker = setup.start_broker("4.4.0");
    let mut driver = Driver::start();
    let normal = Normal::new(&setup)
        .with(
            r"(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|Epoch):(\s*)-?\d+",
            "$1:$2<n>",
        )
        // Offsets, lags and times of the replication table.
        .with(
            r"^(\d+\s+\S+)\s+\d+\s+-?\d+\s+.*?(Leader|Follower|Observer)$",
            "$1 ... $2",
        );
    let mut answers = Vec::new();
    for (i, (tool, line)) in commands.iter().enumerate() {
        let short = tool.rsplit('.').next().unwrap_or(tool);
        let line = line.replace("BROKER", &setup.broker_address());
        let line = line.replace("CONTROLLER", &setup.controller_address());
        let reads = ["--list", "describe", "list-endpoints"]
            .iter()
            .any(|word| line.contains(word));
        let words: Vec<&str> = line.split(' ').collect();
        let mut lines = Vec::new();
        // The broker applies changes a moment after they are acknowledged: what is read is final
        // when it is what the other cluster said, or when it stays the same.
        for round in 0..20 {
            let again = printed(&mut driver, tool, &words, &normal, reads);
            let settled = expected
                .get(i)
                .map_or(round > 0 && again == lines, |(_, e)| *e == again);
            lines = again;
            if !reads || settled {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        answers.push((format!("{short} {}", commands[i].1), lines));
    }
    answers
}

/// What one command printed: its lines in normal form, sorted where a tool's hash map orders them.
fn printed(
    driver: &mut Driver,
    tool: &str,
    words: &[&str],
    normal: &Normal,
    sorted: bool,
) -> Vec<String> {
    let output = driver.tool(tool, words);
    let out = output
        .out
        .iter()
        .map(|line| format!("out| {}", normal.line(line)));
    // Of an exception its own line counts; the stack is that of the helper JVM.
    let told = output
        .err
        .iter()
        .filter(|line| !line.starts_with("\tat ") && !line.is_empty());
    let err = told.map(|line| format!("err| {}", normal.line(line)));
    let mut lines: Vec<String> = out.chain(err).collect();
    if tool == ACLS {
        // This one prints sets of entries and maps of them.
        for line in &mut lines {
            *line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    if sorted || tool == ACLS {
        lines.sort();
    }
    lines.push(format!("exit| {}", output.code));
    lines
}
