//! The keys of topics: definitions, effective values, and what must hold between them.

use std::collections::BTreeMap;

use super::alter::unknown_key;
use super::definition::{Check, Definition, Kind, Value};
use super::dynamic::{Level, holds};
use crate::controller::Settings;
use crate::image::{ConfigMap, ConfigResource, Image};
use crate::types::{ApiError, ErrorCode};

const fn key(name: &'static str, kind: Kind, default: &'static str, check: Check) -> Definition {
    Definition {
        name,
        kind,
        default: Some(default),
        check,
    }
}

const LONG_MAX: &str = "9223372036854775807";
/// The longest array of the JVMs that brokers run on.
pub(super) const ARRAY_MAX: i64 = 2_147_483_639;
pub(super) const POLICIES: &[&str] = &["compact", "delete"];
pub(super) const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
pub(super) const TIMESTAMPS: &[&str] = &["CreateTime", "LogAppendTime"];

/// The one key that is shown only where it is set: brokers use it in their own tests.
const INTERNAL: &str = "internal.segment.bytes";

/// Every key of a topic in release 4.4. The order decides which of several bad values is told.
#[rustfmt::skip]
pub const DEFINITIONS: &[Definition] = &[
    key("segment.bytes", Kind::Int, "1073741824", Check::AtLeast(1_048_576)),
    key("segment.ms", Kind::Long, "604800000", Check::AtLeast(1)),
    key("segment.jitter.ms", Kind::Long, "0", Check::AtLeast(0)),
    key("segment.index.bytes", Kind::Int, "10485760", Check::AtLeast(4)),
    key("flush.messages", Kind::Long, LONG_MAX, Check::AtLeast(1)),
    key("flush.ms", Kind::Long, LONG_MAX, Check::AtLeast(0)),
    key("retention.bytes", Kind::Long, "-1", Check::Any),
    key("retention.ms", Kind::Long, "604800000", Check::AtLeast(-1)),
    key("max.message.bytes", Kind::Int, "1048588", Check::AtLeast(0)),
    key("max.decompressed.message.bytes", Kind::Int, "2147483639", Check::Between(1, ARRAY_MAX)),
    key("index.interval.bytes", Kind::Int, "4096", Check::AtLeast(0)),
    key("delete.retention.ms", Kind::Long, "86400000", Check::AtLeast(0)),
    key("min.compaction.lag.ms", Kind::Long, "0", Check::AtLeast(0)),
    key("max.compaction.lag.ms", Kind::Long, LONG_MAX, Check::AtLeast(1)),
    key("file.delete.delay.ms", Kind::Long, "60000", Check::AtLeast(0)),
    key("min.cleanable.dirty.ratio", Kind::Double, "0.5", Check::Between(0, 1)),
    key("cleanup.policy", Kind::List, "delete", Check::ListOf(POLICIES)),
    key("unclean.leader.election.enable", Kind::Boolean, "false", Check::Any),
    key("min.insync.replicas", Kind::Int, "1", Check::AtLeast(1)),
    key("compression.type", Kind::String, "producer", Check::OneOf(CODECS)),
    key("compression.gzip.level", Kind::Int, "-1", Check::BetweenOrMinusOne(1, 9)),
    key("compression.lz4.level", Kind::Int, "9", Check::Between(1, 17)),
    key("compression.zstd.level", Kind::Int, "3", Check::Between(-131_072, 22)),
    key("preallocate", Kind::Boolean, "false", Check::Any),
    key("message.timestamp.type", Kind::String, "CreateTime", Check::OneOf(TIMESTAMPS)),
    key("message.timestamp.before.max.ms", Kind::Long, LONG_MAX, Check::AtLeast(0)),
    key("message.timestamp.after.max.ms", Kind::Long, "3600000", Check::AtLeast(0)),
    key("leader.replication.throttled.replicas", Kind::List, "", Check::ThrottledReplicas),
    key("follower.replication.throttled.replicas", Kind::List, "", Check::ThrottledReplicas),
    key("remote.storage.enable", Kind::Boolean, "false", Check::Any),
    key("local.retention.ms", Kind::Long, "-2", Check::AtLeast(-2)),
    key("local.retention.bytes", Kind::Long, "-2", Check::AtLeast(-2)),
    key("remote.log.copy.disable", Kind::Boolean, "false", Check::Any),
    key("remote.copy.lag.ms", Kind::Long, "0", Check::AtLeast(-1)),
    key("remote.copy.lag.bytes", Kind::Long, "-1", Check::AtLeast(-1)),
    key("remote.log.delete.on.disable", Kind::Boolean, "false", Check::Any),
    key("errors.deadletterqueue.group.enable", Kind::Boolean, "false", Check::Any),
    Definition { name: INTERNAL, kind: Kind::Int, default: None, check: Check::Any },
];

