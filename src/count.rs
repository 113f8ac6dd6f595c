//! A count in a few calls. Everything you do not set has the default of the command line. Its rows as
//! an iterator: the count runs in its own thread and waits while nobody takes rows.

use crate::decode::Tunnel;
#[cfg(doc)]
use crate::elements::ElementKind;
use crate::elements::ElementRule;
use crate::filters::{FilterKind, Sizing, SlidingBitmap, Structure};
use crate::pipeline::{
    Align, CountExtras, CountPlan, CountSummary, CounterChoice, PlanError, RunError, SliceResult,
    SliceSink, Slicing, count,
};
use crate::plan::TracePlan;
use crate::selection::Selection;
use crate::trace::{InputFormat, Source, StopFlag};
use flowsieve_engine::internal::spawn;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shards by default: enough for the threads of a large machine.
const DEFAULT_SHARDS: u32 = 8;

/// Memory of a shard's filter, below which there are fewer shards.
const LEAST_SHARD_BYTES: u64 = 512;

/// Bytes of the filters of a slice by default.
pub(crate) const DEFAULT_MEMORY_BYTES: u64 = 256 << 10;

/// Bytes of the exact count by default.
const DEFAULT_EXACT_BYTES: u64 = 4 << 30;

/// A count that is being described.
///
/// ```
/// use flowsieve::{Count, elements::ElementKind};
/// use std::time::Duration;
///
/// let counted = Count::of(["traces/generated.pcap"])
///     .element(ElementKind::FLOW)
///     .slice(Duration::from_secs(2))
///     .memory(16 << 10)
///     .run()?;
/// assert_eq!(counted.slices.len(), 4);
/// assert_eq!(counted.summary.totals.packets, 8_000);
/// # Ok::<(), flowsieve::pipeline::RunError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Count {
    trace: TracePlan,
    rule: ElementRule,
    slicing: Slicing,
    every: Option<Duration>,
    structure: Option<Structure>,
    memory_bytes: u64,
    fpr: Option<f64>,
    expected: Option<u64>,
    exact_limit_bytes: Option<u64>,
    seed: u64,
    shards: Option<u32>,
}

