//! Replay of the records of topics and partitions.

use std::borrow::Cow;

use uuid::Uuid;

use super::topics::{PartitionRow, Pools, Rare, Topics};
use super::{Image, ReplayFault, configs};
use crate::records::{PartitionChangeRecord, PartitionRecord, TopicRecord};
use crate::types::ids;

/// "No change" in the leader field of a change record.
const LEADER_UNCHANGED: i32 = -2;
/// "No change" in the recovery field of a change record.
const RECOVERY_UNCHANGED: i8 = -1;

impl Image {
    pub(super) fn add_topic(&mut self, record: &TopicRecord) -> Result<(), ReplayFault> {
        if self.topics.find_name(&record.name).is_some() {
            return Err(ReplayFault::TopicNameTaken(record.name.clone()));
        }
        if self.topics.find_id(record.topic_id).is_some() {
            return Err(ReplayFault::TopicIdTaken(record.topic_id));
        }
        self.topics.add(&record.name, record.topic_id);
        Ok(())
    }

    pub(super) fn remove_topic(&mut self, id: Uuid) -> Result<(), ReplayFault> {
        let at = self.topics.find_id(id);
        let topic = at.and_then(|at| self.topics.remove(at));
        let topic = topic.ok_or(ReplayFault::UnknownTopic(id))?;
        self.configs.remove(configs::TOPIC, &topic.name);
        self.topics.sweep_if_due();
        Ok(())
    }

    pub(super) fn set_partition(&mut self, record: &PartitionRecord) -> Result<(), ReplayFault> {
        let at = self.topics.find_id(record.topic_id);
        let at = at.ok_or(ReplayFault::UnknownTopic(record.topic_id))?;
        let bad = |field, value: i64| ReplayFault::BadValue {
            record: "PARTITION_RECORD",
            field,
            value,
        };
        let index = u32::try_from(record.partition_id)
            .map_err(|_| bad("partitionId", i64::from(record.partition_id)))?;
        let recovering = recovering(record.leader_recovery_state).ok_or_else(|| {
            bad(
                "leaderRecoveryState",
                i64::from(record.leader_recovery_state),
            )
        })?;
        let directories = directories_for(&record.replicas, &record.directories)?;
        let pools = &mut self.topics.pools;
        let elr = record.eligible_leader_replicas.as_deref().unwrap_or(&[]);
        let last_known_elr = record.last_known_elr.as_deref().unwrap_or(&[]);
        let fields = [
            &*record.adding_replicas,
            &*record.removing_replicas,
            elr,
            last_known_elr,
        ];
        let rare = if fields.iter().all(|list| list.is_empty()) {
            0
        } else {
            let [adding, removing, elr, last_known_elr] =
                fields.map(|list| pools.lists.intern(list));
            pools.rare.intern(&Rare {
                adding,
                removing,
                elr,
                last_known_elr,
            })
        };
        let replicas = pools.lists.intern(&*record.replicas);
        let row = PartitionRow {
            replicas,
            isr: if record.isr == record.replicas {
                replicas
            } else {
                pools.lists.intern(&*record.isr)
            },
            directories: pools.directories.intern(&*directories),
            rare,
            leader: record.leader,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
            recovering,
        };
        self.topics.set_row(at, index, row);
        self.topics.sweep_if_due();
        Ok(())
    }

