//! Texts as values, with the rules of Java's ConfigDef.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::keys::{Initial, Key, Kind, Rule};
use super::voters;
use crate::types::quote;

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Number(i64),
    Double(f64),
    /// STRING, PASSWORD and CLASS.
    Text(String),
    List(Vec<String>),
}

/// A value and whether duplicates were taken out of its list.
#[derive(Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) value: Value,
    pub(crate) duplicates: bool,
}

/// `text` as a value of `key`, or the rule that it breaks.
pub(crate) fn parse(key: &Key, text: &str) -> Result<Parsed, String> {
    // What Java's String.trim cuts: every character up to the blank.
    let text = text.trim_matches(|c| c <= ' ');
    let mut value = typed(key.kind, text).map_err(|rule| match numbers(key) {
        Some((least, most)) if is_whole(text) => format!("must be from {least} to {most}"),
        _ => rule,
    })?;
    let mut duplicates = false;
    if let (Value::List(entries), Rule::List { .. }) = (&mut value, key.rule) {
        let before = entries.len();
        let mut seen = HashSet::with_capacity(before);
        entries.retain(|entry| seen.insert(identity(key, entry)));
        duplicates = entries.len() < before;
    }
    obey(key.rule, &value).map_err(|rule| match (numbers(key), key.kind) {
        // A range that its type ends is told as what it is, whichever end was passed.
        (Some((least, most)), Kind::Short | Kind::Int) => format!("must be from {least} to {most}"),
        _ => rule,
    })?;
    Ok(Parsed { value, duplicates })
}

/// Which whole numbers a key takes, both ends included: its rule's within its type's. `None` for a
/// key without numbers, or with a rule that is more than a range.
pub(crate) fn numbers(key: &Key) -> Option<(i64, i64)> {
    let (least, most) = of_type(key.kind)?;
    match key.rule {
        Rule::Any => Some((least, most)),
        Rule::AtLeast(own) => Some((own.max(least), most)),
        Rule::Between(own, end) => Some((own.max(least), end.min(most))),
        _ => None,
    }
}

/// Which whole numbers a type has; `None` for one without.
pub(crate) fn of_type(kind: Kind) -> Option<(i64, i64)> {
    match kind {
        Kind::Short => Some((i16::MIN.into(), i16::MAX.into())),
        Kind::Int => Some((i32::MIN.into(), i32::MAX.into())),
        Kind::Long => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

/// Whether a text is a whole number, be it too large for every type.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value of a key that nothing sets. `Null` for one that is required.
pub(crate) fn initial(key: &Key) -> Value {
    match key.initial {
        Initial::Required | Initial::Null => Value::Null,
        Initial::Text(text) => typed(key.kind, text).unwrap_or(Value::Null),
    }
}

fn typed(kind: Kind, text: &str) -> Result<Value, String> {
    let number = |least: i64, most: i64, name: &str| match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(Value::Number(number)),
        Ok(_) => Err(format!("must be from {least} to {most}, as {name}")),
        Err(_) => Err(format!("must be a whole number, as {name}")),
    };
    match kind {
        Kind::Boolean if text.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
        Kind::Boolean if text.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
        Kind::Boolean => Err("must be true or false".to_owned()),
        Kind::Short => number(i16::MIN.into(), i16::MAX.into(), "a 16-bit number"),
        Kind::Int => number(i32::MIN.into(), i32::MAX.into(), "a 32-bit number"),
        Kind::Long => number(i64::MIN, i64::MAX, "a 64-bit number"),
        Kind::Double => double(text)
            .map(Value::Double)
            .ok_or_else(|| "must be a number".to_owned()),
        Kind::List => Ok(Value::List(list(text))),
        Kind::String | Kind::Password | Kind::Class => Ok(Value::Text(text.to_owned())),
    }
}

/// What two entries of a list must not share: of directories the path, however it is spelled with
/// slashes.
fn identity(key: &Key, entry: &str) -> OsString {
    match key.name {
        "log.dir" | "log.dirs" => Path::new(entry).components().collect::<PathBuf>().into(),
        _ => entry.into(),
    }
}

/// Java's Double.parseDouble: an `f` or `d` may follow; infinity and NaN have one spelling.
fn double(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    match digits.trim_start_matches(['+', '-']) {
        "Infinity" | "NaN" => text.parse().ok(),
        unsigned if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            digits.parse().ok()
        }
        _ => None,
    }
}

/// Entries between commas without the blanks around them. An empty text has none; an empty entry
/// stays, for the rule to refuse it.
pub(crate) fn list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
    text.split(',')
        .map(|entry| entry.trim_matches(blank).to_owned())
        .collect()
}

fn obey(rule: Rule, value: &Value) -> Result<(), String> {
    match (rule, value) {
        (Rule::AtLeast(least), Value::Number(number)) if *number < least => {
            Err(format!("must be at least {least}"))
        }
        (Rule::Between(least, most), Value::Number(number)) if !(least..=most).contains(number) => {
            Err(format!("must be from {least} to {most}"))
        }
        // Java compares, so that NaN passes as it does there.
        (Rule::BetweenDoubles(least, most), Value::Double(number))
            if *number < least || *number > most =>
        {
            Err(format!("must be from {least} to {most}"))
        }
        (Rule::GzipLevel, Value::Number(number)) if *number != -1 && !(1..=9).contains(number) => {
            Err("must be from 1 to 9, or -1".to_owned())
        }
        (Rule::OneOf(texts), Value::Text(text)) if !texts.contains(&text.as_str()) => {
            Err(format!("must be one of {}", texts.join(", ")))
        }
        (Rule::OneOfAnyCase(texts), Value::Text(text))
            if !texts.iter().any(|one| one.eq_ignore_ascii_case(text)) =>
        {
            Err(format!("must be one of {}", texts.join(", ")))
        }
        (Rule::NotEmpty, Value::Text(text)) if text.is_empty() => {
            Err("must not be empty".to_owned())
        }
        (Rule::List { empty, of, .. }, Value::List(entries)) => obey_list(empty, of, entries),
        (Rule::Voters, Value::List(entries)) => voters::parse(entries).map(drop),
        (Rule::Servers, Value::List(entries)) => voters::parse_servers(entries).map(drop),
        _ => Ok(()),
    }
}

