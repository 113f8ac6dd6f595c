//! The loop of the record readers: as many records as are at hand go to a batch; if there is none,
//! more bytes are read, until there is a packet or the end.

use super::error::{ReadError, TraceErrorKind};
use super::packet::PacketRef;
use super::read_buffer::ReadBuffer;
use super::record::Records;

/// Reason that a scan of the bytes at hand ended. It counts only without a packet before it:
/// otherwise it comes again after these were delivered.
pub(super) enum ScanEnd {
    /// The batch is full.
    Full,
    /// The next record belongs to another reader.
    Elsewhere,
    /// The next record needs this many bytes at hand.
    Need(usize),
    /// A block to skip that is not whole at hand: its padded length, and its length.
    PassOver(u32, u32),
    /// The next record violates its format.
    Damaged(TraceErrorKind),
}

/// A reader of one format.
pub(super) trait RecordReader {
    /// Returns the number of packets in earlier batches.
    fn packets(&mut self) -> &mut u64;

    /// Appends the packets of the records that stand whole in `bytes`, which begin at position
    /// `base` of the buffer and at `offset` of the stream; returns how many bytes these take, and
    /// why no more.
    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        offset: u64,
        out: &mut Vec<PacketRef>,
        records: Option<&mut Records>,
    ) -> (usize, ScanEnd);

    /// Skips a block, in formats that have such.
    fn pass_over(
        &self,
        _window: &mut ReadBuffer,
        _padded: u32,
        _length: u32,
    ) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Appends packets to `out` (empty when called); leaves it empty at the end.
pub(super) fn fill(
    reader: &mut impl RecordReader,
    buffer: &mut ReadBuffer,
    out: &mut Vec<PacketRef>,
    mut records: Option<&mut Records>,
) -> Result<(), ReadError> {
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
            ScanEnd::Damaged(kind) => return Err(ReadError::at(buffer.offset(), kind)),
        }
    }
}
