//! Cuts the stream of packets into time slices, routes the elements to their shards and closes
//! slices. The only place that knows the order of the trace.

use super::collector::ClosedSlice;
use super::cursor::Cursor;
use super::results::Totals;
use super::time_slice::{OpenSlices, Place, SliceGrid};
use crate::decode::Skip;
use crate::elements::{ElementBatch, ElementColumns};
use crate::guard::{Broken, WorkerGone};
use crate::hashing::shard_of;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Elements handed to a shard at a time: enough that a channel's cost is shared by many, few enough that
/// the batch stays in the first-level cache.
const BATCH: usize = 1024;

/// Why a stage cannot go on.
pub(crate) enum StageError {
    /// The results could not be handed on.
    Sink(io::Error),
    /// A worker panicked.
    Worker(WorkerGone),
    /// What takes the packets panicked.
    Broken(Broken),
}

impl From<io::Error> for StageError {
    fn from(error: io::Error) -> Self {
        Self::Sink(error)
    }
}

impl From<Broken> for StageError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<WorkerGone> for StageError {
    fn from(gone: WorkerGone) -> Self {
        Self::Worker(gone)
    }
}

/// What the elements of open slices go to, and what answers for the slices that close.
pub(crate) trait Stage {
    /// Whether a slice closes only when the elements of the following one that came so far are there.
    const LOOKS_AHEAD: bool;

    /// What there is at the end.
    type Outcome;

    /// Takes elements of the slice in this slot of the table of open slices, and leaves an empty batch
    /// in their place.
    fn add(
        &mut self,
        shard: usize,
        slot: usize,
        elements: &mut ElementColumns,
    ) -> Result<(), StageError>;

    /// Closes a slice; its slot is free for another one afterwards.
    fn close(&mut self, closing: Closing) -> Result<(), StageError>;

    /// Ends the run, when all slices are closed.
    fn finish(self) -> Result<Self::Outcome, StageError>;
}

/// A slice that closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// Closings are numbered 0, 1, 2, …
    pub(crate) number: u64,
    /// Where the slice was.
    pub(crate) slot: usize,
    /// Where the following one is, among those that are open.
    pub(crate) next: Option<usize>,
    /// What is known of it.
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
    totals: RunTotals,
}

/// An open slice: its tallies, and the elements that wait for a full batch, by shard.
struct Slot {
    slice: ClosedSlice,
    waiting: Vec<ElementColumns>,
}

/// What is counted here and not by the shards.
#[derive(Default)]
struct RunTotals {
    packets: u64,
    elements: u64,
    late: u64,
    skipped: BTreeMap<Skip, u64>,
}

impl<S: Stage> Sequencer<S> {
    pub(super) fn new(
        grid: SliceGrid,
        one_slice: bool,
        open_slices: usize,
        arity: usize,
        shard_count: usize,
        stage: S,
    ) -> Self {
        Self {
            slices: OpenSlices::new(grid, open_slices),
            one_slice,
            grid,
            slots: Vec::new(),
            newest: 0,
            stage,
            shard_count,
            arity,
            closings: 0,
            totals: RunTotals::default(),
        }
    }

    /// Packets taken, late ones included.
    pub(super) fn packets(&self) -> u64 {
        self.totals.packets
    }

    /// Takes the packets of a batch up to number `end`, from where `cursor` stands.
    pub(super) fn take(
        &mut self,
        batch: &ElementBatch,
        cursor: &mut Cursor,
        end: usize,
    ) -> Result<(), StageError> {
        while cursor.packet < end {
            let place = self.place(batch.times_ns[cursor.packet])?;
            let run_end = match place {
                // All that follow in the same slice go to the same place.
                Some(_) => self.end_of_run(&batch.times_ns[..end], cursor.packet + 1),
                None => cursor.packet + 1,
            };
            let packets = cursor.packet..run_end;
            let elements = self.advance(batch, cursor, run_end);
            match place {
                Some(slot) => {
                    let slice = &mut self.slots[slot].slice;
                    slice.packets += packets.len() as u64;
                    slice.elements += elements.len() as u64;
                    if self.one_slice {
                        self.stretch(slot, &batch.times_ns[packets]);
                    }
                    self.route(slot, &batch.elements, elements)?;
                }
                None => self.totals.late += packets.len() as u64,
            }
        }
        Ok(())
    }

