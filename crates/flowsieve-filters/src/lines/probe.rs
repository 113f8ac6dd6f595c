//! Setting and reading the bits of digests in lines.
//!
//! All eight words are computed, and those that are not probed are masked out: no branch and no
//! index depends on the digest, so it takes a few vector instructions. Batches run with the
//! instructions of the present machine; every machine gives the same bits, answers and counts.

use super::count::LineCounter;
use super::full::{chances_of_full, full_in};
use super::instructions::{AnyMachine, Instructions, Work};
use super::places::{bits_of, line_of, probed};
use super::row::{DIGESTS, Row};
use crate::Sighting;
use crate::bits::Line;
use crate::hashing::Digest;

/// Answer to the insertion of a digest.
pub(crate) trait Outcome: Copy {
    /// All of its bits were set.
    const REPEAT: Self;

    /// One of its bits was clear.
    const FIRST: Self;

    /// It is not in the sample.
    const UNSAMPLED: Self;

    /// Adds the mean number of other elements that were missed with it.
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
        let in_line = chances_of_full(full_in(&instructions.only(&before, probed)), probes);
        outcome.missed(counter.record(in_line));
    }
    outcome
}

/// Returns whether the bits of `digest`, which lie in one line, are all set.
#[inline(always)]
pub(super) fn contains(lines: &[Line], probes: u32, digest: Digest) -> bool {
    let bits = bits_of(digest);
    let line = &lines[line_of(digest, lines.len())];
    AnyMachine.set(line, bits, probed(bits, probes)).1 == 0
}

/// Digests to be inserted, whose bits lie in one line each, and their answers, which are those of
/// repeats at first.
pub(super) struct InsertAll<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) counter: &'a mut LineCounter,
    pub(super) digests: &'a [Digest],
    pub(super) outcomes: &'a mut [T],
    /// Sum to which the number of bits that were clear is added.
    pub(super) cleared: &'a mut u64,
}

impl<T: Outcome> Work for InsertAll<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let mut row = Row::new(std::iter::once(self.counter.probes()));
        let (mut new, mut full) = ([0_u8; DIGESTS], [0; DIGESTS]);
        let rows = self.digests.chunks(DIGESTS).zip(self.outcomes.chunks_mut(DIGESTS));
        for (digests, outcomes) in rows {
            row.read(instructions, self.lines, self.touch, digests);
            let mut found = 0;
            for number in row.absent() {
                let (cleared, full_before) = row.set(instructions, self.lines, number);
                new[found % DIGESTS] = number as u8;
                full[found % DIGESTS] = full_before;
                found += usize::from(cleared != 0);
                *self.cleared += u64::from(cleared.count_ones());
            }
            new[..found].iter().for_each(|&number| outcomes[usize::from(number)] = T::FIRST);
            self.counter.record_all(&full, found, |number, missed| {
                outcomes[usize::from(new[number])].missed(missed);
            });
        }
    }
}

/// Queried digests, whose bits lie in one line each, and the answers.
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
        self.answers.resize(start + self.digests.len(), true);
        let mut row = Row::new(std::iter::once(self.probes));
        let answers = self.answers[start..].chunks_mut(DIGESTS);
        for (digests, answers) in self.digests.chunks(DIGESTS).zip(answers) {
            row.read(instructions, self.lines, self.touch, digests);
            row.absent().for_each(|number| answers[number] = false);
        }
    }
}
