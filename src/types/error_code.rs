//! Kafka's error codes, as far as a controller meets them, and an error with its text.

use std::fmt;

macro_rules! codes {
    ($($variant:ident = $code:literal, $name:literal;)*) => {
        /// An error code of the Kafka protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $name] $variant,)*
        }

        impl ErrorCode {
            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> i16 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The code with this number; [`Self::UnknownServerError`] for one that is not here.
            #[must_use]
            pub const fn of(number: i16) -> Self {
                match number {
                    $($code => Self::$variant,)*
                    _ => Self::UnknownServerError,
                }
            }

            /// The name in Kafka's documentation, such as `NOT_CONTROLLER`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR";
    None = 0, "NONE";
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE";
    CorruptMessage = 2, "CORRUPT_MESSAGE";
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION";
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE";
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER";
    RequestTimedOut = 7, "REQUEST_TIMED_OUT";
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE";
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE";
    NetworkException = 13, "NETWORK_EXCEPTION";
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION";
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE";
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED";
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED";
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED";
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM";
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE";
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION";
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS";
    InvalidPartitions = 37, "INVALID_PARTITIONS";
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR";
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT";
    InvalidConfig = 40, "INVALID_CONFIG";
    NotController = 41, "NOT_CONTROLLER";
    InvalidRequest = 42, "INVALID_REQUEST";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT";
    PolicyViolation = 44, "POLICY_VIOLATION";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED";
    SecurityDisabled = 54, "SECURITY_DISABLED";
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED";
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR";
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND";
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED";
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS";
    DelegationTokenAuthDisabled = 61, "DELEGATION_TOKEN_AUTH_DISABLED";
    DelegationTokenNotFound = 62, "DELEGATION_TOKEN_NOT_FOUND";
    DelegationTokenOwnerMismatch = 63, "DELEGATION_TOKEN_OWNER_MISMATCH";
    DelegationTokenRequestNotAllowed = 64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED";
    DelegationTokenAuthorizationFailed = 65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED";
    DelegationTokenExpired = 66, "DELEGATION_TOKEN_EXPIRED";
    InvalidPrincipalType = 67, "INVALID_PRINCIPAL_TYPE";
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED";
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH";
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH";
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH";
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE";
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE";
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED";
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS";
    InvalidRecord = 87, "INVALID_RECORD";
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED";
    ResourceNotFound = 91, "RESOURCE_NOT_FOUND";
    DuplicateResource = 92, "DUPLICATE_RESOURCE";
    UnacceptableCredential = 93, "UNACCEPTABLE_CREDENTIAL";
    InconsistentVoterSet = 94, "INCONSISTENT_VOTER_SET";
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION";
    FeatureUpdateFailed = 96, "FEATURE_UPDATE_FAILED";
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE";
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND";
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE";
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID";
    DuplicateBrokerRegistration = 101, "DUPLICATE_BROKER_REGISTRATION";
    BrokerIdNotRegistered = 102, "BROKER_ID_NOT_REGISTERED";
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID";
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID";
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR";
    IneligibleReplica = 107, "INELIGIBLE_REPLICA";
    NewLeaderElected = 108, "NEW_LEADER_ELECTED";
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE";
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE";
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID";
    InvalidRegistration = 119, "INVALID_REGISTRATION";
    InvalidVoterKey = 125, "INVALID_VOTER_KEY";
    DuplicateVoter = 126, "DUPLICATE_VOTER";
    VoterNotFound = 127, "VOTER_NOT_FOUND";
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED";
    ControllerIdNotRegistered = 136, "CONTROLLER_ID_NOT_REGISTERED";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a request or a part of it was refused: the code and the sentence that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// What the peer acts on.
    pub code: ErrorCode,
    /// What a person reads; `None` sends a null message.
    pub message: Option<String>,
}

impl ApiError {
    /// An error with a sentence.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
        }
    }
}
