//! The source of a codec's input, and what was read of it ahead of the codec, for workers.
//!
//! The codec still gets every byte, in reads of the lengths that it would have without workers: so
//! what it makes of damage is the same.

use crate::trace::failure_as_end::FailureAsEnd;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes read at once: few enough to be in the cache when a worker takes them.
const READ_BYTES: usize = 256 * 1024;

/// Bytes of a part, which a worker decompresses while the codec may yet need them.
#[derive(Clone)]
pub(super) struct Bytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(super) struct Ahead {
    source: FailureAsEnd<Box<dyn Read + Send>>,
    /// Parts that were cut off and that the codec did not read yet, each with its offset.
    parts: VecDeque<(u64, Bytes)>,
    /// Bytes behind them that were read.
    rest: Vec<u8>,
    /// Memory of a part that was read.
    spare: Vec<u8>,
    /// Offset of the next byte for the codec.
    position: u64,
    /// Offset of the next byte of the source.
    source_position: u64,
}

impl Ahead {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source: FailureAsEnd::new(source),
            parts: VecDeque::new(),
            rest: Vec::new(),
            spare: Vec::new(),
            position: 0,
            source_position: 0,
        }
    }

    /// Returns the offset of the first byte that was not cut off.
    pub(super) fn offset(&self) -> u64 {
        self.source_position - self.rest.len() as u64
    }

    /// Continues at this offset, where the codec stands, which has read `buffered` from there;
    /// returns false if the system gives no memory. No part that the codec did not reach may have
    /// been cut off.
    pub(super) fn go_on_at(&mut self, offset: u64, buffered: &[u8]) -> bool {
        if offset == self.offset() {
            return true;
        }
        debug_assert_eq!(offset + buffered.len() as u64, self.position);
        let known = self.rest.len().min((self.position - self.offset()) as usize);
        let beyond = &self.rest[known..];
        let mut rest = Vec::new();
        if rest.try_reserve(buffered.len() + beyond.len()).is_err() {
            return false;
        }
        rest.extend_from_slice(buffered);
        rest.extend_from_slice(beyond);
        self.rest = rest;
        true
    }

    /// Returns at least `count` bytes that were not cut off; `None` if there are fewer, or no
    /// memory for them.
    pub(super) fn look(&mut self, count: usize) -> Option<&[u8]> {
        while self.rest.len() < count {
            let before = self.rest.len();
            if self.source.ended || self.rest.try_reserve(READ_BYTES).is_err() {
                return None;
            }
            self.rest.resize(before + READ_BYTES, 0);
            let read = self.source.read(&mut self.rest[before..]);
            self.rest.truncate(before + read);
            self.source_position += read as u64;
        }
        Some(&self.rest)
    }

    /// Cuts off the next `count` bytes, which were looked at; `None` if the system gives no memory.
    pub(super) fn cut(&mut self, count: usize) -> Option<Bytes> {
        let mut rest = std::mem::take(&mut self.spare);
        rest.clear();
        // The next part may be as long as this one.
        let room = (self.rest.len() - count).max(count) + 2 * READ_BYTES;
        rest.try_reserve_exact(room).ok()?;
        rest.extend_from_slice(&self.rest[count..]);
        let offset = self.offset();
        let mut part = std::mem::replace(&mut self.rest, rest);
        part.truncate(count);
        let part = Bytes(Arc::new(part));
        self.parts.push_back((offset, part.clone()));
        Some(part)
    }

    /// Skips bytes that were read ahead, as if they were read; returns false if there are fewer.
    pub(super) fn pass(&mut self, count: usize) -> bool {
        let is_known = self.source_position - self.position >= count as u64;
        if is_known {
            self.position += count as u64;
            self.forget();
        }
        is_known
    }

    /// Forgets the parts that were read.
    fn forget(&mut self) {
        while let Some((offset, part)) = self.parts.front() {
            if offset + part.0.len() as u64 > self.position {
                return;
            }
            if let Some((_, Bytes(part))) = self.parts.pop_front() {
                self.spare = Arc::try_unwrap(part).unwrap_or_default();
            }
        }
    }

    /// Copies bytes that were read ahead; returns how many.
    fn read_known(&mut self, target: &mut [u8]) -> usize {
        let mut count = 0;
        while count < target.len() && self.position < self.source_position {
            self.forget();
            let (offset, known) = match self.parts.front() {
                Some((offset, part)) => (*offset, part.as_ref()),
                None => (self.offset(), self.rest.as_slice()),
            };
            let known = &known[(self.position - offset) as usize..];
            let copied = known.len().min(target.len() - count);
            target[count..count + copied].copy_from_slice(&known[..copied]);
            count += copied;
            self.position += copied as u64;
        }
        self.forget();
        count
    }
}

/// For the codec: as a file would give them, bytes that were read ahead and those behind them come
/// in one read.
impl Read for Ahead {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let known = self.read_known(target);
        if known == target.len() {
            return Ok(known);
        }
        let count = self.source.read(&mut target[known..]);
        if count > 0 {
            // All that was read ahead is with the codec now.
            self.parts.clear();
            self.rest = Vec::new();
            self.source_position += count as u64;
            self.position = self.source_position;
        }
        // Bytes come first; a failure stays for the next call.
        let failure = self.source.failure.take_if(|_| known + count == 0);
        failure.map_or(Ok(known + count), Err)
    }
}
