//! One structure with one memory: what it is made of, and its state in each open slice.

use super::negatives::{QuestionSet, Questions};
use super::results::{Expected, SliceCount};
use super::{ComparePlan, Contender};
use crate::elements::ElementColumns;
use crate::filters::sizing::DEFAULT_PROBES;
use crate::filters::{
    Counter, CounterSpec, DigestColumns, Estimate, FilterKind, FilterSpec, Known, LineShape,
    MembershipFilter, PatternAnswer, PatternColumns, PlannedCombination, Query, Sighting, Sizing,
    SpecError, Structure, SubsetSpec, Workload,
};
use crate::pipeline::ExactSet;
use std::time::Instant;

/// A structure that fits its memory.
#[derive(Clone, Debug)]
pub(super) enum Design {
    Counter(CounterSpec),
    Exact { limit_bytes: u64 },
}

/// One that does not, or cannot be.
#[derive(Clone, Debug)]
pub(super) struct Unfit {
    pub(super) needed_bytes: Option<u64>,
    pub(super) why: String,
}

impl Design {
    /// The structure with this many bytes, made for the elements that are expected.
    pub(super) fn new(
        contender: Contender,
        bytes: u64,
        expected: &Expected,
        plan: &ComparePlan,
    ) -> Result<Self, Unfit> {
        let kind = match contender {
            Contender::EXACT => return Ok(Self::Exact { limit_bytes: bytes }),
            Contender::SubsetPlanned => FilterKind::Subset,
            Contender::Plain(Structure::Filter(kind)) => kind,
            Contender::Plain(structure) => {
                let name = structure.name();
                let (counter, least) = CounterSpec::of_registers(structure, bytes);
                return counter.map(Self::Counter).ok_or_else(|| Unfit {
                    needed_bytes: Some(least),
                    why: format!("an {name} counter needs at least {least} bytes, not {bytes}"),
                });
            }
        };
        let spec = sized(contender, kind, bytes, expected, plan).and_then(|spec| {
            let with_probes = plan.probes.map(|probes| spec.with_probes(probes));
            // One without such a number stays as it is.
            Ok(with_probes.transpose()?.flatten().unwrap_or(spec))
        });
        spec.map(|spec| Self::Counter(CounterSpec::Filter(spec))).map_err(|error| Unfit {
            needed_bytes: match error {
                SpecError::TooLittleMemory { least, .. } => Some(least),
                _ => None,
            },
            why: error.to_string(),
        })
    }

    /// The filter's parameters, if it is one.
    pub(super) const fn filter(&self) -> Option<&FilterSpec> {
        match self {
            Self::Counter(counter) => counter.filter(),
            Self::Exact { .. } => None,
        }
    }

    fn build(&self) -> State {
        match self {
            Self::Counter(spec) => State::Counter(spec.build(), 0),
            Self::Exact { limit_bytes } => State::Exact(Box::new(ExactSet::new(*limit_bytes))),
        }
    }
}

/// The filter of this many bytes, with the best number of hash functions for what is expected.
///
/// # Errors
///
/// Too little memory, or a kind of element that the structure is not for.
pub(super) fn sized(
    contender: Contender,
    kind: FilterKind,
    bytes: u64,
    expected: &Expected,
    plan: &ComparePlan,
) -> Result<FilterSpec, SpecError> {
    let sizing = Sizing::Memory { bytes, expected: expected.elements };
    // Parts that are as many as the best number of hash functions need not hold all counters. The
    // cuts of a matrix do depend on what is expected.
    let sizing = match (plan.probes, kind.is_matrix()) {
        (Some(_), false) => Sizing::Memory { bytes, expected: None },
        _ => sizing,
    };
    let spec = FilterSpec::new(kind, plan.rule.kind.arity(), sizing)?;
    Ok(match (contender, plan.weigh) {
        (Contender::SubsetPlanned, _) => planned(plan, expected, LineShape::in_bytes(bytes)),
        (_, Some(weigh)) if kind.has_weights() => {
            let weighted = with_workload(plan, expected, |workload| weigh(workload, bytes));
            weighted.flatten().unwrap_or(spec)
        }
        _ => spec,
    })
}

