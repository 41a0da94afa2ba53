//! Policies as rules: what an operator allows topics and configurations to be. They stand where
//! Java loads a `CreateTopicPolicy` (KIP-108) or an `AlterConfigPolicy` (KIP-133) class.

use std::collections::{BTreeMap, BTreeSet};

/// What topics may be created. Nothing set allows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopicRules {
    /// `kraftd.create.topic.policy.max.partitions`, at least 1.
    pub partitions_max: Option<u32>,
    /// `kraftd.create.topic.policy.replication.factor.min`, at least 1.
    pub replication_min: Option<u32>,
    /// `kraftd.create.topic.policy.replication.factor.max`, not below the minimum.
    pub replication_max: Option<u32>,
    /// `kraftd.create.topic.policy.name.pattern`: a regular expression for the whole name.
    pub name_pattern: Option<String>,
}

/// Which changes of configurations are allowed. Nothing set allows all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterConfigRules {
    /// `kraftd.alter.config.policy.resources`: whose changes are looked at, by the protocol's type
    /// ids of resources.
    pub resources: BTreeSet<i8>,
    /// `kraftd.alter.config.policy.allowed.keys`: no others may be set or deleted.
    pub allowed_keys: Option<BTreeSet<String>>,
    /// `kraftd.alter.config.policy.denied.keys`: these may be neither set nor deleted.
    pub denied_keys: BTreeSet<String>,
    /// `kraftd.alter.config.policy.range.<key>`: between what a number that is set must be.
    pub ranges: BTreeMap<String, Range>,
}

/// `min..max`, both inclusive, of which one may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// As written.
    pub text: String,
    min: Option<f64>,
    max: Option<f64>,
}

impl Range {
    /// Reads `min..max`, `min..` or `..max`.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((min, max)) = text.split_once("..") else {
            return Err("must be min..max, min.. or ..max".to_owned());
        };
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => number(text)
                .map(Some)
                .ok_or_else(|| format!("has {}, which is no number", super::quote(text))),
        };
        let (min, max) = (number(min)?, number(max)?);
        if min.is_none() && max.is_none() {
            return Err("must have a number on at least one side of ..".to_owned());
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err("has a minimum above its maximum".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            min,
            max,
        })
    }

    /// Whether a number of this range is one of `least` to `most`, both included.
    #[must_use]
    pub fn meets(&self, least: f64, most: f64) -> bool {
        self.min.is_none_or(|min| min <= most) && self.max.is_none_or(|max| max >= least)
    }

    /// Whether a value is a number in this range.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        number(value.trim()).is_some_and(|value| {
            self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
        })
    }
}

/// A finite number. Whole ones beyond 2^53 lose their last digits, which no limit needs.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn a_range_has_two_ends_of_which_one_may_be_missing() {
        let range = Range::parse("1..10").unwrap();
        for (value, allowed) in [
            ("1", true),
            ("10", true),
            (" 5 ", true),
            ("0", false),
            ("11", false),
            ("ten", false),
            ("NaN", false),
        ] {
            assert_eq!(range.allows(value), allowed, "{value}");
        }
        assert!(Range::parse("..0.5").unwrap().allows("-3"));
        assert!(!Range::parse("..0.5").unwrap().allows("0.6"));
        assert!(
            Range::parse("1048576..")
                .unwrap()
                .allows("9223372036854775807")
        );
        for wrong in ["", "5", "..", "a..b", "2..1", "1..inf"] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
    }
}
