//! A count of distinct elements, its standard error, and its bounds.
//!
//! # Bounds
//!
//! A stream's count is the number of elements seen (X) and the mean of those missed (μ, with a
//! variance V). The number missed is a sum of geometric numbers, one before each element that was
//! seen. It is modelled by a negative binomial with the same mean and variance, so that bounds also
//! hold if next to nothing is missed, where no normal interval does:
//!
//! ```text
//!     lower = X + 2 % quantile of (μ, V)
//!     upper = X + 98 % quantile of (μ + m, V + v)      m, v: of those missed before the next one seen
//! ```
//!
//! With tails of 2 % the bounds hold in 95 to 98 of 100 cases, and in more if nearly every count is
//! exact. A count without a stream ([`Basis::Scatter`]) is assumed to be normal.
//!
//! There is no upper bound ([`Estimate::upper`] is `None`) when a filter notices so few new
//! elements that any number may have been missed.
//!
//! Measured in `docs/accuracy.md`.

use serde::{Deserialize, Serialize};

/// An unbiased count of distinct elements.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Estimate {
    /// The count.
    pub distinct: f64,
    /// The variance, itself estimated without bias.
    pub variance: f64,
    /// The basis of the count.
    pub basis: Basis,
}

/// The basis of an [`Estimate`], on which its bounds depend.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum Basis {
    /// An observed stream of insertions.
    Stream(Seen),
    /// The state of an array or of registers alone.
    Scatter,
    /// A union of sets of which only the sizes are known: there is no estimate, only bounds.
    Bounds {
        /// Lower bound.
        lower: u64,
        /// Upper bound, if there is one.
        upper: Option<u64>,
    },
}

/// Elements seen in streams of insertions.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Seen {
    /// Elements that were noticed as new: there are at least this many (X). The rest of the count
    /// is the mean of the elements missed (μ).
    pub elements: u64,
    /// Mean number of new elements missed until the next one is seen, summed over the streams (m).
    /// Infinite if too few are seen for an upper bound.
    pub next_mean: f64,
    /// Variance of that number, summed in the same way (v).
    pub next_variance: f64,
    /// Number of streams; the bounds use the means over them.
    pub streams: u32,
}

impl Default for Basis {
    /// Returns a stream without elements.
    fn default() -> Self {
        Self::Stream(Seen::default())
    }
}

impl Seen {
    /// Creates the elements of one stream, which misses this many until the next one is seen.
    #[doc(hidden)]
    pub const fn of_stream(elements: u64, next_mean: f64) -> Self {
        let next_variance = if next_mean.is_finite() { next_mean * (1.0 + next_mean) } else { 0.0 };
        Self { elements, next_mean, next_variance, streams: 1 }
    }
}

impl Estimate {
    /// Creates a count whose error is about normal.
    pub const fn scattered(distinct: f64, variance: f64) -> Self {
        Self { distinct, variance, basis: Basis::Scatter }
    }

    /// Creates the estimate of a union of which only these bounds are known.
    pub(crate) const fn bounded(lower: u64, upper: Option<u64>) -> Self {
        let middle = match upper {
            Some(upper) => lower as f64 + (upper as f64 - lower as f64) / 2.0,
            None => lower as f64,
        };
        Self { distinct: middle, variance: 0.0, basis: Basis::Bounds { lower, upper } }
    }

    /// Returns only the lower bound if the filter takes every new element for a repeat. The count of a
    /// filter that becomes full in one step stops there, with an error that is too small.
    pub(crate) fn unless_full(self, is_full: bool) -> Self {
        if is_full { Self::bounded(self.lower(), None) } else { self }
    }

    /// Returns the count, or `None` if only its bounds are known.
    pub const fn point(self) -> Option<f64> {
        match self.basis {
            Basis::Bounds { .. } => None,
            Basis::Stream(_) | Basis::Scatter => Some(self.distinct),
        }
    }

    /// Returns the standard error of the count, or `None` if only its bounds are known.
    pub fn point_error(self) -> Option<f64> {
        self.point().map(|_| self.std_error())
    }

