//! Ranks a slice from the parts of all pieces, and joins the slices.

use super::trace_order::TraceOrder;
use super::wire::WireFormat;
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::elements::ElementColumns;
use crate::guard::catch_panic;
use crate::hashing::Digester;
use crate::pipeline::{ClosedSlice, CountSummary, Cut, Edges, PlanError, SliceGrid, SliceSink};
use crate::top::{Ranker, Record, Sums, TopPlan, TopSlice, TopSummary};
use serde::{Deserialize, Serialize};

/// Elements that are ranked at a time.
const BATCH: usize = 1024;

/// Ranks slices, one after the other.
#[derive(Debug)]
pub struct SliceRanking {
    ranker: Ranker,
    digester: Digester,
    grid: SliceGrid,
    one_slice: bool,
    columns: ElementColumns,
}

/// The ranking of one slice, which [`RankingSums`] joins with the others.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RankedSlice {
    /// Number of the slice in the grid.
    pub slice: i64,
    ranked: TopSlice,
}

impl SliceRanking {
    /// Ranks the slices of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself, or the system refuses its memory.
    pub fn new(plan: &TopPlan, grid: SliceGrid) -> Result<Self, PieceError> {
        plan.check()?;
        plan.check_memory().map_err(|error| PlanError::new(error.to_string()))?;
        Ok(Self {
            ranker: Ranker::of_slices(plan, 1),
            digester: plan.outline().digester(),
            grid,
            one_slice: plan.slicing.width_ns.is_none(),
            columns: ElementColumns::default(),
        })
    }

    /// Ranks the parts of one slice, which may come in any order. Parts of pieces that do not count
    /// are ignored, as is the second copy of a part. Returns `None` if no packet is left.
    ///
    /// # Errors
    ///
    /// A part is of another slice, or its elements are invalid.
    pub fn rank(
        &mut self,
        slice: i64,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<Option<RankedSlice>, PieceError> {
        let mut elements = TraceOrder::new(slice, 0, parts, table)?;
        let Some((first_ns, last_ns)) = elements.times_ns.filter(|_| elements.packets > 0) else {
            return Ok(None);
        };
        let (start_ns, end_ns) =
            if self.one_slice { (first_ns, last_ns) } else { self.grid.bounds(slice) };
        let closed = ClosedSlice {
            index: slice,
            start_ns,
            end_ns,
            packets: elements.packets,
            elements: elements.elements,
        };
        let filled = self.fill(&mut elements);
        // Also after an error, so that the next slice begins empty.
        self.columns.clear();
        let ranked = catch_panic(|| self.ranker.close(0, closed))?;
        filled?;
        Ok(Some(RankedSlice { slice, ranked }))
    }

    /// Adds all elements in the order of the trace, and then the repeats.
    fn fill(&mut self, elements: &mut TraceOrder<'_>) -> Result<(), PieceError> {
        while let Some(bytes) = elements.next()? {
            let record = Record::parse(bytes).ok_or_else(mismatch)?;
            let columns = &mut self.columns;
            columns.digests.push(self.digester.digest(record.element));
            columns.attributes.push(self.digester.digest(record.key));
            columns.keys.push(bytes);
            if columns.len() == BATCH {
                self.flush()?;
            }
        }
        self.flush()?;
        for part in &elements.parts {
            for repeats in part.repeats()? {
                let (ranker, digest) = (&mut self.ranker, self.digester.digest(repeats.key));
                if !catch_panic(|| ranker.add_repeats(0, digest, &repeats))? {
                    return Err(mismatch());
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), PieceError> {
        if !self.columns.is_empty() {
            catch_panic(|| self.ranker.add(0, &self.columns))?;
            self.columns.clear();
        }
        Ok(())
    }
}

fn mismatch() -> PieceError {
    PieceError::mismatch("an element has no key, or is not of this plan")
}

impl WireFormat for RankedSlice {
    const LETTER: u8 = b'R';
    const NAME: &'static str = "ranking of a slice";

    fn check(&self) -> Result<(), &'static str> {
        let fits = self.ranked.index() == self.slice && self.ranked.is_consistent();
        fits.then_some(()).ok_or("its numbers contradict each other")
    }
}

/// Passes the rankings of all slices to a sink in the order of time, and adds up their totals.
pub struct RankingSums<'a> {
    plan: &'a TopPlan,
    sink: &'a mut dyn SliceSink<TopSlice>,
    sums: Sums,
    /// The latest slice, which is held back because the last of all is marked.
    held: Option<TopSlice>,
}

impl<'a> RankingSums<'a> {
    /// Joins the slices of this plan.
    pub fn new(plan: &'a TopPlan, grid: SliceGrid, sink: &'a mut dyn SliceSink<TopSlice>) -> Self {
        let edges = Edges::new(plan.slicing, &plan.trace.selection, grid);
        Self { plan, sink, sums: Sums::new(edges), held: None }
    }

    /// Adds the ranking of a slice. Slices must come in the order of time.
    ///
    /// # Errors
    ///
    /// The slice is not later than the one before, or of another plan; the sink failed.
    pub fn slice(&mut self, slice: &RankedSlice) -> Result<(), PieceError> {
        if self.held.as_ref().is_some_and(|last| last.index() >= slice.slice) {
            return Err(PieceError::mismatch("a slice came after a later one"));
        }
        let most = self.plan.most.unwrap_or(TopPlan::MOST_LISTED);
        if slice.ranked.keys.len() > most {
            return Err(PieceError::mismatch("a slice has more keys than are listed"));
        }
        let before = self.held.replace(slice.ranked.clone());
        self.emit(before, None)
    }

    fn emit(&mut self, slice: Option<TopSlice>, cut: Option<Cut>) -> Result<(), PieceError> {
        let marked = slice.map(|slice| self.sums.add(slice, cut));
        Ok(marked.map_or(Ok(()), |slice| self.sink.slice(&slice))?)
    }

    /// Adds the totals of the slices to the results of the inputs.
    ///
    /// # Errors
    ///
    /// The sink failed.
    pub fn finish(mut self, inputs: Box<CountSummary>) -> Result<TopSummary, PieceError> {
        let last = self.held.take();
        self.emit(last, Some(Cut::AtEnd))?;
        let CountSummary { inputs, mut totals, .. } = *inputs;
        totals.slices = self.sums.slices;
        Ok(self.sums.summary(&self.plan.question, inputs, totals))
    }
}

impl std::fmt::Debug for RankingSums<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RankingSums").finish_non_exhaustive()
    }
}
