//! A leader that is in doubt: what may give it time, and what may not.

use super::follower_tests::{Node, hint, id, records};
use super::tests::request;
use super::*;
use crate::types::{CallId, Epoch, Instant, NodeId};

impl Node {
    /// The pre-votes under way: who is asked, under which call.
    fn pre_votes(&mut self) -> Vec<(CallId, NodeId)> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        sent.filter_map(|(call, to, ask)| match (to.name, ask) {
            (PeerName::Node(id), Ask::Raft(Request::Vote(vote))) if vote.pre_vote => {
                Some((call, id))
            }
            _ => None,
        })
        .collect()
    }

    fn vote(&mut self, call: CallId, granted: bool) {
        let response = VoteResponse {
            error: RaftError::None,
            hint: hint(),
            granted,
        };
        self.answer(call, Told::Response(Response::Vote(response)));
    }

    /// Node 2, the leader, says that it leads no more, and that this node should.
    fn resigned(&mut self) {
        let end = EndQuorumEpochRequest {
            cluster_id: None,
            leader_id: NodeId(2),
            epoch: Epoch(5),
            preferred: vec![tests::key(1)],
        };
        self.rig.drive(request(9, Request::EndQuorumEpoch(end)));
    }

    fn role(&self) -> &'static str {
        self.rig.raft.role_name()
    }
}

/// A follower that lost the connection to node 2 and asks at once: calls to 2 and to 3.
fn hasty() -> (Node, CallId, CallId) {
    let mut node = Node::start(30, &[(1, 0)]);
    node.fetched(records(30, &[]));
    node.rest.clear();
    node.input(Input::PeerLost { peer: NodeId(2) });
    let asked = node.pre_votes();
    let call = |id| asked.iter().find(|(_, to)| *to == NodeId(id)).unwrap().0;
    (node, call(2), call(3))
}

#[test]
fn a_leader_that_refuses_a_hasty_pre_vote_lives() {
    let (mut node, to_leader, _) = hasty();
    node.vote(to_leader, false);
    assert_eq!(node.role(), "follower");
    assert_eq!(node.deadline(), Instant(2_000));
}

/// Who leads grants no pre-vote: the process was started anew, and waits to be succeeded. It was
/// taken for a living leader, and its followers waited for their fetch timers.
#[test]
fn a_leader_that_was_started_anew_within_a_blink_is_succeeded_at_once() {
    let (mut node, to_leader, _) = hasty();
    node.vote(to_leader, true);
    assert_eq!(node.role(), "candidate");
    let epochs: Vec<Epoch> = node
        .disk
        .iter()
        .filter_map(|(_, write)| match write {
            Write::QuorumState(state) => Some(state.epoch),
            _ => None,
        })
        .collect();
    assert_eq!(epochs, [Epoch(6)]);
}

#[test]
fn a_leader_that_resigns_during_a_hasty_election_need_not_be_found_dead() {
    let (mut node, _, to_other) = hasty();
    node.vote(to_other, true);
    assert_eq!(node.role(), "prospective");
    node.resigned();
    assert_eq!(node.role(), "candidate");
}

/// Two connections have no order: what the leader gave before it resigned may come after that.
#[test]
fn an_answer_from_before_a_resignation_gives_the_leader_no_more_time() {
    let mut node = Node::start(30, &[(1, 0)]);
    node.rig.now = 100;
    node.resigned();
    assert_eq!(node.deadline(), Instant(100));
    node.fetched(records(35, &[(30, 35, 5)]));
    assert_eq!(node.rig.raft.log_end().0, 35, "what it gave counts");
    assert_eq!(node.deadline(), Instant(100));
    node.sync();
    node.input(Input::WakeUp);
    assert_eq!(node.role(), "prospective");
}

/// A voter is found to know no pre-vote only after the connection to the leader was lost: the next
/// hasty try would let its answer, which comes at once, raise the epoch.
#[test]
fn a_doubt_ends_when_a_voter_is_found_that_knows_no_pre_vote() {
    let (mut node, ..) = hasty();
    node.rig.now = 200;
    node.input(Input::WakeUp);
    assert_eq!(node.role(), "follower", "nobody answered");
    let again = node.rig.raft.next_wakeup();
    assert!(again < Instant(2_000), "{again:?}");
    node.input(Input::PeerFound {
        peer: NodeId(3),
        pre_vote: false,
    });
    node.sent.clear();
    node.rig.now = again.0;
    node.input(Input::WakeUp);
    assert_eq!(node.role(), "follower");
    assert!(node.pre_votes().is_empty());
}

/// Nothing may be started with it: see the check of `quorum-state` against the log.
#[test]
fn a_snapshot_of_an_epoch_that_has_not_begun_is_not_fetched() {
    let mut node = Node::start(30, &[(1, 0)]);
    let (call, ..) = node.fetch();
    let offer = follower_tests::Answer {
        snapshot: Some(id(500, 6)),
        ..Default::default()
    };
    node.answer(call, offer.told());
    assert_eq!(node.refused(), 1);
}
