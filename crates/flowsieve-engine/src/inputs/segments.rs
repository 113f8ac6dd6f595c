//! One large pcap file decoded at several places at once: by threads, and by the consumer's thread
//! whenever it would have to wait for them. A thread without a segment to read works off batches
//! that were consumed.
//!
//! Where a segment's first record begins is a guess until the segment before has been read to its
//! end. So segments are taken in order, each only if it was entered exactly where the one before
//! ended; otherwise the consumer reads it again from there. What cannot be read is left to an
//! ordinary reader, with everything behind it: errors are the same as without segments.

use super::batch::{Batch, BatchBuilder, OneOfMany, read_batch};
use crate::guard::catch_panic;
use crate::threads::{MapWorker, OrderedWorkers};
use crate::trace::{Capture, SegmentReader, Segments};
use std::sync::Arc;
use std::thread::Scope;

/// Batches for each thread, each for a segment: those under way, and one in each hand.
const BATCHES_A_THREAD: usize = 4;

/// Memory of a thread: its reader, and its batches.
const THREAD_BYTES: u64 = 10 << 20;

/// The segments of an input, as batches in the order of the file.
pub(super) struct SegmentFeed<M: BatchBuilder> {
    segments: Segments,
    /// Reads segments in the consumer's thread.
    worker: SegmentWorker<M>,
    workers: OrderedWorkers<Task<M::Batch>, ReadSegment<M::Batch>>,
    /// Number of the next segment to queue.
    unqueued: u64,
    /// Number of the next segment to take.
    next: u64,
    /// Offset at which the one before ended.
    end: u64,
}

/// Number of a segment, and an empty batch for it.
type Task<B> = (u64, B);

/// The batch of a segment.
struct ReadSegment<B> {
    number: u64,
    /// Offset of its first record; `None` if none was found.
    entered: Option<u64>,
    /// Offset behind its last record.
    end: u64,
    batch: B,
    /// Packets that were not wanted.
    left_out: u64,
    failed: bool,
}

/// Reads segments, in any order.
struct SegmentWorker<M> {
    reader: SegmentReader,
    builder: Arc<M>,
}

impl<M: BatchBuilder> MapWorker<Task<M::Batch>> for SegmentWorker<M> {
    type Result = ReadSegment<M::Batch>;

    fn map(&mut self, (number, batch): Task<M::Batch>) -> Self::Result {
        self.read(number, None, batch)
    }

    fn assist(&mut self) -> bool {
        self.builder.assist()
    }
}

impl<M: BatchBuilder> SegmentWorker<M> {
    /// Reads a segment from `exact`, or from where its first record seems to begin.
    fn read(
        &mut self,
        number: u64,
        exact: Option<u64>,
        mut batch: M::Batch,
    ) -> ReadSegment<M::Batch> {
        batch.clear();
        self.reader.take_left_out();
        let entered = catch_panic(|| self.reader.enter(number, exact));
        let mut failed = entered.is_err();
        let entered = entered.unwrap_or(None);
        let mut more = entered.is_some();
        let builder = OneOfMany(Arc::clone(&self.builder));
        while more {
            let another = read_batch(&mut self.reader.capture, &builder, &mut batch, 0);
            failed = another.is_err();
            more = another.unwrap_or(false);
        }
        let left_out = self.reader.take_left_out();
        ReadSegment { number, entered, end: self.reader.capture.offset(), batch, left_out, failed }
    }
}

