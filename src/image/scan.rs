//! Questions about all partitions: "mark the lists that contain the broker, then scan the rows".
//!
//! There is no index from brokers to partitions, on purpose: it would be a second truth to keep in
//! step. A scan of a million rows takes milliseconds, and it happens only when a broker is fenced,
//! unfenced, shut down or unregistered. The order of the results is that of
//! [`Image::topics_unordered`], and by index inside a topic.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::topics::PartitionRow;
use super::{Image, Partition, TopicRef};
use crate::types::{NodeId, PartitionId};

/// A partition that a scan found.
pub type Found<'a> = (TopicRef<'a>, PartitionId, Partition<'a>);

/// Where a scan may be broken off: at a partition, or at a topic where a scan says so. It stays
/// good while the image changes: topics stay where they are; one that is created later may get any
/// place that is free, so partitions that come meanwhile may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    slot: usize,
    index: i32,
}

impl Image {
    /// Looks at partitions from `from` on, at most `looks_max` of them, and gives those that are
    /// `wanted` to `visit`, until that returns false. Returns where to go on, `None` at the end.
    /// The order is that of [`Self::partitions`].
    pub fn walk<'a>(
        &'a self,
        from: Place,
        looks_max: usize,
        wanted: impl Fn(Partition<'a>) -> bool,
        mut visit: impl FnMut(Found<'a>) -> bool,
    ) -> Option<Place> {
        let pools = &self.topics.pools;
        let mut looks = 0;
        for slot in from.slot..self.topics.slot_range().end {
            let Some(topic) = self.topics.slot(slot) else {
                continue;
            };
            let first = if slot == from.slot { from.index } else { 0 };
            let rows = topic.rows().skip_while(|(id, _)| id.0 < first);
            for (id, row) in rows {
                let next = Place {
                    slot,
                    index: id.0.saturating_add(1),
                };
                let partition = Partition { row, pools };
                let topic = TopicRef { topic, pools };
                if wanted(partition) && !visit((topic, id, partition)) {
                    return Some(next);
                }
                looks += 1;
                if looks >= looks_max {
                    return Some(next);
                }
            }
        }
        None
    }

    /// Every partition.
    pub fn partitions(&self) -> impl Iterator<Item = Found<'_>> {
        self.scan(|_| true)
    }

