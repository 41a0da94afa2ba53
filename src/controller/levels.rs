//! What the image has finalized, as far as rules ask: the level of `metadata.version` and whether
//! eligible leader replicas are kept.

use crate::image::Image;
use crate::types::features::{ELR_VERSION, MetadataVersion};

/// The finalized metadata.version. A controller is active only after its bootstrap records, so the
/// lowest level stands in for "none" in tests alone.
#[must_use]
pub fn metadata_version(image: &Image) -> MetadataVersion {
    let finalized = image.features().metadata_version();
    finalized.unwrap_or(MetadataVersion::MINIMUM)
}

/// True when eligible leader replicas are kept (KIP-966).
#[must_use]
pub fn elr_enabled(image: &Image) -> bool {
    image.features().level(ELR_VERSION) >= 1
}
