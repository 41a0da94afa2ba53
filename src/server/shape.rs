//! The shape check: walks the bytes of a request body against a static table before a decoder that
//! trusts counts may see them.
//!
//! `kafka-protocol` reserves memory from the counts on the wire, so nine bytes can ask it for
//! hundreds of gigabytes, which aborts the process. The walk allocates nothing, recurses no deeper
//! than the table and reads every byte once. After it passed:
//!
//! * every count was at most what the bytes behind it could hold, the sum of all counts is at most
//!   [`ELEMENTS_MAX`], and there are no more items than whoever asks for the walk reads;
//! * every string, byte field and tagged field lies inside the body, and a known tagged field fills
//!   exactly the bytes that its size names;
//! * nothing is left over.

use bytes::Bytes;

mod first;

/// Elements of all arrays and unknown tagged fields of one request together. A decoded element
/// costs up to a few hundred bytes even when it takes one byte on the wire, so the frame limit
/// alone does not bound memory. The largest honest request is an AlterPartition of a broker that
/// leads 200 k partitions (800 k elements).
pub(crate) const ELEMENTS_MAX: usize = 1 << 20;

/// Memory of one unknown tagged field, its place in a map included; guessed high.
const UNKNOWN_FIELD_BYTES: usize = 96;

/// Bytes of one string in all versions, as Java's readers have it: what is kept of a name, and how
/// often an answer repeats it, is reckoned with that.
pub(crate) const STRING_BYTES_MAX: usize = 0x7fff;

/// One field of a message, as the protocol defines it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The name in Kafka's documentation.
    pub(crate) name: &'static str,
    /// What it looks like.
    pub(crate) kind: Kind,
    /// First version that has the field.
    pub(crate) since: i16,
    /// Last version that has the field, inclusive.
    pub(crate) until: i16,
    /// True where null is allowed (in every version that is served and has the field).
    pub(crate) nullable: bool,
    /// The field's tag when it travels among the tagged fields.
    pub(crate) tag: Option<u32>,
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One byte.
    Bool,
    /// One byte.
    Int8,
    /// Two bytes.
    Int16,
    /// Two bytes, unsigned (ports).
    Uint16,
    /// Four bytes.
    Int32,
    /// Four bytes as well: the number of a partition, of which the answer has something to say.
    Partition,
    /// Eight bytes.
    Int64,
    /// Sixteen bytes.
    Uuid,
    /// A length and UTF-8; the decoder checks the encoding.
    Str,
    /// A length and bytes.
    Bytes,
    /// A count and as many values.
    Array(&'static Self),
    /// Fields in order and, in flexible versions, tagged fields.
    Struct(&'static [Field]),
}

impl Kind {
    /// Of these there may be any number: lists of brokers are short where they are honest, and of
    /// each item they have but a few bytes.
    const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Int8 | Self::Int16 | Self::Uint16 | Self::Int32 | Self::Int64
        )
    }

    /// What a decoded value takes, without the elements of its arrays. Texts stay in the frame.
    const fn memory_bytes(self) -> usize {
        match self {
            Self::Bool | Self::Int8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 => 4,
            Self::Int64 => 8,
            // Four, and far more in an answer: a structure and an encoded sentence.
            Self::Partition => 128,
            Self::Uuid => 16,
            Self::Str | Self::Bytes => 32,
            Self::Array(_) => 24,
            Self::Struct(fields) => {
                // The map of unknown tagged fields, then the fields of all versions.
                let (mut sum, mut at) = (24, 0);
                while at < fields.len() {
                    sum += fields[at].kind.memory_bytes();
                    at += 1;
                }
                sum.next_multiple_of(8)
            }
        }
    }
}

/// How large a body is, as counted before it is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Elements of all arrays, and unknown tagged fields.
    pub(crate) elements: usize,
    /// Those that are no plain numbers: topics, partitions, resources, keys, names.
    pub(crate) items: usize,
    /// What the elements take in memory once they are decoded, beside the frame.
    pub(crate) decoded_bytes: usize,
}

