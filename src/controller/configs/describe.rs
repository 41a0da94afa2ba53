//! DescribeConfigs as a controller answers it (KIP-226, KIP-569): a function of the published image
//! and of this node's settings and loggers.
//!
//! Documentation is never sent (the field is null): the texts belong to Kafka's own documentation.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult as Entry, DescribeConfigsResult,
    DescribeConfigsSynonym as Synonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::alter::{BROKER_LOGGER, config_resource};
use super::definition::{self, Definition, Kind};
use super::dynamic::{Level, holds, is_only_dynamic, kind_of};
use super::topic::{self, Layers, Source};
use super::{client_metrics, group, server_keys};
use crate::controller::authorize::{self, Asker, Audit, Operation};
use crate::controller::told::{self, Told};
use crate::controller::{Settings, bounded_items, topic_names};
use crate::image::{ConfigMap, ConfigResource, Image, configs};
use crate::types::loggers::{Level as LogLevel, Loggers};
use crate::types::{ApiError, ErrorCode};

/// Sources that only some types of resources have.
const FROM_LOGGER: i8 = 6;
const FROM_SUBSCRIPTION: i8 = 7;
const FROM_GROUP: i8 = 8;

/// What an entry takes in memory and in the answer, about.
fn bytes(entry: &Entry) -> usize {
    let synonyms = entry.synonyms.iter();
    let synonyms = synonyms.map(|it| told::bytes_of(&it.name, it.value.as_ref()));
    64 + told::bytes_of(&entry.name, entry.value.as_ref()) + synonyms.sum::<usize>()
}

/// Answers DescribeConfigs v1 to v4. What whoever asks may not see comes last.
///
/// # Errors
/// `INVALID_REQUEST` for a type of resource that does not exist, `POLICY_VIOLATION` when the
/// request or its answer is too large: both refuse the whole request.
pub fn describe(
    image: &Image,
    settings: &Settings,
    loggers: &Loggers,
    asker: Asker<'_>,
    request: &DescribeConfigsRequest,
) -> Result<DescribeConfigsResponse, ApiError> {
    // Each named key is looked for among a resource's keys, so their number is bounded too.
    let keys = |resource: &DescribeConfigsResource| {
        let named = resource.configuration_keys.as_ref();
        1 + named.map_or(0, Vec::len)
    };
    bounded_items(request.resources.iter().map(keys).sum())?;
    let describer = Describer {
        image,
        settings,
        loggers,
        layers: Layers::held(image, settings),
        synonyms: request.include_synonyms,
        shared: RefCell::default(),
    };
    let mut unauthorized = Vec::new();
    let mut allowed = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        match refusal(image, settings, asker, resource) {
            None => allowed.push(resource),
            Some(code) => {
                let error = authorize::denied(code);
                unauthorized.push(
                    DescribeConfigsResult::default()
                        .with_resource_type(resource.resource_type)
                        .with_resource_name(resource.resource_name.clone())
                        .with_error_code(error.code.code())
                        .with_error_message(error.message.map(StrBytes::from_string)),
                );
            }
        }
    }
    let mut results = Vec::with_capacity(request.resources.len());
    let mut told = Told::default();
    for resource in allowed {
        let result = DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone());
        results.push(match describer.entries(resource)? {
            Ok(entries) => {
                told.add(entries.iter().map(bytes).sum())?;
                result.with_configs(entries)
            }
            Err(error) => result
                .with_error_code(error.code.code())
                .with_error_message(error.message.map(StrBytes::from_string)),
        });
    }
    results.extend(unauthorized);
    Ok(DescribeConfigsResponse::default().with_results(results))
}

/// Why whoever asks may not see this resource; types that do not exist are refused elsewhere.
fn refusal(
    image: &Image,
    settings: &Settings,
    asker: Asker<'_>,
    resource: &DescribeConfigsResource,
) -> Option<ErrorCode> {
    let (of, code) = config_resource(resource.resource_type, &resource.resource_name)?;
    let question = (Operation::DescribeConfigs, of);
    let rules = settings.authorizer.as_ref();
    (!authorize::allows(rules, image.acls(), asker, question, Audit::Both)).then_some(code)
}

