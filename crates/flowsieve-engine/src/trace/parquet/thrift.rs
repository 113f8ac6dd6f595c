//! Thrift's compact protocol, in which Parquet writes its footer and the heads of its pages:
//! structures field by field.
//!
//! Nothing is taken for what is claimed: a list has no more items than bytes follow, a text no more
//! bytes, and structures lie in one another only so deep.

/// How deep structures may lie in one another. Parquet needs seven levels.
const MOST_LEVELS: u8 = 24;

/// The type of a field or item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Kind(u8);

impl Kind {
    const TRUE: Self = Self(1);
    const FALSE: Self = Self(2);

    /// The value of a field that is true or false, which stands in its type.
    pub(super) fn truth(self) -> Option<bool> {
        match self {
            Self::TRUE => Some(true),
            Self::FALSE => Some(false),
            _ => None,
        }
    }
}

/// What is left to read. A method that finds something else than it was asked for returns `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
    levels: u8,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, levels: MOST_LEVELS }
    }

    /// Number of bytes that were not read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A whole number of any width.
    pub(super) fn number(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Bytes or a text.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// Reads a structure. `field` gets the number and the type of each field and reads its value,
    /// or leaves it and returns false.
    pub(super) fn structure(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, Kind) -> Option<bool>,
    ) -> Option<()> {
        self.levels = self.levels.checked_sub(1)?;
        let mut number = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.levels += 1;
                return Some(());
            }
            number = match head >> 4 {
                0 => self.number()?,
                step => i64::from(step).checked_add(number)?,
            };
            let kind = Kind(head & 15);
            let before = self.rest;
            if !field(self, number, kind)? {
                self.rest = before;
                self.skip(kind)?;
            }
        }
    }

    /// Reads a list, whose items `item` reads.
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let (_, count) = self.list_head()?;
        (0..count).try_for_each(|_| item(self))
    }

    fn list_head(&mut self) -> Option<(Kind, usize)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            count => usize::from(count),
        };
        // An item takes a byte at least.
        (count <= self.left()).then_some((Kind(head & 15), count))
    }

    fn skip(&mut self, kind: Kind) -> Option<()> {
        match kind.0 {
            1 | 2 => {}
            3 => {
                self.byte()?;
            }
            4..=6 => {
                self.varint()?;
            }
            7 => {
                self.take(8)?;
            }
            8 => {
                self.bytes()?;
            }
            9 | 10 => {
                self.levels = self.levels.checked_sub(1)?;
                let (kind, count) = self.list_head()?;
                for _ in 0..count {
                    self.skip_item(kind)?;
                }
                self.levels += 1;
            }
            12 => self.structure(|_, _, _| Some(false))?,
            // Parquet has no maps.
            _ => return None,
        }
        Some(())
    }

    fn skip_item(&mut self, kind: Kind) -> Option<()> {
        if kind.truth().is_some() { self.byte().map(|_| ()) } else { self.skip(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_nobody_wants_are_passed_over() {
        // 1: -3, 2: a list of two booleans, 3: a structure with a double, 20: the text "ab", 21:
        // true.
        let bytes = [
            0x15, 5, 0x19, 0x21, 1, 2, 0x1c, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 40, 2, b'a',
            b'b', 0x11, 0, 9,
        ];
        let mut thrift = Thrift::new(&bytes);
        let (mut number, mut text, mut truth) = (0, &b""[..], None);
        thrift
            .structure(|thrift, field, kind| {
                match field {
                    1 => number = thrift.number()?,
                    20 => text = thrift.bytes()?,
                    21 => truth = kind.truth(),
                    _ => return Some(false),
                }
                Some(true)
            })
            .unwrap();
        assert_eq!((number, text, truth), (-3, &b"ab"[..], Some(true)));
        assert_eq!(thrift.left(), 1);
        for end in 0..bytes.len() - 1 {
            let mut thrift = Thrift::new(&bytes[..end]);
            assert!(thrift.structure(|_, _, _| Some(false)).is_none(), "{end}");
        }
    }

    #[test]
    fn depth_and_lengths_are_bounded() {
        assert!(Thrift::new(&[0x1c; 1000]).structure(|_, _, _| Some(false)).is_none());
        assert!(Thrift::new(&[0x19; 1000]).structure(|_, _, _| Some(false)).is_none());
        // A list that claims 2^35 items, and a text of as many bytes.
        for kind in [0x19, 0x18] {
            let bytes = [kind, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0];
            assert!(Thrift::new(&bytes).structure(|_, _, _| Some(false)).is_none());
        }
        assert!(Thrift::new(&[0xff; 11]).number().is_none());
    }
}
