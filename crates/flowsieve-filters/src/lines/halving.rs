//! An array that halves what it watches when it is crowded: a count that is about as exact at every
//! load.
//!
//! # Stages
//!
//! The array has L lines. In stage 0 it is a blocked Bloom filter: an element sets k bits in one
//! window of its line. From stage t on only the elements count whose line in stage 0 is one of the
//! first ⌊L / 2^t⌋: they are *sampled*. The others are not looked at any more, so their lines are
//! cleared and used anew: they are *generation* t, in which each new element that is sampled sets
//! one bit. Older generations are read, and not written.
//!
//! ```text
//!     stage 0  │ 0                                             │
//!     stage 1  │ 0                     │ 1                     │
//!     stage 2  │ 0         │ 1         │ 2                     │
//!     stage 3  │ 0   │ 1   │ 2         │ 3                     │
//! ```
//!
//! Generation 0 has K = ⌊L / 2^t⌋ lines in stage t, and generation g ≥ 1 has 2^(g - 1) K, which begin
//! at that number; up to 2^t - 1 lines at the end are unused. The line of address a, the digest, is
//! `reduce(a, L)` in generation 0, and the one numbered `reduce(a, 2^(g - 1) L)` in generation g. So
//! the elements of a line have one line in each older generation.
//!
//! An element is new if its bits are all set in no generation. It then counts 1 / q, where q is the
//! probability with which a new element would be seen:
//!
//! - in stage 0, q = 1 - the product of the shares of set bits in its window (of lines of 512 bits;
//!   smaller ones can be full, so for them it is the share over all lines);
//! - in stage t, q = (K / L) S / (bits of generation t), where S is the sum over the clear bits of
//!   generation t of the probability that a new element of that line is in no older generation. In
//!   units of 2^-32, so S is a whole number, and does not depend on the order of insertion.
//!
//! In stage 0 the next stage begins when 86 % of the bits are set, and else when 60 % of those of
//! the generation that is written are. In the last stage elements are also sampled by the lowest 32
//! bits of their digest: these have to be below a limit that falls, so that clear bits last.
//!
//! # Why it counts without bias
//!
//! The samples are nested, and the lines kept are those that their elements look at. So an element
//! that was written is found as long as it is sampled, and is not asked for afterwards. And one that
//! was not seen at its first time is not seen later: its bits were all set in some generation, which
//! keeps them while the element is sampled. So each element has one chance, at its first time, with
//! probability q exactly, and 1 / q has mean 1.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::full::{chances_of_full, chances_of_some, full_in, full_places, number, ones};
use super::instructions::{self, AnyMachine, Instructions, Work};
use super::places::{BATCH, MULTIPLIERS, bits_of, masks_in, probed};
use super::probe::{InsertAll, Outcome};
use super::row::{DIGESTS, Digests, Row};
use super::shape::MOST_STAGES;
use super::{LineArray, LineCounter, LineShape};
use crate::bits::Line;
use crate::fill;
use crate::hashing::{Digest, reduce};
use crate::martingale::{Chances, DistinctCounter};
use crate::saved::unite_lines;
use crate::{Estimate, Sighting};

/// Set bits in 100 at which stage 0 ends, and every later one.
const FULL_PERCENT: [u128; 2] = [86, 60];

/// One, in units of the weights of blocks, and of the limit of the last stage.
const ONE: u64 = 1 << 32;

/// Share of the clear bits that the elements which come as often again may take, in the last stage.
const TAIL: f64 = 0.15;

/// Multipliers of the places in generations from 1 on (those of `SplitMix64`); part of the
/// structure's definition.
const LATER_MULTIPLIERS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Bits of [`later_places`] for each generation, in lines of the cache.
const PLACE_BITS: u32 = 9;

/// The number that chooses an element's place in each generation from 1 on: independent of its
/// address, and of its places in generation 0.
#[inline(always)]
const fn later_places(digest: Digest) -> u64 {
    let mut places = digest.value().wrapping_mul(LATER_MULTIPLIERS[0]);
    places ^= places >> 32;
    places = places.wrapping_mul(LATER_MULTIPLIERS[1]);
    places ^ places >> 32
}

