//! What lies beside `meta.properties`: one without the other is no state that a format leaves.
//!
//! `kafka-storage format` and `kraftd format` always leave the first records of a controller:
//! 3.9 to 4.3 in `bootstrap.checkpoint` in the root of the metadata log directory, 4.4 and kraftd
//! in the checkpoint 0-0 of the partition's directory (KIP-1170). So a formatted directory with
//! neither of them, no log and no later checkpoint lost what it had: a volume that is not mounted,
//! or a directory that was deleted or emptied. A start there would make a voter that remembers
//! neither its vote nor what it acknowledged, or a controller of an empty cluster.

use std::path::Path;

use super::bootstrap::BOOTSTRAP_FILE;
use super::commit_file::{self, COMMIT_FILE, Found};
use super::directory::PARTITION_DIR;
use super::fault::{FaultKind, Result, StorageFault};
use super::listing::{self, Listing};
use super::meta_properties::META_PROPERTIES_FILE;
use super::segment::log_path;
use super::snapshot;
use crate::types::{Offset, OffsetAndEpoch};

/// What helps when the metadata of a formatted directory is gone.
pub(crate) const PUT_BACK: &str = "Mount it, or put it back from a backup; only if it is lost and \
     the other voters have everything, delete meta.properties and format the directory again.";

/// Whether segments or checkpoints lie there. The empty 0-0 that a crash leaves has no records.
fn has_metadata(partition: &Path, listing: &Listing) -> bool {
    let has_content = |id: &OffsetAndEpoch| {
        *id != OffsetAndEpoch::BOOTSTRAP
            || snapshot::path(partition, *id)
                .metadata()
                .map_or(true, |found| found.len() > 0)
    };
    !listing.logs.is_empty() || listing.checkpoints.iter().any(has_content)
}

/// Whether a node has lived there: what a format leaves is a checkpoint 0-0 at most.
fn has_lived(partition: &Path, listing: &Listing) -> bool {
    let is_later = |id: &OffsetAndEpoch| *id != OffsetAndEpoch::BOOTSTRAP;
    let has_records = |base: &Offset| {
        *base > Offset::ZERO
            || log_path(partition, *base)
                .metadata()
                .map_or(true, |found| found.len() > 0)
    };
    listing.logs.iter().any(has_records) || listing.checkpoints.iter().any(is_later)
}

/// Refuses the log directory `root`, which has no `meta.properties`, if it holds the metadata of a
/// cluster. `wanted` is the id of the cluster that it shall be formatted for, if it shall.
///
/// # Errors
/// `Identity` when a log or a later checkpoint is there, unless it is of the cluster `wanted`.
pub(crate) fn check_unformatted(root: &Path, wanted: Option<&str>) -> Result<()> {
    let partition = root.join(PARTITION_DIR);
    if !has_lived(&partition, &listing::list(&partition)?) {
        return Ok(());
    }
    let known = match commit_file::read(&partition.join(COMMIT_FILE))? {
        Found::Mark(mark) => Some(mark.cluster_id),
        Found::Absent | Found::Damaged => None,
    };
    if known.is_some() && known.as_deref() == wanted {
        return Ok(());
    }
    let whose = known.map_or_else(
        || "of a cluster whose id is not told there".to_owned(),
        |id| format!("of the cluster {id}"),
    );
    let asked = wanted.map_or_else(String::new, |id| format!(" and not of {id}"));
    let path = root.join(META_PROPERTIES_FILE);
    let sentence = format!(
        "{} is missing, but {} holds metadata {whose}{asked}: put the file back from a backup, as \
         a format would give the metadata another identity; to begin anew, move {} away first.",
        path.display(),
        partition.display(),
        partition.display()
    );
    Err(StorageFault::new(FaultKind::Identity, &path, sentence))
}

