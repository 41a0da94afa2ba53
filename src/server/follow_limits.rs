//! The limits of connections that operators change while the node runs (KIP-402, KIP-612): by
//! configurations of this node and of all nodes, which stand above the file.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::dispatch::Dispatch;
use super::limits::{Rate, Slots};
use super::listener::{self, Bound, Shared};
use crate::config;
use crate::controller::Settings;
use crate::controller::configs::{NOBODY_CONNECTS, number, unusable};
use crate::image::{ConfigMap, ConfigResource, Image};
use crate::types::{NodeId, OneLine};

/// How often the published metadata is looked at.
const PERIOD: Duration = Duration::from_secs(1);
const MAX: &str = "max.connections";
const RATE: &str = "max.connection.creation.rate";
const PER_IP: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";
/// So many sentences about bad values come at once; the others are counted.
const TOLD_MAX: usize = 20;
/// So much is shown of a value.
const SHOWN_CHARS: usize = 100;

/// The limits of all listeners, and what the file says about them.
pub(super) struct Followed {
    shared: Arc<Shared<Dispatch>>,
    listeners: Vec<OwnLimits>,
    sockets: config::Sockets,
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
    let shut = per_ip_max == 0 && shut_out(&overrides);
    if shut {
        // Nobody could connect, not even to take it back. Java does not apply it either unless
        // there are overrides, if only of 0.
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

/// True when all of these are let in with no connection.
fn shut_out(overrides: &[(String, u32)]) -> bool {
    overrides.iter().all(|(_, max)| *max == 0)
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
        let counts = counts.map_or_else(|| "nothing".to_owned(), |it| cut(it).to_string());
        format!(
            "{key}={} of {} is stored and has no effect: {}; {counts} counts in its place; set \
             another value, or delete it with kafka-configs",
            cut(value),
            of(all),
            cut(why),
        )
    };
    let unusable = unusable(image, settings).map(|it| {
        // It may be that of the file whatever is set: see `values`.
        let by_ip = (it.key == PER_IP).then(|| values.per_ip_max.to_string());
        let counts = by_ip.or(it.counts);
        let key = cut(&it.key);
        sentence(&key, &it.value, it.of_all, &it.why, counts.as_deref())
    });
    let mut all: Vec<String> = unusable.collect();
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
            Ok(set) if values.shut && shut_out(&set) => {
                tell(OVERRIDES, text, NOBODY_CONNECTS, &counting);
            }
            Ok(_) => {}
        }
    }
    all
}

