//! The worker of a ranking: filter, summary and exact sets of all open slices, in one thread.

use super::exact::{ExactAnswer, Truth};
use super::extract::{Record, Repeats};
use super::plan::{RankBy, TopPlan};
use super::results::{Certainty, Exact, Recall, Spread, TopKey, TopSlice};
use super::summary::Summary;
use crate::elements::{ElementColumns, key_text};
use crate::filters::{WeighingFilter, Weight};
use crate::hashing::{Digest, Digester};
use crate::pipeline::ClosedSlice;
use crate::threads::{Reply, Work};
use std::collections::{HashMap, HashSet};

/// Missed keys that are named.
pub(super) const MISSED_NAMED: usize = 20;

/// A task for the worker.
pub(crate) enum Task {
    Add {
        slot: usize,
        elements: ElementColumns,
    },
    /// Ranks what a slice has, or has so far.
    Rank {
        slot: usize,
        slice: ClosedSlice,
        is_closed: bool,
    },
}

/// The ranking of a slice, when it closes or before.
pub(crate) struct Answer {
    pub(super) slice: TopSlice,
    pub(super) is_closed: bool,
}

/// The state of all open slices.
#[derive(Debug)]
pub(crate) struct Ranker {
    plan: TopPlan,
    /// Slices that are open at the same time.
    open_slices: usize,
    slices: Vec<OpenSlice>,
    weights: Vec<Weight>,
}

#[derive(Debug)]
struct OpenSlice {
    filter: WeighingFilter,
    summary: Summary,
    truth: Option<Truth>,
    used: bool,
    /// Bytes of all packets, if keys are ranked by them.
    bytes: u64,
}

impl Ranker {
    pub(super) fn new(plan: &TopPlan) -> Self {
        Self::of_slices(plan, plan.open_slices())
    }

    /// For this many slices at the same time.
    pub(crate) fn of_slices(plan: &TopPlan, open_slices: usize) -> Self {
        Self { plan: plan.clone(), open_slices, slices: Vec::new(), weights: Vec::new() }
    }

    fn reach(&mut self) {
        let plan = &self.plan;
        if self.slices.is_empty() {
            // All at once, while it is known that the system gives their memory.
            let slices = (0..self.open_slices).map(|_| OpenSlice {
                filter: WeighingFilter::new(plan.filter_bytes(), TopPlan::PROBES),
                summary: Summary::new(plan.summary_bytes(), plan.usual_key_bytes(), plan.rank_by),
                truth: plan.exact_limit().map(Truth::new),
                used: false,
                bytes: 0,
            });
            self.slices = slices.collect();
        }
    }

    pub(crate) fn add(&mut self, slot: usize, elements: &ElementColumns) {
        self.reach();
        let slice = &mut self.slices[slot];
        slice.used = true;
        self.weights.clear();
        slice.filter.insert_all(&elements.digests, &mut self.weights);
        slice.summary.add_all(elements, &self.weights);
        if self.plan.rank_by == RankBy::Bytes {
            let bytes = elements.keys.iter().map(|record| u64::from(Record::bytes_of(record)));
            slice.bytes = slice.bytes.saturating_add(bytes.sum());
        }
        if let Some(truth) = &mut slice.truth {
            for record in elements.keys.iter() {
                truth.add(&Record::read(record));
            }
        }
    }

    /// Adds packets of a key that are no first sightings, after those; false if the key never came,
    /// as far as that is known.
    pub(crate) fn add_repeats(
        &mut self,
        slot: usize,
        digest: Digest,
        repeats: &Repeats<'_>,
    ) -> bool {
        self.reach();
        let slice = &mut self.slices[slot];
        let (packets, bytes) = (repeats.packets, repeats.bytes);
        slice.summary.add_repeats(digest, packets, bytes);
        slice.bytes = slice.bytes.saturating_add(bytes);
        let truth = slice.truth.as_mut();
        truth.is_none_or(|truth| truth.add_repeats(repeats))
    }

    /// Returns what the summary knows of all keys that it holds.
    pub(crate) fn held(&mut self, slot: usize) -> Vec<Spread> {
        self.reach();
        let OpenSlice { filter, summary, .. } = &mut self.slices[slot];
        let all = (RankBy::Distinct, usize::MAX);
        summary.largest(all, filter.seen_share(), |_| true)
    }

    fn answer(&mut self, slot: usize, closed: ClosedSlice) -> TopSlice {
        self.reach();
        self.slices[slot].answer(&self.plan, closed)
    }

