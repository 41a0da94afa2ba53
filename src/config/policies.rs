//! `kraftd.create.topic.policy.*` and `kraftd.alter.config.policy.*`: policies as rules.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Severity};
use super::keys::{self, Kind, Rule};
use super::values::Values;
use super::{topic_defaults, value};
use crate::types::config_keys;
use crate::types::pattern::{can_name_topics, whole};
use crate::types::policy::{AlterConfigRules, CreateTopicRules, Range};
use crate::types::quote;

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
    ("TOPIC", config_keys::TOPIC),
    ("BROKER", config_keys::BROKER),
    ("CLIENT_METRICS", config_keys::CLIENT_METRICS),
    ("GROUP", config_keys::GROUP),
];

/// No topic has more replicas: the protocol counts them in 16 bits.
const REPLICAS_MAX: u32 = 32_767;

/// How many keys of a list one finding names.
const TOLD_MAX: usize = 10;

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
    values: &'a Values,
    texts: &'a BTreeMap<String, String>,
    findings: &'a mut Vec<Finding>,
}

impl Reader<'_> {
    fn error(&mut self, key: &str, rule: &str) {
        self.find(Severity::Error, key, rule, "correct it, or remove it");
    }

    fn find(&mut self, severity: Severity, key: &str, rule: &str, fix: &str) {
        self.findings.push(Finding {
            severity,
            key: quote(key),
            value: self.texts.get(key).cloned(),
            rule: rule.to_owned(),
            fix: fix.to_owned(),
        });
    }

    /// What the rules about keys name that these resources do not have, and what contradicts
    /// itself.
    fn review_keys(&mut self, rules: &AlterConfigRules) {
        let allowed = rules.allowed_keys.iter().flatten();
        let both: Vec<&String> = allowed
            .filter(|key| rules.denied_keys.contains(*key))
            .collect();
        if !both.is_empty() {
            let rule = format!("has {}, which {ALLOWED_KEYS} has, too", some(&both));
            self.error(DENIED_KEYS, &rule);
        }
        let lists = [
            (ALLOWED_KEYS, rules.allowed_keys.as_ref()),
            (DENIED_KEYS, Some(&rules.denied_keys)),
        ];
        for (list, keys) in lists {
            let keys = keys.into_iter().flatten();
            let unknown = keys.filter(|key| is_number(&rules.resources, key).is_none());
            self.unknown(list, &unknown.collect::<Vec<_>>(), &rules.resources);
        }
        for key in rules.ranges.keys() {
            let name = format!("{RANGE}{key}");
            match is_number(&rules.resources, key) {
                Some(true) => self.meets_a_value(&name, key, rules),
                Some(false) => {
                    self.error(
                        &name,
                        &format!("is about {}, whose values are no numbers", quote(key)),
                    );
                }
                None => self.unknown(&name, &[key], &rules.resources),
            }
            let allowed = rules.allowed_keys.as_ref();
            if rules.denied_keys.contains(key) || allowed.is_some_and(|keys| !keys.contains(key)) {
                let shown = quote(key);
                let rule = format!("is never asked: the other rules let nobody set {shown}");
                self.find(
                    Severity::Warning,
                    &name,
                    &rule,
                    "remove it, or allow the key",
                );
            }
        }
    }

    /// A range beside all values that its key can have would let nobody set it.
    fn meets_a_value(&mut self, name: &str, key: &str, rules: &AlterConfigRules) {
        let Some(range) = rules.ranges.get(key) else {
            return;
        };
        let mut known = Vec::new();
        for resource in &rules.resources {
            if is_number(&BTreeSet::from([*resource]), key) != Some(true) {
                continue;
            }
            // Of values that are not known any may be meant.
            let Some(values) = values_of(self.values, *resource, key) else {
                return;
            };
            known.push(values);
        }
        if known.iter().any(|(least, most)| range.meets(*least, *most)) {
            return;
        }
        if let Some((least, most)) = known.first() {
            let key = quote(key);
            let rule = format!("has no value that {key} can have, which is from {least} to {most}");
            self.error(name, &rule);
        }
    }

    /// A newer release may know them, so that they stop nothing.
    fn unknown(&mut self, name: &str, keys: &[&String], resources: &BTreeSet<i8>) {
        if keys.is_empty() {
            return;
        }
        let types = TYPES.iter().filter(|(_, id)| resources.contains(id));
        let types: Vec<&str> = types.map(|(text, _)| *text).collect();
        let rule = format!(
            "has {}, which {} of {} in Kafka 4.4",
            some(keys),
            if keys.len() == 1 {
                "is no key"
            } else {
                "are no keys"
            },
            types.join(" or ")
        );
        let fix = format!("correct it, or name its resource in {RESOURCES}");
        self.find(Severity::Warning, name, &rule, &fix);
    }

    fn count(&mut self, key: &str) -> Option<u32> {
        let text = self.texts.get(key)?;
        let count = text.trim().parse::<u32>().ok().filter(|count| *count > 0);
        if count.is_none() {
            self.error(key, "must be a whole number of at least 1");
        }
        count
    }

    fn list(&mut self, key: &str) -> Option<BTreeSet<String>> {
        let text = self.texts.get(key)?;
        let entries = text.split(',').map(str::trim);
        let entries: BTreeSet<String> = entries
            .filter(|entry| !entry.is_empty())
            .map(str::to_owned)
            .collect();
        if entries.is_empty() {
            self.error(key, "must name at least one");
        }
        Some(entries)
    }
}

