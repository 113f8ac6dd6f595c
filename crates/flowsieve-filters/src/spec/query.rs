//! Queries, as the formulas for false-positive rates see them.

use super::FilterSpec;
use crate::sizing::MAX_PROBES;

/// A query whose false-positive rate is asked for.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The attributes that have a value in the query, bit i for attribute i.
    pub mask: u32,
    /// All attributes of an element.
    pub full: u32,
    /// Which of the query's values occur although the query does not.
    pub known: Known,
    /// Distinct values of each combination among the elements inserted.
    pub values: &'a dyn Fn(u32) -> f64,
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Query({:#b} of {:#b})", self.mask, self.full)
    }
}

/// Which values of a query occur among the elements, each in some other one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// The attributes concerned, bit i for attribute i.
    pub mask: u32,
    /// Probability that their values occur (α); the others' do not.
    pub share: f64,
}

impl Known {
    /// These attributes have values that occur.
    pub const fn all_of(mask: u32) -> Self {
        Self { mask, share: 1.0 }
    }

    /// Probability that all values of these attributes occur.
    pub fn of(self, attributes: u32) -> f64 {
        if attributes & !self.mask == 0 { self.share } else { 0.0 }
    }
}

impl Query<'_> {
    /// Distinct elements.
    pub fn elements(&self) -> f64 {
        (self.values)(self.full)
    }

    /// The rate of a structure that looks at whole elements only.
    pub(crate) fn of_whole(&self, rate: impl FnOnce(f64) -> f64) -> Option<f64> {
        (self.mask == self.full).then(|| rate(self.elements()))
    }
}

/// Measures a filter on elements: which share of the queries for each wanted combination, all of
/// them for absent values, it answers by yes (`None` where it has no answer). `None` if nothing can
/// be measured.
pub type Measure<'a> = dyn FnMut(&FilterSpec) -> Option<Vec<Option<f64>>> + 'a;

/// A mixture of queries to a filter, and the elements in it.
#[derive(Clone, Copy)]
pub struct Workload<'a> {
    /// Number of attributes of an element.
    pub attributes: usize,
    /// The combinations asked for, each with its share of the queries.
    pub wanted: &'a [(u32, f64)],
    /// Probability that a value of a query for two or more attributes occurs (α).
    pub known: f64,
    /// Distinct values of each combination.
    pub values: &'a dyn Fn(u32) -> f64,
}

impl std::fmt::Debug for Workload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workload({:?})", self.wanted)
    }
}

impl Workload<'_> {
    /// All attributes.
    pub fn full(&self) -> u32 {
        ((1_u64 << self.attributes) - 1) as u32
    }

    /// Distinct elements.
    pub fn elements(&self) -> f64 {
        (self.values)(self.full())
    }

    /// Predicted false-positive rate of each combination asked for; `None` where the filter does
    /// not answer it.
    pub fn rates(&self, spec: &FilterSpec) -> Vec<Option<f64>> {
        let rate = |&(mask, _): &(u32, f64)| {
            // The value of a query for a single attribute does not occur, or the query would be no
            // negative.
            let known = if mask.is_power_of_two() {
                Known::default()
            } else {
                Known { mask, share: self.known }
            };
            spec.rate(&Query { mask, full: self.full(), known, values: self.values })
        };
        self.wanted.iter().map(rate).collect()
    }

    /// The mean of these rates by the queries' shares; a combination without an answer counts as
    /// `otherwise`, or not at all. It is 1 where nothing is answered.
    pub fn weighted(&self, rates: &[Option<f64>], otherwise: Option<f64>) -> f64 {
        let mut sum = 0.0;
        let mut of = 0.0;
        for (&(_, share), rate) in self.wanted.iter().zip(rates) {
            if let Some(rate) = rate.or(otherwise) {
                sum += share * rate;
                of += share;
            }
        }
        if of > 0.0 { sum / of } else { 1.0 }
    }

    /// The mean rate of the combinations that a filter answers.
    pub fn answered(&self, spec: &FilterSpec) -> f64 {
        self.weighted(&self.rates(spec), None)
    }

    /// Returns the k with the lowest mean rate among filters that differ in k only.
    pub(crate) fn best_probes(&self, with: impl Fn(u32) -> FilterSpec) -> FilterSpec {
        (1..=MAX_PROBES as u32)
            .map(with)
            .min_by(|a, b| self.answered(a).total_cmp(&self.answered(b)))
            .expect("there is at least one number of hash functions")
    }

    /// Whether a part of the attributes is asked for, some values of which may occur apart from
    /// each other.
    pub(crate) fn asks_for_known_parts(&self) -> bool {
        let is_part = |mask: u32| mask != self.full() && mask.count_ones() > 1;
        self.known > 0.0 && self.wanted.iter().any(|&(mask, _)| is_part(mask))
    }
}
