//! Division of memory among the combinations of attributes that queries ask for, as pure functions.
//!
//! Each combination S has `n_S` distinct values and a weight `w_S`, the share of the queries that
//! ask for it. The weighted false-positive rate `F = Σ w_S f_S` is minimised with M bits in all.
//!
//! All combinations write into one array. A filter of m bits for n elements has f = e^(-c m/n), c =
//! ln² 2, at its best k, so by Lagrange multipliers the best rates are in proportion to
//! `n_S / w_S`: combination S sets
//!
//! ```text
//!     k_S = round(log2(w_S / n_S) + const) positions,     Σ n_S k_S ≤ M ln 2
//! ```
//!
//! so that half of the bits are set at the end and `f_S = 2^(-k_S)` is in the right proportion. The
//! constant is the largest that satisfies the inequality. Rounding k costs 1 to 6 percent of F.
//!
//! Reference: Bloom 1970 for f; the allocation is this project's. Wang, Yun, Wang, Wang, Journal on
//! Communications 37(3), 2016, section 4.4, weigh attributes, without this optimum.

use crate::sizing::halved;
use std::f64::consts::LN_2;

/// Demand for one combination of attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Distinct values of the combination (`n_S > 0`).
    pub elements: f64,
    /// Share of the queries that ask for it (`w_S ≥ 0`).
    pub weight: f64,
}

/// Returns the positions `k_S` of each combination in one array of `bits`, from 1 to `most`.
///
/// Every wanted combination is stored: each gets at least 1, even if more than half of the bits are
/// set then.
pub fn shared_probes(demands: &[Demand], bits: f64, most: u32) -> Vec<u32> {
    let room = bits * LN_2;
    let at = |constant: f64| -> Vec<u32> {
        demands
            .iter()
            .map(|demand| {
                let probes = ((demand.weight / demand.elements).log2() + constant + 0.5).floor();
                // A weight of 0 gives minus infinity, which the cast and the clamp turn into 1.
                (probes as u32).clamp(1, most)
            })
            .collect()
    };
    let written = |probes: &[u32]| -> f64 {
        demands.iter().zip(probes).map(|(demand, &k)| demand.elements * f64::from(k)).sum()
    };
    // The sum grows with the constant, so bisect for the largest constant that fits.
    let (constant, _) = halved((-100.0, 200.0), 100, |constant| written(&at(constant)) <= room);
    at(constant)
}

/// Returns `F = Σ w_S f_S`.
pub fn weighted_fpr(demands: &[Demand], rates: impl IntoIterator<Item = f64>) -> f64 {
    demands.iter().zip(rates).map(|(demand, fpr)| demand.weight * fpr).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BITS: f64 = 134_217_728.0;

    fn demands<const N: usize>(elements: [f64; N], weights: [f64; N]) -> Vec<Demand> {
        elements
            .into_iter()
            .zip(weights)
            .map(|(elements, weight)| Demand { elements, weight })
            .collect()
    }

    /// Returns `(1 - e^(-Σ n k / M))^(k_S)` for each combination.
    fn shared_fpr(demands: &[Demand], probes: &[u32], bits: f64) -> Vec<f64> {
        let written: f64 =
            demands.iter().zip(probes).map(|(demand, &k)| demand.elements * f64::from(k)).sum();
        let fill = -(-written / bits).exp_m1();
        probes.iter().map(|&k| fill.powi(k as i32)).collect()
    }

    /// The best rate without rounding k, from an independent computation, is 9.587e-4.
    #[test]
    fn rounded_positions_cost_a_few_percent() {
        let demands = demands([2e5, 2e3, 5e5, 6e5, 3e6, 9e5, 5e6], [1.0 / 7.0; 7]);
        let probes = shared_probes(&demands, BITS, 32);
        let rate = weighted_fpr(&demands, shared_fpr(&demands, &probes, BITS));
        assert!(rate > 9.58e-4 && rate < 1.1 * 9.58e-4, "{rate}");
    }

    /// Rows 1, 2, 3, 12, 13, 23, 123; by an independent computation at 1/32 of the scale.
    #[test]
    fn positions_in_one_array() {
        let bits = BITS / 32.0;
        let dns = [6_248.0, 400.0, 13_426.0, 88_592.0, 126_895.0, 76_078.0, 156_250.0];
        let uniform = [156_246.0, 156_246.0, 156_249.0, 156_250.0, 156_250.0, 156_250.0, 156_250.0];
        let all = [1.0 / 7.0; 7];
        let demanded = demands(dns, all);
        assert_eq!(shared_probes(&demanded, bits, 32), [10, 14, 9, 6, 6, 7, 5]);
        assert_eq!(shared_probes(&demands(uniform, all), bits, 32), [3, 3, 3, 2, 2, 2, 2]);
        let three = |n: [f64; 7]| demands([n[4], n[5], n[6]], [1.0 / 3.0; 3]);
        assert_eq!(shared_probes(&three(dns), bits, 32), [8, 9, 7]);
        assert_eq!(shared_probes(&three(uniform), bits, 32), [6, 6, 6]);
        // Simulated there: 0.00906 and 0.00363.
        let shared = |demands: &[Demand]| {
            weighted_fpr(demands, shared_fpr(demands, &shared_probes(demands, bits, 32), bits))
        };
        assert!((shared(&demanded) / 0.009_06 - 1.0).abs() < 0.03);
        assert!((shared(&three(dns)) / 0.003_63 - 1.0).abs() < 0.03);
        // With at most 8 positions, others may take what the small combinations lose.
        let capped = shared_probes(&demanded, bits, 8);
        assert!(capped.iter().all(|&k| (1..=8).contains(&k)));
        assert_eq!(shared_probes(&demands([1e9, 1e9], [1.0, 0.0]), 1.0, 8), [1, 1]);
    }

    proptest! {
        #[test]
        fn shared_positions_keep_the_array_half_full(
            numbers in prop::collection::vec((10.0_f64..1e6, 0.001_f64..1.0), 1..7),
            bits in 1e3_f64..1e9,
            most in 1_u32..20,
        ) {
            let demands: Vec<Demand> = numbers
                .iter()
                .map(|&(elements, weight)| Demand { elements, weight })
                .collect();
            let probes = shared_probes(&demands, bits, most);
            let written: f64 = demands.iter().zip(&probes).map(|(d, &k)| d.elements * f64::from(k)).sum();
            prop_assert!(written <= bits * LN_2 || probes.contains(&1));
            prop_assert!(probes.iter().all(|k| (1..=most).contains(k)));
        }
    }
}
