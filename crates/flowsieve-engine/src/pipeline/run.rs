//! The run: the inputs, merged by time, go to the sequencer, and its slices to the sink.

use super::beside::Beside;
use super::by_slice::BySlice;
use super::collector::Collector;
use super::edges::{Cut, Edges};
use super::live::Live;
use super::plan::{CountPlan, Slicing};
use super::results::{CountSummary, SliceSink, Totals};
use super::rows::Rows;
use super::sequencer::{Aside, Late, Sequencer, Stage, StageError};
use super::shard::ShardSpec;
use super::slice_set::SliceSet;
use super::time_slice::SliceGrid;
#[cfg(doc)]
use super::traffic::Traffic;
use super::workers::CountStage;
use crate::elements::{ElementBatch, Extractor};
use crate::filters::saved::SavedFilter;
use crate::guard::WorkerPanicked;
use crate::inputs::{BatchBuilder, Feed, InputResult, Merge, PlanError, RunError, Watch};
use crate::memory::MEMORY_REFUSED;
use crate::trace::{InputFormat, Source};
use std::mem;
use std::sync::Arc;
use std::thread::{self, Scope};

/// What a count yields on request, besides slices and totals.
#[derive(Default)]
pub struct CountExtras<'a> {
    /// What takes the packets besides, such as who sent them to whom ([`Traffic`]).
    #[doc(hidden)]
    pub beside: Vec<&'a mut dyn Beside>,
    /// Label of the filter of the only slice, which is kept then as [`CountSummary::filter`].
    pub filter_label: Option<Vec<u8>>,
    /// The filter that the only slice begins with: that of an earlier count, of the plan's
    /// parameters, seed and shards.
    pub continued: Option<SavedFilter>,
}

/// What the threads of a run do: some decode, one merges and slices, the others serve shards.
struct Division {
    /// Threads that decode.
    readers: usize,
    /// Threads that serve shards.
    workers: usize,
    /// Shards among which those that decode divide elements.
    divided_among: u32,
}

impl Division {
    fn of(plan: &CountPlan) -> Self {
        // With two threads, the second serves the shards of one input as well.
        if plan.trace.inputs.len() == 1 {
            let readers = plan.trace.threads / 2;
            return Self {
                readers,
                workers: plan.trace.threads.saturating_sub(1 + readers),
                divided_among: if readers > 0 { plan.shards } else { 1 },
            };
        }
        // Several inputs may be open at the same time, with a thread each, and to merge them is
        // work enough for one. Of each a few packets are taken at a time.
        let readers = plan.trace.threads.saturating_sub(1).min(1);
        Self {
            readers,
            workers: plan.trace.threads.saturating_sub(1 + readers).max(readers),
            divided_among: 1,
        }
    }
}

