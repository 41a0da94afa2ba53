//! Feature levels: what a release means, what a level needs, what a new cluster starts with.

use std::collections::BTreeMap;
use std::process::ExitCode;

use super::{DependenciesArgs, MappingArgs, ended};
use crate::records::{FeatureLevelRecord, Record, VersionedRecord};
use crate::types::features::{FEATURES, Feature, KRAFT_VERSION, METADATA_VERSION, MetadataVersion};

/// Prints the level of every feature that a release starts a cluster with.
pub(crate) fn version_mapping(args: &MappingArgs) -> ExitCode {
    let newest = MetadataVersion::LATEST_PRODUCTION;
    let mapping = match &args.release_version {
        None => Ok((newest, newest.name().to_owned())),
        Some(text) => {
            MetadataVersion::from_version_string(text, true).map(|level| (level, text.clone()))
        }
    };
    let (level, text) = match mapping {
        Ok(found) => found,
        Err(sentence) => return ended("", Err(sentence)),
    };
    let mut lines = format!("{METADATA_VERSION}={} ({text})\n", level.level());
    for feature in &FEATURES {
        lines += &format!("{}={}\n", feature.name, feature.default_level(level));
    }
    ended(&lines, Ok(()))
}

/// Prints what each named level needs.
pub(crate) fn feature_dependencies(args: &DependenciesArgs) -> ExitCode {
    let mut lines = String::new();
    let result = args.feature.iter().try_for_each(|text| {
        lines += &dependencies(text)?;
        lines.push('\n');
        Ok(())
    });
    ended(&lines, result)
}

fn dependencies(text: &str) -> Result<String, String> {
    let (name, level) = text.split_once('=').ok_or_else(|| {
        format!(
            "Invalid feature format: {text}. Expected format: 'feature=version' (e.g. \
             'group.version=1')"
        )
    })?;
    let level: i16 = level
        .parse()
        .map_err(|_| format!("Invalid version format: {level} for feature {name}"))?;
    if name == METADATA_VERSION {
        let known = MetadataVersion::from_level(level)
            .ok_or_else(|| format!("Unknown metadata.version {level}"))?;
        return Ok(format!(
            "{name}={level} ({}) has no dependencies.",
            known.name()
        ));
    }
    let feature = Feature::by_name(name).ok_or_else(|| format!("Unknown feature: {name}"))?;
    let row = feature
        .at(level)
        .ok_or_else(|| format!("Feature level {level} is not supported for feature {name}"))?;
    if row.dependencies.is_empty() {
        return Ok(format!("{name}={level} has no dependencies."));
    }
    let mut lines = vec![format!("{name}={level} requires:")];
    for (needed, at) in row.dependencies {
        let known = MetadataVersion::from_level(*at).filter(|_| *needed == METADATA_VERSION);
        let label = known
            .map(|level| format!(" ({})", level.name()))
            .unwrap_or_default();
        lines.push(format!("    {needed}={at}{label}"));
    }
    Ok(lines.join("\n"))
}

/// The levels that `--release-version` and `--feature` ask for.
pub(super) struct Levels {
    pub(super) metadata_version: MetadataVersion,
    /// Without metadata.version; with kraft.version.
    pub(super) others: BTreeMap<&'static str, i16>,
}

/// What decides about kraft.version.
#[derive(Clone, Copy)]
pub(super) struct QuorumKind {
    /// `controller.quorum.voters` is set.
    pub(super) static_voters: bool,
    /// One of the flags of a dynamic quorum is given.
    pub(super) dynamic_flag: bool,
}

impl Levels {
    /// Parses and checks.
    ///
    /// # Errors
    /// The sentence about the first option that is wrong.
    pub(super) fn of(
        release: Option<&str>,
        features: &[String],
        unstable: bool,
        quorum: QuorumKind,
    ) -> Result<Self, String> {
        let release = release
            .map(|text| MetadataVersion::from_version_string(text, unstable))
            .transpose()?;
        let asked = asked(features)?;
        let metadata_version = metadata_version(release, &asked, unstable)?;
        let mut others = BTreeMap::new();
        for feature in &FEATURES {
            let level = asked.get(feature.name).copied();
            others.insert(
                feature.name,
                level.unwrap_or_else(|| feature.default_level(metadata_version)),
            );
        }
        let levels = Self {
            metadata_version,
            others,
        };
        levels.check(&asked, quorum)
    }

