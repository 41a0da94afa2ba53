//! Outgoing connections: what this node asks other controllers, and what they answer.
//!
//! ```text
//! core thread -> Peers -> a line for each other node (one task, one connection at a time)
//!                           |- dial: names to addresses to a connection, anew every time
//!                           `- link: questions and answers on one connection, without IO
//! ```
//!
//! The core thread never waits here: what it wants is put down for the line, whose task is woken.
//! Everything is bounded: [`WAITING_MAX`] questions of one node wait for answers, one more is
//! answered with `Silent` at once; [`LINES_MAX`] nodes are known; a frame takes memory as its bytes
//! arrive and at most [`link::FRAME_BYTES_MAX`]. Answers are checked as `server` checks requests.
//!
//! A registration goes its own way: its answer waits until the record is committed, for which the
//! leader may need the fetches of this very node, and answers come in the order of the questions.
//!
//! A question to a node without a connection connects at once, for the core has pauses of its own.
//! Only connections that are kept open without a question are retried after a pause.

mod dial;
mod line;
mod link;
mod register;
mod status;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use self::dial::Resolve;
use self::line::Line;
pub use self::status::PeerStatus;
use crate::controller::register_controller::Registration;
use crate::node::Event;
use crate::raft::{Ask, CallFault, Peer, PeerName};
use crate::types::{CallId, NodeId};

/// Questions to one node that wait to be sent or answered.
pub(crate) const WAITING_MAX: usize = 8;
/// Nodes that are remembered. Past it those that were forgotten by the core make room.
const LINES_MAX: usize = 128;

/// What outgoing connections need to know.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// This node, which is never asked.
    pub node_id: NodeId,
    /// Where this node itself listens, as others see it (host, port): a bootstrap server with such
    /// an address is this node.
    pub own: Vec<(String, u16)>,
    /// How long a connection may take until its first question can be asked, and how long an
    /// answer may take.
    pub request_timeout: Duration,
    /// A connection that is not kept open and that nobody uses is closed after this time.
    pub idle_max: Option<Duration>,
}

/// What all lines share.
struct Shared {
    settings: PeerSettings,
    tell: Box<dyn Fn(Event) + Send + Sync>,
    resolve: Resolve,
}

/// The connections to other nodes. Dropping it closes them.
pub struct Peers {
    runtime: Handle,
    shared: Arc<Shared>,
    lines: Mutex<HashMap<PeerName, Arc<Line>>>,
    /// The registration that is under way.
    registering: Mutex<Option<AbortHandle>>,
}

/// What a lock guards stays sound when a thread panics: each change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    /// No connections yet. Their tasks run on `runtime`; `tell` gets what becomes of them and must
    /// not block.
    #[must_use]
    pub fn new(
        settings: PeerSettings,
        runtime: Handle,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self::with_resolver(settings, runtime, tell, dial::system())
    }

    fn with_resolver(
        settings: PeerSettings,
        runtime: Handle,
        tell: impl Fn(Event) + Send + Sync + 'static,
        resolve: Resolve,
    ) -> Self {
        let shared = Shared {
            settings,
            tell: Box::new(tell),
            resolve,
        };
        Self {
            runtime,
            shared: Arc::new(shared),
            lines: Mutex::default(),
            registering: Mutex::default(),
        }
    }

    /// Registers this controller with the active one; [`Event::Registered`] tells the outcome. One
    /// that is under way is given up, and not told.
    pub fn register(&self, to: Peer, registration: Registration) {
        let shared = Arc::clone(&self.shared);
        let task = self.runtime.spawn(async move {
            let outcome = register::register(&shared, &to, &registration).await;
            (shared.tell)(Event::Registered(outcome));
        });
        let before = lock(&self.registering).replace(task.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Asks. [`Event::Answered`] with the same `call` follows, unless a [`Self::hangup`] comes
    /// first.
    pub fn send(&self, call: CallId, to: &Peer, ask: Ask) {
        let accepted = !self.is_this_node(to)
            && self
                .line(to.name)
                .is_some_and(|line| line.ask(&self.runtime, call, to, ask));
        if !accepted {
            let outcome = Err(CallFault::Silent);
            (self.shared.tell)(Event::Answered { call, outcome });
        }
    }

    /// Closes the connection, if there is one. Nothing that was asked before is answered any more.
    pub fn hangup(&self, name: PeerName) {
        if let Some(line) = lock(&self.lines).get(&name) {
            line.hang_up();
        }
    }

    /// Connects to each of these and stays connected; other connections may go when nobody asks.
    pub fn keep_open(&self, peers: &[Peer]) {
        let dropped: Vec<_> = lock(&self.lines)
            .iter()
            .filter(|(name, _)| !peers.iter().any(|peer| peer.name == **name))
            .map(|(_, line)| Arc::clone(line))
            .collect();
        for line in dropped {
            line.keep(&self.runtime, None);
        }
        for peer in peers.iter().filter(|peer| !self.is_this_node(peer)) {
            if let Some(line) = self.line(peer.name) {
                line.keep(&self.runtime, Some(peer));
            }
        }
    }

    /// How it stands with every node that was ever asked (of late, if they are very many), by name.
    #[must_use]
    pub fn status(&self) -> Vec<PeerStatus> {
        let lines = lock(&self.lines);
        let mut all: Vec<_> = lines.values().map(|line| line.status()).collect();
        all.sort_by_key(|status| status.name);
        all
    }

    fn is_this_node(&self, peer: &Peer) -> bool {
        let settings = &self.shared.settings;
        match peer.name {
            PeerName::Node(id) => id == settings.node_id,
            PeerName::Bootstrap(_) => settings
                .own
                .iter()
                .any(|(host, port)| *host == peer.host && *port == peer.port),
        }
    }

    /// The line to this node; a new one may take the place of one that nobody needs. `None` when
    /// there are too many.
    fn line(&self, name: PeerName) -> Option<Arc<Line>> {
        let mut lines = lock(&self.lines);
        if let Some(line) = lines.get(&name) {
            return Some(Arc::clone(line));
        }
        if lines.len() >= LINES_MAX {
            let unused = lines.iter().find(|(_, line)| line.is_unused());
            let unused = unused.map(|(name, _)| *name)?;
            lines.remove(&unused);
        }
        let line = Arc::new(Line::new(name, Arc::clone(&self.shared)));
        lines.insert(name, Arc::clone(&line));
        Some(line)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for line in lock(&self.lines).values() {
            line.stop();
        }
        if let Some(task) = lock(&self.registering).take() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod link_tests;

#[cfg(test)]
mod tests;
