//! Whole files: kraftd's decision beside Java's, and what the findings say.

use super::*;

/// One case of `decisions.txt`.
#[derive(Default)]
struct Case {
    title: String,
    alone: bool,
    lines: Vec<String>,
    without: Vec<String>,
    overrides: Vec<String>,
    files: Vec<(String, String)>,
    asked: Vec<(String, String)>,
    accepted: bool,
}

fn cases() -> (Vec<String>, Vec<Case>) {
    let text = std::fs::read_to_string("fixtures/4.4.0/config/decisions.txt").unwrap();
    let mut base = Vec::new();
    let mut cases = Vec::new();
    for block in text.split("\n\n") {
        let mut case = Case::default();
        let mut answers = Vec::new();
        let mut decided = false;
        for line in block.lines() {
            let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.to_owned();
            match mark {
                "#" => case.title = rest,
                "base|" => base.push(rest),
                "alone|" => case.alone = true,
                "config|" => case.lines.push(rest),
                "without|" => case.without.push(rest),
                "override|" => case.overrides.push(rest),
                "write|" => {
                    let (name, text) = rest.split_once(' ').unwrap();
                    case.files.push((name.to_owned(), text.to_owned()));
                }
                "?" => case.asked.push((rest, String::new())),
                "=" => answers.push(rest),
                "accept|" | "refuse|" => {
                    decided = true;
                    case.accepted = mark == "accept|";
                }
                _ => panic!("{line}"),
            }
        }
        for (asked, answer) in case.asked.iter_mut().zip(answers) {
            asked.1 = answer;
        }
        if decided {
            cases.push(case);
        }
    }
    (base, cases)
}

impl Case {
    fn read(&self, base: &[String], dir: &str) -> Vec<(String, String)> {
        let mut lines = if self.alone {
            Vec::new()
        } else {
            base.to_vec()
        };
        lines.extend_from_slice(&self.lines);
        let text = lines.join("\n").replace("<dir>", dir);
        let mut pairs = properties::parse(text.as_bytes(), Charset::Latin1).unwrap();
        pairs.retain(|(key, _)| !self.without.contains(key));
        pairs
    }

    fn load(&self, base: &[String], purpose: Purpose) -> Result<Loaded, Vec<Finding>> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in &self.files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let dir = dir.path().to_str().unwrap();
        let environment = |name: &str| (name == "KRAFTD_RECORD").then(|| "env.example".to_owned());
        assemble(purpose, self.read(base, dir), &self.overrides, &environment)
    }
}

/// Where kraftd does not start although Java does, and why.
const STRICTER: [(&str, &str); 5] = [
    (
        "listener named after a secure protocol",
        "TLS is not built yet",
    ),
    ("controller listener with TLS", "TLS is not built yet"),
    ("controller listener with SASL", "SASL is not built yet"),
    ("only the broker role", "kraftd is no broker"),
    ("both roles", "kraftd is no broker"),
];

/// Ports that Java takes in its configuration and fails to bind a moment later.
const BINDS: [&str; 2] = [
    "listener with a port out of range",
    "listener with a negative port",
];

/// Where kraftd starts although Java does not: keys that only the broker role reads.
const MILDER: [&str; 3] = [
    "cleaner buffer too small",
    "replica fetch wait too long",
    "broker key that is no number",
];

#[test]
fn kraftd_starts_with_the_files_that_java_starts_with() {
    let (base, cases) = cases();
    assert!(cases.len() > 150);
    for case in &cases {
        let stricter = STRICTER.iter().any(|(title, _)| *title == case.title)
            || BINDS.contains(&case.title.as_str());
        let milder = MILDER.contains(&case.title.as_str());
        let expected = (case.accepted && !stricter) || milder;
        assert!(
            !stricter || case.accepted,
            "{} is no difference",
            case.title
        );
        assert!(
            !(milder && case.accepted),
            "{} is no difference",
            case.title
        );
        let found = case.load(&base, Purpose::Start);
        assert_eq!(found.is_ok(), expected, "{}: {found:#?}", case.title);
    }
}

