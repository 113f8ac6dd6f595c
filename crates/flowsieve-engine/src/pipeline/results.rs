//! The result of a run, as plain data, and the sink that takes it.

use crate::decode::Skip;
use crate::filters::saved::SavedFilter;
use crate::filters::{CombinationCount, Estimate};
use crate::inputs::InputResult;
use std::collections::BTreeMap;
use std::io;

/// The answer for one time slice.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its row")]
pub struct SliceResult {
    /// First nanosecond of the slice since the epoch (of the first packet, if there is one slice).
    pub start_ns: i64,
    /// First nanosecond behind it (time of the last packet, if there is one slice).
    pub end_ns: i64,
    /// Packets.
    pub packets: u64,
    /// Elements seen, repeats included.
    pub elements: u64,
    /// Distinct elements by the exact set; `None` if it is off or passed its limit.
    pub exact: Option<u64>,
    /// The exact set was on and passed its limit.
    pub exact_over_limit: bool,
    /// Elements that the filter called new: a lower bound; `None` without a filter.
    pub first: Option<u64>,
    /// Unbiased estimate of the distinct elements, where the structure has one.
    pub estimate: Option<f64>,
    /// Standard error of the estimate.
    pub std_error: Option<f64>,
    /// Lower bound of the distinct elements: with the upper one it holds in 95 of 100 cases or
    /// more.
    pub lower: Option<u64>,
    /// Upper bound; `None` if the filter is too full, or without an estimate.
    pub upper: Option<u64>,
    /// Share of the new elements that the filter called repeats; `None` without exact set or filter.
    pub observed_fpr: Option<f64>,
    /// A shard's filter was so full that it noticed too few new elements for a count: `first` is far
    /// below the distinct elements, and there is no upper bound.
    pub saturated: bool,
    /// Counts of the combinations that the plan names, in its order.
    pub combinations: Vec<CombinationResult>,
    /// Distinct elements that are in no earlier slice: exact as long as the exact set of all slices
    /// is, else an estimate. `None` if there is one slice or windows slide, and in a row that was
    /// emitted before all packets came, if it is not exact.
    pub new: Option<u64>,
    /// Standard error of an estimate of them.
    pub new_std_error: Option<f64>,
    /// A row of this slice was emitted before, and packets came for it afterwards: this row
    /// replaces it.
    pub revised: bool,
    /// The trace covers the slice only in part, or is not known to cover all of it: it is the first
    /// or the last one.
    pub partial: bool,
}

/// Distinct values of some of the attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CombinationResult {
    /// The attributes, bit i for attribute i.
    pub mask: u32,
    /// Values that the filter called new: a lower bound; `None` if the structure does not store
    /// the combination.
    pub first: Option<u64>,
    /// Unbiased estimate, where the structure has one.
    pub estimate: Option<f64>,
    /// Standard error of the estimate.
    pub std_error: Option<f64>,
    /// Lower bound of the distinct values: with the upper one it holds in 95 of 100 cases or more.
    pub lower: Option<u64>,
    /// Upper bound.
    pub upper: Option<u64>,
    /// Distinct values by the exact set; `None` if it is off or passed its limit.
    pub exact: Option<u64>,
}

impl CombinationResult {
    /// Combines what a filter counted with the exact set.
    #[doc(hidden)]
    pub fn new(count: &CombinationCount, exact: Option<u64>) -> Self {
        Self {
            mask: count.mask,
            first: count.first,
            estimate: count.distinct.and_then(Estimate::point),
            std_error: count.distinct.and_then(Estimate::point_error),
            lower: count.distinct.map(Estimate::lower),
            upper: count.distinct.and_then(Estimate::upper),
            exact,
        }
    }
}

/// The distinct elements of all slices together: an element in two slices counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WholeResult {
    /// By the exact set; `None` if it is off or passed its limit.
    pub exact: Option<u64>,
    /// Unbiased estimate by a sample, if there is a counter.
    pub estimate: Option<f64>,
    /// Standard error of the estimate.
    pub std_error: Option<f64>,
    /// Lower bound: with the upper one it holds in 95 of 100 cases or more.
    pub lower: Option<u64>,
    /// Upper bound.
    pub upper: Option<u64>,
}

impl SliceResult {
    /// Whether the bounds enclose the exact count; `None` if one of them is not there, or if there
    /// were no elements.
    #[doc(hidden)]
    pub fn bounds_hold(&self) -> Option<bool> {
        let exact = self.exact.filter(|_| self.elements > 0)?;
        Some((self.lower?..=self.upper?).contains(&exact))
    }

