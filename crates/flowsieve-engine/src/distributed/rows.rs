//! Makes the rows of an export, shard by shard, from the parts of all pieces, and joins the shards.

use super::trace_order::{PacketPlace, TraceOrder};
use super::wire::WireFormat;
use super::{InputTable, PieceError, PiecePlan, SlicePart};
use crate::export::{ExportPlan, ExportRows, ExportSummary, ExportTotals, ExportWhat, PackedRows};
use crate::flows::Taken;
use crate::guard::catch_panic;
use crate::hashing::{Digest, shard_of};
use crate::pipeline::CountSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

/// Rows that are emitted together.
const ROWS_AT_ONCE: usize = 4096;

/// Makes the rows of shards, one after the other.
#[derive(Clone, Debug)]
pub struct ShardRows {
    plan: ExportPlan,
    shards: Option<u32>,
}

/// The position of a row: the rows of an export are sorted by it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RowPlace {
    /// Number of the slice; 0 if each row is a packet.
    pub slice: i64,
    /// The packet, or the first one of the element.
    pub packet: PacketPlace,
    /// Number of the element among those of the packet: a packet may hold several DNS messages.
    pub element: u64,
}

/// The totals of a shard, which [`RowSums`] adds up.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct RowTally {
    /// Number of the slice.
    pub slice: i64,
    /// Number of the shard.
    pub shard: u32,
    /// Rows.
    pub rows: u64,
    /// Packets in these rows.
    pub row_packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
}

impl ShardRows {
    /// Makes the rows of this plan, in the shards of [`super::Outline::in_shards`].
    ///
    /// # Errors
    ///
    /// The plan contradicts itself.
    pub fn new(plan: &ExportPlan, shards: Option<u32>) -> Result<Self, PieceError> {
        PiecePlan::check(plan)?;
        Ok(Self { plan: plan.clone(), shards })
    }

    /// Makes the rows of one shard of a slice from its parts, which may come in any order. Parts of
    /// pieces that do not count are ignored, as is the second copy of a part. `take` gets rows and
    /// their places, in order. The elements of a shard of a slice are in memory together, so the
    /// rows are those of a single run with enough memory.
    ///
    /// # Errors
    ///
    /// A part is of another shard, or its elements are invalid; the system refuses the memory;
    /// `take` failed.
    pub fn rows(
        &self,
        slice: i64,
        shard: u32,
        parts: &[SlicePart],
        table: &InputTable,
        mut take: impl FnMut(&mut ExportRows, &[RowPlace]) -> io::Result<()>,
    ) -> Result<RowTally, PieceError> {
        let outline = self.plan.outline().in_shards(self.shards);
        let is_here = |digest: Digest| shard_of(digest, outline.shards.into()) as u32 == shard;
        let mut elements = TraceOrder::new(slice, shard, parts, table)?;
        let mut made = PackedRows::new(&self.plan, outline.digester());
        let mut places = Vec::new();
        let mut rows = 0;
        let mut emit = |made: &PackedRows, places: &[RowPlace]| {
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
        while let Some(next) = elements.next_placed()? {
            let (time_ns, packet, from) = next.packet("element of a packet")?;
            match catch_panic(|| made.take(time_ns, from.rest, is_here))?? {
                Taken::Added => {}
                Taken::Begun(element) => places.push(RowPlace { slice, packet, element }),
                Taken::Refused => return Err(from.error("it is not of this shard and plan")),
            }
            if made.are_final() && made.len() == ROWS_AT_ONCE {
                emit(&made, &places)?;
                made.clear();
                places.clear();
            }
        }
        emit(&made, &places)?;
        Ok(RowTally { slice, shard, rows, row_packets: made.sightings, bytes: made.bytes })
    }
}

impl WireFormat for RowTally {
    const LETTER: u8 = b'E';
    const NAME: &'static str = "tally of rows";
}

/// Adds up the tallies of shards.
#[derive(Debug)]
pub struct RowSums {
    /// Slices with rows; `None` if each row is a packet.
    slices: Option<BTreeSet<i64>>,
    seen: BTreeSet<(i64, u32)>,
    totals: ExportTotals,
}

impl RowSums {
    /// Adds up the tallies of this plan.
    pub fn new(plan: &ExportPlan) -> Self {
        let has_slices = matches!(plan.what, ExportWhat::Elements { .. });
        Self {
            slices: has_slices.then(BTreeSet::new),
            seen: BTreeSet::new(),
            totals: ExportTotals::default(),
        }
    }

    /// Adds the tally of a shard, in any order. A shard without parts may have none.
    ///
    /// # Errors
    ///
    /// The shard had one before.
    pub fn shard(&mut self, tally: &RowTally) -> Result<(), PieceError> {
        let RowTally { slice, shard, .. } = *tally;
        let what = format_args!("a tally of shard {shard} of slice {slice} came twice");
        PieceError::unless(self.seen.insert((slice, shard)), what)?;
        if let (Some(slices), 1..) = (&mut self.slices, tally.rows) {
            slices.insert(tally.slice);
        }
        let sum = &mut self.totals;
        sum.rows = sum.rows.saturating_add(tally.rows);
        sum.row_packets = sum.row_packets.saturating_add(tally.row_packets);
        sum.bytes = sum.bytes.saturating_add(tally.bytes);
        Ok(())
    }

    /// Adds the results of the inputs.
    ///
    /// # Errors
    ///
    /// Packets are missing.
    pub fn finish(self, inputs: Box<CountSummary>) -> Result<ExportSummary, PieceError> {
        let CountSummary { inputs, totals, .. } = *inputs;
        PieceError::unless_all(self.totals.row_packets, totals.elements)?;
        Ok(ExportSummary {
            inputs,
            totals: ExportTotals {
                packets: totals.packets,
                slices: self.slices.map_or(0, |slices| slices.len() as u64),
                skipped: totals.skipped,
                ..self.totals
            },
        })
    }
}
