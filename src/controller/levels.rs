//! What a level of `metadata.version` allows, as far as the rules of topics and configurations ask.

use crate::image::Image;

/// The name of the feature that gates record versions.
pub const METADATA_VERSION: &str = "metadata.version";
/// The feature of eligible leader replicas (KIP-966).
pub const ELR_VERSION: &str = "eligible.leader.replicas.version";
/// The feature that lives in control records (KIP-853).
pub const KRAFT_VERSION: &str = "kraft.version";

/// 3.7-IV0: controllers register (KIP-919).
pub const CONTROLLER_REGISTRATION: i16 = 15;
/// 3.7-IV2: replicas have log directories (KIP-858).
pub const DIRECTORY_ASSIGNMENT: i16 = 17;
/// 4.0-IV1: eligible leader replicas have a place in records (KIP-966).
pub const ELR_RECORDS: i16 = 23;
/// 4.3-IV0: log directories can be cordoned (KIP-1066).
pub const CORDONED_LOG_DIRS: i16 = 30;

/// The finalized level of `metadata.version`, 0 before one was replayed.
#[must_use]
pub fn metadata_version(image: &Image) -> i16 {
    image.features().level(METADATA_VERSION)
}

/// The version of a `PartitionRecord`.
#[must_use]
pub const fn partition_record_version(level: i16) -> i16 {
    if level >= ELR_RECORDS {
        2
    } else if level >= DIRECTORY_ASSIGNMENT {
        1
    } else {
        0
    }
}

/// True when eligible leader replicas are kept (KIP-966).
#[must_use]
pub fn elr_enabled(image: &Image) -> bool {
    image.features().level(ELR_VERSION) >= 1
}
