//! Words that every room shares: ids that do not mix, time as plain numbers, Kafka's error codes.

pub mod config_keys;
pub mod error_code;
pub mod features;
pub mod ids;
pub mod java_order;
pub mod loggers;
pub mod one_line;
pub mod pattern;
pub mod policy;
pub mod principal;
pub mod rng;
pub mod scram;
pub mod security_protocol;
pub mod ticket;
pub mod time;
pub mod topic_name;

pub use error_code::{ApiError, ErrorCode};
pub use features::MetadataVersion;
pub use ids::{BrokerEpoch, Epoch, NodeId, Offset, OffsetAndEpoch, PartitionId, ReplicaKey};
pub use one_line::{OneLine, quote};
pub use principal::Principal;
pub use rng::SplitMix;
pub use scram::ScramMechanism;
pub use security_protocol::SecurityProtocol;
pub use ticket::{CallId, Ticket, Token};
pub use time::{Instant, Now, Timestamp};
pub use uuid::Uuid;
