//! A pool of workers: tasks go out through bounded channels, answers and emptied batches come back.
//!
//! A worker does its tasks in the order in which they were given. It never waits to give something
//! back, so whoever gives tasks and the workers cannot wait for each other in a circle.

use super::channels::{Channels, Crossbeam};
use super::spawn::IdleThread;
use crate::guard::{WorkerGone, guarded};
use std::collections::VecDeque;

/// What a worker does, with its state.
pub(crate) trait Work {
    /// What it is asked to do.
    type Task: Send;

    /// What it answers to some tasks.
    type Answer: Send;

    /// What tasks bring along and what is filled again afterwards.
    type Batch: Default + Send;

    /// Does a task.
    fn work(&mut self, task: Self::Task) -> Reply<Self::Answer, Self::Batch>;
}

/// What comes back of a task.
pub(crate) enum Reply<A, B> {
    /// An answer.
    Answer(A),
    /// A batch that is empty now.
    Emptied(B),
    /// Nothing.
    Nothing,
}

/// Workers in threads, or one in the thread that gives the tasks.
pub(crate) enum Pool<W: Work, C: Channels = Crossbeam> {
    Here {
        work: Box<W>,
        answers: VecDeque<W::Answer>,
        emptied: Vec<W::Batch>,
    },
    Threads {
        tasks: Vec<C::Sender<W::Task>>,
        answers: C::Receiver<Result<W::Answer, WorkerGone>>,
        emptied: C::Receiver<W::Batch>,
    },
}

impl<W: Work, C: Channels> Pool<W, C> {
    /// One worker in this thread.
    pub(crate) fn here(work: W) -> Self {
        Self::Here { work: Box::new(work), answers: VecDeque::new(), emptied: Vec::new() }
    }

    /// A worker for each `work`, with room for `queued` tasks, in a thread that calls
    /// [`Worker::serve`].
    pub(crate) fn start<H>(
        works: Vec<W>,
        queued: usize,
        threads: Vec<IdleThread<Worker<W, C>, H>>,
    ) -> Self {
        let mut threads = threads.into_iter();
        Self::start_with(works, queued, |worker| {
            let thread = threads.next().expect("there is a thread for each");
            thread.begin(worker);
        })
    }

    /// The same with workers that `spawn` gives a thread.
    pub(super) fn start_with(
        works: Vec<W>,
        queued: usize,
        mut spawn: impl FnMut(Worker<W, C>),
    ) -> Self {
        // What comes back is bounded by the tasks under way and by the answers that whoever gives
        // tasks lets be outstanding.
        let (answer, answers) = C::unbounded();
        let (empty, emptied) = C::unbounded();
        let tasks = works.into_iter().map(|work| {
            let (task, tasks) = C::bounded(queued);
            spawn(Worker { work, tasks, answers: answer.clone(), emptied: empty.clone() });
            task
        });
        Self::Threads { tasks: tasks.collect(), answers, emptied }
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        match self {
            Self::Here { .. } => 1,
            Self::Threads { tasks, .. } => tasks.len(),
        }
    }

    /// An empty batch, used before if there is one.
    pub(crate) fn fresh(&mut self) -> W::Batch {
        match self {
            Self::Here { emptied, .. } => emptied.pop(),
            Self::Threads { emptied, .. } => C::try_receive(emptied),
        }
        .unwrap_or_default()
    }

    /// Gives a task to a worker.
    pub(crate) fn give(&mut self, worker: usize, task: W::Task) -> Result<(), WorkerGone> {
        match self {
            Self::Here { work, answers, emptied } => {
                match guarded(|| work.work(task))? {
                    Reply::Answer(answer) => answers.push_back(answer),
                    Reply::Emptied(batch) => emptied.push(batch),
                    Reply::Nothing => {}
                }
                Ok(())
            }
            Self::Threads { tasks, answers, .. } => {
                if C::send(&tasks[worker], task) {
                    return Ok(());
                }
                // A worker that panicked says so in its last answer.
                let mut last = std::iter::from_fn(|| C::try_receive(answers));
                Err(last.find_map(Result::err).unwrap_or_else(WorkerGone::silent))
            }
        }
    }

    /// Gives a task to every worker.
    pub(crate) fn give_all(&mut self, task: W::Task) -> Result<(), WorkerGone>
    where
        W::Task: Clone,
    {
        let last = self.workers() - 1;
        (0..last).try_for_each(|worker| self.give(worker, task.clone()))?;
        self.give(last, task)
    }

    /// The next answer that has come; waits for it if `wait`.
    pub(crate) fn answer(&mut self, wait: bool) -> Result<Option<W::Answer>, WorkerGone> {
        match self {
            Self::Here { answers, .. } => Ok(answers.pop_front()),
            Self::Threads { answers, .. } if wait => {
                C::receive(answers).ok_or_else(WorkerGone::silent)?.map(Some)
            }
            Self::Threads { answers, .. } => C::try_receive(answers).transpose(),
        }
    }
}

/// A worker for a thread of its own.
pub(crate) struct Worker<W: Work, C: Channels = Crossbeam> {
    work: W,
    tasks: C::Receiver<W::Task>,
    answers: C::Sender<Result<W::Answer, WorkerGone>>,
    emptied: C::Sender<W::Batch>,
}

impl<W: Work, C: Channels> Worker<W, C> {
    /// Does tasks until there are no more. If the work panics, that is the last answer: whoever
    /// gives the tasks would wait forever otherwise, since the other workers keep the channel open.
    pub(crate) fn serve(mut self) {
        while let Some(task) = C::receive(&self.tasks) {
            // A closed channel on the other side means that the run was given up: nothing is left
            // to do.
            let goes_on = match guarded(|| self.work.work(task)) {
                Ok(Reply::Answer(answer)) => C::send(&self.answers, Ok(answer)),
                Ok(Reply::Emptied(batch)) => C::send(&self.emptied, batch),
                Ok(Reply::Nothing) => true,
                Err(gone) => {
                    C::send(&self.answers, Err(gone));
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }
}
