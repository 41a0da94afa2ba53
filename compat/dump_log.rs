//! What `kraftd dump` prints of every fixture directory is what that release's own
//! `kafka-dump-log --cluster-metadata-decoder` prints: offset, type, version and every field.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{kraftd, run, run_java};

/// Offset, type, version and fields.
type Row = (i64, String, i64, Value);
type Rows = BTreeMap<PathBuf, Vec<Row>>;

const PARTITION: &str = "__cluster_metadata-0";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Every segment and checkpoint below a directory.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a readable directory") {
        let path = entry.expect("readable").path();
        let ending = path.extension().and_then(|it| it.to_str());
        let name = path.file_name().and_then(|it| it.to_str());
        // The log behind recorded answers has another name, which the tool does not read.
        let is_segment = name.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        if path.is_dir() {
            files(&path, found);
        } else if ending == Some("checkpoint") || (is_segment && ending == Some("log")) {
            found.push(path);
        }
    }
}

/// The directories to be dumped so that all of these files are.
fn sources(files: &[PathBuf]) -> BTreeSet<&Path> {
    let parents = files.iter().filter_map(|file| file.parent());
    parents
        .map(|dir| match dir.ends_with(PARTITION) {
            true => dir.parent().expect("a log directory around it"),
            false => dir,
        })
        .collect()
}

fn dumped_by_kraftd(sources: &BTreeSet<&Path>) -> Rows {
    let mut command = kraftd();
    command
        .args(["dump", "--json", "--show-secrets"])
        .args(sources);
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let mut rows = Rows::new();
    for line in ended.out.lines() {
        let batch: Value = serde_json::from_str(line).expect("a JSON object a line");
        assert_eq!(batch["isValid"], true, "{line}");
        let file = batch["file"].as_str().expect("the file's name");
        let rows = rows.entry(PathBuf::from(file)).or_default();
        let records = batch["records"].as_array().expect("its records");
        assert_eq!(batch["count"], records.len());
        for record in records {
            rows.push((
                record["offset"].as_i64().expect("an offset"),
                record["type"].as_str().expect("a type").to_owned(),
                record["version"].as_i64().expect("a version"),
                record["data"].clone(),
            ));
        }
    }
    rows
}

fn dumped_by_java(release: &str, files: &[PathBuf]) -> Rows {
    // The tool moved in 4.3.
    let is_old = ["3.", "4.0.", "4.1.", "4.2."]
        .iter()
        .any(|it| release.starts_with(it));
    let main = match is_old {
        true => "kafka.tools.DumpLogSegments",
        false => "org.apache.kafka.tools.DumpLogSegments",
    };
    let names: Vec<&str> = files.iter().filter_map(|file| file.to_str()).collect();
    let list = names.join(",");
    let ended = run_java(
        release,
        main,
        &["--cluster-metadata-decoder", "--files", &list],
    );
    assert_eq!(ended.code, Some(0), "{release}: {}", ended.err);
    let mut rows = Rows::new();
    let mut file = PathBuf::new();
    for line in ended.out.lines() {
        if let Some(name) = line.strip_prefix("Dumping ") {
            file = PathBuf::from(name);
        } else if let Some(record) = line.strip_prefix("| offset: ") {
            let row = row(record).unwrap_or_else(|| panic!("{release}: {line}"));
            rows.entry(file.clone()).or_default().push(row);
        }
    }
    rows
}

/// Where an older tool tells a control record's type and nothing else.
const UNTOLD: Value = Value::Null;

/// `LEADER_CHANGE(2)` as the newer tools print it.
fn camel_case(name: &str) -> String {
    let words = name.split('(').next().unwrap_or_default().split('_');
    words
        .flat_map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            [first.to_owned(), rest.to_lowercase()]
        })
        .collect()
}

/// `N CreateTime: ... headerKeys: [] payload: {...}`, or a control record's name in its place.
fn row(line: &str) -> Option<Row> {
    let (offset, rest) = line.split_once(' ')?;
    let (_, shown) = rest.split_once("headerKeys: [] ")?;
    let (name, json) = shown.split_once(' ')?;
    if name == "controlType:" {
        return Some((offset.parse().ok()?, camel_case(json), 0, UNTOLD));
    }
    let mut value: Value = serde_json::from_str(json).ok()?;
    let offset = offset.parse().ok()?;
    if name != "payload:" {
        let version = value["version"].as_i64()?;
        return Some((
            offset,
            name.trim_end_matches(':').to_owned(),
            version,
            value,
        ));
    }
    let kind = value["type"].as_str()?.to_owned();
    let version = value["version"].as_i64()?;
    Some((offset, kind, version, value["data"].take()))
}

#[test]
fn dump_and_the_dump_tool_of_every_release_agree_record_for_record() {
    let releases = fs::read_dir(fixtures()).expect("fixtures");
    let (mut compared, mut released) = (0, 0);
    let mut types = BTreeSet::new();
    for entry in releases {
        let dir = entry.expect("readable").path();
        let name = dir.file_name().and_then(|name| name.to_str());
        let Some(release) = name.filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        else {
            continue;
        };
        released += 1;
        let mut found = Vec::new();
        files(&dir, &mut found);
        found.sort();
        assert!(!found.is_empty(), "{release} has no metadata directories");
        let ours = dumped_by_kraftd(&sources(&found));
        let javas = dumped_by_java(release, &found);
        let names = |rows: &Rows| rows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&javas), names(&ours), "{release}: other files");
        for (file, javas) in &javas {
            let ours = &ours[file];
            for (java, own) in javas.iter().zip(ours) {
                let mut own = own.clone();
                if java.3 == UNTOLD {
                    (own.2, own.3) = (0, UNTOLD);
                }
                assert_eq!(java, &own, "{}: - Java, + kraftd", file.display());
                types.insert(own.1.clone());
            }
            assert_eq!(javas.len(), ours.len(), "{}", file.display());
            compared += ours.len();
        }
    }
    assert_eq!(released, 6);
    assert!(compared > 10_000, "only {compared} records were compared");
    for kind in [
        "PARTITION_RECORD",
        "LeaderChange",
        "SnapshotFooter",
        "KRaftVoters",
    ] {
        assert!(types.contains(kind), "no {kind} among {types:?}");
    }
}
