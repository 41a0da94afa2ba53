//! Feature levels (KIP-584, KIP-1022): every level of `metadata.version` with what it changes, and
//! the other features with their levels, defaults and dependencies, as of release 4.4.
//!
//! Code asks a [`MetadataVersion`] for what it allows; it never compares numbers itself.

mod others;

use std::fmt;

pub use self::others::{FEATURES, Feature, FeatureLevel, supported_features};

/// The feature that decides which records, and which versions of them, may be written.
pub const METADATA_VERSION: &str = "metadata.version";
/// The raft protocol's own feature. It lives in control records, not in `FeatureLevelRecord`s.
pub const KRAFT_VERSION: &str = "kraft.version";
/// Transaction protocol (KIP-890).
pub const TRANSACTION_VERSION: &str = "transaction.version";
/// Consumer group protocol (KIP-848).
pub const GROUP_VERSION: &str = "group.version";
/// Eligible leader replicas (KIP-966).
pub const ELR_VERSION: &str = "eligible.leader.replicas.version";
/// Share groups (KIP-932).
pub const SHARE_VERSION: &str = "share.version";
/// Streams groups (KIP-1071).
pub const STREAMS_VERSION: &str = "streams.version";

/// A level of `metadata.version`. The number alone may be anything; [`Self::from_level`] admits
/// only levels that this release can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(pub i16);

/// One row of the table of levels.
struct Level {
    release: &'static str,
    name: &'static str,
    /// The level brought new records or new versions of them.
    metadata_changed: bool,
}

const fn row(release: &'static str, name: &'static str, metadata_changed: bool) -> Level {
    Level {
        release,
        name,
        metadata_changed,
    }
}

/// Row n is level n + 1.
const LEVELS: [Level; 34] = [
    row("3.0", "3.0-IV1", true),
    row("3.1", "3.1-IV0", false),
    row("3.2", "3.2-IV0", true),
    row("3.3", "3.3-IV0", false),
    row("3.3", "3.3-IV1", true),
    row("3.3", "3.3-IV2", true),
    row("3.3", "3.3-IV3", true),
    row("3.4", "3.4-IV0", true),
    row("3.5", "3.5-IV0", false),
    row("3.5", "3.5-IV1", false),
    row("3.5", "3.5-IV2", true),
    row("3.6", "3.6-IV0", false),
    row("3.6", "3.6-IV1", true),
    row("3.6", "3.6-IV2", true),
    row("3.7", "3.7-IV0", true),
    row("3.7", "3.7-IV1", false),
    row("3.7", "3.7-IV2", true),
    row("3.7", "3.7-IV3", false),
    row("3.7", "3.7-IV4", false),
    row("3.8", "3.8-IV0", false),
    row("3.9", "3.9-IV0", false),
    row("4.0", "4.0-IV0", false),
    row("4.0", "4.0-IV1", true),
    row("4.0", "4.0-IV2", false),
    row("4.0", "4.0-IV3", false),
    row("4.1", "4.1-IV0", false),
    row("4.1", "4.1-IV1", false),
    row("4.2", "4.2-IV0", false),
    row("4.2", "4.2-IV1", false),
    row("4.3", "4.3-IV0", true),
    row("4.4", "4.4-IV0", false),
    row("4.4", "4.4-IV1", true),
    row("4.4", "4.4-IV2", true),
    row("4.5", "4.5-IV0", false),
];

const V3_3_IV1: MetadataVersion = MetadataVersion(5);
const V3_4_IV0: MetadataVersion = MetadataVersion(8);
const V3_5_IV2: MetadataVersion = MetadataVersion(11);
const V3_6_IV0: MetadataVersion = MetadataVersion(12);
const V3_6_IV1: MetadataVersion = MetadataVersion(13);
const V3_6_IV2: MetadataVersion = MetadataVersion(14);
const V3_7_IV0: MetadataVersion = MetadataVersion(15);
const V3_7_IV2: MetadataVersion = MetadataVersion(17);
const V3_9_IV0: MetadataVersion = MetadataVersion(21);
const V4_0_IV0: MetadataVersion = MetadataVersion(22);
const V4_0_IV1: MetadataVersion = MetadataVersion(23);
const V4_0_IV2: MetadataVersion = MetadataVersion(24);
const V4_1_IV0: MetadataVersion = MetadataVersion(26);
const V4_2_IV0: MetadataVersion = MetadataVersion(28);
const V4_2_IV1: MetadataVersion = MetadataVersion(29);
const V4_3_IV0: MetadataVersion = MetadataVersion(30);
const V4_4_IV0: MetadataVersion = MetadataVersion(31);
const V4_4_IV1: MetadataVersion = MetadataVersion(32);
const V4_4_IV2: MetadataVersion = MetadataVersion(33);

impl MetadataVersion {
    /// The lowest level that release 4.4 can run, 3.3-IV3.
    pub const MINIMUM: Self = Self(7);
    /// The highest level that is ready for production, and the default of a new cluster.
    pub const LATEST_PRODUCTION: Self = V4_4_IV2;
    /// The highest level there is; beyond [`Self::LATEST_PRODUCTION`] only with
    /// `unstable.feature.versions.enable`.
    pub const LATEST_TESTING: Self = Self(LEVELS.len() as i16);