impl Count {
    /// Describes a count of these captures, which are one trace in the order of time: paths, or a
    /// [`Source`] of any reader.
    pub fn of(inputs: impl IntoIterator<Item = impl Into<Source>>) -> Self {
        Self {
            trace: TracePlan::new(inputs),
            rule: ElementRule::default(),
            slicing: Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch },
            every: None,
            structure: None,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            fpr: None,
            expected: None,
            exact_limit_bytes: Some(DEFAULT_EXACT_BYTES),
            seed: 0,
            shards: None,
        }
    }

    /// Sets the element: a kind, or a kind with more choices; [host pairs](ElementKind::HOST_PAIR) by
    /// default.
    pub fn element(mut self, rule: impl Into<ElementRule>) -> Self {
        self.rule = rule.into();
        self
    }

    /// The innermost IP header of a tunnel counts, and not the outermost.
    pub fn inner_header(mut self) -> Self {
        self.trace.headers.tunnel = Tunnel::Inner;
        self
    }

    /// DNS messages are looked for on this port, too, and not on port 53 alone.
    pub fn dns_port(mut self, port: u16) -> Self {
        self.trace.headers.dns_ports.push(port);
        self
    }

    /// TSH files, which cannot be recognised.
    pub fn input_format(mut self, format: InputFormat) -> Self {
        self.trace.input_format = format;
        self
    }

    /// Only some of the packets take part.
    ///
    /// ```
    /// use flowsieve::{Count, selection::{Selection, TimeBound}};
    ///
    /// let first_two_seconds = Selection {
    ///     to: Some(TimeBound::AfterStart(2_000_000_000)),
    ///     ..Selection::default()
    /// };
    /// let counted = Count::of(["traces/generated.pcap"]).only(first_two_seconds).run()?;
    /// let [input] = &counted.summary.inputs[..] else { unreachable!("there is one") };
    /// assert_eq!(input.packets + input.left_out, 8_000);
    /// # Ok::<(), flowsieve::pipeline::RunError>(())
    /// ```
    pub fn only(mut self, selection: Selection) -> Self {
        self.trace.selection = selection;
        self
    }

    /// Width of a time slice; 1 second by default.
    pub fn slice(mut self, width: Duration) -> Self {
        self.slicing.width_ns = Some(nanoseconds(width));
        self
    }

    /// Windows slide: one ends at each multiple of this duration, of which the width of a slice is
    /// a multiple, and counts what came in that width before its end. Only the exact set and a
    /// bitmap of its own can count them, so no filter is chosen.
    ///
    /// ```
    /// use flowsieve::Count;
    /// use std::time::Duration;
    ///
    /// let counted = Count::of(["traces/generated.pcap"])
    ///     .slice(Duration::from_secs(4))
    ///     .every(Duration::from_secs(1))
    ///     .run()?;
    /// let [.., last] = &counted.slices[..] else { unreachable!("there are eight") };
    /// assert_eq!((counted.slices.len(), last.packets), (8, 4_000));
    /// # Ok::<(), flowsieve::pipeline::RunError>(())
    /// ```
    pub fn every(mut self, step: Duration) -> Self {
        self.every = Some(step);
        self
    }

    /// One slice for everything.
    pub fn one_slice(mut self) -> Self {
        self.slicing.width_ns = None;
        self
    }

    /// Slices begin with the first packet, and not at multiples of their width since the epoch.
    pub fn from_first_packet(mut self) -> Self {
        self.slicing.align = Align::First;
        self
    }

    /// The filter that counts, or [another structure](Structure); [`FilterKind::Subset`] by
    /// default.
    pub fn filter(mut self, structure: impl Into<Structure>) -> Self {
        self.structure = Some(structure.into());
        self
    }

    /// Bytes of the filters of a slice; 256 KiB by default.
    pub fn memory(mut self, bytes: u64) -> Self {
        (self.memory_bytes, self.fpr) = (bytes, None);
        self
    }

    /// The filter is as small as it may be for this false-positive rate at this many elements a
    /// slice.
    pub fn rate(mut self, fpr: f64, expected: u64) -> Self {
        (self.fpr, self.expected) = (Some(fpr), Some(expected));
        self
    }

    /// Distinct elements that a slice is expected to have: by them the number of hash functions is
    /// chosen.
    pub fn expect(mut self, elements: u64) -> Self {
        self.expected = Some(elements);
        self
    }

    /// Bytes that the exact count may take; 4 GiB by default.
    pub fn exact_limit(mut self, bytes: u64) -> Self {
        self.exact_limit_bytes = Some(bytes);
        self
    }

    /// Does without the exact count: memory stays small for any traffic.
    pub fn without_exact(mut self) -> Self {
        self.exact_limit_bytes = None;
        self
    }

    /// Seed of the hash functions; 0 by default. With a random one nobody can craft traffic that
    /// collides.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Partitions of the elements with a filter each, which are part of the result: 8 by default
    /// for [`FilterKind::Subset`] and the exact set, else 1, as published.
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Threads, on which only speed depends; by default all that there are.
    pub fn threads(mut self, threads: usize) -> Self {
        self.trace.threads = threads.max(1);
        self
    }

    /// Rows of a stream, such as a pipe, are handed on so long after the end of their slice, in
    /// capture time, and once more if packets come for them later ([`SliceResult::revised`]).
    /// Otherwise all rows come at the end, as those of files do.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.trace.delay_ns = Some(nanoseconds(delay));
        self
    }

    /// Everything that the count depends on. If the range of time is relative to the captures, they
    /// are opened for a look.
    ///
    /// # Errors
    ///
    /// Choices that do not go together.
    pub fn plan(&self) -> Result<CountPlan, PlanError> {
        let sizing = match (self.fpr, self.expected) {
            (Some(fpr), Some(expected)) => Sizing::Rate { fpr, expected },
            (_, expected) => Sizing::Memory { bytes: self.memory_bytes, expected },
        };
        let attributes = self.rule.kind.arity();
        let every_ns = self.every.map(nanoseconds);
        let mut trace = self.trace.clone();
        trace.resolve(&StopFlag::default())?;
        let panes = self.slicing.panes(every_ns)?;
        let (counter, shards) = counter(self.structure, panes, attributes, sizing, self.shards)?;
        let plan = CountPlan {
            trace,
            rule: self.rule.clone(),
            slicing: self.slicing,
            every_ns,
            counter,
            exact_limit_bytes: self.exact_limit_bytes,
            seed: self.seed,
            shards,
        };
        plan.check()?;
        Ok(plan)
    }

    /// Counts, and keeps all rows.
    ///
    /// # Errors
    ///
    /// Choices that do not go together. A damaged input is none: it is listed in
    /// [`CountSummary::inputs`].
    pub fn run(&self) -> Result<Counted, RunError> {
        let mut slices = Vec::new();
        let summary = self.run_into(&mut slices)?;
        Ok(Counted { slices, summary })
    }

    /// Counts in another thread, and returns the rows as they come.
    ///
    /// ```
    /// let mut rows = flowsieve::Count::of(["traces/generated.pcap"]).rows()?;
    /// let busy = rows.by_ref().filter(|second| second.elements > 900).count();
    /// let summary = rows.finish()?;
    /// assert_eq!((busy, summary.totals.packets), (8, 8_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Choices that do not go together.
    pub fn rows(&self) -> Result<CountRows, PlanError> {
        Ok(CountRows::begin(self.plan()?))
    }

    /// Counts, and hands each row on when its slice is over: for traces with more slices than there
    /// is memory.
    ///
    /// # Errors
    ///
    /// As [`Self::run`]; the sink failed.
    pub fn run_into(&self, sink: &mut dyn SliceSink) -> Result<CountSummary, RunError> {
        count(&self.plan()?, CountExtras::default(), sink, &())
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The counter of each shard, sized by the rules of its structure, and the number of shards, which
/// follows from the structure if it is not given. `panes` is how many panes a window has, if
/// windows slide.
pub(crate) fn counter(
    structure: Option<Structure>,
    panes: Option<u16>,
    attributes: usize,
    sizing: Sizing,
    shards: Option<u32>,
) -> Result<(Option<CounterChoice>, u32), PlanError> {
    let structure = match (structure, panes) {
        (Some(structure), _) => structure,
        (None, None) => Structure::Filter(FilterKind::Subset),
        (None, Some(panes)) => {
            // The counts of the panes, which each shard has, take at most a quarter of the memory.
            let fitting = match sizing {
                Sizing::Memory { bytes, .. } => {
                    let least = SlidingBitmap::least_bytes(panes);
                    bytes / least.max(4 * SlidingBitmap::pane_bytes(panes))
                }
                Sizing::Rate { .. } => 1,
            };
            let fitting = fitting.clamp(1, DEFAULT_SHARDS.into()) as u32;
            let shards = shards.unwrap_or(fitting);
            return Ok((Some(CounterChoice::sliding(sizing, panes, shards)?), shards));
        }
    };
    let shards = shards.unwrap_or(match (structure, sizing) {
        // As many as have room to be halved often.
        (Structure::Filter(FilterKind::Subset), Sizing::Memory { bytes, .. }) => {
            (bytes / LEAST_SHARD_BYTES).clamp(1, DEFAULT_SHARDS.into()) as u32
        }
        (Structure::Exact | Structure::Filter(FilterKind::Subset), _) => DEFAULT_SHARDS,
        _ => 1,
    });
    let counter = match structure {
        Structure::Exact => None,
        Structure::Hll | Structure::Ell => {
            Some(CounterChoice::registers(structure, sizing, shards)?)
        }
        Structure::Filter(kind) => Some(CounterChoice::filter(kind, attributes, sizing, shards)?),
    };
    Ok((counter, shards))
}

/// The result of a count.
#[derive(Debug)]
pub struct Counted {
    /// The slices, in the order of time.
    pub slices: Vec<SliceResult>,
    /// The inputs as they were read, and totals.
    pub summary: CountSummary,
}

impl Counted {
    /// The slices, in the order of time.
    pub fn iter(&self) -> std::slice::Iter<'_, SliceResult> {
        self.slices.iter()
    }
}

