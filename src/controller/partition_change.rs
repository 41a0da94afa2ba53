//! One partition: from what is wanted to the smallest record that says it.
//!
//! The election rules live here (KIP-966 for eligible leader replicas, KIP-858 for directories,
//! KIP-455 for reassignment). Nobody else writes a `PartitionChangeRecord`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::levels;
use crate::image::{Image, Partition};
use crate::records::{PartitionChangeRecord, Record, VersionedRecord};
use crate::types::features::MetadataVersion;
use crate::types::ids::{DIR_MIGRATING, DIR_UNASSIGNED};
use crate::types::{NodeId, PartitionId, Uuid};

/// "No leader" in a record.
pub const NO_LEADER: i32 = -1;
/// "The leader does not change" in a record.
pub const NO_LEADER_CHANGE: i32 = -2;
/// `LeaderRecoveryState` on the wire.
pub const RECOVERED: i8 = 0;
/// See [`RECOVERED`].
pub const RECOVERING: i8 = 1;

/// How far an election may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// Move leadership to the first replica if that is possible.
    Preferred,
    /// Keep the leader if it is fit, else any replica that has all committed records.
    Online,
    /// Like `Online`, and as a last resort a replica that may lack records.
    Unclean,
}

/// What holds for the whole cluster while a change is computed.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// The level that decides record versions and gates.
    pub metadata_version: MetadataVersion,
    /// `eligible.leader.replicas.version` is at least 1.
    pub elr_enabled: bool,
    /// Where brokers and their directories are looked up.
    pub image: &'a Image,
}

impl<'a> Rules<'a> {
    /// The rules that hold in `image`, whose metadata.version is known.
    #[must_use]
    pub fn of(image: &'a Image) -> Self {
        Self {
            metadata_version: levels::metadata_version(image),
            elr_enabled: levels::elr_enabled(image),
            image,
        }
    }

    /// The directory of a new replica on `broker` (KIP-858): its only one, else "not assigned";
    /// "migrating" when the broker names no directories.
    #[must_use]
    pub fn default_directory(self, broker: i32) -> Uuid {
        match self
            .image
            .broker(NodeId(broker))
            .map(|it| it.directories.as_slice())
        {
            Some([]) => DIR_MIGRATING,
            Some([only]) => *only,
            _ => DIR_UNASSIGNED,
        }
    }

    /// May `broker` lead a partition whose replica there lies in `directory`?
    #[must_use]
    pub fn can_lead(self, broker: i32, active: bool, directory: Option<Uuid>) -> bool {
        let Some(directory) = directory else {
            return false;
        };
        active
            && self
                .image
                .broker(NodeId(broker))
                .is_some_and(|it| it.has_online_dir(directory))
    }

    /// May `broker` lead this partition, as it is and as the broker is?
    #[must_use]
    pub fn may_lead(self, partition: Partition<'_>, broker: i32) -> bool {
        let directory = partition.directory_of(broker);
        self.can_lead(broker, self.is_active(broker), directory)
    }

    /// Neither fenced nor shutting down.
    #[must_use]
    pub fn is_active(self, broker: i32) -> bool {
        self.image
            .broker(NodeId(broker))
            .is_some_and(crate::image::Broker::is_active)
    }
}

/// Brokers: those of the old partition until another list is wanted. Most changes, and there may be
/// a hundred thousand at once, keep most lists.
type Ids<'a> = Cow<'a, [i32]>;

/// A wanted change of one partition.
pub struct Change<'a> {
    topic_id: Uuid,
    partition_id: PartitionId,
    old: Partition<'a>,
    rules: Rules<'a>,
    /// May this broker lead? (Active, and its directory online.)
    acceptable: &'a dyn Fn(i32) -> bool,
    min_isr: usize,
    /// Those that change.
    directories: BTreeMap<i32, Uuid>,
    isr: Ids<'a>,
    replicas: Ids<'a>,
    removing: Ids<'a>,
    adding: Ids<'a>,
    elr: Ids<'a>,
    unclean_shutdown: Option<i32>,
    election: Election,
    recovery: i8,
}

struct Elected {
    leader: i32,
    unclean: bool,
}

impl<'a> Change<'a> {
    /// A change of nothing yet. `min_isr` is the effective min.insync.replicas, at most the
    /// replication factor.
    pub fn of(
        topic_id: Uuid,
        partition_id: PartitionId,
        old: Partition<'a>,
        rules: Rules<'a>,
        acceptable: &'a dyn Fn(i32) -> bool,
        min_isr: usize,
    ) -> Self {
        Self {
            topic_id,
            partition_id,
            rules,
            acceptable,
            min_isr,
            directories: BTreeMap::new(),
            isr: Cow::Borrowed(old.isr()),
            replicas: Cow::Borrowed(old.replicas()),
            removing: Cow::Borrowed(old.removing()),
            adding: Cow::Borrowed(old.adding()),
            elr: Cow::Borrowed(old.elr()),
            unclean_shutdown: None,
            election: Election::Online,
            recovery: if old.recovering() {
                RECOVERING
            } else {
                RECOVERED
            },
            old,
        }
    }

