//! Defaults of topic configs, and keys that kraftd knowingly does without.

use super::Initial::{Null, Text};
use super::{Key, Kind, Mode, Rule, Use};

/// In the order of their names.
pub(super) static KEYS: &[Key] = &[
    Key::new("compression.gzip.level", Kind::Int, Text("-1"), Use::Topic)
        .rule(Rule::GzipLevel)
        .mode(Mode::ClusterWide),
    Key::new("compression.lz4.level", Kind::Int, Text("9"), Use::Topic)
        .between(1, 17)
        .mode(Mode::ClusterWide),
    Key::new(
        "compression.type",
        Kind::String,
        Text("producer"),
        Use::Topic,
    )
    .rule(Rule::OneOf(&[
        "uncompressed",
        "zstd",
        "lz4",
        "snappy",
        "gzip",
        "producer",
    ]))
    .mode(Mode::ClusterWide),
    Key::new("compression.zstd.level", Kind::Int, Text("3"), Use::Topic)
        .between(-131_072, 22)
        .mode(Mode::ClusterWide),
    Key::new(
        "controller.performance.always.log.threshold.ms",
        Kind::Long,
        Text("2000"),
        Use::NoEffect,
    )
    .at_least(0)
    .internal(),
    Key::new(
        "controller.performance.sample.period.ms",
        Kind::Long,
        Text("60000"),
        Use::NoEffect,
    )
    .at_least(100)
    .internal(),
    Key::new(
        "controller.socket.timeout.ms",
        Kind::Int,
        Text("30000"),
        Use::NoEffect,
    ),
    Key::new(
        "delegation.token.expiry.check.interval.ms",
        Kind::Long,
        Text("3600000"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "delegation.token.expiry.time.ms",
        Kind::Long,
        Text("86400000"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "delegation.token.max.lifetime.ms",
        Kind::Long,
        Text("604800000"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "kafka.metrics.polling.interval.secs",
        Kind::Int,
        Text("10"),
        Use::NoEffect,
    )
    .at_least(1),
    Key::new(
        "kafka.metrics.reporters",
        Kind::List,
        Text(""),
        Use::NoEffect,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    }),
    Key::new(
        "log.cleaner.delete.retention.ms",
        Kind::Long,
        Text("86400000"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.cleaner.max.compaction.lag.ms",
        Kind::Long,
        Text("9223372036854775807"),
        Use::Topic,
    )
    .at_least(1)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.cleaner.min.cleanable.ratio",
        Kind::Double,
        Text("0.5"),
        Use::Topic,
    )
    .rule(Rule::BetweenDoubles(0.0, 1.0))
    .mode(Mode::ClusterWide),
    Key::new(
        "log.cleaner.min.compaction.lag.ms",
        Kind::Long,
        Text("0"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new("log.cleanup.policy", Kind::List, Text("delete"), Use::Topic)
        .rule(Rule::List {
            empty: true,
            null: false,
            of: &["compact", "delete"],
        })
        .mode(Mode::ClusterWide),
    Key::new(
        "log.flush.interval.messages",
        Kind::Long,
        Text("9223372036854775807"),
        Use::Topic,
    )
    .at_least(1)
    .mode(Mode::ClusterWide),
    Key::new("log.flush.interval.ms", Kind::Long, Null, Use::Topic).mode(Mode::ClusterWide),
    Key::new(
        "log.flush.scheduler.interval.ms",
        Kind::Long,
        Text("9223372036854775807"),
        Use::Topic,
    ),
    Key::new(
        "log.index.interval.bytes",
        Kind::Int,
        Text("4096"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.index.size.max.bytes",
        Kind::Int,
        Text("10485760"),
        Use::Topic,
    )
    .at_least(4)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.local.retention.bytes",
        Kind::Long,
        Text("-2"),
        Use::Topic,
    )
    .at_least(-2)
    .mode(Mode::ClusterWide),
    Key::new("log.local.retention.ms", Kind::Long, Text("-2"), Use::Topic)
        .at_least(-2)
        .mode(Mode::ClusterWide),
    Key::new(
        "log.message.timestamp.after.max.ms",
        Kind::Long,
        Text("3600000"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.message.timestamp.before.max.ms",
        Kind::Long,
        Text("9223372036854775807"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.message.timestamp.type",
        Kind::String,
        Text("CreateTime"),
        Use::Topic,
    )
    .rule(Rule::OneOf(&["CreateTime", "LogAppendTime"]))
    .mode(Mode::ClusterWide),
    Key::new("log.preallocate", Kind::Boolean, Text("false"), Use::Topic).mode(Mode::ClusterWide),
    Key::new(
        "log.remote.copy.lag.bytes",
        Kind::Long,
        Text("-1"),
        Use::Topic,
    )
    .at_least(-1)
    .mode(Mode::ClusterWide),
    Key::new("log.remote.copy.lag.ms", Kind::Long, Text("0"), Use::Topic)
        .at_least(-1)
        .mode(Mode::ClusterWide),
    Key::new("log.retention.bytes", Kind::Long, Text("-1"), Use::Topic).mode(Mode::ClusterWide),
    Key::new("log.retention.hours", Kind::Int, Text("168"), Use::Topic),
    Key::new("log.retention.minutes", Kind::Int, Null, Use::Topic),
    Key::new("log.retention.ms", Kind::Long, Null, Use::Topic).mode(Mode::ClusterWide),
    Key::new("log.roll.hours", Kind::Int, Text("168"), Use::Topic).at_least(1),
    Key::new("log.roll.jitter.hours", Kind::Int, Text("0"), Use::Topic).at_least(0),
    Key::new("log.roll.jitter.ms", Kind::Long, Null, Use::Topic).mode(Mode::ClusterWide),
    Key::new("log.roll.ms", Kind::Long, Null, Use::Topic).mode(Mode::ClusterWide),
    Key::new(
        "log.segment.bytes",
        Kind::Int,
        Text("1073741824"),
        Use::Topic,
    )
    .at_least(1_048_576)
    .mode(Mode::ClusterWide),
    Key::new(
        "log.segment.delete.delay.ms",
        Kind::Long,
        Text("60000"),
        Use::Topic,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "max.decompressed.message.bytes",
        Kind::Int,
        Text("2147483639"),
        Use::Topic,
    )
    .between(1, 2_147_483_639)
    .mode(Mode::ClusterWide),
    Key::new("message.max.bytes", Kind::Int, Text("1048588"), Use::Topic)
        .at_least(0)
        .mode(Mode::ClusterWide),
    Key::new(
        "metric.reporters",
        Kind::List,
        Text("org.apache.kafka.common.metrics.JmxReporter"),
        Use::NoEffect,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    })
    .mode(Mode::ClusterWide),
    Key::new("metrics.num.samples", Kind::Int, Text("2"), Use::NoEffect).at_least(1),
    Key::new(
        "metrics.recording.level",
        Kind::String,
        Text("INFO"),
        Use::NoEffect,
    ),
    Key::new(
        "metrics.sample.window.ms",
        Kind::Long,
        Text("30000"),
        Use::NoEffect,
    )
    .at_least(1),
    Key::new("min.insync.replicas", Kind::Int, Text("1"), Use::Topic)
        .at_least(1)
        .mode(Mode::ClusterWide),
    Key::new("num.io.threads", Kind::Int, Text("8"), Use::NoEffect)
        .at_least(1)
        .mode(Mode::ClusterWide),
    Key::new("num.network.threads", Kind::Int, Text("3"), Use::NoEffect)
        .at_least(1)
        .mode(Mode::ClusterWide),
    Key::new("quota.window.num", Kind::Int, Text("11"), Use::NoEffect).at_least(1),
    Key::new(
        "quota.window.size.seconds",
        Kind::Int,
        Text("1"),
        Use::NoEffect,
    )
    .at_least(1),
    Key::new("security.providers", Kind::String, Null, Use::NoEffect),
    Key::new(
        "server.max.startup.time.ms",
        Kind::Long,
        Text("9223372036854775807"),
        Use::NoEffect,
    )
    .at_least(0)
    .internal(),
    Key::new(
        "unclean.leader.election.enable",
        Kind::Boolean,
        Text("false"),
        Use::Topic,
    )
    .mode(Mode::ClusterWide),
    Key::new(
        "unstable.api.versions.enable",
        Kind::Boolean,
        Text("false"),
        Use::NoEffect,
    )
    .internal(),
];
