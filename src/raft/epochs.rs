//! Epoch -> first offset, and where a replica's log parts from this one (KIP-595, divergence).

use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// The epochs that the log holds, each with its first offset, both strictly ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Epochs(Vec<(Epoch, Offset)>);

impl Epochs {
    /// From what was recovered; entries that do not ascend are dropped.
    pub(super) fn new(entries: Vec<(Epoch, Offset)>) -> Self {
        let mut epochs = Self::default();
        for (epoch, start) in entries {
            epochs.begin(epoch, start);
        }
        epochs
    }

    /// The log's next record, at `start`, is the first of `epoch`. An epoch that got no record is
    /// replaced.
    pub(super) fn begin(&mut self, epoch: Epoch, start: Offset) {
        if self.latest().is_some_and(|latest| epoch <= latest) {
            return;
        }
        while self.0.last().is_some_and(|(_, other)| *other >= start) {
            self.0.pop();
        }
        self.0.push((epoch, start));
    }

    /// The log begins at `start` from now on: what lies below is forgotten, and the epoch that goes
    /// on there begins there.
    pub(super) fn begin_at(&mut self, start: Offset) {
        let above = self.0.partition_point(|(_, first)| *first <= start);
        if let Some(at) = above.checked_sub(1) {
            self.0[at].1 = start;
            self.0.drain(..at);
        }
    }

    /// The log ends at `end`, exclusive, from now on: epochs that began there or later are gone.
    pub(super) fn truncate(&mut self, end: Offset) {
        self.0.retain(|(_, start)| *start < end);
    }

    /// The epoch of the last record, if the log has one.
    pub(super) fn latest(&self) -> Option<Epoch> {
        self.0.last().map(|(epoch, _)| *epoch)
    }

    /// The epoch of the record at `offset`, if the log holds it.
    pub(super) fn at(&self, offset: Offset) -> Option<Epoch> {
        let above = self.0.partition_point(|(_, start)| *start <= offset);
        above.checked_sub(1).map(|at| self.0[at].0)
    }

    /// The largest epoch not above `asked` with its end (exclusive) in a log that ends at
    /// `log_end`. An epoch older than all that the log holds ends where the log's first one
    /// starts; `None` if `asked` is newer than all, or the log is empty.
    pub(super) fn end_of(&self, asked: Epoch, log_end: Offset) -> Option<OffsetAndEpoch> {
        if self.latest()? < asked {
            return None;
        }
        let above = self.0.partition_point(|(epoch, _)| *epoch <= asked);
        let offset = self.0.get(above).map_or(log_end, |(_, start)| *start);
        let epoch = match above.checked_sub(1) {
            Some(floor) => self.0[floor].0,
            None => asked,
        };
        Some(OffsetAndEpoch { offset, epoch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        Epochs::new(
            entries
                .iter()
                .map(|(e, o)| (Epoch(*e), Offset(*o)))
                .collect(),
        )
    }

    #[test]
    fn the_epoch_of_an_offset_is_the_last_one_that_began_at_or_before_it() {
        let log = epochs(&[(2, 10), (5, 20)]);
        let at = |offset| log.at(Offset(offset)).map(|epoch| epoch.0);
        assert_eq!(
            [at(9), at(10), at(19), at(20)],
            [None, Some(2), Some(2), Some(5)]
        );
    }

    /// KIP-595, fetch: the end offset of the largest epoch not above the asked one.
    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next_one_that_has_records() {
        let log = epochs(&[(2, 10), (5, 20)]);
        let end = |asked| {
            log.end_of(Epoch(asked), Offset(30))
                .map(|end| (end.epoch.0, end.offset.0))
        };
        assert_eq!(end(1), Some((1, 10)));
        assert_eq!(end(2), Some((2, 20)));
        assert_eq!(end(4), Some((2, 20)));
        assert_eq!(end(5), Some((5, 30)));
        assert_eq!(end(6), None);
        assert_eq!(epochs(&[]).end_of(Epoch(0), Offset(0)), None);
    }

    #[test]
    fn a_log_that_begins_later_keeps_the_epoch_that_goes_on_there() {
        for (start, left) in [
            (0, &[(2, 10), (5, 20), (6, 25)][..]),
            (10, &[(2, 10), (5, 20), (6, 25)]),
            (19, &[(2, 19), (5, 20), (6, 25)]),
            (20, &[(5, 20), (6, 25)]),
            (22, &[(5, 22), (6, 25)]),
            (30, &[(6, 30)]),
        ] {
            let mut log = epochs(&[(2, 10), (5, 20), (6, 25)]);
            log.begin_at(Offset(start));
            assert_eq!(log.0, epochs(left).0, "{start}");
        }
    }

    #[test]
    fn an_epoch_without_records_is_replaced_by_the_next_one() {
        let mut log = epochs(&[(1, 0)]);
        log.begin(Epoch(2), Offset(7));
        log.begin(Epoch(3), Offset(7));
        log.begin(Epoch(3), Offset(9));
        assert_eq!(log.0, epochs(&[(1, 0), (3, 7)]).0);
    }
}
