//! What the tests of this room share.

use std::fs::File;

use tempfile::TempDir;

use crate::records::batch::{Batch, BatchBuilder};
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

/// A file with these bytes in a directory of its own.
pub(super) fn write_file(bytes: &[u8]) -> (TempDir, File) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(path).unwrap();
    (dir, file)
}
