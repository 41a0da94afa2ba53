//! What incremental and legacy changes have in common: the rules that a changed resource must
//! meet, in the order in which Kafka's controller asks them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use indexmap::IndexMap;

use super::{client_metrics, group, topic};
use crate::controller::authorize::{Operation, Resource, denied};
use crate::controller::{Context, View, bounded, bounded_items, levels, topic_names};
use crate::image::{ConfigMap, ConfigResource, Image, configs};
use crate::records::{ClearElrRecord, ConfigRecord, Record, VersionedRecord};
use crate::types::java_order::{sort_as_hashed, string_hash};
use crate::types::{ApiError, ErrorCode, NodeId};

/// A log's record holds strings of up to 32,767 bytes in the formats of older peers.
const VALUE_LENGTH_MAX: usize = 32_767;

/// Most keys of one resource: a broker may have any, and each change of one costs a look at all.
const KEYS_MAX: usize = 2_000;

const MIN_ISR: &str = "min.insync.replicas";
const CORDONED: &str = "cordoned.log.dirs";

/// The type id of the loggers of a node's process; never stored.
pub(super) const BROKER_LOGGER: i8 = 8;

/// A resource as a request names it: type and name.
pub(super) type Named<'a> = (i8, &'a str);

/// A request's changes, each resource by itself.
pub(super) struct Altered<'a> {
    /// All records, with those that forget eligible leaders.
    pub(super) records: Vec<VersionedRecord>,
    /// What became of each resource: first those that are never stored, then the others.
    pub(super) outcomes: Vec<(Named<'a>, Result<(), ApiError>)>,
}

/// Changes every resource of a request by `change`; one that is named twice is refused. Loggers are
/// resources like others here, of which none can be changed.
///
/// # Errors
/// `POLICY_VIOLATION` when the request is too large.
pub(super) fn each<'a, C: 'a>(
    view: &View<'_>,
    context: &Context,
    resources: impl ExactSizeIterator<Item = (Named<'a>, &'a [C])>,
    change: impl Fn(&ConfigResource, &[C]) -> Result<Vec<VersionedRecord>, ApiError>,
) -> Result<Altered<'a>, ApiError> {
    bounded_items(resources.len())?;
    let mut by_resource: IndexMap<Named<'a>, Option<&'a [C]>> = IndexMap::new();
    let mut outcomes = Vec::with_capacity(resources.len());
    for (named, altered) in resources {
        // No resource has so many keys; and more changes would not fit one operation.
        bounded_items(altered.len())?;
        let is_logger = named.0 == BROKER_LOGGER;
        if !is_stored(named.0) && !is_logger {
            let message = format!("Unknown resource type {}.", named.0);
            let error = ApiError::new(ErrorCode::UnsupportedVersion, message);
            outcomes.push((named, Err(error)));
        } else {
            by_resource
                .entry(named)
                .and_modify(|known| *known = None)
                .or_insert(Some(altered));
        }
    }
    let mut records = Vec::new();
    for ((kind, name), altered) in by_resource {
        let made = match altered {
            None => {
                let message = "Duplicate resource.";
                Err(ApiError::new(ErrorCode::InvalidRequest, message))
            }
            Some(_) if kind == BROKER_LOGGER => {
                let message = "Unexpected resource type BROKER_LOGGER.";
                Err(ApiError::new(ErrorCode::InvalidRequest, message))
            }
            Some(altered) => may_alter(view, context, kind, name).and_then(|()| {
                let name = name.to_owned();
                change(&ConfigResource { kind, name }, altered)
            }),
        };
        outcomes.push(((kind, name), made.map(|made| records.extend(made))));
        bounded(&records)?;
    }
    records.extend(clear_elr(view.image, &records));
    bounded(&records)?;
    Ok(Altered { records, outcomes })
}

pub(super) use super::ConfigChange as Change;

/// Java's type ids that a request may name and a controller stores.
pub(super) fn is_stored(kind: i8) -> bool {
    [
        configs::TOPIC,
        configs::BROKER,
        configs::CLIENT_METRICS,
        configs::GROUP,
    ]
    .contains(&kind)
}

