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
pub(super) use shares::shares;
pub use weighing::{WeighingFilter, Weight};

use super::saved::unite_lines;
use super::{Estimate, Sighting, fill};
use crate::bits::{Line, Lines};
use crate::hashing::Digest;
use crate::sizing::MAX_LINE_PROBES;
use full::{FullPlaces, chances_of_all, chances_of_some};
use in_turn::{Columns, InsertInTurn};
use instructions::AnyMachine;
use places::BATCH;
use probe::{ContainsAll, InsertAll, Told};
use row::{DIGESTS, Digests, ROW, Row};

/// Bytes from which lines are touched first: what is well beyond the second-level cache.
const TOUCH_FROM_BYTES: u64 = 4 << 20;

/// Most bits written that came from elsewhere: more make no difference, and leave room to count on.
const MOST_WRITTEN: u64 = 1 << 62;

/// With less than one written bit in this many, the next element is not missed as far as bounds go.
const LEAST_LOAD: u64 = 1024;

/// An array of lines, and how many bits were written into it.
#[derive(Clone, Debug)]
pub(super) struct LineArray {
    pub(super) lines: Lines,
    /// Bits of all new values, also those that were set already.
    written: u64,
    full: FullPlaces,
}

/// Whether the bits of `digest` are all set in lines that lie in `bytes`, at least one,
/// little-endian.
pub(super) fn bytes_contain(bytes: &[u8], probes: u32, digest: Digest) -> bool {
    let lines = bytes.as_chunks::<{ Lines::LINE_BYTES as usize }>().0;
    shares::of_digest(digest, probes).all(|(digest, probes)| {
        let line = lines[places::line_of(digest, lines.len())].as_chunks().0;
        let line: Line = std::array::from_fn(|word| u64::from_le_bytes(line[word]));
        probe::contains(&[line], probes, digest)
    })
}

impl LineArray {
    /// An array of `lines` ≥ 1 cache lines.
    pub(super) fn new(lines: u64) -> Self {
        Self { lines: Lines::new(lines), written: 0, full: FullPlaces::default() }
    }

    /// A count for values of `probes` (1 to 32) bits each.
    pub(super) fn counter(&self, probes: u32) -> LineCounter {
        LineCounter::new(probes, self.lines.memory_bytes() * 8)
    }

    /// No count of such values.
    pub(super) fn no_counter(&self, probes: u32) -> LineCounter {
        LineCounter::off(probes, self.lines.memory_bytes() * 8)
    }

    /// Sets the bits of `digest`, and counts it if it is new.
    #[inline]
    pub(super) fn insert(&mut self, counter: &mut LineCounter, digest: Digest) -> Sighting {
        probe::insert(
            AnyMachine,
            self.lines.as_mut_slice(),
            &mut self.written,
            &mut self.full,
            counter,
            digest,
        )
    }

    /// The same for many digests in order; the answer for them is appended.
    pub(super) fn insert_all(
        &mut self,
        counter: &mut LineCounter,
        digests: &[Digest],
        told: &mut Vec<impl Told>,
    ) {
        if counter.probes() > MAX_LINE_PROBES {
            let digests_of = |number: usize, of_one: &mut [Digest]| of_one[0] = digests[number];
            let counters = std::slice::from_mut(counter);
            return self.insert_in_turn(counters, digests.len(), digests_of, told);
        }
        instructions::run(InsertAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_mut_slice(),
            written: &mut self.written,
            full: &mut self.full,
            counter,
            digests,
            told,
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
        digests_of: impl FnMut(usize, &mut [Digest]),
        told: &mut Vec<impl Told>,
    ) {
        self.insert_rows(self.is_touched_first(), counters, elements, digests_of, told);
    }

    /// The same; whether lines are touched first is given.
    fn insert_rows(
        &mut self,
        touch: bool,
        counters: &mut [LineCounter],
        elements: usize,
        mut digests_of: impl FnMut(usize, &mut [Digest]),
        told: &mut Vec<impl Told>,
    ) {
        let columns = &Columns::new(counters);
        let in_row = DIGESTS / columns.len();
        let mut row = Row::new(counters.iter().flat_map(|it| shares(it.probes())));
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
                written: &mut self.written,
                full: &mut self.full,
                counters,
                columns,
                row: &mut row,
                digests: this,
                elements: of_this,
                told,
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
        self.written = 0;
        self.full.forget();
    }

    /// Share of set bits: counts them, in time proportional to the size.
    pub(super) fn fill_ratio(&self) -> f64 {
        self.lines.ones() as f64 / (self.lines.memory_bytes() * 8) as f64
    }

    /// The count, if no other bits are in the array; of a union by the registers or the fill.
    pub(super) fn estimate(&self, counter: &LineCounter) -> Option<Estimate> {
        self.estimate_with(counter, || self.count_from_fill(counter.probes()))
    }

    /// The count, if other bits are in the array too; of a union by the registers.
    pub(super) fn estimate_among_others(&self, counter: &LineCounter) -> Option<Estimate> {
        self.estimate_with(counter, || None)
    }

    fn estimate_with(
        &self,
        counter: &LineCounter,
        fill: impl FnOnce() -> Option<Estimate>,
    ) -> Option<Estimate> {
        counter.estimate(self.written, || self.chances(counter), fill)
    }

    /// Share of the new values that would be seen now.
    fn seen_share(&self, counter: &LineCounter) -> f64 {
        counter.chances(self.chances(counter)).seen()
    }

    /// Probabilities that the bits of a new value are all set, and that one is clear: nearly,
    /// unless the array is crowded. The same for a filter that was saved and loaded, which keeps no
    /// sum.
    fn chances(&self, counter: &LineCounter) -> (f64, f64) {
        let (lines, probes) = (self.lines.as_slice(), counter.probes());
        if counter.is_crowded_at(self.written) {
            chances_of_all(lines, probes)
        } else if self.written < self.lines.memory_bytes() * 8 / LEAST_LOAD {
            (0.0, 1.0)
        } else {
            chances_of_some(lines, probes)
        }
    }

    /// The count of values of `probes` bits each, if no other bits are in the array, from the fill.
    pub(super) fn count_from_fill(&self, probes: u32) -> Option<Estimate> {
        fill::in_lines(self.lines.ones(), self.lines.len(), probes)
    }

    /// Sets the bits of another array of the same length as well.
    pub(super) fn unite(&mut self, other: &Self) {
        unite_lines(&mut self.lines, &other.lines);
        self.full.forget();
        self.written = self.written.saturating_add(other.written).min(MOST_WRITTEN);
    }

    /// Bits written so far.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Says that the lines, which came from elsewhere, hold these new values of this many bits
    /// each.
    pub(super) fn set_written(&mut self, values: impl Iterator<Item = (u64, u32)>) {
        self.full.forget();
        let bits = values.map(|(firsts, probes)| firsts.saturating_mul(u64::from(probes)));
        self.written = bits.fold(0, u64::saturating_add).min(MOST_WRITTEN);
    }

    fn is_touched_first(&self) -> bool {
        self.lines.memory_bytes() >= TOUCH_FROM_BYTES
    }
}
