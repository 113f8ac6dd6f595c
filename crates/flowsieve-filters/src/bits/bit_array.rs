//! A fixed array of bits that counts how many of them are set.

use super::Pages;

/// Bits in 64-bit words. Positions are below [`BitArray::len`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BitArray {
    words: Pages<u64>,
    len: u64,
    ones: u64,
}

impl BitArray {
    /// Creates `len` zero bits.
    pub fn new(len: u64) -> Self {
        Self { words: Pages::new(len.div_ceil(64) as usize), len, ones: 0 }
    }

    /// Returns the number of bits.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the array has no bits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of set bits, which every write keeps up to date.
    pub const fn ones(&self) -> u64 {
        self.ones
    }

    /// Returns the share of set bits.
    pub fn fill_ratio(&self) -> f64 {
        self.ones as f64 / self.len as f64
    }

    /// Returns the bytes that the bits occupy.
    pub const fn memory_bytes(&self) -> u64 {
        self.len.div_ceil(8)
    }

    /// Returns the bit at `position`.
    #[inline]
    pub fn get(&self, position: u64) -> bool {
        self.words()[(position / 64) as usize] >> (position % 64) & 1 == 1
    }

    /// Sets the bit at `position`; returns whether it was clear before.
    #[inline]
    pub fn set(&mut self, position: u64) -> bool {
        // `fresh` must be a number and not a comparison. If a comparison is added to a count and
        // also branched on by the caller once inlined, rustc 1.95 (opt-level 2 and 3, its pass
        // SimplifyComparisonIntegral; rust-lang/rust 158206) branches on the word instead, drops
        // the comparison, and adds nothing. A test of release builds guards this.
        let word = &mut self.words.as_mut_slice()[(position / 64) as usize];
        let bit = position % 64;
        let fresh = !*word >> bit & 1;
        *word |= 1 << bit;
        self.ones += fresh;
        fresh != 0
    }

    /// Sets the bits at these positions; returns how many of them were clear before.
    #[inline]
    pub fn set_all(&mut self, positions: impl Iterator<Item = u64>) -> u64 {
        let words = self.words.as_mut_slice();
        let mut fresh = 0;
        for position in positions {
            let word = &mut words[(position / 64) as usize];
            let bit = position % 64;
            fresh += !*word >> bit & 1;
            *word |= 1 << bit;
        }
        // Add once at the end: additions one by one would each wait for the last.
        self.ones += fresh;
        fresh
    }

    /// [`BitArray::set_all`] for many elements in order, with one position of each in every row. Adds
    /// the number of bits that were clear to `fresh`.
    #[inline]
    pub fn set_rows<const N: usize>(&mut self, rows: &[[u64; N]], fresh: &mut [u8]) {
        let words = self.words.as_mut_slice();
        let mut ones = 0;
        for (element, fresh) in fresh.iter_mut().enumerate().take(N) {
            let mut of_one = 0;
            for row in rows {
                let position = row[element];
                let word = &mut words[(position / 64) as usize];
                let bit = position % 64;
                of_one += !*word >> bit & 1;
                *word |= 1 << bit;
            }
            *fresh += of_one as u8;
            ones += of_one;
        }
        self.ones += ones;
    }

    /// Clears `there` for each element whose bit is clear.
    #[inline]
    pub fn and_bits(&self, positions: &[u64], there: &mut [u8]) {
        let words = self.words();
        for (&position, there) in positions.iter().zip(there) {
            *there &= (words[(position / 64) as usize] >> (position % 64)) as u8;
        }
    }

