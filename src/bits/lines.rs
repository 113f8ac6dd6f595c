//! An array of cache lines: 512 bits as eight 64-bit words, so that one probe of a blocked filter
//! costs one memory access.

use memmap2::MmapMut;

/// 64-bit words in a line.
pub const WORDS_PER_LINE: usize = 8;

/// The words of one line.
pub type Line = [u64; WORDS_PER_LINE];

/// Bytes from which an array asks for pages of 2 MiB: with pages of 4 KiB every access to a table that is
/// larger than the caches has a second miss, that of the page table.
const LARGE_PAGES_FROM_BYTES: usize = 4 << 20;

/// A fixed array of cache lines, each exactly one line of the cache and not parts of two.
///
/// Its memory comes from the system in whole pages, which makes it aligned and zeroed.
#[derive(Debug)]
pub struct Lines {
    pages: MmapMut,
    len: usize,
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
        let len = count as usize;
        let pages = MmapMut::map_anon(len * size_of::<Line>())
            .expect("the system gives memory for the filter");
        if pages.len() >= LARGE_PAGES_FROM_BYTES {
            // Only advice: where the system has no large pages, small ones do.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
        }
        Self { pages, len }
    }

    /// Number of lines.
    pub const fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether there are no lines.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the lines occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len() * Self::LINE_BYTES
    }

    /// All lines. For many accesses take this once: it checks lengths and alignment.
    #[inline]
    pub fn as_slice(&self) -> &[Line] {
        bytemuck::cast_slice(&self.pages)
    }

    /// All lines, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Line] {
        bytemuck::cast_slice_mut(&mut self.pages)
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

impl Clone for Lines {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len());
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
