//! BrokerRegistration (KIP-631, KIP-858, KIP-966).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};

use super::levels::metadata_version;
use super::{Decision, Reply, Soft, View, check_node_id, endpoints, leaders};
use crate::image::{Broker, Endpoint, Place};
use crate::records::{
    BrokerEndpoint, BrokerFeature, Record, RegisterBrokerRecord, VersionedRecord,
};
use crate::types::features::{KRAFT_VERSION, METADATA_VERSION};
use crate::types::ids::{base64url, is_reserved};
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId, Uuid};

/// Registers a broker. It starts fenced unless the same incarnation amends its registration.
///
/// # Errors
/// INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, BROKER_ID_NOT_REGISTERED (a ZooKeeper
/// broker), INVALID_REGISTRATION, UNSUPPORTED_VERSION, checked in this order. An id below 0 is an
/// INVALID_REGISTRATION, right behind the cluster's id; Java registers it. A listener without a
/// name, a host or a port, or with an unknown security protocol, is an INVALID_REGISTRATION, too;
/// Java fails there, and resigns or stops.
pub(super) fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    version: i16,
    request: BrokerRegistrationRequest,
) -> Result<Decision, ApiError> {
    let before = view.image.broker(NodeId(request.broker_id.0));
    let asked = Registering {
        version,
        before: before.map(|it| it.epoch),
        request,
        at: Place::default(),
    };
    go_on(view, soft, asked)
}

/// A registration that has not come to its end: partitions of the broker's last incarnation are
/// left. The request is judged anew in each step. If it ends with a refusal, or never, the old
/// incarnation has left some in-sync sets in vain; its process is dead or will say otherwise.
#[derive(Clone, Debug)]
pub(super) struct Registering {
    version: i16,
    /// Who was registered when it came. A process that has registered since is a newer one, which
    /// has no session yet: that begins with its first heartbeat.
    before: Option<BrokerEpoch>,
    request: BrokerRegistrationRequest,
    at: Place,
}

impl Registering {
    pub(super) fn broker(&self) -> NodeId {
        NodeId(self.request.broker_id.0)
    }
}

/// One step.
pub(super) fn go_on(
    view: &View<'_>,
    soft: &mut Soft,
    asked: Registering,
) -> Result<Decision, ApiError> {
    let Registering {
        version,
        before,
        request,
        at,
    } = asked;
    let id = NodeId(request.broker_id.0);
    let existing = view.image.broker(id);
    check_identity(view, soft, existing, &request)?;
    let newer = existing.filter(|it| before != Some(it.epoch));
    if newer.is_some_and(|it| it.incarnation != request.incarnation_id) {
        return Err(duplicate());
    }
    if metadata_version(view.image).directory_assignment() {
        check_directories(view, id, &request)?;
    }
    let end_points = end_points(&request)?;
    check_features(view, &request)?;
    let same = existing.filter(|it| it.incarnation == request.incarnation_id);
    let mut records = Vec::new();
    if same.is_none() {
        let stored = existing.map_or(NEVER_REGISTERED, |it| it.epoch.0);
        let clean = version >= 3 && stored == request.previous_broker_epoch;
        if let Some(at) = leaders::forget_incarnation(view, id, clean, at, &mut records) {
            let reply = Reply::BrokerRegistration(BrokerRegistrationResponse::default());
            let left = Registering {
                version,
                before,
                request,
                at,
            };
            return Ok(Decision::unfinished(records, reply, left));
        }
    }
    let mut record = registration(view, request, end_points);
    if let Some(existing) = same {
        record.fenced = existing.fenced;
        record.in_controlled_shutdown = existing.in_controlled_shutdown;
        record.broker_epoch = existing.epoch.0;
    } else {
        record.broker_epoch = view.next_offset.0;
        soft.brokers.remove(id);
    }
    soft.brokers.register(id);
    let epoch = record.broker_epoch;
    tracing::info!("broker {id} registers with epoch {epoch}");
    records.push(VersionedRecord {
        version: metadata_version(view.image).register_broker_record_version(),
        record: Record::RegisterBroker(record),
    });
    let reply = BrokerRegistrationResponse::default().with_broker_epoch(epoch);
    Ok(Decision::loose(records, Reply::BrokerRegistration(reply)))
}

/// Stands for the epoch of a broker that was never registered: equals no `PreviousBrokerEpoch`.
const NEVER_REGISTERED: i64 = -2;

fn duplicate() -> ApiError {
    ApiError::new(
        ErrorCode::DuplicateBrokerRegistration,
        "Another broker is registered with that broker id. If the broker was recently restarted \
         this should self-resolve once the heartbeat manager expires the broker's session.",
    )
}

fn check_identity(
    view: &View<'_>,
    soft: &Soft,
    existing: Option<&Broker>,
    request: &BrokerRegistrationRequest,
) -> Result<(), ApiError> {
    let expected = &view.settings.cluster_id;
    if request.cluster_id.as_str() != expected {
        return Err(ApiError::new(
            ErrorCode::InconsistentClusterId,
            format!(
                "Expected cluster ID {expected}, but got cluster ID {}",
                request.cluster_id.as_str()
            ),
        ));
    }
    check_node_id(request.broker_id.0)
        .map_err(|text| ApiError::new(ErrorCode::InvalidRegistration, text))?;
    if let Some(existing) = existing {
        let session_ms = view.settings.session_timeout_ms;
        let now = view.now.instant;
        let alive = soft
            .brokers
            .has_session(existing.id, existing.epoch, now, session_ms);
        if alive && existing.incarnation != request.incarnation_id {
            return Err(duplicate());
        }
    }
    if request.is_migrating_zk_broker {
        return Err(ApiError::new(
            ErrorCode::BrokerIdNotRegistered,
            "Controller does not support registering ZK brokers.",
        ));
    }
    Ok(())
}

