//! Several inputs as one stream in the order of time; each is opened when its first packet is due.

use super::plan::DedupPlan;
use super::results::DedupInput;
use crate::trace::{Capture, Compression, RecordBatch, StopFlag, TraceBatch, first_time_ns};
use std::collections::VecDeque;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The inputs.
#[derive(Debug)]
pub(super) struct Merge {
    upcoming: VecDeque<Upcoming>,
    open: Vec<Open>,
    /// What became of them.
    pub(super) inputs: Vec<DedupInput>,
    plan: DedupPlan,
    /// Ends the reading.
    stop: StopFlag,
    bytes_done: u64,
}

#[derive(Debug)]
struct Upcoming {
    input: usize,
    /// Time of its first packet.
    first_ns: i64,
}

/// An input that is being read, and how far its present batch is used.
#[derive(Debug)]
struct Open {
    input: usize,
    capture: Capture,
    at: usize,
}

impl Open {
    fn next_ns(&self) -> i64 {
        self.capture.record_batch().packets[self.at].time_ns
    }
}

impl Merge {
    pub(super) fn new(plan: &DedupPlan, stop: StopFlag) -> Self {
        let inputs = plan.inputs.iter().map(|path| DedupInput {
            path: path.clone(),
            container: None,
            packets: 0,
            error: None,
            is_log: false,
        });
        let alone = plan.inputs.len() == 1;
        let upcoming = plan.inputs.iter().enumerate().map(|(input, path)| {
            // One input needs no order. One of which the time is not known is opened first.
            let first_ns = if alone || !is_readable_twice(path) {
                None
            } else {
                first_time_ns(path, plan.input_format).ok().flatten()
            };
            Upcoming {
                input,
                first_ns: first_ns.unwrap_or(i64::MIN),
            }
        });
        let mut upcoming: Vec<Upcoming> = upcoming.collect();
        upcoming.sort_by_key(|input| input.first_ns);
        Self {
            upcoming: upcoming.into(),
            open: Vec::new(),
            inputs: inputs.collect(),
            plan: plan.clone(),
            stop,
            bytes_done: 0,
        }
    }

    /// Hands the packets that come next, all of one input, to `see`, with the input's number and the
    /// batch that they stand in; false at the end of all inputs.
    pub(super) fn next<E>(
        &mut self,
        see: impl FnOnce(usize, &RecordBatch<'_>, Range<usize>) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.open_due();
        let earliest = (0..self.open.len())
            .min_by_key(|&index| (self.open[index].next_ns(), self.open[index].input));
        let Some(index) = earliest else {
            return Ok(false);
        };
        let limit = self.limit(index);
        let open = &mut self.open[index];
        let batch = open.capture.record_batch();
        let ahead = &batch.packets[open.at..];
        let count = limit.map_or(ahead.len(), |limit| {
            let count = ahead.iter().take_while(|packet| packet.time_ns <= limit);
            count.count().max(1)
        });
        let range = open.at..open.at + count;
        let (used_up, input) = (range.end == batch.packets.len(), open.input);
        see(input, &batch, range.clone())?;
        self.inputs[input].packets += count as u64;
        open.at = range.end;
        if used_up && !refill(open, &mut self.inputs[input], &self.stop) {
            self.bytes_done += open.capture.bytes_read().load(Ordering::Relaxed);
            self.open.remove(index);
        }
        Ok(true)
    }

    /// Opens every input whose first packet is not later than the earliest one at hand, and at least
    /// one while there are any.
    fn open_due(&mut self) {
        while let Some(next) = self.upcoming.front() {
            let now = self.open.iter().map(Open::next_ns).min();
            if now.is_some_and(|now| next.first_ns > now) {
                return;
            }
            let Some(Upcoming { input, .. }) = self.upcoming.pop_front() else {
                return;
            };
            let path = &self.inputs[input].path;
            let capture = match Capture::open_until(path, self.plan.input_format, &self.stop) {
                Ok(capture) => capture,
                // What it says is not of the input.
                Err(_) if self.stop.is_set() => return,
                Err(error) => {
                    self.inputs[input].error = Some(error);
                    continue;
                }
            };
            self.inputs[input].container = Some(match capture.compression() {
                Compression::None => capture.container().to_owned(),
                compression => format!("{} in {}", capture.container(), compression.name()),
            });
            let mut open = Open {
                input,
                capture,
                at: 0,
            };
            open.capture.keep_records();
            if refill(&mut open, &mut self.inputs[input], &self.stop) {
                self.open.push(open);
            }
        }
    }

    /// Up to which time an input may go on alone: another one has a packet then.
    fn limit(&self, index: usize) -> Option<i64> {
        let input = self.open[index].input;
        let others = self.open.iter().filter(|other| other.input != input);
        // Of equal times the input given first goes first.
        let others = others.map(|other| {
            other
                .next_ns()
                .saturating_sub(i64::from(other.input < input))
        });
        let upcoming = self.upcoming.front();
        let upcoming = upcoming.map(|next| next.first_ns.saturating_sub(1));
        others.chain(upcoming).min()
    }

    /// Whether the reading was ended.
    pub(super) fn is_interrupted(&self) -> bool {
        self.stop.is_set()
    }

    /// Bytes read of all inputs so far, as they are on disk.
    pub(super) fn bytes_read(&self) -> u64 {
        let open = self.open.iter().map(|open| open.capture.bytes_read());
        self.bytes_done + open.map(|bytes| bytes.load(Ordering::Relaxed)).sum::<u64>()
    }
}

/// Reads the next batch; false at the end.
fn refill(open: &mut Open, result: &mut DedupInput, stop: &StopFlag) -> bool {
    open.at = 0;
    match open.capture.next_batch() {
        Ok(Some(TraceBatch::Packets { .. })) => return true,
        Ok(Some(TraceBatch::DnsLog(_))) => result.is_log = true,
        Ok(None) => {}
        Err(_) if stop.is_set() => {}
        Err(error) => result.error = Some(error),
    }
    false
}

/// Whether the input can be looked into, closed, and opened again: what came out of a pipe is gone.
fn is_readable_twice(path: &Path) -> bool {
    path != Path::new("-") && fs::metadata(path).is_ok_and(|data| data.is_file())
}
