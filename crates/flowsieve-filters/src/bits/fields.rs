//! Fields of any width in 64-bit words, which may lie in two words.

/// Returns the field of `width` (1 to 64) bits that begins at this bit.
#[inline]
pub(crate) fn field(words: &[u64], bit: u64, width: u32) -> u64 {
    let word = (bit / 64) as usize;
    let next = words.get(word + 1).copied().unwrap_or(0);
    let both = u128::from(next) << 64 | u128::from(words[word]);
    (both >> (bit % 64)) as u64 & (u64::MAX >> (64 - width))
}

/// Flips the bits of a mask that is moved up to this bit.
#[inline]
pub(crate) fn flip(words: &mut [u64], bit: u64, mask: u64) {
    let word = (bit / 64) as usize;
    let mask = u128::from(mask) << (bit % 64);
    words[word] ^= mask as u64;
    if let Some(next) = words.get_mut(word + 1) {
        *next ^= (mask >> 64) as u64;
    }
}
