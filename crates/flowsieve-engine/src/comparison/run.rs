//! The run: the pipeline's reading and slicing, with the comparison as its stage.

use super::evaluation::evaluate;
use super::slice_list::Collected;
use super::stage::CompareStage;
use super::trial::Trial;
use super::{ComparePlan, Comparison, Contender, Entry, Expected};
use crate::elements::Extractor;
use crate::filters::Measure;
use crate::hashing::Digester;
use crate::pipeline::{
    Cut, Edges, InputResult, Observer, PipelineResult, RunError, SlicePipeline, Totals, Traffic,
    Watch,
};
use crate::trace::StopFlag;
use std::sync::Arc;
use std::{mem, thread};

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
    let read = collect(plan, traffic, watch)?;
    let mut collected = read.outcome;
    let edges = Edges::new(plan.slicing, &plan.trace.selection, read.grid);
    mark_partial(&mut collected, edges, read.totals.interrupted, plan.whole_slices);
    let packets = read.totals.packets;
    // An interrupted run gives the result of a trace that ends there.
    let stop = if read.totals.interrupted { StopFlag::default() } else { watch.stop() };
    let evaluated = thread::scope(|scope| evaluate(scope, plan, collected, &stop));
    let (mut comparison, is_stopped) =
        evaluated.map_err(|panicked| RunError::panicked(packets, panicked))?;
    if plan.wanted.iter().all(|(mask, _)| *mask != plan.rule.kind.all()) {
        // A filter planned for parts of elements has no count of whole elements.
        let planned = comparison.entries.iter_mut().filter(|it| it.contender == Contender::Planned);
        for replicate in planned.flat_map(|entry| &mut entry.replicates) {
            replicate.first.clear();
            replicate.estimates.clear();
        }
    }
    let interrupted = read.totals.interrupted || is_stopped;
    let totals = Totals {
        slices: comparison.slices.len() as u64 + comparison.slices_omitted,
        saturated_slices: comparison.entries.iter().map(Entry::saturated_slices).max().unwrap_or(0),
        complete: InputResult::all_read(&read.inputs, interrupted),
        interrupted,
        ..read.totals
    };
    Ok(Comparison { inputs: read.inputs, totals, ..comparison })
}

/// Lets `choose` measure filters on the elements of a plan from [`ComparePlan::of_trial`]. Each value
/// of an absent element that is asked for occurs with the probability `known`. `None` if there is
/// nothing to measure. `before` are the results of an earlier reading, which get those of this one.
///
/// # Errors
///
/// The plan does not hold, or a worker panicked.
pub fn with_trial<T>(
    plan: &ComparePlan,
    known: f64,
    before: &mut Vec<InputResult>,
    watch: &dyn Watch,
    choose: impl FnOnce(&mut Measure<'_>) -> T,
) -> Result<Option<T>, RunError> {
    let read = collect(plan, None, watch)?;
    let collected = read.outcome;
    *before = InputResult::read_twice(mem::take(before), read.inputs, read.totals.interrupted);
    let (slices, elements) = (&collected.slices, collected.slices.first());
    let expected = Expected {
        elements: elements.and_then(|closed| closed.slice.exact),
        ..Expected::default()
    };
    let trial = Trial::new(plan, slices, &expected, known);
    Ok(trial.map(|trial| choose(&mut |spec| trial.rates(spec))))
}

/// Reads the inputs and leaves the list of each slice.
fn collect(
    plan: &ComparePlan,
    traffic: Option<&mut Traffic>,
    watch: &dyn Watch,
) -> Result<PipelineResult<Collected>, RunError> {
    let digester = Digester::new(plan.seed);
    // Values are hashed of first sightings only.
    let extractor = Extractor::new(plan.rule.clone(), &plan.trace.headers, digester, false, true);
    let mut pipeline = SlicePipeline {
        trace: &plan.trace,
        extractor: Arc::new(if traffic.is_some() { extractor.with_addresses() } else { extractor }),
        extractor_again: None,
        arity: plan.rule.kind.arity(),
        slicing: plan.slicing,
        open_slices: plan.open_slices(),
        shards: 1,
        threads: usize::from(plan.trace.threads > 2),
        observers: traffic.into_iter().map(|traffic| traffic as &mut dyn Observer).collect(),
        panes: None,
        // Structures are judged by whole slices.
        rereads_all: true,
        recalls: false,
        delay_ns: None,
    };
    let mut read = thread::scope(|scope| {
        let stage = || CompareStage::new(scope, plan);
        pipeline.read(scope, watch, |_| stage(), |_| stage())
    })?;
    read.outcome.sort();
    Ok(read)
}

/// Marks the slices that the trace covers only in part, and leaves them out if that is asked.
fn mark_partial(collected: &mut Collected, edges: Edges, interrupted: bool, whole: bool) {
    let slices = &mut collected.slices;
    let first_ns = slices.first().map_or(0, |first| first.slice.start_ns);
    // Slices that were left out are the last ones.
    let last = slices.len().checked_sub(1).filter(|_| collected.slices_omitted == 0);
    for (number, closed) in slices.iter_mut().enumerate() {
        let slice = &mut closed.slice;
        let cut = (last == Some(number)).then_some(Cut::new(interrupted));
        slice.partial = edges.is_partial((slice.start_ns, slice.end_ns), first_ns, cut);
        slice.judged &= !(whole && slice.partial);
    }
}
