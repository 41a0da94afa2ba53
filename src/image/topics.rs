//! Topics and partitions: dense slots, 32-byte rows of interned list ids, and the lookups by name,
//! by id and by the name with `.` and `_` made equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use uuid::Uuid;

use super::index::{Index, hash_of};
use super::intern::Pool;
use super::slots::Slots;
use super::sweep::Sweep;
use super::table::Table;
use crate::types::{NodeId, PartitionId};

/// One partition. The u32 fields are ids in [`Pools`].
///
/// A million rows are 32 MB, which is what lets every voter keep the whole image warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionRow {
    pub(super) replicas: u32,
    pub(super) isr: u32,
    pub(super) directories: u32,
    /// Adding, removing and (last known) eligible leader replicas; 0 when all are empty.
    pub(super) rare: u32,
    pub(super) leader: i32,
    pub(super) leader_epoch: i32,
    pub(super) partition_epoch: i32,
    pub(super) recovering: bool,
}

const _: () = assert!(size_of::<PartitionRow>() == 32);

/// The lists that few partitions have, as ids of [`Pools::lists`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rare {
    pub(super) adding: u32,
    pub(super) removing: u32,
    pub(super) elr: u32,
    pub(super) last_known_elr: u32,
}

impl Rare {
    /// The ids of all four.
    pub(super) const fn lists(self) -> [u32; 4] {
        [self.adding, self.removing, self.elr, self.last_known_elr]
    }
}

impl From<&Self> for Rare {
    fn from(rare: &Self) -> Self {
        *rare
    }
}

/// Broker ids. Up to four are kept in place: a lookup in a pool of many lists costs the memory that
/// it touches, and nothing else.
pub(super) type BrokerList = SmallVec<[i32; 4]>;

/// Directory ids, of up to three replicas in place.
pub(super) type DirectoryList = SmallVec<[Uuid; 3]>;

/// What the ids in partition rows stand for. Id 0 is empty in each pool.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    pub(super) lists: Pool<BrokerList>,
    pub(super) directories: Pool<DirectoryList>,
    pub(super) rare: Pool<Rare>,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            lists: Pool::starting_with::<[i32]>(BrokerList::new()),
            directories: Pool::starting_with::<[Uuid]>(DirectoryList::new()),
            rare: Pool::starting_with::<Rare>(Rare::default()),
        }
    }
}

impl Pools {
    /// True when another than the first replica leads, or nobody does.
    pub(super) fn is_unpreferred(&self, row: &PartitionRow) -> bool {
        let first = self.lists.value(row.replicas).first().copied();
        first.unwrap_or(NodeId::NONE.0) != row.leader
    }
}

/// A topic's row.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    pub(super) id: Uuid,
    pub(super) name: Arc<str>,
    /// The partitions 0, 1, 2 ... without a gap.
    dense: Table<PartitionRow>,
    /// Partitions whose predecessors have not been replayed yet. Records may come in any order, and
    /// an index from a record must never size an allocation.
    sparse: Option<Arc<BTreeMap<i32, PartitionRow>>>,
}

impl Topic {
    fn new(name: &str, id: Uuid) -> Self {
        Self {
            id,
            name: Arc::from(name),
            dense: Table::default(),
            sparse: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.dense.len() + self.sparse.as_ref().map_or(0, |sparse| sparse.len())
    }

    pub(super) fn row(&self, index: i32) -> Option<&PartitionRow> {
        self.dense
            .get(usize::try_from(index).ok()?)
            .or_else(|| self.sparse.as_ref()?.get(&index))
    }

    /// The rows in order of their index.
    pub(super) fn rows(&self) -> impl Iterator<Item = (PartitionId, &PartitionRow)> + Clone {
        let sparse = self.sparse.iter().flat_map(|sparse| sparse.iter());
        (0..)
            .map(PartitionId)
            .zip(self.dense.iter())
            .chain(sparse.map(|(index, row)| (PartitionId(*index), row)))
    }

    /// The indexes of all rows of either that are not in memory which both share, in any order
    /// and maybe twice.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = i32> + 'a {
        let shared = match (&self.sparse, &other.sparse) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let sparse = [&self.sparse, &other.sparse];
        let sparse = sparse.into_iter().filter(move |_| !shared).flatten();
        let dense = self.dense.differing(&other.dense);
        // Rows are numbered with i32.
        dense
            .map(|at| at as i32)
            .chain(sparse.flat_map(|rows| rows.keys().copied()))
    }

    /// Sets a row, new or not. Returns the old one.
    fn set_row(&mut self, index: u32, row: PartitionRow) -> Option<PartitionRow> {
        if let Some(known) = self.dense.get_mut(index as usize) {
            return Some(std::mem::replace(known, row));
        }
        let number = index.cast_signed();
        if index as usize > self.dense.len() {
            let sparse = self.sparse.get_or_insert_default();
            return Arc::make_mut(sparse).insert(number, row);
        }
        self.dense.push(row);
        self.draw_in();
        None
    }