/// A body that was checked from its first byte to its last, or none. Decoders are given nothing
/// else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    bytes: Bytes,
    size: Size,
}

impl Checked {
    /// The body, for a decoder.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// How large it is.
    pub(crate) const fn size(&self) -> Size {
        self.size
    }
}

/// The shape of one request in all its versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// First version with compact lengths and tagged fields.
    pub(crate) flexible_from: i16,
    /// The body's fields.
    pub(crate) fields: &'static [Field],
}

impl Shape {
    /// For [`Self::flexible_from`] of a message that has no flexible version.
    pub(crate) const NEVER_FLEXIBLE: i16 = i16::MAX;
}

/// A field of every version, never null, not tagged.
pub(crate) const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        since: 0,
        until: i16::MAX,
        nullable: false,
        tag: None,
    }
}

impl Field {
    /// The field exists from `version` on.
    pub(crate) const fn since(mut self, version: i16) -> Self {
        self.since = version;
        self
    }

    /// The field exists up to `version`, inclusive.
    pub(crate) const fn until(mut self, version: i16) -> Self {
        self.until = version;
        self
    }

    /// Null is allowed.
    pub(crate) const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// The field travels among the tagged fields.
    pub(crate) const fn tagged(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }

    pub(crate) const fn exists_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }
}

/// Why bytes are not of the shape. Alphabetical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShapeFault {
    /// A length is negative, or null where null is not allowed, or above [`STRING_BYTES_MAX`] of a
    /// string.
    BadLength,
    /// Bytes follow the last field.
    LeftOver,
    /// A string is not UTF-8.
    NotUtf8,
    /// A tagged field does not fill the size that it names.
    TagSize,
    /// More elements than [`ELEMENTS_MAX`], or more items than are read.
    TooManyElements,
    /// A value or a count reaches beyond the end.
    Truncated,
    /// A variable-length number of more than 32 bits.
    Varint,
}

impl std::fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BadLength => "a length is negative, null, or too large for a string",
            Self::LeftOver => "bytes follow the last field",
            Self::NotUtf8 => "a string is not UTF-8",
            Self::TagSize => "a tagged field does not fill its size",
            Self::TooManyElements => "too many elements",
            Self::Truncated => "a value reaches beyond the end of the request",
            Self::Varint => "a variable-length number is too long",
        })
    }
}

/// Which field is at fault, and how: what the log says of a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// What is wrong.
    pub(crate) fault: ShapeFault,
    /// The last field that the walk entered, empty before the first.
    pub(crate) field: &'static str,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (at field '{}')", self.fault, self.field)
    }
}

