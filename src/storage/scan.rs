//! Walks the batches of a file, each with its checksum verified, in windows of bounded size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use bytes::{Bytes, BytesMut};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::records::batch::{
    Batch, BatchFault, BatchHeader, HEADER_BYTES, MAGIC, MAGIC_AT, Peek, peek,
};
use crate::types::Offset;

/// What is read at a time, unless a batch is larger.
const WINDOW_BYTES: u64 = 1 << 20;

/// How many bytes of candidates are summed up in a search before it gives up and calls it found.
pub(crate) const SEARCH_BYTES_MAX: u64 = 256 << 20;

/// What comes next in a file.
#[derive(Debug)]
pub(crate) enum Next {
    /// A batch with a good checksum, and where it begins.
    Batch(u64, Batch),
    /// The end of the file, right behind the last batch.
    End,
    /// Bytes that are no batch, and where they begin.
    Bad(u64, BatchFault),
}

/// A walk over `file[position..end]`.
#[derive(Debug)]
pub(crate) struct BatchScan<'a> {
    file: &'a File,
    position: u64,
    end: u64,
    /// The bytes from `position` on that were read already.
    window: Bytes,
}

impl<'a> BatchScan<'a> {
    pub(crate) const fn new(file: &'a File, position: u64, end: u64) -> Self {
        Self {
            file,
            position,
            end,
            window: Bytes::new(),
        }
    }

    /// Where the next batch begins, or the bytes that are none.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Goes one batch further. After `End` or `Bad` it stays where it is.
    pub(crate) fn next(&mut self) -> io::Result<Next> {
        loop {
            let left = self.end - self.position;
            if left == 0 {
                return Ok(Next::End);
            }
            let needed = match peek(&self.window) {
                Peek::Batch(_) => return Ok(self.take()),
                Peek::Garbage(fault) => return Ok(Next::Bad(self.position, fault)),
                Peek::Partial { bytes_needed } => bytes_needed as u64,
            };
            if needed > left {
                return Ok(Next::Bad(self.position, BatchFault::Truncated));
            }
            let bytes = needed.max(WINDOW_BYTES).min(left);
            self.widen(usize::try_from(bytes).map_err(io::Error::other)?)?;
        }
    }

    /// Makes the window this long, in the memory that it had unless a batch of it is still held.
    fn widen(&mut self, bytes: usize) -> io::Result<()> {
        let read = self.window.len();
        let mut window = match std::mem::take(&mut self.window).try_into_mut() {
            Ok(window) => window,
            Err(held) => {
                let mut window = BytesMut::with_capacity(bytes);
                window.extend_from_slice(&held);
                window
            }
        };
        window.resize(bytes, 0);
        self.file
            .read_exact_at(&mut window[read..], self.position + read as u64)?;
        self.window = window.freeze();
        Ok(())
    }

    /// The batch that the window begins with.
    fn take(&mut self) -> Next {
        let mut rest = self.window.clone();
        let taken = Batch::take_from(&mut rest);
        let batch = match taken {
            Ok(Some(batch)) => batch,
            Ok(None) => return Next::Bad(self.position, BatchFault::Truncated),
            Err(fault) => return Next::Bad(self.position, fault),
        };
        if let Err(fault) = batch.verify_crc() {
            return Next::Bad(self.position, fault);
        }
        let position = self.position;
        self.position += batch.size() as u64;
        self.window = rest;
        Next::Batch(position, batch)
    }
}

/// Exactly `bytes` bytes from `position`; the caller bounds them.
pub(crate) fn read_at(file: &File, position: u64, bytes: u64) -> io::Result<Bytes> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, position)?;
    Ok(Bytes::from(buffer))
}

/// Looks for a whole batch with a good checksum and a base offset of at least `offset` that begins
/// anywhere in `file[from..end]`. Lengths inside bad bytes are not to be trusted, so every position
/// is tried. When bytes are so strange that trying costs more than `budget` (in bytes summed up),
/// the answer is the candidate at hand: doubt counts as found, and the budget is 0.
pub(crate) fn find_batch(
    file: &File,
    from: u64,
    end: u64,
    offset: Offset,
    budget: &mut u64,
) -> io::Result<Option<(u64, BatchHeader)>> {
    let mut start = behind_hole(file, from);
    while start + HEADER_BYTES as u64 <= end {
        let bytes = (end - start).min(WINDOW_BYTES);
        let window = read_at(file, start, bytes)?;
        let positions = window.len() - HEADER_BYTES + 1;
        // What cannot begin a batch is passed over at the speed of memory.
        let marks = &window[MAGIC_AT..MAGIC_AT + positions];
        for at in memchr::memchr_iter(MAGIC as u8, marks) {
            let Ok(header) = BatchHeader::parse(&window[at..]) else {
                continue;
            };
            let position = start + at as u64;
            let size = header.size() as u64;
            if header.base_offset < offset || size > end - position {
                continue;
            }
            if size > *budget {
                *budget = 0;
                return Ok(Some((position, header)));
            }
            *budget -= size;
            let bytes = read_at(file, position, size)?;
            if Batch::parse(bytes).is_ok_and(|batch| batch.verify_crc().is_ok()) {
                return Ok(Some((position, header)));
            }
        }
        start = behind_hole(file, start + positions as u64);
    }
    Ok(None)
}

