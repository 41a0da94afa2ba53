//! The table against what Java says of itself.

use std::collections::BTreeMap;

use super::super::topic_defaults;
use super::super::value::{self, Value};
use super::*;

/// A row of `defaults.tsv`: type, default, rule, internal, mode.
fn java() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string("fixtures/4.4.0/config/defaults.tsv").unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let mut fields = line.split('\t').map(str::to_owned);
        (fields.next().unwrap(), fields.collect())
    });
    rows.collect()
}

fn row(key: &Key) -> Vec<String> {
    let kind = format!("{:?}", key.kind).to_uppercase();
    let initial = match key.initial {
        Initial::Required => "(required)".to_owned(),
        _ => value::initial(key)
            .text()
            .unwrap_or_else(|| "null".to_owned()),
    };
    let mode = match key.mode {
        Mode::ReadOnly => "read-only",
        Mode::PerBroker => "per-broker",
        Mode::ClusterWide => "cluster-wide",
    };
    let internal = if key.internal { "internal" } else { "" };
    [
        kind,
        initial,
        rule(key),
        internal.to_owned(),
        mode.to_owned(),
    ]
    .to_vec()
}

fn rule(key: &Key) -> String {
    let all = |texts: &[&str]| format!("[{}]", texts.join(", "));
    match key.rule {
        Rule::Any => String::new(),
        Rule::AtLeast(least) => format!("[{least},...]"),
        Rule::Between(least, most) => format!("[{least},...,{most}]"),
        Rule::BetweenDoubles(least, most) => format!("[{least},...,{most}]"),
        Rule::GzipLevel => "[1,...,9] or -1".to_owned(),
        Rule::OneOf(texts) => all(texts),
        Rule::OneOfAnyCase(texts) => format!("(case insensitive) {}", all(texts)),
        Rule::NotEmpty => "non-empty string".to_owned(),
        Rule::Voters | Rule::Servers => "non-empty list".to_owned(),
        Rule::List { empty, null, of } => {
            let empty = if empty { " empty" } else { "" };
            let null = if null { " null" } else { "" };
            let of = if of.is_empty() {
                String::new()
            } else {
                format!(" {}", all(of))
            };
            format!("list{empty}{null}{of}")
        }
    }
}

#[test]
fn the_table_has_every_key_with_javas_type_default_rule_and_mode() {
    let java = java();
    assert_eq!(all().count(), java.len());
    for key in all() {
        let mut expected = java[key.name].clone();
        // No text in a file is null, so that this rule has nothing to refuse.
        if expected[2] == "non-null string" {
            expected[2].clear();
        }
        assert_eq!(row(key), expected, "{}", key.name);
    }
}

#[test]
fn every_default_obeys_its_own_rule() {
    for key in all() {
        if let Initial::Text(text) = key.initial {
            let parsed =
                value::parse(key, text).unwrap_or_else(|rule| panic!("{}: {rule}", key.name));
            assert!(!parsed.duplicates, "{}", key.name);
            assert_ne!(parsed.value, Value::Null, "{}", key.name);
        }
    }
}

#[test]
fn every_key_that_gives_a_topic_default_is_marked_so() {
    for (topic, server) in topic_defaults::SAME {
        assert_eq!(find(server).unwrap().used, Use::Topic, "{topic}: {server}");
    }
    assert_eq!(find("log.retention.hours").unwrap().used, Use::Topic);
}

#[test]
fn no_other_name_is_a_key_of_the_table() {
    for name in [
        "super.users",
        "zookeeper.connect",
        "config.providers.env.class",
        "kraftd.x",
        "kraftd.create.topic.policy.max.partitions",
        "kraftd.alter.config.policy.range.retention.ms",
    ] {
        assert!(find(name).is_none());
        assert!(extra(name).is_some(), "{name}");
    }
    assert!(extra("no.such.key").is_none());
}
