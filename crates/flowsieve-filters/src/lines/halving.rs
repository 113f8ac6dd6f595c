//! An array that halves what it watches when it is crowded: a count that is about as exact at every
//! load.
//!
//! # Stages
//!
//! The array has L blocks. In stage 0 it is a blocked Bloom filter: an element sets k bits in one
//! window of its block. From stage t on only the elements count whose address, their digest, begins
//! with t zeros: they are *sampled*. The others are not looked at any more, so their blocks are
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
//! In stage t generation g is at block `L >> (t - g + 1)`, with as many blocks (generation 0 at
//! block 0, with `L >> t`). The block of address a in generation 0 is `reduce(a, L)`, and in
//! generation g ≥ 1 the one numbered `reduce(a << g, L / 2)`.
//!
//! An element is new if its bits are all set in no generation. It then counts 1 / q, where q is the
//! probability with which a new element would be seen:
//!
//! - in stage 0, q = 1 - the product of the shares of set bits in its window (of blocks of 512 bits;
//!   smaller ones can be full, so for them it is the share over all blocks);
//! - in stage t, q = 2^-t S / (bits of generation t), where S is the sum over the clear bits of
//!   generation t of the probability that a new element of that block is in no older generation. In
//!   units of 2^-32, so S is a whole number, and does not depend on the order of insertion.
//!
//! In stage 0 the next stage begins when 86 % of the bits are set, and else when 60 % of those of
//! the generation that is written are. In the last stage elements are also sampled by the lowest 32
//! bits of their digest: these have to be below a limit that falls, so that clear bits last.
//!
//! # Why it counts without bias
//!
//! The samples are nested, and the blocks kept are those that their elements look at. So an element
//! that was written is found as long as it is sampled, and is not asked for afterwards. And one that
//! was not seen at its first time is not seen later: its bits were all set in some generation, which
//! keeps them while the element is sampled. So each element has one chance, at its first time, with
//! probability q exactly, and 1 / q has mean 1.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::full::{WINDOWS_LOG2, chances_in, chances_of_some, full_places, number};
use super::instructions::{self, AnyMachine, Instructions, Work};
use super::places::{BATCH, MULTIPLIERS, bits_of, probed};
use super::probe::{InsertAll, Outcome};
use super::row::{DIGESTS, Digests, ROW, Row};
use super::{LineArray, LineCounter};
use crate::bits::{Line, Lines, WORDS_PER_LINE};
use crate::fill;
use crate::hashing::{Digest, reduce};
use crate::martingale::{Chances, DistinctCounter};
use crate::saved::unite_lines;
use crate::{Estimate, Sighting};

/// Most stages after the first one.
const MOST_STAGES: u32 = 6;

/// Set bits in 100 at which stage 0 ends, and every later one.
const FULL_PERCENT: [u128; 2] = [86, 60];

/// One, in units of the weights of blocks, and of the limit of the last stage.
const ONE: u64 = 1 << 32;

/// Share of the clear bits that the elements which come as often again may take, in the last stage.
const TAIL: f64 = 0.15;

/// Multipliers of the places in generations from 1 on (those of `SplitMix64`); part of the
/// structure's definition.
const LATER_MULTIPLIERS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Bits of [`later_places`] for each generation.
const PLACE_BITS: u32 = 9;

/// Rounds a number of lines down so that the array can be halved often.
pub(crate) fn halving_lines(lines: u64) -> u64 {
    let steps = [64, 32, 16, 8].into_iter();
    let mut rounded = steps.map(|step| lines / step * step);
    let nearly = rounded.find(|&rounded| rounded > 0 && rounded * 16 >= lines * 15);
    let rounded = nearly.unwrap_or(match lines {
        0..8 => lines,
        8..16 => lines / 4 * 4,
        _ => lines / 8 * 8,
    });
    if rounded == lines { lines } else { halving_lines(rounded) }
}

/// The parts of an array that are full or not as a whole: lines, or parts of them if there are less
/// than 64 lines.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Blocks {
    /// Binary logarithm of the bits of a block: 6 to 9.
    bits_log2: u32,
    /// Blocks of the array (L).
    count: u64,
    /// Most stages after the first one: L is a multiple of 2 to their power.
    stages: u32,
}

