//! The limits of connections that operators change while the node runs (KIP-402, KIP-612): by
//! configurations of this node and of all nodes, which stand above the file.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::dispatch::Dispatch;
use super::limits::{Rate, Slots};
use super::listener::{self, Bound, Shared};
use crate::config;
use crate::image::{ConfigResource, Image, configs};
use crate::types::NodeId;

/// How often the published metadata is looked at.
const PERIOD: Duration = Duration::from_secs(1);
const MAX: &str = "max.connections";
const RATE: &str = "max.connection.creation.rate";
const PER_IP: &str = "max.connections.per.ip";
const OVERRIDES: &str = "max.connections.per.ip.overrides";

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

    /// The first number that may stand there; others are passed over, as Java does.
    fn limit(&self, key: &str, file: u32) -> u32 {
        let numbers = self
            .text(key)
            .filter_map(|text| text.trim().parse::<i32>().ok());
        let mut limits = numbers.filter_map(|number| u32::try_from(number).ok());
        limits.next().unwrap_or(file)
    }
}

/// What holds with this metadata.
fn values(
    image: &Image,
    node: NodeId,
    sockets: &config::Sockets,
    listeners: &[(&str, (u32, u32))],
) -> Values {
    let name = node.to_string();
    let kind = configs::BROKER;
    let dynamic = Dynamic {
        image,
        node: ConfigResource { kind, name },
    };
    let written = &sockets.connections_per_ip_overrides;
    let file = || {
        let written = written.iter().map(|(host, max)| (host.clone(), *max));
        written.collect()
    };
    let mut set = dynamic
        .text(OVERRIDES)
        .filter_map(|text| config::per_ip_overrides(text).ok());
    let overrides: Vec<(String, u32)> = set.next().unwrap_or_else(file);
    drop(set);
    let mut per_ip_max = dynamic.limit(PER_IP, sockets.connections_per_ip_max);
    if per_ip_max == 0 && overrides.is_empty() {
        // Nobody could connect, not even to take it back: Java does not apply it either.
        per_ip_max = sockets.connections_per_ip_max;
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

    /// Applies what changes, until `stop` becomes true.
    pub(super) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut known = self.values(&Image::empty());
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !*stop.borrow() {
            tokio::select! {
                _ = ticks.tick() => {
                    let wanted = self.values(&self.shared.service.core.published().image);
                    if wanted != known {
                        self.apply(&known, &wanted).await;
                        known = wanted;
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
            tracing::info!(
                "{PER_IP} is {max} now, and {OVERRIDES} {:?}",
                wanted.overrides
            );
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
