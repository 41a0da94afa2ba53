//! Shapes of the requests that replicas of the metadata partition send.

use crate::server::shape::Kind::{
    Array, Bool, Bytes, Int8, Int16, Int32, Int64, Str, Struct, Uint16, Uuid,
};
use crate::server::shape::{Field, Kind, Shape, field};

/// The listeners of a leader or a voter.
const ENDPOINTS: Kind = Array(&Struct(ENDPOINT));
const ENDPOINT: &[Field] = &[
    field("Name", Str),
    field("Host", Str),
    field("Port", Uint16),
];

pub(crate) static FETCH: Shape = Shape {
    flexible_from: 12,
    fields: &[
        field("ClusterId", Str).since(12).nullable().tagged(0),
        field("ReplicaId", Int32).until(14),
        field(
            "ReplicaState",
            Struct(&[field("ReplicaId", Int32), field("ReplicaEpoch", Int64)]),
        )
        .since(15)
        .tagged(1),
        field("MaxWaitMs", Int32),
        field("MinBytes", Int32),
        field("MaxBytes", Int32).since(3),
        field("IsolationLevel", Int8).since(4),
        field("SessionId", Int32).since(7),
        field("SessionEpoch", Int32).since(7),
        field(
            "Topics",
            Array(&Struct(&[
                field("Topic", Str).until(12),
                field("TopicId", Uuid).since(13),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("Partition", Int32),
                        field("CurrentLeaderEpoch", Int32).since(9),
                        field("FetchOffset", Int64),
                        field("LastFetchedEpoch", Int32).since(12),
                        field("LogStartOffset", Int64).since(5),
                        field("PartitionMaxBytes", Int32),
                        field("ReplicaDirectoryId", Uuid).since(17).tagged(0),
                        field("HighWatermark", Int64).since(18).tagged(1),
                    ])),
                ),
            ])),
        ),
        field(
            "ForgottenTopicsData",
            Array(&Struct(&[
                field("Topic", Str).until(12),
                field("TopicId", Uuid).since(13),
                field("Partitions", Array(&Int32)),
            ])),
        )
        .since(7),
        field("RackId", Str).since(11),
    ],
};

pub(crate) static FETCH_SNAPSHOT: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ClusterId", Str).nullable().tagged(0),
        field("ReplicaId", Int32),
        field("MaxBytes", Int32),
        field(
            "Topics",
            Array(&Struct(&[
                field("Name", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("Partition", Int32),
                        field("CurrentLeaderEpoch", Int32),
                        field(
                            "SnapshotId",
                            Struct(&[field("EndOffset", Int64), field("Epoch", Int32)]),
                        ),
                        field("Position", Int64),
                        field("ReplicaDirectoryId", Uuid).since(1).tagged(0),
                    ])),
                ),
            ])),
        ),
    ],
};

pub(crate) static VOTE: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ClusterId", Str).nullable(),
        field("VoterId", Int32).since(1),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicName", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("ReplicaEpoch", Int32),
                        field("ReplicaId", Int32),
                        field("ReplicaDirectoryId", Uuid).since(1),
                        field("VoterDirectoryId", Uuid).since(1),
                        field("LastOffsetEpoch", Int32),
                        field("LastOffset", Int64),
                        field("PreVote", Bool).since(2),
                    ])),
                ),
            ])),
        ),
    ],
};

pub(crate) static BEGIN_QUORUM_EPOCH: Shape = Shape {
    flexible_from: 1,
    fields: &[
        field("ClusterId", Str).nullable(),
        field("VoterId", Int32).since(1),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicName", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("VoterDirectoryId", Uuid).since(1),
                        field("LeaderId", Int32),
                        field("LeaderEpoch", Int32),
                    ])),
                ),
            ])),
        ),
        field("LeaderEndpoints", ENDPOINTS).since(1),
    ],
};

pub(crate) static END_QUORUM_EPOCH: Shape = Shape {
    flexible_from: 1,
    fields: &[
        field("ClusterId", Str).nullable(),
        field(
            "Topics",
            Array(&Struct(&[
                field("TopicName", Str),
                field(
                    "Partitions",
                    Array(&Struct(&[
                        field("PartitionIndex", Int32),
                        field("LeaderId", Int32),
                        field("LeaderEpoch", Int32),
                        field("PreferredSuccessors", Array(&Int32)).until(0),
                        field(
                            "PreferredCandidates",
                            Array(&Struct(&[
                                field("CandidateId", Int32),
                                field("CandidateDirectoryId", Uuid),
                            ])),
                        )
                        .since(1),
                    ])),
                ),
            ])),
        ),
        field("LeaderEndpoints", ENDPOINTS).since(1),
    ],
};

pub(crate) static DESCRIBE_QUORUM: Shape = Shape {
    flexible_from: 0,
    fields: &[field(
        "Topics",
        Array(&Struct(&[
            field("TopicName", Str),
            field(
                "Partitions",
                Array(&Struct(&[field("PartitionIndex", Int32)])),
            ),
        ])),
    )],
};

pub(crate) static ADD_RAFT_VOTER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ClusterId", Str).nullable(),
        field("TimeoutMs", Int32),
        field("VoterId", Int32),
        field("VoterDirectoryId", Uuid),
        field("Listeners", ENDPOINTS),
        field("AckWhenCommitted", Bool).since(1),
    ],
};

pub(crate) static REMOVE_RAFT_VOTER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ClusterId", Str).nullable(),
        field("VoterId", Int32),
        field("VoterDirectoryId", Uuid),
    ],
};

pub(crate) static UPDATE_RAFT_VOTER: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("ClusterId", Str).nullable(),
        field("CurrentLeaderEpoch", Int32),
        field("VoterId", Int32),
        field("VoterDirectoryId", Uuid),
        field("Listeners", ENDPOINTS),
        field(
            "KRaftVersionFeature",
            Struct(&[
                field("MinSupportedVersion", Int16),
                field("MaxSupportedVersion", Int16),
            ]),
        ),
    ],
};

pub(crate) static ENVELOPE: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("RequestData", Bytes),
        field("RequestPrincipal", Bytes).nullable(),
        field("ClientHostAddress", Bytes),
    ],
};