fn obey_list(empty: bool, of: &[&str], entries: &[String]) -> Result<(), String> {
    if entries.is_empty() && !empty {
        return Err("must have at least one entry".to_owned());
    }
    if entries.iter().any(String::is_empty) {
        return Err("must not have an empty entry".to_owned());
    }
    match entries
        .iter()
        .find(|entry| !of.is_empty() && !of.contains(&entry.as_str()))
    {
        Some(entry) => {
            let (entry, known) = (quote(entry), of.join(", "));
            Err(format!("has {entry}, which is none of {known}"))
        }
        None => Ok(()),
    }
}

impl Value {
    /// As Java writes it: in DescribeConfigs, and as the default of a topic config. `None` is null.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Boolean(value) => Some(value.to_string()),
            Self::Number(value) => Some(value.to_string()),
            Self::Double(value) => Some(java_double(*value)),
            Self::Text(value) => Some(value.clone()),
            Self::List(entries) => Some(entries.join(",")),
        }
    }
}

/// Java's Double.toString: plain from 0.001 to 10,000,000, else one digit before the point.
fn java_double(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "Infinity" };
        return format!("{}{name}", if value < 0.0 { "-" } else { "" });
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::super::keys::find;
    use super::*;

    fn value(key: &str, text: &str) -> Result<Value, String> {
        parse(find(key).unwrap(), text).map(|parsed| parsed.value)
    }

    #[test]
    fn numbers_are_trimmed_and_keep_their_range() {
        assert_eq!(value("node.id", " +7\t"), Ok(Value::Number(7)));
        for outside in [
            "-1",
            "-5",
            "2147483648",
            "99999999999",
            "99999999999999999999",
        ] {
            let rule = value("node.id", outside).unwrap_err();
            assert_eq!(rule, "must be from 0 to 2147483647", "{outside}");
        }
        let low = value("metadata.log.max.snapshot.interval.ms", "-1").unwrap_err();
        assert_eq!(low, "must be at least 0");
        for text in ["", "1.0", "1_000", "0x1", "1s"] {
            assert!(
                value("node.id", text).unwrap_err().contains("whole number"),
                "{text}"
            );
        }
        assert!(value("sasl.login.refresh.buffer.seconds", "32768").is_err());
        let long = value("metadata.log.segment.ms", "9223372036854775807");
        assert_eq!(long, Ok(Value::Number(i64::MAX)));
    }

    #[test]
    fn booleans_take_any_case_and_nothing_else() {
        assert_eq!(
            value("delete.topic.enable", "TRUE"),
            Ok(Value::Boolean(true))
        );
        assert_eq!(
            value("delete.topic.enable", "False "),
            Ok(Value::Boolean(false))
        );
        for text in ["", "yes", "1", "t"] {
            assert!(value("delete.topic.enable", text).is_err(), "{text}");
        }
    }

    #[test]
    fn doubles_read_as_in_java() {
        let ratio = "log.cleaner.min.cleanable.ratio";
        for (text, number) in [("0.25", 0.25), (".5f", 0.5), ("1E-1", 0.1), ("+1d", 1.0)] {
            assert_eq!(value(ratio, text), Ok(Value::Double(number)), "{text}");
        }
        for text in ["", "inf", "nan", "infinity", "1.5", "-0.1", "abc"] {
            assert!(value(ratio, text).is_err(), "{text}");
        }
    }

    #[test]
    fn doubles_print_as_in_java() {
        let cases = [
            (0.5, "0.5"),
            (1e-4, "1.0E-4"),
            (f64::MAX, "1.7976931348623157E308"),
            (12_345_678.0, "1.2345678E7"),
            (100.0, "100.0"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, text) in cases {
            assert_eq!(java_double(number), text);
        }
    }

    #[test]
    fn lists_lose_blanks_and_duplicates() {
        let parsed = parse(find("log.dirs").unwrap(), " /a , /b,/a ").unwrap();
        assert!(parsed.duplicates);
        assert_eq!(
            parsed.value,
            Value::List(vec!["/a".to_owned(), "/b".to_owned()])
        );
        let spelled = parse(find("log.dirs").unwrap(), "/a,/b/,/a/,//b,/a/.,a").unwrap();
        assert!(spelled.duplicates);
        assert_eq!(
            spelled.value,
            Value::List(["/a", "/b/", "a"].map(str::to_owned).into())
        );
        let roles = parse(find("process.roles").unwrap(), "controller,controller/");
        assert!(roles.is_err(), "no path is a role");
        assert!(value("log.dirs", "").unwrap_err().contains("at least one"));
        assert!(
            value("log.dirs", "/a,,/b")
                .unwrap_err()
                .contains("empty entry")
        );
        assert!(
            value("process.roles", "banana")
                .unwrap_err()
                .contains("banana")
        );
        assert_eq!(value("metric.reporters", ""), Ok(Value::List(Vec::new())));
    }
}
