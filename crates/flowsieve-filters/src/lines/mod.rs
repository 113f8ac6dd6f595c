//! Bits of digests in cache lines: what the structures with lines share.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from
//! a random one on. More than eight bits lie in several lines ([`mod@shares`]).
//!
//! Large arrays are taken in batches of 32: the lines of a batch are touched first, so that all of
//! their cache misses are under way together, and probed after that. In a small array touching
//! costs more than it brings.

mod count;
mod full;
mod halving;
mod in_turn;
mod instructions;
mod places;
mod probe;
mod row;
mod shares;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod weighing;

pub(super) use count::LineCounter;
pub(crate) use halving::{HalvingLines, halving_lines};
pub(super) use shares::shares;
pub use weighing::{WeighingFilter, Weight};

use super::saved::unite_lines;
use super::{Estimate, Sighting, fill};
use crate::bits::Lines;
use crate::hashing::Digest;
use crate::martingale::Chances;
use crate::sizing::MAX_LINE_PROBES;
use in_turn::{Columns, InsertInTurn};
use instructions::AnyMachine;
use places::BATCH;
use probe::{ContainsAll, InsertAll, Outcome};
use row::{DIGESTS, Digests, ROW, Row};

/// Bytes from which lines are touched first: what is well beyond the second-level cache.
const TOUCH_FROM_BYTES: u64 = 4 << 20;

/// An array of lines.
#[derive(Clone, Debug)]
pub(super) struct LineArray {
    pub(super) lines: Lines,
}

impl LineArray {
    /// An array of `lines` ≥ 1 cache lines.
    pub(super) fn new(lines: u64) -> Self {
        Self { lines: Lines::new(lines) }
    }

    /// Sets the bits of `digest`, and counts it if it is new.
    #[inline]
    pub(super) fn insert(&mut self, counter: &mut LineCounter, digest: Digest) -> Sighting {
        probe::insert(AnyMachine, self.lines.as_mut_slice(), counter, digest)
    }

