//! The rows of the slices on their way to the sink, in the order of time, and their totals.
//!
//! A slice may have to be counted once more, when packets come after it was closed. So rows wait
//! until nothing can change them: until all inputs were read, or, in a live run
//! ([`Recent`]), until they are final. Rows beyond a few MiB wait in a temporary file.

use super::edges::{Cut, Edges};
use super::recent::{Journal, Recent};
use super::results::{Quantiles, SliceResult, SliceSink, Totals};
use super::shard_spec::{ShardTally, SliceCounts};
use super::slice_sum::{ClosedSlice, SliceSum};
use super::time_slice::SliceGrid;
use super::whole::{WholeSums, WholeTally};
use super::window_rows::WindowRows;
use crate::elements::ElementColumns;
use crate::sorted::Sorted;
use hdrhistogram::Histogram;
use std::io;

/// Rows that wait in memory.
const WAITING_BYTES: u64 = 8 << 20;

/// Empty slices reported in one gap; longer gaps are only counted.
const MAX_GAP_SLICES: i64 = 60;

/// Counts beyond this are recorded as this in the quantiles; no slice has as many elements.
const MAX_RECORDED: u64 = 1 << 40;

/// Collects the slices as they close, and emits their rows.
pub(crate) struct Rows<'a> {
    sink: &'a mut dyn SliceSink,
    grid: SliceGrid,
    edges: Edges,
    /// A slice without elements.
    empty: SliceSum,
    waiting: Sorted<SliceSum>,
    /// Slices that can be counted on, where the inputs cannot be read again.
    recent: Option<Recent>,
    /// Rows are emitted while packets come: they say of new elements what the exact maps know.
    is_live: bool,
    /// Start of the first slice whose row was shown.
    first_ns: Option<i64>,
    /// The last row that was shown while others were still to come.
    last_shown: Option<i64>,
    /// Number of earlier readings of the inputs.
    revision: u64,
    /// Panes of a sliding window; a slice is a pane then.
    panes: Option<u16>,
    /// The window that was shown last.
    shown: Option<WindowRows>,
}

impl<'a> Rows<'a> {
    /// `empty` is a shard's tally of a slice without elements: what is null there is null in the
    /// totals, even if there is no slice at all.
    ///
    /// `panes` is the number of panes of a sliding window: then slices are panes, and rows are
    /// windows.
    pub(crate) fn new(
        sink: &'a mut dyn SliceSink,
        empty: ShardTally,
        grid: SliceGrid,
        edges: Edges,
        panes: Option<u16>,
    ) -> Self {
        Self {
            sink,
            grid,
            edges,
            first_ns: None,
            empty: SliceSum::of(ClosedSlice::default(), std::iter::once(empty)),
            waiting: Sorted::new(WAITING_BYTES),
            recent: None,
            is_live: false,
            last_shown: None,
            revision: 0,
            panes,
            shown: panes.map(|panes| WindowRows::new(panes, grid)),
        }
    }

    /// Begins a second reading of the inputs: its slices replace those of the first.
    pub(super) fn again(self) -> Self {
        Self { revision: self.revision + 1, ..self }
    }

    /// Keeps what is needed to go on with slices that were closed. `is_live` says whether rows are
    /// emitted while packets come.
    pub(super) fn keep_recent(&mut self, is_live: bool) {
        self.recent = Some(Recent::default());
        self.is_live = is_live;
    }

    /// Adds a slice, with the elements that count it again if they are known.
    pub(super) fn take(&mut self, mut sum: SliceSum, journal: Option<&Journal>) -> io::Result<()> {
        let Some(recent) = &mut self.recent else {
            sum.revision = self.revision;
            return self.waiting.push(sum);
        };
        recent.insert(sum, journal);
        while let Some(lowest) = recent.overflow() {
            // Nothing can be added to it any more.
            self.waiting.push(lowest)?;
        }
        Ok(())
    }

    /// Takes new elements from closed slices, whose rows change.
    pub(super) fn move_new(&mut self, moved: &[(i64, u64)]) {
        if let Some(recent) = &mut self.recent {
            for &(index, elements) in moved {
                recent.lose_new(index, elements);
            }
        }
    }

    /// Returns the state of a slice when it was closed, to continue from there; `None` if it is no
    /// longer known.
    pub(super) fn recall(&mut self, index: i64) -> Option<(ClosedSlice, Vec<ElementColumns>)> {
        self.recent.as_mut()?.recall(index)
    }

    /// Emits all rows of slices that end by this time, and flushes the sink.
    pub(super) fn show(&mut self, final_ns: i64) -> io::Result<()> {
        let Some(recent) = &mut self.recent else { return Ok(()) };
        let mut shown = false;
        while let Some(sum) = recent.next_final(final_ns) {
            shown = true;
            let index = sum.slice.index;
            let mut row = sum.result();
            let first_ns = *self.first_ns.get_or_insert(row.start_ns);
            if let Some(windows) = &mut self.shown {
                windows.widen(index, &mut row);
            }
            // More packets came, or time went on.
            row.partial = self.edges.is_partial((row.start_ns, row.end_ns), first_ns, None);
            match self.last_shown {
                Some(last) if index <= last => row.revised = true,
                Some(last) => {
                    for empty in gap(last, index).unwrap_or_default() {
                        let mut row = empty_row(&self.empty, self.grid, self.panes, empty);
                        row.partial =
                            self.edges.is_partial((row.start_ns, row.end_ns), first_ns, None);
                        self.sink.slice(&row)?;
                    }
                    self.last_shown = Some(index);
                }
                None => self.last_shown = Some(index),
            }
            self.sink.slice(&row)?;
        }
        if shown { self.sink.flush() } else { Ok(()) }
    }

