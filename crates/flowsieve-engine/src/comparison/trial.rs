//! Filters that are tried before one of them is chosen: each is filled with the elements of a slice
//! and asked for absent ones, under hash functions that are not judged.

use super::candidate::Candidate;
use super::evaluation::{TRIAL_SEED, TRIAL_SEEDS, Worker};
use super::negatives::Questions;
use super::stage::{ClosedList, SliceList};
use super::{ComparePlan, Expected};
use crate::filters::{CounterSpec, FilterSpec};
use crate::memory::can_allocate;

/// A slice and what is asked about it, under each set of hash functions.
pub(super) struct Trial<'a> {
    list: &'a SliceList,
    questions: Vec<(u32, Questions)>,
    full: u32,
}

impl<'a> Trial<'a> {
    /// Takes the slice whose number of elements is the expected one, or the nearest; `None` if there
    /// is none. Each value of an absent element occurs
    /// with the probability `known`.
    pub(super) fn new(
        plan: &ComparePlan,
        slices: &'a [ClosedList],
        expected: &Expected,
        known: f64,
    ) -> Option<Self> {
        let full = plan.rule.kind.all();
        let large = expected.elements?;
        let distance = |closed: &&ClosedList| closed.slice.exact.map(|it| it.abs_diff(large));
        let slices = slices.iter().filter(|closed| closed.list.is_some());
        let list = slices.min_by_key(distance)?.list.as_deref()?;
        let asked = list.questions.as_ref()?;
        let seeds = TRIAL_SEED..TRIAL_SEED + TRIAL_SEEDS;
        let questions =
            seeds.map(|seed| Some((seed, asked.of_trial(list, &plan.wanted, known, seed, full)?)));
        Some(Self { list, questions: questions.collect::<Option<_>>()?, full })
    }

    /// The share of the queries for each wanted combination that this filter answers by yes; `None`
    /// in it where the filter has no answer. `None` if the system does not give the memory.
    pub(super) fn rates(&self, spec: &FilterSpec) -> Option<Vec<Option<f64>>> {
        if !can_allocate(spec.memory_bytes()) {
            return None;
        }
        let mut worker = Worker::of(Candidate::new(CounterSpec::Filter(spec.clone())));
        let mut sums: Vec<(u64, Option<u64>)> = Vec::new();
        for (seed, questions) in &self.questions {
            worker.insert(self.list, *seed);
            let positives = worker.close(questions, self.full);
            sums.resize(positives.len(), (0, Some(0)));
            for (sum, (set, yes)) in sums.iter_mut().zip(questions.sets.iter().zip(positives)) {
                sum.0 += set.queries;
                sum.1 = sum.1.zip(yes).map(|(sum, yes)| sum + yes);
            }
        }
        let rates = sums.into_iter().map(|(queries, yes)| Some(yes? as f64 / queries as f64));
        Some(rates.collect())
    }
}
