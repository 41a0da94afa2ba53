//! The keys of the resources that have a closed list of them, in release 4.4: what the image keeps
//! and what a rule about a key can be about. The rooms that give the keys their values have the
//! rest; a test of the controller holds the two together.

/// TOPIC.
pub const TOPIC: i8 = 2;
/// BROKER: its keys are those of a server's file, and some that no file has. The empty name is the
/// default of all brokers.
pub const BROKER: i8 = 4;
/// CLIENT_METRICS: a subscription (KIP-714).
pub const CLIENT_METRICS: i8 = 16;
/// GROUP (KIP-848).
pub const GROUP: i8 = 32;

/// The keys of one type of resources.
struct Keys {
    resource: i8,
    /// Keys whose values are numbers, sorted.
    numbers: &'static [&'static str],
    /// All others, sorted.
    others: &'static [&'static str],
}

const ALL: [Keys; 3] = [
    Keys {
        resource: TOPIC,
        numbers: &[
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.zstd.level",
            "delete.retention.ms",
            "file.delete.delay.ms",
            "flush.messages",
            "flush.ms",
            "index.interval.bytes",
            "internal.segment.bytes",
            "local.retention.bytes",
            "local.retention.ms",
            "max.compaction.lag.ms",
            "max.decompressed.message.bytes",
            "max.message.bytes",
            "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms",
            "min.cleanable.dirty.ratio",
            "min.compaction.lag.ms",
            "min.insync.replicas",
            "remote.copy.lag.bytes",
            "remote.copy.lag.ms",
            "retention.bytes",
            "retention.ms",
            "segment.bytes",
            "segment.index.bytes",
            "segment.jitter.ms",
            "segment.ms",
        ],
        others: &[
            "cleanup.policy",
            "compression.type",
            "errors.deadletterqueue.group.enable",
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.type",
            "preallocate",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "remote.storage.enable",
            "unclean.leader.election.enable",
        ],
    },
    Keys {
        resource: CLIENT_METRICS,
        numbers: &["interval.ms"],
        others: &["match", "metrics"],
    },
    Keys {
        resource: GROUP,
        numbers: &[
            "consumer.assignment.interval.ms",
            "consumer.heartbeat.interval.ms",
            "consumer.session.timeout.ms",
            "share.assignment.interval.ms",
            "share.delivery.count.limit",
            "share.heartbeat.interval.ms",
            "share.partition.max.record.locks",
            "share.record.lock.duration.ms",
            "share.session.timeout.ms",
            "streams.acceptable.recovery.lag",
            "streams.assignment.interval.ms",
            "streams.heartbeat.interval.ms",
            "streams.initial.rebalance.delay.ms",
            "streams.num.standby.replicas",
            "streams.num.warmup.replicas",
            "streams.session.timeout.ms",
            "streams.task.offset.interval.ms",
        ],
        others: &[
            "consumer.assignor.offload.enable",
            "errors.deadletterqueue.copy.record.enable",
            "errors.deadletterqueue.topic.name",
            "share.assignor.offload.enable",
            "share.auto.offset.reset",
            "share.isolation.level",
            "share.renew.acknowledge.enable",
            "streams.assignor.name",
            "streams.assignor.offload.enable",
            "streams.rack.aware.assignment.tags",
        ],
    },
];

/// Keys of brokers that no file has: rates in bytes a second, numbers all.
pub const BROKER_ONLY_DYNAMIC: [&str; 3] = [
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
];

/// `interval.ms` of CLIENT_METRICS: from 100 ms to an hour, both included.
pub const METRICS_INTERVAL_MS: (i64, i64) = (100, 3_600_000);

