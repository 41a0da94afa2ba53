//! The newest batches in memory, for fetches: the followers' reads rarely touch the disk.
//!
//! Invariant: what was appended and is not yet durable is always here, because a read of the disk
//! may not see it. Older batches are dropped from the front while the bytes exceed the limit.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::records::batch::Batch;
use crate::types::Offset;

struct Entry {
    first: Offset,
    /// Exclusive.
    end: Offset,
    batch: Bytes,
}

/// Recent batches, one entry a batch, without gaps.
pub(crate) struct Tail {
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    /// An empty tail that keeps about `bytes_max` bytes of durable batches.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds whole batches, each as an entry of its own. Whoever has them written has looked at
    /// them: at bytes that are no batch the rest is left to the disk.
    pub(crate) fn append(&mut self, mut batches: Bytes) {
        while let Ok(Some(batch)) = Batch::take_from(&mut batches) {
            let (first, end) = (batch.base_offset(), batch.end_offset());
            self.push(first, end, batch.into_bytes());
        }
    }

    /// Adds the batch that covers `first..end`. A gap to what is here empties the tail first.
    fn push(&mut self, first: Offset, end: Offset, batch: Bytes) {
        if self.entries.back().is_some_and(|last| last.end != first) {
            self.clear();
        }
        self.bytes += batch.len();
        self.entries.push_back(Entry { first, end, batch });
    }

    /// Forgets what lies at or behind `end`.
    pub(crate) fn truncate(&mut self, end: Offset) {
        while self.entries.back().is_some_and(|last| last.end > end) {
            if let Some(entry) = self.entries.pop_back() {
                self.bytes -= entry.batch.len();
            }
        }
    }

    /// Drops old batches that lie below `durable` (exclusive) while there are too many bytes.
    pub(crate) fn trim(&mut self, durable: Offset) {
        while self.bytes > self.bytes_max {
            match self.entries.front() {
                Some(entry) if entry.end <= durable => {
                    self.bytes -= entry.batch.len();
                    self.entries.pop_front();
                }
                _ => return,
            }
        }
    }

    /// Whole batches from the one that holds `from` up to those that begin below `until`, at most
    /// `bytes_max` bytes but at least one batch. `None` when `from` is not covered here.
    pub(crate) fn read(&self, from: Offset, until: Offset, bytes_max: usize) -> Option<Bytes> {
        let covered = self.entries.front()?.first <= from && from < self.entries.back()?.end;
        if !covered {
            return None;
        }
        let start = self.entries.partition_point(|entry| entry.end <= from);
        let mut taken = 0;
        let mut count = 0;
        for entry in self.entries.range(start..) {
            let full = count > 0 && taken + entry.batch.len() > bytes_max;
            if entry.first >= until || full {
                break;
            }
            taken += entry.batch.len();
            count += 1;
        }
        if count == 1 {
            return Some(self.entries[start].batch.clone());
        }
        let mut all = BytesMut::with_capacity(taken);
        for entry in self.entries.range(start..start + count) {
            all.extend_from_slice(&entry.batch);
        }
        Some(all.freeze())
    }

    /// The batch that begins at `first`, if it is here.
    pub(crate) fn batch(&self, first: Offset) -> Option<Bytes> {
        let at = self.entries.partition_point(|entry| entry.first < first);
        let entry = self.entries.get(at)?;
        (entry.first == first).then(|| entry.batch.clone())
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(batches: &[(i64, i64, usize)]) -> Tail {
        let mut tail = Tail::new(10);
        for &(first, end, len) in batches {
            tail.push(
                Offset(first),
                Offset(end),
                Bytes::from(vec![first as u8; len]),
            );
        }
        tail
    }

    #[test]
    fn a_read_begins_with_the_batch_that_holds_the_offset() {
        let tail = tail_of(&[(0, 3, 4), (3, 4, 4), (4, 9, 4)]);
        let read = tail.read(Offset(2), Offset(9), 100).unwrap();
        assert_eq!(read.as_ref(), [0, 0, 0, 0, 3, 3, 3, 3, 4, 4, 4, 4]);
        assert_eq!(
            tail.read(Offset(8), Offset(9), 100).unwrap().as_ref(),
            [4; 4]
        );
    }

    #[test]
    fn a_read_gives_one_batch_even_above_the_byte_limit_and_stops_at_until() {
        let tail = tail_of(&[(0, 3, 4), (3, 4, 4), (4, 9, 4)]);
        assert_eq!(tail.read(Offset(0), Offset(9), 1).unwrap().as_ref(), [0; 4]);
        assert_eq!(
            tail.read(Offset(0), Offset(3), 100).unwrap().as_ref(),
            [0; 4]
        );
    }

    #[test]
    fn a_read_outside_of_the_tail_is_left_to_the_disk() {
        let tail = tail_of(&[(5, 6, 4)]);
        assert!(tail.read(Offset(4), Offset(9), 100).is_none());
        assert!(tail.read(Offset(6), Offset(9), 100).is_none());
    }

    #[test]
    fn what_is_not_durable_survives_the_trim() {
        let mut tail = tail_of(&[(0, 1, 8), (1, 2, 8), (2, 3, 8)]);
        tail.trim(Offset(1));
        assert!(tail.read(Offset(0), Offset(3), 1).is_none());
        assert!(tail.read(Offset(1), Offset(3), 1).is_some());
    }

    #[test]
    fn truncation_and_gaps_leave_no_hole() {
        let mut tail = tail_of(&[(0, 1, 1), (1, 2, 1)]);
        tail.truncate(Offset(1));
        assert!(tail.read(Offset(1), Offset(2), 1).is_none());
        tail.push(Offset(7), Offset(8), Bytes::from_static(b"x"));
        assert!(tail.read(Offset(0), Offset(8), 9).is_none());
        assert_eq!(tail.read(Offset(7), Offset(8), 9).unwrap().as_ref(), b"x");
    }
}
