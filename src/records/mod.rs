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
pub mod wire;

pub use control::ControlRecord;
pub use fault::RecordFault;
pub use frame::VersionedRecord;
pub use metadata::*;
