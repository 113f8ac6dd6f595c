//! The count of a combination whose bits lie in lines.

use super::full::chances_of_full;
use super::row::DIGESTS;
use crate::Estimate;
use crate::martingale::{Chances, DistinctCounter};

/// Share of the new values that lines have to notice for a count to have an upper bound. A value's
/// weight comes from its own line, and full lines contribute none: above this share they miss less
/// than a thousandth of the values.
const LEAST_SEEN: f64 = 0.1;

/// Count of the distinct values of one combination in an array of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineCounter {
    probes: u32,
    /// `None` if values are not counted.
    count: Option<DistinctCounter>,
}

impl LineCounter {
    /// Creates a count of values of `probes` (1 to 32) bits each.
    pub(crate) fn empty(probes: u32) -> Self {
        Self { probes, count: Some(DistinctCounter::default()) }
    }

    /// Creates a counter that does not count, for membership only.
    pub(crate) const fn off(probes: u32) -> Self {
        Self { probes, count: None }
    }

    /// Returns the number of bits that a value sets.
    pub(crate) const fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns whether new values are counted.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.count.is_some()
    }

    /// Returns the count, to be saved.
    pub(crate) const fn count(&self) -> Option<&DistinctCounter> {
        self.count.as_ref()
    }

    /// Continues from a saved count, if values are counted.
    pub(crate) fn restore(&mut self, count: DistinctCounter) {
        self.count = self.count.map(|_| count);
    }

    /// Returns the number of new values so far, or `None` if a union added others.
    pub(crate) fn firsts(&self) -> Option<u64> {
        self.count?.seen()
    }

    /// Clears the count.
    pub(crate) fn clear(&mut self) {
        self.restore(DistinctCounter::default());
    }

    /// Returns the count, given the chances of a new value; `None` if values are not counted.
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

    /// Records a value that was seen with these chances. Returns the mean number of values that
    /// were missed with it, or 0 if values are not counted.
    #[inline]
    pub(super) fn record(&mut self, chances: Chances) -> f64 {
        self.count.as_mut().map_or(0.0, |count| count.record_seen(chances))
    }

    /// [`LineCounter::record`] for the first `len` values of a row that were seen, in order, whose
    /// windows in a line of the cache had this many full places. Passes the number of each value
    /// and the mean to `missed`.
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
        // Compute the means by vectors, but add them in order, on which the sum depends.
        let (eights, _) = full.as_chunks::<8>();
        for (begin, eight) in (0..len).step_by(8).zip(eights) {
            // A loop and not `map`, whose closure is not compiled for these instructions.
            let mut means = [0.0; 8];
            for (mean, &full) in means.iter_mut().zip(eight) {
                let Chances { missed, seen } = chances_of_full(full, probes);
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
