//! An array of cache lines of 512 bits, so that one probe of a blocked filter costs one memory
//! access.

use super::Pages;
use std::hint::black_box;

/// 64-bit words in a line.
pub const WORDS_PER_LINE: usize = 8;

/// The words of one line.
pub type Line = [u64; WORDS_PER_LINE];

/// Smallest number of lines that are allocated in whole pages. Shards often have fewer lines, and
/// to map and unmap pages for each of them would cost more than to fill them.
const OWN_PAGES_FROM: u64 = (64 << 10) / Lines::LINE_BYTES;

/// A fixed array of lines, each aligned to a line of the cache.
#[derive(Debug)]
pub struct Lines {
    memory: Memory,
    count: u64,
}

#[derive(Debug)]
enum Memory {
    /// Words on the heap; the lines begin at word `start`.
    Heap {
        words: Vec<u64>,
        start: usize,
    },
    Pages(Pages<Line>),
}

impl Lines {
    /// Bytes in a line.
    pub const LINE_BYTES: u64 = 64;

    /// Creates `count` ≥ 1 lines of zeros.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub fn new(count: u64) -> Self {
        let memory = if count < OWN_PAGES_FROM {
            let words = (count as usize + 1) * WORDS_PER_LINE;
            let mut zeros = Vec::with_capacity(words);
            // Write the zeros here. If the system gives zeroed memory instead, a page that is read
            // before it is written faults twice.
            black_box(&mut zeros).resize(words, 0);
            let beyond = zeros.as_ptr().addr().wrapping_neg() % size_of::<Line>();
            Memory::Heap { words: zeros, start: beyond / size_of::<u64>() }
        } else {
            Memory::Pages(Pages::new(count as usize))
        };
        Self { memory, count }
    }

    /// Returns the number of lines.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Returns whether there are no lines.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of words in all lines.
    const fn words(&self) -> usize {
        self.count as usize * WORDS_PER_LINE
    }

    /// Returns the bytes that the lines occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len() * Self::LINE_BYTES
    }

    /// Returns all lines. Call it once for many accesses: it checks lengths and alignment.
    #[inline]
    pub fn as_slice(&self) -> &[Line] {
        match &self.memory {
            Memory::Heap { words, start } => bytemuck::cast_slice(&words[*start..][..self.words()]),
            Memory::Pages(pages) => pages.as_slice(),
        }
    }

    /// Returns all lines for writing.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Line] {
        let len = self.words();
        match &mut self.memory {
            Memory::Heap { words, start } => bytemuck::cast_slice_mut(&mut words[*start..][..len]),
            Memory::Pages(pages) => pages.as_mut_slice(),
        }
    }

    /// Counts the set bits of the whole array, in time proportional to the size.
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
