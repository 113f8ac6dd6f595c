//! The elements of the open slices, in bounded memory.
//!
//! The rows of a slice go out when it is closed, in the order in which its elements were first
//! seen. Where memory is full, the elements of the largest table go out at once, with the packets
//! that they had so far; what comes later of them is another row.
//!
//! Slices that are known to have packets that come late are gathered, and written when all is read.

use super::elements::ElementRows;
use super::results::{ExportSink, ExportTotals};
use super::rows::Left;
use super::sightings::Sighting;
use super::table::SliceTable;
use crate::elements::{ElementKind, Keys};
use crate::memory::can_allocate;
use crate::pipeline::{OpenSlices, Place, SliceGrid, SliceSet, SliceSorter};
use serde::{Deserialize, Serialize};
use std::io;

/// Open slices at most, as many as of a count.
const OPEN_SLICES: usize = 8;

/// Late packets that are emitted together.
const LATE_AT_ONCE: usize = 1024;

/// Which slices the packets of a trace in order belong to, and which slices have packets that come
/// late.
///
/// It sees every packet, whichever reading this is and whatever the packet shows: so each reading
/// finds the same late ones.
pub(super) struct Order {
    grid: SliceGrid,
    open: OpenSlices,
    pub(super) disordered: SliceSet,
}

impl Order {
    pub(super) fn new(grid: SliceGrid) -> Self {
        Self { grid, open: OpenSlices::new(grid, OPEN_SLICES), disordered: SliceSet::default() }
    }

    /// The place of a packet's slice, before which there were this many packets.
    #[inline]
    pub(super) fn place(&mut self, time_ns: i64, packets: u64) -> Place {
        if self.open.is_current(time_ns) {
            return Place::Open(self.open.current());
        }
        let place = self.open.locate(time_ns, packets);
        if place == Place::Late {
            self.disordered.insert(self.grid.index(time_ns));
        }
        place
    }
}

/// An open slice.
#[derive(Default)]
struct Slice {
    index: i64,
    table: SliceTable,
    /// It has had elements, though some may have left.
    is_used: bool,
    /// Its sightings wait until all are there.
    is_waiting: bool,
}

/// Sightings of a slice that wait.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Waiting {
    sightings: Vec<(i64, Sighting)>,
    names: Keys,
}

/// Where the sightings of a packet go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// Into an open slice.
    Slice(usize),
    /// To those of this slice that wait.
    Waiting(i64),
    /// Each is a separate row.
    Late,
}

/// Takes sightings in the order of the trace.
pub(super) struct Slices<'a> {
    kind: ElementKind,
    memory_bytes: u64,
    pub(super) order: Order,
    /// By their place among the open slices.
    tables: Vec<Slice>,
    /// The slices whose packets are not in the order of time, if an earlier reading found some.
    disordered: SliceSet,
    gathered: SliceSorter<Waiting>,
    /// Late packets, which are emitted before anything else.
    late: SliceTable,
    /// Bytes of elements that were emitted, as long as there may not be rows yet.
    under_way: Vec<Box<dyn Fn() -> u64>>,
    pub(super) totals: ExportTotals,
    sink: &'a mut dyn ExportSink,
}

impl<'a> Slices<'a> {
    /// Writes to `sink`. The slices in `disordered` are written when all is read.
    pub(super) fn new(
        kind: ElementKind,
        grid: SliceGrid,
        memory_bytes: u64,
        disordered: SliceSet,
        sink: &'a mut dyn ExportSink,
    ) -> Self {
        Self {
            kind,
            memory_bytes,
            order: Order::new(grid),
            tables: Vec::new(),
            disordered,
            gathered: SliceSorter::new(),
            late: SliceTable::default(),
            under_way: Vec::new(),
            totals: ExportTotals::default(),
            sink,
        }
    }

    /// Where the sightings of a packet go, before which there were this many.
    #[inline]
    pub(super) fn goal(&mut self, time_ns: i64, packets: u64) -> io::Result<Goal> {
        let slot = match self.order.place(time_ns, packets) {
            Place::Open(slot) => slot,
            Place::Late => {
                let index = self.order.grid.index(time_ns);
                let is_waiting = self.disordered.contains(index);
                return Ok(if is_waiting { Goal::Waiting(index) } else { Goal::Late });
            }
            Place::Replace { slot, index } => {
                let is_waiting = self.disordered.contains(index);
                let opened = Slice { index, is_waiting, ..Slice::default() };
                if slot == self.tables.len() {
                    self.tables.push(opened);
                } else {
                    self.close(slot)?;
                    self.tables[slot] = opened;
                }
                slot
            }
        };
        let slice = &self.tables[slot];
        Ok(if slice.is_waiting { Goal::Waiting(slice.index) } else { Goal::Slice(slot) })
    }

    /// Reads ahead the memory that the next sightings need.
    pub(super) fn prefetch(&self, sightings: &[Sighting]) {
        if let Some(slice) = self.tables.get(self.order.open.current()) {
            slice.table.prefetch(sightings);
        }
    }

    /// Adds a sighting.
    #[inline]
    pub(super) fn push(
        &mut self,
        goal: Goal,
        time_ns: i64,
        sighting: &Sighting,
        name: Option<&[u8]>,
    ) -> io::Result<()> {
        self.totals.row_packets += 1;
        self.totals.bytes += u64::from(sighting.bytes);
        match goal {
            Goal::Slice(slot) => self.add(slot, time_ns, sighting, name),
            Goal::Waiting(index) => {
                self.gathered.add(index, |waiting| waiting.push(time_ns, sighting, name))
            }
            Goal::Late => self.late(time_ns, sighting, name),
        }
    }

