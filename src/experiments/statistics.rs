//! Means, standard errors, and the formulas of occupancy that several experiments need.

use super::result::Measured;

/// Runs from which on their spread is taken as a measure of the error.
pub(super) const ENOUGH_RUNS: usize = 10;

/// Returns the mean of independent runs with its standard error.
pub(super) fn mean_of(runs: &[f64]) -> Measured {
    Measured { mean: mean(runs), std_error: deviation(runs) / (runs.len() as f64).sqrt() }
}

fn mean(runs: &[f64]) -> f64 {
    runs.iter().sum::<f64>() / runs.len() as f64
}

/// Returns the standard deviation of the runs; 0 for fewer than two.
pub(super) fn deviation(runs: &[f64]) -> f64 {
    if runs.len() < 2 {
        return 0.0;
    }
    let centre = mean(runs);
    let squares: f64 = runs.iter().map(|run| (run - centre).powi(2)).sum();
    (squares / (runs.len() - 1) as f64).sqrt()
}

/// Returns a share, from independent runs of `trials` each with this many `hits`.
///
/// The standard error is that of the runs' spread, but not less than the binomial one of the share
/// by the formula (without a formula, of the measured share): a few runs may see no rare event at
/// all, which does not make their share certain.
pub(super) fn rate_of(
    hits: impl IntoIterator<Item = u64>,
    trials: u64,
    formula: Option<f64>,
) -> Measured {
    let hits: Vec<u64> = hits.into_iter().collect();
    let total = (trials * hits.len() as u64) as f64;
    let share = hits.iter().sum::<u64>() as f64 / total;
    let expected = formula.unwrap_or(share);
    let binomial = (expected * (1.0 - expected) / total).max(0.0).sqrt();
    let rates: Vec<f64> = hits.iter().map(|&n| n as f64 / trials as f64).collect();
    let spread = if rates.len() >= ENOUGH_RUNS { mean_of(&rates).std_error } else { 0.0 };
    Measured { mean: share, std_error: binomial.max(spread) }
}

/// Returns the relative variance of the fill ρ of an array of `bits` after `load` = kn/m throws a
/// place: (e^-u - (1 + u) e^-2u) / (m ρ²).
pub(super) fn fill_variance(bits: f64, load: f64) -> f64 {
    let empty = (-load).exp();
    (empty - (1.0 + load) * empty * empty) / (bits * (1.0 - empty).powi(2))
}

/// Returns the probability that `probes` random places (which may coincide) of `bits` are all set
/// after `throws` random throws: exact, where (1 - e^-u)^k is the limit of a large array.
///
/// The k places are j different ones with the probability of an occupancy, and j given places are
/// all set with the sum over i of `(-1)^i C(j, i) (1 - i/m)^throws`.
pub(super) fn exact_bloom_fpr(bits: f64, probes: u32, throws: f64) -> f64 {
    let mut different = vec![0.0; probes as usize + 1];
    different[0] = 1.0;
    for _ in 0..probes {
        for j in (0..=probes as usize).rev() {
            let stays = different[j] * j as f64 / bits;
            let grows = match j.checked_sub(1) {
                Some(fewer) => different[fewer] * (bits - fewer as f64) / bits,
                None => 0.0,
            };
            different[j] = stays + grows;
        }
    }
    let missed: Vec<f64> =
        (0..=probes).map(|i| (throws * (-f64::from(i) / bits).ln_1p()).exp()).collect();
    different
        .iter()
        .enumerate()
        .map(|(j, share)| {
            let mut binomial = 1.0;
            let mut all_set = 0.0;
            for (i, missed) in missed.iter().enumerate().take(j + 1) {
                all_set += binomial * missed;
                binomial *= -((j - i) as f64) / (i + 1) as f64;
            }
            share * all_set
        })
        .sum::<f64>()
        .max(0.0)
}

/// Returns the probability that a binomial count of `trials` with `share` each reaches `least`.
pub(super) fn binomial_reaches(trials: f64, share: f64, least: u32) -> f64 {
    // C(n, j) p^j (1-p)^(n-j) for j = least, then the ratio of neighbours.
    let mut logarithm = trials * (-share).ln_1p();
    let odds = share / (1.0 - share);
    for j in 0..least {
        logarithm += ((trials - f64::from(j)) / f64::from(j + 1) * odds).ln();
    }
    let mut term = logarithm.exp();
    let mut sum = 0.0;
    let mut j = f64::from(least);
    while term > sum * f64::EPSILON || j < trials * share {
        sum += term;
        term *= (trials - j) / (j + 1.0) * odds;
        j += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sizing::bloom_fpr;

    #[test]
    fn exact_rates_by_hand() {
        // One throw, two probes into two places: both probes hit the set one with 1/4.
        assert!((exact_bloom_fpr(2.0, 2, 1.0) - 0.25).abs() < 1e-12);
        // Two throws fill both with 1/2: then everything is set, else 1/4.
        assert!((exact_bloom_fpr(2.0, 2, 2.0) - 0.625).abs() < 1e-12);
        assert!(exact_bloom_fpr(100.0, 3, 0.0).abs() < 1e-12);
        let limit = bloom_fpr(1e7, 7, 1e6);
        assert!((exact_bloom_fpr(1e7, 7, 7e6) / limit - 1.0).abs() < 1e-5);
    }

    /// Exact binomials of an independent computation.
    #[test]
    fn binomial_tails() {
        for (trials, share, least, expected) in [
            (25_639.0, 1.0 / 36_864.0, 2, 0.154_241_653_331_978_6),
            (25_639.0, 1.0 / 36_864.0, 8, 7.329_173_194_669_895e-7),
            (256_390.0, 1.0 / 368_640.0, 4, 0.005_626_632_759_959_073),
            (256_390.0, 1.0 / 368_640.0, 16, 7.447_621_872_993_826e-17),
        ] {
            let ours = binomial_reaches(trials, share, least);
            assert!((ours / expected - 1.0).abs() < 1e-9, "{ours} {expected}");
        }
    }

    #[test]
    fn errors_of_rare_events() {
        let none = rate_of([0, 0], 1000, Some(0.001));
        assert!(none.mean.abs() < 1e-12);
        assert!((none.std_error - 0.000_706_753).abs() < 1e-8);
        let runs = rate_of([0, 200, 0, 200, 0, 200, 0, 200, 0, 200], 1000, Some(0.1));
        assert!(runs.std_error > 0.03);
        let measured = mean_of(&[1.0, 2.0, 3.0]);
        assert!((measured.mean - 2.0).abs() < 1e-12);
        assert!((measured.std_error - 1.0 / 3.0_f64.sqrt()).abs() < 1e-12);
    }
}
