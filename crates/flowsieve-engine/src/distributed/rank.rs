//! Ranks a slice from the parts of all pieces, and joins the slices.
//!
//! Filter and summary see all elements in the order of the trace, so one process has to take them.
//! The exact sets know no order. If there is one slice, which may be large, they are divided among
//! shards by key, and shard 0 has filter and summary alone.

use super::trace_order::TraceOrder;
use super::wire::WireFormat;
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::elements::ElementColumns;
use crate::guard::catch_panic;
use crate::hashing::{Digester, shard_of};
use crate::pipeline::{ClosedSlice, CountSummary, Cut, Edges, PlanError, SliceGrid, SliceSink};
use crate::top::{
    ExactAnswer, RankBy, Ranker, Record, Repeats, Spread, Sums, TopPlan, TopSlice, TopSummary,
    Truth, order_of_keys,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Elements that are ranked at a time.
const BATCH: usize = 1024;

/// Ranks slices, one after the other.
#[derive(Debug)]
pub struct SliceRanking {
    plan: TopPlan,
    shards: Option<u32>,
    ranker: Ranker,
    /// The exact sets of a shard, if there are several.
    truth: Option<Truth>,
    digester: Digester,
    grid: SliceGrid,
    columns: ElementColumns,
}

/// The ranking of one slice or of a shard of it, which [`RankingSums`] joins with the others.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RankedSlice {
    /// Number of the slice in the grid.
    pub slice: i64,
    ranked: Ranked,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum Ranked {
    /// The slice as a whole.
    Slice(TopSlice),
    /// The answer of filter and summary, and all keys that they hold.
    Held(TopSlice, Vec<Spread>),
    /// The exact answer for the keys of a shard.
    Exact(ExactShard),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct ExactShard {
    shard: u32,
    /// Elements, repeats included.
    elements: u64,
    /// `None` if the limit was passed.
    answer: Option<ExactAnswer>,
    /// If the answer may lack keys: all with as many distinct others as its last one.
    equal: Vec<Vec<u8>>,
    /// Bytes of the set and of the keys.
    memory_bytes: (u64, u64),
}

impl SliceRanking {
    /// Ranks the slices of this plan, in the shards of [`super::Outline::in_shards`].
    ///
    /// # Errors
    ///
    /// The plan contradicts itself, or the system refuses its memory.
    pub fn new(plan: &TopPlan, grid: SliceGrid, shards: Option<u32>) -> Result<Self, PieceError> {
        plan.check()?;
        plan.check_memory().map_err(|error| PlanError::new(error.to_string()))?;
        let outline = plan.outline();
        // The exact sets are elsewhere.
        let exact_limit_bytes = plan.exact_limit_bytes.filter(|_| outline.shards == 1);
        Ok(Self {
            plan: plan.clone(),
            shards,
            ranker: Ranker::of_slices(&TopPlan { exact_limit_bytes, ..plan.clone() }, 1),
            truth: plan.exact_limit().filter(|_| outline.shards > 1).map(Truth::new),
            digester: outline.digester(),
            grid,
            columns: ElementColumns::default(),
        })
    }

    /// Ranks the parts of one shard of one slice, which may come in any order. Parts of pieces that
    /// do not count are ignored, as is the second copy of a part. Returns `None` if no part counts
    /// or the slice has no packet.
    ///
    /// # Errors
    ///
    /// A part is of another slice or shard, or its elements are invalid.
    pub fn rank(
        &mut self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
    ) -> Result<Option<RankedSlice>, PieceError> {
        let mut elements = TraceOrder::new(slice, shard, parts, table)?;
        if shard > 0 && !elements.parts.is_empty() {
            let ranked = self.exact(shard, &mut elements)?;
            return Ok(Some(RankedSlice { slice, ranked: Ranked::Exact(ranked) }));
        }
        let Some((first_ns, last_ns)) = elements.times_ns.filter(|_| elements.packets > 0) else {
            return Ok(None);
        };
        let one_slice = self.plan.slicing.width_ns.is_none();
        let (start_ns, end_ns) =
            if one_slice { (first_ns, last_ns) } else { self.grid.bounds(slice) };
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
        let held = self.truth.is_some().then(|| self.ranker.held(0));
        let ranked = catch_panic(|| self.ranker.close(0, closed))?;
        filled?;
        check_limit(&self.plan, &ranked)?;
        let ranked = match held {
            Some(held) => Ranked::Held(ranked, held),
            None => Ranked::Slice(ranked),
        };
        Ok(Some(RankedSlice { slice, ranked }))
    }

    /// Counts the keys of a shard.
    fn exact(
        &mut self,
        shard: u32,
        elements: &mut TraceOrder<'_>,
    ) -> Result<ExactShard, PieceError> {
        let shards = self.plan.outline().in_shards(self.shards).shards;
        let truth = self.truth.as_mut().ok_or_else(mismatch)?;
        // Allocate a new one: the reported memory must be that of this shard alone.
        *truth = Truth::new(self.plan.exact_limit().ok_or_else(mismatch)?);
        let is_here =
            |key| 1 + shard_of(self.digester.digest(key), (shards - 1).into()) as u32 == shard;
        while let Some(bytes) = elements.next()? {
            let record = Record::parse(bytes).filter(|record| is_here(record.key));
            let record = record.ok_or_else(mismatch)?;
            catch_panic(|| truth.add(&record))?;
        }
        add_repeats(elements, |repeats| truth.add_repeats(repeats))?;
        let TopPlan { rank_by, least, .. } = self.plan;
        let most = self.plan.most_listed();
        let answer = catch_panic(|| truth.answer(rank_by, least, most))?;
        let full = answer.as_ref().filter(|answer| answer.largest.len() == most);
        let last = full.and_then(|answer| answer.largest.last());
        let equal = last.filter(|_| rank_by == RankBy::Distinct);
        let equal = equal.map_or_else(Vec::new, |(_, exact)| truth.keys_with(exact.distinct));
        let elements = elements.elements;
        Ok(ExactShard { shard, elements, answer, equal, memory_bytes: truth.memory_bytes() })
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
        let Self { ranker, digester, .. } = self;
        add_repeats(elements, |repeats| {
            ranker.add_repeats(0, digester.digest(repeats.key), repeats)
        })
    }

    fn flush(&mut self) -> Result<(), PieceError> {
        if !self.columns.is_empty() {
            catch_panic(|| self.ranker.add(0, &self.columns))?;
            self.columns.clear();
        }
        Ok(())
    }
}

/// Fails if the exact sets passed their limit: without them, pieces cannot rank by packets or bytes.
fn check_limit(plan: &TopPlan, slice: &TopSlice) -> Result<(), PieceError> {
    if plan.rank_by == RankBy::Distinct || !slice.exact_over_limit {
        return Ok(());
    }
    Err(PlanError::new(format!(
        "the exact set passed its limit, and pieces cannot rank by {} without it; raise it with --exact-limit, or hand on every packet with --no-exact",
        plan.rank_by.name()
    ))
    .into())
}

/// Adds the repeats of all parts; `add` says whether their key came before.
fn add_repeats(
    elements: &TraceOrder<'_>,
    mut add: impl FnMut(&Repeats<'_>) -> bool,
) -> Result<(), PieceError> {
    for part in &elements.parts {
        for repeats in part.repeats()? {
            if !catch_panic(|| add(&repeats))? {
                return Err(mismatch());
            }
        }
    }
    Ok(())
}

fn mismatch() -> PieceError {
    PieceError::mismatch("an element has no key, or is not of this plan")
}

impl WireFormat for RankedSlice {
    const LETTER: u8 = b'R';
    const NAME: &'static str = "ranking of a slice";

    fn check(&self) -> Result<(), &'static str> {
        let fits = match &self.ranked {
            Ranked::Slice(ranked) => ranked.index() == self.slice && ranked.is_consistent(),
            Ranked::Held(ranked, held) => {
                ranked.index() == self.slice
                    && ranked.is_consistent()
                    && ranked.held == held.len() as u64
                    && held.iter().all(Spread::is_consistent)
            }
            Ranked::Exact(exact) => exact.answer.iter().all(|answer| {
                answer.largest.len() as u64 <= answer.keys
                    && answer.largest.iter().all(|(_, exact)| exact.distinct <= answer.distinct)
            }),
        };
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
    /// Elements of the slices, repeats included.
    elements: u64,
    /// If there are shards: what the summary holds, and the exact answers.
    summary: Vec<Spread>,
    exact: BTreeMap<u32, ExactShard>,
}

impl<'a> RankingSums<'a> {
    /// Joins the slices of this plan.
    pub fn new(plan: &'a TopPlan, grid: SliceGrid, sink: &'a mut dyn SliceSink<TopSlice>) -> Self {
        let edges = Edges::new(plan.slicing, &plan.trace.selection, grid);
        Self {
            plan,
            sink,
            sums: Sums::new(edges),
            held: None,
            elements: 0,
            summary: Vec::new(),
            exact: BTreeMap::new(),
        }
    }

    /// Adds the ranking of a slice. Slices must come in the order of time, the shards of a slice in
    /// any order.
    ///
    /// # Errors
    ///
    /// The slice is not later than the one before, a shard came before, or they are of another
    /// plan; the sink failed.
    pub fn slice(&mut self, slice: RankedSlice) -> Result<(), PieceError> {
        let has_shards = self.plan.outline().shards > 1;
        let ranked = match slice.ranked {
            Ranked::Slice(ranked) if !has_shards => ranked,
            Ranked::Held(ranked, held) if has_shards => {
                self.summary = held;
                ranked
            }
            Ranked::Exact(exact) if has_shards => {
                let before = self.exact.insert(exact.shard, exact);
                return PieceError::unless(before.is_none(), "a shard came twice");
            }
            _ => return Err(PieceError::mismatch("a ranking is of another plan")),
        };
        let is_later = self.held.as_ref().is_none_or(|last| last.index() < slice.slice);
        PieceError::unless(is_later, "a slice came after a later one")?;
        let are_listed = ranked.keys.len() <= self.plan.most_listed();
        PieceError::unless(are_listed, "a slice has more keys than are listed")?;
        self.elements = self.elements.saturating_add(ranked.elements);
        let before = self.held.replace(ranked);
        self.emit(before, None)
    }

    /// Adds the exact answers of all shards to their slice.
    fn with_exact(&self, mut slice: TopSlice) -> Result<TopSlice, PieceError> {
        let Some(limit_bytes) = self.plan.exact_limit() else { return Ok(slice) };
        let mut all = ExactAnswer { distinct: 0, keys: 0, largest: Vec::new() };
        let mut memory_bytes = (0_u64, 0_u64);
        let mut distinct: HashMap<&[u8], u64> = HashMap::new();
        slice.exact_over_limit = self.exact.values().any(|exact| exact.answer.is_none());
        for ExactShard { answer, equal, memory_bytes: (set, keys), .. } in self.exact.values() {
            let Some(answer) = answer else { continue };
            memory_bytes.0 = memory_bytes.0.saturating_add(*set);
            memory_bytes.1 = memory_bytes.1.saturating_add(*keys);
            all.distinct = all.distinct.saturating_add(answer.distinct);
            all.keys = all.keys.saturating_add(answer.keys);
            let last = answer.largest.last().map_or(0, |(_, exact)| exact.distinct);
            distinct.extend(equal.iter().map(|key| (key.as_slice(), last)));
            let largest = answer.largest.iter();
            distinct.extend(largest.map(|(key, exact)| (key.as_slice(), exact.distinct)));
            all.largest.extend_from_slice(&answer.largest);
        }
        slice.exact_over_limit |= Truth::is_over(limit_bytes, memory_bytes);
        if slice.exact_over_limit {
            return check_limit(self.plan, &slice).map(|()| slice);
        }
        let by = self.plan.rank_by;
        all.largest.sort_unstable_by(|(key, exact), (other, of_other)| {
            order_of_keys((key, exact), (other, of_other), by)
        });
        all.largest.truncate(self.plan.most_listed());
        Ok(slice.with_exact(self.plan, all, &self.summary, |key| {
            distinct.get(key).copied().unwrap_or_default()
        }))
    }

    fn emit(&mut self, slice: Option<TopSlice>, cut: Option<Cut>) -> Result<(), PieceError> {
        let marked = slice.map(|slice| self.sums.add(slice, cut));
        Ok(marked.map_or(Ok(()), |slice| self.sink.slice(&slice))?)
    }

    /// Adds the totals of the slices to the results of the inputs.
    ///
    /// # Errors
    ///
    /// The sink failed, or elements are missing.
    pub fn finish(mut self, inputs: Box<CountSummary>) -> Result<TopSummary, PieceError> {
        let read = inputs.totals.elements;
        PieceError::unless_all(self.elements, read)?;
        let mut last = self.held.take();
        if self.plan.outline().shards > 1 {
            let has_summary = last.is_some() || self.exact.is_empty();
            PieceError::unless(has_summary, "a shard came without the summary of its slice")?;
            let exact = self.exact.values().map(|exact| exact.elements);
            PieceError::unless_all(exact.fold(0, u64::saturating_add), read)?;
            last = last.map(|slice| self.with_exact(slice)).transpose()?;
        }
        self.emit(last, Some(Cut::AtEnd))?;
        let CountSummary { inputs, totals, .. } = *inputs;
        Ok(self.sums.summary(&self.plan.question, inputs, totals))
    }
}

impl std::fmt::Debug for RankingSums<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RankingSums").finish_non_exhaustive()
    }
}
