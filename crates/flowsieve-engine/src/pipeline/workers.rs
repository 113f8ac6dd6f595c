//! The stage of a count: shards, divided among workers, and the collector of their tallies.
//!
//! Shard `s` is served by worker `s mod workers`, so each shard sees its elements in trace order
//! for any number of threads, and answers the same.

use super::rows::Rows;
use super::sequencer::{Closing, Recalled, Stage, StageError};
use super::shard::Shard;
use super::shard_spec::{ClosedSlice, ShardSpec, ShardTally, SliceSum};
use super::whole::Whole;
use crate::elements::ElementColumns;
use crate::filters::MembershipFilter;
use crate::threads::{Pool, Reply, Work};
use std::collections::BTreeMap;
use std::io;
use std::thread::Scope;

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
    /// Adds elements of the slice with this number.
    Add(i64, ElementColumns),
    /// Closes the slice, by the number of the shard among all and that of the closing.
    Close {
        number: usize,
        closing: u64,
        index: i64,
    },
    Discard,
    /// Returns the whole of the shard, by its number among all.
    Whole(usize),
}

/// Answer of a shard.
pub(super) enum Answer {
    /// Its part of a closed slice.
    Slice { closing: u64, shard: usize, tally: Box<ShardTally> },
    /// Its part of all slices.
    Whole(usize, Option<Box<Whole>>),
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
            Order::Add(index, mut elements) => {
                self.0[shard].add(slot, index, &elements);
                elements.clear();
                Reply::Emptied(elements)
            }
            Order::Close { number, closing, index } => Reply::Answer(Answer::Slice {
                closing,
                shard: number,
                tally: Box::new(self.0[shard].close(slot, index)),
            }),
            Order::Whole(number) => {
                Reply::Answer(Answer::Whole(number, self.0[shard].take_whole().map(Box::new)))
            }
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
    /// The slices in the slots.
    indices: Vec<i64>,
}

/// The state that a stage begins with, by shard: filters of an earlier count, and wholes of an
/// earlier reading.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) filters: Vec<Box<dyn MembershipFilter>>,
    pub(super) wholes: Vec<Whole>,
}

impl<'a> CountStage<'a> {
    /// `threads` workers, or as many as there are threads, for `shards` shards; with 0 they are
    /// served by the caller.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        spec: &ShardSpec,
        shards: usize,
        threads: usize,
        begun: Begun,
        collector: Collector<'a>,
    ) -> Self {
        let mut filters: Vec<Option<_>> = begun.filters.into_iter().map(Some).collect();
        let mut wholes: Vec<Option<_>> = begun.wholes.into_iter().map(Some).collect();
        let mut shard = |number: usize| {
            let mut shard = Shard::new(spec.clone());
            if let Some(filter) = filters.get_mut(number).and_then(Option::take) {
                shard.begin_with(filter);
            }
            if let Some(whole) = wholes.get_mut(number) {
                shard.go_on_with(whole.take());
            }
            shard
        };
        let workers = Pool::start(scope, "shards", threads.min(shards), |worker, workers| {
            Shards((worker..shards).step_by(workers).map(&mut shard).collect())
        });
        Self { workers, shards, collector, indices: Vec::new() }
    }

    fn give(&mut self, shard: usize, slot: usize, order: Order) -> Result<(), StageError> {
        let workers = self.workers.workers();
        let task = Task { shard: shard / workers, slot, order };
        Ok(self.workers.push(shard % workers, task)?)
    }

    /// Collects the tallies that have come, and waits for more while `outstanding` or more closings
    /// lack some.
    fn collect(&mut self, outstanding: usize) -> Result<(), StageError> {
        loop {
            let wait = self.collector.outstanding() >= outstanding;
            let Some(answer) = self.workers.answer(wait)? else { return Ok(()) };
            if let Answer::Slice { closing, shard, tally } = answer {
                self.collector.tally(closing, shard, *tally)?;
            }
        }
    }

    /// Collects the wholes of all shards.
    fn wholes(&mut self) -> Result<Vec<Whole>, StageError> {
        (0..self.shards).try_for_each(|shard| self.give(shard, 0, Order::Whole(shard)))?;
        let mut wholes: Vec<Option<Box<Whole>>> = (0..self.shards).map(|_| None).collect();
        for _ in 0..self.shards {
            if let Some(Answer::Whole(shard, whole)) = self.workers.answer(true)? {
                wholes[shard] = whole;
            }
        }
        Ok(wholes.into_iter().flatten().map(|whole| *whole).collect())
    }
}

