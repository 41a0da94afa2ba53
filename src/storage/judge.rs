//! Bad bytes judged: a torn tail, or rot.
//!
//! A **torn tail** is what a crash leaves: bad bytes at the end of the log, with no whole batch
//! behind them. Anything else is **rot**: the bytes were good once and the disk changed them.
//!
//! One crash looks like rot: the batches of one unsynced write may reach the disk in any order, so
//! that a whole batch is behind pages that were never written. Such pages are zeros, which a
//! changed bit is not, and they are near the end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::scan::find_batch;
use crate::records::batch::BATCH_BYTES_MAX;
use crate::types::Offset;

const PAGE_BYTES: u64 = 4096;

/// The most that a hole can have behind it: what is written between two syncs.
const UNSYNCED_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX as u64;

/// A whole batch behind bad bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Which of the files it is in.
    pub(crate) file: usize,
    /// Where it begins there.
    pub(crate) position: u64,
    /// Its base offset.
    pub(crate) offset: Offset,
    /// The bad bytes hold pages that were never written, at the end of the log: a torn tail.
    pub(crate) torn: bool,
}

/// Looks for a whole batch behind the bad bytes at `position` of the first of `files` (each with
/// its size, in the order of the log). `expected` is the offset at which the log ends before them.
/// `budget` is how many bytes of candidates may be summed up; see [`find_batch`].
pub(crate) fn find_behind(
    files: &[(&File, u64)],
    position: u64,
    expected: Offset,
    budget: &mut u64,
) -> io::Result<Option<Behind>> {
    for (at, (file, bytes)) in files.iter().enumerate() {
        let from = if at == 0 { position + 1 } else { 0 };
        let Some((place, header)) = find_batch(file, from, *bytes, expected, budget)? else {
            continue;
        };
        let torn = files.len() == 1
            && bytes - position <= UNSYNCED_BYTES_MAX
            && has_hole(file, position, place)?;
        return Ok(Some(Behind {
            file: at,
            position: place,
            offset: header.base_offset,
            torn,
        }));
    }
    Ok(None)
}

/// Whether a page in `file[from..to]` was never written: all zeros, from its begin (or from `from`,
/// if that is inside it and far enough from the end for a batch to show) to its end.
fn has_hole(file: &File, from: u64, to: u64) -> io::Result<bool> {
    let mut page = from / PAGE_BYTES * PAGE_BYTES;
    let mut buffer = [0; PAGE_BYTES as usize];
    while page + PAGE_BYTES <= to {
        let start = page.max(from);
        let bytes = &mut buffer[..(page + PAGE_BYTES - start) as usize];
        file.read_exact_at(bytes, start)?;
        // A batch's first 17 bytes are never all zero: the last of them is its format.
        if bytes.len() >= 17 && bytes.iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        page += PAGE_BYTES;
    }
    Ok(false)
}
