//! The 64-bit digest of an element or of one of its attributes.

use super::mix;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use serde::{Deserialize, Serialize};

/// 64-bit digest of an element, of an attribute or of a combination of attributes.
///
/// It is XXH3 with a seed over an explicit byte encoding, so the same element has the same digest
/// on every machine and in every build: filters of digests can be compared, saved and merged.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Digest(u64);

impl Digest {
    /// Creates the digest with this value.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// Returns all 64 bits.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the digest under the hash function of this number, as if the bytes were hashed
    /// again; number 0 is the digest itself. Equal digests are equal under every function.
    #[inline]
    #[must_use]
    pub const fn rehashed(self, function: u32) -> Self {
        if function == 0 {
            return self;
        }
        Self(mix(Self(mix(self, REHASH + function as u64)), REHASH))
    }

    /// Returns the digest of a combination of attributes, those in `mask` (bit i for attribute i),
    /// from their digests in order.
    ///
    /// It is a chain of [`mix`]: the state starts from the mask and adds one digest in each step,
    /// so other values, another order, and other attributes with the same values give another
    /// digest.
    #[inline]
    pub fn join(mask: u32, digests: impl IntoIterator<Item = Self>) -> Self {
        let start = Self(mix(Self(u64::from(mask)), JOIN));
        digests.into_iter().fold(start, |state, digest| Self(mix(Self(state.0 ^ digest.0), JOIN)))
    }
}

/// First of the streams of [`mix`] that hash digests again.
const REHASH: u64 = 1 << 32;

/// Stream of [`mix`] that joins digests; part of the definition of joined digests.
const JOIN: u64 = 0x20;

/// Hash function from bytes to digests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digester {
    seed: u64,
}

impl Digester {
    /// Creates the hash function with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the seed.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// Returns a number that identifies the digest function and the way to join and mix digests. A
    /// saved filter holds it, so that filters of other digests are refused.
    pub fn self_check(self) -> u64 {
        Digest::join(1, [self.digest(b"flowsieve digest self-check")]).value()
    }

    /// Returns the digest of these bytes.
    #[inline]
    pub fn digest(self, bytes: &[u8]) -> Digest {
        Digest(xxh3_64_with_seed(bytes, self.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn digests_are_those_of_the_reference_implementation() {
        // XXH3_64bits of the empty input is published with the algorithm.
        assert_eq!(Digester::new(0).digest(b"").value(), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn a_joint_digest_depends_on_values_order_and_attributes() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|value| Digester::new(0).digest(value));
        let joined = [
            Digest::join(0b011, [a, b]),
            Digest::join(0b011, [b, a]),
            Digest::join(0b101, [a, b]),
            Digest::join(0b011, [a, c]),
            Digest::join(0b011, [a, a]),
            Digest::join(0b011, [b, b]),
            Digest::join(0b001, [a]),
            Digest::join(0b010, [a]),
            Digest::join(0b111, [a, b, c]),
            Digest::join(0, []),
        ];
        let distinct: HashSet<Digest> = joined.into_iter().collect();
        assert_eq!(distinct.len(), joined.len());
    }

    /// Half a million pairs of few values: no two digests are equal, and each bit is set in half of
    /// them.
    #[test]
    fn joint_digests_of_a_grid_do_not_collide() {
        let digests: Vec<Digest> =
            (0..700_u32).map(|i| Digester::new(0).digest(&i.to_le_bytes())).collect();
        let joined: HashSet<Digest> = digests
            .iter()
            .flat_map(|&a| digests.iter().map(move |&b| Digest::join(0b11, [a, b])))
            .collect();
        assert_eq!(joined.len(), 700 * 700);
        for bit in 0..64 {
            let ones = joined.iter().filter(|d| d.value() >> bit & 1 == 1).count();
            // Standard deviation 350.
            assert!(ones.abs_diff(245_000) < 4 * 350 + 175, "bit {bit}: {ones}");
        }
    }

    /// Under two functions the bits of a digest differ like those of two digests.
    #[test]
    fn hash_functions_are_independent() {
        let digests = (0..20_000_u64).map(|n| Digester::new(0).digest(&n.to_le_bytes()));
        let digests: Vec<Digest> = digests.collect();
        assert!(digests.iter().all(|digest| digest.rehashed(0) == *digest));
        for (a, b) in [(0, 1), (1, 2), (2, 3), (1, 1 << 20)] {
            let distinct: HashSet<Digest> = digests.iter().map(|it| it.rehashed(b)).collect();
            assert_eq!(distinct.len(), digests.len());
            for bit in 0..64 {
                let differ = |it: &&Digest| {
                    (it.rehashed(a).value() ^ it.rehashed(b).value().rotate_left(bit)) & 1 == 1
                };
                let ones = digests.iter().filter(differ).count();
                // Standard deviation 71.
                assert!(ones.abs_diff(10_000) < 4 * 71 + 36, "{a} {b} bit {bit}: {ones}");
            }
        }
    }

    #[test]
    fn the_self_check_does_not_change() {
        assert_eq!(Digester::new(0).self_check(), 17_618_946_000_046_681_716);
        assert_ne!(Digester::new(1).self_check(), Digester::new(0).self_check());
    }

    #[test]
    fn the_seed_changes_every_digest() {
        assert_ne!(Digester::new(1).digest(b"element"), Digester::new(2).digest(b"element"));
    }
}