    /// Returns the words: bit i is bit i mod 64 of word i / 64; bits beyond the last are zero.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Lets `write` change the words, and counts the set bits again. Returns whether all bits
    /// beyond the last are clear; if not, the array must not be used.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    pub fn rewrite<E>(
        &mut self,
        write: impl FnOnce(&mut [u64]) -> Result<(), E>,
    ) -> Result<bool, E> {
        write(self.words.as_mut_slice())?;
        self.ones = self.words().iter().map(|word| u64::from(word.count_ones())).sum();
        let used = self.len % 64;
        let last = self.words().last().copied().unwrap_or(0);
        Ok(used == 0 || last >> used == 0)
    }

    /// Sets the bits that are set in an array of the same length.
    pub fn unite(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        self.ones = 0;
        for (word, &more) in self.words.as_mut_slice().iter_mut().zip(other.words()) {
            *word |= more;
            self.ones += u64::from(word.count_ones());
        }
    }

    /// Clears all bits.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Callers that branch on the answer, as all structures do: the smallest code that optimised
    /// builds got wrong. Only useful in release mode.
    #[test]
    fn no_caller_makes_the_count_of_set_bits_wrong() {
        #[inline(never)]
        fn any(bits: &mut BitArray, positions: &[u64]) -> bool {
            let mut new = false;
            for &position in positions {
                if bits.set(position) {
                    new = true;
                }
            }
            new
        }
        #[inline(never)]
        fn count(bits: &mut BitArray, positions: &[u64], of_half: &mut [u64; 2]) -> bool {
            let mut new = bits.set(0);
            for chunk in positions.chunks_exact(4) {
                for &position in chunk {
                    if bits.set(position) {
                        new = true;
                        of_half[usize::from(position >= 1500)] += 1;
                    }
                }
            }
            new
        }
        #[inline(never)]
        fn either(bits: &mut BitArray, position: u64) -> u32 {
            if bits.set(position) { 7 } else { 9 }
        }
        let positions: Vec<u64> = (0..400).map(|i| i * 7919 % 3000).collect();
        let recount = |bits: &BitArray| (0..bits.len()).filter(|&i| bits.get(i)).count() as u64;
        let mut bits = BitArray::new(3000);
        assert!(any(&mut bits, &positions[..200]));
        assert!(!any(&mut bits, &positions[..200]));
        assert_eq!((bits.ones(), recount(&bits)), (200, 200));
        let mut of_half = [0; 2];
        assert!(count(&mut bits, &positions, &mut of_half));
        assert_eq!((bits.ones(), recount(&bits)), (400, 400));
        assert_eq!(of_half.iter().sum::<u64>(), 200);
        assert_eq!((either(&mut bits, 2999), either(&mut bits, 2999)), (7, 9));
        assert_eq!((bits.ones(), recount(&bits)), (401, 401));
    }

    proptest! {
        #[test]
        fn behaves_as_a_vector_of_bools(len in 1_u64..700, writes in prop::collection::vec(any::<u64>(), 0..400)) {
            let mut bits = BitArray::new(len);
            let mut twin = vec![false; len as usize];
            for write in writes {
                let position = write % len;
                prop_assert_eq!(bits.set(position), !twin[position as usize]);
                twin[position as usize] = true;
                // One position occurs twice, and two others may.
                let several = [position, position / 2, position / 3, position / 3];
                let fresh = several[1..].iter().filter(|&&it| !std::mem::replace(&mut twin[it as usize], true));
                let fresh = fresh.count() as u64;
                prop_assert_eq!(bits.set_all(several.into_iter()), fresh);
            }
            for (position, &expected) in twin.iter().enumerate() {
                prop_assert_eq!(bits.get(position as u64), expected);
            }
            prop_assert_eq!(bits.ones(), twin.iter().filter(|&&b| b).count() as u64);
            let rows = [[0, len - 1, len / 2], [len / 2, 0, len - 1]];
            let (mut in_rows, mut one_by_one) = (bits.clone(), bits.clone());
            let mut fresh = [1, 0];
            in_rows.set_rows(&rows, &mut fresh);
            let expected = [1, 0].map(|element: usize| one_by_one.set_all(rows.iter().map(|row| row[1 - element])) as u8);
            prop_assert_eq!(fresh, [1 + expected[0], expected[1]]);
            prop_assert_eq!(&in_rows, &one_by_one);
            let mut there = [1, 1, 0];
            bits.and_bits(&rows[1], &mut there);
            prop_assert_eq!(there, [u8::from(bits.get(len / 2)), u8::from(bits.get(0)), 0]);
            let mut copy = BitArray::new(len);
            let words = bits.words().to_vec();
            let write = |to: &mut [u64]| { to.copy_from_slice(&words); Ok::<_, ()>(()) };
            prop_assert_eq!(copy.rewrite(write), Ok(true));
            prop_assert_eq!(&copy, &bits);
            let mut united = BitArray::new(len);
            united.set(0);
            united.unite(&bits);
            bits.set(0);
            prop_assert_eq!(&united, &bits);
            if len % 64 != 0 {
                let write = |to: &mut [u64]| { *to.last_mut().unwrap() |= 1 << (len % 64); Ok::<_, ()>(()) };
                prop_assert_eq!(copy.rewrite(write), Ok(false));
            }
            bits.clear();
            prop_assert_eq!(bits, BitArray::new(len));
        }
    }
}
