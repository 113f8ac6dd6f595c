//! The counts of combinations: of a slice, and summed over the slices.

use super::results::CombinationResult;
use crate::filters::{CombinationCount, Estimate};

/// Sums over the slices; none where a slice has none.
pub(super) struct CombinationSums(Vec<CombinationCount>);

impl CombinationSums {
    /// Nothing yet of the combinations of `empty`, the counts of a slice without elements.
    pub(super) fn new(empty: &[CombinationCount]) -> Self {
        Self(empty.to_vec())
    }

    /// Adds a slice.
    pub(super) fn add(&mut self, slice: &[CombinationCount]) {
        for (sum, count) in self.0.iter_mut().zip(slice) {
            sum.first = sum.first.zip(count.first).map(|(a, b)| a + b);
            let both = sum.distinct.zip(count.distinct);
            sum.distinct = both.map(|(a, b)| a.plus(b));
        }
    }

    /// The sums.
    pub(super) fn results(&self) -> Vec<CombinationResult> {
        Self::of_slice(&self.0)
    }

    /// The counts of one slice.
    pub(super) fn of_slice(counts: &[CombinationCount]) -> Vec<CombinationResult> {
        let result = |count: &CombinationCount| CombinationResult {
            mask: count.mask,
            first: count.first,
            estimate: count.distinct.map(|estimate| estimate.distinct),
            std_error: count.distinct.map(Estimate::std_error),
        };
        counts.iter().map(result).collect()
    }

    /// Those of a slice without packets, with a zero wherever `like` has an answer.
    pub(super) fn zeros(like: &[CombinationResult]) -> Vec<CombinationResult> {
        let zero = |like: &CombinationResult| CombinationResult {
            mask: like.mask,
            first: like.first.map(|_| 0),
            estimate: like.estimate.map(|_| 0.0),
            std_error: like.std_error.map(|_| 0.0),
        };
        like.iter().map(zero).collect()
    }
}
