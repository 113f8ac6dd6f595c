//! `HyperLogLog`: counts distinct elements without knowing any of them.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► register, and a value that is large for few digests
//!     m = 2^p registers:  3 0 5 1 2 2 7 1 …      each keeps the largest value it has seen
//! ```
//!
//! # Operations
//!
//! - insert: raise the digest's register to its value.
//! - union: the larger of each pair of registers.
//!
//! # Formulas
//!
//! For n much larger than m the standard error is 0.833 / √m for one stream (the martingale
//! estimator of [`super::DistinctCounter`], applied to registers) and 1.04 / √m after a union,
//! whose order of insertions is not known. Up to 3/32 m elements the sketch keeps their hashes, and
//! is nearly exact. In between, the variance is `∫ (1 / q - 1) dx` for one stream, where q is the
//! probability that the next element raises a register, and that of linear counting,
//! `m (eᵗ - t - 1)` at t = n / m, after a union.
//!
//! | p | bytes, about | one stream | after a union |
//! |---|---|---|---|
//! | 10 | 1 kB | 2.6 % | 3.3 % |
//! | 12 | 4 kB | 1.3 % | 1.6 % |
//! | 14 | 16 kB | 0.65 % | 0.81 % |
//!
//! A halving [`SubsetFilter`](super::SubsetFilter) is more exact in the same memory, for any number
//! of elements.
//!
//! # Limits
//!
//! It only counts: it is no [`MembershipFilter`](super::MembershipFilter).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{HyperLogLog};
//!
//! let hasher = Digester::new(0);
//! let mut sketch = HyperLogLog::new(10);
//! for number in 0..10_000_u32 {
//!     sketch.insert(hasher.digest(&number.to_le_bytes()));
//! }
//! let count = sketch.estimate();
//! assert!((count.distinct - 10_000.0).abs() < 4.0 * count.std_error());
//! ```
//!
//! Reference: Flajolet, Fusy, Gandouet, Meunier, "`HyperLogLog`: the analysis of a near-optimal
//! cardinality estimation algorithm", `AofA` 2007. The registers and estimators are those of Apache
//! `DataSketches`.

use super::Estimate;
use crate::hashing::Digest;
use datasketches::hll::{HllSketch, HllType, HllUnion};

/// A count of distinct digests.
#[derive(Clone, Debug)]
pub struct HyperLogLog {
    sketch: HllSketch,
    precision: u8,
    one_stream: bool,
}

impl HyperLogLog {
    /// Lowest precision (p).
    pub const MIN_PRECISION: u8 = 4;

    /// Highest precision.
    pub const MAX_PRECISION: u8 = 21;

    /// Returns the highest precision whose registers fit into this many bytes, or `None` if none
    /// does.
    pub fn precision_within(bytes: u64) -> Option<u8> {
        let precision = bytes.checked_ilog2()?.min(Self::MAX_PRECISION.into()) as u8;
        (precision >= Self::MIN_PRECISION).then_some(precision)
    }

    /// Creates a count with 2^`precision` registers of one byte; the precision (p) is clamped to 4
    /// to 21.
    pub fn new(precision: u8) -> Self {
        let precision = precision.clamp(Self::MIN_PRECISION, Self::MAX_PRECISION);
        let Ok(sketch) = HllSketch::new(precision, HllType::Hll8) else {
            unreachable!("a precision lies between 4 and 21")
        };
        Self { sketch, precision, one_stream: true }
    }

    /// Counts the element unless it was counted before.
    pub fn insert(&mut self, digest: Digest) {
        // The sketch hashes a number in the machine's byte order: pass the same bytes on all
        // machines.
        self.sketch.update(digest.value().to_le());
    }

    /// Adds the elements of another count. Keeps the lower of two precisions.
    pub fn union(&mut self, other: &Self) {
        if other.sketch.is_empty() {
            return;
        }
        let precision = self.precision.min(other.precision);
        let Ok(mut union) = HllUnion::new(precision) else {
            unreachable!("a precision lies between 4 and 21")
        };
        union.update(&self.sketch);
        union.update(&other.sketch);
        self.sketch = union.to_sketch(HllType::Hll8);
        self.precision = precision;
        self.one_stream = false;
    }

    /// Returns the count with its standard error.
    pub fn estimate(&self) -> Estimate {
        let distinct = self.sketch.estimate();
        Estimate::scattered(distinct, self.variance(distinct))
    }

