//! The limits of connections that operators change while the node runs (KIP-402, KIP-612): by
//! configurations of this node and of all nodes, which stand above the file.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::dispatch::Dispatch;
use super::hosts;
use super::limits::{Rate, Slots};
use super::listener::{Bound, Shared};
use crate::config;
use crate::controller::Settings;
use crate::controller::configs::{NOBODY_CONNECTS, min_isr_below_one, number, unusable};
use crate::image::{ConfigMap, ConfigResource, Image};
use crate::types::{NodeId, OneLine, quote};

/// How often the published metadata is looked at.
const PERIOD: Duration = Duration::from_secs(1);
const MAX: &str = "max.connections";
const RATE: &str = "max.connection.creation.rate";
const PER_IP: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";
/// So many sentences about bad values come at once; the others are counted.
const TOLD_MAX: usize = 20;

/// The limits of all listeners, and what the file says about them.
pub(super) struct Followed {
    shared: Arc<Shared<Dispatch>>,
    listeners: Vec<OwnLimits>,
    sockets: config::Sockets,
    /// Where connections can come from, when that is this machine only; none is everywhere.
    only_from: Vec<IpAddr>,
}

/// The limits of one listener.
struct OwnLimits {
    /// What its keys begin with.
    prefix: String,
    slots: Arc<Slots>,
    rate: Arc<Rate>,
    /// What the file says of both.
    initial: (u32, u32),
}

/// Values that hold at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    connections_max: u32,
    rate_max: u32,
    per_ip_max: u32,
    /// By host as written.
    overrides: Vec<(String, u32)>,
    /// `max.connections` and the rate of each listener.
    listeners: Vec<(u32, u32)>,
    /// No address could connect: `max.connections.per.ip` and its overrides are those of the file.
    shut: bool,
}

/// What is set for a node, above what is set for all.
struct Dynamic<'a> {
    image: &'a Image,
    node: ConfigResource,
}

impl Dynamic<'_> {
    fn text(&self, key: &str) -> impl Iterator<Item = &str> {
        let layers = [&self.node, &ConfigResource::all_brokers()].map(|it| self.image.config(it));
        let key = key.to_owned();
        let layers = layers.into_iter().flatten();
        layers.filter_map(move |map| map.get(&key))
    }

    /// The first number there that the key takes; other values are passed over, as Java does.
    fn limit(&self, key: &str, file: u32) -> u32 {
        self.text(key)
            .find_map(|text| limit(key, text))
            .unwrap_or(file)
    }
}

/// The limit that a value is, where its key takes it.
fn limit(key: &str, text: &str) -> Option<u32> {
    u32::try_from(number(key, text)?).ok()
}

/// What holds with this metadata.
fn values(
    image: &Image,
    node: NodeId,
    sockets: &config::Sockets,
    listeners: &[(&str, (u32, u32))],
    only_from: &[IpAddr],
) -> Values {
    let dynamic = Dynamic {
        image,
        node: ConfigResource::broker(node),
    };
    let written = &sockets.connections_per_ip_overrides;
    let file = || {
        let written = written.iter().map(|(host, max)| (host.clone(), *max));
        written.collect()
    };
    let mut set = dynamic
        .text(OVERRIDES)
        .filter_map(|text| config::per_ip_overrides(text).ok());
    let mut overrides: Vec<(String, u32)> = set.next().unwrap_or_else(file);
    drop(set);
    let mut per_ip_max = dynamic.limit(PER_IP, sockets.connections_per_ip_max);
    let shut = config::shuts_out(per_ip_max, &overrides, only_from);
    if shut {
        // Nobody could connect, not even to take it back. Java does not apply a limit of 0 without
        // overrides either; with any it does.
        per_ip_max = sockets.connections_per_ip_max;
        overrides = file();
    }
    let own = listeners.iter().map(|(prefix, (max, rate))| {
        let limit = |key: &str, file| dynamic.limit(&format!("{prefix}{key}"), file);
        (limit(MAX, *max), limit(RATE, *rate))
    });
    Values {
        connections_max: dynamic.limit(MAX, sockets.connections_max),
        rate_max: dynamic.limit(RATE, sockets.connection_rate_max),
        per_ip_max,
        listeners: own.collect(),
        overrides,
        shut,
    }
}

