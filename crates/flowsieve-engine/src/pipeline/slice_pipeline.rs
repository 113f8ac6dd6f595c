//! Reading and slicing, whatever becomes of the elements: the one driver of counts, rankings and
//! comparisons.

use super::by_slice::BySlice;
use super::plan::Slicing;
use super::results::Totals;
use super::sequencer::{Sequencer, Stage, StageError};
use super::slice_set::SliceSet;
use super::time_slice::SliceGrid;
use crate::elements::{Cursor, ElementBatch, Extractor};
use crate::inputs::{
    A_WHILE, BatchBuilder, CaptureClock, Feed, InputResult, Merge, PacketConsumer, RunError,
    Together, Watch,
};
use crate::plan::TracePlan;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Reads inputs and cuts them into slices for any stage.
pub(crate) struct SlicePipeline<'a, M = Extractor> {
    /// The inputs.
    pub(crate) trace: &'a TracePlan,
    /// Makes elements of packets.
    pub(crate) extractor: Arc<M>,
    /// Makes them in the second reading; `None` if that is the same.
    pub(crate) extractor_again: Option<Arc<M>>,
    /// Attributes of an element.
    pub(crate) arity: usize,
    pub(crate) slicing: Slicing,
    /// Panes of a sliding window; a slice is a pane then.
    pub(crate) panes: Option<u16>,
    /// Slices that are open at the same time.
    pub(crate) open_slices: usize,
    /// Among how many the elements are divided.
    pub(crate) shards: usize,
    /// Threads that decode an input; if 0, the thread that cuts slices decodes.
    pub(crate) threads: usize,
    /// Observers of the packets.
    pub(crate) observers: Vec<&'a mut dyn Observer>,
    /// If packets are out of order, all slices are read a second time, and not only theirs.
    pub(crate) rereads_all: bool,
    /// The stage can restore closed slices.
    pub(crate) recalls: bool,
    /// Results are emitted this long after the end of a slice, and not when all inputs were read.
    pub(crate) delay_ns: Option<i64>,
}

/// The result of reading the inputs.
pub(crate) struct PipelineResult<T> {
    pub(crate) inputs: Vec<InputResult>,
    /// Totals of packets; those of slices are empty.
    pub(crate) totals: Totals,
    pub(crate) grid: SliceGrid,
    /// Slices that packets came for when they were closed, and that were not counted.
    disordered: SliceSet,
    /// The outcome of the stage.
    pub(crate) outcome: T,
}

impl<M: BatchBuilder<Batch = ElementBatch>> SlicePipeline<'_, M> {
    /// Reads all inputs as one trace in time order, through the stage that `stage` makes when it is
    /// known where slices begin; a second time, slice by slice and through the stage that `again`
    /// makes of the outcome, if packets were out of order.
    pub(crate) fn read<'scope, S: Stage>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        stage: impl FnOnce(SliceGrid) -> S,
        again: impl FnOnce(S::Outcome) -> S,
    ) -> Result<PipelineResult<S::Outcome>, RunError> {
        let first = self.run(scope, watch, stage)?;
        let PipelineResult { totals, disordered, .. } = &first;
        if disordered.is_empty() || totals.interrupted || self.trace.is_stream() {
            return Ok(first);
        }
        let PipelineResult { inputs, totals, disordered, outcome, .. } = first;
        let wanted = if self.rereads_all { SliceSet::all() } else { disordered };
        let second = self.run_by_slice(scope, watch, &wanted, again(outcome))?;
        // The result of the second reading, with the inputs and totals of the first.
        let Totals { uncounted, interrupted, .. } = second.totals;
        let inputs = InputResult::read_twice(inputs, second.inputs, interrupted);
        Ok(PipelineResult { inputs, totals: Totals { uncounted, interrupted, ..totals }, ..second })
    }

    /// Reads all inputs as one trace in time order.
    fn run<'scope, S: Stage>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        stage: impl FnOnce(SliceGrid) -> S,
    ) -> Result<PipelineResult<S::Outcome>, RunError> {
        let (merge, grid) = self.merge(scope, watch);
        let mut sequencer = self.sequencer(grid, self.recalls, stage(grid));
        let observers = mem::take(&mut self.observers);
        let mut live = Live::new(&mut sequencer, observers, self.delay_ns);
        // Threads that read ahead end with the merge.
        let drained = merge.drain_into(watch, &mut live);
        finished(sequencer, grid, drained)
    }

    /// Reads all inputs slice by slice: each slice goes through the stage as a whole, its packets in
    /// the order in which they come.
    fn run_by_slice<'scope, S: Stage>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        wanted: &SliceSet,
        stage: S,
    ) -> Result<PipelineResult<S::Outcome>, RunError> {
        self.extractor = self.extractor_again.take().unwrap_or_else(|| Arc::clone(&self.extractor));
        let (merge, grid) = self.merge(scope, watch);
        let mut sequencer = self.sequencer(grid, false, stage);
        let mut by_slice = BySlice::new(grid, self.arity, wanted);
        let drained = merge.drain(watch, |_, feed, packets| {
            let Feed { batch, cursor, .. } = feed;
            let end = cursor.packet + packets;
            Ok::<_, StageError>(by_slice.take(batch, cursor, end)?)
        });
        let drained = drained.and_then(|read| {
            by_slice.drain(|block| sequencer.take_block(&block))?;
            Ok(read)
        });
        finished(sequencer, grid, drained)
    }

    fn merge<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
    ) -> (Merge<'scope, Feed<M>>, SliceGrid) {
        let is_live = self.delay_ns.is_some();
        let merge = self.trace.feeds(scope, watch, &self.extractor, self.threads, is_live);
        let grid = self.slicing.grid(merge.first_ns());
        (merge, grid)
    }

    fn sequencer<S: Stage>(&self, grid: SliceGrid, recalls: bool, stage: S) -> Sequencer<S> {
        let (open, arity, shards) = (self.open_slices, self.arity, self.shards);
        let sequencer = Sequencer::new(grid, open, arity, shards, recalls, stage);
        sequencer.sliding(self.panes, self.delay_ns.is_some())
    }
}

