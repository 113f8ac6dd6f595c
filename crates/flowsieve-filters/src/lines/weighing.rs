//! First sightings with weights: the filter returns how many elements each sighting stands for.
//!
//! The martingale ([`crate::DistinctCounter`]) counts 1 for an element that is seen, plus those
//! that were missed with it: u / (1 - u), where u is the probability that a new element is not
//! seen. The weight of an element is its share of that count, and 0 if it is not seen. So every new
//! element has the weight 1 in expectation, whatever came before, and the sum of the weights of any
//! choice of elements is an unbiased count of the distinct ones. The variance of such a sum is the
//! expectation of the sum of w (w - 1).
//!
//! Weights are whole multiples of 2^-20, so that their sums do not depend on how they are grouped.
//!
//! Reference: Cohen, "All-distances sketches, revisited", PODS 2014, for the weights.

use super::LineShape;
use super::halving::HalvingLines;
use super::probe::Outcome;
use crate::hashing::Digest;

/// Binary digits of a [`Weight`] after the point.
const POINT: u32 = 20;

/// The number of elements that a sighting stands for, in units of 2^-20: 0, or at least 1 element.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Weight(u64);

impl Weight {
    /// The weight of an element that was not seen, or was seen before.
    pub const NONE: Self = Self(0);

    /// The weight of an element that only stands for itself.
    pub const ONE: Self = Self(1 << POINT);

    /// Returns the weight in units of 2^-20.
    #[inline]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Returns the weight as a floating-point number.
    pub const fn number(self) -> f64 {
        self.0 as f64 / Self::ONE.0 as f64
    }

    /// Returns whether the element was seen and is new.
    #[inline]
    pub const fn is_first(self) -> bool {
        self.0 != 0
    }

    /// Returns this sighting's part of the variance of a sum of weights, w (w - 1), in units of
    /// 2^-20.
    #[inline]
    #[must_use]
    pub const fn variance(self) -> Self {
        let more = self.0.saturating_sub(Self::ONE.0);
        let product = (self.0 as u128 * more as u128) >> POINT;
        Self(if product > u64::MAX as u128 { u64::MAX } else { product as u64 })
    }

    /// Returns the sum, or the largest weight if it overflows.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Outcome for Weight {
    const REPEAT: Self = Self::NONE;
    const FIRST: Self = Self::ONE;
    const UNSAMPLED: Self = Self::NONE;

    fn missed(&mut self, others: f64) {
        // Conversion saturates.
        self.0 = self.0.saturating_add((Self::ONE.0 as f64 * others).round() as u64);
    }
}

/// A filter that weighs first sightings. It halves its sample of the elements when it is crowded,
/// so that it can count any number of them.
#[derive(Clone, Debug)]
pub struct WeighingFilter(HalvingLines);

impl WeighingFilter {
    /// Creates an empty filter in at most this memory (at least 64 bytes), in which each element
    /// sets `probes` (1 to 8) bits.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub fn new(bytes: u64, probes: u32) -> Self {
        Self(HalvingLines::new(LineShape::halving(bytes.max(64)), probes.clamp(1, 8)))
    }

    /// Inserts elements in order; appends the weight of each.
    pub fn insert_all(&mut self, digests: &[Digest], weights: &mut Vec<Weight>) {
        self.0.insert_all(digests, weights);
    }

    /// Returns the share of the new elements that would be seen now (1 - u).
    pub fn seen_share(&self) -> f64 {
        self.0.chances().seen
    }

    /// Returns the bytes of the lines.
    pub fn memory_bytes(&self) -> u64 {
        self.0.array().shape().bytes()
    }

    /// Clears the filter and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use proptest::prelude::*;

    fn digest(seed: u64, number: u64) -> Digest {
        Digester::new(seed).digest(&number.to_le_bytes())
    }

    fn weights(filter: &mut WeighingFilter, digests: &[Digest]) -> Vec<Weight> {
        let mut weights = Vec::new();
        filter.insert_all(digests, &mut weights);
        weights
    }

    proptest! {
        /// Weights do not depend on the batches, and repeats have none.
        #[test]
        fn repeats_and_batches_change_nothing(
            numbers in prop::collection::vec(0_u64..300, 1..400),
            cut in 0_usize..400,
            lines in 1_u64..6,
        ) {
            let digests: Vec<Digest> = numbers.iter().map(|&n| digest(1, n)).collect();
            let (mut whole, mut parts) = (WeighingFilter::new(64 * lines, 4), WeighingFilter::new(64 * lines, 4));
            let all = weights(&mut whole, &digests);
            let (head, tail) = digests.split_at(cut.min(digests.len()));
            let mut halves = weights(&mut parts, head);
            halves.extend(weights(&mut parts, tail));
            prop_assert_eq!(&all, &halves);
            for (number, weight) in all.iter().enumerate() {
                let repeated = numbers[..number].contains(&numbers[number]);
                prop_assert!(!(repeated && weight.is_first()));
                prop_assert!(!weight.is_first() || *weight >= Weight::ONE);
            }
            whole.clear();
            prop_assert_eq!(weights(&mut whole, &digests), all);
        }
    }

    /// Over many seeds the mean of the sums is the number of elements, also in a full filter, and
    /// their variance is the one that the weights give.
    #[test]
    fn sums_of_weights_are_unbiased_at_any_load() {
        for (lines, elements) in [(64_u64, 2_000_u64), (8, 2_000), (1, 20_000)] {
            let runs = 300;
            let (mut sum, mut squares, mut said) = (0.0, 0.0, 0.0);
            for seed in 0..runs {
                let mut filter = WeighingFilter::new(64 * lines, 4);
                let digests: Vec<Digest> = (0..elements).map(|n| digest(seed, n)).collect();
                let weights = weights(&mut filter, &digests);
                // Every third element only: weights count any choice of elements.
                let chosen = weights.iter().step_by(3);
                let count = chosen.clone().fold(Weight::NONE, |sum, w| sum.plus(*w));
                let variance = chosen.fold(Weight::NONE, |sum, w| sum.plus(w.variance()));
                sum += count.number();
                squares += count.number() * count.number();
                said += variance.number();
            }
            let runs = runs as f64;
            let (mean, truth) = (sum / runs, elements.div_ceil(3) as f64);
            let variance = squares / runs - mean * mean;
            let error = (variance / runs).sqrt();
            assert!((mean - truth).abs() < 3.5 * error + 1e-3, "{lines}: {mean} {truth} {error}");
            let ratio = said / runs / variance.max(1e-9);
            assert!((0.7..1.4).contains(&ratio), "{lines}: {ratio}");
        }
    }

    #[test]
    fn variances_do_not_overflow() {
        assert_eq!(Weight::ONE.variance(), Weight::NONE);
        let three = Weight(3 * Weight::ONE.units());
        assert_eq!(three.variance().units(), 6 * Weight::ONE.units());
        let large = Weight(u64::MAX);
        assert_eq!(large.variance(), large);
        assert_eq!(large.plus(large), large);
    }
}
