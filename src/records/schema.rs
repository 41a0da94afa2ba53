//! The declaration macro: one declaration per message gives its struct, defaults, codec for every
//! version, JSON form and random generator.
//!
//! A field is declared in Kafka's own notation, and fields stand in Kafka's order:
//!
//! ```text
//! /// Meaning.
//! name: Type, 2+;                               // versions 2 and up
//! name: Type, 0-3;                              // versions 0 to 3
//! name: Option<Vec<i32>>, 2+, tag 6;            // a tagged field (KIP-482)
//! name: i32, 0+, tag 1, default -2;             // with a default other than the type's own
//! name: i32, 5+, default -1, ignorable true;    // dropped, not refused, at older versions
//! ```
//!
//! `Option` marks a field that can be null. Tagged fields are left out of the bytes and of the
//! JSON when they have their default. Tagged fields that a structure does not know are kept as
//! bytes in `unknown_tags` and written again in their place, so a newer peer's record passes
//! through unchanged.

use bytes::Bytes;
use smallvec::SmallVec;

use super::fault::RecordFault;
use super::wire::{Format, Reader, put_uvarint};
use crate::types::SplitMix;

/// What a declaration says of a field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in snake case, as in the struct.
    pub name: &'static str,
    /// The first version that has the field.
    pub since: i16,
    /// The last version that has the field.
    pub until: i16,
    /// The tag, for a field of the tagged section.
    pub tag: Option<u32>,
    /// Whether a value is dropped silently at a version without the field.
    pub ignorable: bool,
}

impl Field {
    /// True when `version` has the field, tagged or not.
    #[must_use]
    pub const fn in_version(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }

    /// True when the field stands in its place in the body.
    #[must_use]
    pub const fn in_body(&self, version: i16) -> bool {
        self.tag.is_none() && self.in_version(version)
    }

    /// True when a value can be written: tagged fields exist only in the flexible encoding.
    #[must_use]
    pub const fn has_place(&self, format: Format) -> bool {
        self.in_version(format.version) && (self.tag.is_none() || format.flexible)
    }

    /// The name in JSON: lower camel case.
    #[must_use]
    pub fn json_name(&self) -> String {
        let mut upper = false;
        let mut text = String::with_capacity(self.name.len());
        for letter in self.name.chars() {
            match letter {
                '_' => upper = true,
                _ if upper => {
                    text.push(letter.to_ascii_uppercase());
                    upper = false;
                }
                _ => text.push(letter),
            }
        }
        text
    }
}

/// Tagged fields that this release does not know, in ascending order of their tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownTags(Vec<(u32, Bytes)>);

impl UnknownTags {
    /// The tags and their bytes, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, Bytes)] {
        &self.0
    }

    /// Adds a field behind the ones that are here.
    ///
    /// # Errors
    /// When the tag is not larger than the last one.
    pub fn push(&mut self, tag: u32, data: Bytes) -> Result<(), RecordFault> {
        if self.0.last().is_some_and(|(last, _)| *last >= tag) {
            return Err(RecordFault::TagNotAscending(tag));
        }
        self.0.push((tag, data));
        Ok(())
    }

    /// A few random fields with tags that no declaration uses.
    #[must_use]
    pub fn arbitrary(rng: &mut SplitMix, format: Format) -> Self {
        let mut tags = Self::default();
        if format.flexible && rng.below(4) == 0 {
            for step in 0..=rng.below(2) as u32 {
                let data = (0..rng.below(6)).map(|_| rng.next_u64() as u8).collect();
                tags.0.push((100 + 100 * step, data));
            }
        }
        tags
    }
}

/// Room for the tagged fields of most structures, in bytes.
const TAGS_BYTES: usize = 64;

/// Collects the tagged fields of one structure and writes them in order of their tags.
#[derive(Debug, Default)]
pub struct TagWriter {
    scratch: Vec<u8>,
    fields: SmallVec<[(u32, std::ops::Range<usize>); 4]>,
}

