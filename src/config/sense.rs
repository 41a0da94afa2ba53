//! Values that Java's definition of keys takes although nobody can mean them: a node with them
//! would look alive and do nothing, or nothing else than one thing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use super::checks::{Review, VOTERS};
use super::finding::Severity::{self, Error, Unsupported, Warning};
use super::keys::{self, Initial};
use super::listeners::preferred;
use super::model::{Config, Role};
use crate::types::quote;

const PER_IP: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";
/// The one rule for every limit of connections that a file sets to 0.
pub(super) const SHUT: (&str, &str) = (
    "lets nobody connect, brokers, controllers and tools neither",
    "raise it, or remove it for no limit",
);

const NO_ANSWER: &str = "leaves other controllers no time to answer";
const NO_CONNECTION: &str = "leaves no time to connect to another controller";
const HURRIED: &str = "writes a snapshot of all metadata again and again";

/// A key, the least value that makes sense, what a lower one means, and why not.
const FLOORS: [(&str, i64, Severity, &str); 13] = [
    (
        "broker.heartbeat.interval.ms",
        1,
        Warning,
        "is no time between two heartbeats",
    ),
    (
        "broker.session.timeout.ms",
        1,
        Unsupported,
        "fences every broker as soon as it was heard",
    ),
    (
        "controller.quorum.election.timeout.ms",
        1,
        Unsupported,
        "leaves no time for a vote, one election would follow the other",
    ),
    (
        "controller.quorum.fetch.timeout.ms",
        1,
        Unsupported,
        "leaves no time to hear of a leader, each would be given up at once",
    ),
    (
        "controller.quorum.request.timeout.ms",
        1,
        Unsupported,
        NO_ANSWER,
    ),
    (
        "controller.quorum.retry.backoff.ms",
        1,
        Warning,
        "asks a controller that does not answer again without a pause",
    ),
    (
        "default.replication.factor",
        1,
        Unsupported,
        "is no number of replicas that a topic can have",
    ),
    (
        "metadata.log.max.record.bytes.between.snapshots",
        4_096,
        Warning,
        HURRIED,
    ),
    (
        "metadata.log.segment.ms",
        1,
        Error,
        "begins a file of the log with every write",
    ),
    ("request.timeout.ms", 1, Unsupported, NO_ANSWER),
    (
        "socket.connection.setup.timeout.max.ms",
        1,
        Unsupported,
        NO_CONNECTION,
    ),
    (
        "socket.connection.setup.timeout.ms",
        1,
        Unsupported,
        NO_CONNECTION,
    ),
    // With the features of 3.9 and one listener that is some 190 bytes.
    (
        "socket.request.max.bytes",
        128,
        Unsupported,
        "is less than a broker needs to register",
    ),
];

/// Numbers for which 0, where it is taken, means something else, with the least that makes sense
/// and why not. Less than 50 ms is no time for an answer between machines: there and back takes
/// some ms, and before a vote is answered it is on disk, which takes some more.
const INTERVALS: [(&str, i64, &str); 5] = [
    (
        "controller.quorum.election.timeout.ms",
        50,
        "is hardly the time that a vote takes, elections may follow each other without an end",
    ),
    (
        "controller.quorum.fetch.timeout.ms",
        50,
        "is hardly the time that an answer takes, leaders may be given up that are well",
    ),
    ("metadata.log.max.snapshot.interval.ms", 1_000, HURRIED),
    // Every file of the log is open, and a week of it is kept by default: that is 1,000 files,
    // about what systems let a process have.
    (
        "metadata.log.segment.ms",
        600_000,
        "begins files of the log so often that a start may not be able to open them all",
    ),
    (
        "metadata.max.idle.interval.ms",
        100,
        "writes records while nothing happens, more than ten a second",
    ),
];

