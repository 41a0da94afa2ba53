//! IncrementalAlterConfigs and DescribeConfigs of the loggers of this process. They are no
//! metadata: whichever controller is asked answers, and a restart forgets what was set.

use kafka_protocol::messages::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;

use super::alter::BROKER_LOGGER;
use super::incremental::response;
use crate::controller::authorize::denied;
use crate::controller::bounded_items;
use crate::types::loggers::{Change, Level, Loggers, ROOT};
use crate::types::{ApiError, ErrorCode, NodeId};

/// What becomes of the loggers in a request.
#[derive(Debug, Default)]
pub struct Altered {
    /// In the order in which they are to be made.
    pub changes: Vec<Change>,
    /// One a resource.
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// Takes the loggers out of a request, each resource of which is good or refused as a whole. None
/// are taken from a request that has none. `allowed` says whether whoever asks may act for the
/// cluster: as in Java that is what it takes, not the right to change configurations.
///
/// # Errors
/// `POLICY_VIOLATION` when the request is too large.
pub fn take(
    loggers: &Loggers,
    own: NodeId,
    request: &mut IncrementalAlterConfigsRequest,
    allowed: impl Fn() -> bool,
) -> Result<Altered, ApiError> {
    let is_logger = |resource: &AlterConfigsResource| resource.resource_type == BROKER_LOGGER;
    let mut altered = Altered::default();
    if !request.resources.iter().any(is_logger) {
        return Ok(altered);
    }
    let named = request.resources.iter().filter(|it| is_logger(it));
    let keys: usize = named.map(|resource| resource.configs.len()).sum();
    bounded_items(request.resources.len() + keys)?;
    let (taken, others) = std::mem::take(&mut request.resources)
        .into_iter()
        .partition(is_logger);
    request.resources = others;
    for resource in taken {
        let name = resource.resource_name.as_str();
        let changes = if allowed() {
            check(loggers, own, name, &resource.configs)
        } else {
            Err(denied(ErrorCode::ClusterAuthorizationFailed))
        };
        let outcome = changes.map(|changes| {
            if !request.validate_only {
                altered.changes.extend(changes);
            }
        });
        let answer = response((BROKER_LOGGER, name), outcome);
        altered.responses.push(answer);
    }
    Ok(altered)
}

fn check(
    loggers: &Loggers,
    own: NodeId,
    name: &str,
    configs: &[AlterableConfig],
) -> Result<Vec<Change>, ApiError> {
    let node = name.parse::<i32>();
    let node = node
        .map_err(|_| request(format!("Node id must be an integer, but it is: {name}")))
        .map(NodeId)?;
    if node != own {
        let text = format!("Unexpected node id. Expected {own}, but received {node}");
        return Err(request(text));
    }
    configs
        .iter()
        .map(|config| change(loggers, config))
        .collect()
}

fn change(loggers: &Loggers, config: &AlterableConfig) -> Result<Change, ApiError> {
    let logger = config.name.as_str().to_owned();
    let not_for_loggers = |what: &str| {
        let text = format!("{what} is not allowed for the BROKER_LOGGER resource");
        Err(request(text))
    };
    let exists = || {
        if loggers.has(&logger) {
            return Ok(());
        }
        Err(invalid(format!(
            "Logger {logger} does not exist! There are {}, and names of Java's for them, which \
             are listed with them.",
            Loggers::own_names()
        )))
    };
    let level = match config.config_operation {
        0 => {
            exists()?;
            Some(level(&logger, config.value.as_deref())?)
        }
        1 => {
            exists()?;
            if logger == ROOT {
                let text = "Removing the log level of the root logger is not allowed";
                return Err(request(text.to_owned()));
            }
            None
        }
        2 => return not_for_loggers("APPEND operation"),
        3 => return not_for_loggers("SUBTRACT operation"),
        other => return not_for_loggers(&format!("Unknown operation type {other}")),
    };
    Ok(Change { logger, level })
}

fn level(logger: &str, name: Option<&str>) -> Result<Level, ApiError> {
    let level = name.and_then(Level::settable);
    level.ok_or_else(|| {
        let name = name.unwrap_or("null");
        let names = Level::SETTABLE.map(Level::name).join(", ");
        invalid(format!(
            "Cannot set the log level of {logger} to {name} as it is not a supported log level. \
             Valid log levels are {names}"
        ))
    })
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidConfig, message)
}

fn request(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, message)
}
