//! The order of inputs: each is opened when its first packet is due, and the one with the earliest
//! packet goes on. Of equal times the input that was given first goes first.

use super::order::{Member, Order};
use super::results::{InputResult, Watch};
use crate::guard::{Broken, catch_panic};
use crate::trace::{Capture, FileState, InputFormat, Source, StopFlag, TraceError};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Packets between two reports of progress: about a millisecond.
const PACKETS_A_REPORT: u64 = 1 << 14;

/// Packets of each input that are put in order at once with those of others: few enough that they
/// stay in the second-level cache.
const PACKETS_AT_ONCE: usize = 256;

/// An open input.
pub trait Input {
    /// Returns the times of the packets at hand.
    fn times_ns(&self) -> impl ExactSizeIterator<Item = i64>;

    /// Prepares for this many packets to be taken one by one between those of other inputs.
    fn prefetch(&self, _packets: usize) {}

    /// Steps over this many packets at hand, which were taken.
    fn pass(&mut self, _packets: usize) {}

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
pub(crate) trait PacketConsumer<I, E> {
    /// Takes the next packets of an input, which has this number.
    fn take(&mut self, number: usize, input: &mut I, packets: usize) -> Result<(), E>;

    /// Takes the next packets of several inputs one by one; returns false if it took none, and wants
    /// them from one input after the other.
    fn take_together(&mut self, _inputs: &mut Together<'_, I>) -> Result<bool, E> {
        Ok(false)
    }

    /// Returns how long it may be left without packets; `None` for any time.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Called after such a time without packets.
    fn idle(&mut self) -> Result<(), E> {
        Ok(())
    }
}

impl<I, E, F: FnMut(usize, &mut I, usize) -> Result<(), E>> PacketConsumer<I, E> for F {
    fn take(&mut self, number: usize, input: &mut I, packets: usize) -> Result<(), E> {
        self(number, input, packets)
    }
}

/// Waits for the next packets, and tells the consumer when that takes long.
fn await_next<I: Input, E>(
    input: &mut I,
    consumer: &mut impl PacketConsumer<I, E>,
) -> Result<(), E> {
    if let Some(patience) = consumer.patience() {
        while !input.wait(patience) {
            consumer.idle()?;
        }
    }
    Ok(())
}

/// Inputs whose next packets are mixed in time.
pub(crate) struct Together<'a, I> {
    open: &'a mut [Open<I>],
    order: &'a mut Order,
    taking: &'a mut (usize, usize),
}

impl<I> Together<'_, I> {
    /// Returns the inputs and how many packets of each are to be taken.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (&I, usize)> {
        let members = self.order.members.iter();
        members.map(|member| (&self.open[member.place].input, member.packets))
    }

    /// Returns the input of which one packet has to be taken next.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&mut I> {
        let member = self.order.next()?;
        *self.taking = (member.place, member.packets);
        Some(&mut self.open[member.place].input)
    }
}

/// When a packet comes: its time, and the place of its input.
type Moment = (i64, usize);

/// Later than every packet.
const NEVER: Moment = (i64::MAX, usize::MAX);

/// Returns the last moment before this one.
const fn moment_before((time_ns, place): Moment) -> Moment {
    match place {
        0 => (time_ns.saturating_sub(1), usize::MAX),
        _ => (time_ns, place - 1),
    }
}

/// Returns the last time at which a packet of the input at this place comes before this moment.
const fn last_before((time_ns, other): Moment, place: usize) -> i64 {
    time_ns.saturating_sub((place >= other) as i64)
}

/// Returns how many packets of the input at this place may be taken before this moment: the first in
/// any case.
fn count_before(
    moment: Moment,
    place: usize,
    times_ns: impl ExactSizeIterator<Item = i64>,
) -> usize {
    if moment == NEVER {
        return times_ns.len();
    }
    let until_ns = last_before(moment, place);
    1 + times_ns.skip(1).take_while(|&time_ns| time_ns <= until_ns).count()
}

/// The times of an input's next packet and of the last that is put in order with it; those of the
/// packets between may be others.
#[derive(Clone, Copy)]
struct AtHand {
    first_ns: i64,
    last_ns: i64,
}

impl AtHand {
    const NOTHING: Self = Self { first_ns: i64::MAX, last_ns: i64::MAX };

    fn of(input: &impl Input) -> Option<Self> {
        let mut times_ns = input.times_ns();
        let between = times_ns.len().min(PACKETS_AT_ONCE).saturating_sub(2);
        let first_ns = times_ns.next()?;
        Some(Self { first_ns, last_ns: times_ns.nth(between).unwrap_or(first_ns) })
    }
}

