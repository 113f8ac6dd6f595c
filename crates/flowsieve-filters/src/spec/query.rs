//! Queries as input of the formulas for false-positive rates.

use super::FilterSpec;
use crate::matrix_sizing::all_of;
use crate::sizing::MAX_PROBES;

/// A query whose false-positive rate is predicted.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The attributes with a value in the query, bit i for attribute i.
    pub mask: u32,
    /// The mask of all attributes.
    pub full: u32,
    /// The query's values that occur, though not together.
    pub known: Known,
    /// Returns the number of distinct values of a combination among the elements inserted.
    pub values: &'a dyn Fn(u32) -> f64,
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Query({:#b} of {:#b})", self.mask, self.full)
    }
}

/// The values of a query that occur in different elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// The attributes whose values may occur, bit i for attribute i.
    pub mask: u32,
    /// Probability that their values occur (α). The values of other attributes do not.
    pub share: f64,
}

impl Known {
    /// States that the values of these attributes occur.
    pub const fn all_of(mask: u32) -> Self {
        Self { mask, share: 1.0 }
    }

    /// Returns the probability that all values of these attributes occur.
    pub fn of(self, attributes: u32) -> f64 {
        if attributes & !self.mask == 0 { self.share } else { 0.0 }
    }
}

impl Query<'_> {
    /// Returns the number of distinct elements.
    pub fn elements(&self) -> f64 {
        (self.values)(self.full)
    }

    /// Returns the rate of a structure that only stores whole elements, given its rate for a number
    /// of distinct elements; `None` unless all attributes have a value.
    pub(crate) fn of_whole(&self, rate: impl FnOnce(f64) -> f64) -> Option<f64> {
        (self.mask == self.full).then(|| rate(self.elements()))
    }
}

/// Measures a filter on elements: returns the share of the queries for absent values of each wanted
/// combination that it answers by yes, with `None` for a combination that it does not answer, or
/// `None` if nothing can be measured.
pub type Measure<'a> = dyn FnMut(&FilterSpec) -> Option<Vec<Option<f64>>> + 'a;

/// A mixture of queries to a filter, and the elements in it.
#[derive(Clone, Copy)]
pub struct Workload<'a> {
    /// Number of attributes of an element.
    pub attributes: usize,
    /// The wanted combinations, each with its share of the queries.
    pub wanted: &'a [(u32, f64)],
    /// Probability that the values of a query for two or more attributes occur (α).
    pub known: f64,
    /// Returns the number of distinct values of a combination.
    pub values: &'a dyn Fn(u32) -> f64,
}

impl std::fmt::Debug for Workload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workload({:?})", self.wanted)
    }
}

impl Workload<'_> {
    /// Returns the mask of all attributes.
    pub fn full(&self) -> u32 {
        all_of(self.attributes)
    }

    /// Returns the number of distinct elements.
    pub fn elements(&self) -> f64 {
        (self.values)(self.full())
    }

    /// Returns the predicted false-positive rate of each wanted combination, with `None` for those
    /// that the filter does not answer.
    pub fn rates(&self, spec: &FilterSpec) -> Vec<Option<f64>> {
        let rate = |&(mask, _): &(u32, f64)| {
            // If the value of a query for a single attribute occurs, the query is a true positive.
            let known = if mask.is_power_of_two() {
                Known::default()
            } else {
                Known { mask, share: self.known }
            };
            spec.rate(&Query { mask, full: self.full(), known, values: self.values })
        };
        self.wanted.iter().map(rate).collect()
    }

    /// Returns the mean of these rates, weighted by the shares of the queries. A combination
    /// without an answer counts as `otherwise`, or not at all if that is `None`. The mean of
    /// nothing is 1.
    pub fn weighted(&self, rates: &[Option<f64>], otherwise: Option<f64>) -> f64 {
        let mut sum = 0.0;
        let mut weights = 0.0;
        for (&(_, share), rate) in self.wanted.iter().zip(rates) {
            if let Some(rate) = rate.or(otherwise) {
                sum += share * rate;
                weights += share;
            }
        }
        if weights > 0.0 { sum / weights } else { 1.0 }
    }

    /// Returns the mean rate of the combinations that a filter answers.
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

    /// Returns whether there are queries for two or more but not all attributes whose values may
    /// occur in different elements.
    pub(crate) fn asks_for_known_parts(&self) -> bool {
        let is_part = |mask: u32| mask != self.full() && mask.count_ones() > 1;
        self.known > 0.0 && self.wanted.iter().any(|&(mask, _)| is_part(mask))
    }
}
