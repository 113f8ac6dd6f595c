//! An input read in the thread of the merge, for those who need the packets as they stand in the
//! capture.

use super::batch::decode_panicked;
use super::merge::Input;
use crate::guard::catch_panic;
use crate::trace::{Annotation, Capture, Lost, RecordBatch, TraceError};
use std::cell::RefCell;
use std::ops::Range;

/// A capture that is being read. A DNS log has no packets.
#[derive(Debug)]
pub struct RecordInput<'a> {
    capture: Capture,
    /// The next packet of the present batch.
    at: usize,
    /// Packets in the batches before.
    before: u64,
    /// Receives the annotations behind the last packet.
    rest: Option<&'a RefCell<Rest>>,
}

/// The annotations of captures that are in no batch of packets.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Those behind the last packet of the first capture that had come to its end.
    pub(crate) annotations: Vec<Annotation>,
    /// Number of annotations that were not kept.
    pub(crate) others: Lost,
    has_ended: bool,
}

impl<'a> RecordInput<'a> {
    /// A capture whose packets are wanted.
    pub fn new(mut capture: Capture) -> Self {
        capture.keep_records();
        Self { capture, at: 0, before: 0, rest: None }
    }

    /// A capture whose packets and annotations are wanted.
    pub(crate) fn with_annotations(capture: Capture, rest: &'a RefCell<Rest>) -> Self {
        let mut input = Self::new(capture);
        input.capture.keep_annotations();
        input.rest = Some(rest);
        input
    }

    /// Hands over the annotations behind the last packet.
    fn leave(&self) {
        if let Some(rest) = self.rest {
            let mut rest = rest.borrow_mut();
            let last = self.capture.record_batch().annotations;
            // Those of several captures are counted only, so they need no memory.
            if std::mem::replace(&mut rest.has_ended, true) {
                rest.others.add(last, true);
            } else {
                rest.annotations.extend_from_slice(last);
            }
            rest.others.add_unreadable(self.capture.unkept_annotations());
        }
    }

    /// The present batch, and where the next `count` packets stand in it.
    pub fn next(&self, count: usize) -> (RecordBatch<'_>, Range<usize>) {
        (self.capture.record_batch(), self.at..self.at + count)
    }
}

impl Input for RecordInput<'_> {
    fn times_ns(&self) -> impl ExactSizeIterator<Item = i64> {
        self.capture.record_batch().packets[self.at..].iter().map(|packet| packet.time_ns)
    }

    fn pass(&mut self, packets: usize) {
        self.at += packets;
    }

    fn refill(&mut self) -> Result<bool, TraceError> {
        if self.capture.is_log() {
            return Ok(false);
        }
        while self.at >= self.capture.record_batch().packets.len() {
            self.before += self.at as u64;
            self.at = 0;
            let next = self.before + 1;
            match catch_panic(|| Ok(self.capture.next_batch()?.is_some())) {
                Ok(Ok(true)) => {}
                Ok(end) => {
                    self.leave();
                    return end;
                }
                // The reader must not be used any more.
                Err(gone) => return Err(decode_panicked(&self.capture, next, next, gone)),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::trace::InputFormat;
    use std::fs;
    use std::io::{self, Cursor, Read};
    use std::path::Path;

    /// Panics where the bytes end.
    struct Trap(Cursor<Vec<u8>>);

    impl Read for Trap {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(out)?;
            assert!(read > 0, "the trap");
            Ok(read)
        }
    }

    #[test]
    fn a_reader_that_panics_ends_its_input_with_an_error() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/generated.pcap"));
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(bytes.len() - 1);
        let source = Box::new(Trap(Cursor::new(bytes)));
        let capture = Capture::from_reader(path, source, InputFormat::Auto).unwrap();
        let mut input = RecordInput::new(capture);
        let mut packets = 0;
        let error = loop {
            match input.refill() {
                Ok(more) => assert!(more, "the panic is reported"),
                Err(error) => break error.to_string(),
            }
            let ready = input.times_ns().len();
            input.pass(ready);
            packets += ready;
        };
        // The last of 8000 packets is cut, and what was read with it may be lost.
        assert!((1..8000).contains(&packets), "{packets}");
        let place = format!("packet {} could not be decoded (the trap)", packets + 1);
        assert!(error.contains(&place), "{error}");
    }
}
