//! The evaluation: every structure of every size over the lists of the slices, once for each set of
//! hash functions.
//!
//! Replicate 0 has the digests of the trace, as a count with the same seed has them; the digests of
//! replicate i are those of replicate 0, hashed again. So no byte of an element is hashed twice.
//! Values with equal digests are one value in all replicates. 64 bits are enough for that: of n
//! values n²/2⁶⁵ pairs are expected to be equal, 0.0002 of the 80 million host pairs that the
//! default `--exact-limit` has room for at most.
//! A task is a slice and some replicates: a worker takes the slice block by block through all
//! structures, while the block is in its cache. Answers come back in the order of the tasks.

use super::designs::design;
use super::plan::ProbeRule;
use super::results::{
    Comparison, CountKind, Entry, Expected, ExpectedFrom, Negatives, QueryResult, Replicate,
};
use super::slice_list::{ClosedList, Collected};
use super::statistics::Rule;
use super::trial::{TRIAL_SEED, TRIAL_SEEDS, Trial};
use super::truth::Counted;
use super::worker::{Answer, Designs, Task, Worker};
use super::{ComparePlan, Contender};
use crate::filters::{CounterSpec, FilterSpec};
use crate::guard::{WorkerPanicked, catch_panic};
use crate::memory::{MEMORY_REFUSED, can_allocate};
use crate::threads::{MapWorker, OrderedWorkers};
use crate::trace::StopFlag;
use std::mem::replace;
use std::ops::Range;
use std::sync::Arc;
use std::thread::Scope;

/// Elements of a task, about: small slices have several replicates in one.
const TASK_ELEMENTS: usize = 1 << 14;

/// Tasks that are queued for a worker.
const TASKS: usize = 8;

/// Memory of a worker in addition to its structures.
const WORKER_BYTES: u64 = 1 << 20;

/// The state of an evaluation.
pub(super) struct Evaluation<'plan> {
    plan: &'plan ComparePlan,
    /// `None` if a worker in this thread does the tasks.
    workers: Option<OrderedWorkers<Task, Answer>>,
    worker: Worker,
    pub(super) comparison: Comparison,
    designs: Vec<Option<CounterSpec>>,
    /// Specifications of the running tasks.
    running: Designs,
}

