//! One input: its packets become batches, in threads of its own or in the caller's.

use super::batch::{Batch, Maker, read_on};
use super::merge::{Input, count_until};
use super::segments::SegmentFeed;
use crate::threads::{Batches, Crossbeam, Filler, handover, spawn_scoped};
use crate::trace::{self, Capture, InputFormat, StopFlag, TraceError};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

/// Inputs that overlap in time and are decoded by a thread each; further ones are decoded by the
/// caller's thread.
const MAX_DECODE_THREADS: usize = 64;

/// Batches under way from one input.
const QUEUED_BATCHES: usize = 8;

/// Packets handed over at once. What a reader yields at a time may be far fewer, where packets are
/// long, and every handing over may have to wake the other thread: on whole frames 4096 instead of
/// one buffer's 600 took the run from 1.56 to 1.20 times the limit of `docs/performance.md`.
const PACKETS_AT_ONCE: usize = 4096;

/// Bytes of a pcap file that are read as one, apart from what stands before: some thousand packets'
/// headers, and few enough that their batch stays in the second-level cache.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Memory of a thread that decodes one input: its reader, and the batches under way.
const THREAD_BYTES: u64 = 8 << 20;

/// Packets of a batch that are fetched at once: few enough that those of many inputs stay in the
/// second-level cache.
const FETCHED_AT_ONCE: usize = 256;

/// Whether an input is a file that threads read at several places at once. Those threads assist
/// whoever takes their batches.
pub(crate) fn is_read_in_segments(source: &trace::Source, format: InputFormat) -> bool {
    let capture = source.open(format, &StopFlag::default());
    capture.is_ok_and(|capture| !capture.is_short() && capture.segments(SEGMENT_BYTES).is_some())
}

/// An open input and the batch that is being taken from it.
pub(crate) struct Feed<M: Maker> {
    source: Source<M>,
    /// The present batch.
    pub(crate) batch: M::Batch,
    /// How far it has been taken.
    pub(crate) cursor: <M::Batch as Batch>::Cursor,
    /// Packets in the batches before, and in the present one, which may have been taken away.
    packets: u64,
    at_hand: u64,
    /// Packets of the batch that were fetched.
    fetched: usize,
}

enum Source<M: Maker> {
    Here { capture: Box<Capture>, maker: Arc<M> },
    Thread(Batches<M::Batch, TraceError>),
    Segments(Box<SegmentFeed<M>>),
}

impl<M: Maker> Feed<M> {
    /// A feed that decodes in this many threads of its own, if the input can be divided among them,
    /// or in one; with none, and if it is short, whenever it is asked. `open` others have threads
    /// already.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut capture: Capture,
        maker: &Arc<M>,
        threads: usize,
        open: usize,
    ) -> Self
    where
        M: 'scope,
    {
        let threads = if capture.is_short() {
            0
        } else {
            threads.min(MAX_DECODE_THREADS.saturating_sub(open))
        };
        if threads > 0 {
            // Threads that decode, and one of those that wait for them. The inputs that are open
            // share them.
            capture.decompress_in((threads + 1) / (open + 1));
        }
        Self::start_with(scope, capture, maker, threads, SEGMENT_BYTES)
    }

    pub(super) fn start_with<'scope>(
        scope: &'scope Scope<'scope, '_>,
        capture: Capture,
        maker: &Arc<M>,
        threads: usize,
        segment_bytes: u64,
    ) -> Self
    where
        M: 'scope,
    {
        let maker = Arc::clone(maker);
        let capture = Box::new(capture);
        Self::of(if threads == 0 {
            Source::Here { capture, maker }
        } else if let Some(segments) = capture.segments(segment_bytes) {
            let feed = SegmentFeed::start(scope, segments, &maker, threads);
            Source::Segments(Box::new(feed))
        } else {
            Source::ahead(scope, capture, maker, PACKETS_AT_ONCE)
        })
    }

    /// A feed with a thread of its own that hands packets on as soon as they come.
    pub(crate) fn start_prompt<'scope>(
        scope: &'scope Scope<'scope, '_>,
        capture: Capture,
        maker: &Arc<M>,
    ) -> Self
    where
        M: 'scope,
    {
        let (capture, maker) = (Box::new(capture), Arc::clone(maker));
        Self::of(Source::ahead(scope, capture, maker, 1))
    }

    fn of(source: Source<M>) -> Self {
        Self {
            source,
            batch: M::Batch::default(),
            cursor: Default::default(),
            packets: 0,
            at_hand: 0,
            fetched: 0,
        }
    }

    /// Replaces the batch by the next one; false at the end.
    fn next_batch(&mut self) -> Result<bool, TraceError> {
        if let Source::Segments(segments) = &mut self.source {
            if segments.refill(&mut self.batch) {
                return Ok(true);
            }
            // What is left is little, or damaged, or still being written.
            let capture = Box::new(segments.rest(self.packets));
            let maker = segments.maker();
            self.source = Source::Here { capture, maker };
        }
        self.batch.clear();
        match &mut self.source {
            Source::Segments(_) => Ok(false),
            Source::Here { capture, maker } => {
                while self.batch.times_ns().is_empty() {
                    if !read_on(capture, &**maker, &mut self.batch, self.packets)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Source::Thread(batches) => match batches.next(std::mem::take(&mut self.batch)) {
                None => Ok(false),
                Some(next) => {
                    self.batch = next?;
                    Ok(true)
                }
            },
        }
    }

    fn fetch(&mut self) {
        self.fetched = M::Batch::taken(&self.cursor) + FETCHED_AT_ONCE;
        self.batch.fetch(&self.cursor, FETCHED_AT_ONCE);
    }
}

impl<M: Maker> Input for Feed<M> {
    #[inline]
    fn time_ns(&self, behind: usize) -> Option<i64> {
        let number = M::Batch::taken(&self.cursor) + behind;
        self.batch.times_ns().get(number).copied()
    }

    fn ready(&self, until_ns: Option<i64>) -> usize {
        let times_ns = &self.batch.times_ns()[M::Batch::taken(&self.cursor)..];
        count_until(times_ns.iter().copied(), until_ns)
    }

    /// Whoever takes packets moves the cursor.
    #[inline]
    fn pass(&mut self, _packets: usize) {
        if M::Batch::taken(&self.cursor) >= self.fetched {
            self.fetch();
        }
    }

    fn refill(&mut self) -> Result<bool, TraceError> {
        // The batch was taken.
        self.packets += std::mem::take(&mut self.at_hand);
        self.cursor = Default::default();
        self.fetched = 0;
        let more = self.next_batch()?;
        self.at_hand = self.batch.times_ns().len() as u64;
        Ok(more)
    }

    fn wait(&mut self, at_most: Duration) -> bool {
        if M::Batch::taken(&self.cursor) < self.batch.times_ns().len() {
            return true;
        }
        match &mut self.source {
            Source::Thread(batches) => batches.wait(at_most),
            Source::Here { .. } | Source::Segments(_) => true,
        }
    }
}

impl<M: Maker> Source<M> {
    /// Starts a thread that reads an input to its end, and hands on this many packets at once; if
    /// there is none, the caller reads.
    fn ahead<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut capture: Box<Capture>,
        maker: Arc<M>,
        at_once: usize,
    ) -> Self
    where
        M: 'scope,
    {
        let read = move |(capture, maker, filler): (_, Arc<M>, _)| {
            decode(capture, &*maker, filler, at_once);
        };
        let Some(thread) = spawn_scoped(scope, "decode", THREAD_BYTES, read) else {
            return Self::Here { capture, maker };
        };
        capture.decompress_ahead();
        let (filler, batches) = handover::<_, _, Crossbeam>(QUEUED_BATCHES);
        thread.begin((capture, maker, filler));
        Self::Thread(batches)
    }
}

