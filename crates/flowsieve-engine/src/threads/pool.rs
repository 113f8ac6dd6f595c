//! A pool of workers, each with its part of the state: tasks for a part go to its worker through a
//! bounded channel, answers and emptied batches come back.
//!
//! A worker does its tasks in the order in which they were pushed. It never waits to send something
//! back, so the caller and the workers cannot wait for each other in a circle.

use super::channels::{Channels, Crossbeam};
use super::spawn::spawn_up_to;
use crate::guard::{WorkerPanicked, catch_panic};
use std::collections::VecDeque;
use std::thread::Scope;

/// The work of a worker, with its state.
pub(crate) trait Work {
    /// A request.
    type Task: Send;

    /// The answer to some tasks.
    type Answer: Send;

    /// A buffer that tasks carry, which is filled again afterwards.
    type Batch: Default + Send;

    /// Does a task.
    fn work(&mut self, task: Self::Task) -> Reply<Self::Answer, Self::Batch>;
}

/// The outcome of a task.
pub(crate) enum Reply<A, B> {
    /// An answer.
    Answer(A),
    /// Its batch, emptied.
    Emptied(B),
}

/// Workers in threads, or one in the caller's thread.
pub(crate) enum Pool<W: Work, C: Channels = Crossbeam> {
    Inline {
        work: Box<W>,
        answers: VecDeque<W::Answer>,
        emptied: Vec<W::Batch>,
    },
    Threads {
        tasks: Vec<C::Sender<W::Task>>,
        answers: C::Receiver<Result<W::Answer, WorkerPanicked>>,
        emptied: C::Receiver<W::Batch>,
    },
}

/// Batches under way to one worker: enough to bridge a moment in which it is not scheduled, few
/// enough to stay in its cache.
const QUEUED_BATCHES: usize = 8;

/// Memory of a worker in addition to its filters, which the plan has checked: the batches under way
/// to it, and the tables of an exact count.
const WORKER_BYTES: u64 = 4 << 20;

impl<W: Work> Pool<W> {
    /// Starts up to `threads` workers, or one in the caller's thread if there is no thread.
    /// `work` makes the work of one worker from its number and the number of workers.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        threads: usize,
        mut work: impl FnMut(usize, usize) -> W,
    ) -> Self
    where
        W: Send + 'scope,
    {
        let threads = spawn_up_to(scope, name, threads, WORKER_BYTES, Worker::serve);
        if threads.is_empty() {
            return Self::inline(work(0, 1));
        }
        let works = (0..threads.len()).map(|worker| work(worker, threads.len())).collect();
        let mut threads = threads.into_iter();
        Self::start_with(works, QUEUED_BATCHES, |worker| {
            let thread = threads.next().expect("there is a thread for each");
            thread.begin(worker);
        })
    }
}

impl<W: Work, C: Channels> Pool<W, C> {
    /// Puts a worker into the caller's thread.
    pub(super) fn inline(work: W) -> Self {
        Self::Inline { work: Box::new(work), answers: VecDeque::new(), emptied: Vec::new() }
    }

    /// Puts a worker into a thread for each `work`. `spawn` starts a thread that calls
    /// [`Worker::serve`].
    pub(super) fn start_with(
        works: Vec<W>,
        queued: usize,
        mut spawn: impl FnMut(Worker<W, C>),
    ) -> Self {
        // What comes back is bounded by the tasks under way and by the answers that the caller
        // lets be outstanding.
        let (answer, answers) = C::unbounded();
        let (empty, emptied) = C::unbounded();
        let tasks = works.into_iter().map(|work| {
            let (task, tasks) = C::bounded(queued);
            spawn(Worker { work, tasks, answers: answer.clone(), emptied: empty.clone() });
            task
        });
        Self::Threads { tasks: tasks.collect(), answers, emptied }
    }

    /// Returns the number of workers.
    pub(crate) fn workers(&self) -> usize {
        match self {
            Self::Inline { .. } => 1,
            Self::Threads { tasks, .. } => tasks.len(),
        }
    }

    /// Returns an empty batch, a used one if there is one.
    pub(crate) fn fresh(&mut self) -> W::Batch {
        match self {
            Self::Inline { emptied, .. } => emptied.pop(),
            Self::Threads { emptied, .. } => C::try_receive(emptied),
        }
        .unwrap_or_default()
    }

    /// Pushes a task to a worker.
    pub(crate) fn push(&mut self, worker: usize, task: W::Task) -> Result<(), WorkerPanicked> {
        match self {
            Self::Inline { work, answers, emptied } => {
                match catch_panic(|| work.work(task))? {
                    Reply::Answer(answer) => answers.push_back(answer),
                    Reply::Emptied(batch) => emptied.push(batch),
                }
                Ok(())
            }
            Self::Threads { tasks, answers, .. } => {
                if C::send(&tasks[worker], task) {
                    return Ok(());
                }
                // A worker that panicked says so in its last answer.
                let mut last = std::iter::from_fn(|| C::try_receive(answers));
                Err(last.find_map(Result::err).unwrap_or_else(WorkerPanicked::silent))
            }
        }
    }

    /// Returns the next answer; waits for it if `wait`, otherwise `None` if none has come.
    pub(crate) fn answer(&mut self, wait: bool) -> Result<Option<W::Answer>, WorkerPanicked> {
        match self {
            Self::Inline { answers, .. } => Ok(answers.pop_front()),
            Self::Threads { answers, .. } if wait => {
                C::receive(answers).ok_or_else(WorkerPanicked::silent)?.map(Some)
            }
            Self::Threads { answers, .. } => C::try_receive(answers).transpose(),
        }
    }
}

/// A worker, for its thread.
pub(crate) struct Worker<W: Work, C: Channels = Crossbeam> {
    work: W,
    tasks: C::Receiver<W::Task>,
    answers: C::Sender<Result<W::Answer, WorkerPanicked>>,
    emptied: C::Sender<W::Batch>,
}

impl<W: Work, C: Channels> Worker<W, C> {
    /// Does tasks until there are no more. If the work panics, that is the last answer: the caller
    /// would wait forever otherwise, since the other workers keep the channel open.
    pub(crate) fn serve(mut self) {
        while let Some(task) = C::receive(&self.tasks) {
            // A closed channel on the other side means that the run was aborted.
            let goes_on = match catch_panic(|| self.work.work(task)) {
                Ok(Reply::Answer(answer)) => C::send(&self.answers, Ok(answer)),
                Ok(Reply::Emptied(batch)) => C::send(&self.emptied, batch),
                Err(panicked) => {
                    C::send(&self.answers, Err(panicked));
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }
}
