//! The workers: candidates in this thread, or divided among threads that all get the same batches
//! through bounded channels.

use super::candidate::{Candidate, CandidateTally};
use super::negatives::Questions;
use crate::elements::ElementColumns;
use crate::threads::{self as pool, Pool, Reply, Work, spawn_up_to};
use std::sync::Arc;
use std::thread::Scope;

/// Batches under way to a worker.
const QUEUED_BATCHES: usize = 16;

/// A task for every worker.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Add { slot: usize, elements: Arc<ElementColumns> },
    Close { number: u64, slot: usize, questions: Arc<Questions> },
}

/// A worker's part of the answers about a slice.
pub(super) struct Answer {
    pub(super) number: u64,
    /// Candidates by number.
    pub(super) tallies: Vec<(usize, CandidateTally)>,
}

/// Some of the candidates.
#[derive(Default)]
pub(super) struct Worker {
    candidates: Vec<(usize, Candidate)>,
}

/// Memory of a worker in addition to its candidates, which the plan has checked: batches under way.
const WORKER_BYTES: u64 = 2 << 20;

/// Starts the workers: the candidates served by this many threads, or as many as there are; by the
/// caller if it is one.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    candidates: Vec<Candidate>,
    threads: usize,
) -> Pool<Worker> {
    let threads = threads.min(candidates.len());
    let threads = if threads > 1 { threads } else { 0 };
    let threads = spawn_up_to(scope, "candidates", threads, WORKER_BYTES, pool::Worker::serve);
    let mut workers: Vec<Worker> = (0..threads.len().max(1)).map(|_| Worker::default()).collect();
    let count = workers.len();
    for (number, candidate) in candidates.into_iter().enumerate() {
        workers[number % count].candidates.push((number, candidate));
    }
    match workers.pop() {
        Some(worker) if threads.is_empty() => Pool::inline(worker),
        last => {
            workers.extend(last);
            Pool::start(workers, QUEUED_BATCHES, threads)
        }
    }
}

impl Work for Worker {
    type Task = Task;
    type Answer = Answer;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<Answer, ElementColumns> {
        match task {
            Task::Add { slot, elements } => {
                for (_, candidate) in &mut self.candidates {
                    candidate.add(slot, &elements);
                }
                // The last worker returns the batch.
                Arc::into_inner(elements).map_or(Reply::Nothing, |mut elements| {
                    elements.clear();
                    Reply::Emptied(elements)
                })
            }
            Task::Close { number, slot, questions } => {
                let candidates = self.candidates.iter_mut();
                let tallies = candidates
                    .map(|(number, candidate)| (*number, candidate.close(slot, &questions)));
                Reply::Answer(Answer { number, tallies: tallies.collect() })
            }
        }
    }
}
