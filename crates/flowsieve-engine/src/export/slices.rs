//! The elements of the open slices, in bounded memory.
//!
//! The rows of a slice go out when it is closed, in the order in which its elements were first seen. Where memory is full, the
//! elements of the largest table go out at once, with the packets that they had so far; what comes later of them is another row.
//!
//! Slices that are known to have packets that come late are gathered, and written when all is read.

use super::results::{ExportSink, ExportTotals};
use super::rows::{ExportRows, Left};
use super::sightings::Sighting;
use super::table::SliceTable;
use crate::elements::{ElementKind, Keys};
use crate::memory::is_given;
use crate::pipeline::{Gathered, OpenSlices, Place, SliceGrid, SliceSet};
use serde::{Deserialize, Serialize};
use std::io;

/// Open slices at most, as many as of a count.
const OPEN_SLICES: usize = 8;

/// Rows that are handed on together.
const ROWS_AT_ONCE: usize = 4096;

/// Which slices the packets of a trace in order belong to, and which slices have packets that come late.
///
/// It sees every packet, whichever reading this is and whatever the packet shows: so each reading finds the same late ones.
pub(super) struct Order {
    grid: SliceGrid,
    open: OpenSlices,
    pub(super) disordered: SliceSet,
}

impl Order {
    pub(super) fn new(grid: SliceGrid) -> Self {
        Self {
            grid,
            open: OpenSlices::new(grid, OPEN_SLICES),
            disordered: SliceSet::default(),
        }
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
#[derive(Debug)]
struct Slice {
    index: i64,
    table: SliceTable,
    /// It has elements, perhaps none any more that are here.
    is_used: bool,
    /// Its sightings wait until all are there.
    is_gathered: bool,
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
    Gathered(i64),
    /// A row of their own each.
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
    gathered: Gathered<Waiting>,
    rows: ExportRows,
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
            gathered: Gathered::new(),
            rows: ExportRows::default(),
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
                let is_gathered = self.disordered.contains(index);
                return Ok(if is_gathered {
                    Goal::Gathered(index)
                } else {
                    Goal::Late
                });
            }
            Place::Replace { slot, index } => {
                let is_gathered = self.disordered.contains(index);
                let opened = Slice {
                    index,
                    table: SliceTable::default(),
                    is_used: false,
                    is_gathered,
                };
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
        Ok(if slice.is_gathered {
            Goal::Gathered(slice.index)
        } else {
            Goal::Slice(slot)
        })
    }

    /// Takes a sighting.
    #[inline]
    pub(super) fn take(
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
            Goal::Gathered(index) => self
                .gathered
                .add(index, |waiting| waiting.push(time_ns, sighting, name)),
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
        let named = self.kind == ElementKind::Dns;
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
        slots.sort_by_key(|&slot| self.tables[slot].index);
        for slot in slots {
            self.close(slot)?;
        }
        self.tables.clear();
        let gathered = std::mem::replace(&mut self.gathered, Gathered::new());
        gathered.drain(|index, waiting| self.take_gathered(index, &waiting))?;
        if !self.tables.is_empty() {
            self.close(0)?;
        }
        self.hand_on()?;
        Ok(self.totals)
    }

    /// Takes sightings of a slice; slices come one after the other.
    fn take_gathered(&mut self, index: i64, waiting: &Waiting) -> io::Result<()> {
        if self.tables.first().is_none_or(|slice| slice.index != index) {
            if !self.tables.is_empty() {
                self.close(0)?;
            }
            self.tables = vec![Slice {
                index,
                table: SliceTable::default(),
                is_used: false,
                is_gathered: false,
            }];
        }
        for (time_ns, sighting) in &waiting.sightings {
            let name = sighting
                .question
                .map(|(_, name)| waiting.names.get(name as usize));
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
            let fits = used + growth <= self.memory_bytes && table.has_numbers();
            if fits && is_given(growth) {
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

    /// Writes the elements of a table, which is empty afterwards.
    fn send_out(&mut self, slot: usize, left: Left) -> io::Result<()> {
        let table = std::mem::take(&mut self.tables[slot].table);
        let mut next = 0;
        while next < table.len() {
            let end = table.len().min(next + ROWS_AT_ONCE - self.rows.len());
            table.write(next..end, self.kind, left, &mut self.rows);
            if left == Left::Memory {
                self.totals.early += (end - next) as u64;
            }
            next = end;
            if self.rows.len() == ROWS_AT_ONCE {
                self.hand_on()?;
            }
        }
        Ok(())
    }

    /// A packet whose slice was closed.
    fn late(&mut self, time_ns: i64, sighting: &Sighting, name: Option<&[u8]>) -> io::Result<()> {
        let mut table = SliceTable::default();
        table.begin(time_ns, sighting, name);
        table.write(0..1, self.kind, Left::Late, &mut self.rows);
        self.totals.late += 1;
        if self.rows.len() == ROWS_AT_ONCE {
            self.hand_on()?;
        }
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let rows = self.rows.len();
        self.totals.rows += rows as u64;
        self.sink.rows(&mut self.rows, 0..rows)?;
        self.rows.clear();
        Ok(())
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
