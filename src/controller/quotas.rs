//! AlterClientQuotas (KIP-546): who may use how much.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use indexmap::IndexMap;
use kafka_protocol::messages::alter_client_quotas_request as asked;
use kafka_protocol::messages::alter_client_quotas_response as answered;
use kafka_protocol::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse};
use kafka_protocol::protocol::StrBytes;

use super::java_map::JavaMap;
use super::{Decision, Reply, View, bounded, bounded_looks};
use crate::image::QuotaEntity;
use crate::records::{ClientQuotaRecord, EntityData, Record, VersionedRecord};
use crate::types::{ApiError, ErrorCode};

/// The entity type of users.
pub(super) const USER: &str = "user";
/// The entity type of client ids.
pub(super) const CLIENT_ID: &str = "client-id";
/// The entity type of addresses.
pub const IP: &str = "ip";
/// The key of the quota for changes of topics (KIP-599).
pub(super) const MUTATION_RATE: &str = "controller_mutation_rate";

/// What may be set for users and client ids.
const USER_KEYS: [(&str, Kind); 4] = [
    ("producer_byte_rate", Kind::Long),
    ("consumer_byte_rate", Kind::Long),
    ("request_percentage", Kind::Double),
    (MUTATION_RATE, Kind::Double),
];
/// What may be set for addresses.
const IP_KEYS: [(&str, Kind); 1] = [("connection_creation_rate", Kind::Int)];

/// The largest part behind the point that still makes a whole number.
const FRACTION_MAX: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Long,
    Double,
}

/// The request, with what only a resolver knows.
#[derive(Clone, Debug)]
pub struct AlterClientQuotas {
    /// As it came.
    pub body: AlterClientQuotasRequest,
    /// The names of `ip` entities that are no address and that nobody could resolve to one.
    pub unknown_hosts: BTreeSet<String>,
}

/// The rule of AlterClientQuotas v0 and v1. Each entity succeeds or fails by itself; one that is
/// named twice is changed as its first entry says and refused for the others, as Java has it.
///
/// # Errors
/// `POLICY_VIOLATION` when there is too much to write, or to look at.
pub(super) fn decide(view: &View<'_>, request: &AlterClientQuotas) -> Result<Decision, ApiError> {
    let entries = &request.body.entries;
    bounded_looks(entries.iter().map(|entry| 1 + entry.ops.len()).sum())?;
    let mut records = Vec::new();
    let mut outcomes: IndexMap<QuotaEntity, Outcome> = IndexMap::new();
    for entry in entries {
        let mut entity = JavaMap::with_capacity(entry.entity.len());
        for part in &entry.entity {
            let name = part.entity_name.as_ref();
            let name = name.map(|name| name.as_str().to_owned());
            entity.insert(&part.entity_type, name);
        }
        let key: QuotaEntity = entity
            .iter()
            .map(|(kind, name)| (kind.to_owned(), name.clone()))
            .collect();
        let altered = match operations(entry) {
            Some(operations) if !outcomes.contains_key(&key) => {
                altered(view, request, &entity, &key, &operations)
            }
            _ => Err(invalid(format!(
                "Ignoring duplicate entity {}",
                shown(&entity)
            ))),
        };
        let outcome = altered.map(|made| records.extend(made));
        outcomes.insert(key, (entity, outcome));
        bounded(&records)?;
    }
    if request.body.validate_only {
        records.clear();
    }
    let entries = outcomes.into_values().map(answer).collect();
    let reply = AlterClientQuotasResponse::default().with_entries(entries);
    Ok(Decision::atomic(records, Reply::AlterClientQuotas(reply)))
}

/// The keys to set (or, with `None`, to remove); nothing if a key comes twice.
fn operations(entry: &asked::EntryData) -> Option<JavaMap<Option<f64>>> {
    let mut operations = JavaMap::with_capacity(entry.ops.len());
    for operation in &entry.ops {
        if operations.contains(&operation.key) {
            return None;
        }
        let value = (!operation.remove).then_some(operation.value);
        operations.insert(&operation.key, value);
    }
    Some(operations)
}

