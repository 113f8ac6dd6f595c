//! A fixed array of small counters that stop at their largest value.

/// Counters of 1 to 8 bits in 64-bit words. Positions are below [`CounterArray::len`].
///
/// A counter that has reached its largest value is *saturated*: it may have been incremented more
/// often, so it is never decremented again.
///
/// No counter lies in two words, so that each access reads one word. A word holds 64 / width
/// counters; widths that do not divide 64 waste up to 4 bits of it (6 %).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CounterArray {
    words: Vec<u64>,
    len: u64,
    width: u32,
    per_word: u64,
    /// ceil(2^64 / `per_word`): the upper half of position · inverse is position / `per_word`,
    /// exactly for positions below 2^58.
    inverse: u64,
    nonzero: u64,
    saturated: u64,
    overflows: u64,
}

impl CounterArray {
    /// Creates `len` (below 2^58) zeros of `width` (1 to 8) bits.
    pub fn new(len: u64, width: u32) -> Self {
        let per_word = Self::per_word(width);
        Self {
            words: vec![0; len.div_ceil(per_word) as usize],
            len,
            width,
            per_word,
            inverse: (u64::MAX / per_word) + 1,
            nonzero: 0,
            saturated: 0,
            overflows: 0,
        }
    }

    /// Returns the number of counters of `width` bits in a 64-bit word.
    pub const fn per_word(width: u32) -> u64 {
        match 64_u64.checked_div(width as u64) {
            Some(counters @ 1..) => counters,
            // No array has such counters.
            _ => 1,
        }
    }

    /// Returns the bytes that `len` counters of `width` bits occupy.
    pub const fn bytes_of(len: u64, width: u32) -> u64 {
        let per_word = Self::per_word(width);
        len / per_word * 8 + (len % per_word * width as u64).div_ceil(8)
    }

    /// Returns the number of counters.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the array has no counters.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the largest value, 2^width - 1.
    pub const fn largest(&self) -> u8 {
        ((1_u32 << self.width) - 1) as u8
    }

    /// Returns the number of counters above zero, which every write keeps up to date.
    pub const fn nonzero(&self) -> u64 {
        self.nonzero
    }

    /// Returns the share of counters above zero.
    pub fn fill_ratio(&self) -> f64 {
        self.nonzero as f64 / self.len as f64
    }

    /// Returns the number of counters that have reached the largest value.
    pub const fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Returns the number of increments that were lost in saturated counters.
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Returns the bytes that the counters occupy.
    pub const fn memory_bytes(&self) -> u64 {
        Self::bytes_of(self.len, self.width)
    }

    /// Returns the counter at `position`.
    #[inline]
    pub fn get(&self, position: u64) -> u8 {
        let (word, shift) = self.place(position);
        (self.words[word] >> shift) as u8 & self.largest()
    }

    /// Adds one to the counter at `position` unless it is saturated; returns the value before.
    #[inline]
    pub fn increment(&mut self, position: u64) -> u8 {
        let (word, shift) = self.place(position);
        let before = (self.words[word] >> shift) as u8 & self.largest();
        if before == self.largest() {
            self.overflows += 1;
            return before;
        }
        self.words[word] += 1 << shift;
        self.nonzero += u64::from(before == 0);
        self.saturated += u64::from(before + 1 == self.largest());
        before
    }

    /// Subtracts one from the counter at `position` unless it is saturated or zero; returns the
    /// value before.
    #[inline]
    pub fn decrement(&mut self, position: u64) -> u8 {
        let (word, shift) = self.place(position);
        let before = (self.words[word] >> shift) as u8 & self.largest();
        if before != 0 && before != self.largest() {
            self.words[word] -= 1 << shift;
            self.nonzero -= u64::from(before == 1);
        }
        before
    }

