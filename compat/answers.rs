//! Requests that were recorded against Java's controller, sent to the one under test: the answers
//! are the same, code by code and text by text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Driver, Kind, Setup};
use crate::normal::Normal;

/// Recorded answers, one folder of `fixtures/`.
const RECORDED: &str = "fixtures/4.4.0/answers";

/// Cases that are answered otherwise, on purpose: API and case. FINDINGS.md has the reasons.
const ALLOWED: &[(&str, &str)] = &[
    // Java's controller meets an error of its own and resigns.
    ("IncrementalAlterConfigs", "append without a value"),
    ("IncrementalAlterConfigs", "unknown operation"),
    ("AlterPartition", "recovery state unknown"),
    ("ControllerRegistration", "unknown security protocol"),
    // Java registers it; kraftd does not, and has nothing to unregister then.
    ("BrokerRegistration", "a broker's id below zero"),
    ("UnregisterBroker", "the broker below zero is unregistered"),
    ("BrokerRegistration", "a broker's least id"),
    ("UnregisterBroker", "the least broker is unregistered"),
    ("ControllerRegistration", "a controller's id below zero"),
    (
        "UnregisterController",
        "the controller below zero is unregistered",
    ),
    // Java 4.4.0 fails to encode each of its FetchSnapshot errors.
    ("FetchSnapshot", "another topic"),
    ("FetchSnapshot", "another partition"),
    ("FetchSnapshot", "leader epoch too new"),
    ("FetchSnapshot", "leader epoch too old"),
    ("FetchSnapshot", "unknown snapshot"),
    ("FetchSnapshot", "the bootstrap snapshot"),
    ("FetchSnapshot", "position behind the end"),
    ("FetchSnapshot", "position below zero"),
    ("FetchSnapshot", "bytes below zero"),
    ("FetchSnapshot", "bytes zero"),
    ("FetchSnapshot", "no cluster id"),
    // Java's controller stops itself.
    ("BeginQuorumEpoch", "another leader in the same epoch"),
    // Java's controller advertises it and has no handler for it.
    ("DescribeUserScramCredentials", "describe one user"),
    ("DescribeUserScramCredentials", "describe all users"),
    // Java's controller meets an error of its own and has no words for it.
    ("AlterUserScramCredentials", "empty salted password"),
    (
        "AlterUserScramCredentials",
        "empty salted password among others",
    ),
    // The loggers of a process are its own, and their list is told to those who miss one.
    ("DescribeConfigs", "all loggers"),
    ("IncrementalAlterConfigs", "set an unknown logger"),
    (
        "IncrementalAlterConfigs",
        "set an unknown logger to an unknown level",
    ),
    ("IncrementalAlterConfigs", "set a logger of no name"),
    ("IncrementalAlterConfigs", "delete an unknown logger"),
    ("IncrementalAlterConfigs", "a good and a bad one"),
    ("IncrementalAlterConfigs", "set ROOT"),
    ("IncrementalAlterConfigs", "delete ROOT"),
    // Java's controller meets an error of its own.
    ("IncrementalAlterConfigs", "a logger set without a value"),
    // Documentation texts are Kafka's own.
    ("DescribeConfigs", "topic, one key, documented"),
];

/// Lines of a table that the controller's configuration gets.
const CONFIG: &str = "# config: ";

/// One line of a table: what was asked, and what was answered.
#[derive(Debug)]
struct Case {
    title: String,
    api: String,
    version: String,
    answer: String,
}

fn cases(text: &str) -> Vec<Case> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let cell = |i: usize| cells.get(i).copied().unwrap_or_default().to_owned();
            Case {
                title: cell(0),
                api: cell(1),
                version: cell(2),
                answer: cell(4),
            }
        })
        .collect()
}