/// Counts the distinct elements of each time slice of the inputs, which are one trace in time
/// order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`](crate::pipeline::InputResult::error) says what happened.
///
/// # Errors
///
/// The plan does not hold, the sink failed, or a worker panicked. With a label for the filter: the
/// plan has several slices or no filter.
pub fn count(
    plan: &CountPlan,
    extras: CountExtras<'_>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<CountSummary, RunError> {
    let CountExtras { beside, filter_label, continued } = extras;
    if let Some(filter) = &continued {
        plan.check_continued(filter)?;
    }
    let kept_spec = match &filter_label {
        Some(_) => Some(plan.kept_filter()?),
        None => None,
    };
    plan.check()?;
    plan.check_memory()?;
    let with_keys =
        plan.exact_limit_bytes.is_some() || beside.iter().any(|beside| beside.needs_keys());
    let extractor = || plan.extractor(plan.needs_attributes(), with_keys);
    let Division { readers, workers, divided_among } = Division::of(plan);
    let can_read_again = !plan.trace.is_stream();
    let has_slices = plan.slicing.width_ns.is_some();
    let mut reading = Reading {
        inputs: plan.trace.sources(),
        input_format: plan.trace.input_format,
        extractor: Arc::new(if beside.is_empty() {
            extractor().dividing(divided_among)
        } else {
            extractor().with_addresses()
        }),
        beside,
        arity: plan.attributes(),
        slicing: plan.grid(),
        panes: plan.panes(),
        open_slices: plan.open_slices(),
        shards: plan.shards as usize,
        threads: readers,
        // Of a window that slides nothing can be brought back.
        recalls: has_slices && !can_read_again && plan.panes().is_none(),
        delay_ns: plan.trace.delay_ns.filter(|_| has_slices && !can_read_again),
    };
    let spec = ShardSpec {
        journal: reading.recalls,
        ..ShardSpec::of(plan, plan.open_slices(), filter_label.is_some())
    };
    let shards = plan.shards as usize;
    let keeps_recent = reading.recalls || reading.delay_ns.is_some();
    let panes = plan.panes();
    let continues = continued.is_some();
    let mut begun = continued.map(SavedFilter::into_shards).unwrap_or_default();
    let read = thread::scope(|scope| {
        reading.run(scope, watch, |grid| {
            let edges = Edges::new(plan.grid(), &plan.trace.selection, grid);
            let mut rows = Rows::new(sink, spec.empty_tally(), grid, edges, panes);
            if keeps_recent {
                rows.keep_recent();
            }
            let collector = Collector::new(rows, shards);
            let begun = mem::take(&mut begun);
            CountStage::start(scope, &spec, shards, workers, begun, collector)
        })
    })?;
    let Read { inputs, mut totals, disordered, outcome: (mut rows, filters) } = read;
    if !disordered.is_empty() && !totals.interrupted && can_read_again {
        // Slices take their elements in the order of packets.
        reading.extractor = Arc::new(extractor());
        let again = thread::scope(|scope| {
            // Where windows slide, what came out of order changes all that follow.
            let wanted = panes.is_none().then_some(&disordered);
            reading.run_by_slice(scope, watch, wanted, |_| {
                let collector = Collector::new(rows.again(), shards);
                CountStage::start(scope, &spec, shards, workers, Vec::new(), collector)
            })
        })?;
        (rows, _) = again.outcome;
        totals.uncounted = again.totals.uncounted;
        totals.interrupted = again.totals.interrupted;
    }
    let slices = rows.finish(Cut::of(totals.interrupted)).map_err(RunError::Sink)?;
    if continues && totals.packets == 0 && !totals.interrupted {
        return Err(PlanError::new(
            "no packet was read, so there is nothing to go on with: the saved filter stays as it is",
        )
        .into());
    }
    let totals = Totals {
        packets: totals.packets,
        ip_packets: totals.ip_packets,
        elements: totals.elements,
        skipped: totals.skipped,
        late: totals.late,
        uncounted: totals.uncounted,
        interrupted: totals.interrupted,
        complete: InputResult::all_read(&inputs, totals.interrupted),
        ..slices
    };
    let filter = match kept_spec.cloned().zip(filter_label) {
        None => None,
        // There was no packet, so there was no slice.
        Some((spec, label)) if filters.is_empty() => {
            Some(SavedFilter::empty(spec, plan.seed, label, shards))
        }
        Some((spec, label)) => Some(SavedFilter::of_shards(spec, plan.seed, label, filters)),
    };
    Ok(CountSummary { inputs, totals, filter: filter.transpose().map_err(PlanError::from)? })
}

impl std::fmt::Debug for CountExtras<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountExtras")
            .field("filter_label", &self.filter_label)
            .finish_non_exhaustive()
    }
}

/// How inputs are read and cut into slices, whatever becomes of their elements.
pub(crate) struct Reading<'a, M = Extractor> {
    /// Captures, in the order given.
    pub(crate) inputs: Vec<Source>,
    pub(crate) input_format: InputFormat,
    /// Makes elements of packets.
    pub(crate) extractor: Arc<M>,
    /// Attributes of an element.
    pub(crate) arity: usize,
    pub(crate) slicing: Slicing,
    /// Where slices are panes of windows that slide: panes of a window.
    pub(crate) panes: Option<u16>,
    /// Slices that are open at the same time.
    pub(crate) open_slices: usize,
    /// Among how many the elements are divided.
    pub(crate) shards: usize,
    /// Threads that decode an input; with none, the one that cuts slices does.
    pub(crate) threads: usize,
    /// What takes the packets besides.
    pub(crate) beside: Vec<&'a mut dyn Beside>,
    /// The stage can bring closed slices back.
    pub(crate) recalls: bool,
    /// Results are handed on so long after the end of a slice, and not when all inputs were read.
    pub(crate) delay_ns: Option<i64>,
}

/// What came of reading the inputs.
pub(crate) struct Read<T> {
    pub(crate) inputs: Vec<InputResult>,
    /// Of these totals nothing is known that has to do with slices.
    pub(crate) totals: Totals,
    /// Slices that packets came for when they were closed, and that were not counted.
    pub(crate) disordered: SliceSet,
    /// The outcome of the stage.
    pub(crate) outcome: T,
}

