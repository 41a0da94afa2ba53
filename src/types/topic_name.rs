//! What a topic's name may be made of.

/// Kafka's limit, in characters: the name is part of a directory's name on every broker.
pub const LENGTH_MAX: usize = 249;

/// ASCII letters and digits, `.`, `_` and `-`.
#[must_use]
pub const fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}
