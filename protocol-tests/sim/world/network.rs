//! Connections: one for each name by which a node calls another. What is sent on one arrives in
//! order or not at all; after a loss nothing more is heard on it until it is given up.

use std::collections::VecDeque;

use kraftd::raft::{Ask, CallFault, Input, Peer, PeerName, Request, Told};
use kraftd::types::CallId;

use super::{Event, World};
use crate::node::resolve;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    /// To the process of this life.
    Open(u64),
    /// Nothing comes on it any more.
    Dead,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    number: u64,
    /// The node that the name leads to.
    pub to: Option<usize>,
    state: State,
    /// What is sent once it is open.
    waits: Vec<(CallId, Ask)>,
    /// What was asked on it and is not answered.
    calls: Vec<CallId>,
    /// What the other side works on: one after the other.
    serving: Option<CallId>,
    queue: VecDeque<Question>,
}

/// Questions that wait on one connection; one more is not asked at all.
const WAITING_MAX: usize = 8;

/// A question on its way.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub from: usize,
    pub name: PeerName,
    pub number: u64,
    pub call: CallId,
    pub ask: Ask,
    pub to: usize,
    pub life: u64,
    /// It was there before.
    pub again: bool,
}

impl World {
    pub(super) fn delay(&mut self) -> u64 {
        let network = self.config.network;
        let dice = &mut self.dice.network;
        let late = match network.late.hits(dice) {
            true => network.late_ms.draw(dice),
            false => 0,
        };
        network.delay.draw(dice) + late
    }

    /// Whether a message from `from` to `to` is lost.
    fn is_lost(&mut self, from: usize, to: usize) -> bool {
        self.cuts[from][to] || self.config.network.lost.hits(&mut self.dice.network)
    }

    fn connect(&mut self, from: usize, peer: &Peer, waits: Vec<(CallId, Ask)>) {
        self.connections += 1;
        let to = resolve(&peer.host).filter(|to| *to < self.hosts.len());
        let link = Link {
            number: self.connections,
            to,
            state: State::Connecting,
            calls: waits.iter().map(|(call, _)| *call).collect(),
            waits,
            serving: None,
            queue: VecDeque::new(),
        };
        let number = link.number;
        self.links.insert((from, peer.name), link);
        let takes = self.delay() + 1;
        self.at(takes, Event::Connect(from, peer.name, number));
    }

    /// A node asks another.
    pub(super) fn send(&mut self, from: usize, call: CallId, peer: &Peer, ask: Ask) {
        let to = resolve(&peer.host);
        let mut open = false;
        match self.links.get_mut(&(from, peer.name)) {
            Some(link) if link.calls.len() >= WAITING_MAX => {
                let (number, outcome) = (link.number, Box::new(Err(CallFault::Silent)));
                link.calls.push(call);
                return self.at(0, Event::Answer(from, peer.name, number, call, outcome));
            }
            Some(link) if link.to == to => {
                link.calls.push(call);
                match link.state {
                    State::Connecting => link.waits.push((call, ask.clone())),
                    State::Open(_) => open = true,
                    State::Dead => {}
                }
            }
            _ => self.connect(from, peer, vec![(call, ask.clone())]),
        }
        if let Some(link) = self.links.get(&(from, peer.name)) {
            let number = link.number;
            let late = self.hosts[from].setup.timers.request_ms;
            self.at(late, Event::Late(from, peer.name, number, call));
        }
        if open {
            self.transmit(from, peer.name, call, ask);
        }
    }

    /// A question waited for too long: nothing will come on this connection any more.
    pub(super) fn late(&mut self, from: usize, name: PeerName, number: u64, call: CallId) {
        let waits = self.link(from, name, number);
        if waits.is_some_and(|link| link.calls.contains(&call)) {
            self.meet("answer not in time");
            self.hang_up(from, name, Some(CallFault::Silent));
        }
    }

    fn link(&mut self, from: usize, name: PeerName, number: u64) -> Option<&mut Link> {
        let link = self.links.get_mut(&(from, name));
        link.filter(|link| link.number == number)
    }

