//! Setting and asking the bits of digests in cache lines: what the structures with lines share.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from a
//! random one on.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and no
//! index that depends on the digest, so the compiler makes vector instructions of it; and batches run
//! with the instructions of the machine at hand, not only with those that every machine has.
//!
//! Large arrays are taken in batches of 32: the lines of a batch are touched first, so that all of
//! their cache misses are under way together, and probed after that. In a small array touching costs
//! more than it brings.

#![expect(
    clippy::inline_always,
    reason = "what is not in line is compiled for every machine, and takes twice the time"
)]

use super::{HipCounter, Sighting};
use crate::bits::{Line, Lines, WORDS_PER_LINE};
use crate::hashing::{Digest, mix, reduce};
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;

/// Stream of [`mix`] that chooses the line; part of the structures' definition.
const LINE: u64 = 0x10;

/// Stream of [`mix`] that chooses the bits in the line.
const BITS: u64 = 0x11;

/// Digests whose lines are touched together: about as many misses as a core has under way.
const BATCH: usize = 32;

/// Bytes from which lines are touched first: what does not fit into the second-level cache.
const TOUCH_FROM_BYTES: u64 = 1 << 20;

/// Sets the bits of `digest`, `probes` (1 to 8) of them, and counts it if it is new.
#[inline]
pub(super) fn insert(
    lines: &mut Lines,
    probes: u32,
    counter: &mut HipCounter,
    digest: Digest,
) -> Sighting {
    insert_one(lines.as_mut_slice(), probes, counter, digest)
}

/// The same for many digests in order; the answers are appended.
pub(super) fn insert_all(
    lines: &mut Lines,
    probes: u32,
    counter: &mut HipCounter,
    digests: &[Digest],
    sightings: &mut Vec<Sighting>,
) {
    let all = InsertAll {
        touch: lines.memory_bytes() >= TOUCH_FROM_BYTES,
        lines: lines.as_mut_slice(),
        probes,
        counter,
        digests,
        sightings,
    };
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(vectors::InsertAll { simd, all });
    }
    all.run(insert_one);
}

/// The arguments of [`insert_all`].
struct InsertAll<'a> {
    lines: &'a mut [Line],
    touch: bool,
    probes: u32,
    counter: &'a mut HipCounter,
    digests: &'a [Digest],
    sightings: &'a mut Vec<Sighting>,
}

impl InsertAll<'_> {
    /// Inserts all, with `insert` for one.
    #[inline(always)]
    fn run(self, insert: impl Fn(&mut [Line], u32, &mut HipCounter, Digest) -> Sighting) {
        // A copy that can live in registers, which one behind a reference cannot.
        let mut running = *self.counter;
        for batch in self.digests.chunks(BATCH) {
            if self.touch {
                touch_lines(self.lines, batch);
            }
            let mut answers = [Sighting::Repeat; BATCH];
            for (answer, &digest) in answers.iter_mut().zip(batch) {
                *answer = insert(self.lines, self.probes, &mut running, digest);
            }
            self.sightings.extend_from_slice(&answers[..batch.len()]);
        }
        *self.counter = running;
    }
}

/// Whether the bits of `digest` are all set.
#[inline]
pub(super) fn contains(lines: &Lines, probes: u32, digest: Digest) -> bool {
    contains_one(lines.as_slice(), probes, digest)
}

/// The same for many digests; the answers are appended.
pub(super) fn contains_all(
    lines: &Lines,
    probes: u32,
    digests: &[Digest],
    answers: &mut Vec<bool>,
) {
    Arch::new().dispatch(ContainsAll {
        touch: lines.memory_bytes() >= TOUCH_FROM_BYTES,
        lines: lines.as_slice(),
        probes,
        digests,
        answers,
    });
}

/// The arguments of [`contains_all`]: what runs with the instructions of the machine at hand has to be a
/// value with a method, since a closure's body would be compiled for every machine.
struct ContainsAll<'a> {
    lines: &'a [Line],
    touch: bool,
    probes: u32,
    digests: &'a [Digest],
    answers: &'a mut Vec<bool>,
}

impl WithSimd for ContainsAll<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for batch in self.digests.chunks(BATCH) {
            if self.touch {
                touch_lines(self.lines, batch);
            }
            let mut there = [false; BATCH];
            for (there, &digest) in there.iter_mut().zip(batch) {
                *there = contains_one(self.lines, self.probes, digest);
            }
            self.answers.extend_from_slice(&there[..batch.len()]);
        }
    }
}

// Plain loops from here on: what hides a loop in a function of the library may be compiled for every
// machine and then called.

#[inline(always)]
fn touch_lines(lines: &[Line], digests: &[Digest]) {
    let mut touched = 0;
    for &digest in digests {
        touched ^= lines[line_of(digest, lines.len())][0];
    }
    black_box(touched);
}

#[inline(always)]
fn insert_one(
    lines: &mut [Line],
    probes: u32,
    counter: &mut HipCounter,
    digest: Digest,
) -> Sighting {
    let masks = masks(digest, probes);
    let index = line_of(digest, lines.len());
    let before = lines[index];
    let mut missing = 0;
    let mut after = before;
    for word in 0..WORDS_PER_LINE {
        missing |= masks[word] & !before[word];
        after[word] |= masks[word];
    }
    if missing == 0 {
        return Sighting::Repeat;
    }
    count_first(&before, probed(digest, probes), probes, counter);
    lines[index] = after;
    Sighting::First
}

/// Counts an element that is new to its line, which is as it was before.
#[inline(always)]
fn count_first(before: &Line, probed: u64, probes: u32, counter: &mut HipCounter) {
    // The product of the probed words' shares of set bits; in whole numbers up to 64^8 = 2^48, and in
    // pairs, so that no multiplication waits for all others.
    let ones = |word: usize| {
        let ones = u64::from(before[word].count_ones());
        if probed >> word & 1 == 0 { 1 } else { ones }
    };
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    let set = low * high;
    let all = 1_u64 << (6 * probes);
    counter.record(set as f64 / all as f64);
}

