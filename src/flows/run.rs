//! The run: captures in, flows and DNS messages out.

use super::batch::{Cursor, FlowBatch, FlowMaker};
use super::plan::{FlowError, FlowPlan};
use super::results::{FlowSink, FlowSummary, FlowTotals};
use super::table::FlowTable;
use crate::pipeline::merge::{Merge, Sources, Taker, unread};
use crate::pipeline::{InputResult, Stop, Watch};
use std::io;
use std::thread;

/// Lists the flows of the inputs, which are one trace in time order.
///
/// A flow goes to `sink` when it has ended: in no order, but always the same. [`super::SortedFlows`]
/// puts them in the order of start. Damaged inputs are no error: their packets up to the damage
/// count, and the summary says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn list(
    plan: &FlowPlan,
    sink: &mut dyn FlowSink,
    watch: &dyn Watch,
) -> Result<FlowSummary, FlowError> {
    plan.check()?;
    let mut lister = Lister {
        table: FlowTable::new(plan.memory_bytes, plan.idle_ns, plan.active_ns),
        sink,
        totals: FlowTotals::default(),
    };
    let (inputs, interrupted) = read(plan, &mut lister, watch)?;
    lister.totals.interrupted = interrupted;
    Ok(FlowSummary {
        inputs,
        totals: lister.finish()?,
        uniqueness: None,
    })
}

/// Reads all inputs into the taker; also says whether the reading was ended before they were.
pub(super) fn read(
    plan: &FlowPlan,
    taker: &mut impl Taker<FlowBatch>,
    watch: &dyn Watch,
) -> Result<(Vec<InputResult>, bool), Stop> {
    let mut inputs = unread(&plan.inputs);
    let maker = FlowMaker::new(plan.tunnel, &plan.dns_ports, plan.bidirectional);
    let sources = Sources {
        format: plan.input_format,
        threads: plan.threads.saturating_sub(1),
        stop: watch.stop(),
    };
    let interrupted = thread::scope(|scope| {
        Merge::start(scope, sources, maker, &mut inputs).drain_into(taker, watch)
    })?;
    Ok((inputs, interrupted))
}

/// Counts the packets that the cursor passes up to `end` and that belong to no flow.
pub(super) fn pass_skipped(
    batch: &FlowBatch,
    cursor: &mut Cursor,
    end: usize,
    totals: &mut FlowTotals,
) -> usize {
    let packets = end - cursor.packet;
    let mut skipped = 0;
    while let Some(&(packet, skip)) = batch.skipped.get(cursor.skipped)
        && (packet as usize) < end
    {
        *totals.skipped.entry(skip).or_default() += 1;
        cursor.skipped += 1;
        skipped += 1;
    }
    totals.packets += packets as u64;
    totals.ip_packets += (packets - skipped) as u64;
    packets - skipped
}

/// Takes packets into the table.
struct Lister<'a> {
    table: FlowTable,
    sink: &'a mut dyn FlowSink,
    totals: FlowTotals,
}

impl Taker<FlowBatch> for Lister<'_> {
    fn take(&mut self, batch: &FlowBatch, cursor: &mut Cursor, end: usize) -> Result<(), Stop> {
        let mut skipped = cursor.skipped;
        let flows = pass_skipped(batch, cursor, end, &mut self.totals);
        let last = cursor.flow + flows;
        let Self {
            table,
            sink,
            totals,
        } = self;
        let mut bytes = 0;
        for number in cursor.packet..end {
            if batch.is_skipped(number, &mut skipped) {
                continue;
            }
            let packet = &batch.flows[cursor.flow];
            bytes += u64::from(packet.bytes);
            let time_ns = batch.times_ns[number];
            let at = table.add(time_ns, packet, &mut |flow| {
                totals.end(&flow);
                sink.flow(flow)
            })?;
            while let Some(message) = batch.messages.get(cursor.message)
                && message.packet as usize == cursor.flow
            {
                let record = message.record(time_ns, packet, batch.names.get(cursor.message));
                table.name(at, record.name);
                sink.dns(&record)?;
                totals.dns_messages += 1;
                cursor.message += 1;
            }
            cursor.flow += 1;
        }
        debug_assert_eq!(cursor.flow, last);
        cursor.packet = end;
        totals.bytes += bytes;
        Ok(())
    }
}

impl Lister<'_> {
    /// Ends all flows; the totals.
    fn finish(self) -> io::Result<FlowTotals> {
        let (sink, mut totals) = (self.sink, self.totals);
        self.table.finish(|flow| {
            totals.end(&flow);
            sink.flow(flow)
        })?;
        Ok(totals)
    }
}
