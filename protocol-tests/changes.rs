//! `kraftd diff DIR --from X --to Y` against facts that are taken from the records between: which
//! topics were created, which configurations changed, which leaders moved.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kraftd::records::{Record, VersionedRecord};
use kraftd::storage::reader::{Item, Source};
use kraftd::types::Uuid;
use serde_json::Value;

/// What the test looks at, kept in the plainest way.
#[derive(Clone, Default)]
struct Facts {
    topics: BTreeMap<Uuid, String>,
    leaders: BTreeMap<(Uuid, i32), i32>,
    configs: BTreeMap<(i8, String, String), String>,
    /// The facts before the open transaction.
    before: Option<Box<Self>>,
}

impl Facts {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Topic(it) => {
                self.topics.insert(it.topic_id, it.name.clone());
            }
            Record::RemoveTopic(it) => {
                let name = self.topics.remove(&it.topic_id).unwrap_or_default();
                self.leaders.retain(|(topic, _), _| *topic != it.topic_id);
                self.configs
                    .retain(|(kind, of, _), _| *kind != 2 || *of != name);
            }
            Record::Partition(it) => {
                self.leaders
                    .insert((it.topic_id, it.partition_id), it.leader);
            }
            Record::PartitionChange(it) if it.leader != -2 => {
                self.leaders
                    .insert((it.topic_id, it.partition_id), it.leader);
            }
            Record::Config(it) => {
                let key = (it.resource_type, it.resource_name.clone(), it.name.clone());
                match &it.value {
                    Some(value) => self.configs.insert(key, value.clone()),
                    None => self.configs.remove(&key),
                };
            }
            Record::BeginTransaction(_) => self.before = Some(Box::new(self.clone())),
            Record::EndTransaction(_) => self.before = None,
            Record::AbortTransaction(_) => {
                if let Some(before) = self.before.take() {
                    *self = *before;
                }
            }
            _ => {}
        }
    }

    fn settled(&self) -> &Self {
        self.before.as_deref().unwrap_or(self)
    }
}

/// Lines such as `topic added topics/byName/a`: what a difference has to name.
type Lines = BTreeSet<String>;

