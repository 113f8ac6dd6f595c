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
use super::full::FullPlaces;
use super::instructions::{AnyMachine, Instructions, Work};
use super::places::{BATCH, bits_of, line_of, probed};
use super::row::{Counted, Inserted, ROW, Row, Sets, chances_in, clear_in};
use super::shares::{MOST_SHARES, chances_of_lines, of_digest};
use crate::Sighting;
use crate::bits::Line;
use crate::hashing::Digest;
use crate::sizing::MAX_LINE_PROBES;

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
    instructions: impl Instructions,
    lines: &mut [Line],
    written: &mut u64,
    full: &mut FullPlaces,
    counter: &mut LineCounter,
    digest: Digest,
) -> T {
    let probes = counter.probes();
    if probes > MAX_LINE_PROBES {
        return insert_in_lines(lines, written, full, counter, digest);
    }
    let bits = bits_of(digest);
    let probed = probed(bits, probes);
    let index = line_of(digest, lines.len());
    let before = lines[index];
    let (after, cleared) = instructions.set(&before, bits, probed);
    let is_new = cleared != 0;
    let in_line = || chances_in(&instructions.only(&before, probed), probes);
    let told = count(lines, written, full, counter, digest, is_new, in_line);
    if is_new {
        lines[index] = after;
        full.change(&before, &after);
    }
    told
}

/// The same for bits in more than one line.
fn insert_in_lines<T: Told>(
    lines: &mut [Line],
    written: &mut u64,
    full: &mut FullPlaces,
    counter: &mut LineCounter,
    digest: Digest,
) -> T {
    let probes = counter.probes();
    let of_lines = || {
        of_digest(digest, probes).map(|(digest, share)| {
            let bits = bits_of(digest);
            (bits, probed(bits, share), share, digest)
        })
    };
    // As of before the element, also where two of its lines are the same one.
    let mut before = [Line::default(); MOST_SHARES];
    let mut is_new = false;
    for (before, (bits, probed, _, digest)) in before.iter_mut().zip(of_lines()) {
        *before = lines[line_of(digest, lines.len())];
        is_new |= AnyMachine.set(before, bits, probed).1 != 0;
    }
    let in_lines = || {
        let of_lines = before.iter().zip(of_lines());
        chances_of_lines(of_lines.map(|(before, (_, probed, share, _))| {
            chances_in(&AnyMachine.only(before, probed), share)
        }))
    };
    let told = count(lines, written, full, counter, digest, is_new, in_lines);
    if is_new {
        for (bits, probed, _, digest) in of_lines() {
            let index = line_of(digest, lines.len());
            let before = lines[index];
            (lines[index], _) = AnyMachine.set(&before, bits, probed);
            full.change(&before, &lines[index]);
        }
    }
    told
}

/// Counts an element if it is seen, whose bits are not set yet. A new one's are all set in its
/// lines with the probability that `in_lines` gives, and not with the other.
#[inline(always)]
fn count<T: Told>(
    lines: &[Line],
    written: &mut u64,
    full: &mut FullPlaces,
    counter: &mut LineCounter,
    digest: Digest,
    is_new: bool,
    in_lines: impl FnOnce() -> (f64, f64),
) -> T {
    let probes = counter.probes();
    let rise = counter.rise(digest);
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
                in_lines()
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
    told
}

/// Whether the bits of `digest` are all set, which lie in one line.
#[inline(always)]
pub(super) fn contains(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let bits = bits_of(digest);
    let line = &lines[line_of(digest, lines.len())];
    AnyMachine.set(line, bits, probed(bits, probes)).1 == 0
}

/// Digests to be inserted, whose bits lie in one line each, and the answer for them.
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
        let Self { lines, written, full, counter, .. } = self;
        let probes = counter.probes();
        let mut row = Row::new(std::iter::once(probes));
        for (batches, answers) in batches.chunks(ROW).zip(answers.chunks_mut(ROW)) {
            let len = BATCH * batches.len();
            let sample = counter.sample(*written, len);
            let is_crowded = counter.counts() && counter.is_crowded();
            // In crowded lines every new digest needs its line as it was before, and has it here.
            if sample.is_none() && counter.counts() || is_crowded && !self.touch {
                let all = answers.as_flattened_mut().iter_mut();
                for (answer, &digest) in all.zip(batches.as_flattened()) {
                    *answer = insert(instructions, lines, written, full, counter, digest);
                }
                continue;
            }
            if is_crowded {
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
            let counted = Counted { counters: std::slice::from_mut(counter), of_column: &[0] };
            let told = answers.as_flattened_mut();
            row.count(instructions, array, batches, counted, sets, told);
        }
        for (answer, &digest) in rest_answers.iter_mut().zip(rest) {
            *answer = insert(instructions, lines, written, full, counter, digest);
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