    /// Emits all rows that were not shown; returns the totals of all slices. `cut` says how the
    /// trace ended, and `whole` what the shards know of all slices together, if they do.
    pub(crate) fn finish(self, cut: Cut, whole: Vec<WholeTally>) -> io::Result<Totals> {
        let Self {
            sink, grid, edges, empty, mut waiting, recent, is_live, last_shown, panes, ..
        } = self;
        let mut windows = panes.map(|panes| WindowRows::new(panes, grid));
        for sum in recent.into_iter().flat_map(Recent::into_rows) {
            waiting.push(sum)?;
        }
        let mut sums = Sums::new(&empty);
        let whole = WholeSums::new(whole);
        sums.totals.whole = whole.result();
        let new = |index: i64, row: &mut SliceResult| {
            if !is_live {
                (row.new, row.new_std_error) = whole.new_elements(Some(index)).best();
            }
        };
        let (mut last, mut first_ns) = (None, None);
        let mut add = |sum: SliceSum, cut: Option<Cut>| -> io::Result<()> {
            let index = sum.slice.index;
            let first_ns = *first_ns.get_or_insert(sum.slice.start_ns);
            let empties = last.map_or(Ok(0..0), |last| gap(last, index));
            let omitted = &mut sums.totals.empty_slices_omitted;
            *omitted = omitted.saturating_add(*empties.as_ref().err().unwrap_or(&0));
            for index in empties.unwrap_or_default() {
                let mut row = empty_row(&empty, grid, panes, index);
                row.partial = edges.is_partial((row.start_ns, row.end_ns), first_ns, None);
                new(index, &mut row);
                sums.count(&row);
                if last_shown.is_none_or(|last| last < index) {
                    sink.slice(&row)?;
                }
            }
            last = Some(index);
            let mut row = sum.result();
            if let Some(windows) = &mut windows {
                windows.widen(index, &mut row);
            }
            row.partial = edges.is_partial((row.start_ns, row.end_ns), first_ns, cut);
            row.revised = last_shown.is_some_and(|last| index <= last);
            new(index, &mut row);
            sums.add(&sum, &row);
            if sum.is_shown { Ok(()) } else { sink.slice(&row) }
        };
        // The last count of a slice is complete.
        waiting.drain_last(
            |one, other| one.slice.index == other.slice.index,
            |sum, is_last| add(sum, is_last.then_some(cut)),
        )?;
        let totals = sums.totals();
        Ok(if panes.is_some() { without_sums(totals) } else { totals })
    }
}

/// Returns the totals of windows, which overlap, so that sums over them say nothing.
fn without_sums(totals: Totals) -> Totals {
    Totals { exact: None, estimate: None, std_error: None, lower: None, upper: None, ..totals }
}

/// Returns the empty slices between two others, or their number if they are too many to be listed.
fn gap(last: i64, next: i64) -> Result<std::ops::Range<i64>, u64> {
    let between = i128::from(next) - i128::from(last) - 1;
    if between > i128::from(MAX_GAP_SLICES) {
        return Err(u64::try_from(between).unwrap_or(u64::MAX));
    }
    Ok(last.saturating_add(1)..next)
}

/// Returns the row of a slice without packets, or of the window that ends with it.
fn empty_row(empty: &SliceSum, grid: SliceGrid, panes: Option<u16>, index: i64) -> SliceResult {
    let first = panes.map_or(index, |panes| index.saturating_sub(i64::from(panes) - 1));
    SliceResult { start_ns: grid.bounds(first).0, end_ns: grid.bounds(index).1, ..empty.result() }
}

struct Sums {
    /// Totals, without those that are computed from the other fields.
    totals: Totals,
    counts: SliceCounts,
    /// The least and the most distinct elements of a slice: the histogram rounds them.
    least: u64,
    most: u64,
    histogram: Histogram<u64>,
    /// A slice had no count.
    lacks_counts: bool,
}

impl Sums {
    fn new(empty: &SliceSum) -> Self {
        Self {
            totals: Totals::default(),
            counts: empty.counts.clone(),
            least: u64::MAX,
            most: 0,
            // Grows with the counts: one for all of them from the start is 240 KiB to be cleared.
            histogram: Histogram::new(3).expect("3 significant digits are allowed"),
            lacks_counts: false,
        }
    }

    /// Adds a slice that had packets. Slices are added in the order of time, for any order in which
    /// they closed, since floating-point sums depend on it.
    fn add(&mut self, slice: &SliceSum, row: &SliceResult) {
        self.counts.add(&slice.counts);
        self.count(row);
    }

    /// Counts a slice that is reported.
    fn count(&mut self, slice: &SliceResult) {
        let totals = &mut self.totals;
        totals.slices += 1;
        totals.saturated_slices += u64::from(slice.saturated);
        totals.bounds_checked += u64::from(slice.bounds_hold().is_some());
        totals.bounds_held += u64::from(slice.bounds_hold() == Some(true));
        let Some(best) = slice.best() else {
            self.lacks_counts = true;
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
        let sums = self.counts.row();
        let quantile = |q| self.histogram.value_at_quantile(q).min(self.most);
        Totals {
            exact: sums.exact,
            first: sums.first,
            estimate: sums.estimate,
            std_error: sums.std_error,
            lower: sums.lower,
            upper: sums.upper,
            observed_fpr: sums.observed_fpr,
            combinations: sums.combinations,
            quantiles: (!self.histogram.is_empty() && !self.lacks_counts).then(|| Quantiles {
                min: self.least,
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                max: self.most,
            }),
            ..self.totals
        }
    }
}
