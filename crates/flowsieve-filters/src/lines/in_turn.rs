//! Insertions of elements of several digests each: the whole element and its combinations, in turn,
//! in the same lines. Each of them has as many digests as it has lines.
//!
//! Each digest is compared with the bits of all earlier digests, also those of its element.
//! Therefore rows are filled in that order, and each counter takes the digests at its places.

use super::count::LineCounter;
use super::full::chances_of_full;
use super::instructions::{Instructions, Work};
use super::probe::Outcome;
use super::row::{Digests, Row};
use super::shares::{self, chances_of_lines};
use crate::bits::Line;
use crate::hashing::Digest;

/// Which digests of an element belong to which counter.
pub(super) struct Columns {
    /// The first digest of each counter, and finally the number of digests.
    leads: Vec<usize>,
    /// The counter of each digest of an element.
    counters: Vec<u8>,
}

impl Columns {
    /// Creates the columns of these counters, which have at least one line together, and at most a
    /// row.
    pub(super) fn new(counters: &[LineCounter]) -> Self {
        let (mut leads, mut of_digests) = (vec![0], Vec::new());
        for (number, counter) in (0..).zip(counters) {
            let len = of_digests.len() + shares::number_of(counter.probes());
            of_digests.resize(len, number);
            leads.push(len);
        }
        Self { leads, counters: of_digests }
    }

    /// Returns the number of digests of an element.
    pub(super) fn len(&self) -> usize {
        self.leads.last().copied().unwrap_or(0)
    }

    /// Expands the digests of the counters, which come first in `digests`, to those of all lines.
    #[inline]
    pub(super) fn spread(&self, digests: &mut [Digest]) {
        // From the last one on, so that a digest is moved before it is overwritten.
        for (number, ends) in self.leads.windows(2).enumerate().rev() {
            let digest = digests[number];
            for (share, place) in digests[ends[0]..ends[1]].iter_mut().enumerate() {
                *place = shares::digest_of(digest, share);
            }
        }
    }
}

/// A row of elements to be inserted, one after the other.
pub(super) struct InsertInTurn<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    /// The counters of the whole element and of its combinations.
    pub(super) counters: &'a mut [LineCounter],
    pub(super) columns: &'a Columns,
    /// A row for digests that set the counters' numbers of bits.
    pub(super) row: &'a mut Row,
    /// The digests of all elements; the rest is ignored.
    pub(super) digests: &'a Digests,
    /// Number of elements.
    pub(super) elements: usize,
    /// The answers for the first counter.
    pub(super) outcomes: &'a mut Vec<T>,
}

impl<T: Outcome> Work for InsertInTurn<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let columns = self.columns.len();
        let digests = &self.digests[..self.elements * columns];
        self.row.read(instructions, self.lines, self.touch, digests);
        let start = self.outcomes.len();
        self.outcomes.resize(start + self.elements, T::REPEAT);
        let mut done = 0;
        for number in self.row.absent() {
            if number < done {
                continue;
            }
            let (element, column) = (number / columns, number % columns);
            let counter = usize::from(self.columns.counters[column]);
            let first = number - column;
            let leads = &self.columns.leads[counter..];
            let all = first + leads[0]..first + leads[1];
            done = all.end;
            // Taken before any bit is set, since two of the lines may be the same.
            let of_line = |number| {
                let (probes, full) = self.row.full_of(instructions, self.lines, number);
                chances_of_full(full, probes)
            };
            let chances = chances_of_lines(all.clone().map(of_line));
            let set = |number| self.row.set(instructions, self.lines, number).0 != 0;
            if !all.map(set).fold(false, |any, is_new| any | is_new) {
                continue;
            }
            let missed = self.counters[counter].record(chances);
            if counter == 0 {
                self.outcomes[start + element] = T::FIRST;
                self.outcomes[start + element].missed(missed);
            }
        }
    }
}
