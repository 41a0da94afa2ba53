//! Batches, records and damage as text and as JSON lines.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{Read, is_of_batch};
use crate::observe::secrets::is_secret_config;
use crate::records::batch::{Batch, BatchHeader, RawRecord};
use crate::records::text::text;
use crate::records::wire::Reader;
use crate::records::{Record, VersionedRecord};
use crate::storage::bootstrap::BOOTSTRAP_FILE;
use crate::storage::reader::{Damage, DamageKind, MetadataFile, Role};

/// What stands in the place of a secret, as the reference's log lines have it.
const REDACTED: &str = "(redacted)";

/// Bytes of an unreadable value that are shown.
const HEX_BYTES_MAX: usize = 1024;

/// A record to print.
pub(super) struct Shown<'a> {
    pub(super) batch: &'a Batch,
    /// `None` stands for the rest of a batch that cannot be walked.
    pub(super) raw: Option<&'a RawRecord>,
    pub(super) read: &'a Read,
}

/// Prints one file after the other.
pub(super) struct Printer {
    json: bool,
    show_secrets: bool,
    file: String,
    /// A record of the batch was printed.
    begun: bool,
}

impl Printer {
    pub(super) const fn new(json: bool, show_secrets: bool) -> Self {
        Self {
            json,
            show_secrets,
            file: String::new(),
            begun: false,
        }
    }

    pub(super) fn begin_file(
        &mut self,
        file: &MetadataFile,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.file = file.path.display().to_string();
        if self.json {
            return Ok(());
        }
        writeln!(out, "Dumping {}", self.file)?;
        let is_bootstrap = file
            .path
            .file_name()
            .is_some_and(|name| name == BOOTSTRAP_FILE);
        match file.role {
            _ if is_bootstrap => writeln!(out, "KRaft bootstrap snapshot"),
            Role::Segment { base } => writeln!(out, "Log starting offset: {base}"),
            Role::Checkpoint { id } => writeln!(
                out,
                "Snapshot end offset: {}, epoch: {}",
                id.offset, id.epoch
            ),
        }
    }

    /// `is_valid` is false for a batch whose checksum is bad or whose end is missing.
    pub(super) fn begin_batch(
        &mut self,
        position: u64,
        header: &BatchHeader,
        is_valid: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.begun = false;
        let stamp = if header.is_log_append_time() {
            "LogAppendTime"
        } else {
            "CreateTime"
        };
        let last_sequence = match header.base_sequence {
            -1 => -1,
            base => base.wrapping_add((header.last_offset().0 - header.base_offset.0) as i32),
        };
        if !self.json {
            return writeln!(
                out,
                "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: \
                 {last_sequence} producerId: {} producerEpoch: {} partitionLeaderEpoch: {} \
                 isTransactional: false isControl: {} deleteHorizonMs: OptionalLong.empty \
                 position: {position} {stamp}: {} size: {} magic: 2 compresscodec: {} crc: {} \
                 isvalid: {is_valid}",
                header.base_offset,
                header.last_offset(),
                header.count,
                header.base_sequence,
                header.producer_id,
                header.producer_epoch,
                header.epoch,
                header.is_control(),
                header.max_timestamp.0,
                header.size(),
                header.codec.name(),
                header.crc,
            );
        }
        let batch = json!({
            "file": self.file,
            "position": position,
            "baseOffset": header.base_offset.0,
            "lastOffset": header.last_offset().0,
            "count": header.count,
            "partitionLeaderEpoch": header.epoch.0,
            "isControl": header.is_control(),
            "timestampType": stamp,
            "timestamp": header.max_timestamp.0,
            "size": header.size(),
            "compressCodec": header.codec.name(),
            "crc": header.crc,
            "isValid": is_valid,
        });
        // The records are written one by one: a batch may hold many.
        write!(out, "{},\"records\":[", text(&batch).trim_end_matches('}'))
    }

    pub(super) fn end_batch(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.json {
            true => writeln!(out, "]}}"),
            false => Ok(()),
        }
    }

    pub(super) fn record(&mut self, shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
        if self.json {
            let comma = if self.begun { "," } else { "" };
            self.begun = true;
            return write!(out, "{comma}{}", text(&self.record_json(shown)));
        }
        let Some(raw) = shown.raw else {
            return match shown.read {
                Read::Unknown(reason) => writeln!(out, "| unreadable: {reason}"),
                _ => Ok(()),
            };
        };
        let header = shown.batch.header();
        let stamp = if header.is_log_append_time() {
            "LogAppendTime"
        } else {
            "CreateTime"
        };
        let size = |field: &Option<bytes::Bytes>| match field {
            Some(bytes) => bytes.len() as i64,
            None => -1,
        };
        let sequence = match header.base_sequence {
            -1 => -1,
            base => base.wrapping_add((raw.offset.0 - header.base_offset.0) as i32),
        };
        write!(
            out,
            "| offset: {} {stamp}: {} keySize: {} valueSize: {} sequence: {sequence} headerKeys: \
             [] ",
            raw.offset,
            raw.timestamp.0,
            size(&raw.key),
            size(&raw.value),
        )?;
        match shown.read {
            Read::Metadata(record) => writeln!(out, "payload: {}", text(&self.payload(record))),
            Read::Control(record) => {
                // The tool has a colon behind this name alone.
                let colon = if record.name() == "LeaderChange" {
                    ":"
                } else {
                    ""
                };
                writeln!(out, "{}{colon} {}", record.name(), record.text())
            }
            Read::Unknown(reason) => {
                let told = text(&Value::Object(self.unknown(shown.batch, raw)));
                writeln!(out, "unreadable: {reason} {told}")
            }
        }
    }

