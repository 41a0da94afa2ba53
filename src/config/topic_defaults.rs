//! What a topic config is worth when neither the topic nor a dynamic broker config sets it: the
//! server's key, in the topic key's unit.

use std::collections::BTreeMap;

use super::values::Values;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// Topic keys whose server key has the same type and unit.
pub(crate) const SAME: [(&str, &str); 28] = [
    ("cleanup.policy", "log.cleanup.policy"),
    ("compression.gzip.level", "compression.gzip.level"),
    ("compression.lz4.level", "compression.lz4.level"),
    ("compression.type", "compression.type"),
    ("compression.zstd.level", "compression.zstd.level"),
    ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    ("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    ("flush.messages", "log.flush.interval.messages"),
    ("index.interval.bytes", "log.index.interval.bytes"),
    ("local.retention.bytes", "log.local.retention.bytes"),
    ("local.retention.ms", "log.local.retention.ms"),
    ("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    (
        "max.decompressed.message.bytes",
        "max.decompressed.message.bytes",
    ),
    ("max.message.bytes", "message.max.bytes"),
    (
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
    (
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
    ),
    ("message.timestamp.type", "log.message.timestamp.type"),
    (
        "min.cleanable.dirty.ratio",
        "log.cleaner.min.cleanable.ratio",
    ),
    ("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    ("min.insync.replicas", "min.insync.replicas"),
    ("preallocate", "log.preallocate"),
    ("remote.copy.lag.bytes", "log.remote.copy.lag.bytes"),
    ("remote.copy.lag.ms", "log.remote.copy.lag.ms"),
    ("retention.bytes", "log.retention.bytes"),
    ("segment.bytes", "log.segment.bytes"),
    ("segment.index.bytes", "log.index.size.max.bytes"),
    (
        "unclean.leader.election.enable",
        "unclean.leader.election.enable",
    ),
    ("flush.ms", "log.flush.interval.ms"),
];

/// `log.roll.ms`, else `log.roll.hours`.
pub(crate) fn roll_ms(values: &Values) -> i64 {
    let hours = || values.number("log.roll.hours") * HOUR_MS;
    values.number_of("log.roll.ms").unwrap_or_else(hours)
}

/// `log.roll.jitter.ms`, else `log.roll.jitter.hours`.
pub(crate) fn jitter_ms(values: &Values) -> i64 {
    let hours = || values.number("log.roll.jitter.hours") * HOUR_MS;
    values.number_of("log.roll.jitter.ms").unwrap_or_else(hours)
}

/// `log.retention.ms`, else `.minutes`, else `.hours`; -1 for every negative one.
pub(crate) fn retention_ms(values: &Values) -> i64 {
    let minutes = || {
        let minutes = values.number_of("log.retention.minutes");
        minutes.map(|minutes| minutes * MINUTE_MS)
    };
    let ms = values
        .number_of("log.retention.ms")
        .or_else(minutes)
        .unwrap_or_else(|| values.number("log.retention.hours") * HOUR_MS);
    ms.max(-1)
}

/// Every topic key that has a server key, with its default as text.
pub(crate) fn of(values: &Values) -> BTreeMap<&'static str, String> {
    let mut defaults: BTreeMap<_, _> = SAME
        .into_iter()
        .filter_map(|(topic, server)| Some((topic, values.get(server).text()?)))
        .collect();
    defaults
        .entry("flush.ms")
        .or_insert_with(|| values.number("log.flush.scheduler.interval.ms").to_string());
    defaults.insert("segment.ms", roll_ms(values).to_string());
    defaults.insert("segment.jitter.ms", jitter_ms(values).to_string());
    defaults.insert("retention.ms", retention_ms(values).to_string());
    defaults
}