/// As an operator writes it.
fn as_written(overrides: &[(String, u32)]) -> String {
    let each = overrides.iter().map(|(host, max)| format!("{host}:{max}"));
    each.collect::<Vec<_>>().join(",")
}

/// A sentence for each configuration of this node, and of all, that nothing comes of.
fn complaints(image: &Image, settings: &Settings, values: &Values) -> Vec<String> {
    let of = |all: bool| match all {
        true => "all nodes".to_owned(),
        false => format!("node {}", settings.node_id),
    };
    let sentence = |key: &str, value: &str, all: bool, why: &str, counts: Option<&str>| {
        let counts = counts.map_or_else(|| "nothing".to_owned(), quote);
        format!(
            "{key}={} of {} is stored and has no effect: {}; {counts} counts in its place; set \
             another value, or delete it with kafka-configs",
            quote(value),
            of(all),
            quote(why),
        )
    };
    let unusable = unusable(image, settings).map(|it| {
        // It may be that of the file whatever is set: see `values`.
        let by_ip = (it.key == PER_IP).then(|| values.per_ip_max.to_string());
        let counts = by_ip.or(it.counts);
        let key = quote(&it.key);
        sentence(&key, &it.value, it.of_all, &it.why, counts.as_deref())
    });
    let mut all: Vec<String> = unusable.collect();
    all.extend(min_isr_below_one(image, settings).map(|(value, of_all)| {
        format!(
            "min.insync.replicas={} of {} counts as none: a partition may lose the last replica \
             that has everything and go on without; set it to 1 or more with kafka-configs",
            quote(value),
            of(of_all),
        )
    }));
    let counting = as_written(&values.overrides);
    let node = ConfigResource::broker(settings.node_id);
    for (resource, of_all) in [(node, false), (ConfigResource::all_brokers(), true)] {
        let Some(map) = image.config(&resource) else {
            continue;
        };
        let mut tell = |key: &str, text: &str, why: &str, counts: &str| {
            let counts = Some(counts).filter(|it| !it.is_empty());
            all.push(sentence(key, text, of_all, why, counts));
        };
        if let Some(text) = map.get(PER_IP)
            && values.shut
            && limit(PER_IP, text) == Some(0)
        {
            tell(
                PER_IP,
                text,
                NOBODY_CONNECTS,
                &values.per_ip_max.to_string(),
            );
        }
        let Some(text) = map.get(OVERRIDES) else {
            continue;
        };
        match config::per_ip_overrides(text) {
            Err(why) => tell(OVERRIDES, text, &format!("it {why}"), &counting),
            Ok(_) if values.shut => {
                tell(OVERRIDES, text, NOBODY_CONNECTS, &counting);
            }
            Ok(_) => {}
        }
    }
    all
}

/// A sentence for each limit of this node that is one of a listener which it does not have. What is
/// set for all nodes may be for the listeners of brokers.
fn of_no_listener(image: &Image, node: NodeId, prefixes: &[&str]) -> Vec<String> {
    let map = image.config(&ConfigResource::broker(node));
    let set = map.into_iter().flat_map(|map| map.iter());
    let sentence = |(key, value): (&str, &str)| {
        let (listener, base) = key.strip_prefix("listener.name.")?.split_once('.')?;
        let is_own = prefixes.iter().any(|own| key.starts_with(own));
        (matches!(base, MAX | RATE) && !is_own).then(|| {
            format!(
                "{}={} of node {node} is stored and has no effect: this node has no listener '{}', \
                 and names are in small letters; set it for one of its listeners, or delete it \
                 with kafka-configs",
                quote(key),
                quote(value),
                quote(listener),
            )
        })
    };
    set.filter_map(sentence).collect()
}

/// The configurations that were looked at last, and what was said of them.
#[derive(Default)]
struct Seen {
    maps: [Option<ConfigMap>; 2],
    told: BTreeSet<String>,
}

impl Seen {
    /// Whether the configurations of this node or of all are others than last time.
    fn changes(&mut self, image: &Image, node: NodeId) -> bool {
        let maps = [ConfigResource::broker(node), ConfigResource::all_brokers()]
            .map(|it| image.config(&it).cloned());
        let changes = maps != self.maps;
        self.maps = maps;
        changes
    }

