//! The run: captures in, rows out.

use super::packets::{PacketBatch, PacketMaker};
use super::plan::{ExportError, ExportPlan, ExportWhat};
use super::results::{ExportSink, ExportSummary, ExportTotals};
use super::sightings::{SightingBatch, SightingMaker};
use super::slices::Slices;
use crate::decode::Skip;
use crate::inputs::{Feed, InputResult, Maker, Merge, Watch};
use crate::pipeline::SliceGrid;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// Hands the rows of the inputs, which are one trace in time order, to `sink`.
///
/// Packets come in the order of the trace. Elements come slice by slice, as slices are closed, in the order in which each was first
/// seen. Damaged inputs are no error: their packets up to the damage count, and the summary says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
pub fn export(
    plan: &ExportPlan,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<ExportSummary, ExportError> {
    plan.check()?;
    match plan.what {
        ExportWhat::Packets => packets(plan, sink, watch),
        ExportWhat::Elements { .. } => elements(plan, sink, watch),
    }
}

/// A row a packet.
fn packets(
    plan: &ExportPlan,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<ExportSummary, ExportError> {
    let maker = Arc::new(PacketMaker::new(plan.tunnel, &plan.dns_ports));
    let mut totals = ExportTotals::default();
    let (inputs, interrupted) = thread::scope(|scope| {
        let begin = |capture, open| Feed::start(scope, capture, &maker, plan.ahead(), open);
        plan.merge(watch, begin).drain(watch, |_, feed, packets| {
            let PacketBatch { rows, skipped, .. } = &mut feed.batch;
            let cursor = &mut feed.cursor;
            let first = cursor.packet - cursor.skipped;
            cursor.packet += packets;
            pass_skipped(
                skipped,
                &mut cursor.skipped,
                cursor.packet,
                &mut totals.skipped,
            );
            let range = first..cursor.packet - cursor.skipped;
            totals.packets += packets as u64;
            totals.rows += range.len() as u64;
            totals.bytes += rows.bytes[range.clone()].iter().sum::<u64>();
            sink.rows(rows, range)?;
            Ok::<(), ExportError>(())
        })
    })?;
    totals.row_packets = totals.rows;
    Ok(summary(inputs, totals, interrupted))
}

/// A row an element and slice.
fn elements(
    plan: &ExportPlan,
    sink: &mut dyn ExportSink,
    watch: &dyn Watch,
) -> Result<ExportSummary, ExportError> {
    let ExportWhat::Elements {
        kind,
        slicing,
        memory_bytes,
    } = plan.what
    else {
        unreachable!("packets are no elements");
    };
    let maker = Arc::new(SightingMaker::new(kind, plan.tunnel, &plan.dns_ports));
    let mut packets_before = 0;
    let mut skips = BTreeMap::new();
    let (inputs, interrupted, mut totals) = thread::scope(|scope| {
        let begin = |capture, open| Feed::start(scope, capture, &maker, plan.ahead(), open);
        let merge = plan.merge(watch, begin);
        let first_ns = merge.first_ns().unwrap_or(0);
        let grid = SliceGrid::new(slicing.width_ns, slicing.align, first_ns);
        let mut slices = Slices::new(kind, grid, memory_bytes, sink);
        let (inputs, interrupted) = merge.drain(watch, |_, feed, packets| {
            let batch: &SightingBatch = &feed.batch;
            let cursor = &mut feed.cursor;
            let (first, end) = (cursor.packet, cursor.packet + packets);
            while let Some(sighting) = batch.sightings.get(cursor.sighting)
                && (sighting.packet as usize) < end
            {
                let number = sighting.packet as usize;
                let name = sighting.question.map(|(_, name)| name as usize);
                slices.take(
                    batch.times_ns[number],
                    packets_before + (number - first) as u64,
                    sighting,
                    name.map(|name| batch.names.get(name)),
                )?;
                cursor.sighting += 1;
            }
            pass_skipped(&batch.skipped, &mut cursor.skipped, end, &mut skips);
            cursor.packet = end;
            packets_before += packets as u64;
            Ok::<(), ExportError>(())
        })?;
        Ok::<_, ExportError>((inputs, interrupted, slices.finish()?))
    })?;
    totals.packets = packets_before;
    totals.skipped = skips;
    Ok(summary(inputs, totals, interrupted))
}

/// Tallies the packets without a row up to the packet with this number.
fn pass_skipped(
    skipped: &[(u32, Skip)],
    next: &mut usize,
    end: usize,
    tally: &mut BTreeMap<Skip, u64>,
) {
    while let Some(&(number, reason)) = skipped.get(*next)
        && (number as usize) < end
    {
        *tally.entry(reason).or_default() += 1;
        *next += 1;
    }
}

fn summary(inputs: Vec<InputResult>, mut totals: ExportTotals, interrupted: bool) -> ExportSummary {
    totals.interrupted = interrupted;
    ExportSummary { inputs, totals }
}

impl ExportPlan {
    /// Threads that decode, besides the one that takes.
    fn ahead(&self) -> usize {
        self.threads.saturating_sub(1)
    }

    fn merge<'a, M: Maker + 'a>(
        &self,
        watch: &dyn Watch,
        begin: impl FnMut(crate::trace::Capture, usize) -> Feed<M> + 'a,
    ) -> Merge<'a, Feed<M>> {
        let inputs = self.selection.of(&self.inputs, self.input_format);
        Merge::new(&inputs, self.input_format, watch.stop(), begin)
    }
}
