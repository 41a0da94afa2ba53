//! Leaders and in-sync replicas of many partitions at once, when a broker comes, goes or loses a
//! directory.

use crate::controller::configs::topic::{cluster_min_isr, cluster_value, effective_value};
use crate::controller::partition_change::{Change, Election, NO_LEADER, Rules};
use crate::controller::{Settings, View};
use crate::image::{Found, Image, Partition, Place, TopicRef};
use crate::records::{BrokerRegistrationChangeRecord, Record, VersionedRecord};
use crate::types::{BrokerEpoch, NodeId, PartitionId, Uuid};

/// Why partitions are looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The broker leaves the in-sync sets.
    Leaves(NodeId),
    /// The broker may lead from now on, although the image still has it fenced.
    Comes(NodeId),
    /// A broker may lead, and the image says so.
    Came,
    /// The broker lost records: it leaves and is not eligible either (KIP-966).
    LostRecords(NodeId),
}

/// Appends a change for each of `partitions` that needs one.
pub(super) fn update<'a>(
    view: &View<'a>,
    cause: Cause,
    partitions: impl Iterator<Item = Found<'a>>,
    records: &mut Vec<VersionedRecord>,
) {
    let rules = Many::of(view, cause);
    let mut known = None;
    for found in partitions {
        records.extend(rules.change(&mut known, found));
    }
}

/// Appends changes of `partitions` until there are [`SLICE`] records, or so many were looked at in
/// vain that it is enough for one step if `looks` says how many. Gives the place to go on from
/// unless all were looked at.
pub(super) fn update_slice<'a>(
    view: &View<'a>,
    cause: Cause,
    partitions: impl Iterator<Item = (Place, Found<'a>)>,
    looks: usize,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    let rules = Many::of(view, cause);
    let mut known = None;
    for (looked, (place, found)) in partitions.enumerate() {
        if records.len() >= SLICE || looked >= looks {
            return Some(place);
        }
        records.extend(rules.change(&mut known, found));
    }
    None
}

/// So many records are computed in one step: a few milliseconds.
pub(super) const SLICE: usize = 2_000;

/// So many partitions are looked at in one step where most of them may have to stay as they are.
pub(super) const LOOKS: usize = 4 * SLICE;

/// What is the same for all partitions that are looked at for one cause.
struct Many<'a> {
    image: &'a Image,
    settings: &'a Settings,
    rules: Rules<'a>,
    cluster: ClusterRules,
    leaves: Option<i32>,
    comes: Option<i32>,
    lost_records: Option<i32>,
}

impl<'a> Many<'a> {
    fn of(view: &View<'a>, cause: Cause) -> Self {
        let (leaves, comes, lost_records) = match cause {
            Cause::Leaves(id) => (Some(id.0), None, None),
            Cause::LostRecords(id) => (Some(id.0), None, Some(id.0)),
            Cause::Comes(id) => (None, Some(id.0), None),
            Cause::Came => (None, None, None),
        };
        Self {
            image: view.image,
            settings: view.settings,
            rules: Rules::of(view.image),
            cluster: ClusterRules::of(view.image, view.settings),
            leaves,
            comes,
            lost_records,
        }
    }

    /// The change that the partition needs. Partitions of a topic come one after the other: its
    /// configuration is looked up once and `known` then.
    fn change(
        &self,
        known: &mut Option<(Uuid, TopicRules)>,
        (topic, id, old): Found<'a>,
    ) -> Option<VersionedRecord> {
        let topic_rules = match *known {
            Some((topic_id, known)) if topic_id == topic.id() => known,
            _ => self.cluster.of_topic(self.image, self.settings, topic),
        };
        *known = Some((topic.id(), topic_rules));
        if self.stays(old, topic_rules.election) {
            return None;
        }
        self.worked_out((topic, id, old), topic_rules)
    }

    fn worked_out(
        &self,
        (topic, id, old): Found<'a>,
        topic_rules: TopicRules,
    ) -> Option<VersionedRecord> {
        let acceptable = |broker: i32| self.acceptable(old, broker);
        let isr = old.isr().iter().copied();
        let isr = isr.filter(|&member| self.leaves != Some(member)).collect();
        let min_isr = topic_rules.min_isr;
        let mut change = Change::of(topic.id(), id, old, self.rules, &acceptable, min_isr)
            .election(topic_rules.election)
            .isr(isr);
        if let Some(broker) = self.lost_records {
            change = change.unclean_shutdown(broker);
        }
        change.record()
    }

    /// May `broker` lead this partition?
    fn acceptable(&self, old: Partition<'_>, broker: i32) -> bool {
        let active = self.leaves != Some(broker)
            && (self.comes == Some(broker) || self.rules.is_active(broker));
        self.rules
            .can_lead(broker, active, old.directory_of(broker))
    }

    /// True when it is known without working it out that nothing changes: without eligible leader
    /// replicas the last in sync stays so when it is away, and of those there may be very many.
    /// Whoever else lives is not in sync, and only an unclean election takes it.
    fn stays(&self, old: Partition<'_>, election: Election) -> bool {
        let keeps_isr = || match old.isr() {
            [only] => self.leaves == Some(*only),
            _ => false,
        };
        let nobody = || !old.replicas().iter().any(|id| self.acceptable(old, *id));
        old.leader() == NO_LEADER
            && !self.rules.elr_enabled
            && old.is_plain()
            && keeps_isr()
            && (election != Election::Unclean || nobody())
    }
}