    fn add(
        &mut self,
        slot: usize,
        time_ns: i64,
        sighting: &Sighting,
        name: Option<&[u8]>,
    ) -> io::Result<()> {
        let named = self.kind.has_name();
        let slice = &mut self.tables[slot];
        slice.is_used = true;
        let table = &mut slice.table;
        if !table.add(time_ns, sighting, name, named) {
            self.make_room(slot, name.map_or(0, <[u8]>::len))?;
            self.tables[slot].table.begin(time_ns, sighting, name);
        } else if let (false, Some((question, _)), Some(name)) = (named, sighting.question, name)
            && table.lacks_question(sighting).is_some()
        {
            self.make_room(slot, name.len())?;
            let table = &mut self.tables[slot].table;
            // It may have gone out to make room, and then its row has no name.
            if let Some(at) = table.lacks_question(sighting) {
                table.set_question(at, question, name);
            }
        }
        Ok(())
    }

    /// Writes the rows of all slices that are open, in their order.
    pub(super) fn finish(mut self) -> io::Result<ExportTotals> {
        let mut slots: Vec<usize> = (0..self.tables.len()).collect();
        slots.sort_unstable_by_key(|&slot| self.tables[slot].index);
        for slot in slots {
            self.close(slot)?;
        }
        self.tables.clear();
        let gathered = std::mem::replace(&mut self.gathered, SliceSorter::new());
        gathered.drain(|index, waiting| self.take_gathered(index, &waiting))?;
        if !self.tables.is_empty() {
            self.close(0)?;
        }
        self.emit_late()?;
        Ok(self.totals)
    }

    /// Takes sightings of a slice; slices come one after the other.
    fn take_gathered(&mut self, index: i64, waiting: &Waiting) -> io::Result<()> {
        if self.tables.first().is_none_or(|slice| slice.index != index) {
            if !self.tables.is_empty() {
                self.close(0)?;
            }
            self.tables = vec![Slice { index, ..Slice::default() }];
        }
        for (time_ns, sighting) in &waiting.sightings {
            let name = sighting.question.map(|(_, name)| waiting.names.get(name as usize));
            self.add(0, *time_ns, sighting, name)?;
        }
        Ok(())
    }

    /// Sends elements out until there is room for another one in this table, or nothing is left.
    fn make_room(&mut self, slot: usize, name: usize) -> io::Result<()> {
        loop {
            let table = &self.tables[slot].table;
            let growth = table.growth_bytes(name);
            if growth == 0 && table.has_numbers() {
                return Ok(());
            }
            let used: u64 = self.tables.iter().map(|slice| slice.table.bytes()).sum();
            // Elements leave by the memory in use, and not by how fast rows are written.
            let leaving: u64 = self.under_way.iter().map(|bytes| bytes()).sum();
            if leaving > 0 && used + leaving + growth > self.memory_bytes {
                self.sink.drain()?;
                self.under_way.clear();
            }
            let fits = used + growth <= self.memory_bytes && table.has_numbers();
            if fits && can_allocate(growth) {
                return Ok(());
            }
            let largest =
                (0..self.tables.len()).max_by_key(|&slot| self.tables[slot].table.bytes());
            let Some(largest) = largest.filter(|&slot| !self.tables[slot].table.is_empty()) else {
                return Ok(());
            };
            self.send_out(largest, Left::Memory)?;
        }
    }

    fn close(&mut self, slot: usize) -> io::Result<()> {
        self.totals.slices += u64::from(self.tables[slot].is_used);
        self.send_out(slot, Left::Slice)
    }

    /// Hands on the elements of a table, which is empty afterwards.
    fn send_out(&mut self, slot: usize, left: Left) -> io::Result<()> {
        self.emit_late()?;
        let table = std::mem::take(&mut self.tables[slot].table);
        if left == Left::Memory {
            self.totals.early += table.len() as u64;
        }
        self.emit(table, left)
    }

    /// A packet whose slice was closed.
    fn late(&mut self, time_ns: i64, sighting: &Sighting, name: Option<&[u8]>) -> io::Result<()> {
        self.late.begin(time_ns, sighting, name);
        self.totals.late += 1;
        if self.late.len() == LATE_AT_ONCE {
            self.emit_late()?;
        }
        Ok(())
    }

    fn emit_late(&mut self) -> io::Result<()> {
        let late = std::mem::take(&mut self.late);
        self.emit(late, Left::Late)
    }

    fn emit(&mut self, table: SliceTable, left: Left) -> io::Result<()> {
        if table.is_empty() {
            return Ok(());
        }
        self.totals.rows += table.len() as u64;
        let elements = ElementRows::new(table, self.kind, left);
        self.under_way.retain(|bytes| bytes() > 0);
        self.under_way.push(Box::new(elements.memory()));
        self.sink.elements(elements)
    }
}

impl Waiting {
    /// Appends a sighting; how many bytes it takes.
    fn push(&mut self, time_ns: i64, sighting: &Sighting, name: Option<&[u8]>) -> usize {
        let mut sighting = *sighting;
        if let (Some((_, number)), Some(name)) = (&mut sighting.question, name) {
            *number = self.names.len() as u32;
            self.names.push(name);
        }
        self.sightings.push((time_ns, sighting));
        size_of::<(i64, Sighting)>() + name.map_or(0, |name| name.len() + size_of::<u32>())
    }
}
