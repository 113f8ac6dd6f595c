//! Setting and asking the bits of digests in lines.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and
//! no index that depends on the digest, so it is a few vector instructions. Batches run with those
//! of the machine at hand; every machine gives the same bits, answers and counts.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::chances_in;
use super::instructions::{AnyMachine, Instructions, Work};
use super::places::{BATCH, bits_of, line_of, probed};
use super::row::{ROW, Row};
use crate::Sighting;
use crate::bits::Line;
use crate::hashing::Digest;

/// Answer for a digest that was inserted.
pub(crate) trait Outcome: Copy {
    /// All of its bits were set.
    const REPEAT: Self;

    /// One of its bits was clear.
    const FIRST: Self;

    /// It was not looked at.
    const UNSAMPLED: Self;

    /// Adds the mean number of others that were missed with it.
    fn missed(&mut self, _others: f64) {}
}

impl Outcome for Sighting {
    const REPEAT: Self = Self::Repeat;
    const FIRST: Self = Self::First;
    const UNSAMPLED: Self = Self::Unknown;
}

/// No answer.
impl Outcome for () {
    const REPEAT: Self = ();
    const FIRST: Self = ();
    const UNSAMPLED: Self = ();
}

/// Sets the bits of `digest`, which lie in one line, and counts it if it is new.
#[inline(always)]
pub(super) fn insert<T: Outcome>(
    instructions: impl Instructions,
    lines: &mut [Line],
    counter: &mut LineCounter,
    digest: Digest,
) -> T {
    let probes = counter.probes();
    let bits = bits_of(digest);
    let probed = probed(bits, probes);
    let index = line_of(digest, lines.len());
    let before = lines[index];
    let (after, cleared) = instructions.set(&before, bits, probed);
    if cleared == 0 {
        return T::REPEAT;
    }
    lines[index] = after;
    let mut outcome = T::FIRST;
    if counter.is_on() {
        let in_line = chances_in(&instructions.only(&before, probed), probes);
        outcome.missed(counter.record(std::iter::once(in_line)));
    }
    outcome
}

/// Whether the bits of `digest` are all set, which lie in one line.
#[inline(always)]
pub(super) fn contains(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let bits = bits_of(digest);
    let line = &lines[line_of(digest, lines.len())];
    AnyMachine.set(line, bits, probed(bits, probes)).1 == 0
}

/// Digests to be inserted, whose bits lie in one line each, and the answer for each, which is that
/// of a repeat until it is known.
pub(super) struct InsertAll<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) counter: &'a mut LineCounter,
    pub(super) digests: &'a [Digest],
    pub(super) outcomes: &'a mut [T],
    /// The number of bits that were clear is added to it.
    pub(super) cleared: &'a mut u64,
}

impl<T: Outcome> Work for InsertAll<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let mut row = Row::new(std::iter::once(self.counter.probes()), false);
        let mut padded = [[Digest::from_value(0); BATCH]; ROW];
        let rows = self.digests.chunks(BATCH * ROW).zip(self.outcomes.chunks_mut(BATCH * ROW));
        for (digests, outcomes) in rows {
            let (batches, rest) = digests.as_chunks::<BATCH>();
            let batches = if rest.is_empty() {
                batches
            } else {
                padded.as_flattened_mut()[..digests.len()].copy_from_slice(digests);
                &padded[..=batches.len()]
            };
            row.find(instructions, self.lines.len() as u64, batches, digests.len());
            row.insert(instructions, self.lines, self.touch);
            *self.cleared += row.count(instructions, self.counter, outcomes);
        }
    }
}

/// Digests that are asked for, whose bits lie in one line each, and the answers.
pub(super) struct ContainsAll<'a> {
    pub(super) lines: &'a [Line],
    pub(super) touch: bool,
    pub(super) probes: u32,
    pub(super) digests: &'a [Digest],
    pub(super) answers: &'a mut Vec<bool>,
}

impl Work for ContainsAll<'_> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let start = self.answers.len();
        self.answers.resize(start + self.digests.len(), false);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.answers[start..].as_chunks_mut::<BATCH>();
        let mut row = Row::new(std::iter::once(self.probes), false);
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            row.find(instructions, self.lines.len() as u64, batches, BATCH * batches.len());
            row.contains(instructions, self.lines, self.touch);
            row.tell_contained(answers);
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = contains(self.lines, self.probes, digest);
        }
    }
}
