//! The union of two d-left filters.
//!
//! A cell tells the H of its element: subtable i, bucket and remainder are `aᵢH mod 2^q`, and `aᵢ` is odd.
//! So the elements of the other filter are inserted here by the ordinary rule, each with its count.

use super::{Bucket, CELLS, DleftFilter, Found, MULTIPLIERS, STASH_LARGEST, SUBTABLES};
use crate::bits::BitArray;
use crate::filters::HipCounter;

/// What undoes each multiplier, mod 2^64 and so mod 2^q.
const INVERSES: [u64; SUBTABLES] = {
    let mut inverses = [0; SUBTABLES];
    let mut i = 0;
    while i < SUBTABLES {
        inverses[i] = inverse(MULTIPLIERS[i]);
        i += 1;
    }
    inverses
};

/// The number whose product with an odd `number` is 1 mod 2^64: each step of Newton's doubles the bits that
/// are right, of which the number itself has three.
const fn inverse(number: u64) -> u64 {
    let mut inverse = number;
    let mut right = 3;
    while right < u64::BITS {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(number.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

impl<B: Bucket> DleftFilter<B> {
    /// Makes this the filter of both.
    pub(super) fn unite_with(&mut self, other: &Self) {
        let (nothing_here, nothing_there) = (self.is_empty(), other.is_empty());
        HipCounter::unite_where_known(&mut self.counter, other.counter);
        self.overflows = self.overflows.saturating_add(other.overflows);
        if nothing_there {
            return;
        }
        if nothing_here {
            *self = Self {
                counter: self.counter,
                overflows: self.overflows,
                ..other.clone()
            };
            return;
        }
        // First, since what is contained in any case takes no room.
        if let Some(more) = &other.given_up {
            let buckets = 1 << self.bucket_bits;
            let given_up = self.given_up.get_or_insert_with(|| BitArray::new(buckets));
            given_up.unite(more);
        }
        for (at, bucket) in other.buckets.as_slice().iter().enumerate() {
            for cell in 0..CELLS as u32 {
                let (hash, count) = other.element_at(at, bucket.get(cell));
                if count != 0 {
                    self.insert_times(hash, count);
                }
            }
        }
        for (&hash, &count) in &other.stash {
            self.insert_times(hash, count);
        }
    }

    fn is_empty(&self) -> bool {
        self.occupied == 0 && self.stash.is_empty() && self.given_up.is_none()
    }

    /// The H of the element in a cell of this bucket, and its count as a stash has it; 0 if there is none.
    fn element_at(&self, bucket: usize, cell: u32) -> (u64, u32) {
        let (subtable, bucket) = (
            bucket >> self.bucket_bits,
            bucket as u64 & ((1 << self.bucket_bits) - 1),
        );
        let permuted = bucket << self.remainder_bits | u64::from(cell >> self.counter_bits);
        let hash = permuted.wrapping_mul(INVERSES[subtable]) & (self.hashes() - 1);
        (hash, self.as_stashed(cell & self.largest()))
    }

    /// The count of a cell as a stash has it: there, too, one that has ended stays for good.
    const fn as_stashed(&self, count: u32) -> u32 {
        if count == self.largest() {
            STASH_LARGEST
        } else {
            count
        }
    }

    /// Inserts an element so many times, as a stash counts.
    fn insert_times(&mut self, hash: u64, count: u32) {
        let places = self.places(hash);
        match self.find(hash, &places) {
            None => self.place(hash, &places, count),
            Some(Found::GivenUp) => {}
            Some(Found::Stash) => {
                let here = self.stash.entry(hash).or_default();
                *here = (*here + count).min(STASH_LARGEST);
            }
            Some(Found::Cell { bucket, cell }) => {
                let value = self.buckets.as_slice()[bucket].get(cell);
                let here = value & self.largest();
                let sum = self.in_cell(here.saturating_add(count));
                self.overflows += u64::from(here + self.known(count) - sum);
                self.saturated += u64::from(here < sum && sum == self.largest());
                self.buckets.as_mut_slice()[bucket].set(cell, value - here + sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_undo_the_multipliers() {
        for (multiplier, inverse) in MULTIPLIERS.into_iter().zip(INVERSES) {
            assert_eq!(multiplier.wrapping_mul(inverse), 1);
        }
    }
}