    /// The level, `None` when release 4.4 cannot run it.
    #[must_use]
    pub const fn from_level(level: i16) -> Option<Self> {
        if level >= Self::MINIMUM.0 && level <= Self::LATEST_TESTING.0 {
            Some(Self(level))
        } else {
            None
        }
    }

    /// Every level that release 4.4 can run, lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (Self::MINIMUM.0..=Self::LATEST_TESTING.0).map(Self)
    }

    /// The level of a release (`4.4`, `4.4.0`: its last production level) or of one level's name
    /// (`4.4-IV2`). What follows the second dot does not count.
    ///
    /// # Errors
    /// The sentence that Java's tools print, when there is no such level, or it is not ready for
    /// production and `unstable` is false.
    pub fn from_version_string(text: &str, unstable: bool) -> Result<Self, String> {
        let mut parts: Vec<&str> = text.split('.').collect();
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        let wanted = match parts[..] {
            [first, second, _, ..] => format!("{first}.{second}"),
            _ => text.to_owned(),
        };
        Self::all()
            .filter(|level| unstable || level.is_production())
            .rfind(|level| {
                level.name() == wanted || (level.is_production() && level.release() == wanted)
            })
            .ok_or_else(|| {
                let last = if unstable {
                    Self::LATEST_TESTING
                } else {
                    Self::LATEST_PRODUCTION
                };
                format!(
                    "Unknown metadata.version '{text}'. Supported metadata.version are: {}",
                    Self::names_between(Self::MINIMUM, last)
                )
            })
    }

    /// The names from `first` to `last`, both included, joined with a comma and a blank.
    #[must_use]
    pub fn names_between(first: Self, last: Self) -> String {
        let names: Vec<&str> = (first.0..=last.0).map(|level| Self(level).name()).collect();
        names.join(", ")
    }

    /// The number.
    #[must_use]
    pub const fn level(self) -> i16 {
        self.0
    }

    const fn row(self) -> &'static Level {
        let last = LEVELS.len() as i16;
        let level = if self.0 < 1 {
            1
        } else if self.0 > last {
            last
        } else {
            self.0
        };
        &LEVELS[level as usize - 1]
    }

    /// The name, such as `4.4-IV2`. A number beyond the table has the name of the nearest level.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The release that brought the level, such as `4.4`.
    #[must_use]
    pub const fn release(self) -> &'static str {
        self.row().release
    }

    /// True when the level may be used without `unstable.feature.versions.enable`.
    #[must_use]
    pub const fn is_production(self) -> bool {
        self.0 <= Self::LATEST_PRODUCTION.0
    }

    /// True when the level itself brought new records or versions of records.
    #[must_use]
    pub const fn did_metadata_change(self) -> bool {
        self.row().metadata_changed
    }

    /// True when going between the two levels, in either direction, crosses a change of records:
    /// such a downgrade loses metadata.
    #[must_use]
    pub fn metadata_changed_between(self, other: Self) -> bool {
        let (low, high) = (self.min(other), self.max(other));
        (low.0 + 1..=high.0).any(|level| Self(level).did_metadata_change())
    }

    const fn at_least(self, level: Self) -> bool {
        self.0 >= level.0
    }

    /// NoOp records keep the commit offset moving (KIP-835).
    #[must_use]
    pub const fn supports_no_op(self) -> bool {
        self.at_least(V3_3_IV1)
    }

    /// Broker registrations say whether they migrate from ZooKeeper (KIP-866).
    #[must_use]
    pub const fn supports_migration(self) -> bool {
        self.at_least(V3_4_IV0)
    }

    /// SCRAM credentials have records (KIP-900).
    #[must_use]
    pub const fn supports_scram(self) -> bool {
        self.at_least(V3_5_IV2)
    }

    /// A smaller ISR alone makes a new leader epoch; later levels do without (KAFKA-15021).
    #[must_use]
    pub const fn bumps_leader_epoch_on_isr_shrink(self) -> bool {
        !self.at_least(V3_6_IV0)
    }

    /// Records can be grouped into metadata transactions (KIP-868).
    #[must_use]
    pub const fn supports_transactions(self) -> bool {
        self.at_least(V3_6_IV1)
    }

    /// Delegation tokens have records.
    #[must_use]
    pub const fn supports_delegation_tokens(self) -> bool {
        self.at_least(V3_6_IV2)
    }

    /// Controllers register (KIP-919).
    #[must_use]
    pub const fn controller_registration(self) -> bool {
        self.at_least(V3_7_IV0)
    }

    /// Replicas have log directories (KIP-858).
    #[must_use]
    pub const fn directory_assignment(self) -> bool {
        self.at_least(V3_7_IV2)
    }

    /// Eligible leader replicas have a place in records, and the feature may be enabled (KIP-966).
    #[must_use]
    pub const fn is_elr_supported(self) -> bool {
        self.at_least(V4_0_IV1)
    }

    /// Log directories can be cordoned (KIP-1066).
    #[must_use]
    pub const fn cordoned_log_dirs(self) -> bool {
        self.at_least(V4_3_IV0)
    }

    /// An ACL's host can be a range of addresses.
    #[must_use]
    pub const fn cidr_acls(self) -> bool {
        self.at_least(V4_4_IV1)
    }

    /// Controllers can be unregistered.
    #[must_use]
    pub const fn controller_unregistration(self) -> bool {
        self.at_least(V4_4_IV2)
    }

    /// The version of a `RegisterBrokerRecord`.
    #[must_use]
    pub const fn register_broker_record_version(self) -> i16 {
        if self.cordoned_log_dirs() {
            4
        } else if self.directory_assignment() {
            3
        } else if self.supports_migration() {
            2
        } else {
            1
        }
    }

    /// The version of a `PartitionRecord`.
    #[must_use]
    pub const fn partition_record_version(self) -> i16 {
        if self.is_elr_supported() {
            2
        } else if self.directory_assignment() {
            1
        } else {
            0
        }
    }

    /// The version of a `PartitionChangeRecord`.
    #[must_use]
    pub const fn partition_change_record_version(self) -> i16 {
        self.partition_record_version()
    }
}

