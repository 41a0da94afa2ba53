//! What consensus knows of the log: its ends, epochs and snapshots, and whether a replica's log is
//! a prefix of it (KIP-595, KIP-630).

use crate::types::{Epoch, Offset, OffsetAndEpoch};

use super::epochs::Epochs;

/// Where a replica stands that fetches from `(offset, epoch of its last record)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its log is a prefix of this one.
    Prefix,
    /// The logs part: it should cut its log to this end of this epoch.
    Diverges(OffsetAndEpoch),
    /// What it needs is no longer in the log: it should fetch this snapshot.
    NeedsSnapshot(OffsetAndEpoch),
}

/// The log without its records.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// First offset that is still in the log.
    pub(super) start: Offset,
    /// End of what survives a crash, exclusive. Invariant: only the completion of a write moves it.
    pub(super) durable_end: Offset,
    /// End of what was handed to the disk, exclusive.
    pub(super) end: Offset,
    pub(super) epochs: Epochs,
    /// Complete snapshots, ascending, without the bootstrap one.
    snapshots: Vec<OffsetAndEpoch>,
}

impl Log {
    pub(super) fn new(
        start: Offset,
        end: Offset,
        epochs: Epochs,
        mut snapshots: Vec<OffsetAndEpoch>,
    ) -> Self {
        snapshots.retain(|id| *id != OffsetAndEpoch::BOOTSTRAP && id.offset >= start);
        snapshots.sort_unstable();
        snapshots.dedup();
        Self {
            start,
            durable_end: end,
            end,
            epochs,
            snapshots,
        }
    }

    /// The epoch of the last record; of the newest snapshot if the log holds no record.
    pub(super) fn last_epoch(&self) -> Epoch {
        self.epochs
            .latest()
            .unwrap_or_else(|| self.snapshot_epoch())
    }

    /// The end of the log as votes compare it: first by epoch, then by offset.
    pub(super) fn position(&self) -> (Epoch, Offset) {
        (self.last_epoch(), self.end)
    }

    pub(super) fn newest_snapshot(&self) -> Option<OffsetAndEpoch> {
        self.snapshots.last().copied()
    }

    /// The epoch of the newest snapshot, 0 without one.
    pub(super) fn snapshot_epoch(&self) -> Epoch {
        self.newest_snapshot()
            .map(|id| id.epoch)
            .unwrap_or_default()
    }

    pub(super) fn has_snapshot(&self, id: OffsetAndEpoch) -> bool {
        self.snapshots.binary_search(&id).is_ok()
    }

    /// A snapshot became durable. False if it is not newer than all others.
    pub(super) fn add_snapshot(&mut self, id: OffsetAndEpoch) -> bool {
        let newer = self
            .newest_snapshot()
            .is_none_or(|newest| newest.offset < id.offset && newest.epoch <= id.epoch);
        if newer {
            self.snapshots.push(id);
        }
        newer
    }

    /// The log begins at the end of the snapshot `id` from now on; older snapshots are forgotten.
    /// False, and nothing happens, unless that snapshot exists and would move the start forward or
    /// leave older snapshots behind.
    pub(super) fn move_start(&mut self, id: OffsetAndEpoch) -> bool {
        let moves = id.offset > self.start || self.snapshots.first().is_some_and(|it| *it < id);
        if !self.has_snapshot(id) || !moves {
            return false;
        }
        self.start = id.offset;
        self.snapshots.retain(|other| *other >= id);
        self.epochs.begin_at(id.offset);
        true
    }

    /// Whether the log does not reach the end of `id`, as the reference decides it.
    pub(super) fn is_behind(&self, id: OffsetAndEpoch) -> bool {
        let (epoch, end) = self.position();
        id.epoch > epoch || (id.epoch == epoch && id.offset > end)
    }

    /// Whether `id` is newer than all snapshots that are known, and the log ends before it or has
    /// the same record at its end.
    pub(super) fn fits(&self, id: OffsetAndEpoch) -> bool {
        let newest = self.newest_snapshot();
        let newer = newest.is_none_or(|it| it.offset < id.offset && it.epoch <= id.epoch);
        let holds = id.offset <= self.end && self.epochs.at(id.offset.prev()) == Some(id.epoch);
        newer && id.offset > self.start && (holds || self.is_behind(id))
    }

