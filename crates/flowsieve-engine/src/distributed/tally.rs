//! The answer of one shard of a slice, to be added to those of the other shards.

use super::wire::WireFormat;
use crate::filters::{Basis, Estimate};
use crate::pipeline::SliceCounts;
use serde::{Deserialize, Serialize};

/// The counts of one shard of one slice.
#[derive(Debug, Deserialize, Serialize)]
pub struct ShardTally {
    /// Number of the slice in the grid.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Packets of the slice; they are counted with shard 0.
    pub packets: u64,
    /// Elements of the shard, repeats included.
    pub elements: u64,
    /// Earliest and latest packet of the slice; only with shard 0.
    pub times_ns: Option<(i64, i64)>,
    pub(super) counts: SliceCounts,
}

impl WireFormat for ShardTally {
    const LETTER: u8 = b'T';
    const NAME: &'static str = "tally of a shard";

    fn check(&self) -> Result<(), &'static str> {
        let counts = &self.counts;
        let most = [counts.first, counts.exact, Some(counts.false_repeats)];
        if most.into_iter().flatten().any(|count| count > self.elements) {
            return Err("more was counted than there was");
        }
        let of_combinations = counts.combinations.iter().filter_map(|tally| tally.count.distinct);
        if counts.estimate.into_iter().chain(of_combinations).all(is_possible) {
            return Ok(());
        }
        Err("a count is negative or no number")
    }
}

fn is_possible(estimate: Estimate) -> bool {
    let is_count = |number: f64| number >= 0.0 && number.is_finite();
    // A filter that is full sees nothing new: what it misses from then on has no bound.
    let of_stream = match estimate.basis {
        Basis::Stream(seen) => [seen.next_mean, seen.next_variance],
        Basis::Scatter | Basis::Bounds { .. } => [0.0; 2],
    };
    [estimate.distinct, estimate.variance].into_iter().all(is_count)
        && of_stream.into_iter().all(|number| number >= 0.0)
}
