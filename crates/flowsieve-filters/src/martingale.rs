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
//! What a filter of other elements adds all at once is no stream. If the fill of a union tells its
//! size, the count goes on from there; else only its bounds are known.
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
    base: Base,
    /// Elements seen (X).
    seen: u64,
    /// Mean of those that were missed (μ).
    missed: f64,
    /// Its variance.
    variance: f64,
}

/// The count of the elements that came in all at once, before the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Base {
    /// There are none.
    #[default]
    Empty,
    /// An estimate, whose error is about normal.
    Estimated {
        /// The count.
        distinct: f64,
        /// Its variance.
        variance: f64,
    },
    /// Bounds only.
    Bounds {
        /// Lower bound.
        lower: u64,
        /// Upper bound, if there is one.
        upper: Option<u64>,
    },
}

/// Probabilities for a new element in the present state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chances {
    /// It is seen (1 - u), which is computed by itself since u may be next to 1.
    pub(crate) seen: f64,
    /// It is missed (u).
    pub(crate) missed: f64,
}

impl Chances {
    /// From the probability that it is seen.
    pub(crate) const fn of_seen(seen: f64) -> Self {
        Self { seen, missed: 1.0 - seen }
    }

    /// From the probability that it is missed.
    pub(crate) const fn of_missed(missed: f64) -> Self {
        Self { seen: 1.0 - missed, missed }
    }
}

impl DistinctCounter {
    /// A count to go on from; `None` unless its numbers are finite and not negative.
    pub(crate) fn of_parts(base: Base, seen: u64, missed: f64, variance: f64) -> Option<Self> {
        let is_count = |number: f64| number.is_finite() && number >= 0.0;
        let can_be = match base {
            Base::Empty => true,
            Base::Estimated { distinct, variance } => is_count(distinct) && is_count(variance),
            Base::Bounds { lower, upper } => upper.is_none_or(|upper| lower <= upper),
        };
        let can_be = can_be && is_count(missed) && is_count(variance);
        can_be.then_some(Self { base, seen, missed, variance })
    }

    /// The count before the stream; elements seen, mean and variance of those that were missed.
    pub(crate) const fn parts(&self) -> (Base, u64, f64, f64) {
        (self.base, self.seen, self.missed, self.variance)
    }

    /// Records an insertion, of what was new or not. `repeat_probability` is that with which a new
    /// element was called a repeat before the insertion; it is asked for only if the element is
    /// new.
    #[inline]
    pub fn record(&mut self, sighting: Sighting, repeat_probability: impl FnOnce() -> f64) {
        if sighting == Sighting::First {
            self.record_seen(Chances::of_missed(repeat_probability()));
        }
    }

    /// Records insertions of up to [`ProbeBatch::MOST`] elements in order, the new ones
    /// being those that changed bits (`fresh`); `repeat_probability` is called with their number.
    #[inline]
    pub(crate) fn record_all(&mut self, fresh: &[u8], repeat_probability: impl Fn(usize) -> f64) {
        // Found without a branch: whether an element is new is a coin's toss.
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

    /// Records an element that was seen, where a new one had these chances; returns the mean of
    /// those that were missed with it, u / (1 - u).
    #[inline]
    pub(crate) fn record_seen(&mut self, chances: Chances) -> f64 {
        let mean = chances.missed / chances.seen;
        self.record_mean(mean);
        mean
    }

    /// Records an element that was seen, where a new one had this mean u / (1 - u) of those that are
    /// missed with it.
    #[inline]
    pub(crate) fn record_mean(&mut self, mean: f64) {
        self.seen += 1;
        self.missed += mean;
        self.variance += mean * (1.0 + mean);
    }

    /// Elements of the stream that were seen; `None` if others came in all at once.
    pub(crate) fn seen(&self) -> Option<u64> {
        (self.base == Base::Empty).then_some(self.seen)
    }

    /// The count, about, as a number to compute with.
    pub(crate) fn about(&self) -> f64 {
        let base = match self.base {
            Base::Empty => 0.0,
            Base::Estimated { distinct, .. } => distinct,
            Base::Bounds { lower, upper } => Estimate::bounded(lower, upper).distinct,
        };
        base + self.seen as f64 + self.missed
    }

    /// Whether nothing was ever counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes this the count of a union, given the counts of both ([`DistinctCounter::estimate`])
    /// and the estimate from the fill of the union, if there is one.
    pub fn unite(&mut self, other: &Self, of_both: [Option<Estimate>; 2], fill: Option<Estimate>) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = *other;
            return;
        }
        let base = match (fill, of_both) {
            (Some(Estimate { distinct, variance, .. }), _) => {
                Base::Estimated { distinct, variance }
            }
            (None, [Some(one), Some(other)]) => {
                let lower = one.lower().max(other.lower());
                Base::Bounds { lower, upper: one.plus(other).upper().map(|it| it.max(lower)) }
            }
            (None, _) => Base::Bounds { lower: 0, upper: None },
        };
        *self = Self { base, ..Self::default() };
    }

    /// The same for counts that may have ended: then that of the union has, too.
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

    /// The count; `repeat_probability` is that with which a new element would be called a repeat
    /// now.
    pub fn estimate(&self, repeat_probability: impl FnOnce() -> f64) -> Estimate {
        self.estimate_with(|| Chances::of_missed(repeat_probability()), LEAST_SEEN)
    }

    /// The same by the probabilities of both; without an upper bound if less than the share
    /// `least_seen` of the new elements would be seen.
    pub(crate) fn estimate_with(
        &self,
        chances: impl FnOnce() -> Chances,
        least_seen: f64,
    ) -> Estimate {
        if self.is_empty() {
            return Estimate::default();
        }
        let chances = chances();
        let (next_mean, next_variance) = if chances.seen < least_seen || chances.seen <= 0.0 {
            (f64::INFINITY, 0.0)
        } else {
            let mean = chances.missed / chances.seen;
            (mean, mean * (1.0 + mean))
        };
        let stream = Estimate {
            distinct: self.seen as f64 + self.missed,
            variance: self.variance,
            basis: Basis::Stream(Seen {
                elements: self.seen,
                next_mean,
                next_variance,
                streams: 1,
            }),
        };
        match self.base {
            Base::Empty => stream,
            Base::Estimated { distinct, variance } => {
                Estimate::scattered(distinct, variance).plus(stream)
            }
            Base::Bounds { lower, upper } => Estimate::bounded(lower, upper).plus(stream),
        }
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
