//! A fixed array of bits that knows how many of them are set.

/// Bits in 64-bit words. Reading and writing take a position below [`BitArray::len`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BitArray {
    words: Vec<u64>,
    len: u64,
    ones: u64,
}

impl BitArray {
    /// `len` zero bits.
    pub fn new(len: u64) -> Self {
        Self {
            words: vec![0; len.div_ceil(64) as usize],
            len,
            ones: 0,
        }
    }

    /// Number of bits.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bits at all.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of set bits, kept up to date by every write.
    pub const fn ones(&self) -> u64 {
        self.ones
    }

    /// Share of set bits.
    pub fn fill_ratio(&self) -> f64 {
        self.ones as f64 / self.len as f64
    }

    /// Bytes that the bits occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// The bit at `position`.
    #[inline]
    pub fn get(&self, position: u64) -> bool {
        self.words[(position / 64) as usize] >> (position % 64) & 1 == 1
    }

    /// Sets the bit at `position`; true if it was clear before.
    #[inline]
    pub fn set(&mut self, position: u64) -> bool {
        let word = &mut self.words[(position / 64) as usize];
        let mask = 1 << (position % 64);
        let fresh = *word & mask == 0;
        *word |= mask;
        self.ones += u64::from(fresh);
        fresh
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.ones = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_vector_of_bools(len in 1_u64..700, writes in prop::collection::vec(any::<u64>(), 0..400)) {
            let mut bits = BitArray::new(len);
            let mut twin = vec![false; len as usize];
            for write in writes {
                let position = write % len;
                prop_assert_eq!(bits.set(position), !twin[position as usize]);
                twin[position as usize] = true;
            }
            for (position, &expected) in twin.iter().enumerate() {
                prop_assert_eq!(bits.get(position as u64), expected);
            }
            prop_assert_eq!(bits.ones(), twin.iter().filter(|&&b| b).count() as u64);
            bits.clear();
            prop_assert_eq!(bits, BitArray::new(len));
        }
    }
}
