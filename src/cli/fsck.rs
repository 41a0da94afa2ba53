//! `kraftd fsck DIR [--json]`: a metadata directory verified, running or not, and nothing changed.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::image::Image;
use crate::records::{Record, VersionedRecord};
use crate::storage::verify::{self, CheckedCheckpoint, Finding, Report, Severity, State};
use crate::types::{Offset, OneLine};

/// Nothing was found; notes are not findings.
pub const SOUND: u8 = 0;
/// Something was found, be it only a torn tail.
pub const FOUND: u8 = 2;

/// What records add up to here.
#[derive(Debug, Default)]
struct Metadata(Image);

impl Metadata {
    /// The records of a snapshot, as text and sorted, each with its type's name: an image may hold
    /// more than its metadata.version can write.
    fn written(&self) -> Vec<(String, &'static str)> {
        let mut records = Vec::new();
        let mut add = |record: VersionedRecord| {
            records.push((format!("{record:?}"), record.record.name()));
        };
        // What is lost is not in the snapshot, so it is not compared.
        let _ = self.0.settled().emit(&mut add);
        records.sort_unstable();
        records
    }
}

impl State for Metadata {
    fn replay(&mut self, record: &Record, offset: Offset) -> Result<(), String> {
        self.0
            .replay(record, offset)
            .map_err(|fault| fault.to_string())
    }

    fn check(&self) -> Result<(), String> {
        self.0.settled().check()
    }

    fn open_transaction(&self) -> Option<Offset> {
        self.0.open_transaction()
    }

    fn difference(&self, other: &Self) -> Option<String> {
        if self.0 == other.0 {
            return None;
        }
        let (ours, theirs) = (self.written(), other.written());
        // Types and counts only: a record may hold a secret.
        let only = |one: &[(String, &'static str)], two: &[(String, _)]| {
            let is_missing = |record: &&(String, _)| {
                let found = two.binary_search_by(|other| other.0.cmp(&record.0));
                found.is_err()
            };
            let missing: Vec<_> = one.iter().filter(is_missing).collect();
            let first = missing.first().map(|(_, name)| *name)?;
            Some(match missing.len() {
                1 => format!("a {first}"),
                count => format!("{count} records, the first a {first}"),
            })
        };
        match (only(&ours, &theirs), only(&theirs, &ours)) {
            (Some(ours), Some(theirs)) => Some(format!(
                "only the log leads to {ours}; only the checkpoint has {theirs}"
            )),
            (Some(ours), None) => Some(format!("only the log leads to {ours}")),
            (None, Some(theirs)) => Some(format!("only the checkpoint has {theirs}")),
            (None, None) if ours.len() != theirs.len() => Some(format!(
                "the log leads to {} records and the checkpoint has {}",
                ours.len(),
                theirs.len()
            )),
            (None, None) => None,
        }
    }
}

/// Verifies the directory at `path` and prints what is found. Returns the exit code.
///
/// # Errors
/// A sentence: the directory cannot be read, or the findings cannot be printed.
pub fn fsck(
    path: &Path,
    as_json: bool,
    progress: &mut dyn FnMut(u64, u64),
    out: &mut dyn Write,
) -> Result<u8, String> {
    let report = verify::verify::<Metadata>(path, progress).map_err(|fault| fault.sentence)?;
    let printed = match as_json {
        true => writeln!(out, "{}", document(&report)),
        false => print(&report, out),
    };
    printed.map_err(|error| format!("the findings cannot be printed: {error}"))?;
    Ok(match report.verdict() {
        Severity::Note => SOUND,
        Severity::Torn | Severity::Wrong | Severity::Rot => FOUND,
    })
}

const fn verdict(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "sound",
        Severity::Torn => "torn",
        Severity::Wrong => "wrong",
        Severity::Rot => "rot",
    }
}