/// Returns the result of reading, when all slices are closed.
fn finished<S: Stage>(
    sequencer: Sequencer<S>,
    grid: SliceGrid,
    drained: Result<(Vec<InputResult>, bool), StageError>,
) -> Result<PipelineResult<S::Outcome>, RunError> {
    let packets = sequencer.packets();
    let finished = drained.and_then(|read| Ok((read, sequencer.finish()?)));
    let ((inputs, interrupted), (mut totals, disordered, outcome)) =
        finished.map_err(|error| match error {
            StageError::Sink(error) => RunError::Sink(error),
            StageError::Worker(panicked) => RunError::panicked(packets, panicked),
            StageError::Broken(broken) => broken.into(),
        })?;
    totals.interrupted = interrupted;
    Ok(PipelineResult { inputs, totals, grid, disordered, outcome })
}

/// Consumes packets as they come, and emits rows meanwhile.
pub(super) struct Live<'a, 't, S> {
    pub(super) sequencer: &'a mut Sequencer<S>,
    pub(super) observers: Vec<&'t mut dyn Observer>,
    /// Time after their end at which slices are final; `None` if that is when all packets have come.
    pub(super) delay_ns: Option<i64>,
    /// Packet time at which the next pane closes, if windows slide.
    pane_ends_ns: Option<i64>,
    clock: CaptureClock,
    emitted: Instant,
}

impl<'a, 't, S: Stage> Live<'a, 't, S> {
    pub(super) fn new(
        sequencer: &'a mut Sequencer<S>,
        observers: Vec<&'t mut dyn Observer>,
        delay_ns: Option<i64>,
    ) -> Self {
        let pane_ends_ns = delay_ns.filter(|_| sequencer.slides()).map(|_| i64::MIN);
        let (clock, emitted) = (CaptureClock::new(), Instant::now());
        Self { sequencer, observers, delay_ns, pane_ends_ns, clock, emitted }
    }

    /// Takes packets up to number `end` where windows slide. A pane closes at the packet that moves
    /// packet time past its end and the delay, however many packets come at once.
    fn take_by_pane(
        &mut self,
        batch: &mut ElementBatch,
        cursor: &mut Cursor,
        end: usize,
        (mut ends_ns, delay_ns): (i64, i64),
    ) -> Result<(), StageError> {
        while cursor.packet < end {
            let mut times_ns = batch.times_ns[cursor.packet..end].iter();
            let last = times_ns.position(|&time_ns| {
                self.clock.note(&[time_ns]);
                self.clock.of_packets() >= ends_ns
            });
            let until = last.map_or(end, |last| cursor.packet + last + 1);
            self.sequencer.take(batch, cursor, until)?;
            if last.is_some() {
                let final_ns = self.clock.of_packets().saturating_sub(delay_ns);
                ends_ns = self.sequencer.end_panes(final_ns)?.saturating_add(delay_ns);
            }
        }
        self.pane_ends_ns = Some(ends_ns);
        Ok(())
    }

    fn emit_final(&mut self, now_ns: i64) -> Result<(), StageError> {
        self.emitted = Instant::now();
        match self.delay_ns {
            Some(delay_ns) => {
                let final_ns = now_ns.saturating_sub(delay_ns);
                self.sequencer.emit_final(final_ns, delay_ns)
            }
            None => Ok(()),
        }
    }
}

impl<S: Stage, M: BatchBuilder<Batch = ElementBatch>> PacketConsumer<Feed<M>, StageError>
    for Live<'_, '_, S>
{
    fn take(
        &mut self,
        _number: usize,
        feed: &mut Feed<M>,
        packets: usize,
    ) -> Result<(), StageError> {
        let Feed { batch, cursor, .. } = feed;
        let first = cursor.packet;
        let end = first + packets;
        let element = cursor.element;
        let panes = self.pane_ends_ns.zip(self.delay_ns);
        match panes {
            Some(panes) => self.take_by_pane(batch, cursor, end, panes)?,
            None => self.sequencer.take(batch, cursor, end)?,
        }
        for observer in &mut self.observers {
            observer.observe(batch, first..end, element..cursor.element);
        }
        if self.delay_ns.is_some() {
            if panes.is_none() {
                self.clock.note(&batch.times_ns[first..end]);
            }
            if self.emitted.elapsed() >= A_WHILE {
                self.emit_final(self.clock.of_packets())?;
            }
        }
        Ok(())
    }

    fn take_together(&mut self, inputs: &mut Together<'_, Feed<M>>) -> Result<bool, StageError> {
        let unobserved = self.observers.is_empty() && self.delay_ns.is_none();
        Ok(unobserved && self.sequencer.take_together(inputs)?)
    }

    fn patience(&self) -> Option<Duration> {
        self.delay_ns.map(|_| A_WHILE)
    }

    fn idle(&mut self) -> Result<(), StageError> {
        self.emit_final(self.clock.of_silence())
    }
}

/// Observes the packets that a count reads, in the order of the trace.
pub trait Observer {
    /// Whether it needs the bytes of elements, and not only addresses.
    fn needs_keys(&self) -> bool {
        false
    }

    /// Observes some packets of a batch, which has the column of addresses, and their elements.
    fn observe(&mut self, batch: &ElementBatch, packets: Range<usize>, elements: Range<usize>);
}
