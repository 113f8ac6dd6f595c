//! The protocols between threads under thousands of schedules by shuttle, which takes a state in
//! which nobody can go on for a failure. This is the code of every run, on shuttle's channels.
//! Their bounds are small, so that queues are full often.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::channels::{Channels, Next};
use super::monitor::Monitors;
use super::ordered::{OrderedWorkers, serve};
use super::pipe::pipe;
use super::pool::{Pool, Reply, Work};
use crate::guard::WorkerPanicked;
use shuttle::sync::mpsc::{
    Receiver, RecvError, SendError, Sender, SyncSender, channel, sync_channel,
};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{self, JoinHandle};
use std::collections::BTreeMap;
use std::time::Duration;

const SHARDS: usize = 3;
const WORKERS: usize = 2;
const QUEUED: usize = 1;
const MAX_OUTSTANDING: usize = 2;

/// At this element the work panics.
const TRAP: u32 = 13;

/// Shuttle's channels.
enum Shuttle {}

enum Ends<T> {
    Bounded(SyncSender<T>),
    Unbounded(Sender<T>),
}

impl<T> Clone for Ends<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Bounded(sender) => Self::Bounded(sender.clone()),
            Self::Unbounded(sender) => Self::Unbounded(sender.clone()),
        }
    }
}

impl Channels for Shuttle {
    type Sender<T: Send> = Ends<T>;
    type Receiver<T: Send> = Receiver<T>;

    fn bounded<T: Send>(room: usize) -> (Ends<T>, Receiver<T>) {
        let (sender, receiver) = sync_channel(room);
        (Ends::Bounded(sender), receiver)
    }

    fn unbounded<T: Send>() -> (Ends<T>, Receiver<T>) {
        let (sender, receiver) = channel();
        (Ends::Unbounded(sender), receiver)
    }

    fn send<T: Send>(to: &Ends<T>, item: T) -> bool {
        let sent: Result<(), SendError<T>> = match to {
            Ends::Bounded(sender) => sender.send(item),
            Ends::Unbounded(sender) => sender.send(item),
        };
        sent.is_ok()
    }

    fn receive<T: Send>(from: &Receiver<T>) -> Option<T> {
        let received: Result<T, RecvError> = from.recv();
        received.ok()
    }

    /// The model knows no time: nothing comes too late.
    fn receive_within<T: Send>(from: &Receiver<T>, _: Duration) -> Option<Next<T>> {
        Some(from.recv().map_or(Next::End, Next::Item))
    }

    fn try_receive<T: Send>(from: &Receiver<T>) -> Option<T> {
        from.try_recv().ok()
    }
}

/// Shuttle's lock and condition.
struct ShuttleMonitor<S>(Mutex<S>, Condvar);

impl Monitors for Shuttle {
    type Monitor<S: Send> = ShuttleMonitor<S>;

    fn monitor<S: Send>(state: S) -> ShuttleMonitor<S> {
        ShuttleMonitor(Mutex::new(state), Condvar::new())
    }

    fn update<S: Send, R>(monitor: &ShuttleMonitor<S>, change: impl FnOnce(&mut S) -> R) -> R {
        let result = change(&mut monitor.0.lock().unwrap());
        monitor.1.notify_all();
        result
    }

    fn wait<S: Send, R>(
        monitor: &ShuttleMonitor<S>,
        mut take: impl FnMut(&mut S) -> Option<R>,
    ) -> R {
        let mut state = monitor.0.lock().unwrap();
        loop {
            if let Some(result) = take(&mut state) {
                return result;
            }
            state = monitor.1.wait(state).unwrap();
        }
    }
}

/// Sums of the elements of each shard.
#[derive(Default)]
struct Sums([u32; SHARDS]);

enum Task {
    Add { shard: usize, elements: Vec<u32> },
    Close { shard: usize, closing: usize },
}

struct Answer {
    closing: usize,
    shard: usize,
    sum: u32,
}

impl Work for Sums {
    type Task = Task;
    type Answer = Answer;
    type Batch = Vec<u32>;

    fn work(&mut self, task: Task) -> Reply<Answer, Vec<u32>> {
        match task {
            Task::Add { shard, mut elements } => {
                assert!(!elements.contains(&TRAP), "the trap");
                self.0[shard] += elements.drain(..).sum::<u32>();
                Reply::Emptied(elements)
            }
            Task::Close { shard, closing } => {
                Reply::Answer(Answer { closing, shard, sum: std::mem::take(&mut self.0[shard]) })
            }
        }
    }
}

/// Closings that lack answers, and the sums of the others.
#[derive(Default)]
struct Collector {
    waiting: BTreeMap<usize, Vec<Option<u32>>>,
    done: Vec<u32>,
}

impl Collector {
    fn take(&mut self, answer: &Answer) {
        let sums = self.waiting.get_mut(&answer.closing).unwrap();
        let before = sums[answer.shard].replace(answer.sum);
        assert!(before.is_none(), "one answer a shard");
        while let Some(first) = self.waiting.first_entry() {
            let Some(sums) = first.get().iter().copied().collect::<Option<Vec<u32>>>() else {
                return;
            };
            first.remove();
            self.done.push(sums.iter().sum());
        }
    }

