//! For every (offset, value) that a client was told to be done: `committed[offset] == value`, and
//! since what is committed never changes, at every later moment too.

use kraftd::types::Offset;

use super::committed_never_lost;
use crate::codec::Content;
use crate::law;
use crate::machine::State;

/// All that was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Law {
    acknowledged: Vec<(Offset, u64)>,
}

impl Law {
    pub(crate) fn acknowledge(
        &mut self,
        committed: &committed_never_lost::Law,
        offset: Offset,
        value: u64,
    ) {
        self.acknowledged.push((offset, value));
        let batch = committed.batch(offset);
        let found = batch.and_then(|batch| match &batch.content {
            Content::Values(values) => values.get((offset.0 - batch.first.0) as usize).copied(),
            Content::Control(_) => None,
        });
        law!(found == Some(value), "{value} at {offset} became {found:?}");
    }

    pub(crate) fn count(&self) -> usize {
        self.acknowledged.len()
    }

    /// At rest every state machine that remembers values has them all.
    pub(crate) fn at_rest(&self, state: &State) {
        let State::Values(all) = state else { return };
        for (offset, value) in &self.acknowledged {
            let found = all.get(offset);
            law!(found == Some(value), "{value} at {offset} became {found:?}");
        }
    }
}
