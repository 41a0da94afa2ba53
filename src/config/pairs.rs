//! What a file and its overrides set, before it is read as typed values.

use std::collections::BTreeMap;

/// What one key is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The text as written. Findings show it, so that they never show what a provider gave.
    pub(crate) written: String,
    /// The text with every `${...}` replaced.
    pub(crate) text: String,
}

/// Keys with what they are set to.
pub(crate) type Pairs = BTreeMap<String, Entry>;

/// The pairs of a file with the overrides over them, and the keys that the file sets twice with
/// different values. The last one wins.
pub(crate) fn merge(
    file: Vec<(String, String)>,
    overrides: Vec<(String, String)>,
) -> (Pairs, Vec<String>) {
    let mut pairs = Pairs::new();
    let mut twice = Vec::new();
    for (key, value) in file {
        let entry = Entry {
            text: value.clone(),
            written: value,
        };
        let new = entry.clone();
        if pairs
            .insert(key.clone(), entry)
            .is_some_and(|old| old != new)
            && !twice.contains(&key)
        {
            twice.push(key);
        }
    }
    for (key, value) in overrides {
        let entry = Entry {
            text: value.clone(),
            written: value,
        };
        pairs.insert(key, entry);
    }
    (pairs, twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_wins_and_overrides_beat_the_file() {
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        let file = vec![
            pair("a", "1"),
            pair("b", "1"),
            pair("a", "2"),
            pair("b", "1"),
        ];
        let (pairs, twice) = merge(file, vec![pair("b", "3")]);
        assert_eq!(pairs["a"].text, "2");
        assert_eq!(pairs["b"].text, "3");
        assert_eq!(twice, ["a"]);
    }
}
