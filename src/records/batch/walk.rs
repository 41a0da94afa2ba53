//! The records inside a batch, each length checked before it is used.

use bytes::Bytes;

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
        let length = length(&mut self.rest)
            .flatten()
            .ok_or_else(|| bad.clone())?;
        if length > self.rest.len() {
            return Err(BatchFault::Truncated);
        }
        if length > self.record_bytes_max {
            return Err(BatchFault::RecordTooLarge {
                index: self.index,
                bytes: length,
            });
        }
        let mut body = self.rest.split_to(length);
        let (timestamp_delta, key, value) = split(&mut body, self.index).ok_or(bad)?;
        let timestamp = if self.header.is_log_append_time() {
            Some(self.header.max_timestamp.0)
        } else {
            self.header.base_timestamp.0.checked_add(timestamp_delta)
        };
        Ok(RawRecord {
            offset: self.header.base_offset.plus(i64::from(self.index)),
            timestamp: timestamp.map(Timestamp).ok_or(BatchFault::Timestamp)?,
            key,
            value,
        })
    }
}

type Split = (i64, Option<Bytes>, Option<Bytes>);

/// The timestamp delta, key and value of the record in `body`, or `None` when it is not exactly
/// one record with the offset delta `index`.
fn split(body: &mut Bytes, index: u32) -> Option<Split> {
    let attributes = body.split_to_checked(1)?;
    if attributes[0] != 0 {
        return None;
    }
    let timestamp_delta = varint(body)?;
    if varint(body)? != i64::from(index) {
        return None;
    }
    let key = nullable(body)?;
    let value = nullable(body)?;
    // Each header takes at least two bytes, so a false count ends early.
    let headers = length(body)??;
    for _ in 0..headers {
        let name = length(body)??;
        body.split_to_checked(name)?;
        nullable(body)?;
    }
    body.is_empty().then_some((timestamp_delta, key, value))
}

/// `Bytes::split_to` that refuses instead of panicking.
trait SplitChecked: Sized {
    fn split_to_checked(&mut self, count: usize) -> Option<Self>;
}

impl SplitChecked for Bytes {
    fn split_to_checked(&mut self, count: usize) -> Option<Self> {
        (count <= self.len()).then(|| self.split_to(count))
    }
}

/// A length-prefixed field: `Some(None)` is null, `None` is malformed.
#[expect(
    clippy::option_option,
    reason = "null is a value here, malformed is not"
)]
fn nullable(body: &mut Bytes) -> Option<Option<Bytes>> {
    match length(body)? {
        None => Some(None),
        Some(length) => body.split_to_checked(length).map(Some),
    }
}

/// A length: `Some(None)` is -1 (null), `None` is malformed.
#[expect(
    clippy::option_option,
    reason = "null is a value here, malformed is not"
)]
fn length(body: &mut Bytes) -> Option<Option<usize>> {
    match varint(body)? {
        -1 => Some(None),
        length => usize::try_from(length).ok().map(Some),
    }
}

/// A zig-zag variable-length integer of at most 64 bits.
fn varint(body: &mut Bytes) -> Option<i64> {
    let mut value = 0_u64;
    for (at, &byte) in body.iter().take(10).enumerate() {
        // The tenth byte holds the 64th bit and nothing else.
        if at == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let _ = body.split_to(at + 1);
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}
