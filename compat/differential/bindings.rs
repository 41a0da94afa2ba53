//! What differs between two clusters by nature is bound as it appears: Java's id on one side,
//! kraftd's on the other. From then on one stands for the other, in answers, records and texts.

use std::collections::BTreeMap;

use kraftd::types::ids::base64url;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Times of the two clusters may be this far apart, ms.
const CLOCKS_APART_MS: i64 = 60_000;

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Made by chance: bound at first sight.
    Id,
    /// An offset of the log: bound at first sight.
    Epoch,
    /// An offset that the log reaches in its own time: known or not.
    Offset,
    /// A time.
    Time,
    /// Zero or not.
    Throttle,
    /// That of the other cluster's controller, or the same.
    Port,
    Equal,
}

fn rule(key: &str, value: &Value) -> Rule {
    match key {
        "topic_id" | "topicId" | "tokenId" | "token_id" | "hmac" => Rule::Id,
        "id" if value.is_string() => Rule::Id,
        "replica_directory_id" => Rule::Id,
        "high_watermark" | "log_end_offset" => Rule::Offset,
        "last_fetch_timestamp" | "last_caught_up_timestamp" => Rule::Time,
        "broker_epoch" | "brokerEpoch" | "epoch" => Rule::Epoch,
        "issueTimestamp" | "expirationTimestamp" | "maxTimestamp" => Rule::Time,
        "issue_timestamp_ms" | "expiry_timestamp_ms" | "max_timestamp_ms" => Rule::Time,
        "throttle_time_ms" => Rule::Throttle,
        "port" => Rule::Port,
        _ => Rule::Equal,
    }
}

/// Names of one cluster by those of the other, both ways.
#[derive(Debug)]
struct Pairs<T> {
    kraftd_by_java: BTreeMap<T, T>,
    java_by_kraftd: BTreeMap<T, T>,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self {
            kraftd_by_java: BTreeMap::new(),
            java_by_kraftd: BTreeMap::new(),
        }
    }
}

