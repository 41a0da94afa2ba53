//! The text of a `server.properties` file as pairs, in the order of the file.
//!
//! The format is that of Java's `Properties.load`: `=`, `:` or blanks between key and value, `\` at
//! a line's end continues it, `\uXXXX` escapes, `#` and `!` comments, blanks at the end of a value
//! kept. Server files are Latin-1, the files of a config provider UTF-8.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use java_properties::{LineContent, PropertiesIter};

/// Larger files are refused: no configuration is this long, and the path may be a device.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;

/// How bytes become characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Latin1,
    Utf8,
}

/// A text that is no properties file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The line, from 1; `None` when the bytes are no text at all.
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
}

/// `line 3: what`.
impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The pairs of `bytes`, duplicates included.
pub(crate) fn parse(bytes: &[u8], charset: Charset) -> Result<Vec<(String, String)>, Malformed> {
    let text = match charset {
        Charset::Latin1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        Charset::Utf8 => String::from_utf8(bytes.to_vec()).map_err(|error| Malformed {
            line: None,
            what: format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()),
        })?,
    };
    let text = without_comments(&text);
    let lines = PropertiesIter::new_with_encoding(text.as_bytes(), encoding_rs::UTF_8);
    let mut pairs = Vec::new();
    for line in lines {
        let line = line.map_err(|error| Malformed {
            line: error.line_number(),
            what: "\\u is not followed by four hexadecimal digits of a character".to_owned(),
        })?;
        if let LineContent::KVPair(key, value) = line.consume_content() {
            pairs.push((key, value));
        }
    }
    Ok(pairs)
}

/// Blanks out comment lines, because the library decodes escapes in them and would refuse
/// `# c:\users`, and drops a backslash at the very end, which Java takes for nothing.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut continued = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let comment = !continued && {
            let start = line.trim_start_matches([' ', '\t', '\x0c']);
            start.starts_with(['#', '!'])
        };
        if comment {
            continued = false;
        } else {
            let slashes = line.len() - line.trim_end_matches('\\').len();
            continued = slashes % 2 == 1;
            let dangling = continued && after.is_empty();
            kept.push_str(if dangling {
                &line[..line.len() - 1]
            } else {
                line
            });
        }
        let ending = if after.starts_with("\r\n") {
            2
        } else {
            after.len().min(1)
        };
        kept.push_str(&after[..ending]);
        rest = &after[ending..];
    }
    kept
}

/// The bytes of a file that is not larger than [`FILE_BYTES_MAX`], else why not.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

/// The pairs of `--override` arguments. As in Java a missing value is an empty one.
pub(crate) fn overrides(arguments: &[String]) -> Vec<(String, String)> {
    arguments
        .iter()
        .filter(|argument| !argument.is_empty())
        .map(|argument| match argument.split_once('=') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => (argument.clone(), String::new()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> Vec<(String, Vec<u8>, Option<serde_json::Value>)> {
        let text = std::fs::read_to_string("fixtures/4.4.0/config/properties.tsv").unwrap();
        let rows = text.lines().skip(1).map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let input: String = serde_json::from_str(fields[1]).unwrap();
            let bytes = input.chars().map(|c| u8::try_from(u32::from(c)).unwrap());
            let pairs = (fields[2] != "refused").then(|| serde_json::from_str(fields[2]).unwrap());
            (fields[0].to_owned(), bytes.collect(), pairs)
        });
        rows.collect()
    }

    /// Java accepts the two halves of a surrogate pair as two escapes; a Rust text cannot hold a
    /// half, and the library decodes escape by escape.
    const DIFFERENT: [&str; 1] = ["surrogate pair"];

    #[test]
    fn every_text_gives_the_pairs_that_java_gives() {
        for (name, bytes, expected) in fixture() {
            let pairs = parse(&bytes, Charset::Latin1).ok().map(|pairs| {
                let map: serde_json::Map<_, _> = pairs
                    .into_iter()
                    .map(|(key, value)| (key, value.into()))
                    .collect();
                serde_json::Value::Object(map)
            });
            assert_eq!(
                pairs != expected,
                DIFFERENT.contains(&name.as_str()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_malformed_escape_names_its_line() {
        let error = parse(b"a=1\n\nb=\\u12", Charset::Latin1).unwrap_err();
        assert_eq!(error.line, Some(3));
    }

    #[test]
    fn a_file_that_is_not_utf8_is_refused_where_utf8_is_asked() {
        let error = parse(b"a=\xff", Charset::Utf8).unwrap_err();
        assert_eq!(error.what, "byte 2 is not UTF-8");
    }

    #[test]
    fn overrides_split_at_the_first_equals_sign() {
        let given = ["a=b=c", "d", "", "=e"].map(str::to_owned);
        let pairs = overrides(&given);
        let expected = [("a", "b=c"), ("d", ""), ("", "e")];
        assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large");
        std::fs::write(&path, vec![b'#'; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().contains("larger than"));
    }
}
