//! One input: its packets become batches, in threads of its own or in the caller's.

use super::merge::{Batch, Maker};
use super::segments::SegmentFeed;
use crate::guard::{WorkerGone, guarded};
use crate::trace::{Capture, Compression, TraceBatch, TraceError, TraceErrorKind};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;

/// Batches under way from one input.
const QUEUED_BATCHES: usize = 8;

/// Packets handed over at once. What a reader yields at a time may be far fewer, where packets are
/// long, and every handing over may have to wake the other thread: on whole frames 4096 instead of one
/// buffer's 600 took the run from 1.56 to 1.20 times the limit of `docs/performance.md`.
const PACKETS_AT_ONCE: usize = 4096;

/// Bytes of a pcap file that are read as one, apart from what stands before: some thousand packets' headers,
/// and few enough that their batch stays in the second-level cache.
const SEGMENT_BYTES: u64 = 1 << 20;

/// An open input and the batch that is being taken from it.
pub(super) struct Feed<M: Maker> {
    source: Source<M>,
    /// The present batch.
    pub(super) batch: M::Batch,
    /// How far it has been taken.
    pub(super) cursor: <M::Batch as Batch>::Cursor,
    /// Packets taken.
    pub(super) packets: u64,
    bytes: Arc<AtomicU64>,
    /// Which input it is.
    pub(super) input: usize,
    /// What the input is in.
    pub(super) container: String,
}

enum Source<M: Maker> {
    Here {
        capture: Box<Capture>,
        maker: Arc<M>,
    },
    Thread {
        full: Receiver<Message<M::Batch>>,
        empty: Sender<M::Batch>,
    },
    Segments(Box<SegmentFeed<M>>),
}

enum Message<B> {
    Batch(B),
    Failed(TraceError),
}

