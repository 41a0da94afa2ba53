//! Compressed batches that Java wrote, bombs and broken streams, batches without records.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::records::testing::hex;
use crate::records::{Record, VersionedRecord};

/// A batch whose records are the compressed bytes `body`.
fn compressed(codec: i16, count: i32, body: &[u8]) -> Batch {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&0_i64.to_be_bytes());
    bytes.extend_from_slice(&((HEADER_BYTES - LENGTH_END + body.len()) as i32).to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1, 2, 0, 0, 0, 0]);
    bytes.extend_from_slice(&codec.to_be_bytes());
    bytes.extend_from_slice(&(count - 1).to_be_bytes());
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(&[0xff; 14]);
    bytes.extend_from_slice(&count.to_be_bytes());
    bytes.extend_from_slice(body);
    let crc = crc32c::crc32c(&bytes[CRC_END..]);
    bytes[CRC_END - 4..CRC_END].copy_from_slice(&crc.to_be_bytes());
    Batch::parse(Bytes::from(bytes)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn snappy(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap()
}

/// The stream of `snappy-java`, in blocks of 32 KiB.
fn xerial(bytes: &[u8]) -> Vec<u8> {
    let mut out = hex("82 53 4e 41 50 50 59 00 00000001 00000001");
    for block in bytes.chunks(32 << 10) {
        let block = snappy(block);
        out.extend_from_slice(&(block.len() as u32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    out
}

type Compress = fn(&[u8]) -> Vec<u8>;
const CODECS: [(i16, Compress); 5] = [(1, gzip), (2, snappy), (2, xerial), (3, lz4), (4, zstd)];

/// Records with these values, as they stand behind the header.
fn body(values: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = BatchBuilder::data(Offset(0), Epoch(1), Timestamp(0));
    for value in values {
        builder.push(None, Some(value));
    }
    builder.build().into_bytes()[HEADER_BYTES..].to_vec()
}

fn values(batch: &Batch) -> Result<Vec<Vec<u8>>, BatchFault> {
    let records = batch.records();
    records
        .map(|record| Ok(record?.value.unwrap().to_vec()))
        .collect()
}

#[test]
fn every_codec_of_java_gives_the_same_records() {
    let mut expected = None;
    for (name, codec) in [
        ("none", Codec::None),
        ("gzip", Codec::Gzip),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fixtures/4.4.0/batches")
            .join(name)
            .join("00000000000000000000.log");
        let mut bytes = Bytes::from(std::fs::read(path).unwrap());
        let mut records = Vec::new();
        while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
            batch.verify_crc().unwrap();
            assert_eq!(batch.header().codec, codec);
            for record in batch.records() {
                let record = record.unwrap();
                assert_eq!(record.offset.0, records.len() as i64);
                records.push(VersionedRecord::decode(&record.value.unwrap()).unwrap());
            }
        }
        assert!(bytes.is_empty());
        assert_eq!(records.len(), 2 + 1500 + 1, "{name}");
        assert!(matches!(records[1].record, Record::Topic(_)));
        assert_eq!(&records, expected.get_or_insert_with(|| records.clone()));
    }
}

#[test]
fn every_codec_of_ours_is_read_and_any_cut_is_a_fault() {
    let expected: Vec<Vec<u8>> = (0..200_u32)
        .map(|at| at.wrapping_mul(0x9e37_79b9).to_be_bytes().repeat(4))
        .collect();
    let body = body(&expected);
    for (codec, compress) in CODECS {
        let stream = compress(&body);
        assert_eq!(
            values(&compressed(codec, 200, &stream)),
            Ok(expected.clone())
        );
        for cut in 0..stream.len() {
            // What a checksum or an end mark takes may be missing: the records are there.
            if let Ok(found) = values(&compressed(codec, 200, &stream[..cut])) {
                assert_eq!(found, expected);
                assert!(stream.len() - cut <= 12, "codec {codec} cut at {cut}");
            }
        }
    }
}

#[test]
fn streams_that_were_put_together_are_read_as_one() {
    let body = body(&[b"first".to_vec(), b"second".to_vec()]);
    let (front, back) = body.split_at(7);
    let expected = vec![b"first".to_vec(), b"second".to_vec()];
    let join = |compress: Compress| [compress(front), compress(back)].concat();
    for (codec, stream) in [(1, join(gzip)), (2, join(xerial)), (4, join(zstd))] {
        assert_eq!(values(&compressed(codec, 2, &stream)), Ok(expected.clone()));
    }
    let skippable = hex("50 2a 4d 18 03000000 aabbcc");
    let stream = [skippable, zstd(&body)].concat();
    assert_eq!(values(&compressed(4, 2, &stream)), Ok(expected));
}

#[test]
fn a_bomb_is_refused_before_it_takes_more_than_the_bound() {
    let zeros = vec![0; BATCH_BYTES_SANE + 1];
    for (codec, stream) in [(1, gzip(&zeros)), (3, lz4(&zeros)), (4, zstd(&zeros))] {
        let batch = compressed(codec, 1, &stream);
        let fault = Err(BatchFault::Inflated(batch.header().codec));
        assert_eq!(values(&batch), fault);
    }
    let fault = Err(BatchFault::Inflated(Codec::Snappy));
    assert_eq!(values(&compressed(2, 1, &xerial(&zeros))), fault);
    // A raw block that promises 4 GiB, and one that promises more than its bytes can give.
    let promise = values(&compressed(2, 1, &hex("ff ff ff ff 0f 00")));
    assert_eq!(promise, fault);
    let promise = values(&compressed(2, 1, &hex("80 80 80 10 00")));
    assert_eq!(promise, Err(BatchFault::Codec(Codec::Snappy)));
    // Frames of zstd with a window of 64 MiB, and with 2 GiB of content in a single segment.
    let fault = Err(BatchFault::Inflated(Codec::Zstd));
    let wide = hex("28 b5 2f fd 00 80 01 00 00");
    assert_eq!(values(&compressed(4, 1, &wide)), fault);
    let single = hex("28 b5 2f fd a0 00000080 01 00 00");
    assert_eq!(values(&compressed(4, 1, &single)), fault);
}

#[test]
fn a_record_larger_than_its_compressed_batch_is_refused_as_java_refuses_it() {
    let value = vec![7; 10_000];
    let batch = compressed(1, 1, &gzip(&body(std::slice::from_ref(&value))));
    let too_large = matches!(
        values(&batch),
        Err(BatchFault::RecordTooLarge { index: 0, bytes }) if bytes > 10_000
    );
    assert!(too_large);
    let found = batch.records_as_found().next().unwrap().unwrap();
    assert_eq!(found.value.as_deref(), Some(&value[..]));
}

#[test]
fn a_batch_of_8_mib_is_read() {
    let mut builder = BatchBuilder::data(Offset(0), Epoch(1), Timestamp(0));
    let value = vec![7; 10_000];
    while builder.size_with(None, Some(value.len())) <= BATCH_BYTES_MAX {
        builder.push(None, Some(&value));
    }
    let plain = builder.build();
    assert!(plain.size() > BATCH_BYTES_MAX - 11_000);
    let count = plain.count() as usize;
    assert_eq!(values(&plain).unwrap().len(), count);
    let stream = xerial(&plain.bytes()[HEADER_BYTES..]);
    let batch = compressed(2, count as i32, &stream);
    assert_eq!(values(&batch).unwrap().len(), count);
}

/// As Java's writer of empty batches writes it: offsets 5 to 7, epoch 3, no records.
const EMPTY: &str = "
    0000000000000005 00000031 00000003 02 61226a29 0000 00000002
    ffffffffffffffff 0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000000";

#[test]
fn a_batch_without_records_keeps_its_offsets_and_is_not_loaded() {
    let batch = Batch::parse(Bytes::from(hex(EMPTY))).unwrap();
    batch.verify_crc().unwrap();
    assert_eq!(
        (batch.base_offset(), batch.end_offset()),
        (Offset(5), Offset(8))
    );
    assert_eq!(batch.count(), 0);
    let loaded: Vec<_> = batch.records().collect();
    assert_eq!(loaded, [Err(BatchFault::NoRecords)]);
    assert_eq!(batch.records_as_found().next(), None);
}

#[test]
fn other_counts_that_are_not_the_range_of_offsets_are_refused() {
    for (count, last_offset_delta) in [(0, -1), (0, i32::MAX), (2, 2), (-1, 0)] {
        let mut bytes = hex(EMPTY);
        bytes[23..27].copy_from_slice(&i32::to_be_bytes(last_offset_delta));
        bytes[57..61].copy_from_slice(&i32::to_be_bytes(count));
        let fault = BatchFault::Count {
            count,
            last_offset_delta,
        };
        assert_eq!(Batch::parse(Bytes::from(bytes)), Err(fault));
    }
}

proptest! {
    #[test]
    fn damaged_streams_never_panic(flips: Vec<(usize, u8)>, garbage: Vec<u8>) {
        let body = body(&[b"first".to_vec(), vec![7; 300], b"third".to_vec()]);
        for (codec, compress) in CODECS {
            let mut stream = compress(&body);
            for (at, flip) in &flips {
                let at = at % stream.len();
                stream[at] ^= flip;
            }
            let _ = values(&compressed(codec, 3, &stream));
            let _ = values(&compressed(codec, 3, &garbage));
        }
    }
}
