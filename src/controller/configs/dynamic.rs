//! Which stored configurations of brokers hold on a node (KIP-226). Any key of a broker can be
//! written; a node passes over what cannot change while it runs, or not at that level.

use super::definition::{Check, Definition, Kind, Value, list};
use super::{server_keys, topic};
use crate::controller::Settings;
use crate::image::{ConfigResource, Image};
use crate::types::config_keys::BROKER_ONLY_DYNAMIC;

/// The level that a value was set at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// For all nodes.
    Cluster,
    /// For one node.
    Node,
}

/// Keys that hold for one listener only, under its prefix.
const WITH_PREFIX_ONLY: [&str; 10] = [
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// Keys that hold for one node only.
const PER_NODE: [&str; 27] = [
    "cordoned.log.dirs",
    "listener.security.protocol.map",
    "listeners",
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
];

/// Keys of a listener that may be set for all nodes.
const LISTENER_KEYS_OF_ALL: [&str; 3] = [
    "max.connection.creation.rate",
    "max.connections",
    "num.network.threads",
];

/// True for a key that can only be set while the node runs; its values are of type LONG.
pub(super) fn is_only_dynamic(name: &str) -> bool {
    BROKER_ONLY_DYNAMIC.contains(&name)
}

/// Keys of a listener that may have a mechanism in front of them, too.
const OF_MECHANISM: [&str; 5] = [
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
];

/// What stands behind a listener in a key.
fn behind_listener(name: &str) -> Option<&str> {
    let (_, key) = name.strip_prefix("listener.name.")?.split_once('.')?;
    Some(key)
}

/// The key that this one is for one listener, and for one of its mechanisms where it has any.
fn of_listener(name: &str) -> Option<&str> {
    let key = behind_listener(name)?;
    let plain = OF_MECHANISM.iter().find(|plain| key.ends_with(*plain));
    Some(plain.map_or(key, |plain| plain))
}

/// The type of a key's values; `None` when nobody here knows the key.
pub(super) fn kind_of(name: &str) -> Option<Kind> {
    let find = |name: &str| server_keys::find(name).map(|key| key.kind);
    find(name)
        .or_else(|| find(of_listener(name)?))
        .or_else(|| is_only_dynamic(name).then_some(Kind::Long))
}

/// True when this value of a key that was set at this level holds. Those of plug-ins do: nobody
/// here knows them. One that is none of the key's type, or out of its range, does not.
pub(super) fn holds(name: &str, value: &str, level: Level) -> bool {
    why_not(name, value, level).is_none()
}

/// Why this value does not hold: the end of a sentence about it.
fn why_not(name: &str, value: &str, level: Level) -> Option<String> {
    if server_keys::find(name).is_some_and(|key| !key.dynamic) {
        return Some("it cannot change while a node runs".to_owned());
    }
    if WITH_PREFIX_ONLY.contains(&name) {
        return Some("it holds only behind the prefix of a listener".to_owned());
    }
    if level == Level::Cluster && is_per_node(name) {
        return Some("it can be set for a single node only".to_owned());
    }
    read(name, value).err()
}

/// The number that a node takes this value of a key for, where the key has numbers, may change
/// while the node runs, and takes the value.
#[must_use]
pub fn number(name: &str, value: &str) -> Option<i64> {
    match read(name, value) {
        Ok(Some(Value::Number(number))) => Some(number),
        Ok(_) | Err(_) => None,
    }
}

/// What a node takes this value for, or why it does not; `None` for keys that cannot change while
/// it runs, which are not asked. A listener in front of a key changes nothing, a mechanism does.
fn read(name: &str, value: &str) -> Result<Option<Value>, String> {
    let plain = behind_listener(name).unwrap_or(name);
    let dynamic = server_keys::find(plain).filter(|key| key.dynamic);
    let only = is_only_dynamic(plain).then_some(Kind::Long);
    let Some(kind) = dynamic.map(|key| key.kind).or(only) else {
        return Ok(None);
    };
    let definition = Definition {
        name: "",
        kind,
        default: None,
        check: range(plain),
    };
    let read = definition.read(value).map_err(|sentence| {
        let told = sentence.strip_prefix(&format!("Invalid value {value} for configuration : "));
        told.unwrap_or(&sentence).to_owned()
    })?;
    match &read {
        // A list of a topic may say a thing twice, one of a node may not.
        Value::List(items)
            if definition.check != Check::Any
                && (items.len() != list(value).len()
                    || (plain == "listeners" && items.is_empty())) =>
        {
            Err("no entry may be empty, or there twice".to_owned())
        }
        Value::Number(0) if LETS_IN.contains(&plain) => Err(NOBODY_CONNECTS.to_owned()),
        _ => Ok(Some(read)),
    }
}

/// Why a limit does not hold that would shut the door: the end of a sentence.
pub const NOBODY_CONNECTS: &str = "nobody could connect any more, not even to take it back";

/// With 0 of these nobody could connect. A file may say so, and is changed by who can start a node.
const LETS_IN: [&str; 2] = ["max.connection.creation.rate", "max.connections"];

/// A stored configuration of this node, or of all, that its key does not take. A controller writes
/// down any value for a broker's key; who set it learns from nobody else that nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The key.
    pub key: String,
    /// What is stored.
    pub value: String,
    /// True when it is set for all nodes, false when for this one.
    pub of_all: bool,
    /// The end of a sentence.
    pub why: String,
    /// What counts in its place; `None` is nothing.
    pub counts: Option<String>,
}

