//! A row of batches: their bits are set or asked one after the other, and the answer for them is
//! told after that.
//!
//! Whether an element is new is a coin's toss that no branch predictor knows. So a row has no
//! branch on it: every line is written back, and what remains of it is in which words a bit was
//! clear. That is enough to find the line as it was before a new element of the sample
//! ([`super::count`]), if the row has one.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::FullPlaces;
use super::instructions::Instructions;
use super::places::{BATCH, Places, windows};
use super::probe::Told;
use super::shares::{self, chances_of_lines, shares};
use crate::bits::{Line, WORDS_PER_LINE};
use crate::hashing::Digest;
use std::hint::black_box;

/// Batches in a row. What is stored byte by byte cannot be read as a vector, nor the other way
/// round, before all that was stored earlier is in the cache. So all places are found before the
/// first of them is read, and the answers are written after the last line.
pub(super) const ROW: usize = 4;

/// Digests in a row.
pub(super) const DIGESTS: usize = ROW * BATCH;

/// The digests of a whole row.
pub(super) type Digests = [[Digest; BATCH]; ROW];

/// Some digests of a row, the first one lowest.
pub(super) type Set = u128;
const _: () = assert!(DIGESTS == Set::BITS as usize);

/// [`windows`] of 0 to 8 bits.
const WINDOWS: [u64; WORDS_PER_LINE + 1] = {
    let mut all = [0; WORDS_PER_LINE + 1];
    let mut probes = 1;
    while probes <= WORDS_PER_LINE {
        all[probes] = windows(probes as u32);
        probes += 1;
    }
    all
};

/// Batches of digests.
pub(super) struct Row {
    /// What [`windows`] gives for each digest.
    windows: [[u64; BATCH]; ROW],
    /// How many digests there are.
    len: usize,
    places: [Places; ROW],
    /// The words in which each one's bit was clear; none if it was a repeat.
    cleared: [[u8; BATCH]; ROW],
}

impl Row {
    /// A row of digests that set this many bits, in turn.
    pub(super) fn new(probes: impl Iterator<Item = u32> + Clone) -> Self {
        let mut all = [[0; BATCH]; ROW];
        for (all, probes) in all.as_flattened_mut().iter_mut().zip(probes.cycle()) {
            *all = WINDOWS[probes as usize];
        }
        Self { windows: all, len: 0, places: [Places::NONE; ROW], cleared: [[0; BATCH]; ROW] }
    }

