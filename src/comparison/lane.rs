//! One structure with one memory: what it is made of, and its state in each open slice.

use super::negatives::{QuestionSet, Questions};
use super::predicted;
use super::results::{Expected, SliceCount};
use super::{ComparePlan, Contender};
use crate::elements::ElementColumns;
use crate::filters::allocation::{Demand, shared_probes};
use crate::filters::sizing::{DEFAULT_PROBES, MAX_LINE_PROBES};
use crate::filters::{
    DigestColumns, ElementDigests, Estimate, FilterKind, FilterSpec, HyperLogLog, MembershipFilter,
    Pattern, PatternAnswer, PlannedCombination, Sighting, Sizing, SpecError,
};
use crate::hashing::Digest;
use crate::pipeline::ExactSet;
use std::time::Instant;

/// A structure that fits its memory.
#[derive(Clone, Debug)]
pub(super) enum Design {
    Filter(FilterSpec),
    Hll { precision: u8 },
    Exact { limit_bytes: u64 },
}

/// One that does not, or cannot be.
#[derive(Clone, Debug)]
pub(super) struct Unfit {
    pub(super) needed_bytes: Option<u64>,
    pub(super) why: String,
}

impl Design {
    /// The structure with so many bytes, made for the elements that are expected.
    pub(super) fn new(
        contender: Contender,
        bytes: u64,
        expected: &Expected,
        plan: &ComparePlan,
    ) -> Result<Self, Unfit> {
        let attributes = plan.rule.kind.attributes().len();
        let sizing = Sizing::Memory {
            bytes,
            expected: expected.elements,
        };
        let filter = |kind| {
            FilterSpec::new(kind, attributes, sizing).map_err(|error| Unfit {
                needed_bytes: match error {
                    SpecError::TooLittleMemory { least, .. } => Some(least),
                    _ => None,
                },
                why: error.to_string(),
            })
        };
        match contender {
            Contender::Filter(kind) => filter(kind).map(Self::Filter),
            Contender::SubsetPlanned => {
                let FilterSpec::Subset { lines, .. } = filter(FilterKind::Subset)? else {
                    unreachable!("a subset filter is one")
                };
                Ok(Self::Filter(planned(plan, expected, lines)))
            }
            Contender::Hll => match HyperLogLog::precision_within(bytes) {
                Some(precision) => Ok(Self::Hll { precision }),
                None => Err(Unfit {
                    needed_bytes: Some(1 << HyperLogLog::MIN_PRECISION),
                    why: format!(
                        "an hll counter needs at least {} bytes, not {bytes}",
                        1 << HyperLogLog::MIN_PRECISION
                    ),
                }),
            },
            Contender::Exact => Ok(Self::Exact { limit_bytes: bytes }),
        }
    }

    fn build(&self) -> State {
        match self {
            Self::Filter(spec) => State::Filter(spec.build(), 0),
            Self::Hll { precision } => State::Hll(HyperLogLog::new(*precision)),
            Self::Exact { limit_bytes } => State::Exact(Box::new(ExactSet::new(*limit_bytes))),
        }
    }
}

/// A subset filter for the whole element and all combinations that are asked for, each as often as the
/// others.
fn planned(plan: &ComparePlan, expected: &Expected, lines: u64) -> FilterSpec {
    let asked = plan.asked();
    let values = |mask: u32| {
        let known = expected.values.iter().find(|(of, _)| *of == mask);
        let values = known.map(|&(_, values)| values).or(expected.elements);
        values.map(|values| values.max(1) as f64)
    };
    let demands: Option<Vec<Demand>> = asked
        .iter()
        .map(|&mask| {
            Some(Demand {
                elements: values(mask)?,
                weight: 1.0 / asked.len() as f64,
            })
        })
        .collect();
    let probes = demands.map_or_else(
        || vec![DEFAULT_PROBES; asked.len()],
        |demands| shared_probes(&demands, (lines * 512) as f64, MAX_LINE_PROBES),
    );
    let parts = asked.iter().zip(&probes).skip(1);
    FilterSpec::Subset {
        attributes: plan.rule.kind.attributes().len(),
        lines,
        probes: probes[0],
        combinations: parts
            .map(|(&mask, &probes)| PlannedCombination { mask, probes })
            .collect(),
    }
}

/// A structure in an open slice.
#[derive(Debug)]
enum State {
    /// With its raw count.
    Filter(Box<dyn MembershipFilter>, u64),
    Hll(HyperLogLog),
    Exact(Box<ExactSet>),
}

