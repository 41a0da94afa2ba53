//! Shapes of the requests that administrators send: topics, configs, features, the cluster.

use crate::server::shape::Kind::{
    Array, Bool, Bytes, Int8, Int16, Int32, Partition, Str, Struct, Uuid,
};
use crate::server::shape::{Shape, field};

pub(crate) static API_VERSIONS: Shape = Shape {
    flexible_from: 3,
    fields: &[
        field("ClientSoftwareName", Str).since(3),
        field("ClientSoftwareVersion", Str).since(3),
        field("ClusterId", Str).since(5).nullable(),
        field("NodeId", Int32).since(5),
    ],
};

pub(crate) static SASL_HANDSHAKE: Shape = Shape {
    flexible_from: Shape::NEVER_FLEXIBLE,
    fields: &[field("Mechanism", Str)],
};

pub(crate) static SASL_AUTHENTICATE: Shape = Shape {
    flexible_from: 2,
    fields: &[field("AuthBytes", Bytes)],
};

pub(crate) static CREATE_TOPICS: Shape = Shape {
    flexible_from: 5,
    fields: &[
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field("NumPartitions", Int32),
                field("ReplicationFactor", Int16),
                field(
                    "Assignments",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("BrokerIds", Array(&Int32)),
                    ])),
                ),
                field(
                    "Configs",
                    Array(&Struct(&[
                        field("Name", Str),
                        field("Value", Str).nullable(),
                    ])),
                ),
            ])),
        ),
        field("TimeoutMs", Int32),
        field("ValidateOnly", Bool).since(1),
    ],
};

pub(crate) static DELETE_TOPICS: Shape = Shape {
    flexible_from: 4,
    fields: &[
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str).nullable(),
                field("TopicId", Uuid),
            ])),
        )
        .since(6),
        field("TopicNames", Array(&Str)).until(5),
        field("TimeoutMs", Int32),
    ],
};

pub(crate) static CREATE_PARTITIONS: Shape = Shape {
    flexible_from: 2,
    fields: &[
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field("Count", Int32),
                field(
                    "Assignments",
                    Array(&Struct(&[field("BrokerIds", Array(&Int32))])),
                )
                .nullable(),
            ])),
        ),
        field("TimeoutMs", Int32),
        field("ValidateOnly", Bool),
    ],
};

pub(crate) static DESCRIBE_CONFIGS: Shape = Shape {
    flexible_from: 4,
    fields: &[
        field(
            "Resources",
            Array(&Struct(&[
                field("ResourceType", Int8),
                field("ResourceName", Str),
                field("ConfigurationKeys", Array(&Str)).nullable(),
            ])),
        ),
        field("IncludeSynonyms", Bool).since(1),
        field("IncludeDocumentation", Bool).since(3),
    ],
};

pub(crate) static ALTER_CONFIGS: Shape = Shape {
    flexible_from: 2,
    fields: &[
        field(
            "Resources",
            Array(&Struct(&[
                field("ResourceType", Int8),
                field("ResourceName", Str),
                field(
                    "Configs",
                    Array(&Struct(&[
                        field("Name", Str),
                        field("Value", Str).nullable(),
                    ])),
                ),
            ])),
        ),
        field("ValidateOnly", Bool),
    ],
};

pub(crate) static INCREMENTAL_ALTER_CONFIGS: Shape = Shape {
    flexible_from: 1,
    fields: &[
        field(
            "Resources",
            Array(&Struct(&[
                field("ResourceType", Int8),
                field("ResourceName", Str),
                field(
                    "Configs",
                    Array(&Struct(&[
                        field("Name", Str),
                        field("ConfigOperation", Int8),
                        field("Value", Str).nullable(),
                    ])),
                ),
            ])),
        ),
        field("ValidateOnly", Bool),
    ],
};

pub(crate) static ELECT_LEADERS: Shape = Shape {
    flexible_from: 2,
    fields: &[
        field("ElectionType", Int8).since(1),
        field(
            "TopicPartitions",
            Array(&Struct(&[
                field("Topic", Str),
                field("Partitions", Array(&Partition)),
            ])),
        )
        .nullable(),
        field("TimeoutMs", Int32),
    ],
};

pub(crate) static ALTER_PARTITION_REASSIGNMENTS: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("TimeoutMs", Int32),
        field("AllowReplicationFactorChange", Bool).since(1),
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("Replicas", Array(&Int32)).nullable(),
                    ])),
                ),
            ])),
        ),
    ],
};

pub(crate) static LIST_PARTITION_REASSIGNMENTS: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("TimeoutMs", Int32),
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field("PartitionIndexes", Array(&Partition)),
            ])),
        )
        .nullable(),
    ],
};

pub(crate) static UPDATE_FEATURES: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("TimeoutMs", Int32),
        field(
            "FeatureUpdates",
            Array(&Struct(&[
                field("Feature", Str),
                field("MaxVersionLevel", Int16),
                field("AllowDowngrade", Bool).until(0),
                field("UpgradeType", Int8).since(1),
            ])),
        ),
        field("ValidateOnly", Bool).since(1),
    ],
};

pub(crate) static DESCRIBE_CLUSTER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("IncludeClusterAuthorizedOperations", Bool),
        field("EndpointType", Int8).since(1),
        field("IncludeFencedBrokers", Bool).since(2),
    ],
};
