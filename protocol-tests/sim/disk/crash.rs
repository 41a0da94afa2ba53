//! The end of a process, and what the next one finds.

use kraftd::types::{OffsetAndEpoch, SplitMix};

use super::{Change, Disk, Queued};
use crate::journal::Journal;

impl Disk {
    /// The process or the machine dies. Says what that did.
    pub(crate) fn crash(&mut self, rng: &mut SplitMix) -> &'static str {
        let kept = rng.below(self.queue.len() as u64 + 1) as usize;
        let lost: Vec<Queued> = self.queue.drain(..).collect();
        let mut what = match (lost.len(), kept) {
            (0, _) => "crash of an idle disk",
            (_, 0) => "crash that lost all that was under way",
            (some, all) if some == all => "crash with no completion told",
            (_, _) => "crash that lost a suffix",
        };
        for (at, queued) in lost.into_iter().enumerate() {
            if at < kept {
                self.persist(queued.change);
                continue;
            }
            what = self.lose(queued.change, rng).unwrap_or(what);
            break;
        }
        self.busy = 0;
        self.recover();
        what
    }

    /// The first write that was not completed. Says what is special about it.
    fn lose(&mut self, change: Change, rng: &mut SplitMix) -> Option<&'static str> {
        match change {
            Change::MoveStart(to) => {
                let below = (to.offset.0 - self.floor.0 + 1).max(1);
                let reached = self.floor.plus(rng.below(below as u64) as i64);
                self.floor = self.segment_of(reached).max(self.floor);
                self.platter.drop_below(self.floor);
                if self.floor == self.segment_of(to.offset) {
                    let keep = |id: &OffsetAndEpoch| *id >= to || rng.below(2) == 0;
                    let mut keep = keep;
                    self.snapshots.retain(|id, _| keep(id));
                }
                Some("crash in a move of the log's start")
            }
            Change::Append(mut batches) => {
                let kept = rng.below(batches.len() as u64 + 1) as usize;
                let torn = kept > 0 && kept < batches.len();
                batches.truncate(kept);
                self.persist(Change::Append(batches));
                torn.then_some("crash that tore an append")
            }
            Change::Restart(_) => Some("crash in a take-over of a snapshot"),
            Change::Truncate(_) => Some("crash that lost a cut"),
            Change::QuorumState(_) => None,
        }
    }

    /// A clean stop: all that was submitted is written.
    pub(crate) fn close(&mut self) {
        self.busy = self.queue.len();
        self.finish();
        self.recover();
    }

    /// What the next start makes of it: the log begins where its first segment does, snapshots that
    /// end below are removed, and so are those of another history; one that is ahead of the log
    /// takes its place.
    pub(crate) fn recover(&mut self) {
        self.part = None;
        self.commit_submitted = None;
        self.start = self.floor;
        let (start, end) = (self.start, self.platter.end());
        let last = self.platter.last_epoch();
        let ahead = |id: &OffsetAndEpoch| id.epoch > last || (id.epoch == last && id.offset > end);
        let platter = &self.platter;
        self.snapshots.retain(|id, _| {
            let same = platter.epoch_below(id.offset) == Some(id.epoch);
            id.offset >= start && (ahead(id) || (id.offset <= end && same))
        });
        if let Some((id, snapshot)) = self.newest().filter(|(id, _)| ahead(id)) {
            self.platter = Journal::new(id, snapshot.chain);
            self.start = id.offset;
            self.floor = id.offset;
            self.snapshots.retain(|other, _| *other >= id);
        }
        self.view = self.platter.clone();
    }
}
