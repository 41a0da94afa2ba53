//! Which stored configurations of brokers hold on a node (KIP-226). Any key of a broker can be
//! written; a node passes over what cannot change while it runs, or not at that level.

use super::definition::{Check, Definition, Kind};
use super::server_keys;

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

/// Keys of brokers that no file has: rates in bytes a second.
const ONLY_DYNAMIC: [&str; 3] = [
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
];

/// True for a key that can only be set while the node runs; its values are of type LONG.
pub(super) fn is_only_dynamic(name: &str) -> bool {
    ONLY_DYNAMIC.contains(&name)
}

/// Keys of a listener that may have a mechanism in front of them, too.
const OF_MECHANISM: [&str; 5] = [
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
];

/// The key that this one is for one listener.
fn of_listener(name: &str) -> Option<&str> {
    let (_, key) = name.strip_prefix("listener.name.")?.split_once('.')?;
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
/// here knows them. One that is none of the key's type does not.
pub(super) fn holds(name: &str, value: &str, level: Level) -> bool {
    if !has_type(name, value) {
        return false;
    }
    let fixed = server_keys::find(name).is_some_and(|key| !key.dynamic);
    if fixed || WITH_PREFIX_ONLY.contains(&name) {
        return false;
    }
    level == Level::Node || !is_per_node(name)
}

fn has_type(name: &str, value: &str) -> bool {
    let typed = kind_of(name).map(|kind| Definition {
        name: "",
        kind,
        default: None,
        check: Check::Any,
    });
    typed.is_none_or(|definition| definition.read(value).is_ok())
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

    #[test]
    fn keys_of_one_listener_or_one_node_do_not_hold_for_all_nodes() {
        let levels = |name: &str| {
            let at = |level| holds(name, "1", level);
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
    fn a_value_of_another_type_does_not_hold() {
        for (name, value, expected) in [
            ("log.retention.ms", "soon", false),
            ("leader.replication.throttled.rate", "1000", true),
            ("leader.replication.throttled.rate", "fast", false),
            ("no.such.key", "x", true),
        ] {
            assert_eq!(
                holds(name, value, Level::Cluster),
                expected,
                "{name}={value}"
            );
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
}
