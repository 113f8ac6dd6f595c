//! Measures bias, error and coverage of counts at any load, for `docs/accuracy.md`;
//! `scripts/measure-counting` runs it.
//!
//! Arguments: bytes of memory, shards, bits an element (k), runs, and numbers of elements. Prints
//! for each number: the mean error and its standard error, the root of the mean squared error, the
//! root of the mean stated variance, half the mean distance between the bounds, the mean squared
//! error over the stated variance, how often the bounds hold, and bits times relative variance.

use flowsieve_filters::hashing::Digest;
use flowsieve_filters::{DigestColumns, Estimate, LineShape, MembershipFilter, SubsetFilter};

/// A generator of pseudorandom numbers (`SplitMix64`), used as digests of distinct elements.
struct Random(u64);

impl Random {
    /// Returns the generator of a run. It depends on all parameters, so that the rows of the table
    /// are independent of each other.
    fn of_run(numbers: [u64; 5]) -> Self {
        let join = |state: u64, number: u64| Self(state ^ number).next();
        Self(numbers.into_iter().fold(0, join))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a uniform number in (0, 1].
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    /// Returns how many of the elements go to one of the `shards` that are left.
    fn of_shard(&mut self, elements: u64, shards: u64) -> u64 {
        if shards == 1 {
            return elements;
        }
        let (n, p) = (elements as f64, (shards as f64).recip());
        if elements < 1000 {
            return (0..elements).map(|_| u64::from(self.share() <= p)).sum();
        }
        // The normal approximation of the binomial distribution.
        let number = (n * p + (n * p * (1.0 - p)).sqrt() * self.normal()).round();
        number.clamp(0.0, n) as u64
    }

    /// Returns the number of elements up to the next one that a filter of this stage may sample,
    /// and the digest of that one. The filter skips all digests with fewer than `stage` leading
    /// zeros.
    fn sampled(&mut self, stage: u32) -> (u64, Digest) {
        let skipped = match stage {
            0 => 0.0,
            _ => (self.share().ln() / (-(0.5_f64.powi(stage as i32))).ln_1p()).floor(),
        };
        (1 + skipped as u64, Digest::from_value(self.next() >> stage))
    }
}

/// Inserts this many elements; those that the filter does not sample are only counted.
fn insert(filter: &mut SubsetFilter, elements: u64, random: &mut Random) {
    let (mut left, mut batch, mut sightings) = (elements, Vec::new(), Vec::new());
    while left > 0 {
        // The stage may end within a batch. Its later elements have the zeros of this stage, and
        // those that the next stage does not sample are skipped by the filter.
        let stage = filter.stage();
        while batch.len() < 1024 {
            let (steps, digest) = random.sampled(stage);
            if steps > left {
                left = 0;
                break;
            }
            left -= steps;
            batch.push(digest);
        }
        filter.insert_batch(DigestColumns { whole: &batch, attributes: &[] }, &mut sightings);
        batch.clear();
        sightings.clear();
    }
}

fn estimate(bytes: u64, shards: u64, probes: u32, elements: u64, seed: u64) -> Estimate {
    let shape = LineShape::halving((bytes / shards).max(64));
    let mut random = Random::of_run([bytes, shards, u64::from(probes), elements, seed]);
    let mut left = elements;
    let counts = (1..=shards).rev().map(|shards| {
        let own = random.of_shard(left, shards);
        left -= own;
        let mut filter = SubsetFilter::halving(shape, probes);
        insert(&mut filter, own, &mut random);
        filter.distinct().unwrap_or_default()
    });
    counts.fold(Estimate::default(), Estimate::plus)
}

fn main() {
    let numbers: Vec<u64> =
        std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let [bytes, shards, probes, runs, all @ ..] = &*numbers else {
        eprintln!("usage: measure_counting BYTES SHARDS K RUNS ELEMENTS…");
        std::process::exit(2);
    };
    for &elements in all {
        let n = elements as f64;
        let (mut sum, mut squares, mut stated, mut width, mut covered) = (0.0, 0.0, 0.0, 0.0, 0);
        for seed in 0..*runs {
            let estimate = estimate(*bytes, *shards, *probes as u32, elements, seed);
            let error = estimate.distinct - n;
            sum += error;
            squares += error * error;
            stated += estimate.variance;
            let (lower, upper) = (estimate.lower(), estimate.upper());
            width += upper.map_or(f64::INFINITY, |upper| (upper - lower) as f64);
            covered += u32::from(lower <= elements && upper.is_none_or(|it| elements <= it));
        }
        let count = *runs as f64;
        let (mean, square) = (sum / count, squares / count);
        println!(
            "{bytes} {shards} {probes} {elements} {runs} | bias {:+.5} % ± {:.5} ({:+.2}) | rmse {:.6} % | stated {:.6} % | bounds {:.6} % | square/stated {:.3} | covered {:.2} % | bits x variance {:.3}",
            100.0 * mean / n,
            100.0 * (square / count).sqrt() / n,
            mean / (square / count).sqrt().max(1e-300),
            100.0 * square.sqrt() / n,
            100.0 * (stated / count).sqrt() / n,
            50.0 * width / count / n,
            squares / stated.max(1e-300),
            100.0 * f64::from(covered) / count,
            8.0 * *bytes as f64 * square / (n * n),
        );
    }
}