    /// Returns the standard error of the count.
    pub fn std_error(self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns the lower bound. With [`Estimate::upper`] it contains the true count in at least 95
    /// of 100 cases.
    pub fn lower(self) -> u64 {
        match self.basis {
            Basis::Stream(seen) => {
                let missed = missed_quantile(LOW, self.missed(seen), self.variance);
                seen.elements.saturating_add(missed.floor() as u64)
            }
            Basis::Scatter => (self.distinct - Z * self.std_error()).round() as u64,
            Basis::Bounds { lower, .. } => lower,
        }
    }

    /// Returns the upper bound, or `None` if there is none, because too few new elements would be
    /// noticed now.
    pub fn upper(self) -> Option<u64> {
        match self.basis {
            Basis::Stream(seen) if seen.next_mean == f64::INFINITY => None,
            Basis::Stream(seen) => {
                let streams = f64::from(seen.streams.max(1));
                let mean = self.missed(seen) + seen.next_mean / streams;
                let variance = self.variance + seen.next_variance / streams;
                let missed = missed_quantile(HIGH, mean, variance);
                Some(seen.elements.saturating_add(missed.ceil() as u64))
            }
            Basis::Scatter => Some((self.distinct + Z * self.std_error()).round() as u64),
            Basis::Bounds { upper, .. } => upper,
        }
    }

    /// Returns whether the count has no upper bound: the filter is too full.
    pub fn is_full(self) -> bool {
        self.upper().is_none()
    }

    /// Returns the mean number of missed elements.
    fn missed(self, seen: Seen) -> f64 {
        (self.distinct - seen.elements as f64).max(0.0)
    }

    /// Returns the count of two disjoint sets, estimated independently.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = Self {
            distinct: self.distinct + other.distinct,
            variance: self.variance + other.variance,
            basis: Basis::Scatter,
        };
        match (self.basis, other.basis) {
            (Basis::Stream(a), Basis::Stream(b)) => Self {
                basis: Basis::Stream(Seen {
                    elements: a.elements.saturating_add(b.elements),
                    next_mean: a.next_mean + b.next_mean,
                    next_variance: a.next_variance + b.next_variance,
                    streams: a.streams.saturating_add(b.streams),
                }),
                ..sum
            },
            (Basis::Scatter | Basis::Stream(_), Basis::Scatter | Basis::Stream(_))
                if !self.is_full() && !other.is_full() =>
            {
                sum
            }
            _ => Self::bounded(
                self.lower().saturating_add(other.lower()),
                self.upper().zip(other.upper()).map(|(one, more)| one.saturating_add(more)),
            ),
        }
    }

    /// Returns the count of the intersection of two sets, from the counts of each and of their
    /// union, all by the fill of arrays with the same functions; `None` if one of them only has
    /// bounds.
    ///
    /// With A, B and U these counts it is A + B - U. The covariance of the logarithms of the shares
    /// of clear bits is the variance of that of an array of the common elements alone. So with the
    /// variance V(n) of a count of n elements, that of C common ones is
    ///
    /// ```text
    ///     V(U) - V(A) - V(B) + 2 V(C),     V(C) ≤ V(A) (C / A)², V(B) (C / B)²
    /// ```
    pub fn common(first: Self, second: Self, union: Self) -> Option<Self> {
        let [a, b, u] = [first.point()?, second.point()?, union.point()?];
        let common = (a + b - u).clamp(0.0, a.min(b));
        let of_common = |of: Self| of.variance * (common / of.distinct.max(1.0)).powi(2);
        let alone = of_common(first).min(of_common(second));
        let apart = union.variance - first.variance - second.variance;
        Some(Self::scattered(common, (apart + 2.0 * alone).max(0.0)))
    }
}

/// Probability of each tail.
const TAIL: f64 = 0.02;

/// The normal quantile of 1 - [`TAIL`].
const Z: f64 = 2.053_748_910_631_823;

/// The lower bound: its probability, and the normal quantile of that.
const LOW: (f64, f64) = (TAIL, -Z);

/// The upper bound: its probability, and the normal quantile of that.
const HIGH: (f64, f64) = (1.0 - TAIL, Z);

/// Mean up to which the negative binomial is summed up; above it is approximated by a skewed
/// normal.
const MOST_SUMMED: f64 = 200.0;

/// Ratio of variance and mean up to which the negative binomial is summed up.
const MOST_SPREAD: f64 = 50.0;