    /// (estimate - exact) / exact, where both are there and exact is not 0.
    pub fn rel_error(&self) -> Option<f64> {
        match (self.estimate, self.exact) {
            (Some(estimate), Some(exact)) if exact > 0 => {
                Some((estimate - exact as f64) / exact as f64)
            }
            _ => None,
        }
    }

    /// The best count there is: exact, else the estimate, else the raw count; `None` if that is of a
    /// full filter, or the exact set was alone and passed its limit.
    pub fn best(&self) -> Option<f64> {
        let first = self.first.filter(|_| !self.saturated);
        self.exact.map(|n| n as f64).or(self.estimate).or(first.map(|n| n as f64))
    }
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Packets read (records of a DNS log).
    pub packets: u64,
    /// Packets with a readable IP header.
    pub ip_packets: u64,
    /// Elements seen, repeats included.
    pub elements: u64,
    /// Packets without an element, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Packets that came when the row of their slice had been emitted. They are counted, and the
    /// row was revised.
    pub late: u64,
    /// Packets that are in no slice: they came when it was not known any more what their slice had
    /// seen, or the run was ended before they could be counted. There are none in captures that are
    /// files and were read to their end.
    pub uncounted: u64,
    /// The run was ended before the inputs were, by [`Watch::stop`](crate::pipeline::Watch::stop).
    pub interrupted: bool,
    /// All inputs were read to their ends.
    pub complete: bool,
    /// Slices reported.
    pub slices: u64,
    /// Empty slices in long gaps, which are not reported.
    pub empty_slices_omitted: u64,
    /// The distinct elements of all slices together, if there may be several.
    pub whole: Option<WholeResult>,
    /// Sums over the slices; `None` if a slice has no count.
    pub exact: Option<u64>,
    /// Sum of the raw counts.
    pub first: Option<u64>,
    /// Sum of the estimates.
    pub estimate: Option<f64>,
    /// Standard error of that sum.
    pub std_error: Option<f64>,
    /// Lower bound of that sum.
    pub lower: Option<u64>,
    /// Upper bound of it.
    pub upper: Option<u64>,
    /// The same sums of the combinations.
    pub combinations: Vec<CombinationResult>,
    /// Share of new elements called repeats over all slices.
    pub observed_fpr: Option<f64>,
    /// Slices that are [saturated](SliceResult::saturated).
    pub saturated_slices: u64,
    /// Slices with elements that have bounds and an exact count.
    pub bounds_checked: u64,
    /// Slices whose bounds enclose the exact count.
    pub bounds_held: u64,
    /// Distinct elements of a slice at these quantiles; `None` unless every slice has a count.
    pub quantiles: Option<Quantiles>,
}

/// Quantiles of the distinct elements of a slice, over the slices reported that have a count; least
/// and most are exact, the others rounded up to three significant digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quantiles {
    /// Least.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90 of 100 slices have at most this many.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// Most.
    pub max: u64,
}

/// Everything but the slices, which went to the sink.
#[derive(Debug)]
pub struct CountSummary {
    /// One entry an input, in the order in which they were given.
    pub inputs: Vec<InputResult>,
    /// Counts over the run.
    pub totals: Totals,
    /// The filter of the only slice, if it was asked for.
    pub filter: Option<SavedFilter>,
}

/// Takes the slices in order: of a count, or of a ranking.
pub trait SliceSink<S = SliceResult> {
    /// Takes the next slice.
    ///
    /// # Errors
    ///
    /// The results could not be written; the run ends.
    fn slice(&mut self, slice: &S) -> io::Result<()>;

    /// Hands on what it has gathered: no slice may come for a while.
    ///
    /// # Errors
    ///
    /// The results could not be written; the run ends.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the slices.
impl<S: Clone> SliceSink<S> for Vec<S> {
    fn slice(&mut self, slice: &S) -> io::Result<()> {
        self.push(slice.clone());
        Ok(())
    }
}

/// A sink, and perhaps another that takes each slice before it does.
impl<S, A: SliceSink<S>, B: SliceSink<S>> SliceSink<S> for (A, Option<B>) {
    fn slice(&mut self, slice: &S) -> io::Result<()> {
        if let Some(other) = &mut self.1 {
            other.slice(slice)?;
        }
        self.0.slice(slice)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