    /// The log begins anew, empty, at the end of `id`, which is durable.
    pub(super) fn restart(&mut self, id: OffsetAndEpoch) {
        self.start = id.offset;
        self.end = id.offset;
        self.durable_end = id.offset;
        self.epochs = Epochs::new(vec![(id.epoch, id.offset)]);
        self.snapshots = vec![id];
    }

    /// The log ends at `end`, exclusive, from now on; not below the newest snapshot.
    pub(super) fn truncate(&mut self, end: Offset) {
        self.end = end;
        self.durable_end = self.durable_end.min(end);
        self.epochs.truncate(end);
    }

    /// Where this log has to be cut if that of a leader parts from it at the end of `theirs`: the
    /// epoch ends there, or earlier if it does so here. What this log has of an older epoch only
    /// is compared anew after the cut. This log's end if there is nothing to cut.
    pub(super) fn parting(&self, theirs: OffsetAndEpoch) -> Offset {
        match self.epochs.end_of(theirs.epoch, self.end) {
            Some(own) if own.epoch == theirs.epoch => own.offset.min(theirs.offset),
            Some(own) => own.offset,
            None => self.end,
        }
    }

    /// Judges a replica that has everything below `offset`, the last of it written in `epoch`.
    pub(super) fn standing(&self, offset: Offset, epoch: Epoch) -> Standing {
        // A replica that has nothing takes a snapshot even while the log still starts at 0: one
        // file instead of the whole history.
        if offset == Offset::ZERO
            && let Some(newest) = self.newest_snapshot()
        {
            return Standing::NeedsSnapshot(newest);
        }
        if offset == Offset::ZERO && self.start == Offset::ZERO {
            return Standing::Prefix;
        }
        if let (Some(oldest), Some(newest)) = (self.snapshots.first(), self.newest_snapshot()) {
            let before = offset < self.start || epoch < oldest.epoch;
            if before || (offset == self.start && epoch != oldest.epoch) {
                return Standing::NeedsSnapshot(newest);
            }
        }
        let end = self.end_of(epoch);
        if end.epoch == epoch && offset <= end.offset {
            Standing::Prefix
        } else {
            Standing::Diverges(end)
        }
    }

