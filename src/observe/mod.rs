//! Views of an image for people and programs: the tree of named nodes that Kafka's metadata shell
//! shows, as JSON and as text.
//!
//! A [`View`] is an image, where it stands in the log ([`Provenance`]), and whether secrets may be
//! seen. Its nodes are made when they are asked for: `topics/byName/foo/0` in an image of a million
//! partitions touches one topic, and a listing goes out line by line.
//!
//! Paths and names are the shell's, below its `/image`: `topics/byName/foo/0`, `cluster/brokers/1`,
//! `configs/TOPIC:foo/retention.ms`, ... [`tree`] says where they differ, and why.

pub mod changes;
pub mod json;
mod leaf;
mod names;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod text;
pub mod tree;
mod words;

pub use leaf::Leaf;
pub use tree::{Directory, Node, Unknown, View};

use crate::types::{Epoch, Offset, Timestamp};

/// Where in the log an image stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The last offset that the image contains (inclusive); -1 for the image of an empty log.
    pub offset: Offset,
    /// The epoch of that record; -1 when there is none.
    pub epoch: Epoch,
    /// The append time of that record's batch; negative when it is not known.
    pub time: Timestamp,
    /// The last offset (inclusive) that is known to be committed; `None` when nothing says it.
    /// What is behind it may never have been.
    pub committed: Option<Offset>,
}

impl Provenance {
    /// Of the image of an empty log.
    pub const NONE: Self = Self {
        offset: Offset(-1),
        epoch: Epoch(-1),
        time: Timestamp(-1),
        committed: None,
    };
}

/// A wall-clock time as ISO-8601 in UTC with milliseconds, or the bare number when it is no date.
#[must_use]
pub fn iso_time(time: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(moment) => format!("{moment:.3}"),
        Err(_) => time.0.to_string(),
    }
}
