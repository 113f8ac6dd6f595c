//! Several inputs as one stream in the order of time; each is opened when its first packet is due.

use super::plan::DedupPlan;
use super::results::DedupInput;
use crate::guard::{Broken, WorkerGone, guarded};
use crate::trace::{
    Capture, Compression, RecordBatch, StopFlag, TraceBatch, TraceError, TraceErrorKind,
    first_time_ns,
};
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
    /// batch that they stand in; false at the end of all inputs. If `see` panics, that is an error.
    pub(super) fn next<E: From<Broken>>(
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
        let result = &mut self.inputs[input];
        guarded(|| see(input, &batch, range.clone()))
            .map_err(|gone| gone.at(&result.path, result.packets, count as u64))??;
        result.packets += count as u64;
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
    let batch = match guarded(|| open.capture.next_batch()) {
        Ok(batch) => batch,
        // The reader panicked: what it holds is not to be used any more.
        Err(WorkerGone(reason)) => {
            let packet = result.packets + 1;
            result.error = Some(TraceError {
                path: result.path.clone(),
                offset: None,
                kind: TraceErrorKind::Undecodable {
                    packet,
                    lost_from: packet,
                    reason,
                },
            });
            return false;
        }
    };
    match batch {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::{Difference, Sameness, SieveKind, WindowWidth};
    use crate::trace::InputFormat;
    use std::io::{self, Cursor, Read};
    use std::path::PathBuf;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/generated.pcap");

    fn plan() -> DedupPlan {
        DedupPlan {
            inputs: vec![PathBuf::from(PATH)],
            input_format: InputFormat::Auto,
            by: Sameness::Packet,
            distinguish: Difference::default(),
            window: WindowWidth::Packets(5),
            filter: SieveKind::Rotating,
            approximate: false,
            memory_bytes: 1 << 20,
            slice_ns: None,
            seed: Some(0),
        }
    }

    #[test]
    fn a_decision_that_panics_is_an_error_that_names_its_packets() {
        let mut merge = Merge::new(&plan(), StopFlag::default());
        let trap = 6000;
        let mut seen = 0;
        let broken = loop {
            let step = merge.next(|_, _, range| {
                let before = seen;
                seen += range.len();
                assert!(!(before..seen).contains(&trap), "the trap");
                Ok::<(), Broken>(())
            });
            match step {
                Ok(more) => assert!(more, "the panic was not told"),
                Err(broken) => break broken,
            }
        };
        let (first, last) = (broken.first, broken.first + broken.others);
        assert!((first..=last).contains(&(trap as u64 + 1)), "{broken}");
        assert!(broken.others < 1024 && last == seen as u64, "{broken}");
        assert_eq!(merge.inputs[0].packets + 1, first);
        let sentence = broken.to_string();
        for part in ["generated.pcap: packet ", "the trap", "please report"] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    /// Panics where the bytes end.
    struct Trap(Cursor<Vec<u8>>);

    impl Read for Trap {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(out)?;
            assert!(read > 0, "the trap");
            Ok(read)
        }
    }

    #[test]
    fn a_reader_that_panics_ends_its_input_with_an_error() {
        let mut bytes = fs::read(PATH).unwrap();
        bytes.truncate(bytes.len() - 1);
        let source = Box::new(Trap(Cursor::new(bytes)));
        let capture = Capture::from_reader(Path::new(PATH), source, InputFormat::Auto).unwrap();
        let mut merge = Merge::new(&plan(), StopFlag::default());
        merge.upcoming.clear();
        let mut open = Open {
            input: 0,
            capture,
            at: 0,
        };
        assert!(refill(&mut open, &mut merge.inputs[0], &merge.stop));
        merge.open.push(open);
        while merge.next(|_, _, _| Ok::<(), Broken>(())).unwrap() {}
        let input = &merge.inputs[0];
        let error = input.error.as_ref().unwrap().to_string();
        // The last of 8000 packets is cut, and what was read with it may be lost.
        assert!((1..8000).contains(&input.packets), "{}", input.packets);
        let place = format!(
            "packet {} could not be decoded (the trap)",
            input.packets + 1
        );
        assert!(error.contains(&place), "{error}");
    }
}
