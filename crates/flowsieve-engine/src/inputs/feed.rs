//! One input: its packets become batches, in its own threads or in the caller's.

use super::batch::{Batch, BatchBuilder, read_batch};
use super::merge::Input;
use super::segments::SegmentFeed;
use crate::threads::{Crossbeam, PipeReceiver, PipeSender, pipe, spawn_scoped};
use crate::trace::{self, Capture, InputFormat, StopFlag, TraceError};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

/// Most inputs that overlap in time and have a thread each; the caller's thread decodes the others.
const MAX_DECODE_THREADS: usize = 64;

/// Batches under way from one input.
const QUEUED_BATCHES: usize = 8;

/// Least packets sent at once. A reader may yield far fewer at a time where packets are long, and
/// every send may have to wake the other thread: on whole frames 4096 instead of one buffer's 600
/// took the run from 1.56 to 1.20 times the limit of `docs/performance.md`.
const PACKETS_AT_ONCE: usize = 4096;

/// Bytes of a segment of a pcap file: some thousand packets' headers, and few enough that their
/// batch stays in the second-level cache.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Memory of a thread that decodes one input: its reader, and the batches under way.
const THREAD_BYTES: u64 = 8 << 20;

/// Returns whether an input is a file that threads read at several places at once. Those threads
/// assist the consumer of their batches.
pub(crate) fn is_read_in_segments(source: &trace::Source, format: InputFormat) -> bool {
    let capture = source.open(format, &StopFlag::default());
    capture.is_ok_and(|capture| !capture.is_short() && capture.segments(SEGMENT_BYTES).is_some())
}

/// An open input and its present batch.
pub(crate) struct Feed<M: BatchBuilder> {
    source: Source<M>,
    /// The present batch.
    pub(crate) batch: M::Batch,
    /// How far it has been consumed.
    pub(crate) cursor: <M::Batch as Batch>::Cursor,
    /// Packets in the batches before, and in the present one, which the consumer may have taken.
    packets: u64,
    at_hand: u64,
}

enum Source<M: BatchBuilder> {
    Here { capture: Box<Capture>, builder: Arc<M> },
    Thread(PipeReceiver<M::Batch, TraceError>),
    Segments(Box<SegmentFeed<M>>),
}

impl<M: BatchBuilder> Feed<M> {
    /// Starts a feed that decodes in this many threads, if the input can be divided among them, or
    /// in one; with none, and if it is short, in the caller's. `open` others have threads already.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut capture: Capture,
        builder: &Arc<M>,
        threads: usize,
        open: usize,
    ) -> Self {
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
        Self::start_with(scope, capture, builder, threads, SEGMENT_BYTES)
    }

    pub(super) fn start_with<'scope>(
        scope: &'scope Scope<'scope, '_>,
        capture: Capture,
        builder: &Arc<M>,
        threads: usize,
        segment_bytes: u64,
    ) -> Self {
        let builder = Arc::clone(builder);
        let capture = Box::new(capture);
        if threads == 0 {
            return Self::new(Source::Here { capture, builder });
        }
        Self::new(match capture.segments(segment_bytes) {
            Some(segments) => match SegmentFeed::start(scope, segments, &builder, threads) {
                Some(feed) => Source::Segments(Box::new(feed)),
                None => Source::Here { capture, builder },
            },
            None => Source::ahead(scope, capture, builder, PACKETS_AT_ONCE),
        })
    }

    /// Starts a feed with a thread that sends packets as soon as they come.
    pub(crate) fn start_prompt<'scope>(
        scope: &'scope Scope<'scope, '_>,
        capture: Capture,
        builder: &Arc<M>,
    ) -> Self {
        let (capture, builder) = (Box::new(capture), Arc::clone(builder));
        Self::new(Source::ahead(scope, capture, builder, 1))
    }

    fn new(source: Source<M>) -> Self {
        Self {
            source,
            batch: M::Batch::default(),
            cursor: Default::default(),
            packets: 0,
            at_hand: 0,
        }
    }

    /// Replaces the batch by the next one; returns false at the end.
    fn next_batch(&mut self) -> Result<bool, TraceError> {
        if let Source::Segments(segments) = &mut self.source {
            if segments.refill(&mut self.batch) {
                return Ok(true);
            }
            // The rest is short, or damaged, or still being written.
            let capture = Box::new(segments.rest(self.packets));
            let builder = segments.builder();
            self.source = Source::Here { capture, builder };
        }
        self.batch.clear();
        match &mut self.source {
            Source::Segments(_) => Ok(false),
            Source::Here { capture, builder } => {
                while self.batch.times_ns().is_empty() {
                    if !read_batch(capture, &**builder, &mut self.batch, self.packets)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Source::Thread(batches) => match batches.receive(std::mem::take(&mut self.batch)) {
                None => Ok(false),
                Some(next) => {
                    self.batch = next?;
                    Ok(true)
                }
            },
        }
    }
}

impl<M: BatchBuilder> Input for Feed<M> {
    #[inline]
    fn times_ns(&self) -> impl ExactSizeIterator<Item = i64> {
        self.batch.times_ns()[M::Batch::taken(&self.cursor)..].iter().copied()
    }

    fn prefetch(&self, packets: usize) {
        self.batch.prefetch(&self.cursor, packets);
    }

    fn refill(&mut self) -> Result<bool, TraceError> {
        // The batch was consumed.
        self.packets += std::mem::take(&mut self.at_hand);
        self.cursor = Default::default();
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

impl<M: BatchBuilder> Source<M> {
    /// Starts a thread that reads an input to its end and sends at least this many packets at once;
    /// the caller reads if the system refuses the thread.
    fn ahead<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut capture: Box<Capture>,
        builder: Arc<M>,
        at_once: usize,
    ) -> Self {
        let read = move |(capture, builder, sender): (_, Arc<M>, _)| {
            decode(capture, &*builder, sender, at_once);
        };
        let Some(thread) = spawn_scoped(scope, "decode", THREAD_BYTES, read) else {
            return Self::Here { capture, builder };
        };
        capture.decompress_ahead();
        let (sender, batches) = pipe::<_, _, Crossbeam>(QUEUED_BATCHES);
        thread.begin((capture, builder, sender));
        Self::Thread(batches)
    }
}

/// Reads an input to its end, in its thread.
fn decode<M: BatchBuilder>(
    mut capture: Box<Capture>,
    builder: &M,
    sender: PipeSender<M::Batch, TraceError>,
    at_once: usize,
) {
    let mut out = M::Batch::default();
    let mut sent = 0;
    loop {
        let more = read_batch(&mut capture, builder, &mut out, sent);
        let made = out.times_ns().len();
        if matches!(more, Ok(true)) && made < at_once {
            continue;
        }
        sent += made as u64;
        // Without a receiver the run was aborted.
        if made > 0 && !sender.send(&mut out) {
            return;
        }
        match more {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return sender.fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::batch::tests::Times;
    use super::*;
    use crate::trace::{TraceBatch, TraceErrorKind};
    use std::path::Path;
    use std::thread;

    /// Panics at the packet of this time.
    struct Trap(i64);

    impl BatchBuilder for Trap {
        type Batch = Times;

        fn append(&self, batch: TraceBatch<'_>, out: &mut Times) {
            let TraceBatch::Packets { packets, .. } = batch else { return };
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
        while read_batch(&mut capture, &Trap(-1), &mut times, 0).unwrap() {}
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
