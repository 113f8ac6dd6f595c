//! The run: open the inputs in the order of time, merge them, and let the sequencer have them.

use super::collector::Collector;
use super::merge::{Batch, Maker, Merge, Sources, Taker, unread};
use super::plan::{CountPlan, PlanError, Slicing};
use super::results::{CountSummary, InputResult, SliceSink, Totals, Watch};
use super::sequencer::{Cursor, Sequencer, Stage, Stop};
use super::shard::ShardSpec;
use super::time_slice::SliceGrid;
use super::traffic::Traffic;
use super::workers::{Counting, Shards};
use crate::elements::{ElementBatch, Extractor};
use crate::filters::MembershipFilter;
use crate::filters::saved::SavedFilter;
use crate::guard::{Broken, WorkerGone};
use crate::hashing::Digester;
use crate::trace::{InputFormat, TraceBatch};
use std::io;
use std::path::PathBuf;
use std::thread::{self, Scope};

/// Filters that outlive their slice, in the order of their shards.
type Kept = Vec<Box<dyn MembershipFilter>>;

/// Why there is no result at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The slices could not be handed on.
    #[error("the results could not be written: {0}")]
    Sink(#[source] io::Error),
    /// A thread that counts panicked, which is a mistake of flowsieve's own.
    #[error(
        "counting failed within the first {packets} packets ({reason}); this is a mistake in flowsieve, please report it with the options and the capture"
    )]
    Worker {
        /// Packets of the trace handed on by then.
        packets: u64,
        /// What the thread said.
        reason: String,
    },
    /// What takes the packets panicked.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Counts the distinct elements of each time slice of the inputs, which are one trace in time order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`] says what happened.
///
/// # Errors
///
/// The plan does not hold, the sink failed, or a worker panicked.
pub fn count(
    plan: &CountPlan,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<CountSummary, RunError> {
    Ok(count_and_more(plan, None, None, sink, watch)?.0)
}

/// Counts as [`count`] does, and keeps the filter of the only slice.
///
/// # Errors
///
/// As for [`count`]; the plan has several slices or no filter.
///
/// # Panics
///
/// Never: where there is a label, a filter is kept.
pub fn count_and_keep(
    plan: &CountPlan,
    label: Vec<u8>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<(CountSummary, SavedFilter), RunError> {
    let (summary, kept) = count_and_more(plan, Some(label), None, sink, watch)?;
    Ok((
        summary,
        kept.expect("a filter is kept where there is a label"),
    ))
}

/// Counts as [`count`] does; keeps the filter of the only slice if there is a `label` for it, and adds
/// all packets to the `traffic` if that is wanted.
///
/// # Errors
///
/// As for [`count`]; with a label, the plan has several slices or no filter.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count_and_more(
    plan: &CountPlan,
    label: Option<Vec<u8>>,
    traffic: Option<&mut Traffic>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<(CountSummary, Option<SavedFilter>), RunError> {
    let Some(label) = label else {
        return Ok((count_with(plan, traffic, sink, watch, false)?.0, None));
    };
    let spec = plan.kept_filter()?.clone();
    let (summary, filters) = count_with(plan, traffic, sink, watch, true)?;
    let kept = if filters.is_empty() {
        // There was no packet, so there was no slice.
        SavedFilter::empty(spec, plan.seed, label, plan.shards as usize)
    } else {
        SavedFilter::of_shards(spec, plan.seed, label, filters)
    };
    Ok((summary, Some(kept.map_err(PlanError::from)?)))
}

fn count_with(
    plan: &CountPlan,
    traffic: Option<&mut Traffic>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
    keep: bool,
) -> Result<(CountSummary, Kept), RunError> {
    plan.check()?;
    let extractor = Extractor::new(
        plan.rule.clone(),
        plan.tunnel,
        Digester::new(plan.seed),
        plan.counter
            .as_ref()
            .is_some_and(|counter| counter.shard.needs_attributes()),
        plan.exact_limit_bytes.is_some(),
    );
    // Several inputs may be open at the same time, with a thread each.
    let readers = match plan.inputs.len() {
        1 => plan.threads / 2,
        _ => plan.threads.saturating_sub(1).min(1),
    };
    let reading = Reading {
        inputs: &plan.inputs,
        input_format: plan.input_format,
        extractor: match traffic {
            Some(_) => extractor.with_addresses(),
            None => extractor,
        },
        traffic,
        arity: plan.attributes(),
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: plan.shards as usize,
        threads: readers,
    };
    let spec = ShardSpec {
        counter: plan.counter.as_ref().map(|counter| counter.shard.clone()),
        combinations: plan.combinations().to_vec(),
        exact_limit_bytes: plan.exact_set_limit(),
        open_slices: plan.open_slices(),
        keep,
    };
    let shards = plan.shards as usize;
    // Some threads decode, one merges and slices; with two, the second serves the shards as well.
    let workers = plan.threads.saturating_sub(1 + readers);
    let read = thread::scope(|scope| {
        reading.run(scope, watch, |grid| Counting {
            shards: Shards::start(scope, &spec, shards, workers),
            collector: Collector::new(sink, shards, &spec.empty_tally(), grid),
        })
    });
    let Read {
        inputs,
        totals,
        outcome: (slices, kept),
    } = read?;
    let totals = Totals {
        packets: totals.packets,
        ip_packets: totals.ip_packets,
        elements: totals.elements,
        skipped: totals.skipped,
        late: totals.late,
        interrupted: totals.interrupted,
        ..slices
    };
    Ok((CountSummary { inputs, totals }, kept))
}

/// How inputs are read and cut into slices, whatever becomes of their elements.
pub(crate) struct Reading<'a> {
    /// Captures, in the order given.
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) input_format: InputFormat,
    pub(crate) extractor: Extractor,
    /// Attributes of an element.
    pub(crate) arity: usize,
    pub(crate) slicing: Slicing,
    /// Slices that are open at the same time.
    pub(crate) open_slices: usize,
    /// Among how many the elements are divided.
    pub(crate) shards: usize,
    /// Threads that decode an input; with none, the one that cuts slices does.
    pub(crate) threads: usize,
    /// Who sent packets to whom, if that is wanted.
    pub(crate) traffic: Option<&'a mut Traffic>,
}