    pub(super) fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
    ) -> Result<(), ReplayFault> {
        let at = self.topics.find_id(record.topic_id);
        let at = at.ok_or(ReplayFault::UnknownTopic(record.topic_id))?;
        let known = self.topics.slot(at);
        let row = known.and_then(|topic| topic.row(record.partition_id));
        let unknown = ReplayFault::UnknownPartition(record.topic_id, record.partition_id);
        let row = *row.ok_or(unknown)?;
        let row = merged(row, record, &mut self.topics.pools)?;
        // Rows are found by indexes that are not negative only.
        self.topics
            .set_row(at, record.partition_id.cast_unsigned(), row);
        self.topics.sweep_if_due();
        Ok(())
    }

    /// Empties the ELR lists of one topic, or of all when `name` is empty. Like every change of a
    /// partition, this raises the partition epoch of those that had some.
    pub(super) fn clear_elr(&mut self, name: &str) -> Result<(), ReplayFault> {
        let slots = if name.is_empty() {
            self.topics.slot_range()
        } else {
            let at = self.topics.find_name(name);
            let at = at.ok_or_else(|| ReplayFault::UnknownTopicName(name.to_owned()))?;
            at..at + 1
        };
        for at in slots {
            for (index, row) in rows_with_elr(&self.topics, at) {
                let pools = &mut self.topics.pools;
                let mut rare = *pools.rare.value(row.rare);
                rare.elr = 0;
                rare.last_known_elr = 0;
                let cleared = PartitionRow {
                    rare: pools.rare.intern(&rare),
                    partition_epoch: row.partition_epoch.wrapping_add(1),
                    ..row
                };
                self.topics.set_row(at, index, cleared);
            }
        }
        self.topics.sweep_if_due();
        Ok(())
    }
}

/// The row after a change: the partition epoch always grows, the leader epoch when the record
/// names a leader, the same one included.
fn merged(
    mut row: PartitionRow,
    record: &PartitionChangeRecord,
    pools: &mut Pools,
) -> Result<PartitionRow, ReplayFault> {
    let recovery = record.leader_recovery_state;
    if recovery != RECOVERY_UNCHANGED {
        row.recovering = recovering(recovery).ok_or_else(|| ReplayFault::BadValue {
            record: "PARTITION_CHANGE_RECORD",
            field: "leaderRecoveryState",
            value: i64::from(recovery),
        })?;
    }
    if record.replicas.is_some() || record.directories.is_some() {
        let old_replicas = pools.lists.value(row.replicas).clone();
        let old_directories = pools.directories.value(row.directories).clone();
        let replicas = record.replicas.as_deref().unwrap_or(&old_replicas);
        let directories = record.directories.as_deref().unwrap_or(&old_directories);
        let directories = directories_for(replicas, directories)?;
        row.replicas = pools.lists.intern(replicas);
        row.directories = pools.directories.intern(&*directories);
    }
    if let Some(isr) = &record.isr {
        row.isr = pools.lists.intern(&**isr);
    }
    let mut rare = *pools.rare.value(row.rare);
    let mut set = |field: &mut u32, list: &Option<Vec<i32>>| {
        if let Some(list) = list {
            *field = pools.lists.intern(&**list);
        }
    };
    set(&mut rare.adding, &record.adding_replicas);
    set(&mut rare.removing, &record.removing_replicas);
    set(&mut rare.elr, &record.eligible_leader_replicas);
    set(&mut rare.last_known_elr, &record.last_known_elr);
    row.rare = pools.rare.intern(&rare);
    if record.leader != LEADER_UNCHANGED {
        row.leader = record.leader;
        row.leader_epoch = row.leader_epoch.wrapping_add(1);
    }
    row.partition_epoch = row.partition_epoch.wrapping_add(1);
    Ok(row)
}

fn recovering(state: i8) -> Option<bool> {
    match state {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A directory for each replica. None at all, or "migrating" for each, stands for "migrating" for
/// each replica, however many there are.
fn directories_for<'a>(
    replicas: &[i32],
    directories: &'a [Uuid],
) -> Result<Cow<'a, [Uuid]>, ReplayFault> {
    if directories.iter().all(|id| *id == ids::DIR_MIGRATING) {
        return Ok(vec![ids::DIR_MIGRATING; replicas.len()].into());
    }
    if replicas.len() != directories.len() {
        return Err(ReplayFault::DirectoriesMismatch {
            replicas: replicas.len(),
            directories: directories.len(),
        });
    }
    Ok(directories.into())
}

fn rows_with_elr(topics: &Topics, at: usize) -> Vec<(u32, PartitionRow)> {
    let rows = topics.slot(at).into_iter().flat_map(|topic| topic.rows());
    rows.filter(|(_, row)| {
        let rare = topics.pools.rare.value(row.rare);
        rare.elr != 0 || rare.last_known_elr != 0
    })
    .map(|(id, row)| (id.0.cast_unsigned(), *row))
    .collect()
}