impl IntoIterator for Counted {
    type Item = SliceResult;
    type IntoIter = std::vec::IntoIter<SliceResult>;

    fn into_iter(self) -> Self::IntoIter {
        self.slices.into_iter()
    }
}

impl<'a> IntoIterator for &'a Counted {
    type Item = &'a SliceResult;
    type IntoIter = std::slice::Iter<'a, SliceResult>;

    fn into_iter(self) -> Self::IntoIter {
        self.slices.iter()
    }
}

/// Rows that may wait.
const AHEAD: usize = 64;

/// The slices of a count in the order of time, each as soon as it is over. Made by
/// [`Count::rows`](crate::Count::rows).
///
/// It ends early if the run fails; [`Self::finish`] says why. Dropping it ends the count.
#[derive(Debug)]
pub struct CountRows {
    /// Those that were not taken yet.
    rows: Option<Receiver<SliceResult>>,
    run: Option<Run>,
}

type Outcome = Result<CountSummary, RunError>;

#[derive(Debug)]
enum Run {
    Thread(JoinHandle<Option<Outcome>>),
    Over(Box<Outcome>),
}

impl CountRows {
    pub(crate) fn begin(plan: CountPlan) -> Self {
        let (sender, rows) = sync_channel(AHEAD);
        let run = |(plan, mut sender): (CountPlan, Sender)| {
            count(&plan, CountExtras::default(), &mut sender, &())
        };
        if let Some(thread) = spawn("count", 0, run) {
            let run = Run::Thread(thread.begin((plan, Sender(sender))));
            return Self { rows: Some(rows), run: Some(run) };
        }
        // There is no thread to be had: all rows wait.
        let mut all = Vec::new();
        let run = count(&plan, CountExtras::default(), &mut all, &());
        let (sender, rows) = sync_channel(all.len());
        for row in all {
            sender.send(row).expect("there is room for all");
        }
        Self { rows: Some(rows), run: Some(Run::Over(Box::new(run))) }
    }

