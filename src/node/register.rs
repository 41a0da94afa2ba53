//! Each controller registers itself with the active one at every start (KIP-919): where it listens
//! and which features it supports.
//!
//! The log is what counts: as long as what is published does not show this process's incarnation,
//! it is tried again, after a pause that grows with the failures and ends when the leader changes.

use crate::controller::{Context, Request};
use crate::raft::CallFault;
use crate::types::features::MetadataVersion;
use crate::types::{Epoch, ErrorCode, Instant, Now, Ticket};

use super::leader::Asked;
use super::{Effect, Leading, Node};

/// The first pause after a failure, in milliseconds; each other is twice as long. As Java.
const PAUSE_MS: u64 = 100;
/// The longest pause, in milliseconds. As Java.
const PAUSE_MS_MAX: u64 = 120_000;
/// How long an answer, and then the record, may take to come, in milliseconds: longer than the
/// shell waits for the answer.
const PATIENCE_MS: u64 = 10_000;

/// How far it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registering {
    /// The epoch of the last try: another leader is tried at once.
    epoch: Option<Epoch>,
    failures: u32,
    /// Nothing is tried before: it is under way, or was refused.
    not_before: Option<Instant>,
}

impl Registering {
    /// When it wants to be tried again.
    pub(super) fn next_try(&self) -> Instant {
        self.not_before.unwrap_or(Instant::NEVER)
    }

    fn failed(&mut self, now: Instant) {
        let pause = PAUSE_MS << self.failures.min(20);
        self.failures += 1;
        self.not_before = Some(now.plus_ms(pause.min(PAUSE_MS_MAX)));
    }
}

impl Node {
    /// Registers this controller if the log does not show its present incarnation.
    pub(super) fn register_self(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.stopping || self.halted || !self.is_unregistered() {
            self.registering = Registering::default();
            return;
        }
        let epoch = self.raft.epoch();
        if self.registering.epoch != Some(epoch) {
            self.registering = Registering::default();
        }
        if self.registering.next_try() > now.instant && self.registering.not_before.is_some() {
            return;
        }
        self.registering.not_before = None;
        let active = matches!(self.leading, Leading::Active { .. });
        let leader = self.raft.leader_peer();
        if !active && leader.is_none() {
            // A leader that is found is told at once.
            return;
        }
        self.registering.epoch = Some(epoch);
        self.registering.not_before = Some(now.instant.plus_ms(PATIENCE_MS));
        match leader {
            Some(to) if !active => effects.push(Effect::Register {
                to,
                registration: Box::new(self.registration.clone()),
            }),
            Some(_) | None => self.register_here(now, effects),
        }
    }

    fn is_unregistered(&self) -> bool {
        let image = &self.published.image;
        let level = image.features().metadata_version();
        let shown = image.controllers().get(&self.settings.node_id);
        level.is_some_and(MetadataVersion::controller_registration)
            && shown.is_none_or(|it| it.incarnation != self.registration.incarnation_id)
    }

    /// The active controller is this node.
    fn register_here(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let request = Request::ControllerRegistration(self.registration.clone());
        let asked = Asked {
            ticket: Ticket::default(),
            arrived: now.instant,
            version: 0,
            context: Box::new(Context {
                request: "ControllerRegistration",
                ..Context::default()
            }),
        };
        let decided = match self.refuse_undecided(now, &asked, &request) {
            Some(error) => Err(error),
            None => self.decide(now, asked, request, effects),
        };
        if let Err(error) = decided {
            self.registering.failed(now.instant);
            tracing::warn!("this controller cannot register itself yet: {error:?}");
        }
    }

    /// The active controller answered, or did not.
    pub(super) fn registered(
        &mut self,
        now: Now,
        outcome: Result<ErrorCode, CallFault>,
        effects: &mut Vec<Effect>,
    ) {
        match outcome {
            // The record is on its way here.
            Ok(ErrorCode::None) => {
                tracing::info!("this controller is registered with the active one");
                self.registering.failures = 0;
            }
            Ok(ErrorCode::NotController) | Err(_) if self.registering.failures < 3 => {
                tracing::debug!(?outcome, "not registered yet");
                self.registering.failed(now.instant);
            }
            Ok(_) | Err(_) => {
                let why = match outcome {
                    Ok(code) => format!("it answers {code}"),
                    Err(fault) => format!("{fault:?}"),
                };
                tracing::warn!("this controller is not registered with the active one: {why}");
                self.registering.failed(now.instant);
            }
        }
        self.register_self(now, effects);
    }
}