/// Returns a quantile of the number of missed elements, given its mean and variance: that of the
/// negative binomial, or of the normal with its skewness (the Cornish-Fisher expansion to its first
/// term).
fn missed_quantile((share, z): (f64, f64), mean: f64, variance: f64) -> f64 {
    // At least one is missed with a probability of at most the mean (Markov). The mean is a
    // difference of counts, so of one this small the ratio to the variance may be an artefact.
    if mean <= TAIL {
        return 0.0;
    }
    // The variance of a negative binomial is above its mean.
    let variance = variance.max(mean * (1.0 + 1e-7));
    let spread = variance / mean;
    if mean >= MOST_SUMMED || spread >= MOST_SPREAD {
        let skewness = 2.0f64.mul_add(spread, -1.0) / variance.sqrt();
        let shifted = z + skewness * z.mul_add(z, -1.0) / 6.0;
        return (mean + variance.sqrt() * shifted).max(0.0);
    }
    let mut probability = (-mean * mean * spread.ln() / (variance - mean)).exp();
    let mut sum = probability;
    let mut number = 0.0;
    // Rounding makes the sum of all probabilities fall short of 1, but by less than a tail.
    while sum < share {
        probability *= (mean * mean / variance + number * (1.0 - mean / variance)) / (number + 1.0);
        number += 1.0;
        sum += probability;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of `scipy.stats.nbinom.ppf(P, m²/(v - m), m/v)`, and of Poisson if v = m.
    #[test]
    fn quantiles_are_those_of_the_negative_binomial() {
        for (mean, variance, low, high) in [
            (0.01, 0.01, 0.0, 0.0),
            (0.03, 0.03, 0.0, 1.0),
            (1e-20, 5.6e-18, 0.0, 0.0),
            (1.0, 1.0, 0.0, 3.0),
            (10.0, 10.0, 4.0, 17.0),
        ] {
            for (tail, expected) in [(LOW, low), (HIGH, high)] {
                let quantile = missed_quantile(tail, mean, variance);
                assert!((quantile - expected).abs() < 1e-9, "{mean} {variance}");
            }
        }
    }

    #[test]
    fn the_sum_and_the_expansion_meet() {
        for spread in [1.001, 1.5, 5.0, 20.0] {
            for tail in [LOW, HIGH] {
                let summed = missed_quantile(tail, 199.9, 199.9 * spread);
                let expanded = missed_quantile(tail, 200.1, 200.1 * spread);
                assert!(
                    (summed - expanded).abs() < 1.5 + 0.01 * spread * 20.0,
                    "{spread}: {summed} {expanded}"
                );
            }
        }
    }

    #[test]
    fn bounds_of_exact_counts_are_exact() {
        let seen = |elements| Estimate {
            distinct: elements as f64,
            variance: 0.0,
            basis: Basis::Stream(Seen { elements, streams: 1, ..Seen::default() }),
        };
        let both = seen(3).plus(seen(4));
        assert_eq!((both.lower(), both.upper()), (7, Some(7)));
        assert_eq!(Estimate::default().plus(both), both);
        assert_eq!((Estimate::default().lower(), Estimate::default().upper()), (0, Some(0)));
        let scattered = both.plus(Estimate::scattered(100.0, 25.0));
        assert_eq!((scattered.lower(), scattered.upper()), (97, Some(117)));
        let bounded = both.plus(Estimate::bounded(10, Some(14)));
        assert_eq!((bounded.lower(), bounded.upper(), bounded.point()), (17, Some(21), None));
        let open = Seen { next_mean: f64::INFINITY, streams: 1, ..Seen::default() };
        let full = Estimate { basis: Basis::Stream(open), ..both };
        assert!(full.is_full() && both.plus(full).is_full() && scattered.plus(full).is_full());
    }

    /// A file or a tally may hold any numbers.
    #[test]
    fn absurd_numbers_have_bounds_too() {
        for number in [0.0, 1e-300, 1e300, f64::MAX, f64::INFINITY, f64::NAN] {
            for variance in [0.0, 1e-300, 1e300, f64::INFINITY, f64::NAN] {
                for basis in [Basis::Scatter, Basis::default()] {
                    let estimate = Estimate { distinct: number, variance, basis };
                    let _ = (estimate.lower(), estimate.upper());
                }
            }
        }
    }
}
