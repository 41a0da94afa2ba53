//! All keys with their values, and what each key says for itself: wrong values, keys that ask for
//! what kraftd does not do, keys that nothing reads.

use std::collections::BTreeMap;

use super::finding::{Finding, Severity};
use super::keys::{self, Extra, Initial, Key, Kind, Use};
use super::model::Secret;
use super::pairs::Pairs;
use super::value::{self, Value};
use crate::types::quote;

/// What Java prints for a secret.
const HIDDEN: &str = "[hidden]";
/// The prefix of keys for one listener.
const LISTENER: &str = "listener.name.";

/// The value of every key of the table, and what was written for those that are set.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    values: BTreeMap<&'static str, Value>,
    written: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
}

/// What a finding shows of a value: nothing for keys that nobody knows, because they may be
/// secrets of a plugin, and a mask for passwords.
pub(crate) fn shown(key: &str, written: &str) -> Option<String> {
    let base = match key.strip_prefix(LISTENER) {
        Some(rest) => rest.split_once('.').map_or(rest, |(_, base)| base),
        None => key,
    };
    match keys::find(base) {
        Some(known) if known.kind == Kind::Password => Some(HIDDEN.to_owned()),
        Some(_) => Some(written.to_owned()),
        None => match keys::extra(base) {
            Some(Extra::Authorizer | Extra::Legacy(_) | Extra::Kraftd)
                if !base.starts_with("password.encoder.") && !base.ends_with(".key") =>
            {
                Some(written.to_owned())
            }
            _ => None,
        },
    }
}

impl Values {
    /// Parses everything that `pairs` sets. A value that breaks its rule is a finding and stands
    /// at its default, so that the checks that follow can go on.
    pub(crate) fn read(pairs: &Pairs, findings: &mut Vec<Finding>) -> Self {
        let mut values = BTreeMap::new();
        for key in keys::all() {
            let given = given(pairs, key.name);
            let parsed = given.map(|text| value::parse(key, text));
            let value = match parsed {
                None => value::initial(key),
                Some(Ok(parsed)) => {
                    if parsed.duplicates {
                        findings.push(duplicates(key, pairs));
                    }
                    parsed.value
                }
                Some(Err(rule)) => {
                    // A value that stands in for another key's is told under the key that has it.
                    if pairs.contains_key(key.name) {
                        findings.push(broken(key, pairs, rule));
                    }
                    value::initial(key)
                }
            };
            if given.is_none() && key.initial == Initial::Required {
                findings.push(missing(key));
            }
            values.insert(key.name, value);
        }
        let written = pairs
            .iter()
            .map(|(key, entry)| (key.clone(), entry.written.clone()));
        Self {
            values,
            written: written.collect(),
            texts: pairs
                .iter()
                .map(|(key, entry)| (key.clone(), entry.text.clone()))
                .collect(),
        }
    }

    /// The keys of `pairs` one by one: those that ask for what is not there, and those without use.
    pub(crate) fn review(&self, pairs: &Pairs, findings: &mut Vec<Finding>) {
        for name in pairs.keys() {
            if let Some(key) = keys::find(name) {
                if key.used == Use::Broker && findings.iter().any(|found| found.key == *name) {
                    continue;
                }
                let value = self.get(key.name);
                // An empty secret switches nothing on.
                let empty = key.kind == Kind::Password && value == &Value::Text(String::new());
                let default = empty || value == &value::initial(key);
                findings.extend(usage(key, default).map(|(severity, rule, fix)| Finding {
                    severity,
                    key: name.clone(),
                    value: self.shown(name),
                    rule,
                    fix: fix.to_owned(),
                }));
            } else if !name.starts_with(LISTENER) {
                findings.extend(unknown(name, self.shown(name)));
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> &Value {
        self.values
            .get(key)
            .expect("read() gave every key of the table a value, and callers name keys of it")
    }

    /// The value of every key of the table as Java writes it.
    pub(crate) fn effective(&self) -> BTreeMap<&'static str, Option<Secret>> {
        self.values
            .iter()
            .map(|(key, value)| (*key, value.text().map(Secret)))
            .collect()
    }

    /// Every text that is set, after indirection. It may hold secrets.
    pub(crate) fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }

    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.written.contains_key(key)
    }

    pub(crate) fn shown(&self, key: &str) -> Option<String> {
        self.written
            .get(key)
            .and_then(|written| shown(key, written))
    }

