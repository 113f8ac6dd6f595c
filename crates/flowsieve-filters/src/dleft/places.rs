//! From an element's digest to its bucket and remainder in each subtable, and back.
//!
//! H is one of B 2^r numbers, and each subtable has a permutation of them: the bucket is the
//! permuted number divided by 2^r, and the remainder the rest. So two elements share a cell only if
//! their H are equal.
//!
//! - If B is a power of two: H → aH mod 2^q with an odd a for each subtable, as published.
//! - Else: subtable 1 has H itself, and the others have the same remainder and the bucket (H
//!   / 2^r + o) mod B, with an offset o that depends on the remainder and the subtable. That
//!   needs no division.

use super::SUBTABLES;
use crate::hashing::{Digest, Products, WholeProducts, mix, mix_all};

/// Stream of [`mix`] from which H comes; part of this structure's definition.
const HASH: u64 = 0x20;

/// Stream of [`mix`] from which the offsets of a remainder come.
const OFFSETS: u64 = 0x21;

/// The multipliers of the four permutations, which are digits of pi. Any odd numbers without a
/// pattern would do.
pub(super) const MULTIPLIERS: [u64; SUBTABLES] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The inverse of each multiplier mod 2^64, and so mod 2^q.
const INVERSES: [u64; SUBTABLES] = {
    let mut inverses = [0; SUBTABLES];
    let mut i = 0;
    while i < SUBTABLES {
        inverses[i] = inverse(MULTIPLIERS[i]);
        i += 1;
    }
    inverses
};