/// A reading position in bytes that nobody has checked.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    size: Size,
    items_max: usize,
    field: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            size: Size {
                elements: 0,
                items: 0,
                decoded_bytes: 0,
            },
            items_max: usize::MAX,
            field: "",
        }
    }

    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], ShapeFault> {
        if length > self.remaining() {
            return Err(ShapeFault::Truncated);
        }
        let taken = &self.bytes[self.position..self.position + length];
        self.position += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ShapeFault> {
        let bytes = self.take(N)?.first_chunk::<N>();
        bytes.copied().ok_or(ShapeFault::Truncated)
    }

    pub(crate) fn int16(&mut self) -> Result<i16, ShapeFault> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn int32(&mut self) -> Result<i32, ShapeFault> {
        self.array().map(i32::from_be_bytes)
    }

    fn varint(&mut self) -> Result<u32, ShapeFault> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0x0f {
                return Err(ShapeFault::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ShapeFault::Varint)
    }

    /// Bytes of the flexible encoding; `None` is null.
    pub(crate) fn compact_bytes(&mut self) -> Result<Option<&'a [u8]>, ShapeFault> {
        match self.varint()?.checked_sub(1) {
            Some(length) => self.take(length as usize).map(Some),
            None => Ok(None),
        }
    }

    /// A string of the flexible encoding; `None` is null.
    pub(crate) fn compact_string(&mut self) -> Result<Option<String>, ShapeFault> {
        let text = self.compact_bytes()?.map(std::str::from_utf8).transpose();
        Ok(text.map_err(|_| ShapeFault::NotUtf8)?.map(str::to_owned))
    }

    fn count_elements(&mut self, count: usize, bytes: usize) -> Result<(), ShapeFault> {
        let size = &mut self.size;
        size.elements = size.elements.saturating_add(count);
        size.decoded_bytes = size
            .decoded_bytes
            .saturating_add(count.saturating_mul(bytes));
        if size.elements > ELEMENTS_MAX {
            return Err(ShapeFault::TooManyElements);
        }
        Ok(())
    }

    fn count_items(&mut self, count: usize) -> Result<(), ShapeFault> {
        self.size.items = self.size.items.saturating_add(count);
        if self.size.items > self.items_max {
            return Err(ShapeFault::TooManyElements);
        }
        Ok(())
    }

    /// Passes over tagged fields of which none is known.
    pub(crate) fn skip_tagged_fields(&mut self) -> Result<(), ShapeFault> {
        let count = self.varint()?;
        // A tagged field is at least its tag and its size.
        if count as usize > self.remaining() / 2 {
            return Err(ShapeFault::Truncated);
        }
        self.count_elements(count as usize, UNKNOWN_FIELD_BYTES)?;
        for _ in 0..count {
            self.varint()?;
            let size = self.varint()?;
            self.take(size as usize)?;
        }
        Ok(())
    }
}

impl Shape {
    /// Checks a whole body and returns what it holds: a measure of what it costs to decode it.
    ///
    /// # Errors
    /// The bytes are not a body of this shape at `version`.
    pub(crate) fn check(&self, body: &[u8], version: i16) -> Result<Size, Misfit> {
        self.check_items(body, version, usize::MAX)
    }

    /// The same for a body of which no more than `items_max` items are read, and which may be
    /// decoded then.
    ///
    /// # Errors
    /// As for [`Self::check`]; [`ShapeFault::TooManyElements`] as soon as the counts say so: behind
    /// may be anything, false counts too.
    pub(crate) fn checked(
        &self,
        body: &Bytes,
        version: i16,
        items_max: usize,
    ) -> Result<Checked, Misfit> {
        let size = self.check_items(body, version, items_max)?;
        let bytes = body.clone();
        Ok(Checked { bytes, size })
    }

    fn check_items(&self, body: &[u8], version: i16, items_max: usize) -> Result<Size, Misfit> {
        let mut cursor = Cursor::new(body);
        cursor.items_max = items_max;
        let walk = Walk {
            version,
            flexible: version >= self.flexible_from,
        };
        let walked = walk.fields(&mut cursor, self.fields);
        let fault = match walked {
            Err(fault) => fault,
            Ok(()) if cursor.remaining() > 0 => ShapeFault::LeftOver,
            Ok(()) => return Ok(cursor.size),
        };
        Err(Misfit {
            fault,
            field: cursor.field,
        })
    }
}

/// The version of the body under the cursor.
#[derive(Clone, Copy, Debug)]
struct Walk {
    version: i16,
    flexible: bool,
}

impl Walk {
    fn fields(self, cursor: &mut Cursor<'_>, fields: &[Field]) -> Result<(), ShapeFault> {
        for field in fields {
            if field.exists_in(self.version) && field.tag.is_none() {
                cursor.field = field.name;
                self.value(cursor, field.kind, field.nullable)?;
            }
        }
        if self.flexible {
            self.tagged_fields(cursor, fields)?;
        }
        Ok(())
    }