const fn meaning(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "nothing is wrong",
        Severity::Torn => {
            "a crash left what was not synced, and the next start repairs it; nothing that was \
             acknowledged is lost"
        }
        Severity::Wrong => "files are missing, unusable or contradict each other",
        Severity::Rot => {
            "bytes of the log or of a checkpoint are damaged or gone: do not start Java on it, \
             which may cut off what is good behind them"
        }
    }
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let by_severity = [
        Severity::Rot,
        Severity::Wrong,
        Severity::Torn,
        Severity::Note,
    ];
    let mut advised = BTreeSet::new();
    for severity in by_severity {
        let of = |finding: &&Finding| finding.severity == severity;
        for finding in report.findings.iter().filter(of) {
            write!(out, "{:<5} {}", severity.name(), OneLine(&finding.what))?;
            // Once is enough: many files may need the same.
            let is_new = severity != Severity::Note && advised.insert(finding.advice.as_str());
            match is_new && !finding.what.contains(&finding.advice) {
                true => writeln!(out, " {}", OneLine(&finding.advice))?,
                false => writeln!(out)?,
            }
        }
    }
    if report.left_out > 0 {
        writeln!(
            out,
            "      and {} more that are not listed",
            report.left_out
        )?;
    }
    let count = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let log = &report.log;
    let newest = report.checkpoints.last().map_or_else(String::new, |it| {
        format!(", newest {}-{}", it.id.offset, it.id.epoch)
    });
    writeln!(
        out,
        "{}: log {} to {} ({}, {}), {}{newest}{}",
        report.path.display(),
        log.start,
        log.end,
        count(log.segments as u64, "segment"),
        count(log.records, "record"),
        count(report.checkpoints.len() as u64, "checkpoint"),
        if report.in_use { ", in use" } else { "" },
    )?;
    let worst = report.verdict();
    writeln!(
        out,
        "{}: {}, {}: {}",
        report.path.display(),
        verdict(worst),
        count(findings(report), "finding"),
        meaning(worst)
    )
}

fn findings(report: &Report) -> u64 {
    let notes = report.count(Severity::Note);
    (report.findings.len() - notes) as u64 + report.left_out
}

fn document(report: &Report) -> Value {
    let of = |notes: bool| {
        let rows = report.findings.iter();
        rows.filter(|finding| (finding.severity == Severity::Note) == notes)
            .map(row)
            .collect::<Vec<Value>>()
    };
    let log = &report.log;
    json!({
        "path": report.path.display().to_string(),
        "verdict": verdict(report.verdict()),
        "inUse": report.in_use,
        "log": {
            "startOffset": log.start.0,
            "endOffset": log.end.0,
            "epoch": log.epoch.map(|epoch| epoch.0),
            "segments": log.segments,
            "bytes": log.bytes,
            "batches": log.batches,
            "records": log.records,
        },
        "checkpoints": report.checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        "findings": of(false),
        "notes": of(true),
        "leftOut": report.left_out,
    })
}

fn row(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.name(),
        "check": finding.check,
        "file": finding.path.display().to_string(),
        "position": finding.position,
        "offset": finding.offset.map(|offset| offset.0),
        "what": finding.what,
        "advice": finding.advice,
    })
}

