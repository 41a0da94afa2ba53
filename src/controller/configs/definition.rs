//! One configuration key: its type, its default, and which values it takes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The type of a key's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// Text.
    String,
    /// 32 bits.
    Int,
    /// 16 bits.
    Short,
    /// 64 bits.
    Long,
    /// Floating point.
    Double,
    /// Texts between commas.
    List,
    /// The name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

impl Kind {
    /// The number in a DescribeConfigs response (KIP-569).
    #[must_use]
    pub const fn id(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }
}

/// A value that has the type of its key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Boolean`].
    Boolean(bool),
    /// Of the three integer types.
    Number(i64),
    /// Of [`Kind::Double`].
    Double(f64),
    /// Of [`Kind::List`].
    List(Vec<String>),
    /// Of the textual types.
    Text(String),
}

/// Which values of the type are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All.
    Any,
    /// Numbers from this one on, inclusive.
    AtLeast(i64),
    /// Numbers between these, both inclusive.
    Between(i64, i64),
    /// -1, or a number between these, both inclusive.
    BetweenOrMinusOne(i64, i64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list of some of these texts, each once; may be empty.
    ListOf(&'static [&'static str]),
    /// A list of texts that are not empty, each once; may be empty.
    UniqueList,
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` and an ISO 8601 duration (KIP-932).
    OffsetReset,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The key.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// The value when nothing is set, as text; `None` is null.
    pub default: Option<&'static str>,
    /// Which values are taken.
    pub check: Check,
}

impl Definition {
    /// Reads a value: of the right type, and one that the key takes.
    ///
    /// # Errors
    /// The sentence for `INVALID_CONFIG`.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let mut value = parse(self.kind, text).map_err(|reason| self.refuse(text, &reason))?;
        if let (Check::ListOf(_) | Check::UniqueList, Value::List(items)) = (self.check, &mut value)
        {
            // An entry that is there twice counts once (KIP-1161).
            let mut seen = BTreeSet::new();
            items.retain(|item| seen.insert(item.clone()));
        }
        match self.violation(&value) {
            None => Ok(value),
            Some(message) => Err(message),
        }
    }

    fn refuse(&self, shown: &str, reason: &str) -> String {
        format!(
            "Invalid value {shown} for configuration {}: {reason}",
            self.name
        )
    }

    fn violation(&self, value: &Value) -> Option<String> {
        match (self.check, value) {
            (Check::OneOf(allowed), Value::Text(text)) => self.not_one_of(text, allowed),
            (Check::ListOf(allowed), Value::List(items)) => self.bad_list(items, allowed),
            (Check::UniqueList, Value::List(items)) => self.bad_list(items, &[]),
            (Check::ThrottledReplicas, Value::List(items)) => self.bad_throttle(items),
            (Check::OffsetReset, Value::Text(text)) if !is_offset_reset(text) => {
                let reason = format!(
                    "Invalid value `{text}` for configuration {}. The value must be either \
                     'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
                    self.name
                );
                Some(self.refuse(text, &reason))
            }
            (check, Value::Number(number)) => {
                let reason = out_of_range(check, *number as f64)?;
                Some(self.refuse(&number.to_string(), &reason))
            }
            (check, Value::Double(number)) => {
                let reason = out_of_range(check, *number)?;
                Some(self.refuse(&java_double(*number), &reason))
            }
            _ => None,
        }
    }

    fn not_one_of(&self, text: &str, allowed: &[&str]) -> Option<String> {
        if allowed.contains(&text) {
            return None;
        }
        let reason = format!("String must be one of: {}", allowed.join(", "));
        Some(self.refuse(text, &reason))
    }

    fn bad_list(&self, items: &[String], allowed: &[&str]) -> Option<String> {
        let name = self.name;
        for item in items {
            if item.is_empty() {
                return Some(format!("Configuration '{name}' values must not be empty."));
            }
            if !allowed.is_empty()
                && let Some(message) = self.not_one_of(item, allowed)
            {
                return Some(message);
            }
        }
        None
    }

    fn bad_throttle(&self, items: &[String]) -> Option<String> {
        let is_pair = |item: &str| {
            let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            item.is_empty()
                || item
                    .split_once(':')
                    .is_some_and(|(left, right)| number(left) && number(right))
        };
        if items.iter().all(|item| is_pair(item)) || items.concat() == "*" {
            return None;
        }
        let reason = format!(
            "{} must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],...",
            self.name
        );
        Some(self.refuse(&format!("[{}]", items.join(", ")), &reason))
    }
}

/// A value as Java writes it after reading it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Double(number) => java_double(*number),
        Value::List(items) => items.join(","),
        Value::Text(text) => text.clone(),
    }
}

/// Blanks as Java's `String.trim` takes them.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|letter: char| letter <= ' ')
}

/// The parts of a list: between commas, blanks around them dropped; none of an empty text.
#[must_use]
pub fn list(text: &str) -> Vec<String> {
    let text = trim(text);
    if text.is_empty() {
        return Vec::new();
    }
    let blank = |letter: char| letter.is_ascii_whitespace() || letter == '\x0b';
    text.split(',')
        .map(|part| part.trim_matches(blank).to_owned())
        .collect()
}

fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    let trimmed = trim(text);
    let not_a_number = || format!("Not a number of type {}", kind.name());
    match kind {
        Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
        Kind::Boolean => Err("Expected value to be either true or false".into()),
        Kind::Short => trimmed
            .parse::<i16>()
            .map(|number| Value::Number(number.into()))
            .map_err(|_| not_a_number()),
        Kind::Int => trimmed
            .parse::<i32>()
            .map(|number| Value::Number(number.into()))
            .map_err(|_| not_a_number()),
        Kind::Long => trimmed
            .parse()
            .map(Value::Number)
            .map_err(|_| not_a_number()),
        Kind::Double => parse_double(trimmed)
            .map(Value::Double)
            .ok_or_else(not_a_number),
        Kind::List => Ok(Value::List(list(text))),
        Kind::String | Kind::Class | Kind::Password => Ok(Value::Text(trimmed.to_owned())),
    }
}

/// Java takes `NaN` and `Infinity` in this spelling only, and one letter of type at the end.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "NaN" || unsigned == "Infinity" {
        return text.parse().ok();
    }
    let number = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if number.bytes().all(plain) {
        number.parse().ok()
    } else {
        None
    }
}

fn out_of_range(check: Check, number: f64) -> Option<String> {
    // Limits are far below 2^53, where every integer is exact.
    match check {
        Check::AtLeast(min) | Check::Between(min, _) if number < min as f64 => {
            Some(format!("Value must be at least {min}"))
        }
        Check::Between(_, max) if number > max as f64 => {
            Some(format!("Value must be no more than {max}"))
        }
        Check::BetweenOrMinusOne(min, max)
            if number != -1.0 && (number < min as f64 || number > max as f64) =>
        {
            Some(format!(
                "Value must be between {min} and {max} or equal to -1"
            ))
        }
        _ => None,
    }
}

/// A number as Java's `Double.toString` shows it.
fn java_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .into();
    }
    let size = number.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{number:?}");
    }
    let shown = format!("{number:E}");
    match shown.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => shown,
    }
}

fn is_offset_reset(text: &str) -> bool {
    matches!(text, "latest" | "earliest")
        || text.strip_prefix("by_duration:").and_then(duration_sign) == Some(false)
}

/// Reads an ISO 8601 duration of days, hours, minutes and seconds, as Java does: `None` when it is
/// none, else whether it is below zero.
fn duration_sign(text: &str) -> Option<bool> {
    let mut rest = text;
    let mut negated = false;
    if let Some(unsigned) = rest.strip_prefix(['+', '-']) {
        negated = rest.starts_with('-');
        rest = unsigned;
    }
    rest = rest.strip_prefix(['P', 'p'])?;
    let (days, time) = match rest.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    let mut nanos: i128 = 0;
    let mut parts = 0;
    for (text, units) in [(days, "D"), (time, "HMS")] {
        let mut text = text;
        let mut units = units;
        while !text.is_empty() {
            let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
            let unit = text[end..].chars().next()?.to_ascii_uppercase();
            let at = units.find(unit)?;
            units = &units[at + 1..];
            nanos = nanos.checked_add(part_nanos(&text[..end], unit)?)?;
            text = &text[end + 1..];
            parts += 1;
        }
    }
    if parts == 0 {
        return None;
    }
    Some(if negated { nanos > 0 } else { nanos < 0 })
}

fn part_nanos(number: &str, unit: char) -> Option<i128> {
    let seconds: i128 = match unit {
        'D' => 86_400,
        'H' => 3_600,
        'M' => 60,
        _ => 1,
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if unit == 'S' && fraction.len() <= 9 => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut padded = String::from(fraction);
    let _ = write!(padded, "{:0<width$}", "", width = 9 - fraction.len());
    let fraction: i128 = padded.parse().ok()?;
    let negative = whole.starts_with('-');
    let whole = i128::from(whole.parse::<i64>().ok()?) * seconds * 1_000_000_000;
    Some(if negative {
        whole - fraction
    } else {
        whole + fraction
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: Kind, check: Check, text: &str) -> Option<String> {
        let definition = Definition {
            name: "k",
            kind,
            default: None,
            check,
        };
        definition.read(text).err()
    }

    #[test]
    fn values_are_read_as_java_reads_them() {
        let good = [
            (Kind::Int, " +7 "),
            (Kind::Int, "-2147483648"),
            (Kind::Long, "9223372036854775807"),
            (Kind::Short, "32767"),
            (Kind::Double, "1e3"),
            (Kind::Double, "-0.5d"),
            (Kind::Double, "NaN"),
            (Kind::Boolean, " TRUE"),
            (Kind::List, ""),
        ];
        for (kind, text) in good {
            assert_eq!(refusal(kind, Check::Any, text), None, "{kind:?} {text}");
        }
        let bad = [
            (Kind::Int, "2147483648"),
            (Kind::Int, ""),
            (Kind::Int, "1.0"),
            (Kind::Long, "0x10"),
            (Kind::Short, "40000"),
            (Kind::Double, "inf"),
            (Kind::Double, "nan"),
            (Kind::Double, ""),
            (Kind::Boolean, "yes"),
        ];
        for (kind, text) in bad {
            assert!(refusal(kind, Check::Any, text).is_some(), "{kind:?} {text}");
        }
    }

    #[test]
    fn lists_are_cut_at_commas_with_the_blanks_around_them() {
        assert_eq!(list(" a , b,c "), ["a", "b", "c"]);
        assert_eq!(list("a,,b,"), ["a", "", "b", ""]);
        assert!(list("  ").is_empty());
    }

    #[test]
    fn numbers_in_refusals_are_spelled_as_java_spells_them() {
        let shown = [
            (1.5, "1.5"),
            (2.0, "2.0"),
            (1e7, "1.0E7"),
            (1.25e-4, "1.25E-4"),
            (-12_345_678.0, "-1.2345678E7"),
            (0.0, "0.0"),
        ];
        for (number, text) in shown {
            assert_eq!(java_double(number), text);
        }
    }

    #[test]
    fn lists_of_choices_take_each_choice_once() {
        let check = Check::ListOf(&["compact", "delete"]);
        for good in ["", "delete", "compact , delete", "delete,delete"] {
            assert_eq!(refusal(Kind::List, check, good), None, "{good}");
        }
        for (bad, part) in [
            ("delete,", "must not be empty"),
            ("bogus", "String must be one of: compact, delete"),
        ] {
            let message = refusal(Kind::List, check, bad).unwrap();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn offset_reset_by_duration_takes_durations_that_are_not_negative() {
        for good in [
            "latest",
            "earliest",
            "by_duration:PT0S",
            "by_duration:P2DT3H4M5.678S",
            "by_duration:PT1H30M",
            "by_duration:-PT-1S",
        ] {
            assert_eq!(
                refusal(Kind::String, Check::OffsetReset, good),
                None,
                "{good}"
            );
        }
        for bad in [
            "",
            "none",
            "LATEST",
            "by_duration:",
            "by_duration:1h",
            "by_duration:P",
            "by_duration:PT",
            "by_duration:PT1S2H",
            "by_duration:-PT1S",
            "by_duration:PT1.5H",
        ] {
            assert!(
                refusal(Kind::String, Check::OffsetReset, bad).is_some(),
                "{bad}"
            );
        }
    }
}