impl<M: BatchBuilder<Batch = ElementBatch>> Reading<'_, M> {
    /// Reads all inputs as one trace in time order, through the stage that `stage` makes when it is
    /// known where slices begin.
    pub(crate) fn run<'scope, S: Stage>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        stage: impl FnOnce(SliceGrid) -> S,
    ) -> Result<Read<S::Outcome>, RunError>
    where
        M: 'scope,
    {
        let (merge, grid) = self.merge(scope, watch);
        let late = if self.recalls {
            Late::Aside(Aside::default())
        } else {
            Late::Listed(SliceSet::default())
        };
        let mut sequencer = self.sequencer(grid, late, stage(grid));
        let beside = mem::take(&mut self.beside);
        let mut live = Live::new(&mut sequencer, beside, self.delay_ns);
        // Threads that read ahead end with the merge: nobody takes their batches any more.
        let drained = merge.drain_into(watch, &mut live);
        finished(sequencer, drained)
    }

    /// Reads all inputs once more, for slices whose packets are not in the order of time: each
    /// slice goes through the stage as a whole, its packets in the order in which they come.
    pub(crate) fn run_by_slice<'scope, S: Stage>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        wanted: Option<&SliceSet>,
        stage: impl FnOnce(SliceGrid) -> S,
    ) -> Result<Read<S::Outcome>, RunError>
    where
        M: 'scope,
    {
        let (merge, grid) = self.merge(scope, watch);
        let late = Late::Listed(SliceSet::default());
        let mut sequencer = self.sequencer(grid, late, stage(grid));
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
        finished(sequencer, drained)
    }

    fn merge<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
    ) -> (Merge<'scope, Feed<M>>, SliceGrid)
    where
        M: 'scope,
    {
        let (maker, threads) = (Arc::clone(&self.extractor), self.threads);
        let is_live = self.delay_ns.is_some();
        let begin = move |capture, open| {
            if is_live {
                Feed::start_prompt(scope, capture, &maker)
            } else {
                Feed::start(scope, capture, &maker, threads, open)
            }
        };
        let merge = Merge::new(&self.inputs, self.input_format, watch, begin);
        let first_ns = merge.first_ns().unwrap_or(0);
        let Slicing { width_ns, align } = self.slicing;
        (merge, SliceGrid::new(width_ns, align, first_ns))
    }

    fn sequencer<S: Stage>(&self, grid: SliceGrid, late: Late, stage: S) -> Sequencer<S> {
        let one_slice = self.slicing.width_ns.is_none();
        let (open, arity, shards) = (self.open_slices, self.arity, self.shards);
        Sequencer::new(grid, one_slice, open, arity, shards, late, stage).sliding(self.panes)
    }
}

/// What came of reading, when all slices are closed.
fn finished<S: Stage>(
    sequencer: Sequencer<S>,
    drained: Result<(Vec<InputResult>, bool), StageError>,
) -> Result<Read<S::Outcome>, RunError> {
    let packets = sequencer.packets();
    let finished = drained.and_then(|read| Ok((read, sequencer.finish()?)));
    let ((inputs, interrupted), (mut totals, disordered, outcome)) =
        finished.map_err(|error| match error {
            StageError::Sink(error) => RunError::Sink(error),
            StageError::Worker(WorkerPanicked(reason)) if reason == MEMORY_REFUSED => {
                RunError::Memory
            }
            StageError::Worker(WorkerPanicked(reason)) => RunError::Worker { packets, reason },
            StageError::Broken(broken) if broken.reason == MEMORY_REFUSED => RunError::Memory,
            StageError::Broken(broken) => broken.into(),
        })?;
    totals.interrupted = interrupted;
    Ok(Read { inputs, totals, disordered, outcome })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::elements::ElementRule;
    use crate::filters::{BloomLayout, BloomSpec, CounterSpec, FilterSpec};
    use crate::pipeline::{Align, CounterChoice, SliceResult};
    use crate::plan::TracePlan;
    use std::io;

    struct Nowhere;

    impl SliceSink for Nowhere {
        fn slice(&mut self, _: &SliceResult) -> io::Result<()> {
            Ok(())
        }
    }

    impl Watch for Nowhere {
        fn progress(&self, _: u64, _: u64) {}
    }

    #[test]
    fn a_counter_that_panics_is_an_error_with_its_place_for_every_number_of_threads() {
        // Building a filter without bits panics; a plan does not look that closely.
        let broken = CounterSpec::Filter(FilterSpec::Bloom(BloomSpec {
            bits: 0,
            probes: 1,
            layout: BloomLayout::Anywhere,
        }));
        for threads in [1, 2, 3, 5] {
            let plan = CountPlan {
                trace: TracePlan::new([concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../traces/generated.pcap"
                )])
                .with_threads(threads),
                rule: ElementRule::default(),
                slicing: Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch },
                counter: Some(CounterChoice {
                    name: "broken",
                    shard: broken.clone(),
                    combinations: None,
                }),
                exact_limit_bytes: None,
                seed: 0,
                shards: 4,
                every_ns: None,
            };
            let error = count(&plan, CountExtras::default(), &mut Nowhere, &Nowhere).unwrap_err();
            let RunError::Worker { packets, ref reason } = error else {
                panic!("{error}");
            };
            assert!((1..=8000).contains(&packets), "{packets}");
            assert!(!reason.is_empty());
            assert!(error.to_string().contains("this is a mistake in flowsieve"), "{error}");
        }
    }
}