/// Every configuration of the node of `settings`, and of all nodes, that does not hold: first those
/// of the node, each in the order of keys.
pub fn unusable<'a>(
    image: &'a Image,
    settings: &'a Settings,
) -> impl Iterator<Item = Unusable> + use<'a> {
    let node = ConfigResource::broker(settings.node_id);
    let layers = [
        (Level::Node, image.config(&node)),
        (Level::Cluster, image.config(&ConfigResource::all_brokers())),
    ];
    layers.into_iter().flat_map(move |(level, map)| {
        let set = map.into_iter().flat_map(|map| map.iter());
        set.filter_map(move |(key, value)| {
            let why = why_not(key, value, level)?;
            let counts = counts(image, settings, key);
            if key == MIN_ISR && counts == topic::stored_min_isr(value).map(|it| it.to_string()) {
                // Out of its range, and yet leaders are chosen by it, as Java's controller does.
                return None;
            }
            Some(Unusable {
                why,
                counts,
                key: key.to_owned(),
                value: shown(key, value).to_owned(),
                of_all: level == Level::Cluster,
            })
        })
    })
}

const MIN_ISR: &str = "min.insync.replicas";

/// The value of `min.insync.replicas` of this node, or of all, that leaders are chosen by although
/// it is below 1, and whether it is that of all: as in Java, where only its brokers pass over it.
#[must_use]
pub fn min_isr_below_one<'a>(image: &'a Image, settings: &'a Settings) -> Option<(&'a str, bool)> {
    match topic::counting_min_isr(image, settings)? {
        (topic::Source::Node, value, 0) => Some((value, false)),
        (topic::Source::Cluster, value, 0) => Some((value, true)),
        _ => None,
    }
}

/// What counts for a key of which a layer has a value that does not hold.
fn counts(image: &Image, settings: &Settings, key: &str) -> Option<String> {
    match key {
        // What leaders are chosen by goes its own way: see `leaders`.
        "unclean.leader.election.enable" => {
            return topic::cluster_value(image, settings, key)
                .map(|value| value.eq_ignore_ascii_case("true").to_string());
        }
        MIN_ISR => return Some(topic::cluster_min_isr(image, settings).to_string()),
        _ => {}
    }
    let held = topic::Layers::held(image, settings).lookup(key).next();
    let default = || server_keys::find(key)?.default;
    held.map(|(_, value)| value)
        .or_else(default)
        .map(|value| shown(key, value).to_owned())
}

/// Secrets are never shown; whatever nobody here knows may be one.
fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    match kind_of(key) {
        None | Some(Kind::Password) => "[hidden]",
        Some(_) => value,
    }
}

