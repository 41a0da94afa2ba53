//! IncrementalAlterConfigs (KIP-339): single keys are set, deleted, appended to, subtracted from.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::alter::as_hashed;
use super::definition::{Definition, Kind};
use super::{alter, server_keys, topic};
use crate::controller::{Context, Decision, Reply, View};
use crate::image::{ConfigResource, configs};
use crate::records::VersionedRecord;
use crate::types::{ApiError, ErrorCode};

/// What happens to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The value replaces the old one; `None` deletes it, as Java has it.
    Set(Option<String>),
    /// The key falls back to its default.
    Delete,
    /// The items are added to the list unless they are in it.
    Append(String),
    /// The items are taken out of the list.
    Subtract(String),
}

/// Whose configuration changes.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A resource that must exist.
    Known(&'a ConfigResource),
    /// A topic that the same request creates.
    New(&'a ConfigResource),
}

impl<'a> Subject<'a> {
    const fn resource(self) -> &'a ConfigResource {
        match self {
            Self::Known(resource) | Self::New(resource) => resource,
        }
    }
}

/// Operations by key.
pub type Operations = IndexMap<String, Operation>;

/// The rule of IncrementalAlterConfigs v0 and v1: each resource succeeds or fails as a whole.
/// Loggers were taken out before; see [`super::loggers`].
///
/// # Errors
/// `POLICY_VIOLATION` when the request is too large.
pub(in crate::controller) fn decide(
    view: &View<'_>,
    context: &Context,
    request: &IncrementalAlterConfigsRequest,
) -> Result<Decision, ApiError> {
    let resources = request.resources.iter().map(|resource| {
        let named = (resource.resource_type, resource.resource_name.as_str());
        (named, resource.configs.as_slice())
    });
    let change = |resource: &ConfigResource, altered: &[AlterableConfig]| {
        let operations = operations(altered)?;
        alter_resource(view, context, Subject::Known(resource), &operations)
    };
    let alter::Altered {
        mut records,
        outcomes,
    } = alter::each(view, context, resources, change)?;
    if request.validate_only {
        records.clear();
    }
    let outcomes = outcomes.into_iter();
    let responses = outcomes
        .map(|(named, outcome)| response(named, outcome))
        .collect();
    let reply = IncrementalAlterConfigsResponse::default().with_responses(responses);
    Ok(Decision::atomic(
        records,
        Reply::IncrementalAlterConfigs(reply),
    ))
}

/// The records for the operations on one resource, with those that forget eligible leaders.
///
/// # Errors
/// Why the changed configuration is not valid.
pub(in crate::controller) fn alter_and_clear_elr(
    view: &View<'_>,
    context: &Context,
    subject: Subject<'_>,
    operations: &Operations,
) -> Result<Vec<VersionedRecord>, ApiError> {
    let mut records = alter_resource(view, context, subject, operations)?;
    records.extend(alter::clear_elr(view.image, &records));
    Ok(records)
}

fn alter_resource(
    view: &View<'_>,
    context: &Context,
    subject: Subject<'_>,
    operations: &Operations,
) -> Result<Vec<VersionedRecord>, ApiError> {
    let resource = subject.resource();
    let before = view.image.config(resource);
    let mut changes = Vec::new();
    for (key, operation) in operations {
        let old = before.and_then(|map| map.get(key));
        let new = applied(resource.kind, key, old, operation)?;
        // A broker reads key files again when its configuration is written, changed or not.
        if old != new.as_deref() || resource.kind == configs::BROKER {
            changes.push((key.clone(), new));
        }
    }
    let new = matches!(subject, Subject::New(_));
    alter::check(view, context, resource, new, &changes, &[])?;
    Ok(alter::records(resource, changes))
}

fn applied(
    kind: i8,
    key: &str,
    old: Option<&str>,
    operation: &Operation,
) -> Result<Option<String>, ApiError> {
    let (verb, items) = match operation {
        Operation::Set(value) => return Ok(value.clone()),
        Operation::Delete => return Ok(None),
        Operation::Append(items) => ("APPEND", items),
        Operation::Subtract(items) => ("SUBTRACT", items),
    };
    let definition = definition(kind, key);
    let Some(definition) = definition.filter(|definition| definition.kind == Kind::List) else {
        return Err(ApiError::new(
            ErrorCode::InvalidConfig,
            format!("Can't {verb} to key {key} because its type is not LIST."),
        ));
    };
    alter::check_length(items)?;
    let base = old.or(definition.default).unwrap_or_default();
    let mut parts: Vec<&str> = base.split(',').filter(|part| !part.is_empty()).collect();
    if matches!(operation, Operation::Append(_)) {
        let mut known: BTreeSet<&str> = parts.iter().copied().collect();
        parts.extend(java_split(items).filter(|item| known.insert(item)));
    } else {
        // Each time that an item is named takes out its first place that is left.
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for item in java_split(items) {
            *named.entry(item).or_default() += 1;
        }
        parts.retain(|part| match named.get_mut(part) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
    }
    Ok(Some(parts.join(",")))
}

/// The parts between commas without the empty ones at the end; one empty part of an empty text.
fn java_split(text: &str) -> impl Iterator<Item = &str> {
    let kept = if text.is_empty() {
        text
    } else {
        text.trim_end_matches(',')
    };
    let all_commas = kept.is_empty() && !text.is_empty();
    kept.split(',').skip(usize::from(all_commas))
}

/// The definition of a key, for the two types of resources whose keys Kafka's controller knows the
/// types of.
fn definition(kind: i8, key: &str) -> Option<Definition> {
    match kind {
        configs::TOPIC => topic::definition(key).copied(),
        configs::BROKER => server_keys::find(key).map(server_keys::ServerKey::definition),
        _ => None,
    }
}

/// The last operation on each key, in the order in which Java looks at them: the first that is
/// wrong is told.
fn operations(altered: &[AlterableConfig]) -> Result<Operations, ApiError> {
    let mut operations = Operations::with_capacity(altered.len());
    for config in altered {
        let key = config.name.as_str().to_owned();
        let value = config.value.as_ref().map(|value| value.as_str().to_owned());
        // Java fails here with a null pointer and loses its leadership.
        let items = || {
            value.clone().ok_or_else(|| {
                let message = format!("Null value not supported for : {key}");
                ApiError::new(ErrorCode::InvalidRequest, message)
            })
        };
        let operation = match config.config_operation {
            0 => Operation::Set(value),
            1 => Operation::Delete,
            2 => Operation::Append(items()?),
            3 => Operation::Subtract(items()?),
            other => {
                let message = format!("Unknown configuration operation {other} for key {key}.");
                return Err(ApiError::new(ErrorCode::InvalidRequest, message));
            }
        };
        operations.insert(key, operation);
    }
    Ok(as_hashed(operations))
}

/// What became of one resource.
pub(super) fn response(
    key: (i8, &str),
    result: Result<(), ApiError>,
) -> AlterConfigsResourceResponse {
    let (code, message) = match result {
        Ok(()) => (ErrorCode::None, None),
        Err(error) => (error.code, error.message),
    };
    AlterConfigsResourceResponse::default()
        .with_error_code(code.code())
        .with_error_message(message.map(StrBytes::from_string))
        .with_resource_type(key.0)
        .with_resource_name(StrBytes::from_string(key.1.to_owned()))
}
