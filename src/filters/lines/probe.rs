//! Setting and asking the bits of digests in lines.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and no
//! index that depends on the digest, so it is a few vector instructions. Batches run with those of the
//! machine at hand; every machine gives the same bits, answers and counts.
//!
//! Whether an element is new is a coin's toss that no branch predictor knows. So batches have no branch
//! on it: every line is written back, and what remains of it is in which words a bit was clear. That is
//! enough to find the line as it was before a new element of the sample ([`super::count`]), when a row of
//! batches has one.

#![expect(
    clippy::inline_always,
    reason = "what is not in line is compiled for every machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::instructions::{AnyMachine, Instructions};
use super::places::{BATCH, Places, bits_of, line_of, masks, probed};
#[cfg(target_arch = "x86_64")]
use super::vectors::Run;
use crate::bits::{Line, WORDS_PER_LINE};
use crate::filters::Sighting;
use crate::hashing::Digest;
use std::hint::black_box;

/// Batches after which the answers are written and the sample is taken. What a batch stores byte by byte
/// cannot be read as a vector before all its lines are stored; this many later it is.
const ROW: usize = 4;

/// Sets the bits of `digest` and counts it if it is new.
#[inline(always)]
pub(super) fn insert(
    lines: &mut [Line],
    written: &mut u64,
    counter: &mut LineCounter,
    digest: Digest,
) -> Sighting {
    let probes = counter.probes();
    let bits = bits_of(digest);
    let probed = probed(bits, probes);
    let index = line_of(digest, lines.len());
    let before = lines[index];
    let (after, cleared) = AnyMachine.set(&before, bits, probed);
    if cleared == 0 {
        return Sighting::Repeat;
    }
    lines[index] = after;
    if counter.counts() {
        if counter.samples(digest, *written) {
            counter.record_lost(repeat_probability(&before, probed, probes));
        }
        counter.add(1);
        *written += u64::from(probes);
    }
    Sighting::First
}

/// Whether the bits of `digest` are all set.
#[inline(always)]
pub(super) fn contains(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let bits = bits_of(digest);
    let line = &lines[line_of(digest, lines.len())];
    AnyMachine.set(line, bits, probed(bits, probes)).1 == 0
}

/// Digests to be inserted, and what is told of them.
pub(super) struct InsertAll<'a> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) written: &'a mut u64,
    pub(super) counter: &'a mut LineCounter,
    pub(super) digests: &'a [Digest],
    pub(super) sightings: &'a mut Vec<Sighting>,
}

impl InsertAll<'_> {
    /// Inserts all.
    pub(super) fn run(self) {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return simd.vectorize(Run(simd, self));
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(Run(simd, self));
            }
        }
        self.run_with(AnyMachine);
    }

    #[inline(always)]
    pub(super) fn run_with(self, instructions: impl Instructions) {
        let start = self.sightings.len();
        self.sightings
            .resize(start + self.digests.len(), Sighting::Repeat);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.sightings[start..].as_chunks_mut::<BATCH>();
        let (lines, counter) = (self.lines, self.counter);
        let probes = counter.probes();
        let mut row = Row::new();
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            if !counter.counts() {
                row.insert(instructions, lines, batches, probes, self.touch);
                row.tell(answers);
            } else if let Some(sample) = counter.sample(*self.written, BATCH * batches.len()) {
                row.insert(instructions, lines, batches, probes, self.touch);
                row.tell(answers);
                for (number, digests) in batches.iter().enumerate() {
                    let new = instructions.not_zero(&row.cleared[number]);
                    let taken = new & instructions.sampled(digests, sample);
                    row.record_lost(lines, number, taken, counter);
                    let new = u64::from(new.count_ones());
                    counter.add(new);
                    *self.written += u64::from(probes) * new;
                }
            } else {
                let all = answers.as_flattened_mut().iter_mut();
                for (answer, &digest) in all.zip(batches.as_flattened()) {
                    *answer = insert(lines, self.written, counter, digest);
                }
            }
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = insert(lines, self.written, counter, digest);
        }
    }
}

/// Batches of digests whose bits were set one after the other.
struct Row {
    /// How many there are.
    batches: usize,
    places: [Places; ROW],
    /// The words in which each one's bit was clear; none if it was a repeat.
    cleared: [[u8; BATCH]; ROW],
}

impl Row {
    const fn new() -> Self {
        Self {
            batches: 0,
            places: [Places::NONE; ROW],
            cleared: [[0; BATCH]; ROW],
        }
    }

