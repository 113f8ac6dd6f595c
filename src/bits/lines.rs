//! An array of cache lines: 512 bits as eight 64-bit words, so that one probe of a blocked filter
//! costs one memory access.

use super::Pages;

/// 64-bit words in a line.
pub const WORDS_PER_LINE: usize = 8;

/// The words of one line.
pub type Line = [u64; WORDS_PER_LINE];

/// A fixed array of cache lines, each exactly one line of the cache and not parts of two.
///
/// Its memory comes from the system in whole pages, which makes it aligned and zeroed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lines(Pages<Line>);

impl Lines {
    /// Bytes in a line.
    pub const LINE_BYTES: u64 = 64;

    /// `count` ≥ 1 lines of zeros.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub fn new(count: u64) -> Self {
        Self(Pages::new(count as usize))
    }

    /// Number of lines.
    pub const fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether there are no lines.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that the lines occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len() * Self::LINE_BYTES
    }

    /// All lines. For many accesses take this once: it checks lengths and alignment.
    #[inline]
    pub fn as_slice(&self) -> &[Line] {
        self.0.as_slice()
    }

    /// All lines, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Line] {
        self.0.as_mut_slice()
    }

    /// Number of set bits in the whole array: counts them, in time proportional to the size.
    pub fn ones(&self) -> u64 {
        self.as_slice()
            .iter()
            .flatten()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.as_mut_slice().fill(Line::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_lines_of_the_cache_and_begin_as_zeros() {
        for count in [1, 3, 1000, 100_000] {
            let mut lines = Lines::new(count);
            assert_eq!(lines.as_slice().len() as u64, count);
            assert_eq!(lines.as_slice().as_ptr().addr() % size_of::<Line>(), 0);
            assert_eq!(lines.ones(), 0);
            lines.as_mut_slice()[count as usize - 1][7] = u64::MAX;
            let copy = lines.clone();
            assert_eq!((copy.ones(), &copy), (64, &lines));
            lines.clear();
            assert_eq!(lines, Lines::new(count));
        }
    }
}
