//! A row of batches: their bits are set or asked one after the other, and what is told of them is told
//! after that.
//!
//! Whether an element is new is a coin's toss that no branch predictor knows. So a row has no branch on
//! it: every line is written back, and what remains of it is in which words a bit was clear. That is
//! enough to find the line as it was before a new element of the sample ([`super::count`]), if the row
//! has one.

#![expect(
    clippy::inline_always,
    reason = "what is not in line is compiled for every machine, and takes twice the time"
)]

use super::count::{LineCounter, Sample};
use super::instructions::Instructions;
use super::places::{BATCH, Places};
use crate::bits::Line;
use crate::filters::Sighting;
use crate::hashing::Digest;
use std::hint::black_box;

/// Batches in a row. What is stored byte by byte cannot be read as a vector, nor the other way round,
/// before all that was stored earlier is in the cache. So all places are found before the first of them is
/// read, and the answers are written after the last line.
pub(super) const ROW: usize = 4;

/// Digests of a row, the first one lowest.
type Digests = u128;
const _: () = assert!(ROW * BATCH == Digests::BITS as usize);

/// Batches of digests.
pub(super) struct Row {
    /// How many there are.
    batches: usize,
    places: [Places; ROW],
    /// The words in which each one's bit was clear; none if it was a repeat.
    cleared: [[u8; BATCH]; ROW],
}

impl Row {
    pub(super) const fn new() -> Self {
        Self {
            batches: 0,
            places: [Places::NONE; ROW],
            cleared: [[0; BATCH]; ROW],
        }
    }

    /// Finds the places of these, of `probes` bits each, and forgets those that were there.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        instructions: impl Instructions,
        lines: &[Line],
        batches: &[[Digest; BATCH]],
        probes: u32,
    ) {
        self.batches = batches.len();
        for (digests, places) in batches.iter().zip(&mut self.places) {
            instructions.find(digests, lines.len() as u64, probes, places);
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
        let places = &self.places[..self.batches];
        for (places, cleared) in places.iter().zip(&mut self.cleared) {
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
    }

    /// Asks for their bits.
    #[inline(always)]
    pub(super) fn contains(
        &mut self,
        instructions: impl Instructions,
        lines: &[Line],
        touch: bool,
    ) {
        let places = &self.places[..self.batches];
        for (places, cleared) in places.iter().zip(&mut self.cleared) {
            if touch {
                touch_lines(lines, &places.lines);
            }
            for (i, cleared) in cleared.iter_mut().enumerate() {
                let line = &lines[places.lines[i] as usize];
                *cleared = instructions.set(line, places.bits[i], places.probed[i]).1;
            }
        }
    }

    /// What is told of each digest that was inserted.
    #[inline(always)]
    pub(super) fn tell(&self, answers: &mut [[Sighting; BATCH]]) {
        // As one loop: loops of a batch are unrolled, and become no vectors then.
        let all = answers.as_flattened_mut().iter_mut();
        for (answer, &cleared) in all.zip(self.cleared.as_flattened()) {
            *answer = if cleared == 0 {
                Sighting::Repeat
            } else {
                Sighting::First
            };
        }
    }

    /// What is told of each digest that was asked for.
    #[inline(always)]
    pub(super) fn tell_contained(&self, answers: &mut [[bool; BATCH]]) {
        let all = answers.as_flattened_mut().iter_mut();
        for (answer, &cleared) in all.zip(self.cleared.as_flattened()) {
            *answer = cleared == 0;
        }
    }

    /// Counts the new ones of these digests, which were inserted, and gives their number.
    #[inline(always)]
    pub(super) fn count(
        &self,
        instructions: impl Instructions,
        lines: &[Line],
        batches: &[[Digest; BATCH]],
        sample: Sample,
        counter: &mut LineCounter,
    ) -> u64 {
        let (mut new, mut taken): (u64, Digests) = (0, 0);
        for (number, digests) in batches.iter().enumerate() {
            let new_ones = instructions.not_zero(&self.cleared[number]);
            new += u64::from(new_ones.count_ones());
            let sampled = new_ones & instructions.sampled(digests, sample);
            taken |= Digests::from(sampled) << (BATCH * number);
        }
        counter.add(new);
        while taken != 0 {
            let (batch, i) = place_of(taken.trailing_zeros());
            let before = self.line_before(instructions, lines, taken.trailing_zeros());
            taken &= taken - 1;
            let probed = instructions.only(&before, self.places[batch].probed[i]);
            counter.record_lost(repeat_probability(&probed, counter.probes()));
        }
        new
    }

    /// The line of a digest as it was before it, from what it is after the row: the bits that it and the
    /// later ones of this line set are cleared again.
    #[inline(always)]
    fn line_before(&self, instructions: impl Instructions, lines: &[Line], number: u32) -> Line {
        let (batch, i) = place_of(number);
        let index = self.places[batch].lines[i];
        let mut line = self.clear_again(instructions, &lines[index as usize], number);
        let mut same: Digests = 0;
        for (number, places) in self.places[..self.batches].iter().enumerate() {
            let equal = instructions.equal(&places.tags, index as u16);
            same |= Digests::from(equal) << (BATCH * number);
        }
        // Few lines are there twice in a row.
        let mut later = same & (Digests::MAX - 1) << number;
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

/// Probability that a new element is called a repeat in a line with these probed words, and with words of
/// a single one in place of the others: the product of the probed words' shares of set bits.
#[inline(always)]
pub(super) fn repeat_probability(probed: &Line, probes: u32) -> f64 {
    // In whole numbers up to 64^8 = 2^48, and in pairs, so that no multiplication waits for all others.
    let ones = |word: usize| u64::from(probed[word].count_ones());
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    // 64^-k, exactly.
    let share = f64::from_bits((1023 - 6 * u64::from(probes)) << 52);
    (low * high) as i64 as f64 * share
}
