//! The loop: the next packets, their keys, the window's answer for each, and their writers.

use super::approximate::Approximate;
use super::key::{Key, Keyer};
use super::plan::{DedupPlan, SnapLength, WindowWidth};
use super::results::{DedupSummary, DropKind, Drops};
use super::slices::Slices;
use super::snaplen::Cutter;
use super::tcp::TcpFlows;
use super::window::Window;
use crate::anonymize::PacketAnonymizer;
use crate::inputs::{Batch, BatchBuilder, InputResult, RecordInput, RunError, Watch};
use crate::trace::write::{CaptureWriter, WriteError};
use crate::trace::{PacketRef, RecordBatch, TraceBatch, is_out_of_range};
use ahash::RandomState;
use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

/// Packets whose memory stays in the first-level cache while they are compared and tallied.
const AT_ONCE: usize = 256;

/// The writers of packets.
#[derive(Debug)]
pub struct Writers<W: Write + Send + 'static> {
    /// Writer of the packets that are kept.
    pub kept: Option<CaptureWriter<W>>,
    /// Writer of the packets that are dropped.
    pub dropped: Option<CaptureWriter<W>>,
    /// Replaces the addresses in what is written.
    pub anonymizer: Option<PacketAnonymizer>,
}

impl<W: Write + Send + 'static> Writers<W> {
    /// Gives `put` each writer, and whether it is that of dropped packets.
    fn each(
        &mut self,
        mut put: impl FnMut(&mut CaptureWriter<W>, bool) -> Result<(), WriteError>,
    ) -> Result<(), RunError> {
        if let Some(writer) = &mut self.kept {
            put(writer, false).map_err(RunError::Kept)?;
        }
        if let Some(writer) = &mut self.dropped {
            put(writer, true).map_err(RunError::Dropped)?;
        }
        Ok(())
    }
}

/// Writes the packets of the inputs, which are one capture in the order of time, without
/// duplicates. The writers are to be finished by the caller.
///
/// Damaged inputs are no error: their packets up to the damage count, and [`DedupSummary::inputs`]
/// says what happened. If the watch ends the run, what is written is whole, and
/// [`DedupSummary::interrupted`] says that there was more.
///
/// # Errors
///
/// The plan does not hold, or packets could not be written.
pub fn dedup<W: Write + Send + 'static>(
    plan: &DedupPlan,
    writers: &mut Writers<W>,
    watch: &dyn Watch,
) -> Result<DedupSummary, RunError> {
    plan.check()?;
    let seed = plan.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let keyer = Keyer::new(plan.by, plan.trace.headers.tunnel, plan.distinguish, seed);
    let writes = writers.kept.is_some() || writers.dropped.is_some();
    if writes || !keyer.needs_bytes_only() {
        filter(plan, &keyer, writers, watch)
    } else {
        tally(plan, keyer, watch)
    }
}

/// Reads in this thread, which has the packets as they stand in the captures.
fn filter<W: Write + Send + 'static>(
    plan: &DedupPlan,
    keyer: &Keyer,
    writers: &mut Writers<W>,
    watch: &dyn Watch,
) -> Result<DedupSummary, RunError> {
    let mut run = DedupRun::new(plan);
    if let Some(SnapLength::Bytes(bytes)) = plan.snap_length {
        for writer in writers.kept.iter_mut().chain(&mut writers.dropped) {
            writer.limit_snap_length(bytes);
        }
    }
    let mut cutter = plan.snap_length.map(|snap| Cutter::new(snap, plan.trace.headers.tunnel));
    let mut keys = KeyBatch::default();
    let mut flows = TcpFlows::default();
    let rest = RefCell::default();
    let begin = |capture, _| RecordInput::with_annotations(capture, &rest);
    let (inputs, interrupted) =
        plan.trace.merge(watch, begin).drain(watch, |number, input, count| {
            let (batch, range) = input.next(count);
            keys.clear();
            for index in range.clone() {
                let packet = &batch.packets[index];
                let interface = || (number as u32, batch.record(index).interface);
                let key = keyer.key(packet, batch.bytes, interface, &mut flows);
                keys.push(packet, key);
            }
            run.take(&mut keys, 0..count);
            write_all(writers, &mut cutter, number, &batch, range, &run.dropped)
        })?;
    if writers.anonymizer.is_none() {
        let rest = rest.borrow();
        writers.each(|writer, _| {
            writer.lose(&rest.others);
            writer.annotate(&rest.annotations)
        })?;
    }
    Ok(run.finish(inputs, interrupted))
}

