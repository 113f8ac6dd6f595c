//! Counting distinct elements with the filter that recognises repeats: the martingale.
//!
//! A filter that calls a new element a repeat with probability u loses that element from its raw
//! count. The martingale ("historic inverse probability", HIP) estimator makes up for it: when an
//! element is seen to be new, add `1 / (1 - u)`, with u taken from the state *before* it. Each new
//! element then adds 1 in expectation, for any state, so the sum is exactly unbiased for every
//! order and number of repeats. Its variance is the expectation of the sum of `u / (1 - u)²` over
//! the elements seen, which is kept with it.
//!
//! A filter that notices next to no new element has missed any number of them: then its count has
//! no upper bound ([`Estimate::upper`]). [`SubsetFilter`](crate::SubsetFilter) goes on before it
//! gets there, with half of the elements.
//!
//! A union adds the elements of another filter all at once, which is no stream. If its fill gives
//! its size, the count goes on from there; else only bounds are known.
//!
//! Reference: Ting, "Streamed approximate counting of distinct elements", KDD 2014; Cohen,
//! "All-distances sketches, revisited", PODS 2014.

use super::{Basis, Estimate, Seen, Sighting};
use crate::hashing::ProbeBatch;

/// Share of the new elements that a filter has to notice for its count to have an upper bound.
const LEAST_SEEN: f64 = 0.01;

/// Running count of the distinct elements in a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DistinctCounter {
    /// Count of the elements that a union added before the stream.
    base: Estimate,
    /// Elements seen (X).
    seen: u64,
    /// Mean of those that were missed (μ).
    missed: f64,
    /// Variance of that.
    variance: f64,
}

/// Probabilities for a new element in the present state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chances {
    /// Probability that it is seen (1 - u), computed on its own since u may be next to 1.
    pub(crate) seen: f64,
    /// Probability that it is missed (u).
    pub(crate) missed: f64,
}

impl Chances {
    /// Computes both from the probability that the element is seen.
    pub(crate) const fn of_seen(seen: f64) -> Self {
        Self { seen, missed: 1.0 - seen }
    }

    /// Computes both from the probability that the element is missed.
    pub(crate) const fn of_missed(missed: f64) -> Self {
        Self { seen: 1.0 - missed, missed }
    }
}

impl DistinctCounter {
    /// Restores a saved count; `None` unless its numbers are finite and not negative, and its
    /// bounds in order.
    pub(crate) fn of_parts(base: Estimate, seen: u64, missed: f64, variance: f64) -> Option<Self> {
        let numbers = [base.distinct, base.variance, missed, variance];
        let are_counts = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
        let crossed =
            matches!(base.basis, Basis::Bounds { lower, upper: Some(upper) } if upper < lower);
        (are_counts && !crossed).then_some(Self { base, seen, missed, variance })
    }

    /// Returns the count before the stream, the elements seen, and mean and variance of those that
    /// were missed.
    pub(crate) const fn parts(&self) -> (Estimate, u64, f64, f64) {
        (self.base, self.seen, self.missed, self.variance)
    }

    /// Records an insertion. `repeat_probability` is the probability with which a new element would
    /// have been called a repeat before it, and is only computed if the element is new.
    #[inline]
    pub fn record(&mut self, sighting: Sighting, repeat_probability: impl FnOnce() -> f64) {
        if sighting == Sighting::First {
            self.record_seen(Chances::of_missed(repeat_probability()));
        }
    }

    /// Records insertions of up to [`ProbeBatch::MOST`] elements in order. Those that changed bits
    /// (`fresh`) are new, and `repeat_probability` is called with their number.
    #[inline]
    pub(crate) fn record_all(&mut self, fresh: &[u8], repeat_probability: impl Fn(usize) -> f64) {
        // Find them without a branch: no predictor knows whether an element is new.
        let mut new = [0; ProbeBatch::MOST];
        let mut count = 0;
        for (number, &fresh) in fresh.iter().enumerate().take(ProbeBatch::MOST) {
            new[count] = number as u8;
            count += usize::from(fresh != 0);
        }
        for number in new[..count].iter().map(|&number| usize::from(number)) {
            self.record_seen(Chances::of_missed(repeat_probability(number)));
        }
    }

    /// Records an element that was seen with these chances. Returns the mean number of elements
    /// that were missed with it, u / (1 - u).
    #[inline]
    pub(crate) fn record_seen(&mut self, chances: Chances) -> f64 {
        let mean = chances.missed / chances.seen;
        self.record_mean(mean);
        mean
    }