    /// The in-sync replicas wanted.
    #[must_use]
    pub fn isr(mut self, isr: Vec<i32>) -> Self {
        self.isr = Cow::Owned(isr);
        self
    }

    /// The replicas wanted; those that are new get their broker's default directory.
    #[must_use]
    pub fn replicas(mut self, replicas: Vec<i32>) -> Self {
        self.replicas = Cow::Owned(replicas);
        self
    }

    /// The replicas that a reassignment is to remove.
    #[must_use]
    pub fn removing(mut self, removing: Vec<i32>) -> Self {
        self.removing = Cow::Owned(removing);
        self
    }

    /// The replicas that a reassignment is to add.
    #[must_use]
    pub fn adding(mut self, adding: Vec<i32>) -> Self {
        self.adding = Cow::Owned(adding);
        self
    }

    /// How far an election may go.
    #[must_use]
    pub const fn election(mut self, election: Election) -> Self {
        self.election = election;
        self
    }

    /// The leader recovery state wanted.
    #[must_use]
    pub const fn recovery(mut self, recovery: i8) -> Self {
        self.recovery = recovery;
        self
    }

    /// A replica that is known to have lost records: it may not become eligible (KIP-966).
    #[must_use]
    pub const fn unclean_shutdown(mut self, broker: i32) -> Self {
        self.unclean_shutdown = Some(broker);
        self
    }

    /// The directory of one replica.
    #[must_use]
    pub fn directory(mut self, broker: i32, directory: Uuid) -> Self {
        self.directories.insert(broker, directory);
        self
    }

    /// The record, or `None` when nothing changes.
    #[must_use]
    pub fn record(mut self) -> Option<VersionedRecord> {
        let mut record = PartitionChangeRecord {
            topic_id: self.topic_id,
            partition_id: self.partition_id.0,
            ..PartitionChangeRecord::default()
        };
        self.complete_reassignment();
        self.find_eligible();
        self.elect(&mut record);
        if record.leader == NO_LEADER_CHANGE && !contains_all(&self.replicas, self.old.replicas()) {
            // Replicas go: a new leader epoch makes their fetches fail at once.
            record.leader = self.old.leader();
        }
        self.write_eligible(&mut record);
        let may_write_isr = !self.isr.is_empty() || self.rules.elr_enabled;
        if record.isr.is_none() && may_write_isr && *self.isr != *self.old.isr() {
            record.isr = Some(self.isr.to_vec());
        }
        self.bump_epoch_on_shrink(&mut record);
        self.write_last_leader(&mut record);
        self.write_assignment(&mut record);
        let old_recovery = if self.old.recovering() {
            RECOVERING
        } else {
            RECOVERED
        };
        if self.recovery != old_recovery {
            record.leader_recovery_state = self.recovery;
        }
        if is_empty(&record) {
            return None;
        }
        Some(VersionedRecord {
            version: self
                .rules
                .metadata_version
                .partition_change_record_version(),
            record: Record::PartitionChange(record),
        })
    }

    /// A reassignment is over once the in-sync replicas cover what it adds (KIP-455).
    fn complete_reassignment(&mut self) {
        if self.removing.is_empty() && self.adding.is_empty() {
            return;
        }
        let keep = |list: &[i32]| -> Vec<i32> {
            list.iter()
                .copied()
                .filter(|id| !self.removing.contains(id))
                .collect()
        };
        let isr = keep(&self.isr);
        let replicas = keep(&self.replicas);
        let emptied = !self.removing.is_empty() && (isr.is_empty() || replicas.is_empty());
        let shrinks = self.adding.len() < self.removing.len();
        if emptied
            || !contains_all(&isr, &self.adding)
            || (shrinks && !contains_all(&isr, &replicas))
        {
            return;
        }
        self.isr = Cow::Owned(isr);
        self.replicas = Cow::Owned(replicas);
        self.removing = Cow::default();
        self.adding = Cow::default();
    }

    /// Replicas that left the in-sync set while it is too small stay eligible (KIP-966).
    fn find_eligible(&mut self) {
        if !self.rules.elr_enabled {
            return;
        }
        if self.isr.len() >= self.min_isr {
            self.elr = Cow::default();
            return;
        }
        let mut candidates: Vec<i32> = Vec::new();
        for id in self.elr.iter().chain(self.old.isr()) {
            if !candidates.contains(id) {
                candidates.push(*id);
            }
        }
        // The reference keeps them in a hash set of 16 buckets. The order means nothing, but a
        // different one would be written as a change.
        candidates.sort_by_key(|id| (id ^ (id >> 16)) & 15);
        candidates.retain(|id| !self.isr.contains(id) && self.unclean_shutdown != Some(*id));
        self.elr = Cow::Owned(candidates);
    }

