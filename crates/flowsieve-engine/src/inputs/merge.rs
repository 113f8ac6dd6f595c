//! The order of inputs: each is opened when its first packet is due, and the one with the earliest
//! packet goes on. Of equal times the input that was given first goes first.

use super::order::{Key, Order};
use super::results::{InputResult, Watch};
use crate::guard::{Broken, catch_panic};
use crate::trace::{Capture, FileState, InputFormat, Source, StopFlag, TraceError};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Packets between two reports of progress: about a millisecond.
const PACKETS_A_REPORT: u64 = 1 << 14;

/// An open input.
pub trait Input {
    /// Returns the time of the packet this many behind the next one, if it is at hand.
    fn time_ns(&self, behind: usize) -> Option<i64>;

    /// Returns how many of the packets at hand may be taken together: up to this time, but at least
    /// one.
    fn ready(&self, until_ns: Option<i64>) -> usize;

    /// Steps over this many packets at hand, which were taken.
    fn pass(&mut self, packets: usize);

    /// Gets further packets once all at hand are taken; returns false at the end.
    ///
    /// # Errors
    ///
    /// The input is damaged or cannot be read further. It is at its end then.
    fn refill(&mut self) -> Result<bool, TraceError>;

    /// Waits for the next packet or the end, but not longer than this; returns whether either is
    /// there. Inputs that cannot wait return true.
    fn wait(&mut self, _at_most: Duration) -> bool {
        true
    }
}

/// Takes packets from inputs.
pub(crate) trait Taker<I, E> {
    /// Takes the next packets of an input, which has this number.
    fn take(&mut self, number: usize, input: &mut I, packets: usize) -> Result<(), E>;

    /// Returns how long it may be left without packets; `None` for any time.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Called after such a time without packets.
    fn idle(&mut self) -> Result<(), E> {
        Ok(())
    }
}

/// A closure that takes packets.
struct TakeBy<F>(F);

impl<I, E, F: FnMut(usize, &mut I, usize) -> Result<(), E>> Taker<I, E> for TakeBy<F> {
    fn take(&mut self, number: usize, input: &mut I, packets: usize) -> Result<(), E> {
        self.0(number, input, packets)
    }
}

/// Waits for the next packets, and tells the taker when that takes long.
fn await_next<I: Input, E>(input: &mut I, taker: &mut impl Taker<I, E>) -> Result<(), E> {
    if let Some(patience) = taker.patience() {
        while !input.wait(patience) {
            taker.idle()?;
        }
    }
    Ok(())
}

/// Returns how many of these times may be taken together: the first in any case.
pub(super) fn count_until(
    times_ns: impl ExactSizeIterator<Item = i64>,
    until_ns: Option<i64>,
) -> usize {
    match until_ns {
        None => times_ns.len(),
        Some(until) => 1 + times_ns.skip(1).take_while(|&time| time <= until).count(),
    }
}

/// The inputs, from which the earliest packet is always taken next.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct Merge<'a, I> {
    upcoming: VecDeque<Upcoming>,
    /// Inputs that are due while as many are open as may be. Each is opened when another one has
    /// ended, and its first packets come late.
    held_back: VecDeque<Upcoming>,
    most_open: usize,
    /// In the order in which they were given. All have packets at hand.
    open: Vec<Open<I>>,
    order: Order,
    /// Creates the input of a capture while this many others are open.
    begin: Box<dyn FnMut(Capture, usize) -> I + 'a>,
    inputs: Vec<InputResult>,
    /// Followed directories, with their numbers.
    followed: Vec<(usize, Source)>,
    format: InputFormat,
    stop: StopFlag,
    /// Bytes of the inputs at their end.
    bytes_done: u64,
    packets: u64,
    /// Packets when progress was reported last.
    reported: u64,
    /// The input that packets are taken from, and how many.
    taking: (usize, usize),
}

/// An input that is not open yet.
struct Upcoming {
    source: Source,
    number: usize,
    /// Time of its first packet, or earlier.
    first_ns: i64,
}

/// Files that the rest of the program may have open: results and temporary files.
#[cfg(unix)]
const OTHER_FILES: u64 = 64;

/// Returns how many inputs may be open at the same time.
#[cfg(unix)]
fn most_open() -> usize {
    use rustix::process::{Resource, getrlimit};
    let files = getrlimit(Resource::Nofile).current;
    files.map_or(usize::MAX, |files| files.saturating_sub(OTHER_FILES).max(1) as usize)
}

#[cfg(not(unix))]
const fn most_open() -> usize {
    usize::MAX
}

struct Open<I> {
    source: Source,
    number: usize,
    input: I,
    bytes: Arc<AtomicU64>,
    times_out_of_range: Counter,
    left_out: Counter,
}

