//! Writes batches, byte for byte as Java writes them to the metadata log.

use bytes::Bytes;

use super::{
    ATTRIBUTE_CONTROL, BATCH_BYTES_SANE, Batch, BatchHeader, CRC_END, HEADER_BYTES, LENGTH_END,
    MAGIC,
};
use crate::records::VersionedRecord;
use crate::records::control::ControlRecord;
use crate::records::fault::RecordFault;
use crate::types::{Epoch, Offset, Timestamp};

/// Collects the records of one batch. All of them get the batch's timestamp.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    base_offset: Offset,
    epoch: Epoch,
    timestamp: Timestamp,
    attributes: i16,
    count: i32,
    /// The batch so far; the header's place is kept free.
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl BatchBuilder {
    /// A batch of metadata records that begins at `base_offset`.
    #[must_use]
    pub fn data(base_offset: Offset, epoch: Epoch, timestamp: Timestamp) -> Self {
        Self::new(base_offset, epoch, timestamp, 0)
    }

    /// A batch of control records that begins at `base_offset`.
    #[must_use]
    pub fn control(base_offset: Offset, epoch: Epoch, timestamp: Timestamp) -> Self {
        Self::new(base_offset, epoch, timestamp, ATTRIBUTE_CONTROL)
    }

    fn new(base_offset: Offset, epoch: Epoch, timestamp: Timestamp, attributes: i16) -> Self {
        Self {
            base_offset,
            epoch,
            timestamp,
            attributes,
            count: 0,
            out: vec![0; HEADER_BYTES],
            scratch: Vec::new(),
        }
    }

    /// True when no record was pushed yet: such a batch cannot be built.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many records were pushed.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count.unsigned_abs()
    }

    /// The offset that the next record gets.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.base_offset.plus(self.count as i64)
    }

    /// The size of the batch if it were built now.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.out.len()
    }

    /// The size of the batch after one more record with these lengths (`None` is null).
    #[must_use]
    pub const fn size_with(&self, key: Option<usize>, value: Option<usize>) -> usize {
        self.size() + record_bytes(self.count(), key, value)
    }

    /// Adds a record.
    pub fn push(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let key_length = key.map(<[u8]>::len);
        let value_length = value.map(<[u8]>::len);
        let body = body_bytes(self.count(), key_length, value_length);
        put_varint(&mut self.out, body as i64);
        // Attributes and timestamp delta.
        self.out.extend_from_slice(&[0, 0]);
        put_varint(&mut self.out, i64::from(self.count));
        for field in [key, value] {
            put_varint(&mut self.out, field.map_or(-1, |bytes| bytes.len() as i64));
            self.out.extend_from_slice(field.unwrap_or_default());
        }
        // No headers.
        self.out.push(0);
        self.count += 1;
    }

    /// Adds a metadata record.
    ///
    /// # Errors
    /// When the record cannot be written at its version; the batch stays as it was.
    pub fn push_record(&mut self, record: &VersionedRecord) -> Result<(), RecordFault> {
        let mut value = std::mem::take(&mut self.scratch);
        value.clear();
        let encoded = record.encode_into(&mut value);
        if encoded.is_ok() {
            self.push(None, Some(&value));
        }
        self.scratch = value;
        encoded
    }

    /// Adds a control record.
    ///
    /// # Errors
    /// When the record cannot be written at its version; the batch stays as it was.
    pub fn push_control(&mut self, record: &ControlRecord) -> Result<(), RecordFault> {
        let value = record.encode_value()?;
        self.push(Some(&record.encode_key()), Some(&value));
        Ok(())
    }

    /// Ends the batch.
    ///
    /// # Panics
    /// When it has no record, or is larger than [`BATCH_BYTES_SANE`]: callers split long lists with
    /// [`Self::size_with`].
    #[must_use]
    pub fn build(self) -> Batch {
        assert!(!self.is_empty(), "a batch has at least one record");
        assert!(
            self.out.len() <= BATCH_BYTES_SANE,
            "callers keep batches below the limit"
        );
        let mut out = self.out;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(&self.base_offset.0.to_be_bytes());
        header.extend_from_slice(&((out.len() - LENGTH_END) as i32).to_be_bytes());
        header.extend_from_slice(&self.epoch.0.to_be_bytes());
        header.extend_from_slice(&MAGIC.to_be_bytes());
        // The checksum's place: it is known last.
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&self.attributes.to_be_bytes());
        header.extend_from_slice(&(self.count - 1).to_be_bytes());
        header.extend_from_slice(&self.timestamp.0.to_be_bytes());
        header.extend_from_slice(&self.timestamp.0.to_be_bytes());
        // No producer: id, epoch and sequence are -1.
        header.extend_from_slice(&[0xff; 14]);
        header.extend_from_slice(&self.count.to_be_bytes());
        out[..HEADER_BYTES].copy_from_slice(&header);
        let crc = crc32c::crc32c(&out[CRC_END..]);
        out[CRC_END - 4..CRC_END].copy_from_slice(&crc.to_be_bytes());
        let header = BatchHeader::parse(&out).expect("the header above is in order");
        Batch {
            header,
            bytes: Bytes::from(out),
        }
    }
}

/// The size of a record at `index` of its batch with these lengths (`None` is null), its own length
/// prefix included.
#[must_use]
pub const fn record_bytes(index: u32, key: Option<usize>, value: Option<usize>) -> usize {
    let body = body_bytes(index, key, value);
    varint_bytes(body as i64) + body
}

const fn body_bytes(index: u32, key: Option<usize>, value: Option<usize>) -> usize {
    // Attributes, timestamp delta and count of headers take a byte each.
    3 + varint_bytes(index as i64) + field_bytes(key) + field_bytes(value)
}

const fn field_bytes(length: Option<usize>) -> usize {
    match length {
        None => 1,
        Some(length) => varint_bytes(length as i64) + length,
    }
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn varint_bytes(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag(value);
    while rest >= 0x80 {
        // The mask keeps seven bits, so nothing is lost.
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
