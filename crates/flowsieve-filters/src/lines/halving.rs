//! An array that halves its sample of the elements when it is crowded: its count is about as exact
//! at every load.
//!
//! # Stages
//!
//! The array has L lines. In stage 0 it is a blocked Bloom filter: an element sets k bits in one
//! window of its line. From stage t on it only looks at the elements whose line in stage 0 is one
//! of the first ⌊L / 2^t⌋: they are *sampled*. The lines of the others are cleared and used again:
//! they are *generation* t, in which each new sampled element sets one bit. Older generations are
//! read, but not written.
//!
//! ```text
//!     stage 0  │ 0                                             │
//!     stage 1  │ 0                     │ 1                     │
//!     stage 2  │ 0         │ 1         │ 2                     │
//!     stage 3  │ 0   │ 1   │ 2         │ 3                     │
//! ```
//!
//! Generation 0 has K = ⌊L / 2^t⌋ lines in stage t, and generation g ≥ 1 has 2^(g - 1) K, which
//! begin at that number; up to 2^t - 1 lines at the end are unused. The line of address a, the
//! digest, is `reduce(a, L)` in generation 0, and the one numbered `reduce(a, 2^(g - 1) L)` in
//! generation g. So the elements of a line share one line in each older generation.
//!
//! An element is new if no generation has all of its bits set. It then counts 1 / q, where q is the
//! probability with which a new element would be seen:
//!
//! - in stage 0, q = 1 - the product of the shares of set bits in its window (for lines of 512
//!   bits; smaller ones can be full, so for them the mean over all lines is taken);
//! - in stage t, q = (K / L) S / (bits of generation t), where S is the sum over the clear bits of
//!   generation t of the probability that a new element of that line is in no older generation. It
//!   is a whole number of units of 2^-32, so it does not depend on the order of insertion.
//!
//! Stage 0 ends when 86 % of the bits are set, and every later stage when 60 % of the bits of the
//! written generation are. The last stage also samples by the lowest 32 bits of the digest, which
//! have to be below a falling limit, so that clear bits last.
//!
//! # Why it counts without bias
//!
//! The samples are nested, and the lines kept are those that their elements look at. So an element
//! that was written is found as long as it is sampled, and is not looked for afterwards. An element
//! that was not seen at its first time is not seen later either: its bits were all set in some
//! generation, which keeps them while the element is sampled. So each element has one chance, at
//! its first time, with probability q exactly, and 1 / q has mean 1.

use super::full::{chances_of_full, chances_of_some, full_in, full_places, number, ones};
use super::instructions::{self, AnyMachine, Instructions, Work};
use super::places::{BATCH, MULTIPLIERS, bits_of, masks_in, probed};
use super::probe::{InsertAll, Outcome};
use super::row::{DIGESTS, Digests, Row};
use super::shape::MOST_STAGES;
use super::{LineArray, LineCounter, LineShape};
use crate::bits::Line;
use crate::hashing::{Digest, reduce};
use crate::martingale::{Chances, DistinctCounter};
use crate::saved::unite_lines;
use crate::{Estimate, Sighting};

/// Percentage of set bits at which stage 0 ends, and every later stage.
const FULL_PERCENT: [u128; 2] = [86, 60];

/// One, in the units of [`HalvingLines::weight`] and of the limit of the last stage.
const ONE: u64 = 1 << 32;

/// Share of the clear bits that as many further elements as were counted may set, in the last
/// stage.
const TAIL: f64 = 0.15;

/// Multipliers of the places in generations from 1 on (those of `SplitMix64`); part of the
/// structure's definition.
const LATER_MULTIPLIERS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Bits of [`later_places`] for each generation, in lines of the cache.
const PLACE_BITS: u32 = 9;

/// Returns the number that chooses an element's place in each generation from 1 on. It is
/// independent of its address, and of its places in generation 0.
#[inline(always)]
const fn later_places(digest: Digest) -> u64 {
    let mut places = digest.value().wrapping_mul(LATER_MULTIPLIERS[0]);
    places ^= places >> 32;
    places = places.wrapping_mul(LATER_MULTIPLIERS[1]);
    places ^ places >> 32
}

const _: () = assert!(LATER_MULTIPLIERS[0] != MULTIPLIERS[0]);

/// Returns the n-th digit (from 1 on) of a number as a fraction of 2^64, in this base.
#[inline]
const fn digit(mut number: u64, base: u64, n: u32) -> u64 {
    let mut place = 1;
    while place < n {
        number = number.wrapping_mul(base);
        place += 1;
    }
    reduce(number, base)
}

