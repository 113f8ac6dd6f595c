//! Who does the work: candidates in this thread, or shared by threads that are all fed with the same tasks through bounded
//! channels.
//!
//! ```text
//!     worker 1:  ─► 0 1 2 3          7 6 5 4
//!     worker 2:            ─► 4 5 6 7         3 2 1 0
//! ```
//!
//! Each worker goes through all candidates with every task, its own first, and does the task for those for which nobody does
//! or did it. So structures that cost more are nobody's burden alone, and most of them stay in one processor's caches.

use super::candidate::{Candidate, CandidateTally};
use super::negatives::Questions;
use crate::elements::ElementColumns;
use crate::threads::{Pool, Reply, Work};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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
        questions: Arc<Questions>,
    },
}

/// A worker's part of the answers about a slice.
pub(super) struct Answer {
    pub(super) number: u64,
    /// Candidates by number.
    pub(super) tallies: Vec<(usize, CandidateTally)>,
}

/// What is everybody's: a candidate.
struct Shared<T = Candidate> {
    /// Tasks that were done for it, which is the number of the next one. It changes while the candidate is locked.
    done: AtomicU64,
    candidate: Mutex<T>,
}

impl<T> Shared<T> {
    fn new(candidate: T) -> Self {
        Self {
            done: AtomicU64::new(0),
            candidate: Mutex::new(candidate),
        }
    }

    /// Does a task for it, unless it is done, another worker is at it, or one before is not done.
    ///
    /// No task is left undone. A worker leaves one if another one has the candidate, who is at this task or an earlier one, or if an
    /// earlier one is undone that it has left itself. In both cases another worker comes to this task later, and the last one
    /// of them finds nobody there.
    fn take<A>(&self, task: u64, work: impl FnOnce(&mut T) -> A) -> Option<A> {
        let is_next = || self.done.load(Ordering::Acquire) == task;
        // Whoever only looks must not lock it: the one whose turn it is would leave it.
        if !is_next() {
            return None;
        }
        let mut candidate = self.candidate.try_lock().ok()?;
        is_next().then(|| {
            let answer = work(&mut candidate);
            self.done.store(task + 1, Ordering::Release);
            answer
        })
    }
}

/// One who works for all candidates.
pub(super) struct Worker {
    candidates: Arc<[Shared]>,
    /// Candidates by number, in the order in which it comes to them.
    order: Vec<usize>,
    /// Number of the next task.
    task: u64,
}

/// Starts the workers: the candidates served by this many threads; by the caller if it is one.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    candidates: Vec<Candidate>,
    threads: usize,
) -> Pool<Worker> {
    let threads = threads.min(candidates.len()).max(1);
    let candidates: Arc<[Shared]> = candidates.into_iter().map(Shared::new).collect();
    let worker = |number| Worker {
        order: order(number, threads, candidates.len()),
        candidates: Arc::clone(&candidates),
        task: 0,
    };
    if threads == 1 {
        return Pool::here(worker(0));
    }
    Pool::start(
        (0..threads).map(worker).collect(),
        QUEUED_BATCHES,
        |worker| {
            scope.spawn(|| worker.serve());
        },
    )
}

/// The order in which a worker comes to candidates: its own part, and those of the others, which begin at the other end.
fn order(worker: usize, workers: usize, candidates: usize) -> Vec<usize> {
    let part = |worker: usize| worker * candidates / workers..(worker + 1) * candidates / workers;
    let others = (1..workers).flat_map(|step| part((worker + step) % workers).rev());
    part(worker).chain(others).collect()
}

impl Worker {
    /// What came of a task for those candidates for which it is this worker's.
    fn each<T>(&self, mut work: impl FnMut(&mut Candidate) -> T) -> Vec<(usize, T)> {
        let take = |&number: &usize| {
            let answer = self.candidates[number].take(self.task, &mut work);
            answer.map(|answer| (number, answer))
        };
        self.order.iter().filter_map(take).collect()
    }
}

impl Work for Worker {
    type Task = Task;
    type Answer = Answer;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<Answer, ElementColumns> {
        let reply = match task {
            Task::Add { slot, elements } => {
                self.each(|candidate| candidate.add(slot, &elements));
                // Whoever is last gives the batch back.
                Arc::into_inner(elements).map_or(Reply::Nothing, |mut elements| {
                    elements.clear();
                    Reply::Emptied(elements)
                })
            }
            Task::Close {
                number,
                slot,
                questions,
            } => Reply::Answer(Answer {
                number,
                tallies: self.each(|candidate| candidate.close(slot, &questions)),
            }),
        };
        self.task += 1;
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_and_in_order() {
        const TASKS: u64 = 3000;
        for workers in 1..5 {
            let shared: Vec<Shared<Vec<u64>>> = (0..7).map(|_| Shared::new(Vec::new())).collect();
            let work = &|worker: usize| {
                let order = order(worker, workers, shared.len());
                for task in 0..TASKS {
                    for &number in &order {
                        let _ = shared[number].take(task, |done| done.push(task));
                    }
                }
            };
            std::thread::scope(|scope| {
                for worker in 0..workers {
                    scope.spawn(move || work(worker));
                }
            });
            for of in shared {
                assert!(
                    of.candidate
                        .into_inner()
                        .is_ok_and(|done| done.into_iter().eq(0..TASKS))
                );
            }
        }
    }

    #[test]
    fn every_worker_comes_to_every_candidate() {
        assert_eq!(order(0, 2, 5), [0, 1, 4, 3, 2]);
        assert_eq!(order(1, 2, 5), [2, 3, 4, 1, 0]);
        for workers in 1..6 {
            for candidates in workers..9 {
                for worker in 0..workers {
                    let mut order = order(worker, workers, candidates);
                    order.sort_unstable();
                    assert!(order.into_iter().eq(0..candidates));
                }
            }
        }
    }
}
