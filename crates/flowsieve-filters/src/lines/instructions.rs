//! Operations on digests and lines for any machine. Those with vectors give the same answers.

#[cfg(doc)]
use super::places::windows;
use super::places::{BATCH, Places, bits_of, masks};
#[cfg(target_arch = "x86_64")]
use super::vectors::Run;
use crate::bits::{Line, WORDS_PER_LINE};
use crate::hashing::{Digest, reduce};

/// Operations on digests and lines; the defaults run on any machine.
pub(super) trait Instructions: Copy {
    /// Finds the line of each digest of a batch among `lines`, and its places in the words of its
    /// [`windows`].
    #[inline(always)]
    fn find(
        self,
        batch: &[Digest; BATCH],
        lines: u64,
        windows: &[u64; BATCH],
        places: &mut Places,
    ) {
        for (i, &digest) in batch.iter().enumerate() {
            places.lines[i] = reduce(digest.value(), lines);
            places.bits[i] = bits_of(digest);
            places.probed[i] = (windows[i] >> (8 * (places.bits[i] >> 61))) as u8;
        }
    }

    /// Returns the line with a digest's bits set, and the words in which its bit was clear.
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

    /// Returns the probed words of a line, and words with a single set bit in place of the others.
    #[inline(always)]
    fn only(self, line: &Line, probed: u8) -> Line {
        let mut line = *line;
        for (number, word) in line.iter_mut().enumerate() {
            *word = if probed >> number & 1 == 0 { 1 } else { *word };
        }
        line
    }
}

/// The instructions of any machine.
#[derive(Clone, Copy)]
pub(super) struct AnyMachine;

impl Instructions for AnyMachine {}

/// A computation that is generic over its instructions.
pub(super) trait Work {
    fn run_with(self, instructions: impl Instructions);
}

/// Runs the work with the best instructions of this machine.
pub(super) fn run(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(Run(simd, work));
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(Run(simd, work));
        }
    }
    work.run_with(AnyMachine);
}

/// Returns 0 for 0 and else 1, as a number and not a comparison: see `BitArray::set`.
#[inline(always)]
const fn is_not_zero(number: u64) -> u8 {
    ((number | number.wrapping_neg()) >> 63) as u8
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::super::places::{line_of, probed, windows};
    use super::*;
    use proptest::prelude::*;

    /// Runs the work with each set of instructions that this machine has.
    macro_rules! others {
        ($it:ident => $what:expr) => {{
            let v3 = pulp::x86::V3::try_new().map(|$it| $what);
            let v4 = pulp::x86::V4::try_new().map(|$it| $what);
            v3.into_iter().chain(v4)
        }};
    }

    proptest! {
        #[test]
        fn all_instructions_set_the_same(
            line in any::<[[u64; 8]; 3]>(),
            value in any::<u64>(),
            probes in 1_u32..9,
        ) {
            // Crowded, so that all bits of a digest are sometimes set.
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
            let only = AnyMachine.only(&line, probed);
            for word in 0..WORDS_PER_LINE {
                let is_probed = probed >> word & 1 == 1;
                prop_assert_eq!(only[word], if is_probed { line[word] } else { 1 });
            }
            for other in others!(it => it.only(&line, probed)) {
                prop_assert_eq!(other, only);
            }
        }

        #[test]
        fn all_instructions_find_the_same_places(
            values in any::<[u64; BATCH]>(),
            many_lines in 1_u64..1 << 48,
            few_lines in 1_u64..1 << 32,
            few in any::<bool>(),
            probes in any::<[u8; BATCH]>(),
        ) {
            let batch = values.map(Digest::from_value);
            let count = if few { few_lines } else { many_lines };
            let mut places = Places::NONE;
            let probes = probes.map(|probes| u32::from(probes % 8 + 1));
            let windows = probes.map(windows);
            AnyMachine.find(&batch, count, &windows, &mut places);
            for ((found, bits), probes) in places.probed.iter().zip(places.bits).zip(probes) {
                prop_assert_eq!(*found, probed(bits, probes));
            }
            prop_assert_eq!(places.lines[0] as usize, line_of(batch[0], count as usize));
            for other in others!(it => {
                let mut found = Places::NONE;
                it.find(&batch, count, &windows, &mut found);
                found
            }) {
                prop_assert_eq!(other.lines, places.lines);
                prop_assert_eq!(other.bits, places.bits);
                prop_assert_eq!(other.probed, places.probed);
            }
        }
    }
}
