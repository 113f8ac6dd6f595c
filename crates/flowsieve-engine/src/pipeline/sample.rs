//! How many distinct values the combinations of attributes have in captures, and how evenly they
//! are spread: what a plan rests on.

use super::byte_map::ExactSet;
use crate::elements::{ElementBatch, ElementKind, ElementRule, Extractor};
use crate::guard::Broken;
use crate::hashing::{Digest, Digester};
use crate::inputs::{Feed, InputResult, Merge, Watch};
use crate::plan::TracePlan;
use crate::selection::Selection;
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

/// The parameters of a sample.
#[derive(Clone, Debug)]
pub struct SamplePlan {
    /// Inputs and their packets.
    pub trace: TracePlan,
    /// Which elements.
    pub rule: ElementRule,
    /// Combinations to count in addition to the whole element, bit i for attribute i.
    pub masks: Vec<u32>,
    /// Bytes that all sets may take together.
    pub limit_bytes: u64,
}

/// The result of a sample.
#[derive(Debug, Default)]
pub struct SampleResult {
    /// Which packets took part.
    pub selection: Selection,
    /// The outcome of each input.
    pub inputs: Vec<InputResult>,
    /// Packets read.
    pub packets: u64,
    /// Elements, repeats included.
    pub elements: u64,
    /// The reading was ended before the captures were.
    pub interrupted: bool,
    /// Distinct values of each combination of the plan, the whole element last; `None` if its set
    /// would have passed its share of the limit.
    pub distinct: Vec<(u32, Option<u64>)>,
    /// Spread of the values of each attribute; empty if the limit was passed.
    pub spread: Vec<Spread>,
}

/// How the distinct elements are spread over the values of one attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Distinct values.
    pub values: u64,
    /// Distinct elements with the most frequent value.
    pub most: u64,
    /// Distinct elements that a random distinct element shares its value with, itself included; for
    /// evenly spread values about n / values + 1.
    pub mean: f64,
    /// Distinct elements.
    pub elements: u64,
}

impl Spread {
    /// How many times more elements share a value than if values were evenly spread.
    pub fn skew(&self) -> f64 {
        self.mean / (self.elements as f64 / self.values as f64 + 1.0)
    }
}

/// A skew from which on the formulas of matrices do not hold.
pub const SKEWED: f64 = 4.0;

/// Reads the inputs once and counts exactly. They are one after the other, not merged by time:
/// distinct values do not depend on the order.
///
/// Damaged inputs are no error: [`InputResult::error`] says what happened. The flag of the watch
/// ends the pipeline.
///
/// # Errors
///
/// Counting panicked, which is a mistake of flowsieve's own.
pub fn sample(plan: &SamplePlan, watch: &dyn Watch) -> Result<SampleResult, Broken> {
    let attributes = plan.rule.kind.arity();
    let full = (1_u32 << attributes) - 1;
    let masks: Vec<u32> = plan.masks.iter().copied().filter(|&m| m != full).collect();
    // Sets for the combinations and for the whole, and tables for the spread.
    let share = plan.limit_bytes / (masks.len() + 1 + attributes) as u64;
    let mut meter = Meter {
        whole: ExactSet::new(share),
        sets: masks.iter().map(|_| ExactSet::new(share)).collect(),
        masks,
        spread: Some(vec![HashMap::with_hasher(ahash::RandomState::new()); attributes]),
        share,
        part: Vec::new(),
    };
    let digester = Digester::new(0);
    let extractor = Extractor::new(plan.rule.clone(), &plan.trace.headers, digester, true, true);
    let builder = Arc::new(extractor);
    let mut result =
        SampleResult { selection: plan.trace.selection.clone(), ..SampleResult::default() };
    let read = thread::scope(|scope| {
        // No input is due before those in front of it are at their end.
        let sources = plan.trace.sources().into_iter();
        let sources = sources.map(|source| (source, i64::MAX));
        let begin = |capture, _| Feed::start(scope, capture, &builder, 0, 0);
        let merge = Merge::with_times(sources, plan.trace.input_format, watch, begin);
        merge.drain(watch, |_, feed, packets| {
            let Feed { batch, cursor, .. } = feed;
            let elements = cursor.pass(batch, cursor.packet + packets, |_| {});
            result.packets += packets as u64;
            result.elements += elements.len() as u64;
            meter.take(batch, elements, plan.rule.kind, attributes);
            Ok::<(), Broken>(())
        })
    });
    (result.inputs, result.interrupted) = read?;
    let Meter { whole, sets, masks, spread, .. } = meter;
    let counts = sets.iter().map(ExactSet::distinct);
    result.distinct = masks.into_iter().zip(counts).collect();
    result.distinct.push((full, whole.distinct()));
    if let (Some(spread), Some(elements)) = (spread, whole.distinct()) {
        result.spread = spread.iter().map(|of| spread_of(of, elements)).collect();
    }
    Ok(result)
}

struct Meter {
    whole: ExactSet,
    masks: Vec<u32>,
    sets: Vec<ExactSet>,
    /// Distinct elements with each value of each attribute.
    spread: Option<Vec<HashMap<Digest, u64, ahash::RandomState>>>,
    share: u64,
    part: Vec<u8>,
}

impl Meter {
    fn take(
        &mut self,
        batch: &ElementBatch,
        elements: Range<usize>,
        kind: ElementKind,
        attributes: usize,
    ) {
        for element in elements {
            let key = batch.elements.keys.get(element);
            let digests = &batch.elements.attributes[element * attributes..][..attributes];
            // No combination of a known element is new.
            if !self.whole.insert(key) {
                continue;
            }
            for (&mask, set) in self.masks.iter().zip(&mut self.sets) {
                self.part.clear();
                kind.part(key, mask, &mut self.part);
                set.insert(&self.part);
            }
            let Some(spread) = &mut self.spread else { continue };
            let mut refused = false;
            for (of, &digest) in spread.iter_mut().zip(digests) {
                refused |= of.try_reserve(1).is_err();
                if !refused {
                    *of.entry(digest).or_default() += 1;
                }
            }
            // Twice the size while a table grows.
            let is_large = |of: &HashMap<_, _, _>| 3 * of.allocation_size() as u64 > self.share;
            if refused || spread.iter().any(is_large) {
                self.spread = None;
            }
        }
    }
}

fn spread_of(of: &HashMap<Digest, u64, ahash::RandomState>, elements: u64) -> Spread {
    let squares: f64 = of.values().map(|&n| (n as f64).powi(2)).sum();
    Spread {
        values: of.len() as u64,
        most: of.values().copied().max().unwrap_or(0),
        mean: squares / elements.max(1) as f64,
        elements,
    }
}