/// How the number of a server key becomes the topic key's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As it is.
    Same,
    /// Hours to milliseconds.
    Hours,
    /// Minutes to milliseconds.
    Minutes,
}

impl Unit {
    /// The topic key's value. As in Java, an hour or minute key that is no number counts as 0.
    #[must_use]
    pub fn convert(self, value: &str) -> String {
        let factor = match self {
            Self::Same => return value.to_owned(),
            Self::Hours => 3_600_000,
            Self::Minutes => 60_000,
        };
        let number: i32 = super::definition::trim(value).parse().unwrap_or(0);
        (i64::from(number) * factor).to_string()
    }
}

/// The server keys that give a topic key its default, the first one that is set wins.
#[rustfmt::skip]
#[must_use]
pub fn synonyms(name: &str) -> &'static [(&'static str, Unit)] {
    use Unit::{Hours, Minutes, Same};
    match name {
        "segment.bytes" => &[("log.segment.bytes", Same)],
        "segment.ms" => &[("log.roll.ms", Same), ("log.roll.hours", Hours)],
        "segment.jitter.ms" => &[("log.roll.jitter.ms", Same), ("log.roll.jitter.hours", Hours)],
        "segment.index.bytes" => &[("log.index.size.max.bytes", Same)],
        "flush.messages" => &[("log.flush.interval.messages", Same)],
        "flush.ms" => &[("log.flush.interval.ms", Same), ("log.flush.scheduler.interval.ms", Same)],
        "retention.bytes" => &[("log.retention.bytes", Same)],
        "retention.ms" => &[
            ("log.retention.ms", Same),
            ("log.retention.minutes", Minutes),
            ("log.retention.hours", Hours),
        ],
        "max.message.bytes" => &[("message.max.bytes", Same)],
        "max.decompressed.message.bytes" => &[("max.decompressed.message.bytes", Same)],
        "index.interval.bytes" => &[("log.index.interval.bytes", Same)],
        "delete.retention.ms" => &[("log.cleaner.delete.retention.ms", Same)],
        "min.compaction.lag.ms" => &[("log.cleaner.min.compaction.lag.ms", Same)],
        "max.compaction.lag.ms" => &[("log.cleaner.max.compaction.lag.ms", Same)],
        "file.delete.delay.ms" => &[("log.segment.delete.delay.ms", Same)],
        "min.cleanable.dirty.ratio" => &[("log.cleaner.min.cleanable.ratio", Same)],
        "cleanup.policy" => &[("log.cleanup.policy", Same)],
        "unclean.leader.election.enable" => &[("unclean.leader.election.enable", Same)],
        "min.insync.replicas" => &[("min.insync.replicas", Same)],
        "compression.type" => &[("compression.type", Same)],
        "compression.gzip.level" => &[("compression.gzip.level", Same)],
        "compression.lz4.level" => &[("compression.lz4.level", Same)],
        "compression.zstd.level" => &[("compression.zstd.level", Same)],
        "preallocate" => &[("log.preallocate", Same)],
        "message.timestamp.type" => &[("log.message.timestamp.type", Same)],
        "message.timestamp.before.max.ms" => &[("log.message.timestamp.before.max.ms", Same)],
        "message.timestamp.after.max.ms" => &[("log.message.timestamp.after.max.ms", Same)],
        "local.retention.ms" => &[("log.local.retention.ms", Same)],
        "local.retention.bytes" => &[("log.local.retention.bytes", Same)],
        "remote.copy.lag.ms" => &[("log.remote.copy.lag.ms", Same)],
        "remote.copy.lag.bytes" => &[("log.remote.copy.lag.bytes", Same)],
        _ => &[],
    }
}

