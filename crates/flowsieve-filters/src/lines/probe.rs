//! Setting and asking the bits of digests in lines.
//!
//! All eight words are computed and those that do not count are masked away: that has no branch and no
//! index that depends on the digest, so it is a few vector instructions. Batches run with those of the
//! machine at hand; every machine gives the same bits, answers and counts.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::FullPlaces;
use super::instructions::{AnyMachine, Instructions, Work};
use super::places::{BATCH, bits_of, line_of, probed};
use super::row::{Inserted, ROW, Row, Sets, chances_in, clear_in};
use crate::Sighting;
use crate::bits::Line;
use crate::hashing::Digest;

/// The answer for a digest that was inserted.
pub(crate) trait Told: Copy {
    /// All of its bits were set.
    const REPEAT: Self;

    /// One of its bits was clear.
    const FIRST: Self;

    /// All of its bits were set, but it raised a register.
    fn risen(&mut self) {}

    /// So many others were missed beside it, which was seen.
    fn missed(&mut self, _others: f64) {}
}

impl Told for Sighting {
    const REPEAT: Self = Self::Repeat;
    const FIRST: Self = Self::First;
}

/// No answer.
impl Told for () {
    const REPEAT: Self = ();
    const FIRST: Self = ();
}

/// Sets the bits of `digest` and counts it if it is seen.
#[inline(always)]
pub(super) fn insert<T: Told>(
    lines: &mut [Line],
    written: &mut u64,
    full: &mut FullPlaces,
    counter: &mut LineCounter,
    digest: Digest,
) -> T {
    let probes = counter.probes();
    let bits = bits_of(digest);
    let probed = probed(bits, probes);
    let index = line_of(digest, lines.len());
    let before = lines[index];
    let (after, cleared) = AnyMachine.set(&before, bits, probed);
    let (is_new, rise) = (cleared != 0, counter.rise(digest));
    let mut told = if is_new { T::FIRST } else { T::REPEAT };
    if !is_new {
        if rise.is_none() {
            return told;
        }
        told.risen();
    }
    if counter.counts() {
        if counter.sample_at(*written).has(digest) {
            let chances = if counter.is_crowded() {
                full.keep(probes, lines);
                full.chances(probes, lines.len() as u64)
            } else {
                chances_in(&AnyMachine.only(&before, probed), probes)
            };
            told.missed(counter.record_missed(counter.chances(chances)));
        }
        if is_new {
            counter.add(1);
            *written += u64::from(probes);
        } else {
            counter.add_risen();
        }
    }
    if let Some(rise) = rise {
        counter.raise(rise);
    }
    if is_new {
        lines[index] = after;
        full.change(&before, &after);
    }
    told
}

/// Whether the bits of `digest` are all set.
#[inline(always)]
pub(super) fn contains(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let bits = bits_of(digest);
    let line = &lines[line_of(digest, lines.len())];
    AnyMachine.set(line, bits, probed(bits, probes)).1 == 0
}

/// Digests to be inserted, and the answer for them.
pub(super) struct InsertAll<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) written: &'a mut u64,
    pub(super) full: &'a mut FullPlaces,
    pub(super) counter: &'a mut LineCounter,
    pub(super) digests: &'a [Digest],
    pub(super) told: &'a mut Vec<T>,
}

impl<T: Told> Work for InsertAll<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let start = self.told.len();
        self.told.resize(start + self.digests.len(), T::REPEAT);
        let (batches, rest) = self.digests.as_chunks::<BATCH>();
        let (answers, rest_answers) = self.told[start..].as_chunks_mut::<BATCH>();
        let Self {
            lines,
            written,
            full,
            counter,
            ..
        } = self;
        let probes = counter.probes();
        let mut row = Row::new(std::iter::once(probes));
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            let len = BATCH * batches.len();
            let sample = counter.sample(*written, len);
            if sample.is_none() && counter.counts() {
                let all = answers.as_flattened_mut().iter_mut();
                for (answer, &digest) in all.zip(batches.as_flattened()) {
                    *answer = insert(lines, written, full, counter, digest);
                }
                continue;
            }
            if counter.counts() && counter.is_crowded() {
                full.keep(probes, lines);
            }
            row.find(instructions, lines, batches, len);
            row.insert(instructions, lines, self.touch);
            row.tell(answers);
            if !counter.is_on() {
                continue;
            }
            let new = row.new_ones(instructions);
            let mut sampled = 0;
            if let Some(sample) = sample.filter(|_| counter.counts()) {
                sampled = clear_in(instructions, batches, sample.mask());
                let firsts = u64::from(new.count_ones());
                counter.add(firsts);
                *written += u64::from(probes) * firsts;
            }
            let sets = Sets {
                new,
                sampled,
                may_rise: clear_in(instructions, batches, counter.clear_bits()),
            };
            let array = Inserted { lines, full };
            row.count(
                instructions,
                array,
                batches,
                std::slice::from_mut(counter),
                sets,
                answers.as_flattened_mut(),
            );
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = insert(lines, written, full, counter, digest);
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
