//! Frame Streams, the container of dnstap: frames, each behind its length in four bytes,
//! big-endian.
//!
//! ```text
//!   0 │ length │ type │ fields      control frame: a length of 0, then its own
//!   length │ payload                data frame
//! ```
//!
//! A file begins with a control frame START, which names the content, and ends with STOP, or
//! wherever its writer was ended. Files that were put together one behind the other are read to the
//! end.

use super::error::{ReadError, TraceErrorKind};
use super::read_buffer::ReadBuffer;

/// Longest data frame. The format sets no limit; this is that of its reference library.
pub(super) const MAX_FRAME: u32 = 1 << 20;

/// Longest control frame, as the reference library has it.
const MAX_CONTROL: u32 = 512;

const START: u32 = 2;
const CONTENT_TYPE: u32 = 1;

/// Bytes of a control frame before its fields: escape, length, type.
const CONTROL_HEAD: usize = 12;

/// Returns the content that the frame START of a stream names, if it is one. Reads no more than
/// this frame, for a live stream may take long to bring more.
pub(super) fn content_type(buffer: &mut ReadBuffer) -> Option<&[u8]> {
    if !buffer.unread().starts_with(&[0; 4]) || buffer.fill(CONTROL_HEAD) < CONTROL_HEAD {
        return None;
    }
    let [escape, length, kind] = [0, 4, 8].map(|at| number(buffer.unread(), at));
    if escape != 0 || kind != START || length > MAX_CONTROL {
        return None;
    }
    buffer.fill(8 + length as usize);
    let mut fields = buffer.unread().get(CONTROL_HEAD..8 + length as usize)?;
    while fields.len() >= 8 {
        let [kind, length] = [0, 4].map(|at| number(fields, at));
        let value = fields[8..].get(..length as usize)?;
        if kind == CONTENT_TYPE {
            return Some(value);
        }
        fields = &fields[8 + length as usize..];
    }
    None
}

/// Reads frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Number of data frames so far.
    pub(super) number: u64,
}

impl Frames {
    /// Finds the next data frame, and returns its length: it is `&buffer.unread()[4..4 + length]`.
    /// With `may_move` it reads on where the buffer ends, which moves what is in it, and `None` is
    /// the end; without, the next frame is not all in the buffer then.
    pub(super) fn next(
        &mut self,
        buffer: &mut ReadBuffer,
        may_move: bool,
    ) -> Result<Option<usize>, ReadError> {
        while self.is_here(buffer, 4, may_move)? {
            let length = number(buffer.unread(), 0);
            if length > 0 {
                let whole = self.record(buffer, length, MAX_FRAME, 4, may_move)?;
                self.number += u64::from(whole.is_some());
                return Ok(whole.map(|whole| whole - 4));
            }
            if !self.is_here(buffer, 8, may_move)? {
                return Ok(None);
            }
            let length = number(buffer.unread(), 4);
            match self.record(buffer, length, MAX_CONTROL, 8, may_move)? {
                Some(whole) => buffer.consume(whole),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns the length, with its head, of a frame that is all in the buffer; `None` if it is
    /// not.
    fn record(
        &self,
        buffer: &mut ReadBuffer,
        length: u32,
        limit: u32,
        head: usize,
        may_move: bool,
    ) -> Result<Option<usize>, ReadError> {
        if length > limit {
            let kind = TraceErrorKind::too_long(self.number + 1, length, limit);
            return Err(ReadError::at(buffer.offset(), kind));
        }
        let whole = head + length as usize;
        Ok(self.is_here(buffer, whole, may_move)?.then_some(whole))
    }

    fn is_here(
        &self,
        buffer: &mut ReadBuffer,
        count: usize,
        may_move: bool,
    ) -> Result<bool, ReadError> {
        if buffer.unread().len() >= count {
            return Ok(true);
        }
        Ok(may_move && buffer.require_record(count, self.number + 1)?)
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