impl<'plan> Evaluation<'plan> {
    /// Makes the structures for these slices and starts the workers.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: &'plan ComparePlan,
        slices: &[ClosedList],
        counted: &Counted,
        is_kept: bool,
    ) -> Result<Self, WorkerPanicked> {
        let values = slices.iter().map(|closed| &closed.slice);
        let values = values.filter(|slice| !slice.values.is_empty());
        let values = values.map(|slice| (slice.values.clone(), slice.floors.new_values));
        let expected = expected(values.collect(), plan.expected, counted);
        let mut sizes = plan.sizes.ascending(expected.elements);
        sizes.dedup();
        let is_planned = plan.contenders.contains(&Contender::Planned);
        let trial = is_planned.then(|| Trial::new(plan, slices, &expected, 1.0)).flatten();
        let (entries, designs) = entries(plan, &sizes, &expected, trial.as_ref());
        let bytes = designs.iter().flatten().map(CounterSpec::memory_bytes);
        let bytes = bytes.fold(WORKER_BYTES, u64::saturating_add);
        let threads = if plan.trace.threads > 1 { plan.trace.threads } else { 0 };
        let worker = Worker::default;
        let workers = OrderedWorkers::start_scoped(scope, "compare", threads, bytes, TASKS, worker);
        if workers.is_none() && !can_allocate(bytes) {
            return Err(WorkerPanicked(MEMORY_REFUSED.to_owned()));
        }
        let looks = plan.seeds.looks(is_kept);
        Ok(Self {
            plan,
            workers,
            worker: worker(),
            running: Arc::new(designs.clone()),
            designs,
            comparison: Comparison {
                asked: if plan.queries { plan.asked() } else { Vec::new() },
                expected,
                rule: Rule { looks: looks.len(), sizes: sizes.len(), margin: plan.margin },
                sizes,
                has_arrays: plan.sizes.are_arrays(),
                entries,
                looks,
                is_streamed: !is_kept,
                ..Comparison::default()
            },
        })
    }

    /// Runs slices through the structures, in these replicates, and lets `take` have the answers.
    fn run(
        &mut self,
        slices: &[ClosedList],
        first: usize,
        seeds: &Range<u32>,
        stop: Option<&StopFlag>,
        mut take: impl FnMut(&mut [Entry], Answer),
    ) -> Result<(), WorkerPanicked> {
        for (slice, closed) in slices.iter().enumerate().skip(first) {
            let Some(list) = &closed.list else { continue };
            if stop.is_some_and(StopFlag::is_set) {
                break;
            }
            let at_once = (TASK_ELEMENTS / list.whole.len().max(1)).clamp(1, 1 << 10);
            for start in seeds.clone().step_by(at_once) {
                let task = Task {
                    slice,
                    list: Arc::clone(list),
                    seeds: start..seeds.end.min(start + at_once as u32),
                    designs: Arc::clone(&self.running),
                    full: self.plan.rule.kind.all(),
                };
                // An answer to this task, or to an earlier one that has to be waited for.
                let answer = match &mut self.workers {
                    Some(workers) => workers.push(task).transpose()?,
                    None => Some(catch_panic(|| self.worker.map(task))?),
                };
                if let Some(answer) = answer {
                    take(&mut self.comparison.entries, answer);
                }
            }
        }
        for answer in self.workers.iter_mut().flatten() {
            take(&mut self.comparison.entries, answer?);
        }
        Ok(())
    }

    /// Runs the slices from number `first` on through all replicates, and forgets their lists.
    pub(super) fn run_streamed(
        &mut self,
        slices: &mut [ClosedList],
        first: usize,
    ) -> Result<(), WorkerPanicked> {
        if first == 0 {
            self.choose_probes(slices)?;
        }
        let seeds = 0..self.comparison.looks.last().copied().unwrap_or(1);
        self.run(slices, first, &seeds, None, add_answer)?;
        slices[first..].iter_mut().for_each(|closed| closed.list = None);
        Ok(())
    }

    /// Replaces the numbers of hash functions by those that lose least in a few replicates that are
    /// not judged, if that is asked: from the formula's number on, step by step.
    fn choose_probes(&mut self, slices: &[ClosedList]) -> Result<(), WorkerPanicked> {
        if self.plan.probes != ProbeRule::Best {
            return Ok(());
        }
        let mut best = self.errors_of(slices, self.designs.clone())?;
        // Both directions, until no structure gets better.
        for up in [true, false] {
            while self.change_probes(slices, up, &mut best)? {}
        }
        self.running = Arc::new(self.designs.clone());
        Ok(())
    }

    /// Gives each structure one hash function more, or fewer, where that lowers its `best` error;
    /// returns whether it did somewhere.
    fn change_probes(
        &mut self,
        slices: &[ClosedList],
        up: bool,
        best: &mut [f64],
    ) -> Result<bool, WorkerPanicked> {
        let specs = self.designs.iter().zip(&self.comparison.entries);
        let tried = specs.map(|(spec, entry)| {
            let (spec, probes) = (spec.as_ref()?.filter()?, entry.probes?);
            let probes = if up { probes + 1 } else { probes.checked_sub(1)? };
            Some(CounterSpec::Filter(spec.with_probes(probes).ok()??))
        });
        let tried: Vec<_> = tried.collect();
        let errors = self.errors_of(slices, tried.clone())?;
        let mut is_better = false;
        for (number, spec) in tried.into_iter().enumerate() {
            if spec.is_some() && errors[number] < best[number] {
                best[number] = errors[number];
                let filter = spec.as_ref().and_then(CounterSpec::filter);
                self.comparison.entries[number].probes = filter.map(FilterSpec::probes);
                self.designs[number] = spec;
                is_better = true;
            }
        }
        Ok(is_better)
    }

    /// Returns the mean errors of these designs in replicates that are not judged; infinity where
    /// there is none.
    fn errors_of(
        &mut self,
        slices: &[ClosedList],
        designs: Vec<Option<CounterSpec>>,
    ) -> Result<Vec<f64>, WorkerPanicked> {
        let mut sums: Vec<Option<f64>> =
            designs.iter().map(|spec| spec.as_ref().map(|_| 0.0)).collect();
        self.running = Arc::new(designs);
        let seeds = TRIAL_SEED..TRIAL_SEED + TRIAL_SEEDS;
        self.run(slices, 0, &seeds, None, |_, answer| {
            let exact = slices[answer.slice].slice.exact.unwrap_or(0).max(1) as f64;
            for (_, entry, tally) in answer.tallies {
                let count = tally.first.map(|first| first as f64).or(tally.estimate);
                let error = count.map(|count| (count - exact).abs() / exact);
                sums[entry] = sums[entry].zip(error).map(|(sum, error)| sum + error);
            }
        })?;
        Ok(sums.into_iter().map(|sum| sum.unwrap_or(f64::INFINITY)).collect())
    }
}