const _: () = assert!(LATER_MULTIPLIERS[0] != MULTIPLIERS[0]);

/// The n-th digit (from 1 on) of a number as a fraction of 2^64, in this base.
#[inline]
const fn digit(mut number: u64, base: u64, n: u32) -> u64 {
    let mut place = 1;
    while place < n {
        number = number.wrapping_mul(base);
        place += 1;
    }
    reduce(number, base)
}

/// An array of lines that halves what it watches, and its count.
#[derive(Clone, Debug)]
pub(crate) struct HalvingLines {
    array: LineArray,
    counter: LineCounter,
    stage: u32,
    /// The highest digest that is sampled.
    highest: u64,
    /// Set bits of the generation that is written.
    ones: u64,
    /// Clear places in stage 0, if these are no lines of the cache; from stage 1 on S.
    clear: u128,
    /// Elements are sampled in the last stage if the lowest bits of their digest are below this.
    limit: u64,
}

impl HalvingLines {
    /// An empty array for elements of `probes` (1 to 8) bits.
    pub(crate) fn new(shape: impl Into<LineShape>, probes: u32) -> Self {
        let array = LineArray::new(shape);
        let shape = array.shape();
        let clear = Self::clear_at_first(shape, probes);
        let counter = LineCounter::empty(probes);
        Self { array, counter, stage: 0, highest: u64::MAX, ones: 0, clear, limit: ONE }
    }

    /// Returns `clear` of empty lines.
    fn clear_at_first(shape: LineShape, probes: u32) -> u128 {
        let places = u128::from(shape.lines) * u128::from(shape.places(probes));
        if shape.is_of_cache() { 0 } else { places }
    }

    const fn shape(&self) -> LineShape {
        self.array.shape()
    }

    /// Whether the lines are those of the cache.
    #[inline(always)]
    const fn is_of_cache(&self) -> bool {
        self.shape().is_of_cache()
    }

    /// Most stages after the first one: as many as leave it a line.
    const fn stages(&self) -> u32 {
        let twos = self.shape().lines.ilog2();
        if twos < MOST_STAGES { twos } else { MOST_STAGES }
    }

    /// First line of a generation.
    #[inline(always)]
    const fn begin(&self, generation: u32) -> u64 {
        if generation == 0 { 0 } else { self.len(generation) }
    }

    /// Lines of a generation.
    #[inline(always)]
    const fn len(&self, generation: u32) -> u64 {
        (self.shape().lines >> self.stage) << generation.saturating_sub(1)
    }

    /// The line of a sampled element in a generation.
    #[inline(always)]
    const fn line_of(&self, generation: u32, digest: Digest) -> u64 {
        let lines = self.shape().lines << generation.saturating_sub(1);
        self.begin(generation) + reduce(digest.value(), lines)
    }