    fn elect(&mut self, record: &mut PartitionChangeRecord) {
        let elected = self.elected();
        if elected.leader == self.old.leader() {
            return;
        }
        if self.elr.contains(&elected.leader) {
            self.isr = Cow::Owned(vec![elected.leader]);
            self.elr.to_mut().retain(|&id| id != elected.leader);
        }
        record.leader = elected.leader;
        if elected.unclean {
            // It may lack records that the others have: only its own copy counts from here on.
            record.isr = Some(vec![elected.leader]);
            if !self.old.recovering() {
                record.leader_recovery_state = RECOVERING;
            }
        }
    }

    fn elected(&self) -> Elected {
        let clean = |leader| Elected {
            leader,
            unclean: false,
        };
        if self.election == Election::Preferred
            && let Some(&preferred) = self.replicas.first()
            && self.is_valid(preferred)
        {
            return clean(preferred);
        }
        if self.is_valid(self.old.leader()) {
            return clean(self.old.leader());
        }
        if let Some(&other) = self.replicas.iter().find(|&&id| self.is_valid(id)) {
            return clean(other);
        }
        if let Some(leader) = self.last_known_leader() {
            return Elected {
                leader,
                unclean: true,
            };
        }
        if self.election == Election::Unclean
            && let Some(&any) = self.replicas.iter().find(|&&id| (self.acceptable)(id))
        {
            return Elected {
                leader: any,
                unclean: true,
            };
        }
        clean(NO_LEADER)
    }

    fn is_valid(&self, broker: i32) -> bool {
        let complete =
            self.isr.contains(&broker) || (self.isr.is_empty() && self.elr.contains(&broker));
        complete && (self.acceptable)(broker)
    }

    /// The one replica that led last, when no other has a claim (KIP-966, "unclean recovery").
    fn last_known_leader(&self) -> Option<i32> {
        if !self.rules.elr_enabled || !self.elr.is_empty() || !self.isr.is_empty() {
            return None;
        }
        match self.old.last_known_elr() {
            [last] if (self.acceptable)(*last) => Some(*last),
            _ => None,
        }
    }

    fn write_eligible(&mut self, record: &mut PartitionChangeRecord) {
        let clean = record.isr.is_none();
        if !clean || !self.rules.elr_enabled {
            self.elr = Cow::default();
        }
        if *self.elr != *self.old.elr() {
            record.eligible_leader_replicas = Some(self.elr.to_vec());
        }
    }

    /// Below 3.6-IV0 brokers rely on a new leader epoch to see that the in-sync set shrank.
    fn bump_epoch_on_shrink(&self, record: &mut PartitionChangeRecord) {
        if !self
            .rules
            .metadata_version
            .bumps_leader_epoch_on_isr_shrink()
            || record.leader != NO_LEADER_CHANGE
        {
            return;
        }
        if record
            .isr
            .as_ref()
            .is_some_and(|isr| !contains_all(isr, self.old.isr()))
        {
            record.leader = self.old.leader();
        }
    }

    fn write_last_leader(&self, record: &mut PartitionChangeRecord) {
        if !self.rules.elr_enabled {
            return;
        }
        if record.leader == NO_LEADER && self.old.last_known_elr().is_empty() {
            record.last_known_elr = Some(vec![self.old.leader()]);
        } else if record.leader >= 0 && !self.old.last_known_elr().is_empty() {
            record.last_known_elr = Some(Vec::new());
        }
    }

    fn directory_of(&self, broker: i32) -> Uuid {
        let known = self.directories.get(&broker).copied();
        known
            .or_else(|| self.old.directory_of(broker))
            .unwrap_or_else(|| self.rules.default_directory(broker))
    }

    fn write_assignment(&self, record: &mut PartitionChangeRecord) {
        if !self.replicas.is_empty() {
            let same = self.directories.is_empty() && *self.replicas == *self.old.replicas();
            if !same && self.rules.metadata_version.directory_assignment() {
                let directories = self.replicas.iter().map(|id| self.directory_of(*id));
                if !directories
                    .clone()
                    .eq(self.old.directories().iter().copied())
                {
                    record.directories = Some(directories.collect());
                }
            }
            if *self.replicas != *self.old.replicas() {
                record.replicas = Some(self.replicas.to_vec());
            }
        }
        if *self.removing != *self.old.removing() {
            record.removing_replicas = Some(self.removing.to_vec());
        }
        if *self.adding != *self.old.adding() {
            record.adding_replicas = Some(self.adding.to_vec());
        }
    }
}

fn contains_all(set: &[i32], wanted: &[i32]) -> bool {
    wanted.iter().all(|id| set.contains(id))
}

fn is_empty(record: &PartitionChangeRecord) -> bool {
    record.isr.is_none()
        && record.eligible_leader_replicas.is_none()
        && record.last_known_elr.is_none()
        && record.leader == NO_LEADER_CHANGE
        && record.replicas.is_none()
        && record.removing_replicas.is_none()
        && record.adding_replicas.is_none()
        && record.leader_recovery_state == -1
        && record.directories.is_none()
}

#[cfg(test)]
mod tests;
