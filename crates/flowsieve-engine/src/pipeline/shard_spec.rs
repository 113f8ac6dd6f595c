//! Parameters of a shard, its part of an answer, and the sums over all shards of a slice.

use super::plan::CountPlan;
use super::results::{CombinationResult, SliceResult};
use super::whole::WholeSpec;
use crate::elements::{ElementColumns, ElementKind};
use crate::filters::{CombinationCount, CounterSpec, Estimate, MembershipFilter};
use crate::memory::is_small;
use crate::sorted::Item;
use serde::{Deserialize, Serialize};

/// Parameters of a shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardSpec {
    pub(crate) counter: Option<CounterSpec>,
    pub(crate) kind: ElementKind,
    /// Combinations whose counts are wanted.
    pub(crate) combinations: Vec<u32>,
    /// Limit of each set: that of the elements, and of each combination.
    pub(crate) exact_limit_bytes: Option<u64>,
    /// Number of panes of a sliding window; a pane is a slice of the grid.
    pub(crate) panes: Option<u16>,
    /// Limit of the elements of a window.
    pub(crate) window_limit_bytes: Option<u64>,
    pub(crate) open_slices: usize,
    /// Allocate the state of all open slices when the first element comes, and not of each when it
    /// is opened.
    pub(crate) at_once: bool,
    /// Return the filter with the tally.
    pub(crate) keep: bool,
    /// Return the elements that count the slice again.
    pub(crate) journal: bool,
    /// Count all slices together as well.
    pub(crate) whole: Option<WholeSpec>,
}

/// The counts of a shard's part of a slice, or sums of them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SliceCounts {
    pub(crate) first: Option<u64>,
    pub(crate) estimate: Option<Estimate>,
    /// One entry for each combination that is wanted.
    pub(crate) combinations: Vec<CombinationTally>,
    /// `None` if the exact set is off or passed its limit.
    pub(crate) exact: Option<u64>,
    pub(crate) exact_over_limit: bool,
    /// New elements that the filter called repeats.
    pub(crate) false_repeats: u64,
    /// The counter has no estimate and was too full to count.
    pub(crate) saturated: bool,
}

/// A shard's part of a slice's answer.
#[derive(Debug, Default)]
pub(crate) struct ShardTally {
    pub(crate) counts: SliceCounts,
    /// Elements that are in no earlier slice, as the exact map of all slices knows, less those that it
    /// lost to earlier ones, since the slice was opened; and those that closed slices lost.
    pub(crate) new: Option<i64>,
    pub(crate) moved: Vec<(i64, u64)>,
    /// The filter, if it is to be kept.
    pub(crate) filter: Option<Box<dyn MembershipFilter>>,
    /// The elements that count the slice again, if they are wanted and not too many.
    pub(crate) journal: Option<ElementColumns>,
}

impl SliceCounts {
    /// Adds the counts of another part. A sum is `None` if a part has no count.
    pub(super) fn add(&mut self, other: &Self) {
        self.exact = self.exact.zip(other.exact).map(|(a, b)| a + b);
        self.first = self.first.zip(other.first).map(|(a, b)| a + b);
        self.estimate = self.estimate.zip(other.estimate).map(|(a, b)| a.plus(b));
        self.exact_over_limit |= other.exact_over_limit;
        self.saturated |= other.saturated;
        self.false_repeats += other.false_repeats;
        for (sum, more) in self.combinations.iter_mut().zip(&other.combinations) {
            sum.exact = sum.exact.zip(more.exact).map(|(a, b)| a.saturating_add(b));
            let (sum, more) = (&mut sum.count, &more.count);
            sum.first = sum.first.zip(more.first).map(|(a, b)| a.saturating_add(b));
            sum.distinct = sum.distinct.zip(more.distinct).map(|(a, b)| a.plus(b));
        }
    }

