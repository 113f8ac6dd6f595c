//! Bits of digests in cache lines: what the structures with lines share.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from
//! a random one on. More than eight bits lie in several lines ([`mod@shares`]). Words have 64 bits,
//! or fewer in a small array, which then is filled one digest at a time ([`mod@shape`]).
//!
//! Large arrays are taken in batches of 32: the lines of a batch are touched first, so that all of
//! their cache misses are under way together, and probed after that. In a small array touching
//! costs more than it brings.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

mod count;
mod full;
mod halving;
mod in_turn;
mod instructions;
mod places;
mod probe;
mod row;
mod shape;
mod shares;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod weighing;

pub(super) use count::LineCounter;
pub(crate) use halving::HalvingLines;
pub use shape::LineShape;
pub(super) use shares::shares;
pub use weighing::{WeighingFilter, Weight};

use super::saved::{LoadError, StateReader, StateWriter, unite_lines};
use super::{Estimate, fill};
use crate::bits::{Line, Lines, WORDS_PER_LINE};
use crate::hashing::{Digest, reduce};
use crate::martingale::Chances;
use crate::sizing::MAX_LINE_PROBES;
use in_turn::{Columns, InsertInTurn};
use instructions::AnyMachine;
use places::{bits_of, masks_in, probed};
use probe::{ContainsAll, InsertAll, Outcome};
use row::{DIGESTS, Digests, Row};
use std::io;

/// Bytes from which lines are touched first: what is well beyond the second-level cache.
const TOUCH_FROM_BYTES: u64 = 4 << 20;

/// An array of lines.
#[derive(Clone, Debug)]
pub(super) struct LineArray {
    pub(super) lines: Lines,
    shape: LineShape,
}

impl LineArray {
    /// An array of at least one line.
    pub(super) fn new(shape: impl Into<LineShape>) -> Self {
        let shape = shape.into();
        Self { lines: Lines::new(shape.bytes().div_ceil(Lines::LINE_BYTES)), shape }
    }

    /// The lines that it has.
    #[inline]
    pub(super) const fn shape(&self) -> LineShape {
        self.shape
    }

    /// The words of a line.
    #[inline(always)]
    pub(super) fn line(&self, number: u64) -> Line {
        if self.shape.is_of_cache() {
            return self.lines.as_slice()[number as usize];
        }
        let (words, width) = (self.lines.as_slice().as_flattened(), self.shape.word_bits);
        std::array::from_fn(|word| {
            let (at, shift) = self.place_of(number, word);
            let next = words.get(at + 1).copied().unwrap_or(0);
            let both = u128::from(words[at]) | u128::from(next) << u64::BITS;
            (both >> shift) as u64 & (u64::MAX >> (u64::BITS - width))
        })
    }

    /// Sets the bits of a line that are set in these words; returns whether one was clear.
    #[inline(always)]
    pub(super) fn set(&mut self, number: u64, masks: &Line) -> bool {
        let mut cleared = 0;
        for (word, &mask) in masks.iter().enumerate() {
            let (at, shift) = self.place_of(number, word);
            let both = u128::from(mask) << shift;
            let words = self.lines.as_mut_slice().as_flattened_mut();
            for (word, mask) in
                words[at..].iter_mut().zip([both as u64, (both >> u64::BITS) as u64])
            {
                cleared |= mask & !*word;
                *word |= mask;
            }
        }
        cleared != 0
    }

