//! Shapes of the requests about delegation tokens.

use crate::server::shape::Kind::{Array, Bytes, Int64, Str, Struct};
use crate::server::shape::{Field, Shape, field};

static PRINCIPAL: [Field; 2] = [field("PrincipalType", Str), field("PrincipalName", Str)];

pub(crate) static CREATE_DELEGATION_TOKEN: Shape = Shape {
    flexible_from: 2,
    fields: &[
        field("OwnerPrincipalType", Str).since(3).nullable(),
        field("OwnerPrincipalName", Str).since(3).nullable(),
        field("Renewers", Array(&Struct(&PRINCIPAL))),
        field("MaxLifetimeMs", Int64),
    ],
};

/// RenewDelegationToken and ExpireDelegationToken.
pub(crate) static CHANGE_DELEGATION_TOKEN: Shape = Shape {
    flexible_from: 2,
    fields: &[field("Hmac", Bytes), field("PeriodMs", Int64)],
};

pub(crate) static DESCRIBE_DELEGATION_TOKEN: Shape = Shape {
    flexible_from: 2,
    fields: &[field("Owners", Array(&Struct(&PRINCIPAL))).nullable()],
};