struct Describer<'a> {
    image: &'a Image,
    settings: &'a Settings,
    loggers: &'a Loggers,
    layers: Layers<'a>,
    synonyms: bool,
    /// Entries that are the same for every resource of a kind, or every time one is asked for: to
    /// work one out takes many times as long as to tell it again.
    shared: RefCell<BTreeMap<Shared, BTreeMap<String, Entry>>>,
}

/// Of what entries are shared, by names of keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// Topics that do not set the key.
    Topics,
    /// Groups that do not set the key.
    Groups,
    /// This node.
    Node,
    /// All brokers.
    Brokers,
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ApiError> {
    Err(ApiError::new(ErrorCode::InvalidRequest, message))
}

impl Describer<'_> {
    /// The outer error refuses the whole request.
    fn entries(
        &self,
        resource: &DescribeConfigsResource,
    ) -> Result<Result<Vec<Entry>, ApiError>, ApiError> {
        let name = resource.resource_name.as_str();
        let keys = resource.configuration_keys.as_deref().unwrap_or_default();
        let wanted = Wanted(keys);
        Ok(match resource.resource_type {
            configs::TOPIC => self.topic(name, wanted),
            configs::BROKER if name.is_empty() => Ok(self.all_brokers(wanted)),
            configs::BROKER => self.own(name, wanted),
            BROKER_LOGGER => self.loggers(name, wanted),
            configs::CLIENT_METRICS => self.client_metrics(name, wanted),
            configs::GROUP => self.group(name, wanted),
            _ => refuse(
                "This most likely occurs because of a request being malformed by the client \
                 library or the message was sent to an incompatible broker. See the broker logs \
                 for more details.",
            )?,
        })
    }

    fn topic(&self, name: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>, ApiError> {
        topic_names::check(name)
            .map_err(|message| ApiError::new(ErrorCode::InvalidTopicException, message))?;
        if self.image.topic_by_name(name).is_none() {
            // As in Java, without a sentence of its own.
            return Err(ApiError::new(ErrorCode::UnknownTopicOrPartition, ""));
        }
        let set = self.image.topic_config(name);
        let own = |key: &str| set.and_then(|map| map.get(key));
        let shown = topic::shown(own).into_iter();
        let shown = shown.filter(|definition| wanted.has(definition.name));
        let entry = |definition: &'static Definition| match own(definition.name) {
            Some(value) => self.topic_entry(definition, Some(value)),
            None => self.shared(Shared::Topics, definition.name, || {
                self.topic_entry(definition, None)
            }),
        };
        Ok(shown.map(entry).collect())
    }

    /// The entry that is told of every one of these, worked out when the first asks.
    fn shared(&self, of: Shared, name: &str, make: impl FnOnce() -> Entry) -> Entry {
        let known = self.shared.borrow();
        if let Some(entry) = known.get(&of).and_then(|entries| entries.get(name)) {
            return entry.clone();
        }
        drop(known);
        let entry = make();
        let mut known = self.shared.borrow_mut();
        let entries = known.entry(of).or_default();
        entries.insert(name.to_owned(), entry.clone());
        entry
    }

    fn topic_entry(&self, definition: &'static Definition, own: Option<&str>) -> Entry {
        let mut synonyms = Vec::new();
        if let Some(value) = own {
            let value = normal(definition, value);
            synonyms.push(synonym(definition.name, value, Source::Topic.id()));
        }
        let names = topic::synonyms(definition.name);
        if let Some((first, _)) = names.first() {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            synonyms.extend(self.server_synonyms(first, &names));
        }
        let value = self.layers.effective(definition, own).used().ok();
        self.entry(definition, value.as_ref().map(definition::text), synonyms)
    }

    /// What is set dynamically for all brokers.
    fn all_brokers(&self, wanted: Wanted<'_>) -> Vec<Entry> {
        let map = self.image.config(&ConfigResource::all_brokers());
        let set = map.into_iter().flat_map(ConfigMap::iter);
        set.filter(|(name, value)| wanted.has(name) && holds(name, value, Level::Cluster))
            .map(|(name, value)| {
                self.shared(Shared::Brokers, name, || {
                    let mut synonyms =
                        self.server_synonyms(name, server_synonym_names(name).as_slice());
                    synonyms.retain(|synonym| synonym.source == Source::Cluster.id());
                    self.server_entry(name, Some(value.to_owned()), synonyms)
                })
            })
            .collect()
    }

    /// Everything of this node.
    fn own(&self, name: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>, ApiError> {
        let own = self.settings.node_id;
        match name.parse::<i32>() {
            Err(_) => return refuse(format!("Broker id must be an integer, but it is: {name}")),
            Ok(id) if id != own.0 => {
                return refuse(format!(
                    "Unexpected broker id, expected {own} or empty string, but received {name}"
                ));
            }
            Ok(_) => {}
        }
        let shown = server_keys::ALL.iter().filter(|key| !key.internal);
        let mut names: BTreeSet<&str> = shown.map(|key| key.name).collect();
        names.extend(self.settings.static_configs.keys().map(String::as_str));
        let levels = [
            (ConfigResource::all_brokers(), Level::Cluster),
            (ConfigResource::broker(own), Level::Node),
        ];
        for (resource, level) in levels {
            let set = self
                .image
                .config(&resource)
                .into_iter()
                .flat_map(ConfigMap::iter);
            let held = set.filter(|(name, value)| holds(name, value, level));
            names.extend(held.map(|(name, _)| name));
        }
        let entry = |name: &str| {
            self.shared(Shared::Node, name, || {
                let value = self.server_value(name);
                let synonyms = self.server_synonyms(name, server_synonym_names(name).as_slice());
                self.server_entry(name, value, synonyms)
            })
        };
        Ok(names
            .into_iter()
            .filter(|name| wanted.has(name))
            .map(entry)
            .collect())
    }

    fn loggers(&self, name: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>, ApiError> {
        let own = self.settings.node_id;
        if name.is_empty() {
            return refuse("Broker id must not be empty");
        }
        match name.parse::<i32>() {
            Err(_) => refuse(format!("Broker id must be an integer, but it is: {name}")),
            Ok(id) if id != own.0 => refuse(format!(
                "Unexpected broker id, expected {own} but received {name}"
            )),
            Ok(_) => Ok(self.levels(wanted)),
        }
    }

    fn levels(&self, wanted: Wanted<'_>) -> Vec<Entry> {
        let levels = self.loggers.levels().into_iter();
        let levels = levels.filter(|(name, _)| wanted.has(name));
        let entry = |(name, level): (String, LogLevel)| {
            Entry::default()
                .with_name(StrBytes::from_string(name))
                .with_value(Some(StrBytes::from_static_str(level.name())))
                .with_config_source(FROM_LOGGER)
                .with_documentation(Some(StrBytes::default()))
        };
        levels.map(entry).collect()
    }

    fn client_metrics(&self, name: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>, ApiError> {
        if name.is_empty() {
            return refuse("Client metrics subscription name must not be empty");
        }
        let set = self.config(configs::CLIENT_METRICS, name);
        let shown = client_metrics::DEFINITIONS.iter();
        let shown = shown.filter(|definition| wanted.has(definition.name));
        let entry = |definition: &Definition| {
            let own = set.and_then(|map| map.get(definition.name));
            let value = own.or(definition.default);
            let value = value.and_then(|value| normal(definition, value));
            let synonyms = own.map(|_| synonym(definition.name, value.clone(), FROM_SUBSCRIPTION));
            self.entry(definition, value, synonyms.into_iter().collect())
        };
        Ok(shown.map(entry).collect())
    }

    fn group(&self, name: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>, ApiError> {
        if name.is_empty() {
            return refuse("Group name must not be empty");
        }
        let set = self.config(configs::GROUP, name);
        let own = |key: &str| set.and_then(|map| map.get(key));
        let shown = group::KEYS.iter().filter(|key| {
            let told = own(key.definition.name).is_some() || self.is_in_the_file(key.synonym);
            wanted.has(key.definition.name) && (!key.internal || told)
        });
        let entry = |key: &group::GroupKey| match own(key.definition.name) {
            Some(value) => self.group_entry(key, Some(value)),
            None => self.shared(Shared::Groups, key.definition.name, || {
                self.group_entry(key, None)
            }),
        };
        let mut entries: Vec<Entry> = shown.map(entry).collect();
        entries.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        Ok(entries)
    }

    fn group_entry(&self, key: &group::GroupKey, own: Option<&str>) -> Entry {
        let definition = &key.definition;
        let inherited = key.synonym.and_then(|name| self.server_value(name));
        // The assignor of a group is the first of the brokers' list, not the list.
        let inherited = match definition.default {
            Some(_) => inherited,
            None => inherited.map(|list| list.split(',').next().unwrap_or("").to_owned()),
        };
        let value = own.map(str::to_owned).or(inherited);
        let value = value.or_else(|| definition.default.map(str::to_owned));
        let value = value.and_then(|value| normal(definition, &value));
        let mut synonyms = Vec::new();
        if own.is_some() {
            synonyms.push(synonym(definition.name, value.clone(), FROM_GROUP));
        }
        match (key.synonym, definition.default) {
            (Some(server), _) => synonyms.extend(self.server_synonyms(server, &[server])),
            (None, Some(default)) => {
                let default = Some(default.to_owned());
                synonyms.push(synonym(definition.name, default, Source::Default.id()));
            }
            (None, None) => {}
        }
        self.entry(definition, value, synonyms)
    }

    fn is_in_the_file(&self, key: Option<&str>) -> bool {
        key.is_some_and(|key| self.settings.static_configs.contains_key(key))
    }

    fn config(&self, kind: i8, name: &str) -> Option<&ConfigMap> {
        let name = name.to_owned();
        self.image.config(&ConfigResource { kind, name })
    }

    /// The value of a server key that holds on this node. A dynamic layer that sets the same in
    /// another unit takes away what the layers below it say.
    fn server_value(&self, name: &str) -> Option<String> {
        let key = server_keys::find(name);
        let set = self.lookup(name).next();
        let strongest = server_synonym_names(name)
            .into_iter()
            .filter_map(|name| Some(self.lookup(name).next()?.0.id()))
            .min();
        let set = set.filter(|(source, _)| strongest.is_none_or(|it| source.id() <= it));
        let value = set.and_then(|(_, value)| match key {
            Some(key) => {
                let definition = key.definition();
                let read = definition.read(value).ok()?;
                Some(definition::text(&read))
            }
            None => Some(value.to_owned()),
        });
        value.or_else(|| {
            let key = key.filter(|key| key.kind != Kind::Password)?;
            key.default.map(str::to_owned)
        })
    }

    /// The layers that set a server key.
    fn lookup<'b>(&'b self, name: &'b str) -> impl Iterator<Item = (Source, &'b str)> {
        // Each of the two names of a node's id stands for the other.
        let other = match name {
            "broker.id" => "node.id",
            "node.id" => "broker.id",
            _ => "",
        };
        let twin = self.settings.static_configs.get(other);
        let twin = twin.filter(|_| !self.settings.static_configs.contains_key(name));
        let set = self.layers.lookup(name);
        set.chain(twin.map(|value| (Source::File, value.as_str())))
    }

    /// Who else says something about a server key: layer by layer, in each the synonyms in order.
    /// As in Java, what stands before the first mention of `name` itself is left out.
    fn server_synonyms(&self, name: &str, names: &[&str]) -> Vec<Synonym> {
        let hidden = |key: &str| is_sensitive(kind_of(key));
        let shown = |key: &str, value: &str, source: Source| {
            let value = (!hidden(key)).then(|| value.to_owned());
            synonym(key, value, source.id())
        };
        let mut synonyms = Vec::new();
        for layer in [Source::Node, Source::Cluster, Source::File] {
            for key in names {
                let set = self.lookup(key).filter(|(source, _)| *source == layer);
                synonyms.extend(set.map(|(source, value)| shown(key, value, source)));
            }
        }
        for key in names {
            let default = server_keys::find(key).and_then(|key| key.default);
            synonyms.extend(default.map(|value| shown(key, value, Source::Default)));
        }
        let skipped = synonyms
            .iter()
            .take_while(|synonym| synonym.name.as_str() != name);
        synonyms.split_off(skipped.count())
    }

    fn server_entry(&self, name: &str, value: Option<String>, synonyms: Vec<Synonym>) -> Entry {
        match server_keys::find(name) {
            Some(key) => self
                .entry(&key.definition(), value, synonyms)
                .with_read_only(!key.dynamic),
            None => {
                let kind = kind_of(name);
                let sensitive = is_sensitive(kind);
                let value = value.filter(|_| !sensitive);
                self.untyped(name, value, synonyms)
                    .with_is_sensitive(sensitive)
                    .with_config_type(kind.map_or(0, Kind::id))
                    .with_read_only(!is_only_dynamic(name))
            }
        }
    }

    fn entry(
        &self,
        definition: &Definition,
        value: Option<String>,
        synonyms: Vec<Synonym>,
    ) -> Entry {
        let sensitive = is_sensitive(Some(definition.kind));
        let value = value.filter(|_| !sensitive);
        self.untyped(definition.name, value, synonyms)
            .with_is_sensitive(sensitive)
            .with_config_type(definition.kind.id())
    }

    fn untyped(&self, name: &str, value: Option<String>, synonyms: Vec<Synonym>) -> Entry {
        let source = synonyms
            .first()
            .map_or(Source::Default.id(), |first| first.source);
        Entry::default()
            .with_name(StrBytes::from_string(name.to_owned()))
            .with_value(value.map(StrBytes::from_string))
            .with_config_source(source)
            .with_synonyms(if self.synonyms { synonyms } else { Vec::new() })
            .with_documentation(None)
    }
}

/// The keys that were asked for; none is all.
#[derive(Clone, Copy)]
struct Wanted<'a>(&'a [StrBytes]);

impl Wanted<'_> {
    fn has(self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted.as_str() == name)
    }
}

