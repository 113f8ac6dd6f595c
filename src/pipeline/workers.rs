//! The shards' threads: elements go out in batches through bounded channels, tallies come back.
//!
//! Shard `s` is served by worker `s mod workers`, so each shard sees its elements in trace order
//! whatever the number of threads, and answers the same.

use super::collector::Collector;
use super::results::Totals;
use super::sequencer::{Closing, Stage, Stop};
use super::shard::{Shard, ShardSpec, ShardTally};
use crate::elements::ElementColumns;
use crate::filters::MembershipFilter;
use crate::guard::{WorkerGone, guarded};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::io;
use std::thread::Scope;

/// Batches under way to one worker: enough to bridge a moment in which it is not scheduled, few
/// enough to stay in its cache.
const QUEUED_BATCHES: usize = 8;

/// Closings whose tallies may be outstanding before the sequencer waits for them.
const MAX_OUTSTANDING: usize = 64;

/// What a worker is asked to do.
pub(super) enum Task {
    Add {
        shard: usize,
        slot: usize,
        elements: ElementColumns,
    },
    Close {
        shard: usize,
        slot: usize,
        closing: u64,
    },
}

/// A shard's part of a closed slice.
pub(super) struct Answer {
    closing: u64,
    shard: usize,
    tally: ShardTally,
}

/// All shards, in this thread or behind channels.
pub(super) enum Shards {
    Here(Vec<Shard>),
    Threads {
        workers: Vec<Sender<Task>>,
        answers: Receiver<Result<Answer, WorkerGone>>,
        emptied: Receiver<ElementColumns>,
    },
}

/// The stage of a count: the shards, and the collector of their tallies.
pub(super) struct Counting<'a> {
    pub(super) shards: Shards,
    pub(super) collector: Collector<'a>,
}

impl Stage for Counting<'_> {
    const LOOKS_AHEAD: bool = false;

    /// The totals of all slices, and the filters that are kept.
    type Outcome = (Totals, Vec<Box<dyn MembershipFilter>>);

    fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), Stop> {
        Ok(self.shards.add(shard, slot, elements)?)
    }

    fn close(&mut self, closing: Closing) -> Result<(), Stop> {
        self.collector.announce(closing.number, closing.slice);
        self.shards
            .close(closing.slot, closing.number, &mut self.collector)?
            .map_err(Stop::Sink)
    }

    fn finish(mut self) -> Result<Self::Outcome, Stop> {
        self.shards
            .collect(&mut self.collector, 1)?
            .map_err(Stop::Sink)?;
        self.collector.finish().map_err(Stop::Sink)
    }
}

impl Shards {
    /// `workers` threads for `shards` shards; with 0 they are served by the caller.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        spec: &ShardSpec,
        shards: usize,
        workers: usize,
    ) -> Self {
        let workers = workers.min(shards);
        if workers == 0 {
            return Self::Here((0..shards).map(|_| Shard::new(spec.clone())).collect());
        }
        // Bounded by the batches in the task queues and by MAX_OUTSTANDING; a worker must never wait
        // to give something back while the sequencer waits for it.
        let (answer, answers) = unbounded();
        let (empty, emptied) = unbounded();
        let workers = (0..workers)
            .map(|worker| {
                let (task, tasks) = bounded(QUEUED_BATCHES);
                let own = (worker..shards).step_by(workers).count();
                let shards = (0..own).map(|_| Shard::new(spec.clone())).collect();
                let (answer, empty) = (answer.clone(), empty.clone());
                scope.spawn(move || serve(shards, workers, &tasks, &answer, &empty));
                task
            })
            .collect();
        Self::Threads {
            workers,
            answers,
            emptied,
        }
    }

    /// Gives the elements to a shard and leaves an empty batch in their place.
    pub(super) fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), WorkerGone> {
        match self {
            Self::Here(shards) => {
                guarded(|| shards[shard].add(slot, elements))?;
                elements.clear();
                Ok(())
            }
            Self::Threads {
                workers,
                emptied,
                answers,
            } => {
                let fresh = emptied.try_recv().unwrap_or_default();
                let task = Task::Add {
                    shard,
                    slot,
                    elements: std::mem::replace(elements, fresh),
                };
                workers[shard % workers.len()]
                    .send(task)
                    .map_err(|_| last_word(answers))
            }
        }
    }

    /// Asks all shards to close the slice in this slot; the collector gets the tallies.
    pub(super) fn close(
        &mut self,
        slot: usize,
        closing: u64,
        collector: &mut Collector<'_>,
    ) -> Result<io::Result<()>, WorkerGone> {
        match self {
            Self::Here(shards) => {
                for (shard, state) in shards.iter_mut().enumerate() {
                    let tally = guarded(|| state.close(slot))?;
                    if let Err(error) = collector.tally(closing, shard, tally) {
                        return Ok(Err(error));
                    }
                }
                Ok(Ok(()))
            }
            Self::Threads {
                workers, answers, ..
            } => {
                for shard in 0..collector.shards() {
                    let task = Task::Close {
                        shard,
                        slot,
                        closing,
                    };
                    workers[shard % workers.len()]
                        .send(task)
                        .map_err(|_| last_word(answers))?;
                }
                self.collect(collector, MAX_OUTSTANDING)
            }
        }
    }

    /// Takes the tallies that have come, and waits for more while `outstanding` or more closings
    /// lack some.
    pub(super) fn collect(
        &mut self,
        collector: &mut Collector<'_>,
        outstanding: usize,
    ) -> Result<io::Result<()>, WorkerGone> {
        let Self::Threads { answers, .. } = self else {
            return Ok(Ok(()));
        };
        loop {
            let answer = if collector.outstanding() >= outstanding.max(1) {
                answers.recv().map_err(|_| WorkerGone::silent())??
            } else {
                match answers.try_recv() {
                    Ok(answer) => answer?,
                    Err(_) => return Ok(Ok(())),
                }
            };
            if let Err(error) = collector.tally(answer.closing, answer.shard, answer.tally) {
                return Ok(Err(error));
            }
        }
    }
}

