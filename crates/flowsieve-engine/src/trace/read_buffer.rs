//! A buffer that slides over a stream: large reads straight into the buffer that packets point
//! into.

use std::io::{self, Read};

use super::ahead::ReadAhead;
use super::error::ReadError;
use super::failure_as_end::FailureAsEnd;

/// Size of the buffer. Large enough that `read` costs little a packet, small enough that what was
/// just read is still in the second-level cache when it is decoded, and that a short capture does
/// not cost more for the buffer's pages than for its packets.
const BUFFER_BYTES: usize = 128 * 1024;

/// The least size of a buffer.
const LEAST_BYTES: usize = 4 * 1024;

/// Bytes are read to the same place in a cache line as in the stream, and so as in the system's
/// pages: copying from these takes a tenth less time.
const LINE: usize = 64;

/// The buffered part of a stream, and its place in it.
///
/// ```text
///   buffer   [ consumed │ unread │ free ]
///            0          start    end
/// ```
///
/// It begins at a cache line, wherever its memory is, so that positions are the same in every run.
/// It has room for one line more than its capacity, so that what is unread can be moved to the
/// place behind which the next read begins where it should in its line.
pub(super) struct ReadBuffer {
    source: FailureAsEnd<Box<dyn Read + Send>>,
    memory: Vec<u8>,
    /// Place in the memory at which the buffer begins: the first cache line.
    origin: usize,
    /// Its capacity when it is made.
    first_capacity: usize,
    start: usize,
    end: usize,
    /// Offset in the stream of the first byte of the buffer; wraps around where that would lie
    /// before the first byte of the stream.
    base: u64,
}

