//! The records inside a batch, each length checked before it is used.

use std::ops::Range;

use bytes::{Buf as _, Bytes};

use super::{BatchFault, BatchHeader};
use crate::types::{Offset, Timestamp};

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// The key: null in data records, the type in control records.
    pub key: Option<Bytes>,
    /// The value, sharing the batch's memory (or that of what was decompressed).
    pub value: Option<Bytes>,
}

/// The records of one batch, in order.
#[derive(Clone, Debug)]
pub struct Records {
    header: BatchHeader,
    rest: Bytes,
    /// The batch cannot be walked at all.
    fault: Option<BatchFault>,
    record_bytes_max: usize,
    index: u32,
    done: bool,
}

impl Iterator for Records {
    type Item = Result<RawRecord, BatchFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if let Some(fault) = self.fault.take() {
            self.done = true;
            return Some(Err(fault));
        }
        if self.index == self.header.count {
            self.done = true;
            let left = self.rest.len();
            return (left > 0).then_some(Err(BatchFault::LeftOver(left)));
        }
        let record = self.take();
        self.done = record.is_err();
        self.index += 1;
        Some(record)
    }
}

impl Records {
    /// `strict` holds the records to the rules of Kafka's loader.
    pub(super) fn new(header: BatchHeader, body: Bytes, strict: bool) -> Self {
        let body = match header.count {
            0 if strict => Err(BatchFault::NoRecords),
            _ => header.codec.decompress(body),
        };
        let (rest, fault) = match body {
            Ok(body) => (body, None),
            Err(fault) => (Bytes::new(), Some(fault)),
        };
        Self {
            header,
            rest,
            fault,
            record_bytes_max: if strict { header.size() } else { usize::MAX },
            index: 0,
            done: false,
        }
    }

    fn take(&mut self) -> Result<RawRecord, BatchFault> {
        let bad = BatchFault::BadRecord { index: self.index };
        let mut walk = Walk {
            bytes: &self.rest,
            at: 0,
        };
        let length = walk.length().flatten().ok_or_else(|| bad.clone())?;
        if length > walk.left() {
            return Err(BatchFault::Truncated);
        }
        if length > self.record_bytes_max {
            return Err(BatchFault::RecordTooLarge {
                index: self.index,
                bytes: length,
            });
        }
        let end = walk.at + length;
        walk.bytes = &walk.bytes[..end];
        let (timestamp_delta, key, value) = walk.record(self.index).ok_or(bad)?;
        let timestamp = if self.header.is_log_append_time() {
            Some(self.header.max_timestamp.0)
        } else {
            self.header.base_timestamp.0.checked_add(timestamp_delta)
        };
        let record = RawRecord {
            offset: self.header.base_offset.plus(i64::from(self.index)),
            timestamp: timestamp.map(Timestamp).ok_or(BatchFault::Timestamp)?,
            key: key.map(|range| self.rest.slice(range)),
            value: value.map(|range| self.rest.slice(range)),
        };
        self.rest.advance(end);
        Ok(record)
    }
}

/// The timestamp delta, and where the key and the value are.
type Split = (i64, Option<Range<usize>>, Option<Range<usize>>);

/// Bytes and how far they are read. Handles to shared bytes are made for what is kept alone: they
/// cost more than all the rest of a walk.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The rest as the body of one record with the offset delta `index`, `None` when it is not
    /// exactly that.
    fn record(&mut self, index: u32) -> Option<Split> {
        let attributes = self.skip(1)?;
        if self.bytes[attributes.start] != 0 {
            return None;
        }
        let timestamp_delta = self.varint()?;
        if self.varint()? != i64::from(index) {
            return None;
        }
        let key = self.nullable()?;
        let value = self.nullable()?;
        // Each header takes at least two bytes, so a false count ends early.
        let headers = self.length()??;
        for _ in 0..headers {
            let name = self.length()??;
            self.skip(name)?;
            self.nullable()?;
        }
        (self.left() == 0).then_some((timestamp_delta, key, value))
    }

    /// The next `count` bytes.
    fn skip(&mut self, count: usize) -> Option<Range<usize>> {
        if count > self.left() {
            return None;
        }
        let start = self.at;
        self.at += count;
        Some(start..self.at)
    }

    /// A length-prefixed field: `Some(None)` is null, `None` is malformed.
    #[expect(
        clippy::option_option,
        reason = "null is a value here, malformed is not"
    )]
    fn nullable(&mut self) -> Option<Option<Range<usize>>> {
        match self.length()? {
            None => Some(None),
            Some(length) => self.skip(length).map(Some),
        }
    }

    /// A length: `Some(None)` is -1 (null), `None` is malformed.
    #[expect(
        clippy::option_option,
        reason = "null is a value here, malformed is not"
    )]
    fn length(&mut self) -> Option<Option<usize>> {
        match self.varint()? {
            -1 => Some(None),
            length => usize::try_from(length).ok().map(Some),
        }
    }

    /// A zig-zag variable-length integer of at most 64 bits.
    fn varint(&mut self) -> Option<i64> {
        // Most of them are small.
        if let Some(&byte) = self.bytes.get(self.at)
            && byte < 0x80
        {
            self.at += 1;
            return Some(i64::from(byte >> 1) ^ -i64::from(byte & 1));
        }
        let mut value = 0_u64;
        for (at, &byte) in self.bytes[self.at..].iter().take(10).enumerate() {
            // The tenth byte holds the 64th bit and nothing else.
            if at == 9 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.at += at + 1;
                return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
            }
        }
        None
    }
}
