//! AlterConfigs: the whole configuration of a resource is replaced.

use indexmap::IndexMap;
use kafka_protocol::messages::alter_configs_request::AlterableConfig;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::{alter, incremental};
use crate::controller::{Context, Decision, Reply, View, bounded, bounded_items};
use crate::image::{ConfigResource, configs};
use crate::records::VersionedRecord;
use crate::types::{ApiError, ErrorCode};

/// The rule of AlterConfigs v0 to v2: each resource succeeds or fails as a whole.
///
/// # Errors
/// `POLICY_VIOLATION` when the request is too large.
pub(in crate::controller) fn decide(
    view: &View<'_>,
    context: &Context,
    request: &AlterConfigsRequest,
) -> Result<Decision, ApiError> {
    bounded_items(request.resources.len())?;
    let mut by_resource: IndexMap<(i8, &str), Option<&[AlterableConfig]>> = IndexMap::new();
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let key = (resource.resource_type, resource.resource_name.as_str());
        if key.0 == BROKER_LOGGER {
            let message = "Unknown resource type BROKER_LOGGER";
            let error = ApiError::new(ErrorCode::InvalidRequest, message);
            responses.push(response(key, Err(error)));
        } else if !alter::is_stored(key.0) {
            responses.push(response(key, Err(incremental::unknown_type(key.0))));
        } else {
            by_resource
                .entry(key)
                .and_modify(|known| *known = None)
                .or_insert(Some(&resource.configs));
        }
    }
    let mut records = Vec::new();
    for ((kind, name), altered) in by_resource {
        let made = match altered {
            None => Err(incremental::duplicate()),
            Some(altered) => {
                let name = name.to_owned();
                replace(view, context, &ConfigResource { kind, name }, altered)
            }
        };
        responses.push(response(
            (kind, name),
            made.map(|made| records.extend(made)),
        ));
        bounded(&records)?;
    }
    records.extend(alter::clear_elr(view.image, &records));
    bounded(&records)?;
    if request.validate_only {
        records.clear();
    }
    let reply = AlterConfigsResponse::default().with_responses(responses);
    Ok(Decision::atomic(records, Reply::AlterConfigs(reply)))
}

/// The type id of the loggers of a node's process.
const BROKER_LOGGER: i8 = 8;

fn replace(
    view: &View<'_>,
    context: &Context,
    resource: &ConfigResource,
    altered: &[AlterableConfig],
) -> Result<Vec<VersionedRecord>, ApiError> {
    let mut wanted: IndexMap<&str, Option<&str>> = IndexMap::new();
    for config in altered {
        wanted.insert(config.name.as_str(), config.value.as_deref());
    }
    let before = view.image.config(resource);
    let mut changes = Vec::new();
    for (key, value) in &wanted {
        let old = before.and_then(|map| map.get(key));
        if old != *value || resource.kind == configs::BROKER {
            changes.push(((*key).to_owned(), value.map(str::to_owned)));
        }
    }
    let known = before.into_iter().flat_map(|map| map.iter());
    let implicit: Vec<(String, Option<String>)> = known
        .filter(|(key, _)| !wanted.contains_key(key))
        .map(|(key, _)| (key.to_owned(), None))
        .collect();
    alter::check(view, context, resource, false, &changes, &implicit)?;
    changes.extend(implicit);
    Ok(alter::records(resource, changes))
}

fn response(key: (i8, &str), result: Result<(), ApiError>) -> AlterConfigsResourceResponse {
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
