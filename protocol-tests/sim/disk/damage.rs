//! What a disk loses although it had completed it. The world lets it happen only where a quorum can
//! survive it.
//!
//! * Bit rot: a batch of the log is bad. Everything from it on is of no use, although it is known
//!   to have been committed: the node must not vote with what is left. Recovery sees the batches
//!   behind the bad one, and marks how far the log reached, so that a crash while the log is being
//!   refilled does not make it look whole. A node that would take itself for whole at its last
//!   known commit offset could lack what it had acknowledged behind that.
//! * A restored directory: an operator puts an older copy of everything in place, with the older
//!   vote and the older commit offset in it. Nothing in it says so, hence it is survivable only if
//!   all that the node ever had is on a majority of the others, and if nobody can be elected any
//!   more in an epoch whose vote it forgets.
//! * A lost vote: `quorum-state` is gone. The process refuses to start unless the operator accepts
//!   it (`--accept-lost-vote`), under the same condition on votes.
//! * A wiped directory: everything is gone, under both conditions.

use kraftd::types::{Offset, OffsetAndEpoch, SplitMix};

use super::Disk;

impl Disk {
    /// A committed batch behind the newest snapshot goes bad. Gives the new end of the log.
    pub(crate) fn rot(&mut self, rng: &mut SplitMix) -> Option<Offset> {
        let commit = self.commit?.offset;
        let from = self.newest().map_or(Offset::ZERO, |(id, _)| id.offset);
        let sound: Vec<Offset> = self
            .platter
            .batches()
            .map(|batch| batch.first)
            .filter(|first| (from..commit).contains(first))
            .collect();
        let at = rng.below(sound.len() as u64) as usize;
        let end = *sound.get(at)?;
        let reached = OffsetAndEpoch {
            offset: self.platter.end(),
            epoch: self.platter.last_epoch(),
        };
        // A log that is still being refilled once reached further.
        self.reached = self.reached.max(Some(reached));
        self.platter.truncate(end);
        self.recover();
        Some(end)
    }

    pub(crate) fn lose_vote(&mut self) {
        self.quorum_state = None;
    }

    /// A copy of everything, as a backup of the stopped node.
    pub(crate) fn copy(&self) -> Self {
        let mut copy = self.clone();
        copy.queue.clear();
        copy.busy = 0;
        copy.recover();
        copy
    }
}
