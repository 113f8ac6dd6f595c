//! The protocols between threads, model-checked: the same channels with the same bounds' kinds, the same
//! order of sends and receives as in `src/pipeline/workers.rs` (tasks and answers) and
//! `src/pipeline/feed.rs` (batches and their return), run under thousands of schedules by shuttle, which
//! takes a state in which nobody can go on for a failure.
//!
//! This is a model and not the code itself: shuttle's channels stand where crossbeam's do. Bounds are
//! small, so that queues are full often.

use shuttle::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use shuttle::thread;

const SHARDS: usize = 3;
const WORKERS: usize = 2;
const QUEUED: usize = 1;
const MAX_OUTSTANDING: usize = 2;

enum Task {
    Add { shard: usize, elements: Vec<u32> },
    Close { shard: usize, closing: usize },
}

/// What went wrong in a worker.
#[derive(Debug)]
struct Gone;

struct Answer {
    closing: usize,
    shard: usize,
    sum: u32,
}

/// `serve` of `workers.rs`; fails at the element 13.
fn serve(tasks: &Receiver<Task>, answer: &Sender<Result<Answer, Gone>>, empty: &Sender<Vec<u32>>) {
    let mut sums = [0; SHARDS];
    for task in tasks {
        let told = match task {
            Task::Add {
                shard,
                mut elements,
            } => {
                if elements.contains(&13) {
                    let _ = answer.send(Err(Gone));
                    false
                } else {
                    sums[shard] += elements.iter().sum::<u32>();
                    elements.clear();
                    empty.send(elements).is_ok()
                }
            }
            Task::Close { shard, closing } => {
                let sum = std::mem::take(&mut sums[shard]);
                answer
                    .send(Ok(Answer {
                        closing,
                        shard,
                        sum,
                    }))
                    .is_ok()
            }
        };
        if !told {
            return;
        }
    }
}

/// `decode` of `feed.rs`.
fn decode(batches: Vec<Vec<u32>>, full: &SyncSender<Vec<u32>>, emptied: &Receiver<Vec<u32>>) {
    for batch in batches {
        let mut out = emptied.try_recv().unwrap_or_default();
        out.extend(batch);
        if full.send(out).is_err() {
            return;
        }
    }
}

/// The collector: closings that lack answers.
#[derive(Default)]
struct Collector {
    waiting: std::collections::BTreeMap<usize, Vec<Option<u32>>>,
    done: Vec<u32>,
}

impl Collector {
    fn take(&mut self, answer: &Answer) {
        let tallies = self.waiting.get_mut(&answer.closing).unwrap();
        assert!(
            tallies[answer.shard].replace(answer.sum).is_none(),
            "one answer a shard"
        );
        while let Some(first) = self.waiting.first_entry() {
            let Some(sums) = first.get().iter().copied().collect::<Option<Vec<u32>>>() else {
                return;
            };
            first.remove();
            self.done.push(sums.iter().sum());
        }
    }

    /// `collect` of `workers.rs`.
    fn collect(
        &mut self,
        answers: &Receiver<Result<Answer, Gone>>,
        outstanding: usize,
    ) -> Result<(), Gone> {
        loop {
            let answer = if self.waiting.len() >= outstanding {
                answers.recv().map_err(|_| Gone)??
            } else {
                match answers.try_recv() {
                    Ok(answer) => answer?,
                    Err(_) => return Ok(()),
                }
            };
            self.take(&answer);
        }
    }
}

/// A run over batches, each of which is a slice; the sums of the slices. With `give_up` the run is given
/// up after so many slices.
fn run(batches: Vec<Vec<u32>>, give_up: Option<usize>) -> Result<Vec<u32>, Gone> {
    let (full, from_input) = sync_channel(QUEUED);
    let (to_input, emptied) = channel();
    let mut threads = vec![thread::spawn(move || decode(batches, &full, &emptied))];
    let (answer, answers) = channel();
    let (empty, recycled) = channel();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let (task, tasks) = sync_channel(QUEUED);
        let (answer, empty) = (answer.clone(), empty.clone());
        threads.push(thread::spawn(move || serve(&tasks, &answer, &empty)));
        workers.push(task);
    }
    drop((answer, empty));
    let sequencer = move || {
        let mut collector = Collector::default();
        let mut closing = 0;
        while let Ok(mut batch) = from_input.recv() {
            for (number, element) in batch.drain(..).enumerate() {
                let mut elements: Vec<u32> = recycled.try_recv().unwrap_or_default();
                elements.push(element);
                let shard = number % SHARDS;
                workers[shard % WORKERS]
                    .send(Task::Add { shard, elements })
                    .map_err(|_| Gone)?;
            }
            // Nobody may be there to take it back.
            let _ = to_input.send(batch);
            collector.waiting.insert(closing, vec![None; SHARDS]);
            for shard in 0..SHARDS {
                workers[shard % WORKERS]
                    .send(Task::Close { shard, closing })
                    .map_err(|_| Gone)?;
            }
            collector.collect(&answers, MAX_OUTSTANDING)?;
            closing += 1;
            if give_up == Some(closing) {
                return Ok(collector.done);
            }
        }
        collector.collect(&answers, 1)?;
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
    (0..5)
        .map(|slice| (0..4).map(|i| 100 * slice + i).collect())
        .collect()
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
            batches[at].push(13);
            assert!(run(batches, None).is_err());
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
