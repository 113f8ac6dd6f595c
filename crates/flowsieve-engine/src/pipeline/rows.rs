//! The rows of the slices on their way to the sink, in the order of time, and their totals.
//!
//! A slice may have to be counted once more, when packets come after it was closed. So rows wait
//! until nothing can change them: until all inputs were read, or, in a live run
//! ([`Recent`]), until they are final. Rows beyond a few MiB wait in a temporary file.

use super::edges::{Cut, Edges};
use super::recent::{Journal, Recent};
use super::results::{Quantiles, SliceResult, SliceSink, Totals};
use super::shard_spec::{ClosedSlice, ShardTally, SliceCounts, SliceSum};
use super::time_slice::SliceGrid;
use super::whole::{WholeSums, WholeTally};
use crate::elements::ElementColumns;
use crate::sorted::Sorted;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
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
    /// Makes the rows that are shown while others are still to come.
    maker: RowMaker,
    waiting: Sorted<SliceSum>,
    /// Slices that can be counted on, where the inputs cannot be read again.
    recent: Option<Recent>,
    /// Rows are emitted while packets come: they say of new elements what the exact maps know.
    is_live: bool,
    /// Number of earlier readings of the inputs.
    revision: u64,
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
        let empty = SliceSum { counts: empty.counts, new: empty.new, ..SliceSum::default() };
        Self {
            sink,
            maker: RowMaker::new(grid, edges, empty, panes),
            waiting: Sorted::new(WAITING_BYTES),
            recent: None,
            is_live: false,
            revision: 0,
        }
    }

    /// Begins a second reading of the inputs: its slices replace those of the first.
    pub(super) fn again(self) -> Self {
        Self { revision: self.revision + 1, ..self }
    }

    /// Keeps what is needed to go on with slices that were closed. `is_live` says whether rows are
    /// emitted while packets come.
    pub(super) fn keep_recent(&mut self, is_live: bool) {
        self.recent = Some(Recent::new());
        self.is_live = is_live;
    }

    /// Adds a slice, with the elements that count it again if they are known.
    pub(crate) fn take(&mut self, mut sum: SliceSum, journal: Option<&Journal>) -> io::Result<()> {
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
            let last_shown = self.maker.last;
            // More packets came, or time went on.
            self.maker.make(sum, None, |index, mut row| {
                row.revised = Some(index) <= last_shown;
                self.sink.slice(&row)
            })?;
        }
        if shown { self.sink.flush() } else { Ok(()) }
    }

    /// Emits all rows that were not shown; adds the totals of all slices to those of the packets.
    /// `cut` says how the trace ended, and `whole` what the shards know of all slices together, if
    /// they do.
    pub(crate) fn finish(
        self,
        cut: Cut,
        whole: Vec<WholeTally>,
        packets: Totals,
    ) -> io::Result<Totals> {
        let Self { sink, maker, mut waiting, recent, is_live, .. } = self;
        for sum in recent.into_iter().flat_map(Recent::into_rows) {
            waiting.push(sum)?;
        }
        let (last_shown, panes) = (maker.last, maker.panes);
        let mut maker = RowMaker::new(maker.grid, maker.edges, maker.empty, panes);
        let whole = WholeSums::new(whole);
        let mut sums = Sums::new(&maker.empty, Totals { whole: whole.result(), ..packets });
        let add = |sum: SliceSum, is_last: bool| -> io::Result<()> {
            sums.counts.add(&sum.counts);
            let omitted = maker.make(&sum, is_last.then_some(cut), |index, mut row| {
                if !is_live {
                    (row.new, row.new_std_error) = whole.best(index);
                }
                sums.count(&row);
                row.revised = Some(index) <= last_shown;
                let is_shown = if index == sum.slice.index { sum.is_shown } else { row.revised };
                if is_shown { Ok(()) } else { sink.slice(&row) }
            })?;
            let all = &mut sums.totals.empty_slices_omitted;
            *all = all.saturating_add(omitted);
            Ok(())
        };
        // The last count of a slice is complete.
        waiting.drain_last(|one, other| one.slice.index == other.slice.index, add)?;
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

/// Makes rows of slices, and of the empty ones between them.
struct RowMaker {
    grid: SliceGrid,
    edges: Edges,
    /// A slice without elements.
    empty: SliceSum,
    /// Panes of a sliding window; a slice is a pane then.
    panes: Option<u16>,
    windows: Option<WindowRows>,
    /// Start of the first slice.
    first_ns: Option<i64>,
    /// Number of the last slice.
    last: Option<i64>,
}

impl RowMaker {
    fn new(grid: SliceGrid, edges: Edges, empty: SliceSum, panes: Option<u16>) -> Self {
        let windows = panes.map(|panes| WindowRows::new(panes, grid));
        Self { grid, edges, empty, panes, windows, first_ns: None, last: None }
    }

    /// Gives `emit` the row of a slice with its number, and before it those of the empty slices that
    /// precede it. Returns how many of these are left out. `cut` says how the trace ended, if it
    /// ended in the slice.
    fn make(
        &mut self,
        sum: &SliceSum,
        cut: Option<Cut>,
        mut emit: impl FnMut(i64, SliceResult) -> io::Result<()>,
    ) -> io::Result<u64> {
        let index = sum.slice.index;
        let first_ns = *self.first_ns.get_or_insert(sum.slice.start_ns);
        let edges = self.edges;
        let mut emit = |index, mut row: SliceResult, cut| {
            row.partial = edges.is_partial((row.start_ns, row.end_ns), first_ns, cut);
            emit(index, row)
        };
        let empties = self.last.map_or(Ok(0..0), |last| gap(last, index));
        let omitted = empties.as_ref().err().copied().unwrap_or(0);
        for index in empties.unwrap_or_default() {
            emit(index, self.empty_row(index), None)?;
        }
        self.last = self.last.max(Some(index));
        let mut row = sum.result();
        if let Some(windows) = &mut self.windows {
            windows.widen(index, &mut row);
        }
        emit(index, row, cut)?;
        Ok(omitted)
    }

    /// Returns the row of a slice without packets, or of the window that ends with it.
    fn empty_row(&self, index: i64) -> SliceResult {
        let before = self.panes.map_or(0, |panes| i64::from(panes) - 1);
        let start_ns = self.grid.bounds(index.saturating_sub(before)).0;
        SliceResult { start_ns, end_ns: self.grid.bounds(index).1, ..self.empty.result() }
    }
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
    /// Adds sums to the totals of the packets.
    fn new(empty: &SliceSum, packets: Totals) -> Self {
        Self {
            totals: packets,
            // Slices are added in the order of time, for any order in which they closed, since
            // floating-point sums depend on it.
            counts: empty.counts.clone(),
            least: u64::MAX,
            most: 0,
            // Grows with the counts: one for all of them from the start is 240 KiB to be cleared.
            histogram: Histogram::new(3).expect("3 significant digits are allowed"),
            lacks_counts: false,
        }
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

/// The panes of the last window. Panes come in the order of time.
pub(super) struct WindowRows {
    panes: u16,
    grid: SliceGrid,
    /// Panes with packets: their numbers, packets and elements.
    held: VecDeque<(i64, u64, u64)>,
    packets: u64,
    elements: u64,
}

impl WindowRows {
    /// Windows of `panes` panes.
    pub(super) const fn new(panes: u16, grid: SliceGrid) -> Self {
        Self { panes, grid, held: VecDeque::new(), packets: 0, elements: 0 }
    }

    /// Makes the row of pane `index` that of the window that ends with it: its counts are the
    /// window's already, and its packets become so.
    pub(super) fn widen(&mut self, index: i64, row: &mut SliceResult) {
        let first = index.saturating_sub(i64::from(self.panes) - 1);
        while let Some(&(pane, packets, elements)) = self.held.front()
            && pane < first
        {
            self.held.pop_front();
            self.packets -= packets;
            self.elements -= elements;
        }
        if row.packets > 0 {
            self.held.push_back((index, row.packets, row.elements));
            self.packets += row.packets;
            self.elements += row.elements;
        }
        (row.packets, row.elements) = (self.packets, self.elements);
        row.start_ns = self.grid.bounds(first).0;
    }
}