    fn check(mut self, asked: &BTreeMap<String, i16>, quorum: QuorumKind) -> Result<Self, String> {
        for feature in &FEATURES {
            feature.validate(self.others[feature.name], |name| match name {
                METADATA_VERSION => Some(self.metadata_version.level()),
                _ => self.others.get(name).copied(),
            })?;
        }
        let dynamic = quorum.dynamic_flag && !quorum.static_voters;
        match (asked.get(KRAFT_VERSION), dynamic) {
            (Some(0), true) => return Err(KRAFT_0_REFUSED.to_owned()),
            (Some(1), false) => return Err(KRAFT_1_REFUSED.to_owned()),
            _ => {}
        }
        self.others.insert(KRAFT_VERSION, i16::from(dynamic));
        Ok(self)
    }

    /// True when the voters live in the log (kraft.version 1).
    pub(super) fn is_dynamic(&self) -> bool {
        self.others
            .get(KRAFT_VERSION)
            .is_some_and(|level| *level > 0)
    }

    /// The feature records that the first controller writes: metadata.version first, then by name.
    pub(super) fn records(&self) -> Vec<VersionedRecord> {
        let mut levels = vec![(METADATA_VERSION, self.metadata_version.level())];
        let others = self.others.iter().map(|(name, level)| (*name, *level));
        levels.extend(others.filter(|(name, level)| *level > 0 && *name != KRAFT_VERSION));
        levels.into_iter().map(record).collect()
    }
}

const KRAFT_0_REFUSED: &str = "Cannot set kraft.version to 0 if controller.quorum.voters is empty \
    and one of the flags --standalone, --initial-controllers, or --no-initial-controllers is used. \
    For dynamic controllers support, try removing the --feature flag for kraft.version.";

const KRAFT_1_REFUSED: &str = "Cannot set kraft.version to 1 unless controller.quorum.voters is \
    empty and one of the flags --standalone, --initial-controllers, or --no-initial-controllers is \
    used. For dynamic controllers support, try using one of --standalone, --initial-controllers, \
    or --no-initial-controllers and removing controller.quorum.voters.";

fn record((name, level): (&str, i16)) -> VersionedRecord {
    let record = FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..FeatureLevelRecord::default()
    };
    VersionedRecord {
        version: 0,
        record: Record::FeatureLevel(record),
    }
}

fn asked(features: &[String]) -> Result<BTreeMap<String, i16>, String> {
    let mut asked = BTreeMap::new();
    for text in features {
        let (name, level) = text.split_once('=').ok_or_else(|| {
            format!("Can't parse feature=level string {text}: equals sign not found.")
        })?;
        let level = level.parse().map_err(|_| {
            format!("Can't parse feature=level string {text}: unable to parse {level} as a short.")
        })?;
        if name != METADATA_VERSION && Feature::by_name(name).is_none() {
            let mut known = FEATURES.map(|feature| feature.name);
            known.sort_unstable();
            return Err(format!(
                "Unsupported feature: {name}. Supported features are: {}",
                known.join(", ")
            ));
        }
        asked.insert(name.to_owned(), level);
    }
    Ok(asked)
}

fn metadata_version(
    release: Option<MetadataVersion>,
    asked: &BTreeMap<String, i16>,
    unstable: bool,
) -> Result<MetadataVersion, String> {
    let (first, last) = (MetadataVersion::MINIMUM, MetadataVersion::LATEST_TESTING);
    match (release, asked.get(METADATA_VERSION)) {
        (Some(_), Some(_)) => Err("Use --release-version instead of --feature \
                                   metadata.version=X to avoid ambiguity."
            .to_owned()),
        (Some(level), None) => Ok(level),
        (None, Some(&level)) => {
            let known = MetadataVersion::from_level(level).ok_or_else(|| {
                format!(
                    "No MetadataVersion with feature level {level}. Valid feature levels are from \
                     {} to {}.",
                    first.level(),
                    last.level()
                )
            })?;
            if !unstable && !known.is_production() {
                return Err(format!(
                    "{METADATA_VERSION} {} is not yet stable.",
                    known.name()
                ));
            }
            Ok(known)
        }
        (None, None) if unstable => Ok(last),
        (None, None) => Ok(MetadataVersion::LATEST_PRODUCTION),
    }
}