    /// Returns the variance of the count of this many elements.
    fn variance(&self, elements: f64) -> f64 {
        let registers = f64::from(1_u32 << self.precision);
        // Up to this many elements the sketch keeps hashes of 26 bits.
        let kept = if self.precision < 8 { 7.0 } else { registers * 3.0 / 32.0 };
        let of_hashes = |elements: f64| elements * elements / f64::from(1 << 27);
        if elements <= kept {
            return of_hashes(elements);
        }
        let load = elements / registers;
        if !self.one_stream {
            let linear = registers * (load.exp_m1() - load);
            return linear.min(UNION * UNION * elements * load);
        }
        if load > MANY {
            return ONE_STREAM * ONE_STREAM * elements * load;
        }
        // Midpoint rule with steps in a geometric sequence.
        let factor = (elements / kept).powf(1.0 / f64::from(STEPS));
        let mut end = kept;
        let missed: f64 = (0..STEPS)
            .map(|_| {
                let begin = end;
                end *= factor;
                let seen = rise_probability(f64::midpoint(begin, end) / registers);
                (end - begin) * (1.0 - seen) / seen
            })
            .sum();
        of_hashes(kept) + missed
    }

    /// Returns the bytes that the count occupies now.
    pub fn memory_bytes(&self) -> u64 {
        self.sketch.estimated_size() as u64
    }

    /// Clears the count.
    pub fn clear(&mut self) {
        *self = Self::new(self.precision);
    }
}

/// Returns the probability that an element raises its register after `load` elements per register.
fn rise_probability(load: f64) -> f64 {
    let (mut below, mut sum, mut rate) = (0.0, 0.0, 1.0);
    for _ in 0..=u64::BITS {
        // A register is at most r with probability e^(-load 2^-r); a register of r is raised with
        // 2^-r.
        let at_most = (-load * rate).exp();
        sum += rate * (at_most - below);
        below = at_most;
        rate /= 2.0;
    }
    sum
}

/// Steps of the integral over the elements.
const STEPS: u32 = 64;

/// Elements per register above which the error is that of n much larger than m.
const MANY: f64 = 100.0;

/// Standard error of one stream times √m: √(ln 2).
const ONE_STREAM: f64 = 0.832_554_611_157_697_8;

/// Standard error after a union times √m: √(3 ln 2 - 1).
const UNION: f64 = 1.038_958_562_177_293_4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn count(seed: u64, precision: u8, elements: std::ops::Range<u32>) -> HyperLogLog {
        let digester = Digester::new(seed);
        let mut hll = HyperLogLog::new(precision);
        for i in elements {
            hll.insert(digester.digest(&i.to_le_bytes()));
        }
        hll
    }

    /// Mean and spread over many runs are those of the formulas, before and after a union.
    #[test]
    fn errors_are_as_stated() {
        const RUNS: u64 = 150;
        for (precision, elements, split) in [
            (10, 20_000, false),
            (10, 20_000, true),
            (12, 3_000, false),
            (12, 3_000, true),
            (13, 3_000, false),
            (14, 3_000, false),
            (14, 30_000, true),
            (4, 40, false),
        ] {
            let n = f64::from(elements);
            let mut sum = 0.0;
            let mut squares = 0.0;
            let mut stated = 0.0;
            for seed in 0..RUNS {
                let first = 0..if split { elements / 2 } else { elements };
                let mut hll = count(seed, precision, first);
                if split {
                    hll.union(&count(seed, precision, elements / 4..elements));
                }
                let estimate = hll.estimate();
                let error = estimate.distinct / n - 1.0;
                sum += error;
                squares += error * error;
                stated += estimate.std_error() / estimate.distinct;
            }
            let runs = RUNS as f64;
            let (mean, sd, stated) = (sum / runs, (squares / runs).sqrt(), stated / runs);
            assert!(mean.abs() < 4.0 * sd / runs.sqrt(), "{precision} {split} {mean}");
            // The relative error of a standard deviation of 150 runs is 1 / √300 = 5.8 %.
            let ratio = sd / stated;
            assert!((ratio - 1.0).abs() < 4.0 * 0.058, "{precision} {elements} {split} {ratio}");
        }
    }

    #[test]
    fn repeats_change_nothing_and_clear_forgets() {
        let mut hll = count(1, 12, 0..5000);
        let before = hll.estimate();
        let digester = Digester::new(1);
        for i in 0..5000_u32 {
            hll.insert(digester.digest(&i.to_le_bytes()));
        }
        assert_eq!(hll.estimate(), before);
        hll.clear();
        assert_eq!(hll.estimate(), Estimate::scattered(0.0, 0.0));
    }
}
