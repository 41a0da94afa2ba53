//! The configuration of a new topic as the answer to its creation tells it.
//!
//! Nearly all of it is the same for all topics: what the layers below a topic's own values give. It
//! is computed when one of them has changed, and not for each of thousands of topics.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_response::CreatableTopicConfigs;
use kafka_protocol::protocol::StrBytes;

use super::View;
use super::configs::topic::{self, Effective, Source};
use crate::image::{ConfigMap, ConfigResource};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Described {
    known: Option<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    layers: Layers,
    entries: Vec<CreatableTopicConfigs>,
}

/// The layers that change while a process runs: this node's own, and that of all brokers.
#[derive(Clone, Debug, PartialEq)]
struct Layers([Option<ConfigMap>; 2]);

impl Layers {
    fn of(view: &View<'_>) -> Self {
        let node = ConfigResource::broker(view.settings.node_id);
        let layers = [node, ConfigResource::all_brokers()];
        Self(layers.map(|layer| view.image.config(&layer).cloned()))
    }
}

impl Described {
    /// Every effective value of a new topic that sets these itself, in order of names.
    pub(super) fn of(
        &mut self,
        view: &View<'_>,
        own: &BTreeMap<&str, &str>,
    ) -> Vec<CreatableTopicConfigs> {
        if !own.is_empty() {
            return all(view, own);
        }
        let layers = Layers::of(view);
        match &self.known {
            Some(known) if known.layers == layers => known.entries.clone(),
            _ => {
                let entries = all(view, own);
                self.known = Some(Known {
                    layers,
                    entries: entries.clone(),
                });
                entries
            }
        }
    }
}

fn all(view: &View<'_>, own: &BTreeMap<&str, &str>) -> Vec<CreatableTopicConfigs> {
    let layers = topic::Layers::stored(view.image, view.settings);
    let effective = topic::effective(layers, |key| own.get(key).copied());
    effective.into_iter().map(entry).collect()
}

fn entry(effective: Effective) -> CreatableTopicConfigs {
    // Most values are the definition's own: nothing to allocate, now or with each copy.
    let value = match effective.source {
        Source::Default => effective.definition.default.map(StrBytes::from_static_str),
        _ => effective.value.map(StrBytes::from_string),
    };
    CreatableTopicConfigs::default()
        .with_name(StrBytes::from_static_str(effective.definition.name))
        .with_value(value)
        .with_read_only(false)
        .with_config_source(effective.source.id())
        .with_is_sensitive(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::World;

    fn value_of(all: &[CreatableTopicConfigs], name: &str) -> (String, i8) {
        let entry = all.iter().find(|it| it.name.as_str() == name).unwrap();
        (
            entry.value.as_ref().unwrap().to_string(),
            entry.config_source,
        )
    }

    #[test]
    fn what_is_known_is_forgotten_when_a_layer_changes() {
        let mut world = World::with_brokers(&[1]);
        let key = "max.message.bytes";
        let described = |world: &mut World, own: &[(&str, &str)]| {
            let own: BTreeMap<&str, &str> = own.iter().copied().collect();
            let all = world.rule(|view, soft| soft.described.of(view, &own));
            value_of(&all, key)
        };
        assert_eq!(described(&mut world, &[]), ("1048588".into(), 5));
        world.config(4, "", "message.max.bytes", "7");
        assert_eq!(described(&mut world, &[]), ("7".into(), 3));
        assert_eq!(described(&mut world, &[(key, "9")]), ("9".into(), 1));
        assert_eq!(described(&mut world, &[]), ("7".into(), 3));
        world.config(4, "1", "message.max.bytes", "8");
        assert_eq!(described(&mut world, &[]), ("8".into(), 2));
    }
}