/// Makes keys in the threads that read, where nothing is written.
fn tally(plan: &DedupPlan, keyer: Keyer, watch: &dyn Watch) -> Result<DedupSummary, RunError> {
    let mut run = DedupRun::new(plan);
    let builder = Arc::new(KeyBatchBuilder(keyer));
    let threads = plan.trace.threads.saturating_sub(1);
    let (inputs, interrupted) = thread::scope(|scope| {
        plan.trace.feeds(scope, watch, &builder, threads, false).drain(watch, |_, feed, count| {
            let first = feed.cursor;
            feed.cursor += count;
            run.take(&mut feed.batch, first..feed.cursor);
            Ok::<(), RunError>(())
        })
    })?;
    Ok(run.finish(inputs, interrupted))
}

enum Memory {
    Exact(Box<Window>),
    Approximate(Box<Approximate>),
}

/// The state of a run.
struct DedupRun {
    memory: Memory,
    /// The window counts packets, so stamps are their numbers.
    by_number: bool,
    slices: Option<Slices>,
    totals: Drops,
    not_compared: u64,
    out_of_order: u64,
    last_ns: i64,
    /// Digests and stamps of those of the last packets that are compared, and whether they are
    /// repeats.
    digests: Vec<u128>,
    stamps: Vec<i64>,
    repeats: Vec<bool>,
    /// Which of the packets taken last are dropped.
    dropped: Vec<bool>,
}

