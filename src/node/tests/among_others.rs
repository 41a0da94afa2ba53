//! A node that leads while another voter has to follow before anything is committed.

use super::*;
use crate::raft::{CallFault, LeaderHint, RaftError, Response, VoteResponse};

const OTHER: i32 = 9;

impl Bench {
    /// Voters 1 and 9; this is node 1.
    fn pair() -> Self {
        let rules = RetentionRules::default();
        Self::build(Vec::new(), None, rules, &[NodeId(1), NodeId(OTHER)])
    }

    /// Node 9 grants every vote until this node leads. What else is asked of it is not answered.
    fn win(&mut self) {
        while !self.node.raft().is_leader() {
            assert!(self.ms < 60_000, "it never leads");
            self.settle();
            for (call, ask) in std::mem::take(&mut self.sends) {
                let outcome = match ask {
                    Ask::Raft(Raft0::Vote(vote)) => {
                        Ok(PeerAnswer::Raft(Response::Vote(VoteResponse {
                            error: RaftError::None,
                            hint: LeaderHint {
                                epoch: vote.epoch,
                                ..LeaderHint::default()
                            },
                            granted: true,
                        })))
                    }
                    _ => Err(CallFault::Silent),
                };
                self.step(Event::Answered { call, outcome });
            }
            if self.pending.is_empty() && self.sends.is_empty() {
                self.ms = self.node.next_wakeup().0.max(self.ms + 1);
                self.step(Event::WakeUp);
            }
        }
        self.settle();
    }

    /// Node 9 has everything up to `from`, durably.
    fn has(&mut self, from: Offset) {
        self.tickets += 1;
        let raft = self.node.raft();
        let fetch = FetchRequest {
            cluster_id: None,
            replica: ReplicaKey {
                id: NodeId(OTHER),
                directory: Uuid::from_u128(99),
            },
            current_leader_epoch: raft.epoch().0,
            fetch_offset: from.0,
            last_fetched_epoch: match from {
                Offset::ZERO => 0,
                from => raft.epoch_of(from.prev()).0,
            },
            high_watermark: from.0,
            max_wait_ms: 0,
            max_bytes: 1 << 20,
        };
        let request = Request::Raft {
            listener: Arc::from("CONTROLLER"),
            request: Raft0::Fetch(fetch),
        };
        self.step(Event::Request {
            ticket: Ticket(self.tickets),
            arrived: Instant(self.ms),
            request: Box::new(request),
        });
    }

    /// Both voters have everything, again and again, until nothing is left to commit.
    fn follow_all(&mut self) {
        for _ in 0..20 {
            self.settle();
            self.has(self.node.raft().log_end());
        }
    }
}

fn leading() -> Bench {
    let mut bench = Bench::pair();
    bench.win();
    bench.follow_all();
    assert!(bench.published.active);
    bench
}

#[test]
fn what_earlier_leaders_left_is_replayed_once_it_is_committed_and_before_the_first_request() {
    let mut old = Bench::active();
    for broker in [2, 3] {
        old.register(broker, 0xb0 + broker as u128);
        old.settle();
    }
    let voters = [NodeId(1), NodeId(OTHER)];
    let rules = RetentionRules::default();
    let mut bench = Bench::build(old.log, None, rules, &voters);
    let left = bench.node.raft().log_end();
    bench.win();
    assert!(bench.published.image.brokers().is_empty());
    let early = bench.heartbeat(2, 1, 0, false);
    let code = bench.reply(early).as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::NotController);

    // The other voter catches up, but not with this leader's own first record.
    bench.has(left);
    bench.settle();
    assert!(!bench.published.active && bench.published.end == Offset::ZERO);
    bench.has(bench.node.raft().log_end());
    bench.settle();
    assert!(bench.published.active);
    assert_eq!(bench.published.image.brokers().len(), 2);
    assert_eq!(bench.halted, None);
}

#[test]
fn a_reply_waits_for_the_other_voter_and_not_only_for_the_own_disk() {
    let mut bench = leading();
    let ticket = bench.register(2, 0xb2);
    bench.settle();
    assert!(!bench.replies.contains_key(&ticket));
    assert!(bench.published.image.brokers().is_empty());
    bench.has(bench.node.raft().log_end());
    assert!(bench.reply(ticket).is_ok());
    assert_eq!(bench.published.image.brokers().len(), 1);
}

/// The image never runs away from what is committed by more than is allowed.
#[test]
fn a_leader_whose_followers_are_slow_refuses_new_work_and_takes_it_again_when_they_come() {
    let mut bench = leading();
    let mut refused = None;
    for broker in 0..1_100 {
        let ticket = bench.register(100 + broker, 0xc000 + broker as u128);
        bench.settle();
        if let Some(Answer::Controller(Err(error))) = bench.replies.get(&ticket) {
            refused = Some((broker, error.code));
            break;
        }
    }
    let (count, code) = refused.expect("it has a limit");
    assert!((900..=1_000).contains(&count), "{count}");
    assert_eq!(code, ErrorCode::RequestTimedOut);
    assert!(bench.published.image.brokers().is_empty());
    bench.has(bench.node.raft().log_end());
    assert_eq!(bench.published.image.brokers().len(), count as usize);
    let ticket = bench.register(7, 0xb7);
    bench.follow_all();
    assert!(bench.reply(ticket).is_ok());
}

#[test]
fn a_leader_that_nobody_follows_lets_go_and_tells_those_who_wait() {
    let mut bench = leading();
    let end = bench.published.end;
    let ticket = bench.register(2, 0xb2);
    bench.settle();
    while bench.node.raft().is_leader() {
        assert!(bench.ms < 60_000, "it leads for ever");
        bench.ms = bench.node.next_wakeup().0.max(bench.ms + 1);
        bench.step(Event::WakeUp);
        bench.settle();
    }
    let code = bench.reply(ticket).as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::NotController);
    assert!(!bench.published.active);
    assert_eq!(bench.published.end, end);
    assert!(bench.node.working.image.brokers().is_empty());
    assert_eq!(bench.halted, None);
}
