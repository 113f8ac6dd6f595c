//! Filters that are tried before one of them is chosen: each is filled with the elements of a slice
//! and asked for absent ones, under hash functions that are not judged.

use super::negatives::{Draws, QuestionSet, Questions, most_queries};
use super::slice_list::{ClosedList, SliceList};
use super::worker::{Candidate, Worker};
use super::{ComparePlan, Expected};

use crate::filters::{CounterSpec, FilterSpec};
use crate::memory::can_allocate;

/// Replicates in which numbers of hash functions are tried: behind all that are judged.
pub(super) const TRIAL_SEED: u32 = 1 << 20;
pub(super) const TRIAL_SEEDS: u32 = 3;

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
        let candidate = Candidate::new(CounterSpec::Filter(spec.clone()));
        let mut worker = Worker::default();
        worker.candidates.push((0, candidate));
        let mut sums: Vec<(u64, Option<u64>)> = Vec::new();
        for (seed, questions) in &self.questions {
            worker.insert(self.list, *seed);
            let positives = worker.candidates[0].1.close(Some(questions), self.full).positives;
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

impl Questions {
    /// The queries of a trial under the hash functions of this number, about the elements of a list:
    /// values that occur apart, each replaced by a random one with the probability 1 - `known`. Where
    /// nothing occurs apart one value of each query is random: a single value that occurs is not
    /// absent, nor are two if all occur together. `None` without elements.
    pub(super) fn of_trial(
        &self,
        list: &SliceList,
        wanted: &[(u32, f64)],
        known: f64,
        seed: u32,
        full: u32,
    ) -> Option<Self> {
        let mut draws = Draws(u64::from(seed) << 32);
        let arity = list.attributes.len().checked_div(list.whole.len())?;
        let sets = wanted.iter().map(|&(mask, _)| {
            let mut set = QuestionSet::new(mask);
            let places: Vec<usize> = (0..arity).filter(|place| mask >> place & 1 == 1).collect();
            // For each combination, queries whose values occur apart come first.
            let apart = self.sets.iter().find(|set| set.mask == mask).filter(|set| set.queries > 0);
            let most = most_queries(list.whole.len() as u64);
            for query in 0..apart.map_or(most, |apart| apart.queries) as usize {
                let element = query % list.whole.len();
                let mut is_known = true;
                for (number, place) in places.iter().enumerate() {
                    let occurs = match apart {
                        Some(_) => (draws.below(1 << 32) as f64) < known * (1_u64 << 32) as f64,
                        None => number != query % places.len(),
                    };
                    is_known &= occurs;
                    let value = match apart {
                        Some(apart) => apart.attributes[query * places.len() + number],
                        None => list.attributes[element * arity + place],
                    };
                    let known = occurs.then(|| value.rehashed(seed));
                    set.attributes.push(known.unwrap_or_else(|| draws.digest()));
                }
                if mask == full {
                    let whole = apart.filter(|_| is_known).map(|apart| apart.whole[query]);
                    let whole = whole.map(|whole| whole.rehashed(seed));
                    set.whole.push(whole.unwrap_or_else(|| draws.digest()));
                }
                set.queries += 1;
            }
            set
        });
        Some(Self { values: None, sets: sets.collect() })
    }
}
