//! A worker of the evaluation: takes a slice block by block through its structures.

use super::negatives::{QuestionSet, Questions};
use super::slice_list::SliceList;
use crate::filters::{
    Counter, CounterSpec, DigestColumns, FilterKind, Known, MembershipFilter, PatternAnswer,
    PatternColumns, Query, Sighting,
};
use crate::hashing::Digest;
use crate::threads::MapWorker;
use std::ops::Range;
use std::sync::Arc;

/// Elements that go through all structures before the next ones.
const BLOCK: usize = 512;

/// Specifications of the structures, by the number of the entry.
pub(super) type Designs = Arc<Vec<Option<CounterSpec>>>;

/// A slice and some replicates.
pub(super) struct Task {
    pub(super) slice: usize,
    pub(super) list: Arc<SliceList>,
    pub(super) seeds: Range<u32>,
    pub(super) designs: Designs,
    pub(super) full: u32,
}

/// Answer to a task: replicate, entry and counts.
pub(super) struct Answer {
    pub(super) slice: usize,
    pub(super) list: Arc<SliceList>,
    pub(super) tallies: Vec<(u32, usize, CandidateTally)>,
}

/// A worker with its own structures.
#[derive(Default)]
pub(super) struct Worker {
    designs: Option<Designs>,
    pub(super) candidates: Vec<(usize, Candidate)>,
    whole: Vec<Digest>,
    attributes: Vec<Digest>,
    sightings: Vec<Sighting>,
}

impl MapWorker<Task> for Worker {
    type Result = Answer;

    fn map(&mut self, task: Task) -> Answer {
        let is_same = |designs: &Designs| Arc::ptr_eq(designs, &task.designs);
        if !self.designs.as_ref().is_some_and(is_same) {
            // The memory of the old ones is free before the new ones take theirs.
            self.candidates.clear();
            let specs = task.designs.iter().enumerate();
            let specs = specs.filter_map(|(entry, spec)| Some((entry, spec.clone()?)));
            self.candidates.extend(specs.map(|(entry, spec)| (entry, Candidate::new(spec))));
            self.designs = Some(Arc::clone(&task.designs));
        }
        let mut tallies = Vec::new();
        for seed in task.seeds {
            self.insert(&task.list, seed);
            let questions = task.list.questions.as_ref().filter(|_| seed == 0);
            for (entry, candidate) in &mut self.candidates {
                tallies.push((seed, *entry, candidate.close(questions, task.full)));
            }
        }
        Answer { slice: task.slice, list: task.list, tallies }
    }
}

impl Worker {
    pub(super) fn insert(&mut self, list: &SliceList, seed: u32) {
        let Some(arity) = list.attributes.len().checked_div(list.whole.len()) else { return };
        let blocks = list.attributes.chunks(BLOCK * arity.max(1));
        for (whole, attributes) in list.whole.chunks(BLOCK).zip(blocks) {
            for (again, digests) in [(&mut self.whole, whole), (&mut self.attributes, attributes)] {
                again.clear();
                again.extend(digests.iter().map(|digest| digest.rehashed(seed)));
            }
            let elements = DigestColumns { whole: &self.whole, attributes: &self.attributes };
            for (_, candidate) in &mut self.candidates {
                candidate.add(elements, &mut self.sightings);
            }
        }
    }
}

/// Answer of a candidate for a slice under one set of hash functions.
pub(super) struct CandidateTally {
    /// Elements called new; `None` for sketches.
    pub(super) first: Option<u64>,
    /// The unbiased estimate, or the lower bound if it has no estimate any more.
    pub(super) estimate: Option<f64>,
    pub(super) is_saturated: bool,
    pub(super) memory_bytes: u64,
    /// For every set of questions the number of yeses, `None` if there is no answer; empty if
    /// nothing was asked.
    pub(super) positives: Vec<Option<u64>>,
    /// For every set of questions the yeses that the formulas predict.
    pub(super) predicted: Vec<Option<f64>>,
}

/// A structure and its state.
pub(super) struct Candidate {
    spec: CounterSpec,
    counter: Counter,
    first: u64,
}

impl Candidate {
    pub(super) fn new(spec: CounterSpec) -> Self {
        Self { counter: spec.build(), spec, first: 0 }
    }

    /// Adds elements; `sightings` is memory that is used again.
    pub(super) fn add(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        sightings.clear();
        self.counter.insert_batch(elements, sightings);
        self.first += sightings.iter().filter(|&&it| it == Sighting::First).count() as u64;
    }

    /// The answers about the slice; the structure is empty afterwards.
    pub(super) fn close(&mut self, questions: Option<&Questions>, full: u32) -> CandidateTally {
        let sets = questions.map_or(&[][..], |questions| &questions.sets);
        let values = questions.and_then(|questions| questions.values.as_ref());
        let predicted = |set: &QuestionSet| {
            let (spec, values) = (self.spec.filter()?, values?);
            // It takes (a, b) and (b, a) for one element, and the number of those is not known.
            if spec.kind() == FilterKind::CmdbfXor && set.mask == full {
                return None;
            }
            let expected = set.known.iter().map(|&(known, queries)| {
                let rate = spec.rate(&Query {
                    mask: set.mask,
                    full,
                    known: Known::all_of(known),
                    values: &|mask| values.of(mask),
                })?;
                Some(rate * queries as f64)
            });
            expected.sum()
        };
        let distinct = self.counter.distinct();
        let tally = CandidateTally {
            first: self.spec.filter().map(|_| self.first),
            estimate: distinct.map(|estimate| estimate.distinct),
            is_saturated: self.counter.is_saturated(&self.spec, distinct, self.first),
            memory_bytes: self.counter.memory_bytes(),
            positives: sets.iter().map(|set| positives(&self.counter, set, full)).collect(),
            predicted: sets.iter().map(predicted).collect(),
        };
        self.counter.clear();
        self.first = 0;
        tally
    }
}

/// Queries of a set that are answered by yes; `None` if the structure has no answer for them.
fn positives(counter: &Counter, set: &QuestionSet, full: u32) -> Option<u64> {
    let Counter::Filter(filter) = counter else {
        // A sketch answers nothing.
        return None;
    };
    let filter: &dyn MembershipFilter = filter.as_ref();
    if set.mask == full {
        let elements = DigestColumns { whole: &set.whole, attributes: &set.attributes };
        let mut answers = Vec::with_capacity(set.whole.len());
        filter.contains_batch(elements, &mut answers);
        let yes = answers.iter().filter(|&&answer| answer);
        return Some(yes.count() as u64);
    }
    let patterns = PatternColumns {
        arity: full.count_ones() as usize,
        mask: set.mask,
        attributes: &set.attributes,
    };
    let mut answers = Vec::with_capacity(set.queries as usize);
    filter.as_multi_attribute()?.contains_where_batch(patterns, &mut answers);
    let yes = answers.iter().map(|answer| match answer {
        PatternAnswer::Absent => Some(0),
        // A structure that cannot tell values apart does not say no.
        PatternAnswer::Present | PatternAnswer::PresentApart => Some(1),
        PatternAnswer::Unknown => None,
    });
    yes.sum()
}
