//! The node: consensus, image and controller tied together, still without IO.
//!
//! `Node::step(now, event, &mut effects)` is the entry, or for several events that are there at
//! once `take_in` with each and `settle` behind the last; `next_wakeup` says when to call it again
//! without an event. One thread runs it; the shell executes the effects in order.
//!
//! * A leader *decides* on the working image, *replays* the records on it, *proposes* them to raft
//!   (those of requests that came together in one batch), remembers a fork for the batch's end, and
//!   holds each reply until its records are committed. A reply without records waits for the
//!   highest pending offset: it was computed on uncommitted state.
//! * A node that does not lead (yet) replays committed batches only: from memory, where it keeps
//!   what it was given; the log is read back only for what is not there any more.
//! * A node that does not lead registers itself with the one that does, as Java's controllers do.
//! * Losing leadership drops forks and soft state and fails every held reply with NOT_CONTROLLER.
//! * A decision that makes no sense is refused to whoever asked for it; if nobody did, leadership
//!   ends. If that ended this node's leadership before, too, nobody else got further: the work is
//!   left undone.
//! * A record that is committed and makes no sense stops the process: a restart is safe, a wrong
//!   image is not.

mod apply;
mod control;
mod deferred;
mod fetched;
mod forks;
mod gather;
mod interface;
mod leader;
mod load;
mod peers;
mod register;
mod retention;
mod serve;
mod snapshots;
mod tail;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::controller::register_controller::Registration;
use crate::controller::{self, Settings, Soft};
use crate::raft::{Input, Output, Raft};
use crate::records::VersionedRecord;
use crate::storage::{Command, SnapshotPiece};
use crate::types::{ApiError, Epoch, ErrorCode, Instant, Now, Offset, Timestamp, Token};

use apply::Replayer;
use deferred::Deferred;
use forks::Forks;
use gather::Gathered;
pub use interface::{Answer, Effect, Event, Parts, PeerAnswer, Published, Request};
pub use load::Loaded;
#[cfg(test)]
pub(crate) use peers::told;
use register::Registering;
pub use retention::{Held, RetentionRules};
use serve::Reading;
pub use snapshots::SnapshotRules;
use snapshots::Snapshots;
use tail::Tail;

/// Durable batches kept in memory for fetches, in bytes.
const TAIL_BYTES_MAX: usize = 4 << 20;

/// The node. See the module's documentation.
pub struct Node {
    raft: Raft,
    settings: Settings,
    bootstrap: Vec<VersionedRecord>,
    registration: Registration,
    registering: Registering,
    seed: u64,
    /// What is replayed: the committed prefix, or while leading the working image.
    working: Replayer,
    /// What a leader that is deposed returns to: the image of what is committed.
    committed: Replayer,
    published: Published,
    /// Everything below is committed, exclusive.
    commit: Offset,
    leading: Leading,
    snapshots: Snapshots,
    /// What is decided and replayed and not yet given to raft.
    gathered: Option<Gathered>,
    forks: Forks,
    deferred: Deferred<Result<controller::Reply, ApiError>>,
    tail: Tail,
    /// Everything below is on stable storage, exclusive.
    durable: Offset,
    next_token: u64,
    /// What each write under way carries, with the log end that it makes durable.
    writes: BTreeMap<Token, (Option<Offset>, Token, Vec<Output>)>,
    readings: BTreeMap<Token, Reading>,
    /// Set if this node's last time as the active controller ended because periodic work could not
    /// be written: how often such work was left undone since.
    undone: Option<u64>,
    stopping: bool,
    halted: bool,
}

/// How far this node is in being the active controller.
enum Leading {
    No,
    /// Elected, but not everything committed before is replayed yet.
    Soon(Epoch),
    Active {
        epoch: Epoch,
        soft: Box<Soft>,
    },
}

