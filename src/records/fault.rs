//! Why bytes are not a record, or a record cannot be bytes.

use std::error::Error;
use std::fmt;

/// What is wrong with a record value, or with a value for the version it shall be written at.
///
/// None of these is ever skipped: a replica that ignores a record it does not know has a wrong
/// image (KIP-631, "Record format versions").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// A control record's key is not `version 0, type`, in four bytes.
    BadControlKey,
    /// More elements are announced than the remaining bytes can hold.
    CountTooLarge(u32),
    /// A field has a value other than its default, and the version has no place for it.
    FieldNotInVersion {
        /// The record or structure.
        structure: &'static str,
        /// The field.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A string that is not UTF-8.
    InvalidUtf8,
    /// Bytes behind the end of the value, or of a tagged field.
    LeftOver(usize),
    /// A null where the format has none.
    NullNotAllowed,
    /// A tag that is not larger than the one before it.
    TagNotAscending(u32),
    /// A tag that this structure defines, but not at this version.
    TagNotInVersion(u32),
    /// A tagged field that would be written at a version without tagged fields, or twice.
    TagNotWritable(u32),
    /// A value that does not fit the length in front of it (more than 32767 bytes of text at a
    /// version with short lengths, or 2 GiB elsewhere).
    TooLong(usize),
    /// The bytes end inside a field.
    Truncated,
    /// A frame version other than 1.
    UnknownFrame(u32),
    /// No record has this api key.
    UnknownType(u32),
    /// The record exists, but not at this version.
    UnknownVersion {
        /// The record's name.
        structure: &'static str,
        /// The version found.
        version: u32,
    },
    /// A variable-length integer of more than 32 bits.
    VarintTooLong,
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadControlKey => f.write_str("malformed control record key"),
            Self::CountTooLarge(count) => {
                write!(
                    f,
                    "{count} elements announced, more than the bytes can hold"
                )
            }
            Self::FieldNotInVersion {
                structure,
                field,
                version,
            } => write!(
                f,
                "{structure} version {version} has no field {field}, which has a non-default value"
            ),
            Self::InvalidUtf8 => f.write_str("a string is not UTF-8"),
            Self::LeftOver(count) => write!(f, "{count} bytes left over"),
            Self::NullNotAllowed => f.write_str("null in a field that cannot be null"),
            Self::TagNotAscending(tag) => write!(f, "tag {tag} is out of order"),
            Self::TagNotInVersion(tag) => write!(f, "tag {tag} is not valid at this version"),
            Self::TagNotWritable(tag) => write!(f, "tag {tag} cannot be written"),
            Self::TooLong(length) => write!(f, "{length} is too long for the format"),
            Self::Truncated => f.write_str("the bytes end inside a field"),
            Self::UnknownFrame(version) => write!(f, "unknown frame version {version}"),
            Self::UnknownType(key) => write!(f, "unknown metadata record type {key}"),
            Self::UnknownVersion { structure, version } => {
                write!(f, "{structure} has no version {version}")
            }
            Self::VarintTooLong => f.write_str("a variable-length integer exceeds 32 bits"),
        }
    }
}

impl Error for RecordFault {}