#[inline(always)]
fn contains_one(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let masks = masks(digest, probes);
    let line = &lines[line_of(digest, lines.len())];
    let mut missing = 0;
    for word in 0..WORDS_PER_LINE {
        missing |= masks[word] & !line[word];
    }
    missing == 0
}

#[inline(always)]
fn line_of(digest: Digest, lines: usize) -> usize {
    reduce(mix(digest, LINE), lines as u64) as usize
}

/// One bit a probed word: k ones from the first word on, those beyond the eighth wrapped around.
#[inline(always)]
fn probed(digest: Digest, probes: u32) -> u64 {
    let ones = ((1_u64 << probes) - 1) << (mix(digest, BITS) >> 61);
    ones | ones >> WORDS_PER_LINE
}

/// The bit of each word, or none in words that are not probed: bits 0 to 47 of the mixed digest are a
/// place of six bits for each word, bits 61 to 63 the first word.
#[inline(always)]
fn masks(digest: Digest, probes: u32) -> Line {
    let bits = mix(digest, BITS);
    let probed = probed(digest, probes);
    let mut masks = [0; WORDS_PER_LINE];
    for (word, mask) in masks.iter_mut().enumerate() {
        *mask = (probed >> word & 1) << (bits >> (6 * word) & 63);
    }
    masks
}

/// The same with vectors of four words, where the compiler does not find them by itself.
///
/// Whether an element is new is a coin's toss that no branch predictor knows. So there is no branch on
/// it: every line is written back, and what counting needs of a line is put where the next new element
/// will overwrite it unless this one is new. The new ones of a batch are counted together after it.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{BATCH, BITS, Line, WORDS_PER_LINE, count_first, line_of, touch_lines};
    use crate::filters::Sighting;
    use crate::hashing::mix;
    use pulp::x86::V3;
    use pulp::{NullaryFnOnce, u64x4};

    pub(super) struct InsertAll<'a> {
        pub(super) simd: V3,
        pub(super) all: super::InsertAll<'a>,
    }

    impl NullaryFnOnce for InsertAll<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd, all } = self;
            let mut running = *all.counter;
            // Lines of new elements as they were before, and which words were probed.
            let mut before_new = [Line::default(); BATCH];
            let mut probed_new = [0; BATCH];
            for batch in all.digests.chunks(BATCH) {
                if all.touch {
                    touch_lines(all.lines, batch);
                }
                let mut new = 0;
                let mut answers = [Sighting::Repeat; BATCH];
                for (answer, &digest) in answers.iter_mut().zip(batch) {
                    let bits = mix(digest, BITS);
                    let ones = ((1_u64 << all.probes) - 1) << (bits >> 61);
                    let probed = ones | ones >> WORDS_PER_LINE;
                    let line = &mut all.lines[line_of(digest, all.lines.len())];
                    let before: [u64x4; 2] = bytemuck::cast(*line);
                    let (after, missing) = set(simd, before, bits, probed);
                    *line = bytemuck::cast(after);
                    before_new[new] = bytemuck::cast(before);
                    probed_new[new] = probed;
                    // A number and no comparison: see `BitArray::set`.
                    let is_new = ((missing | missing.wrapping_neg()) >> 63) as usize;
                    *answer = [Sighting::Repeat, Sighting::First][is_new];
                    new += is_new;
                }
                for (before, &probed) in before_new[..new].iter().zip(&probed_new) {
                    count_first(before, probed, all.probes, &mut running);
                }
                all.sightings.extend_from_slice(&answers[..batch.len()]);
            }
            *all.counter = running;
        }
    }

    /// The line with the bits of a digest set, and bits that were missing: not 0 if there were any.
    #[inline(always)]
    fn set(simd: V3, before: [u64x4; 2], bits: u64, probed: u64) -> ([u64x4; 2], u64) {
        let words = [u64x4(0, 1, 2, 3), u64x4(4, 5, 6, 7)];
        let places = [u64x4(0, 6, 12, 18), u64x4(24, 30, 36, 42)];
        let mut after = before;
        let mut missing = simd.splat_u64x4(0);
        for half in 0..2 {
            let place = simd.shr_dyn_u64x4(simd.splat_u64x4(bits), places[half]);
            let place = simd.and_u64x4(place, simd.splat_u64x4(63));
            let one = simd.shr_dyn_u64x4(simd.splat_u64x4(probed), words[half]);
            let one = simd.and_u64x4(one, simd.splat_u64x4(1));
            let mask = simd.shl_dyn_u64x4(one, place);
            let new = simd.and_u64x4(mask, simd.not_u64x4(before[half]));
            missing = simd.or_u64x4(missing, new);
            after[half] = simd.or_u64x4(before[half], mask);
        }
        let u64x4(a, b, c, d) = missing;
        (after, a | b | c | d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_bit_in_each_of_consecutive_words() {
        for value in 0..2_000_u64 {
            let digest = Digest::from_value(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for probes in 1..=8 {
                let masks = masks(digest, probes);
                assert!(masks.iter().all(|mask| mask.count_ones() <= 1));
                let probed: Vec<usize> = (0..8).filter(|&word| masks[word] != 0).collect();
                assert_eq!(probed.len() as u32, probes);
                // Going round, there is one way from a probed word to one that is not, or none.
                let ends = (0..8).filter(|&w| masks[w] != 0 && masks[(w + 1) % 8] == 0);
                assert_eq!(ends.count(), usize::from(probes < 8));
            }
        }
    }
}