impl TagWriter {
    /// Adds a field; `put` appends its bytes.
    ///
    /// # Errors
    /// What `put` returns.
    pub fn add(
        &mut self,
        tag: u32,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), RecordFault>,
    ) -> Result<(), RecordFault> {
        if self.fields.is_empty() {
            self.scratch.reserve(TAGS_BYTES);
        }
        let start = self.scratch.len();
        put(&mut self.scratch)?;
        self.fields.push((tag, start..self.scratch.len()));
        Ok(())
    }

    /// Appends the section: count, then tag, length and bytes of each field.
    ///
    /// # Errors
    /// When an unknown tag is also a known one.
    pub fn finish(mut self, unknown: &UnknownTags, out: &mut Vec<u8>) -> Result<(), RecordFault> {
        for (tag, data) in unknown.as_slice() {
            self.add(*tag, |out| {
                out.extend_from_slice(data);
                Ok(())
            })?;
        }
        self.fields.sort_by_key(|(tag, _)| *tag);
        put_uvarint(out, self.fields.len() as u32);
        let mut last = None;
        for (tag, range) in self.fields {
            if last == Some(tag) {
                return Err(RecordFault::TagNotWritable(tag));
            }
            last = Some(tag);
            let data = &self.scratch[range];
            put_uvarint(out, tag);
            put_uvarint(
                out,
                u32::try_from(data.len()).map_err(|_| RecordFault::TooLong(data.len()))?,
            );
            out.extend_from_slice(data);
        }
        Ok(())
    }
}