    /// Moves the rows that have become contiguous from `sparse` to `dense`.
    fn draw_in(&mut self) {
        let Some(sparse) = &mut self.sparse else {
            return;
        };
        while let Ok(next) = i32::try_from(self.dense.len()) {
            let Some(row) = sparse.get(&next).copied() else {
                break;
            };
            Arc::make_mut(sparse).remove(&next);
            self.dense.push(row);
        }
        if sparse.is_empty() {
            self.sparse = None;
        }
    }
}

/// All topics.
#[derive(Clone, Debug, Default)]
pub(super) struct Topics {
    slots: Slots<Topic>,
    by_name: Index,
    by_id: Index,
    /// Only names with `.` or `_` in them: no other name can collide.
    by_folded_name: Index,
    partition_count: usize,
    /// Partitions without a leader.
    leaderless_count: usize,
    /// Partitions that another than their first replica leads, or nobody.
    unpreferred_count: usize,
    pub(super) pools: Pools,
    /// How far the sweep of the pools is.
    pub(super) sweep: Sweep,
}

/// The name with every `.` as `_`: two topics whose folded names are equal would have the same
/// metric names, so Kafka refuses the second one.
pub(super) fn folded(name: &str) -> String {
    name.replace('.', "_")
}

/// True when a folded name can collide with another.
fn can_collide(name: &str) -> bool {
    name.contains(['.', '_'])
}

impl Topics {
    pub(super) fn topic_count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// How many partitions have no leader.
    pub(super) const fn leaderless_count(&self) -> usize {
        self.leaderless_count
    }

    /// How many partitions are not led by their first replica.
    pub(super) const fn unpreferred_count(&self) -> usize {
        self.unpreferred_count
    }

    /// The topic in a slot, beside the pools.
    pub(super) fn slot_and_pools(&mut self, at: usize) -> (Option<&Topic>, &mut Pools) {
        (self.slots.get(at), &mut self.pools)
    }

    pub(super) fn slot(&self, at: usize) -> Option<&Topic> {
        self.slots.get(at)
    }

    /// The positions of all slots, used or not.
    pub(super) fn slot_range(&self) -> std::ops::Range<usize> {
        self.slots.range()
    }

    /// The topics in order of their slots.
    pub(super) fn in_slot_order(&self) -> impl Iterator<Item = &Topic> + Clone {
        self.slots.iter()
    }

    pub(super) fn find_name(&self, name: &str) -> Option<usize> {
        self.by_name.find(hash_of(name), |at| {
            self.slot(at).is_some_and(|topic| &*topic.name == name)
        })
    }

    pub(super) fn find_id(&self, id: Uuid) -> Option<usize> {
        self.by_id.find(hash_of(&id), |at| {
            self.slot(at).is_some_and(|topic| topic.id == id)
        })
    }

    /// The topics (other than `name` itself) whose folded names equal that of `name`.
    pub(super) fn colliding(&self, name: &str) -> Vec<&Topic> {
        if !can_collide(name) {
            return Vec::new();
        }
        let wanted = folded(name);
        self.by_folded_name
            .candidates(hash_of(wanted.as_str()))
            .filter_map(|at| self.slot(at))
            .filter(|topic| &*topic.name != name && folded(&topic.name) == wanted)
            .collect()
    }

    /// Adds a topic. The caller has checked that neither its name nor its id is taken.
    pub(super) fn add(&mut self, name: &str, id: Uuid) {
        let at = self.slots.add(Topic::new(name, id));
        self.by_name.insert(hash_of(name), at);
        self.by_id.insert(hash_of(&id), at);
        if can_collide(name) {
            self.by_folded_name
                .insert(hash_of(folded(name).as_str()), at);
        }
    }

    /// Takes out the topic in a slot, with its partitions.
    pub(super) fn remove(&mut self, at: usize) -> Option<Topic> {
        let topic = self.slots.remove(at)?;
        self.partition_count -= topic.len();
        for (_, row) in topic.rows() {
            self.leaderless_count -= usize::from(row.leader == NodeId::NONE.0);
            self.unpreferred_count -= usize::from(self.pools.is_unpreferred(row));
        }
        self.by_name.remove(hash_of(&*topic.name), at);
        self.by_id.remove(hash_of(&topic.id), at);
        if can_collide(&topic.name) {
            let hash = hash_of(folded(&topic.name).as_str());
            self.by_folded_name.remove(hash, at);
        }
        Some(topic)
    }

    /// Sets the row of a partition, new or not, of the topic in slot `at`.
    pub(super) fn set_row(&mut self, at: usize, index: u32, row: PartitionRow) {
        let Some(topic) = self.slots.get_mut(at) else {
            return;
        };
        let (leaderless, unpreferred) = (
            row.leader == NodeId::NONE.0,
            self.pools.is_unpreferred(&row),
        );
        match topic.set_row(index, row) {
            None => self.partition_count += 1,
            Some(old) => {
                self.leaderless_count -= usize::from(old.leader == NodeId::NONE.0);
                self.unpreferred_count -= usize::from(self.pools.is_unpreferred(&old));
            }
        }
        self.leaderless_count += usize::from(leaderless);
        self.unpreferred_count += usize::from(unpreferred);
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Topic> {
        self.slot(self.find_name(name)?)
    }

    /// What is in the slots that are not in memory which both share: ours and theirs.
    pub(super) fn differing<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a Topic>, Option<&'a Topic>)> {
        self.slots.differing(&other.slots)
    }

