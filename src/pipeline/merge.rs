//! Several inputs as one trace: opened in the order of time, merged packet by packet.
//!
//! What is made of the packets is left open: a [`Maker`] turns what a reader yields into batches, in a
//! thread for each input, and a [`Taker`] takes them in the order of the trace.

use super::feed::{Feed, Upcoming};
use super::results::{InputResult, Watch};
use super::sequencer::Stop;
use crate::guard::guarded;
use crate::trace::{Capture, InputFormat, StopFlag, TraceBatch, first_time_ns};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Scope;

/// Inputs that overlap in time and are decoded by a thread each; further ones are decoded by the
/// taker's thread.
const MAX_DECODE_THREADS: usize = 64;

/// Batches between two words of progress: about a millisecond.
const BATCHES_A_WORD: u32 = 32;

/// A run of packets in trace order, as a decode thread hands it on.
pub(crate) trait Batch: Default + Send {
    /// How far a batch has been taken.
    type Cursor: Default;

    /// Time of each packet in nanoseconds since the epoch.
    fn times_ns(&self) -> &[i64];

    /// Forgets all and keeps the memory.
    fn clear(&mut self);

    /// Packets taken.
    fn taken(cursor: &Self::Cursor) -> usize;
}

/// Makes batches of what readers yield.
pub(crate) trait Maker: Send + Sync {
    /// What it makes.
    type Batch: Batch;

    /// Appends what a reader yielded to `out`.
    fn make(&self, batch: TraceBatch<'_>, out: &mut Self::Batch);
}

/// Takes the packets in the order of the trace.
pub(crate) trait Taker<B: Batch> {
    /// Takes the packets of a batch up to number `end`, from where `cursor` stands.
    fn take(&mut self, batch: &B, cursor: &mut B::Cursor, end: usize) -> Result<(), Stop>;
}

/// Where the packets come from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// How to recognise the inputs.
    pub(crate) format: InputFormat,
    /// Threads that decode an input; with none the taker's does.
    pub(crate) threads: usize,
    /// Ends the reading.
    pub(crate) stop: StopFlag,
}

/// One entry an input, of which nothing is known yet.
pub(crate) fn unread(paths: &[PathBuf]) -> Vec<InputResult> {
    let unread = paths.iter().map(|path| InputResult {
        path: path.clone(),
        container: None,
        packets: 0,
        error: None,
    });
    unread.collect()
}

/// The open inputs, from which the earliest packet is always taken next.
pub(crate) struct Merge<'scope, 'env, 'run, M: Maker> {
    scope: &'scope Scope<'scope, 'env>,
    sources: Sources,
    maker: Arc<M>,
    upcoming: VecDeque<Upcoming>,
    open: Vec<Feed<M>>,
    inputs: &'run mut [InputResult],
    bytes_done: u64,
    packets: u64,
}

impl<'scope, 'env, 'run, M: Maker + 'scope> Merge<'scope, 'env, 'run, M> {
    /// Puts the inputs in order and opens those that are due.
    pub(crate) fn start(
        scope: &'scope Scope<'scope, 'env>,
        sources: Sources,
        maker: M,
        inputs: &'run mut [InputResult],
    ) -> Self {
        let mut merge = Self {
            scope,
            upcoming: in_time_order(sources.format, inputs),
            sources,
            maker: Arc::new(maker),
            open: Vec::new(),
            inputs,
            bytes_done: 0,
            packets: 0,
        };
        merge.open_due();
        merge
    }

    /// Opens every input whose first packet is not later than the earliest one at hand, and at least
    /// one while there are any.
    fn open_due(&mut self) {
        while let Some(next) = self.upcoming.front() {
            if self.first_ns().is_some_and(|now| next.first_ns > now) {
                return;
            }
            let Some(Upcoming { path, input, .. }) = self.upcoming.pop_front() else {
                return;
            };
            let Sources { format, stop, .. } = &self.sources;
            let capture = match Capture::open_until(&path, *format, stop) {
                Ok(capture) => capture,
                // What it says is not of the input.
                Err(_) if stop.is_set() => return,
                Err(error) => {
                    self.inputs[input].error = Some(error);
                    continue;
                }
            };
            let left = MAX_DECODE_THREADS.saturating_sub(self.open.len());
            let threads = self.sources.threads.min(left);
            let mut feed = Feed::start(self.scope, input, capture, &self.maker, threads);
            self.inputs[input].container = Some(feed.container.clone());
            if self.refill(&mut feed) {
                self.open.push(feed);
            }
        }
    }

    /// Gets the feed's next batch; false if it is at its end.
    fn refill(&mut self, feed: &mut Feed<M>) -> bool {
        let result = &mut self.inputs[feed.input];
        match feed.refill() {
            Ok(true) => return true,
            Ok(false) => {}
            Err(_) if self.sources.stop.is_set() => {}
            Err(error) => result.error = Some(error),
        }
        result.packets = feed.packets;
        self.bytes_done += feed.bytes_read();
        false
    }

    /// Time of the earliest packet at hand.
    pub(crate) fn first_ns(&self) -> Option<i64> {
        self.open.iter().map(Feed::next_ns).min()
    }

    /// Hands all packets to the taker; true if the reading was ended before the inputs were. If the taker
    /// panics, the run ends there.
    pub(crate) fn drain_into(
        &mut self,
        taker: &mut impl Taker<M::Batch>,
        watch: &dyn Watch,
    ) -> Result<bool, Stop> {
        let mut batches = 0_u32;
        loop {
            // What was read before the flag was set is taken still: then the readers end, and the loop.
            self.open_due();
            let Some(earliest) = self.earliest() else {
                return Ok(self.sources.stop.is_set());
            };
            let limit = self.limit(earliest);
            let feed = &mut self.open[earliest];
            let before = M::Batch::taken(&feed.cursor);
            let times_ns = feed.batch.times_ns();
            let end = match limit {
                None => times_ns.len(),
                Some(limit) => (before + 1..times_ns.len())
                    .find(|&i| times_ns[i] > limit)
                    .unwrap_or(times_ns.len()),
            };
            guarded(|| taker.take(&feed.batch, &mut feed.cursor, end)).map_err(|gone| {
                let path = &self.inputs[feed.input].path;
                gone.at(path, feed.packets, (end - before) as u64)
            })??;
            let taken = (M::Batch::taken(&feed.cursor) - before) as u64;
            feed.packets += taken;
            self.packets += taken;
            if feed.is_drained() {
                let mut feed = self.open.swap_remove(earliest);
                if self.refill(&mut feed) {
                    self.open.push(feed);
                }
                batches += 1;
                if batches.is_multiple_of(BATCHES_A_WORD) {
                    let open: u64 = self.open.iter().map(Feed::bytes_read).sum();
                    watch.progress(self.bytes_done + open, self.packets);
                }
            }
        }
    }

    /// The open feed with the earliest next packet; of equal ones the input that was given first.
    fn earliest(&self) -> Option<usize> {
        (0..self.open.len()).min_by_key(|&i| (self.open[i].next_ns(), self.open[i].input))
    }

    /// Up to which time the feed may go on alone: another input has a packet then.
    fn limit(&self, feed: usize) -> Option<i64> {
        let input = self.open[feed].input;
        let others = self.open.iter().filter(|other| other.input != input);
        // Of equal times the input given first goes first.
        let others = others.map(|other| {
            let next = other.next_ns();
            if other.input < input {
                next.saturating_sub(1)
            } else {
                next
            }
        });
        let upcoming = self
            .upcoming
            .front()
            .map(|next| next.first_ns.saturating_sub(1));
        others.chain(upcoming).min()
    }
}

