//! For every (offset, value) that a client was told to be done, at every later moment:
//! `platter[offset] == value`.

use kraftd::types::Offset;

use crate::disk::{Content, Entry};
use crate::law;

/// All that was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Law {
    acknowledged: Vec<(Offset, u64)>,
}

impl Law {
    pub(crate) fn acknowledge(&mut self, platter: &[Entry], offset: Offset, value: u64) {
        self.acknowledged.push((offset, value));
        Self::holds(platter, offset, value);
    }

    /// Only a crash can take something away; then everything is looked at.
    pub(crate) fn crashed(&self, platter: &[Entry]) {
        for (offset, value) in &self.acknowledged {
            Self::holds(platter, *offset, *value);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.acknowledged.len()
    }

    fn holds(platter: &[Entry], offset: Offset, value: u64) {
        let found = platter.get(offset.0 as usize).map(|entry| &entry.content);
        law!(
            found == Some(&Content::Value(value)),
            "{value} at {offset} became {found:?}"
        );
    }
}