fn expected(before: &Facts, after: &Facts) -> Lines {
    let (before, after) = (before.settled(), after.settled());
    let mut lines = Lines::new();
    let by_name = |facts: &Facts| -> BTreeMap<String, Uuid> {
        let topics = facts.topics.iter();
        topics.map(|(id, name)| (name.clone(), *id)).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    for name in old.keys().chain(new.keys()) {
        let change = match (old.get(name), new.get(name)) {
            (None, _) => "added",
            (_, None) => "removed",
            (old, new) if old != new => "changed",
            _ => continue,
        };
        lines.insert(format!("topic {change} topics/byName/{name}"));
    }
    for (key, leader) in &after.leaders {
        if let Some(was) = before.leaders.get(key)
            && was != leader
        {
            let path = format!("topics/byName/{}/{}", after.topics[&key.0], key.1);
            lines.insert(format!("leader {path} {was} -> {leader}"));
        }
    }
    for key in before.configs.keys().chain(after.configs.keys()) {
        let (was, is) = (before.configs.get(key), after.configs.get(key));
        if was != is {
            let kind = match key.0 {
                2 => "TOPIC",
                4 => "BROKER",
                16 => "CLIENT_METRICS",
                32 => "GROUP",
                other => panic!("type {other}"),
            };
            let of = if key.1.is_empty() { "" } else { ":" };
            let path = format!("configs/{kind}{of}{}/{}", key.1, key.2);
            lines.insert(format!("config {path} {was:?} -> {is:?}"));
        }
    }
    lines
}

fn told(document: &Value) -> Lines {
    let mut lines = Lines::new();
    for change in document["changes"].as_array().unwrap() {
        let path = change["path"].as_str().unwrap();
        let (before, after) = (&change["before"], &change["after"]);
        match change["type"].as_str().unwrap() {
            "topic" => {
                let change = change["change"].as_str().unwrap();
                lines.insert(format!("topic {change} {path}"));
            }
            "partition" if !before["leader"].is_null() && !after["leader"].is_null() => {
                let (was, is) = (&before["leader"], &after["leader"]);
                lines.insert(format!("leader {path} {was} -> {is}"));
            }
            "config" => {
                let (was, is) = (before.as_str(), after.as_str());
                lines.insert(format!("config {path} {was:?} -> {is:?}"));
            }
            _ => {}
        }
    }
    lines
}

/// Every log directory in the fixtures whose log begins at 0, with its records.
fn logs() -> Vec<(PathBuf, Vec<(i64, Record)>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let below = |dir: PathBuf| {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path())
    };
    // A level that 4.4 cannot run is refused: the test below.
    let kinds = below(fixtures).flat_map(below);
    let kinds = kinds.filter(|kind| !kind.ends_with("old-levels"));
    let dirs = kinds.flat_map(below);
    let mut found = Vec::new();
    for dir in dirs.filter(|dir| dir.join("__cluster_metadata-0").is_dir()) {
        let source = Source::open(&dir).unwrap();
        let mut records = Vec::new();
        let mut first = None;
        for item in source.walk_log() {
            let Item::Batch { batch, .. } = item.unwrap().1 else {
                panic!("{}: damage", dir.display());
            };
            first.get_or_insert_with(|| batch.base_offset().0);
            if batch.is_control() {
                continue;
            }
            for record in batch.records() {
                let record = record.unwrap();
                let value = record.value.expect("data records have a value");
                let decoded = VersionedRecord::decode(&value).unwrap();
                records.push((record.offset.0, decoded.record));
            }
        }
        if first == Some(0) {
            found.push((dir, records));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn diff(dir: &Path, from: i64, to: i64) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_kraftd"))
        .arg("diff")
        .arg(dir)
        .args(["--from", &from.to_string(), "--to", &to.to_string()])
        .args(["--json", "--show-secrets"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", dir.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_diff_names_exactly_the_topics_configs_and_leaders_that_the_records_between_change() {
    let mut releases = BTreeSet::new();
    let mut with_all_three = 0;
    for (dir, records) in logs() {
        let last = records.last().unwrap().0;
        for (from, to) in [(0, 4), (1, 2), (2, 3), (1, 4), (4, 1)] {
            let (from, to) = (last * from / 4, last * to / 4);
            let until = |end: i64| {
                let mut facts = Facts::default();
                let mut applied = records.iter().take_while(|(offset, _)| *offset <= end);
                applied.by_ref().for_each(|(_, record)| facts.apply(record));
                facts
            };
            let expected = expected(&until(from), &until(to));
            let told = told(&diff(&dir, from, to));
            assert_eq!(told, expected, "{} from {from} to {to}", dir.display());
            let has = |what: &str| told.iter().any(|line| line.starts_with(what));
            if has("topic added") && has("config ") && has("leader ") {
                with_all_three += 1;
            }
        }
        let release = dir
            .ancestors()
            .nth(2)
            .unwrap()
            .file_name()
            .unwrap()
            .to_owned();
        releases.insert(release);
    }
    assert!(releases.len() >= 6, "{releases:?}");
    assert!(
        with_all_three >= 6,
        "{with_all_three} with a topic, a config and a leader"
    );
}

#[test]
fn a_point_that_is_not_covered_is_refused_with_the_range_that_is() {
    let (dir, records) = logs().remove(0);
    let last = records.last().unwrap().0;
    for at in ["1000000", "2001-01-01"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kraftd"))
            .arg("state")
            .arg(&dir)
            .args(["--at", at])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let sentence = String::from_utf8_lossy(&output.stderr);
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(
            sentence.contains(&format!(" 0 to {}", last.max(0))),
            "{sentence}"
        );
    }
}

#[test]
fn a_level_that_no_release_of_4_runs_is_refused_with_its_place() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/3.9.2/old-levels/raised");
    let output = Command::new(env!("CARGO_BIN_EXE_kraftd"))
        .arg("state")
        .arg(&dir)
        .args(["--at", "32"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let sentence = String::from_utf8_lossy(&output.stderr);
    let told = "FEATURE_LEVEL_RECORD at offset";
    assert!(
        sentence.contains(told) && sentence.contains("metadata.version"),
        "{sentence}"
    );
}
