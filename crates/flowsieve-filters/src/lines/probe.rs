//! Setting and asking the bits of digests in lines.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and no
//! index that depends on the digest, so it is a few vector instructions. Batches run with those of the
//! machine at hand; every machine gives the same bits, answers and counts.

#![expect(
    clippy::inline_always,
    reason = "functions that are not inlined are compiled for the baseline target, and takes twice the time"
)]

use super::count::LineCounter;
use super::instructions::{AnyMachine, Instructions, Work};
use super::places::{BATCH, bits_of, line_of, probed};
use super::row::{ROW, Row, repeat_probability, sampled};
use crate::Sighting;
use crate::bits::Line;
use crate::hashing::Digest;

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
            counter.record_lost(repeat_probability(
                &AnyMachine.only(&before, probed),
                probes,
            ));
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

impl Work for InsertAll<'_> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let start = self.sightings.len();
        self.sightings
            .resize(start + self.digests.len(), Sighting::Repeat);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.sightings[start..].as_chunks_mut::<BATCH>();
        let (lines, counter) = (self.lines, self.counter);
        let probes = counter.probes();
        let mut row = Row::new(std::iter::once(probes));
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            let len = BATCH * batches.len();
            if !counter.counts() {
                row.find(instructions, lines, batches, len);
                row.insert(instructions, lines, self.touch);
                row.tell(answers);
            } else if let Some(sample) = counter.sample(*self.written, len) {
                row.find(instructions, lines, batches, len);
                row.insert(instructions, lines, self.touch);
                row.tell(answers);
                let new = row.new_ones(instructions);
                counter.add(u64::from(new.count_ones()));
                *self.written += u64::from(probes) * u64::from(new.count_ones());
                let mut taken = new & sampled(instructions, batches, sample);
                while taken != 0 {
                    row.record_lost(instructions, lines, taken.trailing_zeros(), counter);
                    taken &= taken - 1;
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

/// Digests that are asked for, and the answers.
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
        let mut row = Row::new(std::iter::once(self.probes));
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            row.find(instructions, self.lines, batches, BATCH * batches.len());
            row.contains(instructions, self.lines, self.touch);
            row.tell_contained(answers);
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = contains(self.lines, self.probes, digest);
        }
    }
}
