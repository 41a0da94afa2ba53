//! A log of batches, with a running hash over all that went before each of them: two logs that have
//! the same hash at an offset are the same up to there.

use std::sync::Arc;

use kraftd::types::{Epoch, Offset, OffsetAndEpoch};

use crate::codec::{Batch, mix};

/// The hash of the empty log.
pub(crate) const NOTHING: u64 = 0x6b72_6166;

/// What one record counts for in a read, in bytes.
const RECORD_BYTES: usize = 50;

#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Where it begins.
    base: Offset,
    base_chain: u64,
    base_epoch: Epoch,
    batches: Vec<(Arc<Batch>, u64)>,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new(OffsetAndEpoch::default(), NOTHING)
    }
}

impl Journal {
    /// An empty log behind `id`; `chain` is the hash up to there.
    pub(crate) fn new(id: OffsetAndEpoch, chain: u64) -> Self {
        Self {
            base: id.offset,
            base_chain: chain,
            base_epoch: id.epoch,
            batches: Vec::new(),
        }
    }

    pub(crate) fn base(&self) -> Offset {
        self.base
    }

    pub(crate) fn end(&self) -> Offset {
        self.batches
            .last()
            .map_or(self.base, |(batch, _)| batch.end)
    }

    /// The epoch of the last record.
    pub(crate) fn last_epoch(&self) -> Epoch {
        self.batches
            .last()
            .map_or(self.base_epoch, |(batch, _)| batch.epoch)
    }

    pub(crate) fn chain(&self) -> u64 {
        self.batches
            .last()
            .map_or(self.base_chain, |(_, chain)| *chain)
    }

    pub(crate) fn batches(&self) -> impl DoubleEndedIterator<Item = &Arc<Batch>> {
        self.batches.iter().map(|(batch, _)| batch)
    }

    /// Appends a batch that fits the end; gives the hash up to its end.
    pub(crate) fn push(&mut self, batch: Arc<Batch>) -> u64 {
        assert_eq!(batch.first, self.end(), "an append not at the log's end");
        let chain = mix(self.chain(), batch.hash);
        self.batches.push((batch, chain));
        chain
    }

    /// How many batches end at or below `offset`.
    fn below(&self, offset: Offset) -> usize {
        self.batches
            .partition_point(|(batch, _)| batch.end <= offset)
    }

    /// Cuts at `end`, which is the end of a batch.
    pub(crate) fn truncate(&mut self, end: Offset) {
        self.batches.truncate(self.below(end));
        assert_eq!(self.end(), end, "a cut inside of a batch");
    }

    /// Lets go of whole batches below `floor`.
    pub(crate) fn drop_below(&mut self, floor: Offset) {
        let gone = self.below(floor);
        if let Some((batch, chain)) = gone.checked_sub(1).and_then(|at| self.batches.get(at)) {
            (self.base, self.base_chain, self.base_epoch) = (batch.end, *chain, batch.epoch);
            self.batches.drain(..gone);
        }
    }

    /// The hash up to `offset`; `None` if no batch ends there, or that is not in this log.
    pub(crate) fn chain_at(&self, offset: Offset) -> Option<u64> {
        if offset == self.base {
            return Some(self.base_chain);
        }
        let at = self.below(offset).checked_sub(1)?;
        let (batch, chain) = self.batches.get(at)?;
        (batch.end == offset).then_some(*chain)
    }

    /// The epoch of the last record below `offset`.
    pub(crate) fn epoch_below(&self, offset: Offset) -> Option<Epoch> {
        match self.below(offset).checked_sub(1) {
            Some(at) => self.batches.get(at).map(|(batch, _)| batch.epoch),
            None => (offset == self.base).then_some(self.base_epoch),
        }
    }

    /// Whole batches from the one that holds `from`, none that starts at or behind `until`, at
    /// least one, about `bytes` in all.
    pub(crate) fn read(&self, from: Offset, until: Offset, bytes: usize) -> Vec<Arc<Batch>> {
        let mut left = bytes;
        let mut found = Vec::new();
        for (batch, _) in &self.batches[self.below(from)..] {
            let size = (batch.end.0 - batch.first.0) as usize * RECORD_BYTES;
            if batch.first >= until || from < self.base || (!found.is_empty() && size > left) {
                break;
            }
            left = left.saturating_sub(size);
            found.push(batch.clone());
        }
        found
    }

    /// The whole batches in `from..until`.
    pub(crate) fn range(&self, from: Offset, until: Offset) -> &[(Arc<Batch>, u64)] {
        let (first, end) = (self.below(from), self.below(until));
        &self.batches[first.min(end)..end]
    }
}