impl<T: Ord + Clone> Pairs<T> {
    /// False when one of the two is bound to another.
    fn bind(&mut self, java: &T, kraftd: &T) -> bool {
        match (
            self.kraftd_by_java.get(java),
            self.java_by_kraftd.get(kraftd),
        ) {
            (Some(bound), _) => bound == kraftd,
            (None, Some(_)) => false,
            (None, None) => {
                self.kraftd_by_java.insert(java.clone(), kraftd.clone());
                self.java_by_kraftd.insert(kraftd.clone(), java.clone());
                true
            }
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    ids: Pairs<String>,
    epochs: Pairs<i64>,
    /// Texts of kraftd's side and what stands for them on Java's: directories, ports.
    places: Vec<(String, String)>,
}

impl Bindings {
    /// `kraftd` in a text stands for `java`.
    pub(crate) fn place(&mut self, java: String, kraftd: String) {
        self.places.push((kraftd, java));
    }

    /// kraftd's id for Java's; the same when none was bound.
    pub(crate) fn id(&self, java: Uuid) -> Uuid {
        let bound = self.ids.kraftd_by_java.get(&base64url(java));
        bound.map_or(java, |text| {
            kraftd::types::ids::parse_base64url(text).expect("topics are bound by their uuids")
        })
    }

    /// kraftd's bytes for Java's, both as hexadecimal digits; the same when none were bound.
    pub(crate) fn bytes<'a>(&'a self, java: &'a str) -> &'a str {
        self.ids.kraftd_by_java.get(java).map_or(java, |it| it)
    }

    /// kraftd's epoch of a broker for Java's; the same when none was bound.
    pub(crate) fn epoch(&self, java: i64) -> i64 {
        let bound = self.epochs.kraftd_by_java.get(&java);
        bound.copied().unwrap_or(java)
    }

    /// What the two differ in, as `path: Java's value, kraftd's value`.
    pub(crate) fn differences(&mut self, java: &Value, kraftd: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare("", "", java, kraftd, &mut found);
        found
    }

    fn compare(
        &mut self,
        path: &str,
        key: &str,
        java: &Value,
        kraftd: &Value,
        found: &mut Vec<String>,
    ) {
        match (java, kraftd) {
            (Value::Object(java), Value::Object(kraftd)) => {
                self.compare_fields(path, java, kraftd, found);
            }
            (Value::Array(java), Value::Array(kraftd)) if java.len() == kraftd.len() => {
                let (java, kraftd) = (self.sorted(java), self.sorted(kraftd));
                for (at, (java, kraftd)) in java.iter().zip(&kraftd).enumerate() {
                    self.compare(&format!("{path}[{at}]"), key, java, kraftd, found);
                }
            }
            _ => {
                if !self.agree(key, java, kraftd) {
                    found.push(format!("{path}: {java}, {kraftd}"));
                }
            }
        }
    }

    fn compare_fields(
        &mut self,
        path: &str,
        java: &Map<String, Value>,
        kraftd: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        for (key, value) in java {
            let path = format!("{path}.{key}");
            match kraftd.get(key) {
                Some(other) => self.compare(&path, key, value, other, found),
                None => found.push(format!("{path}: {value}, nothing")),
            }
        }
        for (key, value) in kraftd {
            if !java.contains_key(key) {
                found.push(format!("{path}.{key}: nothing, {value}"));
            }
        }
    }

    fn agree(&mut self, key: &str, java: &Value, kraftd: &Value) -> bool {
        match (rule(key, java), java, kraftd) {
            (Rule::Id, Value::String(java), Value::String(kraftd)) => {
                self.ids.bind(&canonical(java), &canonical(kraftd))
            }
            (Rule::Epoch, Value::Number(java), Value::Number(kraftd)) => {
                match (java.as_i64(), kraftd.as_i64()) {
                    (Some(java), Some(kraftd)) if java >= 0 && kraftd >= 0 => {
                        self.epochs.bind(&java, &kraftd)
                    }
                    (java, kraftd) => java == kraftd,
                }
            }
            (Rule::Time, Value::Number(java), Value::Number(kraftd)) => {
                match (java.as_i64(), kraftd.as_i64()) {
                    (Some(java), Some(kraftd)) if java >= 0 && kraftd >= 0 => {
                        (java - kraftd).abs() < CLOCKS_APART_MS
                    }
                    (java, kraftd) => java == kraftd,
                }
            }
            (Rule::Offset, Value::Number(java), Value::Number(kraftd)) => {
                let unknown = |it: &serde_json::Number| it.as_i64().filter(|it| *it < 0);
                unknown(java) == unknown(kraftd)
            }
            (Rule::Throttle, java, kraftd) => (*java == 0) == (*kraftd == 0),
            (Rule::Port, java, kraftd) => {
                let told = self.text(&kraftd.to_string());
                java == kraftd || told.parse() == Ok(java.as_u64().unwrap_or_default())
            }
            (_, Value::String(java), Value::String(kraftd)) => {
                java == kraftd || stable(java) == stable(&self.text(kraftd))
            }
            (_, java, kraftd) => java == kraftd,
        }
    }

    /// A text of kraftd's with Java's names in it.
    fn text(&self, kraftd: &str) -> String {
        let mut text = kraftd.to_owned();
        for (kraftd, java) in &self.places {
            text = text.replace(kraftd, java);
        }
        for (kraftd, java) in &self.ids.java_by_kraftd {
            text = text.replace(kraftd, java);
        }
        let (mut out, mut digits) = (String::new(), String::new());
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            // An id may have digits in it that are no number: `08`.
            let number = digits.parse().ok();
            let number = number.filter(|number: &i64| number.to_string() == digits);
            match number.and_then(|epoch| self.epochs.java_by_kraftd.get(&epoch)) {
                Some(java) => out.push_str(&java.to_string()),
                None => out.push_str(&digits),
            }
            digits.clear();
            out.push(c);
        }
        out.pop();
        out
    }

    /// Lists of structures in the order of what they say: Java's are often in that of a hash map.
    fn sorted(&self, items: &[Value]) -> Vec<Value> {
        let mut items = items.to_vec();
        if items.iter().all(Value::is_object) {
            items.sort_by_cached_key(|item| self.sort_key(item));
        }
        items
    }

    /// The value as text, with what is bound in Java's words and what is not bound left out.
    pub(crate) fn sort_key(&self, value: &Value) -> String {
        self.plain("", value).to_string()
    }

    fn plain(&self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter();
                Value::Object(
                    fields
                        .map(|(key, value)| (key.clone(), self.plain(key, value)))
                        .collect(),
                )
            }
            Value::Array(items) => Value::Array(self.plain_list(key, items)),
            Value::String(text) if rule(key, value) == Rule::Id => {
                let text = canonical(text);
                match self.ids.java_by_kraftd.get(&text) {
                    Some(java) => Value::from(java.clone()),
                    None if self.ids.kraftd_by_java.contains_key(&text) => Value::from(text),
                    None => Value::Null,
                }
            }
            _ if matches!(rule(key, value), Rule::Epoch | Rule::Offset | Rule::Time) => Value::Null,
            _ if key == "error_message" || key == "errorMessage" => Value::Null,
            other => other.clone(),
        }
    }

    fn plain_list(&self, key: &str, items: &[Value]) -> Vec<Value> {
        let mut items: Vec<_> = items.iter().map(|item| self.plain(key, item)).collect();
        if items.iter().all(Value::is_object) {
            items.sort_by_key(Value::to_string);
        }
        items
    }
}

