//! Counting distinct elements with the filter that recognises repeats.
//!
//! A filter that calls a new element a repeat with probability p loses that element from its raw
//! count. The martingale ("historic inverse probability", HIP) estimator makes up for it: when an
//! element is called new, add `1 / (1 - p)`, with p taken from the state *before* the insert. Each
//! new element then adds 1 in expectation, whatever the state, so the sum is exactly unbiased for
//! every order and number of repeats (repeats add nothing). Its variance is the expectation of the
//! sum of `p / (1 - p)²` over the elements called new, which is kept beside it.
//!
//! Reference: Ting, "Streamed approximate counting of distinct elements", KDD 2014; Cohen,
//! "All-distances sketches, revisited", PODS 2014.

use super::Estimate;

/// Running count and variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HipCounter {
    distinct: f64,
    variance: f64,
}

impl HipCounter {
    /// Records an element that was called new although it had `repeat_probability` (0 ≤ p < 1) to be
    /// called a repeat.
    #[inline]
    pub fn record(&mut self, repeat_probability: f64) {
        let weight = 1.0 / (1.0 - repeat_probability);
        self.distinct += weight;
        self.variance += repeat_probability * weight * weight;
    }

    /// Records only what was lost beside such elements, p / (1 - p) each, from one that stands for `scale`
    /// of them: one in `scale`, chosen at random. [`HipCounter::record`] is 1 and this with a scale of 1.
    #[inline]
    pub(super) fn record_lost(&mut self, repeat_probability: f64, scale: f64) {
        let weight = scale / (1.0 - repeat_probability);
        self.distinct += repeat_probability * weight;
        self.variance += repeat_probability * weight * (1.0 + repeat_probability * weight);
    }

    /// A count that is not known any more, whatever comes: that of a union.
    pub const LOST: Self = Self {
        distinct: f64::NAN,
        variance: f64::NAN,
    };

    /// A count to go on from; `None` unless both are numbers from 0 on.
    pub fn from_estimate(distinct: f64, variance: f64) -> Option<Self> {
        let is_count = |number: f64| number.is_finite() && number >= 0.0;
        (is_count(distinct) && is_count(variance)).then_some(Self { distinct, variance })
    }

    /// The count so far, unless it is lost.
    pub fn known(self) -> Option<Estimate> {
        (!self.distinct.is_nan()).then(|| self.estimate())
    }

    /// What is known of the count when the elements of another filter come in all at once: all of it
    /// if there were none there or none here, and else nothing.
    pub fn unite(&mut self, other: Self) {
        if *self == Self::default() {
            *self = other;
        } else if other != Self::default() {
            *self = Self::LOST;
        }
    }

    /// The same for filters that have no count once something was removed.
    pub(super) fn unite_where_known(counter: &mut Option<Self>, other: Option<Self>) {
        match (counter.as_mut(), other) {
            (Some(counter), Some(other)) => counter.unite(other),
            _ => *counter = None,
        }
    }

    /// The count so far; no numbers if it is lost.
    pub const fn estimate(&self) -> Estimate {
        Estimate {
            distinct: self.distinct,
            variance: self.variance,
        }
    }
}
