//! The features other than `metadata.version`: levels, defaults, dependencies.

use super::{
    ELR_VERSION, GROUP_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataVersion, SHARE_VERSION,
    STREAMS_VERSION, TRANSACTION_VERSION, V3_9_IV0, V4_0_IV0, V4_0_IV1, V4_0_IV2, V4_1_IV0,
    V4_2_IV0, V4_2_IV1, V4_4_IV0,
};

/// One level of a feature other than `metadata.version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureLevel {
    /// The number.
    pub level: i16,
    /// From this `metadata.version` on, a new cluster gets the level unless told otherwise.
    pub bootstrap: MetadataVersion,
    /// Features that must be finalized at this level or above.
    pub dependencies: &'static [(&'static str, i16)],
}

/// A feature other than `metadata.version`. All of its levels are ready for production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The name.
    pub name: &'static str,
    /// The levels, from 0 up without a gap.
    pub levels: &'static [FeatureLevel],
}

const fn level(level: i16, bootstrap: MetadataVersion) -> FeatureLevel {
    FeatureLevel {
        level,
        bootstrap,
        dependencies: &[],
    }
}

const NONE: FeatureLevel = level(0, MetadataVersion::MINIMUM);

/// The features other than `metadata.version`, in the order in which Java's tools list them.
pub const FEATURES: [Feature; 6] = [
    Feature {
        name: KRAFT_VERSION,
        levels: &[NONE, level(1, V3_9_IV0)],
    },
    Feature {
        name: TRANSACTION_VERSION,
        levels: &[NONE, level(1, V4_0_IV2), level(2, V4_0_IV2)],
    },
    Feature {
        name: GROUP_VERSION,
        levels: &[NONE, level(1, V4_0_IV0)],
    },
    Feature {
        name: ELR_VERSION,
        levels: &[
            NONE,
            FeatureLevel {
                level: 1,
                bootstrap: V4_1_IV0,
                dependencies: &[(METADATA_VERSION, V4_0_IV1.0)],
            },
        ],
    },
    Feature {
        name: SHARE_VERSION,
        levels: &[NONE, level(1, V4_2_IV0), level(2, V4_4_IV0)],
    },
    Feature {
        name: STREAMS_VERSION,
        levels: &[NONE, level(1, V4_2_IV1)],
    },
];

impl Feature {
    /// The feature with this name; `None` for `metadata.version` and unknown names.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        const TABLE: &[Feature] = &FEATURES;
        TABLE.iter().find(|feature| feature.name == name)
    }

    /// The level's row; `None` when there is no such level.
    #[must_use]
    pub fn at(&self, level: i16) -> Option<&'static FeatureLevel> {
        self.levels.iter().find(|row| row.level == level)
    }

    /// The lowest level, 0 (the feature is off).
    #[must_use]
    pub fn min(&self) -> i16 {
        self.levels.first().map_or(0, |row| row.level)
    }

    /// The highest level.
    #[must_use]
    pub fn max(&self) -> i16 {
        self.levels.last().map_or(0, |row| row.level)
    }

    /// The level that a new cluster gets at this `metadata.version`.
    #[must_use]
    pub fn default_level(&self, metadata_version: MetadataVersion) -> i16 {
        self.levels
            .iter()
            .rev()
            .find(|row| row.bootstrap <= metadata_version)
            .map_or(0, |row| row.level)
    }

    /// Checks that `level` can stand beside the other finalized levels, which `finalized` knows.
    ///
    /// # Errors
    /// The sentence that Java's tools print.
    pub fn validate(
        &self,
        level: i16,
        finalized: impl Fn(&str) -> Option<i16>,
    ) -> Result<(), String> {
        let name = self.name;
        let row = self
            .at(level)
            .ok_or_else(|| format!("No feature:{name} with feature level {level}"))?;
        let lowest = MetadataVersion::MINIMUM;
        if level >= 1 && finalized(METADATA_VERSION).is_none_or(|found| found < lowest.0) {
            return Err(format!(
                "{name} could not be set to {level} because it depends on metadata.version={} \
                 ({lowest})",
                lowest.0
            ));
        }
        for (needed, at) in row.dependencies {
            if finalized(needed).is_none_or(|found| found < *at) {
                return Err(format!(
                    "{name} could not be set to {level} because it depends on {needed} level {at}"
                ));
            }
        }
        Ok(())
    }
}

/// The levels of each feature that a node of this release supports, inclusive, in order of the
/// names. With `unstable`, levels that are not ready for production count too.
#[must_use]
pub fn supported_features(unstable: bool) -> Vec<(&'static str, i16, i16)> {
    let last = if unstable {
        MetadataVersion::LATEST_TESTING
    } else {
        MetadataVersion::LATEST_PRODUCTION
    };
    let mut ranges: Vec<(&'static str, i16, i16)> = FEATURES
        .iter()
        .map(|feature| (feature.name, feature.min(), feature.max()))
        .collect();
    ranges.push((METADATA_VERSION, MetadataVersion::MINIMUM.0, last.0));
    ranges.sort_unstable();
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults that the storage tools of the releases print for their latest level.
    #[test]
    fn defaults_are_those_of_the_storage_tools() {
        let defaults =
            |level| FEATURES.map(|feature| feature.default_level(MetadataVersion(level)));
        // kraft, transaction, group, elr, share, streams
        assert_eq!(defaults(20), [0, 0, 0, 0, 0, 0]);
        assert_eq!(defaults(21), [1, 0, 0, 0, 0, 0]);
        assert_eq!(defaults(25), [1, 2, 1, 0, 0, 0]);
        assert_eq!(defaults(27), [1, 2, 1, 1, 0, 0]);
        assert_eq!(defaults(29), [1, 2, 1, 1, 1, 1]);
        assert_eq!(defaults(30), [1, 2, 1, 1, 1, 1]);
        assert_eq!(defaults(33), [1, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn eligible_leader_replicas_need_a_level_of_metadata_version() {
        let elr = Feature::by_name(ELR_VERSION).unwrap();
        let validate = |level, metadata| elr.validate(level, |_| metadata);
        assert_eq!(validate(0, None), Ok(()));
        assert_eq!(validate(1, Some(23)), Ok(()));
        assert_eq!(
            validate(1, Some(22)).unwrap_err(),
            "eligible.leader.replicas.version could not be set to 1 because it depends on \
             metadata.version level 23"
        );
        assert_eq!(
            validate(1, None).unwrap_err(),
            "eligible.leader.replicas.version could not be set to 1 because it depends on \
             metadata.version=7 (3.3-IV3)"
        );
        assert_eq!(
            validate(2, Some(33)).unwrap_err(),
            "No feature:eligible.leader.replicas.version with feature level 2"
        );
    }

    #[test]
    fn a_node_supports_what_a_java_node_of_4_4_supports() {
        assert_eq!(
            supported_features(false),
            [
                (ELR_VERSION, 0, 1),
                (GROUP_VERSION, 0, 1),
                (KRAFT_VERSION, 0, 1),
                (METADATA_VERSION, 7, 33),
                (SHARE_VERSION, 0, 2),
                (STREAMS_VERSION, 0, 1),
                (TRANSACTION_VERSION, 0, 2),
            ]
        );
        assert!(supported_features(true).contains(&(METADATA_VERSION, 7, 34)));
    }
}