    /// Finds the places of these, of which the first `len` (at least one) count, and forgets those
    /// that were there.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        instructions: impl Instructions,
        lines: &[Line],
        batches: &[[Digest; BATCH]],
        len: usize,
    ) {
        self.len = len;
        let all = batches.iter().zip(&self.windows).zip(&mut self.places);
        for ((digests, windows), places) in all {
            instructions.find(digests, lines.len() as u64, windows, places);
        }
    }

    /// Sets their bits.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        instructions: impl Instructions,
        lines: &mut [Line],
        touch: bool,
    ) {
        let (batches, rest) = (self.len / BATCH, self.len % BATCH);
        let whole = self.places.iter().zip(&mut self.cleared);
        for (places, cleared) in whole.take(batches) {
            if touch {
                touch_lines(lines, &places.lines);
            }
            // Four at a time, which is 4 of 100 faster: the compiler does not unroll it.
            let fours = cleared.as_chunks_mut::<4>().0.iter_mut();
            for (four, cleared) in fours.enumerate() {
                for (i, cleared) in (4 * four..).zip(cleared) {
                    let line = &mut lines[places.lines[i] as usize];
                    (*line, *cleared) = instructions.set(line, places.bits[i], places.probed[i]);
                }
            }
        }
        if rest > 0 {
            let (places, cleared) = (&self.places[batches], &mut self.cleared[batches]);
            if touch {
                touch_lines(lines, &places.lines);
            }
            cleared.fill(0);
            for (i, cleared) in cleared[..rest].iter_mut().enumerate() {
                let line = &mut lines[places.lines[i] as usize];
                (*line, *cleared) = instructions.set(line, places.bits[i], places.probed[i]);
            }
        }
    }

    /// Asks for the bits of whole batches.
    #[inline(always)]
    pub(super) fn contains(
        &mut self,
        instructions: impl Instructions,
        lines: &[Line],
        touch: bool,
    ) {
        let whole = self.places.iter().zip(&mut self.cleared);
        for (places, cleared) in whole.take(self.len / BATCH) {
            if touch {
                touch_lines(lines, &places.lines);
            }
            for (i, cleared) in cleared.iter_mut().enumerate() {
                let line = &lines[places.lines[i] as usize];
                *cleared = instructions.set(line, places.bits[i], places.probed[i]).1;
            }
        }
    }

    /// The answer for each digest that was inserted.
    #[inline(always)]
    pub(super) fn tell<T: Told>(&self, answers: &mut [[T; BATCH]]) {
        // As one loop: loops of a batch are unrolled, and become no vectors then.
        let all = answers.as_flattened_mut().iter_mut();
        for (answer, &cleared) in all.zip(self.cleared.as_flattened()) {
            *answer = if cleared == 0 { T::REPEAT } else { T::FIRST };
        }
    }

    /// The answer for each digest that was asked for.
    #[inline(always)]
    pub(super) fn tell_contained(&self, answers: &mut [[bool; BATCH]]) {
        let all = answers.as_flattened_mut().iter_mut();
        for (answer, &cleared) in all.zip(self.cleared.as_flattened()) {
            *answer = cleared == 0;
        }
    }

    /// Which digests were new when they were inserted.
    #[inline(always)]
    pub(super) fn new_ones(&self, instructions: impl Instructions) -> Set {
        let mut new = 0;
        for (number, cleared) in self.cleared.iter().enumerate() {
            new |= Set::from(instructions.not_zero(cleared)) << (BATCH * number);
        }
        new & self.all()
    }

    /// All digests.
    const fn all(&self) -> Set {
        Set::MAX >> (DIGESTS - self.len)
    }

    /// Counts what was seen of a row that was inserted, in order: all that raise a register, and of
    /// the others those that were new and are in the sample of their counter. The digests of the
    /// counters take turns, and where a counter has several in turn, for as many lines, the first
    /// of them stands for all.
    ///
    /// All that are new were [added](LineCounter::add) before. The answer for each digest is made
    /// complete.
    #[inline(always)]
    pub(super) fn count<T: Told>(
        &self,
        instructions: impl Instructions,
        array: Inserted<'_>,
        batches: &[[Digest; BATCH]],
        counted: Counted<'_>,
        Sets { new, sampled, may_rise }: Sets,
        told: &mut [T],
    ) {
        let Counted { counters, of_column } = counted;
        let Inserted { lines, full } = array;
        let mut left = may_rise | new & sampled;
        if full.is_kept() {
            left |= new;
        }
        let columns = of_column.len();
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left - 1;
            let (batch, i) = place_of(number);
            let column = if columns == 1 { 0 } else { number as usize % columns };
            let counter = &mut counters[usize::from(of_column[column])];
            let (is_new, in_sample) = (new >> number & 1 != 0, sampled >> number & 1 != 0);
            let rise = counter.rise(batches[batch][i]);
            if !is_new && rise.is_none() {
                continue;
            }
            let told = &mut told[number as usize];
            if !is_new {
                told.risen();
            }
            if counter.counts() && in_sample {
                let chances = if counter.is_crowded() {
                    full.chances(counter.probes(), lines.len() as u64)
                } else {
                    let all = shares(counter.probes()).zip(number..);
                    chances_of_lines(all.map(|(share, at)| {
                        let before = self.line_before(instructions, lines, at, number);
                        let (batch, i) = place_of(at);
                        let probed = instructions.only(&before, self.places[batch].probed[i]);
                        chances_in(&probed, share)
                    }))
                };
                told.missed(counter.record_missed(counter.chances(chances)));
            }
            if let Some(rise) = rise {
                counter.raise(rise);
                if !is_new {
                    counter.add_risen();
                }
            }
            if is_new && full.is_kept() {
                for at in (number..).take(shares::number_of(counter.probes())) {
                    let before = self.line_before(instructions, lines, at, at);
                    let (batch, i) = place_of(at);
                    let places = &self.places[batch];
                    let (after, _) = instructions.set(&before, places.bits[i], places.probed[i]);
                    full.change(&before, &after);
                }
            }
        }
    }

    /// The line of a digest as it was before the one numbered `from`, which is not a later one,
    /// from what it is after the row: the bits that this and the later ones set in the line are
    /// cleared again.
    #[inline(always)]
    fn line_before(
        &self,
        instructions: impl Instructions,
        lines: &[Line],
        number: u32,
        from: u32,
    ) -> Line {
        let (batch, i) = place_of(number);
        let index = self.places[batch].lines[i];
        let mut line = self.clear_again(instructions, &lines[index as usize], number);
        let mut same: Set = 0;
        for (number, places) in self.places.iter().enumerate() {
            let equal = instructions.equal(&places.tags, index as u16);
            same |= Set::from(equal) << (BATCH * number);
        }
        // Few lines are there twice in a row.
        let mut later = same & self.all() & Set::MAX << from & !(1 << number);
        while later != 0 {
            let (batch, i) = place_of(later.trailing_zeros());
            if self.places[batch].lines[i] == index {
                line = self.clear_again(instructions, &line, later.trailing_zeros());
            }
            later &= later - 1;
        }
        line
    }

    /// The line without the bits that were set for a digest.
    #[inline(always)]
    fn clear_again(&self, instructions: impl Instructions, line: &Line, number: u32) -> Line {
        let (batch, i) = place_of(number);
        instructions.clear(line, self.places[batch].bits[i], self.cleared[batch][i])
    }
}

