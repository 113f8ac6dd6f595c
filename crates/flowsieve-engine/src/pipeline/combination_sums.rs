//! The counts of combinations: of a slice, and summed over the slices.

use super::results::CombinationResult;
use super::shard::CombinationTally;

/// Sums over the slices; `None` if a slice has no count.
pub(super) struct CombinationSums(Vec<CombinationTally>);

impl CombinationSums {
    /// Nothing yet of the combinations of `empty`, the counts of a slice without elements.
    pub(super) fn new(empty: &[CombinationTally]) -> Self {
        Self(empty.to_vec())
    }

    /// Adds a slice.
    pub(super) fn add(&mut self, slice: &[CombinationTally]) {
        for (sum, count) in self.0.iter_mut().zip(slice) {
            let both = sum.exact.zip(count.exact);
            sum.exact = both.map(|(a, b)| a.saturating_add(b));
            let (sum, count) = (&mut sum.count, &count.count);
            let both = sum.first.zip(count.first);
            sum.first = both.map(|(a, b)| a.saturating_add(b));
            let both = sum.distinct.zip(count.distinct);
            sum.distinct = both.map(|(a, b)| a.plus(b));
        }
    }

    /// The sums.
    pub(super) fn results(&self) -> Vec<CombinationResult> {
        Self::of_slice(&self.0)
    }

    /// The counts of one slice.
    pub(super) fn of_slice(counts: &[CombinationTally]) -> Vec<CombinationResult> {
        let counts = counts.iter();
        counts.map(|tally| CombinationResult::new(&tally.count, tally.exact)).collect()
    }
}
