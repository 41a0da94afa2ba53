//! The leaves of the tree, each as one JSON value. The fields are named as in the reference's
//! texts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::names;
use super::secrets::{REDACTED, is_secret_config};
use super::{Provenance, iso_time};
use crate::image::{
    Acl, Broker, Controller, DelegationToken, Endpoint, FeatureRange, Partition, ScramCredential,
};
use crate::types::{Uuid, ids};

/// A leaf of the tree.
#[derive(Clone, Copy, Debug)]
pub enum Leaf<'a> {
    /// An access control entry.
    Acl(&'a Acl),
    /// A broker's registration.
    Broker(&'a Broker),
    /// The value of a configuration key.
    Config {
        /// The type of the resource.
        kind: i8,
        /// The key.
        key: &'a str,
        /// Its value.
        value: &'a str,
    },
    /// A controller's registration.
    Controller(&'a Controller),
    /// Nothing is there: a level that no record has set.
    Nothing,
    /// A whole number.
    Number(i64),
    /// A topic's partition.
    Partition(Partition<'a>),
    /// Where the image stands in the log.
    Provenance(Provenance),
    /// The value of a client quota.
    Quota(f64),
    /// A SCRAM credential.
    Scram(&'a ScramCredential),
    /// Plain text.
    Text(&'a str),
    /// A delegation token with its id.
    Token(&'a str, &'a DelegationToken),
    /// A topic's id.
    Uuid(Uuid),
}

impl Leaf<'_> {
    /// The leaf as one JSON value. Secrets are replaced by [`REDACTED`] unless `show_secrets`.
    #[must_use]
    pub fn json(&self, show_secrets: bool) -> Value {
        match self {
            Self::Acl(acl) => acl_json(acl),
            Self::Broker(broker) => broker_json(broker),
            Self::Config { kind, key, value } => {
                let hidden = !show_secrets && is_secret_config(*kind, key);
                Value::from(if hidden { REDACTED } else { value })
            }
            Self::Controller(controller) => controller_json(controller),
            Self::Nothing => Value::Null,
            Self::Number(number) => Value::from(*number),
            Self::Partition(partition) => partition_json(*partition),
            Self::Provenance(provenance) => provenance_json(*provenance),
            Self::Quota(value) => quota_json(*value),
            Self::Scram(credential) => hidden_unless(show_secrets, scram_json(credential)),
            Self::Text(text) => Value::from(*text),
            Self::Token(id, token) => hidden_unless(show_secrets, token_json(id, token)),
            Self::Uuid(id) => uuid(*id),
        }
    }
}

fn uuid(id: Uuid) -> Value {
    Value::from(ids::base64url(id))
}

fn uuids(ids: &[Uuid]) -> Value {
    ids.iter().map(|id| uuid(*id)).collect()
}

fn hidden_unless(shown: bool, mut fields: Value) -> Value {
    if !shown && let Value::Object(fields) = &mut fields {
        for value in fields.values_mut() {
            *value = Value::from(REDACTED);
        }
    }
    fields
}

fn acl_json(acl: &Acl) -> Value {
    json!({
        "resourceType": names::acl_resource_type(acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": names::acl_pattern_type(acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": names::acl_operation(acl.operation),
        "permissionType": names::acl_permission(acl.permission_type),
    })
}

fn broker_json(broker: &Broker) -> Value {
    json!({
        "id": broker.id.0,
        "epoch": broker.epoch.0,
        "incarnationId": uuid(broker.incarnation),
        "listeners": listeners(&broker.endpoints),
        "supportedFeatures": supported(&broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "isMigratingZkBroker": broker.is_migrating,
        "directories": uuids(&broker.directories),
        "cordonedDirectories": broker.cordoned.as_deref().map(uuids),
    })
}

fn controller_json(controller: &Controller) -> Value {
    json!({
        "id": controller.id.0,
        "incarnationId": uuid(controller.incarnation),
        "zkMigrationReady": controller.zk_migration_ready,
        "listeners": listeners(&controller.endpoints),
        "supportedFeatures": supported(&controller.features),
    })
}

/// Sorted by name, as the reference shows them.
fn listeners(endpoints: &[Endpoint]) -> Value {
    let mut sorted: Vec<_> = endpoints.iter().collect();
    sorted.sort_by_key(|endpoint| &endpoint.name);
    let each = sorted.into_iter().map(|endpoint| {
        json!({
            "listenerName": endpoint.name,
            "securityProtocol": names::security_protocol(endpoint.security_protocol),
            "host": endpoint.host,
            "port": endpoint.port,
        })
    });
    each.collect()
}

fn supported(features: &BTreeMap<String, FeatureRange>) -> Value {
    let each = features.iter();
    let each = each.map(|(name, (min, max))| (name.clone(), json!({"min": min, "max": max})));
    Value::Object(each.collect::<Map<_, _>>())
}

fn partition_json(partition: Partition<'_>) -> Value {
    json!({
        "replicas": partition.replicas(),
        "directories": uuids(partition.directories()),
        "isr": partition.isr(),
        "removingReplicas": partition.removing(),
        "addingReplicas": partition.adding(),
        "elr": partition.elr(),
        "lastKnownElr": partition.last_known_elr(),
        "leader": partition.leader(),
        "leaderRecoveryState": recovery_state(partition),
        "leaderEpoch": partition.leader_epoch(),
        "partitionEpoch": partition.partition_epoch(),
    })
}

pub(super) fn recovery_state(partition: Partition<'_>) -> &'static str {
    if partition.recovering() {
        "RECOVERING"
    } else {
        "RECOVERED"
    }
}

pub(super) fn provenance_json(provenance: Provenance) -> Value {
    json!({
        "offset": provenance.offset.0,
        "epoch": provenance.epoch.0,
        "timestamp": provenance.time.0,
        "time": (provenance.time.0 >= 0).then(|| iso_time(provenance.time)),
        "knownCommitted": provenance.committed.map(|offset| offset.0),
    })
}

/// JSON has no infinity and no NaN; a record may hold them.
fn quota_json(value: f64) -> Value {
    serde_json::Number::from_f64(value)
        .map_or_else(|| Value::from(value.to_string()), Value::Number)
}

fn scram_json(credential: &ScramCredential) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    json!({
        "salt": hex(&credential.salt),
        "storedKey": hex(&credential.stored_key),
        "serverKey": hex(&credential.server_key),
        "iterations": credential.iterations,
    })
}

fn token_json(id: &str, token: &DelegationToken) -> Value {
    json!({
        "tokenId": id,
        "owner": token.owner,
        "tokenRequester": token.requester,
        "renewers": token.renewers,
        "issueTimestamp": token.issued_at.0,
        "maxTimestamp": token.max_at.0,
        "expiryTimestamp": token.expires_at.0,
    })
}
