//! What the tests of this room share.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::fault::Result;
use super::log::{Limits, Log};
use super::recovery::{self, OpenOptions};
use super::{Recovered, quorum_state};
use crate::raft::QuorumState;
use crate::records::batch::{Batch, BatchBuilder};
use crate::records::control::LeaderChange;
use crate::types::{Epoch, Offset, Timestamp};

/// A batch of one record with a value of `size` bytes.
pub(super) fn batch(offset: i64, epoch: i32, size: usize) -> Batch {
    batch_at(offset, epoch, size, 1_000 + offset)
}

/// The same with a timestamp.
pub(super) fn batch_at(offset: i64, epoch: i32, size: usize, timestamp: i64) -> Batch {
    let mut builder = BatchBuilder::data(Offset(offset), Epoch(epoch), Timestamp(timestamp));
    // Bytes that differ from place to place and are never zero.
    let value: Vec<u8> = (0..size).map(|at| (at % 251) as u8 + 1).collect();
    builder.push(None, Some(&value));
    builder.build()
}

/// The batch that a new leader begins its epoch with. It is as large as [`batch`] makes one for
/// `size`, from 16 on.
pub(super) fn first_of_epoch(offset: i64, epoch: i32, size: usize) -> Batch {
    let mut change = LeaderChange {
        leader_id: 1,
        ..LeaderChange::default()
    };
    // The key and the fields take 13 bytes of `size`; a tag that nobody knows takes the rest.
    if let Some(rest) = size.checked_sub(15).filter(|rest| *rest > 0) {
        let padding = vec![7; rest - usize::from(rest > 127)];
        change.unknown_tags.push(9, padding.into()).unwrap();
    }
    let mut builder =
        BatchBuilder::control(Offset(offset), Epoch(epoch), Timestamp(1_000 + offset));
    builder.push_control(&change.into()).unwrap();
    builder.build()
}

/// A file with these bytes in a directory of its own.
pub(super) fn write_file(bytes: &[u8]) -> (TempDir, File) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(path).unwrap();
    (dir, file)
}

/// How the tests open a partition's directory.
pub(super) fn options(dir: &Path) -> OpenOptions {
    OpenOptions {
        dir: dir.join("__cluster_metadata-0"),
        node_id: None,
        cluster_id: "MkU3OEVBNTcwNTJENDM2Qk".into(),
        segment_bytes: 1 << 30,
        segment_ms: 1 << 40,
        snapshot_delete_delay_ms: 60_000,
        accept_lost_vote: false,
    }
}

/// Recovers the directory and opens its log.
pub(super) fn open(options: &OpenOptions) -> Result<(Log, Recovered)> {
    let limits = Limits {
        segment_bytes: options.segment_bytes,
        segment_ms: options.segment_ms,
    };
    recovery::examine(options)?.apply(limits)
}

/// A node that took part in a quorum: it has a quorum-state.
pub(super) fn vote(options: &OpenOptions) {
    let state = QuorumState {
        epoch: Epoch(1000),
        kraft_version: 1,
        ..QuorumState::default()
    };
    quorum_state::write(&options.dir.join("quorum-state"), &state).unwrap();
}

/// Everything in a directory, to see that nothing was written.
pub(super) fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, Vec::new());
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Copies a directory that Java wrote.
pub(super) fn fixture(name: &str) -> TempDir {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    let to = tempfile::tempdir().unwrap();
    copy(&from, to.path());
    to
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