/// Which values a key takes that can change while a node runs.
#[rustfmt::skip]
fn range(name: &str) -> Check {
    match name {
        "compression.gzip.level" => Check::BetweenOrMinusOne(1, 9),
        "compression.lz4.level" => Check::Between(1, 17),
        "compression.zstd.level" => Check::Between(-131_072, 22),
        "compression.type" => Check::OneOf(topic::CODECS),
        "log.cleaner.min.cleanable.ratio" => Check::Between(0, 1),
        "log.cleanup.policy" => Check::ListOf(topic::POLICIES),
        "log.message.timestamp.type" => Check::OneOf(topic::TIMESTAMPS),
        "max.decompressed.message.bytes" => Check::Between(1, topic::ARRAY_MAX),
        "ssl.client.auth" => Check::OneOf(&["required", "requested", "none"]),
        "cordoned.log.dirs" | "listeners" | "metric.reporters" | "sasl.enabled.mechanisms"
        | "sasl.kerberos.principal.to.local.rules" | "ssl.cipher.suites"
        | "ssl.enabled.protocols" => Check::UniqueList,
        "log.local.retention.bytes" | "log.local.retention.ms" => Check::AtLeast(-2),
        "log.remote.copy.lag.bytes" | "log.remote.copy.lag.ms" => Check::AtLeast(-1),
        "group.consumer.assignment.interval.ms" | "group.share.assignment.interval.ms"
        | "group.streams.assignment.interval.ms" | "log.cleaner.backoff.ms"
        | "log.cleaner.delete.retention.ms" | "log.cleaner.io.buffer.size"
        | "log.cleaner.min.compaction.lag.ms" | "log.cleaner.threads"
        | "log.index.interval.bytes" | "log.message.timestamp.after.max.ms"
        | "log.message.timestamp.before.max.ms" | "log.segment.delete.delay.ms"
        | "max.connection.creation.rate" | "max.connections" | "max.connections.per.ip"
        | "message.max.bytes" => Check::AtLeast(0),
        "background.threads" | "log.cleaner.max.compaction.lag.ms"
        | "log.flush.interval.messages" | "min.insync.replicas" | "num.io.threads"
        | "num.network.threads" | "num.recovery.threads.per.data.dir" | "num.replica.fetchers"
        | "producer.id.expiration.ms" | "remote.fetch.max.wait.ms"
        | "remote.list.offsets.request.timeout.ms"
        | "remote.log.index.file.cache.total.size.bytes"
        | "remote.log.manager.copier.thread.pool.size"
        | "remote.log.manager.copy.max.bytes.per.second"
        | "remote.log.manager.expiration.thread.pool.size"
        | "remote.log.manager.fetch.max.bytes.per.second"
        | "remote.log.manager.follower.thread.pool.size"
        | "remote.log.reader.threads" => Check::AtLeast(1),
        "log.index.size.max.bytes" => Check::AtLeast(4),
        "group.coordinator.cached.buffer.max.bytes"
        | "share.coordinator.cached.buffer.max.bytes" => Check::AtLeast(524_288),
        "log.segment.bytes" => Check::AtLeast(1_048_576),
        name if is_only_dynamic(name) => Check::AtLeast(0),
        _ => Check::Any,
    }
}

