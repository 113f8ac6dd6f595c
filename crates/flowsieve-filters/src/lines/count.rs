//! The count of a combination whose bits stand in lines.

use super::shares::chances_of_lines;
use crate::Estimate;
use crate::martingale::{Chances, DistinctCounter};

/// Share of the new values that lines have to notice for a count to have an upper bound. The weight
/// of a value comes from its own line, and lines that are full give none: above this share they
/// miss less than a thousandth of the values.
const LEAST_SEEN: f64 = 0.1;

/// Count of the distinct values of one combination in an array of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineCounter {
    probes: u32,
    /// `None` if it does not count.
    count: Option<DistinctCounter>,
}

impl LineCounter {
    /// The count of no values yet, of `probes` (1 to 32) bits each.
    pub(crate) fn empty(probes: u32) -> Self {
        Self { probes, count: Some(DistinctCounter::default()) }
    }

    /// The same without a count, for membership only.
    pub(crate) const fn off(probes: u32) -> Self {
        Self { probes, count: None }
    }

    /// Bits that a value sets.
    pub(crate) const fn probes(&self) -> u32 {
        self.probes
    }

    /// Whether new values are counted.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.count.is_some()
    }

    /// The count, to be saved.
    pub(crate) const fn count(&self) -> Option<&DistinctCounter> {
        self.count.as_ref()
    }

    /// Goes on from a count that was saved, if it counts.
    pub(crate) fn restore(&mut self, count: Option<DistinctCounter>) {
        self.count = self.count.and(count);
    }

    /// New values so far, unless others came in all at once.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.count?.seen()
    }

    /// Clears it.
    pub(crate) fn clear(&mut self) {
        self.count = self.count.map(|_| DistinctCounter::default());
    }

    /// The count, where a new value has these chances; `None` if it does not count.
    pub(super) fn estimate(&self, chances: impl FnOnce() -> Chances) -> Option<Estimate> {
        Some(self.count?.estimate_with(chances, LEAST_SEEN))
    }

    /// Makes this the count of a union ([`DistinctCounter::unite`]).
    pub(super) fn unite(
        &mut self,
        other: &Self,
        of_both: [Option<Estimate>; 2],
        fill: Option<Estimate>,
    ) {
        if let (Some(count), Some(more)) = (&mut self.count, &other.count) {
            count.unite(more, of_both, fill);
        }
    }

    /// Records a value that was seen, whose bits would all be set, or not, in each of its lines with
    /// these probabilities. Returns the mean of those that were missed with it.
    #[inline]
    pub(super) fn record(&mut self, of_lines: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (missed, seen) = chances_of_lines(of_lines);
        let count = self.count.as_mut();
        count.map_or(0.0, |count| count.record_seen(Chances { seen, missed }))
    }
}
