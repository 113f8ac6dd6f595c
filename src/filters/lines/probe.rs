//! Setting and asking the bits of digests in lines.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and no
//! index that depends on the digest, so it is a few vector instructions. Batches run with those of the
//! machine at hand; every machine gives the same bits, answers and counts.
//!
//! Whether an element is new is a coin's toss that no branch predictor knows. So batches have no branch
//! on it: every line is written back, and kept as it was before. What was lost beside the new elements
//! of the sample ([`super::count`]) is counted after the batch.

#![expect(
    clippy::inline_always,
    reason = "what is not in line is compiled for every machine, and takes twice the time"
)]

use super::count::{LineCounter, Sample};
use crate::bits::{Line, WORDS_PER_LINE};
use crate::filters::Sighting;
use crate::hashing::{Digest, reduce};
use std::hint::black_box;

/// Multipliers of the bits in the line (those of the finalizer of `MurmurHash3`); part of the structures'
/// definition.
const MULTIPLIERS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// Digests whose lines are touched together: about as many misses as a core has under way.
const BATCH: usize = 32;

/// What instructions do with one line.
trait Instructions: Copy {
    /// The line with a digest's bits set, and a number that is not 0 if one of them was clear.
    fn set(self, before: &Line, bits: u64, probed: u64) -> (Line, u64);

    /// Which digests are in the sample, the first one lowest.
    fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32;

    /// A number that is not 0 if one of a digest's bits is clear.
    fn missing(self, line: &Line, bits: u64, probed: u64) -> u64;
}

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
    let (after, missing) = AnyMachine.set(&before, bits, probed);
    if missing == 0 {
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
    AnyMachine.missing(line, bits, probed(bits, probes)) == 0
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
                return simd.vectorize(vectors::Run(simd, self));
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(vectors::Run(simd, self));
            }
        }
        self.run_with(AnyMachine);
    }

    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let start = self.sightings.len();
        self.sightings
            .resize(start + self.digests.len(), Sighting::Repeat);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.sightings[start..].as_chunks_mut::<BATCH>();
        let setter = Setter::new(instructions, self.counter.probes());
        let counts = self.counter.counts();
        let mut before = [Line::default(); BATCH];
        for (batch, answers) in batches.iter().zip(answers) {
            if self.touch {
                touch_lines(self.lines, batch);
            }
            if !counts {
                let new = setter.set_all(self.lines, batch, |_, _| ());
                *answers = sightings(new);
            } else if let Some(sample) = self.counter.sample(*self.written, BATCH) {
                let new = setter.set_all(self.lines, batch, |i, line| before[i] = *line);
                *answers = sightings(new);
                let mut taken = instructions.sampled(batch, sample) & new;
                while taken != 0 {
                    let i = taken.trailing_zeros() as usize;
                    taken &= taken - 1;
                    let probes = self.counter.probes();
                    let probed = probed(bits_of(batch[i]), probes);
                    self.counter
                        .record_lost(repeat_probability(&before[i], probed, probes));
                }
                let new = u64::from(new.count_ones());
                self.counter.add(new);
                *self.written += u64::from(self.counter.probes()) * new;
            } else {
                for (answer, &digest) in answers.iter_mut().zip(batch) {
                    *answer = insert(self.lines, self.written, self.counter, digest);
                }
            }
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = insert(self.lines, self.written, self.counter, digest);
        }
    }
}

/// Sets the bits of whole batches.
struct Setter<I> {
    instructions: I,
    /// Words that are probed, by the first one.
    probed_from: [u8; WORDS_PER_LINE],
}

impl<I: Instructions> Setter<I> {
    #[inline(always)]
    fn new(instructions: I, probes: u32) -> Self {
        Self {
            instructions,
            probed_from: std::array::from_fn(|word| probed((word as u64) << 61, probes) as u8),
        }
    }

    /// Sets the bits of a batch and shows each line as it was before; bit i of the answer says that
    /// number i was new.
    #[inline(always)]
    fn set_all(
        &self,
        lines: &mut [Line],
        batch: &[Digest; BATCH],
        mut before: impl FnMut(usize, &Line),
    ) -> u32 {
        // Shifting all is cheaper than placing one; that leaves the first one highest.
        let mut new = 0_u32;
        let bits = batch.map(bits_of);
        for (i, &digest) in batch.iter().enumerate() {
            let bits = bits[i];
            let probed = u64::from(self.probed_from[(bits >> 61) as usize]);
            let line = &mut lines[line_of(digest, lines.len())];
            let (after, missing) = self.instructions.set(line, bits, probed);
            before(i, line);
            *line = after;
            // A number and no comparison: see `BitArray::set`.
            new = new << 1 | is_not_zero(missing) as u32;
        }
        new.reverse_bits()
    }
}

