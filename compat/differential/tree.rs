//! Any message as a JSON value, by way of its debug form: one walk compares all messages.

use std::fmt::{Debug, Write};
use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value, json};

/// Fields for what the reader of a message does not know: shown when there is any.
const UNKNOWN: [&str; 2] = ["unknown_tagged_fields", "unknown_tags"];

/// The value; an error when the debug form is not understood.
pub(crate) fn of(message: &impl Debug) -> Result<Value, String> {
    let text = format!("{message:?}");
    let mut reader = Reader {
        chars: text.chars().peekable(),
    };
    let value = reader.value();
    match reader.chars.next() {
        None => value.ok_or_else(|| format!("not understood: {text}")),
        Some(_) => Err(format!("not understood to its end: {text}")),
    }
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    fn spaces(&mut self) {
        while self.chars.next_if(|c| *c == ' ').is_some() {}
    }

    fn take(&mut self, wanted: char) -> bool {
        self.spaces();
        self.chars.next_if_eq(&wanted).is_some()
    }

    fn value(&mut self) -> Option<Value> {
        self.spaces();
        match self.chars.peek()? {
            '"' => self.string(false).map(Value::String),
            '[' => self.list('[', ']'),
            '{' => self.fields(),
            _ => self.word(),
        }
    }

    /// A number, an identifier, a uuid, a byte string; or a name with its fields behind it.
    fn word(&mut self) -> Option<Value> {
        let mut word = String::new();
        let part_of_it = |c: &char| c.is_alphanumeric() || "_-.+".contains(*c);
        while let Some(c) = self.chars.next_if(part_of_it) {
            word.push(c);
        }
        if word == "b" && self.chars.peek() == Some(&'"') {
            return self.string(true).map(Value::String);
        }
        match self.chars.peek().copied() {
            Some('(') => match self.list('(', ')')? {
                Value::Array(mut one) if one.len() == 1 => one.pop(),
                more => Some(more),
            },
            Some(' ') if self.chars.clone().nth(1) == Some('{') => self.fields(),
            _ if word == "None" => Some(Value::Null),
            _ if word.is_empty() => None,
            _ => Some(match serde_json::from_str(&word) {
                Ok(number @ (Value::Number(_) | Value::Bool(_))) => number,
                _ => Value::String(word),
            }),
        }
    }

    fn list(&mut self, open: char, close: char) -> Option<Value> {
        let mut items = Vec::new();
        self.take(open).then_some(())?;
        while !self.take(close) {
            items.push(self.value()?);
            self.take(',');
        }
        Some(Value::Array(items))
    }

    /// Fields in braces.
    fn fields(&mut self) -> Option<Value> {
        let mut fields = Map::new();
        self.take('{').then_some(())?;
        while !self.take('}') {
            self.spaces();
            let mut name = String::new();
            while let Some(c) = self.chars.next_if(|c| !":,}".contains(*c)) {
                name.push(c);
            }
            self.take(':').then_some(())?;
            let value = self.value()?;
            self.take(',');
            let empty = value == json!({}) || value == json!([]);
            if !(empty && UNKNOWN.contains(&name.as_str())) {
                fields.insert(name, value);
            }
        }
        Some(Value::Object(fields))
    }

    /// The text of a string, or the digits of a string of bytes.
    fn string(&mut self, bytes: bool) -> Option<String> {
        let mut text = String::new();
        let mut push = |c: char| {
            if bytes {
                write!(text, "{:02x}", u32::from(c)).expect("strings grow");
            } else {
                text.push(c);
            }
        };
        self.chars.next_if_eq(&'"')?;
        loop {
            match self.chars.next()? {
                '"' => return Some(text),
                '\\' => push(self.escape()?),
                other => push(other),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.chars.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            'x' => {
                let digits = [self.chars.next()?, self.chars.next()?];
                self.code(&String::from_iter(digits))?
            }
            'u' => {
                let digits: String = self
                    .chars
                    .by_ref()
                    .skip(1)
                    .take_while(|c| *c != '}')
                    .collect();
                self.code(&digits)?
            }
            other => other,
        })
    }

    fn code(&self, digits: &str) -> Option<char> {
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }
}

#[test]
fn debug_forms_of_all_kinds_are_read() {
    use bytes::Bytes;
    #[derive(Debug)]
    #[expect(dead_code, reason = "read through Debug")]
    struct Inner(Option<i32>, &'static str);
    #[derive(Debug)]
    #[expect(dead_code, reason = "read through Debug")]
    struct Outer {
        id: uuid::Uuid,
        rate: f64,
        none: Option<i32>,
        empty: Vec<i32>,
        inner: Vec<Inner>,
        bytes: Bytes,
        unknown_tagged_fields: std::collections::BTreeMap<i32, Bytes>,
        last: bool,
    }
    let outer = Outer {
        id: uuid::Uuid::from_u128(7),
        rate: -1.5,
        none: None,
        empty: Vec::new(),
        inner: vec![Inner(Some(-1), "a \"b\", \\ \u{1}é")],
        bytes: Bytes::from_static(&[0, 255, b'a', b'"']),
        unknown_tagged_fields: std::collections::BTreeMap::new(),
        last: true,
    };
    let expected = json!({
        "id": "00000000-0000-0000-0000-000000000007",
        "rate": -1.5,
        "none": null,
        "empty": [],
        "inner": [[-1, "a \"b\", \\ \u{1}é"]],
        "bytes": "00ff6122",
        "last": true,
    });
    assert_eq!(of(&outer).expect("understood"), expected);
}
