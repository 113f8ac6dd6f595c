//! An ordered parallel map: workers take tasks from one queue, and results come back in the order
//! of the tasks. Tasks and results under way are bounded.

use super::monitor::{Monitors, StdMonitors};
use super::spawn::{IdleThread, spawn, spawn_up_to};
use crate::guard::{WorkerPanicked, catch_panic};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread::Scope;

/// The function of one worker, with its state.
pub trait MapWorker<T>: Send {
    /// Result of a task.
    type Result: Send;

    /// Does a task.
    fn map(&mut self, task: T) -> Self::Result;

    /// Does some other work while no task is queued; returns whether there was any.
    fn assist(&mut self) -> bool {
        false
    }
}

impl<T, R: Send, F: FnMut(T) -> R + Send> MapWorker<T> for F {
    type Result = R;

    fn map(&mut self, task: T) -> R {
        self(task)
    }
}

/// Workers in threads, from the side of the thread that pushes tasks and takes results.
///
/// Dropping it discards the queued tasks; each worker ends after the task that it is doing.
pub struct OrderedWorkers<T: Send, R: Send, M: Monitors = StdMonitors> {
    shared: Arc<M::Monitor<State<T, R>>>,
    workers: usize,
    /// Tasks under way, and how many there may be.
    pending: usize,
    limit: usize,
}

type TaskResult<R> = Result<R, WorkerPanicked>;

/// State that the threads share.
pub(super) struct State<T, R> {
    tasks: VecDeque<(u64, T)>,
    /// A place for each task under way, from number `first` on.
    results: VecDeque<Option<TaskResult<R>>>,
    first: u64,
    /// No more tasks will come.
    closed: bool,
}

/// A worker's share of the state.
type WorkerStart<W, T, R> = (W, Arc<<StdMonitors as Monitors>::Monitor<State<T, R>>>);

impl<T: Send, R: Send> OrderedWorkers<T, R> {
    /// Starts up to `threads` threads with a worker each, which may take `bytes` of memory.
    /// `a_worker` tasks may be under way for each of them. Returns `None` if the system refuses
    /// every thread.
    pub fn start<W>(
        name: &str,
        threads: usize,
        bytes: u64,
        a_worker: usize,
        worker: impl FnMut() -> W,
    ) -> Option<Self>
    where
        W: MapWorker<T, Result = R> + 'static,
        T: 'static,
        R: 'static,
    {
        let run =
            |(worker, shared): WorkerStart<W, T, R>| serve::<_, _, _, StdMonitors>(worker, &shared);
        let threads = (0..threads).map_while(|_| spawn(name, bytes, run)).collect();
        Self::begin(threads, a_worker, worker)
    }

    /// Like [`start`](Self::start); the scope joins the threads.
    pub fn start_scoped<'scope, W>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        threads: usize,
        bytes: u64,
        a_worker: usize,
        worker: impl FnMut() -> W,
    ) -> Option<Self>
    where
        W: MapWorker<T, Result = R> + 'scope,
        T: 'scope,
        R: 'scope,
    {
        let run =
            |(worker, shared): WorkerStart<W, T, R>| serve::<_, _, _, StdMonitors>(worker, &shared);
        Self::begin(spawn_up_to(scope, name, threads, bytes, run), a_worker, worker)
    }

    fn begin<W, H>(
        threads: Vec<IdleThread<WorkerStart<W, T, R>, H>>,
        a_worker: usize,
        mut worker: impl FnMut() -> W,
    ) -> Option<Self> {
        if threads.is_empty() {
            return None;
        }
        let workers = Self::new(threads.len(), a_worker);
        for thread in threads {
            thread.begin((worker(), workers.shared()));
        }
        Some(workers)
    }
}

impl<T: Send, R: Send, M: Monitors> OrderedWorkers<T, R, M> {
    /// For `workers` threads, each of which calls [`serve`].
    pub(super) fn new(workers: usize, a_worker: usize) -> Self {
        let state =
            State { tasks: VecDeque::new(), results: VecDeque::new(), first: 0, closed: false };
        let shared = Arc::new(M::monitor(state));
        Self { shared, workers, pending: 0, limit: workers * a_worker }
    }

