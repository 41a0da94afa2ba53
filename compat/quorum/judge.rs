//! What must hold when all is over, whatever happened: one leader an epoch, every acknowledged
//! topic and config kept, and the same committed records on every disk, as Kafka's own
//! `kafka-dump-log` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Cluster;
use crate::harness::{kraftd, run, until};

const DUMP: &str = "org.apache.kafka.tools.DumpLogSegments";

/// A batch as the dump tool prints it, without its position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Batch {
    base: i64,
    last: i64,
    epoch: i32,
    header: String,
    records: Vec<String>,
}

/// What the clients were told.
#[derive(Debug, Default)]
struct Told {
    topics: BTreeSet<String>,
    /// Values by topic and key.
    configs: BTreeMap<(String, String), String>,
    failures: Vec<String>,
}

impl Told {
    fn new(lines: &[String]) -> Self {
        let mut told = Self::default();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["topic", name] => drop(told.topics.insert(name.to_owned())),
                ["config", name, key, value] => {
                    let key = (name.to_owned(), key.to_owned());
                    told.configs.insert(key, value.to_owned());
                }
                ["failure", ..] => told.failures.push(line.clone()),
                ["retry" | "longest", ..] => eprintln!("clients: {line}"),
                _ => panic!("not a line of the clients: {line}"),
            }
        }
        told
    }
}

impl Cluster {
    /// Ends the clients and everything else, and judges what they were told and what is on disk.
    #[track_caller]
    pub(super) fn judge(mut self) {
        self.quorum.until_caught_up();
        let told = Told::new(&self.driver.job(&["load-stop"]));
        assert!(told.failures.is_empty(), "{:#?}", told.failures);
        assert!(told.configs.len() > 10, "the clients worked");
        self.expect_kept_by_broker(&told);
        let committed = self.quorum.until_caught_up();
        let ids = self.quorum.ids();
        self.quorum.kill_all();
        let logs: BTreeMap<i32, Vec<Batch>> = ids
            .iter()
            .map(|id| (*id, self.dumped(&self.quorum.metadata_dir(*id))))
            .collect();
        let compared = compare(&logs, committed);
        self.expect_one_leader_an_epoch(&logs);
        for id in ids {
            let state = expect_kept_on_disk(&told, &self.quorum.log_dir(id));
            for registered in self.quorum.ids() {
                let controller = &state["cluster"]["controllers"][registered.to_string()];
                assert!(
                    controller.is_object(),
                    "{registered} is not registered, says {id}"
                );
            }
        }
        let epochs = self.quorum.leaders.len();
        let (topics, configs) = (told.topics.len(), told.configs.len());
        eprintln!(
            "{topics} topics and {configs} configs kept, {compared} batches up to {committed} the \
             same on every disk, {epochs} leaders seen"
        );
    }

    /// The broker follows what is committed.
    #[track_caller]
    fn expect_kept_by_broker(&mut self, told: &Told) {
        let address = self.quorum.broker_address();
        let mut missing = Vec::new();
        let limit = Duration::from_secs(30);
        until("the broker knows what was acknowledged", limit, || {
            let rows = self.driver.job(&["topics", &address]);
            let known: BTreeMap<&str, &str> =
                rows.iter().filter_map(|row| row.split_once(' ')).collect();
            missing = told.topics.iter().map(String::as_str).collect();
            missing.retain(|name| !known.contains_key(name));
            for ((name, key), value) in &told.configs {
                let own = known.get(name.as_str()).map_or("", |row| row);
                if !own.split(' ').any(|it| {
                    it.strip_prefix(key)
                        .is_some_and(|it| it == format!("={value}"))
                }) {
                    missing.push(name);
                }
            }
            missing.is_empty()
        });
    }

