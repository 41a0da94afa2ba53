//! The order in which Java's hash maps give their keys. Where an answer or a log of the reference
//! depends on it, so does ours: which of several wrong items is told, in what order records stand.

/// What `new HashMap()` starts with.
pub const CAPACITY_DEFAULT: usize = 16;

/// `String.hashCode` of Java: over UTF-16 code units.
#[must_use]
pub fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// Sorts distinct items as a `HashMap` gives them into which they were put one after the other.
/// `hash` is the `hashCode` of an item's key. (Java keeps eight or more keys that fall together in
/// large maps in another order; nobody meets that by chance.)
pub fn sort_as_hashed<T>(items: &mut [T], hash: impl Fn(&T) -> i32) {
    let buckets = grown(CAPACITY_DEFAULT, items.len());
    items.sort_by_key(|item| bucket(hash(item), buckets));
}

/// How many buckets a `HashMap` of `buckets` of them has once it holds `len` keys: it doubles them
/// beyond three quarters.
#[must_use]
pub fn grown(mut buckets: usize, len: usize) -> usize {
    while len > buckets * 3 / 4 {
        buckets *= 2;
    }
    buckets
}

/// The bucket of a key with this `hashCode` among `buckets` of them, a power of two.
#[must_use]
pub fn bucket(hash: i32, buckets: usize) -> usize {
    let hash = hash.cast_unsigned();
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `jshell` prints of `"...".hashCode()` and of `new HashMap<>` with these keys.
    #[test]
    fn strings_are_hashed_and_ordered_as_by_java() {
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("metadata.version"), 1_098_778_905);
        assert_eq!(string_hash("\u{1f600}"), 1_772_899);
        assert_eq!(string_hash("\u{1f600}x"), 54_959_989);
        let mut names = [
            "metadata.version",
            "kraft.version",
            "transaction.version",
            "group.version",
            "eligible.leader.replicas.version",
            "share.version",
            "streams.version",
        ];
        sort_as_hashed(&mut names, |name| string_hash(name));
        let expected = [
            "group.version",
            "kraft.version",
            "metadata.version",
            "share.version",
            "streams.version",
            "transaction.version",
            "eligible.leader.replicas.version",
        ];
        assert_eq!(names, expected);
        let mut numbers: Vec<String> = (0..20).map(|n| format!("topic-{n}")).collect();
        sort_as_hashed(&mut numbers, |name| string_hash(name));
        let numbers: Vec<&str> = numbers.iter().map(|name| &name["topic-".len()..]).collect();
        let expected = "6 7 8 9 0 1 2 3 10 4 11 5 12 13 14 15 16 17 18 19";
        assert_eq!(numbers.join(" "), expected);
    }
}
