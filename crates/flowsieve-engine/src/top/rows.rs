//! The slices on their way to the sink, in the order of time, and their sums.

use super::plan::Question;
use super::results::{Recall, TopSlice, TopSummary};
use super::workers::MISSED_NAMED;
use crate::inputs::InputResult;
use crate::pipeline::{ClosedSlice, Cut, Edges, SliceSink, Totals};
use crate::sorted::Sorted;
use std::collections::BTreeMap;
use std::io;

/// Slices that wait in memory; others do in temporary files.
const WAITING_BYTES: u64 = 8 << 20;

/// Collects slices until all inputs were read, since one may be counted once more, or, in a live
/// run, until they are final.
pub(super) struct TopRows<'a> {
    sink: &'a mut dyn SliceSink<TopSlice>,
    edges: Edges,
    waiting: Sorted<TopSlice>,
    /// Number of earlier readings of the inputs.
    revision: u64,
    /// In a live run the slices that are open or not final.
    live: Option<Live>,
}

#[derive(Default)]
struct Live {
    slices: BTreeMap<i64, LiveSlice>,
    /// Start of the first slice whose rows were emitted.
    first_ns: Option<i64>,
    /// The last slice whose rows were emitted.
    last: Option<i64>,
}

struct LiveSlice {
    slice: TopSlice,
    is_closed: bool,
}

/// Sums over all slices.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    edges: Edges,
    /// Start of the first slice.
    first_ns: Option<i64>,
    sum: TopSummary,
}

impl<'a> TopRows<'a> {
    pub(super) fn new(sink: &'a mut dyn SliceSink<TopSlice>, edges: Edges, is_live: bool) -> Self {
        let live = is_live.then(Live::default);
        Self { sink, edges, waiting: Sorted::new(WAITING_BYTES), revision: 0, live }
    }

    /// Begins a second reading of the inputs: its slices replace those of the first.
    pub(super) fn again(self) -> Self {
        Self { revision: self.revision + 1, ..self }
    }

    pub(super) fn take(&mut self, mut slice: TopSlice, is_closed: bool) -> io::Result<()> {
        slice.revision = self.revision;
        let Some(live) = &mut self.live else { return self.waiting.push(slice) };
        let before = live.slices.get(&slice.index);
        slice.is_shown =
            before.is_some_and(|it| it.slice.is_shown && it.slice.packets == slice.packets);
        live.slices.insert(slice.index, LiveSlice { slice, is_closed });
        Ok(())
    }

    /// Returns whether the sink has all packets of a slice.
    pub(super) fn is_shown(&self, slice: &ClosedSlice) -> bool {
        let held = self.live.as_ref().and_then(|live| live.slices.get(&slice.index));
        held.is_some_and(|it| it.slice.is_shown && it.slice.packets == slice.packets)
    }

    /// Emits the slices that end by this time, as far as the sink does not have them, and flushes
    /// it.
    pub(super) fn show(&mut self, final_ns: i64) -> io::Result<()> {
        let Some(Live { slices, first_ns, last }) = &mut self.live else { return Ok(()) };
        let mut shown = false;
        for (&index, LiveSlice { slice, .. }) in slices.iter_mut() {
            if slice.is_shown || slice.end_ns > final_ns {
                continue;
            }
            let first_ns = *first_ns.get_or_insert(slice.start_ns);
            let mut row = slice.clone();
            row.partial = self.edges.is_partial((row.start_ns, row.end_ns), first_ns, None);
            row.revised = last.is_some_and(|last| index <= last);
            *last = Some(last.map_or(index, |last| last.max(index)));
            self.sink.slice(&row)?;
            (slice.is_shown, shown) = (true, true);
        }
        let done = |held: &LiveSlice| held.is_closed && held.slice.is_shown;
        let closed: Vec<i64> =
            slices.iter().filter(|(_, held)| done(held)).map(|(&index, _)| index).collect();
        for LiveSlice { slice, .. } in closed.iter().filter_map(|index| slices.remove(index)) {
            self.waiting.push(slice)?;
        }
        if shown { self.sink.flush() } else { Ok(()) }
    }

    /// Emits all slices that the sink does not have; `cut` says how the trace ended.
    pub(super) fn finish(mut self, cut: Cut) -> io::Result<Sums> {
        let live = self.live.take().unwrap_or_default();
        for LiveSlice { slice, .. } in live.slices.into_values() {
            self.waiting.push(slice)?;
        }
        let sink = self.sink;
        let mut emit = |mut slice: TopSlice| {
            slice.revised = live.last.is_some_and(|last| slice.index <= last);
            if slice.is_shown { Ok(()) } else { sink.slice(&slice) }
        };
        let mut sums = Sums::new(self.edges);
        // The last answer for a slice is complete.
        self.waiting.drain_last(
            |one, other| one.index == other.index,
            |slice, is_last| emit(sums.add(slice, is_last.then_some(cut))),
        )?;
        Ok(sums)
    }
}

impl Sums {
    /// For a trace with these edges.
    pub(crate) fn new(edges: Edges) -> Self {
        Self { edges, ..Self::default() }
    }

    /// Returns the result of a run, but for its slices.
    pub(crate) fn summary(
        self,
        question: &Question,
        inputs: Vec<InputResult>,
        totals: Totals,
    ) -> TopSummary {
        let totals = Totals { slices: self.sum.slices, ..totals };
        TopSummary { question: question.clone(), inputs, totals, ..self.sum }
    }

    /// Adds a slice, which is marked if it is partial.
    pub(crate) fn add(&mut self, mut slice: TopSlice, cut: Option<Cut>) -> TopSlice {
        let first_ns = *self.first_ns.get_or_insert(slice.start_ns);
        slice.partial = self.edges.is_partial((slice.start_ns, slice.end_ns), first_ns, cut);
        let sum = &mut self.sum;
        sum.slices += 1;
        sum.over_limit += u64::from(slice.exact_over_limit);
        sum.crowded += u64::from(slice.seen_share < 0.5);
        sum.listed += slice.keys.len() as u64;
        if let Some(recall) = &slice.recall {
            let sum = sum.recall.get_or_insert_with(Recall::default);
            sum.keys += recall.keys;
            sum.found += recall.found;
            for key in &recall.missed {
                if sum.missed.len() < MISSED_NAMED && !sum.missed.contains(key) {
                    sum.missed.push(key.clone());
                }
            }
        }
        slice
    }
}
