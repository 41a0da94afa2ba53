//! Record batches (magic 2), read without copying and written exactly as Java writes them.
//!
//! A batch is the unit of everything in the metadata log: appended, fetched, truncated and replayed
//! as a whole. Its layout, all numbers big-endian:
//!
//! ```text
//! base offset i64 | length i32 (bytes behind this field) | epoch i32 | magic i8 = 2 | crc u32 |
//! attributes i16 | last offset delta i32 | base timestamp i64 | max timestamp i64 |
//! producer id i64 | producer epoch i16 | base sequence i32 | count i32 | records
//! ```
//!
//! The CRC-32C covers everything behind itself, so the base offset and the epoch are not covered.
//! Offsets inside a batch are contiguous: the metadata log is never compacted record by record.
//!
//! Whatever is read here came from a disk or a peer. [`BatchHeader::parse`] checks the header's
//! numbers against each other, [`peek`] finds the end of a batch in a stream, [`Batch::verify_crc`]
//! is separate because it touches every byte, and [`Batch::records`] checks each record's lengths
//! while it walks.

mod builder;
mod codec;
#[cfg(test)]
mod codec_tests;
#[cfg(test)]
mod tests;
mod walk;

use std::error::Error;
use std::fmt;

use bytes::Bytes;

pub use self::builder::{BatchBuilder, record_bytes};
pub use self::codec::Codec;
pub use self::walk::{RawRecord, Records};
use crate::types::{Epoch, Offset, Timestamp};

/// The size of a batch without records.
pub const HEADER_BYTES: usize = 61;
/// The bytes up to and including the length field, which the length does not count.
const LENGTH_END: usize = 12;
/// The bytes up to and including the magic byte.
const MAGIC_END: usize = 17;
/// Where the magic byte is.
pub(crate) const MAGIC_AT: usize = MAGIC_END - 1;
/// Where the bytes that the CRC covers begin.
const CRC_END: usize = 21;
/// The only record format of the metadata log.
pub(crate) const MAGIC: i8 = 2;

/// The largest batch that Kafka writes to the metadata log, header included.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A length beyond this is taken for garbage. Java's limit is configurable in tests, so this is
/// more than [`BATCH_BYTES_MAX`].
pub const BATCH_BYTES_SANE: usize = 64 * 1024 * 1024;

const ATTRIBUTE_COMPRESSION: i16 = 0x07;
const ATTRIBUTE_LOG_APPEND_TIME: i16 = 0x08;
const ATTRIBUTE_CONTROL: i16 = 0x20;
const ATTRIBUTES_KNOWN: i16 = ATTRIBUTE_COMPRESSION | ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_CONTROL;

/// Why bytes are not a batch of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchFault {
    /// Attributes that a metadata batch never has: transactional, a delete horizon, unused bits.
    Attributes(i16),
    /// The bytes differ from what was written.
    BadCrc {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A record's attributes, key, value or headers do not fill its length exactly, or a length is
    /// negative where it cannot be.
    BadRecord {
        /// The record's place in the batch, from 0.
        index: u32,
    },
    /// The compressed records are not what the codec writes.
    Codec(Codec),
    /// A codec that does not exist.
    CodecUnknown(i16),
    /// The count of records is not the range of offsets.
    Count {
        /// The count in the header.
        count: i32,
        /// The difference of last and first offset in the header.
        last_offset_delta: i32,
    },
    /// A negative epoch.
    Epoch(i32),
    /// The compressed records are too large to be true.
    Inflated(Codec),
    /// Bytes behind the last record.
    LeftOver(usize),
    /// A length below that of an empty batch, or beyond [`BATCH_BYTES_SANE`].
    Length(i32),
    /// A record format other than 2.
    Magic(i8),
    /// No records, as in a log that is compacted record by record; the metadata log is not, and
    /// Kafka's loader refuses such a batch.
    NoRecords,
    /// A negative base offset, or one so large that the last offset does not exist.
    Offset(i64),
    /// A compressed record that is larger than its whole batch: Kafka's loader refuses it.
    RecordTooLarge {
        /// The record's place in the batch, from 0.
        index: u32,
        /// Its size in bytes.
        bytes: usize,
    },
    /// A timestamp beyond 64 bits.
    Timestamp,
    /// The bytes end inside the batch.
    Truncated,
}