/// Adds the counts of an answer.
fn add_answer(entries: &mut [Entry], answer: Answer) {
    let Answer { slice, list, tallies } = answer;
    for (seed, entry, tally) in tallies {
        let (seed, entry) = (seed as usize, &mut entries[entry]);
        if entry.replicates.len() <= seed {
            entry.replicates.resize_with(seed + 1, Replicate::default);
        }
        let replicate = &mut entry.replicates[seed];
        if let Some(first) = tally.first {
            put(&mut replicate.first, slice, first.min(u32::MAX.into()) as u32);
        }
        if let Some(estimate) = tally.estimate {
            put(&mut replicate.estimates, slice, estimate);
        }
        replicate.saturated_slices += u64::from(tally.is_saturated);
        entry.memory_bytes = entry.memory_bytes.max(Some(tally.memory_bytes));
        let Some(questions) = list.questions.as_ref().filter(|_| seed == 0) else { continue };
        let answers = tally.positives.iter().zip(&tally.predicted);
        for (query, (set, (positives, predicted))) in
            entry.queries.iter_mut().zip(questions.sets.iter().zip(answers))
        {
            if set.queries > 0 {
                query.queries += set.queries;
                query.positives = query.positives.zip(*positives).map(|(a, b)| a + b);
                query.predicted_positives =
                    query.predicted_positives.zip(*predicted).map(|(a, b)| a + b);
            }
        }
    }
}

/// Puts a value in its place; values between are those of slices that are not judged.
fn put<T: Clone + Default>(values: &mut Vec<T>, place: usize, value: T) {
    if values.len() <= place {
        values.resize(place + 1, T::default());
    }
    values[place] = value;
}

/// Returns an entry for each size and structure, and specifications of those that fit.
fn entries(
    plan: &ComparePlan,
    sizes: &[u64],
    expected: &Expected,
    trial: Option<&Trial<'_>>,
) -> (Vec<Entry>, Vec<Option<CounterSpec>>) {
    let all = sizes.iter().flat_map(|&size| plan.contenders.iter().map(move |&it| (it, size)));
    let made = all.map(|(contender, size)| {
        let (spec, unfit) = match design(contender, size, expected, plan, trial) {
            Ok(spec) => (Some(spec), None),
            Err(unfit) => (None, Some(unfit)),
        };
        let filter = spec.as_ref().and_then(CounterSpec::filter);
        let entry = Entry {
            contender,
            size,
            memory_bytes: spec.as_ref().map(CounterSpec::memory_bytes),
            needed_bytes: unfit.as_ref().and_then(|unfit| unfit.needed_bytes),
            unfit: unfit.map(|unfit| unfit.why),
            kind: filter.map(FilterSpec::kind),
            probes: filter.map(FilterSpec::probes),
            stored: filter.map_or_else(Vec::new, |filter| filter.shape().stored),
            replicates: Vec::new(),
            queries: if spec.is_some() { no_queries(plan) } else { Vec::new() },
        };
        (entry, spec)
    });
    made.unzip()
}

fn no_queries(plan: &ComparePlan) -> Vec<QueryResult> {
    let asked = if plan.queries { plan.asked() } else { Vec::new() };
    let queries = asked.into_iter().flat_map(|mask| {
        Negatives::ALL.map(|negatives| QueryResult {
            mask,
            negatives,
            queries: 0,
            positives: Some(0),
            predicted_positives: Some(0.0),
        })
    });
    queries.collect()
}

/// Evaluates what was kept: as many replicates as it takes to decide between the pair at each size.
/// Returns whether the flag ended it.
pub(super) fn evaluate<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &ComparePlan,
    collected: Collected,
    stop: &StopFlag,
) -> Result<(Comparison, bool), WorkerPanicked> {
    let Collected { slices, slices_omitted, counted, evaluated } = collected;
    let judged = slices.iter().map(|closed| closed.slice.clone()).collect();
    if let Some(evaluated) = evaluated {
        return Ok((Comparison { slices: judged, slices_omitted, ..evaluated }, false));
    }
    let mut evaluation = Evaluation::begin(scope, plan, &slices, &counted, true)?;
    (evaluation.comparison.slices, evaluation.comparison.slices_omitted) = (judged, slices_omitted);
    let formula = (evaluation.designs.clone(), evaluation.comparison.entries.clone());
    evaluation.choose_probes(&slices)?;
    let mut done = 0;
    let mut open = evaluation.comparison.sizes.clone();
    for look in evaluation.comparison.looks.clone() {
        let designs = evaluation.designs.clone();
        evaluation
            .run_some(&slices, designs, done..look, Some(stop), |it| open.contains(&it.size))?;
        if stop.is_set() {
            break;
        }
        done = look;
        open.retain(|&size| !is_decided(plan, &evaluation.comparison, size));
        if open.is_empty() {
            break;
        }
    }
    let is_stopped = stop.is_set();
    if is_stopped {
        // A replicate is the whole trace: what was begun is none.
        let entries = evaluation.comparison.entries.iter_mut();
        entries.for_each(|entry| entry.replicates.truncate(done as usize));
    } else if let (ProbeRule::Best, Some(pair)) = (plan.probes, plan.pair) {
        evaluation.add_by_formula(&slices, pair, formula)?;
    }
    Ok((evaluation.comparison, is_stopped))
}

