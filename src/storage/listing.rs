//! The names in a partition's directory, and what each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::fault::{IoContext as _, Result};
use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// Temporary names under which the small files are written.
const TEMPORARIES: [&str; 4] = [
    "quorum-state.tmp",
    "leader-epoch-checkpoint.tmp",
    "partition.metadata.tmp",
    "kraftd-commit.tmp",
];

/// What is in the directory. What is in no field is somebody else's and is left alone.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Segments by base offset.
    pub(crate) logs: BTreeSet<Offset>,
    /// Finished snapshots, the bootstrap one included.
    pub(crate) checkpoints: BTreeSet<OffsetAndEpoch>,
    /// Offsets at which a segment was closed.
    pub(crate) closed_at: BTreeSet<Offset>,
    /// Everything that has the name of a segment, an index, a producer state or a checkpoint.
    pub(crate) files: Vec<PathBuf>,
    /// What a start removes: parts, temporaries, retired files, indexes without a log.
    pub(crate) leftovers: Vec<PathBuf>,
}

/// The names in `dir`; those that are not text are nobody's here.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).context("read directory", dir)? {
        let entry = entry.context("read directory", dir)?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Sorts the names of `dir`, which may be absent.
pub(crate) fn list(dir: &Path) -> Result<Listing> {
    let mut listing = Listing::default();
    if !dir.exists() {
        return Ok(listing);
    }
    let mut indexes: BTreeMap<Offset, Vec<PathBuf>> = BTreeMap::new();
    for name in names(dir)? {
        if is_file_of_log(&name) {
            listing.files.push(dir.join(&name));
        }
        if let Some(base) = numbered(&name, "log") {
            listing.logs.insert(base);
        } else if let Some(id) = checkpoint_id(&name) {
            listing.checkpoints.insert(id);
        } else if let Some(offset) = numbered(&name, "snapshot") {
            listing.closed_at.insert(offset);
        } else if let Some(base) = numbered(&name, "index").or_else(|| numbered(&name, "timeindex"))
        {
            indexes.entry(base).or_default().push(dir.join(name));
        } else if is_leftover(&name) {
            listing.leftovers.push(dir.join(name));
        }
    }
    for (base, paths) in indexes {
        if !listing.logs.contains(&base) {
            listing.leftovers.extend(paths);
        }
    }
    Ok(listing)
}

fn is_file_of_log(name: &str) -> bool {
    let mut kinds = ["log", "index", "timeindex", "snapshot"].into_iter();
    kinds.any(|kind| numbered(name, kind).is_some()) || checkpoint_id(name).is_some()
}

/// The offset in a name of twenty digits, a dot and `extension`.
pub(crate) fn numbered(name: &str, extension: &str) -> Option<Offset> {
    let digits = name.strip_suffix(extension)?.strip_suffix('.')?;
    number(digits, 20).map(Offset)
}

/// The id in the name of a finished snapshot.
pub(crate) fn checkpoint_id(name: &str) -> Option<OffsetAndEpoch> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    Some(OffsetAndEpoch {
        offset: Offset(number(offset, 20)?),
        epoch: Epoch(number(epoch, 10)?),
    })
}

/// The name of a finished snapshot.
pub(crate) fn checkpoint_name(id: OffsetAndEpoch) -> String {
    format!("{:020}-{:010}.checkpoint", id.offset.0, id.epoch.0)
}

fn number<T: std::str::FromStr>(digits: &str, width: usize) -> Option<T> {
    let good = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
    good.then(|| digits.parse().ok()).flatten()
}

pub(crate) fn is_leftover(name: &str) -> bool {
    let ours = name
        .get(..20)
        .is_some_and(|start| start.bytes().all(|byte| byte.is_ascii_digit()));
    (ours && (name.ends_with(".checkpoint.part") || name.ends_with(".deleted")))
        || TEMPORARIES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_java_leaves_is_sorted() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "00000000000000000000.log",
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
            "00000000000000000029.index",
            "00000000000000000029.snapshot",
            "00000000000000000000-0000000000.checkpoint",
            "00000000000000000773-0000000005.checkpoint",
            "00000000000000000780-0000000005-1234.checkpoint.part",
            "00000000000000000700-0000000005.checkpoint.deleted",
            "00000000000000000000.log.deleted",
            "quorum-state.tmp",
            "leader-epoch-checkpoint",
            "quorum-state",
            "partition.metadata",
            "kraftd-commit",
            "lost+found",
            "note.deleted",
            "123.log",
            "0000000000000000000x.log",
            "99999999999999999999.log",
        ] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(Vec::from_iter(listing.logs), [Offset(0)]);
        assert_eq!(Vec::from_iter(listing.closed_at), [Offset(29)]);
        let newest = listing.checkpoints.last().copied().unwrap();
        assert_eq!((newest.offset, newest.epoch), (Offset(773), Epoch(5)));
        assert_eq!(listing.checkpoints.len(), 2);
        assert_eq!(listing.files.len(), 7, "{:?}", listing.files);
        assert_eq!(listing.leftovers.len(), 5, "{:?}", listing.leftovers);
        assert_eq!(
            checkpoint_name(newest),
            "00000000000000000773-0000000005.checkpoint"
        );
    }

    #[test]
    fn an_absent_directory_is_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        assert!(list(&dir.path().join("x")).unwrap().logs.is_empty());
    }
}
