//! Bytes that Java wrote, read and written again: nothing may change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kraftd::records::batch::{Batch, BatchBuilder, Codec};
use kraftd::records::rpc::{
    ApiVersionsRequest, ApiVersionsResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    Message,
};
use kraftd::records::text::text;
use kraftd::records::wire::Format;
use kraftd::records::{ControlRecord, RecordFault, VersionedRecord};

use crate::fixture::{fixtures, unhex};

/// The logs and checkpoints below a folder, also those that wait for their deletion.
fn batch_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap().trim_end_matches(".deleted");
        if path.is_dir() {
            files.extend(batch_files(&path));
        } else if name.ends_with(".log") || name.ends_with(".checkpoint") {
            files.push(path);
        }
    }
    files
}

/// Every log and checkpoint among the fixtures, whole.
fn recorded_files() -> Vec<(PathBuf, Bytes)> {
    let mut files = batch_files(&fixtures());
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let bytes = Bytes::from(fs::read(&path).unwrap());
            (path, bytes)
        })
        .collect()
}

/// The batches of a file, which must be nothing else.
fn batches(path: &Path, mut bytes: Bytes) -> Vec<Batch> {
    let mut batches = Vec::new();
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap_or_else(|fault| {
        panic!("{}, batch {}: {fault}", path.display(), batches.len());
    }) {
        batches.push(batch);
    }
    assert!(bytes.is_empty(), "{}: bytes left over", path.display());
    batches
}

/// Decodes every record of a batch and builds the batch anew from the records. `seen` gets the
/// names with versions.
fn written_again(batch: &Batch, seen: &mut BTreeSet<(String, i16)>) -> Batch {
    let timestamp = batch.header().base_timestamp;
    let mut builder = if batch.is_control() {
        BatchBuilder::control(batch.base_offset(), batch.epoch(), timestamp)
    } else {
        BatchBuilder::data(batch.base_offset(), batch.epoch(), timestamp)
    };
    for raw in batch.records() {
        let raw = raw.unwrap();
        if batch.is_control() {
            let record = ControlRecord::decode(raw.key.as_ref(), raw.value.as_ref()).unwrap();
            seen.insert((record.name().to_owned(), record.version()));
            builder.push_control(&record).unwrap();
        } else {
            assert_eq!(raw.key, None);
            let record = VersionedRecord::decode(&raw.value.unwrap()).unwrap();
            seen.insert((record.record.name().to_owned(), record.version));
            builder.push_record(&record).unwrap();
        }
    }
    builder.build()
}

/// What a batch has to become when it is written again: itself, or, when Java compressed it, the
/// same batch as Java wrote it uncompressed beside it.
fn uncompressed(path: &Path, batch: &Batch, beside: &[Batch]) -> Batch {
    if batch.header().codec == Codec::None {
        return batch.clone();
    }
    let same = beside
        .iter()
        .find(|it| it.base_offset() == batch.base_offset());
    same.unwrap_or_else(|| panic!("{}: no such batch uncompressed", path.display()))
        .clone()
}