impl Evaluation<'_> {
    /// Runs the slices through those of the designs whose entries are chosen.
    fn run_some(
        &mut self,
        slices: &[ClosedList],
        designs: Vec<Option<CounterSpec>>,
        seeds: Range<u32>,
        stop: Option<&StopFlag>,
        is_chosen: impl Fn(&Entry) -> bool,
    ) -> Result<(), WorkerPanicked> {
        let specs = designs.into_iter().zip(&self.comparison.entries);
        let active = specs.map(|(spec, entry)| spec.filter(|_| is_chosen(entry)));
        self.running = Arc::new(active.collect());
        self.run(slices, 0, &seeds, stop, add_answer)
    }

    /// Adds the pair with the numbers of hash functions by the formula, in the replicates of the
    /// others.
    fn add_by_formula(
        &mut self,
        slices: &[ClosedList],
        pair: [Contender; 2],
        (designs, entries): (Vec<Option<CounterSpec>>, Vec<Entry>),
    ) -> Result<(), WorkerPanicked> {
        let seeds: Vec<_> = self
            .comparison
            .sizes
            .iter()
            .map(|&size| {
                let entry = self.comparison.entry(pair[0], size);
                (size, entry.map_or(0, |entry| entry.replicates.len() as u32))
            })
            .collect();
        let judged = replace(&mut self.comparison.entries, entries);
        for (size, seeds) in seeds {
            let is_of_pair = |it: &Entry| it.size == size && pair.contains(&it.contender);
            self.run_some(slices, designs.clone(), 0..seeds, None, is_of_pair)?;
        }
        let mut entries = replace(&mut self.comparison.entries, judged);
        entries.retain(|entry| pair.contains(&entry.contender));
        self.comparison.by_formula = entries;
        Ok(())
    }
}

/// Returns whether the pair needs no more replicates at this size.
fn is_decided(plan: &ComparePlan, all: &Comparison, size: u64) -> bool {
    let Some(pair) = plan.pair else { return true };
    // By raw counts, as in the papers; sketches have none.
    let verdicts = CountKind::ALL.map(|kind| all.verdict(pair, size, kind).result);
    let judged = verdicts.iter().find_map(|result| result.as_ref().ok());
    judged.is_none_or(Rule::is_decided)
}

/// Distinct values in a large slice, one of those that were kept: 95 of 100 have no more elements
/// (nearest rank, so the largest of up to 19 slices). A filter that is made for the usual slice
/// counts a flood badly; one that is made for a flood loses little in the usual slice.
///
/// `slices` has the distinct values of each combination that is counted for each slice, and of its
/// elements those with a new value.
pub(super) fn expected(
    mut slices: Vec<(Vec<u64>, u64)>,
    given: Option<u64>,
    counted: &Counted,
) -> Expected {
    slices.retain(|(counts, _)| counts[0] > 0);
    slices.sort_unstable();
    let rank = (slices.len() * 95).div_ceil(100);
    let Some((counts, new_values)) = slices.get(rank.saturating_sub(1)) else {
        let from = if given.is_some() { ExpectedFrom::Given } else { ExpectedFrom::Unknown };
        return Expected { elements: given, from, ..Expected::default() };
    };
    let elements = given.unwrap_or(counts[0]);
    // Assume that combinations grow with the elements.
    let scale = elements as f64 / counts[0] as f64;
    let values = counts.iter().map(|&count| (count as f64 * scale).ceil() as u64);
    Expected {
        elements: Some(elements),
        from: match given {
            Some(_) => ExpectedFrom::Given,
            None => ExpectedFrom::Percentile95(slices.len() as u64),
        },
        values: counted.masks.iter().copied().zip(values).collect(),
        known: 1.0 - *new_values as f64 / counts[0] as f64,
    }
}