/// On one line, and not longer than a line.
fn cut(text: &str) -> String {
    let mut shown = OneLine(text).to_string();
    if let Some((at, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(at);
        shown.push_str("...");
    }
    shown
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
        Self {
            shared: Arc::clone(shared),
            listeners: bound.iter().map(own).collect(),
            sockets: sockets.clone(),
        }
    }

    fn values(&self, image: &Image) -> Values {
        let listeners = self.listeners.iter();
        let listeners: Vec<_> = listeners
            .map(|own| (own.prefix.as_str(), own.initial))
            .collect();
        let node = self.shared.service.settings.node_id;
        values(image, node, &self.sockets, &listeners)
    }

    /// A sentence for each configuration that nothing comes of.
    fn complaints(&self, image: &Image, values: &Values) -> Vec<String> {
        complaints(image, &self.shared.service.settings, values)
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
            limits.slots.set(wanted.connections_max);
        }
        if known.rate_max != wanted.rate_max {
            tracing::info!("{RATE} is {} now", wanted.rate_max);
            limits.rate.set(wanted.rate_max);
        }
        if (known.per_ip_max, &known.overrides) != (wanted.per_ip_max, &wanted.overrides) {
            let max = wanted.per_ip_max;
            let all = as_written(&wanted.overrides);
            tracing::info!("{PER_IP} is {max} now, and {OVERRIDES} '{}'", OneLine(&all));
            let mut overrides = HashMap::new();
            for (host, max) in &wanted.overrides {
                for ip in listener::addresses(host).await {
                    overrides.insert(ip, *max);
                }
            }
            limits.set_by_ip(max, overrides);
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
mod tests {
    use super::super::listener::tests::sockets;
    use super::*;
    use crate::image::configs;
    use crate::records::{ConfigRecord, Record};
    use crate::types::Offset;

    fn set(image: &mut Image, node: &str, key: &str, value: Option<&str>) {
        let record = ConfigRecord {
            resource_type: configs::BROKER,
            resource_name: node.into(),
            name: key.into(),
            value: value.map(str::to_owned),
            ..ConfigRecord::default()
        };
        image.replay(&Record::Config(record), Offset(0)).unwrap();
    }

    #[test]
    fn a_dynamic_limit_that_would_let_nobody_in_is_not_applied_and_is_told() {
        let mut image = Image::empty();
        let file = sockets();
        let own = "listener.name.controller.";
        let settings = Settings::default();
        let node = settings.node_id;
        let holds = |image: &Image| values(image, node, &file, &[(own, (5, 6))]);
        let without = holds(&image);
        for (name, keys) in [
            ("", vec![MAX.to_owned(), RATE.to_owned()]),
            ("", vec![format!("{own}{MAX}"), format!("{own}{RATE}")]),
            (&node.to_string(), vec![MAX.to_owned(), PER_IP.to_owned()]),
        ] {
            for key in &keys {
                set(&mut image, name, key, Some("0"));
            }
            let found = holds(&image);
            let shut = Values {
                shut: found.shut,
                ..without.clone()
            };
            assert_eq!(found, shut, "{keys:?}");
            let told = complaints(&image, &settings, &found);
            assert_eq!(told.len(), keys.len(), "{told:?}");
            for key in &keys {
                let start = format!("{key}=0 of ");
                let sentence = told.iter().find(|it| it.starts_with(&start)).unwrap();
                assert!(sentence.contains("nobody could connect"), "{sentence}");
                set(&mut image, name, key, None);
            }
        }
        // One address may be shut out, all may not.
        set(&mut image, "", PER_IP, Some("0"));
        set(&mut image, "", OVERRIDES, Some("10.0.0.1:0"));
        let found = holds(&image);
        let file_counts = Values {
            shut: true,
            ..without
        };
        assert_eq!(found, file_counts);
        assert_eq!(complaints(&image, &settings, &found).len(), 2);
        set(&mut image, "", OVERRIDES, Some("10.0.0.1:1"));
        assert_eq!(holds(&image).per_ip_max, 0);
    }

    #[test]
    fn overrides_are_told_as_they_are_written_and_each_value_once() {
        let mut image = Image::empty();
        let (mut file, settings) = (sockets(), Settings::default());
        let node = settings.node_id;
        let told = |image: &Image, file: &config::Sockets| {
            let found = values(image, node, file, &[]);
            let told = complaints(image, &settings, &found);
            let short = told.iter().map(|it| {
                let (value, rest) = it.split_once(" is stored and has no effect: ").unwrap();
                let (_, counts) = rest.split_once("; ").unwrap();
                let (counts, _) = counts.split_once(" counts in its place").unwrap();
                (value.to_owned(), counts.to_owned())
            });
            short.collect::<Vec<_>>()
        };
        let of = |node: bool, key: &str, value: &str| match node {
            true => format!("{key}={value} of node {}", settings.node_id),
            false => format!("{key}={value} of all nodes"),
        };
        set(&mut image, "", OVERRIDES, Some("nobody"));
        let unreadable = |counts: &str| (of(false, OVERRIDES, "nobody"), counts.to_owned());
        assert_eq!(told(&image, &file), [unreadable("nothing")]);
        let hosts = [("10.0.0.1", 0), ("10.0.0.2", 0)];
        let hosts = hosts.map(|(host, max)| (host.to_owned(), max));
        file.connections_per_ip_overrides.extend(hosts);
        let written = "10.0.0.1:0,10.0.0.2:0";
        assert_eq!(told(&image, &file), [unreadable(written)]);

        // No address could connect, and one of the values cannot be read besides.
        set(&mut image, "", PER_IP, Some("0"));
        set(&mut image, &node.to_string(), PER_IP, Some("abc"));
        let max = file.connections_per_ip_max.to_string();
        let expected = [
            (of(true, PER_IP, "abc"), max.clone()),
            (of(false, PER_IP, "0"), max),
            unreadable(written),
        ];
        assert_eq!(told(&image, &file), expected);
    }

    #[test]
    fn a_dynamic_value_that_nothing_comes_of_is_told_once_on_one_line() {
        let mut image = Image::empty();
        let (file, settings) = (sockets(), Settings::default());
        let node = settings.node_id;
        let mut seen = Seen::default();
        let news = |image: &Image, seen: &mut Seen| {
            let found = values(image, node, &file, &[]);
            let changes = seen.changes(image, node);
            let sentences = complaints(image, &settings, &found);
            if changes {
                seen.news(sentences)
            } else {
                Default::default()
            }
        };
        assert_eq!(news(&image, &mut seen), (Vec::new(), 0));
        set(&mut image, "", MAX, Some("a\nbc"));
        let (told, _) = news(&image, &mut seen);
        assert_eq!(told.len(), 1);
        let start = "max.connections=a\\nbc of all nodes is stored and has no effect: ";
        assert!(told[0].starts_with(start), "{told:?}");
        let end = "; 2147483647 counts in its place; set another value, or delete it with \
                   kafka-configs";
        assert!(told[0].ends_with(end), "{told:?}");
        set(&mut image, "", OVERRIDES, Some("nobody"));
        assert_eq!(news(&image, &mut seen).0.len(), 1, "the new one only");
        assert_eq!(news(&image, &mut seen), (Vec::new(), 0));
        for listener in 0..TOLD_MAX + 5 {
            let key = format!("listener.name.x{listener}.{MAX}");
            set(&mut image, "", &key, Some(&"9".repeat(1_000)));
        }
        let (told, more) = news(&image, &mut seen);
        assert_eq!((told.len(), more), (TOLD_MAX, 5));
        assert!(told.iter().all(|it| it.len() < 600), "{told:?}");
    }

    #[test]
    fn limits_of_this_node_stand_above_those_of_all_and_those_above_the_file() {
        let mut image = Image::empty();
        let mut file = sockets();
        file.connections_max = 7;
        let holds = |image: &Image| {
            let listeners = [("listener.name.controller.", (5, 6))];
            values(image, NodeId(3), &file, &listeners)
        };
        assert_eq!(holds(&image).connections_max, 7);
        set(&mut image, "", MAX, Some("100"));
        assert_eq!(holds(&image).connections_max, 100);
        set(&mut image, "3", MAX, Some("50"));
        set(&mut image, "4", MAX, Some("1"));
        assert_eq!(holds(&image).connections_max, 50);
        for wrong in ["-1", "many", ""] {
            set(&mut image, "3", MAX, Some(wrong));
            assert_eq!(holds(&image).connections_max, 100, "{wrong}");
        }
        set(&mut image, "3", MAX, None);
        set(&mut image, "", MAX, None);
        assert_eq!(holds(&image).connections_max, 7);

        set(&mut image, "", RATE, Some("9"));
        set(
            &mut image,
            "",
            "listener.name.controller.max.connections",
            Some("2"),
        );
        let found = holds(&image);
        assert_eq!((found.rate_max, found.listeners), (9, vec![(2, 6)]));

        set(&mut image, "", PER_IP, Some("0"));
        assert_eq!(holds(&image).per_ip_max, file.connections_per_ip_max);
        set(&mut image, "", OVERRIDES, Some("127.0.0.1:4"));
        let found = holds(&image);
        let overrides = vec![("127.0.0.1".to_owned(), 4)];
        assert_eq!((found.per_ip_max, found.overrides), (0, overrides));
    }
}
