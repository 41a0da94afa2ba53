//! `listeners`, `advertised.listeners` and `listener.security.protocol.map`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use regex::Regex;

use super::model::SecurityProtocol;
use super::values::Values;
use crate::types::quote;

static LISTENER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$")
        .expect("a constant pattern that the tests compile")
});

/// Listener names in capitals with their protocols.
pub(crate) type ProtocolMap = BTreeMap<String, SecurityProtocol>;

/// An endpoint as written: its port may still be out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) host: Option<String>,
    pub(crate) port: i32,
    pub(crate) protocol: SecurityProtocol,
}

const PROTOCOLS: [SecurityProtocol; 4] = [
    SecurityProtocol::Plaintext,
    SecurityProtocol::Ssl,
    SecurityProtocol::SaslPlaintext,
    SecurityProtocol::SaslSsl,
];

/// A protocol by its name in any case.
pub(crate) fn protocol(name: &str) -> Option<SecurityProtocol> {
    let upper = name.to_uppercase();
    PROTOCOLS.into_iter().find(|one| one.name() == upper)
}

/// `key:value` pairs between commas; the key may hold colons. Java's reader of such maps drops
/// empty entries only at the end.
pub(crate) fn csv_map(text: &str) -> Result<Vec<(String, String)>, String> {
    let text = text.trim_end_matches([',', ' ']);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|entry| {
            let (key, value) = entry
                .rsplit_once(':')
                .ok_or_else(|| format!("has \"{}\", which has no colon", quote(entry.trim())))?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// Of the addresses that a name has, the one that a listener takes: the first of IPv4, as the JVM
/// prefers, or else the first.
pub(crate) fn preferred(resolved: Vec<SocketAddr>) -> Option<SocketAddr> {
    let v4 = resolved.iter().find(|address| address.is_ipv4());
    v4.or_else(|| resolved.first()).copied()
}

/// The protocol of each listener name. When the map is not set, controller listeners without a
/// protocol's name are PLAINTEXT, unless a listener is named after a secure protocol (KIP-631).
pub(crate) fn protocol_map(values: &Values) -> Result<ProtocolMap, String> {
    const KEY: &str = "listener.security.protocol.map";
    let mut map = ProtocolMap::new();
    let written: BTreeMap<_, _> = csv_map(values.text(KEY).unwrap_or_default())?
        .into_iter()
        .collect();
    for (name, value) in written {
        let protocol = protocol(&value).ok_or_else(|| {
            format!(
                "has \"{}\", which is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
                quote(&value)
            )
        })?;
        if map.insert(normal(&name)?, protocol).is_some() {
            let name = quote(&name.to_uppercase());
            return Err(format!("names the listener {name} twice"));
        }
    }
    if values.is_set(KEY) {
        return Ok(map);
    }
    let controllers = values.list("controller.listener.names").unwrap_or_default();
    let listeners = values.list("listeners").unwrap_or_default();
    let names = listeners.iter().filter_map(|listener| {
        listener
            .split_once(':')
            .map(|(name, _)| name.to_uppercase())
    });
    let secure = |name: &str| protocol(name).is_some_and(|p| p != SecurityProtocol::Plaintext);
    let exact = |name: &String| PROTOCOLS.iter().any(|p| p.name() == name) && secure(name);
    if controllers.iter().any(exact) || names.into_iter().any(|name| exact(&name)) {
        return Ok(map);
    }
    for name in controllers {
        map.insert(name.clone(), SecurityProtocol::Plaintext);
    }
    Ok(map)
}

/// A listener's name as Java compares it.
pub(crate) fn normal(name: &str) -> Result<String, String> {
    if name.trim().is_empty() {
        return Err("has a listener without a name".to_owned());
    }
    Ok(name.to_uppercase())
}

/// The endpoints of a list, each with its protocol.
pub(crate) fn endpoints(entries: &[String], map: &ProtocolMap) -> Result<Vec<Written>, String> {
    entries.iter().map(|entry| endpoint(entry, map)).collect()
}

fn endpoint(entry: &str, map: &ProtocolMap) -> Result<Written, String> {
    let malformed = |what: &str| format!("has \"{}\", {what}", quote(entry));
    let groups = LISTENER
        .captures(entry)
        .ok_or_else(|| malformed("which is not of the form name://host:port"))?;
    let name = normal(&groups[1])?;
    let port = groups[3]
        .parse()
        .map_err(|_| malformed("whose port is no number"))?;
    let protocol = *map.get(&name).ok_or_else(|| {
        format!(
            "has the listener {}, which listener.security.protocol.map does not have",
            quote(&name)
        )
    })?;
    Ok(Written {
        name,
        host: Some(groups[2].to_owned()).filter(|host| !host.is_empty()),
        port,
        protocol,
    })
}

/// Refuses a name that stands twice.
pub(crate) fn distinct_names(endpoints: &[Written]) -> Result<(), String> {
    for (index, endpoint) in endpoints.iter().enumerate() {
        if endpoints[..index]
            .iter()
            .any(|before| before.name == endpoint.name)
        {
            return Err(format!("has the listener {} twice", quote(&endpoint.name)));
        }
    }
    Ok(())
}

/// Refuses a port that stands twice, except for one IPv4 and one IPv6 address.
pub(crate) fn distinct_ports(endpoints: &[Written]) -> Result<(), String> {
    let mut by_port: BTreeMap<i32, Vec<&Written>> = BTreeMap::new();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.port != 0) {
        by_port.entry(endpoint.port).or_default().push(endpoint);
    }
    for (port, same) in by_port {
        let both = |a: &Written, b: &Written| is_v4(a) && is_v6(b) || is_v6(a) && is_v4(b);
        let fine = match same.as_slice() {
            [_] => true,
            [one, other] => both(one, other),
            _ => false,
        };
        if !fine {
            return Err(format!(
                "has port {port} twice, which only one IPv4 and one IPv6 address may share"
            ));
        }
    }
    Ok(())
}

fn is_v4(endpoint: &Written) -> bool {
    let host = endpoint.host.as_deref().unwrap_or_default();
    host.parse::<Ipv4Addr>().is_ok()
}

fn is_v6(endpoint: &Written) -> bool {
    let host = endpoint.host.as_deref().unwrap_or_default();
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    address.parse::<Ipv6Addr>().is_ok()
}
