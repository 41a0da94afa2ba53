//! The bound of answers that tell of a large part of the metadata.
//!
//! It is counted while an answer is made, so that one which is too large is given up there. A few
//! bytes may ask for hundreds of keys, or for every access control entry, again and again.

use kafka_protocol::protocol::StrBytes;

use super::too_large;
use crate::types::ApiError;

/// Most that one answer takes, about: all keys of some 3,000 topics, or hundreds of times those of
/// a node, or some 200,000 access control entries.
pub(super) const BYTES_MAX: usize = 64 << 20;

/// What was told so far, in bytes.
#[derive(Debug, Default)]
pub(super) struct Told(usize);

impl Told {
    /// Counts what is to be told next.
    ///
    /// # Errors
    /// `POLICY_VIOLATION`: with it there is more than [`BYTES_MAX`].
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.0 = self.0.saturating_add(bytes);
        match self.0 > BYTES_MAX {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

/// What one thing of these texts takes in memory and in the answer, about.
pub(super) fn bytes<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    let texts = texts.into_iter().map(str::len).sum::<usize>();
    128 + 2 * texts
}

/// The same of what has a name and may have a value.
pub(super) fn bytes_of(name: &StrBytes, value: Option<&StrBytes>) -> usize {
    bytes([name.as_str(), value.map_or("", |value| value.as_str())])
}
