//! The metadata log of a cluster as the records that two clusters can be compared by, with their
//! offsets.
//!
//! A Java controller changes the partitions of a broker in the order in which it heard of them;
//! kraftd does so in the order of their topics and numbers. See [`Log::named`].

use std::collections::BTreeSet;

use bytes::Bytes;
use kraftd::records::batch::Batch;
use kraftd::records::{Record, VersionedRecord};
use serde_json::Value;

/// A record.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) offset: i64,
    /// The first offset of its batch.
    pub(crate) batch: i64,
    /// Its JSON, as `kafka-dump-log` prints it.
    pub(crate) json: Value,
}

/// Records of data batches, in order. Left out: no-ops, which follow the clock, registrations of
/// controllers, which each implementation makes of itself, and what only a controller of 3.9
/// writes to say that it does not migrate from ZooKeeper. Left out as well: that a broker is fenced
/// which is fenced already. Java writes that when the session of a broker ends that was fenced
/// before, at the end of its shutdown.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) records: Vec<Entry>,
    /// The brokers that are fenced, as of the last record.
    fenced: BTreeSet<i32>,
    /// Where the next batch begins.
    pub(crate) end: i64,
}

impl Log {
    /// Takes batches, as many as are new.
    pub(crate) fn append(&mut self, mut bytes: Bytes) {
        while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
            if batch.base_offset().0 < self.end {
                continue;
            }
            assert_eq!(batch.base_offset().0, self.end, "a gap in the log");
            self.end = batch.end_offset().0;
            if batch.is_control() {
                continue;
            }
            for (offset, raw) in (batch.base_offset().0..).zip(batch.records()) {
                let record = VersionedRecord::decode(&raw.unwrap().value.unwrap()).unwrap();
                let skipped = matches!(
                    record.record,
                    Record::NoOp(_) | Record::RegisterController(_) | Record::ZkMigrationState(_)
                );
                if !skipped && !self.fenced_again(&record.record) {
                    self.records.push(Entry {
                        offset,
                        batch: batch.base_offset().0,
                        json: record.json(),
                    });
                }
            }
        }
        assert!(bytes.is_empty(), "bytes of a cut batch");
    }

    /// Follows which brokers are fenced, and whether a record does no more than fence one again.
    fn fenced_again(&mut self, record: &Record) -> bool {
        match record {
            Record::RegisterBroker(broker) if broker.fenced => {
                self.fenced.insert(broker.broker_id);
                false
            }
            Record::BrokerRegistrationChange(change) => match change.fenced {
                1 => {
                    let alone = change.in_controlled_shutdown == 0 && change.log_dirs.is_empty();
                    !self.fenced.insert(change.broker_id) && alone
                }
                -1 => {
                    self.fenced.remove(&change.broker_id);
                    false
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// How many records there are up to `offset`, inclusive.
    pub(crate) fn count_up_to(&self, offset: i64) -> usize {
        self.records.partition_point(|entry| entry.offset <= offset)
    }

    /// The records as texts with their names changed, and changes of partitions that follow each
    /// other in one batch sorted. Assignments of directories come apart: brokers send them on a
    /// connection of their own, and which of two requests under way is met first is chance.
    pub(crate) fn named(&self, rename: impl Fn(&mut Value)) -> [Vec<String>; 2] {
        let mut all = self.records.clone();
        for entry in &mut all {
            rename(&mut entry.json);
        }
        let is_change = |entry: &Entry| entry.json["type"] == "PARTITION_CHANGE_RECORD";
        for run in all.chunk_by_mut(|a, b| a.batch == b.batch && is_change(a) && is_change(b)) {
            run.sort_by_key(|change| {
                let data = &change.json["data"];
                (data["topicId"].to_string(), data["partitionId"].as_i64())
            });
        }
        let (assignments, others) = all.iter().partition(|entry| assigns(&entry.json));
        [others, assignments].map(|list: Vec<&Entry>| {
            let texts = list.iter().map(|entry| entry.json.to_string());
            texts.collect()
        })
    }
}

/// Whether a record does nothing but assign directories to the replicas of a partition.
fn assigns(record: &Value) -> bool {
    let fields = record["data"].as_object();
    record["type"] == "PARTITION_CHANGE_RECORD"
        && fields.is_some_and(|fields| fields.len() == 3 && fields.contains_key("directories"))
}