#[test]
fn format_takes_the_files_that_java_formats_with() {
    let (base, cases) = cases();
    // Java cannot load these classes; kraftd cannot load any.
    let plugins = [
        "policy class that is not there",
        "provider class that is not there",
    ];
    for case in &cases {
        let title = case.title.as_str();
        if BINDS.contains(&title) || MILDER.contains(&title) || plugins.contains(&title) {
            continue;
        }
        let found = case.load(&base, Purpose::Storage);
        assert_eq!(found.is_ok(), case.accepted, "{title}: {found:#?}");
    }
}

fn endpoints(endpoints: &[Endpoint]) -> String {
    let text = endpoints.iter().map(|e| {
        let host = e.host.as_deref().unwrap_or_default();
        format!("{}://{host}:{}", e.name, e.port)
    });
    text.collect::<Vec<_>>().join(",")
}

fn voters(voters: &std::collections::BTreeMap<crate::types::NodeId, HostPort>) -> String {
    let text = voters
        .iter()
        .map(|(id, v)| format!("{id}={}/<unresolved>:{}", v.host, v.port));
    format!("{{{}}}", text.collect::<Vec<_>>().join(", "))
}

#[test]
fn kraftd_makes_of_a_file_what_java_makes_of_it() {
    let (base, cases) = cases();
    let mut compared = 0;
    for case in cases.iter().filter(|case| case.accepted) {
        let dir_of = |text: String, config: &Config| {
            let dir = config.log_dirs[0].parent().unwrap().to_str().unwrap();
            text.replace(dir, "<dir>")
        };
        let loaded = case.load(&base, Purpose::Storage);
        let Ok(Loaded { config, .. }) = loaded else {
            continue;
        };
        for (key, expected) in &case.asked {
            let value = match key.as_str() {
                "advertised" => endpoints(&config.advertised_listeners),
                "voters" => voters(&config.quorum.voters),
                key => match key.strip_prefix("topic:") {
                    Some(topic) => config.topic_defaults[topic].clone(),
                    None => config.effective[key]
                        .clone()
                        .map_or_else(|| "null".to_owned(), |v| v.0),
                },
            };
            assert_eq!(&dir_of(value, &config), expected, "{}: {key}", case.title);
            compared += 1;
        }
    }
    assert!(compared > 50);
}

pub(super) fn load_lines(lines: &[&str]) -> Result<Loaded, Vec<Finding>> {
    let (base, _) = cases();
    let case = Case {
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        ..Case::default()
    };
    case.load(&base, Purpose::Start)
}

