//! The slices on their way to the sink, in the order of time, and their sums.

use super::question::Question;
use super::results::{Recall, TopSink, TopSlice, TopSummary};
use super::workers::MISSED_NAMED;
use crate::inputs::InputResult;
use crate::pipeline::{Cut, Edges, Totals};
use crate::sorted::Sorted;
use std::io;

/// Slices that wait in memory; others do in temporary files.
const WAITING_BYTES: u64 = 8 << 20;

/// Collects slices until all inputs were read, since one may be counted once more.
pub(super) struct TopRows {
    waiting: Sorted<TopSlice>,
    /// How often the inputs were read before.
    revision: u64,
}

/// Sums over all slices.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    edges: Edges,
    /// Where the first slice begins.
    first_ns: Option<i64>,
    pub(crate) slices: u64,
    over_limit: u64,
    crowded: u64,
    listed: u64,
    recall: Option<Recall>,
}

impl TopRows {
    pub(super) fn new() -> Self {
        Self { waiting: Sorted::new(WAITING_BYTES), revision: 0 }
    }

    /// The inputs are read again: slices that come now replace those that came before.
    pub(super) fn again(self) -> Self {
        Self { revision: self.revision + 1, ..self }
    }

    pub(super) fn take(&mut self, mut slice: TopSlice) -> io::Result<()> {
        slice.revision = self.revision;
        self.waiting.push(slice)
    }

    /// Emits all slices; `cut` says how the trace ended.
    pub(super) fn finish(self, edges: Edges, cut: Cut, sink: &mut dyn TopSink) -> io::Result<Sums> {
        let mut sums = Sums::new(edges);
        let mut held: Option<TopSlice> = None;
        self.waiting.drain(|slice| {
            // Of a slice that was counted again the last count holds.
            match held.replace(slice).filter(|before| {
                let next = held.as_ref();
                next.is_some_and(|next| next.index != before.index)
            }) {
                Some(before) => sink.slice(&sums.add(before, None)),
                None => Ok(()),
            }
        })?;
        if let Some(last) = held {
            sink.slice(&sums.add(last, Some(cut)))?;
        }
        Ok(sums)
    }
}

impl Sums {
    /// For a trace with these edges.
    pub(crate) fn new(edges: Edges) -> Self {
        Self { edges, ..Self::default() }
    }

    /// The result of a run, but for its slices.
    pub(crate) fn summary(
        self,
        question: &Question,
        inputs: Vec<InputResult>,
        totals: Totals,
    ) -> TopSummary {
        TopSummary {
            question: question.clone(),
            inputs,
            totals,
            slices: self.slices,
            over_limit: self.over_limit,
            crowded: self.crowded,
            listed: self.listed,
            recall: self.recall,
        }
    }

    /// Adds a slice, which is marked if it is partial.
    pub(crate) fn add(&mut self, mut slice: TopSlice, cut: Option<Cut>) -> TopSlice {
        let first_ns = *self.first_ns.get_or_insert(slice.start_ns);
        slice.partial = self.edges.is_partial((slice.start_ns, slice.end_ns), first_ns, cut);
        self.slices += 1;
        self.over_limit += u64::from(slice.exact_over_limit);
        self.crowded += u64::from(slice.seen_share < 0.5);
        self.listed += slice.keys.len() as u64;
        if let Some(recall) = &slice.recall {
            let sum = self.recall.get_or_insert_with(Recall::default);
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