    /// The number among 64-bit words, and the lowest bit in it, of a word of a line.
    #[inline(always)]
    const fn place_of(&self, line: u64, word: usize) -> (usize, u32) {
        let bit = (line * WORDS_PER_LINE as u64 + word as u64) * self.shape.word_bits as u64;
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    /// Sets the bits of `digest`, and counts it if it is new.
    #[inline]
    pub(super) fn insert<T: Outcome>(&mut self, counter: &mut LineCounter, digest: Digest) -> T {
        if self.is_fast(counter.probes()) {
            return probe::insert(AnyMachine, self.lines.as_mut_slice(), counter, digest);
        }
        let (shape, probes) = (self.shape, counter.probes());
        let of_lines = || {
            shares::of_digest(digest, probes).map(|(digest, share)| {
                let bits = bits_of(digest);
                let masks = masks_in(shape.word_bits, bits, probed(bits, share));
                (reduce(digest.value(), shape.lines), masks, share)
            })
        };
        // As of before the element, also where two of its lines are the same one.
        let chances = shares::chances_of_lines(of_lines().map(|(number, masks, share)| {
            full::chances_at(shape.word_bits, &self.line(number), &masks, share)
        }));
        let mut is_new = false;
        for (number, masks, _) in of_lines() {
            is_new |= self.set(number, &masks);
        }
        if !is_new {
            return T::REPEAT;
        }
        let mut outcome = T::FIRST;
        if counter.is_on() {
            outcome.missed(counter.record(chances));
        }
        outcome
    }

    /// Whether the bits of a digest lie in one line of the cache.
    #[inline]
    const fn is_fast(&self, probes: u32) -> bool {
        self.shape.is_of_cache() && probes <= MAX_LINE_PROBES
    }

    /// The same for many digests in order; the answer for them is appended.
    pub(super) fn insert_all(
        &mut self,
        counter: &mut LineCounter,
        digests: &[Digest],
        outcomes: &mut Vec<impl Outcome>,
    ) {
        if !self.is_fast(counter.probes()) {
            let digests_of = |number: usize, of_one: &mut [Digest]| of_one[0] = digests[number];
            let counters = std::slice::from_mut(counter);
            return self.insert_in_turn(counters, digests.len(), digests_of, outcomes);
        }
        let start = outcomes.len();
        outcomes.resize(start + digests.len(), Outcome::REPEAT);
        instructions::run(InsertAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_mut_slice(),
            counter,
            digests,
            outcomes: &mut outcomes[start..],
            cleared: &mut 0,
        });
    }

    /// Whether there are few enough of them for [`LineArray::insert_in_turn`].
    pub(super) fn can_take_turns(counters: &[LineCounter]) -> bool {
        let lines = counters.iter().map(|it| shares::number_of(it.probes()));
        lines.sum::<usize>() <= DIGESTS
    }

    /// Sets the bits of `elements` of as many digests each as there are counters (at least one,
    /// which [can take turns](Self::can_take_turns)), one after the other, and counts each digest
    /// that is new; the answer for the first digest of each element is appended.
    ///
    /// `digests_of` writes the digests of an element, whose number it is given.
    pub(super) fn insert_in_turn(
        &mut self,
        counters: &mut [LineCounter],
        elements: usize,
        mut digests_of: impl FnMut(usize, &mut [Digest]),
        outcomes: &mut Vec<impl Outcome>,
    ) {
        if !self.shape.is_of_cache() {
            let mut digests = [Digest::from_value(0); DIGESTS];
            for element in 0..elements {
                digests_of(element, &mut digests[..counters.len()]);
                if let [first, others @ ..] = &mut *counters {
                    outcomes.push(self.insert(first, digests[0]));
                    for (counter, &digest) in others.iter_mut().zip(&digests[1..]) {
                        self.insert::<()>(counter, digest);
                    }
                }
            }
            return;
        }
        let touch = self.is_touched_first();
        let columns = &Columns::new(counters);
        let in_row = DIGESTS / columns.len();
        let mut row = Row::new(counters.iter().flat_map(|it| shares(it.probes())));
        let digests = counters.len();
        let mut write = |begin: usize, all: &mut Digests| {
            let of_row = begin.min(elements)..elements.min(begin + in_row);
            let places = all.chunks_exact_mut(columns.len());
            for (element, place) in of_row.clone().zip(places) {
                digests_of(element, &mut place[..digests]);
                columns.spread(place);
            }
            of_row.len()
        };
        // What was written digest by digest cannot be read as vectors at once. So the digests of a
        // row are written before the row ahead of it is inserted.
        let mut rows = [[Digest::from_value(0); DIGESTS]; 2];
        let [this, next] = &mut rows;
        let (mut this, mut next) = (this, next);
        let mut of_this = write(0, this);
        for begin in (0..elements).step_by(in_row) {
            let of_next = write(begin + in_row, next);
            instructions::run(InsertInTurn {
                lines: self.lines.as_mut_slice(),
                touch,
                counters,
                columns,
                row: &mut row,
                digests: this,
                elements: of_this,
                outcomes,
            });
            (this, next, of_this) = (next, this, of_next);
        }
    }

    /// Whether the `probes` bits of `digest` are all set.
    #[inline]
    pub(super) fn contains(&self, probes: u32, digest: Digest) -> bool {
        let mut of_lines = shares::of_digest(digest, probes);
        of_lines.all(|(digest, share)| {
            if self.shape.is_of_cache() {
                return probe::contains(self.lines.as_slice(), share, digest);
            }
            let bits = bits_of(digest);
            let masks = masks_in(self.shape.word_bits, bits, probed(bits, share));
            let line = self.line(reduce(digest.value(), self.shape.lines));
            line.iter().zip(masks).all(|(word, mask)| word & mask == mask)
        })
    }