pub(super) fn texts(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn every_finding_of_a_file_is_told_at_once() {
    let findings = load_lines(&[
        "num.partitions=0",
        "delete.topic.enable=maybe",
        "authorizer.class.name=x",
        "controller.quorum.voters=2@localhost:9093",
        "no.such.key=1",
    ])
    .unwrap_err();
    let text = texts(&findings);
    for part in [
        "num.partitions=0: must be from 1 to 2147483647; correct it, or remove it for the default",
        "delete.topic.enable=maybe: must be true or false; correct it",
        "authorizer.class.name=x: authorizers are Java plugins, kraftd has only the one of Kafka",
        "controller.quorum.voters=2@localhost:9093: must have this controller's node.id 1; \
         add 1@host:port, or correct node.id",
        "no.such.key: nothing reads it; correct the name or remove it",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn unknown_and_broker_keys_are_warned_of_once_each() {
    let loaded = load_lines(&[
        "no.such.key=1",
        "replica.fetch.max.bytes=7",
        "replica.fetch.min.bytes=much",
        "zookeeper.connect=a",
    ]);
    let warnings = loaded.unwrap().warnings;
    for key in [
        "no.such.key",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "zookeeper.connect",
    ] {
        let count = warnings.iter().filter(|finding| finding.key == key).count();
        assert_eq!(count, 1, "{key}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let shown = |result: Result<Loaded, Vec<Finding>>| match result {
        Ok(loaded) => format!("{}{:?}", texts(&loaded.warnings), loaded.config),
        Err(findings) => texts(&findings),
    };
    for line in [
        "delegation.token.secret.key=hush",
        "ssl.keystore.password=hush",
        "listener.name.controller.sasl.jaas.config=hush",
        "listener.name.controller.scram-sha-512.sasl.jaas.config=hush",
        "listener.name.other.ssl.key.password=hush",
        "my.plugin.password=hush",
        "password.encoder.secret=hush",
        "delegation.token.master.key=hush",
    ] {
        let text = shown(load_lines(&[line]));
        assert!(!text.contains("hush"), "{line}: {text}");
    }
}

#[test]
fn a_value_from_a_provider_is_shown_as_it_is_written() {
    let findings = load_lines(&[
        "config.providers=env",
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "num.partitions=${env:KRAFTD_RECORD}",
    ])
    .unwrap_err();
    let text = texts(&findings);
    assert!(
        text.contains("num.partitions=${env:KRAFTD_RECORD}: must be a whole number"),
        "{text}"
    );
    assert!(!text.contains("env.example"));
}

#[test]
fn a_plaintext_controller_listener_that_others_reach_is_warned_of() {
    let warned = |listener: &str| {
        let loaded = load_lines(&[listener]).unwrap();
        texts(&loaded.warnings).contains("whoever reaches it controls the cluster")
    };
    for open in [
        "CONTROLLER://:9093",
        "CONTROLLER://0.0.0.0:9093",
        "CONTROLLER://10.0.0.1:9093",
    ] {
        assert!(warned(&format!("listeners={open}")), "{open}");
    }
    for closed in ["CONTROLLER://localhost:9093", "CONTROLLER://[::1]:9093"] {
        assert!(!warned(&format!("listeners={closed}")), "{closed}");
    }
}

#[test]
fn two_voters_are_said_to_tolerate_no_failure() {
    let loaded = load_lines(&["controller.quorum.voters=1@a:1,2@b:1"]).unwrap();
    let text = texts(&loaded.warnings);
    assert!(text.contains("2 voters tolerate 0 failures"), "{text}");
}

/// The first sentence has to be about what is to be changed: what follows from it is not told.
#[test]
fn a_cause_is_told_without_what_follows_from_it() {
    for (lines, start) in [
        (
            &["controller.listener.names=X"][..],
            "controller.listener.names=X: has X, which is no listener of listeners;",
        ),
        (
            &["process.roles=broker"],
            "process.roles=broker: kraftd runs only",
        ),
    ] {
        let found = load_lines(lines).unwrap_err();
        let refusing: Vec<_> = found.into_iter().filter(Finding::refuses).collect();
        assert_eq!(refusing.len(), 1, "{refusing:#?}");
        assert!(texts(&refusing).starts_with(start), "{refusing:#?}");
    }
}

#[test]
fn limits_of_one_listener_are_its_own() {
    let loaded = load_lines(&[
        "listener.name.controller.max.connections=5",
        "max.connection.creation.rate=9",
    ]);
    let config = loaded.unwrap().config;
    assert_eq!(config.listeners[0].connections_max, 5);
    assert_eq!(config.listeners[0].connection_rate_max, 2_147_483_647);
    assert_eq!(config.sockets.connections_max, 2_147_483_647);
    assert_eq!(config.sockets.connection_rate_max, 9);
    let findings = load_lines(&["listener.name.controller.max.connections=-5"]).unwrap_err();
    assert!(texts(&findings).contains("max.connections=-5: must be from 0 to 2147483647"));
    let warnings = load_lines(&["listener.name.CONTROLLER.max.connections=5"])
        .unwrap()
        .warnings;
    assert!(texts(&warnings).contains("there is no listener \"CONTROLLER\""));
}

#[test]
fn typed_fields_have_javas_defaults() {
    let config = load_lines(&[]).unwrap().config;
    assert_eq!(config.quorum.election_timeout_ms, 1000);
    assert_eq!(config.quorum.fetch_timeout_ms, 2000);
    assert_eq!(config.metadata_log.segment_bytes, 1_073_741_824);
    assert_eq!(config.metadata_log.batch_bytes_max, 8_388_608);
    assert_eq!(config.snapshots.interval_ms, Some(3_600_000));
    assert_eq!(config.snapshots.record_bytes_between, 20_971_520);
    assert_eq!(config.controller.idle_interval_ms, Some(500));
    assert_eq!(config.controller.session_timeout_ms, 9000);
    assert_eq!(config.controller.rebalance_interval_ms, Some(300_000));
    assert_eq!(config.sockets.request_bytes_max, 104_857_600);
    assert_eq!(config.sockets.queued_request_bytes_max, None);
    assert_eq!(config.sockets.idle_ms_max, Some(600_000));
    assert_eq!(config.metadata_log_dir, config.log_dirs[0]);
    assert_eq!(config.roles, [Role::Controller]);
    let config = load_lines(&[
        "metadata.max.idle.interval.ms=0",
        "metadata.log.max.snapshot.interval.ms=0",
        "auto.leader.rebalance.enable=false",
        "connections.max.idle.ms=-1",
        "metadata.log.dir=/m",
        "internal.metadata.log.segment.bytes=1024",
    ])
    .unwrap()
    .config;
    assert_eq!(config.controller.idle_interval_ms, None);
    assert_eq!(config.snapshots.interval_ms, None);
    assert_eq!(config.controller.rebalance_interval_ms, None);
    assert_eq!(config.sockets.idle_ms_max, None);
    assert_eq!(config.metadata_log_dir, Path::new("/m"));
    assert_eq!(config.metadata_log.segment_bytes, 1024);
}

#[test]
fn a_file_that_is_missing_or_malformed_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let missing = load(&dir.path().join("none"), &[]).unwrap_err();
    assert!(texts(&missing).contains("none: the configuration cannot be read"));
    let path = dir.path().join("server.properties");
    std::fs::write(&path, "a=1\nb=\\u00g0\n").unwrap();
    let malformed = load(&path, &[]).unwrap_err();
    assert!(texts(&malformed).contains("server.properties: line 2: "));
}

#[test]
fn policies_are_given_as_rules() {
    let create = "kraftd.create.topic.policy";
    let alter = "kraftd.alter.config.policy";
    let loaded = load_lines(&[
        &format!("{create}.max.partitions=100"),
        &format!("{create}.replication.factor.min=2"),
        &format!("{create}.name.pattern=[a-z.]+"),
        &format!("{alter}.allowed.keys=retention.ms, cleanup.policy"),
        &format!("{alter}.range.retention.ms=3600000.."),
        &format!("{alter}.resources=TOPIC,GROUP"),
    ])
    .unwrap();
    let rules = &loaded.config.create_topic_rules;
    assert_eq!(
        (rules.partitions_max, rules.replication_min),
        (Some(100), Some(2))
    );
    let rules = &loaded.config.alter_config_rules;
    assert_eq!(rules.resources, [2, 32].into());
    assert_eq!(rules.allowed_keys.as_ref().map_or(0, |keys| keys.len()), 2);
    assert!(rules.ranges["retention.ms"].allows("3600000"));
    for (line, words) in [
        (format!("{create}.max.partitions=0"), "at least 1"),
        (format!("{create}.name.pattern=("), "regular expression"),
        (
            format!("{create}.max.partition=5"),
            "no key of kraftd has this name",
        ),
        (
            format!("{alter}.resources=TOPICS"),
            "must be a list of TOPIC",
        ),
        (format!("{alter}.range.retention.ms=2..1"), "minimum above"),
        (format!("{alter}.range.=1..2"), "no key of kraftd"),
        (
            "create.topic.policy.class.name=com.example.Policy".to_owned(),
            "give rules instead",
        ),
        (
            "alter.config.policy.class.name=com.example.Policy".to_owned(),
            "give rules instead",
        ),
    ] {
        let text = texts(&load_lines(&[&line]).unwrap_err());
        assert!(text.contains(words), "{line}: {text}");
    }
}

#[test]
fn policies_that_cannot_be_meant_are_refused() {
    let create = "kraftd.create.topic.policy";
    let alter = "kraftd.alter.config.policy";
    let brokers = format!("{alter}.resources=BROKER");
    for (lines, words) in [
        (vec![format!("{create}.name.pattern=")], "must not be empty"),
        (
            vec![format!("{create}.replication.factor.min=40000")],
            "not be above 32767",
        ),
        (vec![format!("{alter}.allowed.keys=")], "at least one"),
        (vec![format!("{alter}.denied.keys= , ")], "at least one"),
        (vec![format!("{alter}.resources=")], "at least one"),
        (
            vec![
                format!("{alter}.allowed.keys=retention.ms,segment.ms"),
                format!("{alter}.denied.keys=segment.ms"),
            ],
            "has segment.ms, which kraftd.alter.config.policy.allowed.keys has, too",
        ),
        (
            vec![format!("{alter}.range.cleanup.policy=1..2")],
            "cleanup.policy, whose values are no numbers",
        ),
        (
            vec![format!("{create}.name.pattern=^orders .*$")],
            "matches no name that a topic can have",
        ),
        (
            vec![format!("{alter}.range.min.insync.replicas=-5..0")],
            "has no value that min.insync.replicas can have, which is from 1 to",
        ),
        (
            vec![format!("{alter}.range.min.cleanable.dirty.ratio=2..")],
            "has no value that min.cleanable.dirty.ratio can have, which is from 0 to 1",
        ),
        (
            vec![format!("{alter}.range.num.io.threads=..0"), brokers.clone()],
            "has no value that num.io.threads can have",
        ),
        (vec![brokers.clone()], "has no rule to be about"),
        (
            vec![format!("{alter}.range.listeners=1..2"), brokers.clone()],
            "listeners, whose values are no numbers",
        ),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = texts(&load_lines(&lines).unwrap_err());
        assert!(text.contains(words), "{lines:?}: {text}");
    }
}

#[test]
fn keys_of_policies_that_no_resource_has_are_warned_of() {
    let alter = "kraftd.alter.config.policy";
    let brokers = format!("{alter}.resources=BROKER");
    for (lines, words) in [
        (
            vec![format!("{alter}.allowed.keys=retention.ms,no.such.key")],
            "has no.such.key, which is no key of TOPIC in Kafka 4.4",
        ),
        (
            vec![format!("{alter}.denied.keys=num.io.threads")],
            "has num.io.threads, which is no key of TOPIC",
        ),
        (
            vec![format!("{alter}.range.no.such.key=1..2")],
            "has no.such.key, which is no key of TOPIC",
        ),
        (
            vec![
                format!("{alter}.denied.keys=retention.ms"),
                format!("{alter}.range.retention.ms=1..2"),
            ],
            "let nobody set retention.ms",
        ),
        (
            vec![format!("{alter}.range.retention.ms=1..2"), brokers.clone()],
            "has retention.ms, which is no key of BROKER",
        ),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = texts(&load_lines(&lines).unwrap().warnings);
        assert!(text.contains(words), "{lines:?}: {text}");
    }
    let known = [
        format!("{alter}.range.listener.name.x.max.connections=1.."),
        format!("{alter}.range.leader.replication.throttled.rate=1.."),
        format!("{alter}.range.num.io.threads=1..8"),
        format!("{alter}.denied.keys=listener.name.x.plain.sasl.jaas.config"),
        brokers,
    ];
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let warnings = texts(&load_lines(&known).unwrap().warnings);
    assert!(!warnings.contains("no key of"), "{warnings}");
}