/// Sends a recorded table's requests to a new cluster under test; recorded and new answers.
fn replay(table: &str) -> (Vec<Case>, Vec<Case>, Normal) {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(RECORDED)
        .join(table);
    let kind = Kind::under_test();
    let mut setup = Setup::new();
    let text = fs::read_to_string(&recorded).expect("a table");
    for line in text.lines().filter_map(|line| line.strip_prefix(CONFIG)) {
        setup.add_controller_line(line);
    }
    setup.format(kind, &[]);
    let _controller = setup.start_controller(kind);
    let _broker = setup.start_broker("4.4.0");
    let answers = setup.path(table);
    let port = setup.controller_port.to_string();
    let (from, to) = (
        recorded.display().to_string(),
        answers.display().to_string(),
    );
    Driver::start().job(&["replay", "localhost", &port, &from, &to]);
    let read = |path: &Path| cases(&fs::read_to_string(path).expect("a table"));
    // Epochs of brokers are offsets of the log; records are counted, their bytes are their own.
    let offsets = "finalizedFeaturesEpoch|highWatermark|logEndOffset|endOffset|\
                   lastFetchTimestamp|lastCaughtUpTimestamp";
    let normal = Normal::new(&setup)
        .with(
            r#""Request [^"]* needs (\w+) permission"#,
            r#""Request needs $1 permission"#,
        )
        .with(r#""port":(\d+|<\w+>)"#, r#""port":0"#)
        .with(
            &format!(r#""(brokerEpoch|recordsSizeInBytes|{offsets})":-?\d+"#),
            r#""$1":0"#,
        );
    (read(&recorded), read(&answers), normal)
}

fn compare(table: &str) {
    let (recorded, answered, normal) = replay(table);
    assert_eq!(recorded.len(), answered.len());
    let mut differences = Vec::new();
    for (java, kraftd) in recorded.iter().zip(&answered) {
        let (expected, found) = (normal_form(&normal, java), normal_form(&normal, kraftd));
        let allowed = ALLOWED.contains(&(java.api.as_str(), java.title.as_str()));
        if (expected != found) != allowed {
            differences.push(format!(
                "{} v{}, {}:\n- {expected}\n+ {found}",
                java.api, java.version, java.title
            ));
        }
    }
    let count = differences.len();
    let told = differences.join("\n");
    assert!(
        count == 0,
        "{count} cases differ (or no longer do): - Java, + kraftd\n{told}"
    );
}

/// The answer with what differs from run to run replaced, and lists sorted: Java's are in the
/// order of hash maps.
fn normal_form(normal: &Normal, case: &Case) -> String {
    let line = normal.line(&case.answer).replace("<ms>", "0");
    match serde_json::from_str::<Value>(&line) {
        Ok(mut value) => {
            sort(&mut value);
            value.to_string()
        }
        Err(_) => line,
    }
}

/// Sorts every list of objects.
pub(crate) fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort);
            if items.iter().all(Value::is_object) {
                items.sort_by_key(Value::to_string);
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(sort),
        _ => {}
    }
}

#[test]
fn admin_requests_good_and_bad_are_answered_as_javas_controller_answers() {
    compare("admin-errors.tsv");
}

#[test]
fn requests_for_quotas_and_users_are_answered_as_javas_controller_answers() {
    compare("quotas-and-scram.tsv");
}

#[test]
fn requests_about_access_control_entries_are_answered_as_javas_controller_answers() {
    compare("acls.tsv");
    compare("acls-without-authorizer.tsv");
}

#[test]
fn requests_about_loggers_are_answered_as_javas_controller_answers() {
    compare("loggers.tsv");
    compare("loggers-denied.tsv");
}

#[test]
fn who_may_not_ask_is_told_so_as_by_javas_controller() {
    compare("denied.tsv");
}

#[test]
fn brokers_requests_good_and_bad_are_answered_as_javas_controller_answers() {
    compare("broker-requests.tsv");
}

#[test]
fn nodes_with_ids_below_zero_are_not_registered_as_javas_controller_does() {
    compare("ids-below-zero.tsv");
}

#[test]
fn elections_and_reassignments_are_answered_as_javas_controller_answers() {
    compare("elections.tsv");
}

#[test]
fn requests_that_are_late_or_too_large_are_answered_as_javas_controller_answers() {
    compare("deadlines.tsv");
}

#[test]
fn requests_about_tokens_are_answered_as_javas_controller_answers() {
    compare("token-requests.tsv");
}

#[test]
fn raft_requests_good_and_bad_are_answered_as_javas_controller_answers() {
    compare("raft-requests.tsv");
}

#[test]
fn the_raw_api_versions_answers_are_javas_api_by_api() {
    let (recorded, answered, _) = replay("api-versions.tsv");
    let mut differences = Vec::new();
    for (java, kraftd) in recorded.iter().zip(&answered) {
        let (expected, found) = (parsed(&java.answer), parsed(&kraftd.answer));
        for (key, range) in &expected.apis {
            if found.apis.get(key) != Some(range) {
                let other = found.apis.get(key);
                differences.push(format!("{}: API {key}: {range} and {other:?}", java.title));
            }
        }
        let extra = found
            .apis
            .keys()
            .filter(|key| !expected.apis.contains_key(*key));
        differences.extend(extra.map(|key| format!("{}: API {key} is not Java's", java.title)));
        if expected.rest != found.rest {
            differences.push(format!(
                "{}:\n- {}\n+ {}",
                java.title, expected.rest, found.rest
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// An ApiVersions answer: the version range of each API, and everything else.
struct Versions {
    apis: BTreeMap<String, String>,
    rest: Value,
}

fn parsed(answer: &str) -> Versions {
    let mut rest: Value = serde_json::from_str(answer).expect("an answer in JSON");
    let keys = rest["apiKeys"].take();
    let apis = keys.as_array().into_iter().flatten().map(|api| {
        (
            api["apiKey"].to_string(),
            format!("{}-{}", api["minVersion"], api["maxVersion"]),
        )
    });
    let apis = apis.collect();
    // The epoch of the finalized features is an offset of the log.
    if let Some(epoch) = rest.get_mut("finalizedFeaturesEpoch") {
        *epoch = Value::from(0);
    }
    for list in ["supportedFeatures", "finalizedFeatures"] {
        if let Some(Value::Array(features)) = rest.get_mut(list) {
            features.sort_by_key(|feature| feature["name"].to_string());
        }
    }
    Versions { apis, rest }
}
