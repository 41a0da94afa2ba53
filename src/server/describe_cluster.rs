//! DescribeCluster (60): the registered controllers, for clients that bootstrap from controllers
//! (KIP-919). Any controller answers it, leading or not.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::core::Published;
use super::dispatch::Ctx;
use super::permissions;
use crate::controller::Settings;
use crate::controller::authorize::{Audit, Operation, Resource};
use crate::types::{ApiError, ErrorCode, NodeId, Offset};

/// EndpointType of the brokers of a cluster.
const BROKERS: i8 = 1;
/// EndpointType of its controllers.
const CONTROLLERS: i8 = 2;
/// metadata.version 3.7-IV0: controllers register themselves.
const REGISTRATIONS_SINCE: i16 = 15;
/// What can be done with the cluster.
const CLUSTER_OPERATIONS: [Operation; 7] = [
    Operation::Create,
    Operation::Alter,
    Operation::Describe,
    Operation::ClusterAction,
    Operation::DescribeConfigs,
    Operation::AlterConfigs,
    Operation::IdempotentWrite,
];

/// Answers a request that came in on `listener`.
///
/// # Errors
/// The whole request is refused: the cluster does not register controllers yet, or this node does
/// not know yet what there is. Java says then that there is no metadata.version, on which its
/// clients give up for good; they try again after what is said here.
pub(crate) fn answer(
    request: &DescribeClusterRequest,
    ctx: &Ctx<'_>,
    settings: &Settings,
    published: &Published,
) -> Result<DescribeClusterResponse, ApiError> {
    let unsupported = |text: &str| Err(ApiError::new(ErrorCode::UnsupportedVersion, text));
    match published.image.features().metadata_version() {
        None if published.end == Offset::ZERO => {
            let text = "This controller has not read the cluster's metadata yet.";
            return Err(ApiError::new(ErrorCode::LeaderNotAvailable, text));
        }
        None => {
            return unsupported(
                "There is no finalized MetadataVersion, so direct-to-controller communication is \
                 not supported.",
            );
        }
        Some(level) if level.level() < REGISTRATIONS_SINCE => {
            return unsupported(
                "Direct-to-controller communication is not supported with the current \
                 MetadataVersion.",
            );
        }
        Some(_) => {}
    }
    permissions::on_cluster(Operation::Alter, ctx, settings, published)?;
    let refused = |code: ErrorCode, text: String| {
        // Version 0 knows neither of the two codes.
        let code = if ctx.version == 0 {
            ErrorCode::InvalidRequest
        } else {
            code
        };
        let message = StrBytes::from_string(text);
        Ok(DescribeClusterResponse::default()
            .with_error_code(code.code())
            .with_error_message(Some(message)))
    };
    match request.endpoint_type {
        CONTROLLERS => {}
        BROKERS => {
            let text = "The request was sent to an endpoint of type CONTROLLER, but we wanted an \
                        endpoint of type BROKER";
            return refused(ErrorCode::MismatchedEndpointType, text.to_owned());
        }
        other => {
            let text = format!("Unsupported endpoint type {other}");
            return refused(ErrorCode::UnsupportedEndpointType, text);
        }
    }
    let controllers = controllers(published, ctx.listener);
    let leader = published.leader.unwrap_or(NodeId::NONE).0;
    let known = controllers.iter().any(|c| c.broker_id.0 == leader);
    let mut response = DescribeClusterResponse::default()
        .with_endpoint_type(CONTROLLERS)
        .with_cluster_id(StrBytes::from_string(settings.cluster_id.clone()))
        .with_controller_id(BrokerId(if known { leader } else { NodeId::NONE.0 }))
        .with_brokers(controllers);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = operations(ctx, settings, published);
    }
    Ok(response)
}

/// What whoever asks may do with the cluster, one bit per operation; nothing is told to those who
/// may not see it.
fn operations(ctx: &Ctx<'_>, settings: &Settings, published: &Published) -> i32 {
    let allowed = |operation, audit| {
        let question = (operation, Resource::Cluster);
        permissions::allows(question, ctx, settings, published, audit)
    };
    if !allowed(Operation::Describe, Audit::Both) {
        return 0;
    }
    CLUSTER_OPERATIONS
        .into_iter()
        .filter(|operation| allowed(*operation, Audit::Nothing))
        .fold(0, |bits, operation| bits | 1 << operation.code())
}

/// The registered controllers that have an endpoint of this listener, by id.
fn controllers(published: &Published, listener: &str) -> Vec<DescribeClusterBroker> {
    let all = published.image.controllers().values();
    all.filter_map(|controller| {
        let endpoint = controller
            .endpoints
            .iter()
            .find(|end| end.name == listener)?;
        Some(
            DescribeClusterBroker::default()
                .with_broker_id(BrokerId(controller.id.0))
                .with_host(StrBytes::from_string(endpoint.host.clone()))
                .with_port(i32::from(endpoint.port)),
        )
    })
    .collect()
}
