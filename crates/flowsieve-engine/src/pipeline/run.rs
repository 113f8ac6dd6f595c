//! The run: the inputs, merged by time, go to the sequencer, and its slices to the sink.

use super::edges::{Cut, Edges};
use super::plan::CountPlan;
use super::results::{CountSummary, SliceSink, Totals};
use super::rows::Rows;
use super::shard_spec::ShardSpec;
use super::slice_pipeline::{Observer, SlicePipeline};
#[cfg(doc)]
use super::traffic::Traffic;
use super::whole::Whole;
use super::workers::{Begun, Collector, CountStage};
use crate::filters::saved::SavedFilter;
use crate::filters::{FilterSpec, MembershipFilter};
use crate::inputs::{InputResult, PlanError, RunError, Watch};
use crate::plan::TracePlan;
use std::fmt;
use std::sync::Arc;
use std::thread;

/// Optional inputs and outputs of a count.
#[derive(Default)]
pub struct CountExtras<'a> {
    /// Observers of the packets, such as [`Traffic`].
    #[doc(hidden)]
    pub observers: Vec<&'a mut dyn Observer>,
    /// Label of the filter of the only slice, which is kept then as [`CountSummary::filter`].
    pub filter_label: Option<Vec<u8>>,
    /// The filter that the only slice begins with: that of an earlier count, with the plan's
    /// parameters, seed and shards.
    pub continued: Option<SavedFilter>,
}

impl fmt::Debug for CountExtras<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountExtras")
            .field("filter_label", &self.filter_label)
            .finish_non_exhaustive()
    }
}

/// Returns how many threads decode, and how many serve shards; one merges and slices.
fn readers_and_workers(trace: &TracePlan) -> (usize, usize) {
    // With two threads, the second serves the shards of one input as well.
    if trace.inputs.len() == 1 {
        let readers = trace.threads / 2;
        return (readers, trace.threads.saturating_sub(1 + readers));
    }
    // Several inputs may be open at the same time, with a thread each, and merging them keeps
    // one thread busy.
    let readers = trace.threads.saturating_sub(1).min(1);
    (readers, trace.threads.saturating_sub(1 + readers).max(readers))
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
    let CountExtras { observers, filter_label, continued } = extras;
    if let Some(filter) = &continued {
        plan.check_continued(filter)?;
    }
    let kept = match filter_label {
        Some(label) => Some((plan.kept_filter()?.clone(), label)),
        None => None,
    };
    plan.check()?;
    plan.check_memory()?;
    let (readers, workers) = readers_and_workers(&plan.trace);
    let observers = observers.into_iter().map(|observer| observer as &mut dyn Observer);
    let mut pipeline = pipeline(plan, readers, observers.collect());
    let is_live = pipeline.delay_ns.is_some();
    let keeps_recent = pipeline.recalls || is_live;
    let spec = ShardSpec {
        journal: pipeline.recalls,
        ..ShardSpec::new(plan, plan.open_slices(), kept.is_some())
    };
    let is_continued = continued.is_some();
    let filters = continued.map(SavedFilter::into_shards).unwrap_or_default();
    let begun = Begun { filters, ..Begun::default() };
    let shards = plan.shards as usize;
    let read = thread::scope(|scope| {
        let start = |rows, begun| {
            let collector = Collector::new(rows, shards);
            CountStage::start(scope, &spec, shards, workers, begun, collector)
        };
        let first = |grid| {
            let edges = Edges::new(plan.grid(), &plan.trace.selection, grid);
            let mut rows = Rows::new(sink, spec.empty_tally(), grid, edges, plan.panes());
            if keeps_recent {
                rows.keep_recent(is_live);
            }
            start(rows, begun)
        };
        pipeline.read(scope, watch, first, |(rows, Begun { wholes, .. })| {
            start(rows.again(), Begun { wholes, ..Begun::default() })
        })
    })?;
    let (rows, Begun { filters, wholes }) = read.outcome;
    let whole = wholes.into_iter().map(Whole::tally).collect();
    let cut = Cut::new(read.totals.interrupted);
    let complete = InputResult::all_read(&read.inputs, read.totals.interrupted);
    let totals = rows.finish(cut, whole, Totals { complete, ..read.totals })?;
    if is_continued && totals.packets == 0 && !totals.interrupted {
        return Err(nothing_read());
    }
    let filter = kept.map(|kept| saved_filter(plan, kept, filters)).transpose()?;
    Ok(CountSummary { inputs: read.inputs, totals, filter })
}

/// Returns the error of a continued count without packets.
fn nothing_read() -> RunError {
    let rule =
        "no packet was read, so there is nothing to go on with: the saved filter stays as it is";
    PlanError::new(rule).into()
}

/// Returns the pipeline of a count.
fn pipeline<'a>(
    plan: &'a CountPlan,
    readers: usize,
    observers: Vec<&'a mut dyn Observer>,
) -> SlicePipeline<'a> {
    let needs_keys = observers.iter().any(|observer| observer.needs_keys());
    let with_keys = plan.exact_limit_bytes.is_some() || needs_keys;
    let extractor = || plan.extractor(plan.needs_attributes(), with_keys);
    let is_live = plan.slicing.width_ns.is_some() && plan.trace.is_stream();
    // A few packets of each input are merged at a time.
    let divides = readers > 0 && plan.trace.inputs.len() == 1;
    let first = if observers.is_empty() {
        extractor().dividing(if divides { plan.shards } else { 1 })
    } else {
        extractor().with_addresses()
    };
    SlicePipeline {
        trace: &plan.trace,
        extractor: Arc::new(first),
        // Slices take their elements in the order of packets.
        extractor_again: Some(Arc::new(extractor())),
        observers,
        arity: plan.attributes(),
        slicing: plan.grid(),
        panes: plan.panes(),
        open_slices: plan.open_slices(),
        shards: plan.shards as usize,
        threads: readers,
        // Where windows slide, packets out of order change all windows that follow.
        rereads_all: plan.panes().is_some(),
        // Nothing of a window that slides can be restored.
        recalls: is_live && plan.panes().is_none(),
        delay_ns: plan.trace.delay_ns.filter(|_| is_live),
    }
}

/// Puts the filters of all shards together.
fn saved_filter(
    plan: &CountPlan,
    (spec, label): (FilterSpec, Vec<u8>),
    filters: Vec<Box<dyn MembershipFilter>>,
) -> Result<SavedFilter, PlanError> {
    let filter = if filters.is_empty() {
        // There was no packet, so there was no slice.
        SavedFilter::empty(spec, plan.seed, label, plan.shards as usize)
    } else {
        SavedFilter::of_shards(spec, plan.seed, label, filters)
    };
    filter.map_err(PlanError::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::plan::Slicing;
    use super::*;
    use crate::elements::ElementRule;
    use crate::filters::{BloomSpec, CounterSpec, FilterSpec};
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
        let broken = CounterSpec::Filter(FilterSpec::Bloom(BloomSpec { bits: 0, probes: 1 }));
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
