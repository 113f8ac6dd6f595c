//! The loop: the packets that come next, their keys, the window's word on each, and where they go.

use super::approximate::Approximate;
use super::key::{Keyer, Keys};
use super::plan::{DedupPlan, DedupPlanError, WindowWidth};
use super::results::{DedupSummary, Drops};
use super::slices::Slices;
use super::window::Window;
use crate::anonymize::PacketAnonymizer;
use crate::guard::Broken;
use crate::inputs::{InputResult, Merge, RecordInput, Rest, Watch};
use crate::trace::write::{CaptureWriter, WriteError};
use crate::trace::{RecordBatch, is_out_of_range};
use ahash::RandomState;
use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;

/// Where packets go.
#[derive(Debug)]
pub struct Writers<W: Write + Send + 'static> {
    /// Those that are kept.
    pub kept: Option<CaptureWriter<W>>,
    /// Those that are dropped.
    pub dropped: Option<CaptureWriter<W>>,
    /// Replaces the addresses in what is written.
    pub anonymizer: Option<PacketAnonymizer>,
}

/// Why there is no result at all.
#[derive(Debug, thiserror::Error)]
pub enum DedupError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] DedupPlanError),
    /// Packets could not be compared, which is a mistake of flowsieve's own.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Packets that are kept could not be written.
    #[error("{0}")]
    Kept(#[source] WriteError),
    /// Packets that are dropped could not be written.
    #[error("{0}")]
    Dropped(#[source] WriteError),
}

/// Writes the packets of the inputs, which are one capture in the order of time, without duplicates.
/// The writers are to be finished by the caller.
///
/// Damaged inputs are no error: their packets up to the damage count, and [`DedupSummary::inputs`] says what
/// happened. If the watch ends the run, what is written is whole, and [`DedupSummary::interrupted`] says
/// that there was more.
///
/// # Errors
///
/// The plan does not hold, or packets could not be written.
pub fn dedup<W: Write + Send + 'static>(
    plan: &DedupPlan,
    writers: &mut Writers<W>,
    watch: &dyn Watch,
) -> Result<DedupSummary, DedupError> {
    plan.check()?;
    let mut run = Run::new(plan);
    let rest = RefCell::default();
    let begin = |capture, _| RecordInput::with_annotations(capture, &rest);
    let merge = Merge::new(
        &plan.selection.of(&plan.inputs, plan.input_format),
        plan.input_format,
        watch,
        begin,
    );
    let (inputs, interrupted) = merge.drain(watch, |number, input, count| {
        let (batch, range) = input.next(count);
        run.take(number, &batch, range, writers)
    })?;
    if writers.anonymizer.is_none() {
        end(writers, &rest.borrow())?;
    }
    Ok(run.finish(inputs, interrupted))
}

enum Memory {
    Exact(Box<Window>),
    Approximate(Box<Approximate>),
}

/// What is kept from batch to batch.
struct Run {
    keyer: Keyer,
    memory: Memory,
    /// The window counts packets, so stamps are their numbers.
    by_number: bool,
    slices: Option<Slices>,
    totals: Drops,
    not_compared: u64,
    out_of_order: u64,
    last_ns: i64,
    keys: Keys,
    /// Of the packets that are compared: whether they are repeats.
    repeats: Vec<bool>,
}

impl Run {
    fn new(plan: &DedupPlan) -> Self {
        let seed = plan.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        Self {
            keyer: Keyer::new(plan.by, plan.tunnel, plan.distinguish, seed),
            memory: if plan.approximate {
                Memory::Approximate(Box::new(Approximate::new(plan.window, plan.memory_bytes)))
            } else {
                Memory::Exact(Box::new(Window::new(
                    plan.window,
                    plan.filter,
                    plan.memory_bytes,
                )))
            },
            by_number: matches!(plan.window, WindowWidth::Packets(_)),
            slices: plan
                .slice_ns
                .map(|width| Slices::new(width, plan.selection.zone)),
            totals: Drops::default(),
            not_compared: 0,
            out_of_order: 0,
            last_ns: i64::MIN,
            keys: Keys::default(),
            repeats: Vec::new(),
        }
    }