/// What a lane says of a closed slice.
#[derive(Debug, Default)]
pub(super) struct LaneTally {
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
pub(super) struct Lane {
    design: Design,
    full: u32,
    slots: Vec<State>,
    sightings: Vec<Sighting>,
    timing: bool,
    time: (u64, u64),
}

impl Lane {
    pub(super) fn new(design: Design, plan: &ComparePlan) -> Self {
        Self {
            design,
            full: plan.rule.kind.all(),
            slots: Vec::new(),
            sightings: Vec::new(),
            timing: plan.timing,
            time: (0, 0),
        }
    }

    pub(super) fn add(&mut self, slot: usize, elements: &ElementColumns) {
        while self.slots.len() <= slot {
            self.slots.push(self.design.build());
        }
        let started = self.timing.then(Instant::now);
        match &mut self.slots[slot] {
            State::Filter(filter, first) => {
                let columns = DigestColumns {
                    whole: &elements.digests,
                    attributes: &elements.attributes,
                };
                self.sightings.clear();
                filter.insert_batch(columns, &mut self.sightings);
                let firsts = self.sightings.iter();
                *first += firsts.filter(|&&s| s == Sighting::First).count() as u64;
            }
            State::Hll(sketch) => {
                for &digest in &elements.digests {
                    sketch.insert(digest);
                }
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
    pub(super) fn close(&mut self, slot: usize, questions: &Questions) -> LaneTally {
        while self.slots.len() <= slot {
            self.slots.push(self.design.build());
        }
        let (full, state) = (self.full, &mut self.slots[slot]);
        let mut tally = LaneTally {
            time: std::mem::take(&mut self.time),
            ..LaneTally::default()
        };
        for set in &questions.sets {
            tally.positives.push(state.positives(set, full));
            let spec = match &self.design {
                Design::Filter(spec) => Some(spec),
                Design::Hll { .. } | Design::Exact { .. } => None,
            };
            tally.predicted.push(
                spec.zip(questions.values.as_ref())
                    .and_then(|(spec, values)| {
                        let expected = set.known.iter().map(|&(known, queries)| {
                            let rate = predicted::rate(spec, values, full, set.mask, known)?;
                            Some(rate * queries as f64)
                        });
                        expected.sum()
                    }),
            );
        }
        match state {
            State::Filter(filter, first) => {
                let estimate = filter.distinct();
                tally.count = SliceCount {
                    first: Some(*first),
                    estimate: estimate.map(|estimate| estimate.distinct),
                    std_error: estimate.map(Estimate::std_error),
                };
                tally.memory_bytes = filter.stats().memory_bytes;
                filter.clear();
                *first = 0;
            }
            State::Hll(sketch) => {
                let estimate = sketch.estimate();
                tally.count = SliceCount {
                    first: None,
                    estimate: Some(estimate.distinct),
                    std_error: Some(estimate.std_error()),
                };
                tally.memory_bytes = sketch.memory_bytes();
                sketch.clear();
            }
            State::Exact(set) => {
                let count = set.len();
                tally.count = SliceCount {
                    first: count,
                    estimate: count.map(|count| count as f64),
                    std_error: count.map(|_| 0.0),
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
            Self::Filter(filter, _) => positives(filter.as_ref(), set, full),
            // A sketch answers nothing, and the exact set is not asked: it is how negatives are known.
            Self::Hll(_) | Self::Exact(_) => None,
        }
    }
}

fn positives(filter: &dyn MembershipFilter, set: &QuestionSet, full: u32) -> Option<u64> {
    let arity = set.mask.count_ones() as usize;
    if set.mask == full {
        let elements = set.whole.iter().zip(set.attributes.chunks_exact(arity));
        let yes = elements
            .filter(|&(&whole, attributes)| filter.contains(ElementDigests { whole, attributes }));
        return Some(yes.count() as u64);
    }
    let filter = filter.as_multi_attribute()?;
    let mut pattern: Vec<Option<Digest>> = vec![None; full.count_ones() as usize];
    let members: Vec<usize> = (0..pattern.len())
        .filter(|member| set.mask >> member & 1 == 1)
        .collect();
    let mut yes = 0;
    for query in set.attributes.chunks_exact(arity) {
        for (&member, &digest) in members.iter().zip(query) {
            pattern[member] = Some(digest);
        }
        match filter.contains_where(Pattern {
            whole: None,
            attributes: &pattern,
        }) {
            PatternAnswer::Absent => {}
            // A structure that cannot tell values apart does not say no.
            PatternAnswer::Present | PatternAnswer::PresentApart => yes += 1,
            PatternAnswer::Unknown => return None,
        }
    }
    Some(yes)
}
