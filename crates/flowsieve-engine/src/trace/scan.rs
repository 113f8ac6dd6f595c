//! What the readers of records have in common: as many records as are at hand go to a batch; then
//! more bytes are read, until there is a packet or the end.

use super::error::{Fault, TraceErrorKind};
use super::packet::PacketRef;
use super::read_buffer::ReadBuffer;
use super::record::Records;

/// What ends a scan of the bytes at hand. It counts only if there was no packet before it:
/// otherwise it is met again after these were delivered.
pub(super) enum ScanEnd {
    /// The batch is full.
    Full,
    /// The next record begins where records are left to others.
    Elsewhere,
    /// So many bytes must be at hand for the next record.
    Need(usize),
    /// A block of no interest that is not at hand as a whole: its padded length, and its length.
    PassOver(u32, u32),
    /// The next record is not as its format allows.
    Damaged(TraceErrorKind),
}

/// A reader of one format.
pub(super) trait RecordReader {
    /// Packets of the batches before.
    fn packets(&mut self) -> &mut u64;

    /// Appends the packets of the records that stand whole in `bytes`, which begin at position
    /// `base` of the buffer and at `offset` of the stream; how many bytes these take, and why no
    /// more.
    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        offset: u64,
        out: &mut Vec<PacketRef>,
        records: Option<&mut Records>,
    ) -> (usize, ScanEnd);

    /// Passes over a block, for formats that have such.
    fn pass_over(&self, _window: &mut ReadBuffer, _padded: u32, _length: u32) -> Result<(), Fault> {
        Ok(())
    }
}

/// Appends packets to `out` (empty when called); leaves it empty at the end.
pub(super) fn fill(
    reader: &mut impl RecordReader,
    buffer: &mut ReadBuffer,
    out: &mut Vec<PacketRef>,
    mut records: Option<&mut Records>,
) -> Result<(), Fault> {
    loop {
        let (base, offset) = (buffer.position(), buffer.offset());
        let records = records.as_deref_mut();
        let (consumed, end) = reader.scan(buffer.unread(), base, offset, out, records);
        buffer.consume(consumed);
        let packets = reader.packets();
        *packets += out.len() as u64;
        if !out.is_empty() {
            return Ok(());
        }
        match end {
            ScanEnd::Full => {}
            ScanEnd::Elsewhere => return Ok(()),
            ScanEnd::Need(count) => {
                if !buffer.require_record(count, *packets + 1)? {
                    return Ok(());
                }
            }
            ScanEnd::PassOver(padded, length) => reader.pass_over(buffer, padded, length)?,
            ScanEnd::Damaged(kind) => return Err(Fault::at(buffer.offset(), kind)),
        }
    }
}
