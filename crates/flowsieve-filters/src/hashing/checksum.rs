//! A checksum of bytes that arrive in pieces.

use std::fmt;
use xxhash_rust::xxh3::Xxh3;

/// XXH3 of 64 bits, without a seed, over all bytes passed to [`Checksum::update`].
#[derive(Clone, Default)]
pub struct Checksum(Box<Xxh3>);

impl Checksum {
    /// Creates the checksum of no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the checksum of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut checksum = Self::new();
        checksum.update(bytes);
        checksum.value()
    }

    /// Adds further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of all bytes so far.
    pub fn value(&self) -> u64 {
        self.0.digest()
    }

    /// Returns XXH3 of 128 bits of all bytes so far, by which equal contents are recognised.
    pub fn wide(&self) -> u128 {
        self.0.digest128()
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checksum").field(&self.value()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * 7) as u8).collect();
        for piece in [1, 3, 64, 240, 1000] {
            let mut checksum = Checksum::new();
            bytes.chunks(piece).for_each(|part| checksum.update(part));
            let whole = Digester::new(0).digest(&bytes);
            assert_eq!(checksum.value(), whole.value());
        }
    }
}
