//! The run: open the inputs in the order of time, merge them, and let the sequencer have them.

use super::collector::Collector;
use super::feed::{Feed, Upcoming};
use super::plan::{CountPlan, PlanError};
use super::results::{CountSummary, InputResult, SliceSink, Totals, Watch};
use super::sequencer::{Sequencer, Stop};
use super::shard::ShardSpec;
use super::time_slice::SliceGrid;
use super::traffic::Traffic;
use super::workers::Shards;
use crate::elements::Extractor;
use crate::filters::MembershipFilter;
use crate::filters::saved::SavedFilter;
use crate::hashing::Digester;
use crate::trace::{Capture, first_time_ns};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, Scope};

/// Inputs that overlap in time and are decoded by a thread each; further ones are decoded by the
/// sequencer's thread.
const MAX_DECODE_THREADS: usize = 64;

/// Batches between two words of progress: about a millisecond.
const BATCHES_A_WORD: u32 = 32;

/// Filters that outlive their slice, in the order of their shards.
type Kept = Vec<Box<dyn MembershipFilter>>;

/// Why there is no result at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The slices could not be handed on.
    #[error("the results could not be written: {0}")]
    Sink(#[source] io::Error),
}

/// Counts the distinct elements of each time slice of the inputs, which are one trace in time order.
///
/// The slices go to `sink`. Damaged inputs are no error: their packets up to the damage count, and
/// [`InputResult::error`] says what happened.
///
/// # Errors
///
/// The plan does not hold, or the sink failed.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count(
    plan: &CountPlan,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<CountSummary, RunError> {
    Ok(count_and_more(plan, None, None, sink, watch)?.0)
}

/// Counts as [`count`] does, and keeps the filter of the only slice.
///
/// # Errors
///
/// As for [`count`]; the plan has several slices or no filter.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count_and_keep(
    plan: &CountPlan,
    label: Vec<u8>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<(CountSummary, SavedFilter), RunError> {
    let (summary, kept) = count_and_more(plan, Some(label), None, sink, watch)?;
    Ok((
        summary,
        kept.expect("a filter is kept where there is a label"),
    ))
}

/// Counts as [`count`] does; keeps the filter of the only slice if there is a `label` for it, and adds
/// all packets to the `traffic` if that is wanted.
///
/// # Errors
///
/// As for [`count`]; with a label, the plan has several slices or no filter.
///
/// # Panics
///
/// If a worker thread panicked.
pub fn count_and_more(
    plan: &CountPlan,
    label: Option<Vec<u8>>,
    traffic: Option<&mut Traffic>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
) -> Result<(CountSummary, Option<SavedFilter>), RunError> {
    let Some(label) = label else {
        return Ok((count_with(plan, traffic, sink, watch, false)?.0, None));
    };
    let spec = plan.kept_filter()?.shard.clone();
    let (summary, filters) = count_with(plan, traffic, sink, watch, true)?;
    let kept = if filters.is_empty() {
        // There was no packet, so there was no slice.
        SavedFilter::empty(spec, plan.seed, label, plan.shards as usize)
    } else {
        SavedFilter::of_shards(spec, plan.seed, label, filters)
    };
    Ok((summary, Some(kept.map_err(PlanError::from)?)))
}

fn count_with(
    plan: &CountPlan,
    traffic: Option<&mut Traffic>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
    keep: bool,
) -> Result<(CountSummary, Kept), RunError> {
    plan.check()?;
    let mut inputs: Vec<InputResult> = plan
        .inputs
        .iter()
        .map(|path| InputResult {
            path: path.clone(),
            container: None,
            packets: 0,
            error: None,
        })
        .collect();
    let upcoming = in_time_order(plan, &inputs);
    let (totals, kept) = thread::scope(|scope| {
        run(
            scope,
            plan,
            upcoming,
            &mut inputs,
            traffic,
            sink,
            watch,
            keep,
        )
    })?;
    Ok((CountSummary { inputs, totals }, kept))
}

