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
use super::directory::PARTITION_DIR;
use super::fault::{FaultKind, Result, StorageFault};
use super::listing::{self, Listing};
use super::meta_properties::META_PROPERTIES_FILE;
use super::snapshot;
use crate::types::OffsetAndEpoch;

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
