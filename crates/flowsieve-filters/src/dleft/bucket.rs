//! Buckets of eight cells, which are compared all at once.

use bytemuck::Pod;
use std::fmt::Debug;

/// Cells in a bucket.
pub(crate) const CELLS: usize = 8;

/// Eight cells; a cell is a remainder in the upper bits and a count in the lower ones.
pub trait Bucket: Pod + Debug + Default + Send + Sync {
    /// Bits of a cell.
    const CELL_BITS: u32;

    /// Returns the mask of the cells in use (with a count of 1 to `largest`) whose remainder,
    /// shifted up by the bits of the count, is `tag`.
    fn matches(&self, tag: u32, largest: u32) -> u32;

    /// Returns whether any of the buckets [`matches`](Bucket::matches) its tag.
    fn any_holds<const BUCKETS: usize>(
        buckets: [&Self; BUCKETS],
        tags: [u32; BUCKETS],
        largest: u32,
    ) -> bool;

    /// Returns the mask of the cells in use.
    fn occupied(&self) -> u32;

    /// Returns a cell.
    fn get(&self, cell: u32) -> u32;

    /// Replaces a cell.
    fn set(&mut self, cell: u32, value: u32);
}

/// A bucket of 16-bit cells, four to a word, in a quarter of a cache line.
pub type Bucket16 = [u64; 2];

/// A bucket of 24-bit cells: the lower 16 bits of each as a [`Bucket16`], and the upper eight of
/// all in a third word.
pub type Bucket24 = [u64; 3];

/// A bucket of 32-bit cells, two to a word, in half a cache line.
pub type Bucket32 = [u64; 4];

/// Implements [`Bucket`] for words whose cells are compared all at once. `$ones` is a word whose
/// cells are all 1, and `$gather` turns the highest bits of the cells into a mask.
macro_rules! bucket_of_words {
    ($bucket:ty, $cell:ty, $bits:literal, $ones:literal, $gather:expr) => {
        impl Bucket for $bucket {
            const CELL_BITS: u32 = $bits;

            #[inline]
            fn matches(&self, tag: u32, largest: u32) -> u32 {
                let tags = u64::from(tag) * $ones;
                let counts = u64::from(largest) * $ones;
                mask_of(*self, $bits, $gather, |word| {
                    // XOR with the tag clears an equal remainder and leaves the count.
                    let rest = word ^ tags;
                    nonzero(rest & counts, $bits, $ones) & !nonzero(rest & !counts, $bits, $ones)
                })
            }

            #[inline(always)]
            fn any_holds<const BUCKETS: usize>(
                buckets: [&Self; BUCKETS],
                tags: [u32; BUCKETS],
                largest: u32,
            ) -> bool {
                let mut found = [0; CELLS];
                for (bucket, tag) in buckets.into_iter().zip(tags) {
                    // The order of the cells, which depends on the machine, does not matter.
                    let cells: [$cell; CELLS] = bytemuck::cast(*bucket);
                    for (found, cell) in found.iter_mut().zip(cells) {
                        // XOR with the tag clears an equal remainder and leaves the count.
                        let rest = (cell ^ tag as $cell).wrapping_sub(1);
                        *found |= <$cell>::from(rest < largest as $cell);
                    }
                }
                let mut any = 0;
                for found in found {
                    any |= found;
                }
                any != 0
            }

            #[inline]
            fn occupied(&self) -> u32 {
                mask_of(*self, $bits, $gather, |word| nonzero(word, $bits, $ones))
            }

            #[inline]
            fn get(&self, cell: u32) -> u32 {
                let bit = cell * $bits;
                let word = self[bit as usize / 64];
                (word >> (bit % 64)) as u32 & (u32::MAX >> (32 - $bits))
            }

            #[inline]
            fn set(&mut self, cell: u32, value: u32) {
                let change = u64::from(self.get(cell) ^ value);
                let bit = cell * $bits;
                self[bit as usize / 64] ^= change << (bit % 64);
            }
        }
    };
}

bucket_of_words!(Bucket16, u16, 16, 0x0001_0001_0001_0001, |flags| {
    // Moves bit 16 j to bit 48 + j, for j of 0 to 3, by adding up shifts that do not collide.
    (flags >> 15).wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48 & 0xf
});
bucket_of_words!(Bucket32, u32, 32, 0x0000_0001_0000_0001, |flags| {
    flags >> 31 & 1 | flags >> 62
});

/// A word whose bytes are all 1.
const BYTES: u64 = 0x0101_0101_0101_0101;

impl Bucket for Bucket24 {
    const CELL_BITS: u32 = 24;

    #[inline]
    fn matches(&self, tag: u32, largest: u32) -> u32 {
        let [first, second, upper] = *self;
        let lower = [first, second].matches(tag & 0xffff, largest);
        let rest = upper ^ (u64::from(tag >> 16) * BYTES);
        lower & !gather_bytes(nonzero(rest, 8, BYTES))
    }

    // Inlined into the loads of the buckets, which a call would put into memory first.
    #[inline(always)]
    fn any_holds<const BUCKETS: usize>(
        buckets: [&Self; BUCKETS],
        tags: [u32; BUCKETS],
        largest: u32,
    ) -> bool {
        // For nine in ten absent elements no cell matches even the upper bits of the remainder.
        let mut equal = 0;
        for (&[_, _, upper], tag) in buckets.into_iter().zip(tags) {
            let rest = upper ^ (u64::from(tag >> 16) * BYTES);
            equal |= rest.wrapping_sub(BYTES) & !rest & (BYTES << 7);
        }
        if equal == 0 {
            return false;
        }
        let mut all = buckets.into_iter().zip(tags);
        all.any(|(bucket, tag)| bucket.matches(tag, largest) != 0)
    }

    #[inline]
    fn occupied(&self) -> u32 {
        // A cell in use has a count above 0, which is in its lower bits.
        let [first, second, _] = *self;
        [first, second].occupied()
    }

    #[inline]
    fn get(&self, cell: u32) -> u32 {
        let [first, second, upper] = *self;
        [first, second].get(cell) | ((upper >> (8 * cell) & 0xff) as u32 * 0x1_0000)
    }

    #[inline]
    fn set(&mut self, cell: u32, value: u32) {
        let change = u64::from((self.get(cell) ^ value) >> 16);
        let mut lower = [self[0], self[1]];
        lower.set(cell, value & 0xffff);
        *self = [lower[0], lower[1], self[2] ^ change << (8 * cell)];
    }
}

/// Moves the highest bit of byte i to bit i.
#[inline]
const fn gather_bytes(flags: u64) -> u32 {
    // Moves bit 8 i to bit 56 + i, by adding up shifts that do not collide.
    ((flags >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Sets the highest bit of each cell that is not zero. Exact, since no carry leaves its cell.
#[inline]
const fn nonzero(cells: u64, bits: u32, ones: u64) -> u64 {
    let highest = ones << (bits - 1);
    (((cells & !highest) + !highest) | cells) & highest
}

/// Returns the flags of the eight cells as a mask.
#[inline]
fn mask_of<const WORDS: usize>(
    words: [u64; WORDS],
    bits: u32,
    gather: impl Fn(u64) -> u64,
    flags: impl Fn(u64) -> u64,
) -> u32 {
    let mut mask = 0;
    for (i, word) in words.into_iter().enumerate() {
        mask |= (gather(flags(word)) as u32) << (i as u32 * 64 / bits);
    }
    mask
}
