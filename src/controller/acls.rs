//! Access control entries on request: CreateAcls and DeleteAcls, and DescribeAcls, which every
//! controller answers from the published image (KIP-140, KIP-290, KIP-801, KIP-1276).

mod filter;
mod lookup;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use indexmap::IndexSet;
use kafka_protocol::messages as km;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::delete_acls_response::{
    DeleteAclsFilterResult, DeleteAclsMatchingAcl,
};
use kafka_protocol::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use kafka_protocol::protocol::StrBytes;

use super::authorize::cidr::Block;
use super::authorize::{
    CLUSTER, operation_name, pattern_name, permission_name, resource_name as type_name,
};
use super::told::{self, Told};
use super::{
    Decision, RECORDS_PER_OPERATION_MAX, Reply, Settings, Soft, View, bounded_looks, levels,
    too_large,
};
use crate::image::{Acl, Image};
use crate::records::{Record, RemoveAccessControlEntryRecord, VersionedRecord};
use crate::types::{ApiError, ErrorCode, Uuid};
use filter::Filter;

/// What a number stands for that Kafka's enumerations do not have.
const UNKNOWN: i8 = 0;
/// Every value, in filters.
const ANY: i8 = 1;
/// In filters: every pattern that is about a resource.
const MATCH: i8 = 2;
const CLUSTER_TYPE: i8 = 4;
/// metadata.version 4.4-IV1.
const NO_BLOCKS: &str = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.";
/// Most entries that one answer to DeleteAcls tells of: filters that match the same entries each
/// tell of all of them, and a deletion has far fewer of them.
const MATCHES_PER_ANSWER_MAX: usize = 10 * RECORDS_PER_OPERATION_MAX;

/// Numbers as the enumerations of the reference read them.
pub(super) const fn resource_type(number: i8) -> i8 {
    within(number, 7)
}

const fn pattern_type(number: i8) -> i8 {
    within(number, 4)
}

const fn operation(number: i8) -> i8 {
    within(number, 15)
}

const fn permission_type(number: i8) -> i8 {
    within(number, 3)
}

const fn within(number: i8, most: i8) -> i8 {
    if number < ANY || number > most {
        UNKNOWN
    } else {
        number
    }
}

fn disabled() -> ApiError {
    ApiError::new(ErrorCode::SecurityDisabled, "No Authorizer is configured.")
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, message)
}

/// The rule of CreateAcls v1 to v3: each entry succeeds or fails by itself; one that exists
/// succeeds without a record.
///
/// # Errors
/// `SECURITY_DISABLED` without an authorizer; `UNKNOWN_SERVER_ERROR`, as from Java, when an entry
/// has a value that only filters have; `POLICY_VIOLATION` when more entries are asked for than one
/// step looks at.
pub(super) fn create(
    view: &View<'_>,
    soft: &mut Soft,
    request: &km::CreateAclsRequest,
) -> Result<Decision, ApiError> {
    if view.settings.authorizer.is_none() {
        return Err(disabled());
    }
    bounded_looks(request.creations.len())?;
    if request.creations.iter().any(is_only_for_filters) {
        return Err(ErrorCode::UnknownServerError.into());
    }
    let checked: Vec<Result<Acl, ApiError>> = request.creations.iter().map(named).collect();
    let blocks = levels::metadata_version(view.image).cidr_acls();
    let mut records: Vec<VersionedRecord> = Vec::new();
    let mut added = IndexSet::new();
    let mut ids = BTreeSet::new();
    let mut outcomes = Vec::with_capacity(checked.len());
    let mut overflow = false;
    for acl in &checked {
        outcomes.push(acl.as_ref().map_err(ApiError::clone).and_then(|acl| {
            check(acl, blocks)?;
            if !view.image.acls().contains(acl) && added.insert(acl) {
                overflow |= records.len() == RECORDS_PER_OPERATION_MAX;
                if !overflow {
                    records.push(record(new_id(view, soft, &mut ids), acl));
                }
            }
            Ok(())
        }));
    }
    if overflow {
        // What never came as far as the batch keeps its own error.
        let all = checked.iter().map(|acl| match acl {
            Ok(_) => Err(too_large()),
            Err(error) => Err(error.clone()),
        });
        outcomes = all.collect();
        records.clear();
    }
    let reply =
        km::CreateAclsResponse::default().with_results(outcomes.into_iter().map(created).collect());
    Ok(Decision::atomic(records, Reply::CreateAcls(reply)))
}

