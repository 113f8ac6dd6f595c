//! The run: captures in, flows and DNS messages out.

use super::consumer::{Output, read};
use super::plan::FlowPlan;
use super::record::Ended;
use super::results::{FlowSink, FlowSummary};
use super::tables::Tables;
use crate::inputs::{RunError, Watch};

/// Lists the flows of the inputs, which are one trace in time order.
///
/// A flow goes to `sink` when it has ended: in no order, but always the same.
/// [`super::SortedFlows`] puts them in the order of start. Damaged inputs are no error: their
/// packets up to the damage count, and the summary says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn list(
    plan: &FlowPlan,
    sink: &mut dyn FlowSink,
    watch: &dyn Watch,
) -> Result<FlowSummary, RunError> {
    plan.check()?;
    let mut tables = Tables::new(plan);
    let (inputs, totals) = read(plan, &mut tables, sink, watch)?;
    let mut output = Output { totals, sink };
    let last = tables.finish(&mut output)?;
    let Output { mut totals, sink } = output;
    totals.end_many(Ended::Input, last.len() as u64);
    sink.last(last)?;
    Ok(FlowSummary { inputs, totals, uniqueness: None })
}
