//! Puts the answers about a slice together, in the order of the closings.

use super::candidate::CandidateTally;
use super::negatives::Questions;
use super::results::{
    Comparison, Entry, Expected, JudgedSlice, Negatives, QueryResult, SliceCount,
};
use super::truth::Values;
use super::workers::Answer;
use crate::pipeline::{ClosedSlice, Totals};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts of a structure in a slice that are kept, at most: 48 MiB of them.
const MAX_COUNTS: usize = 1 << 20;

/// Collects what candidates say.
#[derive(Debug)]
pub(super) struct AnswerCollector {
    asked: Vec<u32>,
    expected: Expected,
    entries: Vec<Entry>,
    /// Which entry each candidate fills.
    of_candidate: Vec<usize>,
    /// Nanoseconds and insertions of each entry.
    times: Vec<(u64, u64)>,
    waiting: BTreeMap<u64, Waiting>,
    slices: Vec<(i64, JudgedSlice)>,
    omitted: u64,
}

#[derive(Debug)]
struct Waiting {
    slice: ClosedSlice,
    questions: Arc<Questions>,
    tallies: BTreeMap<usize, CandidateTally>,
}

impl AnswerCollector {
    pub(super) fn new(asked: Vec<u32>) -> Self {
        Self {
            asked,
            expected: Expected::default(),
            entries: Vec::new(),
            of_candidate: Vec::new(),
            times: Vec::new(),
            waiting: BTreeMap::new(),
            slices: Vec::new(),
            omitted: 0,
        }
    }

    /// Says who takes part; every entry that fits has a candidate, in this order.
    pub(super) fn begin(&mut self, expected: Expected, mut entries: Vec<Entry>) {
        for entry in entries.iter_mut().filter(|entry| entry.unfit.is_none()) {
            let queries = self.asked.iter().flat_map(|&mask| {
                Negatives::ALL.map(|negatives| QueryResult {
                    mask,
                    negatives,
                    queries: 0,
                    positives: Some(0),
                    predicted: Some(0.0),
                })
            });
            entry.queries = queries.collect();
            entry.memory_bytes = Some(0);
        }
        self.of_candidate =
            (0..entries.len()).filter(|&entry| entries[entry].unfit.is_none()).collect();
        self.times = vec![(0, 0); entries.len()];
        self.expected = expected;
        self.entries = entries;
    }

    /// Announces a closing; its answers may come in any order.
    pub(super) fn announce(&mut self, number: u64, slice: ClosedSlice, questions: Arc<Questions>) {
        let waiting = Waiting { slice, questions, tallies: BTreeMap::new() };
        self.waiting.insert(number, waiting);
    }

    /// Number of closings whose answers are not all here.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a worker's answer.
    pub(super) fn take(&mut self, answer: Answer) {
        if let Some(waiting) = self.waiting.get_mut(&answer.number) {
            waiting.tallies.extend(answer.tallies);
        }
        let candidates = self.of_candidate.len();
        while let Some(first) = self.waiting.first_entry() {
            if first.get().tallies.len() < candidates {
                break;
            }
            let waiting = first.remove();
            self.add(waiting);
        }
    }

    fn add(&mut self, waiting: Waiting) {
        if (self.slices.len() + 1) * self.entries.len() > MAX_COUNTS {
            self.omitted += 1;
            return;
        }
        let questions = waiting.questions;
        let values = questions.values.as_ref().map(Values::counts);
        let slice = JudgedSlice {
            start_ns: waiting.slice.start_ns,
            end_ns: waiting.slice.end_ns,
            packets: waiting.slice.packets,
            elements: waiting.slice.elements,
            exact: values.map(|values| values[0]),
            values: values.map_or_else(Vec::new, |values| values[..self.asked.len()].to_vec()),
            partial: false,
        };
        self.slices.push((waiting.slice.index, slice));
        for (candidate, tally) in waiting.tallies {
            let number = self.of_candidate[candidate];
            let entry = &mut self.entries[number];
            entry.counts.push(tally.count);
            entry.memory_bytes = entry.memory_bytes.max(Some(tally.memory_bytes));
            self.times[number].0 += tally.time.0;
            self.times[number].1 += tally.time.1;
            for (number, query) in entry.queries.iter_mut().enumerate() {
                let Some(set) = questions.sets.get(number).filter(|set| set.queries > 0) else {
                    continue;
                };
                let positives = tally.positives[number];
                let predicted = tally.predicted[number];
                query.queries += set.queries;
                query.positives = query.positives.zip(positives).map(|(a, b)| a + b);
                query.predicted = query.predicted.zip(predicted).map(|(a, b)| a + b);
            }
        }
    }

    /// Everything, with the slices in the order of time. Inputs and totals are for the caller to
    /// fill in.
    pub(super) fn finish(mut self) -> Comparison {
        let mut order: Vec<usize> = (0..self.slices.len()).collect();
        order.sort_by_key(|&number| self.slices[number].0);
        for (entry, (nanos, elements)) in self.entries.iter_mut().zip(self.times) {
            if entry.unfit.is_none() {
                let counts: Vec<SliceCount> =
                    order.iter().map(|&number| entry.counts[number]).collect();
                entry.counts = counts;
            }
            entry.ns_per_element = (elements > 0).then(|| nanos as f64 / elements as f64);
            for query in &mut entry.queries {
                let queries = query.queries;
                query.predicted =
                    query.predicted.filter(|_| queries > 0).map(|yeses| yeses / queries as f64);
            }
        }
        let mut slices: Vec<Option<JudgedSlice>> =
            self.slices.into_iter().map(|(_, slice)| Some(slice)).collect();
        Comparison {
            asked: self.asked,
            expected: self.expected,
            slices: order.into_iter().filter_map(|number| slices[number].take()).collect(),
            slices_omitted: self.omitted,
            entries: self.entries,
            inputs: Vec::new(),
            totals: Totals::default(),
        }
    }
}
