//! Files that nobody needs, and files that are missing without harm.

use super::{Place, Report};
use crate::storage::commit_file::COMMIT_FILE;
use crate::storage::epoch_checkpoint::EPOCH_CHECKPOINT_FILE;
use crate::storage::listing::{is_leftover, numbered};
use crate::storage::log::NO_PRODUCERS;
use crate::storage::partition_metadata::PARTITION_METADATA_FILE;
use crate::storage::quorum_state::QUORUM_STATE_FILE;
use crate::storage::reader::{Role, Source};
use crate::storage::{atomic, lock};

/// Notes on strays, leftovers and missing indexes.
pub(super) fn check(report: &mut Report, place: &Place, source: &Source) {
    let has_log = |base| {
        let mut logs = source.segments.iter();
        logs.any(|file| file.role == Role::Segment { base })
    };
    for path in &source.others {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = [
            COMMIT_FILE,
            EPOCH_CHECKPOINT_FILE,
            PARTITION_METADATA_FILE,
            QUORUM_STATE_FILE,
        ];
        if known.contains(&&*name) {
            continue;
        }
        let shown = path.display();
        if numbered(&name, "snapshot").is_some() {
            let whole = atomic::read_small(path, 64);
            if !matches!(whole, Ok(Some(bytes)) if bytes == NO_PRODUCERS) {
                let what = format!("{shown} is not the empty producer state that Kafka writes.");
                report.note("producer-state", path, what);
            }
        } else if let Some(base) = numbered(&name, "index").or_else(|| numbered(&name, "timeindex"))
        {
            if !has_log(base) {
                let what = format!("{shown} has no log beside it; a start removes it.");
                report.note("leftover", path, what);
            }
        } else if is_leftover(&name) {
            let what = format!("{shown} was left over or is being written; a start removes it.");
            report.note("leftover", path, what);
        } else {
            let what =
                format!("{shown} is no file of Kafka's or kraftd's; a start leaves it alone.");
            report.note("stray", path, what);
        }
    }
    let Some(root) = &place.root else { return };
    let lock = root.join(lock::LOCK_FILE);
    if report.in_use {
        let what = format!(
            "{} is held: a process uses the directory, and what it wrote since was not read.",
            lock.display()
        );
        report.note("in-use", &lock, what);
    } else if lock.exists() {
        let what = format!(
            "{} was left by a process that was killed; it hinders nobody.",
            lock.display()
        );
        report.note("lock", &lock, what);
    }
}
