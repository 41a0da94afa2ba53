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

/// How many characters the texts have that a part of a pattern matches: the fewest and the most.
type Lengths = (usize, usize);

/// Whether a pattern can match the whole name of a topic: 1 to 249 of the characters that one may
/// have. What is not looked at closely, as word boundaries, counts as possible; so does a pattern
/// that cannot be read, which [`whole`] tells.
#[must_use]
pub fn can_name_topics(pattern: &str) -> bool {
    let Ok(hir) = regex_syntax::parse(pattern) else {
        return true;
    };
    let found = lengths(&hir);
    found.is_some_and(|(least, most)| least <= LENGTH_MAX && most > 0)
}

/// Of texts of a topic name's characters; `None` when there is no such text.
fn lengths(hir: &Hir) -> Option<Lengths> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some((0, 0)),
        HirKind::Literal(literal) => {
            let fits = literal.0.iter().all(|byte| is_legal(*byte));
            fits.then_some((literal.0.len(), literal.0.len()))
        }
        HirKind::Class(class) => {
            let mut all = (b'!'..=b'~').filter(|own| is_legal(*own));
            let fits = all.any(|own| match class {
                Class::Unicode(class) => {
                    let mut ranges = class.iter();
                    ranges.any(|range| (range.start()..=range.end()).contains(&char::from(own)))
                }
                Class::Bytes(class) => {
                    let mut ranges = class.iter();
                    ranges.any(|range| (range.start()..=range.end()).contains(&own))
                }
            });
            fits.then_some((1, 1))
        }
        HirKind::Repetition(repeated) => {
            let times = |count: Option<u32>| count.map_or(usize::MAX, |count| count as usize);
            match lengths(&repeated.sub) {
                Some((least, most)) => Some((
                    least.saturating_mul(repeated.min as usize),
                    most.saturating_mul(times(repeated.max)),
                )),
                None => (repeated.min == 0).then_some((0, 0)),
            }
        }
        HirKind::Capture(group) => lengths(&group.sub),
        HirKind::Concat(parts) => in_a_row(parts),
        HirKind::Alternation(parts) => {
            let possible = parts.iter().filter_map(lengths);
            possible.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))
        }
    }
}

/// The begin of a text has nothing before it, its end nothing behind.
fn in_a_row(parts: &[Hir]) -> Option<Lengths> {
    let (mut least, mut most, mut is_over) = (0_usize, 0_usize, false);
    for part in parts {
        match part.kind() {
            HirKind::Look(Look::Start) if least > 0 => return None,
            HirKind::Look(Look::Start) => (least, most) = (0, 0),
            HirKind::Look(Look::End) => is_over = true,
            _ => {
                let (few, many) = lengths(part)?;
                if is_over && few > 0 {
                    return None;
                }
                least = least.saturating_add(few);
                most = most.saturating_add(if is_over { 0 } else { many });
            }
        }
    }
    Some((least, most))
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
