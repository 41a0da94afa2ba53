//! Keys of group, share and transaction coordinators, which only brokers read.

use super::Initial::{Null, Text};
use super::Kind::{Boolean, Class, Int, List, Long, Short, String};
use super::Mode::ClusterWide;
use super::{Initial, Key, Kind, Rule, Use};

const fn key(name: &'static str, kind: Kind, initial: Initial) -> Key {
    Key::new(name, kind, initial, Use::Broker)
}

/// In the order of their names.
pub(super) static KEYS: &[Key] = &[
    key(
        "add.partitions.to.txn.retry.backoff.max.ms",
        Int,
        Text("100"),
    )
    .at_least(0),
    key("add.partitions.to.txn.retry.backoff.ms", Int, Text("20")).at_least(1),
    key(
        "errors.deadletterqueue.auto.create.topics.enable",
        Boolean,
        Text("false"),
    )
    .mode(ClusterWide),
    key(
        "errors.deadletterqueue.topic.name.prefix",
        String,
        Text("dlq."),
    )
    .mode(ClusterWide),
    key("group.consumer.assignment.interval.ms", Int, Text("1000"))
        .at_least(0)
        .mode(ClusterWide),
    key(
        "group.consumer.assignor.offload.enable",
        Boolean,
        Text("true"),
    )
    .mode(ClusterWide)
    .internal(),
    key("group.consumer.assignors", List, Text("uniform,range")).rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    }),
    key("group.consumer.heartbeat.interval.ms", Int, Text("5000")).at_least(1),
    key(
        "group.consumer.max.assignment.interval.ms",
        Int,
        Text("15000"),
    )
    .at_least(0),
    key(
        "group.consumer.max.heartbeat.interval.ms",
        Int,
        Text("15000"),
    )
    .at_least(1),
    key("group.consumer.max.session.timeout.ms", Int, Text("60000")).at_least(1),
    key("group.consumer.max.size", Int, Text("2147483647")).at_least(1),
    key(
        "group.consumer.migration.policy",
        String,
        Text("bidirectional"),
    )
    .rule(Rule::OneOfAnyCase(&[
        "DISABLED",
        "DOWNGRADE",
        "UPGRADE",
        "BIDIRECTIONAL",
    ])),
    key("group.consumer.min.assignment.interval.ms", Int, Text("0")).at_least(0),
    key(
        "group.consumer.min.heartbeat.interval.ms",
        Int,
        Text("5000"),
    )
    .at_least(1),
    key("group.consumer.min.session.timeout.ms", Int, Text("45000")).at_least(1),
    key(
        "group.consumer.regex.refresh.interval.ms",
        Int,
        Text("600000"),
    )
    .at_least(10_000)
    .internal(),
    key("group.consumer.session.timeout.ms", Int, Text("45000")).at_least(1),
    key("group.coordinator.append.linger.ms", Int, Text("-1")).at_least(-1),
    key("group.coordinator.background.threads", Int, Text("2")).at_least(1),
    key(
        "group.coordinator.cached.buffer.max.bytes",
        Int,
        Text("1048588"),
    )
    .at_least(524_288)
    .mode(ClusterWide),
    key(
        "group.coordinator.rebalance.protocols",
        List,
        Text("classic,consumer,streams"),
    )
    .rule(Rule::List {
        empty: false,
        null: false,
        of: &["consumer", "classic", "share", "streams"],
    }),
    key("group.coordinator.threads", Int, Text("4")).at_least(1),
    key("group.initial.rebalance.delay.ms", Int, Text("3000")),
    key("group.max.session.timeout.ms", Int, Text("1800000")),
    key("group.max.size", Int, Text("2147483647")).at_least(1),
    key("group.min.session.timeout.ms", Int, Text("6000")),
    key("group.share.assignment.interval.ms", Int, Text("1000"))
        .at_least(0)
        .mode(ClusterWide),
    key("group.share.assignor.offload.enable", Boolean, Text("true"))
        .mode(ClusterWide)
        .internal(),
    key("group.share.assignors", List, Text("simple")).rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    }),
    key("group.share.delivery.count.limit", Int, Text("5")).between(2, 10),
    key(
        "group.share.dlq.manager.class.name",
        String,
        Text(concat!(
            "org.apache.kafka.server.share.dlq.",
            "DefaultShareGroupDLQManager"
        )),
    )
    .internal(),
    key("group.share.heartbeat.interval.ms", Int, Text("5000")).at_least(1),
    key(
        "group.share.initialize.retry.interval.ms",
        Int,
        Text("30000"),
    )
    .at_least(1)
    .internal(),
    key("group.share.max.assignment.interval.ms", Int, Text("15000")).at_least(0),
    key("group.share.max.delivery.count.limit", Int, Text("10")).between(5, 25),
    key("group.share.max.heartbeat.interval.ms", Int, Text("15000")).at_least(1),
    key(
        "group.share.max.partition.max.record.locks",
        Int,
        Text("4000"),
    )
    .between(2_000, 10_000),
    key(
        "group.share.max.record.lock.duration.ms",
        Int,
        Text("60000"),
    )
    .between(30_000, 3_600_000),
    key("group.share.max.session.timeout.ms", Int, Text("60000")).at_least(1),
    key("group.share.max.share.sessions", Int, Text("2000")).at_least(1),
    key("group.share.max.size", Int, Text("200")).between(1, 1_000),
    key("group.share.min.assignment.interval.ms", Int, Text("0")).at_least(0),
    key("group.share.min.delivery.count.limit", Int, Text("2")).between(2, 5),
    key("group.share.min.heartbeat.interval.ms", Int, Text("5000")).at_least(1),
    key(
        "group.share.min.partition.max.record.locks",
        Int,
        Text("100"),
    )
    .between(100, 2_000),
    key(
        "group.share.min.record.lock.duration.ms",
        Int,
        Text("15000"),
    )
    .between(1_000, 30_000),
    key("group.share.min.session.timeout.ms", Int, Text("45000")).at_least(1),
    key("group.share.partition.max.record.locks", Int, Text("2000")).between(100, 10_000),
    key(
        "group.share.persister.class.name",
        String,
        Text(concat!(
            "org.apache.kafka.server.share.persister.",
            "DefaultStatePersister"
        )),
    )
    .internal(),
    key("group.share.record.lock.duration.ms", Int, Text("30000")).between(1_000, 3_600_000),
    key("group.share.session.timeout.ms", Int, Text("45000")).at_least(1),
    key("group.streams.acceptable.recovery.lag", Long, Text("10000"))
        .at_least(0)
        .internal(),
    key("group.streams.assignment.interval.ms", Int, Text("1000"))
        .at_least(0)
        .mode(ClusterWide),
    key(
        "group.streams.assignor.offload.enable",
        Boolean,
        Text("true"),
    )
    .mode(ClusterWide)
    .internal(),
    key("group.streams.assignors", List, Text("sticky")).rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    }),
    key("group.streams.heartbeat.interval.ms", Int, Text("5000")).at_least(1),
    key(
        "group.streams.initial.rebalance.delay.ms",
        Int,
        Text("3000"),
    )
    .at_least(0),
    key(
        "group.streams.max.assignment.interval.ms",
        Int,
        Text("15000"),
    )
    .at_least(0),
    key(
        "group.streams.max.heartbeat.interval.ms",
        Int,
        Text("15000"),
    )
    .at_least(1),
    key("group.streams.max.session.timeout.ms", Int, Text("60000")).at_least(1),
    key("group.streams.max.size", Int, Text("2147483647")).at_least(1),
    key("group.streams.max.standby.replicas", Int, Text("2")).at_least(0),
    key("group.streams.max.warmup.replicas", Int, Text("20"))
        .at_least(0)
        .internal(),
    key("group.streams.min.assignment.interval.ms", Int, Text("0")).at_least(0),
    key("group.streams.min.heartbeat.interval.ms", Int, Text("5000")).at_least(1),
    key("group.streams.min.session.timeout.ms", Int, Text("45000")).at_least(1),
    key(
        "group.streams.min.task.offset.interval.ms",
        Int,
        Text("15000"),
    )
    .at_least(1)
    .internal(),
    key("group.streams.num.standby.replicas", Int, Text("0")).at_least(0),
    key("group.streams.num.warmup.replicas", Int, Text("2"))
        .at_least(0)
        .internal(),
    key("group.streams.rack.aware.assignment.tags", List, Text("")).rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    }),
    key("group.streams.session.timeout.ms", Int, Text("45000")).at_least(1),
    key("group.streams.task.offset.interval.ms", Int, Text("60000"))
        .at_least(1)
        .internal(),
    key(
        "group.streams.topology.description.plugin.class",
        Class,
        Null,
    ),
    key("offset.metadata.max.bytes", Int, Text("4096")),
    key("offsets.commit.timeout.ms", Int, Text("5000")).at_least(1),
    key("offsets.load.buffer.size", Int, Text("5242880")).at_least(1),
    key("offsets.retention.check.interval.ms", Long, Text("600000")).at_least(1),
    key("offsets.retention.minutes", Int, Text("10080")).at_least(1),
    key("offsets.topic.compression.codec", Int, Text("0")),
    key("offsets.topic.num.partitions", Int, Text("50")).at_least(1),
    key("offsets.topic.replication.factor", Short, Text("3")).at_least(1),
    key("offsets.topic.segment.bytes", Int, Text("104857600")).at_least(1),
    key(
        "producer.id.expiration.check.interval.ms",
        Int,
        Text("600000"),
    )
    .at_least(1)
    .internal(),
    key("producer.id.expiration.ms", Int, Text("86400000"))
        .at_least(1)
        .mode(ClusterWide),
    key(
        "producer.purgatory.purge.interval.requests",
        Int,
        Text("1000"),
    ),
    key("share.coordinator.append.linger.ms", Int, Text("-1")).at_least(-1),
    key(
        "share.coordinator.cached.buffer.max.bytes",
        Int,
        Text("1048588"),
    )
    .at_least(524_288)
    .mode(ClusterWide),
    key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        Int,
        Text("300000"),
    )
    .at_least(1)
    .internal(),
    key("share.coordinator.load.buffer.size", Int, Text("5242880")).at_least(1),
    key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        Int,
        Text("500"),
    )
    .between(0, 500),
    key(
        "share.coordinator.state.topic.compression.codec",
        Int,
        Text("0"),
    ),
    key("share.coordinator.state.topic.min.isr", Short, Text("2")).at_least(1),
    key(
        "share.coordinator.state.topic.num.partitions",
        Int,
        Text("50"),
    )
    .at_least(1),
    key(
        "share.coordinator.state.topic.prune.interval.ms",
        Int,
        Text("300000"),
    )
    .at_least(1)
    .internal(),
    key(
        "share.coordinator.state.topic.replication.factor",
        Short,
        Text("3"),
    )
    .at_least(1),
    key(
        "share.coordinator.state.topic.segment.bytes",
        Int,
        Text("104857600"),
    )
    .at_least(1),
    key("share.coordinator.threads", Int, Text("1")).at_least(1),
    key("share.coordinator.write.timeout.ms", Int, Text("5000")).at_least(1),
    key(
        "share.fetch.purgatory.purge.interval.requests",
        Int,
        Text("1000"),
    ),
    key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Int,
        Text("10000"),
    )
    .at_least(1),
    key("transaction.max.timeout.ms", Int, Text("900000")).at_least(1),
    key(
        "transaction.partition.verification.enable",
        Boolean,
        Text("true"),
    )
    .mode(ClusterWide),
    key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Int,
        Text("3600000"),
    )
    .at_least(1),
    key(
        "transaction.state.log.load.buffer.size",
        Int,
        Text("5242880"),
    )
    .at_least(1),
    key("transaction.state.log.min.isr", Int, Text("2")).at_least(1),
    key("transaction.state.log.num.partitions", Int, Text("50")).at_least(1),
    key("transaction.state.log.replication.factor", Short, Text("3")).at_least(1),
    key(
        "transaction.state.log.segment.bytes",
        Int,
        Text("104857600"),
    )
    .at_least(1),
    key(
        "transaction.two.phase.commit.enable",
        Boolean,
        Text("false"),
    ),
    key("transactional.id.expiration.ms", Int, Text("604800000")).at_least(1),
];
