//! H3: hashing by random matrices over GF(2), as network hardware does it.
//!
//! ```text
//!     x = x₃₁ … x₁ x₀          (the raw 32-bit value, not a digest)
//!
//!     h(x) = x₀·r₀ ⊕ x₁·r₁ ⊕ … ⊕ x₃₁·r₃₁          r₀ … r₃₁: random rows of b bits
//! ```
//!
//! Two different values collide with probability 2^-b over the choice of the rows, and any two
//! positions are independent. But h is linear, h(x) ⊕ h(y) = h(x ⊕ y), for any rows: if two
//! addresses of *one* function are combined by ⊕, all pairs with the same x ⊕ y share an address.
//!
//! Reference: Carter, Wegman, "Universal classes of hash functions", JCSS 18(2), 1979 (class H3).

use super::{Digest, mix};

/// One H3 function from 32-bit values to at most 32 bits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct H3 {
    /// Row i is the contribution of bit i of the value.
    rows: [u32; 32],
}

impl H3 {
    /// Creates a random function to `0..2^bits` (1 ≤ bits ≤ 32), which seed and number determine.
    pub(crate) fn random(seed: u64, number: u64, bits: u32) -> Self {
        // The rows are 32 independent streams of a digest of the function's number.
        let function = Digest::from_value(mix(Digest::from_value(seed), number));
        Self { rows: std::array::from_fn(|row| (mix(function, row as u64) >> (64 - bits)) as u32) }
    }

    /// Returns the hash of a value.
    #[inline]
    pub(crate) fn hash(&self, value: u32) -> u32 {
        let mut left = value;
        let mut hash = 0;
        while left != 0 {
            hash ^= self.rows[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows and hashes from an independent computation.
    const ROWS: [u32; 32] = [
        19887, 23745, 22222, 4077, 2762, 17242, 24576, 3543, 13878, 24676, 12234, 12445, 3843,
        2815, 26174, 20485, 4615, 29539, 28722, 6724, 396, 9671, 3594, 470, 7748, 14089, 19930,
        1674, 5228, 20336, 3534, 27370,
    ];

    #[test]
    fn hashes_of_given_rows() {
        let function = H3 { rows: ROWS };
        for (value, hash) in [
            (0, 0),
            (1, 19887),
            (2, 23745),
            (3, 4462),
            (1 << 31, 27370),
            (0x1234_5678, 30706),
            (u32::MAX, 26728),
            (0x0a00_0001, 31788),
            (0xc0a8_0101, 8936),
        ] {
            assert_eq!(function.hash(value), hash, "{value:#x}");
        }
    }

    #[test]
    fn random_functions_fill_their_range_and_differ() {
        let hashes = |number| {
            let function = H3::random(1, number, 15);
            (0..40_000_u32).map(move |value| function.hash(value.wrapping_mul(0x9e37_79b9)))
        };
        assert!(hashes(0).all(|hash| hash < 1 << 15));
        assert!(hashes(0).any(|hash| hash >= 1 << 14));
        let equal = hashes(0).zip(hashes(1)).filter(|(a, b)| a == b).count();
        assert!(equal < 20, "{equal} of 40 000 agree, about one is expected");
    }

    proptest! {
        #[test]
        fn hashing_is_linear(seed: u64, a: u32, b: u32) {
            let function = H3::random(seed, 0, 15);
            prop_assert_eq!(function.hash(a) ^ function.hash(b), function.hash(a ^ b));
        }
    }
}
