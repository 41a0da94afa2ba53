//! Keys of logs and replicas that only brokers read.

use super::Initial::{Null, Text};
use super::Kind::{Boolean, Double, Int, List, Long, String};
use super::Mode::{ClusterWide, PerBroker};
use super::{Initial, Key, Kind, Rule, Use};

const fn key(name: &'static str, kind: Kind, initial: Initial) -> Key {
    Key::new(name, kind, initial, Use::Broker)
}

/// In the order of their names.
pub(super) static KEYS: &[Key] = &[
    key(
        "alter.log.dirs.replication.quota.window.num",
        Int,
        Text("11"),
    )
    .at_least(1),
    key(
        "alter.log.dirs.replication.quota.window.size.seconds",
        Int,
        Text("1"),
    )
    .at_least(1),
    key("background.threads", Int, Text("10"))
        .at_least(1)
        .mode(ClusterWide),
    key("broker.rack", String, Null),
    key("controlled.shutdown.enable", Boolean, Text("true")),
    key("cordoned.log.dirs", List, Text(""))
        .rule(Rule::List {
            empty: true,
            null: true,
            of: &[],
        })
        .mode(PerBroker),
    key(
        "delete.records.purgatory.purge.interval.requests",
        Int,
        Text("1"),
    ),
    key("fetch.max.bytes", Int, Text("57671680")).at_least(1_024),
    key("fetch.purgatory.purge.interval.requests", Int, Text("1000")),
    key(
        "follower.fetch.last.tiered.offset.enable",
        Boolean,
        Text("false"),
    )
    .mode(ClusterWide),
    key("initial.broker.registration.timeout.ms", Int, Text("60000")),
    key("log.cleaner.backoff.ms", Long, Text("15000"))
        .at_least(0)
        .mode(ClusterWide),
    key("log.cleaner.dedupe.buffer.size", Long, Text("134217728")).mode(ClusterWide),
    key("log.cleaner.enable", Boolean, Text("true")),
    key("log.cleaner.io.buffer.load.factor", Double, Text("0.9")).mode(ClusterWide),
    key("log.cleaner.io.buffer.size", Int, Text("524288"))
        .at_least(0)
        .mode(ClusterWide),
    key(
        "log.cleaner.io.max.bytes.per.second",
        Double,
        Text("1.7976931348623157E308"),
    )
    .mode(ClusterWide),
    key("log.cleaner.threads", Int, Text("1"))
        .at_least(0)
        .mode(ClusterWide),
    key("log.dir.failure.timeout.ms", Long, Text("30000")).at_least(1),
    key(
        "log.flush.offset.checkpoint.interval.ms",
        Int,
        Text("60000"),
    )
    .at_least(0),
    key(
        "log.flush.start.offset.checkpoint.interval.ms",
        Int,
        Text("60000"),
    )
    .at_least(0),
    key("log.initial.task.delay.ms", Long, Text("30000"))
        .at_least(0)
        .internal(),
    key("log.retention.check.interval.ms", Long, Text("300000")).at_least(1),
    key(
        "max.incremental.fetch.session.cache.slots",
        Int,
        Text("1000"),
    )
    .at_least(0),
    key("max.request.partition.size.limit", Int, Text("2000")).at_least(1),
    key("num.recovery.threads.per.data.dir", Int, Text("2"))
        .at_least(1)
        .mode(ClusterWide),
    key("num.replica.alter.log.dirs.threads", Int, Null),
    key("num.replica.fetchers", Int, Text("1"))
        .at_least(1)
        .mode(ClusterWide),
    key("remote.fetch.max.wait.ms", Int, Text("500"))
        .at_least(1)
        .mode(ClusterWide),
    key(
        "remote.list.offsets.request.timeout.ms",
        Long,
        Text("30000"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key(
        "remote.log.index.file.cache.total.size.bytes",
        Long,
        Text("1073741824"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key("remote.log.index.file.cache.ttl.ms", Long, Text("900000"))
        .at_least(-1)
        .internal(),
    key(
        "remote.log.manager.copier.thread.pool.size",
        Int,
        Text("10"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key(
        "remote.log.manager.copy.max.bytes.per.second",
        Long,
        Text("9223372036854775807"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key("remote.log.manager.copy.quota.window.num", Int, Text("11")).at_least(1),
    key(
        "remote.log.manager.copy.quota.window.size.seconds",
        Int,
        Text("1"),
    )
    .at_least(1),
    key(
        "remote.log.manager.expiration.thread.pool.size",
        Int,
        Text("10"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key(
        "remote.log.manager.fetch.max.bytes.per.second",
        Long,
        Text("9223372036854775807"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key("remote.log.manager.fetch.quota.window.num", Int, Text("11")).at_least(1),
    key(
        "remote.log.manager.fetch.quota.window.size.seconds",
        Int,
        Text("1"),
    )
    .at_least(1),
    key(
        "remote.log.manager.follower.thread.pool.size",
        Int,
        Text("2"),
    )
    .at_least(1)
    .mode(ClusterWide),
    key("remote.log.manager.task.interval.ms", Long, Text("30000")).at_least(1),
    key(
        "remote.log.manager.task.retry.backoff.max.ms",
        Long,
        Text("30000"),
    )
    .at_least(1)
    .internal(),
    key(
        "remote.log.manager.task.retry.backoff.ms",
        Long,
        Text("500"),
    )
    .at_least(1)
    .internal(),
    key("remote.log.manager.task.retry.jitter", Double, Text("0.2"))
        .rule(Rule::BetweenDoubles(0.0, 0.5))
        .internal(),
    key("remote.log.manager.thread.pool.size", Int, Text("2")).at_least(1),
    key(
        "remote.log.metadata.custom.metadata.max.bytes",
        Int,
        Text("128"),
    )
    .at_least(0),
    key(
        "remote.log.metadata.manager.class.name",
        String,
        Text(concat!(
            "org.apache.kafka.server.log.remote.metadata.storage.",
            "TopicBasedRemoteLogMetadataManager"
        )),
    )
    .rule(Rule::NotEmpty),
    key("remote.log.metadata.manager.class.path", String, Null),
    key(
        "remote.log.metadata.manager.impl.prefix",
        String,
        Text("rlmm.config."),
    )
    .rule(Rule::NotEmpty),
    key("remote.log.metadata.manager.listener.name", String, Null).rule(Rule::NotEmpty),
    key("remote.log.reader.max.pending.tasks", Int, Text("100")).at_least(1),
    key("remote.log.reader.threads", Int, Text("10"))
        .at_least(1)
        .mode(ClusterWide),
    key("remote.log.storage.manager.class.name", String, Null).rule(Rule::NotEmpty),
    key("remote.log.storage.manager.class.path", String, Null),
    key(
        "remote.log.storage.manager.impl.prefix",
        String,
        Text("rsm.config."),
    )
    .rule(Rule::NotEmpty),
    key("remote.log.storage.system.enable", Boolean, Text("false")),
    key("replica.fetch.backoff.ms", Int, Text("1000")).at_least(0),
    key("replica.fetch.max.bytes", Int, Text("1048576")).at_least(0),
    key("replica.fetch.min.bytes", Int, Text("1")),
    key("replica.fetch.response.max.bytes", Int, Text("10485760")).at_least(0),
    key("replica.fetch.wait.max.ms", Int, Text("500")),
    key(
        "replica.high.watermark.checkpoint.interval.ms",
        Long,
        Text("5000"),
    ),
    key("replica.lag.time.max.ms", Long, Text("30000")),
    key("replica.selector.class", String, Null),
    key("replica.socket.receive.buffer.bytes", Int, Text("65536")),
    key("replica.socket.timeout.ms", Int, Text("30000")),
    key("replication.quota.window.num", Int, Text("11")).at_least(1),
    key("replication.quota.window.size.seconds", Int, Text("1")).at_least(1),
    key("telemetry.max.bytes", Int, Text("1048576")).at_least(1),
];
