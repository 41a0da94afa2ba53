//! What `format` left for the first controller of a cluster: records to write first.
//!
//! Releases up to 4.3 wrote the file `bootstrap.checkpoint` beside the partition's directory; 4.4
//! writes the records into the snapshot 0-0 inside it (KIP-1170), where the voters have been since
//! KIP-853. Data records of 0-0, if there are any, take the place of the file's.

use std::path::Path;

use tracing::warn;

use super::control;
use super::directory::PARTITION_DIR;
use super::fault::{FaultKind, Result, StorageFault};
use super::snapshot::{self, SnapshotFile};
use crate::raft::ControlRecord;
use crate::records::VersionedRecord;
use crate::types::OffsetAndEpoch;

/// The file that older releases write.
pub const BOOTSTRAP_FILE: &str = "bootstrap.checkpoint";

/// Bootstrap records are few; a larger file is not one of them.
const BYTES_MAX: u64 = 64 << 20;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bootstrap {
    /// Metadata records in order; empty when nothing was formatted for this node.
    pub records: Vec<VersionedRecord>,
    /// `kraft.version` and voters of 0-0.
    pub control: Vec<ControlRecord>,
    /// Where the records came from, for the log.
    pub source: String,
}

/// Loads what is in `metadata_log_dir`.
///
/// # Errors
/// `Damaged` when a file is no snapshot, `Unsupported` for records of a later release. An empty 0-0
/// is as good as none: the voters are in the log too.
pub fn load(metadata_log_dir: &Path) -> Result<Bootstrap> {
    let mut bootstrap = Bootstrap::default();
    let file = metadata_log_dir.join(BOOTSTRAP_FILE);
    if file.exists() {
        bootstrap.records = read(&file).map_err(with_help)?.records;
        bootstrap.source = file.display().to_string();
    }
    let partition = metadata_log_dir.join(PARTITION_DIR);
    let zero = snapshot::path(&partition, OffsetAndEpoch::BOOTSTRAP);
    if zero.exists() {
        let found = read(&zero).map_err(with_help)?;
        bootstrap.control = found.control;
        if !found.records.is_empty() {
            bootstrap.records = found.records;
            bootstrap.source = zero.display().to_string();
        }
    }
    Ok(bootstrap)
}

/// What helps against a file that cannot be used: `format` wrote it.
fn with_help(fault: StorageFault) -> StorageFault {
    let help = match fault.kind {
        FaultKind::Damaged => {
            "It is what `kraftd format` left for the first start. If this node has never been \
             started, remove what is in its log directories and format them again; otherwise \
             restore the file from a backup."
        }
        FaultKind::Unsupported => "Start the release that wrote it.",
        _ => return fault,
    };
    StorageFault {
        sentence: format!("{} {help}", fault.sentence),
        help: Some(help.to_owned()),
        ..fault
    }
}

fn read(path: &Path) -> Result<Bootstrap> {
    let mut bootstrap = Bootstrap::default();
    let file = SnapshotFile::open(path)?;
    if file.bytes() == 0 {
        warn!(file = %path.display(), "the bootstrap snapshot is empty; going on without it");
        return Ok(bootstrap);
    }
    if file.bytes() > BYTES_MAX {
        let sentence = format!(
            "{} has {} bytes, too many for bootstrap records.",
            path.display(),
            file.bytes()
        );
        return Err(StorageFault::new(FaultKind::Damaged, path, sentence));
    }
    for batch in file.batches() {
        let batch = batch?;
        if batch.is_control() {
            let records = control::records(path, &batch)?;
            bootstrap
                .control
                .extend(records.into_iter().map(|(_, record)| record));
            continue;
        }
        for record in batch.records() {
            let value = record
                .map_err(|fault| fault.to_string())
                .and_then(|record| record.value.ok_or_else(|| "a record is null".to_owned()))
                .and_then(|value| {
                    VersionedRecord::decode(&value).map_err(|fault| fault.to_string())
                });
            let record = value.map_err(|what| {
                let sentence = format!(
                    "{} holds a record that this release cannot read: {what}.",
                    path.display()
                );
                StorageFault::new(FaultKind::Unsupported, path, sentence)
            })?;
            bootstrap.records.push(record);
        }
    }
    Ok(bootstrap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_refused_with_what_helps() {
        let dir = tempfile::tempdir().unwrap();
        let partition = dir.path().join(PARTITION_DIR);
        std::fs::create_dir(&partition).unwrap();
        let zero = snapshot::path(&partition, OffsetAndEpoch::BOOTSTRAP);
        for path in [zero, dir.path().join(BOOTSTRAP_FILE)] {
            std::fs::write(&path, [7; 100]).unwrap();
            let fault = load(dir.path()).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Damaged);
            assert!(fault.sentence.contains(path.to_str().unwrap()), "{fault}");
            assert!(fault.sentence.contains("format them again"), "{fault}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