    pub(crate) fn close(&mut self, slot: usize, closed: ClosedSlice) -> TopSlice {
        let answer = self.answer(slot, closed);
        let slice = &mut self.slices[slot];
        if slice.used {
            slice.filter.clear();
            slice.summary.clear();
            slice.truth.iter_mut().for_each(Truth::clear);
            slice.used = false;
            slice.bytes = 0;
        }
        answer
    }
}

impl OpenSlice {
    fn answer(&mut self, plan: &TopPlan, closed: ClosedSlice) -> TopSlice {
        let seen_share = self.filter.seen_share();
        let distinct = self.summary.total(seen_share).distinct;
        let most = plan.most_listed();
        let by = plan.rank_by;
        // A list of the largest keys has none whose number is most likely too small.
        let is_likely = |key: &Spread| plan.most.is_none() || key.likely_has(plan.least);
        let listed = |key: &Spread| key.upper >= plan.least && is_likely(key);
        let ranked = self.summary.largest((by, most), seen_share, listed);
        let summary = &self.summary;
        let mut slice = TopSlice {
            index: closed.index,
            start_ns: closed.start_ns,
            end_ns: closed.end_ns,
            packets: closed.packets,
            elements: closed.elements,
            distinct,
            held: summary.held(),
            most_unheld: summary.has_evicted().then(|| summary.most_unheld()),
            seen_share,
            sum: by.of(distinct, closed.elements as f64, self.bytes as f64),
            ..TopSlice::default()
        };
        let truth = self.truth.as_ref();
        let exact = truth.and_then(|truth| Some((truth, truth.answer(by, plan.least, most)?)));
        slice.exact_over_limit = truth.is_some() && exact.is_none();
        match exact {
            Some((truth, exact)) => {
                let digester = Digester::new(plan.seed);
                let spread = |key: &[u8]| summary.of_key(digester.digest(key), seen_share);
                slice.list_exact(plan, exact, &ranked, spread, |key| truth.of_key(key).distinct);
            }
            None => slice.list(plan, ranked),
        }
        slice
    }
}

impl TopSlice {
    /// Lists the keys that the summary ranks.
    fn list(&mut self, plan: &TopPlan, ranked: Vec<Spread>) {
        let keys = ranked.into_iter().zip(1..).map(|(spread, rank)| {
            let key = spread.key.clone();
            top_key(plan, rank, &key, Some(spread), None, self.sum)
        });
        self.keys = keys.collect();
    }

    /// Lists the keys of the exact answer, and says which of them are among those that the summary
    /// ranks. `spread` is what the summary knows of a key, and `distinct` its exact number, which
    /// may be too small if it is below that of each key of the answer.
    fn list_exact(
        &mut self,
        plan: &TopPlan,
        exact: ExactAnswer,
        ranked: &[Spread],
        spread: impl Fn(&[u8]) -> Option<Spread>,
        distinct: impl Fn(&[u8]) -> u64,
    ) {
        let ExactAnswer { distinct: sum, keys, largest } = exact;
        (self.exact, self.exact_keys) = (Some(sum), Some(keys));
        self.sum = plan.rank_by.of(sum as f64, self.sum, self.sum);
        // By packets and bytes, what a table holds depends on all packets in their order, and
        // pieces have only sums.
        let is_by_distinct = plan.rank_by == RankBy::Distinct;
        self.recall = is_by_distinct.then(|| recall(plan, distinct, &largest, ranked));
        let keys = largest.into_iter().zip(1..).map(|((key, exact), rank)| {
            let spread = if is_by_distinct { spread(&key) } else { None };
            top_key(plan, rank, &key, spread, Some(exact), self.sum)
        });
        self.keys = keys.collect();
    }

    /// Lists the keys of the exact answer in place of those that the summary ranks, as
    /// [`Self::list_exact`]. `held` are all keys of the summary.
    pub(crate) fn with_exact(
        mut self,
        plan: &TopPlan,
        exact: ExactAnswer,
        held: &[Spread],
        distinct: impl Fn(&[u8]) -> u64,
    ) -> Self {
        let ranked: Vec<Spread> = self.keys.drain(..).filter_map(|key| key.spread).collect();
        let held: HashMap<&[u8], &Spread> =
            held.iter().map(|spread| (spread.key.as_slice(), spread)).collect();
        let spread = |key: &[u8]| held.get(key).map(|&spread| spread.clone());
        self.list_exact(plan, exact, &ranked, spread, distinct);
        self
    }
}

