//! What `dump` prints of directories of Java and of our own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::records::batch::BatchBuilder;
use crate::records::{
    ConfigRecord, NoOpRecord, Record, RemoveTopicRecord, TopicRecord, UserScramCredentialRecord,
};
use crate::types::{Epoch, Offset, Timestamp, Uuid};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

fn args(path: &Path) -> DumpArgs {
    DumpArgs {
        paths: vec![path.to_path_buf()],
        ..DumpArgs::default()
    }
}

/// Exit code, output and complaints.
fn dumped(args: &DumpArgs) -> (u8, String, Vec<String>) {
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let code = dump(args, &mut out, &mut complaints).unwrap();
    (code, String::from_utf8(out).unwrap(), complaints)
}

fn lines(args: DumpArgs) -> Vec<Value> {
    let (_, out, _) = dumped(&DumpArgs { json: true, ..args });
    let line = |line| serde_json::from_str(line).unwrap();
    out.lines().map(line).collect()
}

/// Every record with its type, in order.
fn records(lines: &[Value]) -> Vec<(i64, String)> {
    let records = lines.iter().filter_map(|line| line["records"].as_array());
    let row = |it: &Value| {
        let kind = it["type"].as_str().unwrap_or_default();
        (it["offset"].as_i64().unwrap_or(-1), kind.to_owned())
    };
    records.flatten().map(row).collect()
}

/// A segment with one batch for each list of values.
fn segment(dir: &Path, batches: &[Vec<Vec<u8>>]) -> PathBuf {
    let path = dir.join("00000000000000000000.log");
    let (mut bytes, mut offset) = (Vec::new(), 0);
    for values in batches {
        let mut builder = BatchBuilder::data(Offset(offset), Epoch(1), Timestamp(5));
        for value in values {
            builder.push(None, Some(value));
        }
        offset += values.len() as i64;
        bytes.extend_from_slice(builder.build().bytes());
    }
    fs::write(&path, bytes).unwrap();
    path
}

fn value(record: impl Into<Record>) -> Vec<u8> {
    record.into().at(0).encode().unwrap()
}

fn config(name: &str, value: Option<&str>) -> Vec<u8> {
    self::value(ConfigRecord {
        resource_type: 4,
        resource_name: "1".into(),
        name: name.into(),
        value: value.map(Into::into),
        ..ConfigRecord::default()
    })
}

#[test]
fn the_text_has_the_lines_of_the_dump_tool() {
    let dir = tempfile::tempdir().unwrap();
    let path = segment(dir.path(), &[vec![value(NoOpRecord::default())]]);
    let (code, out, complaints) = dumped(&args(&path));
    assert_eq!((code, complaints.len()), (0, 0));
    let crc = out
        .split("crc: ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let expected = format!(
        "Dumping {}\nLog starting offset: 0\n\
         baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 \
         producerEpoch: -1 partitionLeaderEpoch: 1 isTransactional: false isControl: false \
         deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 5 size: 72 magic: 2 \
         compresscodec: none crc: {crc} isvalid: true\n\
         | offset: 0 CreateTime: 5 keySize: -1 valueSize: 4 sequence: -1 headerKeys: [] payload: \
         {{\"type\":\"NO_OP_RECORD\",\"version\":0,\"data\":{{}}}}\n",
        path.display()
    );
    assert_eq!(out, expected);
}

