//! The counts of combinations: of a slice, and summed over the slices.

use super::results::CombinationResult;
use super::shard_spec::CombinationTally;

/// Adds the counts of a slice to sums over slices. A sum is `None` if a slice has no count.
pub(super) fn add(sums: &mut [CombinationTally], slice: &[CombinationTally]) {
    for (sum, count) in sums.iter_mut().zip(slice) {
        let both = sum.exact.zip(count.exact);
        sum.exact = both.map(|(a, b)| a.saturating_add(b));
        let (sum, count) = (&mut sum.count, &count.count);
        let both = sum.first.zip(count.first);
        sum.first = both.map(|(a, b)| a.saturating_add(b));
        let both = sum.distinct.zip(count.distinct);
        sum.distinct = both.map(|(a, b)| a.plus(b));
    }
}

/// Returns the counts as they are reported.
pub(super) fn results(counts: &[CombinationTally]) -> Vec<CombinationResult> {
    let counts = counts.iter();
    counts.map(|tally| CombinationResult::new(&tally.count, tally.exact)).collect()
}
