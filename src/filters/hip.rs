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

    /// The count so far.
    pub const fn estimate(&self) -> Estimate {
        Estimate {
            distinct: self.distinct,
            variance: self.variance,
        }
    }
}