    pub(super) fn connected(&mut self, from: usize, name: PeerName, number: u64) {
        let Some(link) = self.link(from, name, number) else {
            return;
        };
        let Some(to) = link.to else {
            self.meet("name not resolved");
            return self.hang_up(from, name, Some(CallFault::Silent));
        };
        let heard = self.hosts[to].powered && !self.is_lost(from, to) && !self.is_lost(to, from);
        if !heard {
            if let Some(link) = self.link(from, name, number) {
                link.state = State::Dead;
            }
            self.retry_later(from, name, 1_000);
            return;
        }
        let Some(life) = self.hosts[to].node.as_ref().map(|node| node.life) else {
            self.meet("connection refused");
            return self.closed(from, name, number);
        };
        self.hosts[from].backoff.remove(&name);
        let waits = self.link(from, name, number).map(|link| {
            link.state = State::Open(life);
            std::mem::take(&mut link.waits)
        });
        if let PeerName::Node(peer) = name {
            let pre_vote = self.hosts[to].setup.pre_vote;
            self.give(from, Input::PeerFound { peer, pre_vote });
        }
        // What the core does about it may have closed the connection again.
        for (call, ask) in waits.into_iter().flatten() {
            if self.link(from, name, number).is_some() {
                self.transmit(from, name, call, ask);
            }
        }
    }

    fn transmit(&mut self, from: usize, name: PeerName, call: CallId, ask: Ask) {
        let Some(link) = self.links.get(&(from, name)) else {
            return;
        };
        let (State::Open(life), Some(to)) = (link.state, link.to) else {
            return;
        };
        let number = link.number;
        let pre_vote = matches!(&ask, Ask::Raft(Request::Vote(vote)) if vote.pre_vote);
        if pre_vote && !self.hosts[to].setup.pre_vote {
            self.meet("pre-vote not supported");
            let outcome = Box::new(Err(CallFault::Unsupported));
            return self.at(0, Event::Answer(from, name, number, call, outcome));
        }
        if self.is_lost(from, to) || !self.hosts[to].powered {
            self.meet("request lost");
            self.fall_silent(from, name, number);
            return;
        }
        let question = Question {
            from,
            name,
            number,
            call,
            ask,
            to,
            life,
            again: false,
        };
        if self.config.network.twice.hits(&mut self.dice.network) {
            self.meet("request twice");
            let again = Box::new(Question {
                again: true,
                ..question.clone()
            });
            let late = self.config.network.late_ms.draw(&mut self.dice.network);
            self.at(late, Event::Question(again));
        }
        let delay = self.delay();
        self.at(delay, Event::Question(Box::new(question)));
    }

    /// Nothing more is heard on this connection.
    pub(super) fn fall_silent(&mut self, from: usize, name: PeerName, number: u64) {
        if let Some(link) = self.link(from, name, number) {
            link.state = State::Dead;
        }
    }

    /// The other side says that there is no such connection.
    pub(super) fn reset(&mut self, from: usize, name: PeerName, number: u64) {
        let to = self.link(from, name, number).and_then(|link| link.to);
        let Some(to) = to else { return };
        if self.is_lost(to, from) {
            return self.fall_silent(from, name, number);
        }
        let delay = self.delay();
        self.at(delay, Event::Closed(from, name, number));
    }

    /// Whether the other side may work on a question now; else it waits there.
    pub(super) fn may_serve(&mut self, question: &Question) -> bool {
        let Question {
            from, name, number, ..
        } = *question;
        let Some(link) = self.link(from, name, number) else {
            return true;
        };
        if link.serving.is_some() {
            link.queue.push_back(question.clone());
            return false;
        }
        link.serving = Some(question.call);
        true
    }

    /// An answer leaves a node.
    pub(super) fn answer(&mut self, question: &super::traffic::Asked, told: Told) {
        let Some((from, name, number, call)) = question.by else {
            return;
        };
        if let Some(link) = self.link(from, name, number) {
            link.serving = None;
            if let Some(next) = link.queue.pop_front() {
                self.at(0, Event::Question(Box::new(next)));
            }
        }
        if self.is_lost(question.to, from) {
            self.meet("answer lost");
            return self.fall_silent(from, name, number);
        }
        let delay = self.delay();
        let outcome = Box::new(Ok(told));
        self.at(delay, Event::Answer(from, name, number, call, outcome));
    }

