//! One large pcap file decoded at several places at once: by threads of its own, and by the taker's
//! thread whenever it would have to wait for them. Threads that have no batch to fill do what is to
//! be done with batches that were taken.
//!
//! Where a segment's first record begins is a guess until the segment before has been read to its
//! end. So segments are taken in order, each only if it was entered exactly where the one before
//! ended; if it was not, the taker reads it again from there. What cannot be read is left to an
//! ordinary reader, with everything behind it: errors are the same as without segments.

use super::batch::{Batch, Maker, OneOfMany, read_on};
use crate::guard::guarded;
use crate::threads::spawn_up_to;
use crate::trace::{Capture, SegmentReader, Segments};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;

/// Batches, each for a segment: those under way to the taker, and one in each hand.
const BATCHES_A_THREAD: usize = 4;

/// Memory of a thread: its reader, and its batches.
const THREAD_BYTES: u64 = 10 << 20;

/// The segments of an input, as batches in the order of the file.
pub(super) struct SegmentFeed<M: Maker> {
    segments: Segments,
    maker: Arc<M>,
    /// The taker's own.
    reader: SegmentReader,
    /// Number of the next segment to take.
    next: u64,
    /// Where the one before ended.
    place: u64,
    /// Number of the next segment that nobody reads yet.
    unclaimed: Arc<AtomicU64>,
    /// Segments that were ready before their turn.
    ready: BTreeMap<u64, Made<M::Batch>>,
    full: Receiver<Made<M::Batch>>,
    empty: Sender<M::Batch>,
    emptied: Receiver<M::Batch>,
}

/// A thread that reads segments ahead.
struct SegmentThread<M: Maker> {
    reader: SegmentReader,
    maker: Arc<M>,
    full: Sender<Made<M::Batch>>,
    emptied: Receiver<M::Batch>,
    unclaimed: Arc<AtomicU64>,
    /// How many segments there are.
    count: u64,
}

impl<M: Maker> SegmentThread<M> {
    /// Reads segments until there are no more, then assists.
    fn read(mut self) {
        while let Some(batch) = next_emptied(&self.emptied, &*self.maker) {
            let number = self.unclaimed.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let made = make(&mut self.reader, &*self.maker, number, None, batch);
            if self.full.send(made).is_err() {
                break;
            }
        }
        while self.maker.assist() {}
    }
}

/// What was made of a segment.
struct Made<B> {
    number: u64,
    /// Where it was entered, if anywhere.
    entered: Option<u64>,
    /// Where it ended.
    left: u64,
    batch: B,
    /// Packets that were not wanted.
    left_out: u64,
    failed: bool,
}

