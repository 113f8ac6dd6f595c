//! Batches of rows that packets have.

use crate::decode::Skip;
use crate::inputs::Batch;
use crate::memory::prefetch;
use crate::trace::{LogBatch, LogEntry, PacketRef, TraceBatch};
use std::collections::BTreeMap;

/// The rows of a batch.
pub(crate) trait Rows: Default + Send + 'static {
    /// How many of them were consumed.
    type Cursor: Copy + Default;

    /// [`Batch::prefetch`] of the rows.
    fn prefetch(&self, _cursor: Self::Cursor, _packets: usize) {}

    /// Removes all and keeps the memory.
    fn clear(&mut self);
}

/// Packets without rows.
impl Rows for () {
    type Cursor = ();

    fn clear(&mut self) {}
}

/// A run of packets in trace order: each has rows, or an entry in `skipped`.
#[derive(Debug, Default)]
pub(crate) struct PacketRows<R> {
    /// Time of each packet in nanoseconds since the epoch.
    pub(crate) times_ns: Vec<i64>,
    /// Packets without a row, by their number in the batch, ascending.
    pub(crate) skipped: Vec<(u32, Skip)>,
    pub(crate) rows: R,
}

/// How far a batch was consumed: numbers of the next packet, of the next entry of `skipped`, and
/// of rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCursor<C> {
    pub(crate) packet: usize,
    pub(crate) skipped: usize,
    pub(crate) rows: C,
}

impl<R: Rows> PacketRows<R> {
    /// Appends what a reader yielded: `packet` and `record` append rows, and get the number of the
    /// packet in the batch.
    #[expect(clippy::inline_always, reason = "the loop over packets is part of the caller")]
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        batch: TraceBatch<'_>,
        mut packet: impl FnMut(u32, &PacketRef, &[u8], &mut R) -> Result<(), Skip>,
        mut record: impl FnMut(&LogBatch<'_>, &LogEntry, &mut R) -> Result<(), Skip>,
    ) {
        let first = self.times_ns.len() as u32;
        match batch {
            TraceBatch::Packets { bytes, packets } => {
                self.times_ns.extend(packets.iter().map(|packet| packet.time_ns));
                for (number, at) in (first..).zip(packets) {
                    let frame = &bytes[at.start as usize..][..at.captured as usize];
                    if let Err(skip) = packet(number, at, frame, &mut self.rows) {
                        self.skipped.push((number, skip));
                    }
                }
            }
            TraceBatch::Log(log) => {
                for (number, entry) in (first..).zip(log.entries) {
                    self.times_ns.push(entry.time_ns);
                    if let Err(skip) = record(&log, entry, &mut self.rows) {
                        self.skipped.push((number, skip));
                    }
                }
            }
        }
    }

    /// Moves the cursor over the packets without a row before packet `end`, and counts them.
    pub(crate) fn pass_skipped(
        &self,
        cursor: &mut RowCursor<R::Cursor>,
        end: usize,
        counts: &mut BTreeMap<Skip, u64>,
    ) {
        while let Some(&(number, reason)) = self.skipped.get(cursor.skipped)
            && (number as usize) < end
        {
            *counts.entry(reason).or_default() += 1;
            cursor.skipped += 1;
        }
    }
}

impl<R: Rows> Batch for PacketRows<R> {
    type Cursor = RowCursor<R::Cursor>;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn prefetch(&self, cursor: &RowCursor<R::Cursor>, packets: usize) {
        let RowCursor { packet, rows, .. } = *cursor;
        prefetch(&self.times_ns, &(packet..packet + packets), i64::cast_unsigned);
        self.rows.prefetch(rows, packets);
    }

    fn clear(&mut self) {
        self.times_ns.clear();
        self.skipped.clear();
        self.rows.clear();
    }

    fn taken(cursor: &RowCursor<R::Cursor>) -> usize {
        cursor.packet
    }
}