/// A text without what is different each time: Java puts its whole request object into the sentence
/// that refuses it.
fn stable(text: &str) -> &str {
    let refusal = text.starts_with("Request ") && text.ends_with(" permission.");
    match text.rfind(" needs ") {
        Some(at) if refusal => &text[at..],
        _ => text,
    }
}

/// A uuid in Kafka's form, whichever form it came in.
fn canonical(text: &str) -> String {
    match Uuid::parse_str(text) {
        Ok(id) if text.contains('-') => base64url(id),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_stands_for_the_other_sides_once_it_was_seen() {
        let mut bindings = Bindings::default();
        let (a, b) = (Uuid::from_u128(0xA), Uuid::from_u128(0xB));
        let answer = |id: Uuid| json!({"name": "t", "topic_id": id.to_string()});
        assert!(bindings.differences(&answer(a), &answer(b)).is_empty());
        assert_eq!(bindings.id(a), b);
        // In records ids have another form, and in texts too.
        let record = |id| json!({"topicId": base64url(id)});
        assert!(bindings.differences(&record(a), &record(b)).is_empty());
        assert_eq!(bindings.differences(&record(a), &record(a)).len(), 1);
        assert_eq!(bindings.differences(&record(b), &record(b)).len(), 1);
        let text = |id| json!({"error_message": format!("no topic {}", base64url(id))});
        assert!(bindings.differences(&text(a), &text(b)).is_empty());
    }

    #[test]
    fn epochs_are_bound_and_replaced_in_texts() {
        let mut bindings = Bindings::default();
        let answer = |epoch| json!({"broker_epoch": epoch});
        assert!(bindings.differences(&answer(8), &answer(9)).is_empty());
        assert_eq!(bindings.differences(&answer(8), &answer(10)).len(), 1);
        assert_eq!(bindings.differences(&answer(-1), &answer(9)).len(), 1);
        let text = |epoch: i64| json!({"error_message": format!("epoch {epoch}.")});
        assert!(bindings.differences(&text(8), &text(9)).is_empty());
        assert_eq!(bindings.differences(&text(8), &text(7)).len(), 1);
        let id = json!({"error_message": "directory a08b"});
        assert!(bindings.differences(&id, &id).is_empty());
        assert_eq!(bindings.text("directory a09b"), "directory a09b");
    }

    #[test]
    fn lists_of_structures_are_compared_without_their_order_and_lists_of_numbers_with_it() {
        let mut bindings = Bindings::default();
        let (java, kraftd) = (
            json!([{"n": 1}, {"n": 2, "a": [1, 2]}]),
            json!([{"n": 2, "a": [1, 2]}, {"n": 1}]),
        );
        assert!(bindings.differences(&java, &kraftd).is_empty());
        let other = json!([{"n": 1}, {"n": 2, "a": [2, 1]}]);
        assert_eq!(bindings.differences(&java, &other).len(), 2);
        assert_eq!(bindings.differences(&java, &json!([{"n": 1}])).len(), 1);
    }
}
