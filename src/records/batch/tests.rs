//! Batches as bytes, with bytes that Java wrote.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::records::testing::hex;
use crate::records::{NoOpRecord, Record};

/// A no-op batch at offset 12, epoch 1, as a Java controller wrote it.
const NO_OP: &str = "
    000000000000000c 0000003c 00000001 02 38f081b5 0000 00000000
    000001a227523957 000001a227523957 ffffffffffffffff ffff ffffffff 00000001
    14 00 00 00 01 08 01 14 00 00 00";

fn no_op() -> BatchBuilder {
    let mut builder = BatchBuilder::data(Offset(12), Epoch(1), Timestamp(0x1a2_2752_3957));
    builder
        .push_record(&Record::from(NoOpRecord::default()).at(0))
        .unwrap();
    builder
}

fn three_records() -> Batch {
    let mut builder = BatchBuilder::control(Offset(5), Epoch(3), Timestamp(1_000));
    builder.push(Some(b"key"), Some(b"first"));
    builder.push(None, Some(b""));
    builder.push(Some(b""), None);
    builder.build()
}

#[test]
fn a_no_op_batch_is_written_as_java_writes_it() {
    let builder = no_op();
    assert_eq!(builder.size(), 72);
    let batch = builder.build();
    assert_eq!(batch.bytes(), &hex(NO_OP));
    batch.verify_crc().unwrap();
}

#[test]
fn a_java_batch_is_read() {
    let batch = Batch::parse(Bytes::from(hex(NO_OP))).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(batch.base_offset(), Offset(12));
    assert_eq!(batch.last_offset(), Offset(12));
    assert_eq!(batch.end_offset(), Offset(13));
    assert_eq!(batch.epoch(), Epoch(1));
    assert_eq!(batch.max_timestamp(), Timestamp(0x1a2_2752_3957));
    assert!(!batch.is_control());
    let records: Vec<RawRecord> = batch.records().map(Result::unwrap).collect();
    assert_eq!(
        records,
        [RawRecord {
            offset: Offset(12),
            timestamp: Timestamp(0x1a2_2752_3957),
            key: None,
            value: Some(Bytes::from_static(&[1, 20, 0, 0])),
        }]
    );
}

#[test]
fn null_and_empty_fields_are_told_apart() {
    let batch = three_records();
    assert!(batch.is_control());
    let records: Vec<RawRecord> = batch.records().map(Result::unwrap).collect();
    assert_eq!(records[0].key.as_deref(), Some(&b"key"[..]));
    assert_eq!(records[1].key, None);
    assert_eq!(records[1].value.as_deref(), Some(&b""[..]));
    assert_eq!(records[2].value, None);
    assert_eq!(records[2].offset, Offset(7));
}

#[test]
fn values_share_the_memory_of_the_batch() {
    let batch = three_records();
    let range = batch.bytes().as_ptr_range();
    let first = batch.records().next().unwrap().unwrap().value.unwrap();
    assert!(range.contains(&first.as_ptr()));
}

#[test]
fn the_size_of_a_batch_is_known_before_a_record_is_added() {
    let mut builder = BatchBuilder::data(Offset(0), Epoch(0), Timestamp(0));
    for length in [0, 1, 50, 63, 64, 120, 8_000, 8_191, 8_192, 2_000_000] {
        for _ in 0..40 {
            let value = vec![7; length.min(9_000)];
            let size = builder.size_with(None, Some(value.len()));
            builder.push(None, Some(&value));
            assert_eq!(builder.size(), size);
        }
    }
    let size = builder.size();
    assert_eq!(builder.build().size(), size);
}

#[test]
fn peek_says_how_many_bytes_are_missing() {
    let bytes = hex(NO_OP);
    for end in 0..HEADER_BYTES {
        let bytes_needed = HEADER_BYTES;
        assert_eq!(peek(&bytes[..end]), Peek::Partial { bytes_needed });
    }
    for end in HEADER_BYTES..bytes.len() {
        assert_eq!(peek(&bytes[..end]), Peek::Partial { bytes_needed: 72 });
    }
    let mut more = bytes.clone();
    more.extend_from_slice(&bytes[..20]);
    assert!(matches!(peek(&more), Peek::Batch(header) if header.size() == 72));
}

#[test]
fn peek_tells_garbage_as_soon_as_it_shows() {
    let mut bytes = hex(NO_OP);
    bytes.truncate(17);
    bytes[16] = 1;
    assert_eq!(peek(&bytes), Peek::Garbage(BatchFault::Magic(1)));
    bytes.truncate(12);
    for length in [i32::MIN, -1, 0, 48, 64 * 1024 * 1024, i32::MAX] {
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(peek(&bytes), Peek::Garbage(BatchFault::Length(length)));
    }
}

#[test]
fn batches_are_split_off_a_stream_until_the_last_incomplete_one() {
    let mut stream = three_records().bytes().to_vec();
    stream.extend_from_slice(&hex(NO_OP));
    stream.extend_from_slice(&hex(NO_OP)[..70]);
    let mut stream = Bytes::from(stream);
    let first = Batch::take_from(&mut stream).unwrap().unwrap();
    assert_eq!(first, three_records());
    let second = Batch::take_from(&mut stream).unwrap().unwrap();
    assert_eq!(second.base_offset(), Offset(12));
    assert_eq!(Batch::take_from(&mut stream), Ok(None));
    assert_eq!(stream.len(), 70);
}

