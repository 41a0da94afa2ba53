//! What reaches a node and what leaves it: questions with their answers, lies, proposals.

use kraftd::raft::{FetchedBatch, Input, PeerName, Proposal, Request, Response, Told};
use kraftd::types::{CallId, Epoch, Offset, ReplicaKey, Ticket};

use super::network::Question;
use super::{Event, Phase, World, versions};
use crate::codec::{Batch, Content};
use crate::liar;
use crate::node::{LISTENER, Pending};

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Whose, on which connection; `None` if nobody listens.
    pub by: Option<(usize, PeerName, u64, CallId)>,
    pub to: usize,
    /// The candidate of a vote.
    pub candidate: Option<ReplicaKey>,
}

impl World {
    pub(super) fn question(&mut self, question: Question) {
        let alive = self.is_life(question.to, question.life);
        if alive && !question.again && !self.may_serve(&question) {
            return;
        }
        let Question {
            from,
            name,
            number,
            call,
            ask,
            to,
            again,
            ..
        } = question;
        if !alive {
            self.meet("request to a dead process");
            if !again && self.hosts[to].powered {
                self.reset(from, name, number);
            }
            return;
        }
        let mut asked = Asked {
            by: (!again).then_some((from, name, number, call)),
            to,
            candidate: None,
        };
        match (versions(&ask), ask) {
            (Some(told), _) => self.answer(&asked, told),
            (None, kraftd::raft::Ask::Raft(request)) => {
                asked.candidate = candidate(&request);
                self.request(asked, request);
            }
            (None, kraftd::raft::Ask::Versions) => {}
        }
    }

    /// Gives a request to a node that is up.
    pub(super) fn request(&mut self, asked: Asked, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let to = asked.to;
        self.laws.answered.asked(ticket, to);
        self.asked.insert(ticket, asked);
        self.give(
            to,
            Input::Request {
                ticket,
                listener: LISTENER.into(),
                request,
            },
        );
        ticket
    }

    /// A request of somebody who does not listen.
    pub(super) fn stray(&mut self, to: usize, request: Request) {
        if self.hosts[to].is_up() {
            let candidate = candidate(&request);
            let by = None;
            self.request(Asked { by, to, candidate }, request);
        }
    }

    pub(super) fn lie(&mut self) {
        if self.phase != Phase::Storm {
            return;
        }
        let to = self.dice.liars.below(self.config.voters as u64) as usize;
        let state = self.hosts[to].disk.durable_state();
        let epoch = state.map_or(Epoch(0), |state| state.epoch);
        let end = self.laws.committed.end();
        let request = liar::lie(&mut self.dice.liars, epoch, end);
        let delay = self.delay();
        self.at(delay, Event::Stray(to, Box::new(request)));
        let after = self.config.lie_every.draw(&mut self.dice.liars);
        self.at(after, Event::Lie);
    }

    pub(super) fn propose(&mut self) {
        if self.phase == Phase::Rest {
            return;
        }
        let after = self.config.propose_every.draw(&mut self.dice.workload);
        self.at(after, Event::Propose);
        let leading = |at: &usize| {
            let host = &self.hosts[*at];
            let leads = host
                .node
                .as_ref()
                .is_some_and(|node| node.leading.is_some());
            leads && host.paused.is_none()
        };
        let leading: Vec<usize> = (0..self.hosts.len()).filter(leading).collect();
        let at = self.dice.workload.below(leading.len() as u64) as usize;
        if let Some(at) = leading.get(at).copied() {
            let batches = 1 + self.dice.workload.below(2);
            self.propose_to(at, batches);
        }
    }

    /// A client of this leader writes some values.
    pub(super) fn propose_to(&mut self, at: usize, batches: u64) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(epoch) = node.leading else {
            return;
        };
        let first = node.raft.log_end();
        let (mut end, mut bytes, mut values) = (first, Vec::new(), Vec::new());
        for _ in 0..batches {
            let count = 1 + self.dice.workload.below(self.config.records_max);
            let some: Vec<u64> = (0..count).map(|at| self.next_value + at).collect();
            self.next_value += count;
            let batch = Batch::new(end, epoch, Content::Values(some.clone()));
            end = batch.end;
            bytes.extend_from_slice(&batch.bytes);
            values.extend(some);
        }
        node.pending.push_back(Pending {
            epoch,
            first,
            values,
        });
        let proposal = Proposal {
            epoch,
            first,
            end,
            batches: bytes.into(),
        };
        self.give(at, Input::Propose(proposal));
    }

    /// A node answers, and thereby tells its epoch.
    pub(super) fn told(&mut self, at: usize, ticket: Ticket, epoch: Epoch) -> Option<Asked> {
        self.laws.answered.answered(ticket, at);
        let disk = self.hosts[at].disk.durable_state();
        self.laws.votes.told(at, epoch, disk);
        self.asked.remove(&ticket)
    }

    pub(super) fn reply(&mut self, at: usize, ticket: Ticket, response: Response) {
        let epoch = match &response {
            Response::Vote(it) => it.hint.epoch,
            Response::BeginQuorumEpoch(it) | Response::EndQuorumEpoch(it) => it.hint.epoch,
            Response::UpdateVoter(it) => {
                if it.error == kraftd::types::ErrorCode::None {
                    self.meet("voter updated");
                }
                it.hint.epoch
            }
            Response::AddVoter(it) => {
                self.changed("add", it);
                Epoch(0)
            }
            Response::RemoveVoter(it) => {
                self.changed("remove", it);
                Epoch(0)
            }
            Response::Fetch(it) => it.hint.epoch,
            Response::FetchSnapshot(it) => it.hint.epoch,
            Response::DescribeQuorum(it) => it.hint.epoch,
        };
        let Some(asked) = self.told(at, ticket, epoch) else {
            return;
        };
        if let (Response::Vote(vote), Some(candidate)) = (&response, asked.candidate)
            && vote.granted
        {
            let disk = self.hosts[at].disk.durable_state();
            self.laws.votes.voted(at, epoch, candidate, disk);
            self.meet("vote granted");
        }
        self.answer(&asked, Told::Response(response));
    }

    /// Batches as an answer brings them: the end of it may be damaged.
    pub(super) fn fetched(&mut self, batches: &[std::sync::Arc<Batch>]) -> Vec<FetchedBatch> {
        let mut sound = batches.len() as u64;
        if self.config.network.damaged.hits(&mut self.dice.network) {
            self.meet("batches damaged on their way");
            sound = self.dice.network.below(sound + 1);
        }
        let some = batches.iter().take(sound as usize);
        some.map(|batch| FetchedBatch {
            first: batch.first,
            end: batch.end,
            epoch: batch.epoch,
            control: batch.control(),
            bytes: batch.bytes.clone(),
        })
        .collect()
    }

    pub(super) fn acknowledge(&mut self, at: usize, offset: Offset) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        while let Some(pending) = node.pending.front() {
            if pending.first.plus(pending.values.len() as i64) > offset {
                break;
            }
            let pending = node.pending.pop_front().expect("looked at above");
            self.laws.replies.proposed(pending.epoch, node.leading);
            for (at, value) in (pending.first.0..).map(Offset).zip(pending.values) {
                self.laws.replies.told(at, node.raft.high_watermark());
                self.laws
                    .acknowledged
                    .acknowledge(&self.laws.committed, at, value);
            }
        }
    }
}

fn candidate(request: &Request) -> Option<ReplicaKey> {
    match request {
        Request::Vote(vote) if !vote.pre_vote => Some(vote.candidate),
        _ => None,
    }
}