impl DedupRun {
    fn new(plan: &DedupPlan) -> Self {
        Self {
            memory: if plan.approximate {
                Memory::Approximate(Box::new(Approximate::new(plan.window, plan.memory_bytes)))
            } else {
                Memory::Exact(Box::new(Window::new(plan.window, plan.filter, plan.memory_bytes)))
            },
            by_number: matches!(plan.window, WindowWidth::Packets(_)),
            slices: plan.slice_ns.map(|width| Slices::new(width, plan.trace.selection.zone)),
            totals: Drops::default(),
            not_compared: 0,
            out_of_order: 0,
            last_ns: i64::MIN,
            digests: Vec::new(),
            stamps: Vec::new(),
            repeats: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Adds packets, and sets `dropped` for each of them.
    fn take(&mut self, keys: &mut KeyBatch, range: Range<usize>) {
        self.dropped.clear();
        for first in range.clone().step_by(AT_ONCE) {
            self.take_some(keys, first..range.end.min(first + AT_ONCE));
        }
    }

    fn take_some(&mut self, keys: &mut KeyBatch, range: Range<usize>) {
        let times_ns = &keys.times_ns[range.clone()];
        let captured = &keys.captured[range.clone()];
        let kinds = &mut keys.kinds[range.clone()];
        self.compare(times_ns, &keys.digests[range], kinds);
        let mut repeats = self.repeats.iter();
        for ((kind, &bytes), &time_ns) in kinds.iter().zip(captured).zip(times_ns) {
            let dropped = kind.filter(|_| repeats.next().copied().unwrap_or(false));
            self.totals.add(bytes, dropped);
            if let Some(slices) = &mut self.slices {
                slices.add(time_ns, bytes, dropped);
            }
            self.dropped.push(dropped.is_some());
        }
    }

    /// Compares the packets that can be repeats with the window.
    fn compare(&mut self, times_ns: &[i64], digests: &[u128], kinds: &mut [Option<DropKind>]) {
        self.digests.clear();
        self.stamps.clear();
        self.repeats.clear();
        let first = self.totals.packets;
        for (((&time_ns, &digest), kind), number) in
            times_ns.iter().zip(digests).zip(kinds).zip(first..)
        {
            self.out_of_order += u64::from(time_ns < self.last_ns);
            self.last_ns = time_ns;
            // Times beyond the range all look the same, and may be any time apart.
            if !self.by_number && is_out_of_range(time_ns) {
                *kind = None;
            }
            if kind.is_some() {
                self.digests.push(digest);
                self.stamps.push(if self.by_number { number.cast_signed() } else { time_ns });
            }
        }
        let (digests, stamps) = (&self.digests, &self.stamps);
        match &mut self.memory {
            Memory::Exact(window) => window.see_all(digests, stamps, &mut self.repeats),
            Memory::Approximate(window) => window.see_all(digests, stamps, &mut self.repeats),
        }
        self.not_compared += (times_ns.len() - self.repeats.len()) as u64;
    }

    fn finish(self, inputs: Vec<InputResult>, interrupted: bool) -> DedupSummary {
        let (slices, outside_slices) = self.slices.map(Slices::finish).unwrap_or_default();
        DedupSummary {
            interrupted,
            inputs,
            totals: self.totals,
            not_compared: self.not_compared,
            out_of_order: self.out_of_order,
            slices,
            outside_slices,
            window: match self.memory {
                Memory::Exact(window) => window.report(),
                Memory::Approximate(window) => window.report(),
            },
        }
    }
}

/// Writes packets of a batch where they belong. Runs of packets with the same fate are written in
/// one piece; both writers hear of the interfaces, and of what stands between packets.
fn write_all<W: Write + Send + 'static>(
    writers: &mut Writers<W>,
    cutter: &mut Option<Cutter>,
    input: usize,
    batch: &RecordBatch<'_>,
    range: Range<usize>,
    dropped: &[bool],
) -> Result<(), RunError> {
    let mut anonymizer = writers.anonymizer.take();
    let anonymized =
        anonymizer.as_mut().map(|anonymizer| anonymizer.batch(input, batch, range.clone()));
    let whole = anonymized.as_ref().unwrap_or(batch);
    let cut = cutter.as_mut().map(|cutter| cutter.batch(batch, whole, range.clone()));
    let written = cut.as_ref().unwrap_or(whole);
    let mut at = range.start;
    for run in dropped.chunk_by(|one, next| one == next) {
        let (start, end) = (at, at + run.len());
        writers.each(|writer, of_dropped| {
            if of_dropped == run[0] {
                writer.write(input, written, start, end)
            } else {
                writer.pass_over(input, written, start, end)
            }
        })?;
        at = end;
    }
    writers.anonymizer = anonymizer;
    Ok(())
}

/// A run of packets in the order of their input.
#[derive(Debug, Default)]
pub(super) struct KeyBatch {
    pub(super) times_ns: Vec<i64>,
    /// Captured bytes.
    pub(super) captured: Vec<u32>,
    pub(super) digests: Vec<u128>,
    /// The drop reason if a packet with this digest was seen; `None` if it is always kept.
    pub(super) kinds: Vec<Option<DropKind>>,
}

impl KeyBatch {
    #[inline]
    pub(super) fn push(&mut self, packet: &PacketRef, (digest, kind): Key) {
        self.times_ns.push(packet.time_ns);
        self.captured.push(packet.captured);
        self.digests.push(digest);
        self.kinds.push(kind);
    }
}

impl Batch for KeyBatch {
    type Cursor = usize;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn clear(&mut self) {
        self.times_ns.clear();
        self.captured.clear();
        self.digests.clear();
        self.kinds.clear();
    }

    fn taken(cursor: &usize) -> usize {
        *cursor
    }
}

/// Makes keys in the threads that read, where a key needs nothing but the packet's bytes.
pub(super) struct KeyBatchBuilder(pub(super) Keyer);

impl BatchBuilder for KeyBatchBuilder {
    type Batch = KeyBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut KeyBatch) {
        // A log has no packets.
        let TraceBatch::Packets { bytes, packets } = batch else { return };
        debug_assert!(self.0.needs_bytes_only(), "this builder knows nothing else");
        let mut flows = TcpFlows::default();
        for packet in packets {
            out.push(packet, self.0.key(packet, bytes, || (0, 0), &mut flows));
        }
    }
}