impl<'a> Stage for CountStage<'a> {
    /// The rows of all slices; the filters that are kept, and the wholes of the shards.
    type Outcome = (Rows<'a>, Begun);

    fn open(&mut self, slot: usize, index: i64) {
        if self.indices.len() <= slot {
            self.indices.resize(slot + 1, 0);
        }
        self.indices[slot] = index;
    }

    fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError> {
        let fresh = self.workers.fresh();
        let order = Order::Add(self.indices[slot], std::mem::replace(elements, fresh));
        self.give(shard, slot, order)
    }

    fn close(&mut self, closing: Closing) -> Result<(), StageError> {
        let Closing { number: closing, slot, slice, .. } = closing;
        self.collector.announce(closing, slice);
        for number in 0..self.shards {
            let order = Order::Close { number, closing, index: slice.index };
            self.give(number, slot, order)?;
        }
        self.collect(MAX_OUTSTANDING)
    }

    fn discard(&mut self, slot: usize) -> Result<(), StageError> {
        (0..self.shards).try_for_each(|shard| self.give(shard, slot, Order::Discard))
    }

    fn recall(&mut self, index: i64) -> Result<Option<Recalled>, StageError> {
        self.collect(1)?;
        Ok(self.collector.rows.recall(index))
    }

    fn emit_final(&mut self, final_ns: i64) -> Result<(), StageError> {
        self.collect(1)?;
        Ok(self.collector.rows.show(final_ns)?)
    }

    fn finish(mut self) -> Result<Self::Outcome, StageError> {
        self.collect(1)?;
        let wholes = self.wholes()?;
        let (rows, filters) = self.collector.finish();
        Ok((rows, Begun { filters, wholes }))
    }
}

/// Collects slices. Closings are announced in the order of their numbers; for any order in which
/// the shards answer, results are taken in that order.
pub(crate) struct Collector<'a> {
    pub(super) rows: Rows<'a>,
    shards: usize,
    waiting: BTreeMap<u64, Waiting>,
    kept: Vec<Box<dyn MembershipFilter>>,
}

struct Waiting {
    slice: ClosedSlice,
    tallies: Vec<Option<ShardTally>>,
    missing: usize,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(rows: Rows<'a>, shards: usize) -> Self {
        Self { rows, shards, waiting: BTreeMap::new(), kept: Vec::new() }
    }

    /// Announces the closing with this number; its tallies may come in any order.
    pub(crate) fn announce(&mut self, closing: u64, slice: ClosedSlice) {
        self.waiting.insert(
            closing,
            Waiting {
                slice,
                tallies: (0..self.shards).map(|_| None).collect(),
                missing: self.shards,
            },
        );
    }

    /// Returns the number of closings whose tallies are not all here.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a shard's tally.
    pub(crate) fn tally(
        &mut self,
        closing: u64,
        shard: usize,
        tally: ShardTally,
    ) -> io::Result<()> {
        if let Some(waiting) = self.waiting.get_mut(&closing) {
            waiting.tallies[shard] = Some(tally);
            waiting.missing -= 1;
        }
        while let Some(entry) = self.waiting.first_entry() {
            if entry.get().missing > 0 {
                break;
            }
            let Waiting { slice, mut tallies, .. } = entry.remove();
            let mut moved = Vec::new();
            for tally in tallies.iter_mut().flatten() {
                self.kept.extend(tally.filter.take());
                moved.append(&mut tally.moved);
            }
            let journals = tallies.iter_mut().flatten().map(|tally| tally.journal.take());
            let journal: Option<Vec<_>> = journals.collect();
            let sum = SliceSum::of(
                slice,
                tallies.into_iter().flatten().map(|tally| (tally.counts, tally.new)),
            );
            self.rows.take(sum, journal.as_ref())?;
            self.rows.move_new(&moved);
        }
        Ok(())
    }

    /// Returns the rows, and the filters that are kept, in the order of their shards.
    pub(crate) fn finish(self) -> (Rows<'a>, Vec<Box<dyn MembershipFilter>>) {
        (self.rows, self.kept)
    }
}