impl Node {
    /// A node that has not acted yet; call `step` with [`Event::WakeUp`] first.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let durable = parts.raft.log_end();
        let mut published = Published::nothing();
        published.image = parts.image.settled().clone();
        published.end = parts.image_end;
        published.features_end = parts.image_end;
        let working = Replayer {
            image: parts.image,
            end: parts.image_end,
            timestamp: Timestamp(0),
            features_end: parts.image_end,
        };
        Self {
            raft: parts.raft,
            settings: parts.settings,
            bootstrap: parts.bootstrap,
            registration: parts.registration,
            registering: Registering::default(),
            seed: parts.seed,
            committed: working.clone(),
            working,
            published,
            commit: parts.image_end,
            leading: Leading::No,
            snapshots: Snapshots::new(parts.snapshots, parts.image_end, parts.held),
            gathered: None,
            forks: Forks::default(),
            deferred: Deferred::default(),
            tail: Tail::new(TAIL_BYTES_MAX),
            durable,
            next_token: 0,
            writes: BTreeMap::new(),
            readings: BTreeMap::new(),
            undone: None,
            stopping: false,
            halted: false,
        }
    }

    /// Handles one event.
    pub fn step(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        self.take_in(now, event, effects);
        self.settle(now, effects);
    }

    /// Handles one of several events that are there at once. What is decided on them goes into one
    /// batch; call [`Self::settle`] behind the last.
    pub fn take_in(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        if self.halted {
            return;
        }
        match event {
            Event::Request {
                ticket,
                arrived,
                request,
            } => match *request {
                Request::Controller {
                    version,
                    context,
                    request,
                } => {
                    let asked = leader::Asked {
                        ticket,
                        arrived,
                        version,
                        context,
                    };
                    self.controller_request(now, asked, request, effects);
                }
                Request::Raft { listener, request } => {
                    let input = Input::Request {
                        ticket,
                        listener,
                        request,
                    };
                    self.drive(now, input, effects);
                }
            },
            Event::Disk(completion) => self.completed(now, completion, effects),
            Event::WakeUp => {
                self.drive(now, Input::WakeUp, effects);
                self.run_periodic(now, effects);
                self.clean_if_due(now, effects);
                self.register_self(now, effects);
            }
            Event::Answered { call, outcome } => self.answered(now, call, outcome, effects),
            Event::PeerFound { peer, pre_vote } => {
                self.drive(now, Input::PeerFound { peer, pre_vote }, effects);
            }
            Event::PeerLost { peer } => self.drive(now, Input::PeerLost { peer }, effects),
            Event::Registered(outcome) => self.registered(now, outcome, effects),
            Event::SnapshotLoaded(loaded) => self.snapshot_loaded(now, loaded, effects),
            Event::SnapshotAsked => self.snapshot_asked(now, effects),
            Event::Shutdown => {
                self.stopping = true;
                self.drive(now, Input::Shutdown, effects);
            }
        }
    }

    /// When `step` wants to be called without an event.
    #[must_use]
    pub fn next_wakeup(&self) -> Instant {
        if self.stopping {
            return self.raft.next_wakeup();
        }
        let raft = self.raft.next_wakeup().min(self.snapshots.next_clean());
        let raft = raft.min(self.registering.next_try()).min(self.held_until());
        match &self.leading {
            Leading::Active { soft, .. } if self.may_act() => {
                raft.min(controller::periodic::next_due(soft))
            }
            _ => raft,
        }
    }

    /// May this node write unasked? Not while it stops, nor while the disk is far behind: its next
    /// completion is the next chance then.
    fn may_act(&self) -> bool {
        !self.stopping && !self.halted && !self.forks.busy()
    }

    /// Consensus, for status output.
    #[must_use]
    pub const fn raft(&self) -> &Raft {
        &self.raft
    }

    /// Gives an input to raft and executes what comes out. Raft hears it behind all that was
    /// decided before.
    fn drive(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        self.propose(now, effects);
        let mut outputs = Vec::new();
        self.raft.handle(now, input, &mut outputs);
        self.execute(now, outputs, effects);
    }

    fn execute(&mut self, now: Now, outputs: Vec<Output>, effects: &mut Vec<Effect>) {
        for output in outputs {
            match output {
                Output::Write { token, write, then } => self.write(token, write, then, effects),
                Output::Reply { ticket, response } => effects.push(Effect::Reply {
                    ticket,
                    answer: Answer::Raft(response),
                }),
                Output::ServeFetch {
                    ticket,
                    response,
                    from,
                    until,
                    max_bytes,
                } => {
                    let range = serve::Range {
                        from,
                        until,
                        max_bytes,
                    };
                    self.serve_fetch(ticket, response, range, effects);
                }
                Output::ServeSnapshot {
                    ticket,
                    response,
                    position,
                    max_bytes,
                } => {
                    self.snapshots.note_fetched(now.instant);
                    self.serve_snapshot(ticket, response, position, max_bytes, effects);
                }
                Output::Send { call, to, ask } => effects.push(Effect::Send { call, to, ask }),
                Output::Hangup(peer) => effects.push(Effect::Hangup(peer)),
                Output::KeepOpen(peers) => effects.push(Effect::KeepOpen(peers)),
                Output::KeepPiece {
                    id,
                    position,
                    bytes,
                    size,
                } => effects.push(Effect::Disk(Command::ReceiveSnapshot(SnapshotPiece {
                    id,
                    position,
                    bytes,
                    size,
                }))),
                Output::QuorumChanged => self.quorum_changed(now, effects),
                Output::Committed(commit) => self.committed(now, commit, effects),
                Output::BecameLeader { epoch } => self.elected(now, epoch, effects),
                Output::LostLeadership { .. } => self.deposed(effects),
                Output::MayStop => {
                    effects.push(Effect::Disk(Command::Close));
                    effects.push(Effect::Stopped);
                }
            }
        }
    }

    /// Notes what is committed, and shows readers what of it is outside of a
    /// metadata transaction.
    fn publish(&mut self, committed: Replayer, effects: &mut Vec<Effect>) {
        let end = committed.end;
        let shown = committed.image.settled().clone();
        self.published = Published {
            features_end: committed.features_end,
            image: shown,
            end,
            role: self.raft.role_name(),
            leader: self.raft.leader(),
            leader_endpoint: self.raft.leader_peer().map(|peer| (peer.host, peer.port)),
            epoch: self.raft.epoch(),
            kraft_version: self.raft.kraft_version().cast_signed(),
            active: matches!(self.leading, Leading::Active { .. }),
        };
        self.committed = committed;
        effects.push(Effect::Publish(Box::new(self.published.clone())));
    }

    fn quorum_changed(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if !self.raft.is_leader() {
            self.refuse_readings(effects);
        }
        self.publish_again(effects);
        self.register_self(now, effects);
    }

    /// Shows readers the same image with what is known of the quorum now.
    fn publish_again(&mut self, effects: &mut Vec<Effect>) {
        self.publish(self.committed.clone(), effects);
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    /// Stops the process: something that must hold does not.
    fn halt(&mut self, reason: String, effects: &mut Vec<Effect>) {
        self.halt_for(reason, None, effects);
    }

    fn halt_for(&mut self, reason: String, record: Option<Offset>, effects: &mut Vec<Effect>) {
        tracing::error!("{reason}");
        self.halted = true;
        effects.push(Effect::Halt { reason, record });
    }

    /// The refusal of a controller request by a node that is not the active controller.
    fn not_controller(&self) -> ApiError {
        let leader = self.raft.leader().filter(|&id| id != self.settings.node_id);
        ApiError::new(
            ErrorCode::NotController,
            leader.map_or_else(
                || "No controller appears to be active.".to_owned(),
                |id| format!("The active controller appears to be node {id}."),
            ),
        )
    }
}
