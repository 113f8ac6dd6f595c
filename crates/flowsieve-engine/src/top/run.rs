//! The run: the pipeline's reading and slicing, with the ranking as its stage.

use super::extract::TopExtractor;
use super::plan::TopPlan;
use super::results::{TopSink, TopSummary};
use super::rows::TopRows;
use super::stage::TopStage;
use crate::pipeline::{Align, Cut, Edges, Read, Reading, RunError, SliceGrid, Watch};
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
    sink: &mut dyn TopSink,
    watch: &dyn Watch,
) -> Result<TopSummary, RunError> {
    plan.check()?;
    plan.check_memory()?;
    // Several inputs may be open at the same time, with a thread each.
    let readers = match plan.trace.inputs.len() {
        1 => plan.trace.threads.saturating_sub(1) / 2,
        _ => plan.trace.threads.saturating_sub(2).min(1),
    };
    let can_read_again = !plan.trace.is_stream();
    let mut reading = Reading {
        inputs: plan.trace.sources(),
        input_format: plan.trace.input_format,
        extractor: Arc::new(TopExtractor::of(plan)),
        // The digest of the key.
        arity: 1,
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: 1,
        threads: readers,
        beside: Vec::new(),
        panes: None,
        recalls: false,
        delay_ns: None,
    };
    let mut grid = SliceGrid::new(None, Align::Epoch, 0);
    let read = thread::scope(|scope| {
        reading.run(scope, watch, |of_trace| {
            grid = of_trace;
            TopStage::start(scope, plan, TopRows::new())
        })
    })?;
    let Read { inputs, mut totals, disordered, outcome: mut rows } = read;
    if !disordered.is_empty() && !totals.interrupted && can_read_again {
        let again = thread::scope(|scope| {
            reading.run_by_slice(scope, watch, Some(&disordered), |_| {
                TopStage::start(scope, plan, rows.again())
            })
        })?;
        rows = again.outcome;
        totals.uncounted = again.totals.uncounted;
        totals.interrupted = again.totals.interrupted;
    }
    let edges = Edges::new(plan.slicing, &plan.trace.selection, grid);
    let sums = rows.finish(edges, Cut::of(totals.interrupted), sink).map_err(RunError::Sink)?;
    totals.slices = sums.slices;
    Ok(sums.summary(&plan.question, inputs, totals))
}