/// A key, and the keys of a server's file that set its least and its greatest number.
pub type Bounded = (&'static str, Option<&'static str>, Option<&'static str>);

/// The keys of GROUP with bounds that the file sets, in the order in which they are asked.
pub const GROUP_BOUNDS: [Bounded; 15] = [
    (
        "consumer.heartbeat.interval.ms",
        Some("group.consumer.min.heartbeat.interval.ms"),
        Some("group.consumer.max.heartbeat.interval.ms"),
    ),
    (
        "consumer.session.timeout.ms",
        Some("group.consumer.min.session.timeout.ms"),
        Some("group.consumer.max.session.timeout.ms"),
    ),
    (
        "consumer.assignment.interval.ms",
        Some("group.consumer.min.assignment.interval.ms"),
        Some("group.consumer.max.assignment.interval.ms"),
    ),
    (
        "share.heartbeat.interval.ms",
        Some("group.share.min.heartbeat.interval.ms"),
        Some("group.share.max.heartbeat.interval.ms"),
    ),
    (
        "share.session.timeout.ms",
        Some("group.share.min.session.timeout.ms"),
        Some("group.share.max.session.timeout.ms"),
    ),
    (
        "share.record.lock.duration.ms",
        Some("group.share.min.record.lock.duration.ms"),
        Some("group.share.max.record.lock.duration.ms"),
    ),
    (
        "share.delivery.count.limit",
        Some("group.share.min.delivery.count.limit"),
        Some("group.share.max.delivery.count.limit"),
    ),
    (
        "share.partition.max.record.locks",
        Some("group.share.min.partition.max.record.locks"),
        Some("group.share.max.partition.max.record.locks"),
    ),
    (
        "share.assignment.interval.ms",
        Some("group.share.min.assignment.interval.ms"),
        Some("group.share.max.assignment.interval.ms"),
    ),
    (
        "streams.heartbeat.interval.ms",
        Some("group.streams.min.heartbeat.interval.ms"),
        Some("group.streams.max.heartbeat.interval.ms"),
    ),
    (
        "streams.session.timeout.ms",
        Some("group.streams.min.session.timeout.ms"),
        Some("group.streams.max.session.timeout.ms"),
    ),
    (
        "streams.num.standby.replicas",
        None,
        Some("group.streams.max.standby.replicas"),
    ),
    (
        "streams.assignment.interval.ms",
        Some("group.streams.min.assignment.interval.ms"),
        Some("group.streams.max.assignment.interval.ms"),
    ),
    (
        "streams.task.offset.interval.ms",
        Some("group.streams.min.task.offset.interval.ms"),
        None,
    ),
    (
        "streams.num.warmup.replicas",
        None,
        Some("group.streams.max.warmup.replicas"),
    ),
];

/// Whether the values of a key are numbers; `None` where the resource has no such key, or is none
/// of TOPIC, CLIENT_METRICS and GROUP.
#[must_use]
pub fn is_number(resource: i8, key: &str) -> Option<bool> {
    let keys = ALL.iter().find(|keys| keys.resource == resource)?;
    if keys.numbers.binary_search(&key).is_ok() {
        return Some(true);
    }
    keys.others.binary_search(&key).is_ok().then_some(false)
}

/// Every key of a type of resources.
pub fn names(resource: i8) -> impl Iterator<Item = &'static str> {
    let keys = ALL.iter().filter(move |keys| keys.resource == resource);
    keys.flat_map(|keys| keys.numbers.iter().chain(keys.others).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_each_is_found_in_its_own_resource_only() {
        for keys in &ALL {
            assert!(keys.numbers.is_sorted());
            assert!(keys.others.is_sorted());
            for other in &ALL {
                let own = (other.resource == keys.resource).then_some(true);
                let found = keys
                    .numbers
                    .iter()
                    .map(|key| is_number(other.resource, key));
                assert!(found.eq(keys.numbers.iter().map(|_| own)));
            }
        }
        assert_eq!(is_number(TOPIC, "cleanup.policy"), Some(false));
        assert_eq!(is_number(TOPIC, "message.format.version"), None);
        assert_eq!(is_number(BROKER, "log.retention.ms"), None);
    }
}
