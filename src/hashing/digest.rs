//! The 64-bit digest of an element or of one of its attributes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// 64-bit digest of an element, of an attribute or of a combination of attributes.
///
/// It is XXH3 with a seed over an explicit byte encoding, so the same element has the same digest on
/// every machine and in every build: filters made of digests can be compared, saved and merged.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest(u64);

impl Digest {
    /// The digest with this value, for tests and for filters that are loaded.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// All 64 bits.
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// Makes digests; the only place that knows which hash function they come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digester {
    seed: u64,
}

impl Digester {
    /// Digests that depend on this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// Digest of these bytes.
    #[inline]
    pub fn digest(self, bytes: &[u8]) -> Digest {
        Digest(xxh3_64_with_seed(bytes, self.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_reference_implementation() {
        // XXH3_64bits of the empty input is published with the algorithm.
        assert_eq!(Digester::new(0).digest(b"").value(), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn the_seed_changes_every_digest() {
        assert_ne!(
            Digester::new(1).digest(b"element"),
            Digester::new(2).digest(b"element")
        );
    }
}
