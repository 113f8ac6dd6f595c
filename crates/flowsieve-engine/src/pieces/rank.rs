//! Ranks a slice from the parts that all pieces have of it, and puts the slices together.

use super::bytes::{Exchanged, Reader, Writer};
use super::merge::Merged;
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::elements::ElementColumns;
use crate::guard::guarded;
use crate::hashing::Digester;
use crate::pipeline::{ClosedSlice, CountSummary, Cut, Edges, SliceGrid};
use crate::top::{Ranker, Record, Sums, TopPlan, TopSink, TopSlice, TopSummary};

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

/// The ranking of one slice, to be sent to whoever puts them together.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedSlice {
    /// Number of the slice in the grid.
    pub slice: i64,
    ranked: TopSlice,
}

impl SliceRanking {
    /// For the slices of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself, or the system does not give its memory.
    pub fn new(plan: &TopPlan, grid: SliceGrid) -> Result<Self, PieceError> {
        plan.check()?;
        plan.check_memory()?;
        Ok(Self {
            ranker: Ranker::of_slices(plan, 1),
            digester: plan.outline().digester(),
            grid,
            one_slice: plan.slicing.width_ns.is_none(),
            columns: ElementColumns::default(),
        })
    }

    /// Ranks the parts of one slice, which may come in any order. Parts of pieces that do not count
    /// are passed over, as is a part that came twice. None if no packet is left.
    ///
    /// # Errors
    ///
    /// A part is of another slice, or its elements are none.
    pub fn rank(
        &mut self,
        slice: i64,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<Option<RankedSlice>, PieceError> {
        let mut merged = Merged::of(slice, 0, parts, table)?;
        let Some((first_ns, last_ns)) = merged.times_ns.filter(|_| merged.packets > 0) else {
            return Ok(None);
        };
        let (start_ns, end_ns) =
            if self.one_slice { (first_ns, last_ns) } else { self.grid.bounds(slice) };
        let closed = ClosedSlice {
            index: slice,
            start_ns,
            end_ns,
            packets: merged.packets,
            elements: merged.elements,
        };
        let filled = self.fill(&mut merged);
        // Also after a mistake, so that the next slice begins with nothing.
        self.columns.clear();
        let ranked = guarded(|| self.ranker.close(0, closed))?;
        filled?;
        Ok(Some(RankedSlice { slice, ranked }))
    }

    /// Takes all elements in the order of the trace, and then what there was besides them.
    fn fill(&mut self, merged: &mut Merged<'_>) -> Result<(), PieceError> {
        while let Some(bytes) = merged.next()? {
            let record = Record::parse(bytes).ok_or_else(mismatch)?;
            let columns = &mut self.columns;
            columns.digests.push(self.digester.digest(record.element));
            columns.attributes.push(self.digester.digest(record.key));
            columns.keys.push(bytes);
            if columns.len() == BATCH {
                self.hand_over()?;
            }
        }
        self.hand_over()?;
        for part in &merged.parts {
            for repeats in part.repeats()? {
                let (ranker, digest) = (&mut self.ranker, self.digester.digest(repeats.key));
                if !guarded(|| ranker.add_repeats(0, digest, &repeats))? {
                    return Err(mismatch());
                }
            }
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), PieceError> {
        if !self.columns.is_empty() {
            guarded(|| self.ranker.add(0, &self.columns))?;
            self.columns.clear();
        }
        Ok(())
    }
}

fn mismatch() -> PieceError {
    PieceError::Mismatch("an element has no key, or is not of this plan".to_owned())
}

const RANKED_SLICE: u8 = b'R';

impl Exchanged for RankedSlice {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(RANKED_SLICE);
        out.signed(self.slice);
        self.ranked.write(&mut out.0);
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, RANKED_SLICE, "ranking of a slice")?;
        let slice = from.signed()?;
        let ranked = TopSlice::read(from.rest);
        let ranked = ranked.filter(|ranked| ranked.index() == slice);
        let ranked = ranked.ok_or_else(|| from.wrong("its numbers contradict each other"))?;
        Ok(Self { slice, ranked })
    }
}

/// Hands the rankings of all slices to a sink in the order of time, and adds up what is known over
/// all of them.
pub struct RankingSums<'a> {
    plan: &'a TopPlan,
    sink: &'a mut dyn TopSink,
    sums: Sums,
    /// The last one that came, since the last of all is marked.
    held: Option<TopSlice>,
}

impl<'a> RankingSums<'a> {
    /// For a ranking of this plan.
    pub fn new(plan: &'a TopPlan, grid: SliceGrid, sink: &'a mut dyn TopSink) -> Self {
        let edges = Edges::new(plan.slicing, &plan.trace.selection, grid);
        Self { plan, sink, sums: Sums::new(edges), held: None }
    }

    /// Takes the ranking of a slice. Slices come in the order of time.
    ///
    /// # Errors
    ///
    /// The slice is not behind the one before, or not of this plan; the sink failed.
    pub fn slice(&mut self, slice: &RankedSlice) -> Result<(), PieceError> {
        if self.held.as_ref().is_some_and(|last| last.index() >= slice.slice) {
            return Err(PieceError::Mismatch("a slice came after a later one".to_owned()));
        }
        let most = self.plan.most.unwrap_or(TopPlan::MOST_LISTED);
        if slice.ranked.keys.len() > most {
            return Err(PieceError::Mismatch("a slice has more keys than are listed".to_owned()));
        }
        let before = self.held.replace(slice.ranked.clone());
        self.hand_on(before, None)
    }

    fn hand_on(&mut self, slice: Option<TopSlice>, cut: Option<Cut>) -> Result<(), PieceError> {
        let marked = slice.map(|slice| self.sums.add(slice, cut));
        Ok(marked.map_or(Ok(()), |slice| self.sink.slice(&slice))?)
    }

    /// Adds what is known over all slices to what became of the inputs.
    ///
    /// # Errors
    ///
    /// The sink failed.
    pub fn finish(mut self, inputs: Box<CountSummary>) -> Result<TopSummary, PieceError> {
        let last = self.held.take();
        self.hand_on(last, Some(Cut::AtEnd))?;
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
