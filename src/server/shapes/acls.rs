//! Shapes of the requests about access control entries.

use crate::server::shape::Kind::{Array, Int8, Str, Struct};
use crate::server::shape::{Field, Shape, field};

/// A filter: all of DescribeAcls, each item of DeleteAcls.
const FILTER: &[Field] = &[
    field("ResourceTypeFilter", Int8),
    field("ResourceNameFilter", Str).nullable(),
    field("PatternTypeFilter", Int8).since(1),
    field("PrincipalFilter", Str).nullable(),
    field("HostFilter", Str).nullable(),
    field("Operation", Int8),
    field("PermissionType", Int8),
];

pub(crate) static DESCRIBE_ACLS: Shape = Shape {
    flexible_from: 2,
    fields: FILTER,
};

pub(crate) static CREATE_ACLS: Shape = Shape {
    flexible_from: 2,
    fields: &[field(
        "Creations",
        Array(&Struct(&[
            field("ResourceType", Int8),
            field("ResourceName", Str),
            field("ResourcePatternType", Int8).since(1),
            field("Principal", Str),
            field("Host", Str),
            field("Operation", Int8),
            field("PermissionType", Int8),
        ])),
    )],
};

pub(crate) static DELETE_ACLS: Shape = Shape {
    flexible_from: 2,
    fields: &[field("Filters", Array(&Struct(FILTER)))],
};