    /// True when both hold the same memory.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.slots.is_same(&other.slots)
    }
}

/// A topic of an image.
#[derive(Clone, Copy, Debug)]
pub struct TopicRef<'a> {
    pub(super) topic: &'a Topic,
    pub(super) pools: &'a Pools,
}

impl<'a> TopicRef<'a> {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        &self.topic.name
    }

    /// The id, which no other topic ever has.
    #[must_use]
    pub fn id(self) -> Uuid {
        self.topic.id
    }

    /// How many partitions the topic has.
    #[must_use]
    pub fn partition_count(self) -> usize {
        self.topic.len()
    }

    /// One partition, `None` when the topic has no such index.
    #[must_use]
    pub fn partition(self, id: PartitionId) -> Option<Partition<'a>> {
        let row = self.topic.row(id.0)?;
        Some(Partition {
            row,
            pools: self.pools,
        })
    }

    /// The partitions in order of their index.
    pub fn partitions(self) -> impl Iterator<Item = (PartitionId, Partition<'a>)> {
        let pools = self.pools;
        self.topic
            .rows()
            .map(move |(id, row)| (id, Partition { row, pools }))
    }
}

/// A partition of an image. Lists are in the order of the record that wrote them.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    pub(super) row: &'a PartitionRow,
    pub(super) pools: &'a Pools,
}

impl<'a> Partition<'a> {
    /// The assigned brokers; the first one is the preferred leader.
    #[must_use]
    pub fn replicas(self) -> &'a [i32] {
        self.pools.lists.value(self.row.replicas)
    }

    /// The in-sync replicas.
    #[must_use]
    pub fn isr(self) -> &'a [i32] {
        self.pools.lists.value(self.row.isr)
    }

    /// The log directory of each replica, in the order of [`Self::replicas`] (KIP-858). Always as
    /// long as the replicas: a record without directories means "migrating" for each.
    #[must_use]
    pub fn directories(self) -> &'a [Uuid] {
        self.pools.directories.value(self.row.directories)
    }

    /// Replicas that a reassignment is adding; they are among the replicas already.
    #[must_use]
    pub fn adding(self) -> &'a [i32] {
        self.pools.lists.value(self.rare().adding)
    }

    /// Replicas that a reassignment is going to remove; they are still among the replicas.
    #[must_use]
    pub fn removing(self) -> &'a [i32] {
        self.pools.lists.value(self.rare().removing)
    }

    /// Eligible leader replicas (KIP-966).
    #[must_use]
    pub fn elr(self) -> &'a [i32] {
        self.pools.lists.value(self.rare().elr)
    }

    /// Last known members of the ELR, kept for an election when nobody else is left (KIP-966).
    #[must_use]
    pub fn last_known_elr(self) -> &'a [i32] {
        self.pools.lists.value(self.rare().last_known_elr)
    }

    /// The leader's id, -1 when there is none.
    #[must_use]
    pub fn leader(self) -> i32 {
        self.row.leader
    }

    /// Grows with every change that names a leader.
    #[must_use]
    pub fn leader_epoch(self) -> i32 {
        self.row.leader_epoch
    }

    /// Grows with every change.
    #[must_use]
    pub fn partition_epoch(self) -> i32 {
        self.row.partition_epoch
    }

    /// True after an unclean election until the leader reports that it has recovered (KIP-704).
    #[must_use]
    pub fn recovering(self) -> bool {
        self.row.recovering
    }

    /// True while replicas are being added or removed.
    #[must_use]
    pub fn reassigning(self) -> bool {
        !self.adding().is_empty() || !self.removing().is_empty()
    }

    /// True when the first replica leads, or when there is neither a replica nor a leader.
    #[must_use]
    pub fn led_by_preferred(self) -> bool {
        !self.pools.is_unpreferred(self.row)
    }

    /// The directory of the replica on `broker`, `None` when `broker` has no replica.
    #[must_use]
    pub fn directory_of(self, broker: i32) -> Option<Uuid> {
        let at = self.replicas().iter().position(|id| *id == broker)?;
        self.directories().get(at).copied()
    }

    /// True when it has neither a reassignment nor replicas that are or were eligible.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.rare() == Rare::default()
    }

    fn rare(self) -> Rare {
        *self.pools.rare.value(self.row.rare)
    }
}

impl PartialEq for Partition<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.replicas() == other.replicas()
            && self.isr() == other.isr()
            && self.directories() == other.directories()
            && self.adding() == other.adding()
            && self.removing() == other.removing()
            && self.elr() == other.elr()
            && self.last_known_elr() == other.last_known_elr()
            && self.leader() == other.leader()
            && self.leader_epoch() == other.leader_epoch()
            && self.partition_epoch() == other.partition_epoch()
            && self.recovering() == other.recovering()
    }
}

impl PartialEq for TopicRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
            && self.name() == other.name()
            && self.partition_count() == other.partition_count()
            && self.partitions().eq(other.partitions())
    }
}
