//! Buffered compressed input that knows how far it was consumed and can look ahead.

use std::io::{self, Read};

use super::ahead::Ahead;
use crate::trace::failure_as_end::FailureAsEnd;

const INPUT_BYTES: usize = 128 * 1024;

/// Bytes of the first read: enough to tell what it is, and all that is ever read here of what is
/// not compressed.
const FIRST_BYTES: usize = 4 * 1024;

pub(super) struct Input {
    source: FailureAsEnd<Ahead>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the stream of the first byte of the buffer.
    base: u64,
    /// A codec asked for more than there is.
    pub(super) overdrawn: bool,
}

impl Input {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source: FailureAsEnd::new(Ahead::new(source)),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            base: 0,
            overdrawn: false,
        }
    }

    /// Returns the buffered bytes, after a read if there were none; empty at the end only.
    pub(super) fn available(&mut self) -> &[u8] {
        self.peek(1)
    }

    /// Returns the buffered bytes, at least `count` (few) unless the input ends before.
    pub(super) fn peek(&mut self, count: usize) -> &[u8] {
        if self.end - self.start < count && !self.source.ended {
            match self.buffer.len() {
                0 => self.buffer = vec![0; FIRST_BYTES],
                FIRST_BYTES => self.buffer.resize(INPUT_BYTES, 0),
                _ => {}
            }
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
            while self.end < count && !self.source.ended {
                self.end += self.source.read(&mut self.buffer[self.end..]);
            }
        }
        &self.buffer[self.start..self.end]
    }

    /// Returns whether more would have to be read from the source.
    pub(super) fn is_drained(&self) -> bool {
        self.start == self.end && !self.source.ended
    }

    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
    }

    /// Consumes `count` bytes; returns false if the input ends before.
    pub(super) fn skip(&mut self, mut count: u64) -> bool {
        while count > 0 {
            // A buffer that would be read and consumed as a whole need not be copied.
            let is_whole = self.start == self.end && self.buffer.len() == INPUT_BYTES;
            if is_whole && count >= INPUT_BYTES as u64 && self.source.inner.pass(INPUT_BYTES) {
                self.base += (self.start + INPUT_BYTES) as u64;
                (self.start, self.end) = (0, 0);
                count -= INPUT_BYTES as u64;
                continue;
            }
            let here = self.available().len();
            if here == 0 {
                return false;
            }
            let now = here.min(usize::try_from(count).unwrap_or(usize::MAX));
            self.consume(now);
            count -= now as u64;
        }
        true
    }

    /// Begins to read ahead here; returns false if the system gives no memory.
    pub(super) fn go_on_ahead(&mut self) -> bool {
        let here = self.offset();
        let buffered = &self.buffer[self.start..self.end];
        self.source.inner.go_on_at(here, buffered)
    }

    /// Returns the source, which can be read ahead; the codec's reads stay the same.
    pub(super) fn ahead(&mut self) -> &mut Ahead {
        &mut self.source.inner
    }

    /// Returns whether only zero bytes (of a tape block, say) are left; consumes them.
    pub(super) fn only_zeros_left(&mut self) -> bool {
        loop {
            let here = self.available();
            if here.is_empty() {
                return true;
            }
            if here.iter().any(|&byte| byte != 0) {
                return false;
            }
            let count = here.len();
            self.consume(count);
        }
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.available().is_empty()
    }

    /// Returns the number of bytes consumed.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Returns the error of the source, which codecs see as an end.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.source.failure.take()
    }
}

/// For codecs: a failure shows as an end, and is asked for afterwards.
impl Read for Input {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.available().len().min(target.len());
        target[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.consume(count);
        self.overdrawn |= count < target.len() && self.source.ended;
        Ok(count)
    }
}

/// Input without a codec: what was looked at first, then the source itself, straight into the
/// target.
pub(super) struct Plain(pub(super) Input);

impl Read for Plain {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let Self(input) = self;
        if input.start < input.end {
            return input.read(target);
        }
        match input.take_failure() {
            Some(error) => Err(error),
            None if input.source.ended => Ok(0),
            None => input.source.inner.read(target),
        }
    }
}