/// What came of reading the inputs.
pub(crate) struct Read<T> {
    pub(crate) inputs: Vec<InputResult>,
    /// Of these totals nothing is known that has to do with slices.
    pub(crate) totals: Totals,
    /// The outcome of the stage.
    pub(crate) outcome: T,
}

impl Reading<'_> {
    /// Reads all inputs as one trace in time order, through the stage that `stage` makes when it is
    /// known where slices begin.
    pub(crate) fn run<'scope, S: Stage>(
        self,
        scope: &'scope Scope<'scope, '_>,
        watch: &dyn Watch,
        stage: impl FnOnce(SliceGrid) -> S,
    ) -> Result<Read<S::Outcome>, RunError> {
        let mut inputs = unread(self.inputs);
        let sources = Sources {
            format: self.input_format,
            threads: self.threads,
            stop: watch.stop(),
        };
        let mut merge = Merge::start(scope, sources, self.extractor, &mut inputs);
        let first_ns = merge.first_ns().unwrap_or(0);
        let Slicing { width_ns, align } = self.slicing;
        let grid = SliceGrid::new(width_ns, align, first_ns);
        let mut passing = Passing {
            traffic: self.traffic,
            sequencer: Sequencer::new(
                grid,
                width_ns.is_none(),
                self.open_slices,
                self.arity,
                self.shards,
                stage(grid),
            ),
        };
        let drained = merge.drain_into(&mut passing, watch);
        // Threads that read ahead end with it: nobody takes their batches any more.
        drop(merge);
        let packets = passing.sequencer.packets();
        let finished = drained.and_then(|interrupted| {
            let (totals, outcome) = passing.sequencer.finish()?;
            Ok((interrupted, totals, outcome))
        });
        let (interrupted, mut totals, outcome) = finished.map_err(|stop| match stop {
            Stop::Sink(error) => RunError::Sink(error),
            Stop::Worker(WorkerGone(reason)) => RunError::Worker { packets, reason },
            Stop::Broken(broken) => broken.into(),
        })?;
        totals.interrupted = interrupted;
        Ok(Read {
            inputs,
            totals,
            outcome,
        })
    }
}

/// What every packet passes, in the order of the trace.
struct Passing<'a, S: Stage> {
    traffic: Option<&'a mut Traffic>,
    sequencer: Sequencer<S>,
}

impl<S: Stage> Taker<ElementBatch> for Passing<'_, S> {
    fn take(&mut self, batch: &ElementBatch, cursor: &mut Cursor, end: usize) -> Result<(), Stop> {
        if let Some(traffic) = &mut self.traffic {
            traffic.add(&batch.addresses[cursor.packet..end]);
        }
        self.sequencer.take(batch, cursor, end)
    }
}

impl Batch for ElementBatch {
    type Cursor = Cursor;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn clear(&mut self) {
        ElementBatch::clear(self);
    }

    fn taken(cursor: &Cursor) -> usize {
        cursor.packet
    }
}

impl Maker for Extractor {
    type Batch = ElementBatch;

    fn make(&self, batch: TraceBatch<'_>, out: &mut ElementBatch) {
        self.extract(batch, out);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::decode::Tunnel;
    use crate::elements::ElementRule;
    use crate::filters::{BloomLayout, BloomSpec, CounterSpec, FilterSpec};
    use crate::pipeline::{Align, CounterChoice, SliceResult};

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
                inputs: vec![concat!(env!("CARGO_MANIFEST_DIR"), "/traces/generated.pcap").into()],
                input_format: InputFormat::Auto,
                rule: ElementRule::default(),
                tunnel: Tunnel::Outer,
                slicing: Slicing {
                    width_ns: Some(1_000_000_000),
                    align: Align::Epoch,
                },
                counter: Some(CounterChoice {
                    name: "broken",
                    shard: broken.clone(),
                    combinations: None,
                }),
                exact_limit_bytes: None,
                seed: 0,
                shards: 4,
                threads,
            };
            let error = count(&plan, &mut Nowhere, &Nowhere).unwrap_err();
            let RunError::Worker {
                packets,
                ref reason,
            } = error
            else {
                panic!("{error}");
            };
            assert!((1..=8000).contains(&packets), "{packets}");
            assert!(!reason.is_empty());
            assert!(
                error.to_string().contains("this is a mistake in flowsieve"),
                "{error}"
            );
        }
    }
}
