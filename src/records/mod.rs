//! Bytes and records: the only room that knows how the metadata log and its snapshots are encoded.
//!
//! [`metadata`] declares every record once, in the notation of [`schema`]; [`frame`] puts type and
//! version in front. All reading is of bytes that somebody else wrote: it ends in a value or in a
//! typed fault, never in a panic, and a count on the wire reserves no memory.

pub mod batch;
pub mod control;
pub mod fault;
pub mod frame;
pub mod metadata;
pub mod rpc;
pub mod schema;
pub mod text;
pub mod wire;

pub use control::ControlRecord;
pub use fault::RecordFault;
pub use frame::VersionedRecord;
pub use metadata::*;

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of this room share.

    /// The bytes that `text` spells; anything but hexadecimal digits is skipped.
    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        digits
            .chunks(2)
            .map(|pair| (pair[0] * 16 + pair[1]) as u8)
            .collect()
    }
}