#[test]
fn a_directory_of_java_is_printed_whole_and_sound() {
    let java = fixture("4.4.0/lived/dynamic-stopped");
    let (code, text, complaints) = dumped(&args(&java));
    assert_eq!((code, complaints.len()), (0, 0));
    for part in [
        "Snapshot end offset: 0, epoch: 0\n",
        " LeaderChange: {\"version\":0,",
        " SnapshotHeader {\"version\":0,",
        " SnapshotFooter {\"version\":0}",
        " KRaftVersion {\"version\":0,\"kRaftVersion\":1}",
        " KRaftVoters {\"version\":0,\"voters\":[",
        " payload: {\"type\":\"TOPIC_RECORD\",\"version\":0,\"data\":{\"name\":",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let lines = lines(args(&java));
    let counted = text.lines().filter(|line| line.starts_with("| offset: "));
    assert_eq!(records(&lines).len(), counted.count());
    let verify = DumpArgs {
        verify: true,
        ..args(&java)
    };
    let (code, out, _) = dumped(&verify);
    assert_eq!(code, 0, "{out}");
    assert!(out.lines().all(|line| line.contains(": sound, ")), "{out}");
}

#[test]
fn offsets_types_and_topics_narrow_what_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let topic = |name: &str, id| TopicRecord {
        name: name.into(),
        topic_id: Uuid::from_u128(id),
        ..TopicRecord::default()
    };
    let remove = |id| RemoveTopicRecord {
        topic_id: Uuid::from_u128(id),
        ..RemoveTopicRecord::default()
    };
    let of_topic = ConfigRecord {
        resource_type: 2,
        resource_name: "a".into(),
        name: "retention.ms".into(),
        value: Some("1".into()),
        ..ConfigRecord::default()
    };
    let path = segment(
        dir.path(),
        &[
            vec![value(topic("a", 101)), value(topic("b", 102))],
            vec![value(remove(102)), value(remove(101)), value(of_topic)],
            vec![value(NoOpRecord::default())],
            vec![value(topic("a", 103)), value(remove(103))],
        ],
    );
    let offsets = |change: &dyn Fn(&mut DumpArgs)| {
        let mut args = args(&path);
        change(&mut args);
        let found = records(&lines(args));
        found
            .into_iter()
            .map(|(offset, _)| offset)
            .collect::<Vec<_>>()
    };
    let range = |text: &str| Some(text.parse().unwrap());
    assert_eq!(offsets(&|it| it.offsets = range("1..3")), [1, 2, 3]);
    assert_eq!(offsets(&|it| it.offsets = range("..0")), [0]);
    assert_eq!(offsets(&|it| it.offsets = range("6..")), [6, 7]);
    assert_eq!(offsets(&|it| it.offsets = range("5")), [5]);
    let types =
        |names: &[&str]| -> Vec<Type> { names.iter().map(|name| name.parse().unwrap()).collect() };
    assert_eq!(
        offsets(&|it| it.types = types(&["TOPIC_RECORD"])),
        [0, 1, 6]
    );
    let two = |it: &mut DumpArgs| it.types = types(&["no-op", "removeTopicRecord"]);
    assert_eq!(offsets(&two), [2, 3, 5, 7]);
    assert_eq!(offsets(&|it| it.topic = Some("a".into())), [0, 3, 4, 6, 7]);
    let by_id = crate::types::ids::base64url(Uuid::from_u128(102));
    assert_eq!(offsets(&|it| it.topic = Some(by_id.clone())), [1, 2]);
    // Batches without a wanted record are not there at all.
    let mut one = args(&path);
    one.topic = Some("b".into());
    assert_eq!(lines(one).len(), 2);
    for bad in ["x..1", "3..1", "-1..", ""] {
        assert!(bad.is_empty() || bad.parse::<Offsets>().is_err(), "{bad}");
    }
    assert!("LEADERCHANGE".parse::<Type>().is_ok());
    assert!("nothing".parse::<Type>().is_err());
}

#[test]
fn secrets_are_masked_unless_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let scram = UserScramCredentialRecord {
        name: "alice".into(),
        mechanism: 1,
        salt: b"salt".as_slice().into(),
        stored_key: b"stored".as_slice().into(),
        server_key: b"server".as_slice().into(),
        iterations: 4096,
        ..UserScramCredentialRecord::default()
    };
    let path = segment(
        dir.path(),
        &[vec![
            value(scram),
            config("ssl.key.password", Some("hidden")),
            config("nobody.knows.this", Some("hidden")),
            config("ssl.key.password", None),
            config("log.cleaner.threads", Some("2")),
        ]],
    );
    let masked = lines(args(&path));
    let data = |lines: &[Value], at: usize| lines[0]["records"][at]["data"].clone();
    for field in ["salt", "storedKey", "serverKey"] {
        assert_eq!(data(&masked, 0)[field], "(redacted)");
    }
    assert_eq!(data(&masked, 0)["iterations"], 4096);
    let values: Vec<Value> = (1..5)
        .map(|at| data(&masked, at)["value"].clone())
        .collect();
    let redacted = json!("(redacted)");
    assert_eq!(
        values,
        [redacted.clone(), redacted, Value::Null, json!("2")]
    );
    let (_, text, _) = dumped(&args(&path));
    assert!(!text.contains("hidden") && !text.contains("c2FsdA"));
    let shown = lines(DumpArgs {
        show_secrets: true,
        ..args(&path)
    });
    assert_eq!(data(&shown, 0)["salt"], "c2FsdA==");
    assert_eq!(data(&shown, 1)["value"], "hidden");
}

