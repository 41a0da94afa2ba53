//! What a new active controller writes first.

use super::View;
use super::configs::topic;
use super::levels::metadata_version;
use crate::image::{ZkMigration, configs};
use crate::records::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord, Record,
    VersionedRecord,
};
use crate::types::features::{ELR_VERSION, METADATA_VERSION, MetadataVersion};

/// The records and whether they must stay together. On an empty log these are the bootstrap
/// records, inside a metadata transaction (KIP-868) where the level knows transactions; on any
/// other log only an open transaction of a former leader is aborted.
///
/// # Errors
/// A sentence why this controller must not lead: the log holds an unfinished ZooKeeper migration,
/// or a transaction at a level without transactions, or there are no bootstrap records.
pub fn records(
    view: &View<'_>,
    bootstrap: &[VersionedRecord],
) -> Result<(Vec<VersionedRecord>, bool), String> {
    if view.image.zk_migration() != ZkMigration::Done {
        return Err(
            "the log says that a migration from ZooKeeper is under way; finish or undo it \
                    with Kafka 3.9 before kraftd may lead"
                .to_owned(),
        );
    }
    let open = view.image.open_transaction();
    let current = view.image.features().metadata_version().is_some();
    let level = if current {
        metadata_version(view.image)
    } else {
        bootstrap_level(bootstrap)?
    };
    let mut records = Vec::new();
    if let Some(offset) = open {
        if !level.supports_transactions() {
            return Err(format!(
                "a metadata transaction is open since offset {offset}, but metadata.version \
                 {level} has no transactions"
            ));
        }
        tracing::info!("aborting the metadata transaction that is open since offset {offset}");
        records.push(latest(Record::AbortTransaction(AbortTransactionRecord {
            reason: Some("Controller failover".to_owned()),
            ..AbortTransactionRecord::default()
        })));
    }
    if current {
        return Ok((records, true));
    }
    tracing::info!(
        "writing {} bootstrap records at metadata.version {level}",
        bootstrap.len()
    );
    let transaction = level.supports_transactions();
    if transaction {
        records.push(latest(Record::BeginTransaction(BeginTransactionRecord {
            name: Some("Bootstrap records".to_owned()),
            ..BeginTransactionRecord::default()
        })));
    }
    records.extend_from_slice(bootstrap);
    if bootstrap_feature(bootstrap, ELR_VERSION) > 0 {
        records.push(min_isr(view));
    }
    if transaction {
        records.push(latest(Record::EndTransaction(
            EndTransactionRecord::default(),
        )));
    }
    Ok((records, !transaction))
}

/// With eligible leader replicas the cluster-wide minimum must be in the log, the same for all.
fn min_isr(view: &View<'_>) -> VersionedRecord {
    latest(Record::Config(ConfigRecord {
        resource_type: configs::BROKER,
        resource_name: String::new(),
        name: "min.insync.replicas".to_owned(),
        value: Some(topic::static_min_isr(view.settings)),
        ..ConfigRecord::default()
    }))
}

const fn latest(record: Record) -> VersionedRecord {
    VersionedRecord { version: 0, record }
}

fn bootstrap_feature(bootstrap: &[VersionedRecord], name: &str) -> i16 {
    bootstrap
        .iter()
        .rev()
        .find_map(|it| match &it.record {
            Record::FeatureLevel(record) if record.name == name => Some(record.feature_level),
            _ => None,
        })
        .unwrap_or(0)
}

fn bootstrap_level(bootstrap: &[VersionedRecord]) -> Result<MetadataVersion, String> {
    let level = bootstrap_feature(bootstrap, METADATA_VERSION);
    MetadataVersion::from_level(level).ok_or_else(|| {
        format!(
            "the log is empty and the bootstrap records name metadata.version {level}, which this \
             release does not know"
        )
    })
}
