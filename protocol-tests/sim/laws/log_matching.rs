//! If two logs have a batch that ends at the same offset in the same epoch, they are equal up to
//! there: `(end, epoch)` names one history. That includes logs that a crash took back, and what was
//! served before it was durable.

use std::collections::BTreeMap;

use kraftd::types::{Epoch, Offset};

use crate::codec::Batch;
use crate::law;

/// Every history that any log ever had.
#[derive(Debug, Default)]
pub(crate) struct Law {
    chains: BTreeMap<(Offset, Epoch), u64>,
}

impl Law {
    /// `chain` is the hash of the node's log up to the end of `batch`.
    pub(crate) fn appended(&mut self, node: usize, batch: &Batch, chain: u64) {
        let known = *self.chains.entry((batch.end, batch.epoch)).or_insert(chain);
        law!(
            known == chain,
            "{node} has another history up to {} in {}",
            batch.end,
            batch.epoch
        );
    }
}
