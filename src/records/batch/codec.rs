//! Compressed batches: what stands behind the header, decompressed within bounds.
//!
//! No controller compresses its batches, but Kafka's loader reads them when they are there, and so
//! does this. Kafka's limits follow from its reading: it takes a record at a time, and none may be
//! larger than the whole (compressed) batch. Here the sum is bounded too, so that a few bytes
//! cannot ask for memory without end.

// The codecs read slices through this trait; nothing here leaves memory.
use std::io::Read;

use bytes::Bytes;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{BATCH_BYTES_SANE, BatchFault};

/// The largest zstd window: what every decoder has to have (RFC 8878, section 3.1.1.1.2).
const ZSTD_WINDOW_BYTES_MAX: usize = 8 << 20;
/// Kafka writes one frame; each takes some work to begin.
const ZSTD_FRAMES_MAX: usize = 1000;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What the blocks of `snappy-java` streams begin with, before two version numbers of four bytes.
const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER_BYTES: usize = 16;

/// How the records of a batch are compressed: the lowest three bits of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// Members of RFC 1952.
    Gzip,
    /// The stream of `snappy-java`, or one raw block.
    Snappy,
    /// Frames of LZ4.
    Lz4,
    /// Frames of RFC 8878.
    Zstd,
}

impl Codec {
    pub(super) const fn of(attributes: i16) -> Option<Self> {
        Some(match attributes & super::ATTRIBUTE_COMPRESSION {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return None,
        })
    }

    /// The name that Kafka gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The records behind the header of a batch.
    ///
    /// # Errors
    /// When `body` is not what the codec writes, or holds more than [`BATCH_BYTES_SANE`] bytes.
    pub(super) fn decompress(self, body: Bytes) -> Result<Bytes, BatchFault> {
        let mut out = Output {
            codec: self,
            bytes: Vec::new(),
        };
        match self {
            Self::None => return Ok(body),
            Self::Gzip => out.read(flate2::read::MultiGzDecoder::new(&*body))?,
            Self::Lz4 => out.read(lz4_flex::frame::FrameDecoder::new(&*body))?,
            Self::Snappy => out.snappy(&body)?,
            Self::Zstd => out.zstd(&body)?,
        }
        Ok(Bytes::from(out.bytes))
    }
}

/// What was decompressed so far.
struct Output {
    codec: Codec,
    bytes: Vec<u8>,
}

impl Output {
    const fn bad(&self) -> BatchFault {
        BatchFault::Codec(self.codec)
    }

    /// How much more there may be.
    const fn room(&self) -> usize {
        BATCH_BYTES_SANE.saturating_sub(self.bytes.len())
    }

    fn read(&mut self, input: impl Read) -> Result<(), BatchFault> {
        let limit = self.room() as u64 + 1;
        input
            .take(limit)
            .read_to_end(&mut self.bytes)
            .map_err(|_| self.bad())?;
        if self.bytes.len() > BATCH_BYTES_SANE {
            return Err(BatchFault::Inflated(self.codec));
        }
        Ok(())
    }

    fn snappy(&mut self, body: &[u8]) -> Result<(), BatchFault> {
        if !body.starts_with(&XERIAL_MAGIC) {
            return self.snappy_block(body);
        }
        let mut rest = body;
        while !rest.is_empty() {
            // Streams that were put together have a header inside too.
            if rest.starts_with(&XERIAL_MAGIC) {
                rest = rest.get(XERIAL_HEADER_BYTES..).ok_or_else(|| self.bad())?;
                continue;
            }
            let (length, blocks) = rest.split_first_chunk().ok_or_else(|| self.bad())?;
            let length = u32::from_be_bytes(*length) as usize;
            let (block, after) = blocks.split_at_checked(length).ok_or_else(|| self.bad())?;
            self.snappy_block(block)?;
            rest = after;
        }
        Ok(())
    }

    fn snappy_block(&mut self, block: &[u8]) -> Result<(), BatchFault> {
        let bytes = snap::raw::decompress_len(block).map_err(|_| self.bad())?;
        if bytes > self.room() {
            return Err(BatchFault::Inflated(self.codec));
        }
        // A block cannot hold more than 64 bytes for each 3 of its own: what promises more is bad.
        if bytes > block.len().saturating_mul(22) {
            return Err(self.bad());
        }
        let start = self.bytes.len();
        self.bytes.resize(start + bytes, 0);
        let written = snap::raw::Decoder::new().decompress(block, &mut self.bytes[start..]);
        match written {
            Ok(written) if written == bytes => Ok(()),
            _ => Err(self.bad()),
        }
    }

    fn zstd(&mut self, body: &[u8]) -> Result<(), BatchFault> {
        let mut rest = body;
        for _ in 0..ZSTD_FRAMES_MAX {
            if rest.is_empty() {
                return Ok(());
            }
            let window = zstd_window(rest);
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut rest) {
                Ok(()) => {}
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    rest = rest.get(length as usize..).ok_or_else(|| self.bad())?;
                    continue;
                }
                Err(_) => return Err(self.bad()),
            }
            // What the decoder holds back is as large as its window, or as the announced content.
            let is_wide = window.is_some_and(|bytes| bytes > ZSTD_WINDOW_BYTES_MAX);
            if is_wide || decoder.content_size() > self.room() as u64 {
                return Err(BatchFault::Inflated(self.codec));
            }
            self.zstd_frame(&mut decoder, &mut rest)?;
        }
        Err(self.bad())
    }

    fn zstd_frame(
        &mut self,
        decoder: &mut FrameDecoder,
        rest: &mut &[u8],
    ) -> Result<(), BatchFault> {
        loop {
            let ended = decoder
                .decode_blocks(&mut *rest, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|_| self.bad())?;
            let more = decoder.collect().unwrap_or_default();
            if more.len() > self.room() {
                return Err(BatchFault::Inflated(self.codec));
            }
            self.bytes.extend_from_slice(&more);
            if ended {
                return Ok(());
            }
        }
    }
}

/// The window that the frame asks for, if it is not the size of its content.
fn zstd_window(frame: &[u8]) -> Option<usize> {
    let [descriptor, window] = *frame.strip_prefix(&ZSTD_MAGIC)?.first_chunk()?;
    // The single-segment flag: no window descriptor follows.
    if descriptor & 0x20 != 0 {
        return None;
    }
    let base = 1_usize << (10 + (window >> 3));
    Some(base + base / 8 * usize::from(window & 7))
}