    /// Returns the inputs as they were read, and totals. Rows that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// The run failed.
    ///
    /// # Panics
    ///
    /// If the run panicked, which is a mistake in flowsieve.
    pub fn finish(mut self) -> Result<CountSummary, RunError> {
        self.by_ref().for_each(drop);
        match self.run.take().expect("taken here only") {
            Run::Thread(run) => {
                let outcome = run.join().expect("a run turns panics into errors");
                outcome.expect("it has a plan")
            }
            Run::Over(outcome) => *outcome,
        }
    }
}

impl Iterator for CountRows {
    type Item = SliceResult;

    fn next(&mut self) -> Option<SliceResult> {
        self.rows.as_ref()?.recv().ok()
    }
}

impl Drop for CountRows {
    fn drop(&mut self) {
        // The next row finds nobody; then the run ends.
        self.rows = None;
        if let Some(Run::Thread(run)) = self.run.take() {
            drop(run.join());
        }
    }
}

struct Sender(SyncSender<SliceResult>);

impl SliceSink for Sender {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the rows any more");
        self.0.send(slice.clone()).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::Count;

    const PATH: &str = "traces/generated.pcap";

    /// Slices of a millisecond: far more than may wait.
    fn many() -> Count {
        Count::of([PATH]).slice(std::time::Duration::from_millis(1))
    }

    #[test]
    fn rows_are_those_of_a_run() {
        let counted = many().run().unwrap();
        let mut rows = many().rows().unwrap();
        assert_eq!(rows.by_ref().collect::<Vec<_>>(), counted.slices);
        assert_eq!(rows.finish().unwrap().totals, counted.summary.totals);
    }

    #[test]
    fn a_count_whose_rows_nobody_takes_ends() {
        let mut rows = many().rows().unwrap();
        assert!(rows.next().is_some());
        // It waits for its thread, which must not wait for a place for its rows.
        drop(rows);
        let totals = many().rows().unwrap().finish().unwrap().totals;
        assert_eq!(totals.packets, 8_000);
    }

    #[test]
    fn the_end_says_what_became_of_the_inputs() {
        let mut rows = Count::of(["missing.pcap"]).rows().unwrap();
        assert_eq!(rows.next(), None);
        let summary = rows.finish().unwrap();
        assert!(summary.inputs[0].error.is_some());
    }
}
