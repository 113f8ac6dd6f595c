//! Who ranks: filter, summary and exact sets of all open slices, in one thread.

use super::exact::Truth;
use super::extract::{Record, key_text};
use super::plan::TopPlan;
use super::results::{Certainty, Exact, Recall, Spread, TopKey, TopSlice};
use super::summary::Summary;
use crate::elements::ElementColumns;
use crate::filters::{WeighingFilter, Weight};
use crate::hashing::Digester;
use crate::pipeline::ClosedSlice;
use crate::threads::{Reply, Work};
use std::collections::HashSet;

/// Missed keys that are named.
pub(super) const MISSED_NAMED: usize = 20;

/// What the worker is asked to do.
pub(super) enum Task {
    Add {
        slot: usize,
        elements: ElementColumns,
    },
    Close {
        slot: usize,
        slice: ClosedSlice,
    },
}

/// The state of all open slices.
pub(super) struct Ranker {
    plan: TopPlan,
    slices: Vec<OpenSlice>,
    weights: Vec<Weight>,
}

struct OpenSlice {
    filter: WeighingFilter,
    summary: Summary,
    truth: Option<Truth>,
    used: bool,
}

impl Ranker {
    pub(super) fn new(plan: &TopPlan) -> Self {
        Self {
            plan: plan.clone(),
            slices: Vec::new(),
            weights: Vec::new(),
        }
    }

    fn reach(&mut self) {
        let plan = &self.plan;
        if self.slices.is_empty() {
            // All at once, while it is known that the system gives their memory.
            let slices = (0..plan.open_slices()).map(|_| OpenSlice {
                filter: WeighingFilter::new(plan.lines(), TopPlan::PROBES),
                summary: Summary::new(plan.summary_bytes(), plan.usual_key_bytes()),
                truth: plan.exact_limit().map(Truth::new),
                used: false,
            });
            self.slices = slices.collect();
        }
    }

    fn add(&mut self, slot: usize, elements: &ElementColumns) {
        self.reach();
        let slice = &mut self.slices[slot];
        slice.used = true;
        self.weights.clear();
        slice
            .filter
            .insert_all(&elements.digests, &mut self.weights);
        let keys = elements.keys.iter().zip(&elements.attributes);
        for ((record, &digest), &weight) in keys.zip(&self.weights) {
            let record = Record::of(record);
            slice.summary.add(digest, record.key, weight, record.bytes);
            if let Some(truth) = &mut slice.truth {
                truth.add(&record);
            }
        }
    }

    fn close(&mut self, slot: usize, closed: ClosedSlice) -> TopSlice {
        self.reach();
        let (plan, slice) = (&self.plan, &mut self.slices[slot]);
        let answer = slice.answer(plan, closed);
        if slice.used {
            slice.filter.clear();
            slice.summary.clear();
            slice.truth.iter_mut().for_each(Truth::clear);
            slice.used = false;
        }
        answer
    }
}

impl OpenSlice {
    fn answer(&mut self, plan: &TopPlan, closed: ClosedSlice) -> TopSlice {
        let seen_share = self.filter.seen_share();
        let distinct = self.summary.total(seen_share).distinct;
        let most = plan.most.unwrap_or(usize::MAX);
        let mut ranked = self.summary.largest(plan.least, most, seen_share);
        if plan.most.is_some() {
            // A list of the largest has nobody in it whose number is most likely too small.
            ranked.retain(|spread| spread.estimate >= plan.least as f64);
        }
        let truth = self.truth.as_ref();
        let truth = truth.and_then(|truth| Some((truth, truth.distinct()?)));
        let (keys, recall) = match truth {
            Some((truth, sum)) => {
                let largest = truth.largest(plan.least, most);
                let recall = recall(plan, truth, &largest, &ranked);
                let digester = Digester::new(plan.seed);
                let keys = largest.into_iter().zip(1..).map(|((key, exact), rank)| {
                    let digest = digester.digest(&key);
                    let spread = self.summary.of_key(digest, &key, seen_share);
                    top_key(plan, rank, &key, spread, Some(exact), sum as f64)
                });
                (keys.collect(), Some(recall))
            }
            None => {
                let keys = ranked.into_iter().zip(1..).map(|(spread, rank)| {
                    let key = spread.key.clone();
                    top_key(plan, rank, &key, Some(spread), None, distinct)
                });
                (keys.collect(), None)
            }
        };
        let summary = &self.summary;
        TopSlice {
            index: closed.index,
            revision: 0,
            start_ns: closed.start_ns,
            end_ns: closed.end_ns,
            packets: closed.packets,
            elements: closed.elements,
            distinct,
            exact: truth.map(|(_, sum)| sum),
            exact_keys: truth.map(|(truth, _)| truth.keys()),
            exact_over_limit: self.truth.is_some() && truth.is_none(),
            held: summary.held(),
            most_unheld: summary.has_evicted().then(|| summary.most_unheld()),
            seen_share,
            keys,
            recall,
        }
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
        (None, Some(spread)) if spread.estimate >= plan.least as f64 => Certainty::Likely,
        (None, _) => Certainty::Possible,
    };
    let mut top = TopKey {
        rank,
        key: key_text(plan.question.by(), key),
        spread,
        exact,
        share: None,
        certainty,
    };
    top.share = (all > 0.0).then(|| (top.best() / all).min(1.0));
    top
}

/// What the summary alone would have found of the largest keys.
fn recall(
    plan: &TopPlan,
    truth: &Truth,
    largest: &[(Vec<u8>, Exact)],
    ranked: &[Spread],
) -> Recall {
    let Some((_, last)) = largest.last() else {
        return Recall::default();
    };
    let keys = largest.len() as u64;
    // Which of equal keys are listed is chance.
    let found = ranked
        .iter()
        .filter(|spread| truth.of_key(&spread.key).distinct >= last.distinct);
    let found = (found.count() as u64).min(keys);
    let held: HashSet<&[u8]> = ranked.iter().map(|spread| spread.key.as_slice()).collect();
    let missed = largest
        .iter()
        .filter(|(key, _)| !held.contains(key.as_slice()));
    let named = MISSED_NAMED.min((keys - found) as usize);
    Recall {
        keys,
        found,
        missed: missed
            .take(named)
            .map(|(key, _)| key_text(plan.question.by(), key))
            .collect(),
    }
}

impl Work for Ranker {
    type Task = Task;
    type Answer = TopSlice;
    type Batch = ElementColumns;

    fn work(&mut self, task: Task) -> Reply<TopSlice, ElementColumns> {
        match task {
            Task::Add { slot, mut elements } => {
                self.add(slot, &elements);
                elements.clear();
                Reply::Emptied(elements)
            }
            Task::Close { slot, slice } => Reply::Answer(self.close(slot, slice)),
        }
    }
}