/// The first of many keys. One finding tells of all of a list: each shows the whole list.
fn some(keys: &[&String]) -> String {
    let told: Vec<String> = keys.iter().take(TOLD_MAX).map(|key| quote(key)).collect();
    match keys.len().saturating_sub(TOLD_MAX) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// Whether the values of a key are numbers; `None` when none of these resources has it. Where two
/// have it, one with numbers counts.
fn is_number(resources: &BTreeSet<i8>, key: &str) -> Option<bool> {
    let of = |resource: &i8| match *resource {
        config_keys::BROKER => is_brokers_number(key),
        resource => config_keys::is_number(resource, key),
    };
    resources.iter().filter_map(of).max()
}

/// The same of a broker, whose keys may have a listener in front of them, and a mechanism.
fn is_brokers_number(key: &str) -> Option<bool> {
    if config_keys::BROKER_ONLY_DYNAMIC.contains(&key) {
        return Some(true);
    }
    let number = |key: &str| {
        let kind = keys::find(key)?.kind;
        let numbers = [Kind::Double, Kind::Int, Kind::Long, Kind::Short];
        Some(numbers.contains(&kind))
    };
    let of_listener = || {
        let (_, rest) = key.strip_prefix("listener.name.")?.split_once('.')?;
        number(rest).or_else(|| number(rest.split_once('.')?.1))
    };
    number(key).or_else(of_listener)
}

/// Which numbers a key takes, as far as the keys of a server's file say it: a topic's key has the
/// values of the one that it falls back to, a group's also the bounds that the file sets.
fn values_of(values: &Values, resource: i8, key: &str) -> Option<(f64, f64)> {
    let (least, most) = match resource {
        config_keys::BROKER => return numbers_of_server(key),
        config_keys::TOPIC => {
            let mut same = topic_defaults::SAME.iter();
            return numbers_of_server(same.find(|(topic, _)| *topic == key)?.1);
        }
        config_keys::CLIENT_METRICS => config_keys::METRICS_INTERVAL_MS,
        _ => {
            let server = keys::find(&format!("group.{key}"))?;
            // The file's own key may end sooner than that of groups: that is the bounds' matter.
            let ((least, _), (_, most)) = (value::numbers(server)?, value::of_type(server.kind)?);
            let mut bounds = config_keys::GROUP_BOUNDS.iter();
            let bounds = bounds.find(|(name, ..)| *name == key);
            let (min, max) = bounds.map_or((None, None), |(_, min, max)| (*min, *max));
            let number = |key: Option<&str>| values.number_of(key?);
            (
                number(min).map_or(least, |min| min.max(least)),
                number(max).map_or(most, |max| max.min(most)),
            )
        }
    };
    Some((as_double(least), as_double(most)))
}

fn numbers_of_server(key: &str) -> Option<(f64, f64)> {
    let server = keys::find(key)?;
    if let Rule::BetweenDoubles(least, most) = server.rule {
        return Some((least, most));
    }
    value::numbers(server).map(|(least, most)| (as_double(least), as_double(most)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a range of a policy has the same precision"
)]
const fn as_double(number: i64) -> f64 {
    number as f64
}

/// Reads the rules of a policy about new topics; what is wrong with them becomes a finding.
pub(crate) fn create_topic(values: &Values, findings: &mut Vec<Finding>) -> CreateTopicRules {
    let texts = values.texts();
    let mut reader = Reader {
        values,
        texts,
        findings,
    };
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
    if rules.replication_min.is_some_and(|min| min > REPLICAS_MAX) {
        let rule = format!("must not be above {REPLICAS_MAX}, which no topic can have");
        reader.error(REPLICATION_MIN, &rule);
    }
    let pattern = rules.name_pattern.as_deref();
    if pattern.is_some_and(|pattern| pattern.trim().is_empty()) {
        reader.error(NAME_PATTERN, "must not be empty, no topic has such a name");
    } else if let Some(pattern) = pattern {
        match whole(pattern) {
            Err(rule) => reader.error(NAME_PATTERN, &rule),
            Ok(_) if !can_name_topics(pattern) => {
                let rule = "matches no name that a topic can have: 1 to 249 letters, digits \
                            and ._-, but not . or ..";
                reader.error(NAME_PATTERN, rule);
            }
            Ok(_) => {}
        }
    }
    rules
}

/// Reads the rules of a policy about changed configurations.
pub(crate) fn alter_config(values: &Values, findings: &mut Vec<Finding>) -> AlterConfigRules {
    let texts = values.texts();
    let mut reader = Reader {
        values,
        texts,
        findings,
    };
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
    let has_range = texts.keys().any(|name| name.starts_with(RANGE));
    let lists = [ALLOWED_KEYS, DENIED_KEYS];
    if texts.contains_key(RESOURCES)
        && !has_range
        && !lists.iter().any(|key| texts.contains_key(*key))
    {
        let rule = format!(
            "has no rule to be about: neither {ALLOWED_KEYS} nor {DENIED_KEYS} nor a {RANGE}KEY is \
             set"
        );
        reader.find(
            Severity::Error,
            RESOURCES,
            &rule,
            "set one of them, or remove it",
        );
    }
    reader.review_keys(&rules);
    rules
}

#[cfg(test)]
mod tests {
    use super::super::tests::{load_lines, texts};
    use super::*;
    use crate::controller::configs::definition::Check;
    use crate::controller::configs::group;
    use crate::types::config_keys::{GROUP, GROUP_BOUNDS, is_number};

    #[test]
    fn a_range_beside_all_values_of_a_group_or_of_client_metrics_is_refused() {
        let alter = "kraftd.alter.config.policy";
        for (lines, words) in [
            (
                vec![
                    format!("{alter}.range.interval.ms=..99"),
                    format!("{alter}.resources=CLIENT_METRICS"),
                ],
                "has no value that interval.ms can have, which is from 100 to 3600000",
            ),
            (
                vec![
                    format!("{alter}.range.consumer.session.timeout.ms=1..1000"),
                    format!("{alter}.resources=GROUP"),
                ],
                "which is from 45000 to 60000",
            ),
            (
                vec![
                    format!("{alter}.range.share.delivery.count.limit=30.."),
                    format!("{alter}.resources=GROUP"),
                    "group.share.max.delivery.count.limit=25".to_owned(),
                ],
                "which is from 2 to 25",
            ),
            (
                vec![
                    format!("{alter}.range.streams.acceptable.recovery.lag=..-1"),
                    format!("{alter}.resources=GROUP"),
                ],
                "which is from 0 to",
            ),
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let text = texts(&load_lines(&lines).unwrap_err());
            assert!(text.contains(words), "{lines:?}: {text}");
        }
        let meets = [
            format!("{alter}.range.consumer.session.timeout.ms=1..45000"),
            format!("{alter}.resources=GROUP"),
        ];
        let meets: Vec<&str> = meets.iter().map(String::as_str).collect();
        assert!(load_lines(&meets).is_ok());
    }

    /// Each key was a finding of its own that showed the whole list.
    #[test]
    fn a_long_list_of_keys_that_no_resource_has_is_one_finding() {
        let keys: Vec<String> = (0..50_000).map(|at| format!("k{at:05}")).collect();
        let line = format!("{ALLOWED_KEYS}={}", keys.join(","));
        let warnings = load_lines(&[&line]).unwrap().warnings;
        let told: Vec<_> = warnings
            .iter()
            .filter(|it| it.key == ALLOWED_KEYS)
            .collect();
        assert_eq!(told.len(), 1);
        let rule = &told[0].rule;
        assert!(
            rule.ends_with("k00009 and 49990 more, which are no keys of TOPIC in Kafka 4.4"),
            "{rule}"
        );
    }

    /// A group's key begins where the file's does, and its bounds are keys of the file.
    #[test]
    fn what_policies_know_of_groups_is_what_the_controller_takes() {
        let number = |key: &str| value::numbers(keys::find(key)?);
        let mut compared = 0;
        for key in group::KEYS {
            let definition = &key.definition;
            if is_number(GROUP, definition.name) != Some(true) {
                continue;
            }
            let server = format!("group.{}", definition.name);
            assert_eq!(key.synonym, Some(server.as_str()));
            let (least, _) = number(&server).unwrap();
            match definition.check {
                Check::AtLeast(own) => assert_eq!(own, least, "{server}"),
                ref other => panic!("{server}: {other:?}"),
            }
            compared += 1;
        }
        assert_eq!(compared, 17);
        for (_, min, max) in GROUP_BOUNDS {
            assert!(min.into_iter().chain(max).all(|key| number(key).is_some()));
        }
    }
}