impl ReadBuffer {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self::for_bytes(source, BUFFER_BYTES as u64)
    }

    /// Creates a buffer for a stream that may have no more than this many bytes.
    pub(super) fn for_bytes(source: Box<dyn Read + Send>, bytes: u64) -> Self {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            source: FailureAsEnd::new(source),
            memory: Vec::new(),
            origin: 0,
            first_capacity: most.clamp(LEAST_BYTES, BUFFER_BYTES),
            start: 0,
            end: 0,
            base: 0,
        }
    }

    /// Reads the source ahead in another thread from now on, if the system gives one.
    pub(super) fn read_ahead(&mut self) {
        let idle = Box::new(io::empty());
        self.source.inner = ReadAhead::start(std::mem::replace(&mut self.source.inner, idle));
    }

    /// Returns the whole buffer up to the last byte read; positions of packets refer to it.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.memory[self.origin..self.origin + self.end]
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.buffered()[self.start..]
    }

    /// Returns the position in [`Self::buffered`] of the first unread byte.
    pub(super) fn position(&self) -> usize {
        self.start
    }

    /// Returns the offset in the stream of the first unread byte.
    pub(super) fn offset(&self) -> u64 {
        self.base.wrapping_add(self.start as u64)
    }

    /// Discards the buffer: the source continues at this offset in the stream.
    pub(super) fn restart(&mut self, offset: u64) {
        (self.start, self.end, self.base) = (0, 0, offset);
        (self.source.ended, self.source.failure) = (false, None);
    }

    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
    }

    /// Consumes `count` bytes without keeping them; they may be far more than the buffer holds.
    /// Returns false if the stream ends inside them.
    pub(super) fn skip(&mut self, count: u64) -> Result<bool, ReadError> {
        let here = (self.end - self.start) as u64;
        if count <= here {
            self.start += count as usize;
            return Ok(true);
        }
        self.base = self.base.wrapping_add(self.end as u64);
        self.start = 0;
        self.end = 0;
        let mut left = count - here;
        self.allocate();
        while left > 0 {
            let room = self.capacity().min(usize::try_from(left).unwrap_or(usize::MAX));
            let got = self.read_into(0, room);
            self.base = self.base.wrapping_add(got as u64);
            left -= got as u64;
            if got == 0 {
                self.raise_failure()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes at least `count` bytes unread, unless the stream ends before; returns how many there
    /// are.
    ///
    /// Moves what is unread towards the front of the buffer, so that positions handed out before
    /// are void. The buffer grows as bytes arrive, never because a length was claimed.
    ///
    /// # Errors
    /// The source failed before `count` bytes were there.
    pub(super) fn require(&mut self, count: usize) -> Result<usize, ReadError> {
        let here = self.fill(count);
        if here < count {
            self.raise_failure()?;
        }
        Ok(here)
    }

    /// Like [`Self::require`], for `count` bytes of the record of packet number `packet`; returns
    /// false if the stream ends before the first.
    ///
    /// # Errors
    /// The source failed, or the stream ends within the record.
    pub(super) fn require_record(&mut self, count: usize, packet: u64) -> Result<bool, ReadError> {
        let present = self.require(count)?;
        if present == 0 || present >= count {
            return Ok(present > 0);
        }
        let (promised, present) = (count as u64, present as u64);
        Err(ReadError::cut(self.offset(), packet, promised, present))
    }

    /// Like [`Self::require`], but keeps a failure of the source for later.
    pub(super) fn fill(&mut self, count: usize) -> usize {
        if self.end - self.start < count {
            self.allocate();
            self.make_room();
            while self.end - self.start < count {
                if self.end - self.start == self.capacity() {
                    self.grow();
                }
                let got = self.read_into(self.end, self.start + self.capacity());
                self.end += got;
                if got == 0 {
                    break;
                }
            }
        }
        self.end - self.start
    }

    /// Returns whether the source has no more bytes.
    pub(super) fn is_complete(&self) -> bool {
        self.source.ended
    }

    fn allocate(&mut self) {
        if self.memory.is_empty() {
            (self.memory, self.origin) = zeroed(self.first_capacity);
        }
    }

    /// Doubles the capacity; positions stay.
    fn grow(&mut self) {
        let (mut memory, origin) = zeroed(self.capacity() * 2);
        memory[origin + self.start..origin + self.end].copy_from_slice(self.unread());
        (self.memory, self.origin) = (memory, origin);
    }

    /// Returns how many unread bytes the buffer can hold.
    fn capacity(&self) -> usize {
        self.memory.len() - 2 * LINE
    }

    /// Moves the unread bytes to the front, behind the lead that puts the next read into its place
    /// in a cache line.
    fn make_room(&mut self) {
        let unread = self.end - self.start;
        let next_offset = self.base.wrapping_add(self.end as u64) as usize;
        let lead = next_offset.wrapping_sub(unread) % LINE;
        let from = self.origin + self.start;
        self.memory.copy_within(from..from + unread, self.origin + lead);
        self.base = self.offset().wrapping_sub(lead as u64);
        self.start = lead;
        self.end = lead + unread;
    }

    /// Reads once, to positions `from..to`; returns 0 at the end of the stream or when the source
    /// has failed.
    fn read_into(&mut self, from: usize, to: usize) -> usize {
        self.source.read(&mut self.memory[self.origin + from..self.origin + to])
    }

    /// Returns the failure of the source, once, if it has failed.
    pub(super) fn raise_failure(&mut self) -> Result<(), ReadError> {
        match self.source.failure.take() {
            Some(error) => {
                let offset = self.base.wrapping_add(self.end as u64);
                Err(ReadError::from_io(error, offset))
            }
            None => Ok(()),
        }
    }
}

/// Allocates a buffer of `capacity` bytes, one line of lead and the bytes before its first cache
/// line; returns where this line begins, too.
fn zeroed(capacity: usize) -> (Vec<u8>, usize) {
    // Zeroed by the system and not here: what a small file does not fill takes no memory.
    let memory = vec![0; capacity + 2 * LINE];
    let origin = memory.as_ptr().addr().wrapping_neg() % LINE;
    (memory, origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a call, as a pipe may, and then an error.
    struct Dribble(u8);

    impl Read for Dribble {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            if self.0 == 10 {
                return Err(io::Error::other("pulled out"));
            }
            target[0] = self.0;
            self.0 += 1;
            Ok(1)
        }
    }

    #[test]
    fn what_came_before_a_failure_can_be_read() {
        let mut buffer = ReadBuffer::new(Box::new(Dribble(0)));
        assert_eq!(buffer.require(4).unwrap(), 4);
        buffer.consume(3);
        assert_eq!(buffer.require(7).unwrap(), 7);
        assert_eq!(buffer.unread(), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(buffer.offset(), 3);
        let error = buffer.require(8).unwrap_err();
        assert_eq!(error.offset, Some(10));
        assert_eq!(buffer.require(8).unwrap(), 7);
    }

    #[test]
    fn skips_farther_than_the_buffer() {
        let total = 3 * BUFFER_BYTES as u64;
        let mut buffer = ReadBuffer::new(Box::new(io::repeat(7).take(total)));
        assert_eq!(buffer.require(10).unwrap(), BUFFER_BYTES);
        assert!(buffer.skip(total - 5).unwrap());
        assert_eq!(buffer.offset(), total - 5);
        assert_eq!(buffer.require(100).unwrap(), 5);
        assert!(!buffer.skip(6).unwrap());
    }

    #[test]
    fn reads_go_to_where_bytes_lie_in_a_line_of_the_stream() {
        let mut buffer = ReadBuffer::new(Box::new(io::repeat(7).take(5 * BUFFER_BYTES as u64)));
        for consumed in [1, 63, 64, 100, 4097, BUFFER_BYTES - 1] {
            assert!(buffer.require(BUFFER_BYTES).unwrap() >= BUFFER_BYTES - 100);
            let before = buffer.offset();
            buffer.consume(consumed);
            buffer.require(buffer.unread().len() + 1).unwrap();
            assert_eq!(buffer.offset(), before + consumed as u64);
            let front = buffer.unread().as_ptr().addr();
            let last = before + buffer.unread().len() as u64;
            assert!(last > before);
            assert_eq!(front % LINE, buffer.offset() as usize % LINE);
        }
    }

    #[test]
    fn starts_anew_at_another_offset() {
        let mut buffer = ReadBuffer::new(Box::new(Dribble(0)));
        buffer.require(4).unwrap();
        assert!(buffer.require(20).is_err());
        buffer.restart(1000);
        assert!(buffer.unread().is_empty());
        assert_eq!(buffer.offset(), 1000);
        assert!(buffer.require(1).is_err(), "the source fails still");
    }

    #[test]
    fn grows_for_a_long_record_only_as_bytes_arrive() {
        let total = BUFFER_BYTES + 1;
        let mut buffer = ReadBuffer::new(Box::new(io::repeat(7).take(total as u64)));
        assert_eq!(buffer.require(usize::MAX).unwrap(), total);
        assert_eq!(buffer.capacity(), 2 * BUFFER_BYTES);
    }
}