    /// Returns the counts as they are reported, in a row without times and packets.
    pub(super) fn row(&self) -> SliceResult {
        let judged = self.exact.filter(|&n| n > 0 && self.first.is_some());
        let combinations = self.combinations.iter();
        SliceResult {
            exact: self.exact,
            exact_over_limit: self.exact_over_limit,
            first: self.first,
            estimate: self.estimate.and_then(Estimate::point),
            std_error: self.estimate.and_then(Estimate::point_error),
            lower: self.estimate.map(Estimate::lower),
            upper: self.estimate.and_then(Estimate::upper),
            observed_fpr: judged.map(|n| self.false_repeats as f64 / n as f64),
            saturated: self.saturated,
            combinations: combinations
                .map(|tally| CombinationResult::new(&tally.count, tally.exact))
                .collect(),
            ..SliceResult::default()
        }
    }
}

/// The counts of a combination.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct CombinationTally {
    pub(crate) count: CombinationCount,
    /// `None` if the exact set is off or passed its limit.
    pub(crate) exact: Option<u64>,
}

impl ShardSpec {
    /// Returns the parameters of this plan's shards, with this many slices open at the same time.
    pub(crate) fn new(plan: &CountPlan, open_slices: usize, keep: bool) -> Self {
        Self {
            counter: plan.counter.as_ref().map(|counter| counter.shard.clone()),
            kind: plan.rule.kind,
            combinations: plan.combinations().to_vec(),
            exact_limit_bytes: plan.exact_set_limit(),
            panes: plan.panes(),
            window_limit_bytes: plan.window_limit(),
            open_slices,
            at_once: !is_small(
                plan.counter_bytes().unwrap_or(0).saturating_mul(open_slices as u64),
            ),
            keep,
            journal: false,
            whole: plan.whole(),
        }
    }

    /// Returns the answer for a slice without elements: zero for each count that is asked for.
    pub(crate) fn empty_tally(&self) -> ShardTally {
        let counter = self.counter.as_ref();
        let counts = SliceCounts {
            first: counter.filter(|spec| spec.tells_first()).map(|_| 0),
            estimate: counter.filter(|spec| spec.counts_distinct()).map(|_| Estimate::default()),
            combinations: counter
                .and_then(CounterSpec::filter)
                .map(|filter| {
                    let wanted = self.combinations.iter();
                    wanted
                        .map(|&mask| CombinationTally {
                            count: CombinationCount::empty(filter, mask),
                            exact: self.exact_limit_bytes.map(|_| 0),
                        })
                        .collect()
                })
                .unwrap_or_default(),
            exact: self.exact_limit_bytes.map(|_| 0),
            ..SliceCounts::default()
        };
        let new = self.whole.and_then(|whole| whole.exact_limit_bytes).map(|_| 0);
        ShardTally { counts, new, ..ShardTally::default() }
    }
}

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
pub(crate) struct SliceSum {
    pub(super) slice: ClosedSlice,
    /// Number of earlier counts of the slice; the last count is the right one.
    pub(super) revision: u64,
    /// The sink has it.
    pub(super) is_shown: bool,
    pub(super) counts: SliceCounts,
    /// New elements by the exact sets, as far as it was known when the slice closed.
    pub(super) new: Option<i64>,
}

impl SliceSum {
    /// Adds up what shards counted and their new elements, in the order of shards, so that
    /// floating-point sums do not depend on timing.
    pub(crate) fn of(
        slice: ClosedSlice,
        tallies: impl Iterator<Item = (SliceCounts, Option<i64>)>,
    ) -> Self {
        let added = tallies.reduce(|(mut counts, new), (more, more_new)| {
            counts.add(&more);
            (counts, new.zip(more_new).map(|(a, b)| a + b))
        });
        let (counts, new) = added.unwrap_or_default();
        Self { slice, counts, new, ..Self::default() }
    }

    /// Returns the row.
    pub(super) fn result(&self) -> SliceResult {
        SliceResult {
            start_ns: self.slice.start_ns,
            end_ns: self.slice.end_ns,
            packets: self.slice.packets,
            elements: self.slice.elements,
            new: self.new.map(|new| u64::try_from(new).unwrap_or(0)),
            ..self.counts.row()
        }
    }
}

impl Item for SliceSum {
    type Order = (i64, u64);

    fn order(&self) -> (i64, u64) {
        (self.slice.index, self.revision)
    }

    fn further_bytes(&self) -> usize {
        self.counts.combinations.len() * size_of::<CombinationTally>()
    }
}
