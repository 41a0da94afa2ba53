//! What of a partition or of a broker differs.

use super::super::{Broker, Partition};

/// A part of a partition's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionField {
    /// [`Partition::replicas`].
    Replicas,
    /// [`Partition::isr`].
    Isr,
    /// [`Partition::adding`].
    Adding,
    /// [`Partition::removing`].
    Removing,
    /// [`Partition::elr`].
    Elr,
    /// [`Partition::last_known_elr`].
    LastKnownElr,
    /// [`Partition::directories`].
    Directories,
    /// [`Partition::leader`].
    Leader,
    /// [`Partition::leader_epoch`].
    LeaderEpoch,
    /// [`Partition::partition_epoch`].
    PartitionEpoch,
    /// [`Partition::recovering`].
    Recovering,
}

impl PartitionField {
    /// What differs between two states of a partition, in the order of the variants.
    #[must_use]
    pub fn between(before: Partition<'_>, after: Partition<'_>) -> Vec<Self> {
        let (a, b) = (before, after);
        only_true([
            (Self::Replicas, a.replicas() != b.replicas()),
            (Self::Isr, a.isr() != b.isr()),
            (Self::Adding, a.adding() != b.adding()),
            (Self::Removing, a.removing() != b.removing()),
            (Self::Elr, a.elr() != b.elr()),
            (Self::LastKnownElr, a.last_known_elr() != b.last_known_elr()),
            (Self::Directories, a.directories() != b.directories()),
            (Self::Leader, a.leader() != b.leader()),
            (Self::LeaderEpoch, a.leader_epoch() != b.leader_epoch()),
            (
                Self::PartitionEpoch,
                a.partition_epoch() != b.partition_epoch(),
            ),
            (Self::Recovering, a.recovering() != b.recovering()),
        ])
    }
}

/// A part of a broker's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrokerField {
    /// [`Broker::epoch`]: it registered again.
    Epoch,
    /// [`Broker::incarnation`]: it is another process.
    Incarnation,
    /// [`Broker::endpoints`].
    Endpoints,
    /// [`Broker::features`].
    Features,
    /// [`Broker::rack`].
    Rack,
    /// [`Broker::fenced`].
    Fenced,
    /// [`Broker::in_controlled_shutdown`].
    InControlledShutdown,
    /// [`Broker::is_migrating`].
    IsMigrating,
    /// [`Broker::directories`].
    Directories,
    /// [`Broker::cordoned`].
    Cordoned,
}

impl BrokerField {
    /// What differs between two states of a broker, in the order of the variants.
    #[must_use]
    pub fn between(before: &Broker, after: &Broker) -> Vec<Self> {
        let (a, b) = (before, after);
        only_true([
            (Self::Epoch, a.epoch != b.epoch),
            (Self::Incarnation, a.incarnation != b.incarnation),
            (Self::Endpoints, a.endpoints != b.endpoints),
            (Self::Features, a.features != b.features),
            (Self::Rack, a.rack != b.rack),
            (Self::Fenced, a.fenced != b.fenced),
            (
                Self::InControlledShutdown,
                a.in_controlled_shutdown != b.in_controlled_shutdown,
            ),
            (Self::IsMigrating, a.is_migrating != b.is_migrating),
            (Self::Directories, a.directories != b.directories),
            (Self::Cordoned, a.cordoned != b.cordoned),
        ])
    }
}

fn only_true<T, const N: usize>(all: [(T, bool); N]) -> Vec<T> {
    let differing = all.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(field, _)| field).collect()
}