/// Where a batch can begin at or behind `position`: one that begins in a hole of the file, which
/// may be larger than the disk, has its mark in the bytes behind that.
fn behind_hole(file: &File, position: u64) -> u64 {
    match seek(file, SeekFrom::Data(position)) {
        Ok(data) => position.max(data.saturating_sub(MAGIC_AT as u64)),
        Err(Errno::NXIO) => u64::MAX - HEADER_BYTES as u64, // Nothing but a hole.
        Err(_) => position,                                 // A file system that knows no holes.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::testing::{batch, write_file};

    fn walk(bytes: &[u8]) -> (usize, Next) {
        let (_dir, file) = write_file(bytes);
        let mut scan = BatchScan::new(&file, 0, bytes.len() as u64);
        let mut count = 0;
        loop {
            match scan.next().unwrap() {
                Next::Batch(..) => count += 1,
                other => return (count, other),
            }
        }
    }

    #[test]
    fn batches_larger_and_smaller_than_a_window_are_walked() {
        let sizes = [10, 3 << 20, 0, 1 << 20, 70];
        let mut bytes = Vec::new();
        for (offset, size) in sizes.iter().enumerate() {
            bytes.extend_from_slice(batch(offset as i64, 1, *size).bytes());
        }
        let (count, next) = walk(&bytes);
        assert_eq!(count, sizes.len());
        assert!(matches!(next, Next::End));
    }

    #[test]
    fn the_first_bad_batch_ends_the_walk_where_it_begins() {
        let first = batch(0, 1, 10);
        let mut bytes = first.bytes().to_vec();
        bytes.extend_from_slice(batch(1, 1, 10).bytes());
        for cut in first.size() + 1..bytes.len() {
            let (count, next) = walk(&bytes[..cut]);
            assert_eq!(count, 1);
            assert!(matches!(next, Next::Bad(at, _) if at == first.size() as u64));
        }
        bytes[first.size() + 70] ^= 1;
        assert!(matches!(
            walk(&bytes).1,
            Next::Bad(_, BatchFault::BadCrc { .. })
        ));
    }

    /// A file can be larger than any disk, all of it zeros.
    #[test]
    fn a_hole_of_any_size_is_passed_over_and_a_batch_behind_it_is_found() {
        use std::os::unix::fs::FileExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(dir.path().join("file"))
            .unwrap();
        let is_hole = |bytes| {
            file.set_len(bytes).is_ok() && seek(&file, SeekFrom::Data(0)) == Err(Errno::NXIO)
        };
        // A file system that knows no holes, or no such sizes, has every zero read.
        let end = if is_hole(1 << 40) { 1 << 40 } else { 8 << 20 };
        file.set_len(end).unwrap();
        let find = |end| {
            let mut budget = SEARCH_BYTES_MAX;
            let found = find_batch(&file, 7, end, Offset(0), &mut budget).unwrap();
            found.map(|(position, _)| position)
        };
        assert_eq!(find(end), None);
        // Offset 0: the first bytes are zeros too, and may be in the hole.
        let good = batch(0, 1, 50);
        for position in [end - 9, end] {
            file.write_all_at(good.bytes(), position).unwrap();
            assert_eq!(find(position + good.size() as u64), Some(position));
            file.set_len(end - 4096).unwrap();
        }
    }

    #[test]
    fn a_batch_is_found_at_any_position_behind_bad_bytes() {
        let good = batch(7, 1, 50);
        for shift in [0, 1, 60, 4095, (1 << 20) - 61, (1 << 20) - 1, 1 << 20] {
            let mut bytes = vec![0xa5; shift];
            bytes.extend_from_slice(good.bytes());
            let (_dir, file) = write_file(&bytes);
            let end = bytes.len() as u64;
            let find = |end, offset| {
                let mut budget = SEARCH_BYTES_MAX;
                find_batch(&file, 0, end, Offset(offset), &mut budget).unwrap()
            };
            assert_eq!(find(end, 7).unwrap().0, shift as u64);
            assert!(find(end, 8).is_none());
            assert!(find(end - 1, 7).is_none());
        }
    }
}
