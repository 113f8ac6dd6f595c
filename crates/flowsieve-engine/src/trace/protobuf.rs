//! Messages of Protocol Buffers, field by field, as far as dnstap needs them.
//!
//! A field is a key (number and wire type in one varint) and a value: a varint, 4 or 8 bytes, or a
//! length and as many bytes. Unknown fields are skipped, as the format requires.

use std::ops::Range;

/// A field's value. Of bytes it has the range within all that is read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Bytes(Range<usize>),
}

/// The fields of the message that stands at a range of `bytes`.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Reason that bytes are no message.
pub(super) type Malformed = &'static str;

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], range: Range<usize>) -> Self {
        Self { bytes: &bytes[..range.end], at: range.start }
    }

    /// Returns the next field with its number; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value)>, Malformed> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = self.varint()?;
                let left = (self.bytes.len() - self.at) as u64;
                if length > left {
                    return Err("a field is longer than its message");
                }
                let start = self.at;
                self.at += length as usize;
                Value::Bytes(start..self.at)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(self.fixed()?))),
            _ => return Err("a field has an unknown wire type"),
        };
        Ok(Some((key >> 3, value)))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for (index, &byte) in self.bytes[self.at..].iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.at += index + 1;
                return Ok(number);
            }
        }
        Err("a number does not end")
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let value = self.bytes[self.at..].first_chunk();
        self.at += N;
        value.copied().ok_or("a number breaks off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u64, Value)>, Malformed> {
        let mut fields = Fields::new(bytes, 0..bytes.len());
        let mut out = Vec::new();
        while let Some(field) = fields.next()? {
            out.push(field);
        }
        Ok(out)
    }

    #[test]
    fn every_wire_type_is_read() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(5..7)),
            (3, Value::Number(1)),
            (4, Value::Number(2)),
        ];
        assert_eq!(all(&bytes).unwrap(), expected);
    }

    #[test]
    fn what_breaks_off_is_an_error() {
        for bytes in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0xff; 12],
            &[0x12, 3, 1, 2],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x1d, 1, 2, 3],
            &[0x21, 1, 2, 3],
            &[0x0b],
        ] {
            assert!(all(bytes).is_err(), "{bytes:?}");
        }
    }
}