/// The sightings of a batch of which these were new.
#[inline(always)]
fn sightings(new: u32) -> [Sighting; BATCH] {
    std::array::from_fn(|i| {
        if new & 1 << i == 0 {
            Sighting::Repeat
        } else {
            Sighting::First
        }
    })
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
                return simd.vectorize(vectors::Run(simd, self));
            }
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(vectors::Run(simd, self));
            }
        }
        self.run_with(AnyMachine);
    }

    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        for batch in self.digests.chunks(BATCH) {
            if self.touch {
                touch_lines(self.lines, batch);
            }
            let mut there = [false; BATCH];
            for (there, &digest) in there.iter_mut().zip(batch) {
                let bits = bits_of(digest);
                let line = &self.lines[line_of(digest, self.lines.len())];
                *there = instructions.missing(line, bits, probed(bits, self.probes)) == 0;
            }
            self.answers.extend_from_slice(&there[..batch.len()]);
        }
    }
}

#[inline(always)]
fn touch_lines(lines: &[Line], digests: &[Digest]) {
    let mut touched = 0;
    for &digest in digests {
        touched ^= lines[line_of(digest, lines.len())][0];
    }
    black_box(touched);
}

#[inline(always)]
pub(super) fn line_of(digest: Digest, lines: usize) -> usize {
    reduce(digest.value(), lines as u64) as usize
}

/// The number that chooses the bits in the line: independent of the line, which is chosen by the
/// digest's highest bits.
#[inline(always)]
const fn bits_of(digest: Digest) -> u64 {
    let mut bits = digest.value().wrapping_mul(MULTIPLIERS[0]);
    bits ^= bits >> 32;
    bits = bits.wrapping_mul(MULTIPLIERS[1]);
    bits ^ bits >> 32
}

/// One bit a probed word: k ones from the first word on, those beyond the eighth wrapped around.
#[inline(always)]
fn probed(bits: u64, probes: u32) -> u64 {
    let ones = ((1_u64 << probes) - 1) << (bits >> 61);
    (ones | ones >> WORDS_PER_LINE) & 0xff
}

/// 1 for every number but 0.
#[inline(always)]
const fn is_not_zero(number: u64) -> usize {
    ((number | number.wrapping_neg()) >> 63) as usize
}

/// Probability that a new element is called a repeat in this line: the product of the probed words'
/// shares of set bits.
#[inline(always)]
fn repeat_probability(before: &Line, probed: u64, probes: u32) -> f64 {
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

/// The bit of each word, or none in words that are not probed: bits 0 to 47 of the mixed digest are a
/// place of six bits for each word, bits 61 to 63 the first word.
#[inline(always)]
fn masks(bits: u64, probed: u64) -> Line {
    let mut masks = [0; WORDS_PER_LINE];
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask = (probed >> word & 1) << (bits >> (6 * word) & 63);
    }
    masks
}

/// What every machine has.
#[derive(Clone, Copy)]
struct AnyMachine;

impl Instructions for AnyMachine {
    #[inline(always)]
    fn set(self, before: &Line, bits: u64, probed: u64) -> (Line, u64) {
        let masks = masks(bits, probed);
        let mut missing = 0;
        let mut after = *before;
        for word in 0..WORDS_PER_LINE {
            missing |= masks[word] & !before[word];
            after[word] |= masks[word];
        }
        (after, missing)
    }

    #[inline(always)]
    fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32 {
        let mut taken = 0;
        for (i, &digest) in batch.iter().enumerate() {
            taken |= u32::from(sample.has(digest)) << i;
        }
        taken
    }

    #[inline(always)]
    fn missing(self, line: &Line, bits: u64, probed: u64) -> u64 {
        let masks = masks(bits, probed);
        let mut missing = 0;
        for word in 0..WORDS_PER_LINE {
            missing |= masks[word] & !line[word];
        }
        missing
    }
}