/// What an election of one partition writes, if anything.
pub(super) fn elected(
    rules: Rules<'_>,
    (topic, id, old): Found<'_>,
    min_isr: usize,
    election: Election,
) -> Option<VersionedRecord> {
    let acceptable = |broker: i32| rules.may_lead(old, broker);
    Change::of(topic.id(), id, old, rules, &acceptable, min_isr)
        .election(election)
        .record()
}

/// True when a preferred election is known to change nothing: the first replica cannot lead, the
/// leader can, and no rare list waits to be changed on the way. After a broker's end that is true
/// of all partitions that it led, for as long as it is away.
pub(super) fn preferred_election_is_idle(rules: Rules<'_>, it: Partition<'_>) -> bool {
    let can_lead = |broker: i32| it.isr().contains(&broker) && rules.may_lead(it, broker);
    let first = it.replicas().first().copied();
    it.is_plain() && !first.is_some_and(can_lead) && can_lead(it.leader())
}

/// What a topic's configuration asks of its elections.
#[derive(Clone, Copy)]
pub(super) struct TopicRules {
    /// Unclean where the configuration allows it.
    pub(super) election: Election,
    /// The effective min.insync.replicas.
    pub(super) min_isr: usize,
}

/// What holds for a topic that says nothing itself: looked up once and not for each of many topics.
pub(super) struct ClusterRules {
    election: Election,
    min_isr: usize,
}

impl ClusterRules {
    pub(super) fn of(image: &Image, settings: &Settings) -> Self {
        Self {
            election: election_of(cluster_value(image, settings, UNCLEAN)),
            min_isr: cluster_min_isr(image, settings),
        }
    }

    pub(super) fn of_topic(
        &self,
        image: &Image,
        settings: &Settings,
        topic: TopicRef<'_>,
    ) -> TopicRules {
        let own = image.topic_config(topic.name());
        let sets = |key| own.is_some_and(|own| own.get(key).is_some());
        let value = |key| effective_value(image, settings, topic.name(), key);
        let election = match sets(UNCLEAN) {
            true => election_of(value(UNCLEAN)),
            false => self.election,
        };
        let min_isr = match sets(MIN_ISR) {
            true => min_isr_of(value(MIN_ISR)),
            false => self.min_isr,
        };
        TopicRules {
            election,
            min_isr: min_isr.min(replication_factor(topic)),
        }
    }
}

const UNCLEAN: &str = "unclean.leader.election.enable";
const MIN_ISR: &str = "min.insync.replicas";

fn election_of(unclean: Option<String>) -> Election {
    if unclean.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        Election::Unclean
    } else {
        Election::Online
    }
}

fn min_isr_of(value: Option<String>) -> usize {
    value
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(1)
}

fn replication_factor(topic: TopicRef<'_>) -> usize {
    topic
        .partition(PartitionId(0))
        .map_or(1, |it| it.replicas().len())
}

/// A new incarnation registers: what the old one held is given up first, a slice in each step.
/// Without proof of a clean shutdown its replicas are not eligible either. `None` when nothing is
/// left: then no more than a slice was, and this was the whole rule, done on the image as it is.
pub(super) fn forget_incarnation(
    view: &View<'_>,
    id: NodeId,
    clean: bool,
    at: Place,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    if Rules::of(view.image).elr_enabled && !clean {
        // Each of them changes: none is looked at in vain.
        let around = view.image.partitions_with_member_around(id, at);
        update_slice(view, Cause::LostRecords(id), around, usize::MAX, records)
    } else {
        leave_in_sync(view, id, at, records)
    }
}

/// The broker is struck off: it leaves the in-sync sets, and partitions in which it is eligible are
/// looked at again, most of them in vain; a slice in each step, each partition once.
pub(super) fn abandon(
    view: &View<'_>,
    id: NodeId,
    at: Place,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    let members = view.image.partitions_with_member_from(id, at);
    update_slice(view, Cause::Leaves(id), members, LOOKS, records)
}

/// The broker leaves every in-sync set, a slice in each step; `None` when no more than this slice
/// was left. Without eligible leader replicas it stays in those sets that it is the last of.
pub(super) fn leave_in_sync(
    view: &View<'_>,
    id: NodeId,
    at: Place,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    let around = view.image.partitions_with_isr_member_around(id, at);
    update_slice(view, Cause::Leaves(id), around, usize::MAX, records)
}

/// A change of a registration in the lowest version that can say it.
pub(super) fn registration_change(
    version: i16,
    id: NodeId,
    epoch: BrokerEpoch,
    change: impl FnOnce(&mut BrokerRegistrationChangeRecord),
) -> VersionedRecord {
    let mut record = BrokerRegistrationChangeRecord {
        broker_id: id.0,
        broker_epoch: epoch.0,
        ..BrokerRegistrationChangeRecord::default()
    };
    change(&mut record);
    VersionedRecord {
        version,
        record: Record::BrokerRegistrationChange(record),
    }
}

#[cfg(test)]
mod tests;
