//! The binary form of what the processes of a divided run exchange: a letter for the type, a
//! version, and the fields as [postcard](https://postcard.jamesmunns.com) writes them.

use super::PieceError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Version of all forms. Raise it whenever a type that is exchanged changes.
const VERSION: u8 = 9;

/// A message from one process of a divided run to another.
pub trait WireFormat: Serialize + DeserializeOwned {
    /// First byte of the form.
    #[doc(hidden)]
    const LETTER: u8;

    /// Name of the form in errors.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Checks what the types cannot express.
    ///
    /// # Errors
    ///
    /// The fields contradict each other.
    #[doc(hidden)]
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Returns the binary form.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![Self::LETTER, VERSION];
        append(&mut bytes, self);
        bytes
    }

    /// Reads the binary form. Memory stays in proportion to the bytes.
    ///
    /// # Errors
    ///
    /// The bytes are of another form or version, damaged, or contradict themselves.
    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let error = |reason| PieceError::Bytes { form: Self::NAME, reason };
        let fields = match bytes {
            [letter, VERSION, fields @ ..] if *letter == Self::LETTER => fields,
            [letter, _, ..] if *letter == Self::LETTER => {
                return Err(error("its version is another"));
            }
            _ => return Err(error("it begins with something else")),
        };
        let mut fields = Values::new(fields, Self::NAME);
        let message: Self = fields.next()?;
        if !fields.rest.is_empty() {
            return Err(error("it goes on behind its end"));
        }
        message.check().map_err(error)?;
        Ok(message)
    }
}

/// Appends a value.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Most values are small: an array takes them faster than a vector that may have to grow.
    if let Ok(written) = postcard::to_slice(value, &mut [0; 48]) {
        return out.extend_from_slice(written);
    }
    let written = postcard::to_extend(value, std::mem::take(out));
    *out = written.expect("a vector takes every value that has a length");
}

/// Reads values that stand one after the other.
pub(super) struct Values<'a> {
    /// The bytes that are not read yet.
    pub(super) rest: &'a [u8],
    name: &'static str,
}

impl<'a> Values<'a> {
    /// Reads from `bytes`, which errors call `name`.
    pub(super) const fn new(bytes: &'a [u8], name: &'static str) -> Self {
        Self { rest: bytes, name }
    }

    /// Reads the next value.
    pub(super) fn next<T: Deserialize<'a>>(&mut self) -> Result<T, PieceError> {
        let (value, rest) =
            postcard::take_from_bytes(self.rest).map_err(|error| self.error(reason_of(&error)))?;
        self.rest = rest;
        Ok(value)
    }

    /// Returns an error about these bytes.
    pub(super) const fn error(&self, reason: &'static str) -> PieceError {
        PieceError::Bytes { form: self.name, reason }
    }
}

fn reason_of(error: &postcard::Error) -> &'static str {
    match error {
        postcard::Error::DeserializeUnexpectedEnd => "it ends too early",
        postcard::Error::DeserializeBadVarint => "a number is too large",
        postcard::Error::DeserializeBadUtf8 => "a text is not UTF-8",
        _ => "a field has no valid value",
    }
}

/// Bytes as one copy, where serde would go through them one by one.
pub(super) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(in super::super) fn deserialize<'a, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'a>,
        T: From<&'a [u8]>,
    {
        <&[u8]>::deserialize(from).map(T::from)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::distributed::{InputTable, SlicePart};

    #[test]
    fn other_versions_and_forms_are_refused_by_name() {
        let mut bytes = InputTable::default().to_bytes();
        assert_eq!(InputTable::from_bytes(&bytes).unwrap(), InputTable::default());
        let error = SlicePart::from_bytes(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "these bytes are no part of a slice that this version of flowsieve can read: it begins with something else"
        );
        bytes.push(0);
        assert!(InputTable::from_bytes(&bytes).unwrap_err().to_string().contains("behind its end"));
        bytes[1] = VERSION + 1;
        let error = InputTable::from_bytes(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "these bytes are no table of inputs that this version of flowsieve can read: its version is another"
        );
    }

    #[test]
    fn numbers_and_lengths_that_cannot_be_are_refused() {
        for wrong in [&[0x80][..], &[0xff; 11], &[0xff, 0xff, 0xff, 0xff, 0x0f]] {
            let bytes = [&[InputTable::LETTER, VERSION], wrong].concat();
            assert!(InputTable::from_bytes(&bytes).is_err(), "{wrong:?}");
        }
    }
}