    /// The number of a SHORT, INT or LONG key, `None` when it has no value.
    pub(crate) fn number_of(&self, key: &str) -> Option<i64> {
        match self.get(key) {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number of a key whose default is a number.
    pub(crate) fn number(&self, key: &str) -> i64 {
        self.number_of(key)
            .expect("a number key with a default, held by the table's test")
    }

    pub(crate) fn boolean(&self, key: &str) -> bool {
        self.get(key) == &Value::Boolean(true)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The keys `listener.name.<listener>.<base>` that are set, in parts.
    pub(crate) fn prefixed(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.written.keys().filter_map(|key| {
            let (listener, base) = key.strip_prefix(LISTENER)?.split_once('.')?;
            Some((key.as_str(), listener, base))
        })
    }

    /// The limit that one listener sets for itself, or the rule that it breaks. Unlike most keys
    /// it does not fall back to the key without the prefix, which limits the whole process.
    pub(crate) fn limit(&self, listener: &str, base: &str) -> Result<Option<u32>, String> {
        let key = keys::find(base).expect("callers name keys of the table");
        let Some(text) = self.texts.get(&format!("{LISTENER}{listener}.{base}")) else {
            return Ok(None);
        };
        match value::parse(key, text)?.value {
            Value::Number(number) => Ok(u32::try_from(number).ok()),
            _ => Ok(None),
        }
    }

    /// The entries of a LIST key, `None` when it has no value.
    pub(crate) fn list(&self, key: &str) -> Option<&[String]> {
        match self.get(key) {
            Value::List(entries) => Some(entries),
            _ => None,
        }
    }
}

/// `node.id` and `broker.id` are one: each stands for the other when only one is set.
fn given<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a str> {
    let own = pairs.get(key);
    let entry = match key {
        "node.id" => own.or_else(|| pairs.get("broker.id")),
        "broker.id" => own.or_else(|| pairs.get("node.id")),
        _ => own,
    };
    entry.map(|entry| entry.text.as_str())
}

fn broken(key: &Key, pairs: &Pairs, rule: String) -> Finding {
    // Java refuses here as well. A broker's key cannot harm a controller, and files are shared.
    let severity = match key.used {
        Use::Broker => Severity::Warning,
        _ => Severity::Error,
    };
    let written = pairs.get(key.name);
    Finding {
        severity,
        key: key.name.to_owned(),
        value: written.and_then(|entry| shown(key.name, &entry.written)),
        rule,
        fix: match key.initial {
            Initial::Text(text) if !text.is_empty() => {
                format!("correct it, or remove it for the default {text}")
            }
            Initial::Required => "correct it".to_owned(),
            _ => "correct it, or remove it".to_owned(),
        },
    }
}

fn duplicates(key: &Key, pairs: &Pairs) -> Finding {
    let written = pairs.get(key.name);
    Finding {
        severity: Severity::Warning,
        key: key.name.to_owned(),
        value: written.and_then(|entry| shown(key.name, &entry.written)),
        rule: "has an entry twice, the second one is ignored".to_owned(),
        fix: "remove the duplicate".to_owned(),
    }
}

fn missing(key: &Key) -> Finding {
    let fix = match key.name {
        "process.roles" => "set process.roles=controller",
        "node.id" => "set node.id to this node's number",
        _ => "set controller.listener.names to the name of a listener of listeners",
    };
    Finding {
        severity: Severity::Error,
        key: key.name.to_owned(),
        value: None,
        rule: "must be set".to_owned(),
        fix: fix.to_owned(),
    }
}

fn usage(key: &Key, default: bool) -> Option<(Severity, String, &'static str)> {
    match key.used {
        Use::NotBuilt(what) if !default => {
            Some((Severity::Unsupported, what.to_owned(), "remove it"))
        }
        Use::NoEffect if !default => Some((
            Severity::Warning,
            "has no effect, kraftd has nothing that it could steer".to_owned(),
            "remove it, or leave it for Java's controller",
        )),
        Use::Broker => Some((
            Severity::Warning,
            "only brokers read it".to_owned(),
            "remove it from the controller's file",
        )),
        _ => None,
    }
}

fn unknown(name: &str, value: Option<String>) -> Option<Finding> {
    let (severity, rule, fix) = match keys::extra(name) {
        // The check of the authorizer tells when nothing reads it.
        Some(Extra::Authorizer | Extra::Provider | Extra::Policy) => return None,
        Some(Extra::Plugin) => (Severity::Warning, "only brokers read it", "remove it"),
        Some(Extra::Legacy(fix)) => (Severity::Warning, "no release since 4.0 reads it", fix),
        Some(Extra::Kraftd) => (
            Severity::Unsupported,
            "no key of kraftd has this name",
            "correct the name or remove it",
        ),
        None => (
            Severity::Warning,
            "nothing reads it",
            "correct the name or remove it",
        ),
    };
    Some(Finding {
        severity,
        key: quote(name),
        value,
        rule: rule.to_owned(),
        fix: fix.to_owned(),
    })
}