impl<M: Maker> Feed<M> {
    /// A feed that decodes in so many threads of its own, if the input can be divided among them, or in one;
    /// with none, whenever it is asked.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        input: usize,
        capture: Capture,
        maker: &Arc<M>,
        threads: usize,
    ) -> Self
    where
        M: 'scope,
    {
        Self::start_with(scope, input, capture, maker, threads, SEGMENT_BYTES)
    }

    pub(super) fn start_with<'scope>(
        scope: &'scope Scope<'scope, '_>,
        input: usize,
        capture: Capture,
        maker: &Arc<M>,
        threads: usize,
        segment_bytes: u64,
    ) -> Self
    where
        M: 'scope,
    {
        let bytes = capture.bytes_read();
        let container = describe(&capture);
        let segments = (threads > 0)
            .then(|| capture.segments(segment_bytes))
            .flatten();
        let maker = Arc::clone(maker);
        let mut capture = Box::new(capture);
        if threads > 0 {
            capture.decompress_ahead();
        }
        let source = if let Some(segments) = segments {
            Source::Segments(Box::new(SegmentFeed::start(
                scope, segments, &maker, threads,
            )))
        } else if threads > 0 {
            let (send, full) = bounded(QUEUED_BATCHES);
            // Room for every batch that there is, so that giving one back never waits.
            let (empty, emptied) = bounded(QUEUED_BATCHES + 2);
            scope.spawn(move || decode(capture, &*maker, &send, &emptied));
            Source::Thread { full, empty }
        } else {
            Source::Here { capture, maker }
        };
        Self {
            source,
            batch: M::Batch::default(),
            cursor: Default::default(),
            packets: 0,
            bytes,
            input,
            container,
        }
    }

    /// Bytes of the input read so far, as they are on disk.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the present batch is used up.
    pub(super) fn is_drained(&self) -> bool {
        M::Batch::taken(&self.cursor) == self.batch.times_ns().len()
    }

    /// Time of the next packet; the present batch must not be used up.
    pub(super) fn next_ns(&self) -> i64 {
        self.batch.times_ns()[M::Batch::taken(&self.cursor)]
    }

    /// Replaces the present batch by the next one that is not empty; false at the end.
    ///
    /// # Errors
    ///
    /// The input is damaged or cannot be read further. It is at its end then.
    pub(super) fn refill(&mut self) -> Result<bool, TraceError> {
        self.cursor = Default::default();
        if let Source::Segments(segments) = &mut self.source {
            if segments.refill(&mut self.batch) {
                return Ok(true);
            }
            // What is left is little, or damaged, or still being written.
            let capture = Box::new(segments.rest(self.packets));
            let maker = segments.maker();
            self.source = Source::Here { capture, maker };
        }
        match &mut self.source {
            Source::Segments(_) => Ok(false),
            Source::Here { capture, maker } => {
                self.batch.clear();
                while self.batch.times_ns().is_empty() {
                    if !read_on(capture, &**maker, &mut self.batch, self.packets)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Source::Thread { full, empty } => {
                let mut used = std::mem::take(&mut self.batch);
                used.clear();
                // The decode thread may be gone: then nobody needs the batch.
                let _ = empty.try_send(used);
                match full.recv() {
                    Ok(Message::Batch(batch)) => {
                        self.batch = batch;
                        Ok(true)
                    }
                    Ok(Message::Failed(error)) => Err(error),
                    Err(_) => Ok(false),
                }
            }
        }
    }
}

fn decode<M: Maker>(
    mut capture: Box<Capture>,
    maker: &M,
    send: &Sender<Message<M::Batch>>,
    emptied: &Receiver<M::Batch>,
) {
    let mut out = M::Batch::default();
    let mut sent = 0;
    // The sequencer hangs up when the run is given up: then there is nothing more to do.
    loop {
        let end = match read_on(&mut capture, maker, &mut out, sent) {
            Ok(true) => {
                if out.times_ns().len() < PACKETS_AT_ONCE {
                    continue;
                }
                None
            }
            Ok(false) => Some(None),
            Err(error) => Some(Some(error)),
        };
        if !out.times_ns().is_empty() {
            sent += out.times_ns().len() as u64;
            let fresh = emptied.try_recv().unwrap_or_default();
            let full = std::mem::replace(&mut out, fresh);
            if send.send(Message::Batch(full)).is_err() {
                return;
            }
        }
        let Some(end) = end else { continue };
        let Some(error) = end else { return };
        if send.send(Message::Failed(error)).is_err() {
            return;
        }
    }
}

/// What came of reading a batch.
enum Made {
    Batch,
    End,
    /// The maker panicked at the packet with this number in the batch.
    Broken(u64, WorkerGone),
}

/// Reads a batch and appends what is made of it to `out`, before which there were `before` packets;
/// false at the end.
pub(super) fn read_on<M: Maker>(
    capture: &mut Capture,
    maker: &M,
    out: &mut M::Batch,
    before: u64,
) -> Result<bool, TraceError> {
    let already = out.times_ns().len() as u64;
    let made = guarded(|| {
        let Some(batch) = capture.next_batch()? else {
            return Ok(Made::End);
        };
        Ok(match guarded(|| maker.make(batch, out)) {
            Ok(()) => Made::Batch,
            Err(gone) => {
                let (place, gone) = culprit(maker, batch).unwrap_or((0, gone));
                Made::Broken(place, gone)
            }
        })
    });
    let (place, WorkerGone(reason)) = match made {
        Ok(Err(error)) => return Err(error),
        Ok(Ok(Made::End)) => return Ok(false),
        Ok(Ok(Made::Batch)) => return Ok(true),
        Ok(Ok(Made::Broken(place, gone))) => (place, gone),
        // The reader itself.
        Err(gone) => (0, gone),
    };
    // It may be half made.
    out.clear();
    Err(TraceError {
        path: capture.path().to_path_buf(),
        offset: None,
        kind: TraceErrorKind::Undecodable {
            packet: before + already + place + 1,
            lost_from: before + 1,
            reason,
        },
    })
}

/// The first packet of a batch that the maker panics at, by its number in the batch.
fn culprit<M: Maker>(maker: &M, batch: TraceBatch<'_>) -> Option<(u64, WorkerGone)> {
    let TraceBatch::Packets { bytes, packets } = batch else {
        return None;
    };
    packets.chunks(1).enumerate().find_map(|(number, packets)| {
        let alone = TraceBatch::Packets { bytes, packets };
        let gone = guarded(|| maker.make(alone, &mut M::Batch::default())).err()?;
        Some((number as u64, gone))
    })
}

fn describe(capture: &Capture) -> String {
    match capture.compression() {
        Compression::None => capture.container().to_owned(),
        compression => format!("{} in {}", capture.container(), compression.name()),
    }
}

/// An input that is not open yet.
pub(super) struct Upcoming {
    pub(super) path: PathBuf,
    pub(super) input: usize,
    /// Time of its first packet.
    pub(super) first_ns: i64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::trace::InputFormat;
    use std::path::Path;
    use std::thread;

    /// Panics at the packet of this time.
    struct Trap(i64);

    #[derive(Default)]
    struct Times(Vec<i64>);

    impl Batch for Times {
        type Cursor = usize;

        fn times_ns(&self) -> &[i64] {
            &self.0
        }

        fn clear(&mut self) {
            self.0.clear();
        }

        fn taken(cursor: &usize) -> usize {
            *cursor
        }
    }

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
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/generated.pcap");
        let open = || Capture::open(Path::new(path), InputFormat::Auto).unwrap();
        let mut capture = open();
        let mut times = Times::default();
        while read_on(&mut capture, &Trap(-1), &mut times, 0).unwrap() {}
        assert_eq!(times.0.len(), 8000);
        for (threads, segment_bytes) in [(0, 1 << 20), (1, 1 << 20), (1, 4096), (3, 4096)] {
            let number = 6000;
            let trap = Arc::new(Trap(times.0[number]));
            let first = times
                .0
                .iter()
                .position(|&time| time == times.0[number])
                .unwrap();
            thread::scope(|scope| {
                let mut feed = Feed::start_with(scope, 0, open(), &trap, threads, segment_bytes);
                let mut read = 0;
                let error = loop {
                    match feed.refill() {
                        Ok(more) => assert!(more, "the panic was not told"),
                        Err(error) => break error,
                    }
                    read += feed.batch.0.len();
                    feed.packets = read as u64;
                };
                let TraceErrorKind::Undecodable {
                    packet,
                    lost_from,
                    ref reason,
                } = error.kind
                else {
                    panic!("{error}");
                };
                assert_eq!(packet, first as u64 + 1);
                assert_eq!(
                    lost_from,
                    read as u64 + 1,
                    "all packets before were handed on"
                );
                assert!(reason.contains("the trap"), "{reason}");
                assert!(
                    error.to_string().contains("generated.pcap: packet 600"),
                    "{error}"
                );
            });
        }
    }
}
