//! Within a process `commit` rises only. Over all processes: what was once committed at an offset
//! is what is committed there: `committed[offset]` never changes.

use kraftd::types::Offset;

use crate::disk::Entry;
use crate::law;

/// All that was ever committed.
#[derive(Debug, Default)]
pub(crate) struct Law {
    committed: Vec<Entry>,
    /// The newest commit offset that the living process told.
    told: Option<Offset>,
}

impl Law {
    pub(crate) fn advanced(&mut self, view: &[Entry], to: Offset) {
        law!(
            self.told.is_none_or(|told| told < to),
            "{:?}, then {to}",
            self.told
        );
        law!(to.0 as usize <= view.len(), "{to} is behind the log's end");
        self.told = Some(to);
        let end = to.0 as usize;
        let known = self.committed.len().min(end);
        law!(
            self.committed[..known] == view[..known],
            "another history below {known}"
        );
        self.committed.extend_from_slice(&view[known..end]);
    }

    pub(crate) fn process_died(&mut self) {
        self.told = None;
    }

    pub(crate) fn crashed(&self, platter: &[Entry]) {
        let known = self.committed.len();
        law!(
            platter.len() >= known && self.committed[..] == platter[..known],
            "a crash changed what was committed"
        );
    }

    pub(crate) fn committed(&self) -> &[Entry] {
        &self.committed
    }
}