impl Review<'_> {
    /// Values that only the controller role reads: without it they do no harm.
    pub(super) fn sense(&mut self) {
        if !self.has_role(Role::Controller) {
            return;
        }
        for (key, least, severity, rule) in FLOORS {
            if self.values.number(key) < least {
                self.find(severity, key, rule, &raise(key, least));
            }
        }
        for (key, least, rule) in INTERVALS {
            if (1..least).contains(&self.values.number(key)) {
                self.warn(key, rule, &raise(key, least));
            }
        }
        const REPLICAS: &str = "default.replication.factor";
        if self.values.number(REPLICAS) > i16::MAX.into() {
            let rule = "is no number of replicas that a topic can have";
            self.find(Unsupported, REPLICAS, rule, "lower it, or remove it");
        }
        self.voters_that_are_none();
        self.shut_limits();
    }

    fn voters_that_are_none(&mut self) {
        let own = self.values.number_of("node.id");
        let mut at: BTreeMap<String, i32> = BTreeMap::new();
        let mut found = Vec::new();
        for (id, address) in &self.facts.voters {
            let id = id.0;
            if id < 0 {
                let rule = format!("has the voter {id}, and no node has an id below 0");
                found.push((Unsupported, rule, "correct the id"));
            }
            if address.host.is_empty() {
                let rule = format!("has no host for the voter {id}, peers cannot connect to it");
                found.push((Unsupported, rule, "name the host"));
            }
            if address.port == 0 {
                // The only one that it matters to may be this node itself, which is not called.
                let severity = match own == Some(id.into()) {
                    true => Warning,
                    false => Unsupported,
                };
                let rule = format!("has port 0 for the voter {id}, which no peer can connect to");
                found.push((severity, rule, "name the port of its controller listener"));
            } else if let Some(other) = at.insert(address.to_string().to_lowercase(), id) {
                let address = quote(&address.to_string());
                let rule = format!("has {address} for the voters {other} and {id}, one is missing");
                found.push((Unsupported, rule, "give each voter its own address"));
            }
        }
        for (severity, rule, fix) in found {
            self.find(severity, VOTERS, &rule, fix);
        }
    }

    /// A limit of 0 that shuts out everybody. Java starts with it and serves nobody, or, where it
    /// is a rate, one connection a second.
    fn shut_limits(&mut self) {
        for key in ["max.connections", "max.connection.creation.rate"] {
            if self.values.number(key) == 0 {
                self.find(Unsupported, key, SHUT.0, SHUT.1);
            }
        }
        let written = self.values.text(OVERRIDES).unwrap_or_default();
        let Ok(overrides) = super::limits::overrides(written) else {
            return;
        };
        let max = u32::try_from(self.values.number(PER_IP)).unwrap_or(0);
        if are_shut(max, &overrides, || self.only_from()) {
            self.find(Unsupported, OVERRIDES, SHUT.0, SHUT.1);
        }
    }

    /// Where connections can come from: `::1` and `127.0.0.1`, or none for everywhere. It may ask a
    /// resolver and wait for it.
    fn only_from(&self) -> Vec<IpAddr> {
        let mut only = Vec::new();
        for endpoint in &self.facts.listeners {
            let host = endpoint.host.as_deref().unwrap_or_default();
            if !Config::is_loopback(Some(host)) {
                return Vec::new();
            }
            let resolved = || (host, 0).to_socket_addrs().map(Iterator::collect);
            only.push(from_loopback(host, || resolved().unwrap_or_default()));
        }
        only
    }
}

