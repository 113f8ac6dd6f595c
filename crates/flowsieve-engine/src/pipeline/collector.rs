//! Puts the shards' tallies of a slice together and hands the slices on in the order of time.

use super::combination_sums::CombinationSums;
use super::results::{Quantiles, SliceResult, SliceSink, Totals};
use super::shard::{CombinationTally, ShardTally};
use super::time_slice::SliceGrid;
use crate::filters::{Estimate, MembershipFilter};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::io;

/// What the sequencer knows of a slice that it closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedSlice {
    /// Number of the slice in the grid.
    pub(crate) index: i64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) packets: u64,
    pub(crate) elements: u64,
}

/// Slices held back so that they leave in the order of time: about 8 MiB. A trace has to reach over
/// more slices than this, and go back in time, before a slice can leave after a later one.
const MAX_HELD_SLICES: usize = 1 << 16;

/// Empty slices reported in one gap; longer gaps are only counted.
const MAX_GAP_SLICES: i64 = 60;

/// Counts beyond this are recorded as this in the quantiles; no slice has as many elements.
const MAX_RECORDED: u64 = 1 << 40;

/// Collects slices. Closings are numbered 0, 1, 2, … by the sequencer; whatever the order in which
/// the shards answer, results are taken in that order.
pub(crate) struct Collector<'a> {
    sink: &'a mut dyn SliceSink,
    shards: usize,
    waiting: BTreeMap<u64, Waiting>,
    next_closing: u64,
    held: BTreeMap<i64, SliceSum>,
    last_index: Option<i64>,
    grid: SliceGrid,
    sums: Sums,
    kept: Vec<Box<dyn MembershipFilter>>,
}

struct Waiting {
    slice: ClosedSlice,
    tallies: Vec<Option<ShardTally>>,
    missing: usize,
}

struct Sums {
    slices: u64,
    omitted: u64,
    exact: Option<u64>,
    first: Option<u64>,
    estimate: Option<Estimate>,
    false_repeats: Option<f64>,
    saturated_slices: u64,
    combinations: CombinationSums,
    /// The least and the most distinct elements of a slice: the histogram rounds them.
    least: u64,
    most: u64,
    histogram: Histogram<u64>,
}

impl<'a> Collector<'a> {
    /// `empty` is a shard's tally of a slice without elements: what is null there is null in the
    /// totals, even if there is no slice at all.
    pub(crate) fn new(
        sink: &'a mut dyn SliceSink,
        shards: usize,
        empty: &ShardTally,
        grid: SliceGrid,
    ) -> Self {
        Self {
            sink,
            shards,
            waiting: BTreeMap::new(),
            next_closing: 0,
            held: BTreeMap::new(),
            last_index: None,
            kept: Vec::new(),
            grid,
            sums: Sums {
                slices: 0,
                omitted: 0,
                exact: empty.exact,
                first: empty.first,
                estimate: empty.estimate,
                false_repeats: empty.exact.zip(empty.first).map(|_| 0.0),
                saturated_slices: 0,
                combinations: CombinationSums::new(&empty.combinations),
                least: u64::MAX,
                most: 0,
                // Grows with the counts: one for all of them from the start is 240 KiB to be cleared.
                histogram: Histogram::new(3).expect("3 significant digits are allowed"),
            },
        }
    }

    /// Announces the closing with this number; its tallies may come in any order.
    pub(crate) fn announce(&mut self, closing: u64, slice: ClosedSlice) {
        self.waiting.insert(
            closing,
            Waiting {
                slice,
                tallies: (0..self.shards).map(|_| None).collect(),
                missing: self.shards,
            },
        );
    }

    /// Number of closings whose tallies are not all here.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a shard's tally.
    pub(crate) fn tally(
        &mut self,
        closing: u64,
        shard: usize,
        tally: ShardTally,
    ) -> io::Result<()> {
        if let Some(waiting) = self.waiting.get_mut(&closing) {
            waiting.tallies[shard] = Some(tally);
            waiting.missing -= 1;
        }
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next_closing || entry.get().missing > 0 {
                break;
            }
            let Waiting {
                slice, mut tallies, ..
            } = entry.remove();
            let filters = tallies.iter_mut().flatten();
            self.kept
                .extend(filters.filter_map(|tally| tally.filter.take()));
            self.next_closing += 1;
            let sum = SliceSum::of(slice, tallies.into_iter().flatten());
            self.held.insert(slice.index, sum);
            if self.held.len() > MAX_HELD_SLICES {
                self.release_first()?;
            }
        }
        Ok(())
    }

    /// Hands on everything that is held; the totals of all slices, and the filters that are kept, in
    /// the order of their shards.
    pub(crate) fn finish(mut self) -> io::Result<(Totals, Vec<Box<dyn MembershipFilter>>)> {
        while !self.held.is_empty() {
            self.release_first()?;
        }
        Ok((self.sums.totals(), self.kept))
    }

    fn release_first(&mut self) -> io::Result<()> {
        let Some((index, sum)) = self.held.pop_first() else {
            return Ok(());
        };
        if let Some(last) = self.last_index {
            let gap = i128::from(index) - i128::from(last) - 1;
            if gap > i128::from(MAX_GAP_SLICES) {
                self.sums.omitted = self
                    .sums
                    .omitted
                    .saturating_add(u64::try_from(gap).unwrap_or(u64::MAX));
            } else {
                for empty in last.saturating_add(1)..index {
                    let (start_ns, end_ns) = self.grid.bounds(empty);
                    let slice = empty_like(&sum.result, start_ns, end_ns);
                    self.sums.count(&slice);
                    self.sink.slice(&slice)?;
                }
            }
        }
        self.last_index = Some(self.last_index.map_or(index, |last| last.max(index)));
        self.sums.add(&sum);
        self.sink.slice(&sum.result)
    }
}