/// Refuses the formatted log directory `root` if its metadata is gone.
///
/// # Errors
/// `Missing` when neither a log nor a checkpoint is there, and no `bootstrap.checkpoint` that says
/// that this may be the first start; `Io` when the partition's directory cannot be read.
pub(crate) fn check_metadata(root: &Path) -> Result<()> {
    let partition = root.join(PARTITION_DIR);
    if has_metadata(&partition, &listing::list(&partition)?) || root.join(BOOTSTRAP_FILE).exists() {
        return Ok(());
    }
    let sentence = format!("{} {PUT_BACK}", gone(root));
    Err(StorageFault::new(FaultKind::Missing, &partition, sentence))
}

/// The sentence about metadata that is gone from the formatted log directory `root`.
pub(crate) fn gone(root: &Path) -> String {
    let partition = root.join(PARTITION_DIR);
    let what = match partition.exists() {
        true => "has no log segment (*.log) and no checkpoint (*.checkpoint)",
        false => "is missing",
    };
    format!(
        "{} {what}, although {} says that this node was formatted, which leaves its first records \
         there: the metadata is gone, and this node's vote with it.",
        partition.display(),
        root.join(META_PROPERTIES_FILE).display()
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::testing::fixture;

    #[test]
    fn metadata_without_meta_properties_is_not_offered_a_format_and_not_given_one() {
        let dir = fixture("4.4.0/lived/dynamic-stopped");
        fs::remove_file(dir.path().join(META_PROPERTIES_FILE)).unwrap();
        for wanted in [None, Some("other")] {
            let fault = check_unformatted(dir.path(), wanted).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Identity);
            assert!(fault.sentence.contains("put the file back"), "{fault}");
            assert!(fault.sentence.contains("is not told there"), "{fault}");
        }
        let mark = commit_file::CommitMark {
            sequence: 1,
            cluster_id: "mine".to_owned(),
            commit: OffsetAndEpoch::default(),
        };
        let path = dir.path().join(PARTITION_DIR).join(COMMIT_FILE);
        drop(commit_file::CommitFile::open(&path, mark).unwrap());
        let fault = check_unformatted(dir.path(), Some("other")).unwrap_err();
        let words = "of the cluster mine and not of other";
        assert!(fault.sentence.contains(words), "{fault}");
        assert!(check_unformatted(dir.path(), None).is_err());
        check_unformatted(dir.path(), Some("mine")).unwrap();
        // What a format left that was cut short.
        for name in ["4.4.0/formatted/standalone", "4.3.1/formatted/standalone"] {
            check_unformatted(fixture(name).path(), Some("other")).unwrap();
        }
    }

    #[test]
    fn a_formatted_directory_whose_metadata_is_gone_is_told_from_one_that_never_started() {
        for version in ["3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"] {
            for kind in ["static-voters", "standalone", "initial-controllers"] {
                let dir = fixture(&format!("{version}/formatted/{kind}"));
                check_metadata(dir.path()).unwrap();
                let partition = dir.path().join(PARTITION_DIR);
                if partition.exists() {
                    fs::remove_dir_all(&partition).unwrap();
                }
                // Up to 4.3 this is what `format` leaves of a static quorum.
                assert_eq!(check_metadata(dir.path()).is_ok(), version != "4.4.0");
                let file = dir.path().join(BOOTSTRAP_FILE);
                if file.exists() {
                    fs::remove_file(&file).unwrap();
                }
                let fault = check_metadata(dir.path()).unwrap_err();
                assert_eq!(fault.kind, FaultKind::Missing);
                assert!(fault.sentence.contains("is missing"), "{fault}");
                fs::create_dir(&partition).unwrap();
                // A new volume is not quite empty, and neither is a checkpoint.
                fs::create_dir(partition.join("lost+found")).unwrap();
                let zero = snapshot::path(&partition, OffsetAndEpoch::BOOTSTRAP);
                fs::write(zero, b"").unwrap();
                let fault = check_metadata(dir.path()).unwrap_err();
                assert!(fault.sentence.contains("no log segment"), "{fault}");
                assert!(fault.sentence.contains("Mount it"), "{fault}");
            }
        }
    }
}
