//! CBOR in memory, item by item: a cursor on the headers that `ciborium-ll` reads.

use std::ops::Range;

use ciborium_ll::{Decoder, Error, Header};

/// Items within items that are followed.
const MAX_DEPTH: usize = 32;

/// Reason that an item cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ParseError {
    /// It continues behind the bytes at hand.
    Incomplete,
    /// It contradicts the format.
    Malformed(&'static str),
}

/// A place in bytes. Ranges are from their first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// Items of an array, or pairs of a map, that are still to come; `None` if a break ends them.
pub(super) type Left = Option<u64>;

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn header(&mut self) -> Result<Header, ParseError> {
        let mut decoder = Decoder::from(&self.bytes[self.at..]);
        match decoder.pull() {
            Ok(header) => {
                self.at += decoder.offset();
                Ok(header)
            }
            Err(Error::Io(_)) => Err(ParseError::Incomplete),
            Err(Error::Syntax(_)) => Err(ParseError::Malformed("an item has no valid header")),
        }
    }

    /// Begins an array.
    pub(super) fn array(&mut self) -> Result<Left, ParseError> {
        match self.header()? {
            Header::Array(length) => Ok(length.map(|length| length as u64)),
            _ => Err(ParseError::Malformed("an array is missing")),
        }
    }

    /// Begins a map.
    pub(super) fn map(&mut self) -> Result<Left, ParseError> {
        match self.header()? {
            Header::Map(length) => Ok(length.map(|length| length as u64)),
            _ => Err(ParseError::Malformed("a map is missing")),
        }
    }

    /// Returns whether there is another item, which is next.
    pub(super) fn more(&mut self, left: &mut Left) -> Result<bool, ParseError> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => match self.bytes.get(self.at) {
                None => Err(ParseError::Incomplete),
                Some(0xff) => {
                    self.at += 1;
                    *left = Some(0);
                    Ok(false)
                }
                Some(_) => Ok(true),
            },
        }
    }

    /// Reads an integer.
    pub(super) fn integer(&mut self) -> Result<i128, ParseError> {
        match self.header()? {
            Header::Positive(number) => Ok(i128::from(number)),
            Header::Negative(number) => Ok(!i128::from(number)),
            _ => Err(ParseError::Malformed("a number is missing")),
        }
    }

    /// Reads an integer that is not negative.
    pub(super) fn number(&mut self) -> Result<u64, ParseError> {
        let number = u64::try_from(self.integer()?);
        number.map_err(|_| ParseError::Malformed("a number is negative"))
    }

    /// Reads a byte string in one piece; returns its range.
    pub(super) fn string(&mut self) -> Result<Range<usize>, ParseError> {
        match self.header()? {
            Header::Bytes(Some(length)) => self.step(length),
            _ => Err(ParseError::Malformed("a byte string is missing")),
        }
    }

    fn step(&mut self, length: usize) -> Result<Range<usize>, ParseError> {
        let end = self.at.checked_add(length);
        match end.filter(|&end| end <= self.bytes.len()) {
            Some(end) => Ok(std::mem::replace(&mut self.at, end)..end),
            None => Err(ParseError::Incomplete),
        }
    }

    /// Steps over an item, whatever it is.
    pub(super) fn skip(&mut self) -> Result<(), ParseError> {
        // Items still to come of those that are open.
        let mut open: [Left; MAX_DEPTH] = [None; MAX_DEPTH];
        let mut depth = 0;
        loop {
            let inside = match self.header()? {
                Header::Tag(_) => continue,
                Header::Break if depth > 0 && open[depth - 1].is_none() => {
                    depth -= 1;
                    Some(Some(0))
                }
                Header::Break => return Err(ParseError::Malformed("a break ends nothing")),
                Header::Bytes(Some(length)) | Header::Text(Some(length)) => {
                    self.step(length)?;
                    None
                }
                Header::Bytes(None) | Header::Text(None) => Some(None),
                Header::Array(length) => Some(length.map(|length| length as u64)),
                Header::Map(length) => Some(length.map(|length| (length as u64).saturating_mul(2))),
                _ => None,
            };
            if let Some(inside) = inside.filter(|inside| *inside != Some(0)) {
                *open.get_mut(depth).ok_or(ParseError::Malformed("items are nested too deep"))? =
                    inside;
                depth += 1;
                continue;
            }
            // The item is complete, and with it perhaps those around it.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let Some(left) = &mut open[depth - 1] else { break };
                *left -= 1;
                if *left > 0 {
                    break;
                }
                depth -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(bytes: &[u8]) -> Result<usize, ParseError> {
        let mut cursor = Cursor::new(bytes, 0);
        cursor.skip()?;
        Ok(cursor.at)
    }

    #[test]
    fn every_item_is_stepped_over() {
        for item in [
            &[0x05][..],
            &[0x39, 1, 0],
            &[0x43, 1, 2, 3],
            &[0x63, b'a', b'b', b'c'],
            &[0x80],
            &[0x83, 1, 0x82, 2, 3, 0xa0],
            &[0xa2, 1, 2, 3, 0x81, 4],
            &[0x9f, 1, 0x9f, 0xff, 2, 0xff],
            &[0xbf, 1, 2, 0xff],
            &[0x5f, 0x41, 1, 0x42, 1, 2, 0xff],
            &[0xc1, 0x1a, 1, 2, 3, 4],
            &[0xfb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xf6],
        ] {
            let followed = [item, &[0xff]].concat();
            assert_eq!(skipped(&followed), Ok(item.len()), "{item:x?}");
            for cut in 0..item.len() {
                assert_eq!(skipped(&item[..cut]), Err(ParseError::Incomplete), "{item:x?}");
            }
        }
    }

    #[test]
    fn what_is_broken_or_endless_is_an_error() {
        for item in [
            vec![0xff],
            vec![0x81, 0xff],
            vec![0x1c],
            vec![0x81; 100],
            vec![0xc1; 100],
            [&[0x9b][..], &[0xff; 8], &[0xff]].concat(),
        ] {
            assert!(skipped(&item).is_err(), "{item:x?}");
        }
    }
}