/// A slice without packets, with a zero wherever `like` could have had an answer.
fn empty_like(like: &SliceResult, start_ns: i64, end_ns: i64) -> SliceResult {
    let exact = like.exact.is_some() || like.exact_over_limit;
    SliceResult {
        start_ns,
        end_ns,
        packets: 0,
        elements: 0,
        exact: exact.then_some(0),
        exact_over_limit: false,
        first: like.first.map(|_| 0),
        estimate: like.estimate.map(|_| 0.0),
        std_error: like.std_error.map(|_| 0.0),
        lower: like.lower.map(|_| 0),
        upper: like.upper.map(|_| 0),
        observed_fpr: None,
        saturated: false,
        combinations: CombinationSums::zeros(&like.combinations, exact),
    }
}

/// A slice's result, and what only the totals need.
struct SliceSum {
    result: SliceResult,
    estimate: Option<Estimate>,
    false_repeats: u64,
    combinations: Vec<CombinationTally>,
}

impl SliceSum {
    /// Adds the shards up, in their order, so that floating-point sums do not depend on timing.
    fn of(slice: ClosedSlice, tallies: impl Iterator<Item = ShardTally>) -> Self {
        let (mut exact, mut first, mut over_limit) = (Some(0), Some(0), false);
        let (mut estimate, mut false_repeats) = (Some(Estimate::default()), 0);
        let mut saturated = false;
        let mut combinations = Vec::new();
        for tally in tallies {
            exact = exact.zip(tally.exact).map(|(a, b)| a + b);
            first = first.zip(tally.first).map(|(a, b)| a + b);
            estimate = estimate.zip(tally.estimate).map(|(a, b)| a.plus(b));
            over_limit |= tally.exact_over_limit;
            saturated |= tally.saturated;
            false_repeats += tally.false_repeats;
            // Where there are any there is one shard.
            combinations.extend(tally.combinations);
        }
        let judged = exact.filter(|_| first.is_some());
        let result = SliceResult {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            packets: slice.packets,
            elements: slice.elements,
            exact,
            exact_over_limit: over_limit,
            first,
            estimate: estimate.map(|estimate| estimate.distinct),
            std_error: estimate.map(Estimate::std_error),
            lower: estimate.map(Estimate::lower),
            upper: estimate.map(Estimate::upper),
            observed_fpr: judged
                .filter(|&n| n > 0)
                .map(|n| false_repeats as f64 / n as f64),
            saturated,
            combinations: CombinationSums::of_slice(&combinations),
        };
        Self {
            result,
            estimate,
            false_repeats,
            combinations,
        }
    }
}

impl Sums {
    /// Adds a slice that had packets. Slices are added in the order of time, whatever the order in which
    /// they closed, since floating-point sums depend on it.
    fn add(&mut self, slice: &SliceSum) {
        let result = &slice.result;
        let judged = result.exact.filter(|_| result.first.is_some());
        self.combinations.add(&slice.combinations);
        self.exact = self.exact.zip(result.exact).map(|(a, b)| a + b);
        self.first = self.first.zip(result.first).map(|(a, b)| a + b);
        self.estimate = self.estimate.zip(slice.estimate).map(|(a, b)| a.plus(b));
        self.false_repeats = self
            .false_repeats
            .zip(judged)
            .map(|(sum, _)| sum + slice.false_repeats as f64);
        self.count(result);
    }

    /// Counts a slice that is reported.
    fn count(&mut self, slice: &SliceResult) {
        self.slices += 1;
        if slice.saturated {
            self.saturated_slices += 1;
        }
        let Some(best) = slice.best() else {
            return;
        };
        let distinct = best.round() as u64;
        self.least = self.least.min(distinct);
        self.most = self.most.max(distinct);
        self.histogram
            .record(distinct.min(MAX_RECORDED))
            .expect("the histogram grows as far as counts are recorded");
    }

    fn totals(self) -> Totals {
        let judged = self.exact.filter(|&n| n > 0);
        let quantile = |q| self.histogram.value_at_quantile(q).min(self.most);
        Totals {
            slices: self.slices,
            empty_slices_omitted: self.omitted,
            exact: self.exact,
            first: self.first,
            estimate: self.estimate.map(|estimate| estimate.distinct),
            std_error: self.estimate.map(Estimate::std_error),
            lower: self.estimate.map(Estimate::lower),
            upper: self.estimate.map(Estimate::upper),
            observed_fpr: self.false_repeats.zip(judged).map(|(f, n)| f / n as f64),
            saturated_slices: self.saturated_slices,
            combinations: self.combinations.results(),
            quantiles: (!self.histogram.is_empty()).then(|| Quantiles {
                min: self.least,
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                max: self.most,
            }),
            ..Totals::default()
        }
    }
}
