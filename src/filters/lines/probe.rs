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

/// Batches after which the answers are written and the sample is taken. What a batch stores byte by byte
/// cannot be read as a vector before all its lines are stored; this many later it is.
const ROW: usize = 4;

/// Where the bits of a batch of digests are.
#[derive(Clone, Copy)]
struct Places {
    /// What [`line_of`] gives.
    lines: [u64; BATCH],
    /// What [`bits_of`] gives.
    bits: [u64; BATCH],
    /// The words that [`probed`] gives.
    probed: [u8; BATCH],
}

/// What instructions do with digests and lines.
trait Instructions: Copy {
    /// Finds the places of a batch, of `probes` bits each in one of so many lines.
    fn find(self, batch: &[Digest; BATCH], lines: u64, probes: u32, places: &mut Places);

    /// Which digests are in the sample, the first one lowest.
    fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32;

    /// The line with a digest's bits set, and the words in which its bit was clear.
    fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8);

    /// Which of these are not 0, the first one lowest.
    fn not_zero(self, all: &[u8; BATCH]) -> u32;
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

impl Places {
    const NONE: Self = Self {
        lines: [0; BATCH],
        bits: [0; BATCH],
        probed: [0; BATCH],
    };
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
const fn probed(bits: u64, probes: u32) -> u8 {
    let ones = ((1_u64 << probes) - 1) << (bits >> 61);
    (ones | ones >> WORDS_PER_LINE) as u8
}

/// 1 for every number but 0: a number and no comparison, see `BitArray::set`.
#[inline(always)]
const fn is_not_zero(number: u64) -> u8 {
    ((number | number.wrapping_neg()) >> 63) as u8
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

/// The bit of each word, or none in words that are not probed: bits 0 to 47 of the mixed digest are a
/// place of six bits for each word, bits 61 to 63 the first word.
#[inline(always)]
fn masks(bits: u64, probed: u8) -> Line {
    let mut masks = [0; WORDS_PER_LINE];
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask = u64::from(probed >> word & 1) << (bits >> (6 * word) & 63);
    }
    masks
}

/// What every machine has.
#[derive(Clone, Copy)]
struct AnyMachine;

impl Instructions for AnyMachine {
    #[inline(always)]
    fn find(self, batch: &[Digest; BATCH], lines: u64, probes: u32, places: &mut Places) {
        for (i, &digest) in batch.iter().enumerate() {
            places.lines[i] = reduce(digest.value(), lines);
            places.bits[i] = bits_of(digest);
            places.probed[i] = probed(places.bits[i], probes);
        }
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
    fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8) {
        let masks = masks(bits, probed);
        let mut cleared = 0;
        let mut after = *before;
        for word in 0..WORDS_PER_LINE {
            cleared |= is_not_zero(masks[word] & !before[word]) << word;
            after[word] |= masks[word];
        }
        (after, cleared)
    }

    #[inline(always)]
    fn not_zero(self, all: &[u8; BATCH]) -> u32 {
        let mut found = 0;
        for (i, &number) in all.iter().enumerate() {
            found |= u32::from(is_not_zero(u64::from(number))) << i;
        }
        found
    }
}

/// The same with vectors of four and of eight words.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{AnyMachine, BATCH, ContainsAll, InsertAll, Instructions, Line, MULTIPLIERS};
    use super::{Places, Sample, WORDS_PER_LINE, probed};
    use crate::hashing::{Digest, HalfProducts, Products, reduce};
    use pulp::x86::{V3, V4};
    use pulp::{NullaryFnOnce, u64x4, u64x8};

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

    /// What [`super::bits_of`] does, eight times.
    #[inline(always)]
    fn bits_v4(simd: V4, digests: u64x8) -> u64x8 {
        let (f, dq) = (simd.avx512f, simd.avx512dq);
        let mut bits = bytemuck::cast(digests);
        for multiplier in MULTIPLIERS {
            let multiplier = bytemuck::cast(simd.splat_u64x8(multiplier));
            bits = dq._mm512_mullo_epi64(bits, multiplier);
            bits = f._mm512_xor_si512(bits, f._mm512_srli_epi64::<32>(bits));
        }
        bytemuck::cast(bits)
    }