/// A count over the captures of an input.
struct Counter {
    of_capture: Arc<AtomicU64>,
    before: u64,
}

impl Counter {
    /// Packets that were read ahead are in the number, so it is right at the end only.
    fn value(&self) -> u64 {
        self.before + self.of_capture.load(Ordering::Relaxed)
    }
}

impl<'a, I: Input> Merge<'a, I> {
    /// Puts the inputs in the order of their first packets and opens those that are due. One whose
    /// time is not known is opened first.
    pub fn new<S: Clone + Into<Source>>(
        sources: &[S],
        format: InputFormat,
        watch: &dyn Watch,
        begin: impl FnMut(Capture, usize) -> I + 'a,
    ) -> Self {
        // One input needs no order.
        let alone = sources.len() == 1;
        let sources = sources.iter().cloned().map(Into::into).map(|source: Source| {
            let known = !alone && source.is_readable_twice();
            let first_ns =
                known.then(|| Capture::open(source.path(), format).ok()?.first_time_ns().ok()?);
            (source, first_ns.flatten().unwrap_or(i64::MIN))
        });
        Self::with_times(sources, format, watch, begin)
    }

    /// Inputs with a known lower bound on their timestamps.
    pub fn with_times(
        sources: impl IntoIterator<Item = (impl Into<Source>, i64)>,
        format: InputFormat,
        watch: &dyn Watch,
        begin: impl FnMut(Capture, usize) -> I + 'a,
    ) -> Self {
        let mut upcoming = Vec::new();
        let mut inputs = Vec::new();
        let mut followed = Vec::new();
        for (number, (source, first_ns)) in sources.into_iter().enumerate() {
            let source = source.into();
            if source.has_more() {
                followed.push((number, source.clone()));
            }
            let path = source.path().to_path_buf();
            inputs.push(InputResult { path, ..InputResult::default() });
            upcoming.push(Upcoming { source, number, first_ns });
        }
        upcoming.sort_by_key(|input| input.first_ns);
        let mut merge = Self {
            upcoming: upcoming.into(),
            held_back: VecDeque::new(),
            most_open: most_open(),
            open: Vec::new(),
            order: Order::default(),
            begin: Box::new(begin),
            inputs,
            followed,
            format,
            stop: watch.stop(),
            bytes_done: 0,
            packets: 0,
            reported: 0,
            taking: (0, 0),
        };
        let Ok(()) = merge.open_due(watch, |_| Ok::<(), Infallible>(()));
        merge
    }

    /// Returns the time of the earliest packet at hand.
    pub(crate) fn first_ns(&self) -> Option<i64> {
        let open = self.open.iter();
        open.filter_map(|open| open.input.time_ns(0)).min()
    }

    /// Passes all packets to `take`; returns the result of each input, and whether reading was
    /// stopped before their ends.
    ///
    /// `take` gets an input with its number, and how many of its next packets it has to take. If it
    /// panics, that is an error.
    ///
    /// # Errors
    ///
    /// Those of `take`, or that it panicked.
    pub fn drain<E: From<Broken>>(
        self,
        watch: &dyn Watch,
        take: impl FnMut(usize, &mut I, usize) -> Result<(), E>,
    ) -> Result<(Vec<InputResult>, bool), E> {
        self.drain_into(watch, &mut TakeBy(take))
    }

    /// Like [`drain`](Self::drain), with a taker that is told when no packets come.
    pub(crate) fn drain_into<E: From<Broken>>(
        mut self,
        watch: &dyn Watch,
        taker: &mut impl Taker<I, E>,
    ) -> Result<(Vec<InputResult>, bool), E> {
        // Packets read before the flag was set are still taken; then the readers end, and the loop.
        while !self.open.is_empty() {
            let empty = catch_panic(|| self.take_at_hand(taker)).map_err(|gone| {
                let (number, packets) = self.taking;
                let result = &self.inputs[number];
                gone.at(&result.path, result.packets, packets as u64)
            })??;
            if let Some(at) = empty {
                await_next(&mut self.open[at].input, taker)?;
                if self.refill(at) {
                    self.order.set(at, self.open[at].input.time_ns(0));
                } else {
                    self.end(at);
                }
            }
            self.open_due(watch, |input| await_next(input, taker))?;
            if self.packets - self.reported >= PACKETS_A_REPORT {
                self.reported = self.packets;
                let open = self.open.iter().map(|open| &open.bytes);
                let bytes: u64 = open.map(|bytes| bytes.load(Ordering::Relaxed)).sum();
                watch.progress(self.bytes_done + bytes, self.packets);
            }
        }
        for (number, source) in self.followed {
            let (error, remarks) = source.finish(self.format);
            let result = &mut self.inputs[number];
            result.error = result.error.take().or(error);
            result.remarks = remarks;
        }
        Ok((self.inputs, self.stop.is_set()))
    }

