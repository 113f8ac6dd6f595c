//! The count of a combination whose bits stand in lines.

use super::full::chances_of_full;
use super::row::DIGESTS;
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

    /// Records a value that was seen, whose bits would all be set, or not, with these probabilities.
    /// Returns the mean of those that were missed with it.
    #[inline]
    pub(super) fn record(&mut self, (missed, seen): (f64, f64)) -> f64 {
        let count = self.count.as_mut();
        count.map_or(0.0, |count| count.record_seen(Chances { seen, missed }))
    }

    /// The same for the first `len` values of a row that were seen, in order, whose windows had this
    /// many full places in one line of the cache; `missed` is given the number of each, and that
    /// mean.
    #[inline(always)]
    pub(super) fn record_all(
        &mut self,
        full: &[u64; DIGESTS],
        len: usize,
        mut missed: impl FnMut(usize, f64),
    ) {
        let probes = self.probes;
        let Some(count) = &mut self.count else { return };
        let mut sum = *count;
        // As vectors, and then in order: that of their sums counts.
        let (eights, _) = full.as_chunks::<8>();
        for (begin, eight) in (0..len).step_by(8).zip(eights) {
            // A loop and not `map`, whose closure is not compiled for these instructions.
            let mut means = [0.0; 8];
            for (mean, &full) in means.iter_mut().zip(eight) {
                let (missed, seen) = chances_of_full(full, probes);
                *mean = missed / seen;
            }
            for (number, &mean) in (begin..len).zip(&means) {
                sum.record_mean(mean);
                missed(number, mean);
            }
        }
        *count = sum;
    }
}
