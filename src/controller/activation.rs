//! What a new active controller writes first.

use super::View;
use super::configs::topic;
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
    // What an open transaction has written is about to vanish and counts for nothing: a bootstrap
    // that was cut off has to be written again.
    let finalized = view.image.settled().features().metadata_version();
    let level = match finalized {
        Some(level) => level,
        None => bootstrap_level(bootstrap)?,
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
    if finalized.is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::World;
    use crate::records::{FeatureLevelRecord, ZkMigrationStateRecord};

    fn feature(name: &str, level: i16) -> VersionedRecord {
        latest(Record::FeatureLevel(FeatureLevelRecord {
            name: name.into(),
            feature_level: level,
            ..FeatureLevelRecord::default()
        }))
    }

    /// The names of the records, and whether they must stay together.
    fn written(world: &mut World, bootstrap: &[VersionedRecord]) -> (Vec<&'static str>, bool) {
        let (records, atomic) = world.rule(|view, _| records(view, bootstrap)).unwrap();
        let names = records.iter().map(|it| it.record.record_type().name);
        (names.collect(), atomic)
    }

    fn begin() -> VersionedRecord {
        latest(Record::BeginTransaction(BeginTransactionRecord {
            name: Some("Bootstrap records".into()),
            ..BeginTransactionRecord::default()
        }))
    }

    #[test]
    fn an_empty_log_gets_the_bootstrap_records_in_a_transaction() {
        let bootstrap = [feature(METADATA_VERSION, 21), feature("group.version", 1)];
        let (names, atomic) = written(&mut World::empty(), &bootstrap);
        assert_eq!(
            names,
            [
                "BEGIN_TRANSACTION_RECORD",
                "FEATURE_LEVEL_RECORD",
                "FEATURE_LEVEL_RECORD",
                "END_TRANSACTION_RECORD"
            ]
        );
        assert!(!atomic, "a transaction may take several batches");
    }

    #[test]
    fn below_3_6_iv1_there_are_no_transactions_and_one_batch_holds_all() {
        let bootstrap = [feature(METADATA_VERSION, 12)];
        let (names, atomic) = written(&mut World::empty(), &bootstrap);
        assert_eq!(names, ["FEATURE_LEVEL_RECORD"]);
        assert!(atomic);
    }

    #[test]
    fn with_eligible_replicas_the_smallest_isr_of_the_file_becomes_the_clusters() {
        let bootstrap = [feature(METADATA_VERSION, 33), feature(ELR_VERSION, 1)];
        for (file, value) in [(None, "1"), (Some("2"), "2")] {
            let mut world = World::empty();
            if let Some(file) = file {
                let configs = &mut world.settings.static_configs;
                configs.insert("min.insync.replicas".into(), file.into());
            }
            let records = world.rule(|view, _| records(view, &bootstrap));
            let (records, _) = records.unwrap();
            match &records[records.len() - 2].record {
                Record::Config(config) => {
                    assert_eq!((config.resource_type, &*config.resource_name), (4, ""));
                    assert_eq!(config.name, "min.insync.replicas");
                    assert_eq!(config.value.as_deref(), Some(value));
                }
                other => panic!("not expected: {other:?}"),
            }
        }
    }

    #[test]
    fn a_bootstrap_that_was_cut_off_is_aborted_and_written_again() {
        let bootstrap = [feature(METADATA_VERSION, 33)];
        let mut world = World::empty();
        world.replay(&begin());
        world.replay(&bootstrap[0]);
        // What the transaction has written so far must not count as the level of the log.
        let (records, atomic) = world.rule(|view, _| records(view, &bootstrap)).unwrap();
        let names: Vec<_> = records
            .iter()
            .map(|it| it.record.record_type().name)
            .collect();
        assert_eq!(
            names,
            [
                "ABORT_TRANSACTION_RECORD",
                "BEGIN_TRANSACTION_RECORD",
                "FEATURE_LEVEL_RECORD",
                "END_TRANSACTION_RECORD"
            ]
        );
        assert!(!atomic);
        for record in &records {
            world.replay(record);
        }
        assert_eq!(world.image.open_transaction(), None);
        assert_eq!(world.image.features().level(METADATA_VERSION), 33);
    }

    #[test]
    fn any_other_log_only_has_its_open_transaction_aborted() {
        let mut world = World::at_level(33);
        assert_eq!(written(&mut world, &[]), (Vec::new(), true));
        world.replay(&begin());
        let (records, _) = world.rule(|view, _| records(view, &[])).unwrap();
        match &records[..] {
            [only] => match &only.record {
                Record::AbortTransaction(abort) => {
                    assert_eq!(abort.reason.as_deref(), Some("Controller failover"));
                }
                other => panic!("not expected: {other:?}"),
            },
            other => panic!("not expected: {other:?}"),
        }
    }

    #[test]
    fn a_log_in_a_migration_from_zookeeper_is_not_led() {
        for (state, leads) in [(0, true), (1, false), (2, false), (3, true)] {
            let mut world = World::at_level(20);
            world.replay(&latest(Record::ZkMigrationState(ZkMigrationStateRecord {
                zk_migration_state: state,
                ..ZkMigrationStateRecord::default()
            })));
            let records = world.rule(|view, _| records(view, &[]));
            assert_eq!(records.is_ok(), leads, "state {state}");
        }
    }

    #[test]
    fn an_empty_log_without_a_level_that_this_release_knows_is_not_led() {
        for bootstrap in [vec![], vec![feature(METADATA_VERSION, 6)]] {
            let records = World::empty().rule(|view, _| records(view, &bootstrap));
            assert!(records.unwrap_err().contains("metadata.version"));
        }
    }
}
