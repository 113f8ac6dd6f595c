//! An array of cache lines: 512 bits as eight 64-bit words, so that one probe of a blocked filter
//! costs one memory access.

use super::Pages;
use std::hint::black_box;

/// 64-bit words in a line.
pub const WORDS_PER_LINE: usize = 8;

/// The words of one line.
pub type Line = [u64; WORDS_PER_LINE];

/// Lines from which an array has its own pages. A shard's share of a filter has fewer: to ask
/// the system for them, once for each, and to give them back would cost more than to fill them.
const OWN_PAGES_FROM: u64 = (64 << 10) / Lines::LINE_BYTES;

/// A fixed array of cache lines, each exactly one line of the cache and not parts of two.
#[derive(Debug)]
pub struct Lines {
    memory: Memory,
    count: u64,
}

#[derive(Debug)]
enum Memory {
    /// A part of the heap; the lines begin at word `start`.
    Shared {
        words: Vec<u64>,
        start: usize,
    },
    Own(Pages<Line>),
}

impl Lines {
    /// Bytes in a line.
    pub const LINE_BYTES: u64 = 64;

    /// `count` ≥ 1 lines of zeros.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub fn new(count: u64) -> Self {
        let memory = if count < OWN_PAGES_FROM {
            let words = (count as usize + 1) * WORDS_PER_LINE;
            let mut zeros = Vec::with_capacity(words);
            // Written here: of memory that is zero without it, a page that is read before it is
            // written is fetched twice.
            black_box(&mut zeros).resize(words, 0);
            let beyond = zeros.as_ptr().addr().wrapping_neg() % size_of::<Line>();
            Memory::Shared { words: zeros, start: beyond / size_of::<u64>() }
        } else {
            Memory::Own(Pages::new(count as usize))
        };
        Self { memory, count }
    }

    /// Number of lines.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no lines.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Words in all lines.
    const fn words(&self) -> usize {
        self.count as usize * WORDS_PER_LINE
    }

    /// Bytes that the lines occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len() * Self::LINE_BYTES
    }

    /// All lines. For many accesses take this once: it checks lengths and alignment.
    #[inline]
    pub fn as_slice(&self) -> &[Line] {
        match &self.memory {
            Memory::Shared { words, start } => {
                bytemuck::cast_slice(&words[*start..][..self.words()])
            }
            Memory::Own(pages) => pages.as_slice(),
        }
    }

    /// All lines, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Line] {
        let len = self.words();
        match &mut self.memory {
            Memory::Shared { words, start } => {
                bytemuck::cast_slice_mut(&mut words[*start..][..len])
            }
            Memory::Own(pages) => pages.as_mut_slice(),
        }
    }

    /// Number of set bits in the whole array: counts them, in time proportional to the size.
    pub fn ones(&self) -> u64 {
        self.as_slice().iter().flatten().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.as_mut_slice().fill(Line::default());
    }
}

impl Clone for Lines {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.count);
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Lines {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_lines_of_the_cache_and_begin_as_zeros() {
        for count in [1, 3, 1000, 1023, 1024, 100_000] {
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