    pub(super) fn answered(
        &mut self,
        from: usize,
        name: PeerName,
        number: u64,
        call: CallId,
        outcome: Result<Told, CallFault>,
    ) {
        let Some(link) = self.link(from, name, number) else {
            return;
        };
        if !link.calls.contains(&call) || link.state == State::Dead {
            return;
        }
        link.calls.retain(|other| *other != call);
        self.give(from, Input::Answered { call, outcome });
    }

    /// A connection was closed by the other side, or refused.
    pub(super) fn closed(&mut self, from: usize, name: PeerName, number: u64) {
        let Some(link) = self.link(from, name, number) else {
            return;
        };
        let calls = std::mem::take(&mut link.calls);
        self.links.remove(&(from, name));
        let backoff = self.hosts[from].backoff.entry(name).or_insert(25);
        *backoff = (*backoff * 2).min(500);
        let backoff = *backoff;
        self.retry_later(from, name, backoff);
        for call in calls {
            let outcome = Err(CallFault::Closed);
            self.give(from, Input::Answered { call, outcome });
        }
        if let PeerName::Node(peer) = name {
            self.give(from, Input::PeerLost { peer });
        }
    }

    /// The connection is given up. Without a fault nobody waits for what was asked on it.
    pub(super) fn hang_up(&mut self, from: usize, name: PeerName, fault: Option<CallFault>) {
        let link = self.links.remove(&(from, name));
        self.retry_later(from, name, 50);
        for call in link.into_iter().flat_map(|link| link.calls) {
            if let Some(fault) = fault {
                let outcome = Err(fault);
                self.give(from, Input::Answered { call, outcome });
            }
        }
    }

    pub(super) fn keep_open(&mut self, from: usize, peers: Vec<Peer>) {
        let wanted = |name: &PeerName| peers.iter().any(|peer| peer.name == *name);
        self.links
            .retain(|(of, name), link| *of != from || !link.calls.is_empty() || wanted(name));
        for peer in &peers {
            if !self.links.contains_key(&(from, peer.name)) {
                self.connect(from, peer, Vec::new());
            }
        }
        self.hosts[from].keep = peers;
    }

    fn retry_later(&mut self, from: usize, name: PeerName, after: u64) {
        if self.hosts[from].keep.iter().any(|peer| peer.name == name) {
            self.at(after, Event::Retry(from, name));
        }
    }

    /// A connection that is wanted, and that nobody waits for, is tried again.
    pub(super) fn retry(&mut self, from: usize, name: PeerName) {
        let host = &self.hosts[from];
        let peer = host.keep.iter().find(|peer| peer.name == name).cloned();
        let link = self.links.get(&(from, name));
        let free = link.is_none_or(|link| link.state == State::Dead && link.calls.is_empty());
        if let Some(peer) = peer.filter(|_| host.is_up() && free) {
            self.connect(from, &peer, Vec::new());
        }
    }

    /// A process is gone, and its connections with it. A machine without power tells nobody.
    pub(super) fn disconnect(&mut self, at: usize) {
        self.links.retain(|(from, _), _| *from != at);
        self.hosts[at].keep.clear();
        self.hosts[at].backoff.clear();
        let powered = self.hosts[at].powered;
        let to_it: Vec<(usize, PeerName, u64)> = self
            .links
            .iter()
            .filter(|(_, link)| link.to == Some(at) && matches!(link.state, State::Open(_)))
            .map(|((from, name), link)| (*from, *name, link.number))
            .collect();
        for (from, name, number) in to_it {
            match powered {
                true => self.reset(from, name, number),
                false => self.fall_silent(from, name, number),
            }
        }
    }

    /// The open connections of, or to, nodes that are wanted.
    pub(super) fn open_links(&self, wanted: impl Fn(usize, usize) -> bool) -> Vec<OpenLink> {
        let open = self.links.iter().filter_map(|((from, name), link)| {
            let to = link.to?;
            let is = matches!(link.state, State::Open(_)) && wanted(*from, to);
            is.then_some((*from, *name, link.number))
        });
        open.collect()
    }
}

/// Who has it open, under which name, and its number.
pub(super) type OpenLink = (usize, PeerName, u64);
