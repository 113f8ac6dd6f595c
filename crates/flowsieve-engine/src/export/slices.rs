//! The elements of the open slices, in bounded memory.
//!
//! The rows of a slice go out when it is closed, in the order in which its elements were first seen. Where memory is full, the
//! elements of the largest table go out at once, with the packets that they had so far; what comes later of them is another row.

use super::results::{ExportSink, ExportTotals};
use super::rows::{ExportRows, Left};
use super::sightings::Sighting;
use super::table::SliceTable;
use crate::elements::ElementKind;
use crate::memory::is_given;
use crate::pipeline::{OpenSlices, Place, SliceGrid};
use std::io;

/// Open slices at most, as many as of a count.
const OPEN_SLICES: usize = 8;

/// Rows that are handed on together.
const ROWS_AT_ONCE: usize = 4096;

/// Takes sightings in the order of the trace.
pub(super) struct Slices<'a> {
    kind: ElementKind,
    memory_bytes: u64,
    open: OpenSlices,
    /// By their place among the open slices: the number of the slice, and its elements.
    tables: Vec<(i64, SliceTable)>,
    rows: ExportRows,
    pub(super) totals: ExportTotals,
    sink: &'a mut dyn ExportSink,
}

impl<'a> Slices<'a> {
    pub(super) fn new(
        kind: ElementKind,
        grid: SliceGrid,
        memory_bytes: u64,
        sink: &'a mut dyn ExportSink,
    ) -> Self {
        Self {
            kind,
            memory_bytes,
            open: OpenSlices::new(grid, OPEN_SLICES),
            tables: Vec::new(),
            rows: ExportRows::default(),
            totals: ExportTotals::default(),
            sink,
        }
    }

    /// Takes a sighting, before whose packet there were so many.
    #[inline]
    pub(super) fn take(
        &mut self,
        time_ns: i64,
        packets: u64,
        sighting: &Sighting,
        name: Option<&[u8]>,
    ) -> io::Result<()> {
        self.totals.row_packets += 1;
        self.totals.bytes += u64::from(sighting.bytes);
        let slot = if self.open.is_current(time_ns) {
            self.open.current()
        } else {
            match self.open.locate(time_ns, packets) {
                Place::Open(slot) => slot,
                Place::Late => return self.late(time_ns, sighting, name),
                Place::Replace { slot, index } => {
                    if slot == self.tables.len() {
                        self.tables.push((index, SliceTable::default()));
                    } else {
                        self.close(slot)?;
                        self.tables[slot].0 = index;
                    }
                    slot
                }
            }
        };
        let named = self.kind == ElementKind::Dns;
        let table = &mut self.tables[slot].1;
        if !table.add(time_ns, sighting, name, named) {
            self.make_room(slot, name.map_or(0, <[u8]>::len))?;
            self.tables[slot].1.begin(time_ns, sighting, name);
        } else if let (false, Some((question, _)), Some(name)) = (named, sighting.question, name)
            && table.lacks_question(sighting).is_some()
        {
            self.make_room(slot, name.len())?;
            let table = &mut self.tables[slot].1;
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
        slots.sort_by_key(|&slot| self.tables[slot].0);
        for slot in slots {
            self.close(slot)?;
        }
        self.hand_on()?;
        Ok(self.totals)
    }

    /// Sends elements out until there is room for another one in this table, or nothing is left.
    fn make_room(&mut self, slot: usize, name: usize) -> io::Result<()> {
        loop {
            let table = &self.tables[slot].1;
            let growth = table.growth_bytes(name);
            if growth == 0 && table.has_numbers() {
                return Ok(());
            }
            let used: u64 = self.tables.iter().map(|(_, table)| table.bytes()).sum();
            let fits = used + growth <= self.memory_bytes && table.has_numbers();
            if fits && is_given(growth) {
                return Ok(());
            }
            let largest = (0..self.tables.len()).max_by_key(|&slot| self.tables[slot].1.bytes());
            let Some(largest) = largest.filter(|&slot| !self.tables[slot].1.is_empty()) else {
                return Ok(());
            };
            self.send_out(largest, Left::Memory)?;
        }
    }

    fn close(&mut self, slot: usize) -> io::Result<()> {
        self.totals.slices += 1;
        self.send_out(slot, Left::Slice)
    }

    /// Writes the elements of a table, which is empty afterwards.
    fn send_out(&mut self, slot: usize, left: Left) -> io::Result<()> {
        let table = std::mem::take(&mut self.tables[slot].1);
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