impl fmt::Display for BatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attributes(bits) => write!(f, "batch attributes {bits:#06x} are not metadata's"),
            Self::BadCrc { stored, computed } => write!(
                f,
                "batch checksum is {stored:#010x}, but its bytes give {computed:#010x}"
            ),
            Self::BadRecord { index } => write!(f, "record {index} of the batch is malformed"),
            Self::Codec(codec) => {
                write!(
                    f,
                    "the batch's records cannot be decompressed ({})",
                    codec.name()
                )
            }
            Self::CodecUnknown(codec) => write!(f, "batch has the unknown codec {codec}"),
            Self::Count {
                count,
                last_offset_delta,
            } => write!(
                f,
                "batch counts {count} records, but its last offset delta is {last_offset_delta}"
            ),
            Self::Epoch(epoch) => write!(f, "batch epoch {epoch} is negative"),
            Self::Inflated(codec) => write!(
                f,
                "the batch's records would be more than {BATCH_BYTES_SANE} bytes decompressed ({})",
                codec.name()
            ),
            Self::LeftOver(count) => write!(f, "{count} bytes behind the batch's last record"),
            Self::Length(length) => write!(f, "batch length {length} cannot be true"),
            Self::Magic(magic) => write!(f, "batch format {magic} is not 2"),
            Self::NoRecords => f.write_str("the batch has no records"),
            Self::Offset(offset) => write!(f, "batch base offset {offset} cannot be true"),
            Self::RecordTooLarge { index, bytes } => write!(
                f,
                "record {index} of the batch has {bytes} bytes, more than the batch itself"
            ),
            Self::Timestamp => f.write_str("a record's timestamp exceeds 64 bits"),
            Self::Truncated => f.write_str("the bytes end inside the batch"),
        }
    }
}

impl Error for BatchFault {}

/// A header whose numbers fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the first record.
    pub base_offset: Offset,
    /// The raft epoch of the leader that wrote the batch; in a snapshot, the snapshot's epoch.
    pub epoch: Epoch,
    /// CRC-32C of everything behind it.
    pub crc: u32,
    /// The raw attributes: only the codec (0x07), the timestamp type (0x08) and control (0x20) can
    /// be set.
    pub attributes: i16,
    /// From this the records' timestamps count.
    pub base_timestamp: Timestamp,
    /// The highest timestamp.
    pub max_timestamp: Timestamp,
    /// -1 in metadata batches.
    pub producer_id: i64,
    /// -1 in metadata batches.
    pub producer_epoch: i16,
    /// -1 in metadata batches.
    pub base_sequence: i32,
    /// How many records there are; of a batch without any, see [`BatchFault::NoRecords`].
    pub count: u32,
    /// How the records are compressed.
    pub codec: Codec,
    /// How many offsets the batch takes: the count, if that is not 0.
    span: u32,
    /// The size of the whole batch.
    size: usize,
}

