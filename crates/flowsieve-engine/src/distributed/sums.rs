//! Adds the tallies of shards up to rows of slices, and to totals.

use super::{PieceError, ShardTally, WholeTally};
use crate::pipeline::{
    ClosedSlice, CountPlan, CountSummary, Cut, Edges, InputResult, Rows, ShardSpec, SliceCounts,
    SliceGrid, SliceSink, SliceSum, Totals, WholeTally as WholeCounts,
};

/// Adds tallies up to slices, which go to a sink in the order of time.
pub struct SliceSums<'a> {
    rows: Rows<'a>,
    spec: ShardSpec,
    grid: SliceGrid,
    one_slice: bool,
    /// Elements in the tallies, repeats included.
    elements: u64,
    last: Option<i64>,
    /// Shards with elements.
    occupied: Vec<bool>,
    /// Counts of all slices together, by shard.
    wholes: Vec<Option<WholeCounts>>,
}

impl<'a> SliceSums<'a> {
    /// Adds up the tallies of this plan.
    pub fn new(plan: &CountPlan, grid: SliceGrid, sink: &'a mut dyn SliceSink) -> Self {
        let spec = ShardSpec::new(plan, 1, false);
        let edges = Edges::new(plan.slicing, &plan.trace.selection, grid);
        Self {
            rows: Rows::new(sink, spec.empty_tally(), grid, edges, None),
            spec,
            grid,
            one_slice: plan.slicing.width_ns.is_none(),
            elements: 0,
            last: None,
            occupied: vec![false; plan.shards as usize],
            wholes: match plan.whole() {
                Some(_) => vec![None; plan.shards as usize],
                None => Vec::new(),
            },
        }
    }

    /// Adds what is known of all slices of a shard. A shard without elements may have none.
    ///
    /// # Errors
    ///
    /// The shard had one before, or the plan has only one slice.
    pub fn whole(&mut self, tally: WholeTally) -> Result<(), PieceError> {
        match self.wholes.get_mut(tally.shard as usize) {
            Some(whole @ None) => {
                *whole = Some(tally.counts);
                Ok(())
            }
            _ => Err(PieceError::mismatch(
                "a tally of all slices came twice, or is not of this plan",
            )),
        }
    }

    /// Adds all tallies of a slice, in any order. Slices must come in the order of time; those
    /// without packets may be missing, as may the tally of a shard without elements.
    ///
    /// # Errors
    ///
    /// The tallies are of several slices or another plan, or a shard has two; the slice is not later
    /// than the one before; the sink failed.
    pub fn slice(
        &mut self,
        tallies: impl IntoIterator<Item = ShardTally>,
    ) -> Result<(), PieceError> {
        let mut shards: Vec<Option<SliceCounts>> = self.occupied.iter().map(|_| None).collect();
        let mut sum: Option<ClosedSlice> = None;
        for tally in tallies {
            let sum = sum.get_or_insert(ClosedSlice {
                index: tally.slice,
                start_ns: i64::MAX,
                end_ns: i64::MIN,
                ..ClosedSlice::default()
            });
            let is_of_slice = sum.index == tally.slice;
            PieceError::unless(is_of_slice, "tallies of several slices came together")?;
            self.elements = self.elements.saturating_add(tally.elements);
            sum.packets = sum.packets.saturating_add(tally.packets);
            sum.elements = sum.elements.saturating_add(tally.elements);
            if let Some((first, last)) = tally.times_ns {
                (sum.start_ns, sum.end_ns) = (sum.start_ns.min(first), sum.end_ns.max(last));
            }
            match shards.get_mut(tally.shard as usize) {
                Some(shard @ None) if self.is_ours(&tally.counts) => {
                    *shard = Some(tally.counts);
                    self.occupied[tally.shard as usize] |= tally.elements > 0;
                }
                _ => {
                    return Err(PieceError::mismatch("a tally came twice, or is not of this plan"));
                }
            }
        }
        match sum {
            Some(slice) if slice.packets > 0 => self.close(slice, shards),
            _ => Ok(()),
        }
    }

    /// Returns whether the tally of a shard has the numbers that this plan asks for.
    fn is_ours(&self, counts: &SliceCounts) -> bool {
        let empty = self.spec.empty_tally().counts;
        let masks = |counts: &SliceCounts| -> Vec<u32> {
            counts.combinations.iter().map(|tally| tally.count.mask).collect()
        };
        counts.first.is_some() == empty.first.is_some()
            && (counts.exact.is_some() || counts.exact_over_limit) == empty.exact.is_some()
            && (empty.estimate.is_some() || counts.estimate.is_none())
            && masks(counts) == masks(&empty)
    }

    fn close(
        &mut self,
        mut slice: ClosedSlice,
        shards: Vec<Option<SliceCounts>>,
    ) -> Result<(), PieceError> {
        let is_later = self.last.is_none_or(|last| last < slice.index);
        PieceError::unless(is_later, "a slice came after a later one")?;
        self.last = Some(slice.index);
        if !self.one_slice {
            (slice.start_ns, slice.end_ns) = self.grid.bounds(slice.index);
        }
        let empty = || self.spec.empty_tally().counts;
        let counts = shards.into_iter().map(|counts| (counts.unwrap_or_else(empty), None));
        Ok(self.rows.take(SliceSum::of(slice, counts), None)?)
    }

    /// Adds the totals of the slices to the results of the inputs.
    ///
    /// # Errors
    ///
    /// The sink failed, or elements are missing.
    pub fn finish(self, mut inputs: Box<CountSummary>) -> Result<CountSummary, PieceError> {
        PieceError::unless_all(self.elements, inputs.totals.elements)?;
        let mut wholes = self.wholes.iter().zip(&self.occupied);
        let have_tallies = wholes.all(|(whole, &has_elements)| whole.is_some() || !has_elements);
        PieceError::unless(have_tallies, "a shard has no tally of all slices")?;
        let spec = self.spec.whole;
        let whole = self.wholes.into_iter();
        let whole = whole.map(|whole| whole.unwrap_or_else(|| WholeCounts::empty(spec)));
        let complete = InputResult::all_read(&inputs.inputs, false);
        let packets = Totals { complete, ..std::mem::take(&mut inputs.totals) };
        let totals = self.rows.finish(Cut::AtEnd, whole.collect(), packets)?;
        Ok(CountSummary { totals, ..*inputs })
    }
}

impl std::fmt::Debug for SliceSums<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SliceSums").finish_non_exhaustive()
    }
}