    /// Number of the first packet from `from` on that does not lie in the current slice.
    fn end_of_run(&self, times_ns: &[i64], from: usize) -> usize {
        let current = self.slices.current_range();
        let rest = &times_ns[from..];
        // Nearly always all of them do; asked without leaving early, that takes vector instructions.
        if rest
            .iter()
            .fold(true, |all, time| all & current.contains(time))
        {
            return times_ns.len();
        }
        from + rest
            .iter()
            .take_while(|time| current.contains(time))
            .count()
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

    /// Closes all slices, in the order of time; what was counted here, and the stage's outcome.
    pub(super) fn finish(mut self) -> Result<(Totals, S::Outcome), StageError> {
        let mut slots: Vec<usize> = (0..self.slots.len()).collect();
        slots.sort_by_key(|&slot| self.slots[slot].slice.index);
        for slot in slots {
            self.close(slot)?;
        }
        let outcome = self.stage.finish()?;
        let without_ip: u64 = self
            .totals
            .skipped
            .iter()
            .filter(|(skip, _)| !skip.has_ip())
            .map(|(_, count)| count)
            .sum();
        let totals = Totals {
            packets: self.totals.packets,
            ip_packets: self.totals.packets - without_ip,
            elements: self.totals.elements,
            skipped: self.totals.skipped,
            late: self.totals.late,
            ..Totals::default()
        };
        Ok((totals, outcome))
    }

    /// The slot of the slice that holds this time, opened if need be; none if it is closed already.
    #[inline]
    fn place(&mut self, time_ns: i64) -> Result<Option<usize>, StageError> {
        if self.slices.is_current(time_ns) {
            return Ok(Some(self.slices.current()));
        }
        match self.slices.locate(time_ns, self.totals.packets) {
            Place::Open(slot) => Ok(Some(slot)),
            Place::Late => Ok(None),
            Place::Replace { slot, index } => {
                self.open(slot, index)?;
                Ok(Some(slot))
            }
        }
    }

    fn open(&mut self, slot: usize, index: i64) -> Result<(), StageError> {
        let (start_ns, end_ns) = self.grid.bounds(index);
        let slice = ClosedSlice {
            index,
            // One slice for everything reaches from its first to its last packet.
            start_ns: if self.one_slice { i64::MAX } else { start_ns },
            end_ns: if self.one_slice { i64::MIN } else { end_ns },
            packets: 0,
            elements: 0,
        };
        if slot < self.slots.len() {
            self.close(slot)?;
            self.slots[slot].slice = slice;
        } else {
            self.slots.push(Slot {
                slice,
                waiting: (0..self.shard_count)
                    .map(|_| ElementColumns::default())
                    .collect(),
            });
        }
        self.hand_over(slot)
    }

    /// Gives this slot, which is empty, the batches of the one opened before it, since few elements
    /// come to that one any more: slices that follow each other fill the same memory.
    fn hand_over(&mut self, slot: usize) -> Result<(), StageError> {
        let before = std::mem::replace(&mut self.newest, slot);
        if before != slot {
            self.flush(before)?;
            let batches = std::mem::take(&mut self.slots[before].waiting);
            self.slots[before].waiting = std::mem::replace(&mut self.slots[slot].waiting, batches);
        }
        Ok(())
    }

    fn close(&mut self, slot: usize) -> Result<(), StageError> {
        self.flush(slot)?;
        let next = if S::LOOKS_AHEAD {
            self.following(slot)
        } else {
            None
        };
        if let Some(next) = next {
            self.flush(next)?;
        }
        let number = self.closings;
        self.closings += 1;
        let slice = self.slots[slot].slice;
        self.stage.close(Closing {
            number,
            slot,
            next,
            slice,
        })
    }

    /// Hands on what waits for a full batch.
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
            .filter(|&other| index(other) > index(slot))
            .min_by_key(|&other| index(other))
    }

    fn stretch(&mut self, slot: usize, times_ns: &[i64]) {
        let slice = &mut self.slots[slot].slice;
        for &time_ns in times_ns {
            slice.start_ns = slice.start_ns.min(time_ns);
            slice.end_ns = slice.end_ns.max(time_ns);
        }
    }

    /// Hands each element to its shard, in batches.
    fn route(
        &mut self,
        slot: usize,
        from: &ElementColumns,
        elements: Range<usize>,
    ) -> Result<(), StageError> {
        let shards = self.shard_count as u64;
        let arity = self.arity;
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
                to.keys.push(from.keys.get(element));
            }
            if to.len() == BATCH {
                self.stage.add(shard, slot, to)?;
            }
        }
        Ok(())
    }
}
