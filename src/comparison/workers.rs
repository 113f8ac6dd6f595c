//! Who does the work: candidates and the truth in this thread, or divided among threads that are all fed with
//! the same batches through bounded channels.
//!
//! The first worker keeps the truth and sends the questions about a closing slice to the others. It waits
//! for nobody, and the others only for it, so they cannot wait for each other in a circle.

use super::candidate::{Candidate, CandidateTally};
use super::negatives::{Asking, Questions};
use super::truth::SliceSets;
use crate::elements::ElementColumns;
use crate::pipeline::{ClosedSlice, WorkerGone, guarded};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
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
            let sets = SliceSets::new(&self.asking.counted, self.limit);
            self.slots.push(sets);
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

/// All candidates and the truth.
pub(super) enum Workers {
    Here(Box<Worker>),
    Threads {
        tasks: Vec<Sender<Task>>,
        answers: Receiver<Result<Answer, WorkerGone>>,
        emptied: Receiver<ElementColumns>,
    },
}

/// Some of the candidates.
pub(super) struct Worker {
    truth: Option<Truth>,
    candidates: Vec<(usize, Candidate)>,
}

impl Workers {
    /// The candidates served by so many threads; by the caller if it is one.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        truth: Truth,
        candidates: Vec<Candidate>,
        threads: usize,
    ) -> Self {
        // The truth has as much to do as a few candidates.
        let threads = threads.min(candidates.len() + 1);
        if threads <= 1 {
            return Self::Here(Box::new(Worker {
                truth: Some(truth),
                candidates: candidates.into_iter().enumerate().collect(),
            }));
        }
        // Bounded by the task queues and by the closings that may be outstanding.
        let (answer, answers) = unbounded();
        let (empty, emptied) = unbounded();
        let mut truth = Some(truth);
        let mut shares: Vec<Vec<(usize, Candidate)>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, candidate) in candidates.into_iter().enumerate() {
            // From the last on, so that the first, which keeps the truth, has the fewest.
            shares[threads - 1 - number % threads].push((number, candidate));
        }
        let (ask, asked): (Vec<_>, Vec<_>) = (1..threads).map(|_| unbounded()).unzip();
        let mut ask = Some(ask);
        let mut asked = asked.into_iter();
        let tasks = shares
            .into_iter()
            .map(|candidates| {
                let (task, tasks) = bounded(QUEUED_BATCHES);
                let truth = truth.take();
                let questions = if truth.is_some() {
                    QuestionChannel::ToOthers(ask.take().unwrap_or_default())
                } else {
                    QuestionChannel::FromFirst(asked.next().expect("there is one a worker"))
                };
                let worker = Worker { truth, candidates };
                let (answer, empty) = (answer.clone(), empty.clone());
                scope.spawn(move || serve(worker, &questions, &tasks, &answer, &empty));
                task
            })
            .collect();
        Self::Threads {
            tasks,
            answers,
            emptied,
        }
    }

    /// An empty batch, used before if there is one.
    pub(super) fn fresh(&self) -> ElementColumns {
        match self {
            Self::Here(_) => ElementColumns::default(),
            Self::Threads { emptied, .. } => emptied.try_recv().unwrap_or_default(),
        }
    }

    /// Gives a task to everybody; the answer, if it is there at once.
    pub(super) fn give(&mut self, task: Task) -> Result<Option<Answer>, WorkerGone> {
        match self {
            Self::Here(worker) => guarded(|| worker.here(task)),
            Self::Threads { tasks, answers, .. } => {
                for worker in tasks {
                    worker.send(task.clone()).map_err(|_| last_word(answers))?;
                }
                Ok(None)
            }
        }
    }

    /// Takes a batch without sharing it, where nobody else needs it.
    pub(super) fn add_here(&mut self, slot: usize, elements: &ElementColumns) -> bool {
        match self {
            Self::Here(worker) => {
                worker.add(slot, elements);
                true
            }
            Self::Threads { .. } => false,
        }
    }

    /// The next answer; waits for it if `wait`.
    pub(super) fn answer(&mut self, wait: bool) -> Result<Option<Answer>, WorkerGone> {
        let Self::Threads { answers, .. } = self else {
            return Ok(None);
        };
        if wait {
            return answers.recv().map_err(|_| WorkerGone::silent())?.map(Some);
        }
        answers.try_recv().ok().transpose()
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

    /// Does a task with all candidates and the truth at hand.
    fn here(&mut self, task: Task) -> Option<Answer> {
        match task {
            Task::Add { slot, elements } => {
                self.add(slot, &elements);
                None
            }
            Task::Close {
                number,
                slot,
                next,
                slice,
            } => {
                let truth = self.truth.as_mut();
                let questions =
                    truth.map(|truth| Arc::new(truth.close(slot, next, slice.index)))?;
                Some(Answer {
                    number,
                    tallies: self.tallies(slot, &questions),
                    questions: Some(questions),
                })
            }
        }
    }
}

/// How questions get from the worker with the truth to the others.
enum QuestionChannel {
    ToOthers(Vec<Sender<Arc<Questions>>>),
    FromFirst(Receiver<Arc<Questions>>),
}

/// Why a worker hung up: it said so before.
fn last_word(answers: &Receiver<Result<Answer, WorkerGone>>) -> WorkerGone {
    answers
        .try_iter()
        .find_map(Result::err)
        .unwrap_or_else(WorkerGone::silent)
}

/// Serves until there are no more tasks. If the work panics, that is the last answer.
fn serve(
    worker: Worker,
    channel: &QuestionChannel,
    tasks: &Receiver<Task>,
    answer: &Sender<Result<Answer, WorkerGone>>,
    empty: &Sender<ElementColumns>,
) {
    if let Err(gone) = guarded(|| serve_unguarded(worker, channel, tasks, answer, empty)) {
        // Nobody listens if the run was given up.
        let _ = answer.send(Err(gone));
    }
}

fn serve_unguarded(
    mut worker: Worker,
    channel: &QuestionChannel,
    tasks: &Receiver<Task>,
    answer: &Sender<Result<Answer, WorkerGone>>,
    empty: &Sender<ElementColumns>,
) {
    // A closed channel on the other side means that the run was given up: nothing is left to do.
    for task in tasks {
        match task {
            Task::Add { slot, elements } => {
                worker.add(slot, &elements);
                // Whoever is last gives the batch back.
                if let Some(mut elements) = Arc::into_inner(elements) {
                    elements.clear();
                    if empty.send(elements).is_err() {
                        return;
                    }
                }
            }
            Task::Close {
                number,
                slot,
                next,
                slice,
            } => {
                let (questions, told) = match (channel, &mut worker.truth) {
                    (QuestionChannel::ToOthers(others), Some(truth)) => {
                        let questions = Arc::new(truth.close(slot, next, slice.index));
                        let told = others
                            .iter()
                            .all(|other| other.send(Arc::clone(&questions)).is_ok());
                        if !told {
                            return;
                        }
                        (questions, true)
                    }
                    (QuestionChannel::FromFirst(first), _) => match first.recv() {
                        Ok(questions) => (questions, false),
                        Err(_) => return,
                    },
                    (QuestionChannel::ToOthers(_), None) => return,
                };
                let tallies = worker.tallies(slot, &questions);
                let answered = Answer {
                    number,
                    questions: told.then_some(questions),
                    tallies,
                };
                if answer.send(Ok(answered)).is_err() {
                    return;
                }
            }
        }
    }
}