/// Whose digests take turns.
pub(super) struct Counted<'a> {
    pub(super) counters: &'a mut [LineCounter],
    /// The number of the counter that each digest of an element is for.
    pub(super) of_column: &'a [u8],
}

/// An array after a row was inserted.
pub(super) struct Inserted<'a> {
    pub(super) lines: &'a [Line],
    /// As of before the row.
    pub(super) full: &'a mut FullPlaces,
}

/// Digests of a row that count.
pub(super) struct Sets {
    /// Those that were new to the lines, by the first digest of each.
    pub(super) new: Set,
    /// Those in the sample of their counter, if it counts.
    pub(super) sampled: Set,
    /// Those that may raise a register.
    pub(super) may_rise: Set,
}

/// Which of these digests have these bits all clear.
#[inline(always)]
pub(super) fn clear_in(
    instructions: impl Instructions,
    batches: &[[Digest; BATCH]],
    bits: u64,
) -> Set {
    let mut clear = 0;
    for (number, digests) in batches.iter().enumerate() {
        let of_batch = instructions.clear_in(digests, bits);
        clear |= Set::from(of_batch) << (BATCH * number);
    }
    clear
}

/// The batch of a row, and the place in it, of a digest of the row.
#[inline(always)]
const fn place_of(number: u32) -> (usize, usize) {
    (number as usize / BATCH % ROW, number as usize % BATCH)
}

#[inline(always)]
fn touch_lines(lines: &[Line], indices: &[u64; BATCH]) {
    let mut touched = 0;
    for &index in indices {
        touched ^= lines[index as usize][0];
    }
    black_box(touched);
}

/// Probabilities that a new element is called a repeat, and that it is called new, in a line with
/// these probed words, and with words of a single one in place of the others: by the product of the
/// probed words' shares of set bits.
#[inline(always)]
pub(super) fn chances_in(probed: &Line, probes: u32) -> (f64, f64) {
    // In whole numbers up to 64^8 = 2^48, and in pairs, so that no multiplication waits for all
    // others.
    let ones = |word: usize| u64::from(probed[word].count_ones());
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    let (full, all) = (low * high, 1 << (6 * probes));
    // 64^-k, exactly.
    let share = f64::from_bits((1023 - 6 * u64::from(probes)) << 52);
    (full as i64 as f64 * share, (all - full as i64) as f64 * share)
}
