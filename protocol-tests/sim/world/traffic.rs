//! Who talks to the node: the network, the observers, the client that proposes.

use kraftd::raft::{Input, Proposal, Request, Response};
use kraftd::types::{Epoch, Offset, Ticket};

use super::{Event, Phase, World};
use crate::disk::encode;
use crate::node::Pending;
use crate::observer::Answer;

impl World {
    /// Sends a request on its way; it may be lost.
    pub(super) fn send(&mut self, observer: Option<usize>, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let delay = self.config.network.draw(&mut self.dice.network);
        let vote = match &request {
            Request::Vote(vote) if !vote.pre_vote => Some(vote.candidate),
            _ => None,
        };
        if !self.config.message_lost.hits(&mut self.dice.network) {
            self.asked.insert(ticket, (observer, vote));
            self.at(delay, Event::Arrive(ticket, Box::new(request)));
        }
        ticket
    }

    pub(super) fn arrive(&mut self, ticket: Ticket, request: Request) {
        if self.node.is_none() || !self.asked.contains_key(&ticket) {
            self.meet("request to a dead process");
            return;
        }
        self.laws.answered.asked(ticket);
        self.give(Input::Request {
            ticket,
            listener: "CONTROLLER".into(),
            request,
        });
    }

    pub(super) fn ask(&mut self, observer: usize) {
        let (request, wait_ms) = self.observers[observer].request(&mut self.dice.observers);
        let ticket = self.send(Some(observer), request);
        self.observers[observer].waiting = Some(ticket);
        self.ask_after(observer, wait_ms + 1_000);
    }

    /// The observer's next question, unless an answer comes before.
    pub(super) fn ask_after(&mut self, observer: usize, after: u64) {
        self.asks[observer] += 1;
        self.at(after, Event::Ask(observer, self.asks[observer]));
    }

    pub(super) fn answer(&mut self, at: usize, ticket: Ticket, answer: Answer) {
        let observer = &mut self.observers[at];
        if observer.waiting != Some(ticket) {
            return;
        }
        observer.waiting = None;
        let commit_before = observer.commit;
        let end_before = observer.end();
        let change = observer.take(answer);
        self.trace.line(
            self.now,
            "observer",
            format_args!(
                "{at} has {}..{} commit={}",
                observer.base.offset,
                observer.end(),
                observer.commit
            ),
        );
        let committed = self.laws.commit.committed();
        self.laws
            .observers
            .changed(observer, commit_before, &change, committed);
        if change.sent_to_snapshot && end_before > Offset::ZERO {
            self.meet("observer behind the log's start");
        }
        if change.snapshot_gone {
            self.meet("snapshot gone while it was fetched");
        }
        if change.loaded.is_some() {
            self.meet("observer loaded a snapshot");
        }
        if change.truncated.is_some() {
            self.meet("observer cut its log");
        }
        let after = match change.news {
            true => 0,
            false => 1 + self.dice.observers.below(20),
        };
        self.ask_after(at, after);
    }

    pub(super) fn propose(&mut self) {
        if self.phase == Phase::Rest {
            return;
        }
        let after = self.config.propose_every.draw(&mut self.dice.workload);
        self.at(after, Event::Propose);
        let batches = 1 + self.dice.workload.below(2);
        let records_max = self.config.records_max;
        let mut values = Vec::new();
        for _ in 0..batches {
            let count = 1 + self.dice.workload.below(records_max);
            let batch: Vec<u64> = (0..count).map(|at| self.next_value + at).collect();
            self.next_value += count;
            values.push(batch);
        }
        let Some(node) = &mut self.node else {
            return;
        };
        let Some(epoch) = node.leading else {
            return;
        };
        let first = node.raft.log_end();
        let batches = encode(&values);
        let values: Vec<u64> = values.into_iter().flatten().collect();
        let end = first.plus(values.len() as i64);
        node.pending.push_back(Pending {
            epoch,
            first,
            values,
        });
        self.give(Input::Propose(Proposal {
            epoch,
            first,
            end,
            batches,
        }));
    }

    pub(super) fn told(&mut self, ticket: Ticket, epoch: Epoch) {
        self.laws.answered.answered(ticket);
        self.laws.votes.told(epoch, self.disk.durable_state());
    }

    pub(super) fn reply(&mut self, ticket: Ticket, response: Response) {
        let (epoch, answer) = match response {
            Response::Vote(vote) => {
                let epoch = vote.hint.epoch;
                let asked = self
                    .asked
                    .get(&ticket)
                    .and_then(|(_, candidate)| *candidate);
                if let Some(candidate) = asked.filter(|_| vote.granted) {
                    let durable = self.disk.durable_state();
                    self.laws.votes.granted(epoch, candidate, durable);
                    self.meet("vote granted to another");
                }
                (epoch, Answer::Other)
            }
            Response::BeginQuorumEpoch(told) | Response::EndQuorumEpoch(told) => {
                (told.hint.epoch, Answer::Other)
            }
            Response::UpdateVoter(told) => (told.hint.epoch, Answer::Other),
            Response::AddVoter(_) | Response::RemoveVoter(_) => (Epoch(0), Answer::Other),
            Response::Fetch(fetch) => (fetch.hint.epoch, Answer::Fetch(fetch, Vec::new())),
            Response::FetchSnapshot(fetch) => {
                (fetch.hint.epoch, Answer::Snapshot(fetch.error, fetch.id))
            }
            Response::DescribeQuorum(quorum) => (quorum.hint.epoch, Answer::Other),
        };
        self.told(ticket, epoch);
        self.carry(ticket, answer);
    }

    /// Brings an answer to who asked; it may be lost.
    pub(super) fn carry(&mut self, ticket: Ticket, answer: Answer) {
        let asked = self
            .asked
            .remove(&ticket)
            .and_then(|(observer, _)| observer);
        let delay = self.config.network.draw(&mut self.dice.network);
        let lost = self.config.message_lost.hits(&mut self.dice.network);
        if let Some(observer) = asked.filter(|_| !lost) {
            self.at(delay, Event::Answer(observer, ticket, Box::new(answer)));
        }
    }
}
