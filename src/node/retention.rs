//! Which snapshots may go, and the log below them (KIP-630, "When to Delete Snapshots").
//!
//! While there is another, the oldest snapshot goes when log and snapshots together have more bytes
//! than allowed, or when what it covers is older than allowed; the log then begins at the end of
//! the next one. The newest never goes. The bootstrap snapshot counts as the oldest while it is
//! there.

use std::fmt;

use crate::storage::HeldSnapshot;
use crate::types::{OffsetAndEpoch, Timestamp};

/// How much is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionRules {
    /// `metadata.max.retention.bytes` of log and snapshots together; `None`: no limit.
    pub bytes_max: Option<u64>,
    /// `metadata.max.retention.ms`, from the newest record that a snapshot covers until now;
    /// `None`: no limit.
    pub ms_max: Option<u64>,
}

/// What is on disk.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Complete snapshots, ascending, the bootstrap one included.
    pub snapshots: Vec<HeldSnapshot>,
    /// Bytes of the log's segments, with what is on its way to the disk.
    pub log_bytes: u64,
}

/// Why the oldest snapshot goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// There are more bytes than allowed.
    Bytes {
        log: u64,
        snapshots: u64,
        allowed: u64,
    },
    /// Nothing in it is young enough.
    Age { ms: u64, allowed: u64 },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes {
                log,
                snapshots,
                allowed,
            } => write!(
                f,
                "the log ({log} bytes) and the snapshots ({snapshots} bytes) are more than \
                 {allowed} bytes"
            ),
            Self::Age { ms, allowed } => {
                write!(f, "all that it covers is {ms} ms old, more than {allowed}")
            }
        }
    }
}

impl Held {
    /// A snapshot became durable. One that was written again replaces itself.
    pub(super) fn add(&mut self, snapshot: HeldSnapshot) {
        self.snapshots.retain(|other| other.id != snapshot.id);
        let at = self
            .snapshots
            .partition_point(|other| other.id < snapshot.id);
        self.snapshots.insert(at, snapshot);
    }

    /// Size of the newest snapshot; 0 when there is none.
    pub(super) fn newest_bytes(&self) -> u64 {
        self.snapshots.last().map_or(0, |held| held.bytes)
    }

    /// Snapshots older than `id` and so many bytes of the log are gone.
    pub(super) fn removed(&mut self, id: OffsetAndEpoch, log_bytes: u64) {
        self.snapshots.retain(|other| other.id >= id);
        self.log_bytes = self.log_bytes.saturating_sub(log_bytes);
    }

    /// The snapshot at whose end the log should begin, so that the one before it goes; one step at
    /// a time.
    pub(super) fn superfluous(
        &self,
        rules: RetentionRules,
        now: Timestamp,
    ) -> Option<(OffsetAndEpoch, Why)> {
        let [oldest, next, ..] = &self.snapshots[..] else {
            return None;
        };
        let snapshots: u64 = self.snapshots.iter().map(|held| held.bytes).sum();
        if let Some(allowed) = rules.bytes_max
            && self.log_bytes.saturating_add(snapshots) > allowed
        {
            let log = self.log_bytes;
            return Some((
                next.id,
                Why::Bytes {
                    log,
                    snapshots,
                    allowed,
                },
            ));
        }
        let last = oldest.last_timestamp?;
        let ms = u64::try_from(now.0.saturating_sub(last.0)).unwrap_or(0);
        let allowed = rules.ms_max.filter(|allowed| ms > *allowed)?;
        Some((next.id, Why::Age { ms, allowed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Epoch, Offset};

    fn id(offset: i64) -> OffsetAndEpoch {
        let epoch = Epoch(i32::from(offset > 0));
        OffsetAndEpoch {
            offset: Offset(offset),
            epoch,
        }
    }

    fn held(log_bytes: u64, snapshots: &[(i64, u64, i64)]) -> Held {
        let snapshots = snapshots.iter().map(|(offset, bytes, last)| HeldSnapshot {
            id: id(*offset),
            bytes: *bytes,
            last_timestamp: Some(Timestamp(*last)),
        });
        Held {
            snapshots: snapshots.collect(),
            log_bytes,
        }
    }

    fn rules(bytes: i64, ms: i64) -> RetentionRules {
        RetentionRules {
            bytes_max: u64::try_from(bytes).ok(),
            ms_max: u64::try_from(ms).ok(),
        }
    }

    /// The numbers of a run of Java 4.4.0 that let go of 0-0, 51 and so on, one at a time, and
    /// stopped at the first sum within the limit.
    #[test]
    fn the_oldest_goes_while_the_sum_is_above_the_limit() {
        let mut held = held(21_742, &[(0, 494, 1), (51, 754, 2), (93, 754, 3)]);
        let (next, why) = held.superfluous(rules(9_000, -1), Timestamp(5)).unwrap();
        assert_eq!(next, id(51));
        let told = "the log (21742 bytes) and the snapshots (2002 bytes) are more than 9000 bytes";
        assert_eq!(why.to_string(), told);
        held.removed(next, 0);
        assert_eq!(
            held.superfluous(rules(9_000, -1), Timestamp(5)).unwrap().0,
            id(93)
        );
        held.removed(id(93), 4_030);
        assert_eq!(held.log_bytes, 17_712);
        assert_eq!(
            held.superfluous(rules(0, 0), Timestamp(99)),
            None,
            "the newest stays"
        );
    }

    #[test]
    fn a_sum_that_is_just_the_limit_is_allowed() {
        let held = held(100, &[(10, 30, 1), (20, 30, 2)]);
        assert_eq!(held.superfluous(rules(160, -1), Timestamp(5)), None);
        assert!(held.superfluous(rules(159, -1), Timestamp(5)).is_some());
        assert_eq!(held.superfluous(rules(-1, -1), Timestamp(5)), None);
    }

    #[test]
    fn the_oldest_goes_when_all_that_it_covers_is_too_old() {
        let held = held(100, &[(10, 30, 1_000), (20, 30, 2_000)]);
        assert_eq!(held.superfluous(rules(-1, 500), Timestamp(1_500)), None);
        let (next, why) = held.superfluous(rules(-1, 500), Timestamp(1_501)).unwrap();
        assert_eq!(
            (next, why),
            (
                id(20),
                Why::Age {
                    ms: 501,
                    allowed: 500
                }
            )
        );
        assert_eq!(
            held.superfluous(rules(-1, 500), Timestamp(0)),
            None,
            "a clock set back"
        );
    }

    #[test]
    fn a_snapshot_of_unknown_age_goes_for_bytes_only() {
        let mut held = held(100, &[(10, 30, 0), (20, 30, 2_000)]);
        held.snapshots[0].last_timestamp = None;
        assert_eq!(held.superfluous(rules(-1, 0), Timestamp(9_000)), None);
        assert!(held.superfluous(rules(10, 0), Timestamp(9_000)).is_some());
    }

    #[test]
    fn a_snapshot_is_added_in_its_place_and_only_once() {
        let mut held = held(0, &[(0, 1, 1), (30, 1, 1)]);
        for bytes in [5, 7] {
            held.add(HeldSnapshot {
                id: id(20),
                bytes,
                last_timestamp: None,
            });
        }
        let offsets: Vec<_> = held
            .snapshots
            .iter()
            .map(|it| (it.id.offset.0, it.bytes))
            .collect();
        assert_eq!(offsets, [(0, 1), (20, 7), (30, 1)]);
        assert_eq!(
            (held.newest_bytes(), Held::default().newest_bytes()),
            (1, 0)
        );
    }
}
