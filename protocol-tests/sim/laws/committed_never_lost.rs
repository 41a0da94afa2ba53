//! What any node once knew to be committed at an offset is what is committed there for every node
//! at every later moment: `committed[offset]` never changes. The leader of an epoch has all that
//! was committed in older epochs.

use std::collections::BTreeMap;
use std::sync::Arc;

use kraftd::types::{Epoch, Offset};

use crate::codec::Batch;
use crate::journal::{Journal, NOTHING};
use crate::law;

/// All that was ever committed.
#[derive(Debug, Default)]
pub(crate) struct Law {
    log: Journal,
    /// In which epoch it was committed up to where.
    ends: BTreeMap<Epoch, Offset>,
}

impl Law {
    /// A node in `epoch` says that everything below `to` is committed. True if nobody did before.
    pub(crate) fn told(&mut self, node: usize, epoch: Epoch, view: &Journal, to: Offset) -> bool {
        let known = self.log.end().min(to);
        let fits = view.chain_at(known);
        // A log that begins behind `known` came by a snapshot, which is looked at when it is
        // loaded.
        law!(
            fits == self.log.chain_at(known) || view.base() > known,
            "{node} has another history below {known}"
        );
        let news = view.range(self.log.end(), to);
        let is_news = !news.is_empty();
        if is_news {
            self.ends.insert(epoch, to);
        }
        for (batch, _) in news {
            self.log.push(batch.clone());
        }
        law!(
            self.log.end() >= to,
            "{node}: nobody has what is below {to}"
        );
        law!(
            self.log.chain_at(to).is_some(),
            "{node}: {to} is inside of a batch"
        );
        is_news
    }

    /// A snapshot holds what is committed, or is none.
    pub(crate) fn holds(&self, node: usize, end: Offset, epoch: Epoch, chain: u64) {
        law!(
            end <= self.log.end(),
            "{node} has a snapshot up to {end}, beyond what is committed"
        );
        law!(
            self.log.chain_at(end) == Some(chain) && self.log.epoch_below(end) == Some(epoch),
            "{node} has a snapshot of another history, up to {end} in {epoch}"
        );
    }

    /// Who leads has all that was committed in older epochs. (It may be late: a newer leader may
    /// have committed something since it was elected.)
    pub(crate) fn leads(&self, node: usize, epoch: Epoch, view: &Journal) {
        let older = self.ends.range(..epoch).map(|(_, end)| *end);
        let end = older.max().unwrap_or(Offset::ZERO);
        law!(
            view.chain_at(end) == self.log.chain_at(end),
            "{node} leads without what is committed below {end}: its log ends at {}",
            view.end()
        );
    }

    /// The hash of what is committed below `offset`.
    pub(crate) fn chain_at(&self, offset: Offset) -> Option<u64> {
        match offset {
            Offset::ZERO => Some(NOTHING),
            offset => self.log.chain_at(offset),
        }
    }

    pub(crate) fn end(&self) -> Offset {
        self.log.end()
    }

    /// The committed batch that holds `offset`.
    pub(crate) fn batch(&self, offset: Offset) -> Option<Arc<Batch>> {
        let found = self.log.read(offset, offset.next(), 0);
        found.into_iter().next()
    }
}
