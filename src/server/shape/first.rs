//! The first item of every list of a body, for the refusal of a request that has too many to be
//! read: answers name items, and whoever asked finds the one that it knows.

use super::{Cursor, Field, Kind, Shape, ShapeFault, Walk, Width};

impl Shape {
    /// A body of this shape with no more than one element in each array. What follows the first
    /// array that had more (or tagged fields) is left out: zeros, empty, or null where it may be.
    /// So this looks at no more of the body than the first elements.
    ///
    /// # Errors
    /// The bytes so far are not a body of this shape at `version`, or a string of them is not
    /// UTF-8, which the decoder would say of a body that is read.
    pub(crate) fn first_items(&self, body: &[u8], version: i16) -> Result<Vec<u8>, ShapeFault> {
        let mut copy = Copy {
            walk: Walk {
                version,
                flexible: version >= self.flexible_from,
            },
            cursor: Cursor::new(body),
            lost: false,
            out: Vec::new(),
        };
        copy.fields(self.fields)?;
        Ok(copy.out)
    }
}

struct Copy<'a> {
    walk: Walk,
    cursor: Cursor<'a>,
    /// Elements were passed over: where the next value begins is not known any more.
    lost: bool,
    out: Vec<u8>,
}

impl Copy<'_> {
    fn fields(&mut self, fields: &[Field]) -> Result<(), ShapeFault> {
        for field in fields {
            if field.exists_in(self.walk.version) && field.tag.is_none() {
                self.value(field.kind, field.nullable)?;
            }
        }
        if self.walk.flexible {
            // No refusal says anything of a tagged field; behind them there is no way on but
            // through them.
            self.lost = self.lost || self.cursor.varint()? > 0;
            self.out.push(0);
        }
        Ok(())
    }

    fn value(&mut self, kind: Kind, null: bool) -> Result<(), ShapeFault> {
        match kind {
            Kind::Struct(fields) => self.fields(fields),
            Kind::Array(element) => {
                let count = match self.lost {
                    true if null => None,
                    true => Some(0),
                    false => self.walk.length(&mut self.cursor, Width::Four, null)?,
                };
                let kept = count.map(|count| u8::from(count > 0));
                self.length(Width::Four, kept);
                if kept == Some(1) {
                    self.value(*element, false)?;
                }
                self.lost |= count.is_some_and(|count| count > 1);
                Ok(())
            }
            _ if !self.lost => {
                let start = self.cursor.position();
                if matches!(kind, Kind::Str) {
                    let text = self.walk.string(&mut self.cursor, null)?;
                    std::str::from_utf8(text).map_err(|_| ShapeFault::NotUtf8)?;
                } else {
                    self.walk.value(&mut self.cursor, kind, null)?;
                }
                let copied = &self.cursor.bytes[start..self.cursor.position()];
                self.out.extend_from_slice(copied);
                Ok(())
            }
            Kind::Str => {
                self.length(Width::Two, (!null).then_some(0));
                Ok(())
            }
            Kind::Bytes => {
                self.length(Width::Four, (!null).then_some(0));
                Ok(())
            }
            number => {
                let zeros = self.walk.bytes_min(number);
                self.out.extend(std::iter::repeat_n(0, zeros));
                Ok(())
            }
        }
    }

    /// A length of 0 or 1; `None` is null.
    fn length(&mut self, width: Width, length: Option<u8>) {
        match (self.walk.flexible, width) {
            (true, _) => self.out.push(length.map_or(0, |length| length + 1)),
            (false, Width::Two) => {
                let length = length.map_or(-1, i16::from);
                self.out.extend(length.to_be_bytes());
            }
            (false, Width::Four) => {
                let length = length.map_or(-1, i32::from);
                self.out.extend(length.to_be_bytes());
            }
        }
    }
}
