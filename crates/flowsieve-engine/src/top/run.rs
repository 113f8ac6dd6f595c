//! The run: the pipeline's reading and slicing, with the ranking as its stage.

use super::extract::TopExtractor;
use super::plan::TopPlan;
use super::results::{TopSlice, TopSummary};
use super::rows::TopRows;
use super::stage::TopStage;
use crate::pipeline::{Cut, Edges, RunError, SlicePipeline, SliceSink, Watch};
use std::sync::Arc;
use std::thread;

/// Finds the keys with the most distinct others in each slice of the inputs, which are one trace in
/// time order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`](crate::pipeline::InputResult::error) says what happened.
///
/// # Errors
///
/// The plan does not hold, the sink failed, or a worker panicked.
pub fn top(
    plan: &TopPlan,
    sink: &mut dyn SliceSink<TopSlice>,
    watch: &dyn Watch,
) -> Result<TopSummary, RunError> {
    plan.check()?;
    plan.check_memory()?;
    // Several inputs may be open at the same time, with a thread each.
    let readers = match plan.trace.inputs.len() {
        1 => plan.trace.threads.saturating_sub(1) / 2,
        _ => plan.trace.threads.saturating_sub(2).min(1),
    };
    let is_live = plan.slicing.width_ns.is_some() && plan.trace.is_stream();
    let mut pipeline = SlicePipeline {
        trace: &plan.trace,
        extractor: Arc::new(TopExtractor::new(plan)),
        extractor_again: None,
        // The digest of the key.
        arity: 1,
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: 1,
        threads: readers,
        observers: Vec::new(),
        panes: None,
        rereads_all: false,
        recalls: false,
        delay_ns: plan.trace.delay_ns.filter(|_| is_live),
    };
    let is_live = pipeline.delay_ns.is_some();
    let read = thread::scope(|scope| {
        let edges = |grid| Edges::new(plan.slicing, &plan.trace.selection, grid);
        pipeline.read(
            scope,
            watch,
            |grid| TopStage::start(scope, plan, TopRows::new(sink, edges(grid), is_live)),
            |rows| TopStage::start(scope, plan, rows.again()),
        )
    })?;
    let cut = Cut::new(read.totals.interrupted);
    let sums = read.outcome.finish(cut).map_err(RunError::Sink)?;
    Ok(sums.summary(&plan.question, read.inputs, read.totals))
}