impl fmt::Display for MetadataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_names_are_read_as_java_reads_them() {
        let level = |text: &str| MetadataVersion::from_version_string(text, false).map(|v| v.0);
        assert_eq!(level("4.4"), Ok(33));
        assert_eq!(level("4.4.0"), Ok(33));
        assert_eq!(level("4.4-IV0"), Ok(31));
        assert_eq!(level("4.4.0-IV0"), Ok(33));
        assert_eq!(level("3.3"), Ok(7));
        assert_eq!(level("3.9.2"), Ok(21));
        assert_eq!(level("3.7"), Ok(19));
        for text in [
            "", ".", "4", "4.4.", "4.5", "4.5-IV0", "3.3-IV2", "3.2", "4.4-iv2",
        ] {
            let error = level(text).unwrap_err();
            assert!(
                error.starts_with(&format!(
                    "Unknown metadata.version '{text}'. Supported metadata.version are: 3.3-IV3, \
                     3.4-IV0, 3.5-IV0, "
                )) && error.ends_with(", 4.3-IV0, 4.4-IV0, 4.4-IV1, 4.4-IV2"),
                "{error}"
            );
        }
    }

    #[test]
    fn levels_that_are_not_ready_need_to_be_allowed_and_named_in_full() {
        let level = |text: &str| MetadataVersion::from_version_string(text, true);
        assert_eq!(level("4.5-IV0"), Ok(MetadataVersion(34)));
        assert_eq!(level("4.4"), Ok(MetadataVersion(33)));
        assert!(level("4.5").unwrap_err().ends_with("4.4-IV2, 4.5-IV0"));
    }

    #[test]
    fn only_levels_of_this_release_are_admitted() {
        for level in [i16::MIN, -1, 0, 6, 35, i16::MAX] {
            assert_eq!(MetadataVersion::from_level(level), None);
        }
        assert_eq!(MetadataVersion::from_level(7).unwrap().name(), "3.3-IV3");
        assert_eq!(MetadataVersion::from_level(34).unwrap().name(), "4.5-IV0");
    }

    #[test]
    fn names_begin_with_their_release_and_count_up() {
        let mut last = ("", 0);
        for (index, row) in LEVELS.iter().enumerate() {
            let (release, step) = row.name.split_once("-IV").unwrap();
            assert_eq!(release, row.release);
            let step: i32 = step.parse().unwrap();
            if index > 0 {
                let first = i32::from(release == "3.0");
                let expected = if last.0 == release { last.1 + 1 } else { first };
                assert_eq!(step, expected, "{}", row.name);
            }
            last = (row.release, step);
        }
    }

    #[test]
    fn metadata_changed_at_the_levels_that_java_names() {
        let changed: Vec<i16> = MetadataVersion::all()
            .filter(|level| level.did_metadata_change())
            .map(MetadataVersion::level)
            .collect();
        assert_eq!(changed, [7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33]);
        let lossy = |a, b| MetadataVersion(a).metadata_changed_between(MetadataVersion(b));
        assert!(lossy(33, 31));
        assert!(lossy(32, 33));
        assert!(!lossy(31, 30));
        assert!(!lossy(29, 23));
        assert!(lossy(23, 22));
        assert!(!lossy(33, 33));
    }

    #[test]
    fn record_versions_follow_the_levels() {
        let versions: Vec<(i16, i16)> = MetadataVersion::all()
            .map(|v| {
                (
                    v.register_broker_record_version(),
                    v.partition_record_version(),
                )
            })
            .collect();
        let expected = |level: i16| match level {
            7 => (1, 0),
            8..=16 => (2, 0),
            17..=22 => (3, 1),
            23..=29 => (3, 2),
            _ => (4, 2),
        };
        let expected: Vec<(i16, i16)> = (7..=34).map(expected).collect();
        assert_eq!(versions, expected);
        assert!(MetadataVersion(11).bumps_leader_epoch_on_isr_shrink());
        assert!(!MetadataVersion(12).bumps_leader_epoch_on_isr_shrink());
    }
}