impl BatchHeader {
    /// Reads the first [`HEADER_BYTES`] of `bytes`. The records need not be there.
    ///
    /// # Errors
    /// When the bytes are too few or cannot begin a batch of the metadata log.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchFault> {
        let mut fields = Fields(bytes);
        let base_offset = i64::from_be_bytes(fields.next()?);
        let size = size_of_batch(i32::from_be_bytes(fields.next()?))?;
        let epoch = i32::from_be_bytes(fields.next()?);
        let magic = i8::from_be_bytes(fields.next()?);
        let crc = u32::from_be_bytes(fields.next()?);
        let attributes = i16::from_be_bytes(fields.next()?);
        let last_offset_delta = i32::from_be_bytes(fields.next()?);
        let base_timestamp = Timestamp(i64::from_be_bytes(fields.next()?));
        let max_timestamp = Timestamp(i64::from_be_bytes(fields.next()?));
        let producer_id = i64::from_be_bytes(fields.next()?);
        let producer_epoch = i16::from_be_bytes(fields.next()?);
        let base_sequence = i32::from_be_bytes(fields.next()?);
        let count = i32::from_be_bytes(fields.next()?);
        if magic != MAGIC {
            return Err(BatchFault::Magic(magic));
        }
        let codec = Codec::of(attributes)
            .ok_or(BatchFault::CodecUnknown(attributes & ATTRIBUTE_COMPRESSION))?;
        if attributes & !ATTRIBUTES_KNOWN != 0 {
            return Err(BatchFault::Attributes(attributes));
        }
        if epoch < 0 {
            return Err(BatchFault::Epoch(epoch));
        }
        let span = match last_offset_delta.checked_add(1) {
            Some(span) if span >= 1 && (count == span || count == 0) => span.unsigned_abs(),
            _ => 0,
        };
        if span == 0 {
            return Err(BatchFault::Count {
                count,
                last_offset_delta,
            });
        }
        // The offset behind the last one must exist too: it is the end of the log.
        if base_offset < 0 || base_offset.checked_add(i64::from(span)).is_none() {
            return Err(BatchFault::Offset(base_offset));
        }
        Ok(Self {
            base_offset: Offset(base_offset),
            epoch: Epoch(epoch),
            crc,
            attributes,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count: count.unsigned_abs(),
            codec,
            span,
            size,
        })
    }

    /// The size of the whole batch, header included.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The offset of the last record (inclusive).
    #[must_use]
    pub const fn last_offset(&self) -> Offset {
        self.end_offset().prev()
    }

    /// The offset behind the last record (exclusive).
    #[must_use]
    pub const fn end_offset(&self) -> Offset {
        self.base_offset.plus(self.span as i64)
    }

    /// True for a batch of control records, which carry raft's own facts and no metadata.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.attributes & ATTRIBUTE_CONTROL != 0
    }

    /// True when the broker's clock and not the writer's gave the timestamps; never in metadata.
    #[must_use]
    pub const fn is_log_append_time(&self) -> bool {
        self.attributes & ATTRIBUTE_LOG_APPEND_TIME != 0
    }
}

/// Fixed-width numbers in a row.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Result<[u8; N], BatchFault> {
        let Some((head, tail)) = self.0.split_first_chunk::<N>() else {
            return Err(BatchFault::Truncated);
        };
        self.0 = tail;
        Ok(*head)
    }
}

/// The size of a batch whose length field is `length`.
fn size_of_batch(length: i32) -> Result<usize, BatchFault> {
    usize::try_from(length)
        .ok()
        .map(|length| length.saturating_add(LENGTH_END))
        .filter(|size| (HEADER_BYTES..=BATCH_BYTES_SANE).contains(size))
        .ok_or(BatchFault::Length(length))
}

/// What the first bytes of a stream of batches are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peek {
    /// A whole batch of [`BatchHeader::size`] bytes; its checksum and records are not checked.
    Batch(BatchHeader),
    /// So far the beginning of a batch. At least this many bytes, from the batch's first on, are
    /// needed to say more.
    Partial {
        /// More than there are.
        bytes_needed: usize,
    },
    /// Not a batch, whatever follows.
    Garbage(BatchFault),
}

