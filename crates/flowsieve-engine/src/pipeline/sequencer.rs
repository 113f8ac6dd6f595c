//! Cuts the stream of packets into time slices, routes the elements to their shards and closes
//! slices. The only place that knows the order of the trace.

use super::by_slice::SlicePackets;
use super::results::Totals;
use super::shard_spec::ClosedSlice;
use super::slice_set::SliceSet;
use super::time_slice::{OpenSlices, Place, SliceGrid};
use crate::elements::{Cursor, ElementBatch, ElementColumns, ShardElements};
use crate::guard::{Broken, WorkerPanicked};
use crate::hashing::shard_of;
use crate::inputs::{BatchBuilder, Feed, Together};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Elements of a batch for a shard: enough that a channel's cost is shared by many, few enough
/// that the batch stays in the first-level cache.
const BATCH: usize = 1024;

/// Fewer elements than this are moved to other ones of their shard, which costs no more than a
/// channel.
const FEW: usize = BATCH / 4;

/// Bytes of late elements that are buffered before their slices are opened again: restoring a
/// slice takes time.
const LATE_BYTES: usize = 32 << 20;

/// Approximate overhead of a slice, in bytes.
const BYTES_A_SLICE: usize = 256;

/// Why a stage cannot go on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum StageError {
    /// The sink failed.
    Sink(#[from] io::Error),
    /// A worker panicked.
    Worker(#[from] WorkerPanicked),
    /// The code that consumes the packets panicked.
    Broken(#[from] Broken),
}

/// Consumes the elements of open slices, and closes slices.
pub(crate) trait Stage {
    /// Whether a slice closes only after all elements of the following one that came so far were
    /// added.
    const LOOKS_AHEAD: bool = false;

    /// Whether slices that are final, so that their results are emitted, stay open for packets that
    /// come nevertheless, and close as all others do.
    const KEEPS_OPEN: bool = false;

    /// The outcome of the run.
    type Outcome;

    /// Opens the slice with this number in this slot of the table of open slices.
    fn open(&mut self, _slot: usize, _index: i64) {}

    /// Adds elements of the slice in this slot, and leaves an empty
    /// batch in their place.
    fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError>;

    /// Closes a slice; its slot is free for another one afterwards.
    fn close(&mut self, closing: Closing) -> Result<(), StageError>;

    /// Takes note of what a slice has that is final and stays open.
    fn show(&mut self, _slot: usize, _slice: ClosedSlice) -> Result<(), StageError> {
        Ok(())
    }

    /// Discards the elements of the pane in this slot, where windows slide.
    fn discard(&mut self, _slot: usize) -> Result<(), StageError> {
        Ok(())
    }

    /// Returns the state of a slice when it was closed, and the elements of each shard that
    /// restore it; `None` if they are no longer known.
    fn recall(&mut self, _index: i64) -> Result<Option<Recalled>, StageError> {
        Ok(None)
    }

    /// Emits the results of the closed slices that end by this time.
    fn emit_final(&mut self, _final_ns: i64) -> Result<(), StageError> {
        Ok(())
    }

    /// Ends the run, when all slices are closed.
    fn finish(self) -> Result<Self::Outcome, StageError>;
}

/// A slice that was closed, and the elements that bring it back, by shard.
pub(crate) type Recalled = (ClosedSlice, Vec<ElementColumns>);

/// The slot of a pane that nothing came of.
const NO_SLOT: usize = usize::MAX;

/// A slice that closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// Closings are numbered 0, 1, 2, …
    pub(crate) number: u64,
    /// Where the slice was; [`NO_SLOT`] for a pane without packets, where windows slide.
    pub(crate) slot: usize,
    /// Where the following one is, among those that are open.
    pub(crate) next: Option<usize>,
    /// Its time and its packets.
    pub(crate) slice: ClosedSlice,
}

/// The sequencer's state.
pub(super) struct Sequencer<S> {
    slices: OpenSlices,
    one_slice: bool,
    grid: SliceGrid,
    slots: Vec<Slot>,
    /// The slot that was opened last.
    newest: usize,
    stage: S,
    shard_count: usize,
    arity: usize,
    closings: u64,
    /// Those of packets, which shards do not see.
    totals: Totals,
    /// Slices with packets that came too late and were not counted.
    listed: SliceSet,
    /// Packets of closed slices until these are opened again, if the stage can restore them.
    late: Option<LateBuffer>,
    /// Slices that end by this time are final.
    final_ns: i64,
    /// Where windows slide: panes of a window, and the last that was closed.
    window: Option<(u16, Option<i64>)>,
}

/// An open slice: its tallies, and the elements that wait for a full batch, by shard.
struct Slot {
    slice: ClosedSlice,
    waiting: Vec<ElementColumns>,
    is_open: bool,
}

/// Packets of closed slices.
#[derive(Default)]
struct LateBuffer {
    slices: BTreeMap<i64, (u64, ElementColumns)>,
    bytes: usize,
    /// Time by which they must be counted: when slices that end by it are final.
    due_ns: Option<i64>,
}

impl<S: Stage> Sequencer<S> {
    pub(super) fn new(
        grid: SliceGrid,
        open_slices: usize,
        arity: usize,
        shard_count: usize,
        recalls: bool,
        stage: S,
    ) -> Self {
        Self {
            slices: OpenSlices::new(grid, open_slices),
            one_slice: grid.width_ns().is_none(),
            grid,
            slots: Vec::new(),
            newest: 0,
            stage,
            shard_count,
            arity,
            closings: 0,
            totals: Totals::default(),
            listed: SliceSet::default(),
            late: recalls.then(LateBuffer::default),
            final_ns: i64::MIN,
            window: None,
        }
    }

    /// Treats slices as the panes of windows that slide, `panes` a window: they are closed in the
    /// order of time, together with the panes between them that have no packets. Those of a live
    /// run stay open as long as they wait for late packets.
    pub(super) fn sliding(mut self, panes: Option<u16>, is_live: bool) -> Self {
        self.window = panes.map(|panes| (panes, None));
        if is_live && panes.is_some() {
            self.slices.close_in_order();
        }
        self
    }

    pub(super) const fn slides(&self) -> bool {
        self.window.is_some()
    }

    /// Packets taken, late ones included.
    pub(super) fn packets(&self) -> u64 {
        self.totals.packets
    }

    /// Consumes the packets of a batch from the cursor up to number `end`.
    pub(super) fn take(
        &mut self,
        batch: &mut ElementBatch,
        cursor: &mut Cursor,
        end: usize,
    ) -> Result<(), StageError> {
        while cursor.packet < end {
            let place = self.place(batch.times_ns[cursor.packet])?;
            let run_end = match place {
                // All that follow in the same slice go to the same place.
                Some(_) => self.end_of_run(batch, cursor.packet + 1, end),
                None => cursor.packet + 1,
            };
            let packets = cursor.packet..run_end;
            let elements = self.advance(batch, cursor, run_end);
            let Some(slot) = place else {
                self.take_late(batch, packets, elements)?;
                continue;
            };
            if self.one_slice {
                match batch.span_ns() {
                    Some((first, last)) if packets.len() == batch.times_ns.len() => {
                        self.stretch(slot, &[first, last]);
                    }
                    _ => self.stretch(slot, &batch.times_ns[packets.clone()]),
                }
            }
            self.tally(slot, packets.len() as u64, elements.len() as u64);
            match batch.shards() {
                Some(parts) => self.emit_divided(slot, parts, &packets)?,
                None => self.route(slot, &batch.elements, elements)?,
            }
        }
        Ok(())
    }

    /// Consumes packets of several batches one by one if all of them are in the current slice;
    /// returns whether they were.
    pub(super) fn take_together<M: BatchBuilder<Batch = ElementBatch>>(
        &mut self,
        inputs: &mut Together<'_, Feed<M>>,
    ) -> Result<bool, StageError> {
        let is_simple = |(feed, packets): (&Feed<M>, usize)| {
            feed.batch.span_ns().is_none() && self.slices.are_current(times_of_next(feed, packets))
        };
        if !inputs.inputs().all(is_simple) {
            return Ok(false);
        }
        let slot = self.slices.current();
        for (feed, packets) in inputs.inputs() {
            self.totals.packets += packets as u64;
            self.slots[slot].slice.packets += packets as u64;
            if self.one_slice {
                self.stretch(slot, times_of_next(feed, packets));
            }
        }
        let Slot { slice, waiting, .. } = &mut self.slots[slot];
        let skipped = &mut self.totals.skipped;
        while let Some(Feed { batch, cursor, .. }) = inputs.next() {
            let end = cursor.packet + 1;
            let elements = cursor.pass(batch, end, |skip| *skipped.entry(skip).or_default() += 1);
            self.totals.elements += elements.len() as u64;
            slice.elements += elements.len() as u64;
            for element in elements {
                let shard = shard_of(batch.elements.digests[element], self.shard_count as u64);
                let to = &mut waiting[shard];
                to.push_from(&batch.elements, element, self.arity);
                if to.len() == BATCH {
                    self.stage.add(shard, slot, to)?;
                }
            }
        }
        Ok(true)
    }

    /// Consumes packets of one slice. Slices come in the order of time.
    pub(super) fn take_block(&mut self, block: &SlicePackets) -> Result<(), StageError> {
        let Some(slot) = self.place(block.time_ns)? else {
            self.totals.uncounted += block.packets;
            return Ok(());
        };
        self.totals.packets += block.packets;
        let elements = 0..block.elements.len();
        self.add(slot, block.packets, &block.elements, elements)
    }

    fn add(
        &mut self,
        slot: usize,
        packets: u64,
        from: &ElementColumns,
        elements: Range<usize>,
    ) -> Result<(), StageError> {
        self.tally(slot, packets, elements.len() as u64);
        self.route(slot, from, elements)
    }

    fn tally(&mut self, slot: usize, packets: u64, elements: u64) {
        let slice = &mut self.slots[slot].slice;
        slice.packets += packets;
        slice.elements += elements;
    }

    /// Consumes a packet whose slice was closed, with its elements.
    fn take_late(
        &mut self,
        batch: &mut ElementBatch,
        packet: Range<usize>,
        elements: Range<usize>,
    ) -> Result<(), StageError> {
        let index = self.grid.index(batch.times_ns[packet.start]);
        let Some(buffer) = &mut self.late else {
            self.listed.insert(index);
            self.totals.uncounted += 1;
            return Ok(());
        };
        if self.grid.bounds(index).1 <= self.final_ns {
            self.totals.late += 1;
        }
        let (packets, columns) = buffer.slices.entry(index).or_insert_with(|| {
            buffer.bytes += BYTES_A_SLICE;
            Default::default()
        });
        *packets += 1;
        let before = columns.bytes();
        let mut put = |from: &ElementColumns, elements: Range<usize>| {
            columns.extend_from(from, elements, self.arity);
        };
        match batch.shards() {
            Some(parts) => parts.iter_mut().for_each(|part| {
                let elements = part.of_packets(&packet);
                put(&part.columns, elements);
            }),
            None => put(&batch.elements, elements),
        }
        buffer.bytes += columns.bytes() - before;
        if buffer.bytes >= LATE_BYTES {
            self.count_late()?;
        }
        Ok(())
    }

    /// Opens slices again for the late packets in the buffer.
    fn count_late(&mut self) -> Result<(), StageError> {
        let Some(buffer) = &mut self.late else { return Ok(()) };
        for (index, (packets, columns)) in std::mem::take(buffer).slices {
            let slot = if let Some(slot) = self.slices.place_of(index) {
                slot
            } else if let Some(recalled) = self.stage.recall(index)? {
                self.reopen(index, recalled)?
            } else {
                self.totals.uncounted += packets;
                continue;
            };
            self.add(slot, packets, &columns, 0..columns.len())?;
            self.slices.give_up(slot);
        }
        Ok(())
    }

    fn reopen(&mut self, index: i64, recalled: Recalled) -> Result<usize, StageError> {
        let (slice, journal) = recalled;
        let slot = self.slices.open(index, self.totals.packets);
        self.open(slot, slice)?;
        for (shard, mut elements) in journal.into_iter().enumerate() {
            if !elements.is_empty() {
                self.stage.add(shard, slot, &mut elements)?;
            }
        }
        Ok(slot)
    }

    /// Closes the slices that end by this time, which are final, or lets the stage see them, and
    /// emits their results. Packets that come still are counted within `delay_ns`. Panes of
    /// windows stay open, because packets after their close are lost.
    pub(super) fn emit_final(&mut self, final_ns: i64, delay_ns: i64) -> Result<(), StageError> {
        self.final_ns = self.final_ns.max(final_ns);
        if let Some(buffer) = &mut self.late
            && !buffer.slices.is_empty()
        {
            let due_ns = buffer.due_ns.get_or_insert(final_ns.saturating_add(delay_ns));
            if *due_ns <= final_ns {
                self.count_late()?;
            }
        }
        if !self.slides() {
            self.close_final(final_ns)?;
        }
        self.stage.emit_final(final_ns)
    }

    /// Closes the panes that end by this time, and returns the end of the next one.
    pub(super) fn end_panes(&mut self, final_ns: i64) -> Result<i64, StageError> {
        self.close_final(final_ns)?;
        Ok(self.grid.bounds(self.grid.index(final_ns)).1)
    }

    fn close_final(&mut self, final_ns: i64) -> Result<(), StageError> {
        for slot in self.in_time() {
            let Slot { slice, is_open, .. } = &self.slots[slot];
            if !*is_open || self.grid.bounds(slice.index).1 > final_ns {
                continue;
            }
            if S::KEEPS_OPEN {
                let slice = *slice;
                self.flush(slot)?;
                self.stage.show(slot, slice)?;
            } else {
                self.close(slot)?;
                self.slices.close(slot);
            }
        }
        Ok(())
    }

    /// Returns the number of the first packet from `from` on outside the current slice, or `end`.
    fn end_of_run(&self, batch: &ElementBatch, from: usize, end: usize) -> usize {
        let rest = &batch.times_ns[from..end];
        let is_within =
            batch.span_ns().is_some_and(|(first, last)| self.slices.are_current(&[first, last]));
        // Nearly always all of them do.
        if is_within || self.slices.are_current(rest) {
            return end;
        }
        from + rest.iter().take_while(|&&time_ns| self.slices.is_current(time_ns)).count()
    }

    /// Moves the cursor to packet `end`, counts what it passes into the totals, and returns the
    /// numbers of the elements that it passes.
    fn advance(&mut self, batch: &ElementBatch, cursor: &mut Cursor, end: usize) -> Range<usize> {
        let totals = &mut self.totals;
        totals.packets += (end - cursor.packet) as u64;
        let elements = cursor.pass(batch, end, |skip| {
            *totals.skipped.entry(skip).or_default() += 1;
        });
        totals.elements += elements.len() as u64;
        elements
    }

    /// Closes all slices, in the order of time. Returns the counts of packets, the slices of packets
    /// that were not counted, and the stage's outcome.
    pub(super) fn finish(mut self) -> Result<(Totals, SliceSet, S::Outcome), StageError> {
        self.count_late()?;
        for slot in self.in_time() {
            if self.slots[slot].is_open {
                self.close(slot)?;
            }
        }
        let outcome = self.stage.finish()?;
        let without_ip = self.totals.skipped.iter().filter(|(skip, _)| !skip.has_ip());
        let without_ip: u64 = without_ip.map(|(_, count)| count).sum();
        let totals = Totals { ip_packets: self.totals.packets - without_ip, ..self.totals };
        Ok((totals, self.listed, outcome))
    }

    /// Returns the slot of the slice that holds this time, and opens it if necessary; `None` if it
    /// was closed.
    #[inline]
    fn place(&mut self, time_ns: i64) -> Result<Option<usize>, StageError> {
        if self.slices.is_current(time_ns) {
            return Ok(Some(self.slices.current()));
        }
        self.locate(time_ns)
    }

    /// [`Self::place`] where it is not the slice used last.
    #[cold]
    fn locate(&mut self, time_ns: i64) -> Result<Option<usize>, StageError> {
        match self.slices.locate(time_ns, self.totals.packets) {
            Place::Open(slot) => Ok(Some(slot)),
            Place::Late => Ok(None),
            Place::Replace { slot, index } => {
                let (start_ns, end_ns) = self.grid.bounds(index);
                let slice = ClosedSlice {
                    index,
                    // One slice for everything reaches from its first to its last packet.
                    start_ns: if self.one_slice { i64::MAX } else { start_ns },
                    end_ns: if self.one_slice { i64::MIN } else { end_ns },
                    packets: 0,
                    elements: 0,
                };
                self.open(slot, slice)?;
                Ok(Some(slot))
            }
        }
    }

    /// Opens a slice in this slot; the one that is there is closed first.
    fn open(&mut self, slot: usize, slice: ClosedSlice) -> Result<(), StageError> {
        if let Some(occupied) = self.slots.get(slot) {
            if occupied.is_open {
                self.close(slot)?;
            }
            self.slots[slot].slice = slice;
            self.slots[slot].is_open = true;
        } else {
            self.slots.push(Slot {
                slice,
                waiting: (0..self.shard_count).map(|_| ElementColumns::default()).collect(),
                is_open: true,
            });
        }
        self.stage.open(slot, slice.index);
        self.reuse_batches(slot)
    }

    /// Moves the batches of the slot that was opened before to this one, which is empty: few more
    /// elements come to the former, so that consecutive slices fill the same memory.
    fn reuse_batches(&mut self, slot: usize) -> Result<(), StageError> {
        let before = std::mem::replace(&mut self.newest, slot);
        if before != slot {
            self.flush(before)?;
            let batches = std::mem::take(&mut self.slots[before].waiting);
            self.slots[before].waiting = std::mem::replace(&mut self.slots[slot].waiting, batches);
        }
        Ok(())
    }

    /// All slots, by the time of what is or was there.
    fn in_time(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = (0..self.slots.len()).collect();
        slots.sort_unstable_by_key(|&slot| self.slots[slot].slice.index);
        slots
    }

    fn close(&mut self, slot: usize) -> Result<(), StageError> {
        if let Some((panes, last)) = self.window
            && !self.pass_to(slot, panes, last)?
        {
            return Ok(());
        }
        self.flush(slot)?;
        let next = if S::LOOKS_AHEAD { self.following(slot) } else { None };
        if let Some(next) = next {
            self.flush(next)?;
        }
        let number = self.closings;
        self.closings += 1;
        let slice = self.slots[slot].slice;
        self.slots[slot].is_open = false;
        self.stage.close(Closing { number, slot, next, slice })
    }

    /// Closes the empty panes before the one in this slot, as far as windows reach. Returns false,
    /// and discards the pane, if it is not the next one in time.
    fn pass_to(&mut self, slot: usize, panes: u16, last: Option<i64>) -> Result<bool, StageError> {
        let ClosedSlice { index, packets, .. } = self.slots[slot].slice;
        let is_open_before = |other: &Slot| other.is_open && other.slice.index < index;
        if last.is_some_and(|last| index <= last) || self.slots.iter().any(is_open_before) {
            for waiting in &mut self.slots[slot].waiting {
                waiting.clear();
            }
            self.slots[slot].is_open = false;
            self.totals.uncounted += packets;
            self.listed.insert(index);
            self.stage.discard(slot)?;
            return Ok(false);
        }
        self.window = Some((panes, Some(index)));
        let next = last.map_or(index, |last| last.saturating_add(1));
        for index in next..index.min(next.saturating_add(i64::from(panes) - 1)) {
            let (start_ns, end_ns) = self.grid.bounds(index);
            let number = self.closings;
            self.closings += 1;
            let slice = ClosedSlice { index, start_ns, end_ns, packets: 0, elements: 0 };
            self.stage.close(Closing { number, slot: NO_SLOT, next: None, slice })?;
        }
        Ok(true)
    }

    /// Emits the elements that wait for a full batch.
    fn flush(&mut self, slot: usize) -> Result<(), StageError> {
        for (shard, waiting) in self.slots[slot].waiting.iter_mut().enumerate() {
            if !waiting.is_empty() {
                self.stage.add(shard, slot, waiting)?;
            }
        }
        Ok(())
    }

    /// The slot of the open slice that follows this one.
    fn following(&self, slot: usize) -> Option<usize> {
        let index = |slot: usize| self.slots[slot].slice.index;
        (0..self.slots.len())
            .filter(|&other| self.slots[other].is_open && index(other) > index(slot))
            .min_by_key(|&other| index(other))
    }

    fn stretch(&mut self, slot: usize, times_ns: &[i64]) {
        let slice = &mut self.slots[slot].slice;
        for &time_ns in times_ns {
            slice.start_ns = slice.start_ns.min(time_ns);
            slice.end_ns = slice.end_ns.max(time_ns);
        }
    }

    /// Emits the divided elements of packets of a batch to their shards: all of a shard at once,
    /// unless they are few.
    fn emit_divided(
        &mut self,
        slot: usize,
        parts: &mut [ShardElements],
        packets: &Range<usize>,
    ) -> Result<(), StageError> {
        for (shard, part) in parts.iter_mut().enumerate() {
            let elements = part.of_packets(packets);
            if elements.len() >= FEW && elements.len() == part.columns.len() {
                let waiting = &mut self.slots[slot].waiting[shard];
                if !waiting.is_empty() {
                    self.stage.add(shard, slot, waiting)?;
                }
                self.stage.add(shard, slot, &mut part.columns)?;
            } else if !elements.is_empty() {
                self.append(shard, slot, &part.columns, elements)?;
            }
        }
        Ok(())
    }

    /// Appends elements to those that wait for their shard, and emits full batches.
    fn append(
        &mut self,
        shard: usize,
        slot: usize,
        from: &ElementColumns,
        mut elements: Range<usize>,
    ) -> Result<(), StageError> {
        let to = &mut self.slots[slot].waiting[shard];
        while !elements.is_empty() {
            let room = BATCH.saturating_sub(to.len()).max(1);
            let some = elements.start..elements.end.min(elements.start + room);
            elements.start = some.end;
            to.extend_from(from, some, self.arity);
            if to.len() >= BATCH {
                self.stage.add(shard, slot, to)?;
            }
        }
        Ok(())
    }

    /// Emits each element to its shard, in batches.
    fn route(
        &mut self,
        slot: usize,
        from: &ElementColumns,
        elements: Range<usize>,
    ) -> Result<(), StageError> {
        let shards = self.shard_count as u64;
        let arity = self.arity;
        if shards == 1 {
            return self.append(0, slot, from, elements);
        }
        // Once, and not for each element.
        let with_attributes = !from.attributes.is_empty();
        let with_keys = !from.keys.is_empty();
        let waiting = &mut self.slots[slot].waiting;
        for element in elements {
            let digest = from.digests[element];
            let shard = shard_of(digest, shards);
            let to = &mut waiting[shard];
            to.digests.push(digest);
            if with_attributes {
                let attributes = &from.attributes[element * arity..(element + 1) * arity];
                to.attributes.extend_from_slice(attributes);
            }
            if with_keys {
                to.keys.push_from(&from.keys, element);
            }
            if to.len() == BATCH {
                self.stage.add(shard, slot, to)?;
            }
        }
        Ok(())
    }
}

/// Returns the times of the next packets of an input.
fn times_of_next<M: BatchBuilder<Batch = ElementBatch>>(feed: &Feed<M>, packets: usize) -> &[i64] {
    &feed.batch.times_ns[feed.cursor.packet..][..packets]
}
