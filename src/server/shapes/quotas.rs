//! Shapes of the requests about client quotas and SCRAM credentials.

use crate::server::shape::Kind::{Array, Bool, Bytes, Int8, Int32, Int64, Str, Struct};
use crate::server::shape::{Shape, field};

pub(crate) static ALTER_CLIENT_QUOTAS: Shape = Shape {
    flexible_from: 1,
    fields: &[
        field(
            "Entries",
            Array(&Struct(&[
                field(
                    "Entity",
                    Array(&Struct(&[
                        field("EntityType", Str),
                        field("EntityName", Str).nullable(),
                    ])),
                ),
                field(
                    "Ops",
                    Array(&Struct(&[
                        field("Key", Str),
                        // A number with a point: eight bytes as well.
                        field("Value", Int64),
                        field("Remove", Bool),
                    ])),
                ),
            ])),
        ),
        field("ValidateOnly", Bool),
    ],
};

pub(crate) static DESCRIBE_USER_SCRAM_CREDENTIALS: Shape = Shape {
    flexible_from: 0,
    fields: &[field("Users", Array(&Struct(&[field("Name", Str)]))).nullable()],
};

pub(crate) static ALTER_USER_SCRAM_CREDENTIALS: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field(
            "Deletions",
            Array(&Struct(&[field("Name", Str), field("Mechanism", Int8)])),
        ),
        field(
            "Upsertions",
            Array(&Struct(&[
                field("Name", Str),
                field("Mechanism", Int8),
                field("Iterations", Int32),
                field("Salt", Bytes),
                field("SaltedPassword", Bytes),
            ])),
        ),
    ],
};