    /// The same for many digests in order; the answer for them is appended.
    pub(super) fn insert_all(
        &mut self,
        counter: &mut LineCounter,
        digests: &[Digest],
        outcomes: &mut Vec<impl Outcome>,
    ) {
        if counter.probes() > MAX_LINE_PROBES {
            let digests_of = |number: usize, of_one: &mut [Digest]| of_one[0] = digests[number];
            let counters = std::slice::from_mut(counter);
            return self.insert_in_turn(counters, digests.len(), digests_of, outcomes);
        }
        let start = outcomes.len();
        outcomes.resize(start + digests.len(), Outcome::REPEAT);
        instructions::run(InsertAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_mut_slice(),
            counter,
            digests,
            outcomes: &mut outcomes[start..],
            cleared: &mut 0,
        });
    }

    /// Whether there are few enough of them for [`LineArray::insert_in_turn`].
    pub(super) fn can_take_turns(counters: &[LineCounter]) -> bool {
        let lines = counters.iter().map(|it| shares::number_of(it.probes()));
        lines.sum::<usize>() <= DIGESTS
    }

    /// Sets the bits of `elements` of as many digests each as there are counters (at least one,
    /// which [can take turns](Self::can_take_turns)), one after the other, and counts each digest
    /// that is new; the answer for the first digest of each element is appended.
    ///
    /// `digests_of` writes the digests of an element, whose number it is given.
    pub(super) fn insert_in_turn(
        &mut self,
        counters: &mut [LineCounter],
        elements: usize,
        mut digests_of: impl FnMut(usize, &mut [Digest]),
        outcomes: &mut Vec<impl Outcome>,
    ) {
        let touch = self.is_touched_first();
        let columns = &Columns::new(counters);
        let in_row = DIGESTS / columns.len();
        let mut row = Row::new(counters.iter().flat_map(|it| shares(it.probes())), true);
        let digests = counters.len();
        let mut write = |begin: usize, all: &mut Digests| {
            let of_row = begin.min(elements)..elements.min(begin + in_row);
            let places = all.as_flattened_mut().chunks_exact_mut(columns.len());
            for (element, place) in of_row.clone().zip(places) {
                digests_of(element, &mut place[..digests]);
                columns.spread(place);
            }
            of_row.len()
        };
        // What was written digest by digest cannot be read as vectors at once. So the digests of a
        // row are written before the row ahead of it is inserted.
        let mut rows = [[[Digest::from_value(0); BATCH]; ROW]; 2];
        let [this, next] = &mut rows;
        let (mut this, mut next) = (this, next);
        let mut of_this = write(0, this);
        for begin in (0..elements).step_by(in_row) {
            let of_next = write(begin + in_row, next);
            instructions::run(InsertInTurn {
                lines: self.lines.as_mut_slice(),
                touch,
                counters,
                columns,
                row: &mut row,
                digests: this,
                elements: of_this,
                outcomes,
            });
            (this, next, of_this) = (next, this, of_next);
        }
    }

    /// Whether the `probes` bits of `digest` are all set.
    #[inline]
    pub(super) fn contains(&self, probes: u32, digest: Digest) -> bool {
        let mut of_lines = shares::of_digest(digest, probes);
        of_lines.all(|(digest, share)| probe::contains(self.lines.as_slice(), share, digest))
    }

    /// The same for many digests; the answers are appended.
    pub(super) fn contains_all(&self, probes: u32, digests: &[Digest], answers: &mut Vec<bool>) {
        let mut of_lines = shares(probes).enumerate();
        let start = answers.len();
        if let Some((_, share)) = of_lines.next() {
            self.contains_in_line(share, digests, answers);
        }
        // Of those that are in their lines so far: few, unless they were inserted.
        for (number, share) in of_lines {
            let (mut asked, mut places, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for (place, &digest) in digests.iter().enumerate() {
                if answers[start + place] {
                    asked.push(shares::digest_of(digest, number));
                    places.push(place);
                }
            }
            self.contains_in_line(share, &asked, &mut found);
            for (place, found) in places.into_iter().zip(found) {
                answers[start + place] = found;
            }
        }
    }

    fn contains_in_line(&self, probes: u32, digests: &[Digest], answers: &mut Vec<bool>) {
        instructions::run(ContainsAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_slice(),
            probes,
            digests,
            answers,
        });
    }

    /// Clears all bits.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// The count; of the fill if it was not kept and no other bits are in the array.
    pub(super) fn estimate(&self, counter: &LineCounter) -> Option<Estimate> {
        let estimate = counter.estimate(|| self.chances(counter.probes()));
        if counter.is_on() { estimate } else { self.count_from_fill(counter.probes()) }
    }

    /// The chances of a new value: about, and the same for a filter that was saved and loaded.
    fn chances(&self, probes: u32) -> Chances {
        full::chances_of_some(self.lines.as_slice(), probes)
    }

    /// The count of values of `probes` bits each, if no other bits are in the array, from the fill.
    fn count_from_fill(&self, probes: u32) -> Option<Estimate> {
        fill::in_lines(self.lines.ones(), self.lines.len(), probes)
    }

    /// Sets the bits of another array of the same length as well, and unites the counts.
    pub(super) fn unite(
        &mut self,
        counters: &mut [LineCounter],
        other: &Self,
        others: &[LineCounter],
    ) {
        let of_both = |array: &Self, counter| array.estimate(counter);
        let before: Vec<[Option<Estimate>; 2]> = counters
            .iter()
            .zip(others)
            .map(|(one, more)| [of_both(self, one), of_both(other, more)])
            .collect();
        unite_lines(&mut self.lines, &other.lines);
        // With several kinds of values it is unknown whose bits fill the lines.
        let fill = match counters {
            [counter] => self.count_from_fill(counter.probes()),
            _ => None,
        };
        for ((counter, more), of_both) in counters.iter_mut().zip(others).zip(before) {
            counter.unite(more, of_both, fill);
        }
    }

    fn is_touched_first(&self) -> bool {
        self.lines.memory_bytes() >= TOUCH_FROM_BYTES
    }
}
