//! The stage of a count: shards, divided among workers, and the collector of their tallies.
//!
//! Shard `s` is served by worker `s mod workers`, so each shard sees its elements in trace order
//! for any number of threads, and answers the same.

use super::collector::Collector;
use super::rows::Rows;
use super::sequencer::{Closing, Recalled, Stage, StageError};
use super::shard::{Shard, ShardSpec, ShardTally};
use super::slice_sum::ClosedSlice;
use crate::elements::ElementColumns;
use crate::filters::MembershipFilter;
use crate::threads::{Pool, Reply, Work, Worker, spawn_up_to};
use std::thread::Scope;

/// Batches under way to one worker: enough to bridge a moment in which it is not scheduled, few
/// enough to stay in its cache.
const QUEUED_BATCHES: usize = 8;

/// Memory of a worker in addition to the filters of its shards: the batches under way to it, and the
/// tables of an exact count.
const WORKER_BYTES: u64 = 4 << 20;

/// Closings whose tallies may be outstanding before the sequencer waits for them.
const MAX_OUTSTANDING: usize = 64;

/// A task for one of a worker's shards.
pub(super) struct Task {
    /// Number of the shard among those of the worker.
    shard: usize,
    slot: usize,
    order: Order,
}

enum Order {
    Add(ElementColumns),
    /// Closes the slice, by the number of the shard among all and that of the closing.
    Close {
        number: usize,
        closing: u64,
        index: i64,
        /// Nothing came of it, and it has no slot.
        is_empty: bool,
    },
    Discard,
}

/// A shard's part of a closed slice.
pub(super) struct Answer {
    closing: u64,
    shard: usize,
    tally: ShardTally,
}

/// The shards of a worker.
pub(super) struct Shards(Vec<Shard>);

impl Work for Shards {
    type Task = Task;
    type Answer = Answer;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<Answer, ElementColumns> {
        let Task { shard, slot, order } = task;
        match order {
            Order::Add(mut elements) => {
                self.0[shard].add(slot, &elements);
                elements.clear();
                Reply::Emptied(elements)
            }
            Order::Close { number, closing, index, is_empty } => Reply::Answer(Answer {
                closing,
                shard: number,
                tally: if is_empty {
                    self.0[shard].pass(index)
                } else {
                    self.0[shard].close(slot, index)
                },
            }),
            Order::Discard => {
                self.0[shard].discard(slot);
                Reply::Emptied(ElementColumns::default())
            }
        }
    }
}

/// The stage of a count.
pub(super) struct CountStage<'a> {
    workers: Pool<Shards>,
    shards: usize,
    collector: Collector<'a>,
}

impl<'a> CountStage<'a> {
    /// `threads` workers, or as many as there are threads, for `shards` shards; with 0 they are
    /// served by the caller.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        spec: &ShardSpec,
        shards: usize,
        threads: usize,
        begun: Vec<Box<dyn MembershipFilter>>,
        collector: Collector<'a>,
    ) -> Self {
        let mut begun: Vec<Option<_>> = begun.into_iter().map(Some).collect();
        let mut shard = |number: usize| {
            let mut shard = Shard::new(spec.clone());
            if let Some(filter) = begun.get_mut(number).and_then(Option::take) {
                shard.begin_with(filter);
            }
            shard
        };
        let threads =
            spawn_up_to(scope, "shards", threads.min(shards), WORKER_BYTES, Worker::serve);
        let workers = if threads.is_empty() {
            Pool::inline(Shards((0..shards).map(shard).collect()))
        } else {
            let mut own = |worker: usize| {
                Shards((worker..shards).step_by(threads.len()).map(&mut shard).collect())
            };
            let works = (0..threads.len()).map(&mut own).collect();
            Pool::start(works, QUEUED_BATCHES, threads)
        };
        Self { workers, shards, collector }
    }

    fn give(&mut self, shard: usize, slot: usize, order: Order) -> Result<(), StageError> {
        let workers = self.workers.workers();
        let task = Task { shard: shard / workers, slot, order };
        Ok(self.workers.push(shard % workers, task)?)
    }

    /// Asks all shards for their tallies of a slice.
    fn close_slice(
        &mut self,
        closing: u64,
        slot: Option<usize>,
        slice: ClosedSlice,
    ) -> Result<(), StageError> {
        self.collector.announce(closing, slice);
        for number in 0..self.shards {
            let order =
                Order::Close { number, closing, index: slice.index, is_empty: slot.is_none() };
            self.give(number, slot.unwrap_or_default(), order)?;
        }
        self.collect(MAX_OUTSTANDING)
    }

    /// Collects the tallies that have come, and waits for more while `outstanding` or more closings
    /// lack some.
    fn collect(&mut self, outstanding: usize) -> Result<(), StageError> {
        loop {
            let wait = self.collector.outstanding() >= outstanding;
            let Some(answer) = self.workers.answer(wait)? else {
                return Ok(());
            };
            self.collector.tally(answer.closing, answer.shard, answer.tally)?;
        }
    }
}

impl<'a> Stage for CountStage<'a> {
    const LOOKS_AHEAD: bool = false;

    /// The rows of all slices, and the filters that are kept.
    type Outcome = (Rows<'a>, Vec<Box<dyn MembershipFilter>>);

    fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        let fresh = self.workers.fresh();
        let order = Order::Add(std::mem::replace(elements, fresh));
        self.give(shard, slot, order)
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let Closing { number, slot, slice, .. } = closing;
        self.close_slice(number, Some(slot), slice)
    }

    fn pass(&mut self, number: u64, slice: ClosedSlice) -> Result<(), StageError> {
        self.close_slice(number, None, slice)
    }

    fn discard(&mut self, slot: usize) -> Result<(), StageError> {
        (0..self.shards).try_for_each(|shard| self.give(shard, slot, Order::Discard))
    }

    fn recall(&mut self, index: i64) -> Result<Option<Recalled>, StageError> {
        self.collect(1)?;
        Ok(self.collector.recall(index))
    }

    fn emit_final(&mut self, final_ns: i64) -> Result<(), StageError> {
        self.collect(1)?;
        Ok(self.collector.show(final_ns)?)
    }

    fn finish(mut self) -> Result<Self::Outcome, StageError> {
        self.collect(1)?;
        Ok(self.collector.finish())
    }
}