fn top_key(
    plan: &TopPlan,
    rank: u64,
    key: &[u8],
    spread: Option<Spread>,
    exact: Option<Exact>,
    all: f64,
) -> TopKey {
    let certainty = match (&exact, &spread) {
        (Some(_), _) => Certainty::Certain,
        (None, Some(spread)) if spread.firsts >= plan.least => Certainty::Certain,
        (None, Some(spread)) if spread.likely_has(plan.least) => Certainty::Likely,
        (None, _) => Certainty::Possible,
    };
    let mut top = TopKey {
        rank,
        id: key.to_vec(),
        key: key_text(plan.question.by(), key),
        number: match (&exact, &spread) {
            (Some(exact), _) => exact.ranked(plan.rank_by) as f64,
            (None, spread) => spread.as_ref().map_or(0.0, |spread| spread.ranked(plan.rank_by)),
        },
        spread,
        exact,
        share: None,
        certainty,
    };
    top.share = (all > 0.0).then(|| (top.number / all).min(1.0));
    top
}

/// Compares the keys that the summary alone ranks with the largest ones.
fn recall(
    plan: &TopPlan,
    distinct: impl Fn(&[u8]) -> u64,
    largest: &[(Vec<u8>, Exact)],
    ranked: &[Spread],
) -> Recall {
    let Some((_, last)) = largest.last() else { return Recall::default() };
    let keys = largest.len() as u64;
    // Which of equal keys are listed is chance.
    let found = ranked.iter().filter(|spread| distinct(&spread.key) >= last.distinct);
    let found = (found.count() as u64).min(keys);
    let held: HashSet<&[u8]> = ranked.iter().map(|spread| spread.key.as_slice()).collect();
    let missed = largest.iter().filter(|(key, _)| !held.contains(key.as_slice()));
    let named = MISSED_NAMED.min((keys - found) as usize);
    Recall {
        keys,
        found,
        missed: missed.take(named).map(|(key, _)| key_text(plan.question.by(), key)).collect(),
    }
}

impl Work for Ranker {
    type Task = Task;
    type Answer = Answer;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<Answer, ElementColumns> {
        match task {
            Task::Add { slot, mut elements } => {
                self.add(slot, &elements);
                elements.clear();
                Reply::Emptied(elements)
            }
            Task::Rank { slot, slice, is_closed } => {
                let of = if is_closed { Self::close } else { Self::answer };
                Reply::Answer(Answer { slice: of(self, slot, slice), is_closed })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Align, Slicing};
    use crate::plan::TracePlan;
    use crate::top::Question;

    fn plan(most: Option<usize>, exact: bool) -> TopPlan {
        TopPlan {
            trace: TracePlan::default(),
            question: Question::default(),
            queries_only: false,
            slicing: Slicing { width_ns: None, align: Align::Epoch },
            most,
            least: 2,
            rank_by: RankBy::Distinct,
            memory_bytes: 16 << 10,
            exact_limit_bytes: exact.then_some(1 << 30),
            seed: 0,
        }
    }

    /// Returns the answer for packets from sources to destinations, both numbered.
    fn answer(plan: &TopPlan, packets: impl IntoIterator<Item = (u8, u8)>) -> TopSlice {
        let mut elements = ElementColumns::default();
        let digester = Digester::new(plan.seed);
        for (source, destination) in packets {
            let element = [4, 10, 0, 0, source, 10, 0, 1, destination];
            let head = [40, 0, 0, 0, 5, 0];
            elements.digests.push(digester.digest(&element));
            elements.attributes.push(digester.digest(&element[..5]));
            elements.keys.push(&[&head[..], &element].concat());
        }
        let mut ranker = Ranker::new(plan);
        ranker.add(0, &elements);
        let closed = ClosedSlice {
            index: 0,
            start_ns: 0,
            end_ns: 1,
            packets: elements.len() as u64,
            elements: elements.len() as u64,
        };
        ranker.close(0, closed)
    }

    /// A list of the largest keys has none with one other, and a list of all with a bound says which
    /// are certain.
    #[test]
    fn keys_below_the_bound_are_not_listed() {
        let flood = || (0..200).map(|source| (source, 1));
        assert!(answer(&plan(Some(20), false), flood()).keys.is_empty());
        let with_scan = flood().chain((0..90).map(|destination| (250, destination)));
        let slice = answer(&plan(None, false), with_scan);
        let certain = slice.keys.iter().filter(|key| key.certainty == Certainty::Certain);
        let certain: Vec<&str> = certain.map(|key| key.key.as_str()).collect();
        assert_eq!(certain, ["10.0.0.250"]);
        assert!(
            slice
                .keys
                .iter()
                .all(|key| { key.spread.as_ref().is_some_and(|spread| spread.upper >= 2) })
        );
    }
}