/// Checks the changes of one resource. `implicit` are deletions of keys that the request does not
/// name. A `new` topic is being created by the same request, so it need not exist.
pub(super) fn check(
    view: &View<'_>,
    context: &Context,
    resource: &ConfigResource,
    new: bool,
    changes: &[Change],
    implicit: &[Change],
) -> Result<(), ApiError> {
    let before = view.image.config(resource);
    let mut after: BTreeMap<String, String> = before
        .into_iter()
        .flat_map(|map| map.iter())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    for (key, value) in changes {
        check_change(view, context, resource, key, value.as_deref())?;
        match value {
            None => {
                after.remove(key);
            }
            Some(value) => {
                check_length(value)?;
                after.insert(key.clone(), value.clone());
            }
        }
    }
    for (key, _) in implicit {
        check_change(view, context, resource, key, None)?;
        after.remove(key);
    }
    let known = before.map_or(0, ConfigMap::len);
    if after.len() > KEYS_MAX && after.len() > known {
        let message = format!("A resource may have {KEYS_MAX} configuration keys.");
        return Err(ApiError::new(ErrorCode::PolicyViolation, message));
    }
    check_values(view, resource, &after)?;
    if !new {
        check_exists(view, resource)?;
    }
    view.settings.policies.check_change(resource, changes)
}

/// What is asked for each key, in the order of a hash map of Java.
pub(super) fn as_hashed<K: AsRef<str> + Hash + Eq, V>(asked: IndexMap<K, V>) -> IndexMap<K, V> {
    let mut asked: Vec<(K, V)> = asked.into_iter().collect();
    sort_as_hashed(&mut asked, |(key, _)| string_hash(key.as_ref()));
    asked.into_iter().collect()
}

/// Of the keys that are not known the one that Java tells: the first in a hash map of all of them.
pub(super) fn unknown_key(
    keys: &BTreeMap<String, String>,
    known: impl Fn(&str) -> bool,
) -> Option<&str> {
    if keys.keys().all(|key| known(key)) {
        return None;
    }
    let mut keys: Vec<&str> = keys.keys().map(String::as_str).collect();
    sort_as_hashed(&mut keys, |key| string_hash(key));
    keys.into_iter().find(|key| !known(key))
}

/// Refuses a value that is too long to be stored.
pub(super) fn check_length(value: &str) -> Result<(), ApiError> {
    if value.encode_utf16().count() > VALUE_LENGTH_MAX {
        return Err(invalid(
            "The configuration value cannot be added because it exceeds the maximum value size \
             of 32767 bytes.",
        ));
    }
    Ok(())
}

/// The records of changes.
pub(super) fn records(resource: &ConfigResource, changes: Vec<Change>) -> Vec<VersionedRecord> {
    let record = |(name, value)| {
        let record = ConfigRecord {
            resource_type: resource.kind,
            resource_name: resource.name.clone(),
            name,
            value,
            ..ConfigRecord::default()
        };
        Record::Config(record).at(0)
    };
    changes.into_iter().map(record).collect()
}

/// The records that forget eligible leader replicas where the smallest ISR changes (KIP-966): who
/// was eligible under the old number may not be under the new one.
pub(super) fn clear_elr(image: &Image, records: &[VersionedRecord]) -> Vec<VersionedRecord> {
    if !levels::elr_enabled(image) {
        return Vec::new();
    }
    let clears = |versioned: &VersionedRecord| match &versioned.record {
        Record::Config(config) if config.name == MIN_ISR => {
            let topic_name = if config.resource_type == configs::TOPIC {
                config.resource_name.clone()
            } else {
                String::new()
            };
            let record = ClearElrRecord {
                topic_name,
                ..ClearElrRecord::default()
            };
            Some(Record::ClearElr(record).at(0))
        }
        _ => None,
    };
    records.iter().filter_map(clears).collect()
}

/// Refuses whoever may not change this configuration.
fn may_alter(view: &View<'_>, context: &Context, kind: i8, name: &str) -> Result<(), ApiError> {
    match config_resource(kind, name) {
        Some((resource, code)) if !view.allows(context, Operation::AlterConfigs, resource) => {
            Err(denied(code))
        }
        Some(_) | None => Ok(()),
    }
}