/// An array of lines that halves its sample of the elements, and its count.
#[derive(Clone, Debug)]
pub(crate) struct HalvingLines {
    array: LineArray,
    counter: LineCounter,
    stage: u32,
    /// The highest sampled digest.
    highest: u64,
    /// Set bits of the written generation.
    ones: u64,
    /// In stage 0, the clear places, unless the lines are those of the cache; from stage 1 on, S.
    clear: u128,
    /// The lowest 32 bits of a sampled digest are below this; only the last stage lowers it.
    limit: u64,
}

impl HalvingLines {
    /// Creates an empty array for elements of `probes` (1 to 8) bits.
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

    /// Returns whether the lines are those of the cache.
    #[inline(always)]
    const fn is_of_cache(&self) -> bool {
        self.shape().is_of_cache()
    }

    /// Returns the last stage: the highest that leaves generation 0 a line, at most
    /// [`MOST_STAGES`].
    const fn stages(&self) -> u32 {
        let twos = self.shape().lines.ilog2();
        if twos < MOST_STAGES { twos } else { MOST_STAGES }
    }

    /// Returns the first line of a generation.
    #[inline(always)]
    const fn begin(&self, generation: u32) -> u64 {
        if generation == 0 { 0 } else { self.len(generation) }
    }

    /// Returns the number of lines of a generation.
    #[inline(always)]
    const fn len(&self, generation: u32) -> u64 {
        (self.shape().lines >> self.stage) << generation.saturating_sub(1)
    }

    /// Returns the line of a sampled element in a generation.
    #[inline(always)]
    const fn line_of(&self, generation: u32, digest: Digest) -> u64 {
        let lines = self.shape().lines << generation.saturating_sub(1);
        self.begin(generation) + reduce(digest.value(), lines)
    }

    /// Returns the 64-bit word of a sampled element in a generation from 1 on, and the bit in it.
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

    /// Returns the masks of an element's bits in the words of its line in generation 0.
    #[inline(always)]
    fn first_masks(&self, digest: Digest) -> Line {
        let bits = bits_of(digest);
        masks_in(self.shape().word_bits, bits, probed(bits, self.probes()))
    }

    /// Returns the number of places of a line in generation 0 that are not full.
    #[inline(always)]
    fn clear_places(&self, line: u64) -> u64 {
        let full = full_places(&ones(&self.array.line(line)), self.probes());
        self.shape().places(self.probes()) - full
    }

    /// Returns the number of set bits of a line.
    #[inline(always)]
    fn ones_of(&self, line: u64) -> u64 {
        ones(&self.array.line(line)).iter().sum()
    }

    pub(crate) const fn probes(&self) -> u32 {
        self.counter.probes()
    }

    /// Returns the lines, to be saved or compared.
    pub(crate) const fn array(&self) -> &LineArray {
        &self.array
    }

    /// Returns the stage: about one element in 2^stage is sampled, or fewer in the last stage.
    pub(crate) const fn stage(&self) -> u32 {
        self.stage
    }

    /// Returns the count, the stage and the limit, to be saved with the lines.
    pub(crate) const fn parts(&self) -> (Option<&DistinctCounter>, u32, u64) {
        (self.counter.count(), self.stage, self.limit)
    }