    /// The same for many digests; the answers are appended.
    pub(super) fn contains_all(&self, probes: u32, digests: &[Digest], answers: &mut Vec<bool>) {
        if !self.shape.is_of_cache() {
            answers.extend(digests.iter().map(|&digest| self.contains(probes, digest)));
            return;
        }
        let mut of_lines = shares(probes).enumerate();
        let start = answers.len();
        if let Some((_, share)) = of_lines.next() {
            self.contains_in_line(share, digests, answers);
        }
        // Of those that are in their lines so far: few, unless they were inserted.
        for (number, share) in of_lines {
            let (mut asked, mut places, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for (place, &digest) in digests.iter().enumerate() {
                if answers[start + place] {
                    asked.push(shares::digest_of(digest, number));
                    places.push(place);
                }
            }
            self.contains_in_line(share, &asked, &mut found);
            for (place, found) in places.into_iter().zip(found) {
                answers[start + place] = found;
            }
        }
    }

    fn contains_in_line(&self, probes: u32, digests: &[Digest], answers: &mut Vec<bool>) {
        instructions::run(ContainsAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_slice(),
            probes,
            digests,
            answers,
        });
    }

    /// Writes its bits.
    pub(super) fn save(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.lines(&self.lines, self.shape.bytes())
    }

    /// Reads its bits.
    pub(super) fn load(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        state.lines(&mut self.lines, self.shape.bytes())
    }

    /// Clears all bits.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// Moves the bits of `count` lines from number `from` on to number `to` ≤ `from` on.
    fn move_lines(&mut self, from: u64, to: u64, count: u64) {
        if self.shape.is_of_cache() {
            let lines = self.lines.as_mut_slice();
            lines.copy_within(from as usize..(from + count) as usize, to as usize);
            return;
        }
        for line in (0..count).filter(|_| from != to) {
            let moved = self.line(from + line);
            self.replace(to + line, &moved);
        }
    }

    /// Clears the lines from this number on.
    fn clear_from(&mut self, number: u64) {
        if self.shape.is_of_cache() {
            return self.lines.as_mut_slice()[number as usize..].fill(Line::default());
        }
        for line in number..self.shape.lines {
            self.replace(line, &Line::default());
        }
    }

    /// Gives a line other words.
    fn replace(&mut self, number: u64, line: &Line) {
        let width = self.shape.word_bits;
        let all = u64::MAX >> (u64::BITS - width);
        for (word, &new) in line.iter().enumerate() {
            let (at, shift) = self.place_of(number, word);
            let words = self.lines.as_mut_slice().as_flattened_mut();
            let [mask, new] = [all, new].map(|bits| u128::from(bits) << shift);
            for (half, word) in words[at..].iter_mut().take(2).enumerate() {
                let shift = u64::BITS * half as u32;
                *word = *word & !((mask >> shift) as u64) | (new >> shift) as u64;
            }
        }
    }

    /// The count; of the fill if it was not kept and no other bits are in the array.
    pub(super) fn estimate(&self, counter: &LineCounter) -> Option<Estimate> {
        let estimate = counter.estimate(|| self.chances(counter.probes()));
        if counter.is_on() { estimate } else { self.count_from_fill(counter.probes()) }
    }

    /// The chances of a new value: about, and the same for a filter that was saved and loaded.
    fn chances(&self, probes: u32) -> Chances {
        full::chances_of_some(self, probes)
    }

    /// The count of values of `probes` bits each, if no other bits are in the array, from the fill.
    fn count_from_fill(&self, probes: u32) -> Option<Estimate> {
        fill::in_lines(self.lines.ones(), self.shape, probes)
    }

    /// Sets the bits of another array of the same length as well, and unites the counts.
    pub(super) fn unite(
        &mut self,
        counters: &mut [LineCounter],
        other: &Self,
        others: &[LineCounter],
    ) {
        let of_both = |array: &Self, counter| array.estimate(counter);
        let before: Vec<[Option<Estimate>; 2]> = counters
            .iter()
            .zip(others)
            .map(|(one, more)| [of_both(self, one), of_both(other, more)])
            .collect();
        unite_lines(&mut self.lines, &other.lines);
        // With several kinds of values it is unknown whose bits fill the lines.
        let fill = match counters {
            [counter] => self.count_from_fill(counter.probes()),
            _ => None,
        };
        for ((counter, more), of_both) in counters.iter_mut().zip(others).zip(before) {
            counter.unite(more, of_both, fill);
        }
    }

    fn is_touched_first(&self) -> bool {
        self.lines.memory_bytes() >= TOUCH_FROM_BYTES
    }
}
