//! Two state machines that are at the same offset are equal, whether they got there record by
//! record or by a snapshot, and on whichever node.

use std::collections::BTreeMap;

use kraftd::types::Offset;

use crate::law;
use crate::machine::Machine;

/// What the image was at every offset at which one was.
#[derive(Debug, Default)]
pub(crate) struct Law {
    digests: BTreeMap<Offset, u64>,
}

impl Law {
    pub(crate) fn at(&mut self, node: usize, machine: &Machine) {
        let digest = machine.digest();
        let known = *self.digests.entry(machine.end).or_insert(digest);
        law!(
            known == digest,
            "{node} has another image at {}: {machine:?}",
            machine.end
        );
    }
}