impl Blocks {
    const fn of(lines: u64) -> Self {
        let twos = if lines.trailing_zeros() > 6 { 6 } else { lines.trailing_zeros() };
        let (bits_log2, stages) = if twos < 3 { (6, 3 + twos) } else { (3 + twos, MOST_STAGES) };
        Self { bits_log2, count: lines << (9 - bits_log2), stages }
    }

    /// Bits of a block.
    const fn bits(self) -> u64 {
        1 << self.bits_log2
    }

    /// Whether blocks are whole lines.
    const fn are_lines(self) -> bool {
        self.bits_log2 == 9
    }

    /// Words of a block.
    const fn words(self) -> usize {
        1 << (self.bits_log2 - 6)
    }

    /// The words of a block.
    #[inline(always)]
    fn range(self, block: u64) -> std::ops::Range<usize> {
        let begin = block as usize * self.words();
        begin..begin + self.words()
    }

    /// The set bits of each of the eight parts of a block.
    #[inline(always)]
    fn ones(self, block: &[u64]) -> Line {
        let width = 1_u32 << (self.bits_log2 - WINDOWS_LOG2);
        let part = u64::MAX >> (u64::BITS - width);
        std::array::from_fn(|number| {
            let at = number as u32 * width;
            let word = block[(at / u64::BITS) as usize] >> (at % u64::BITS);
            u64::from((word & part).count_ones())
        })
    }

    /// The bits of an element in its block, in generation 0: as in a line of eight words.
    #[inline(always)]
    fn masks(self, bits: u64, probed: u8) -> Line {
        let width = 1_u32 << (self.bits_log2 - WINDOWS_LOG2);
        let mut masks = Line::default();
        for number in 0..WORDS_PER_LINE as u32 {
            let place = (bits >> (6 * number)) as u32 & (width - 1);
            let at = number * width + place;
            masks[(at / u64::BITS) as usize] |= u64::from(probed >> number & 1) << (at % u64::BITS);
        }
        masks
    }

    /// Binary logarithm of the places of a block, for values of `probes` bits.
    const fn places_log2(self, probes: u32) -> u32 {
        WINDOWS_LOG2 + (self.bits_log2 - WINDOWS_LOG2) * probes
    }

    /// Places of a block in generation 0 that are not full.
    #[inline(always)]
    fn clear_places(self, block: &[u64], probes: u32) -> u64 {
        (1 << self.places_log2(probes)) - full_places(&self.ones(block), probes)
    }

    /// First block of a generation.
    #[inline(always)]
    const fn begin(self, stage: u32, generation: u32) -> u64 {
        if generation == 0 { 0 } else { self.count >> (stage - generation + 1) }
    }

    /// Blocks of a generation.
    const fn len(self, stage: u32, generation: u32) -> u64 {
        if generation == 0 { self.count >> stage } else { self.begin(stage, generation) }
    }

    /// The block of a sampled address in a generation.
    #[inline(always)]
    const fn block_of(self, stage: u32, generation: u32, address: u64) -> u64 {
        if generation == 0 {
            reduce(address, self.count)
        } else {
            self.begin(stage, generation) + reduce(address << generation, self.count / 2)
        }
    }

    /// The word and the bit of an element in a generation from 1 on.
    #[inline(always)]
    const fn bit_of(self, stage: u32, generation: u32, address: u64, places: u64) -> (usize, u64) {
        let block = self.block_of(stage, generation, address) as usize;
        let place = places >> (PLACE_BITS * (generation - 1)) & (self.bits() - 1);
        (block * self.words() + (place / 64) as usize, 1 << (place % 64))
    }
}

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

/// An array of lines that halves what it watches, and its count.
#[derive(Clone, Debug)]
pub(crate) struct HalvingLines {
    array: LineArray,
    counter: LineCounter,
    blocks: Blocks,
    stage: u32,
    /// Set bits of the generation that is written.
    ones: u64,
    /// Clear places in stage 0, if the blocks are no lines; from stage 1 on S.
    clear: u128,
    /// Elements are sampled in the last stage if the lowest bits of their digest are below this.
    limit: u64,
}

