//! Every key that a 4.4.0 server knows: its type, default, rule, how it may change, and what
//! kraftd does with it. One table in five files; proved against Java's own definition.

mod broker;
mod controller;
mod coordinators;
mod security;
mod topics;

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A key's type, as in Java's ConfigDef.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false` in any case.
    Boolean,
    /// A Java class name.
    Class,
    /// A 64-bit floating point number.
    Double,
    /// A 32-bit number.
    Int,
    /// Comma separated texts.
    List,
    /// A 64-bit number.
    Long,
    /// A text that is never shown.
    Password,
    /// A 16-bit number.
    Short,
    /// A text.
    String,
}

/// What a key is worth when nothing sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// It must be set.
    Required,
    /// No value.
    Null,
    /// This text, parsed as the key's type.
    Text(&'static str),
}

/// Which values of the right type are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// All.
    Any,
    /// Numbers from this one on.
    AtLeast(i64),
    /// Numbers in this range, inclusive.
    Between(i64, i64),
    /// Floating point numbers in this range, inclusive.
    BetweenDoubles(f64, f64),
    /// The levels of gzip: 1 to 9, or -1 for its default.
    GzipLevel,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// A text that is not empty. No value is allowed.
    NotEmpty,
    /// Texts that are not empty and, when `of` has entries, are among them. Duplicates go.
    List {
        /// Whether a list without entries is allowed.
        empty: bool,
        /// Whether no value at all is allowed.
        null: bool,
        /// The allowed entries; none means any.
        of: &'static [&'static str],
    },
    /// `id@host:port` entries.
    Voters,
    /// `host:port` entries.
    Servers,
}

/// How a key may change while a node runs (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only by the file and a restart.
    ReadOnly,
    /// By IncrementalAlterConfigs for one node.
    PerBroker,
    /// By IncrementalAlterConfigs for one node or for all.
    ClusterWide,
}

/// What kraftd does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It steers kraftd.
    Controller,
    /// It is the default of a topic config, which the controller checks and shows.
    Topic,
    /// A cross-key check of the controller reads it, nothing else.
    Checked,
    /// Java's controller reads it; kraftd has nothing that it could steer.
    NoEffect,
    /// It matters only for listeners with TLS.
    Tls,
    /// It matters only for listeners with SASL.
    Sasl,
    /// Any value but the default asks for something that kraftd does not do: what.
    NotBuilt(&'static str),
    /// Only brokers read it.
    Broker,
}

/// A key of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its value when it is not set.
    pub initial: Initial,
    /// Which values are allowed.
    pub rule: Rule,
    /// How it may change.
    pub mode: Mode,
    /// What kraftd does with it.
    pub used: Use,
    /// True for a key that Java hides from its documentation and from DescribeConfigs.
    pub internal: bool,
}

impl Key {
    const fn new(name: &'static str, kind: Kind, initial: Initial, used: Use) -> Self {
        Self {
            name,
            kind,
            initial,
            rule: Rule::Any,
            mode: Mode::ReadOnly,
            used,
            internal: false,
        }
    }

    const fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    const fn at_least(self, least: i64) -> Self {
        self.rule(Rule::AtLeast(least))
    }

    const fn between(self, least: i64, most: i64) -> Self {
        self.rule(Rule::Between(least, most))
    }

    const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }
}

/// All keys, by name.
static TABLE: LazyLock<BTreeMap<&'static str, &'static Key>> = LazyLock::new(|| {
    let keys = [
        controller::KEYS,
        topics::KEYS,
        security::KEYS,
        coordinators::KEYS,
        broker::KEYS,
    ];
    keys.into_iter()
        .flatten()
        .map(|key| (key.name, key))
        .collect()
});

/// The key of this exact name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    TABLE.get(name).copied()
}

/// All keys in the order of their names.
pub fn all() -> impl Iterator<Item = &'static Key> {
    TABLE.values().copied()
}

/// Names that no [`Key`] has but that something reads, or that older releases read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Read by an authorizer class.
    Authorizer,
    /// `config.providers.<name>.*`.
    Provider,
    /// Handed to plugins of brokers under their own prefix.
    Plugin,
    /// Known to 3.9 and gone in 4.0: what replaced it.
    Legacy(&'static str),
    /// A rule of a policy.
    Policy,
    /// A key of kraftd itself that no release of it reads yet.
    Kraftd,
}

/// What `name` is, when it is no key of the table.
#[must_use]
pub fn extra(name: &str) -> Option<Extra> {
    const ZOOKEEPER: &str = "ZooKeeper is gone since 4.0, remove it";
    let legacy = match name {
        "super.users" | "allow.everyone.if.no.acl.found" => return Some(Extra::Authorizer),
        "inter.broker.protocol.version" => "metadata.version replaced it, use kafka-features",
        "log.message.format.version" => "brokers write the newest format, remove it",
        "log.message.downconversion.enable" => "4.0 dropped down-conversion, remove it",
        "log.message.timestamp.difference.max.ms" => {
            "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
        }
        "control.plane.listener.name" => "KRaft has controller.listener.names instead",
        "eligible.leader.replicas.enable" => {
            "the feature eligible.leader.replicas.version replaced it"
        }
        "metadata.log.segment.min.bytes" => "remove it, metadata.log.segment.bytes is enough",
        "delegation.token.master.key" => "use delegation.token.secret.key",
        "leader.imbalance.per.broker.percentage" => "KRaft moves every leader, remove it",
        "reserved.broker.max.id" | "broker.id.generation.enable" => {
            "KRaft has no generated ids, set node.id"
        }
        "controlled.shutdown.max.retries" | "controlled.shutdown.retry.backoff.ms" => {
            "KRaft brokers do not read it, remove it"
        }
        "offsets.commit.required.acks" => "4.0 dropped it, remove it",
        _ if name.starts_with("zookeeper.") => ZOOKEEPER,
        _ if name.starts_with("password.encoder.") => {
            "KRaft stores dynamic passwords without an encoder, remove it"
        }
        _ if name.starts_with("config.providers.") => return Some(Extra::Provider),
        _ if name.starts_with("rlmm.config.") || name.starts_with("rsm.config.") => {
            return Some(Extra::Plugin);
        }
        _ if super::policies::knows(name) => return Some(Extra::Policy),
        _ if name.starts_with("kraftd.") => return Some(Extra::Kraftd),
        _ => return None,
    };
    Some(Extra::Legacy(legacy))
}

#[cfg(test)]
mod tests;
