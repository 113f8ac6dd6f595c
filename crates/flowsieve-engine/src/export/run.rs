//! The run: captures in, rows out.

use super::packets::PacketRowBuilder;
use super::plan::{ExportPlan, ExportWhat};
use super::results::{ExportSink, ExportSummary, ExportTotals};
use super::sightings::SightingBatchBuilder;
use super::slices::{Order, Slices};
use crate::elements::PacketRows;
use crate::inputs::{BatchBuilder, Feed, InputResult, RunError, Watch};
use crate::pipeline::{SliceSet, Slicing};
use crate::trace::TraceBatch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// Sightings whose memory is read together.
const PREFETCHED: usize = 64;

/// Hands the rows of the inputs, which are one trace in time order, to `sink`.
///
/// Packets come in the order of the trace. Elements come slice by slice, as slices are closed, in
/// the order in which each was first seen. Damaged inputs are no error: their packets up to the
/// damage count, and the summary says what happened.
///
/// A packet that comes after its slice was closed needs another reading: rows that were written
/// cannot be changed. Where the sink can begin again it is read anew when late packets were found;
/// where it cannot, they are looked for before. Inputs that can be read only once have a row for
/// each late packet.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn export(
    plan: &ExportPlan,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<ExportSummary, RunError> {
    plan.check()?;
    let ExportWhat::Elements { slicing, .. } = plan.what else {
        return packets(plan, sink, watch);
    };
    let can_read_again = !plan.trace.is_stream() && slicing.width_ns.is_some();
    let looks_before = can_read_again && !sink.can_begin_again();
    let (before, disordered) =
        if looks_before { order(plan, slicing, watch)? } else { Default::default() };
    let (mut summary, disordered) = elements_but(plan, disordered, sink, watch)?;
    if looks_before {
        summary.read_after(before);
    }
    if disordered.is_empty()
        || !can_read_again
        || !sink.can_begin_again()
        || summary.totals.interrupted
    {
        return Ok(summary);
    }
    sink.begin_again()?;
    let (mut again, _) = elements_but(plan, disordered, sink, watch)?;
    again.read_after(summary.inputs);
    Ok(again)
}

/// Emits a row for each packet.
fn packets(
    plan: &ExportPlan,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<ExportSummary, RunError> {
    let builder = Arc::new(PacketRowBuilder::new(&plan.trace.headers));
    let mut totals = ExportTotals::default();
    let (inputs, interrupted) = thread::scope(|scope| {
        let merge = plan.trace.feeds(scope, watch, &builder, plan.ahead(), false);
        merge.drain(watch, |_, feed, packets| {
            let Feed { batch, cursor, .. } = feed;
            let first = cursor.packet - cursor.skipped;
            cursor.packet += packets;
            batch.pass_skipped(cursor, cursor.packet, &mut totals.skipped);
            let range = first..cursor.packet - cursor.skipped;
            let rows = &mut batch.rows;
            totals.packets += packets as u64;
            totals.rows += range.len() as u64;
            totals.bytes += rows.bytes[range.clone()].iter().sum::<u64>();
            sink.rows(rows, range)?;
            Ok::<(), RunError>(())
        })
    })?;
    totals.row_packets = totals.rows;
    Ok(summary(inputs, totals, interrupted))
}

impl ExportSummary {
    /// Takes over the errors of an earlier reading.
    fn read_after(&mut self, before: Vec<InputResult>) {
        let inputs = std::mem::take(&mut self.inputs);
        self.inputs = InputResult::read_twice(inputs, before, self.totals.interrupted);
    }
}

/// Reads only the times of packets.
struct Times;

impl BatchBuilder for Times {
    type Batch = PacketRows<()>;

    fn append(&self, batch: TraceBatch<'_>, out: &mut PacketRows<()>) {
        out.times_ns.extend(batch.times_ns());
    }
}

/// Finds the slices that have late packets.
fn order(
    plan: &ExportPlan,
    slicing: Slicing,
    watch: &dyn Watch,
) -> Result<(Vec<InputResult>, SliceSet), RunError> {
    thread::scope(|scope| {
        let builder = Arc::new(Times);
        let merge = plan.trace.feeds(scope, watch, &builder, plan.ahead(), false);
        let mut order = Order::new(slicing.grid(merge.first_ns()));
        let mut packets_before = 0;
        let (inputs, _) = merge.drain(watch, |_, feed, packets| {
            let first = feed.cursor.packet;
            feed.cursor.packet += packets;
            for &time_ns in &feed.batch.times_ns[first..feed.cursor.packet] {
                order.place(time_ns, packets_before);
                packets_before += 1;
            }
            Ok::<(), RunError>(())
        })?;
        Ok((inputs, order.disordered))
    })
}

/// Emits the elements; those of slices in `disordered` as wholes, behind all others. Returns the
/// slices that had late packets.
fn elements_but(
    plan: &ExportPlan,
    disordered: SliceSet,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<(ExportSummary, SliceSet), RunError> {
    let ExportWhat::Elements { kind, slicing, memory_bytes, .. } = plan.what else {
        unreachable!("packets are no elements");
    };
    let builder = Arc::new(SightingBatchBuilder::new(plan));
    let mut packets_before = 0;
    let mut skips = BTreeMap::new();
    let (inputs, interrupted, mut totals, late) = thread::scope(|scope| {
        let merge = plan.trace.feeds(scope, watch, &builder, plan.ahead(), false);
        let grid = slicing.grid(merge.first_ns());
        let mut slices = Slices::new(kind, grid, memory_bytes, disordered, sink);
        let (inputs, interrupted) = merge.drain(watch, |_, feed, packets| {
            let Feed { batch, cursor, .. } = feed;
            let sightings = &batch.rows;
            let end = cursor.packet + packets;
            let mut prefetched = cursor.rows;
            for number in cursor.packet..end {
                let time_ns = batch.times_ns[number];
                let goal = slices.goal(time_ns, packets_before)?;
                packets_before += 1;
                if cursor.rows >= prefetched {
                    // Packets that are still to come have most of them.
                    let ahead = (end - number).min(PREFETCHED);
                    prefetched = sightings.all.len().min(cursor.rows + ahead);
                    slices.prefetch(&sightings.all[cursor.rows..prefetched]);
                }
                while let Some(sighting) = sightings.all.get(cursor.rows)
                    && sighting.packet as usize == number
                {
                    let name = sighting.question.map(|(_, name)| name as usize);
                    let name = name.map(|name| sightings.names.get(name));
                    slices.push(goal, time_ns, sighting, name)?;
                    cursor.rows += 1;
                }
            }
            batch.pass_skipped(cursor, end, &mut skips);
            cursor.packet = end;
            Ok::<(), RunError>(())
        })?;
        let late = std::mem::take(&mut slices.order.disordered);
        Ok::<_, RunError>((inputs, interrupted, slices.finish()?, late))
    })?;
    totals.packets = packets_before;
    totals.skipped = skips;
    Ok((summary(inputs, totals, interrupted), late))
}

fn summary(inputs: Vec<InputResult>, mut totals: ExportTotals, interrupted: bool) -> ExportSummary {
    totals.interrupted = interrupted;
    ExportSummary { inputs, totals }
}

impl ExportPlan {
    /// Threads that decode, in addition to the one that consumes.
    fn ahead(&self) -> usize {
        self.trace.threads.saturating_sub(1)
    }
}
