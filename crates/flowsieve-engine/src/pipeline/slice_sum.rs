//! A slice whose shards have all answered.

use super::combinations;
use super::results::SliceResult;
use super::shard_spec::{CombinationTally, ShardTally};
use crate::filters::Estimate;
use crate::sorted::Item;
use serde::{Deserialize, Serialize};

/// Packets, elements and times of a closed slice.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ClosedSlice {
    /// Number of the slice in the grid.
    pub(crate) index: i64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) packets: u64,
    pub(crate) elements: u64,
}

/// Sums over the shards of a slice.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct SliceSum {
    pub(super) slice: ClosedSlice,
    /// Number of earlier counts of the slice; the last count is the right one.
    pub(super) revision: u64,
    /// The sink has it.
    pub(super) is_shown: bool,
    pub(super) exact: Option<u64>,
    pub(super) exact_over_limit: bool,
    pub(super) first: Option<u64>,
    pub(super) estimate: Option<Estimate>,
    pub(super) false_repeats: u64,
    pub(super) saturated: bool,
    pub(super) combinations: Vec<CombinationTally>,
    /// New elements by the exact sets, as far as it was known when the slice closed.
    pub(super) new: Option<i64>,
}

impl SliceSum {
    /// Adds the shards up, in their order, so that floating-point sums do not depend on timing.
    pub(super) fn of(slice: ClosedSlice, tallies: impl Iterator<Item = ShardTally>) -> Self {
        let mut sum = Self {
            slice,
            exact: Some(0),
            first: Some(0),
            estimate: Some(Estimate::default()),
            new: Some(0),
            ..Self::default()
        };
        for tally in tallies {
            sum.exact = sum.exact.zip(tally.exact).map(|(a, b)| a + b);
            sum.first = sum.first.zip(tally.first).map(|(a, b)| a + b);
            sum.estimate = sum.estimate.zip(tally.estimate).map(|(a, b)| a.plus(b));
            sum.exact_over_limit |= tally.exact_over_limit;
            sum.saturated |= tally.saturated;
            sum.false_repeats += tally.false_repeats;
            sum.new = sum.new.zip(tally.new).map(|(a, b)| a + b);
            // Where there are any there is one shard.
            sum.combinations.extend(tally.combinations);
        }
        sum
    }

    /// Returns the row.
    pub(super) fn result(&self) -> SliceResult {
        let judged = self.exact.filter(|_| self.first.is_some());
        SliceResult {
            start_ns: self.slice.start_ns,
            end_ns: self.slice.end_ns,
            packets: self.slice.packets,
            elements: self.slice.elements,
            exact: self.exact,
            exact_over_limit: self.exact_over_limit,
            first: self.first,
            estimate: self.estimate.and_then(Estimate::point),
            std_error: self.estimate.and_then(Estimate::point_error),
            lower: self.estimate.map(Estimate::lower),
            upper: self.estimate.and_then(Estimate::upper),
            observed_fpr: judged.filter(|&n| n > 0).map(|n| self.false_repeats as f64 / n as f64),
            saturated: self.saturated,
            combinations: combinations::results(&self.combinations),
            new: self.new.map(|new| u64::try_from(new).unwrap_or(0)),
            ..SliceResult::default()
        }
    }
}

impl Item for SliceSum {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.slice.index, self.revision)
    }

    fn further_bytes(&self) -> usize {
        self.combinations.len() * size_of::<CombinationTally>()
    }
}