    /// The partitions with `broker` among their replicas.
    pub fn partitions_with_replica(&self, broker: NodeId) -> impl Iterator<Item = Found<'_>> {
        let marked = self.lists_with(broker);
        self.scan(move |row| marked[row.replicas as usize])
    }

    /// The partitions with `broker` in their ISR.
    pub fn partitions_with_isr_member(&self, broker: NodeId) -> impl Iterator<Item = Found<'_>> {
        let marked = self.lists_with(broker);
        self.scan(move |row| marked[row.isr as usize])
    }

    /// The same from a place on and around to it, each with the place of its topic: for a scan
    /// that is broken off and goes on later. It goes on with the topic that it was broken off in:
    /// whoever breaks off must have changed some of it. A place means nothing but where to go on.
    pub fn partitions_with_isr_member_around(
        &self,
        broker: NodeId,
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        let marked = self.lists_with(broker);
        self.scan_around(from, move |row| marked[row.isr as usize])
    }

    /// The partitions without a leader, from a place on to the end, of which a replica is on one
    /// of `brokers`; each with its own place. It goes on with the very partition that it was broken
    /// off at, however many of its topic were looked at in vain.
    pub fn partitions_without_leader_from(
        &self,
        brokers: impl Fn(NodeId) -> bool,
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        let lists = &self.topics.pools.lists;
        let marked = lists.mark(|list| list.iter().any(|id| brokers(NodeId(*id))));
        self.scan_from(from, move |row| {
            row.leader == NodeId::NONE.0 && marked[row.replicas as usize]
        })
    }

    /// The partitions with `broker` among their eligible leader replicas.
    pub fn partitions_with_elr_member(&self, broker: NodeId) -> impl Iterator<Item = Found<'_>> {
        let marked = self.rare_with_eligible(broker);
        self.scan(move |row| marked[row.rare as usize])
    }

    /// The partitions with `broker` in their ISR or among their eligible leader replicas, from a
    /// place on and around to it; see [`Self::partitions_with_isr_member_around`].
    pub fn partitions_with_member_around(
        &self,
        broker: NodeId,
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        self.scan_around(from, self.is_member(broker))
    }

    /// The same from a place on to the end, each with its own place.
    pub fn partitions_with_member_from(
        &self,
        broker: NodeId,
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        self.scan_from(from, self.is_member(broker))
    }

    /// The partitions that `broker` leads.
    pub fn partitions_with_leader(&self, broker: NodeId) -> impl Iterator<Item = Found<'_>> {
        self.scan(move |row| row.leader == broker.0)
    }

    /// The partitions without a leader.
    pub fn partitions_without_leader(&self) -> impl Iterator<Item = Found<'_>> {
        self.scan(|row| row.leader == NodeId::NONE.0)
    }

    /// The partitions without a leader that have `broker` among their replicas.
    pub fn partitions_without_leader_with_replica(
        &self,
        broker: NodeId,
    ) -> impl Iterator<Item = Found<'_>> {
        let marked = self.lists_with(broker);
        self.scan(move |row| row.leader == NodeId::NONE.0 && marked[row.replicas as usize])
    }

    /// The partitions whose replica on `broker` is in one of `directories`, from a place on to the
    /// end, each with its own place.
    pub fn partitions_in_directories_from(
        &self,
        broker: NodeId,
        directories: &[Uuid],
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        let pools = &self.topics.pools;
        let lists = self.lists_with(broker);
        let wanted: BTreeSet<Uuid> = directories.iter().copied().collect();
        let marked = pools
            .directories
            .mark(|list| list.iter().any(|id| wanted.contains(id)));
        let found = self.scan_from(from, move |row| {
            lists[row.replicas as usize] && marked[row.directories as usize]
        });
        found.filter(lies_in(broker, directories))
    }

    /// Those of them with `broker` in their ISR, from a place on and around to it; see
    /// [`Self::partitions_with_isr_member_around`].
    pub fn partitions_in_sync_in_directories_around(
        &self,
        broker: NodeId,
        directories: &[Uuid],
        from: Place,
    ) -> impl Iterator<Item = (Place, Found<'_>)> {
        self.partitions_with_isr_member_around(broker, from)
            .filter(lies_in(broker, directories))
    }

    /// The partitions that a reassignment is moving.
    pub fn partitions_reassigning(&self) -> impl Iterator<Item = Found<'_>> {
        let pools = &self.topics.pools;
        let marked = pools
            .rare
            .mark(|rare| rare.adding != 0 || rare.removing != 0);
        self.scan(move |row| marked[row.rare as usize])
    }

    /// The partitions whose leader is not their first replica.
    pub fn partitions_not_led_by_preferred(&self) -> impl Iterator<Item = Found<'_>> {
        let pools = &self.topics.pools;
        let preferred: Vec<i32> = pools.lists.values().map(|list| first_of(list)).collect();
        self.scan(move |row| row.leader != preferred[row.replicas as usize])
    }

    /// How many partitions `broker` leads.
    #[must_use]
    pub fn leader_count(&self, broker: NodeId) -> usize {
        self.partitions_with_leader(broker).count()
    }

    fn lists_with(&self, broker: NodeId) -> Vec<bool> {
        self.topics
            .pools
            .lists
            .mark(|list| list.contains(&broker.0))
    }

    /// For every id of rare fields, whether `broker` is eligible in them.
    fn rare_with_eligible(&self, broker: NodeId) -> Vec<bool> {
        let lists = self.lists_with(broker);
        self.topics.pools.rare.mark(|rare| lists[rare.elr as usize])
    }

    fn is_member(&self, broker: NodeId) -> impl Fn(&PartitionRow) -> bool + use<> {
        let (lists, rare) = (self.lists_with(broker), self.rare_with_eligible(broker));
        move |row| lists[row.isr as usize] || rare[row.rare as usize]
    }

    fn scan_around<'a>(
        &'a self,
        from: Place,
        wanted: impl Fn(&PartitionRow) -> bool + 'a,
    ) -> impl Iterator<Item = (Place, Found<'a>)> {
        let places = self.topics.slot_range();
        let from = from.slot.min(places.end);
        self.scan_slots((from..places.end).chain(0..from), wanted)
    }

    fn scan_from<'a>(
        &'a self,
        from: Place,
        wanted: impl Fn(&PartitionRow) -> bool + 'a,
    ) -> impl Iterator<Item = (Place, Found<'a>)> {
        let slots = from.slot..self.topics.slot_range().end;
        let found = self.scan_slots(slots, wanted);
        found.skip_while(move |(at, _)| at.slot == from.slot && at.index < from.index)
    }

    fn scan_slots<'a>(
        &'a self,
        slots: impl Iterator<Item = usize> + 'a,
        wanted: impl Fn(&PartitionRow) -> bool + 'a,
    ) -> impl Iterator<Item = (Place, Found<'a>)> {
        let pools = &self.topics.pools;
        let topics = slots.filter_map(|at| Some((at, self.topics.slot(at)?)));
        let rows =
            topics.flat_map(|(at, topic)| topic.rows().map(move |(id, row)| (at, topic, id, row)));
        rows.filter(move |(.., row)| wanted(row))
            .map(move |(slot, topic, id, row)| {
                let topic = TopicRef { topic, pools };
                let at = Place { slot, index: id.0 };
                (at, (topic, id, Partition { row, pools }))
            })
    }

    fn scan<'a>(
        &'a self,
        wanted: impl Fn(&PartitionRow) -> bool + 'a,
    ) -> impl Iterator<Item = Found<'a>> {
        self.scan_slots(self.topics.slot_range(), wanted)
            .map(|(_, found)| found)
    }
}

/// Does the replica on `broker` lie in one of `directories`?
fn lies_in(
    broker: NodeId,
    directories: &[Uuid],
) -> impl FnMut(&(Place, Found<'_>)) -> bool + use<> {
    let wanted: BTreeSet<Uuid> = directories.iter().copied().collect();
    move |(_, (_, _, partition))| {
        let directory = partition.directory_of(broker.0);
        directory.is_some_and(|id| wanted.contains(&id))
    }
}

fn first_of(list: &[i32]) -> i32 {
    list.first().copied().unwrap_or(NodeId::NONE.0)
}
