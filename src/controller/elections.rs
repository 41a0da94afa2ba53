//! The elections that nobody asks for: leadership goes back to the first replicas, and partitions
//! that are left without a leader get one that may lack records where their topic allows that.
//!
//! Both are rounds over all partitions in slices: a step looks at so many rows and makes so many
//! changes at most, and the next one comes a moment later, so that requests come in between. A
//! round that has nothing to find ends at once, because the image counts what it would find.

use super::leaders::{ClusterRules, elected, preferred_election_is_idle};
use super::partition_change::{Election, NO_LEADER, Rules};
use super::{Settings, View};
use crate::image::{Found, Partition, Place};
use crate::records::VersionedRecord;
use crate::types::Instant;

/// Most changes of one step, as in Java.
const CHANGES_MAX: usize = 1_000;
/// Most partitions of one step that a change is worked out for, needed or not.
const TRIES_MAX: usize = 5_000;
/// Most partitions that one step looks at.
const LOOKS_MAX: usize = 100_000;
/// From one step of a round to the next, as in Java.
const PAUSE_MS: u64 = 10;

/// What a round is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `auto.leader.rebalance.enable`.
    Preferred,
    /// `unclean.leader.election.enable`.
    Unclean,
}

impl Kind {
    /// From the end of a round to the next one; `None` where there is none.
    const fn interval_ms(self, settings: &Settings) -> Option<u64> {
        match self {
            Self::Preferred => settings.rebalance_interval_ms,
            Self::Unclean => Some(settings.unclean_election_interval_ms),
        }
    }

    const fn election(self) -> Election {
        match self {
            Self::Preferred => Election::Preferred,
            Self::Unclean => Election::Unclean,
        }
    }
}

/// Where one kind of rounds stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    kind: Kind,
    due: Instant,
    place: Place,
}

impl Round {
    /// The first round begins one interval after the controller became active.
    pub(super) fn new(kind: Kind, settings: &Settings, now: Instant) -> Self {
        let due = kind.interval_ms(settings);
        Self {
            kind,
            due: due.map_or(Instant::NEVER, |ms| now.plus_ms(ms)),
            place: Place::default(),
        }
    }

    /// When its next step is due.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// The step that is due.
    pub(super) fn step(&mut self, view: &View<'_>) -> Vec<VersionedRecord> {
        let mut records = Vec::new();
        let left = self.look(view, &mut records);
        if !records.is_empty() {
            tracing::info!("{:?} elections: {} partitions", self.kind, records.len());
        }
        let now = view.now.instant;
        self.due = match (left, self.kind.interval_ms(view.settings)) {
            (Some(_), _) => now.plus_ms(PAUSE_MS),
            (None, Some(interval)) => now.plus_ms(interval),
            (None, None) => Instant::NEVER,
        };
        self.place = left.unwrap_or_default();
        records
    }

    /// Where the next step goes on, `None` at the end of the round.
    fn look(&self, view: &View<'_>, records: &mut Vec<VersionedRecord>) -> Option<Place> {
        let image = view.image;
        let candidates = match self.kind {
            Kind::Preferred => image.not_led_by_preferred_count(),
            Kind::Unclean => image.leaderless_count(),
        };
        if candidates == 0 {
            return None;
        }
        let elections = Elections {
            view,
            kind: self.kind,
            rules: Rules::of(image),
            cluster: ClusterRules::of(image, view.settings),
        };
        let mut tries = 0;
        let is_candidate = |it: Partition<'_>| elections.is_candidate(it);
        image.walk(self.place, LOOKS_MAX, is_candidate, |found| {
            tries += 1;
            records.extend(elections.change(found));
            records.len() < CHANGES_MAX && tries < TRIES_MAX
        })
    }
}

struct Elections<'a> {
    view: &'a View<'a>,
    kind: Kind,
    rules: Rules<'a>,
    cluster: ClusterRules,
}

impl Elections<'_> {
    /// Whether a change is worth working out.
    fn is_candidate(&self, it: Partition<'_>) -> bool {
        match self.kind {
            Kind::Preferred => {
                !it.led_by_preferred() && !preferred_election_is_idle(self.rules, it)
            }
            Kind::Unclean => it.leader() == NO_LEADER,
        }
    }

    fn change(&self, found: Found<'_>) -> Option<VersionedRecord> {
        let (topic, _, _) = found;
        let view = self.view;
        let topic_rules = self.cluster.of_topic(view.image, view.settings, topic);
        if self.kind == Kind::Unclean && topic_rules.election != Election::Unclean {
            return None;
        }
        elected(self.rules, found, topic_rules.min_isr, self.kind.election())
    }
}

#[cfg(test)]
mod tests;
