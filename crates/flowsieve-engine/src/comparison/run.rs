//! The run: the pipeline's reading and slicing, with the comparison as its stage.

use super::stage::Bench;
use super::{ComparePlan, Comparison};
use crate::elements::Extractor;
use crate::hashing::Digester;
use crate::pipeline::{
    Align, Beside, Cut, Edges, InputResult, Read, Reading, RunError, SliceGrid, Totals, Traffic,
    Watch,
};
use std::sync::Arc;
use std::thread;

/// Compares structures on the inputs, which are one trace in time order and are decoded once; adds
/// all packets to the `traffic` if that is wanted.
///
/// Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`](crate::pipeline::InputResult) says what happened.
///
/// # Errors
///
/// The plan does not hold, or a worker panicked.
pub fn compare(
    plan: &ComparePlan,
    traffic: Option<&mut Traffic>,
    watch: &dyn Watch,
) -> Result<Comparison, RunError> {
    plan.check()?;
    plan.check_memory()?;
    let digester = Digester::new(plan.seed);
    let extractor = Extractor::new(plan.rule.clone(), &plan.trace.headers, digester, true, true);
    let can_read_again = !plan.trace.is_stream();
    let mut reading = Reading {
        inputs: plan.trace.sources(),
        input_format: plan.trace.input_format,
        extractor: Arc::new(if traffic.is_some() { extractor.with_addresses() } else { extractor }),
        arity: plan.rule.kind.attributes().len(),
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: 1,
        threads: usize::from(plan.trace.threads > 2),
        beside: traffic.into_iter().map(|traffic| traffic as &mut dyn Beside).collect(),
        panes: None,
        recalls: false,
        delay_ns: None,
    };
    let mut grid = SliceGrid::new(None, Align::Epoch, 0);
    let read = thread::scope(|scope| {
        reading.run(scope, watch, |of_trace| {
            grid = of_trace;
            Bench::new(scope, plan)
        })
    });
    let Read { inputs, mut totals, disordered, mut outcome } = read?;
    if !disordered.is_empty() && !totals.interrupted && can_read_again {
        // Structures are judged by whole slices.
        let again = thread::scope(|scope| {
            reading.run_by_slice(scope, watch, None, |_| Bench::new(scope, plan))
        })?;
        totals.uncounted = again.totals.uncounted;
        totals.interrupted = again.totals.interrupted;
        outcome = again.outcome;
    }
    mark_partial(
        &mut outcome,
        Edges::new(plan.slicing, &plan.trace.selection, grid),
        totals.interrupted,
    );
    let is_full = |slice: &usize| {
        let mut entries = outcome.entries.iter();
        entries.any(|entry| entry.counts.get(*slice).is_some_and(|c| c.saturated))
    };
    let kept = outcome.slices.len();
    let totals = Totals {
        slices: kept as u64 + outcome.slices_omitted,
        saturated_slices: (0..kept).filter(is_full).count() as u64,
        complete: InputResult::all_read(&inputs, totals.interrupted),
        ..totals
    };
    Ok(Comparison { inputs, totals, ..outcome })
}

/// Marks the slices that the trace covers only in part.
fn mark_partial(outcome: &mut Comparison, edges: Edges, interrupted: bool) {
    let first_ns = outcome.slices.first().map_or(0, |first| first.start_ns);
    // Slices that were left out are the last ones.
    let last = outcome.slices.len().checked_sub(1).filter(|_| outcome.slices_omitted == 0);
    for (number, slice) in outcome.slices.iter_mut().enumerate() {
        let cut = (last == Some(number)).then_some(Cut::of(interrupted));
        slice.partial = edges.is_partial((slice.start_ns, slice.end_ns), first_ns, cut);
    }
}