    /// The 64-bit word and the bit in it of a sampled element in a generation from 1 on.
    #[inline(always)]
    const fn bit_of(&self, generation: u32, digest: Digest, places: u64) -> (usize, u64) {
        let bits = self.shape().line_bits();
        let place = if self.is_of_cache() {
            places >> (PLACE_BITS * (generation - 1)) & (bits - 1)
        } else {
            digit(places, bits, generation)
        };
        let bit = self.line_of(generation, digest) * bits + place;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// The words of an element's line in which it has a bit, in generation 0.
    #[inline(always)]
    fn first_masks(&self, digest: Digest) -> Line {
        let bits = bits_of(digest);
        masks_in(self.shape().word_bits, bits, probed(bits, self.probes()))
    }

    /// Places of a line in generation 0 that are not full.
    #[inline(always)]
    fn clear_places(&self, line: u64) -> u64 {
        let full = full_places(&ones(&self.array.line(line)), self.probes());
        self.shape().places(self.probes()) - full
    }

    /// Set bits of a line.
    #[inline(always)]
    fn ones_of(&self, line: u64) -> u64 {
        ones(&self.array.line(line)).iter().sum()
    }

    pub(crate) const fn probes(&self) -> u32 {
        self.counter.probes()
    }

    /// The lines, to be saved or compared.
    pub(crate) const fn array(&self) -> &LineArray {
        &self.array
    }

    /// The stage: about one element in 2^stage is sampled, or less in the last one.
    pub(crate) const fn stage(&self) -> u32 {
        self.stage
    }

    /// The count, to be saved with the stage, the limit and the lines.
    pub(crate) const fn parts(&self) -> (Option<&DistinctCounter>, u32, u64) {
        (self.counter.count(), self.stage, self.limit)
    }

    /// Goes on from what was saved, with lines that `read` fills; `None` if that cannot be.
    pub(crate) fn restore<E>(
        &mut self,
        count: DistinctCounter,
        (stage, limit): (u32, u64),
        read: impl FnOnce(&mut LineArray) -> Result<(), E>,
    ) -> Result<Option<()>, E> {
        if stage > self.stages() || limit == 0 || limit > ONE {
            return Ok(None);
        }
        read(&mut self.array)?;
        self.counter.restore(Some(count));
        (self.stage, self.limit) = (stage, limit);
        self.count_anew();
        Ok(Some(()))
    }

    /// Clears it.
    pub(crate) fn clear(&mut self) {
        if self.stage > 0 || self.ones > 0 {
            self.array.clear();
        }
        self.counter.clear();
        (self.stage, self.highest, self.ones, self.limit) = (0, u64::MAX, 0, ONE);
        self.clear = Self::clear_at_first(self.shape(), self.probes());
    }

    /// Elements seen, unless others came in all at once.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.counter.firsts()
    }

    /// Whether an element is looked at.
    #[inline(always)]
    fn samples(&self, digest: Digest) -> bool {
        digest.value() <= self.highest && digest.value() % ONE < self.limit
    }

    /// Whether the element was inserted (true for all that were, and for false positives); `None`
    /// if it is not sampled.
    pub(crate) fn contains(&self, digest: Digest) -> Option<bool> {
        self.samples(digest)
            .then(|| (0..=self.stage).any(|generation| self.is_in(digest, generation)))
    }

    /// The same for many; those that are not sampled count as contained.
    pub(crate) fn contains_all(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        if self.stage == 0 && self.is_of_cache() {
            self.array.contains_all(self.probes(), digests, answers);
        } else {
            answers.extend(digests.iter().map(|&digest| self.contains(digest).unwrap_or(true)));
        }
    }

    /// Whether the bits of a sampled element are all set in a generation.
    #[inline(always)]
    fn is_in(&self, digest: Digest, generation: u32) -> bool {
        if generation == 0 {
            let line = self.array.line(self.line_of(0, digest));
            return line
                .iter()
                .zip(self.first_masks(digest))
                .all(|(word, mask)| word & mask == mask);
        }
        let (word, bit) = self.bit_of(generation, digest, later_places(digest));
        self.words()[word] & bit != 0
    }

    fn words(&self) -> &[u64] {
        self.array.lines.as_slice().as_flattened()
    }

    /// Set bits of the written generation at which the next stage begins.
    fn full_at(&self) -> u64 {
        if self.stage == self.stages() {
            return u64::MAX;
        }
        let bits = self.len(self.stage) * self.shape().line_bits();
        let percent = FULL_PERCENT[usize::from(self.stage > 0)];
        (u128::from(bits) * percent).div_ceil(100) as u64
    }

    /// Begins the next stage while the generation that is written is crowded.
    fn relieve(&mut self) {
        while self.ones >= self.full_at() {
            self.halve();
        }
    }

    /// Keeps the lines of half of the addresses, and clears the others.
    fn halve(&mut self) {
        let before: Vec<u64> = (0..=self.stage).map(|generation| self.begin(generation)).collect();
        self.stage += 1;
        // In this order no line is overwritten before it was moved.
        for (generation, from) in (0..).zip(before) {
            self.array.move_lines(from, self.begin(generation), self.len(generation));
        }
        self.array.clear_from(self.begin(self.stage));
        self.count_anew();
    }

