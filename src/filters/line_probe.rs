//! Where a digest's bits stand in a filter of cache lines: shared by the structures that have such.

use crate::bits::WORDS_PER_LINE;

/// Stream of [`mix`](crate::hashing::mix) that chooses the line; part of the structures' definition.
pub(super) const LINE: u64 = 0x10;

/// Stream of [`mix`](crate::hashing::mix) that chooses the bits in the line.
pub(super) const BITS: u64 = 0x11;

/// Word and bit of the `probe`-th probe: consecutive words, each with six random bits of its own.
#[inline]
pub(super) fn place(bits: u64, probe: u32) -> (usize, u64) {
    let word = ((bits >> 61) as u32 + probe) as usize % WORDS_PER_LINE;
    (word, 1 << (bits >> (6 * probe) & 63))
}
