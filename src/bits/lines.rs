//! An array of cache lines: 512 bits as eight 64-bit words, so that one probe of a blocked filter
//! costs one memory access.

/// 64-bit words in a line.
pub const WORDS_PER_LINE: usize = 8;

/// One cache line; the alignment makes it exactly one and not parts of two.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(align(64))]
struct Line([u64; WORDS_PER_LINE]);

/// A fixed array of cache lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lines {
    lines: Vec<Line>,
}

impl Lines {
    /// Bytes in a line.
    pub const LINE_BYTES: u64 = 64;

    /// `count` lines of zeros.
    pub fn new(count: u64) -> Self {
        Self {
            lines: vec![Line::default(); count as usize],
        }
    }

    /// Number of lines.
    pub const fn len(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Whether there are no lines.
    pub const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Bytes that the lines occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len() * Self::LINE_BYTES
    }

    /// The words of line `index`.
    #[inline]
    pub fn get(&self, index: u64) -> &[u64; WORDS_PER_LINE] {
        &self.lines[index as usize].0
    }

    /// The words of line `index`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: u64) -> &mut [u64; WORDS_PER_LINE] {
        &mut self.lines[index as usize].0
    }

    /// Number of set bits in the whole array: counts them, in time proportional to the size.
    pub fn ones(&self) -> u64 {
        self.lines
            .iter()
            .flat_map(|line| line.0)
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.lines.fill(Line::default());
    }
}
