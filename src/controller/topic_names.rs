//! Which names a topic can have.

use std::borrow::Cow;

use crate::types::topic_name::{LENGTH_MAX, is_legal};

/// Characters of a refused name that the refusal shows.
const SHOWN_LENGTH_MAX: usize = 1_000;

/// A name as answers tell it that repeat it for every partition: of one that no topic can have, the
/// beginning.
pub(super) fn shown(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(LENGTH_MAX) {
        Some((cut, _)) => Cow::Owned(format!("{}...", &name[..cut])),
        None => Cow::Borrowed(name),
    }
}

/// Checks a topic's name: 1 to 249 of ASCII letters and digits, `.`, `_` and `-`, and not `.` or
/// `..`.
///
/// # Errors
/// The sentence for `INVALID_TOPIC_EXCEPTION`.
pub(super) fn check(name: &str) -> Result<(), String> {
    let too_long = name.encode_utf16().nth(LENGTH_MAX).is_some();
    // Enough to know it again; a name of megabytes is not told back.
    let name = match name.char_indices().nth(SHOWN_LENGTH_MAX) {
        Some((cut, _)) => &format!("{}...", &name[..cut]),
        None => name,
    };
    let reason = if name.is_empty() {
        "the empty string is not allowed".into()
    } else if name == "." {
        "'.' is not allowed".into()
    } else if name == ".." {
        "'..' is not allowed".into()
    } else if too_long {
        format!("the length of '{name}' is longer than the max allowed length {LENGTH_MAX}")
    } else if !name.bytes().all(is_legal) {
        format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        )
    } else {
        return Ok(());
    };
    Err(format!("Topic name is invalid: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_name_of_megabytes_is_refused_with_its_beginning() {
        let refusal = check(&"n".repeat(3 << 20)).unwrap_err();
        assert!(refusal.len() < 1_200 && refusal.contains("nnn..."));
    }

    #[test]
    fn names_at_the_edges() {
        for good in ["a", "A-9_.", "...", "__consumer_offsets", &"x".repeat(249)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a b", "a/b", "é", "a\0", &"x".repeat(250)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
