//! The value types of Kafka's message format: how each is read, written and shown as JSON.
//!
//! Two encodings exist (KIP-482): the *flexible* one has unsigned variable-length counts, where 0
//! means null and n + 1 means n, and a section of tagged fields behind each structure; the older
//! one has fixed-width counts, where -1 means null. Metadata records are always flexible.

use base64::Engine as _;
use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::fault::RecordFault;
use crate::types::{SplitMix, ids};

/// The version of a message and whether that version is flexible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The message's version.
    pub version: i16,
    /// True for the encoding with compact lengths and tagged fields (KIP-482).
    pub flexible: bool,
}

/// A cursor over bytes that somebody else wrote: every step is checked.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`RecordFault::Truncated`] when fewer are left.
    pub const fn bytes(&mut self, count: usize) -> Result<&'a [u8], RecordFault> {
        let Some((head, tail)) = self.rest.split_at_checked(count) else {
            return Err(RecordFault::Truncated);
        };
        self.rest = tail;
        Ok(head)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordFault> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(RecordFault::Truncated);
        };
        self.rest = tail;
        Ok(*head)
    }

    /// An unsigned variable-length integer: seven bits a byte, lowest first.
    ///
    /// # Errors
    /// When the bytes end or the number has more than 32 bits.
    #[inline(always)]
    pub fn uvarint(&mut self) -> Result<u32, RecordFault> {
        // Nearly all of them are small.
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u32::from(byte))
            }
            _ => self.long_uvarint(),
        }
    }

    #[cold]
    fn long_uvarint(&mut self) -> Result<u32, RecordFault> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                return Err(RecordFault::VarintTooLong);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordFault::VarintTooLong)
    }

    /// Succeeds when nothing is left.
    ///
    /// # Errors
    /// [`RecordFault::LeftOver`] with the count of unread bytes.
    pub const fn finish(&self) -> Result<(), RecordFault> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(RecordFault::LeftOver(count)),
        }
    }
}

/// Appends an unsigned variable-length integer.
pub fn put_uvarint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        // The mask keeps seven bits, so nothing is lost.
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A type that a field can have.
pub trait Wire: Sized {
    /// The fewest bytes that one value takes, used to refuse counts that cannot be true.
    const BYTES_MIN: usize = 1;

    /// Appends the value.
    ///
    /// # Errors
    /// When the format has no place for it.
    fn put(&self, out: &mut Vec<u8>, format: Format) -> Result<(), RecordFault>;

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not one.
    fn take(input: &mut Reader<'_>, format: Format) -> Result<Self, RecordFault>;

    /// The JSON form that Kafka's tools print.
    fn json(&self, format: Format) -> Value;

    /// A random value for tests and simulations; fields that the version lacks keep their default.
    fn arbitrary(rng: &mut SplitMix, format: Format) -> Self;
}

macro_rules! number {
    ($($ty:ty),*) => {$(
        impl Wire for $ty {
            const BYTES_MIN: usize = size_of::<Self>();

            fn put(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
                out.extend_from_slice(&self.to_be_bytes());
                Ok(())
            }

            #[inline(always)]
            fn take(input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
                input.array().map(Self::from_be_bytes)
            }

            fn json(&self, _: Format) -> Value {
                Value::from(*self)
            }

            fn arbitrary(rng: &mut SplitMix, _: Format) -> Self {
                // Edges as often as anything else: defaults such as -1 and 0 hide in them.
                match rng.below(8) {
                    0 => 0,
                    1 => 1,
                    2 => Self::MAX,
                    3 => Self::MIN,
                    4 => (0 as Self).wrapping_sub(1),
                    _ => rng.next_u64() as Self,
                }
            }
        }
    )*};
}

number!(i8, i16, u16, i32, i64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
        out.push(u8::from(*self));
        Ok(())
    }

    #[inline(always)]
    fn take(input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
        input.array().map(|[byte]| byte != 0)
    }

    fn json(&self, _: Format) -> Value {
        Value::Bool(*self)
    }

    fn arbitrary(rng: &mut SplitMix, _: Format) -> Self {
        rng.below(2) == 1
    }
}