    /// Returns the words: counter i is the (i mod p)-th from below in word i / p, with p = 64 /
    /// width counters in a word; the other bits of a word are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Lets `write` change the words, sets the number of lost increments to `overflows`, and counts
    /// the rest again. Returns whether all other bits are zero; if not, the array must not be used.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    pub fn rewrite<E>(
        &mut self,
        overflows: u64,
        write: impl FnOnce(&mut [u64]) -> Result<(), E>,
    ) -> Result<bool, E> {
        write(&mut self.words)?;
        self.overflows = overflows;
        self.recount();
        let unused = |word: u64, counters: u64| {
            let bits = counters * u64::from(self.width);
            bits < 64 && word >> bits != 0
        };
        let in_last = self.len - self.len.saturating_sub(1) / self.per_word * self.per_word;
        let last = self.words.last().copied().unwrap_or(0);
        let any_unused =
            unused(last, in_last) || self.words.iter().any(|&word| unused(word, self.per_word));
        Ok(!any_unused)
    }

    /// Adds the counters of an array of the same length and width, as if its increments had been
    /// made here as well.
    pub fn unite(&mut self, other: &Self) {
        debug_assert_eq!((self.len, self.width), (other.len, other.width));
        self.overflows = self.overflows.saturating_add(other.overflows);
        let largest = u64::from(self.largest());
        for (word, &more) in self.words.iter_mut().zip(&other.words) {
            let mut sums = 0;
            for slot in 0..self.per_word as u32 {
                let shift = slot * self.width;
                let sum = (*word >> shift & largest) + (more >> shift & largest);
                self.overflows = self.overflows.saturating_add(sum.saturating_sub(largest));
                sums |= sum.min(largest) << shift;
            }
            *word = sums;
        }
        self.recount();
    }

    /// Recounts the counters above zero and the saturated ones.
    fn recount(&mut self) {
        (self.nonzero, self.saturated) = (0, 0);
        let largest = u64::from(self.largest());
        for word in &self.words {
            for slot in 0..self.per_word as u32 {
                let value = word >> (slot * self.width) & largest;
                self.nonzero += u64::from(value != 0);
                self.saturated += u64::from(value == largest);
            }
        }
    }

    /// Sets all counters to zero.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.nonzero = 0;
        self.saturated = 0;
        self.overflows = 0;
    }

    #[inline]
    const fn place(&self, position: u64) -> (usize, u32) {
        let word = ((position as u128 * self.inverse as u128) >> 64) as u64;
        let slot = (position - word * self.per_word) as u32;
        (word as usize, slot * self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_vector_of_numbers(
            width in 1_u32..=8,
            len in 1_u64..300,
            writes in prop::collection::vec((any::<u64>(), 0_u32..4), 0..1500),
            spread in 1_u64..300,
        ) {
            let mut counters = CounterArray::new(len, width);
            let mut twin = vec![0_u32; len as usize];
            let (mut saturated, mut overflows) = (0, 0);
            let largest = (1 << width) - 1;
            for (write, direction) in writes {
                let position = write % len.min(spread);
                let value = &mut twin[position as usize];
                if direction == 0 {
                    prop_assert_eq!(u32::from(counters.decrement(position)), *value);
                    if *value != largest {
                        *value = value.saturating_sub(1);
                    }
                } else {
                    prop_assert_eq!(u32::from(counters.increment(position)), *value);
                    overflows += u64::from(*value == largest);
                    saturated += u64::from(*value + 1 == largest);
                    *value = largest.min(*value + 1);
                }
            }
            for (position, &expected) in twin.iter().enumerate() {
                prop_assert_eq!(u32::from(counters.get(position as u64)), expected);
            }
            prop_assert_eq!(counters.nonzero(), twin.iter().filter(|&&v| v != 0).count() as u64);
            prop_assert_eq!(counters.saturated(), saturated);
            prop_assert_eq!(counters.overflows(), overflows);
            prop_assert_eq!(counters.memory_bytes(), CounterArray::bytes_of(len, width));
            let mut copy = CounterArray::new(len, width);
            let write = |to: &mut [u64]| { to.copy_from_slice(counters.words()); Ok::<_, ()>(()) };
            prop_assert_eq!(copy.rewrite(overflows, write), Ok(true));
            prop_assert_eq!(&copy, &counters);
            let mut twice = counters.clone();
            twice.unite(&counters);
            for position in 0..len {
                for _ in 0..counters.get(position) {
                    copy.increment(position);
                }
            }
            copy.overflows += overflows;
            prop_assert_eq!(twice, copy);
            counters.clear();
            prop_assert_eq!(counters, CounterArray::new(len, width));
        }

        #[test]
        fn a_position_is_divided_exactly(width in 1_u32..=8, position in 0_u64..1 << 58) {
            // Builds no array of this length: only the arithmetic of its places is tested.
            let counters = CounterArray::new(1, width);
            let per_word = CounterArray::per_word(width);
            let (word, shift) = counters.place(position);
            prop_assert_eq!(word as u64, position / per_word);
            prop_assert_eq!(u64::from(shift), position % per_word * u64::from(width));
        }
    }
}
