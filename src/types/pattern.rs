//! Regular expressions that an operator writes.

use regex::Regex;

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

#[cfg(test)]
mod tests {
    use super::whole;

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
