//! Bias, error and coverage of counts at any load, for `docs/accuracy.md`;
//! `scripts/measure-counting` runs it.
//!
//! Arguments: bytes of memory, shards, bits an element (k), runs, and numbers of elements. One line
//! each: the mean error and its standard error, the root of the mean squared error, that of the
//! mean stated variance, half the mean distance between the bounds, the mean squared error over the
//! stated variance, how often the bounds hold, and bits times relative variance.

use flowsieve_filters::hashing::{Digest, shard_of};
use flowsieve_filters::{DigestColumns, Estimate, MembershipFilter, SubsetFilter};

/// Random digests: those of distinct elements.
struct Random(u64);

impl Random {
    /// Numbers of a run: others for each memory, number of shards and number of elements, so that
    /// rows of the table are independent of each other.
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
}

fn estimate(bytes: u64, shards: u64, probes: u32, elements: u64, seed: u64) -> Estimate {
    let lines = (bytes / 64 / shards).max(1);
    let mut filters: Vec<SubsetFilter> =
        (0..shards).map(|_| SubsetFilter::halving(lines, probes)).collect();
    let mut random = Random::of_run([bytes, shards, u64::from(probes), elements, seed]);
    let mut batches: Vec<Vec<Digest>> = vec![Vec::new(); shards as usize];
    let mut sightings = Vec::new();
    let mut insert = |filter: &mut SubsetFilter, batch: &mut Vec<Digest>| {
        let columns = DigestColumns { whole: batch, attributes: &[] };
        filter.insert_batch(columns, &mut sightings);
        sightings.clear();
        batch.clear();
    };
    for _ in 0..elements {
        let digest = Digest::from_value(random.next());
        let shard = shard_of(digest, shards);
        batches[shard].push(digest);
        if batches[shard].len() == 1024 {
            insert(&mut filters[shard], &mut batches[shard]);
        }
    }
    for (filter, batch) in filters.iter_mut().zip(&mut batches) {
        insert(filter, batch);
    }
    let counts = filters.iter().filter_map(MembershipFilter::distinct);
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
