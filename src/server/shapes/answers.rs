//! Shapes of the answers that this node reads: those of other controllers to what it asks.

use crate::server::shape::Kind::{
    Array, Bool, Bytes, Int16, Int32, Int64, Str, Struct, Uint16, Uuid,
};
use crate::server::shape::{Field, Shape, field};

/// Where a node listens, in all raft answers but Fetch's.
static NODE: [Field; 3] = [
    field("NodeId", Int32),
    field("Host", Str),
    field("Port", Uint16),
];

pub(crate) static API_VERSIONS_ANSWER: Shape = Shape {
    flexible_from: 3,
    fields: &[
        field("ErrorCode", Int16),
        field(
            "ApiKeys",
            Array(&Struct(&[
                field("ApiKey", Int16),
                field("MinVersion", Int16),
                field("MaxVersion", Int16),
            ])),
        ),
        field("ThrottleTimeMs", Int32).since(1),
        field(
            "SupportedFeatures",
            Array(&Struct(&[
                field("Name", Str),
                field("MinVersion", Int16),
                field("MaxVersion", Int16),
            ])),
        )
        .since(3)
        .tagged(0),
        field("FinalizedFeaturesEpoch", Int64).since(3).tagged(1),
        field(
            "FinalizedFeatures",
            Array(&Struct(&[
                field("Name", Str),
                field("MaxVersionLevel", Int16),
                field("MinVersionLevel", Int16),
            ])),
        )
        .since(3)
        .tagged(2),
        field("ZkMigrationReady", Bool).since(3).tagged(3),
    ],
};

pub(crate) static FETCH_ANSWER: Shape = Shape {
    flexible_from: 12,
    fields: &[
        field("ThrottleTimeMs", Int32),
        field("ErrorCode", Int16).since(7),
        field("SessionId", Int32).since(7),
        field(
            "Responses",
            Array(&Struct(&[
                field("Topic", Str).until(12),
                field("TopicId", Uuid).since(13),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("ErrorCode", Int16),
                        field("HighWatermark", Int64),
                        field("LastStableOffset", Int64),
                        field("LogStartOffset", Int64).since(5),
                        field(
                            "AbortedTransactions",
                            Array(&Struct(&[
                                field("ProducerId", Int64),
                                field("FirstOffset", Int64),
                            ])),
                        )
                        .nullable(),
                        field("PreferredReadReplica", Int32).since(11),
                        field("Records", Bytes).nullable(),
                        field(
                            "DivergingEpoch",
                            Struct(&[field("Epoch", Int32), field("EndOffset", Int64)]),
                        )
                        .since(12)
                        .tagged(0),
                        field(
                            "CurrentLeader",
                            Struct(&[field("LeaderId", Int32), field("LeaderEpoch", Int32)]),
                        )
                        .since(12)
                        .tagged(1),
                        field(
                            "SnapshotId",
                            Struct(&[field("EndOffset", Int64), field("Epoch", Int32)]),
                        )
                        .since(12)
                        .tagged(2),
                    ])),
                ),
            ])),
        ),
        field(
            "NodeEndpoints",
            Array(&Struct(&[
                field("NodeId", Int32),
                field("Host", Str),
                field("Port", Int32),
                field("Rack", Str).nullable(),
            ])),
        )
        .since(16)
        .tagged(0),
    ],
};

pub(crate) static FETCH_SNAPSHOT_ANSWER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ThrottleTimeMs", Int32),
        field("ErrorCode", Int16),
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("Index", Int32),
                        field("ErrorCode", Int16),
                        field(
                            "SnapshotId",
                            Struct(&[field("EndOffset", Int64), field("Epoch", Int32)]),
                        ),
                        field("Size", Int64),
                        field("Position", Int64),
                        field("UnalignedRecords", Bytes),
                        field(
                            "CurrentLeader",
                            Struct(&[field("LeaderId", Int32), field("LeaderEpoch", Int32)]),
                        )
                        .tagged(0),
                    ])),
                ),
            ])),
        ),
        field("NodeEndpoints", Array(&Struct(&NODE)))
            .since(1)
            .tagged(0),
    ],
};

pub(crate) static VOTE_ANSWER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ErrorCode", Int16),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicName", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("ErrorCode", Int16),
                        field("LeaderId", Int32),
                        field("LeaderEpoch", Int32),
                        field("VoteGranted", Bool),
                    ])),
                ),
            ])),
        ),
        field("NodeEndpoints", Array(&Struct(&NODE)))
            .since(1)
            .tagged(0),
    ],
};

/// BeginQuorumEpoch and EndQuorumEpoch.
pub(crate) static QUORUM_EPOCH_ANSWER: Shape = Shape {
    flexible_from: 1,
    fields: &[
        field("ErrorCode", Int16),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicName", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("ErrorCode", Int16),
                        field("LeaderId", Int32),
                        field("LeaderEpoch", Int32),
                    ])),
                ),
            ])),
        ),
        field("NodeEndpoints", Array(&Struct(&NODE)))
            .since(1)
            .tagged(0),
    ],
};

/// AddRaftVoter and RemoveRaftVoter.
pub(crate) static CHANGE_VOTER_ANSWER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ThrottleTimeMs", Int32),
        field("ErrorCode", Int16),
        field("ErrorMessage", Str).nullable(),
    ],
};

pub(crate) static REGISTRATION_ANSWER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ThrottleTimeMs", Int32),
        field("ErrorCode", Int16),
        field("ErrorMessage", Str).nullable(),
    ],
};

pub(crate) static UPDATE_VOTER_ANSWER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ThrottleTimeMs", Int32),
        field("ErrorCode", Int16),
        field(
            "CurrentLeader",
            Struct(&[
                field("LeaderId", Int32),
                field("LeaderEpoch", Int32),
                field("Host", Str),
                field("Port", Int32),
            ]),
        )
        .tagged(0),
    ],
};
