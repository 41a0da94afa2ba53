//! What is no request about access control entries: the number 0 stands for what a client does not
//! know, and Java's reader of these requests takes none of it. The connection ends.

use anyhow::ensure;
use kafka_protocol::messages::{CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest};

fn known(numbers: [i8; 4]) -> anyhow::Result<()> {
    ensure!(
        !numbers.contains(&0),
        "an unknown resource, pattern, operation or permission"
    );
    Ok(())
}

/// # Errors
/// The request has an unknown element.
pub(super) fn check_created(request: &CreateAclsRequest) -> anyhow::Result<()> {
    request.creations.iter().try_for_each(|acl| {
        known([
            acl.resource_type,
            acl.resource_pattern_type,
            acl.operation,
            acl.permission_type,
        ])
    })
}

/// # Errors
/// The request has an unknown element.
pub(super) fn check_deleted(request: &DeleteAclsRequest) -> anyhow::Result<()> {
    request.filters.iter().try_for_each(|filter| {
        known([
            filter.resource_type_filter,
            filter.pattern_type_filter,
            filter.operation,
            filter.permission_type,
        ])
    })
}

/// # Errors
/// The request has an unknown element.
pub(super) fn check_described(request: &DescribeAclsRequest) -> anyhow::Result<()> {
    known([
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ])
}