    /// Restores what was saved, with lines that `read` fills; `None` if stage or limit are out of
    /// range.
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
        self.counter.restore(count);
        (self.stage, self.limit) = (stage, limit);
        self.count_anew();
        Ok(Some(()))
    }

    /// Clears lines and count.
    pub(crate) fn clear(&mut self) {
        if self.stage > 0 || self.ones > 0 {
            self.array.lines.clear();
        }
        self.counter.clear();
        (self.stage, self.highest, self.ones, self.limit) = (0, u64::MAX, 0, ONE);
        self.clear = Self::clear_at_first(self.shape(), self.probes());
    }

    /// Returns the number of elements seen, or `None` if a union added others.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.counter.firsts()
    }

    /// Returns whether an element is sampled.
    #[inline(always)]
    fn samples(&self, digest: Digest) -> bool {
        digest.value() <= self.highest && digest.value() % ONE < self.limit
    }

    /// Returns whether the element was inserted (true for all that were, and for false positives),
    /// or `None` if it is not sampled.
    pub(crate) fn contains(&self, digest: Digest) -> Option<bool> {
        self.samples(digest)
            .then(|| (0..=self.stage).any(|generation| self.is_in(digest, generation)))
    }

    /// Appends the answers for many elements; those that are not sampled count as contained.
    pub(crate) fn contains_all(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        if self.stage == 0 && self.is_of_cache() {
            self.array.contains_all(self.probes(), digests, answers);
        } else {
            answers.extend(digests.iter().map(|&digest| self.contains(digest).unwrap_or(true)));
        }
    }

    /// Returns whether the bits of a sampled element are all set in a generation.
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

    /// Returns the number of set bits of the written generation at which the next stage begins.
    fn full_at(&self) -> u64 {
        if self.stage == self.stages() {
            return u64::MAX;
        }
        let bits = self.len(self.stage) * self.shape().line_bits();
        let percent = FULL_PERCENT[usize::from(self.stage > 0)];
        (u128::from(bits) * percent).div_ceil(100) as u64
    }

    /// Begins the next stage as long as the written generation is crowded.
    fn relieve(&mut self) {
        while self.ones >= self.full_at() {
            self.halve();
        }
    }

    /// Keeps the lines of half of the addresses, and clears the others.
    fn halve(&mut self) {
        let before: Vec<u64> = (0..=self.stage).map(|generation| self.begin(generation)).collect();
        self.stage += 1;
        // In ascending order no line is overwritten before it is moved.
        for (generation, from) in (0..).zip(before) {
            self.array.move_lines(from, self.begin(generation), self.len(generation));
        }
        self.array.clear_from(self.begin(self.stage));
        self.count_anew();
    }

    /// Computes the fields that follow from the bits and the stage, in one scan.
    fn count_anew(&mut self) {
        let sampled = u128::from(self.len(0)) << u64::BITS;
        // One less than the first digest of the line after the last one that is kept.
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

    /// Returns the probability that a new element of a line of the written generation (from 1 on)
    /// is in no older generation, in units of 2^-32.
    #[inline(always)]
    fn weight(&self, line: u64) -> u64 {
        let (shape, stage, probes) = (self.shape(), self.stage, self.probes());
        let clear = u128::from(self.clear_places(line >> (stage - 1))) << 32;
        // Shifts in lines of the cache: a division would take as long as everything else.
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

    /// Returns the probability with which a new element would be seen now, from [`Self::clear`],
    /// which is not maintained in stage 0 in lines of the cache.
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

    /// Lowers the limit in the last stage as far as the clear bits demand.
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

    /// Returns the chances of a new element now.
    pub(super) fn chances(&self) -> Chances {
        if self.stage == 0 && self.is_of_cache() {
            return chances_of_some(&self.array, self.probes());
        }
        Chances::of_seen(self.seen_share())
    }

    /// Returns the count. It always has an upper bound while some new elements would be seen.
    pub(crate) fn estimate(&self) -> Estimate {
        let count = self.counter.count().copied().unwrap_or_default();
        count.estimate_with(|| self.chances(), 0.0)
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
            self.array.set(number, &masks);
            chances_of_full(full, self.probes())
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
        outcome.missed(self.counter.record(chances));
        self.ones += set;
        self.lower_limit();
        self.relieve();
        outcome
    }

    /// Inserts many elements in order; appends the answers.
    pub(crate) fn insert_all<T: Outcome>(&mut self, digests: &[Digest], outcomes: &mut Vec<T>) {
        self.relieve();
        let start = outcomes.len();
        outcomes.resize(start + digests.len(), T::REPEAT);
        instructions::run(InsertHalving { lines: self, digests, outcomes: &mut outcomes[start..] });
    }

    /// Adds the elements of another array of the same shape.
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
        let is_first = self.stage == 0;
        let fill = is_first.then(|| self.array.count_from_fill(self.probes())).flatten();
        self.counter.unite(&other.counter, of_both, fill);
        self.limit = self.limit.min(other.limit);
        self.count_anew();
    }
}

/// Elements to be inserted and their answers, which are those of repeats at first.
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
    /// Inserts the next elements in stage 0, or in small lines in any stage; returns how many.
    #[inline(always)]
    fn insert_first<T: Outcome>(
        &mut self,
        instructions: impl Instructions,
        digests: &[Digest],
        outcomes: &mut [T],
    ) -> usize {
        // So many elements cannot end the stage.
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

    /// Inserts the next elements from stage 1 on, in rows of sampled elements, until the stage
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
            row.read(instructions, self.array.lines.as_slice(), touch, digests);
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
                if (self.stage, self.limit) == (stage, limit) {
                    continue;
                }
                // The other elements of the row may not be sampled any more.
                for (&digest, &number) in digests.iter().zip(numbers).skip(number + 1) {
                    outcomes[number as usize] = self.insert_one(instructions, digest);
                }
                break;
            }
        }
        begin
    }

    /// Finds the next sampled elements among `digests`, at most a row of them. Returns how many
    /// elements were looked at, and how many of them are sampled.
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
