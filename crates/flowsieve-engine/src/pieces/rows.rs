//! Makes the rows of an export, shard by shard, from what all pieces saw, and puts the shards
//! together.

use super::bytes::{Exchanged, Reader, Writer};
use super::merge::{Merged, PacketPlace};
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::export::{ExportPlan, ExportRows, ExportSummary, ExportTotals, ExportWhat};
use crate::export::{PackedRows, Taken};
use crate::guard::guarded;
use crate::hashing::{Digest, shard_of};
use crate::pipeline::CountSummary;
use std::collections::BTreeSet;
use std::io;

/// Rows that are handed on together.
const ROWS_AT_ONCE: usize = 4096;

/// Makes the rows of shards, one after the other.
#[derive(Clone, Debug)]
pub struct ShardRows {
    plan: ExportPlan,
}

/// Where a row stands among all: rows are in the order of this.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RowPlace {
    /// Number of the slice; 0 if each row is a packet.
    pub slice: i64,
    /// The packet, or the first one of the element.
    pub packet: PacketPlace,
    /// Number of the element among those of the packet: a packet may hold several DNS messages.
    pub element: u64,
}

/// What is known over all rows of a shard, to be sent to whoever puts the shards together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RowTally {
    /// Number of the slice.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Rows.
    pub rows: u64,
    /// Packets that they stand for.
    pub row_packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
}

impl ShardRows {
    /// For the shards of this plan.
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &ExportPlan) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        Ok(Self { plan: plan.clone() })
    }

    /// Makes the rows of one shard of a slice from its parts, which may come in any order. Parts of
    /// pieces that do not count are passed over, as is a part that came twice. `take` gets rows and
    /// their places, in order. The elements of a shard of a slice are in memory together, so the
    /// rows are those of one run whose memory was enough.
    ///
    /// # Errors
    ///
    /// A part is of another shard, or its elements are none; the system does not give the memory;
    /// `take` failed.
    pub fn rows(
        &self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
        mut take: impl FnMut(&mut ExportRows, &[RowPlace]) -> io::Result<()>,
    ) -> Result<RowTally, PieceError> {
        let outline = self.plan.outline();
        let is_here = |digest: Digest| shard_of(digest, outline.shards.into()) as u32 == shard;
        let mut merged = Merged::of(slice, shard, parts, table)?;
        let mut made = PackedRows::new(&self.plan, outline.digester());
        let mut places = Vec::new();
        let mut rows = 0;
        let mut hand_on = |made: &PackedRows, places: &[RowPlace]| {
            let mut batch = ExportRows::default();
            for first in (0..made.len()).step_by(ROWS_AT_ONCE) {
                let range = first..made.len().min(first + ROWS_AT_ONCE);
                batch.clear();
                made.write(range.clone(), &mut batch);
                take(&mut batch, &places[range])?;
            }
            rows += made.len() as u64;
            Ok::<(), io::Error>(())
        };
        while let Some(next) = merged.next_placed()? {
            let (time_ns, packet, from) = next.packet("element of a packet")?;
            match guarded(|| made.take(time_ns, from.rest, is_here))? {
                Taken::Added => {}
                Taken::Begun(element) => {
                    places.push(RowPlace { slice, packet: next.place(packet), element });
                }
                Taken::Refused => return Err(from.wrong("it is not of this shard and plan")),
                Taken::NoMemory => return Err(no_memory()),
            }
            if made.are_final() && made.len() == ROWS_AT_ONCE {
                hand_on(&made, &places)?;
                made.clear();
                places.clear();
            }
        }
        hand_on(&made, &places)?;
        Ok(RowTally { slice, shard, rows, row_packets: made.sightings, bytes: made.bytes })
    }
}

fn no_memory() -> PieceError {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        "the system does not give the memory of a slice's elements; shorter slices need less",
    )
    .into()
}

const ROW_TALLY: u8 = b'E';

impl Exchanged for RowTally {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::begin(ROW_TALLY);
        out.signed(self.slice);
        for number in [self.shard.into(), self.rows, self.row_packets, self.bytes] {
            out.number(number);
        }
        out.0
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, PieceError> {
        let mut from = Reader::begin(bytes, ROW_TALLY, "tally of rows")?;
        let read = Self {
            slice: from.signed()?,
            shard: from.small()?,
            rows: from.number()?,
            row_packets: from.number()?,
            bytes: from.number()?,
        };
        from.end()?;
        Ok(read)
    }
}

/// Adds up what is known over all rows.
#[derive(Debug)]
pub struct RowSums {
    /// Slices with rows; none if each row is a packet.
    slices: Option<BTreeSet<i64>>,
    seen: BTreeSet<(i64, u32)>,
    totals: ExportTotals,
}

impl RowSums {
    /// Begins, for the rows of this plan.
    pub fn new(plan: &ExportPlan) -> Self {
        let has_slices = matches!(plan.what, ExportWhat::Elements { .. });
        Self {
            slices: has_slices.then(BTreeSet::new),
            seen: BTreeSet::new(),
            totals: ExportTotals::default(),
        }
    }

    /// Takes the tally of a shard, in any order. A shard without parts need not have one.
    ///
    /// # Errors
    ///
    /// There was one of this shard before.
    pub fn shard(&mut self, tally: &RowTally) -> Result<(), PieceError> {
        if !self.seen.insert((tally.slice, tally.shard)) {
            return Err(PieceError::Mismatch(format!(
                "a tally of shard {} of slice {} came twice",
                tally.shard, tally.slice
            )));
        }
        if let (Some(slices), 1..) = (&mut self.slices, tally.rows) {
            slices.insert(tally.slice);
        }
        let sum = &mut self.totals;
        sum.rows = sum.rows.saturating_add(tally.rows);
        sum.row_packets = sum.row_packets.saturating_add(tally.row_packets);
        sum.bytes = sum.bytes.saturating_add(tally.bytes);
        Ok(())
    }

    /// Adds what became of the inputs.
    pub fn finish(self, inputs: Box<CountSummary>) -> ExportSummary {
        let CountSummary { inputs, totals, .. } = *inputs;
        ExportSummary {
            inputs,
            totals: ExportTotals {
                packets: totals.packets,
                slices: self.slices.map_or(0, |slices| slices.len() as u64),
                skipped: totals.skipped,
                ..self.totals
            },
        }
    }
}