    /// Has packets taken until an input has none at hand, and returns its place; or until another
    /// input is due, or progress.
    fn take_at_hand<E>(&mut self, taker: &mut impl Taker<I, E>) -> Result<Option<usize>, E> {
        let due = self.upcoming.front();
        let due = due.map_or(Key::NEVER, |next| Key::of(next.first_ns, 0));
        while self.packets - self.reported < PACKETS_A_REPORT
            && let Some(at) = self.order.first_before(due)
        {
            let Open { number, input, .. } = &mut self.open[at];
            let first_ns = input.time_ns(0);
            let mut packets = 1;
            let mut next_ns = input.time_ns(packets);
            while next_ns == first_ns {
                packets += 1;
                next_ns = input.time_ns(packets);
            }
            self.order.set(at, next_ns);
            if next_ns.is_some() && self.order.first_before(due) == Some(at) {
                let until = self.order.others(at).min(due);
                packets = input.ready(until.last_before(at));
                next_ns = input.time_ns(packets);
                self.order.set(at, next_ns);
            }
            self.taking = (*number, packets);
            taker.take(*number, input, packets)?;
            input.pass(packets);
            self.inputs[*number].packets += packets as u64;
            self.packets += packets as u64;
            if next_ns.is_none() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Opens every input whose first packet is not later than the earliest one at hand, and at
    /// least one while there are any.
    fn open_due<E>(
        &mut self,
        watch: &dyn Watch,
        mut wait: impl FnMut(&mut I) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.open.len() < self.most_open
                && let Some(next) = self.held_back.pop_front()
            {
                self.upcoming.push_front(next);
            }
            let Some(next) = self.upcoming.front() else {
                return Ok(());
            };
            if self.first_ns().is_some_and(|now| next.first_ns > now) {
                return Ok(());
            }
            let Some(upcoming) = self.upcoming.pop_front() else {
                return Ok(());
            };
            if self.open.len() >= self.most_open {
                self.held_back.push_back(upcoming);
                continue;
            }
            let Upcoming { source, number, .. } = upcoming;
            let result = &mut self.inputs[number];
            let capture = match source.open(self.format, &self.stop) {
                Ok(capture) => capture,
                // The error comes from stopping.
                Err(_) if self.stop.is_set() => return Ok(()),
                Err(error) => {
                    result.error.get_or_insert(error);
                    continue;
                }
            };
            result.container = Some(capture.description());
            result.is_log = capture.is_log();
            result.file = capture.file_state();
            result.unread_bytes = capture.unread_bytes();
            let bytes = capture.bytes_read();
            let times_out_of_range = Counter {
                of_capture: capture.times_out_of_range(),
                before: result.times_out_of_range,
            };
            let left_out = Counter { of_capture: capture.left_out(), before: result.left_out };
            let input = (self.begin)(capture, self.open.len());
            let at = self.open.partition_point(|open| open.number < number);
            let open = Open { source, number, input, bytes, times_out_of_range, left_out };
            self.open.insert(at, open);
            let counters: Vec<_> = self.open.iter().map(|open| Arc::clone(&open.bytes)).collect();
            watch.reading(self.bytes_done, &counters);
            wait(&mut self.open[at].input)?;
            if self.refill(at) {
                self.begin_order();
            } else {
                self.end(at);
            }
        }
    }

    /// Closes an input that is at its end; another capture may follow.
    fn end(&mut self, at: usize) {
        let Open { source, number, .. } = self.open.remove(at);
        self.begin_order();
        let result = &mut self.inputs[number];
        let at_end = result.file.and_then(|_| fs::metadata(source.path()).ok());
        result.file_at_end = at_end.map(|data| FileState::of(&data));
        if source.has_more() && !self.stop.is_set() {
            self.upcoming.push_front(Upcoming { source, number, first_ns: i64::MIN });
        }
    }

    fn begin_order(&mut self) {
        let times_ns = self.open.iter();
        let times_ns = times_ns.map(|open| open.input.time_ns(0).unwrap_or(i64::MAX));
        self.order.begin(times_ns);
    }

    /// Gets further packets of an open input; returns false at its end.
    fn refill(&mut self, at: usize) -> bool {
        let Open { source, number, input, bytes, times_out_of_range, left_out } =
            &mut self.open[at];
        let more = input.refill();
        let result = &mut self.inputs[*number];
        result.times_out_of_range = times_out_of_range.value();
        result.left_out = left_out.value();
        match more {
            Ok(true) => return true,
            Ok(false) => {}
            Err(_) if self.stop.is_set() => {}
            Err(error) => {
                if let Some(error) = source.postpone(error) {
                    self.inputs[*number].error.get_or_insert(error);
                }
            }
        }
        self.bytes_done += bytes.load(Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::{Feed, RecordInput, TimeBuilder};
    use super::*;
    use crate::trace::{LogBatch, PacketRef, Select};
    use std::sync::Mutex;
    use std::thread;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/generated.pcap");

    /// Drains the capture with a `take` that panics when it has more than 6000 packets.
    fn trapped<I: Input>(
        begin: impl FnMut(Capture, usize) -> I,
        mut go_on: impl FnMut(&mut I, usize),
    ) {
        let mut seen = 0;
        let merge = Merge::new(&[PATH], InputFormat::Auto, &(), begin);
        let drained = merge.drain(&(), |_, input, packets| {
            seen += packets;
            assert!(seen <= 6000, "the trap");
            go_on(input, packets);
            Ok::<(), Broken>(())
        });
        let broken = drained.expect_err("the panic is reported");
        let last = broken.first + broken.others;
        assert!((broken.first..=last).contains(&6_001), "{broken}");
        assert_eq!(last, seen as u64);
        let sentence = broken.to_string();
        for part in ["generated.pcap: packet ", "the trap", "please report"] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    /// What watches keeps the counters; what chooses wants no packet, and notes how much was read
    /// then.
    #[derive(Debug, Default)]
    struct Counters {
        kept: Mutex<Vec<Arc<AtomicU64>>>,
        noted: Mutex<Vec<u64>>,
    }

    impl Watch for Counters {
        fn progress(&self, _: u64, _: u64) {
            unreachable!("no packet is taken")
        }

        fn reading(&self, done: u64, open: &[Arc<AtomicU64>]) {
            assert_eq!(done, 0);
            self.kept.lock().unwrap().extend_from_slice(open);
        }
    }

    impl Select for Counters {
        fn choose_packets(&self, _: &[u8], packets: &[PacketRef], chosen: &mut Vec<bool>) {
            chosen.resize(packets.len(), false);
            let kept = self.kept.lock().unwrap();
            let read = kept.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
            self.noted.lock().unwrap().push(read);
        }

        fn choose_entries(&self, _: LogBatch<'_>, _: &mut Vec<bool>) {}
    }

    /// What the counters said while a capture was read of which no packet is wanted.
    fn noted_without_packets(threads: usize) -> Vec<u64> {
        let counters = Arc::new(Counters::default());
        let source = Source::from(PATH).selected_by(Arc::clone(&counters) as Arc<dyn Select>);
        thread::scope(|scope| {
            let builder = Arc::new(TimeBuilder);
            let begin = |capture, open| Feed::start(scope, capture, &builder, threads, open);
            let merge = Merge::new(&[source], InputFormat::Auto, &*counters, begin);
            let drained = merge.drain(&*counters, |_, _, _| Ok::<(), Broken>(()));
            assert_eq!(drained.unwrap().0[0].packets, 0);
        });
        let noted = counters.noted.lock().unwrap().clone();
        assert!(noted.is_sorted(), "{noted:?}");
        noted
    }

    #[test]
    fn counters_move_while_no_packet_is_wanted() {
        let bytes = fs::metadata(PATH).unwrap().len();
        let moved = |noted: Vec<u64>| {
            noted.last() == Some(&bytes) && noted.iter().any(|read| (1..bytes).contains(read))
        };
        for threads in [0, 1, 3] {
            // A thread may have read everything before this one is handed the counters: then it is
            // tried again.
            let tries = if threads == 0 { 1 } else { 1000 };
            assert!((0..tries).any(|_| moved(noted_without_packets(threads))));
        }
    }

    #[test]
    fn inputs_beyond_the_limit_of_open_files_are_read_when_others_have_ended() {
        let sources: Vec<Source> = (0..7).map(|_| Source::from(PATH)).collect();
        let begin = |capture, open| {
            assert!(open < 3);
            RecordInput::new(capture)
        };
        let times = sources.into_iter().map(|source| (source, i64::MAX));
        let mut merge = Merge::with_times(times, InputFormat::Auto, &(), begin);
        merge.most_open = 3;
        for upcoming in &mut merge.upcoming {
            upcoming.first_ns = i64::MIN;
        }
        let Ok((inputs, _)) = merge.drain(&(), |_, _, _| Ok::<(), Broken>(())) else {
            panic!("nothing fails here");
        };
        assert!(inputs.iter().all(|input| input.packets == 8000 && input.error.is_none()));
    }

    #[test]
    fn a_taker_that_panics_is_an_error_that_names_its_packets_and_no_hang() {
        for threads in [0, 1, 3] {
            thread::scope(|scope| {
                let builder = Arc::new(TimeBuilder);
                let begin = |capture, open| Feed::start(scope, capture, &builder, threads, open);
                trapped(begin, |feed, packets| feed.cursor += packets);
            });
        }
        trapped(|capture, _| RecordInput::new(capture), |_, _| {});
    }
}