    fn payload(&self, record: &VersionedRecord) -> Value {
        let mut payload = record.json();
        if !self.show_secrets
            && let Some(data) = payload.get_mut("data")
        {
            mask(&record.record, data);
        }
        payload
    }

    fn record_json(&self, shown: &Shown<'_>) -> Value {
        let mut object = Map::new();
        if let Some(raw) = shown.raw {
            object.insert("offset".to_owned(), json!(raw.offset.0));
            object.insert("timestamp".to_owned(), json!(raw.timestamp.0));
        }
        match shown.read {
            Read::Metadata(record) => {
                if let Value::Object(payload) = self.payload(record) {
                    object.extend(payload);
                }
            }
            Read::Control(record) => {
                object.insert("type".to_owned(), json!(record.name()));
                object.insert("version".to_owned(), json!(record.version()));
                object.insert("data".to_owned(), record.json());
            }
            Read::Unknown(reason) => {
                if let Some(raw) = shown.raw {
                    object.extend(self.unknown(shown.batch, raw));
                }
                object.insert("error".to_owned(), json!(reason));
            }
        }
        Value::Object(object)
    }

    /// What can be said of a record that cannot be read: numbers of type and version, size, bytes.
    fn unknown(&self, batch: &Batch, raw: &RawRecord) -> Map<String, Value> {
        let value = raw.value.as_deref().unwrap_or_default();
        let (kind, version) = numbers(batch, raw);
        let mut object = Map::new();
        object.insert("type".to_owned(), json!(kind));
        object.insert("version".to_owned(), json!(version));
        object.insert("valueSize".to_owned(), json!(value.len()));
        let shown = &value[..value.len().min(HEX_BYTES_MAX)];
        let hex = match self.show_secrets {
            // Nobody knows what is in there.
            false => REDACTED.to_owned(),
            true => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        object.insert("hex".to_owned(), json!(hex));
        object
    }

    pub(super) fn damage(&mut self, damage: &Damage, out: &mut dyn Write) -> io::Result<()> {
        if let Some(header) = damage.header
            && damage.fault.as_ref().is_some_and(is_of_batch)
        {
            self.begin_batch(damage.position, &header, false, out)?;
            self.end_batch(out)?;
        }
        if !self.json {
            return writeln!(out, "{}: {}", name(damage.kind), damage.sentence);
        }
        let behind = damage.behind.as_ref();
        let object = json!({
            "file": self.file,
            "position": damage.position,
            "offset": damage.offset.0,
            "damage": name(damage.kind),
            "bytesLeft": damage.bytes_left,
            "next": behind.map(|(path, position, offset)| json!({
                "file": path.display().to_string(),
                "position": position,
                "offset": offset.0,
            })),
            "sentence": damage.sentence,
        });
        writeln!(out, "{}", text(&object))
    }
}

/// One word for the sort of damage.
pub(super) const fn name(kind: DamageKind) -> &'static str {
    match kind {
        DamageKind::TornTail => "torn",
        DamageKind::Rot => "rot",
        DamageKind::Gap => "gap",
        DamageKind::EpochFalls => "epoch",
        DamageKind::NotWhole => "incomplete",
    }
}

/// Type and version in front of a record that cannot be read, as far as they are there.
fn numbers(batch: &Batch, raw: &RawRecord) -> (Option<u32>, Option<u32>) {
    if batch.is_control() {
        let kind = match raw.key.as_deref() {
            Some(&[_, _, high, low]) => Some(u32::from(u16::from_be_bytes([high, low]))),
            _ => None,
        };
        let version = raw.value.as_ref().and_then(|value| value.first_chunk());
        return (kind, version.map(|it| u32::from(u16::from_be_bytes(*it))));
    }
    let mut input = Reader::new(raw.value.as_deref().unwrap_or_default());
    let mut next = || input.uvarint().ok();
    let _frame = next();
    let kind = next();
    (kind, kind.and_then(|_| next()))
}

/// Hides what the reference's redactor hides: credentials, and the values of configurations that
/// are passwords or unknown. A null is a deletion and no secret.
fn mask(record: &Record, data: &mut Value) {
    let fields: &[&str] = match record {
        Record::UserScramCredential(_) => &["salt", "storedKey", "serverKey"],
        Record::Config(it) if is_secret_config(it.resource_type, &it.name) => &["value"],
        _ => return,
    };
    for field in fields {
        if let Some(value) = data.get_mut(*field).filter(|value| !value.is_null()) {
            *value = json!(REDACTED);
        }
    }
}
