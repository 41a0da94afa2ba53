//! The core thread: one thread runs [`Node`], and everybody else talks to it through a channel.
//!
//! Requests in the channel are bounded by permits (`queued.max.requests`): without one a request is
//! refused before it reaches the channel. The core gives the permit back when it takes the request
//! out: replicas that wait for records must not keep others from being heard. What waits in the
//! core is bounded by the server, which reads no more from a connection that has too many requests
//! open. Completions of the disk need no permit; there are never more of them than commands that
//! the core gave.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::clock::Clock;
use super::leaderless::Watch;
use super::snapshot::Loader;
use crate::node::{Answer, Effect, Event, Node, Published, Request};
use crate::server::{self, Peers, core::Busy};
use crate::storage::files::Disk;
use crate::types::{Instant, Offset, Ticket};

/// What the core thread is told.
pub(super) enum Message {
    Request {
        ticket: Ticket,
        arrived: Instant,
        request: Box<Request>,
        reply: oneshot::Sender<Answer>,
        permit: OwnedSemaphorePermit,
    },
    Event(Event),
}

/// How the rest of the process reaches the core.
#[derive(Clone)]
pub(super) struct CoreClient {
    sender: Sender<Message>,
    permits: Arc<Semaphore>,
    tickets: Arc<AtomicU64>,
    published: Arc<ArcSwap<Published>>,
    clock: Clock,
}

impl CoreClient {
    pub(super) fn new(sender: Sender<Message>, requests_max: usize, clock: Clock) -> Self {
        Self {
            sender,
            permits: Arc::new(Semaphore::new(requests_max)),
            tickets: Arc::new(AtomicU64::new(1)),
            published: Arc::new(ArcSwap::from_pointee(Published::nothing())),
            clock,
        }
    }

    pub(super) const fn cell(&self) -> &Arc<ArcSwap<Published>> {
        &self.published
    }
}

impl server::core::Core for CoreClient {
    fn submit(&self, request: Box<Request>) -> Result<oneshot::Receiver<Answer>, Busy> {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Err(Busy(request));
        };
        let (reply, receiver) = oneshot::channel();
        let message = Message::Request {
            ticket: Ticket(self.tickets.fetch_add(1, Ordering::Relaxed)),
            arrived: self.clock.now().instant,
            request,
            reply,
            permit,
        };
        // When the core has ended, the message and with it `reply` are dropped: the receiver fails.
        let _ = self.sender.send(message);
        Ok(receiver)
    }

    fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }
}

/// Why the core thread ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As asked.
    Stopped,
    /// Going on could do harm.
    Halted {
        /// Why.
        reason: String,
        /// The committed record that is to blame.
        record: Option<Offset>,
    },
}

/// Messages handled before the clock is looked at again.
const MESSAGES_IN_A_ROW_MAX: usize = 64;

/// Runs the node until it stops.
pub(super) struct Core {
    pub(super) node: Node,
    pub(super) messages: Receiver<Message>,
    pub(super) published: Arc<ArcSwap<Published>>,
    pub(super) clock: Clock,
    pub(super) disk: Disk,
    pub(super) loader: Loader,
    pub(super) peers: Arc<Peers>,
    pub(super) watch: Watch,
    pub(super) waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
}

impl Core {
    /// Runs until the node stops or halts. After a stop the disk is closed when this returns.
    pub(super) fn run(mut self) -> End {
        let end = self.run_node();
        if end == End::Stopped {
            self.disk.join();
        }
        end
    }

    fn run_node(&mut self) -> End {
        let mut effects = Vec::new();
        self.step(Event::WakeUp, &mut effects);
        loop {
            if let Some(end) = self.execute(&mut effects) {
                return end;
            }
            match self.messages.recv_timeout(self.patience()) {
                Ok(message) => self.handle_all(message, &mut effects),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return End::Stopped,
            }
            let now = self.clock.now().instant;
            if self.node.next_wakeup() <= now {
                self.step(Event::WakeUp, &mut effects);
            }
            let peers = &self.peers;
            if let Some(why) = self.watch.look(now, self.node.raft(), || peers.status()) {
                tracing::warn!("{why}");
            }
        }
    }

    /// Handles what is there already in one go: it shares a batch of the log and a sync.
    fn handle_all(&mut self, first: Message, effects: &mut Vec<Effect>) {
        let others = self.messages.try_iter().take(MESSAGES_IN_A_ROW_MAX - 1);
        for message in std::iter::once(first).chain(others) {
            let event = event_of(message, &mut self.waiting);
            self.node.take_in(self.clock.now(), event, effects);
        }
        self.node.settle(self.clock.now(), effects);
    }

    fn step(&mut self, event: Event, effects: &mut Vec<Effect>) {
        self.node.step(self.clock.now(), event, effects);
    }

    fn execute(&mut self, effects: &mut Vec<Effect>) -> Option<End> {
        for effect in effects.drain(..) {
            match effect {
                Effect::Reply { ticket, answer } => {
                    if let Some(reply) = self.waiting.remove(&ticket) {
                        // The peer may be gone; nobody misses the answer then.
                        let _ = reply.send(answer);
                    }
                }
                Effect::Disk(command) => self.disk.submit(command),
                Effect::Send { call, to, ask } => self.peers.send(call, &to, ask),
                Effect::Register { to, registration } => self.peers.register(to, *registration),
                Effect::Hangup(name) => self.peers.hangup(name),
                Effect::KeepOpen(peers) => self.peers.keep_open(&peers),
                Effect::LoadSnapshot(id) => self.loader.begin(id),
                Effect::Publish(published) => self.published.store(Arc::from(published)),
                Effect::Halt { reason, record } => return Some(End::Halted { reason, record }),
                Effect::Stopped => return Some(End::Stopped),
            }
        }
        None
    }

    /// How long nothing needs to be done unasked.
    fn patience(&self) -> Duration {
        const LONGEST_MS: u64 = 60_000;
        let next = self.node.next_wakeup().min(self.watch.next());
        let due = next.since(self.clock.now().instant);
        Duration::from_millis(due.min(LONGEST_MS))
    }
}

/// What the node is to hear. Who waits for a request's answer is noted.
fn event_of(message: Message, waiting: &mut HashMap<Ticket, oneshot::Sender<Answer>>) -> Event {
    match message {
        Message::Request {
            ticket,
            arrived,
            request,
            reply,
            permit,
        } => {
            drop(permit);
            waiting.insert(ticket, reply);
            Event::Request {
                ticket,
                arrived,
                request,
            }
        }
        Message::Event(event) => event,
    }
}