/// The same with vectors of four and of eight words.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{AnyMachine, BATCH, ContainsAll, InsertAll, Instructions, Line, Sample};
    use crate::hashing::Digest;
    use pulp::x86::{V3, V4};
    use pulp::{NullaryFnOnce, b8, u64x4, u64x8};

    /// Work together with the proof that the machine has its instructions.
    pub(super) struct Run<I, T>(pub(super) I, pub(super) T);

    impl<I: Instructions> NullaryFnOnce for Run<I, InsertAll<'_>> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.1.run_with(self.0);
        }
    }

    impl<I: Instructions> NullaryFnOnce for Run<I, ContainsAll<'_>> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.1.run_with(self.0);
        }
    }

    const PLACES: u64x8 = u64x8(0, 6, 12, 18, 24, 30, 36, 42);

    #[inline(always)]
    fn masks_v4(simd: V4, bits: u64, probed: u64) -> u64x8 {
        let bits = bytemuck::cast(simd.splat_u64x8(bits));
        let one = bytemuck::cast(simd.splat_u64x8(1));
        let f = simd.avx512f;
        let place = f._mm512_srlv_epi64(bits, bytemuck::cast(PLACES));
        // A rotation takes its amount modulo 64.
        bytemuck::cast(f._mm512_maskz_rolv_epi64(probed as u8, one, place))
    }

    impl Instructions for V4 {
        #[inline(always)]
        fn set(self, before: &Line, bits: u64, probed: u64) -> (Line, u64) {
            let masks = masks_v4(self, bits, probed);
            let before: u64x8 = bytemuck::cast(*before);
            let after = self.or_u64x8(before, masks);
            let b8(same) = self.cmp_eq_u64x8(after, before);
            (bytemuck::cast(after), u64::from(!same))
        }

        #[inline(always)]
        fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32 {
            let digests: [[u64; 8]; BATCH / 8] = bytemuck::cast(batch.map(Digest::value));
            let mask = bytemuck::cast(self.splat_u64x8(sample.mask()));
            let f = self.avx512f;
            let mut taken = 0;
            for (i, eight) in digests.into_iter().enumerate() {
                let clear = f._mm512_testn_epi64_mask(bytemuck::cast(eight), mask);
                taken |= u32::from(clear) << (8 * i);
            }
            taken
        }

        #[inline(always)]
        fn missing(self, line: &Line, bits: u64, probed: u64) -> u64 {
            let masks = masks_v4(self, bits, probed);
            let line: u64x8 = bytemuck::cast(*line);
            let b8(same) = self.cmp_eq_u64x8(self.or_u64x8(line, masks), line);
            u64::from(!same)
        }
    }

    #[inline(always)]
    fn masks_v3(simd: V3, bits: u64, probed: u64, half: usize) -> u64x4 {
        let words = [u64x4(0, 1, 2, 3), u64x4(4, 5, 6, 7)];
        let places = [u64x4(0, 6, 12, 18), u64x4(24, 30, 36, 42)];
        let place = simd.shr_dyn_u64x4(simd.splat_u64x4(bits), places[half]);
        let place = simd.and_u64x4(place, simd.splat_u64x4(63));
        let one = simd.shr_dyn_u64x4(simd.splat_u64x4(probed), words[half]);
        let one = simd.and_u64x4(one, simd.splat_u64x4(1));
        simd.shl_dyn_u64x4(one, place)
    }

    impl Instructions for V3 {
        #[inline(always)]
        fn set(self, before: &Line, bits: u64, probed: u64) -> (Line, u64) {
            let before: [u64x4; 2] = bytemuck::cast(*before);
            let mut after = before;
            let mut missing = self.splat_u64x4(0);
            for half in 0..2 {
                let mask = masks_v3(self, bits, probed, half);
                let new = self.and_u64x4(mask, self.not_u64x4(before[half]));
                missing = self.or_u64x4(missing, new);
                after[half] = self.or_u64x4(before[half], mask);
            }
            let u64x4(a, b, c, d) = missing;
            (bytemuck::cast(after), a | b | c | d)
        }

        #[inline(always)]
        fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32 {
            AnyMachine.sampled(batch, sample)
        }

        #[inline(always)]
        fn missing(self, line: &Line, bits: u64, probed: u64) -> u64 {
            self.set(line, bits, probed).1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_digest_has_one_bit_in_each_of_consecutive_words() {
        for value in 0..2_000_u64 {
            let digest = Digest::from_value(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for probes in 1..=8 {
                let bits = bits_of(digest);
                let masks = masks(bits, probed(bits, probes));
                assert!(masks.iter().all(|mask| mask.count_ones() <= 1));
                let probed: Vec<usize> = (0..8).filter(|&word| masks[word] != 0).collect();
                assert_eq!(probed.len() as u32, probes);
                // Going round, there is one way from a probed word to one that is not, or none.
                let ends = (0..8).filter(|&w| masks[w] != 0 && masks[(w + 1) % 8] == 0);
                assert_eq!(ends.count(), usize::from(probes < 8));
            }
        }
    }

    /// The instructions of this machine, besides those that every machine has.
    #[cfg(target_arch = "x86_64")]
    fn others(line: &Line, bits: u64, probed: u64) -> Vec<(Line, u64, u64)> {
        fn all<I: Instructions>(it: I, line: &Line, bits: u64, probed: u64) -> (Line, u64, u64) {
            let (after, missing) = it.set(line, bits, probed);
            (after, missing, it.missing(line, bits, probed))
        }
        let v3 = pulp::x86::V3::try_new().map(|it| all(it, line, bits, probed));
        let v4 = pulp::x86::V4::try_new().map(|it| all(it, line, bits, probed));
        v3.into_iter().chain(v4).collect()
    }

    #[cfg(target_arch = "x86_64")]
    proptest! {
        #[test]
        fn all_instructions_do_the_same(
            line in any::<[[u64; 8]; 3]>(),
            value in any::<u64>(),
            probes in 1_u32..9,
        ) {
            // Crowded, so that all bits of a digest are set now and then.
            let line: Line = std::array::from_fn(|w| line[0][w] | line[1][w] | line[2][w]);
            let bits = bits_of(Digest::from_value(value));
            let probed = probed(bits, probes);
            let (after, missing) = AnyMachine.set(&line, bits, probed);
            prop_assert_eq!(is_not_zero(missing) == 1, after != line);
            for (same, set, asked) in others(&line, bits, probed) {
                prop_assert_eq!(same, after);
                prop_assert_eq!(is_not_zero(set), is_not_zero(missing));
                prop_assert_eq!(is_not_zero(asked), is_not_zero(missing));
            }
        }
    }
}
