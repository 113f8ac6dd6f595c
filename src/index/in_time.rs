//! Chosen packets of several captures, merged by time: each capture is opened when its first packet is
//! due and closed behind its last one.

use super::IndexError;
use super::extract::{Extracted, Source};
use super::gather::is_log;
use crate::anonymize::PacketAnonymizer;
use crate::trace::write::{CaptureWriter, WriteError, WriteFormat};
use crate::trace::{Capture, InputFormat, PacketRef, StopFlag, TraceBatch, TraceError};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;

/// Decides of a packet and the bytes that it points into.
pub(super) type Choose<'a> = &'a dyn Fn(&PacketRef, &[u8]) -> bool;

/// The captures, of which the earliest chosen packet is always taken next.
pub(super) struct Merge<'a> {
    upcoming: VecDeque<(usize, &'a Source)>,
    open: Vec<Open>,
    choose: Choose<'a>,
    /// Replaces the addresses in what is written.
    anonymizer: Option<&'a mut PacketAnonymizer>,
    stop: &'a StopFlag,
}

/// A capture that is being read; it stands at a chosen packet.
struct Open {
    input: usize,
    capture: Capture,
    at: usize,
}

impl Open {
    fn next_ns(&self) -> i64 {
        self.capture.record_batch().packets[self.at].time_ns
    }

    /// Goes on to the next chosen packet of the present batch.
    fn skip(&mut self, choose: Choose<'_>) -> bool {
        let batch = self.capture.record_batch();
        while self.at < batch.packets.len() {
            if choose(&batch.packets[self.at], batch.bytes) {
                return true;
            }
            self.at += 1;
        }
        false
    }

    /// Goes on to the next chosen packet; false at the end.
    fn advance(&mut self, choose: Choose<'_>) -> Result<bool, TraceError> {
        while !self.skip(choose) {
            self.at = 0;
            match self.capture.next_batch()? {
                None => return Ok(false),
                // A log's entries are no packets, and the record batch is empty.
                Some(TraceBatch::DnsLog(_)) => self.at = usize::MAX,
                Some(TraceBatch::Packets { .. }) => {}
            }
        }
        Ok(true)
    }
}

impl<'a> Merge<'a> {
    /// Of captures in the order of their first times.
    pub(super) fn new(
        sources: &'a [Source],
        choose: Choose<'a>,
        anonymizer: Option<&'a mut PacketAnonymizer>,
        stop: &'a StopFlag,
    ) -> Self {
        Self {
            upcoming: sources.iter().enumerate().collect(),
            open: Vec::new(),
            choose,
            anonymizer,
            stop,
        }
    }

    /// Writes all chosen packets.
    pub(super) fn write<W: Write + Send + 'static>(
        mut self,
        (out, format): (W, WriteFormat),
        extracted: &mut Extracted,
        problems: &mut Vec<String>,
    ) -> Result<W, IndexError> {
        let single = self.upcoming.len() == 1;
        let mut writer =
            CaptureWriter::new(out, format, single).map_err(|error| failed(error.into()))?;
        loop {
            self.open_due(extracted, problems);
            let earliest = (0..self.open.len())
                .min_by_key(|&index| (self.open[index].next_ns(), self.open[index].input));
            let Some(index) = earliest else { break };
            let open = &mut self.open[index];
            let batch = open.capture.record_batch();
            let (at, next) = (open.at, open.at + 1);
            let batch = match &mut self.anonymizer {
                Some(anonymizer) => anonymizer.batch(open.input, &batch, at..next),
                None => batch,
            };
            writer.write(open.input, &batch, at, next).map_err(failed)?;
            open.at = next;
            match open.advance(self.choose) {
                Ok(true) => {}
                end => {
                    self.open.swap_remove(index);
                    self.note(end, problems);
                }
            }
        }
        let (out, written) = writer.finish().map_err(failed)?;
        extracted.packets += written.packets;
        Ok(out)
    }

    /// Opens every capture that may have a packet as early as the earliest one at hand, and at least one
    /// while there are any.
    fn open_due(&mut self, extracted: &mut Extracted, problems: &mut Vec<String>) {
        while let Some(&(input, source)) = self.upcoming.front() {
            let now = self.open.iter().map(Open::next_ns).min();
            if self.stop.is_set() || now.is_some_and(|now| source.first_ns > now) {
                return;
            }
            self.upcoming.pop_front();
            let capture = match Capture::open_until(&source.path, InputFormat::Auto, self.stop) {
                Ok(capture) => capture,
                end => {
                    self.note(end.map(|_| false), problems);
                    continue;
                }
            };
            if is_log(&capture) {
                extracted.logs += 1;
                continue;
            }
            let mut open = Open {
                input,
                capture,
                at: 0,
            };
            open.capture.keep_records();
            match open.advance(self.choose) {
                Ok(true) => self.open.push(open),
                end => self.note(end, problems),
            }
        }
    }

    /// What a capture ended with; when a signal came that is not of the capture.
    fn note(&self, end: Result<bool, TraceError>, problems: &mut Vec<String>) {
        if let Err(error) = end
            && !self.stop.is_set()
        {
            problems.push(error.to_string());
        }
    }
}

fn failed(error: WriteError) -> IndexError {
    let error = match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    };
    IndexError::io(Path::new("the capture"))(error)
}