/// The definition of a key.
#[must_use]
pub fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS
        .iter()
        .find(|definition| definition.name == name)
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Set on the topic.
    Topic,
    /// Set dynamically for this node.
    Node,
    /// Set dynamically for all brokers.
    Cluster,
    /// This node's file.
    File,
    /// The definition.
    Default,
}

impl Source {
    /// The number in responses (KIP-226).
    #[must_use]
    pub const fn id(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::Node => 2,
            Self::Cluster => 3,
            Self::File => 4,
            Self::Default => 5,
        }
    }
}

/// A key with the value that holds.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The key.
    pub definition: &'static Definition,
    /// The value as text.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

impl Effective {
    /// The value that a broker uses. It does not use a bad one of its own keys (the controller
    /// takes any value for them), and any time below zero in hours or minutes is "no limit".
    ///
    /// # Errors
    /// The value is null, or set on the topic and bad.
    pub(super) fn used(&self) -> Result<Value, String> {
        let value = self.value.as_deref().unwrap_or_default();
        if self.source == Source::Topic {
            return self.definition.read(value);
        }
        if self.definition.name == "retention.ms" && value.starts_with('-') {
            return Ok(Value::Number(-1));
        }
        let default = self.definition.default.unwrap_or_default();
        let read = self.definition.read(value);
        read.or_else(|_| self.definition.read(default))
    }
}

/// The three layers below a topic's own configuration.
#[derive(Clone, Copy)]
pub struct Layers<'a> {
    node: Option<&'a ConfigMap>,
    cluster: Option<&'a ConfigMap>,
    file: &'a BTreeMap<String, String>,
    only_what_holds: bool,
}

impl<'a> Layers<'a> {
    /// The layers as they are stored: of these Kafka's controller takes what a partition's leader
    /// and its smallest ISR depend on, and what it tells of a new topic. Kafka takes the dynamic
    /// values of the *controller's own* id, not of the brokers that hold the topic.
    #[must_use]
    pub fn stored(image: &'a Image, settings: &'a Settings) -> Self {
        Self {
            node: image.config(&ConfigResource::broker(settings.node_id)),
            cluster: image.config(&ConfigResource::all_brokers()),
            file: &settings.static_configs,
            only_what_holds: false,
        }
    }

    /// The layers as this node's own configuration has them. Each key that does not hold in a
    /// dynamic layer is passed over there, and only that key: the next layer may still have it.
    #[must_use]
    pub fn held(image: &'a Image, settings: &'a Settings) -> Self {
        Self {
            only_what_holds: true,
            ..Self::stored(image, settings)
        }
    }

    /// The value of a server key in each layer that has it, the strongest first.
    pub fn lookup(self, name: &str) -> impl Iterator<Item = (Source, &'a str)> + use<'a> {
        let dynamic = |map: Option<&'a ConfigMap>, level| {
            let value = map.and_then(|map| map.get(name));
            value.filter(|value| !self.only_what_holds || holds(name, value, level))
        };
        let file = self.file.get(name).map(String::as_str);
        [
            (Source::Node, dynamic(self.node, Level::Node)),
            (Source::Cluster, dynamic(self.cluster, Level::Cluster)),
            (Source::File, file),
        ]
        .into_iter()
        .filter_map(|(source, value)| Some((source, value?)))
    }

    pub(super) fn effective(self, definition: &'static Definition, own: Option<&str>) -> Effective {
        if let Some(value) = own {
            return Effective {
                definition,
                value: Some(value.to_owned()),
                source: Source::Topic,
            };
        }
        // A layer is searched for every synonym before the next layer is.
        for layer in [Source::Node, Source::Cluster, Source::File] {
            for (name, unit) in synonyms(definition.name) {
                let found = self.lookup(name).find(|(source, _)| *source == layer);
                if let Some((source, value)) = found {
                    return Effective {
                        definition,
                        value: Some(unit.convert(value)),
                        source,
                    };
                }
            }
        }
        Effective {
            definition,
            value: definition.default.map(str::to_owned),
            source: Source::Default,
        }
    }
}