#[expect(
    clippy::too_many_arguments,
    reason = "it is the one place where all of them meet"
)]
fn run<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &CountPlan,
    upcoming: VecDeque<Upcoming>,
    inputs: &mut [InputResult],
    traffic: Option<&mut Traffic>,
    sink: &mut dyn SliceSink,
    watch: &dyn Watch,
    keep: bool,
) -> Result<(Totals, Kept), RunError> {
    let extractor = Extractor::new(
        plan.rule.clone(),
        plan.tunnel,
        Digester::new(plan.seed),
        plan.filter
            .as_ref()
            .is_some_and(|filter| filter.shard.needs_attributes()),
        plan.exact_limit_bytes.is_some(),
    );
    let mut merge = Merge {
        scope,
        plan,
        extractor: Arc::new(match traffic {
            Some(_) => extractor.with_addresses(),
            None => extractor,
        }),
        traffic,
        upcoming,
        open: Vec::new(),
        inputs,
        bytes_done: 0,
    };
    merge.open_due();
    let first_ns = merge.first_ns().unwrap_or(0);
    let grid = SliceGrid::new(plan.slicing.width_ns, plan.slicing.align, first_ns);
    let bounds = move |index| grid.bounds(index);
    let spec = ShardSpec {
        filter: plan.filter.as_ref().map(|filter| filter.shard.clone()),
        exact_limit_bytes: plan.exact_set_limit(),
        open_slices: plan.open_slices(),
        keep,
    };
    let shards = plan.shards as usize;
    // One thread decodes, one merges and slices; with two, the second serves the shards as well.
    let workers = plan.threads.saturating_sub(2);
    let mut sequencer = Sequencer::new(
        grid,
        plan.slicing.width_ns.is_none(),
        plan.open_slices(),
        plan.attributes(),
        shards,
        Shards::start(scope, &spec, shards, workers),
        Collector::new(sink, shards, &spec.empty_tally(), &bounds),
    );
    merge
        .drain_into(&mut sequencer, watch)
        .and_then(|()| sequencer.finish())
        .map_err(|stop| match stop {
            Stop::Sink(error) => RunError::Sink(error),
            Stop::Worker => panic!("a shard's thread ended before its work did"),
        })
}

/// Inputs sorted by the time of their first packet. One of which it is not known is opened first: then
/// it tells its packets, or its error, at once.
fn in_time_order(plan: &CountPlan, inputs: &[InputResult]) -> VecDeque<Upcoming> {
    let alone = inputs.len() == 1;
    let upcoming = inputs.iter().enumerate().map(|(input, result)| {
        let path = result.path.clone();
        // One input needs no order.
        let first_ns = if alone || !is_readable_twice(&path) {
            None
        } else {
            first_time_ns(&path, plan.input_format).ok().flatten()
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

/// The open inputs, from which the earliest packet is always taken next.
struct Merge<'scope, 'env, 'run> {
    scope: &'scope Scope<'scope, 'env>,
    plan: &'run CountPlan,
    extractor: Arc<Extractor>,
    /// Who sent packets to whom, if that is wanted.
    traffic: Option<&'run mut Traffic>,
    upcoming: VecDeque<Upcoming>,
    open: Vec<Feed>,
    inputs: &'run mut [InputResult],
    bytes_done: u64,
}

impl Merge<'_, '_, '_> {
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
            let capture = match Capture::open(&path, self.plan.input_format) {
                Ok(capture) => capture,
                Err(error) => {
                    self.inputs[input].error = Some(error);
                    continue;
                }
            };
            let threaded = self.plan.threads > 1 && self.open.len() < MAX_DECODE_THREADS;
            let mut feed = Feed::start(self.scope, input, capture, &self.extractor, threaded);
            self.inputs[input].container = Some(feed.container.clone());
            if self.refill(&mut feed) {
                self.open.push(feed);
            }
        }
    }

    /// Gets the feed's next batch; false if it is at its end.
    fn refill(&mut self, feed: &mut Feed) -> bool {
        let result = &mut self.inputs[feed.input];
        match feed.refill() {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => result.error = Some(error),
        }
        result.packets = feed.packets;
        self.bytes_done += feed.bytes_read();
        false
    }

    /// Time of the earliest packet at hand.
    fn first_ns(&self) -> Option<i64> {
        self.open.iter().map(Feed::next_ns).min()
    }

    fn drain_into(&mut self, sequencer: &mut Sequencer<'_>, watch: &dyn Watch) -> Result<(), Stop> {
        let mut batches = 0_u32;
        loop {
            self.open_due();
            let Some(earliest) = self.earliest() else {
                return Ok(());
            };
            let limit = self.limit(earliest);
            let feed = &mut self.open[earliest];
            let end = match limit {
                None => feed.batch.times_ns.len(),
                Some(limit) => (feed.cursor.packet + 1..feed.batch.times_ns.len())
                    .find(|&i| feed.batch.times_ns[i] > limit)
                    .unwrap_or(feed.batch.times_ns.len()),
            };
            if let Some(traffic) = &mut self.traffic {
                traffic.add(&feed.batch.addresses[feed.cursor.packet..end]);
            }
            let before = sequencer.packets();
            sequencer.take(&feed.batch, &mut feed.cursor, end)?;
            feed.packets += sequencer.packets() - before;
            if feed.is_drained() {
                let mut feed = self.open.swap_remove(earliest);
                if self.refill(&mut feed) {
                    self.open.push(feed);
                }
                batches += 1;
                if batches.is_multiple_of(BATCHES_A_WORD) {
                    let open: u64 = self.open.iter().map(Feed::bytes_read).sum();
                    watch.progress(self.bytes_done + open, sequencer.packets());
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