fn new_id(view: &View<'_>, soft: &mut Soft, ids: &mut BTreeSet<Uuid>) -> Uuid {
    loop {
        let id = soft.rng.uuid();
        if !view.image.acls().by_id().contains_key(&id) && ids.insert(id) {
            return id;
        }
    }
}

fn created(outcome: Result<(), ApiError>) -> AclCreationResult {
    match outcome {
        Ok(()) => AclCreationResult::default(),
        Err(error) => AclCreationResult::default()
            .with_error_code(error.code.code())
            .with_error_message(error.message.map(StrBytes::from_string)),
    }
}

fn record(id: Uuid, acl: &Acl) -> VersionedRecord {
    Record::AccessControlEntry(acl.record(id)).at(0)
}

/// Java cannot even make an entry of these.
fn is_only_for_filters(acl: &AclCreation) -> bool {
    [acl.resource_type, acl.operation, acl.permission_type].contains(&ANY)
        || [ANY, MATCH].contains(&acl.resource_pattern_type)
}

/// What the API layer looks at: names.
fn named(acl: &AclCreation) -> Result<Acl, ApiError> {
    let name = acl.resource_name.as_str();
    if acl.resource_type == CLUSTER_TYPE && name != CLUSTER {
        return Err(invalid(
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ));
    }
    if name.is_empty() {
        return Err(invalid("Invalid empty resource name"));
    }
    Ok(Acl {
        resource_type: resource_type(acl.resource_type),
        resource_name: name.to_owned(),
        pattern_type: pattern_type(acl.resource_pattern_type),
        principal: acl.principal.as_str().to_owned(),
        host: acl.host.as_str().to_owned(),
        operation: operation(acl.operation),
        permission_type: permission_type(acl.permission_type),
    })
}

/// What the controller looks at, in its order.
fn check(acl: &Acl, blocks: bool) -> Result<(), ApiError> {
    for (what, number, name) in [
        ("resourceType", acl.resource_type, type_name as fn(i8) -> _),
        ("patternType", acl.pattern_type, pattern_name),
        ("operation", acl.operation, operation_name),
        ("permissionType", acl.permission_type, permission_name),
    ] {
        if number == UNKNOWN {
            return Err(invalid(format!("Invalid {what} {}", name(number))));
        }
    }
    if !acl.principal.contains(':') {
        return Err(invalid(format!(
            "Could not parse principal from `{}` (no colon is present separating the principal \
             type from the principal name)",
            acl.principal
        )));
    }
    check_host(&acl.host, blocks)
}

fn check_host(host: &str, blocks: bool) -> Result<(), ApiError> {
    if host.is_empty() {
        return Err(invalid("Host pattern cannot be null or empty"));
    }
    if !host.contains('/') {
        return Ok(());
    }
    if !blocks {
        return Err(ApiError::new(ErrorCode::UnsupportedVersion, NO_BLOCKS));
    }
    match Block::parse(host) {
        Ok(_) => Ok(()),
        Err(why) => Err(invalid(format!("Invalid CIDR notation '{host}': {why}"))),
    }
}