/// A key whose type is not known may hold a secret.
fn is_sensitive(kind: Option<Kind>) -> bool {
    kind.is_none_or(|kind| kind == Kind::Password)
}

/// A value as Java writes it after reading it: without blanks around it, in one spelling.
fn normal(definition: &Definition, value: &str) -> Option<String> {
    match definition.read(value) {
        Ok(read) => Some(definition::text(&read)),
        Err(_) => definition.default.map(str::to_owned),
    }
}

fn synonym(name: &str, value: Option<String>, source: i8) -> Synonym {
    Synonym::default()
        .with_name(StrBytes::from_string(name.to_owned()))
        .with_value(value.map(StrBytes::from_string))
        .with_source(source)
}

/// The server keys that mean the same in other units, the one in milliseconds first.
fn server_synonym_names(name: &str) -> Vec<&str> {
    const TIMES: &[&[&str]] = &[
        &["log.roll.ms", "log.roll.hours"],
        &["log.roll.jitter.ms", "log.roll.jitter.hours"],
        &[
            "log.retention.ms",
            "log.retention.minutes",
            "log.retention.hours",
        ],
    ];
    if name == "log.flush.interval.ms" {
        return vec![name, "log.flush.scheduler.interval.ms"];
    }
    let family = TIMES.iter().find(|family| family.contains(&name));
    family.map_or_else(|| vec![name], |family| family.to_vec())
}
