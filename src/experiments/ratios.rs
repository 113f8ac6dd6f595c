//! Compares times: operations run in turn, round after round, and ratios are of times in the same
//! round.

use super::result::Measured;
use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds of each operation, by round.
pub(super) struct Times(Vec<Vec<f64>>);

/// The method, for the remarks of an experiment.
pub(super) const HOW: &str = "Times are measured in turn, one operation after the other, round after round. A ratio is the median over the rounds of what the two took in the same round, so that anything that slows the machine down slows both; ± is the standard error of that median, from the median deviation of the rounds.";

/// Standard deviations in the median deviation of normal numbers, inverted.
const OF_DEVIATION: f64 = 1.4826;

/// Standard error of the median of normal numbers against that of their mean.
const OF_MEDIAN: f64 = 1.2533;

impl Times {
    /// Runs the operations, each of which returns its nanoseconds, in this many rounds, after one
    /// round to warm up.
    pub(super) fn measure<'a>(
        rounds: usize,
        operations: impl IntoIterator<Item = Operation<'a>>,
    ) -> Self {
        let mut operations: Vec<_> = operations.into_iter().collect();
        let mut round = || operations.iter_mut().map(|operation| operation()).collect();
        // The first round brings everything into the caches.
        let _: Vec<f64> = round();
        Self((0..rounds).map(|_| round()).collect())
    }

    /// Returns the median of an operation's times.
    pub(super) fn time(&self, operation: usize) -> Measured {
        median_of(self.0.iter().map(|round| round[operation]).collect())
    }

    /// Returns the ratio of the times of two operations.
    pub(super) fn ratio(&self, of: usize, to: usize) -> Measured {
        let ratios = self.0.iter().map(|round| round[of] / round[to]);
        median_of(ratios.collect())
    }
}

/// An operation to be timed: it returns the nanoseconds of each item.
pub(super) type Operation<'a> = Box<dyn FnMut() -> f64 + 'a>;

/// Returns the operation that does `work` for each item.
pub(super) fn each<'a, T, R>(
    items: &'a [T],
    mut work: impl FnMut(&'a T) -> R + 'a,
) -> Operation<'a> {
    Box::new(move || {
        time_each(items.len(), || {
            for item in items {
                black_box(work(item));
            }
        })
    })
}

/// Returns the nanoseconds that `operation` takes for each of this many items.
pub(super) fn time_each(number: usize, operation: impl FnOnce()) -> f64 {
    let started = Instant::now();
    operation();
    // A clock that did not move must not make a ratio infinite.
    (started.elapsed().as_nanos().max(1)) as f64 / number.max(1) as f64
}

/// Returns the median with its standard error.
fn median_of(mut values: Vec<f64>) -> Measured {
    let centre = median(&mut values);
    let mut apart: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let spread = OF_DEVIATION * median(&mut apart);
    Measured { mean: centre, std_error: OF_MEDIAN * spread / (values.len() as f64).sqrt() }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[half - 1], values[half]),
        _ => values[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slows_both_changes_no_ratio() {
        let slow = [1.0, 7.0, 1.0, 3.0, 1.0];
        let times = Times(slow.iter().map(|by| vec![2.0 * by, 5.0 * by]).collect());
        let ratio = times.ratio(1, 0);
        assert!((ratio.mean - 2.5).abs() < 1e-12 && ratio.std_error < 1e-12);
        assert!((times.time(0).mean - 2.0).abs() < 1e-12);
        let even = median_of(vec![1.0, 2.0, 4.0, 5.0]);
        assert!((even.mean - 3.0).abs() < 1e-12 && even.std_error > 0.5);
    }
}