/// Why a worker hung up: it said so before.
fn last_word(answers: &Receiver<Result<Answer, WorkerGone>>) -> WorkerGone {
    answers
        .try_iter()
        .find_map(Result::err)
        .unwrap_or_else(WorkerGone::silent)
}

/// Serves until there are no more tasks. If the work panics, that is the last answer: the sequencer
/// would wait forever otherwise, since the other workers keep the channel open.
fn serve(
    mut shards: Vec<Shard>,
    workers: usize,
    tasks: &Receiver<Task>,
    answer: &Sender<Result<Answer, WorkerGone>>,
    empty: &Sender<ElementColumns>,
) {
    // A closed channel on the other side means that the run was given up: nothing is left to do.
    for task in tasks {
        let told = match task {
            Task::Add {
                shard,
                slot,
                mut elements,
            } => match guarded(|| shards[shard / workers].add(slot, &elements)) {
                Ok(()) => {
                    elements.clear();
                    empty.send(elements).is_ok()
                }
                Err(gone) => {
                    let _ = answer.send(Err(gone));
                    false
                }
            },
            Task::Close {
                shard,
                slot,
                closing,
            } => {
                let answered = guarded(|| shards[shard / workers].close(slot));
                let gone = answered.is_err();
                let answered = answered.map(|tally| Answer {
                    closing,
                    shard,
                    tally,
                });
                answer.send(answered).is_ok() && !gone
            }
        };
        if !told {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed")]
mod tests {
    use super::super::collector::ClosedSlice;
    use super::super::results::{SliceResult, SliceSink};
    use super::super::time_slice::{Align, SliceGrid};
    use super::*;
    use std::thread;

    struct Nowhere;

    impl SliceSink for Nowhere {
        fn slice(&mut self, _: &SliceResult) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_worker_that_panics_is_noticed_and_not_waited_for() {
        let spec = ShardSpec {
            combinations: Vec::new(),
            counter: None,
            exact_limit_bytes: Some(1 << 20),
            open_slices: 1,
            keep: false,
        };
        let gone = thread::scope(|scope| {
            let mut shards = Shards::start(scope, &spec, 2, 2);
            let mut sink = Nowhere;
            let grid = SliceGrid::new(Some(1), Align::Epoch, 0);
            let mut collector = Collector::new(&mut sink, 2, &spec.empty_tally(), grid);
            collector.announce(
                0,
                ClosedSlice {
                    index: 0,
                    start_ns: 0,
                    end_ns: 1,
                    packets: 1,
                    elements: 1,
                },
            );
            // There is no such slot, so that the first worker panics; the second goes on.
            let no_slot = 7;
            shards
                .add(0, no_slot, &mut ElementColumns::default())
                .and_then(|()| shards.close(0, 0, &mut collector).map(drop))
                .and_then(|()| shards.collect(&mut collector, 1).map(drop))
        });
        let WorkerGone(reason) = gone.unwrap_err();
        assert!(reason.contains("out of bounds"), "{reason}");
    }
}
