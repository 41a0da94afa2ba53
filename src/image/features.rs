//! Finalized feature levels (KIP-584, KIP-1022). `kraft.version` is not among them: it lives in
//! control records.

use std::collections::BTreeMap;

/// The name of the feature that gates record versions.
pub const METADATA_VERSION: &str = "metadata.version";

/// A level of `metadata.version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(i16);

impl MetadataVersion {
    /// The level, `None` when it is not one of 3.3-IV3 (7) to 4.5-IV0 (34): release 4.4 knows no
    /// other.
    #[must_use]
    pub const fn from_level(level: i16) -> Option<Self> {
        if level >= 7 && level <= 34 {
            Some(Self(level))
        } else {
            None
        }
    }

    /// The number.
    #[must_use]
    pub const fn level(self) -> i16 {
        self.0
    }
}

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