fn altered(
    view: &View<'_>,
    request: &AlterClientQuotas,
    entity: &JavaMap<Option<String>>,
    key: &QuotaEntity,
    operations: &JavaMap<Option<f64>>,
) -> Result<Vec<VersionedRecord>, ApiError> {
    check_names(entity)?;
    let known_keys = keys_of(key, &request.unknown_hosts)?;
    let mut parts = JavaMap::with_capacity(3);
    for (kind, name) in entity.iter() {
        parts.insert(kind, name.clone());
    }
    let record = |key: &str, value: Option<f64>| {
        let record = ClientQuotaRecord {
            entity: parts
                .iter()
                .map(|(kind, name)| EntityData {
                    entity_type: kind.to_owned(),
                    entity_name: name.clone(),
                    ..EntityData::default()
                })
                .collect(),
            key: key.to_owned(),
            value: value.unwrap_or_default(),
            remove: value.is_none(),
            ..ClientQuotaRecord::default()
        };
        Record::ClientQuota(record).at(0)
    };
    let current = view.image.quotas().get(key);
    let mut records = Vec::new();
    for (key, wanted) in operations.iter() {
        let before = current.and_then(|values| values.get(key)).copied();
        let changes = match *wanted {
            // What is not there is removed without a look at its name.
            None => before.is_some(),
            Some(value) => {
                check_value(known_keys, key, value)?;
                before.map(f64::to_bits) != Some(value.to_bits())
            }
        };
        if changes {
            records.push(record(key, *wanted));
        }
    }
    Ok(records)
}

/// Types that are known, and names that are not empty.
fn check_names(entity: &JavaMap<Option<String>>) -> Result<(), ApiError> {
    if entity.is_empty() {
        return Err(invalid("Invalid empty client quota entity"));
    }
    for (kind, name) in entity.iter() {
        if ![USER, CLIENT_ID, IP].contains(&kind) {
            return Err(invalid(format!(
                "Unhandled client quota entity type: {kind}"
            )));
        }
        if name.as_ref().is_some_and(String::is_empty) {
            return Err(invalid(format!("Empty {kind} not supported")));
        }
    }
    Ok(())
}

fn keys_of(
    entity: &QuotaEntity,
    unknown_hosts: &BTreeSet<String>,
) -> Result<&'static [(&'static str, Kind)], ApiError> {
    let Some(ip) = entity.get(IP) else {
        return Ok(&USER_KEYS);
    };
    if entity.len() > 1 {
        return Err(invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or \
             ClientId",
        ));
    }
    match ip {
        Some(host) if unknown_hosts.contains(host) => Err(invalid(format!(
            "{host} is not a valid IP or resolvable host."
        ))),
        _ => Ok(&IP_KEYS),
    }
}

fn check_value(keys: &[(&str, Kind)], key: &str, value: f64) -> Result<(), ApiError> {
    let Some((_, kind)) = keys.iter().find(|(known, _)| *known == key) else {
        return Err(invalid(format!("Invalid configuration key {key}")));
    };
    if !value.is_finite() {
        return Err(invalid(format!("Quota {key} must be a finite number")));
    }
    if value <= 0.0 {
        return Err(invalid(format!("Quota {key} must be greater than 0")));
    }
    let (max, named) = match kind {
        Kind::Double => return Ok(()),
        Kind::Int => (f64::from(i32::MAX), "an INT"),
        // The nearest number to the largest of 64 bits.
        Kind::Long => (9_223_372_036_854_775_807_f64, "a LONG"),
    };
    if value > max {
        return Err(invalid(format!(
            "Proposed value for {key} is too large for {named}."
        )));
    }
    if value % 1.0 > FRACTION_MAX {
        return Err(invalid(format!("{key} cannot be a fractional value.")));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, message)
}

/// The entity in Java's words.
fn shown(entity: &JavaMap<Option<String>>) -> String {
    let mut text = "ClientQuotaEntity(entries={".to_owned();
    for (at, (kind, name)) in entity.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let name = name.as_deref().unwrap_or("null");
        let _ = write!(text, "{comma}{kind}={name}");
    }
    text.push_str("})");
    text
}

/// An entity as it was named, and what came of it.
type Outcome = (JavaMap<Option<String>>, Result<(), ApiError>);

fn answer((entity, outcome): Outcome) -> answered::EntryData {
    let (code, message) = match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err(error) => (error.code, error.message),
    };
    let parts = entity.iter().map(|(kind, name)| {
        answered::EntityData::default()
            .with_entity_type(StrBytes::from_string(kind.to_owned()))
            .with_entity_name(name.clone().map(StrBytes::from_string))
    });
    answered::EntryData::default()
        .with_error_code(code.code())
        .with_error_message(message.map(StrBytes::from_string))
        .with_entity(parts.collect())
}
