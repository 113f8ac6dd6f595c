//! Who does the work: candidates and the truth in this thread, or divided among threads that are all fed with
//! the same batches through bounded channels.
//!
//! The first worker keeps the truth and sends the questions about a closing slice to the others. It waits
//! for nobody, and the others only for it, so they cannot wait for each other in a circle.

use super::candidate::{Candidate, CandidateTally};
use super::negatives::{Asking, Questions};
use super::truth::SliceSets;
use crate::elements::ElementColumns;
use crate::pipeline::ClosedSlice;
use crate::threads::{Pool, Reply, Work};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::iter;
use std::sync::Arc;
use std::thread::Scope;

/// Batches under way to a worker.
const QUEUED_BATCHES: usize = 16;

/// What everybody is asked to do.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Add {
        slot: usize,
        elements: Arc<ElementColumns>,
    },
    Close {
        number: u64,
        slot: usize,
        /// Slot of the following slice, if one is open.
        next: Option<usize>,
        slice: ClosedSlice,
    },
}

impl Task {
    pub(super) fn slot(&self) -> usize {
        match *self {
            Self::Add { slot, .. } | Self::Close { slot, .. } => slot,
        }
    }
}

/// The truth about all open slices.
#[derive(Debug)]
pub(super) struct Truth {
    pub(super) asking: Asking,
    /// Bytes that the sets of one slice may take.
    pub(super) limit: u64,
    pub(super) slots: Vec<SliceSets>,
}

impl Truth {
    fn reach(&mut self, slot: usize) {
        while self.slots.len() <= slot {
            self.slots
                .push(SliceSets::new(&self.asking.counted, self.limit));
        }
    }

    fn add(&mut self, slot: usize, elements: &ElementColumns) {
        self.reach(slot);
        self.slots[slot].add(&self.asking.counted, elements);
    }

    fn close(&mut self, slot: usize, next: Option<usize>, index: i64) -> Questions {
        self.reach(slot.max(next.unwrap_or(0)));
        let next = next.map(|next| &self.slots[next]);
        let questions = self.asking.questions(&self.slots[slot], next, index);
        self.slots[slot].clear();
        questions
    }
}

/// A worker's part of the answers about a slice.
pub(super) struct Answer {
    pub(super) number: u64,
    /// The questions, from the worker that keeps the truth.
    pub(super) questions: Option<Arc<Questions>>,
    /// Candidates by number.
    pub(super) tallies: Vec<(usize, CandidateTally)>,
}

/// Some of the candidates, and the truth if it is the first worker.
pub(super) struct Worker {
    truth: Option<Truth>,
    candidates: Vec<(usize, Candidate)>,
    questions: QuestionChannel,
}

/// How questions get from the worker with the truth to the others.
enum QuestionChannel {
    ToOthers(Vec<Sender<Arc<Questions>>>),
    FromFirst(Receiver<Arc<Questions>>),
}

/// Starts the workers: the candidates served by this many threads; by the caller if it is one.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    truth: Truth,
    candidates: Vec<Candidate>,
    threads: usize,
) -> Pool<Worker> {
    // The truth has as much to do as a few candidates.
    let threads = threads.min(candidates.len() + 1).max(1);
    let (ask, asked): (Vec<_>, Vec<_>) = (1..threads).map(|_| unbounded()).unzip();
    let others = asked.into_iter().map(|asked| Worker {
        truth: None,
        candidates: Vec::new(),
        questions: QuestionChannel::FromFirst(asked),
    });
    let first = Worker {
        truth: Some(truth),
        candidates: Vec::new(),
        questions: QuestionChannel::ToOthers(ask),
    };
    let mut workers: Vec<Worker> = iter::once(first).chain(others).collect();
    for (number, candidate) in candidates.into_iter().enumerate() {
        // From the last on, so that the first, which keeps the truth, has the fewest.
        workers[threads - 1 - number % threads]
            .candidates
            .push((number, candidate));
    }
    match workers.pop() {
        Some(worker) if workers.is_empty() => Pool::here(worker),
        last => {
            workers.extend(last);
            Pool::start(workers, QUEUED_BATCHES, |worker| {
                scope.spawn(|| worker.serve());
            })
        }
    }
}

impl Worker {
    fn add(&mut self, slot: usize, elements: &ElementColumns) {
        if let Some(truth) = &mut self.truth {
            truth.add(slot, elements);
        }
        for (_, candidate) in &mut self.candidates {
            candidate.add(slot, elements);
        }
    }

    fn tallies(&mut self, slot: usize, questions: &Questions) -> Vec<(usize, CandidateTally)> {
        let candidates = self.candidates.iter_mut();
        candidates
            .map(|(number, candidate)| (*number, candidate.close(slot, questions)))
            .collect()
    }
}

impl Work for Worker {
    type Task = Task;
    type Answer = Answer;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<Answer, ElementColumns> {
        let (number, slot, next, slice) = match task {
            Task::Add { slot, elements } => {
                self.add(slot, &elements);
                // Whoever is last gives the batch back.
                return Arc::into_inner(elements).map_or(Reply::Nothing, |mut elements| {
                    elements.clear();
                    Reply::Emptied(elements)
                });
            }
            Task::Close {
                number,
                slot,
                next,
                slice,
            } => (number, slot, next, slice),
        };
        let questions = match (&self.questions, &mut self.truth) {
            (QuestionChannel::ToOthers(others), Some(truth)) => {
                let questions = Arc::new(truth.close(slot, next, slice.index));
                let sent = others
                    .iter()
                    .all(|other| other.send(Arc::clone(&questions)).is_ok());
                sent.then_some(questions)
            }
            (QuestionChannel::FromFirst(first), _) => first.recv().ok(),
            (QuestionChannel::ToOthers(_), None) => None,
        };
        let Some(questions) = questions else {
            return Reply::GivenUp;
        };
        Reply::Answer(Answer {
            number,
            tallies: self.tallies(slot, &questions),
            questions: self.truth.is_some().then_some(questions),
        })
    }
}
