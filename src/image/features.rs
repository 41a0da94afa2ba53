//! Finalized feature levels (KIP-584, KIP-1022). `kraft.version` is not among them: it lives in
//! control records.

use std::collections::BTreeMap;

use crate::types::features::{METADATA_VERSION, MetadataVersion};

/// The finalized levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub(super) metadata_version: Option<MetadataVersion>,
    /// Without `metadata.version`; levels above 0.
    pub(super) others: BTreeMap<String, i16>,
}

impl Features {
    /// The level of `metadata.version`; `None` until a record said it.
    #[must_use]
    pub fn metadata_version(&self) -> Option<MetadataVersion> {
        self.metadata_version
    }

    /// The level of any feature, 0 when it is not finalized.
    #[must_use]
    pub fn level(&self, name: &str) -> i16 {
        if name == METADATA_VERSION {
            return self.metadata_version.map_or(0, MetadataVersion::level);
        }
        self.others.get(name).copied().unwrap_or(0)
    }

    /// Every finalized feature, `metadata.version` first and the others in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i16)> {
        let first = self.metadata_version.map(MetadataVersion::level);
        first
            .map(|level| (METADATA_VERSION, level))
            .into_iter()
            .chain(self.others.iter().map(|(name, level)| (&**name, *level)))
    }
}
