//! The binary form of what pieces exchange: a letter and a version, then fields one after the
//! other. Numbers are LEB128 with 7 bits a byte, signed ones zigzag; floats are their 8 bytes,
//! little-endian.

use super::PieceError;

/// What goes from one process to another, as bytes.
pub trait Exchanged: Sized {
    /// The binary form.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads the binary form.
    ///
    /// # Errors
    ///
    /// The bytes are none.
    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError>;
}

/// Version of all forms.
const VERSION: u8 = 4;

/// Appends fields.
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    /// Begins a form that is known by this letter.
    pub(super) fn begin(letter: u8) -> Self {
        Self(vec![letter, VERSION])
    }

    pub(super) fn number(&mut self, number: u64) {
        put_number(&mut self.0, number);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    pub(super) fn float(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A field that may be missing.
    pub(super) fn maybe<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }
}

/// Appends a number.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes fields from the front.
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
    form: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads fields without a head.
    pub(super) fn of(bytes: &'a [u8], form: &'static str) -> Self {
        Self { rest: bytes, form }
    }

    /// Begins to read a form that is known by this letter.
    pub(super) fn begin(
        bytes: &'a [u8],
        letter: u8,
        form: &'static str,
    ) -> Result<Self, PieceError> {
        let reader = Self { rest: bytes, form };
        match bytes {
            [first, VERSION, rest @ ..] if *first == letter => Ok(Self { rest, form }),
            [first, _, ..] if *first == letter => Err(reader.wrong("its version is another")),
            _ => Err(reader.wrong("it begins with something else")),
        }
    }

    pub(super) fn wrong(&self, reason: &'static str) -> PieceError {
        PieceError::Bytes { form: self.form, reason }
    }

    pub(super) fn number(&mut self) -> Result<u64, PieceError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // One number has one form, and fits.
                if (byte == 0 && shift > 0) || (shift == 63 && byte > 1) {
                    break;
                }
                return Ok(number);
            }
        }
        Err(self.wrong("a number is too long"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, PieceError> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(super) fn small(&mut self) -> Result<u32, PieceError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.wrong("a number is too large"))
    }

    /// A number from 0 on.
    pub(super) fn float(&mut self) -> Result<f64, PieceError> {
        let number = f64::from_le_bytes(*self.take()?);
        if number >= 0.0 && number.is_finite() {
            return Ok(number);
        }
        Err(self.wrong("a count is negative or no number"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], PieceError> {
        let length = self.number()?;
        let cut =
            usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (bytes, rest) = cut.ok_or_else(|| self.wrong("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String, PieceError> {
        let text = std::str::from_utf8(self.bytes()?);
        Ok(text.map_err(|_| self.wrong("a text is not UTF-8"))?.to_owned())
    }

    pub(super) fn flag(&mut self) -> Result<bool, PieceError> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.wrong("a yes or no is neither")),
        }
    }

    /// A field that may be missing.
    pub(super) fn maybe<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, PieceError>,
    ) -> Result<Option<T>, PieceError> {
        Ok(if self.flag()? { Some(read(self)?) } else { None })
    }

    /// As many as are announced; none of them takes less than a byte.
    pub(super) fn many<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, PieceError>,
    ) -> Result<Vec<T>, PieceError> {
        let count = self.number()?;
        if count > self.rest.len() as u64 {
            return Err(self.wrong("it ends too early"));
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// Nothing may follow.
    pub(super) fn end(self) -> Result<(), PieceError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.wrong("it goes on behind its end"))
    }

    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], PieceError> {
        let (bytes, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.wrong("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn numbers_come_back_and_have_one_form() {
        let mut out = Writer::begin(b'X');
        let numbers = [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX];
        let signed = [0, -1, 1, i64::MIN, i64::MAX];
        for number in numbers {
            out.number(number);
        }
        for number in signed {
            out.signed(number);
        }
        let mut reader = Reader::begin(&out.0, b'X', "thing").unwrap();
        for number in numbers {
            assert_eq!(reader.number().unwrap(), number);
        }
        for number in signed {
            assert_eq!(reader.signed().unwrap(), number);
        }
        reader.end().unwrap();
        for wrong in [&[0x80, 0][..], &[0xff; 9], &[0xff; 11], &[0x80]] {
            let bytes = [&[b'X', VERSION], wrong].concat();
            let mut reader = Reader::begin(&bytes, b'X', "thing").unwrap();
            assert!(reader.number().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let error = Reader::begin(&[b'X', 9], b'X', "thing").err().unwrap();
        assert_eq!(
            error.to_string(),
            "these bytes are no thing that this version of flowsieve can read: its version is another"
        );
    }
}
