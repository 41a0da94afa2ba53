//! Shapes of the requests that brokers and controllers send about themselves.

use crate::server::shape::Kind::{
    Array, Bool, Int8, Int16, Int32, Int64, Str, Struct, Uint16, Uuid,
};
use crate::server::shape::{Field, Shape, field};

const LISTENER: &[Field] = &[
    field("Name", Str),
    field("Host", Str),
    field("Port", Uint16),
    field("SecurityProtocol", Int16),
];

const FEATURE: &[Field] = &[
    field("Name", Str),
    field("MinSupportedVersion", Int16),
    field("MaxSupportedVersion", Int16),
];

pub(crate) static BROKER_REGISTRATION: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("BrokerId", Int32),
        field("ClusterId", Str),
        field("IncarnationId", Uuid),
        field("Listeners", Array(&Struct(LISTENER))),
        field("Features", Array(&Struct(FEATURE))),
        field("Rack", Str).nullable(),
        field("IsMigratingZkBroker", Bool).since(1),
        field("LogDirs", Array(&Uuid)).since(2),
        field("PreviousBrokerEpoch", Int64).since(3),
    ],
};

pub(crate) static CONTROLLER_REGISTRATION: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ControllerId", Int32),
        field("IncarnationId", Uuid),
        field("ZkMigrationReady", Bool),
        field("Listeners", Array(&Struct(LISTENER))),
        field("Features", Array(&Struct(FEATURE))),
    ],
};

pub(crate) static BROKER_HEARTBEAT: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("BrokerId", Int32),
        field("BrokerEpoch", Int64),
        field("CurrentMetadataOffset", Int64),
        field("WantFence", Bool),
        field("WantShutDown", Bool),
        field("OfflineLogDirs", Array(&Uuid)).since(1).tagged(0),
        field("CordonedLogDirs", Array(&Uuid))
            .since(2)
            .nullable()
            .tagged(1),
    ],
};

pub(crate) static ALTER_PARTITION: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("BrokerId", Int32),
        field("BrokerEpoch", Int64),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicId", Uuid).since(2),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("LeaderEpoch", Int32),
                        field("NewIsr", Array(&Int32)).until(2),
                        field(
                            "NewIsrWithEpochs",
                            Array(&Struct(&[
                                field("BrokerId", Int32),
                                field("BrokerEpoch", Int64),
                            ])),
                        )
                        .since(3),
                        field("LeaderRecoveryState", Int8).since(1),
                        field("PartitionEpoch", Int32),
                    ])),
                ),
            ])),
        ),
    ],
};

pub(crate) static ALLOCATE_PRODUCER_IDS: Shape = Shape {
    flexible_from: 0,
    fields: &[field("BrokerId", Int32), field("BrokerEpoch", Int64)],
};

pub(crate) static UNREGISTER_BROKER: Shape = Shape {
    flexible_from: 0,
    fields: &[field("BrokerId", Int32)],
};

pub(crate) static UNREGISTER_CONTROLLER: Shape = Shape {
    flexible_from: 0,
    fields: &[field("ControllerId", Int32)],
};

pub(crate) static ASSIGN_REPLICAS_TO_DIRS: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("BrokerId", Int32),
        field("BrokerEpoch", Int64),
        field(
            "Directories",
            Array(&Struct(&[
                field("Id", Uuid),
                field(
                    "Topics",
                    Array(&Struct(&[
                        field("TopicId", Uuid),
                        field(
                            "Partitions",
                            Array(&Struct(&[field("PartitionIndex", Int32)])),
                        ),
                    ])),
                ),
            ])),
        ),
    ],
};