/// The inputs, from which the earliest packet is always taken next.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct Merge<'a, I> {
    upcoming: VecDeque<Upcoming>,
    /// Inputs that are due while as many are open as may be. Each is opened when another one has
    /// ended, and its first packets come late.
    held_back: VecDeque<Upcoming>,
    has_held_back: bool,
    most_open: usize,
    /// In the order in which they were given. All have packets at hand.
    open: Vec<Open<I>>,
    at_hand: Vec<AtHand>,
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
    /// The place of the input that packets are taken from, and how many.
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
    /// Puts the inputs in the order of their first packets, selected or not, and opens those that are
    /// due. One whose time is not known is opened first.
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
            let first_ns = known.then(|| source.begins_ns(format)).flatten();
            (source, first_ns.unwrap_or(i64::MIN))
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
            has_held_back: false,
            most_open: most_open(),
            open: Vec::new(),
            at_hand: Vec::new(),
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
        self.first().map(|(first_ns, _)| first_ns)
    }

    fn first(&self) -> Option<Moment> {
        let at_hand = self.at_hand.iter().enumerate();
        at_hand.map(|(at, at_hand)| (at_hand.first_ns, at)).min()
    }

    /// Returns the moment at which the next input must be open.
    fn due(&self) -> Moment {
        self.upcoming.front().map_or(NEVER, |next| {
            (next.first_ns, self.open.partition_point(|open| open.number < next.number))
        })
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
        mut take: impl FnMut(usize, &mut I, usize) -> Result<(), E>,
    ) -> Result<(Vec<InputResult>, bool), E> {
        self.drain_into(watch, &mut take)
    }

    /// Like [`drain`](Self::drain), with a consumer that is told when no packets come.
    pub(crate) fn drain_into<E: From<Broken>>(
        mut self,
        watch: &dyn Watch,
        consumer: &mut impl PacketConsumer<I, E>,
    ) -> Result<(Vec<InputResult>, bool), E> {
        // Packets read before the flag was set are still taken; then the readers end, and the loop.
        while !self.open.is_empty() {
            let empty = catch_panic(|| self.take_at_hand(consumer)).map_err(|gone| {
                let (at, packets) = self.taking;
                let result = &self.inputs[self.open[at].number];
                gone.at(&result.path, result.packets, packets as u64)
            })??;
            if let Some(at) = empty {
                await_next(&mut self.open[at].input, consumer)?;
                self.refill_or_end(at);
            }
            self.open_due(watch, |input| await_next(input, consumer))?;
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
            result.remarks.extend(remarks);
        }
        Ok((self.inputs, self.stop.is_set()))
    }

    /// Has packets taken until an input has none at hand, and returns its place; or until another
    /// input is due, or progress.
    fn take_at_hand<E>(
        &mut self,
        consumer: &mut impl PacketConsumer<I, E>,
    ) -> Result<Option<usize>, E> {
        let due = self.due();
        while self.packets - self.reported < PACKETS_A_REPORT {
            let (mut first, mut second, mut last) = (NEVER, NEVER, NEVER);
            for (at, AtHand { first_ns, last_ns }) in self.at_hand.iter().enumerate() {
                second = second.min(first.max((*first_ns, at)));
                first = first.min((*first_ns, at));
                last = last.min((*last_ns, at));
            }
            if first >= due {
                return Ok(None);
            }
            let (first_ns, at) = first;
            let others = second.min(due);
            let emptied = if (self.at_hand[at].last_ns, at) < others {
                // An input is alone for a while.
                let packets = count_before(others, at, self.open[at].input.times_ns());
                self.take_run(consumer, at, packets)?;
                self.passed(at)
            } else {
                let last = last.max(first).min(moment_before(due));
                self.put_in_order(first_ns, last);
                self.take_in_order(consumer)?
            };
            if emptied.is_some() {
                return Ok(emptied);
            }
        }
        Ok(None)
    }

    /// Puts the packets from this time to the last moment in order, or those of a shorter time.
    fn put_in_order(&mut self, first_ns: i64, mut last: Moment) {
        let most_ns = self.order.begin(first_ns, self.open.len());
        last = last.min((most_ns, usize::MAX));
        for (at, at_hand) in self.at_hand.iter().enumerate() {
            if (at_hand.first_ns, at) <= last {
                let input = &self.open[at].input;
                let until_ns = last_before((last.0, last.1.saturating_add(1)), at);
                let packets = self.order.add(at, input.times_ns(), until_ns);
                input.prefetch(packets);
            }
        }
        self.order.start();
    }

    /// Has the packets taken that were put in order; returns the place of an input that has no more
    /// at hand.
    fn take_in_order<E>(
        &mut self,
        consumer: &mut impl PacketConsumer<I, E>,
    ) -> Result<Option<usize>, E> {
        let (open, order, taking) = (&mut self.open, &mut self.order, &mut self.taking);
        let are_taken = consumer.take_together(&mut Together { open, order, taking })?;
        while !are_taken && let Some((at, packets)) = self.order.next_run() {
            self.take_run(consumer, at, packets)?;
        }
        // The last packet that was put in order was the last of at most one input.
        let mut emptied = None;
        for number in 0..self.order.members.len() {
            let Member { place, packets, .. } = self.order.members[number];
            if are_taken {
                self.count(place, packets);
            }
            emptied = emptied.or(self.passed(place));
        }
        Ok(emptied)
    }

    /// Has the next packets of an input taken.
    fn take_run<E>(
        &mut self,
        consumer: &mut impl PacketConsumer<I, E>,
        at: usize,
        packets: usize,
    ) -> Result<(), E> {
        self.taking = (at, packets);
        let Open { number, input, .. } = &mut self.open[at];
        consumer.take(*number, input, packets)?;
        input.pass(packets);
        self.count(at, packets);
        Ok(())
    }

    fn count(&mut self, at: usize, packets: usize) {
        self.inputs[self.open[at].number].packets += packets as u64;
        self.packets += packets as u64;
    }

    /// Notes that packets of an input were taken; returns its place if it has no more at hand.
    fn passed(&mut self, at: usize) -> Option<usize> {
        let at_hand = AtHand::of(&self.open[at].input);
        self.at_hand[at] = at_hand.unwrap_or(AtHand::NOTHING);
        at_hand.is_none().then_some(at)
    }

    /// Opens every input whose first packet comes before the earliest one at hand, and at least one
    /// while there are any.
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
            if self.first().is_some_and(|now| now < self.due()) {
                return Ok(());
            }
            let Some(upcoming) = self.upcoming.pop_front() else { return Ok(()) };
            if self.open.len() >= self.most_open {
                self.hold_back(upcoming);
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
            result.error = result.error.take().or_else(|| capture.unanswered());
            result.is_log = capture.is_log();
            result.container = Some(capture.description());
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
            self.at_hand.insert(at, AtHand::NOTHING);
            let counters: Vec<_> = self.open.iter().map(|open| Arc::clone(&open.bytes)).collect();
            watch.reading(self.bytes_done, &counters);
            wait(&mut self.open[at].input)?;
            self.refill_or_end(at);
        }
    }

    /// Opens an input later, and remarks on the first one.
    fn hold_back(&mut self, upcoming: Upcoming) {
        if !mem::replace(&mut self.has_held_back, true) {
            let remark = upcoming.source.opened_late(self.most_open);
            self.inputs[upcoming.number].remarks.push(remark);
        }
        self.held_back.push_back(upcoming);
    }

    /// Closes an input that is at its end; another capture may follow.
    fn end(&mut self, at: usize) {
        let Open { source, number, .. } = self.open.remove(at);
        self.at_hand.remove(at);
        let result = &mut self.inputs[number];
        let at_end = result.file.and_then(|_| fs::metadata(source.path()).ok());
        result.file_at_end = at_end.map(|data| FileState::of(&data));
        if source.has_more() && !self.stop.is_set() {
            self.upcoming.push_front(Upcoming { source, number, first_ns: i64::MIN });
        }
    }

    /// Gets further packets of an open input, or closes it at its end.
    fn refill_or_end(&mut self, at: usize) {
        let Open { source, number, input, bytes, times_out_of_range, left_out } =
            &mut self.open[at];
        let more = input.refill();
        let result = &mut self.inputs[*number];
        result.times_out_of_range = times_out_of_range.value();
        result.left_out = left_out.value();
        match more {
            Ok(true) => {
                self.passed(at);
                return;
            }
            Ok(false) => {}
            Err(_) if self.stop.is_set() => {}
            Err(error) => {
                if let Some(error) = source.postpone(error) {
                    self.inputs[*number].error.get_or_insert(error);
                }
            }
        }
        self.bytes_done += bytes.load(Ordering::Relaxed);
        self.end(at);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::batch::tests::TimeBuilder;
    use super::super::{Feed, RecordInput};
    use super::*;
    use crate::trace::{LogBatch, PacketRef, Select};
    use proptest::prelude::*;
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

    /// Watches a reading and keeps its counters; as a selection it wants no packet, and notes how
    /// much was read then.
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

    /// Returns the counters' readings of a capture of which no packet is wanted.
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

    /// An input with packets of these times, some at a time.
    struct Listed {
        number: usize,
        times_ns: Vec<i64>,
        at: usize,
        /// Packets that are at hand, and how many more come at once.
        end: usize,
        at_once: usize,
    }

    impl Input for Listed {
        fn times_ns(&self) -> impl ExactSizeIterator<Item = i64> {
            self.times_ns[self.at..self.end].iter().copied()
        }

        fn refill(&mut self) -> Result<bool, TraceError> {
            assert_eq!(self.at, self.end, "packets are left");
            self.end = self.times_ns.len().min(self.end + self.at_once);
            Ok(self.at < self.end)
        }
    }

    /// Lists the packets: the number of the input, and the time. Some are taken together.
    struct Lister {
        takes_together: bool,
        packets: Vec<(usize, i64)>,
    }

    impl Lister {
        fn note(&mut self, input: &mut Listed) {
            self.packets.push((input.number, input.times_ns[input.at]));
            input.at += 1;
        }
    }

    impl PacketConsumer<Listed, Broken> for Lister {
        fn take(
            &mut self,
            number: usize,
            input: &mut Listed,
            packets: usize,
        ) -> Result<(), Broken> {
            assert_eq!(number, input.number);
            (0..packets).for_each(|_| self.note(input));
            Ok(())
        }

        fn take_together(&mut self, inputs: &mut Together<'_, Listed>) -> Result<bool, Broken> {
            // The packets that are announced.
            let mut left: Vec<_> =
                inputs.inputs().map(|(input, packets)| (input.number, packets)).collect();
            self.takes_together ^= self.packets.len().is_multiple_of(3);
            while self.takes_together
                && let Some(input) = inputs.next()
            {
                let left = left.iter_mut().find(|left| left.0 == input.number).unwrap();
                left.1 -= 1;
                self.note(input);
            }
            assert!(!self.takes_together || left.iter().all(|left| left.1 == 0));
            Ok(self.takes_together)
        }
    }

    proptest! {
        #[test]
        fn the_earliest_goes_first_and_of_equal_times_the_lower_number(
            steps in prop::collection::vec((prop::collection::vec(-2_i64..5, 0..700), 1_usize..600), 1..7),
            edges in any::<bool>(),
            is_known in any::<bool>(),
        ) {
            let lists: Vec<Vec<i64>> = steps.iter().enumerate().map(|(number, (steps, _))| {
                let walk = steps.iter().scan(100 * number as i64, |time_ns, step| {
                    *time_ns += step;
                    Some(*time_ns)
                });
                let ends = [i64::MIN, i64::MAX].into_iter().filter(|_| edges && number % 2 == 0);
                walk.chain(ends).collect()
            }).collect();
            let sources = lists.iter().map(|list| {
                let first_ns = list.first().filter(|_| is_known).copied();
                (Source::from(PATH), first_ns.unwrap_or(i64::MIN))
            });
            // Sources are opened in the order of these times, and of their numbers.
            let mut numbers: Vec<usize> = (0..lists.len()).collect();
            numbers.sort_by_key(|&number| lists[number].first().filter(|_| is_known).copied().unwrap_or(i64::MIN));
            let mut numbers = numbers.into_iter();
            let begin = |_, _| {
                let number = numbers.next().unwrap();
                let times_ns = lists[number].clone();
                Listed { number, times_ns, at: 0, end: 0, at_once: steps[number].1 }
            };
            let mut lister = Lister { takes_together: edges, packets: Vec::new() };
            let merge = Merge::with_times(sources, InputFormat::Auto, &(), begin);
            let (inputs, _) = merge.drain_into(&(), &mut lister).unwrap();
            prop_assert!(inputs.iter().zip(&lists).all(|(input, list)| input.packets == list.len() as u64));
            let mut expected = Vec::new();
            let mut at = vec![0; lists.len()];
            let next = |at: &[usize]| {
                let heads = lists.iter().zip(at).enumerate();
                heads.filter_map(|(number, (list, &at))| Some((*list.get(at)?, number))).min()
            };
            while let Some((time_ns, number)) = next(&at) {
                expected.push((number, time_ns));
                at[number] += 1;
            }
            prop_assert!(lister.packets == expected);
        }
    }
}