    fn collect(
        &mut self,
        pool: &mut Pool<Sums, Shuttle>,
        outstanding: usize,
    ) -> Result<(), WorkerPanicked> {
        while let Some(answer) = pool.answer(self.waiting.len() >= outstanding)? {
            self.take(&answer);
        }
        Ok(())
    }
}

/// A run over batches, each of which is a slice, as the sequencer does it; the sums of the slices.
/// With `give_up` the run is given up after this many slices.
fn run(batches: Vec<Vec<u32>>, give_up: Option<usize>) -> Result<Vec<u32>, WorkerPanicked> {
    let (sender, mut receiver) = pipe::<Vec<u32>, WorkerPanicked, Shuttle>(QUEUED);
    let decoder = thread::spawn(move || {
        let mut out = Vec::new();
        for batch in batches {
            out.extend(batch);
            if !sender.send(&mut out) {
                return;
            }
        }
    });
    let mut threads: Vec<JoinHandle<()>> = vec![decoder];
    let works = (0..WORKERS).map(|_| Sums::default()).collect();
    let mut pool = Pool::<Sums, Shuttle>::start_with(works, QUEUED, |worker| {
        threads.push(thread::spawn(|| worker.serve()));
    });
    let mut sequencer = move || {
        let mut collector = Collector::default();
        let mut used = Vec::new();
        let mut closing = 0;
        while let Some(batch) = receiver.receive(std::mem::take(&mut used)) {
            used = batch?;
            for (number, element) in used.drain(..).enumerate() {
                let shard = number % SHARDS;
                let mut elements = pool.fresh();
                elements.push(element);
                pool.push(shard % WORKERS, Task::Add { shard, elements })?;
            }
            collector.waiting.insert(closing, vec![None; SHARDS]);
            for shard in 0..SHARDS {
                pool.push(shard % WORKERS, Task::Close { shard, closing })?;
            }
            collector.collect(&mut pool, MAX_OUTSTANDING)?;
            closing += 1;
            if give_up == Some(closing) {
                return Ok(collector.done);
            }
        }
        collector.collect(&mut pool, 1)?;
        Ok(collector.done)
    };
    let result = sequencer();
    // With its ends of the channels.
    drop(sequencer);
    for thread in threads {
        thread.join().unwrap();
    }
    result
}

fn batches() -> Vec<Vec<u32>> {
    (0..5).map(|slice| (0..4).map(|i| 100 * slice + i).collect()).collect()
}

fn check(model: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(model, 3000);
    shuttle::check_pct(model, 2000, 3);
}

#[test]
fn every_schedule_gives_all_slices_in_order() {
    check(|| {
        let expected: Vec<u32> = batches().iter().map(|slice| slice.iter().sum()).collect();
        assert_eq!(run(batches(), None).unwrap(), expected);
    });
}

#[test]
fn a_worker_that_fails_ends_the_run_in_every_schedule() {
    for at in [0, 2, 4] {
        check(move || {
            let mut batches = batches();
            batches[at].push(TRAP);
            let WorkerPanicked(reason) = run(batches, None).unwrap_err();
            assert_eq!(reason, "the trap");
        });
    }
}

#[test]
fn a_run_that_is_given_up_leaves_no_thread_behind() {
    check(|| {
        let done = run(batches(), Some(2)).unwrap();
        assert!(done.len() <= 2);
    });
}

/// Squares of 0 to 5 by workers that map tasks in order, with a bound on those under way. The
/// caller takes results until one is an error, or `give_up` of them; `help` lets it do tasks, too.
fn squares(give_up: usize, trap: u32, help: bool) -> Result<Vec<u32>, WorkerPanicked> {
    let mut workers = OrderedWorkers::<u32, u32, Shuttle>::new(WORKERS, MAX_OUTSTANDING);
    let square = move |number: u32| {
        assert_ne!(number, trap, "the trap");
        number * number
    };
    let threads: Vec<JoinHandle<()>> = (0..WORKERS)
        .map(|_| {
            let shared = workers.shared();
            thread::spawn(move || serve::<_, _, _, Shuttle>(square, &shared))
        })
        .collect();
    let mut squares = Vec::new();
    let mut map = || {
        for number in 0..6 {
            squares.extend(workers.push(number).transpose()?);
            if help && let Some((place, task)) = workers.claim() {
                workers.complete(place, square(task));
            }
            if squares.len() == give_up {
                return Ok(());
            }
        }
        workers.close();
        squares.extend(workers.by_ref().collect::<Result<Vec<_>, _>>()?);
        Ok(())
    };
    let mapped = map();
    drop(workers);
    for thread in threads {
        thread.join().unwrap();
    }
    mapped.map(|()| squares)
}

#[test]
fn every_schedule_gives_all_results_in_the_order_of_their_tasks() {
    check(|| {
        let expected: Vec<u32> = (0..6).map(|number| number * number).collect();
        for help in [false, true] {
            assert_eq!(squares(usize::MAX, TRAP, help).unwrap(), expected);
        }
    });
}

#[test]
fn a_task_that_panics_is_an_error_in_every_schedule() {
    check(|| {
        let WorkerPanicked(reason) = squares(usize::MAX, 4, false).unwrap_err();
        assert!(reason.contains("the trap"));
    });
}

#[test]
fn a_map_that_is_given_up_leaves_no_thread_behind() {
    check(|| assert_eq!(squares(1, TRAP, false).unwrap(), [0]));
}