/// The keys that are told of a topic, in order of names; `own` gives what is set on it.
pub(super) fn shown<'a>(own: impl Fn(&str) -> Option<&'a str>) -> Vec<&'static Definition> {
    let mut all: Vec<&Definition> = DEFINITIONS
        .iter()
        .filter(|definition| definition.name != INTERNAL || own(INTERNAL).is_some())
        .collect();
    all.sort_unstable_by_key(|definition| definition.name);
    all
}

/// The effective value of every key of a topic in order of names; `own` gives what is set on it.
#[must_use]
pub fn effective<'a>(layers: Layers<'_>, own: impl Fn(&str) -> Option<&'a str>) -> Vec<Effective> {
    let shown = shown(&own).into_iter();
    shown
        .map(|definition| layers.effective(definition, own(definition.name)))
        .collect()
}

/// The effective value of one key of a topic that exists, as text.
#[must_use]
pub fn effective_value(
    image: &Image,
    settings: &Settings,
    topic: &str,
    name: &str,
) -> Option<String> {
    let own = image.topic_config(topic).and_then(|map| map.get(name));
    Layers::stored(image, settings)
        .effective(definition(name)?, own)
        .value
}

/// The effective value of one key for topics that do not set it, as text.
#[must_use]
pub fn cluster_value(image: &Image, settings: &Settings, name: &str) -> Option<String> {
    Layers::stored(image, settings)
        .effective(definition(name)?, None)
        .value
}

/// `min.insync.replicas` for topics that do not set it. A layer whose value is no number is passed
/// over, where Java's controller fails over it.
#[must_use]
pub fn cluster_min_isr(image: &Image, settings: &Settings) -> usize {
    counting_min_isr(image, settings).map_or(1, |(.., number)| number)
}

/// The same as it is set, and where; `None` where nothing is.
pub(super) fn counting_min_isr<'a>(
    image: &'a Image,
    settings: &'a Settings,
) -> Option<(Source, &'a str, usize)> {
    let mut values = Layers::stored(image, settings).lookup("min.insync.replicas");
    values.find_map(|(source, value)| Some((source, value, stored_min_isr(value)?)))
}

/// What a stored `min.insync.replicas` of brokers asks of elections, `None` where it is no number.
/// One below the key's range counts, too, as in Java: no ISR is smaller than that.
pub(super) fn stored_min_isr(value: &str) -> Option<usize> {
    let number = value.trim().parse::<i32>().ok()?;
    Some(usize::try_from(number).unwrap_or(0))
}

/// `min.insync.replicas` as the file has it, or the default: what becomes the cluster's value when
/// eligible leader replicas are switched on.
#[must_use]
pub fn static_min_isr(settings: &Settings) -> String {
    let definition = definition("min.insync.replicas").expect("the table has it");
    let own = settings.static_configs.get(definition.name);
    match own.map(|text| definition.read(text)) {
        Some(Ok(Value::Number(number))) => number.to_string(),
        _ => definition.default.unwrap_or_default().to_owned(),
    }
}

/// Checks the whole configuration of a topic. `before` is what is set on it now.
///
/// # Errors
/// `INVALID_CONFIG` with the sentence of the first violation.
pub(super) fn validate(
    image: &Image,
    settings: &Settings,
    before: Option<&ConfigMap>,
    own: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    let invalid = |message: String| ApiError::new(ErrorCode::InvalidConfig, message);
    if let Some(name) = unknown_key(own, |name| definition(name).is_some()) {
        return Err(invalid(format!("Unknown topic config name: {name}")));
    }
    let layers = Layers::held(image, settings);
    let mut values = BTreeMap::new();
    for definition in DEFINITIONS {
        let text = own.get(definition.name).map(String::as_str);
        let entry = layers.effective(definition, text);
        let Some(value) = &entry.value else {
            continue;
        };
        let value = match definition.read(value) {
            Err(message) if entry.source == Source::Topic => return Err(invalid(message)),
            _ => entry.used().map_err(invalid)?,
        };
        values.insert(definition.name, value);
    }
    let was_remote = before
        .and_then(|map| map.get("remote.storage.enable"))
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let system_enabled = settings
        .static_configs
        .get("remote.log.storage.system.enable")
        .is_some_and(|value| super::definition::trim(value).eq_ignore_ascii_case("true"));
    let typed = Typed(&values);
    typed.check(was_remote, system_enabled).map_err(invalid)
}