    /// Computes what follows from the bits and the stage, in one scan.
    fn count_anew(&mut self) {
        let sampled = u128::from(self.len(0)) << u64::BITS;
        // The first digest of the line after the last one that is kept, less one.
        self.highest = (sampled.div_ceil(self.shape().lines.into()) - 1) as u64;
        let begin = self.begin(self.stage);
        let (mut ones, mut clear) = (0, 0);
        for line in 0..self.len(self.stage) {
            let set = self.ones_of(begin + line);
            ones += set;
            clear += match self.stage {
                0 if self.is_of_cache() => 0,
                0 => u128::from(self.clear_places(line)),
                _ => u128::from(self.shape().line_bits() - set) * u128::from(self.weight(line)),
            };
        }
        (self.ones, self.clear) = (ones, clear);
        self.lower_limit();
    }

    /// The probability that a new element of a line of the generation that is written (from 1 on)
    /// is in no older generation, in units of 2^-32.
    #[inline(always)]
    fn weight(&self, line: u64) -> u64 {
        let (shape, stage, probes) = (self.shape(), self.stage, self.probes());
        let clear = u128::from(self.clear_places(line >> (stage - 1))) << 32;
        // By shifts, where a division would take as long as all else.
        let of_cache = |share: u128, log2: u32, of: u64| {
            if shape.is_of_cache() { share >> log2 } else { share / u128::from(of) }
        };
        let mut weight = of_cache(clear, 3 + 6 * probes, shape.places(probes)) as u64;
        for generation in 1..stage {
            let older = self.begin(generation) + (line >> (stage - generation));
            let clear = weight * (shape.line_bits() - self.ones_of(older));
            weight = if shape.is_of_cache() { clear >> 9 } else { clear / shape.line_bits() };
        }
        weight
    }

    /// Probability with which a new element would be seen now, if it is one sum.
    #[inline(always)]
    fn seen_share(&self) -> f64 {
        let (shape, stage) = (self.shape(), self.stage);
        let share = number(self.clear) / number(u128::from(self.len(stage)));
        if stage == 0 {
            return share / shape.places(self.probes()) as f64 * self.limit_share();
        }
        let sampled = self.len(0) as f64 / shape.lines as f64;
        share * (sampled / (ONE * shape.line_bits()) as f64) * self.limit_share()
    }

    #[inline(always)]
    fn limit_share(&self) -> f64 {
        self.limit as f64 / ONE as f64
    }

    /// In the last stage: lowers the limit as far as the clear bits demand.
    #[inline(always)]
    fn lower_limit(&mut self) {
        if self.stage < self.stages() || self.clear == 0 {
            return;
        }
        let bits = self.len(self.stage) * self.shape().line_bits();
        let elements = self.counter.count().map_or(0.0, DistinctCounter::about);
        let unlimited = self.seen_share() / self.limit_share();
        let share = TAIL * (bits - self.ones) as f64 / (elements * unlimited);
        // Conversion saturates.
        let limit = (share * ONE as f64) as u64;
        self.limit = self.limit.min(limit.max(1));
    }

    /// Chances of a new element now.
    fn chances(&self) -> Chances {
        if self.stage == 0 && self.is_of_cache() {
            return chances_of_some(&self.array, self.probes());
        }
        Chances::of_seen(self.seen_share())
    }

    /// The count.
    pub(crate) fn estimate(&self) -> Estimate {
        let count = self.counter.count().copied().unwrap_or_default();
        count.estimate_with(|| self.chances(), 0.0)
    }

    /// Share of the new elements that would be seen now.
    pub(crate) fn share_seen_now(&self) -> f64 {
        self.chances().seen
    }

    /// Inserts an element, and counts it if it is new.
    pub(crate) fn insert(&mut self, digest: Digest) -> Sighting {
        self.relieve();
        self.insert_one(AnyMachine, digest)
    }