impl HalvingLines {
    /// An empty array of `lines` ≥ 1 of 64 bytes, for elements of `probes` (1 to 8) bits.
    pub(crate) fn new(lines: u64, probes: u32) -> Self {
        let mut empty = Self {
            array: LineArray::new(lines),
            counter: LineCounter::empty(probes),
            blocks: Blocks::of(lines),
            stage: 0,
            ones: 0,
            clear: 0,
            limit: ONE,
        };
        empty.count_anew();
        empty
    }

    pub(crate) const fn probes(&self) -> u32 {
        self.counter.probes()
    }

    pub(crate) const fn lines(&self) -> &Lines {
        &self.array.lines
    }

    /// The stage: an element in 2^stage is sampled, or less in the last one.
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
        read: impl FnOnce(&mut Lines) -> Result<(), E>,
    ) -> Result<Option<()>, E> {
        if stage > self.blocks.stages || limit == 0 || limit > ONE {
            return Ok(None);
        }
        read(&mut self.array.lines)?;
        self.counter.restore(Some(count));
        (self.stage, self.limit) = (stage, limit);
        self.count_anew();
        Ok(Some(()))
    }

    /// Clears it.
    pub(crate) fn clear(&mut self) {
        if !self.is_empty() {
            self.array.clear();
        }
        self.counter.clear();
        (self.stage, self.limit) = (0, ONE);
        self.count_anew();
    }

    /// Whether nothing was ever counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.counter.count().is_none_or(DistinctCounter::is_empty)
    }

    /// Elements seen, unless others came in all at once.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.counter.firsts()
    }

    /// Whether an element is looked at.
    #[inline(always)]
    fn samples(&self, digest: Digest) -> bool {
        digest.value().leading_zeros() >= self.stage && digest.value() % ONE < self.limit
    }

    /// Whether the element was inserted (true for all that were, and for false positives); `None`
    /// if it is not sampled.
    pub(crate) fn contains(&self, digest: Digest) -> Option<bool> {
        self.samples(digest)
            .then(|| (0..=self.stage).any(|generation| self.is_in(digest, generation)))
    }

    /// The same for many; those that are not sampled count as contained.
    pub(crate) fn contains_all(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        if self.stage == 0 && self.blocks.are_lines() {
            self.array.contains_all(self.probes(), digests, answers);
        } else {
            answers.extend(digests.iter().map(|&digest| self.contains(digest).unwrap_or(true)));
        }
    }

    /// Whether the bits of a sampled element are all set in a generation.
    #[inline(always)]
    fn is_in(&self, digest: Digest, generation: u32) -> bool {
        let words = self.words();
        if generation == 0 {
            let block = self.blocks.block_of(self.stage, 0, digest.value());
            let bits = bits_of(digest);
            let masks = self.blocks.masks(bits, probed(bits, self.probes()));
            let block = &words[self.blocks.range(block)];
            return block.iter().zip(masks).all(|(word, mask)| word & mask == mask);
        }
        let places = later_places(digest);
        let (word, bit) = self.blocks.bit_of(self.stage, generation, digest.value(), places);
        words[word] & bit != 0
    }

    fn words(&self) -> &[u64] {
        self.array.lines.as_slice().as_flattened()
    }

    /// Set bits of the written generation at which the next stage begins.
    fn full_at(&self) -> u64 {
        if self.stage == self.blocks.stages {
            return u64::MAX;
        }
        let bits = self.blocks.len(self.stage, self.stage) * self.blocks.bits();
        let percent = FULL_PERCENT[usize::from(self.stage > 0)];
        (u128::from(bits) * percent).div_ceil(100) as u64
    }

    /// Begins the next stage while the generation that is written is crowded.
    fn relieve(&mut self) {
        while self.ones >= self.full_at() {
            self.halve();
        }
    }

    /// Keeps the blocks of half of the addresses, and clears the others.
    fn halve(&mut self) {
        let (blocks, stage) = (self.blocks, self.stage);
        let words = self.array.lines.as_mut_slice().as_flattened_mut();
        // In this order no block is overwritten before it was moved.
        for generation in 1..=stage {
            let begin = blocks.begin(stage, generation) as usize * blocks.words();
            let kept = blocks.len(stage + 1, generation) as usize * blocks.words();
            words.copy_within(begin..begin + kept, begin / 2);
        }
        let half = words.len() / 2;
        words[half..].fill(0);
        self.stage += 1;
        self.count_anew();
    }

    /// Computes what follows from the bits, in one scan.
    fn count_anew(&mut self) {
        let (blocks, stage) = (self.blocks, self.stage);
        let written =
            blocks.begin(stage, stage)..blocks.begin(stage, stage) + blocks.len(stage, stage);
        let (mut ones, mut clear) = (0, 0);
        let words = self.words();
        for block in written.clone() {
            let here = &words[blocks.range(block)];
            let set: u64 = here.iter().map(|word| u64::from(word.count_ones())).sum();
            ones += set;
            clear += match stage {
                0 if blocks.are_lines() => 0,
                0 => u128::from(blocks.clear_places(here, self.probes())),
                _ => {
                    u128::from(blocks.bits() - set) * u128::from(self.weight(block - written.start))
                }
            };
        }
        (self.ones, self.clear) = (ones, clear);
        self.lower_limit();
    }

    /// The probability that a new element of a block of the generation that is written (from 1 on)
    /// is in no older generation, in units of 2^-32.
    #[inline(always)]
    fn weight(&self, block: u64) -> u64 {
        let (blocks, stage, words) = (self.blocks, self.stage, self.words());
        let first = &words[blocks.range(block >> (stage - 1))];
        let all_log2 = blocks.places_log2(self.probes());
        let clear = blocks.clear_places(first, self.probes());
        let mut weight = ((u128::from(clear) << 32) >> all_log2) as u64;
        for generation in 1..stage {
            let block = blocks.begin(stage, generation) + (block >> (stage - generation));
            let ones = words[blocks.range(block)].iter().map(|word| u64::from(word.count_ones()));
            weight = (weight * (blocks.bits() - ones.sum::<u64>())) >> blocks.bits_log2;
        }
        weight
    }

    /// Probability with which a new element would be seen now, if it is one sum.
    #[inline(always)]
    fn seen_share(&self) -> f64 {
        let (blocks, stage) = (self.blocks, self.stage);
        let clear = number(self.clear);
        let places = number(u128::from(blocks.len(stage, stage)));
        if stage == 0 {
            let scale = 0.5_f64.powi(blocks.places_log2(self.probes()) as i32);
            return clear / places * scale * self.limit_share();
        }
        let scale = 0.5_f64.powi((32 + stage + blocks.bits_log2) as i32);
        clear / places * scale * self.limit_share()
    }

    #[inline(always)]
    fn limit_share(&self) -> f64 {
        self.limit as f64 / ONE as f64
    }

    /// In the last stage: lowers the limit as far as the clear bits demand.
    #[inline(always)]
    fn lower_limit(&mut self) {
        if self.stage < self.blocks.stages || self.clear == 0 {
            return;
        }
        let bits = self.blocks.len(self.stage, self.stage) * self.blocks.bits();
        let elements = self.counter.count().map_or(0.0, DistinctCounter::about);
        let unlimited = self.seen_share() / self.limit_share();
        let share = TAIL * (bits - self.ones) as f64 / (elements * unlimited);
        // Conversion saturates.
        let limit = (share * ONE as f64) as u64;
        self.limit = self.limit.min(limit.max(1));
    }

    /// Chances of a new element now.
    fn chances(&self) -> Chances {
        if self.stage == 0 && self.blocks.are_lines() {
            return chances_of_some(self.array.lines.as_slice(), self.probes());
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
        let (blocks, probes) = (self.blocks, self.probes());
        let bits = bits_of(digest);
        let probed = probed(bits, probes);
        let block = blocks.block_of(0, 0, digest.value());
        let chances;
        let words = self.array.lines.as_mut_slice().as_flattened_mut();
        let here = &mut words[blocks.range(block)];
        let masks = blocks.masks(bits, probed);
        let cleared: u32 =
            here.iter().zip(masks).map(|(word, mask)| (mask & !word).count_ones()).sum();
        if cleared == 0 {
            return T::REPEAT;
        }
        if blocks.are_lines() {
            let before: Line = std::array::from_fn(|word| here[word]);
            let (missed, seen) = chances_in(&instructions.only(&before, probed), probes);
            chances = Chances { seen, missed };
            here.iter_mut().zip(masks).for_each(|(word, mask)| *word |= mask);
        } else {
            let before = blocks.clear_places(here, probes);
            here.iter_mut().zip(masks).for_each(|(word, mask)| *word |= mask);
            let after = blocks.clear_places(here, probes);
            chances = Chances::of_seen(self.seen_share());
            self.clear -= u128::from(before - after);
        }
        self.record(chances, cleared.into())
    }

    /// Sets the bit of an element that is in no older generation.
    #[inline(always)]
    fn write_later<T: Outcome>(&mut self, digest: Digest) -> T {
        let (blocks, stage) = (self.blocks, self.stage);
        let (word, bit) = blocks.bit_of(stage, stage, digest.value(), later_places(digest));
        let word = &mut self.array.lines.as_mut_slice().as_flattened_mut()[word];
        if *word & bit != 0 {
            return T::REPEAT;
        }
        *word |= bit;
        let chances = Chances::of_seen(self.seen_share());
        let block = blocks.block_of(stage, stage, digest.value()) - blocks.begin(stage, stage);
        self.clear -= u128::from(self.weight(block));
        self.record(chances, 1)
    }

    /// Counts an element that has set `set` bits.
    #[inline(always)]
    fn record<T: Outcome>(&mut self, chances: Chances, set: u64) -> T {
        let mut outcome = T::FIRST;
        outcome.missed(self.counter.record(std::iter::once((chances.missed, chances.seen))));
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
        let (blocks, ones) = (self.blocks, self.array.lines.ones());
        fill::in_blocks(ones, blocks.count, blocks.bits(), self.probes())
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
            let done = if lines.stage > 0 && lines.blocks.are_lines() {
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
    /// Inserts the next elements in stage 0, or in small blocks; returns how many.
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
        if many < BATCH || !self.blocks.are_lines() {
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
        let mut row = Row::new(std::iter::once(self.probes()), false);
        let (mut sampled, mut numbers) = ([[Digest::from_value(0); BATCH]; ROW], [0_u32; DIGESTS]);
        let mut begin = 0;
        let stage = self.stage;
        while begin < digests.len() && self.stage == stage {
            let (end, found) = self.find_sampled(&digests[begin..], &mut sampled, &mut numbers);
            let outcomes = &mut outcomes[begin..begin + end];
            outcomes.fill(T::UNSAMPLED);
            begin += end;
            let batches = &sampled[..found.div_ceil(BATCH)];
            // Padded with what was there before: it is asked for in vain.
            row.find(instructions, self.blocks.count, batches, batches.len() * BATCH);
            row.contains(instructions, self.array.lines.as_slice(), touch);
            let digests = &sampled.as_flattened()[..found];
            let (mut absent, mut some) = ([0_u8; DIGESTS], 0);
            for (number, &digest) in digests.iter().enumerate() {
                let (places, words) = (later_places(digest), self.words());
                let mut is_absent = row.is_absent(number);
                for generation in 1..stage {
                    let (word, bit) = self.blocks.bit_of(stage, generation, digest.value(), places);
                    is_absent &= words[word] & bit == 0;
                }
                absent[some % DIGESTS] = number as u8;
                some += usize::from(is_absent);
                outcomes[numbers[number] as usize] = T::REPEAT;
            }
            let limit = self.limit;
            for &number in &absent[..some] {
                let number = usize::from(number);
                outcomes[numbers[number] as usize] = self.write_later(digests[number]);
                // The next ones may be sampled no more.
                if (self.stage, self.limit) != (stage, limit) {
                    for (&digest, &number) in digests.iter().zip(&numbers).skip(number + 1) {
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
        let sampled = sampled.as_flattened_mut();
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
