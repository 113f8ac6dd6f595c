//! Setting the bits of elements of several digests each: the whole and its combinations, in turn,
//! in the same lines; and of each as many digests as it has lines.
//!
//! A digest sees the bits of all digests before it, including those of its element. So rows are
//! filled in that order, and each counter takes those at its own places.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::instructions::{Instructions, Work};
use super::places::BATCH;
use super::probe::Outcome;
use super::row::{DIGESTS, Digests, Row};
use super::shares;
use crate::bits::Line;
use crate::hashing::Digest;

/// Which digests of an element are for which counter.
pub(super) struct Columns {
    /// The first digest of each counter, and after them how many there are.
    leads: Vec<usize>,
}

impl Columns {
    /// The digests of these counters, of 1 to [`DIGESTS`] lines together.
    pub(super) fn new(counters: &[LineCounter]) -> Self {
        let mut leads = vec![0];
        let mut len = 0;
        for counter in counters {
            len += shares::number_of(counter.probes());
            leads.push(len);
        }
        Self { leads }
    }

    /// Digests of an element.
    pub(super) fn len(&self) -> usize {
        self.leads.last().copied().unwrap_or(0)
    }

    /// Spreads the digests of the counters, which stand in front, to their places.
    #[inline]
    pub(super) fn spread(&self, digests: &mut [Digest]) {
        // The last one first: what is overwritten was moved before.
        for (number, ends) in self.leads.windows(2).enumerate().rev() {
            let digest = digests[number];
            for (share, place) in digests[ends[0]..ends[1]].iter_mut().enumerate() {
                *place = shares::digest_of(digest, share);
            }
        }
    }
}

/// A row's worth of elements to be inserted, one after the other.
pub(super) struct InsertInTurn<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    /// One for each digest of an element, or for several that are one in several lines.
    pub(super) counters: &'a mut [LineCounter],
    pub(super) columns: &'a Columns,
    /// For digests that set as many bits as the counters say.
    pub(super) row: &'a mut Row,
    /// The digests of all elements, and whatever there is after them.
    pub(super) digests: &'a Digests,
    /// How many elements.
    pub(super) elements: usize,
    /// The answer for the first counter's digest of each element.
    pub(super) outcomes: &'a mut Vec<T>,
}

impl<T: Outcome> Work for InsertInTurn<'_, T> {
    #[inline(always)]
    fn run_with(self, instructions: impl Instructions) {
        let columns = self.columns.len();
        let len = self.elements * columns;
        let batches = &self.digests[..len.div_ceil(BATCH)];
        self.row.find(instructions, self.lines.len() as u64, batches, len);
        self.row.insert(instructions, self.lines, self.touch);
        let outcomes = &mut [T::REPEAT; DIGESTS];
        let leads = (&*self.columns.leads, columns);
        self.row.count_in_turn(instructions, self.counters, leads, outcomes);
        self.outcomes.extend(outcomes[..len].iter().step_by(columns));
    }
}