    /// The sentences that were not said before, and how many more there are.
    fn news(&mut self, sentences: Vec<String>) -> (Vec<String>, usize) {
        let sentences: BTreeSet<String> = sentences.into_iter().collect();
        let mut news: Vec<String> = sentences.difference(&self.told).cloned().collect();
        let more = news.len().saturating_sub(TOLD_MAX);
        news.truncate(TOLD_MAX);
        self.told = sentences;
        (news, more)
    }

    fn tell(&mut self, sentences: Vec<String>) {
        let (news, more) = self.news(sentences);
        for sentence in news {
            tracing::warn!("{sentence}");
        }
        if more > 0 {
            tracing::warn!("{more} more configurations of brokers are stored and have no effect");
        }
    }
}

fn own_address(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

impl Followed {
    pub(super) fn new(
        shared: &Arc<Shared<Dispatch>>,
        bound: &[Bound],
        sockets: &config::Sockets,
    ) -> Self {
        let own = |bound: &Bound| OwnLimits {
            prefix: format!("listener.name.{}.", bound.name.to_lowercase()),
            slots: Arc::clone(&bound.slots),
            rate: Arc::clone(&bound.rate),
            initial: bound.initial,
        };
        let ips = bound.iter().map(|bound| bound.address.ip().to_canonical());
        let only_from: Vec<IpAddr> = match ips.clone().all(|ip| ip.is_loopback()) {
            // Connections to any other address of that network come from this one, too.
            true => ips.map(own_address).collect(),
            false => Vec::new(),
        };
        Self {
            shared: Arc::clone(shared),
            listeners: bound.iter().map(own).collect(),
            sockets: sockets.clone(),
            only_from,
        }
    }

    fn values(&self, image: &Image) -> Values {
        let listeners = self.listeners.iter();
        let listeners: Vec<_> = listeners
            .map(|own| (own.prefix.as_str(), own.initial))
            .collect();
        let node = self.shared.service.settings.node_id;
        values(image, node, &self.sockets, &listeners, &self.only_from)
    }

    /// A sentence for each configuration that nothing comes of.
    fn complaints(&self, image: &Image, values: &Values) -> Vec<String> {
        let settings = &self.shared.service.settings;
        let prefixes: Vec<&str> = self
            .listeners
            .iter()
            .map(|own| own.prefix.as_str())
            .collect();
        let mut all = complaints(image, settings, values);
        all.extend(of_no_listener(image, settings.node_id, &prefixes));
        all
    }

    /// Applies what changes, until `stop` becomes true.
    pub(super) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut known = self.values(&Image::empty());
        let mut seen = Seen::default();
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !*stop.borrow() {
            tokio::select! {
                _ = ticks.tick() => {
                    let published = self.shared.service.core.published();
                    let wanted = self.values(&published.image);
                    if wanted != known {
                        self.apply(&known, &wanted).await;
                        known = wanted;
                    }
                    let node = self.shared.service.settings.node_id;
                    if seen.changes(&published.image, node) {
                        seen.tell(self.complaints(&published.image, &known));
                    }
                }
                changed = stop.changed() => if changed.is_err() { break },
            }
        }
    }

    async fn apply(&self, known: &Values, wanted: &Values) {
        let limits = &self.shared.limits;
        if known.connections_max != wanted.connections_max {
            tracing::info!("{MAX} is {} now", wanted.connections_max);
            limits.set_connections_max(wanted.connections_max);
        }
        if known.rate_max != wanted.rate_max {
            tracing::info!("{RATE} is {} now", wanted.rate_max);
            limits.rate.set(wanted.rate_max);
        }
        if (known.per_ip_max, &known.overrides) != (wanted.per_ip_max, &wanted.overrides) {
            let max = wanted.per_ip_max;
            let all = as_written(&wanted.overrides);
            tracing::info!("{PER_IP} is {max} now, and {OVERRIDES} '{}'", OneLine(&all));
            limits.set_by_ip(max, hosts::limited(&wanted.overrides).await);
        }
        for (own, (old, new)) in self
            .listeners
            .iter()
            .zip(known.listeners.iter().zip(&wanted.listeners))
        {
            if old != new {
                tracing::info!("{}{MAX} is {} now, {RATE} {}", own.prefix, new.0, new.1);
                own.slots.set(new.0);
                own.rate.set(new.1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
