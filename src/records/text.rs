//! JSON text as Kafka's tools print it: without blanks, floating-point numbers in Java's notation.

use std::fmt::Write as _;

use serde_json::Value;

/// The text of `value`. Values of this room are only as deep as the declarations of messages.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value);
    out
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => put_double(out, double),
            None => out.push_str(&number.to_string()),
        },
        Value::String(string) => put_string(out, string),
        Value::Array(items) => put_list(out, ['[', ']'], items.iter(), put),
        Value::Object(fields) => put_list(out, ['{', '}'], fields.iter(), |out, (key, value)| {
            put_string(out, key);
            out.push(':');
            put(out, value);
        }),
    }
}

fn put_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = T>,
    mut put_item: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        put_item(out, item);
    }
    out.push(close);
}

fn put_string(out: &mut String, string: &str) {
    out.push('"');
    for letter in string.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// The shortest digits that mean the number, in plain notation from 10^-3 up to below 10^7 and
/// with an exponent elsewhere, always with a digit behind the point (`Double.toString`).
fn put_double(out: &mut String, double: f64) {
    if double == 0.0 || (1e-3..1e7).contains(&double.abs()) {
        let _ = write!(out, "{double:?}");
        return;
    }
    let shortest = format!("{double:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    let _ = write!(out, "{digits}{point}E{exponent}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_the_notation_of_java() {
        for (double, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.001, "0.001"),
            (0.000_99, "9.9E-4"),
            (1_048_576.0, "1048576.0"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (-12_345_678.5, "-1.23456785E7"),
            (1e21, "1.0E21"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        ] {
            assert_eq!(text(&json!(double)), expected);
        }
        assert_eq!(text(&json!(10_000_000)), "10000000");
        assert_eq!(text(&json!(i64::MIN)), "-9223372036854775808");
    }

    #[test]
    fn strings_are_escaped_and_lists_have_no_blanks() {
        let value = json!({"a\"": ["\\\n\u{1b}é漢", null, true], "b": {}, "c": [], "d": false});
        assert_eq!(
            text(&value),
            r#"{"a\"":["\\\n\u001Bé漢",null,true],"b":{},"c":[],"d":false}"#
        );
    }
}