/// Where connections to a host of this machine come from. For a name that is the family of the
/// address that a listener takes of those that it is `resolved` to: some systems know `localhost`
/// as `::1` alone.
fn from_loopback(host: &str, resolved: impl FnOnce() -> Vec<SocketAddr>) -> IpAddr {
    let ip = host.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| Some(preferred(resolved())?.ip()));
    match ip.is_some_and(|ip| ip.is_ipv6()) {
        true => Ipv6Addr::LOCALHOST.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

/// Whether `overrides` shut everybody out. Where connections come from is asked for only when it
/// matters: a resolver may not answer.
fn are_shut(
    max: u32,
    overrides: &[(String, u32)],
    only_from: impl FnOnce() -> Vec<IpAddr>,
) -> bool {
    // A limit of 0 without an override is told by the check of what Java refuses.
    if overrides.is_empty() || (max > 0 && overrides.iter().all(|(_, own)| *own > 0)) {
        return false;
    }
    shuts_out(max, overrides, &only_from())
}

fn raise(key: &str, least: i64) -> String {
    let known = keys::find(key).map(|key| key.initial);
    match known {
        Some(Initial::Text(text)) => {
            format!("set it to at least {least}, or remove it for the default {text}")
        }
        _ => format!("set it to at least {least}, or remove it"),
    }
}

/// Whether these limits of single addresses let nobody in: `max` connections of each, but for the
/// `overrides`, of which the last counts. Connections come `only` from these, none is everywhere.
pub(crate) fn shuts_out(max: u32, overrides: &[(String, u32)], only: &[IpAddr]) -> bool {
    // A name may stand for any address: whom it lets in cannot be told here.
    let lets_in = |(host, own): &(String, u32)| *own > 0 && address(host).is_none();
    if overrides.iter().any(lets_in) {
        return false;
    }
    let limit = |ip: &IpAddr| {
        let mut last = overrides.iter().rev();
        let own = last.find(|(host, _)| is_at(host, *ip));
        own.map_or(max, |(_, own)| *own)
    };
    match only {
        [] => max == 0 && overrides.iter().all(|(_, own)| *own == 0),
        only => only.iter().all(|ip| limit(ip) == 0),
    }
}

fn address(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    plain.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

fn is_at(host: &str, ip: IpAddr) -> bool {
    address(host) == Some(ip) || (host.eq_ignore_ascii_case("localhost") && ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{load_lines, texts};
    use super::*;

    #[test]
    fn a_number_that_nobody_can_mean_refuses_with_its_key_and_what_to_set() {
        for (key, least, severity, rule) in FLOORS {
            let line = format!("{key}={}", least - 1);
            let found = load_lines(&[&line]);
            assert_eq!(found.is_err(), severity != Warning, "{line}");
            let told = texts(&found.map_or_else(|all| all, |loaded| loaded.warnings));
            let sentence = format!("{line}: {rule}; set it to at least {least}, or remove it");
            assert!(told.contains(&sentence), "{told}");
            let line = format!("{key}={least}");
            let loaded = load_lines(&[&line]).unwrap();
            assert!(!texts(&loaded.warnings).contains(rule), "{line}");
        }
        for (key, least, rule) in INTERVALS {
            for (value, is_told) in [(0, false), (1, true), (least - 1, true), (least, false)] {
                let line = format!("{key}={value}");
                let found = load_lines(&[&line]);
                let told = texts(&found.map_or_else(|all| all, |loaded| loaded.warnings));
                assert_eq!(
                    told.contains(&format!("{line}: {rule}; ")),
                    is_told,
                    "{told}"
                );
            }
        }
        assert!(load_lines(&["default.replication.factor=32768"]).is_err());
    }

    #[test]
    fn a_voter_that_no_peer_can_reach_is_refused() {
        let own = "1@127.0.0.1:9093";
        for (others, words) in [
            ("-1@h:1", "has the voter -1, and no node has an id below 0"),
            ("2@:1", "has no host for the voter 2"),
            ("2@h:0", "has port 0 for the voter 2"),
            ("2@h:1,3@H:1", "for the voters 2 and 3, one is missing"),
        ] {
            let line = format!("controller.quorum.voters={own},{others}");
            let found = load_lines(&[&line]).unwrap_err();
            let refusing: Vec<_> = found.into_iter().filter(|it| it.refuses()).collect();
            let told = texts(&refusing);
            assert!(told.contains(words), "{told}");
            assert_eq!(refusing.len(), 1, "{told}");
        }
        let loaded = load_lines(&["controller.quorum.voters=1@127.0.0.1:0"]).unwrap();
        assert!(texts(&loaded.warnings).contains("has port 0 for the voter 1"));
    }

    #[test]
    fn a_limit_of_0_is_refused_in_every_spelling_with_one_sentence() {
        let listener = "listener.name.controller.";
        for lines in [
            vec!["max.connections=0".to_owned()],
            vec!["max.connection.creation.rate=0".to_owned()],
            vec![format!("{listener}max.connections=0")],
            vec![format!("{listener}max.connection.creation.rate=0")],
            vec![format!("{OVERRIDES}=10.0.0.1:0"), format!("{PER_IP}=0")],
            vec![
                format!("{OVERRIDES}=127.0.0.1:0"),
                "listeners=CONTROLLER://127.0.0.1:9093".to_owned(),
            ],
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let found = load_lines(&lines).unwrap_err();
            let refusing: Vec<_> = found.into_iter().filter(|it| it.refuses()).collect();
            assert_eq!(
                texts(&refusing),
                format!("{}: {}; {}", lines[0], SHUT.0, SHUT.1)
            );
        }
        let told = texts(&load_lines(&[&format!("{PER_IP}=0")]).unwrap_err());
        assert!(told.contains("may be 0 only with"), "{told}");
    }

    #[test]
    fn nobody_is_asked_about_a_listener_where_no_limit_of_an_address_is_0() {
        let limit = |max: u32| vec![("127.0.0.1".to_owned(), max)];
        let unasked = || panic!("a resolver is asked");
        assert!(!are_shut(5, &[], unasked));
        assert!(!are_shut(0, &[], unasked));
        assert!(!are_shut(5, &limit(1), unasked));
        let here = || vec![Ipv4Addr::LOCALHOST.into()];
        assert!(are_shut(5, &limit(0), here));
        assert!(are_shut(0, &[("10.0.0.1".to_owned(), 5)], here));
    }

    #[test]
    fn connections_to_localhost_come_from_the_address_that_its_listener_takes() {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
        for (host, resolved, from) in [
            ("localhost", vec![v4], v4),
            ("localhost", vec![v6, v4], v4),
            ("localhost", vec![v6], v6),
            ("localhost", vec![], v4),
            ("127.0.0.7", vec![v6], v4),
            ("::1", vec![v4], v6),
        ] {
            let found = from_loopback(host, || resolved.clone());
            assert_eq!(found, from.ip(), "{host} {resolved:?}");
        }
    }

    #[test]
    fn limits_of_addresses_shut_out_only_when_no_address_that_can_connect_is_left() {
        let v4: IpAddr = Ipv4Addr::LOCALHOST.into();
        let v6: IpAddr = Ipv6Addr::LOCALHOST.into();
        for (max, overrides, only, is_shut) in [
            (0, vec![], vec![], true),
            (5, vec![("127.0.0.1", 0)], vec![], false),
            (5, vec![("127.0.0.1", 0)], vec![v4], true),
            (5, vec![("localhost", 0)], vec![v4, v6], true),
            (5, vec![("::ffff:127.0.0.1", 0)], vec![v4], true),
            (5, vec![("127.0.0.1", 0)], vec![v4, v6], false),
            (0, vec![("10.0.0.1", 5)], vec![v4], true),
            (0, vec![("10.0.0.1", 5)], vec![], false),
            (0, vec![("some.name", 5)], vec![v4], false),
            (0, vec![("127.0.0.1", 0), ("127.0.0.1", 2)], vec![v4], false),
        ] {
            let overrides: Vec<_> = overrides
                .into_iter()
                .map(|(host, max)| (host.to_owned(), max))
                .collect();
            let found = shuts_out(max, &overrides, &only);
            assert_eq!(found, is_shut, "{max} {overrides:?} {only:?}");
        }
    }
}