/// A subset filter for the whole element and all combinations that are asked for.
fn planned(plan: &ComparePlan, expected: &Expected, shape: LineShape) -> FilterSpec {
    let spec = with_workload(plan, expected, |workload| SubsetSpec::planned(workload, shape));
    let spec = spec.unwrap_or_else(|| {
        let asked = plan.asked();
        let combinations =
            asked[1..].iter().map(|&mask| PlannedCombination { mask, probes: DEFAULT_PROBES });
        SubsetSpec {
            halving: false,
            attributes: plan.rule.kind.arity(),
            shape,
            probes: DEFAULT_PROBES,
            combinations: combinations.collect(),
        }
    });
    FilterSpec::Subset(spec)
}

/// What is made of the queries for the whole element and all combinations that are asked for, each
/// as often as the others; nothing if it is not known how many values they have.
fn with_workload<T>(
    plan: &ComparePlan,
    expected: &Expected,
    make: impl FnOnce(&Workload<'_>) -> T,
) -> Option<T> {
    let asked = plan.asked();
    let values = |mask: u32| {
        let known = expected.values.iter().find(|(of, _)| *of == mask);
        let values = known.map(|&(_, values)| values).or(expected.elements);
        values.map(|values| values.max(1) as f64)
    };
    if asked.iter().any(|&mask| values(mask).is_none()) {
        return None;
    }
    let share = 1.0 / asked.len() as f64;
    let wanted: Vec<(u32, f64)> = asked.iter().map(|&mask| (mask, share)).collect();
    Some(make(&Workload {
        attributes: plan.rule.kind.arity(),
        wanted: &wanted,
        known: 1.0,
        values: &|mask| values(mask).unwrap_or(1.0),
    }))
}

/// A structure in an open slice.
#[derive(Debug)]
enum State {
    /// With the raw count of a filter.
    Counter(Counter, u64),
    Exact(Box<ExactSet>),
}

/// What a candidate says of a closed slice.
#[derive(Debug, Default)]
pub(super) struct CandidateTally {
    pub(super) count: SliceCount,
    pub(super) memory_bytes: u64,
    /// For every set of questions the number of yeses; `None` if there is no answer.
    pub(super) positives: Vec<Option<u64>>,
    /// For every set of questions the yeses that the formulas predict.
    pub(super) predicted: Vec<Option<f64>>,
    /// Nanoseconds that insertions took since the last closing, and how many there were.
    pub(super) time: (u64, u64),
}

/// A structure and its states; lives in one thread.
#[derive(Debug)]
pub(super) struct Candidate {
    design: Design,
    full: u32,
    slots: Vec<State>,
    sightings: Vec<Sighting>,
    timing: bool,
    time: (u64, u64),
}

impl Candidate {
    pub(super) fn new(design: Design, plan: &ComparePlan) -> Self {
        // All at once, while it is known that the system gives their memory.
        let slots = (0..plan.open_slices()).map(|_| design.build());
        Self {
            slots: slots.collect(),
            design,
            full: plan.rule.kind.all(),
            sightings: Vec::new(),
            timing: plan.timing,
            time: (0, 0),
        }
    }

    /// Sees to it that the slot is there.
    fn reach(&mut self, slot: usize) {
        while self.slots.len() <= slot {
            self.slots.push(self.design.build());
        }
    }

    pub(super) fn add(&mut self, slot: usize, elements: &ElementColumns) {
        self.reach(slot);
        let started = self.timing.then(Instant::now);
        match &mut self.slots[slot] {
            State::Counter(counter, first) => {
                let columns =
                    DigestColumns { whole: &elements.digests, attributes: &elements.attributes };
                self.sightings.clear();
                counter.insert_batch(columns, &mut self.sightings);
                let firsts = self.sightings.iter();
                *first += firsts.filter(|&&s| s == Sighting::First).count() as u64;
            }
            State::Exact(set) => {
                for key in elements.keys.iter() {
                    set.insert(key);
                }
            }
        }
        if let Some(started) = started {
            self.time.0 += started.elapsed().as_nanos() as u64;
            self.time.1 += elements.len() as u64;
        }
    }

    /// The answers about the slice in this slot, which is empty afterwards.
    pub(super) fn close(&mut self, slot: usize, questions: &Questions) -> CandidateTally {
        self.reach(slot);
        let (full, state) = (self.full, &mut self.slots[slot]);
        let mut tally =
            CandidateTally { time: std::mem::take(&mut self.time), ..CandidateTally::default() };
        for set in &questions.sets {
            tally.positives.push(state.positives(set, full));
            let spec = self.design.filter().zip(questions.values.as_ref());
            tally.predicted.push(spec.and_then(|(spec, values)| {
                let expected = set.known.iter().map(|&(known, queries)| {
                    let rate = spec.rate(&Query {
                        mask: set.mask,
                        full,
                        known: Known::all_of(known),
                        values: &|mask| values.of(mask),
                    })?;
                    Some(rate * queries as f64)
                });
                expected.sum()
            }));
        }
        match state {
            State::Counter(counter, first) => {
                let estimate = counter.distinct();
                let Design::Counter(spec) = &self.design else {
                    unreachable!("a counter is built from the parameters of one")
                };
                tally.count = SliceCount {
                    first: spec.filter().map(|_| *first),
                    estimate: estimate.map(|estimate| estimate.distinct),
                    std_error: estimate.map(Estimate::std_error),
                    saturated: counter.is_saturated(spec, *first),
                };
                tally.memory_bytes = counter.memory_bytes();
                counter.clear();
                *first = 0;
            }
            State::Exact(set) => {
                let count = set.distinct();
                tally.count = SliceCount {
                    first: count,
                    estimate: count.map(|count| count as f64),
                    std_error: count.map(|_| 0.0),
                    saturated: false,
                };
                tally.memory_bytes = set.memory_bytes();
                set.clear();
            }
        }
        tally
    }
}

impl State {
    /// Queries of a set that are answered by yes; `None` if the structure has no answer for them.
    fn positives(&self, set: &QuestionSet, full: u32) -> Option<u64> {
        match self {
            Self::Counter(Counter::Filter(filter), _) => positives(filter.as_ref(), set, full),
            // A sketch answers nothing, and the exact set is not asked: it is how negatives are
            // known.
            Self::Counter(
                Counter::HyperLogLog(_) | Counter::ExaLogLog(_) | Counter::Pane(_),
                _,
            )
            | Self::Exact(_) => None,
        }
    }
}

fn positives(filter: &dyn MembershipFilter, set: &QuestionSet, full: u32) -> Option<u64> {
    if set.mask == full {
        let elements = DigestColumns { whole: &set.whole, attributes: &set.attributes };
        let mut answers = Vec::with_capacity(set.whole.len());
        filter.contains_batch(elements, &mut answers);
        let yes = answers.iter().filter(|&&answer| answer);
        return Some(yes.count() as u64);
    }
    let patterns = PatternColumns {
        arity: full.count_ones() as usize,
        mask: set.mask,
        attributes: &set.attributes,
    };
    let mut answers = Vec::with_capacity(set.queries as usize);
    filter.as_multi_attribute()?.contains_where_batch(patterns, &mut answers);
    let yes = answers.iter().map(|answer| match answer {
        PatternAnswer::Absent => Some(0),
        // A structure that cannot tell values apart does not say no.
        PatternAnswer::Present | PatternAnswer::PresentApart => Some(1),
        PatternAnswer::Unknown => None,
    });
    yes.sum()
}