/// On what the right to a configuration is given, and the code for those who do not have it.
pub(super) fn config_resource(kind: i8, name: &str) -> Option<(Resource<'_>, ErrorCode)> {
    match kind {
        configs::TOPIC => Some((Resource::Topic(name), ErrorCode::TopicAuthorizationFailed)),
        configs::GROUP => Some((Resource::Group(name), ErrorCode::GroupAuthorizationFailed)),
        configs::BROKER | configs::CLIENT_METRICS | BROKER_LOGGER => {
            Some((Resource::Cluster, ErrorCode::ClusterAuthorizationFailed))
        }
        _ => None,
    }
}

/// What one key of a broker may not become.
fn check_change(
    view: &View<'_>,
    context: &Context,
    resource: &ConfigResource,
    key: &str,
    value: Option<&str>,
) -> Result<(), ApiError> {
    if resource.kind != configs::BROKER {
        return Ok(());
    }
    if key == MIN_ISR && levels::elr_enabled(view.image) {
        if !resource.name.is_empty() {
            return Err(invalid(
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            ));
        }
        if value.is_none() {
            return Err(invalid(
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            ));
        }
    }
    if key == CORDONED {
        if !levels::metadata_version(view.image).cordoned_log_dirs() {
            return Err(invalid(
                "The cordoned.log.dirs configuration value cannot be set because it requires \
                 metadata.version >= 4.3-IV0",
            ));
        }
        let before = view
            .image
            .config(resource)
            .and_then(|map| map.get(CORDONED));
        // A broker has checked the directories' names before it forwarded the request.
        if !context.forwarded && !is_subset(value.unwrap_or_default(), before.unwrap_or_default()) {
            return Err(invalid(
                "When updating cordoned.log.dirs via controllers,  the new value must be a \
                 subset of the current configuration value.",
            ));
        }
    }
    Ok(())
}

fn is_subset(value: &str, of: &str) -> bool {
    let of: BTreeSet<String> = super::definition::list(of).into_iter().collect();
    super::definition::list(value)
        .iter()
        .all(|item| of.contains(item))
}

fn check_values(
    view: &View<'_>,
    resource: &ConfigResource,
    after: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    let name = resource.name.as_str();
    match resource.kind {
        configs::TOPIC => {
            if name.is_empty() {
                return Err(request("Default topic resources are not allowed."));
            }
            topic_names::check(name)
                .map_err(|message| ApiError::new(ErrorCode::InvalidTopicException, message))?;
            let before = view.image.config(resource);
            topic::validate(view.image, view.settings, before, after)
        }
        configs::BROKER if name.is_empty() => Ok(()),
        configs::BROKER => match name.parse::<i32>() {
            Ok(id) if id < 0 => Err(request("Invalid negative broker ID.")),
            Ok(_) => Ok(()),
            Err(_) => Err(request("Unable to parse broker name as a base 10 number.")),
        },
        configs::CLIENT_METRICS => client_metrics::validate(name, after),
        _ => {
            if name.is_empty() {
                return Err(request("Default group resources are not allowed."));
            }
            group::validate(view.image, view.settings, after)
        }
    }
}

fn check_exists(view: &View<'_>, resource: &ConfigResource) -> Result<(), ApiError> {
    let name = resource.name.as_str();
    match resource.kind {
        configs::TOPIC if view.image.topic_by_name(name).is_none() => Err(ApiError::new(
            ErrorCode::UnknownTopicOrPartition,
            format!("The topic '{name}' does not exist."),
        )),
        configs::BROKER if !name.is_empty() => {
            let id = NodeId(name.parse().unwrap_or(-1));
            let known = view.image.broker(id).is_some()
                || view.image.controllers().contains_key(&id)
                || view.settings.static_voters.contains(&id)
                || view.settings.node_id == id;
            if known {
                return Ok(());
            }
            Err(ApiError::new(
                ErrorCode::BrokerIdNotRegistered,
                format!("No node with id {id} found."),
            ))
        }
        _ => Ok(()),
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidConfig, message)
}

fn request(message: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, message)
}
