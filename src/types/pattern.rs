//! Regular expressions that an operator writes.

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::topic_name::{LENGTH_MAX, is_legal};

/// A regular expression that matches whole texts.
///
/// # Errors
/// What is wrong with it, and where, on one line: the rule of a finding.
pub fn whole(pattern: &str) -> Result<Regex, String> {
    // By itself first, so that places are those of the pattern as it is written.
    let (kind, offset) = match regex_syntax::parse(pattern) {
        Ok(_) => {
            let compiled = Regex::new(&format!("^(?:{pattern})$"));
            return compiled.map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "must be a regular expression, but this one takes too much memory".to_owned()
                }
                error => in_group(&error.to_string()),
            });
        }
        Err(regex_syntax::Error::Parse(error)) => {
            (error.kind().to_string(), error.span().start.column)
        }
        Err(regex_syntax::Error::Translate(error)) => {
            (error.kind().to_string(), error.span().start.column)
        }
        Err(_) => ("it cannot be read".to_owned(), 1),
    };
    Err(format!(
        "must be a regular expression, but at character {offset}: {kind}"
    ))
}

/// Of one that can be read by itself only: under `(?x)` a comment without an end of its line also
/// takes what stands behind the pattern. The parser draws the place first, and says why last.
fn in_group(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    let why = last.strip_prefix("error: ").unwrap_or(last);
    format!("must be a regular expression, also between ^(?: and )$, but there: {why}")
}

/// The texts that a part of a pattern matches, as far as it matters.
#[derive(Clone, Copy, Debug)]
struct Texts {
    /// The fewest characters.
    least: usize,
    /// The most.
    most: usize,
    /// Whether one of them has a character other than a dot.
    more_than_dots: bool,
}

impl Texts {
    const EMPTY: Self = Self {
        least: 0,
        most: 0,
        more_than_dots: false,
    };
}

/// Whether a pattern can match the whole name of a topic: 1 to 249 of the characters that one may
/// have, and not `.` or `..`. What is not looked at closely, as word boundaries, counts as
/// possible; so does a pattern that cannot be read, which [`whole`] tells.
#[must_use]
pub fn can_name_topics(pattern: &str) -> bool {
    let Ok(hir) = regex_syntax::parse(pattern) else {
        return true;
    };
    let dots_max = 2;
    texts(&hir).is_some_and(|found| {
        found.least <= LENGTH_MAX && (found.more_than_dots || found.most > dots_max)
    })
}

/// Of a topic name's characters; `None` when there is no such text.
fn texts(hir: &Hir) -> Option<Texts> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(Texts::EMPTY),
        HirKind::Literal(literal) => {
            let fits = literal.0.iter().all(|byte| is_legal(*byte));
            fits.then_some(Texts {
                least: literal.0.len(),
                most: literal.0.len(),
                more_than_dots: literal.0.iter().any(|byte| *byte != b'.'),
            })
        }
        HirKind::Class(class) => {
            let has = |own: u8| match class {
                Class::Unicode(class) => {
                    let mut ranges = class.iter();
                    ranges.any(|range| (range.start()..=range.end()).contains(&char::from(own)))
                }
                Class::Bytes(class) => {
                    let mut ranges = class.iter();
                    ranges.any(|range| (range.start()..=range.end()).contains(&own))
                }
            };
            let more_than_dots = (b'!'..=b'~').any(|own| is_legal(own) && own != b'.' && has(own));
            (more_than_dots || has(b'.')).then_some(Texts {
                least: 1,
                most: 1,
                more_than_dots,
            })
        }
        HirKind::Repetition(repeated) => {
            let times = |count: Option<u32>| count.map_or(usize::MAX, |count| count as usize);
            match texts(&repeated.sub) {
                Some(_) if repeated.max == Some(0) => Some(Texts::EMPTY),
                Some(one) => Some(Texts {
                    least: one.least.saturating_mul(repeated.min as usize),
                    most: one.most.saturating_mul(times(repeated.max)),
                    ..one
                }),
                None => (repeated.min == 0).then_some(Texts::EMPTY),
            }
        }
        HirKind::Capture(group) => texts(&group.sub),
        HirKind::Concat(parts) => in_a_row(parts),
        HirKind::Alternation(parts) => {
            let possible = parts.iter().filter_map(texts);
            possible.reduce(|one, two| Texts {
                least: one.least.min(two.least),
                most: one.most.max(two.most),
                more_than_dots: one.more_than_dots || two.more_than_dots,
            })
        }
    }
}

/// The begin of a text has nothing before it, its end nothing behind.
fn in_a_row(parts: &[Hir]) -> Option<Texts> {
    let (mut row, mut is_over) = (Texts::EMPTY, false);
    for part in parts {
        match part.kind() {
            HirKind::Look(Look::Start) if row.least > 0 => return None,
            HirKind::Look(Look::Start) => row = Texts::EMPTY,
            HirKind::Look(Look::End) => is_over = true,
            _ => {
                let next = texts(part)?;
                if is_over && next.least > 0 {
                    return None;
                }
                row.least = row.least.saturating_add(next.least);
                if !is_over {
                    row.most = row.most.saturating_add(next.most);
                    row.more_than_dots |= next.more_than_dots;
                }
            }
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::{can_name_topics, whole};

    #[test]
    fn a_pattern_that_no_name_of_a_topic_matches_is_known() {
        for possible in [
            "[a-z]+",
            ".*",
            "^team-.*$",
            "(a|b c)x?",
            "a{249}",
            "\\w+",
            "(?i)orders",
            "( )*a",
            "a\\b.*",
            "(",
            "\\.\\.\\.",
            "\\.+",
            "\\.?[.a]",
            "[.]{1,3}",
        ] {
            assert!(can_name_topics(possible), "{possible}");
        }
        for none in [
            "^$",
            "",
            "a b",
            "a/b",
            "[ /]+",
            "( )*",
            "a{250}",
            ".{300,}",
            "a^b",
            "a$b",
            "[^\\x00-\\x7f]+",
            "(a b|c d)",
            "\\.",
            "\\.\\.",
            "[.]{1,2}",
            "\\.|[.]\\.?",
            "\\.$a*",
            "a{0}\\.",
        ] {
            assert!(!can_name_topics(none), "{none}");
        }
    }

    #[test]
    fn a_pattern_matches_whole_texts_only() {
        let pattern = whole("a|ab").unwrap();
        assert!(pattern.is_match("ab"));
        assert!(!pattern.is_match("abc"));
        assert!(!pattern.is_match("ba"));
        assert!(whole("(?x)ab # c\n").unwrap().is_match("ab"));
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_told_as_it_is_and_on_one_line() {
        for (pattern, words) in [
            ("ab(", "but at character 3: unclosed group"),
            (
                "(?x)ab # c",
                "between ^(?: and )$, but there: unclosed group",
            ),
            ("[a-z]{1000}{1000}{10}", "takes too much memory"),
        ] {
            let rule = whole(pattern).unwrap_err();
            assert!(rule.ends_with(words), "{pattern}: {rule}");
            assert!(!rule.contains('\n'), "{pattern}: {rule}");
        }
    }
}
