//! A worker of the evaluation: takes a slice block by block through its structures.

use super::candidate::{Candidate, CandidateTally};
use super::slice_list::SliceList;
use crate::filters::{CounterSpec, DigestColumns, Sighting};
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