    /// Sets the bits of these, in place of those that were there.
    #[inline(always)]
    fn insert(
        &mut self,
        instructions: impl Instructions,
        lines: &mut [Line],
        batches: &[[Digest; BATCH]],
        probes: u32,
        touch: bool,
    ) {
        self.batches = batches.len();
        let all = batches.iter().zip(&mut self.places).zip(&mut self.cleared);
        for ((digests, places), cleared) in all {
            instructions.find(digests, lines.len() as u64, probes, places);
            if touch {
                touch_lines(lines, &places.lines);
            }
            for (i, cleared) in cleared.iter_mut().enumerate() {
                let line = &mut lines[places.lines[i] as usize];
                (*line, *cleared) = instructions.set(line, places.bits[i], places.probed[i]);
            }
        }
    }

    /// What is told of each digest.
    #[inline(always)]
    fn tell(&self, answers: &mut [[Sighting; BATCH]]) {
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

    /// Records what was lost beside the digests `taken` of this batch, the first one lowest.
    #[inline(always)]
    fn record_lost(&self, lines: &[Line], batch: usize, mut taken: u32, counter: &mut LineCounter) {
        let probes = counter.probes();
        while taken != 0 {
            let i = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            let before = self.line_before(lines, batch, i);
            let probed = self.places[batch].probed[i];
            counter.record_lost(repeat_probability(&before, probed, probes));
        }
    }

    /// The line of digest number `i` of a batch as it was before it, from what it is after the row: the
    /// bits that it and the later ones of this line set are cleared again.
    #[inline(always)]
    fn line_before(&self, lines: &[Line], batch: usize, i: usize) -> Line {
        let index = self.places[batch].lines[i];
        let mut line = lines[index as usize];
        self.clear_again(&mut line, batch, i);
        // Few rows have a line twice, and to see whether this one does takes no branch.
        let mut same = [0; WORDS_PER_LINE];
        for places in &self.places[batch..self.batches] {
            for others in places.lines.as_chunks::<WORDS_PER_LINE>().0 {
                for (same, &other) in same.iter_mut().zip(others) {
                    *same += u64::from(other == index);
                }
            }
        }
        let same: u64 = same.iter().sum();
        if same > 1 {
            for number in batch..self.batches {
                for j in 0..BATCH {
                    let later = number > batch || j > i;
                    if later && self.places[number].lines[j] == index {
                        self.clear_again(&mut line, number, j);
                    }
                }
            }
        }
        line
    }

    /// Clears the bits that were set for digest number `i` of a batch.
    #[inline(always)]
    fn clear_again(&self, line: &mut Line, batch: usize, i: usize) {
        let set = masks(self.places[batch].bits[i], self.cleared[batch][i]);
        for (word, set) in line.iter_mut().zip(set) {
            *word &= !set;
        }
    }
}

/// Digests that are asked for, and the answers.
pub(super) struct ContainsAll<'a> {
    pub(super) lines: &'a [Line],
    pub(super) touch: bool,
    pub(super) probes: u32,
    pub(super) digests: &'a [Digest],
    pub(super) answers: &'a mut Vec<bool>,
}

impl ContainsAll<'_> {
    /// Asks for all.
    pub(super) fn run(self) {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return simd.vectorize(Run(simd, self));
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(Run(simd, self));
            }
        }
        self.run_with(AnyMachine);
    }

    #[inline(always)]
    pub(super) fn run_with(self, instructions: impl Instructions) {
        let start = self.answers.len();
        self.answers.resize(start + self.digests.len(), false);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.answers[start..].as_chunks_mut::<BATCH>();
        let count = self.lines.len() as u64;
        let mut places = Places::NONE;
        let mut missing = [[0; BATCH]; ROW];
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            for (digests, missing) in batches.iter().zip(&mut missing) {
                instructions.find(digests, count, self.probes, &mut places);
                if self.touch {
                    touch_lines(self.lines, &places.lines);
                }
                for (i, missing) in missing.iter_mut().enumerate() {
                    let line = &self.lines[places.lines[i] as usize];
                    *missing = instructions.set(line, places.bits[i], places.probed[i]).1;
                }
            }
            let all = answers.as_flattened_mut().iter_mut();
            for (answer, &missing) in all.zip(missing.as_flattened()) {
                *answer = missing == 0;
            }
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = contains(self.lines, self.probes, digest);
        }
    }
}

#[inline(always)]
fn touch_lines(lines: &[Line], indices: &[u64; BATCH]) {
    let mut touched = 0;
    for &index in indices {
        touched ^= lines[index as usize][0];
    }
    black_box(touched);
}

/// Probability that a new element is called a repeat in this line: the product of the probed words'
/// shares of set bits.
#[inline(always)]
fn repeat_probability(before: &Line, probed: u8, probes: u32) -> f64 {
    // In whole numbers up to 64^8 = 2^48, and in pairs, so that no multiplication waits for all others.
    let ones = |word: usize| {
        let ones = u64::from(before[word].count_ones());
        if probed >> word & 1 == 0 { 1 } else { ones }
    };
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    // 64^-k, exactly.
    let share = f64::from_bits((1023 - 6 * u64::from(probes)) << 52);
    (low * high) as i64 as f64 * share
}