/// The rule of DeleteAcls v1 to v3: all filters look at what was there before the request, so an
/// entry that several of them match is told of by each.
///
/// # Errors
/// `SECURITY_DISABLED` without an authorizer, `INVALID_REQUEST` when too many entries would go,
/// `POLICY_VIOLATION` when the answer would tell of far more than go, or when far more would have
/// to be looked at.
pub(super) fn delete(
    view: &View<'_>,
    request: &km::DeleteAclsRequest,
) -> Result<Decision, ApiError> {
    if view.settings.authorizer.is_none() {
        return Err(disabled());
    }
    bounded_looks(request.filters.len())?;
    let acls = view.image.acls();
    lookup::bounded(acls, request.filters.iter().map(Filter::from))?;
    let mut gone = BTreeSet::new();
    let (mut matches, mut told) = (0, Told::default());
    let mut results = Vec::new();
    for filter in &request.filters {
        let filter = Filter::from(filter);
        let result = DeleteAclsFilterResult::default().with_error_message(None);
        if let Some(unknown) = filter.unknown() {
            let message = StrBytes::from_static_str(unknown);
            results.push(
                result
                    .with_error_code(ErrorCode::InvalidRequest.code())
                    .with_error_message(Some(message)),
            );
            continue;
        }
        let mut matching = Vec::new();
        for (id, acl) in lookup::matching(acls, &filter) {
            if gone.len() >= RECORDS_PER_OPERATION_MAX {
                return Err(invalid(
                    "Cannot remove more than 10000 acls in a single delete operation.",
                ));
            }
            gone.insert(*id);
            matches += 1;
            if matches > MATCHES_PER_ANSWER_MAX {
                return Err(too_large());
            }
            told.add(acl.resource_name.len() + acl.principal.len() + acl.host.len())?;
            matching.push(told_of(acl));
        }
        results.push(result.with_matching_acls(matching));
    }
    let removal = |id| {
        let record = RemoveAccessControlEntryRecord {
            id,
            ..RemoveAccessControlEntryRecord::default()
        };
        Record::RemoveAccessControlEntry(record).at(0)
    };
    let reply = km::DeleteAclsResponse::default().with_filter_results(results);
    let records = gone.into_iter().map(removal).collect();
    Ok(Decision::atomic(records, Reply::DeleteAcls(reply)))
}

fn told_of(acl: &Acl) -> DeleteAclsMatchingAcl {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    DeleteAclsMatchingAcl::default()
        .with_error_message(None)
        .with_resource_type(acl.resource_type)
        .with_resource_name(text(&acl.resource_name))
        .with_pattern_type(acl.pattern_type)
        .with_principal(text(&acl.principal))
        .with_host(text(&acl.host))
        .with_operation(acl.operation)
        .with_permission_type(acl.permission_type)
}

/// Answers DescribeAcls v1 to v3: entries by resource, in order of types and names.
///
/// # Errors
/// `SECURITY_DISABLED` without an authorizer, `POLICY_VIOLATION` when the answer is too large.
pub fn describe(
    image: &Image,
    settings: &Settings,
    request: &km::DescribeAclsRequest,
) -> Result<km::DescribeAclsResponse, ApiError> {
    if settings.authorizer.is_none() {
        let message = "No Authorizer is configured on the broker";
        return Err(ApiError::new(ErrorCode::SecurityDisabled, message));
    }
    let filter = Filter::from(request);
    let mut resources: Vec<DescribeAclsResource> = Vec::new();
    let mut told = Told::default();
    for acl in image.acls().in_order().filter(|acl| filter.matches(acl)) {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        let entry = AclDescription::default()
            .with_principal(text(&acl.principal))
            .with_host(text(&acl.host))
            .with_operation(acl.operation)
            .with_permission_type(acl.permission_type);
        told.add(told::bytes([acl.principal.as_str(), &acl.host]))?;
        let same = |last: &&mut DescribeAclsResource| {
            last.resource_type == acl.resource_type
                && last.pattern_type == acl.pattern_type
                && last.resource_name.as_str() == acl.resource_name
        };
        if let Some(last) = resources.last_mut().filter(same) {
            last.acls.push(entry);
            continue;
        }
        told.add(told::bytes([acl.resource_name.as_str()]))?;
        resources.push(
            DescribeAclsResource::default()
                .with_resource_type(acl.resource_type)
                .with_resource_name(text(&acl.resource_name))
                .with_pattern_type(acl.pattern_type)
                .with_acls(vec![entry]),
        );
    }
    Ok(km::DescribeAclsResponse::default().with_resources(resources))
}