#[test]
fn every_batch_that_java_wrote_is_written_again_byte_for_byte() {
    let (mut seen, mut codecs) = (BTreeSet::new(), BTreeSet::new());
    let files = recorded_files();
    assert!(files.len() >= 550, "{} files", files.len());
    let plain = fixtures().join("4.4.0/batches/none/00000000000000000000.log");
    let plain = batches(&plain, Bytes::from(fs::read(&plain).unwrap()));
    for (path, bytes) in files {
        let batches = batches(&path, bytes);
        assert!(!batches.is_empty(), "{}", path.display());
        for batch in &batches {
            let place = format!("{}, offset {}", path.display(), batch.base_offset());
            batch.verify_crc().expect(&place);
            let wanted = uncompressed(&path, batch, &plain);
            assert!(written_again(batch, &mut seen) == wanted, "{place}");
            codecs.insert(batch.header().codec.name());
        }
        for pair in batches.windows(2) {
            assert_eq!(
                pair[0].end_offset(),
                pair[1].base_offset(),
                "{}",
                path.display()
            );
        }
    }
    assert_eq!(codecs.len(), 5, "{codecs:?}");
    let mut types: BTreeMap<&str, Vec<i16>> = BTreeMap::new();
    for (name, version) in &seen {
        types.entry(name).or_default().push(*version);
    }
    // What the recorded clusters did; a new recording may only add.
    for (name, versions) in [
        ("BROKER_REGISTRATION_CHANGE_RECORD", &[0, 1, 3][..]),
        ("BEGIN_TRANSACTION_RECORD", &[0]),
        ("CLIENT_QUOTA_RECORD", &[0]),
        ("CONFIG_RECORD", &[0]),
        ("END_TRANSACTION_RECORD", &[0]),
        ("FEATURE_LEVEL_RECORD", &[0]),
        ("KRaftVersion", &[0]),
        ("KRaftVoters", &[0]),
        ("LeaderChange", &[0]),
        ("NO_OP_RECORD", &[0]),
        ("PARTITION_CHANGE_RECORD", &[1, 2]),
        ("PARTITION_RECORD", &[1, 2]),
        ("PRODUCER_IDS_RECORD", &[0]),
        ("REGISTER_BROKER_RECORD", &[3, 4]),
        ("REGISTER_CONTROLLER_RECORD", &[0]),
        ("REMOVE_TOPIC_RECORD", &[0]),
        ("SnapshotFooter", &[0]),
        ("SnapshotHeader", &[0]),
        ("TOPIC_RECORD", &[0]),
        ("USER_SCRAM_CREDENTIAL_RECORD", &[0]),
        ("ZK_MIGRATION_STATE_RECORD", &[0]),
    ] {
        let found = types.get(name).map_or(&[][..], Vec::as_slice);
        assert!(
            versions.iter().all(|version| found.contains(version)),
            "{name}: {found:?}"
        );
    }
}

/// A recorded request with its answer.
struct Exchange {
    case: String,
    version: i16,
    request_json: String,
    answer_json: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// The exchanges of one API that ended in an answer.
fn exchanges(file: &str, api: &str) -> Vec<Exchange> {
    let path = fixtures().join("4.4.0/answers").join(file);
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|fields| fields.len() == 7 && fields[1] == api && fields[4] != "closed")
        .map(|fields| Exchange {
            case: fields[0].to_owned(),
            version: fields[2].parse().unwrap(),
            request_json: fields[3].to_owned(),
            answer_json: fields[4].to_owned(),
            request: unhex(fields[5]),
            answer: unhex(fields[6]),
        })
        .collect()
}

/// Reads a body, compares it with Java's own JSON, writes it again.
fn assert_same<M: Message>(case: &str, version: i16, body: &[u8], json: &str) {
    let message = M::decode(body, version).expect(case);
    let format = Format {
        version,
        flexible: version >= M::FLEXIBLE_SINCE,
    };
    assert_eq!(text(&message.json(format)), json, "{case}");
    let mut again = Vec::new();
    message.encode(&mut again, version).expect(case);
    assert_eq!(again, body, "{case}");
}

#[test]
fn recorded_requests_and_answers_read_as_java_reads_them() {
    let versions = exchanges("api-versions.tsv", "ApiVersions");
    assert!(versions.len() >= 10);
    for it in &versions {
        // A version that does not exist is answered in the form of version 0.
        let exists = it.version <= ApiVersionsRequest::VERSION_MAX;
        let answered = if exists { it.version } else { 0 };
        if exists {
            let json = &it.request_json;
            assert_same::<ApiVersionsRequest>(&it.case, it.version, &it.request, json);
        } else {
            assert!(matches!(
                ApiVersionsRequest::decode(&it.request, it.version),
                Err(RecordFault::UnknownVersion { .. })
            ));
        }
        assert_same::<ApiVersionsResponse>(&it.case, answered, &it.answer, &it.answer_json);
    }
    let heartbeats = exchanges("broker-requests.tsv", "BrokerHeartbeat");
    assert!(heartbeats.len() >= 10);
    for it in &heartbeats {
        let (case, version) = (&it.case, it.version);
        // The recorder filled in the epoch that the broker got, which it shows as a word.
        let epoch = BrokerHeartbeatRequest::decode(&it.request, version)
            .unwrap()
            .broker_epoch;
        let json = it.request_json.replace("\"{epoch}\"", &epoch.to_string());
        assert_same::<BrokerHeartbeatRequest>(case, version, &it.request, &json);
        assert_same::<BrokerHeartbeatResponse>(case, version, &it.answer, &it.answer_json);
    }
}