    /// What [`probed`] does, eight times, with its answers for each first word in one number.
    #[inline(always)]
    fn probed_v4(simd: V4, bits: u64x8, answers: u64) -> [u8; 8] {
        let f = simd.avx512f;
        let first = f._mm512_srli_epi64::<61>(bytemuck::cast(bits));
        let amount = f._mm512_slli_epi64::<3>(first);
        let answers = bytemuck::cast(simd.splat_u64x8(answers));
        let probed = f._mm512_cvtepi64_epi8(f._mm512_srlv_epi64(answers, amount));
        let [probed, _]: [[u8; 8]; 2] = bytemuck::cast(probed);
        probed
    }

    /// The bit of each word, of those that are not probed too.
    #[inline(always)]
    fn ones_v4(simd: V4, bits: u64) -> u64x8 {
        let bits = bytemuck::cast(simd.splat_u64x8(bits));
        let one = bytemuck::cast(simd.splat_u64x8(1));
        let f = simd.avx512f;
        let place = f._mm512_srlv_epi64(bits, bytemuck::cast(PLACES));
        // A rotation takes its amount modulo 64.
        bytemuck::cast(f._mm512_rolv_epi64(one, place))
    }

    impl Instructions for V4 {
        #[inline(always)]
        fn find(self, batch: &[Digest; BATCH], lines: u64, probes: u32, places: &mut Places) {
            let answers: [u8; WORDS_PER_LINE] =
                std::array::from_fn(|first| probed((first as u64) << 61, probes));
            let (digests, _) = batch.as_chunks::<8>();
            let (bits, _) = places.bits.as_chunks_mut::<8>();
            let (probed, _) = places.probed.as_chunks_mut::<8>();
            // Loops and not `map`, whose closures are not compiled for these instructions.
            for ((digests, bits), probed) in digests.iter().zip(bits).zip(probed) {
                let of_eight = bits_v4(self, bytemuck::cast(digests.map(Digest::value)));
                *bits = bytemuck::cast(of_eight);
                *probed = probed_v4(self, of_eight, u64::from_le_bytes(answers));
            }
            if HalfProducts::fits(lines) {
                for (line, digest) in places.lines.iter_mut().zip(batch) {
                    *line = HalfProducts::reduce(digest.value(), lines);
                }
            } else {
                for (line, digest) in places.lines.iter_mut().zip(batch) {
                    *line = reduce(digest.value(), lines);
                }
            }
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
        fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8) {
            let ones = bytemuck::cast(ones_v4(self, bits));
            let before = bytemuck::cast(*before);
            let f = self.avx512f;
            let cleared = f._mm512_mask_testn_epi64_mask(probed, before, ones);
            let after = f._mm512_mask_or_epi64(before, probed, before, ones);
            (bytemuck::cast(after), cleared)
        }

        #[inline(always)]
        fn not_zero(self, all: &[u8; BATCH]) -> u32 {
            V3::not_zero(*self, all)
        }
    }

    #[inline(always)]
    fn masks_v3(simd: V3, bits: u64, probed: u8, half: usize) -> u64x4 {
        let words = [u64x4(0, 1, 2, 3), u64x4(4, 5, 6, 7)];
        let places = [u64x4(0, 6, 12, 18), u64x4(24, 30, 36, 42)];
        let place = simd.shr_dyn_u64x4(simd.splat_u64x4(bits), places[half]);
        let place = simd.and_u64x4(place, simd.splat_u64x4(63));
        let one = simd.shr_dyn_u64x4(simd.splat_u64x4(u64::from(probed)), words[half]);
        let one = simd.and_u64x4(one, simd.splat_u64x4(1));
        simd.shl_dyn_u64x4(one, place)
    }

    impl Instructions for V3 {
        #[inline(always)]
        fn find(self, batch: &[Digest; BATCH], lines: u64, probes: u32, places: &mut Places) {
            AnyMachine.find(batch, lines, probes, places);
        }