    fn tagged_fields(self, cursor: &mut Cursor<'_>, fields: &[Field]) -> Result<(), ShapeFault> {
        let count = cursor.varint()?;
        if count as usize > cursor.remaining() / 2 {
            return Err(ShapeFault::Truncated);
        }
        cursor.count_elements(count as usize, UNKNOWN_FIELD_BYTES)?;
        for _ in 0..count {
            let tag = cursor.varint()?;
            let size = cursor.varint()? as usize;
            let known = fields
                .iter()
                .find(|field| field.tag == Some(tag) && field.exists_in(self.version));
            let start = cursor.position();
            if size > cursor.remaining() {
                return Err(ShapeFault::Truncated);
            }
            let Some(field) = known else {
                cursor.take(size)?;
                continue;
            };
            cursor.field = field.name;
            self.value(cursor, field.kind, field.nullable)?;
            if cursor.position() - start != size {
                return Err(ShapeFault::TagSize);
            }
        }
        Ok(())
    }

    fn value(self, cursor: &mut Cursor<'_>, kind: Kind, null: bool) -> Result<(), ShapeFault> {
        match kind {
            Kind::Bool
            | Kind::Int8
            | Kind::Int16
            | Kind::Uint16
            | Kind::Int32
            | Kind::Int64
            | Kind::Partition
            | Kind::Uuid => cursor.take(self.bytes_min(kind)).map(|_| ()),
            Kind::Str => self.string(cursor, null).map(|_| ()),
            Kind::Bytes => match self.length(cursor, Width::Four, null)? {
                Some(length) => cursor.take(length).map(|_| ()),
                None => Ok(()),
            },
            Kind::Array(element) => {
                let Some(count) = self.length(cursor, Width::Four, null)? else {
                    return Ok(());
                };
                if count > cursor.remaining() / self.bytes_min(*element) {
                    return Err(ShapeFault::Truncated);
                }
                cursor.count_elements(count, element.memory_bytes())?;
                if !element.is_number() {
                    cursor.count_items(count)?;
                }
                for _ in 0..count {
                    self.value(cursor, *element, false)?;
                }
                Ok(())
            }
            Kind::Struct(fields) => self.fields(cursor, fields),
        }
    }

    /// The bytes of a string, none of null. Whether they are UTF-8 is not looked at.
    fn string<'a>(self, cursor: &mut Cursor<'a>, null: bool) -> Result<&'a [u8], ShapeFault> {
        match self.length(cursor, Width::Two, null)? {
            // Flexible versions have room for more, and nobody takes it.
            Some(length) if length > STRING_BYTES_MAX => Err(ShapeFault::BadLength),
            Some(length) => cursor.take(length),
            None => Ok(&[]),
        }
    }

    /// A length or count; `None` is null.
    fn length(
        self,
        cursor: &mut Cursor<'_>,
        width: Width,
        null: bool,
    ) -> Result<Option<usize>, ShapeFault> {
        let length = if self.flexible {
            i64::from(cursor.varint()?) - 1
        } else {
            match width {
                Width::Two => i64::from(cursor.int16()?),
                Width::Four => i64::from(cursor.int32()?),
            }
        };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 && null => Ok(None),
            Err(_) => Err(ShapeFault::BadLength),
        }
    }

    /// The least that a value takes on the wire; never 0.
    fn bytes_min(self, kind: Kind) -> usize {
        match kind {
            Kind::Bool | Kind::Int8 => 1,
            Kind::Int16 | Kind::Uint16 => 2,
            Kind::Int32 | Kind::Partition => 4,
            Kind::Int64 => 8,
            Kind::Uuid => 16,
            Kind::Str | Kind::Bytes | Kind::Array(_) if self.flexible => 1,
            Kind::Str => 2,
            Kind::Bytes | Kind::Array(_) => 4,
            Kind::Struct(fields) => {
                let fields = fields
                    .iter()
                    .filter(|field| field.exists_in(self.version) && field.tag.is_none())
                    .map(|field| self.bytes_min(field.kind))
                    .sum::<usize>();
                (fields + usize::from(self.flexible)).max(1)
            }
        }
    }
}

/// How wide a length is before flexible versions.
#[derive(Clone, Copy, Debug)]
enum Width {
    Two,
    Four,
}

#[cfg(test)]
#[path = "shape_tests.rs"]
pub(crate) mod tests;