/// Reads an input to its end, in a thread of its own.
fn decode<M: Maker>(
    mut capture: Box<Capture>,
    maker: &M,
    filler: Filler<M::Batch, TraceError>,
    at_once: usize,
) {
    let mut out = M::Batch::default();
    let mut sent = 0;
    loop {
        let more = read_on(&mut capture, maker, &mut out, sent);
        let made = out.times_ns().len();
        if matches!(more, Ok(true)) && made < at_once {
            continue;
        }
        sent += made as u64;
        // If nobody takes batches any more, the run was given up.
        if made > 0 && !filler.hand_on(&mut out) {
            return;
        }
        match more {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return filler.fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::batch::Times;
    use super::*;
    use crate::trace::{InputFormat, TraceBatch, TraceErrorKind};
    use std::path::Path;
    use std::thread;

    /// Panics at the packet of this time.
    struct Trap(i64);

    impl Maker for Trap {
        type Batch = Times;

        fn make(&self, batch: TraceBatch<'_>, out: &mut Times) {
            let TraceBatch::Packets { packets, .. } = batch else {
                return;
            };
            for packet in packets {
                assert_ne!(packet.time_ns, self.0, "the trap");
                out.0.push(packet.time_ns);
            }
        }
    }

    #[test]
    fn a_decoder_that_panics_is_an_error_that_names_the_packet_and_no_hang() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/generated.pcap");
        let open = || Capture::open(Path::new(path), InputFormat::Auto).unwrap();
        let mut capture = open();
        let mut times = Times::default();
        while read_on(&mut capture, &Trap(-1), &mut times, 0).unwrap() {}
        assert_eq!(times.0.len(), 8000);
        for (threads, segment_bytes) in [(0, 1 << 20), (1, 1 << 20), (1, 4096), (3, 4096)] {
            let number = 6000;
            let trap = Arc::new(Trap(times.0[number]));
            let first = times.0.iter().position(|&time| time == times.0[number]).unwrap();
            thread::scope(|scope| {
                let mut feed = Feed::start_with(scope, open(), &trap, threads, segment_bytes);
                let mut read = 0;
                let error = loop {
                    match feed.refill() {
                        Ok(more) => assert!(more, "the panic was not reported"),
                        Err(error) => break error,
                    }
                    read += feed.batch.0.len();
                    feed.cursor = feed.batch.0.len();
                };
                let TraceErrorKind::Undecodable { packet, lost_from, ref reason } = error.kind
                else {
                    panic!("{error}");
                };
                assert_eq!(packet, first as u64 + 1);
                assert_eq!(lost_from, read as u64 + 1, "all packets before were handed on");
                assert!(reason.contains("the trap"), "{reason}");
                assert!(error.to_string().contains("generated.pcap: packet 600"), "{error}");
            });
        }
    }
}