    /// The log of a directory, read by Java's tool.
    #[track_caller]
    fn dumped(&mut self, dir: &Path) -> Vec<Batch> {
        let entries = fs::read_dir(dir).expect("a metadata directory");
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|it| it == "log"))
            .collect();
        files.sort();
        let names: Vec<&str> = files.iter().filter_map(|it| it.to_str()).collect();
        let args = ["--cluster-metadata-decoder", "--files", &names.join(",")];
        let output = self.driver.tool(DUMP, &args);
        assert_eq!(output.code, 0, "{output:?}");
        let mut batches: Vec<Batch> = Vec::new();
        for line in &output.out {
            if line.starts_with("baseOffset: ") {
                assert!(line.contains("isvalid: true"), "{line}");
                batches.push(header(line).unwrap_or_else(|| panic!("{line}")));
            } else if line.starts_with("| offset: ") {
                let batch = batches.last_mut().expect("a record is in a batch");
                batch.records.push(line.clone());
            }
        }
        batches
    }

    /// Every LeaderChange on any disk, and every leader that said so of itself.
    #[track_caller]
    fn expect_one_leader_an_epoch(&self, logs: &BTreeMap<i32, Vec<Batch>>) {
        let mut leaders = self.quorum.leaders.clone();
        let mut changes = 0;
        for (id, batch) in logs
            .iter()
            .flat_map(|(id, log)| log.iter().map(move |it| (id, it)))
        {
            let told = batch.records.iter().filter_map(|record| {
                let (_, json) = record.split_once(" LeaderChange: ")?;
                let json: Value = serde_json::from_str(json).ok()?;
                i32::try_from(json["leaderId"].as_i64()?).ok()
            });
            for leader in told {
                changes += 1;
                let known = *leaders.entry(batch.epoch).or_insert(leader);
                assert_eq!(
                    known, leader,
                    "two leaders of epoch {} by {id}",
                    batch.epoch
                );
            }
        }
        let is_whole = |log: &Vec<Batch>| log.first().is_some_and(|batch| batch.base == 0);
        if logs.values().any(is_whole) {
            assert!(changes > 0, "a whole log begins with a leader");
        }
        assert!(!leaders.is_empty(), "somebody led");
    }
}

/// `name: value` of a batch's line.
fn field<T: std::str::FromStr>(line: &str, name: &str) -> Option<T> {
    let mut words = line.split(' ');
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

fn header(line: &str) -> Option<Batch> {
    let (before, rest) = line.split_once(" position: ")?;
    let (_, after) = rest.split_once(' ')?;
    Some(Batch {
        base: field(line, "baseOffset:")?,
        last: field(line, "lastOffset:")?,
        epoch: field(line, "partitionLeaderEpoch:")?,
        header: format!("{before} {after}"),
        records: Vec::new(),
    })
}

/// All logs hold the same batches from where the last of them begins to what is committed. Gives
/// how many that are.
#[track_caller]
fn compare(logs: &BTreeMap<i32, Vec<Batch>>, committed: i64) -> usize {
    let begin = |log: &Vec<Batch>| log.first().map_or(0, |batch| batch.base);
    let start = logs.values().map(begin).max().expect("a log");
    let part = |log: &Vec<Batch>| -> Vec<Batch> {
        let batches = log.iter();
        let batches = batches.filter(|it| it.base >= start && it.last < committed);
        batches.cloned().collect()
    };
    let mut logs = logs.iter().map(|(id, log)| (id, part(log)));
    let (first, expected) = logs.next().expect("a log");
    let end = expected.last().map(|batch| batch.last + 1);
    assert_eq!(end, Some(committed), "controller {first} has all of it");
    for (id, found) in logs {
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found, "- controller {first}, + controller {id}");
        }
        assert_eq!(expected.len(), found.len(), "batches of {first} and {id}");
    }
    expected.len()
}

/// What was acknowledged is in the state that a directory adds up to; gives that state.
#[track_caller]
fn expect_kept_on_disk(told: &Told, dir: &Path) -> Value {
    let ended = run(kraftd().arg("state").arg(dir).arg("--json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let state: Value = serde_json::from_str(&ended.out).expect("a JSON document");
    let topics = &state["topics"]["byName"];
    for name in &told.topics {
        assert!(
            topics[name].is_object(),
            "{name} is gone from {}",
            dir.display()
        );
    }
    for ((name, key), value) in &told.configs {
        let kept = &state["configs"][format!("TOPIC:{name}")][key];
        assert_eq!(
            kept.as_str(),
            Some(value.as_str()),
            "{name} in {}",
            dir.display()
        );
    }
    state
}