fn check_directories(
    view: &View<'_>,
    id: NodeId,
    request: &BrokerRegistrationRequest,
) -> Result<(), ApiError> {
    let invalid = |text: String| Err(ApiError::new(ErrorCode::InvalidRegistration, text));
    let asked: BTreeSet<_> = request.log_dirs.iter().copied().collect();
    if asked.is_empty() {
        return invalid("No directories specified in request".to_owned());
    }
    if asked.iter().any(|&directory| is_reserved(directory)) {
        return invalid("Reserved directory ID in request".to_owned());
    }
    if asked.len() != request.log_dirs.len() {
        return invalid("Duplicate directory ID in request".to_owned());
    }
    let brokers = view.image.brokers().values();
    let others: BTreeMap<Uuid, NodeId> = brokers
        .filter(|broker| broker.id != id)
        .flat_map(|broker| broker.directories.iter().map(|it| (*it, broker.id)))
        .collect();
    for directory in &request.log_dirs {
        if let Some(owner) = others.get(directory) {
            let directory = base64url(*directory);
            return invalid(format!(
                "Broker {owner} is already registered with directory {directory}"
            ));
        }
    }
    Ok(())
}

/// Every finalized feature must lie in the broker's range; a feature that the broker does not name
/// counts as 0 to 0.
fn check_features(view: &View<'_>, request: &BrokerRegistrationRequest) -> Result<(), ApiError> {
    let finalized = |name: &str| match name {
        KRAFT_VERSION => view.kraft_version,
        _ => view.image.features().level(name),
    };
    for feature in &request.features {
        let range = (feature.min_supported_version, feature.max_supported_version);
        check_range(&feature.name, finalized(&feature.name), range)?;
    }
    let named = |name: &str| request.features.iter().any(|it| it.name.as_str() == name);
    if !named(METADATA_VERSION) {
        return Err(ApiError::new(
            ErrorCode::InvalidRegistration,
            "Request features do not contain 'metadata.version'",
        ));
    }
    let levels = view
        .image
        .features()
        .iter()
        .map(|(name, level)| (name.to_owned(), level));
    for (name, level) in levels.chain([(KRAFT_VERSION.to_owned(), view.kraft_version)]) {
        if level != 0 && !named(&name) {
            check_range(&name, level, (0, 0))?;
        }
    }
    Ok(())
}

fn check_range(name: &str, level: i16, (min, max): (i16, i16)) -> Result<(), ApiError> {
    if (min..=max).contains(&level) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::UnsupportedVersion,
        format!(
            "Unable to register because the broker does not support finalized version {level} of \
             {name}. The broker wants a version between {min} and {max}, inclusive."
        ),
    ))
}

fn end_points(request: &BrokerRegistrationRequest) -> Result<Vec<BrokerEndpoint>, ApiError> {
    let listeners = request.listeners.iter().map(|listener| Endpoint {
        name: listener.name.to_string(),
        host: listener.host.to_string(),
        port: listener.port,
        security_protocol: listener.security_protocol,
    });
    let named = endpoints::by_name(listeners)
        .map_err(|text| ApiError::new(ErrorCode::InvalidRegistration, text))?;
    let end_points = named.into_iter().map(|endpoint| BrokerEndpoint {
        name: endpoint.name,
        host: endpoint.host,
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
        ..BrokerEndpoint::default()
    });
    Ok(end_points.collect())
}

fn registration(
    view: &View<'_>,
    request: BrokerRegistrationRequest,
    end_points: Vec<BrokerEndpoint>,
) -> RegisterBrokerRecord {
    let directories = metadata_version(view.image).directory_assignment();
    RegisterBrokerRecord {
        broker_id: request.broker_id.0,
        incarnation_id: request.incarnation_id,
        rack: request.rack.map(|rack| rack.to_string()),
        end_points,
        features: request
            .features
            .into_iter()
            .map(|feature| BrokerFeature {
                name: feature.name.to_string(),
                min_supported_version: feature.min_supported_version,
                max_supported_version: feature.max_supported_version,
                ..BrokerFeature::default()
            })
            .collect(),
        log_dirs: if directories {
            request.log_dirs
        } else {
            Vec::new()
        },
        ..RegisterBrokerRecord::default()
    }
}

/// The broker of a request must be registered with the epoch that it names.
///
/// # Errors
/// STALE_BROKER_EPOCH.
pub(super) fn check_epoch<'a>(
    view: &View<'a>,
    id: NodeId,
    epoch: BrokerEpoch,
) -> Result<&'a Broker, ApiError> {
    let stale = |text| Err(ApiError::new(ErrorCode::StaleBrokerEpoch, text));
    match view.image.broker(id) {
        None => stale(format!("No broker registration found for broker id {id}")),
        Some(broker) if broker.epoch != epoch => stale(format!(
            "Expected broker epoch {}, but got broker epoch {epoch}",
            broker.epoch
        )),
        Some(broker) => Ok(broker),
    }
}