    fn take<W: Write + Send + 'static>(
        &mut self,
        input: usize,
        batch: &RecordBatch<'_>,
        range: Range<usize>,
        writers: &mut Writers<W>,
    ) -> Result<(), DedupError> {
        self.keyer.keys(input, batch, range.clone(), &mut self.keys);
        self.compare(batch, range.clone());
        let mut anonymizer = writers.anonymizer.take();
        let anonymized = anonymizer
            .as_mut()
            .map(|anonymizer| anonymizer.batch(input, batch, range.clone()));
        let written = anonymized.as_ref().unwrap_or(batch);
        // Runs of packets with the same fate are written in one piece.
        let mut repeats = self.repeats.iter();
        let mut run = range.start;
        let mut fate = None;
        for (index, kind) in range.clone().zip(&self.keys.kinds) {
            let dropped = kind.filter(|_| repeats.next().copied().unwrap_or(false));
            let packet = &batch.packets[index];
            self.totals.add(packet.captured, dropped);
            if let Some(slices) = &mut self.slices {
                slices.add(packet.time_ns, packet.captured, dropped);
            }
            let is_dropped = dropped.is_some();
            if fate != Some(is_dropped) {
                write(writers, input, written, run..index, fate)?;
                (run, fate) = (index, Some(is_dropped));
            }
        }
        write(writers, input, written, run..range.end, fate)?;
        writers.anonymizer = anonymizer;
        Ok(())
    }

    /// Lets the window see the packets that can be repeats.
    fn compare(&mut self, batch: &RecordBatch<'_>, range: Range<usize>) {
        self.repeats.clear();
        let packets = &batch.packets[range];
        let by_number = self.by_number;
        for (packet, kind) in packets.iter().zip(&mut self.keys.kinds) {
            self.out_of_order += u64::from(packet.time_ns < self.last_ns);
            self.last_ns = packet.time_ns;
            // Times beyond the range all look the same, and may be any time apart.
            if !by_number && is_out_of_range(packet.time_ns) {
                *kind = None;
            }
        }
        let first = self.totals.packets;
        let keys = self.keys.digests.iter().zip(&self.keys.kinds);
        let compared = keys.zip(packets).zip(first..);
        let compared = compared.filter_map(|(((digest, kind), packet), number)| {
            let stamp = if by_number {
                number.cast_signed()
            } else {
                packet.time_ns
            };
            kind.map(|_| (*digest, stamp))
        });
        match &mut self.memory {
            Memory::Exact(window) => window.see_all(compared, &mut self.repeats),
            Memory::Approximate(window) => window.see_all(compared, &mut self.repeats),
        }
        self.not_compared += (packets.len() - self.repeats.len()) as u64;
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

/// Writes the annotations behind the last packet.
fn end<W: Write + Send + 'static>(writers: &mut Writers<W>, rest: &Rest) -> Result<(), DedupError> {
    let put = |writer: &mut CaptureWriter<W>| {
        writer.lose(&rest.others);
        writer.annotate(&rest.annotations)
    };
    if let Some(writer) = &mut writers.kept {
        put(writer).map_err(DedupError::Kept)?;
    }
    if let Some(writer) = &mut writers.dropped {
        put(writer).map_err(DedupError::Dropped)?;
    }
    Ok(())
}

/// Writes packets of the same fate; both writers hear of the interfaces, and of what stands between packets.
fn write<W: Write + Send + 'static>(
    writers: &mut Writers<W>,
    input: usize,
    batch: &RecordBatch<'_>,
    range: Range<usize>,
    is_dropped: Option<bool>,
) -> Result<(), DedupError> {
    let Range { start, end } = range;
    let put = |writer: &mut CaptureWriter<W>, wanted: bool| {
        if wanted {
            writer.write(input, batch, start, end)
        } else {
            writer.pass_over(input, batch, start, end)
        }
    };
    if let Some(writer) = &mut writers.kept {
        put(writer, is_dropped == Some(false)).map_err(DedupError::Kept)?;
    }
    if let Some(writer) = &mut writers.dropped {
        put(writer, is_dropped == Some(true)).map_err(DedupError::Dropped)?;
    }
    Ok(())
}
