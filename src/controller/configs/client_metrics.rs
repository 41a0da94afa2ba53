//! Client metrics subscriptions (KIP-714).

use std::collections::BTreeMap;

use regex_syntax::ast;

use super::alter::unknown_key;
use super::definition::{Check, Definition, Kind, Value, trim};
use crate::types::config_keys::METRICS_INTERVAL_MS;
use crate::types::{ApiError, ErrorCode};

/// Every key of a subscription.
#[rustfmt::skip]
pub const DEFINITIONS: &[Definition] = &[
    Definition { name: "metrics", kind: Kind::List, default: Some(""), check: Check::UniqueList },
    Definition { name: "interval.ms", kind: Kind::Int, default: Some("300000"), check: Check::Any },
    Definition { name: "match", kind: Kind::List, default: Some(""), check: Check::UniqueList },
];

/// What a pattern can be about.
const MATCH_KEYS: &[&str] = &[
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Checks a whole subscription.
pub(super) fn validate(name: &str, own: &BTreeMap<String, String>) -> Result<(), ApiError> {
    let refuse = |message: String| ApiError::new(ErrorCode::InvalidRequest, message);
    let invalid = |message: String| ApiError::new(ErrorCode::InvalidConfig, message);
    if name.is_empty() {
        return Err(refuse("Subscription name can't be empty".into()));
    }
    let known = |key: &str| DEFINITIONS.iter().any(|definition| definition.name == key);
    if let Some(key) = unknown_key(own, known) {
        return Err(refuse(format!(
            "Unknown client metrics configuration: {key}"
        )));
    }
    let mut interval = None;
    let mut patterns = Vec::new();
    for definition in DEFINITIONS {
        let Some(text) = own.get(definition.name) else {
            continue;
        };
        match definition.read(text).map_err(invalid)? {
            Value::Number(number) => interval = Some(number),
            Value::List(items) if definition.name == "match" => patterns = items,
            _ => {}
        }
    }
    let (least, most) = METRICS_INTERVAL_MS;
    if let Some(interval) = interval.filter(|ms| !(least..=most).contains(ms)) {
        return Err(refuse(format!(
            "Invalid value {interval} for interval.ms, interval must be between {least} and {most} \
             (1 hour)"
        )));
    }
    match patterns.iter().find(|pattern| !is_pattern(pattern)) {
        Some(bad) => Err(invalid(format!("Illegal client matching pattern: {bad}"))),
        None => Ok(()),
    }
}

/// True for `key=regular expression`.
fn is_pattern(text: &str) -> bool {
    let mut parts = text.trim_end_matches('=').split('=');
    let (Some(key), Some(pattern), None) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    MATCH_KEYS.contains(&trim(key)) && is_java_regex(trim(pattern))
}

/// Brokers match with Java's engine, which knows look-around, back references, possessive
/// quantifiers and more escapes. A pattern that this crate cannot read is taken when it uses one of
/// those: better a pattern that a broker ignores than a valid one refused.
///
/// It is read and not compiled: a few bytes can take a second to compile, and a request has room
/// for thousands of patterns.
fn is_java_regex(pattern: &str) -> bool {
    use ast::ErrorKind::{CaptureLimitExceeded, NestLimitExceeded};
    match ast::parse::Parser::new().parse(pattern) {
        Ok(_) => true,
        Err(error) => {
            let limit = matches!(error.kind(), CaptureLimitExceeded | NestLimitExceeded(_));
            limit || uses_java_only_syntax(pattern)
        }
    }
}

fn uses_java_only_syntax(pattern: &str) -> bool {
    let escape = |text: &str| text.starts_with(|c: char| "123456789kGZRXQEhHvV".contains(c));
    [
        "(?=", "(?!", "(?<=", "(?<!", "(?>", "*+", "++", "?+", "}+", "&&",
    ]
    .iter()
    .any(|part| pattern.contains(part))
        || pattern.split('\\').skip(1).any(escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_a_known_key_and_a_regular_expression() {
        for good in [
            "client_id=.*",
            " client_software_name = a|b ",
            "client_id=(?!x).*",
            "client_id=(a)\\1",
            "client_id=\\p{Lu}+",
        ] {
            assert!(is_pattern(good), "{good}");
        }
        for bad in [
            "",
            "client_id",
            "client_id=",
            "x=1",
            "client_id=[",
            "client_id=a=b",
        ] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }

    /// Their compilation would take minutes.
    #[test]
    fn thousands_of_heavy_patterns_are_read_and_not_compiled() {
        let nested = format!("{}a{}", "(".repeat(9_000), ")".repeat(9_000));
        let heavy = r"(?i)(\w{20}\W{20})".repeat(100);
        assert!(is_pattern(&format!("client_id={nested}")));
        for number in 0..3_000 {
            assert!(is_pattern(&format!("client_id={heavy}{number}")));
        }
        assert!(!is_pattern(&format!("client_id={heavy}[")));
    }

    #[test]
    fn refusals_have_the_code_of_their_kind() {
        let own = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let code = |name: &str, own| validate(name, &own).map_err(|error| error.code);
        assert_eq!(code("s", own("interval.ms", "100")), Ok(()));
        assert_eq!(
            code("", own("interval.ms", "100")),
            Err(ErrorCode::InvalidRequest)
        );
        assert_eq!(
            code("s", own("interval.ms", "99")),
            Err(ErrorCode::InvalidRequest)
        );
        assert_eq!(
            code("s", own("interval.ms", "x")),
            Err(ErrorCode::InvalidConfig)
        );
        assert_eq!(
            code("s", own("metrics", "a,,b")),
            Err(ErrorCode::InvalidConfig)
        );
        assert_eq!(code("s", own("metrics", "a,a")), Ok(()));
        assert_eq!(code("s", own("nosuch", "")), Err(ErrorCode::InvalidRequest));
    }
}
