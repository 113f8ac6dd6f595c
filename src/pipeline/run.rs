//! The run: open the inputs in the order of time, merge them, and let the sequencer have them.

use super::collector::Collector;
use super::merge::{Batch, Maker, Merge, Sources, Taker, unread};
use super::plan::{CountPlan, PlanError};
use super::results::{CountSummary, InputResult, SliceSink, Totals, Watch};
use super::sequencer::{Cursor, Sequencer, Stop};
use super::shard::ShardSpec;
use super::time_slice::SliceGrid;
use super::workers::Shards;
use crate::elements::{ElementBatch, Extractor};
use crate::filters::MembershipFilter;
use crate::filters::saved::SavedFilter;
use crate::hashing::Digester;
use crate::trace::TraceBatch;
use std::io;
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
}

/// Counts the distinct elements of each time slice of the inputs, which are one trace in time order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`] says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count(
    plan: &CountPlan,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<CountSummary, RunError> {
    Ok(count_with(plan, sink, watch, false)?.0)
}

/// Counts as [`count`] does, and keeps the filter of the only slice.
///
/// # Errors
///
/// As for [`count`]; the plan has several slices or no filter.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count_and_keep(
    plan: &CountPlan,
    label: Vec<u8>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<(CountSummary, SavedFilter), RunError> {
    let spec = plan.kept_filter()?.shard.clone();
    let (summary, filters) = count_with(plan, sink, watch, true)?;
    let kept = if filters.is_empty() {
        // There was no packet, so there was no slice.
        SavedFilter::empty(spec, plan.seed, label, plan.shards as usize)
    } else {
        SavedFilter::of_shards(spec, plan.seed, label, filters)
    };
    Ok((summary, kept.map_err(PlanError::from)?))
}

fn count_with(
    plan: &CountPlan,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
    keep: bool,
) -> Result<(CountSummary, Kept), RunError> {
    plan.check()?;
    let mut inputs = unread(&plan.inputs);
    let (totals, kept) = thread::scope(|scope| run(scope, plan, &mut inputs, sink, watch, keep))?;
    Ok((CountSummary { inputs, totals }, kept))
}

fn run<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &CountPlan,
    inputs: &mut [InputResult],
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
    keep: bool,
) -> Result<(Totals, Kept), RunError> {
    let extractor = Extractor::new(
        plan.rule.clone(),
        plan.tunnel,
        Digester::new(plan.seed),
        plan.filter
            .as_ref()
            .is_some_and(|filter| filter.shard.needs_attributes()),
        plan.exact_limit_bytes.is_some(),
    );
    let sources = Sources {
        format: plan.input_format,
        threaded: plan.threads > 1,
    };
    let mut merge = Merge::start(scope, sources, extractor, inputs);
    let first_ns = merge.first_ns().unwrap_or(0);
    let grid = SliceGrid::new(plan.slicing.width_ns, plan.slicing.align, first_ns);
    let bounds = move |index| grid.bounds(index);
    let spec = ShardSpec {
        filter: plan.filter.as_ref().map(|filter| filter.shard.clone()),
        exact_limit_bytes: plan.exact_set_limit(),
        open_slices: plan.open_slices(),
        keep,
    };
    let shards = plan.shards as usize;
    // One thread decodes, one merges and slices; with two, the second serves the shards as well.
    let workers = plan.threads.saturating_sub(2);
    let mut sequencer = Sequencer::new(
        grid,
        plan.slicing.width_ns.is_none(),
        plan.open_slices(),
        plan.attributes(),
        shards,
        Shards::start(scope, &spec, shards, workers),
        Collector::new(sink, shards, &spec.empty_tally(), &bounds),
    );
    merge
        .drain_into(&mut sequencer, watch)
        .and_then(|()| sequencer.finish())
        .map_err(|stop| match stop {
            Stop::Sink(error) => RunError::Sink(error),
            Stop::Worker => panic!("a shard's thread ended before its work did"),
        })
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

impl Taker<ElementBatch> for Sequencer<'_> {
    type Stop = Stop;

    fn take(&mut self, batch: &ElementBatch, cursor: &mut Cursor, end: usize) -> Result<(), Stop> {
        Sequencer::take(self, batch, cursor, end)
    }
}