impl<M: Maker> SegmentFeed<M> {
    /// Starts up to this many threads that read ahead.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        segments: Segments,
        maker: &Arc<M>,
        threads: usize,
    ) -> Self
    where
        M: 'scope,
    {
        // All batches that there are fit into either channel, so that nobody waits to hand one on.
        // A thread claims a segment only when it has a batch for it: so the lowest that is not
        // taken is always ready, or being read, or free to claim.
        let threads = spawn_up_to(scope, "decode", threads, THREAD_BYTES, SegmentThread::read);
        let batches = (threads.len() + 1) * BATCHES_A_THREAD;
        let (send, full) = bounded(batches);
        let (empty, emptied) = bounded(batches);
        for _ in 0..batches {
            let _ = empty.send(M::Batch::default());
        }
        let unclaimed = Arc::new(AtomicU64::new(segments.first()));
        for thread in threads {
            thread.begin(SegmentThread {
                reader: segments.reader(),
                maker: Arc::clone(maker),
                full: send.clone(),
                emptied: emptied.clone(),
                unclaimed: Arc::clone(&unclaimed),
                count: segments.count(),
            });
        }
        Self {
            reader: segments.reader(),
            place: segments.begin(),
            next: segments.first(),
            segments,
            maker: Arc::clone(maker),
            unclaimed,
            ready: BTreeMap::new(),
            full,
            empty,
            emptied,
        }
    }

    /// Replaces a used batch by the next one that is not empty; false if the rest of the file is
    /// for another reader.
    pub(super) fn refill(&mut self, used: &mut M::Batch) -> bool {
        while self.next < self.segments.count() {
            let mut made = self.obtain();
            if made.entered != Some(self.place) {
                made = self.read(made.number, Some(self.place), made.batch);
            }
            if made.failed {
                return false;
            }
            self.next += 1;
            self.place = made.left;
            self.segments.leave_out(made.left_out);
            std::mem::swap(used, &mut made.batch);
            made.batch.clear();
            // The threads may be gone: then nobody needs it.
            let _ = self.empty.try_send(made.batch);
            if !used.times_ns().is_empty() {
                return true;
            }
        }
        false
    }

    /// What follows the segments taken, before which there were this many packets. The threads end.
    pub(super) fn rest(&self, packets: u64) -> Capture {
        self.unclaimed.store(self.segments.count(), Ordering::Relaxed);
        self.segments.rest(self.place, packets)
    }

    /// What makes batches of packets.
    pub(super) fn maker(&self) -> Arc<M> {
        Arc::clone(&self.maker)
    }

    /// What was made of the next segment, by whomever.
    fn obtain(&mut self) -> Made<M::Batch> {
        loop {
            if let Some(made) = self.ready.remove(&self.next) {
                return made;
            }
            let made = if let Ok(made) = self.full.try_recv() {
                made
            } else if let Some((number, batch)) = self.claim() {
                self.read(number, None, batch)
            } else if self.maker.assist() {
                continue;
            } else {
                match self.full.recv() {
                    Ok(made) => made,
                    // The threads are gone without having read it.
                    Err(_) => self.read(self.next, Some(self.place), M::Batch::default()),
                }
            };
            self.ready.insert(made.number, made);
        }
    }

    /// A segment for the taker to read.
    fn claim(&self) -> Option<(u64, M::Batch)> {
        let batch = self.emptied.try_recv().ok()?;
        let number = self.unclaimed.fetch_add(1, Ordering::Relaxed);
        (number < self.segments.count()).then_some((number, batch))
    }

    fn read(&mut self, number: u64, exact: Option<u64>, batch: M::Batch) -> Made<M::Batch> {
        make(&mut self.reader, &*self.maker, number, exact, batch)
    }
}

/// The next batch to fill; while there is none, the thread assists whoever takes them. None if
/// nobody takes any more.
fn next_emptied<M: Maker>(emptied: &Receiver<M::Batch>, maker: &M) -> Option<M::Batch> {
    loop {
        match emptied.try_recv() {
            Ok(batch) => return Some(batch),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if maker.assist() => {}
            Err(TryRecvError::Empty) => return emptied.recv().ok(),
        }
    }
}

/// Reads a segment, from where its first record is known or seems to begin.
fn make<M: Maker>(
    reader: &mut SegmentReader,
    maker: &M,
    number: u64,
    exact: Option<u64>,
    mut batch: M::Batch,
) -> Made<M::Batch> {
    batch.clear();
    reader.take_left_out();
    let entered = guarded(|| reader.enter(number, exact));
    let mut failed = entered.is_err();
    let entered = entered.unwrap_or(None);
    let mut more = entered.is_some();
    while more {
        let another = read_on(reader.capture(), &OneOfMany(maker), &mut batch, 0);
        failed = another.is_err();
        more = another.unwrap_or(false);
    }
    Made { number, entered, left: reader.offset(), batch, left_out: reader.take_left_out(), failed }
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

    impl Maker for Copy {
        type Batch = Copies;

        fn make(&self, batch: TraceBatch<'_>, out: &mut Copies) {
            let TraceBatch::Packets { bytes, packets } = batch else {
                return;
            };
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
        let maker = Arc::new(Copy);
        thread::scope(|scope| {
            let mut feed = Feed::start_with(scope, capture, &maker, threads, segment_bytes);
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

    /// What a frame is filled with.
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

    impl Maker for Busy {
        type Batch = Copies;

        fn make(&self, batch: TraceBatch<'_>, out: &mut Copies) {
            Copy.make(batch, out);
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
            let maker = Arc::new(Busy(AtomicU64::new(10_000)));
            thread::scope(|scope| {
                let capture = Capture::open(Path::new(path), InputFormat::Auto).unwrap();
                let mut feed = Feed::start_with(scope, capture, &maker, threads, 4096);
                let mut packets = 0;
                while feed.refill().unwrap() {
                    packets += feed.batch.times_ns.len();
                    feed.cursor = feed.batch.times_ns.len();
                }
                assert_eq!(packets, 8000);
            });
            assert_eq!(maker.0.load(Ordering::Relaxed), 0);
        }
    }
}