impl<M: BatchBuilder> SegmentFeed<M> {
    /// Starts up to this many threads that read ahead; `None` if the system refuses all of them.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        segments: Segments,
        builder: &Arc<M>,
        threads: usize,
    ) -> Option<Self> {
        let worker = || SegmentWorker { reader: segments.reader(), builder: Arc::clone(builder) };
        // The number of batches, fewer than these, bounds what is under way.
        let limit = 2 * BATCHES_A_THREAD;
        let workers =
            OrderedWorkers::start_scoped(scope, "decode", threads, THREAD_BYTES, limit, worker)?;
        let batches = (workers.workers() + 1) * BATCHES_A_THREAD;
        let mut feed = Self {
            worker: worker(),
            workers,
            unqueued: segments.first(),
            next: segments.first(),
            end: segments.begin(),
            segments,
        };
        for _ in 0..batches {
            feed.queue(M::Batch::default());
        }
        Some(feed)
    }

    /// Has the next segment read into an empty batch, if there is one.
    fn queue(&mut self, batch: M::Batch) {
        if self.unqueued < self.segments.count {
            let earlier = self.workers.push((self.unqueued, batch));
            debug_assert!(earlier.is_none(), "there is room for every batch");
            self.unqueued += 1;
        }
        if self.unqueued == self.segments.count {
            self.workers.close();
        }
    }

    /// Replaces a used batch by the next one that is not empty; returns false if the rest of the
    /// file is for another reader.
    pub(super) fn refill(&mut self, used: &mut M::Batch) -> bool {
        while self.next < self.segments.count {
            let Some(mut read) = self.obtain() else { return false };
            if read.entered != Some(self.end) {
                read = self.worker.read(read.number, Some(self.end), read.batch);
            }
            if read.failed {
                return false;
            }
            self.next += 1;
            self.end = read.end;
            self.segments.leave_out(read.left_out);
            std::mem::swap(used, &mut read.batch);
            read.batch.clear();
            self.queue(read.batch);
            if !used.times_ns().is_empty() {
                return true;
            }
        }
        false
    }

    /// Opens what follows the segments taken, before which there were this many packets.
    pub(super) fn rest(&self, packets: u64) -> Capture {
        self.segments.rest(self.end, packets)
    }

    /// The builder of the batches.
    pub(super) fn builder(&self) -> Arc<M> {
        Arc::clone(&self.worker.builder)
    }

    /// Returns the next segment, whichever thread reads it; `None` if a thread panicked.
    fn obtain(&mut self) -> Option<ReadSegment<M::Batch>> {
        loop {
            if let Some(read) = self.workers.try_next() {
                return read.ok();
            }
            if let Some((place, task)) = self.workers.claim() {
                let read = self.worker.map(task);
                self.workers.complete(place, read);
            } else if !self.worker.assist() {
                return self.workers.next()?.ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::feed::Feed;
    use super::super::merge::Input;
    use super::*;
    use crate::trace::{InputFormat, TraceBatch};
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    /// Takes packets down as they are.
    struct Copy;

    #[derive(Default)]
    struct Copies {
        times_ns: Vec<i64>,
        frames: Vec<Vec<u8>>,
    }

    impl Batch for Copies {
        type Cursor = usize;

        fn times_ns(&self) -> &[i64] {
            &self.times_ns
        }

        fn clear(&mut self) {
            self.times_ns.clear();
            self.frames.clear();
        }

        fn taken(cursor: &usize) -> usize {
            *cursor
        }
    }

    impl BatchBuilder for Copy {
        type Batch = Copies;

        fn append(&self, batch: TraceBatch<'_>, out: &mut Copies) {
            let TraceBatch::Packets { bytes, packets } = batch else { return };
            for packet in packets {
                out.times_ns.push(packet.time_ns);
                let frame = &bytes[packet.start as usize..][..packet.captured as usize];
                out.frames.push(frame.to_vec());
            }
        }
    }

    type Outcome = (Vec<(i64, Vec<u8>)>, Option<String>);

    /// All packets of a file, and the error that ends it.
    fn read(path: &Path, threads: usize, segment_bytes: u64) -> Outcome {
        let capture = Capture::open(path, InputFormat::Auto).unwrap();
        if threads > 0 {
            assert!(capture.segments(segment_bytes).is_some(), "this tests nothing");
        }
        let builder = Arc::new(Copy);
        thread::scope(|scope| {
            let mut feed = Feed::start_with(scope, capture, &builder, threads, segment_bytes);
            let mut packets = Vec::new();
            let error = loop {
                match feed.refill() {
                    Ok(true) => {
                        let Copies { times_ns, frames } = &feed.batch;
                        packets.extend(times_ns.iter().copied().zip(frames.iter().cloned()));
                        feed.cursor = times_ns.len();
                    }
                    Ok(false) => break None,
                    Err(error) => break Some(error.to_string()),
                }
            };
            (packets, error)
        })
    }

    fn record(number: u32, frame: &[u8]) -> Vec<u8> {
        let length = frame.len() as u32;
        let header = [1_600_000_000 + number / 100, number % 1_000_000, length, length];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(frame);
        bytes
    }

    fn file_header() -> Vec<u8> {
        let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The content of a frame.
    #[derive(Clone, Debug)]
    enum Filling {
        Zeros,
        Bytes,
        /// Many records of a capture, as if one was captured while it was sent.
        Records,
    }

    fn frame(filling: &Filling, length: usize) -> Vec<u8> {
        match filling {
            Filling::Zeros => vec![0; length],
            Filling::Bytes => (0..length).map(|i| (i * 7 % 251) as u8).collect(),
            Filling::Records => {
                let small = record(5, &[3; 20]);
                small.iter().copied().cycle().skip(7).take(length).collect()
            }
        }
    }

    fn fillings() -> impl Strategy<Value = Vec<(Filling, usize)>> {
        let filling =
            prop_oneof![Just(Filling::Zeros), Just(Filling::Bytes), Just(Filling::Records)];
        let length = prop_oneof![6 => 1_usize..200, 3 => 200_usize..2000, 1 => 2000_usize..30_000];
        proptest::collection::vec((filling, length), 20..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn segments_give_what_reading_from_the_start_gives(
            frames in fillings(),
            segment_bytes in 600_u64..3000,
            threads in 1_usize..4,
            damage in 0_u8..4,
            place in 0.3_f64..1.0,
        ) {
            let mut bytes = file_header();
            for (number, (filling, length)) in frames.iter().enumerate() {
                bytes.extend(record(number as u32, &frame(filling, *length)));
            }
            bytes.resize(bytes.len().max(8000), 0);
            let place = (place * bytes.len() as f64) as usize;
            match damage {
                0 => bytes.truncate(place.max(6500)),
                // Records that claim too much, if this hits a header.
                1 => bytes[place] = 0xff,
                2 => bytes[place..].fill(0xff),
                _ => {}
            }
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let expected = read(file.path(), 0, 1);
            let found = read(file.path(), threads, segment_bytes);
            prop_assert_eq!(found.0.len(), expected.0.len());
            prop_assert!(found == expected, "{:?} {:?}", found.1, expected.1);
        }
    }

    /// Has work besides.
    struct Busy(AtomicU64);

    impl BatchBuilder for Busy {
        type Batch = Copies;

        fn append(&self, batch: TraceBatch<'_>, out: &mut Copies) {
            Copy.append(batch, out);
        }

        fn assist(&self) -> bool {
            let take = |left: u64| left.checked_sub(1);
            let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            taken.is_ok()
        }
    }

    #[test]
    fn threads_assist_until_nothing_is_left() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/generated.pcap");
        for threads in [1, 3] {
            let builder = Arc::new(Busy(AtomicU64::new(10_000)));
            thread::scope(|scope| {
                let capture = Capture::open(Path::new(path), InputFormat::Auto).unwrap();
                let mut feed = Feed::start_with(scope, capture, &builder, threads, 4096);
                let mut packets = 0;
                while feed.refill().unwrap() {
                    packets += feed.batch.times_ns.len();
                    feed.cursor = feed.batch.times_ns.len();
                }
                assert_eq!(packets, 8000);
            });
            assert_eq!(builder.0.load(Ordering::Relaxed), 0);
        }
    }
}
