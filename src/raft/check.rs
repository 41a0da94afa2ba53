//! The laws of one node, checked after every call in debug builds.
//!
//! ```text
//! start <= newest snapshot's end (if any) <= commit (if known)
//! start > 0                         only with a snapshot that holds what lies below
//! commit <= end                     commit <= durable end, if this node leads as the only voter
//! durable end <= end                what was handed to the disk is not yet on it
//! epoch, start, commit             never move back
//! durable end                       moves back only to the log's end: when the log begins anew,
//!                                   empty, or was cut
//! end                               moves back only by a cut, never below a commit or a snapshot
//!                                   that was known
//! one epoch is begun once           with one first offset
//! ```

use crate::types::{Epoch, Offset};

/// What the laws are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) epoch: Epoch,
    pub(super) start: Offset,
    pub(super) snapshot: Option<Offset>,
    pub(super) commit: Option<Offset>,
    pub(super) durable_end: Offset,
    pub(super) end: Offset,
    pub(super) alone: bool,
    /// The epoch that this node leads, with its first offset.
    pub(super) begun: Option<(Epoch, Offset)>,
}

/// The facts after the previous call.
#[derive(Debug, Default)]
pub(super) struct Laws {
    before: Option<Facts>,
}

impl Laws {
    /// Panics if a law is broken: that is our bug, and a restart is safer than going on.
    pub(super) fn check(&mut self, now: Facts) {
        match now.snapshot {
            Some(snapshot) => assert!(now.start <= snapshot, "{now:?}"),
            None => assert!(now.start == Offset::ZERO, "{now:?}"),
        }
        if let (Some(snapshot), Some(commit)) = (now.snapshot, now.commit) {
            assert!(snapshot <= commit, "{now:?}");
        }
        if let Some(commit) = now.commit {
            assert!(commit <= now.end, "{now:?}");
            if now.alone {
                assert!(commit <= now.durable_end, "{now:?}");
            }
        }
        assert!(now.start <= now.durable_end, "{now:?}");
        assert!(now.durable_end <= now.end, "{now:?}");
        if let Some(before) = self.before {
            assert!(now.epoch >= before.epoch, "{before:?} -> {now:?}");
            assert!(now.start >= before.start, "{before:?} -> {now:?}");
            assert!(now.commit >= before.commit, "{before:?} -> {now:?}");
            let anew = now.start > before.start && now.start == now.end;
            let cut = now.end < before.end && now.durable_end == now.end;
            assert!(
                anew || cut || now.durable_end >= before.durable_end,
                "{before:?} -> {now:?}"
            );
            assert!(
                anew || cut || now.end >= before.end,
                "{before:?} -> {now:?}"
            );
            let kept = before.commit.max(before.snapshot);
            assert!(
                kept.is_none_or(|kept| now.end >= kept),
                "{before:?} -> {now:?}"
            );
            if let (Some((old, first)), Some((new, start))) = (before.begun, now.begun)
                && old == new
            {
                assert_eq!(first, start, "{before:?} -> {now:?}");
            }
            if now.snapshot != before.snapshot {
                assert!(now.snapshot > before.snapshot, "{before:?} -> {now:?}");
                assert!(now.snapshot <= now.commit, "{before:?} -> {now:?}");
            }
        }
        self.before = Some(now);
    }
}