#[test]
fn bytes_behind_a_batch_are_a_fault() {
    let mut bytes = hex(NO_OP);
    bytes.push(0);
    assert_eq!(
        Batch::parse(Bytes::from(bytes)),
        Err(BatchFault::LeftOver(1))
    );
}

/// Parses the no-op batch with `patch` written at `at`.
fn patched(at: usize, patch: &[u8]) -> Result<Batch, BatchFault> {
    let mut bytes = hex(NO_OP);
    bytes[at..at + patch.len()].copy_from_slice(patch);
    Batch::parse(Bytes::from(bytes))
}

#[test]
fn headers_that_cannot_be_true_are_refused() {
    let min = i64::MIN.to_be_bytes();
    assert_eq!(patched(0, &min), Err(BatchFault::Offset(i64::MIN)));
    let max = i64::MAX.to_be_bytes();
    assert_eq!(patched(0, &max), Err(BatchFault::Offset(i64::MAX)));
    assert_eq!(patched(12, &[0xff; 4]), Err(BatchFault::Epoch(-1)));
    assert_eq!(patched(22, &[5]), Err(BatchFault::CodecUnknown(5)));
    assert_eq!(patched(22, &[0x10]), Err(BatchFault::Attributes(0x10)));
    for (count, last_offset_delta) in [(1, 1), (0, -1), (i32::MIN, i32::MAX), (i32::MAX, 0)] {
        let mut bytes = hex(NO_OP);
        bytes[23..27].copy_from_slice(&i32::to_be_bytes(last_offset_delta));
        bytes[57..61].copy_from_slice(&i32::to_be_bytes(count));
        let fault = BatchFault::Count {
            count,
            last_offset_delta,
        };
        assert_eq!(Batch::parse(Bytes::from(bytes)), Err(fault));
    }
}

#[test]
fn a_flipped_bit_behind_the_checksum_is_seen() {
    for at in CRC_END..72 {
        let flipped = hex(NO_OP)[at] ^ 1;
        if let Ok(batch) = patched(at, &[flipped]) {
            assert!(matches!(
                batch.verify_crc(),
                Err(BatchFault::BadCrc {
                    stored: 0x38f0_81b5,
                    ..
                })
            ));
        }
    }
}

#[test]
fn a_count_that_lies_is_seen_while_walking() {
    let walk = |count: i32| {
        let mut bytes = three_records().bytes().to_vec();
        bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        let batch = Batch::parse(Bytes::from(bytes)).unwrap();
        batch.records().collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(walk(3).map(|records| records.len()), Ok(3));
    assert!(matches!(walk(2), Err(BatchFault::LeftOver(_))));
    assert_eq!(walk(4), Err(BatchFault::BadRecord { index: 3 }));
    assert_eq!(walk(i32::MAX), Err(BatchFault::BadRecord { index: 3 }));
}

#[test]
fn records_that_do_not_fill_their_length_are_refused() {
    // Offsets of the only record: 61 length, 62 attributes, 63 timestamp, 64 offset, 65 key
    // length, 66 value length, 71 headers.
    let bad = Err(BatchFault::BadRecord { index: 0 });
    for (at, byte) in [
        (61, 1),
        (61, 0x12),
        (62, 1),
        (64, 2),
        (65, 3),
        (66, 6),
        (66, 10),
        (71, 2),
    ] {
        let batch = patched(at, &[byte]).unwrap();
        let walked: Result<Vec<_>, _> = batch.records().collect();
        assert_eq!(walked, bad, "byte {at} = {byte}");
    }
    let batch = patched(61, &[0x16]).unwrap();
    assert_eq!(batch.records().next(), Some(Err(BatchFault::Truncated)));
}

#[test]
fn a_timestamp_beyond_64_bits_is_a_fault() {
    let mut bytes = hex(NO_OP);
    bytes[27..35].copy_from_slice(&i64::MAX.to_be_bytes());
    bytes[63] = 2;
    let batch = Batch::parse(Bytes::from(bytes)).unwrap();
    assert_eq!(batch.records().next(), Some(Err(BatchFault::Timestamp)));
}

proptest! {
    #[test]
    fn a_built_batch_reads_as_it_was_pushed(
        fields: Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>,
        base in 0..i64::MAX / 2,
        epoch in 0..i32::MAX,
    ) {
        prop_assume!(!fields.is_empty());
        let mut builder = BatchBuilder::data(Offset(base), Epoch(epoch), Timestamp(-1));
        for (key, value) in &fields {
            builder.push(key.as_deref(), value.as_deref());
        }
        prop_assert_eq!(builder.next_offset(), Offset(base).plus(fields.len() as i64));
        let batch = Batch::parse(builder.build().into_bytes()).unwrap();
        prop_assert!(batch.verify_crc().is_ok());
        let read: Vec<_> = batch
            .records()
            .map(Result::unwrap)
            .map(|record| (record.key.map(Vec::from), record.value.map(Vec::from)))
            .collect();
        prop_assert_eq!(read, fields);
    }

    #[test]
    fn damaged_batches_never_panic(flips: Vec<(usize, u8)>, cut in 0_usize..200) {
        let mut bytes = three_records().bytes().to_vec();
        for (at, flip) in flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        bytes.truncate(cut);
        let mut bytes = Bytes::from(bytes);
        if let Ok(Some(batch)) = Batch::take_from(&mut bytes) {
            prop_assert!(batch.records().count() <= batch.size());
        }
    }
}
