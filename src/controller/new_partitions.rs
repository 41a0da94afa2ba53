//! What creating topics and growing them have in common: the state of a new partition.

use super::Soft;
use super::partition_change::Rules;
use super::placement::{self, UsableBroker};
use crate::image::{Broker, Image};
use crate::records::{PartitionRecord, Record, VersionedRecord};
use crate::types::{NodeId, Uuid};

/// The replicas of a partition to be created, and those of them that start in sync.
#[derive(Clone, Debug)]
pub(super) struct NewPartition {
    replicas: Vec<i32>,
    isr: Vec<i32>,
}

impl NewPartition {
    /// The replicas on active brokers are in sync from the start: an empty log is equal to every
    /// other. `None` when there is none: nobody could lead.
    pub(super) fn assigned(image: &Image, replicas: Vec<i32>) -> Option<Self> {
        let isr: Vec<i32> = replicas
            .iter()
            .copied()
            .filter(|id| image.broker(NodeId(*id)).is_some_and(Broker::is_active))
            .collect();
        (!isr.is_empty()).then_some(Self { replicas, isr })
    }

    /// How many replicas it has.
    pub(super) const fn replica_count(&self) -> usize {
        self.replicas.len()
    }

    /// The record that creates it, at the version of the image's `metadata.version`.
    pub(super) fn record(self, image: &Image, topic_id: Uuid, index: i32) -> VersionedRecord {
        let rules = Rules::of(image);
        let directories = if rules.metadata_version.directory_assignment() {
            let of = |id: &i32| rules.default_directory(*id);
            self.replicas.iter().map(of).collect()
        } else {
            Vec::new()
        };
        let record = PartitionRecord {
            partition_id: index,
            topic_id,
            leader: self.isr[0],
            replicas: self.replicas,
            isr: self.isr,
            leader_epoch: 0,
            partition_epoch: 0,
            directories,
            ..PartitionRecord::default()
        };
        Record::Partition(record).at(rules.metadata_version.partition_record_version())
    }
}

/// True unless every log directory of the broker is cordoned (KIP-1066).
fn has_uncordoned_directory(broker: &Broker) -> bool {
    let Some(cordoned) = &broker.cordoned else {
        return true;
    };
    broker.directories.is_empty() || broker.directories.iter().any(|id| !cordoned.contains(id))
}

/// False for a broker of a log of Java's that registered with an id below 0: as a replica it would
/// be nobody.
const fn has_id(id: NodeId) -> bool {
    id.0 >= 0
}

/// Chooses replicas by [`placement`], over the brokers that are not shutting down and have a
/// directory left that takes new replicas.
pub(super) fn place(
    image: &Image,
    soft: &mut Soft,
    partitions: usize,
    replicas: usize,
) -> Result<Vec<Vec<i32>>, String> {
    let usable: Vec<UsableBroker<'_>> = image
        .brokers()
        .values()
        .filter(|broker| has_id(broker.id))
        // One that leaves. A registration says so until the next one; as in Java, a broker that
        // registered again on its way out is taken to stay until it says otherwise.
        .filter(|broker| soft.brokers.shutdown_offset(broker.id).is_none())
        .filter(|broker| has_uncordoned_directory(broker))
        .map(|broker| UsableBroker {
            id: broker.id.0,
            rack: broker.rack.as_deref(),
            fenced: broker.fenced,
        })
        .collect();
    placement::place(&mut soft.rng, &usable, partitions, replicas)
}

/// Checks replicas that a request names. `expected` is the number of replicas of the partitions
/// before it, if any.
///
/// # Errors
/// The sentence for `INVALID_REPLICA_ASSIGNMENT`.
pub(super) fn check_assignment(
    image: &Image,
    replicas: &[i32],
    expected: Option<usize>,
) -> Result<(), String> {
    if replicas.is_empty() {
        return Err("The manual partition assignment includes an empty replica list.".into());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    let mut previous = None;
    for id in sorted {
        let broker = image.broker(NodeId(id)).filter(|it| has_id(it.id));
        let Some(broker) = broker else {
            return Err(format!(
                "The manual partition assignment includes broker {id}, but no such broker is \
                 registered."
            ));
        };
        if !has_uncordoned_directory(broker) {
            return Err(format!(
                "The manual partition assignment includes broker {id}, but all its log \
                 directories are cordoned."
            ));
        }
        if previous == Some(id) {
            return Err(format!(
                "The manual partition assignment includes the broker {id} more than once."
            ));
        }
        previous = Some(id);
    }
    match expected {
        Some(count) if count != replicas.len() => Err(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this \
             is not consistent with previous partitions, which have {count} replica(s).",
            replicas.len()
        )),
        _ => Ok(()),
    }
}

/// The sentence for replicas by hand of which none can lead.
pub(super) fn none_active(index: impl std::fmt::Display) -> String {
    format!(
        "All brokers specified in the manual partition assignment for partition {index} are \
         fenced or in controlled shutdown."
    )
}
