//! ControllerRegistration (KIP-919): where each controller listens and what it supports.

use kafka_protocol::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};

use super::partition_change::metadata_version;
use super::{Decision, Reply, View};
use crate::records::{
    ControllerEndpoint, ControllerFeature, Record, RegisterControllerRecord, VersionedRecord,
};
use crate::types::{ApiError, ErrorCode};

/// Takes the registration as it is; a newer one replaces it.
///
/// # Errors
/// UNSUPPORTED_VERSION below 3.7-IV0.
pub(super) fn decide(
    view: &View<'_>,
    request: ControllerRegistrationRequest,
) -> Result<Decision, ApiError> {
    if !metadata_version(view.image).controller_registration() {
        return Err(ApiError::new(
            ErrorCode::UnsupportedVersion,
            "The current MetadataVersion is too old to support controller registrations.",
        ));
    }
    let listeners = request.listeners.into_iter();
    let features = request.features.into_iter();
    let record = RegisterControllerRecord {
        controller_id: request.controller_id,
        incarnation_id: request.incarnation_id,
        zk_migration_ready: false,
        end_points: listeners
            .map(|listener| ControllerEndpoint {
                name: listener.name.to_string(),
                host: listener.host.to_string(),
                port: listener.port,
                security_protocol: listener.security_protocol,
                ..ControllerEndpoint::default()
            })
            .collect(),
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