/// Returns the inverse of an odd number mod 2^64 by Newton's method. The number itself is right in
/// three bits, and each step doubles that.
const fn inverse(number: u64) -> u64 {
    let mut inverse = number;
    let mut right = 3;
    while right < u64::BITS {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(number.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

/// Elements whose places are computed together: the words of the largest vectors.
pub(super) const GROUP: usize = 8;

/// The places of the elements of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// The H of each element.
    pub(super) hashes: [u64; GROUP],
    /// The bucket of each element in each subtable (its index among all), and the remainder of its
    /// cell there.
    pub(super) buckets: [[u64; GROUP]; SUBTABLES],
    pub(super) remainders: [[u64; GROUP]; SUBTABLES],
}

/// The map between H and the places in the subtables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Places {
    /// Buckets of a subtable (B).
    pub(super) buckets: u64,
    /// Bits of a remainder (r).
    pub(super) remainder_bits: u32,
}

impl Places {
    /// Returns the number of different H.
    #[inline]
    pub(super) const fn hashes(self) -> u64 {
        self.buckets << self.remainder_bits
    }

    /// Returns the binary logarithm of B, or `None` if B is no power of two.
    #[inline]
    const fn bucket_bits(self) -> Option<u32> {
        if self.buckets.is_power_of_two() { Some(self.buckets.trailing_zeros()) } else { None }
    }

    #[inline]
    const fn remainder(self, number: u64) -> u64 {
        number & ((1 << self.remainder_bits) - 1)
    }

    /// Returns the H of an element.
    #[inline]
    pub(super) fn hash(self, digest: Digest) -> u64 {
        // If B is a power of two, these are the highest bits of the mixed digest.
        WholeProducts::reduce(mix(digest, HASH), self.hashes())
    }

    /// Returns each subtable's bucket (its index among all) for H, and the remainder there.
    #[inline]
    pub(super) fn of_hash(self, hash: u64) -> [(usize, u64); SUBTABLES] {
        let mut places = [(0, 0); SUBTABLES];
        let bucket_bits = self.bucket_bits();
        let (own, rest) = (hash >> self.remainder_bits, self.remainder(hash));
        let offsets = match bucket_bits {
            Some(_) => 0,
            None => mix(Digest::from_value(rest), OFFSETS),
        };
        for (i, place) in places.iter_mut().enumerate() {
            let (bucket, remainder) = if let Some(bits) = bucket_bits {
                let permuted = hash.wrapping_mul(MULTIPLIERS[i]);
                let bucket = permuted >> self.remainder_bits & ((1 << bits) - 1);
                (bucket, self.remainder(permuted))
            } else {
                (self.turned::<WholeProducts>(own, offsets, i), rest)
            };
            *place = ((i as u64 * self.buckets + bucket) as usize, remainder);
        }
        places
    }

    /// Returns the bucket in subtable i if B is no power of two.
    #[inline(always)]
    fn turned<P: Products>(self, own: u64, offsets: u64, i: usize) -> u64 {
        if i == 0 {
            return own;
        }
        let bucket = own + P::reduce(offsets.wrapping_mul(MULTIPLIERS[i]), self.buckets);
        if bucket < self.buckets { bucket } else { bucket - self.buckets }
    }

    /// Returns the H of the element with this remainder in a bucket (its index among all).
    pub(super) fn hash_at(self, bucket: usize, remainder: u64) -> u64 {
        let (subtable, bucket) = (bucket as u64 / self.buckets, bucket as u64 % self.buckets);
        let subtable = subtable as usize;
        if self.bucket_bits().is_some() {
            let permuted = bucket << self.remainder_bits | remainder;
            return permuted.wrapping_mul(INVERSES[subtable]) & (self.hashes() - 1);
        }
        let offsets = mix(Digest::from_value(remainder), OFFSETS);
        let turned = self.turned::<WholeProducts>(0, offsets, subtable);
        let own = if bucket < turned { bucket + self.buckets - turned } else { bucket - turned };
        own << self.remainder_bits | remainder
    }

    /// Computes the places of a group of elements.
    #[inline(always)]
    pub(super) fn of_group<P: Products>(self, digests: &[Digest; GROUP], group: &mut Group) {
        let hashes = &mut group.hashes;
        for (hash, digest) in hashes.iter_mut().zip(digests) {
            *hash = digest.value();
        }
        mix_all::<P>(hashes, HASH);
        if let Some(bits) = self.bucket_bits() {
            let unused = 64 - bits - self.remainder_bits;
            for hash in hashes.iter_mut() {
                *hash >>= unused;
            }
            let buckets = self.buckets - 1;
            for (i, multiplier) in MULTIPLIERS.into_iter().enumerate() {
                for (lane, hash) in hashes.iter().enumerate() {
                    let permuted = hash.wrapping_mul(multiplier);
                    let bucket = permuted >> self.remainder_bits & buckets;
                    group.buckets[i][lane] = bucket | (i as u64) << bits;
                    group.remainders[i][lane] = self.remainder(permuted);
                }
            }
        } else if P::fits(self.buckets) {
            self.turn_group::<P>(group);
        } else {
            self.turn_group::<WholeProducts>(group);
        }
    }

    /// Computes the places of a group from its mixed digests if B is no power of two.
    #[inline(always)]
    fn turn_group<P: Products>(self, group: &mut Group) {
        let (mut own, mut offsets) = ([0; GROUP], [0; GROUP]);
        for (lane, hash) in group.hashes.iter_mut().enumerate() {
            // The product with B in two parts: its integer part, and its first r bits after the
            // point.
            own[lane] = P::reduce(*hash, self.buckets);
            offsets[lane] = hash.wrapping_mul(self.buckets) >> (64 - self.remainder_bits);
            *hash = own[lane] << self.remainder_bits | offsets[lane];
        }
        group.remainders = [offsets; SUBTABLES];
        mix_all::<P>(&mut offsets, OFFSETS);
        for (i, buckets) in group.buckets.iter_mut().enumerate() {
            for (lane, bucket) in buckets.iter_mut().enumerate() {
                let turned = self.turned::<P>(own[lane], offsets[lane], i);
                *bucket = turned + i as u64 * self.buckets;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Digester, HalfProducts};

    /// The permutations are one to one on all H, each uses all of its buckets, and H follows from a
    /// place.
    #[test]
    fn the_permutations_are_one_to_one() {
        for buckets in [1_u64, 3, 32, 37, 100] {
            let places = Places { buckets, remainder_bits: 7 };
            let mut seen = vec![false; SUBTABLES * places.hashes() as usize];
            for hash in 0..places.hashes() {
                for (i, (bucket, remainder)) in places.of_hash(hash).into_iter().enumerate() {
                    assert_eq!(bucket as u64 / buckets, i as u64);
                    let place = (bucket << 7) + remainder as usize;
                    assert!(!seen[place]);
                    seen[place] = true;
                    assert_eq!(places.hash_at(bucket, remainder), hash);
                }
            }
            assert!(seen.into_iter().all(|seen| seen));
        }
    }

    #[test]
    fn inverses_undo_the_multipliers() {
        for (multiplier, inverse) in MULTIPLIERS.into_iter().zip(INVERSES) {
            assert_eq!(multiplier.wrapping_mul(inverse), 1);
        }
    }

    #[test]
    fn places_of_a_group_are_those_of_each() {
        for (buckets, remainder_bits) in
            [(1, 1), (1 << 13, 14), (20_834, 30), (5, 3), (1 << 33, 30), (5_000_000_001, 22)]
        {
            let places = Places { buckets, remainder_bits };
            for start in 0..50_u64 {
                let digests: [Digest; GROUP] =
                    std::array::from_fn(|lane| Digester::new(start).digest(&[lane as u8]));
                let (mut group, mut other) = (Group::default(), Group::default());
                places.of_group::<WholeProducts>(&digests, &mut group);
                places.of_group::<HalfProducts>(&digests, &mut other);
                assert_eq!(group.buckets, other.buckets);
                assert_eq!(group.remainders, other.remainders);
                for (lane, &digest) in digests.iter().enumerate() {
                    let hash = places.hash(digest);
                    assert_eq!([group.hashes[lane], other.hashes[lane]], [hash; 2]);
                    for (i, (bucket, remainder)) in places.of_hash(hash).into_iter().enumerate() {
                        assert_eq!(group.buckets[i][lane], bucket as u64);
                        assert_eq!(group.remainders[i][lane], remainder);
                    }
                }
            }
        }
    }

    /// Pins the definition of H and of its buckets, on which saved filters depend.
    #[test]
    fn places_do_not_change() {
        let digest = Digest::from_value(0x0123_4567_89ab_cdef);
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let mix = |value: u64, stream: u64| {
            fold(value ^ 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(stream + 1), 0xbf58_476d_1ce4_e5b9)
        };
        let (buckets, remainder_bits) = (20_834_u64, 22);
        let places = Places { buckets, remainder_bits };
        let mixed = u128::from(mix(digest.value(), 0x20));
        let hash = ((mixed * u128::from(buckets << 22)) >> 64) as u64;
        assert_eq!(places.hash(digest), hash);
        let (own, rest) = (hash / (1 << 22), hash % (1 << 22));
        let turns = mix(rest, 0x21);
        let expected = [0_u64, 1, 2, 3].map(|i| {
            let offset = u128::from(turns.wrapping_mul(MULTIPLIERS[i as usize]));
            let offset = ((offset * u128::from(buckets)) >> 64) as u64 * u64::from(i > 0);
            ((i * buckets + (own + offset) % buckets) as usize, rest)
        });
        assert_eq!(places.of_hash(hash), expected);
    }
}