#[test]
fn what_cannot_be_read_is_told_with_all_that_is_known_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = segment(
        dir.path(),
        &[
            vec![value(NoOpRecord::default()), vec![1, 99, 3, 0xab, 0xcd]],
            vec![vec![1, 20, 7, 0], vec![], value(NoOpRecord::default())],
        ],
    );
    let show = DumpArgs {
        show_secrets: true,
        ..args(&path)
    };
    let (code, text, complaints) = dumped(&show);
    assert_eq!((code, complaints.len()), (1, 3), "{complaints:?}");
    assert!(complaints[0].contains("record at offset 1 (batch at byte 0)"));
    let unknown = "unreadable: unknown metadata record type 99 \
                   {\"type\":99,\"version\":3,\"valueSize\":5,\"hex\":\"016303abcd\"}";
    assert!(text.contains(unknown), "{text}");
    let lines = lines(args(&path));
    assert_eq!(records(&lines).len(), 5);
    let second = &lines[1]["records"];
    assert_eq!(second[0]["error"], "NO_OP_RECORD has no version 7");
    assert_eq!(
        (&second[0]["type"], &second[0]["version"]),
        (&json!(20), &json!(7))
    );
    assert_eq!(second[0]["hex"], "(redacted)");
    assert_eq!(second[2]["type"], "NO_OP_RECORD");
    let verify = DumpArgs {
        verify: true,
        ..args(&path)
    };
    let (code, out, _) = dumped(&verify);
    assert_eq!(code, FOUND, "{out}");
    assert!(
        out.contains("not sound, 2 batches, 5 records, 3 findings"),
        "{out}"
    );
}

#[test]
fn damage_stands_in_its_place_and_what_is_behind_it_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let no_op = || vec![value(NoOpRecord::default())];
    let path = segment(dir.path(), &[no_op(), no_op(), no_op()]);
    let good = fs::read(&path).unwrap();
    let mut bytes = good.clone();
    bytes[72 + 70] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let found = lines(args(&path));
    let (code, text, complaints) = dumped(&args(&path));
    assert_eq!((code, complaints.len()), (1, 1));
    assert!(text.contains("isvalid: false\nrot: "), "{text}");
    assert_eq!(
        records(&found),
        [(0, "NO_OP_RECORD".into()), (2, "NO_OP_RECORD".into())]
    );
    assert_eq!(found[1]["isValid"], false);
    assert_eq!(
        (&found[2]["damage"], &found[2]["position"]),
        (&json!("rot"), &json!(72))
    );
    assert_eq!(found[2]["next"]["offset"], 2);
    // A torn tail may be a write that is under way: no failure, but a finding.
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    let (code, text, complaints) = dumped(&args(&path));
    assert_eq!((code, complaints.len()), (0, 0), "{complaints:?}");
    assert!(text.contains("\ntorn: "), "{text}");
    let verify = DumpArgs {
        verify: true,
        json: true,
        ..args(&path)
    };
    let (code, out, _) = dumped(&verify);
    assert_eq!(code, FOUND);
    let verdict: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(verdict["findings"][0]["kind"], "torn");
    assert_eq!(verdict["batches"], 2);
}

#[test]
fn a_path_that_is_nothing_is_refused_and_the_others_are_printed() {
    let java = fixture("4.4.0/batches/zstd");
    let mut both = args(&java);
    both.paths.insert(0, fixture("MANIFEST.tsv"));
    let (code, text, complaints) = dumped(&both);
    assert_eq!((code, complaints.len()), (1, 1));
    assert!(complaints[0].contains("MANIFEST.tsv is neither a segment"));
    assert!(text.contains("compresscodec: zstd"));
    assert_eq!(text.matches("\"type\":\"PARTITION_RECORD\"").count(), 1501);
}