    pub(super) fn shared(&self) -> Arc<M::Monitor<State<T, R>>> {
        Arc::clone(&self.shared)
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Adds a task. If as many as allowed are under way, waits for the next result and returns it.
    pub fn push(&mut self, task: T) -> Option<TaskResult<R>> {
        let result = if self.pending >= self.limit { self.next() } else { None };
        self.pending += 1;
        M::update(&self.shared, |state| {
            let number = state.first + state.results.len() as u64;
            state.results.push_back(None);
            state.tasks.push_back((number, task));
        });
        result
    }

    /// Returns the next result if it is there already.
    pub fn try_next(&mut self) -> Option<TaskResult<R>> {
        let result = M::wait(&self.shared, |state| Some(state.take_result()))?;
        self.pending -= 1;
        Some(result)
    }

    /// Takes a task that no worker has begun, for the caller to do and to
    /// [`complete`](Self::complete).
    pub fn claim(&self) -> Option<(u64, T)> {
        M::wait(&self.shared, |state| Some(state.tasks.pop_front()))
    }

    /// Stores the result of a claimed task.
    pub fn complete(&self, number: u64, result: R) {
        M::update(&self.shared, |state| state.store(number, Ok(result)));
    }

    /// No more tasks will come: the workers end once they have done those that are queued.
    pub fn close(&self) {
        M::update(&self.shared, |state| state.closed = true);
    }
}

/// Waits for the results of the tasks under way, in order.
impl<T: Send, R: Send, M: Monitors> Iterator for OrderedWorkers<T, R, M> {
    type Item = TaskResult<R>;

    fn next(&mut self) -> Option<TaskResult<R>> {
        self.pending = self.pending.checked_sub(1)?;
        Some(M::wait(&self.shared, State::take_result))
    }
}

impl<T: Send, R: Send, M: Monitors> Drop for OrderedWorkers<T, R, M> {
    fn drop(&mut self) {
        let tasks = M::update(&self.shared, |state| {
            state.closed = true;
            std::mem::take(&mut state.tasks)
        });
        drop(tasks);
    }
}

impl<T: Send, R: Send, M: Monitors> fmt::Debug for OrderedWorkers<T, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedWorkers").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl<T, R> State<T, R> {
    fn take_result(&mut self) -> Option<TaskResult<R>> {
        let result = self.results.front_mut()?.take()?;
        self.results.pop_front();
        self.first += 1;
        Some(result)
    }

    fn store(&mut self, number: u64, result: TaskResult<R>) {
        // Every task under way has a place until its result is taken.
        self.results[(number - self.first) as usize] = Some(result);
    }
}

/// Does tasks until there are no more. If one panics, so ends every later task of this worker: its
/// state is not to be used any more, and nobody may wait for a result in vain.
pub(super) fn serve<T, R, W, M>(mut worker: W, shared: &M::Monitor<State<T, R>>)
where
    T: Send,
    R: Send,
    W: MapWorker<T, Result = R>,
    M: Monitors,
{
    let mut panicked = None;
    while let Some((number, task)) = next_task::<_, _, _, M>(&mut worker, shared) {
        let result = match &panicked {
            None => catch_panic(|| worker.map(task)),
            Some(panicked) => Err(WorkerPanicked::clone(panicked)),
        };
        if let Err(reason) = &result {
            panicked = Some(reason.clone());
        }
        M::update(shared, |state| state.store(number, result));
    }
}

/// Returns the next task; while none is queued, the worker assists, or waits.
fn next_task<T, R, W, M>(worker: &mut W, shared: &M::Monitor<State<T, R>>) -> Option<(u64, T)>
where
    T: Send,
    R: Send,
    W: MapWorker<T, Result = R>,
    M: Monitors,
{
    loop {
        let (task, closed) = M::wait(shared, |state| Some((state.tasks.pop_front(), state.closed)));
        if task.is_some() {
            return task;
        }
        // The owner of that work reports its panics.
        let assisted = catch_panic(|| worker.assist()).unwrap_or(false);
        if closed && !assisted {
            return None;
        }
        if !assisted {
            M::wait(shared, |state| (state.closed || !state.tasks.is_empty()).then_some(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn results_come_in_order_and_the_state_of_a_worker_stays() {
        for threads in 1..5 {
            let worker = || {
                let mut done = 0;
                move |number: u64| {
                    done += 1;
                    (number, done)
                }
            };
            let mut workers = OrderedWorkers::start("test", threads, 0, 2, worker).unwrap();
            let mut results = Vec::new();
            for number in 0..1000 {
                results.extend(workers.push(number).map(Result::unwrap));
            }
            results.extend(workers.by_ref().map(Result::unwrap));
            assert!(results.iter().map(|&(number, _)| number).eq(0..1000));
            assert!(results.iter().any(|&(_, done)| done as usize >= 1000 / threads));
            assert!(workers.next().is_none());
        }
    }

    #[test]
    fn no_thread_is_started_without_room_for_it() {
        let workers = OrderedWorkers::<u8, u8>::start("greedy", 3, 1 << 60, 1, || |task| task);
        assert!(workers.is_none());
    }

    /// Counts the workers that are left.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn workers_end_when_nobody_pushes_tasks() {
        let left = Arc::new(AtomicUsize::new(3));
        let worker = || {
            let counted = Counted(Arc::clone(&left));
            move |task: u8| (counted.0.load(Ordering::SeqCst), task).1
        };
        drop(OrderedWorkers::start("test", 3, 0, 2, worker).unwrap());
        let since = Instant::now();
        while left.load(Ordering::SeqCst) > 0 {
            assert!(since.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
