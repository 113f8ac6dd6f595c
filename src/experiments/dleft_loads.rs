//! d-left report: how 500,000 elements spread over the four subtables.

use super::numbers::element;
use super::parallel::in_parallel;
use super::statistics::{deviation, mean_of};
use super::{Findings, Found, Settings};
use crate::filters::{Bucket32, DleftFilter, MembershipFilter};
use crate::hashing::Digester;

const ELEMENTS: u64 = 500_000;
const BUCKET_BITS: u32 = 15;
const PRINTED: [f64; 4] = [135_203.0, 128_226.0, 122_795.0, 113_776.0];

/// Standard deviations of one run, from 20 runs of an independent computation: what a single
/// printed run may be away from the mean.
const DEVIATIONS: [f64; 4] = [47.3, 52.8, 67.4, 57.1];

/// Levels of a bucket that the fluid limit looks at.
const LEVELS: usize = 12;

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 100) as usize;
    let loads = in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        let mut filter = DleftFilter::<Bucket32>::new(1 << BUCKET_BITS, 24, 2);
        for number in 0..ELEMENTS {
            filter.insert(element(digester, number));
        }
        filter.loads()
    });
    let limit = fluid_limit(ELEMENTS as f64 / f64::from(1 << BUCKET_BITS));
    let mut found = Findings::new([
        format!("{ELEMENTS} elements, 4 subtables of 2^15 buckets of 8 cells, r = 24, least loaded bucket, ties to the left; {runs} runs. The report does not print the number of buckets; its loads, which sum to 500,000, are those of 2^15 and of no other power of two."),
        "The formula is the fluid limit: the differential equations of the shares of buckets with at least j elements, integrated numerically.".into(),
    ]);
    for table in 0..4 {
        let runs: Vec<f64> = loads.iter().map(|loads| loads[table] as f64).collect();
        let mut measured = mean_of(&runs);
        measured.std_error = measured.std_error.max(DEVIATIONS[table] / (runs.len() as f64).sqrt());
        found
            .cell(format!("subtable {}", table + 1))
            .printed(PRINTED[table], 0.0)
            .simulated(DEVIATIONS[table])
            .formula(limit[table] * f64::from(1 << BUCKET_BITS))
            .measured(measured)
            .because(format!("one run has a standard deviation of {:.0}", deviation(&runs)));
    }
    Ok(found)
}

/// Elements a bucket of each subtable, after `load` elements for each bucket of one subtable.
///
/// With `x[i][j]` the share of buckets of subtable i that hold at least j, an element raises a
/// bucket of subtable i from j to j + 1 with probability `x[i][j] - x[i][j+1]`, times `x[l][j+1]`
/// for each subtable l to the left, whose bucket must hold more, and `x[l][j]` for each to the
/// right.
fn fluid_limit(load: f64) -> [f64; 4] {
    type Shares = [[f64; LEVELS + 1]; 4];
    const STEPS: u32 = 4000;
    let slope = |shares: &Shares| -> Shares {
        let mut slope = [[0.0; LEVELS + 1]; 4];
        for table in 0..4 {
            for level in 0..LEVELS {
                let left = shares[..table].iter().map(|of| of[level + 1]);
                let right = shares[table + 1..].iter().map(|of| of[level]);
                let others: f64 = left.chain(right).product();
                let exactly = shares[table][level] - shares[table][level + 1];
                slope[table][level + 1] = exactly * others;
            }
        }
        slope
    };
    let along = |shares: &Shares, slope: &Shares, step: f64| -> Shares {
        std::array::from_fn(|i| std::array::from_fn(|j| shares[i][j] + step * slope[i][j]))
    };
    let mut shares: Shares = [[0.0; LEVELS + 1]; 4];
    for of in &mut shares {
        of[0] = 1.0;
    }
    let step = load / f64::from(STEPS);
    for _ in 0..STEPS {
        // Runge and Kutta's classical rule.
        let start = slope(&shares);
        let middle = slope(&along(&shares, &start, step / 2.0));
        let again = slope(&along(&shares, &middle, step / 2.0));
        let end = slope(&along(&shares, &again, step));
        for (slope, weight) in [(start, 1.0), (middle, 2.0), (again, 2.0), (end, 1.0)] {
            shares = along(&shares, &slope, step * weight / 6.0);
        }
    }
    shares.map(|of| of[1..].iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit as an independent computation has it.
    #[test]
    fn the_fluid_limit() {
        for (load, buckets, expected) in [
            (500_000.0 / 32_768.0, 32_768.0, [135_252.945, 128_221.204, 122_847.879, 113_677.972]),
            (500_000.0 / 20_833.0, 20_833.0, [132_893.036, 126_167.486, 122_400.247, 118_539.230]),
        ] {
            for (ours, expected) in fluid_limit(load).into_iter().zip(expected) {
                assert!((ours * buckets - expected).abs() < 0.5, "{} {expected}", ours * buckets);
            }
        }
    }
}
