//! Within a process the commit offset rises only, from one `Committed` to the next and from one
//! state of the core to the next; and it is never behind the log's end.

use std::collections::BTreeMap;

use kraftd::types::Offset;

use crate::law;

/// The newest commit offset that each living process told, and that its core has.
#[derive(Debug, Default)]
pub(crate) struct Law {
    told: BTreeMap<usize, Offset>,
    has: BTreeMap<usize, Offset>,
}

impl Law {
    pub(crate) fn told(&mut self, node: usize, to: Offset, end: Offset) {
        let before = self.told.insert(node, to);
        law!(
            before.is_none_or(|before| before < to),
            "{node} told {before:?}, then {to}"
        );
        law!(to <= end, "{node}: {to} is behind the log's end {end}");
    }

    pub(crate) fn has(&mut self, node: usize, commit: Option<Offset>) {
        let before = self.has.get(&node).copied();
        law!(commit >= before, "{node} had {before:?}, then {commit:?}");
        if let Some(commit) = commit {
            self.has.insert(node, commit);
        }
    }

    pub(crate) fn process_died(&mut self, node: usize) {
        self.told.remove(&node);
        self.has.remove(&node);
    }
}
