//! ControllerRegistration (KIP-919): where each controller listens and what it supports.

use kafka_protocol::messages::ControllerRegistrationResponse;
use kafka_protocol::messages::controller_registration_request::{Feature, Listener};
use kafka_protocol::protocol::StrBytes;

use super::levels::metadata_version;
use super::{Decision, Reply, Settings, View, check_node_id, endpoints};
use crate::image::Endpoint;
use crate::records::{
    ControllerEndpoint, ControllerFeature, Record, RegisterControllerRecord, VersionedRecord,
};
use crate::types::{ApiError, ErrorCode, Uuid};

pub use kafka_protocol::messages::ControllerRegistrationRequest as Registration;

/// How the controller of `settings` registers itself: a new `incarnation` at every start, its
/// listeners in the order of the file, its features in the order of their names.
#[must_use]
pub fn own(
    settings: &Settings,
    incarnation: Uuid,
    listeners: Vec<ControllerEndpoint>,
) -> Registration {
    let listener = |it: ControllerEndpoint| {
        Listener::default()
            .with_name(StrBytes::from_string(it.name))
            .with_host(StrBytes::from_string(it.host))
            .with_port(it.port)
            .with_security_protocol(it.security_protocol)
    };
    let feature = |(name, (min, max)): (&String, &(i16, i16))| {
        Feature::default()
            .with_name(StrBytes::from_string(name.clone()))
            .with_min_supported_version(*min)
            .with_max_supported_version(*max)
    };
    Registration::default()
        .with_controller_id(settings.node_id.0)
        .with_incarnation_id(incarnation)
        .with_listeners(listeners.into_iter().map(listener).collect())
        .with_features(settings.supported_features.iter().map(feature).collect())
}

/// Takes the registration as it is; a newer one replaces it.
///
/// # Errors
/// UNSUPPORTED_VERSION below 3.7-IV0; INVALID_REQUEST for an id below 0, which Java registers, and
/// for a listener without a name, a host or a port, or with an unknown security protocol, where
/// Java fails, and resigns or stops.
pub(super) fn decide(view: &View<'_>, request: Registration) -> Result<Decision, ApiError> {
    if !metadata_version(view.image).controller_registration() {
        return Err(ApiError::new(
            ErrorCode::UnsupportedVersion,
            // As Java, which tells its reason only to its own log.
            "The version of API is not supported.",
        ));
    }
    check_node_id(request.controller_id)
        .map_err(|text| ApiError::new(ErrorCode::InvalidRequest, text))?;
    let listeners = request.listeners.iter().map(|listener| Endpoint {
        name: listener.name.to_string(),
        host: listener.host.to_string(),
        port: listener.port,
        security_protocol: listener.security_protocol,
    });
    let named = endpoints::by_name(listeners)
        .map_err(|text| ApiError::new(ErrorCode::InvalidRequest, text))?;
    let end_points = named.into_iter().map(|endpoint| ControllerEndpoint {
        name: endpoint.name,
        host: endpoint.host,
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
        ..ControllerEndpoint::default()
    });
    let features = request.features.into_iter();
    let record = RegisterControllerRecord {
        controller_id: request.controller_id,
        incarnation_id: request.incarnation_id,
        zk_migration_ready: false,
        end_points: end_points.collect(),
        features: features
            .map(|feature| ControllerFeature {
                name: feature.name.to_string(),
                min_supported_version: feature.min_supported_version,
                max_supported_version: feature.max_supported_version,
                ..ControllerFeature::default()
            })
            .collect(),
        ..RegisterControllerRecord::default()
    };
    let records = vec![VersionedRecord {
        version: 0,
        record: Record::RegisterController(record),
    }];
    let reply = Reply::ControllerRegistration(ControllerRegistrationResponse::default());
    Ok(Decision::atomic(records, reply))
}
