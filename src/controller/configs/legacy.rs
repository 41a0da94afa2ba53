//! AlterConfigs: the whole configuration of a resource is replaced.

use indexmap::IndexMap;
use kafka_protocol::messages::alter_configs_request::AlterableConfig;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::alter::{self, as_hashed};
use crate::controller::{Context, Decision, Reply, View};
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
    let resources = request.resources.iter().map(|resource| {
        let named = (resource.resource_type, resource.resource_name.as_str());
        (named, resource.configs.as_slice())
    });
    let change = |resource: &ConfigResource, altered: &[AlterableConfig]| {
        replace(view, context, resource, altered)
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
    let reply = AlterConfigsResponse::default().with_responses(responses);
    Ok(Decision::atomic(records, Reply::AlterConfigs(reply)))
}

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
    let wanted = as_hashed(wanted);
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
