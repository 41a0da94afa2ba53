//! When there is no leader, one warning in a while says why: what this node is, and how it stands
//! with everybody who could lead.

use crate::raft::{PeerName, Raft};
use crate::server::PeerStatus;
use crate::types::{Instant, NodeId};

/// How often it is looked, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// How long there is no leader before the first warning, and between two, in milliseconds.
const WARN_MS: u64 = 10_000;

/// Looks whether there is a leader.
#[derive(Debug)]
pub(super) struct Watch {
    own: NodeId,
    next: Instant,
    /// Since when there is none.
    since: Option<Instant>,
    warned: Option<Instant>,
}

impl Watch {
    pub(super) const fn new(own: NodeId) -> Self {
        Self {
            own,
            next: Instant(0),
            since: None,
            warned: None,
        }
    }

    /// When it wants to look.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// The warning that is due, if one is. `status` is asked only when it is needed.
    pub(super) fn look(
        &mut self,
        now: Instant,
        raft: &Raft,
        status: impl FnOnce() -> Vec<PeerStatus>,
    ) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now.plus_ms(LOOK_MS);
        if raft.is_leader() {
            self.since = None;
            return None;
        }
        let status = status();
        if is_led(raft, &status) {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let quiet = self.warned.filter(|at| *at >= since).unwrap_or(since);
        if now.since(quiet) < WARN_MS {
            return None;
        }
        self.warned = Some(now);
        Some(sentence(self.own, now.since(since), raft, &status))
    }
}

/// Whether this node follows somebody who was heard of late.
fn is_led(raft: &Raft, status: &[PeerStatus]) -> bool {
    let Some(leader) = raft.leader_peer() else {
        return false;
    };
    let heard = status
        .iter()
        .filter(|it| it.name == leader.name)
        .find_map(|it| it.seen);
    heard.is_some_and(|ago| ago.as_millis() < u128::from(WARN_MS))
}

fn sentence(own: NodeId, ms: u64, raft: &Raft, status: &[PeerStatus]) -> String {
    let voters = raft.voters();
    let voter = voters.iter().any(|voter| voter.key.id == own);
    let mut parts = Vec::new();
    for id in voters.iter().map(|voter| voter.key.id) {
        if id == own {
            continue;
        }
        let known = status.iter().find(|it| it.name == PeerName::Node(id));
        parts.push(known.map_or_else(
            || format!("node {id}: never asked"),
            |status| format!("{status}"),
        ));
    }
    let servers = status
        .iter()
        .filter(|it| matches!(it.name, PeerName::Bootstrap(_)));
    parts.extend(servers.map(|status| format!("{status}")));
    if parts.is_empty() {
        parts.push("no other node is known".to_owned());
    }
    format!(
        "no leader for {} s; node {own} is {}{} in epoch {}; {}",
        ms / 1_000,
        raft.role_name(),
        if voter { "" } else { ", not a voter," },
        raft.epoch(),
        parts.join("; ")
    )
}
