//! A row of batches: their bits are set or asked one after the other, and the answers are
//! given after that.
//!
//! Whether an element is new is a coin's toss that no branch predictor knows. So a row has no
//! branch on it: every line is written back, and the line as it was before is kept where the next
//! one overwrites it, unless the element was new.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::chances_in;
use super::instructions::Instructions;
use super::places::{BATCH, Places, windows};
use super::probe::Outcome;
use super::shares;
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
    /// The [`windows`] of each digest.
    windows: [[u64; BATCH]; ROW],
    /// How many bits each digest sets.
    probes: [u8; DIGESTS],
    /// How many digests there are.
    len: usize,
    places: [Places; ROW],
    /// Bits that were clear, for each digest: 0 if it was a repeat.
    cleared: [[u8; BATCH]; ROW],
    /// Whether an element may have several digests, so that the lines of all are kept.
    keeps_all: bool,
    /// The lines as they were before: of the digests that were new, or of all.
    before: [Line; DIGESTS],
    /// The digests that were new, and how many.
    new: [u8; DIGESTS],
    found: usize,
}

impl Row {
    /// A row of digests that set this many bits, in turn. Whether an element may have several
    /// digests is given.
    pub(super) fn new(probes: impl Iterator<Item = u32> + Clone, several: bool) -> Self {
        let mut of_each = [0; DIGESTS];
        let mut all = [[0; BATCH]; ROW];
        let places = all.as_flattened_mut().iter_mut().zip(&mut of_each);
        for ((all, of_each), probes) in places.zip(probes.cycle()) {
            *all = WINDOWS[probes as usize];
            *of_each = probes as u8;
        }
        Self {
            windows: all,
            probes: of_each,
            len: 0,
            places: [Places::NONE; ROW],
            cleared: [[0; BATCH]; ROW],
            keeps_all: several,
            before: [Line::default(); DIGESTS],
            new: [0; DIGESTS],
            found: 0,
        }
    }

    /// Finds the places of the first `len` (at least one) digests, in place of those before.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        instructions: impl Instructions,
        lines: u64,
        batches: &[[Digest; BATCH]],
        len: usize,
    ) {
        self.len = len;
        let all = batches.iter().zip(&self.windows).zip(&mut self.places);
        for ((digests, windows), places) in all {
            instructions.find(digests, lines, windows, places);
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
        let mut found = 0;
        let batches = self.places.iter().zip(&mut self.cleared);
        for (batch, (places, cleared)) in batches.enumerate().take(self.len.div_ceil(BATCH)) {
            if touch {
                touch_lines(lines, &places.lines);
            }
            let rest = (self.len - batch * BATCH).min(BATCH);
            for (i, cleared) in cleared[..rest].iter_mut().enumerate() {
                let number = batch * BATCH + i;
                let line = &mut lines[places.lines[i] as usize];
                let kept = if self.keeps_all { number } else { found };
                self.before[kept % DIGESTS] = *line;
                self.new[found % DIGESTS] = number as u8;
                (*line, *cleared) = instructions.set(line, places.bits[i], places.probed[i]);
                found += usize::from(*cleared != 0);
            }
        }
        self.found = found;
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

    /// The answer for each digest that was asked for.
    #[inline(always)]
    pub(super) fn tell_contained(&self, answers: &mut [[bool; BATCH]]) {
        let all = answers.as_flattened_mut().iter_mut();
        for (answer, &cleared) in all.zip(self.cleared.as_flattened()) {
            *answer = cleared == 0;
        }
    }

    /// Whether a digest that was asked for is not there.
    #[inline(always)]
    pub(super) fn is_absent(&self, number: usize) -> bool {
        self.cleared.as_flattened()[number] != 0
    }

    /// Counts what was new of a row that was inserted, in order, one digest an element; returns how
    /// many bits were clear. The answer for each is made complete.
    #[inline(always)]
    pub(super) fn count<T: Outcome>(
        &self,
        instructions: impl Instructions,
        counter: &mut LineCounter,
        outcomes: &mut [T],
    ) -> u64 {
        let mut bits = 0;
        let probes = counter.probes();
        for (&number, before) in self.new.iter().zip(&self.before).take(self.found) {
            let (batch, i) = place_of(number.into());
            bits += u64::from(self.cleared[batch][i].count_ones());
            let outcome = &mut outcomes[usize::from(number)];
            *outcome = T::FIRST;
            if counter.is_on() {
                let probed = instructions.only(before, self.places[batch].probed[i]);
                outcome.missed(counter.record(std::iter::once(chances_in(&probed, probes))));
            }
        }
        bits
    }

    /// Counts what was new of a row that was inserted, in order: the digests of the counters take
    /// turns, and where a counter has several in turn, for as many lines, they are one element.
    /// Each counter is given with its first digest in a turn of `columns`. The answer for each
    /// element is that for its first digest.
    #[inline(always)]
    pub(super) fn count_in_turn<T: Outcome>(
        &self,
        instructions: impl Instructions,
        counters: &mut [LineCounter],
        (leads, columns): (&[usize], usize),
        outcomes: &mut [T],
    ) {
        for begin in (0..self.len).step_by(columns) {
            for (&lead, counter) in leads.iter().zip(&mut *counters) {
                let first = begin + lead;
                let all = first..first + shares::number_of(counter.probes());
                let cleared = &self.cleared.as_flattened()[all.clone()];
                if cleared.iter().all(|&cleared| cleared == 0) {
                    continue;
                }
                if lead == 0 {
                    outcomes[begin] = T::FIRST;
                }
                if !counter.is_on() {
                    continue;
                }
                let line = |number: usize| {
                    let (batch, i) = place_of(number);
                    self.places[batch].lines[i]
                };
                let of_lines = all.map(|number| {
                    // As of before the element, also where two of its lines are the same one.
                    let same = (first..number).find(|&earlier| line(earlier) == line(number));
                    let (batch, i) = place_of(number);
                    let before = &self.before[same.unwrap_or(number)];
                    let probed = instructions.only(before, self.places[batch].probed[i]);
                    chances_in(&probed, self.probes[number].into())
                });
                let missed = counter.record(of_lines);
                if lead == 0 {
                    outcomes[begin].missed(missed);
                }
            }
        }
    }
}

/// The batch of a row, and the place in it, of a digest of the row.
#[inline(always)]
const fn place_of(number: usize) -> (usize, usize) {
    (number / BATCH % ROW, number % BATCH)
}

#[inline(always)]
fn touch_lines(lines: &[Line], indices: &[u64; BATCH]) {
    let mut touched = 0;
    for &index in indices {
        touched ^= lines[index as usize][0];
    }
    black_box(touched);
}