        #[inline(always)]
        fn sampled(self, batch: &[Digest; BATCH], sample: Sample) -> u32 {
            AnyMachine.sampled(batch, sample)
        }

        #[inline(always)]
        fn set(self, before: &Line, bits: u64, probed: u8) -> (Line, u8) {
            let before: [u64x4; 2] = bytemuck::cast(*before);
            let mut after = before;
            let mut same = 0;
            for half in 0..2 {
                let mask = masks_v3(self, bits, probed, half);
                after[half] = self.or_u64x4(before[half], mask);
                let equal = self.cmp_eq_u64x4(after[half], before[half]);
                same |= self.avx._mm256_movemask_pd(bytemuck::cast(equal)) << (4 * half);
            }
            (bytemuck::cast(after), !same as u8)
        }

        #[inline(always)]
        fn not_zero(self, all: &[u8; BATCH]) -> u32 {
            let zero = bytemuck::cast([0_u8; BATCH]);
            let equal = self.avx2._mm256_cmpeq_epi8(bytemuck::cast(*all), zero);
            !self.avx2._mm256_movemask_epi8(equal) as u32
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

    /// What the instructions of this machine do, besides those that every machine has.
    #[cfg(target_arch = "x86_64")]
    macro_rules! others {
        ($it:ident => $what:expr) => {{
            let v3 = pulp::x86::V3::try_new().map(|$it| $what);
            let v4 = pulp::x86::V4::try_new().map(|$it| $what);
            v3.into_iter().chain(v4)
        }};
    }

    #[cfg(target_arch = "x86_64")]
    proptest! {
        #[test]
        fn all_instructions_set_the_same(
            line in any::<[[u64; 8]; 3]>(),
            value in any::<u64>(),
            probes in 1_u32..9,
        ) {
            // Crowded, so that all bits of a digest are set now and then.
            let line: Line = std::array::from_fn(|w| line[0][w] | line[1][w] | line[2][w]);
            let bits = bits_of(Digest::from_value(value));
            let probed = probed(bits, probes);
            let (after, cleared) = AnyMachine.set(&line, bits, probed);
            for word in 0..WORDS_PER_LINE {
                prop_assert_eq!(cleared >> word & 1 == 1, after[word] != line[word]);
            }
            for other in others!(it => it.set(&line, bits, probed)) {
                prop_assert_eq!(other, (after, cleared));
            }
        }

        #[test]
        fn all_instructions_find_the_same_places(
            values in any::<[u64; BATCH]>(),
            many_lines in 1_u64..1 << 48,
            few_lines in 1_u64..1 << 32,
            few in any::<bool>(),
            probes in 1_u32..9,
        ) {
            let batch = values.map(Digest::from_value);
            let count = if few { few_lines } else { many_lines };
            let mut places = Places::NONE;
            AnyMachine.find(&batch, count, probes, &mut places);
            prop_assert_eq!(places.lines[0] as usize, line_of(batch[0], count as usize));
            for other in others!(it => {
                let mut found = Places::NONE;
                it.find(&batch, count, probes, &mut found);
                found
            }) {
                prop_assert_eq!(other.lines, places.lines);
                prop_assert_eq!(other.bits, places.bits);
                prop_assert_eq!(other.probed, places.probed);
            }
        }

        #[test]
        fn all_instructions_take_the_same(
            values in any::<[u64; BATCH]>(),
            numbers in any::<[u8; BATCH]>(),
            shift in 0_u32..7,
        ) {
            let batch = values.map(Digest::from_value);
            let numbers = numbers.map(|number| number.saturating_sub(128));
            let sample = Sample::new(shift);
            let found = AnyMachine.not_zero(&numbers);
            let taken = AnyMachine.sampled(&batch, sample);
            for i in 0..BATCH {
                prop_assert_eq!(found >> i & 1 == 1, numbers[i] != 0);
                prop_assert_eq!(taken >> i & 1 == 1, sample.has(batch[i]));
            }
            for other in others!(it => (it.not_zero(&numbers), it.sampled(&batch, sample))) {
                prop_assert_eq!(other, (found, taken));
            }
        }
    }
}