/// Reads the tagged section of one structure. `known` gets each tag with its bytes; it returns
/// false for a tag that the structure does not declare.
///
/// # Errors
/// When the section is malformed, or `known` says so.
pub fn take_tags(
    input: &mut Reader<'_>,
    unknown: &mut UnknownTags,
    mut known: impl FnMut(u32, &mut Reader<'_>) -> Result<bool, RecordFault>,
) -> Result<(), RecordFault> {
    let mut last = None;
    for _ in 0..input.uvarint()? {
        let tag = input.uvarint()?;
        if last.is_some_and(|last| last >= tag) {
            return Err(RecordFault::TagNotAscending(tag));
        }
        last = Some(tag);
        let length = input.uvarint()?;
        let data = input.bytes(length as usize)?;
        let mut field = Reader::new(data);
        if known(tag, &mut field)? {
            field.finish()?;
        } else {
            unknown.push(tag, Bytes::copy_from_slice(data))?;
        }
    }
    Ok(())
}

/// Declares structures in the notation of this module's documentation.
macro_rules! message {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[$fmeta:meta])*
                $field:ident : $ty:ty, $since:literal $(- $until:literal)? $(+)?
                $(, tag $tag:literal)? $(, default $default:expr)? $(, ignorable $ign:literal)? ;
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(unreachable_pub, reason = "tests declare messages in private modules")]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $ty, )*
            /// Tagged fields of a newer release, kept as bytes.
            pub unknown_tags: $crate::records::schema::UnknownTags,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: message!(@or [$($default)?] <$ty>::default()), )*
                    unknown_tags: $crate::records::schema::UnknownTags::default(),
                }
            }
        }

        impl $crate::records::wire::Wire for $name {
            fn put(
                &self,
                out: &mut Vec<u8>,
                format: $crate::records::wire::Format,
            ) -> Result<(), $crate::records::fault::RecordFault> {
                let unset = Self::default();
                $({
                    let field = message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                    if field.in_body(format.version) {
                        self.$field.put(out, format)?;
                    } else if !field.has_place(format)
                        && !field.ignorable
                        && self.$field != unset.$field
                    {
                        return Err($crate::records::fault::RecordFault::FieldNotInVersion {
                            structure: stringify!($name),
                            field: field.name,
                            version: format.version,
                        });
                    }
                })*
                let _ = &unset;
                if !format.flexible {
                    return match self.unknown_tags.as_slice().first() {
                        None => Ok(()),
                        Some((tag, _)) =>
                            Err($crate::records::fault::RecordFault::TagNotWritable(*tag)),
                    };
                }
                #[allow(unused_mut, reason = "not every structure has fields")]
                let mut tags = $crate::records::schema::TagWriter::default();
                $(
                    let field = message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                    if let Some(tag) = field.tag
                        && field.in_version(format.version)
                        && self.$field != unset.$field
                    {
                        tags.add(tag, |out| self.$field.put(out, format))?;
                    }
                )*
                tags.finish(&self.unknown_tags, out)
            }

            fn take(
                input: &mut $crate::records::wire::Reader<'_>,
                format: $crate::records::wire::Format,
            ) -> Result<Self, $crate::records::fault::RecordFault> {
                let mut value = Self::default();
                $({
                    let field = message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                    if field.in_body(format.version) {
                        value.$field = $crate::records::wire::Wire::take(input, format)?;
                    }
                })*
                if format.flexible {
                    let mut unknown = $crate::records::schema::UnknownTags::default();
                    $crate::records::schema::take_tags(input, &mut unknown, |tag, _input| {
                        $(
                            let field =
                                message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                            if field.tag == Some(tag) {
                                if !field.in_version(format.version) {
                                    return Err(
                                        $crate::records::fault::RecordFault::TagNotInVersion(tag),
                                    );
                                }
                                value.$field = $crate::records::wire::Wire::take(_input, format)?;
                                return Ok(true);
                            }
                        )*
                        let _ = tag;
                        Ok(false)
                    })?;
                    value.unknown_tags = unknown;
                }
                Ok(value)
            }

            fn json(&self, format: $crate::records::wire::Format) -> serde_json::Value {
                #[allow(unused_mut, reason = "not every structure has fields")]
                let mut map = serde_json::Map::new();
                let unset = Self::default();
                $({
                    let field = message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                    let shown = match field.tag {
                        None => field.in_body(format.version),
                        Some(_) => field.has_place(format) && self.$field != unset.$field,
                    };
                    if shown {
                        map.insert(field.json_name(), self.$field.json(format));
                    }
                })*
                let _ = (unset, format);
                serde_json::Value::Object(map)
            }

            fn arbitrary(
                rng: &mut $crate::types::SplitMix,
                format: $crate::records::wire::Format,
            ) -> Self {
                let mut value = Self::default();
                $({
                    let field = message!(@field $field $since [$($until)?] [$($tag)?] [$($ign)?]);
                    // A tagged field keeps its default now and then, so that both forms are met.
                    if field.has_place(format) && (field.tag.is_none() || rng.below(3) != 0) {
                        value.$field = $crate::records::wire::Wire::arbitrary(rng, format);
                    }
                })*
                value.unknown_tags =
                    $crate::records::schema::UnknownTags::arbitrary(rng, format);
                value
            }
        }
    )*};
    (@field
        $field:ident $since:literal [$($until:literal)?] [$($tag:literal)?] [$($ign:literal)?]
    ) => {
        const {
            $crate::records::schema::Field {
                name: stringify!($field),
                since: $since,
                until: message!(@or [$($until)?] i16::MAX),
                tag: message!(@some [$($tag)?]),
                ignorable: message!(@or [$($ign)?] false),
            }
        }
    };
    (@or [] $other:expr) => { $other };
    (@or [$value:expr] $other:expr) => { $value };
    (@some []) => { None };
    (@some [$value:expr]) => { Some($value) };
}
pub(crate) use message;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::testing::hex;
    use crate::records::wire::Wire;

    message! {
        /// Something inside.
        pub struct Inner {
            /// A number.
            number: i8, 0+;
        }

        /// Everything that a declaration can say.
        pub struct Outer {
            /// Only at first.
            old: i8, 0-1;
            /// Later, and dropped before.
            new: i8, 2+, ignorable true;
            /// Others.
            inner: Vec<Inner>, 0+;
            /// Tagged behind one that is declared later.
            high: i8, 1+, tag 5, default -2;
            /// Tagged.
            low: Option<String>, 1+, tag 2;
        }
    }

    const fn flexible(version: i16) -> Format {
        Format {
            version,
            flexible: true,
        }
    }

    const FIXED: Format = Format {
        version: 0,
        flexible: false,
    };

    fn put(message: &Outer, format: Format) -> Result<Vec<u8>, RecordFault> {
        let mut out = Vec::new();
        message.put(&mut out, format).map(|()| out)
    }

    #[test]
    fn unknown_tags_keep_their_place_among_known_ones_and_inside_structures() {
        // old 7; one inner with tag 9; tags 1 (unknown), 2, 3 (unknown), 5.
        let bytes = hex("07 02 03 01 09 02 aabb 04 01 00 02 02 02 78 03 01 cc 05 01 04");
        let message = Outer::take(&mut Reader::new(&bytes), flexible(1)).unwrap();
        assert_eq!(message.low.as_deref(), Some("x"));
        assert_eq!(message.high, 4);
        assert_eq!(
            message.unknown_tags.as_slice(),
            [(1, Bytes::new()), (3, Bytes::from_static(&[0xcc]))]
        );
        assert_eq!(
            message.inner[0].unknown_tags.as_slice(),
            [(9, Bytes::from_static(&[0xaa, 0xbb]))]
        );
        assert_eq!(put(&message, flexible(1)).unwrap(), bytes);
    }

    #[test]
    fn tags_out_of_order_or_twice_are_refused_both_ways() {
        for (bytes, tag) in [
            ("00 01 02 03 00 01 00", 1),
            ("00 01 02 05 01 00 05 01 00", 5),
        ] {
            assert_eq!(
                Outer::take(&mut Reader::new(&hex(bytes)), flexible(1)),
                Err(RecordFault::TagNotAscending(tag))
            );
        }
        let mut message = Outer {
            high: 1,
            ..Default::default()
        };
        message.unknown_tags.push(5, Bytes::new()).unwrap();
        assert_eq!(
            put(&message, flexible(1)),
            Err(RecordFault::TagNotWritable(5))
        );
        assert_eq!(
            message.unknown_tags.push(5, Bytes::new()),
            Err(RecordFault::TagNotAscending(5))
        );
    }

    #[test]
    fn a_tagged_field_fills_its_length() {
        for bytes in ["00 01 01 05 02 00 00", "00 01 01 05 00"] {
            assert!(Outer::take(&mut Reader::new(&hex(bytes)), flexible(1)).is_err());
        }
    }

    #[test]
    fn a_field_before_or_behind_its_versions_is_refused_unless_it_may_be_dropped() {
        let fault = |field, version| {
            Err(RecordFault::FieldNotInVersion {
                structure: "Outer",
                field,
                version,
            })
        };
        let with = |change: fn(&mut Outer)| {
            let mut message = Outer::default();
            change(&mut message);
            message
        };
        let old = with(|message| message.old = 1);
        assert_eq!(put(&old, flexible(1)).unwrap(), hex("01 01 00"));
        assert_eq!(put(&old, flexible(2)), fault("old", 2));
        let new = with(|message| message.new = 1);
        assert_eq!(put(&new, flexible(1)).unwrap(), hex("00 01 00"));
        assert_eq!(put(&new, flexible(2)).unwrap(), hex("01 01 00"));
        let high = with(|message| message.high = 0);
        assert_eq!(put(&high, flexible(0)), fault("high", 0));
        assert_eq!(put(&high, flexible(1)).unwrap(), hex("00 01 01 05 01 00"));
    }

    #[test]
    fn the_older_encoding_has_no_tagged_fields() {
        let mut message = Outer {
            inner: vec![Inner::default()],
            ..Default::default()
        };
        assert_eq!(put(&message, FIXED).unwrap(), hex("00 00000001 00"));
        message.unknown_tags.push(9, Bytes::new()).unwrap();
        assert_eq!(put(&message, FIXED), Err(RecordFault::TagNotWritable(9)));
    }

    #[test]
    fn json_leaves_out_tagged_defaults_only() {
        let mut message = Outer::default();
        assert_eq!(
            message.json(flexible(1)).to_string(),
            r#"{"old":0,"inner":[]}"#
        );
        message.low = Some(String::new());
        assert_eq!(
            message.json(flexible(2)).to_string(),
            r#"{"new":0,"inner":[],"low":""}"#
        );
    }
}