fn checkpoint(it: &CheckedCheckpoint) -> Value {
    json!({
        "file": it.path.display().to_string(),
        "endOffset": it.id.offset.0,
        "epoch": it.id.epoch.0,
        "bytes": it.bytes,
        "records": it.records,
        "sound": it.sound,
        "equalsLog": it.equals_log,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = "fixtures/4.4.0/lived/dynamic-stopped/__cluster_metadata-0";

    /// A copy of a partition's directory, as `change` leaves its log.
    fn run(as_json: bool, change: impl FnOnce(&mut Vec<u8>)) -> (u8, String) {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
        let log = dir.path().join("00000000000000000000.log");
        let mut bytes = std::fs::read(&log).unwrap();
        change(&mut bytes);
        std::fs::write(&log, bytes).unwrap();
        let mut out = Vec::new();
        let (mut told, mut last) = (0, 0);
        let mut progress = |all, done| (told, last) = (all, done);
        let code = fsck(dir.path(), as_json, &mut progress, &mut out).unwrap();
        assert!(last > 0 && last <= told, "{last} of {told} bytes");
        (code, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_sound_directory_ends_with_0_and_a_line_that_says_so() {
        let (code, text) = run(false, |_| ());
        assert_eq!(code, SOUND, "{text}");
        assert!(
            text.contains(": log 0 to 326 (1 segment, 326 records), 5 checkpoints, newest 261-2")
        );
        assert!(
            text.ends_with(": sound, 0 findings: nothing is wrong\n"),
            "{text}"
        );
    }

    #[test]
    fn a_finding_ends_with_2_and_names_place_meaning_and_help() {
        let (code, text) = run(false, |bytes| bytes[250] ^= 1);
        assert_eq!(code, FOUND);
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("rot   "), "{text}");
        for word in [
            "00000000000000000000.log",
            "byte 174",
            "offset 3",
            "Restore",
        ] {
            assert!(first.contains(word), "{word}: {text}");
        }
        assert!(text.contains(": rot, 1 finding: "), "{text}");
    }

    #[test]
    fn text_of_files_is_escaped_and_the_same_advice_is_given_once() {
        let finding = |name: &str| Finding {
            severity: Severity::Wrong,
            check: "meta-properties",
            path: name.into(),
            position: None,
            offset: None,
            what: format!("{name} has the cluster.id '{}'.", "\u{1b}[2J\n"),
            advice: "Put it back.".to_owned(),
        };
        let mut report = Report::default();
        report.findings = vec![finding("a"), finding("b")];
        let mut out = Vec::new();
        print(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("Put it back.").count(), 1, "{text}");
        assert_eq!(text.matches("'\\u{1b}[2J\\n'").count(), 2, "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    /// The sentences of faults say what helps, as they must where a start is refused.
    #[test]
    fn what_helps_is_said_once_for_a_file_that_cannot_be_used() {
        for (name, bytes, help) in [
            (
                "quorum-state",
                &b"{"[..],
                "start once with --accept-lost-vote",
            ),
            (
                "quorum-state",
                b"{\"data_version\":99}",
                "tart the release that wrote it",
            ),
            ("kraftd-commit", &[0; 1024], "delete th"),
            (
                "partition.metadata",
                b"version: 0",
                "delete it, it is written anew",
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
            for entry in std::fs::read_dir(from).unwrap() {
                let path = entry.unwrap().path();
                std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
            }
            std::fs::write(dir.path().join(name), bytes).unwrap();
            let mut out = Vec::new();
            let code = fsck(dir.path(), false, &mut |_, _| (), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(code, FOUND, "{text}");
            let about = |line: &&str| line.starts_with("wrong ") && line.contains(name);
            let line = text.lines().find(about).unwrap();
            let many = |words: &str| line.to_lowercase().matches(words).count();
            assert!(line.contains(help), "{line}");
            assert_eq!(
                many("delete"),
                usize::from(help != "tart the release that wrote it")
            );
            assert!(many("restore") <= 1, "{line}");
        }
    }

    #[test]
    fn json_has_the_verdict_and_every_part_of_a_finding() {
        let (code, text) = run(true, |bytes| bytes[250] ^= 1);
        assert_eq!(code, FOUND);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["verdict"], "rot");
        assert_eq!(document["inUse"], false);
        assert_eq!(document["log"]["endOffset"], 326);
        assert_eq!(document["checkpoints"][4]["endOffset"], 261);
        assert_eq!(document["checkpoints"][4]["sound"], true);
        let finding = &document["findings"][0];
        assert_eq!(finding["severity"], "rot");
        assert_eq!(
            (finding["position"].as_i64(), finding["offset"].as_i64()),
            (Some(174), Some(3))
        );
        assert_eq!(finding["check"], "batch");
        assert!(document["notes"][0]["what"].is_string());
    }

    #[test]
    fn a_difference_names_types_and_no_values() {
        let image = |names: &[&str]| {
            let mut metadata = Metadata::default();
            for (at, name) in names.iter().enumerate() {
                let record = crate::records::TopicRecord {
                    name: (*name).to_owned(),
                    topic_id: crate::types::Uuid::from_u128(1000 + at as u128),
                    ..crate::records::TopicRecord::default()
                };
                metadata.replay(&Record::from(record), Offset(0)).unwrap();
            }
            metadata
        };
        let (one, two) = (image(&["secret"]), image(&["secret", "other", "third"]));
        assert_eq!(one.difference(&image(&["secret"])), None);
        let text = one.difference(&two).unwrap();
        assert_eq!(
            text,
            "only the checkpoint has 2 records, the first a TOPIC_RECORD"
        );
        let text = two
            .difference(&image(&["secret", "changed", "third"]))
            .unwrap();
        assert_eq!(
            text,
            "only the log leads to a TOPIC_RECORD; only the checkpoint has a TOPIC_RECORD"
        );
    }

    #[test]
    fn what_is_no_directory_of_metadata_is_refused_with_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_path_buf(), dir.path().join("absent")] {
            let sentence = fsck(&path, false, &mut |_, _| (), &mut Vec::new()).unwrap_err();
            assert!(sentence.contains(path.to_str().unwrap()), "{sentence}");
        }
        for name in [
            "00000000000000000000.log",
            "x.checkpoint",
            "server.properties",
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, b"").unwrap();
            let sentence = fsck(&path, false, &mut |_, _| (), &mut Vec::new()).unwrap_err();
            assert!(sentence.contains("is a file"), "{sentence}");
        }
    }
}
