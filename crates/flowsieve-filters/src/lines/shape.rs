//! Number and length of the lines of an array.

/// The lines of a blocked filter. Each has eight words of 64 bits, or of fewer bits if lines of the
/// cache would leave too much of a small memory unused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineShape {
    /// Number of lines.
    pub lines: u64,
    /// Bits of each of the eight words of a line (1 to 64).
    pub word_bits: u32,
}

/// This many lines of the cache.
impl From<u64> for LineShape {
    fn from(lines: u64) -> Self {
        Self { lines, word_bits: Self::CACHE_WORD_BITS }
    }
}

impl LineShape {
    const CACHE_WORD_BITS: u32 = 64;

    /// Returns the lines for membership in this memory (at least one byte): lines of the cache if
    /// they leave at most a hundredth of it unused, else the longest lines that do.
    pub fn in_bytes(bytes: u64) -> Self {
        let bytes = bytes.max(1);
        let most = bytes.min(Self::CACHE_WORD_BITS.into()) as u32;
        Self::best(bytes, most.div_ceil(3)..=most, 1)
    }

    /// Returns lines in this memory that can be halved often: 64 or more, unless the memory is too
    /// small for words of about eight bits. If possible, they leave at most a hundredth of the
    /// memory unused at first, and a sixteenth after all halvings.
    pub fn halving(bytes: u64) -> Self {
        let most_lines = (bytes / 8).clamp(1, 1 << MOST_STAGES);
        let multiple = 1 << most_lines.ilog2();
        let most = (bytes / multiple).clamp(1, Self::CACHE_WORD_BITS.into()) as u32;
        Self::best(bytes, most.div_ceil(2)..=most, multiple)
    }

    /// Returns the longest lines that leave little memory unused, also when their number is rounded
    /// down to a multiple; or else those that leave the least.
    fn best(bytes: u64, widths: std::ops::RangeInclusive<u32>, multiple: u64) -> Self {
        let unused = |shape: Self| {
            let in_the_end = shape.lines / multiple * multiple * u64::from(shape.word_bits);
            (bytes - shape.bytes(), bytes - in_the_end)
        };
        let shapes =
            widths.rev().map(|word_bits| Self { lines: bytes / u64::from(word_bits), word_bits });
        let little = |&shape: &Self| {
            let (first, last) = unused(shape);
            first * 100 <= bytes && last * 16 <= bytes
        };
        let least = shapes.clone().min_by_key(|&shape| {
            let (first, last) = unused(shape);
            (first * 100 > bytes, 8 * first + last)
        });
        shapes.clone().find(little).or(least).unwrap_or(Self::from(1))
    }

    /// Returns the bytes of all lines: eight words of w bits are w bytes.
    pub const fn bytes(self) -> u64 {
        self.lines.saturating_mul(self.word_bits as u64)
    }

    /// Returns the bits of a line.
    pub const fn line_bits(self) -> u64 {
        8 * self.word_bits as u64
    }

    /// Returns whether these are lines of the cache.
    #[inline]
    pub(super) const fn is_of_cache(self) -> bool {
        self.word_bits == Self::CACHE_WORD_BITS
    }

    /// Returns the number of windows of a line times the places in each, for values of `probes` (1
    /// to 8) bits.
    #[inline]
    pub(super) const fn places(self, probes: u32) -> u64 {
        8 * (self.word_bits as u64).pow(probes)
    }
}

/// Most stages of a halving array, after the first one.
pub(super) const MOST_STAGES: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_filled_within_a_hundredth() {
        for bytes in (64..20_000).chain([99_999, 1_000_003, 1 << 30]) {
            for shape in [LineShape::in_bytes(bytes), LineShape::halving(bytes)] {
                let unused = bytes - shape.bytes();
                let most = if bytes < 440 { bytes / 18 } else { bytes / 100 };
                assert!(unused <= most, "{bytes}: {shape:?}");
            }
            let shape = LineShape::in_bytes(bytes);
            assert!(shape.word_bits >= 22 && (bytes < 6_400 || shape.is_of_cache()), "{shape:?}");
            let shape = LineShape::halving(bytes);
            let stages = shape.lines.ilog2().min(MOST_STAGES);
            assert!(stages >= 3 && (bytes < 512 || stages == MOST_STAGES), "{bytes}: {shape:?}");
            assert!(bytes < 65_536 || shape.is_of_cache(), "{bytes}: {shape:?}");
        }
        for (bytes, lines, word_bits) in [
            (64, 8, 8),
            (96, 8, 12),
            (512, 64, 8),
            (4096, 64, 64),
            (12_500, 195, 64),
            (32_768, 512, 64),
        ] {
            assert_eq!(LineShape::halving(bytes), LineShape { lines, word_bits });
        }
        for (bytes, lines, word_bits) in [(48, 1, 48), (96, 2, 48), (1000, 16, 62), (4096, 64, 64)]
        {
            assert_eq!(LineShape::in_bytes(bytes), LineShape { lines, word_bits });
        }
    }
}