    /// Records an element that was seen, given the mean number u / (1 - u) of elements that were
    /// missed with it.
    #[inline]
    pub(crate) fn record_mean(&mut self, mean: f64) {
        self.seen += 1;
        self.missed += mean;
        self.variance += mean * (1.0 + mean);
    }

    /// Returns the number of elements seen, or `None` if a union added others.
    pub(crate) fn seen(&self) -> Option<u64> {
        (self.base == Estimate::default()).then_some(self.seen)
    }

    /// Returns the count as a number to compute with, without its error.
    pub(crate) fn about(&self) -> f64 {
        self.base.distinct + self.seen as f64 + self.missed
    }

    /// Returns whether nothing was ever counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes this the count of a union. Needs the [estimates](DistinctCounter::estimate) of both
    /// inputs; `fill` is the estimate from the fill of the union, or `None`.
    pub fn unite(&mut self, other: &Self, of_both: [Option<Estimate>; 2], fill: Option<Estimate>) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = *other;
            return;
        }
        let base = match (fill, of_both) {
            (Some(fill), _) => Estimate::scattered(fill.distinct, fill.variance),
            (None, [Some(one), Some(other)]) => {
                let lower = one.lower().max(other.lower());
                Estimate::bounded(lower, one.plus(other).upper().map(|it| it.max(lower)))
            }
            (None, _) => Estimate::bounded(0, None),
        };
        *self = Self { base, ..Self::default() };
    }

    /// [`DistinctCounter::unite`] for counts that a removal may have ended; then the count of the
    /// union has ended, too.
    pub(crate) fn unite_where_known(
        counter: &mut Option<Self>,
        other: Option<&Self>,
        of_both: [Option<Estimate>; 2],
        fill: Option<Estimate>,
    ) {
        match (&mut *counter, other) {
            (Some(counter), Some(other)) => counter.unite(other, of_both, fill),
            _ => *counter = None,
        }
    }

    /// Returns the count, given the probability with which a new element would be called a repeat
    /// now.
    pub fn estimate(&self, repeat_probability: impl FnOnce() -> f64) -> Estimate {
        self.estimate_with(|| Chances::of_missed(repeat_probability()), LEAST_SEEN)
    }

    /// Returns the count, given the chances of a new element. It has no upper bound if less than
    /// the share `least_seen` of the new elements would be seen.
    pub(crate) fn estimate_with(
        &self,
        chances: impl FnOnce() -> Chances,
        least_seen: f64,
    ) -> Estimate {
        if self.is_empty() {
            return Estimate::default();
        }
        let chances = chances();
        let next_mean = if chances.seen < least_seen || chances.seen <= 0.0 {
            f64::INFINITY
        } else {
            chances.missed / chances.seen
        };
        let stream = Estimate {
            distinct: self.seen as f64 + self.missed,
            variance: self.variance,
            basis: Basis::Stream(Seen::of_stream(self.seen, next_mean)),
        };
        self.base.plus(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_filter_has_no_upper_bound() {
        let mut counter = DistinctCounter::default();
        assert_eq!(counter.estimate(|| 1.0), Estimate::default());
        counter.record(Sighting::First, || 0.5);
        counter.record(Sighting::Repeat, || unreachable!("it is not new"));
        for (repeat, full) in [(0.98, false), (0.995, true), (1.0, true)] {
            let estimate = counter.estimate(|| repeat);
            assert_eq!((estimate.distinct, estimate.lower()), (2.0, 1));
            assert_eq!(estimate.is_full(), full);
        }
    }

    #[test]
    fn a_union_goes_on_from_its_fill_or_from_bounds() {
        let of = |elements: u32| {
            let mut counter = DistinctCounter::default();
            (0..elements).for_each(|_| counter.record(Sighting::First, || 0.0));
            counter
        };
        let (mut one, mut other) = (of(10), of(7));
        let both = [&one, &other].map(|counter| Some(counter.estimate(|| 0.0)));
        let mut by_fill = one;
        by_fill.unite(&other, both, Some(Estimate::scattered(15.0, 4.0)));
        by_fill.record(Sighting::First, || 0.5);
        let estimate = by_fill.estimate(|| 0.5);
        assert_eq!((estimate.distinct, estimate.variance), (17.0, 6.0));
        other.unite(&DistinctCounter::default(), [None; 2], None);
        assert_eq!(other, of(7));
        one.unite(&other, both, None);
        let estimate = one.estimate(|| 0.0);
        assert_eq!((estimate.lower(), estimate.upper(), estimate.point()), (10, Some(17), None));
        one.record(Sighting::First, || 0.0);
        let estimate = one.estimate(|| 0.0);
        assert_eq!((estimate.lower(), estimate.upper()), (11, Some(18)));
        assert_eq!(one.seen(), None);
    }
}