    #[inline(always)]
    fn insert_one<T: Outcome>(&mut self, instructions: impl Instructions, digest: Digest) -> T {
        if !self.samples(digest) {
            return T::UNSAMPLED;
        }
        if (0..self.stage).any(|generation| self.is_in(digest, generation)) {
            return T::REPEAT;
        }
        if self.stage > 0 {
            self.write_later(digest)
        } else {
            self.write_first(instructions, digest)
        }
    }

    /// Sets the bits of an element in stage 0.
    #[inline(always)]
    fn write_first<T: Outcome>(&mut self, instructions: impl Instructions, digest: Digest) -> T {
        let number = self.line_of(0, digest);
        let (before, masks) = (self.array.line(number), self.first_masks(digest));
        let cleared: u32 =
            before.iter().zip(masks).map(|(word, mask)| (mask & !word).count_ones()).sum();
        if cleared == 0 {
            return T::REPEAT;
        }
        let chances = if self.is_of_cache() {
            let probed = probed(bits_of(digest), self.probes());
            let full = full_in(&instructions.only(&before, probed));
            let (missed, seen) = chances_of_full(full, self.probes());
            self.array.set(number, &masks);
            Chances { seen, missed }
        } else {
            let chances = Chances::of_seen(self.seen_share());
            let clear = self.clear_places(number);
            self.array.set(number, &masks);
            self.clear -= u128::from(clear - self.clear_places(number));
            chances
        };
        self.record(chances, cleared.into())
    }

    /// Sets the bit of an element that is in no older generation.
    #[inline(always)]
    fn write_later<T: Outcome>(&mut self, digest: Digest) -> T {
        let stage = self.stage;
        let (word, bit) = self.bit_of(stage, digest, later_places(digest));
        let word = &mut self.array.lines.as_mut_slice().as_flattened_mut()[word];
        if *word & bit != 0 {
            return T::REPEAT;
        }
        *word |= bit;
        let chances = Chances::of_seen(self.seen_share());
        let line = self.line_of(stage, digest) - self.begin(stage);
        self.clear -= u128::from(self.weight(line));
        self.record(chances, 1)
    }

    /// Counts an element that has set `set` bits.
    #[inline(always)]
    fn record<T: Outcome>(&mut self, chances: Chances, set: u64) -> T {
        let mut outcome = T::FIRST;
        outcome.missed(self.counter.record((chances.missed, chances.seen)));
        self.ones += set;
        self.lower_limit();
        self.relieve();
        outcome
    }

    /// Inserts many elements in order; the answer for each is appended.
    pub(crate) fn insert_all<T: Outcome>(&mut self, digests: &[Digest], outcomes: &mut Vec<T>) {
        self.relieve();
        let start = outcomes.len();
        outcomes.resize(start + digests.len(), T::REPEAT);
        instructions::run(InsertHalving { lines: self, digests, outcomes: &mut outcomes[start..] });
    }

    /// Sets the bits of another array of the same length as well, and counts both together.
    pub(crate) fn unite(&mut self, other: &Self) {
        let of_both = [Some(self.estimate()), Some(other.estimate())];
        let mut other = other.clone();
        while self.stage < other.stage {
            self.halve();
        }
        while other.stage < self.stage {
            other.halve();
        }
        unite_lines(&mut self.array.lines, &other.array.lines);
        let fill = (self.stage == 0).then(|| self.count_from_fill()).flatten();
        self.counter.unite(&other.counter, of_both, fill);
        self.limit = self.limit.min(other.limit);
        self.count_anew();
    }

    /// The count from the fill, in stage 0.
    fn count_from_fill(&self) -> Option<Estimate> {
        fill::in_lines(self.array.lines.ones(), self.shape(), self.probes())
    }
}

/// Elements to be inserted, and the answer for each, which is that of a repeat until it is known.
struct InsertHalving<'a, T> {
    lines: &'a mut HalvingLines,
    digests: &'a [Digest],
    outcomes: &'a mut [T],
}

