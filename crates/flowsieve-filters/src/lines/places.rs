//! Where the bits of a digest are: its line, its place in each word, and the words that are probed.

use crate::bits::{Line, WORDS_PER_LINE};
use crate::hashing::{Digest, reduce};

/// Multipliers for the bits in the line (those of the finalizer of `MurmurHash3`); part of the
/// structures' definition.
pub(super) const MULTIPLIERS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// Digests whose lines are touched together: about as many misses as a core can have under way.
pub(super) const BATCH: usize = 32;

/// Where the bits of a batch of digests are.
///
/// Aligned so that each vector that is stored into it lies in one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Places {
    /// [`line_of`] each digest.
    pub(super) lines: [u64; BATCH],
    /// [`bits_of`] each digest.
    pub(super) bits: [u64; BATCH],
    /// The [`probed`] words of each digest.
    pub(super) probed: [u8; BATCH],
}

impl Places {
    pub(super) const NONE: Self = Self { lines: [0; BATCH], bits: [0; BATCH], probed: [0; BATCH] };
}

#[inline(always)]
pub(super) fn line_of(digest: Digest, lines: usize) -> usize {
    reduce(digest.value(), lines as u64) as usize
}

/// Returns the number that chooses the bits in the line. It is independent of the line, which is
/// chosen by the digest's highest bits.
#[inline(always)]
pub(super) const fn bits_of(digest: Digest) -> u64 {
    let mut bits = digest.value().wrapping_mul(MULTIPLIERS[0]);
    bits ^= bits >> 32;
    bits = bits.wrapping_mul(MULTIPLIERS[1]);
    bits ^ bits >> 32
}

/// Returns the probed words as a mask: k ones from the first word on, wrapped around after the
/// eighth.
#[inline(always)]
pub(super) const fn probed(bits: u64, probes: u32) -> u8 {
    let ones = ((1_u64 << probes) - 1) << (bits >> 61);
    (ones | ones >> WORDS_PER_LINE) as u8
}

/// Returns the masks of [`probed`] for each first word, one byte each, the first word lowest.
pub(super) const fn windows(probes: u32) -> u64 {
    let mut windows = [0; WORDS_PER_LINE];
    let mut first = 0;
    while first < WORDS_PER_LINE {
        windows[first] = probed((first as u64) << 61, probes);
        first += 1;
    }
    u64::from_le_bytes(windows)
}

/// Returns the bit of each probed word, and 0 for the others. Bits 0 to 47 of the mixed digest are
/// a place of six bits for each word, bits 61 to 63 the first word.
#[inline(always)]
pub(super) fn masks(bits: u64, probed: u8) -> Line {
    let mut masks = [0; WORDS_PER_LINE];
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask = u64::from(probed >> word & 1) << (bits >> (6 * word) & 63);
    }
    masks
}

/// [`masks`] in lines whose words have `word_bits` bits. The places in the words are the digits, in
/// this base, of the mixed digest without its bits 61 to 63, the highest digit first.
#[inline]
pub(super) fn masks_in(word_bits: u32, bits: u64, probed: u8) -> Line {
    if word_bits == u64::BITS {
        return masks(bits, probed);
    }
    let mut masks = [0; WORDS_PER_LINE];
    let mut rest = bits << 3;
    for (word, mask) in masks.iter_mut().enumerate() {
        let digit = u128::from(rest) * u128::from(word_bits);
        rest = digit as u64;
        *mask = u64::from(probed >> word & 1) << (digit >> 64) as u32;
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_bit_in_each_of_consecutive_words() {
        for value in 0..2_000_u64 {
            let digest = Digest::from_value(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for probes in 1..=8 {
                let bits = bits_of(digest);
                let window = probed(bits, probes);
                assert_eq!(windows(probes).to_le_bytes()[(bits >> 61) as usize], window);
                for word_bits in [1, 7, 8, 62, 64] {
                    let masks = masks_in(word_bits, bits, window);
                    assert!(masks.iter().all(|mask| mask.count_ones() <= 1));
                    assert!(masks.iter().all(|&mask| mask >> (word_bits - 1) < 2));
                    let probed: Vec<usize> = (0..8).filter(|&word| masks[word] != 0).collect();
                    assert_eq!(probed.len() as u32, probes);
                    // The probed words are consecutive (cyclic): at most one is followed by a word
                    // that is not probed.
                    let ends = (0..8).filter(|&w| masks[w] != 0 && masks[(w + 1) % 8] == 0);
                    assert_eq!(ends.count(), usize::from(probes < 8));
                }
            }
        }
    }
}
