//! Sessions of brokers and what they told last: the part of the cluster that is not replicated.

use std::collections::BTreeMap;

use crate::image::Image;
use crate::types::{BrokerEpoch, Instant, NodeId, Offset};

/// What one broker told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Last metadata offset (inclusive) that it has applied; -1 before it said one.
    metadata_offset: i64,
    /// End of the batch after which it may leave; `None` outside of a controlled shutdown.
    shutdown_offset: Option<i64>,
}

/// All brokers' sessions.
///
/// A session belongs to an incarnation (id and epoch): the heartbeat of an older one cannot keep a
/// newer one alive.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    contacts: BTreeMap<(NodeId, BrokerEpoch), Instant>,
    told: BTreeMap<NodeId, Told>,
}

impl Heartbeats {
    /// After a change of leadership every unfenced broker gets a fresh session: it could not have
    /// told this controller anything before.
    #[must_use]
    pub fn fresh(image: &Image, now: Instant) -> Self {
        let mut heartbeats = Self::default();
        for (id, broker) in image.brokers() {
            heartbeats.register(*id);
            if !broker.fenced {
                heartbeats.contact(*id, broker.epoch, now);
            }
        }
        heartbeats
    }

    /// Notes that this incarnation was heard of.
    ///
    /// Bounded: stale entries are dropped as they expire, and only ids with a registration get one.
    pub fn contact(&mut self, id: NodeId, epoch: BrokerEpoch, now: Instant) {
        self.contacts.insert((id, epoch), now);
    }

    /// True while the incarnation was heard of within `session_ms`.
    #[must_use]
    pub fn has_session(
        &self,
        id: NodeId,
        epoch: BrokerEpoch,
        now: Instant,
        session_ms: u64,
    ) -> bool {
        self.contacts
            .get(&(id, epoch))
            .is_some_and(|contact| now.since(*contact) <= session_ms)
    }

    /// Removes and gives one incarnation that was silent for longer than `session_ms`.
    pub fn take_expired(&mut self, now: Instant, session_ms: u64) -> Option<(NodeId, BrokerEpoch)> {
        let found = self
            .contacts
            .iter()
            .find(|(_, contact)| now.since(**contact) > session_ms)
            .map(|(key, _)| *key)?;
        self.contacts.remove(&found);
        Some(found)
    }

    /// No session ends before this, whatever is heard of from `now` on.
    #[must_use]
    pub fn next_end(&self, now: Instant, session_ms: u64) -> Instant {
        let oldest = self.contacts.values().copied().min();
        oldest
            .unwrap_or(now)
            .min(now)
            .plus_ms(session_ms)
            .plus_ms(1)
    }

    /// A registration was written: what the broker told before counts no more.
    pub fn register(&mut self, id: NodeId) {
        let told = Told {
            metadata_offset: -1,
            shutdown_offset: None,
        };
        self.told.insert(id, told);
    }

    /// A change of a registration was written: the broker has to say anew how far it is, for it
    /// cannot have applied that yet.
    pub fn change(&mut self, id: NodeId) {
        if let Some(told) = self.told.get_mut(&id) {
            told.metadata_offset = -1;
        }
    }

    /// What the broker told, to be [put back](Self::put_back).
    pub(super) fn told(&self, id: NodeId) -> Option<Told> {
        self.told.get(&id).copied()
    }

    /// What the broker told is this again.
    pub(super) fn put_back(&mut self, id: NodeId, told: Option<Told>) {
        match told {
            Some(told) => drop(self.told.insert(id, told)),
            None => self.remove(id),
        }
    }

    /// What was to be written from `next` on is not: brokers that are not fenced have a session,
    /// and nobody waits for an offset that does not come.
    pub(super) fn left_undone(&mut self, image: &Image, now: Instant, next: Offset) {
        let unfenced = image.brokers().iter().filter(|(_, broker)| !broker.fenced);
        for (id, broker) in unfenced {
            self.contacts.entry((*id, broker.epoch)).or_insert(now);
        }
        let ends = self.told.values_mut().map(|told| &mut told.shutdown_offset);
        for end in ends.flatten().filter(|end| **end >= next.0) {
            *end = i64::MAX;
        }
    }

    /// Forgets a broker.
    pub fn remove(&mut self, id: NodeId) {
        self.told.remove(&id);
    }

    /// Notes what a heartbeat told, and whether the broker is fenced after it.
    pub fn touch(&mut self, id: NodeId, fenced: bool, metadata_offset: i64) {
        let told = self.told.entry(id).or_insert(Told {
            metadata_offset: -1,
            shutdown_offset: None,
        });
        told.metadata_offset = metadata_offset;
        if fenced {
            told.shutdown_offset = None;
        }
    }

    /// The broker is leaving. It goes once every active broker has applied `offset` (inclusive);
    /// `i64::MAX` while that is not known.
    pub fn begin_shutdown(&mut self, id: NodeId, offset: i64) {
        if let Some(told) = self.told.get_mut(&id) {
            told.shutdown_offset = Some(offset);
        }
    }

    /// The offset of [`Self::begin_shutdown`], if the broker is leaving.
    #[must_use]
    pub fn shutdown_offset(&self, id: NodeId) -> Option<i64> {
        self.told.get(&id)?.shutdown_offset
    }

    /// The lowest metadata offset that any active broker has applied; `i64::MAX` without one.
    #[must_use]
    pub fn lowest_active_offset(&self, image: &Image) -> i64 {
        self.told
            .iter()
            .filter(|(id, told)| {
                let unfenced = image
                    .brokers()
                    .get(*id)
                    .is_some_and(|broker| !broker.fenced);
                unfenced && told.shutdown_offset.is_none()
            })
            .map(|(_, told)| told.metadata_offset)
            .min()
            .unwrap_or(i64::MAX)
    }
}