/// Inputs sorted by the time of their first packet. One of which it is not known is opened first: then
/// it tells its packets, or its error, at once.
fn in_time_order(format: InputFormat, inputs: &[InputResult]) -> VecDeque<Upcoming> {
    let alone = inputs.len() == 1;
    let upcoming = inputs.iter().enumerate().map(|(input, result)| {
        let path = result.path.clone();
        // One input needs no order.
        let first_ns = if alone || !is_readable_twice(&path) {
            None
        } else {
            first_time_ns(&path, format).ok().flatten()
        };
        Upcoming {
            path,
            input,
            first_ns: first_ns.unwrap_or(i64::MIN),
        }
    });
    let mut upcoming: Vec<Upcoming> = upcoming.collect();
    upcoming.sort_by_key(|input| input.first_ns);
    upcoming.into()
}

/// Whether the input can be looked into, closed, and opened again: what came out of a pipe is gone.
fn is_readable_twice(path: &Path) -> bool {
    path != Path::new("-") && fs::metadata(path).is_ok_and(|data| data.is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use std::thread;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/generated.pcap");

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

    struct TimesOnly;

    impl Maker for TimesOnly {
        type Batch = Times;

        fn make(&self, batch: TraceBatch<'_>, out: &mut Times) {
            if let TraceBatch::Packets { packets, .. } = batch {
                out.0.extend(packets.iter().map(|packet| packet.time_ns));
            }
        }
    }

    struct NobodyWatches;

    impl Watch for NobodyWatches {
        fn progress(&self, _: u64, _: u64) {}
    }

    /// Panics when it has more packets than this.
    struct Trap {
        seen: usize,
        most: usize,
    }

    impl Taker<Times> for Trap {
        fn take(&mut self, _: &Times, cursor: &mut usize, end: usize) -> Result<(), Stop> {
            self.seen += end - *cursor;
            assert!(self.seen <= self.most, "the trap");
            *cursor = end;
            Ok(())
        }
    }

    #[test]
    fn a_taker_that_panics_is_an_error_that_names_its_packets_and_no_hang() {
        for threads in [0, 1, 3] {
            let sources = Sources {
                format: InputFormat::Auto,
                threads,
                stop: StopFlag::default(),
            };
            let mut inputs = unread(&[PATH.into()]);
            let mut trap = Trap {
                seen: 0,
                most: 6_000,
            };
            let stopped = thread::scope(|scope| {
                Merge::start(scope, sources, TimesOnly, &mut inputs)
                    .drain_into(&mut trap, &NobodyWatches)
            });
            let Err(Stop::Broken(broken)) = stopped else {
                panic!("the panic was not told");
            };
            let last = broken.first + broken.others;
            assert!((broken.first..=last).contains(&6_001), "{broken}");
            assert_eq!(last, trap.seen as u64);
            let sentence = broken.to_string();
            for part in ["generated.pcap: packet ", "the trap", "please report"] {
                assert!(sentence.contains(part), "{sentence}");
            }
        }
    }
}