impl Wire for f64 {
    const BYTES_MIN: usize = 8;

    fn put(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
        out.extend_from_slice(&self.to_be_bytes());
        Ok(())
    }

    fn take(input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
        input.array().map(Self::from_be_bytes)
    }

    fn json(&self, _: Format) -> Value {
        // JSON has no NaN and no infinity; Java's tools print their names as strings.
        serde_json::Number::from_f64(*self).map_or_else(
            || {
                Value::from(if self.is_nan() {
                    "NaN"
                } else if *self > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                })
            },
            Value::Number,
        )
    }

    fn arbitrary(rng: &mut SplitMix, _: Format) -> Self {
        match rng.below(4) {
            0 => 0.0,
            1 => -1.5,
            2 => Self::INFINITY,
            // 53 bits convert without loss.
            _ => (rng.next_u64() >> 11) as Self / 1024.0,
        }
    }
}

impl Wire for Uuid {
    const BYTES_MIN: usize = 16;

    fn put(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    #[inline(always)]
    fn take(input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
        input.array().map(Self::from_bytes)
    }

    fn json(&self, _: Format) -> Value {
        Value::String(ids::base64url(*self))
    }

    fn arbitrary(rng: &mut SplitMix, _: Format) -> Self {
        match rng.below(4) {
            0 => Self::nil(),
            1 => ids::DIR_UNASSIGNED,
            _ => rng.uuid(),
        }
    }
}

/// A type whose length or count stands in front of it, so that it can also be null.
pub trait Counted: Sized {
    /// True for text, whose length has only two bytes in the older encoding.
    const SHORT: bool;

    /// Bytes or elements.
    fn count(&self) -> usize;

    /// Appends what follows the count.
    ///
    /// # Errors
    /// When the format has no place for it.
    fn put_items(&self, out: &mut Vec<u8>, format: Format) -> Result<(), RecordFault>;

    /// Reads what follows the count.
    ///
    /// # Errors
    /// When the bytes are not `count` items.
    fn take_items(
        count: usize,
        input: &mut Reader<'_>,
        format: Format,
    ) -> Result<Self, RecordFault>;

    /// The JSON form of a value that is not null.
    fn json_items(&self, format: Format) -> Value;

    /// A random value that is not null.
    fn arbitrary_items(rng: &mut SplitMix, format: Format) -> Self;
}

fn put_counted<T: Counted>(
    value: Option<&T>,
    out: &mut Vec<u8>,
    format: Format,
) -> Result<(), RecordFault> {
    let count = value.map(T::count);
    let too_long = RecordFault::TooLong(count.unwrap_or(0));
    if format.flexible {
        let coded = count.map_or(Some(0), |n| n.checked_add(1));
        let coded = coded.filter(|&n| n <= i32::MAX as usize).ok_or(too_long)?;
        put_uvarint(out, coded as u32);
    } else if T::SHORT {
        let coded = count.map_or(Ok(-1), i16::try_from).map_err(|_| too_long)?;
        out.extend_from_slice(&coded.to_be_bytes());
    } else {
        let coded = count.map_or(Ok(-1), i32::try_from).map_err(|_| too_long)?;
        out.extend_from_slice(&coded.to_be_bytes());
    }
    value.map_or(Ok(()), |value| value.put_items(out, format))
}

/// The count in front of a value, `None` for null.
#[inline(always)]
fn take_count<T: Counted>(
    input: &mut Reader<'_>,
    format: Format,
) -> Result<Option<usize>, RecordFault> {
    let count = if format.flexible {
        input.uvarint()?.checked_sub(1)
    } else if T::SHORT {
        u32::try_from(i16::from_be_bytes(input.array()?)).ok()
    } else {
        u32::try_from(i32::from_be_bytes(input.array()?)).ok()
    };
    Ok(count.map(|count| count as usize))
}

impl<T: Counted> Wire for T {
    fn put(&self, out: &mut Vec<u8>, format: Format) -> Result<(), RecordFault> {
        put_counted(Some(self), out, format)
    }

    #[inline(always)]
    fn take(input: &mut Reader<'_>, format: Format) -> Result<Self, RecordFault> {
        match take_count::<T>(input, format)? {
            Some(count) => T::take_items(count, input, format),
            None => Err(RecordFault::NullNotAllowed),
        }
    }