impl<T: Outcome> Work for InsertHalving<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let Self { lines, mut digests, mut outcomes } = self;
        while !digests.is_empty() {
            let done = if lines.stage > 0 && lines.is_of_cache() {
                lines.insert_later(instructions, digests, outcomes)
            } else {
                lines.insert_first(instructions, digests, outcomes)
            };
            digests = &digests[done..];
            outcomes = &mut outcomes[done..];
        }
    }
}

impl HalvingLines {
    /// Inserts the next elements in stage 0, or in small lines; returns how many.
    #[inline(always)]
    fn insert_first<T: Outcome>(
        &mut self,
        instructions: impl Instructions,
        digests: &[Digest],
        outcomes: &mut [T],
    ) -> usize {
        // These surely do not end the stage.
        let room = self.full_at().saturating_sub(self.ones + 1) / u64::from(self.probes());
        let many = room.min(digests.len() as u64) as usize;
        if many < BATCH || !self.is_of_cache() {
            let few = digests.len().min(DIGESTS);
            for (&digest, outcome) in digests[..few].iter().zip(outcomes) {
                *outcome = self.insert_one(instructions, digest);
            }
            return few;
        }
        let work = InsertAll {
            touch: self.array.is_touched_first(),
            lines: self.array.lines.as_mut_slice(),
            counter: &mut self.counter,
            digests: &digests[..many],
            outcomes: &mut outcomes[..many],
            cleared: &mut self.ones,
        };
        work.run_with(instructions);
        many
    }

    /// Inserts the next elements from stage 1 on, rows of those that are sampled, until the stage
    /// ends; returns how many.
    #[inline(always)]
    fn insert_later<T: Outcome>(
        &mut self,
        instructions: impl Instructions,
        digests: &[Digest],
        outcomes: &mut [T],
    ) -> usize {
        let touch = self.array.is_touched_first();
        let mut row = Row::new(std::iter::once(self.probes()));
        let (mut sampled, mut numbers) = ([Digest::from_value(0); DIGESTS], [0_u32; DIGESTS]);
        let mut begin = 0;
        let stage = self.stage;
        while begin < digests.len() && self.stage == stage {
            let (end, found) = self.find_sampled(&digests[begin..], &mut sampled, &mut numbers);
            let outcomes = &mut outcomes[begin..begin + end];
            outcomes.fill(T::UNSAMPLED);
            begin += end;
            let (digests, numbers) = (&sampled[..found], &numbers[..found]);
            for &number in numbers {
                outcomes[number as usize] = T::REPEAT;
            }
            row.ask(instructions, self.array.lines.as_slice(), touch, digests);
            let (mut absent, mut some) = ([0_u8; DIGESTS], 0);
            for number in row.absent() {
                let (digest, words) = (digests[number], self.words());
                let places = later_places(digest);
                let mut is_absent = true;
                for generation in 1..stage {
                    let (word, bit) = self.bit_of(generation, digest, places);
                    is_absent &= words[word] & bit == 0;
                }
                absent[some % DIGESTS] = number as u8;
                some += usize::from(is_absent);
            }
            let limit = self.limit;
            for &number in &absent[..some] {
                let number = usize::from(number);
                outcomes[numbers[number] as usize] = self.write_later(digests[number]);
                // The next ones may be sampled no more.
                if (self.stage, self.limit) != (stage, limit) {
                    for (&digest, &number) in digests.iter().zip(numbers).skip(number + 1) {
                        outcomes[number as usize] = self.insert_one(instructions, digest);
                    }
                    break;
                }
            }
        }
        begin
    }

    /// Finds the next elements that are sampled, at most a row of them, among `digests`: returns
    /// how many were looked at, and how many are sampled.
    #[inline(always)]
    fn find_sampled(
        &self,
        digests: &[Digest],
        sampled: &mut Digests,
        numbers: &mut [u32; DIGESTS],
    ) -> (usize, usize) {
        let (mut found, mut end) = (0, 0);
        while end < digests.len() && found < DIGESTS {
            let digest = digests[end];
            sampled[found] = digest;
            numbers[found] = end as u32;
            found += usize::from(self.samples(digest));
            end += 1;
        }
        (end, found)
    }
}

#[cfg(test)]
mod tests;