/// The values of all keys, read.
struct Typed<'a>(&'a BTreeMap<&'static str, Value>);

impl Typed<'_> {
    fn number(&self, name: &str) -> i64 {
        match self.0.get(name) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Boolean(true))
    }

    fn check(&self, was_remote: bool, system_enabled: bool) -> Result<(), String> {
        let min = self.number("min.compaction.lag.ms");
        let max = self.number("max.compaction.lag.ms");
        if min > max {
            return Err(format!(
                "conflict topic config setting min.compaction.lag.ms ({min}) > \
                 max.compaction.lag.ms ({max})"
            ));
        }
        if self.flag("remote.storage.enable") {
            return self.check_remote(system_enabled);
        }
        if was_remote && !self.flag("remote.log.delete.on.disable") {
            return Err(
                "It is invalid to disable remote storage without deleting remote data. If \
                 you want to keep the remote data and turn to read only, please set \
                 `remote.storage.enable=true,remote.log.copy.disable=true`. If you want to \
                 disable remote storage and delete all remote data, please set \
                 `remote.storage.enable=false,remote.log.delete.on.disable=true`."
                    .into(),
            );
        }
        Ok(())
    }

    /// What tiered storage (KIP-405) asks of a topic.
    fn check_remote(&self, system_enabled: bool) -> Result<(), String> {
        if !system_enabled {
            return Err(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be \
                 configured with remote log storage."
                    .into(),
            );
        }
        let deletes = matches!(
            self.0.get("cleanup.policy"),
            Some(Value::List(policies)) if policies.is_empty() || *policies == ["delete"]
        );
        if !deletes {
            return Err(
                "Remote log storage only supports topics with cleanup.policy=delete or \
                 cleanup.policy being an empty list."
                    .into(),
            );
        }
        // Sizes below zero are no limit; so is the time -1 only.
        let bytes = self.number("retention.bytes");
        self.check_local("local.retention.bytes", "retention.bytes", bytes > -1)?;
        let time = self.number("retention.ms");
        self.check_local("local.retention.ms", "retention.ms", time != -1)?;
        self.check_lag("remote.copy.lag.bytes", "local.retention.bytes", bytes)?;
        self.check_lag("remote.copy.lag.ms", "local.retention.ms", time)?;
        if self.flag("remote.log.copy.disable") {
            self.check_copy_disabled("local.retention.bytes", "retention.bytes")?;
            self.check_copy_disabled("local.retention.ms", "retention.ms")?;
        }
        Ok(())
    }

    /// What is kept locally is not more than what is kept in all; -2 is "the same".
    fn check_local(&self, local: &str, total: &str, limited: bool) -> Result<(), String> {
        let kept = self.number(local);
        let limit = self.number(total);
        if !limited || kept == -2 {
            return Ok(());
        }
        if kept == -1 {
            return Err(format!(
                "Invalid value {kept} for configuration {local}: Value must not be -1 as {total} \
                 value is set as {limit}."
            ));
        }
        if kept > limit {
            return Err(format!(
                "Invalid value {kept} for configuration {local}: Value must not be more than \
                 {total} property value: {limit}"
            ));
        }
        Ok(())
    }

    /// Data is copied before it is deleted locally.
    fn check_lag(&self, lag: &str, local: &str, total: i64) -> Result<(), String> {
        let kept = match self.number(local) {
            -2 => total,
            kept => kept,
        };
        let waits = self.number(lag);
        if waits > 0 && kept >= 0 && waits > kept {
            return Err(format!(
                "Invalid value {waits} for configuration {lag}: Value must not exceed {local} \
                 (effective value: {kept})"
            ));
        }
        Ok(())
    }

    fn check_copy_disabled(&self, local: &str, total: &str) -> Result<(), String> {
        let kept = self.number(local);
        if kept == -2 || kept == self.number(total) {
            return Ok(());
        }
        Err(format!(
            "When `remote.log.copy.disable` is set to true, the `{local}` and `{total}` must be \
             set to the identical value because there will be no more logs copied to the remote \
             storage."
        ))
    }
}