    fn json(&self, format: Format) -> Value {
        self.json_items(format)
    }

    fn arbitrary(rng: &mut SplitMix, format: Format) -> Self {
        Self::arbitrary_items(rng, format)
    }
}

impl<T: Counted> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>, format: Format) -> Result<(), RecordFault> {
        put_counted(self.as_ref(), out, format)
    }

    #[inline(always)]
    fn take(input: &mut Reader<'_>, format: Format) -> Result<Self, RecordFault> {
        match take_count::<T>(input, format)? {
            Some(count) => T::take_items(count, input, format).map(Some),
            None => Ok(None),
        }
    }

    fn json(&self, format: Format) -> Value {
        self.as_ref()
            .map_or(Value::Null, |value| value.json_items(format))
    }

    fn arbitrary(rng: &mut SplitMix, format: Format) -> Self {
        (rng.below(3) != 0).then(|| T::arbitrary_items(rng, format))
    }
}

impl Counted for String {
    const SHORT: bool = true;

    fn count(&self) -> usize {
        self.len()
    }

    fn put_items(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn take_items(count: usize, input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
        let bytes = input.bytes(count)?;
        let text = std::str::from_utf8(bytes).map_err(|_| RecordFault::InvalidUtf8)?;
        Ok(text.to_owned())
    }

    fn json_items(&self, _: Format) -> Value {
        Value::String(self.clone())
    }

    fn arbitrary_items(rng: &mut SplitMix, _: Format) -> Self {
        // Beyond 126 bytes a compact length takes two bytes, so some are that long.
        let letters = ['a', 'Z', '-', '"', '\\', '\u{1b}', 'é', '漢', '\u{1f980}'];
        let count = if rng.below(16) == 0 {
            140
        } else {
            rng.below(9)
        };
        (0..count)
            .map(|_| letters[rng.below(letters.len() as u64) as usize])
            .collect()
    }
}

impl Counted for Bytes {
    const SHORT: bool = false;

    fn count(&self) -> usize {
        self.len()
    }

    fn put_items(&self, out: &mut Vec<u8>, _: Format) -> Result<(), RecordFault> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn take_items(count: usize, input: &mut Reader<'_>, _: Format) -> Result<Self, RecordFault> {
        input.bytes(count).map(Self::copy_from_slice)
    }

    fn json_items(&self, _: Format) -> Value {
        Value::String(base64::engine::general_purpose::STANDARD.encode(self))
    }

    fn arbitrary_items(rng: &mut SplitMix, _: Format) -> Self {
        let count = rng.below(20);
        (0..count).map(|_| rng.next_u64() as u8).collect()
    }
}

/// Room for this many elements is made at once; beyond it a list grows as elements really arrive,
/// so that a false count costs nothing.
const ELEMENTS_AT_ONCE: usize = 1024;

// Reading is inlined all the way down: a `Result` that is handed up through memory at every field
// costs more than the field.
impl<T: Wire> Counted for Vec<T> {
    const SHORT: bool = false;

    fn count(&self) -> usize {
        self.len()
    }

    fn put_items(&self, out: &mut Vec<u8>, format: Format) -> Result<(), RecordFault> {
        self.iter().try_for_each(|item| item.put(out, format))
    }

    #[inline(always)]
    fn take_items(
        count: usize,
        input: &mut Reader<'_>,
        format: Format,
    ) -> Result<Self, RecordFault> {
        if count > input.remaining() / T::BYTES_MIN {
            return Err(RecordFault::CountTooLarge(count as u32));
        }
        let mut items = Self::with_capacity(count.min(ELEMENTS_AT_ONCE));
        for _ in 0..count {
            items.push(T::take(input, format)?);
        }
        Ok(items)
    }

    fn json_items(&self, format: Format) -> Value {
        self.iter().map(|item| item.json(format)).collect()
    }

    fn arbitrary_items(rng: &mut SplitMix, format: Format) -> Self {
        let count = rng.below(5);
        (0..count).map(|_| T::arbitrary(rng, format)).collect()
    }
}
