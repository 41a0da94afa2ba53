//! The entries of `controller.quorum.voters` and `controller.quorum.bootstrap.servers`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::model::HostPort;
use crate::types::{NodeId, quote};

/// The host that no peer can connect to.
pub(crate) const WILDCARD: &str = "0.0.0.0";

/// A host and a port as every Java tool reads them: a protocol may stand in front and is skipped.
static HOST_PORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)$")
        .expect("a constant pattern that the tests compile")
});

/// `id@host:port` entries by id; where an id stands twice the last one counts, as in Java.
pub(crate) fn parse(entries: &[String]) -> Result<BTreeMap<NodeId, HostPort>, String> {
    entries.iter().map(|entry| voter(entry)).collect()
}

fn voter(entry: &str) -> Result<(NodeId, HostPort), String> {
    let malformed = |what: &str| format!("has \"{}\", {what}", quote(entry));
    let form = || malformed("which is not of the form id@host:port");
    let (id, rest) = entry.split_once('@').ok_or_else(form)?;
    let id = id
        .parse::<i32>()
        .map_err(|_| malformed("whose id is no 32-bit number"))?;
    let address = host_port(rest).ok_or_else(form)?;
    Ok((NodeId(id), address))
}

/// `host:port` entries in order.
pub(crate) fn parse_servers(entries: &[String]) -> Result<Vec<HostPort>, String> {
    let server = |entry: &String| {
        let malformed = || {
            let entry = quote(entry);
            format!("has \"{entry}\", which is not of the form host:port")
        };
        host_port(entry).ok_or_else(malformed)
    };
    entries.iter().map(server).collect()
}

fn host_port(text: &str) -> Option<HostPort> {
    let groups = HOST_PORT.captures(text)?;
    Some(HostPort {
        host: groups[1].to_owned(),
        port: groups[2].parse().ok()?,
    })
}

/// True for what Java takes for a host: letters, digits and `-%._:`, possibly none.
pub(crate) fn is_host(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-%._:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(entry: &str) -> Option<(i32, String, u16)> {
        let voters = parse(&[entry.to_owned()]).ok()?;
        let (id, address) = voters.into_iter().next()?;
        Some((id.0, address.host, address.port))
    }

    #[test]
    fn voters_have_an_id_a_host_and_a_port() {
        assert_eq!(one("1@a.b:9093"), Some((1, "a.b".to_owned(), 9093)));
        assert_eq!(one("2@[::1]:9093"), Some((2, "::1".to_owned(), 9093)));
        assert_eq!(one("3@X://h:1"), Some((3, "h".to_owned(), 1)));
        for wrong in [
            "",
            "1",
            "1@",
            "1@a",
            "1@a:",
            "a@b:1",
            "1@a:1@b",
            "1@a:65536",
            "@a:1",
        ] {
            assert_eq!(one(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_address_prints_as_it_is_read() {
        for text in ["[::1]:1", "a:1"] {
            assert_eq!(host_port(text).unwrap().to_string(), text);
        }
    }
}