/// Says whether `bytes` begin with a batch. Garbage is told as early as it can be seen.
#[must_use]
pub fn peek(bytes: &[u8]) -> Peek {
    if let Some(length) = bytes
        .get(LENGTH_END - 4..)
        .and_then(|rest| rest.first_chunk::<4>())
        && let Err(fault) = size_of_batch(i32::from_be_bytes(*length))
    {
        return Peek::Garbage(fault);
    }
    if let Some(&magic) = bytes.get(MAGIC_AT)
        && magic != MAGIC as u8
    {
        return Peek::Garbage(BatchFault::Magic(magic as i8));
    }
    if bytes.len() < HEADER_BYTES {
        return Peek::Partial {
            bytes_needed: HEADER_BYTES,
        };
    }
    match BatchHeader::parse(bytes) {
        Err(fault) => Peek::Garbage(fault),
        Ok(header) if bytes.len() < header.size() => Peek::Partial {
            bytes_needed: header.size(),
        },
        Ok(header) => Peek::Batch(header),
    }
}

/// One whole batch, sharing the memory that it was read into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Takes `bytes` as exactly one batch. The checksum is not verified.
    ///
    /// # Errors
    /// When the header is bad, or the bytes are more or fewer than it says.
    pub fn parse(bytes: Bytes) -> Result<Self, BatchFault> {
        let header = BatchHeader::parse(&bytes)?;
        if bytes.len() < header.size() {
            return Err(BatchFault::Truncated);
        }
        if bytes.len() > header.size() {
            return Err(BatchFault::LeftOver(bytes.len() - header.size()));
        }
        Ok(Self { header, bytes })
    }

    /// Splits the first batch off `bytes`; `None` when they end before the batch does (also when
    /// there are none). The checksum is not verified.
    ///
    /// # Errors
    /// When the bytes are no batch, whatever follows; they stay as they are.
    pub fn take_from(bytes: &mut Bytes) -> Result<Option<Self>, BatchFault> {
        match peek(bytes) {
            Peek::Batch(header) => Ok(Some(Self {
                header,
                bytes: bytes.split_to(header.size()),
            })),
            Peek::Partial { .. } => Ok(None),
            Peek::Garbage(fault) => Err(fault),
        }
    }

    /// Compares the checksum with the bytes.
    ///
    /// # Errors
    /// [`BatchFault::BadCrc`] when they differ.
    pub fn verify_crc(&self) -> Result<(), BatchFault> {
        let computed = crc32c::crc32c(&self.bytes[CRC_END..]);
        if computed == self.header.crc {
            return Ok(());
        }
        Err(BatchFault::BadCrc {
            stored: self.header.crc,
            computed,
        })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch as it is on disk and on the wire.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch as it is on disk and on the wire.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The size of the whole batch, header included.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.header.size
    }

    /// The offset of the first record.
    #[must_use]
    pub const fn base_offset(&self) -> Offset {
        self.header.base_offset
    }

    /// The offset of the last record (inclusive).
    #[must_use]
    pub const fn last_offset(&self) -> Offset {
        self.header.last_offset()
    }

    /// The offset behind the last record (exclusive).
    #[must_use]
    pub const fn end_offset(&self) -> Offset {
        self.header.end_offset()
    }

    /// The raft epoch of the leader that wrote the batch.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.header.epoch
    }

    /// True for a batch of control records.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.header.is_control()
    }

    /// The highest timestamp of the records.
    #[must_use]
    pub const fn max_timestamp(&self) -> Timestamp {
        self.header.max_timestamp
    }

    /// How many records there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.header.count
    }

    /// Walks the records, by the rules of Kafka's loader. After a fault the walk ends; a batch
    /// whose walk ended without one has exactly [`Self::count`] records, at least 1.
    ///
    /// Compressed records are decompressed here, all at once and to at most [`BATCH_BYTES_SANE`]
    /// bytes.
    #[must_use]
    pub fn records(&self) -> Records {
        Records::new(self.header, self.bytes.slice(HEADER_BYTES..), true)
    }

    /// Walks the records for a look at them: none at all is no fault, nor is a compressed one that
    /// is larger than its batch.
    #[must_use]
    pub fn records_as_found(&self) -> Records {
        Records::new(self.header, self.bytes.slice(HEADER_BYTES..), false)
    }
}
