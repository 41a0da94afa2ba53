//! `kraftd.create.topic.policy.*` and `kraftd.alter.config.policy.*`: policies as rules.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::finding::{Finding, Severity};
use crate::types::policy::{AlterConfigRules, CreateTopicRules, Range};

const PARTITIONS_MAX: &str = "kraftd.create.topic.policy.max.partitions";
const REPLICATION_MIN: &str = "kraftd.create.topic.policy.replication.factor.min";
const REPLICATION_MAX: &str = "kraftd.create.topic.policy.replication.factor.max";
const NAME_PATTERN: &str = "kraftd.create.topic.policy.name.pattern";
const RESOURCES: &str = "kraftd.alter.config.policy.resources";
const ALLOWED_KEYS: &str = "kraftd.alter.config.policy.allowed.keys";
const DENIED_KEYS: &str = "kraftd.alter.config.policy.denied.keys";
const RANGE: &str = "kraftd.alter.config.policy.range.";

/// The types of resources whose configurations a controller keeps, with the protocol's ids.
const TYPES: [(&str, i8); 4] = [
    ("TOPIC", 2),
    ("BROKER", 4),
    ("CLIENT_METRICS", 16),
    ("GROUP", 32),
];

/// Whether this is the name of a key of a policy.
pub(crate) fn knows(name: &str) -> bool {
    [
        PARTITIONS_MAX,
        REPLICATION_MIN,
        REPLICATION_MAX,
        NAME_PATTERN,
        RESOURCES,
        ALLOWED_KEYS,
        DENIED_KEYS,
    ]
    .contains(&name)
        || name.strip_prefix(RANGE).is_some_and(|key| !key.is_empty())
}

/// The texts of a configuration under review.
struct Reader<'a> {
    texts: &'a BTreeMap<String, String>,
    findings: &'a mut Vec<Finding>,
}

impl Reader<'_> {
    fn error(&mut self, key: &str, rule: &str) {
        self.findings.push(Finding {
            severity: Severity::Error,
            key: key.to_owned(),
            value: self.texts.get(key).cloned(),
            rule: rule.to_owned(),
            fix: "correct it, or remove it".to_owned(),
        });
    }

    fn count(&mut self, key: &str) -> Option<u32> {
        let text = self.texts.get(key)?;
        let count = text.trim().parse::<u32>().ok().filter(|count| *count > 0);
        if count.is_none() {
            self.error(key, "must be a whole number of at least 1");
        }
        count
    }

    fn list(&self, key: &str) -> Option<BTreeSet<String>> {
        let text = self.texts.get(key)?;
        let entries = text.split(',').map(str::trim);
        Some(
            entries
                .filter(|entry| !entry.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }
}

/// Reads the rules of a policy about new topics; what is wrong with them becomes a finding.
pub(crate) fn create_topic(
    texts: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) -> CreateTopicRules {
    let mut reader = Reader { texts, findings };
    let rules = CreateTopicRules {
        partitions_max: reader.count(PARTITIONS_MAX),
        replication_min: reader.count(REPLICATION_MIN),
        replication_max: reader.count(REPLICATION_MAX),
        name_pattern: texts.get(NAME_PATTERN).cloned(),
    };
    if let (Some(min), Some(max)) = (rules.replication_min, rules.replication_max)
        && min > max
    {
        let rule = format!("must not be above {REPLICATION_MAX}, which is {max}");
        reader.error(REPLICATION_MIN, &rule);
    }
    if let Some(pattern) = &rules.name_pattern
        && Regex::new(&format!("^(?:{pattern})$")).is_err()
    {
        reader.error(NAME_PATTERN, "must be a regular expression");
    }
    rules
}

/// Reads the rules of a policy about changed configurations.
pub(crate) fn alter_config(
    texts: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) -> AlterConfigRules {
    let mut reader = Reader { texts, findings };
    let mut rules = AlterConfigRules {
        resources: BTreeSet::from([TYPES[0].1]),
        allowed_keys: reader.list(ALLOWED_KEYS),
        denied_keys: reader.list(DENIED_KEYS).unwrap_or_default(),
        ranges: BTreeMap::new(),
    };
    if let Some(names) = reader.list(RESOURCES) {
        let ids = names.iter().map(|name| {
            let known = TYPES.iter().find(|(text, _)| text == name);
            known.map(|(_, id)| *id)
        });
        match ids.collect::<Option<BTreeSet<i8>>>() {
            Some(ids) => rules.resources = ids,
            None => reader.error(
                RESOURCES,
                "must be a list of TOPIC, BROKER, CLIENT_METRICS and GROUP",
            ),
        }
    }
    for (name, text) in texts {
        let Some(key) = name.strip_prefix(RANGE).filter(|key| !key.is_empty()) else {
            continue;
        };
        match Range::parse(text.trim()) {
            Ok(range) => {
                rules.ranges.insert(key.to_owned(), range);
            }
            Err(rule) => reader.error(name, &rule),
        }
    }
    rules
}