    /// The largest epoch not above `epoch`, with its end; the log's last one if `epoch` is newer.
    /// What is older than the whole log ends in the oldest snapshot.
    fn end_of(&self, epoch: Epoch) -> OffsetAndEpoch {
        let last = OffsetAndEpoch {
            offset: self.end,
            epoch: self.last_epoch(),
        };
        let end = self.epochs.end_of(epoch, self.end).unwrap_or(last);
        match self.snapshots.first() {
            Some(oldest) if oldest.offset == end.offset && end.epoch == epoch => *oldest,
            Some(_) | None => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
        OffsetAndEpoch {
            offset: Offset(offset),
            epoch: Epoch(epoch),
        }
    }

    fn log(start: i64, end: i64, epochs: &[(i32, i64)], snapshots: &[(i64, i32)]) -> Log {
        Log::new(
            Offset(start),
            Offset(end),
            Epochs::new(
                epochs
                    .iter()
                    .map(|(e, o)| (Epoch(*e), Offset(*o)))
                    .collect(),
            ),
            snapshots.iter().map(|(o, e)| id(*o, *e)).collect(),
        )
    }

    /// KIP-595 and KIP-630, fetch: prefix, divergence or snapshot, in the order of the rules.
    #[test]
    fn a_replica_is_a_prefix_or_diverges_or_needs_a_snapshot() {
        use Standing::{Diverges, NeedsSnapshot, Prefix};
        let whole = log(0, 30, &[(1, 0), (3, 20)], &[]);
        assert_eq!(whole.standing(Offset(0), Epoch(0)), Prefix);
        assert_eq!(whole.standing(Offset(20), Epoch(1)), Prefix);
        assert_eq!(whole.standing(Offset(21), Epoch(1)), Diverges(id(20, 1)));
        assert_eq!(whole.standing(Offset(20), Epoch(2)), Diverges(id(20, 1)));
        assert_eq!(whole.standing(Offset(30), Epoch(3)), Prefix);
        assert_eq!(whole.standing(Offset(31), Epoch(3)), Diverges(id(30, 3)));
        assert_eq!(whole.standing(Offset(30), Epoch(4)), Diverges(id(30, 3)));

        let cut = log(10, 30, &[(1, 10), (3, 20)], &[(10, 1), (25, 3)]);
        assert_eq!(cut.standing(Offset(0), Epoch(0)), NeedsSnapshot(id(25, 3)));
        assert_eq!(cut.standing(Offset(9), Epoch(1)), NeedsSnapshot(id(25, 3)));
        assert_eq!(cut.standing(Offset(10), Epoch(1)), Prefix);
        assert_eq!(cut.standing(Offset(10), Epoch(3)), NeedsSnapshot(id(25, 3)));
        assert_eq!(cut.standing(Offset(15), Epoch(0)), NeedsSnapshot(id(25, 3)));
        assert_eq!(cut.standing(Offset(15), Epoch(1)), Prefix);
        assert_eq!(cut.standing(Offset(25), Epoch(1)), Diverges(id(20, 1)));

        let early = log(0, 30, &[(1, 0)], &[(12, 1)]);
        assert_eq!(
            early.standing(Offset(0), Epoch(0)),
            NeedsSnapshot(id(12, 1))
        );
        assert_eq!(early.standing(Offset(5), Epoch(1)), Prefix);
    }

    /// KIP-630, cleaning: the start moves to the end of a snapshot and nowhere else.
    #[test]
    fn the_start_moves_to_the_end_of_a_known_snapshot_and_older_ones_are_forgotten() {
        let mut log = log(
            0,
            40,
            &[(1, 0), (3, 20)],
            &[(0, 0), (10, 1), (25, 3), (30, 3)],
        );
        assert!(!log.move_start(id(26, 3)));
        assert!(!log.move_start(OffsetAndEpoch::BOOTSTRAP));
        assert!(log.move_start(id(10, 1)));
        assert_eq!(log.start, Offset(10));
        assert!(!log.move_start(id(10, 1)), "it is there already");
        assert!(log.move_start(id(30, 3)));
        assert!(!log.has_snapshot(id(25, 3)));
        assert_eq!(
            log.standing(Offset(29), Epoch(3)),
            Standing::NeedsSnapshot(id(30, 3))
        );
        assert_eq!(log.standing(Offset(30), Epoch(3)), Standing::Prefix);
        assert_eq!(log.position(), (Epoch(3), Offset(40)));
        assert!(!log.move_start(id(25, 3)), "it never moves back");
    }

    /// KIP-630, loading: by epoch first, as the reference compares.
    #[test]
    fn a_snapshot_fits_a_log_that_ends_before_it_or_holds_its_last_record() {
        let log = log(10, 40, &[(1, 10), (3, 20)], &[(10, 1)]);
        for (offset, epoch, fits, behind) in [
            (41, 3, true, true),
            (35, 4, true, true),
            (40, 3, true, false),
            (25, 3, true, false),
            (15, 1, true, false),
            (25, 2, false, false),
            (41, 2, false, false),
            (10, 1, false, false),
            (5, 4, false, true),
        ] {
            let id = id(offset, epoch);
            assert_eq!((log.fits(id), log.is_behind(id)), (fits, behind), "{id:?}");
        }
        let mut anew = log.clone();
        anew.restart(id(60, 4));
        assert_eq!(anew.position(), (Epoch(4), Offset(60)));
        assert!(!anew.has_snapshot(id(10, 1)) && anew.has_snapshot(id(60, 4)));
        assert_eq!(anew.standing(Offset(60), Epoch(4)), Standing::Prefix);
    }

    #[test]
    fn an_empty_log_behind_a_snapshot_has_the_snapshots_epoch() {
        let log = log(40, 40, &[], &[(40, 6)]);
        assert_eq!(log.position(), (Epoch(6), Offset(40)));
        assert_eq!(log.standing(Offset(40), Epoch(6)), Standing::Prefix);
    }

    #[test]
    fn the_bootstrap_snapshot_is_not_offered() {
        let log = log(0, 5, &[(1, 0)], &[(0, 0)]);
        assert_eq!(log.standing(Offset(0), Epoch(0)), Standing::Prefix);
        assert!(!log.has_snapshot(OffsetAndEpoch::BOOTSTRAP));
    }
}
