//! Arrays of cache lines, shared by the structures that set bits in lines.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from
//! a random one on. More than eight bits lie in several lines ([`mod@shares`]). Words have 64 bits,
//! or fewer in a small array, which takes digests one at a time ([`mod@shape`]).
//!
//! Large arrays take batches of 32 digests: they touch the lines of a batch first, so that all
//! cache misses are under way together, and then probe them. In a small array touching does not
//! pay.

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

use super::saved::{LoadError, StateReader, unite_lines};
use super::{Estimate, fill};
use crate::bits::{Line, Lines, WORDS_PER_LINE, field, flip};
use crate::hashing::{Digest, reduce};
use crate::sizing::MAX_LINE_PROBES;
use in_turn::{Columns, InsertInTurn};
use instructions::AnyMachine;
use places::{bits_of, masks_in, probed};
use probe::{ContainsAll, InsertAll, Outcome};
use row::{DIGESTS, Digests, Row};

/// Smallest array whose lines are touched first: well beyond the second-level cache.
const TOUCH_FROM_BYTES: u64 = 4 << 20;

/// An array of lines.
#[derive(Clone, Debug)]
pub(super) struct LineArray {
    pub(super) lines: Lines,
    shape: LineShape,
}

impl LineArray {
    /// Creates an array of at least one line.
    pub(super) fn new(shape: impl Into<LineShape>) -> Self {
        let shape = shape.into();
        Self { lines: Lines::new(shape.bytes().div_ceil(Lines::LINE_BYTES)), shape }
    }

    /// Returns number and length of the lines.
    #[inline]
    pub(super) const fn shape(&self) -> LineShape {
        self.shape
    }

    /// Returns the words of a line.
    #[inline(always)]
    pub(super) fn line(&self, number: u64) -> Line {
        if self.shape.is_of_cache() {
            return self.lines.as_slice()[number as usize];
        }
        let words = self.lines.as_slice().as_flattened();
        std::array::from_fn(|word| field(words, self.bit_of(number, word), self.shape.word_bits))
    }

    /// Sets the bits of a line that are set in these words; returns whether one was clear.
    #[inline(always)]
    pub(super) fn set(&mut self, number: u64, masks: &Line) -> bool {
        let mut cleared = 0;
        for (word, &mask) in masks.iter().enumerate() {
            let bit = self.bit_of(number, word);
            let both = u128::from(mask) << (bit % 64);
            let words = self.lines.as_mut_slice().as_flattened_mut();
            for (word, mask) in words[(bit / 64) as usize..]
                .iter_mut()
                .zip([both as u64, (both >> u64::BITS) as u64])
            {
                cleared |= mask & !*word;
                *word |= mask;
            }
        }
        cleared != 0
    }

    /// Returns the bit at which a word of a line begins.
    #[inline(always)]
    const fn bit_of(&self, line: u64, word: usize) -> u64 {
        (line * WORDS_PER_LINE as u64 + word as u64) * self.shape.word_bits as u64
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
        // Taken before any bit is set, since two of the lines may be the same.
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
        outcome.missed(counter.record(chances));
        outcome
    }

    /// Returns whether the bits of a digest lie in one line of the cache.
    #[inline]
    const fn is_fast(&self, probes: u32) -> bool {
        self.shape.is_of_cache() && probes <= MAX_LINE_PROBES
    }

    /// [`LineArray::insert`] for many digests in order; appends the answers.
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

    /// Returns whether the counters have few enough lines for [`LineArray::insert_in_turn`].
    pub(super) fn can_take_turns(counters: &[LineCounter]) -> bool {
        let lines = counters.iter().map(|it| shares::number_of(it.probes()));
        lines.sum::<usize>() <= DIGESTS
    }

    /// Inserts elements of several digests each, one after the other: one digest for each counter
    /// (at least one, which [can take turns](Self::can_take_turns)). Counts each digest that is
    /// new, and appends the answer for the first digest of each element.
    ///
    /// `digests_of` is called with the number of an element and writes its digests.
    pub(super) fn insert_in_turn(
        &mut self,
        counters: &mut [LineCounter],
        elements: usize,
        mut digests_of: impl FnMut(usize, &mut [Digest]),
        outcomes: &mut Vec<impl Outcome>,
    ) {
        if !self.shape.is_of_cache() {
            let mut digests = [Digest::from_value(0); DIGESTS];
            let (first, others) = counters.split_first_mut().expect("there is a counter");
            for element in 0..elements {
                digests_of(element, &mut digests[..=others.len()]);
                outcomes.push(self.insert(first, digests[0]));
                for (counter, &digest) in others.iter_mut().zip(&digests[1..]) {
                    self.insert::<()>(counter, digest);
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
        // A vector cannot be loaded right after its values were stored one by one. So the digests
        // of a row are written before the row ahead of it is inserted.
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

    /// Returns whether the `probes` bits of `digest` are all set.
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

    /// [`LineArray::contains`] for many digests; appends the answers.
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
        // Look in the next line only for digests that passed so far: few, unless they were
        // inserted.
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

    /// Reads the bits.
    pub(super) fn load(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        state.lines(&mut self.lines, self.shape.bytes())
    }

    /// Moves `count` lines from number `from` on to number `to` ≤ `from` on.
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

    /// Replaces the words of a line.
    fn replace(&mut self, number: u64, line: &Line) {
        for (word, (&new, old)) in line.iter().zip(self.line(number)).enumerate() {
            let bit = self.bit_of(number, word);
            flip(self.lines.as_mut_slice().as_flattened_mut(), bit, old ^ new);
        }
    }

    /// Returns the count. If values are not counted, it comes from the fill, as if no other bits
    /// were in the array.
    pub(super) fn estimate(&self, counter: &LineCounter) -> Option<Estimate> {
        if !counter.is_on() {
            return self.count_from_fill(counter.probes());
        }
        // Sampled from the lines and not saved, so a loaded filter has the same estimate.
        counter.estimate(|| full::chances_of_some(self, counter.probes()))
    }

    /// Returns the count of values of `probes` bits each from the fill, if no other bits are in the
    /// array.
    fn count_from_fill(&self, probes: u32) -> Option<Estimate> {
        fill::in_lines(self.lines.ones(), self.shape, probes)
    }

    /// Adds the bits of another array of the same shape, and unites the counts.
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
        // With several kinds of values it is unknown which of them fill the lines.
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