fn is_per_node(name: &str) -> bool {
    if PER_NODE.contains(&name) {
        return true;
    }
    of_listener(name).is_some_and(|key| !LISTENER_KEYS_OF_ALL.contains(&key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::configs;

    #[test]
    fn keys_of_one_listener_or_one_node_do_not_hold_for_all_nodes() {
        let levels = |name: &str| {
            let value = if name == "ssl.client.auth" {
                "none"
            } else {
                "1"
            };
            let at = |level| holds(name, value, level);
            (at(Level::Cluster), at(Level::Node))
        };
        assert_eq!(levels("log.retention.ms"), (true, true));
        assert_eq!(levels("no.such.key"), (true, true));
        assert_eq!(levels("node.id"), (false, false));
        assert_eq!(levels("ssl.keystore.password"), (false, false));
        assert_eq!(levels("ssl.client.auth"), (false, true));
        assert_eq!(levels("listener.name.x.ssl.key.password"), (false, true));
        assert_eq!(levels("listener.name.x.max.connections"), (true, true));
        assert_eq!(levels("max.connections"), (true, true));
        assert_eq!(levels("cordoned.log.dirs"), (false, true));
    }

    #[test]
    fn a_value_of_another_type_or_out_of_its_range_does_not_hold() {
        for (name, value, expected) in [
            ("log.retention.ms", "soon", false),
            ("leader.replication.throttled.rate", "1000", true),
            ("leader.replication.throttled.rate", "fast", false),
            ("leader.replication.throttled.rate", "-1", false),
            ("message.max.bytes", " 5 ", true),
            ("message.max.bytes", "-1", false),
            ("log.segment.bytes", "13", false),
            ("log.retention.ms", "-5", true),
            ("ssl.client.auth", "REQUIRED", false),
            ("log.cleanup.policy", "", true),
            ("log.cleanup.policy", "delete,delete", false),
            ("metric.reporters", "a,,b", false),
            ("listeners", "", false),
            ("config.providers", "a,a", true),
            ("listener.name.x.max.connections", "-1", false),
            ("listener.name.x.plain.sasl.jaas.config", "x", true),
            ("no.such.key", "x", true),
        ] {
            assert_eq!(holds(name, value, Level::Node), expected, "{name}={value}");
        }
        assert_eq!(
            kind_of("leader.replication.throttled.rate"),
            Some(Kind::Long)
        );
        assert_eq!(kind_of("no.such.key"), None);
        let kind = |key: &str| kind_of(&format!("listener.name.x.{key}"));
        assert_eq!(kind("ssl.key.password"), Some(Kind::Password));
        assert_eq!(kind("plain.sasl.jaas.config"), Some(Kind::Password));
        assert_eq!(kind("max.connections"), Some(Kind::Int));
        assert_eq!(kind("no.such.key"), None);
    }

    #[test]
    fn a_limit_that_would_let_nobody_in_does_not_hold() {
        for key in ["max.connections", "max.connection.creation.rate"] {
            for name in [key.to_owned(), format!("listener.name.controller.{key}")] {
                for level in [Level::Node, Level::Cluster] {
                    assert!(!holds(&name, "0", level), "{name}");
                    assert!(holds(&name, "1", level), "{name}");
                }
            }
        }
        // A single address may be shut out.
        assert!(holds("max.connections.per.ip", "0", Level::Node));
    }

    #[test]
    fn values_that_do_not_hold_are_told_with_what_counts_in_their_place() {
        use crate::controller::testing::World;

        let mut world = World::with_brokers(&[]);
        let file = [("min.insync.replicas", "2"), ("num.io.threads", "5")];
        let file = file.map(|(key, value)| (key.to_owned(), value.to_owned()));
        world.settings.static_configs.extend(file);
        let node = world.settings.node_id.to_string();
        for (name, key, value) in [
            ("", "max.connections", "100"),
            (node.as_str(), "max.connections", "abc"),
            (&node, "unclean.leader.election.enable", "yes"),
            (&node, "listener.name.x.max.connections", "0"),
            (&node, "sasl.jaas.config", "secret"),
            (&node, "log.retention.ms", "1000"),
            ("", "min.insync.replicas", "abc"),
            ("", "num.io.threads", "0"),
            ("", "node.id", "7"),
            ("", "no.such.key", "abc"),
            ("", "listener.name.x.sasl.jaas.config", "secret"),
            ("999", "max.connections", "abc"),
        ] {
            world.config(configs::BROKER, name, key, value);
        }
        let found = unusable(&world.image, &world.settings);
        let found: Vec<_> = found
            .map(|it| (it.key, it.value, it.of_all, it.counts))
            .collect();
        let expected = [
            ("listener.name.x.max.connections", "0", false, None),
            ("max.connections", "abc", false, Some("100")),
            (
                "unclean.leader.election.enable",
                "yes",
                false,
                Some("false"),
            ),
            ("listener.name.x.sasl.jaas.config", "[hidden]", true, None),
            ("min.insync.replicas", "abc", true, Some("2")),
            ("node.id", "7", true, None),
            ("num.io.threads", "0", true, Some("5")),
        ];
        let expected = expected.map(|(key, value, of_all, counts)| {
            let counts = counts.map(str::to_owned);
            (key.to_owned(), value.to_owned(), of_all, counts)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_smallest_isr_out_of_its_range_that_counts_is_not_told_as_without_effect() {
        use crate::controller::testing::World;

        let mut world = World::with_brokers(&[]);
        let node = world.settings.node_id.to_string();
        let file = (MIN_ISR.to_owned(), "2".to_owned());
        world.settings.static_configs.extend([file]);
        let told = |world: &World| {
            let found = unusable(&world.image, &world.settings);
            found
                .map(|it| (it.value, it.counts.unwrap_or_default()))
                .collect::<Vec<_>>()
        };
        let pair = |value: &str, counts: &str| vec![(value.to_owned(), counts.to_owned())];
        for value in ["-1", "0"] {
            world.config(configs::BROKER, "", MIN_ISR, value);
            assert_eq!(topic::cluster_min_isr(&world.image, &world.settings), 0);
            let below = min_isr_below_one(&world.image, &world.settings);
            assert_eq!(below, Some((value, true)));
            assert_eq!(told(&world), [], "{value}");
        }
        // What stands above it counts in its place.
        world.config(configs::BROKER, &node, MIN_ISR, "3");
        assert_eq!(told(&world), pair("0", "3"));
        assert_eq!(min_isr_below_one(&world.image, &world.settings), None);
        world.config(configs::BROKER, &node, MIN_ISR, "abc");
        assert_eq!(told(&world), pair("abc", "0"));
    }
}
