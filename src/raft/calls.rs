//! Questions to other nodes: one at a time for each of them, given up after a while, and failures
//! kept apart by a pause.

use std::collections::BTreeMap;

use crate::types::{CallId, Instant, OffsetAndEpoch};

use super::output::PeerName;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    PreVote,
    Vote,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    Fetch,
    /// The piece of this snapshot that begins at this byte.
    FetchSnapshot(OffsetAndEpoch, u64),
    UpdateVoter,
    /// Of an observer that makes itself a voter.
    AddVoter,
    /// Of an observer that comes back in another directory.
    RemoveVoter,
    /// What a node that is to become a voter supports.
    Versions,
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) peer: PeerName,
    pub(super) kind: Kind,
}

/// How it stands with one other node. Absent: free.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// Waits for an answer until then.
    Busy(CallId, Instant),
    /// Failed; left alone until then.
    Resting(Instant),
}

/// The longest pause after a failure, milliseconds, unless the first is longer.
const PAUSE_MS_MAX: u64 = 500;

/// All questions under way.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    lines: BTreeMap<PeerName, Line>,
    open: BTreeMap<CallId, Call>,
    /// Questions in a row that nobody answered.
    failures: BTreeMap<PeerName, u32>,
}

impl Calls {
    /// Whether `peer` may be asked something.
    pub(super) fn is_free(&self, peer: PeerName, now: Instant) -> bool {
        match self.lines.get(&peer) {
            None => true,
            Some(Line::Busy(..)) => false,
            Some(Line::Resting(until)) => *until <= now,
        }
    }

    /// Whether `peer` failed a short while ago.
    pub(super) fn is_resting(&self, peer: PeerName, now: Instant) -> bool {
        matches!(self.lines.get(&peer), Some(Line::Resting(until)) if *until > now)
    }

    /// Whether a question of this kind is under way, to whomever.
    pub(super) fn any(&self, wanted: impl Fn(Kind) -> bool) -> bool {
        self.open.values().any(|call| wanted(call.kind))
    }

    /// Notes a question to `call.peer`, which is free; it is given up at `deadline`.
    pub(super) fn begin(&mut self, call: Call, deadline: Instant) -> CallId {
        self.last += 1;
        let id = CallId(self.last);
        self.lines.insert(call.peer, Line::Busy(id, deadline));
        self.open.insert(id, call);
        id
    }

    /// The answer came. `None` if nobody waits for it any more.
    pub(super) fn end(&mut self, id: CallId) -> Option<Call> {
        let call = self.open.remove(&id)?;
        if matches!(self.lines.get(&call.peer), Some(Line::Busy(busy, _)) if *busy == id) {
            self.lines.remove(&call.peer);
        }
        Some(call)
    }

    /// A question to `peer` was answered, whatever the answer was.
    pub(super) fn answered(&mut self, peer: PeerName) {
        self.failures.remove(&peer);
    }

    /// A question to `peer` was not answered. Gives the pause that is due, in milliseconds: each
    /// twice as long as the one before, for every question may cost a look-up and a connection.
    pub(super) fn failed(&mut self, peer: PeerName, first_ms: u64) -> u64 {
        let before = self.failures.entry(peer).or_default();
        let pause = first_ms << (*before).min(10);
        *before = before.saturating_add(1);
        pause.min(PAUSE_MS_MAX.max(first_ms))
    }

    /// Leaves `peer` alone until then.
    pub(super) fn rest(&mut self, peer: PeerName, until: Instant) {
        self.lines.insert(peer, Line::Resting(until));
    }

    /// Ends the pause of `peer`, if it has one.
    pub(super) fn wake_up(&mut self, peer: PeerName) {
        if matches!(self.lines.get(&peer), Some(Line::Resting(_))) {
            self.lines.remove(&peer);
        }
    }

    /// The question that was asked last.
    pub(super) fn last(&self) -> CallId {
        CallId(self.last)
    }

    /// Takes the questions whose time is over.
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<Call> {
        let expired: Vec<CallId> = self
            .lines
            .values()
            .filter_map(|line| match line {
                Line::Busy(id, deadline) if *deadline <= now => Some(*id),
                Line::Busy(..) | Line::Resting(_) => None,
            })
            .collect();
        expired.into_iter().filter_map(|id| self.end(id)).collect()
    }

    /// Leader or epoch changed: what was asked before is of no interest, nor who failed then.
    pub(super) fn forget(&mut self) {
        self.lines.clear();
        self.open.clear();
        self.failures.clear();
    }

    /// Forgets pauses that are over.
    pub(super) fn wake(&mut self, now: Instant) {
        self.lines
            .retain(|_, line| !matches!(line, Line::Resting(until) if *until <= now));
    }

    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        self.lines
            .values()
            .map(|line| match line {
                Line::Busy(_, deadline) => *deadline,
                Line::Resting(until) => *until,
            })
            .min()
            .unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NodeId;

    const PEER: PeerName = PeerName::Node(NodeId(2));

    fn call(kind: Kind) -> Call {
        Call { peer: PEER, kind }
    }

    #[test]
    fn a_peer_is_asked_one_thing_at_a_time_and_left_alone_after_a_failure() {
        let mut calls = Calls::default();
        let id = calls.begin(call(Kind::Vote), Instant(50));
        assert!(!calls.is_free(PEER, Instant(10)));
        assert_eq!(calls.deadline(), Instant(50));
        assert_eq!(calls.end(id).map(|call| call.kind), Some(Kind::Vote));
        assert!(calls.end(id).is_none());
        assert!(calls.is_free(PEER, Instant(10)));
        calls.rest(PEER, Instant(30));
        assert!(!calls.is_free(PEER, Instant(29)));
        assert!(calls.is_free(PEER, Instant(30)));
        calls.wake(Instant(30));
        assert_eq!(calls.deadline(), Instant::NEVER);
    }

    /// A voter that is down for hours must not be dialled fifty times a second.
    #[test]
    fn pauses_grow_with_the_failures_until_an_answer_or_another_role() {
        let mut calls = Calls::default();
        for pause in [20, 40, 80, 160, 320, 500, 500] {
            assert_eq!(calls.failed(PEER, 20), pause);
        }
        calls.answered(PEER);
        assert_eq!(calls.failed(PEER, 20), 20);
        assert_eq!(calls.failed(PEER, 20), 40);
        calls.forget();
        assert_eq!(calls.failed(PEER, 20), 20);
        assert_eq!(calls.failed(PEER, 2_000), 2_000);
    }

    #[test]
    fn an_answer_that_comes_after_its_time_is_nobodys() {
        let mut calls = Calls::default();
        let id = calls.begin(call(Kind::Fetch), Instant(50));
        assert!(calls.take_expired(Instant(49)).is_empty());
        assert_eq!(calls.take_expired(Instant(50)).len(), 1);
        assert!(calls.end(id).is_none());
    }
}
