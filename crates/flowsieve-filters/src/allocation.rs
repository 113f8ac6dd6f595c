//! How to share memory between the combinations of attributes that queries ask for, as pure
//! functions.
//!
//! Each combination S has `n_S` distinct values and a weight `w_S`, the share of the queries that
//! ask for it. Minimised is the weighted false-positive rate `F = Σ w_S f_S` with M bits in all.
//!
//! # A filter for each combination
//!
//! With the best k a filter of m bits has f = e^(-c m/n), c = ln² 2. By Lagrange's rule
//!
//! ```text
//!     f_S = λ n_S / (c w_S)                     rates in proportion to n_S / w_S
//!     m_S = (n_S / c) ln(c w_S / (λ n_S))       if negative: no filter for S, and again without it
//!     ln(λ/c) = (Σ n_S ln(w_S / n_S) - c M) / Σ n_S
//!     F = (λ/c) Σ n_S + Σ w_S of those dropped
//! ```
//!
//! # One array for all combinations
//!
//! The same without sizes: all combinations write into one array, S with
//!
//! ```text
//!     k_S = round(log2(w_S / n_S) + const) positions,     Σ n_S k_S ≤ M ln 2
//! ```
//!
//! so that half of the bits are set at the end and `f_S = 2^(-k_S)` is in the right proportion. The
//! constant is the largest that keeps the sum. Rounding k costs 1 to 6 percent of F.
//!
//! | M = 2^27, 5 million values of each | own filters: F | CBFM, one cut | BFM |
//! |---|---|---|---|
//! | all 7 combinations of three attributes alike | 0.158 | 0.572 | 0.857 |
//! | all three 1/3, {1,3} 1/3, {2,3} 1/3 | 0.0136 | 0.00147 | 0.667 |
//! | {2,3} alone | 2.5·10⁻⁶ | 0.0022 | 1 |
//!
//! (The CBFM's second row is for evenly spread values whose pairs never repeat; where the pairs of
//! a query occur its full query is 1, and F is 0.335.)
//!
//! Reference: Bloom 1970 for f; the allocation is this project's. Weights of attributes, without
//! this optimum, are in Wang, Yun, Wang, Wang, Journal on Communications 37(3), 2016, section 4.4.

use std::f64::consts::LN_2;

/// c in f = e^(-c m/n).
const C: f64 = LN_2 * LN_2;

/// What queries want of one combination of attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Distinct values of the combination (`n_S > 0`).
    pub elements: f64,
    /// Share of the queries that ask for it (`w_S ≥ 0`).
    pub weight: f64,
}

/// Memory of one combination and what it gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Bits of its own filter (`m_S`); 0 if it gets none.
    pub bits: f64,
    /// Its false-positive rate; 1 without a filter.
    pub fpr: f64,
}

/// The best way to divide `bits` into a filter for each combination, each with its best k.
pub fn own_filters(demands: &[Demand], bits: f64) -> Vec<Share> {
    let mut kept: Vec<bool> = demands.iter().map(|demand| demand.weight > 0.0).collect();
    loop {
        let of_kept = || demands.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(d, _)| d);
        let elements: f64 = of_kept().map(|d| d.elements).sum();
        let sum: f64 = of_kept().map(|d| d.elements * (d.weight / d.elements).ln()).sum();
        let ln_lambda = (sum - C * bits) / elements;
        let shares: Vec<Share> = demands
            .iter()
            .zip(&kept)
            .map(|(demand, &kept)| {
                let ln_fpr = ln_lambda - (demand.weight / demand.elements).ln();
                if kept {
                    Share { bits: -ln_fpr * demand.elements / C, fpr: ln_fpr.exp() }
                } else {
                    Share { bits: 0.0, fpr: 1.0 }
                }
            })
            .collect();
        if shares.iter().all(|share| share.bits >= 0.0) {
            return shares;
        }
        for (kept, share) in kept.iter_mut().zip(&shares) {
            *kept &= share.bits >= 0.0;
        }
    }
}

/// Positions `k_S` of each combination in one array of `bits`, from 1 to `most`.
///
/// At least 1 even if that fills more than half of the array: every combination that is asked for
/// is stored.
pub fn shared_probes(demands: &[Demand], bits: f64, most: u32) -> Vec<u32> {
    let room = bits * LN_2;
    let at = |constant: f64| -> Vec<u32> {
        demands
            .iter()
            .map(|demand| {
                let probes = ((demand.weight / demand.elements).log2() + constant + 0.5).floor();
                // A weight of 0 makes minus infinity, which becomes 1.
                (probes as u32).clamp(1, most)
            })
            .collect()
    };
    let written = |probes: &[u32]| -> f64 {
        demands.iter().zip(probes).map(|(demand, &k)| demand.elements * f64::from(k)).sum()
    };
    // The sum grows with the constant: halve the interval that holds the last one that fits.
    let mut low = -100.0;
    let mut high = 200.0;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if written(&at(middle)) <= room {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

/// False-positive rate of each combination in one array of `bits` in which combination S sets
/// `probes[S]` positions an element: `(1 - e^(-Σ n k / M))^(k_S)`.
pub fn shared_fpr(demands: &[Demand], probes: &[u32], bits: f64) -> Vec<f64> {
    let written: f64 =
        demands.iter().zip(probes).map(|(demand, &k)| demand.elements * f64::from(k)).sum();
    let fill = -(-written / bits).exp_m1();
    probes.iter().map(|&k| fill.powi(k as i32)).collect()
}

/// `F = Σ w_S f_S`.
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

    fn weighted_own(demands: &[Demand], bits: f64) -> f64 {
        weighted_fpr(demands, own_filters(demands, bits).iter().map(|share| share.fpr))
    }

    fn near(ours: f64, theirs: f64) -> bool {
        (ours / theirs - 1.0).abs() < 1e-9
    }

    /// Numbers from an independent computation, in the setting of the paper's Fig. 7.
    #[test]
    fn own_filters_in_the_setting_of_figure_7() {
        let weighted = |weights: &[f64]| {
            let demands: Vec<Demand> =
                weights.iter().map(|&weight| Demand { elements: 5e6, weight }).collect();
            weighted_own(&demands, BITS)
        };
        assert!(near(weighted(&[1.0 / 7.0; 7]), 0.158_430_782_587_187_93));
        assert!(near(weighted(&[1.0 / 3.0; 3]), 0.013_581_851_907_663_704));
        assert!(near(weighted(&[1.0]), 2.505_399_418_160_119_7e-6));
        assert!(near(weighted(&[0.9, 0.1]), 9.497_072_130_597_08e-4));
        let mixed = [0.5, 0.125, 0.125, 1.0 / 12.0, 1.0 / 12.0, 1.0 / 12.0];
        assert!(near(weighted(&mixed), 0.089_916_306_931_574_61));
        let shares = own_filters(&demands([5e6; 6], mixed), BITS);
        assert!(near(shares[0].fpr, 0.029_972_102_310_524_874));
        assert!(near(shares[0].bits / BITS, 0.271_960_245_480_008_9));
        assert!(near(shares[5].bits / BITS, 0.133_032_525_712_827_9));
    }

    const MARGINALS: [f64; 7] = [2e5, 2e3, 5e5, 6e5, 3e6, 9e5, 5e6];

    #[test]
    fn own_filters_for_combinations_of_different_numbers() {
        let demands = demands(MARGINALS, [1.0 / 7.0; 7]);
        let shares = own_filters(&demands, BITS);
        for (share, (fpr, bits)) in shares.iter().zip([
            (1.315_592_681_362_903e-4, 3_719_844.746_835),
            (1.315_592_681_362_902_6e-6, 56_368.564_223_088),
            (3.288_981_703_407_255e-4, 8_346_042.313_635),
            (3.946_778_044_088_710_7e-4, 9_787_563.716_635),
            (1.973_389_022_044_355_3e-3, 38_888_316.139_79),
            (5.920_167_066_133_062e-4, 13_921_815.325_946),
            (3.288_981_703_407_258_5e-3, 59_497_777.192_936),
        ]) {
            assert!(near(share.fpr, fpr) && near(share.bits, bits), "{share:?}");
        }
        assert!(near(weighted_own(&demands, BITS), 9.586_911_810_903_096e-4));
        // The same k for all, not rounded: e^(-c M / Σ n).
        let same = (-C * BITS / MARGINALS.iter().sum::<f64>()).exp();
        assert!(near(same, 1.798_414_162_190_491e-3));
        let probes = shared_probes(&demands, BITS, 32);
        let rate = weighted_fpr(&demands, shared_fpr(&demands, &probes, BITS));
        // Rounded k in one array: a few percent above the optimum, and far below one k for all.
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
        // Simulated there: 0.00906 against 0.00865 with own filters, and 0.00363 against 0.00344.
        let shared = |demands: &[Demand]| {
            weighted_fpr(demands, shared_fpr(demands, &shared_probes(demands, bits, 32), bits))
        };
        assert!((shared(&demanded) / 0.009_06 - 1.0).abs() < 0.03);
        assert!((weighted_own(&demanded, bits) / 0.008_65 - 1.0).abs() < 0.03);
        assert!((shared(&three(dns)) / 0.003_63 - 1.0).abs() < 0.03);
        assert!((weighted_own(&three(dns), bits) / 0.003_44 - 1.0).abs() < 0.03);
        // Lines of words allow 8 positions; what the small combinations lose others may take.
        let capped = shared_probes(&demanded, bits, 8);
        assert!(capped.iter().all(|&k| (1..=8).contains(&k)));
        assert_eq!(shared_probes(&demands([1e9, 1e9], [1.0, 0.0]), 1.0, 8), [1, 1]);
    }

    #[test]
    fn a_combination_that_costs_more_than_it_gives_gets_nothing() {
        let demands = demands([1e6, 1e3, 1e3], [0.5, 0.5, 0.0]);
        let shares = own_filters(&demands, 10_000.0);
        assert_eq!(shares[0], Share { bits: 0.0, fpr: 1.0 });
        assert_eq!(shares[2], Share { bits: 0.0, fpr: 1.0 });
        assert!((shares[1].bits - 10_000.0).abs() < 1e-6);
    }

    /// Own filters at the same rate for Tables 2 and 3 of the CBFM paper (n = 1000, ε = 0.1).
    #[test]
    fn memory_for_one_rate_everywhere() {
        let bits = 7.0 * crate::sizing::bloom_bits(0.1, 1000.0);
        assert!(near(bits, 33_547.704_320_786_04));
        let demands = demands([1000.0; 7], [1.0 / 7.0; 7]);
        assert!(near(weighted_own(&demands, bits), 0.1));
    }

    proptest! {
        /// Nothing is gained by moving memory from one combination to another.
        #[test]
        fn own_filters_are_at_an_optimum(
            numbers in prop::collection::vec((10.0_f64..1e6, 0.0_f64..1.0), 2..7),
            bits in 1e3_f64..1e7,
            from in 0_usize..7,
            to in 0_usize..7,
        ) {
            let demands: Vec<Demand> = numbers
                .iter()
                .map(|&(elements, weight)| Demand { elements, weight: weight + 0.001 })
                .collect();
            let shares = own_filters(&demands, bits);
            let total: f64 = shares.iter().map(|share| share.bits).sum();
            prop_assert!((total / bits - 1.0).abs() < 1e-6);
            let rate = |moved: f64| -> f64 {
                let (from, to) = (from % demands.len(), to % demands.len());
                demands.iter().zip(&shares).enumerate().map(|(i, (demand, share))| {
                    let mut bits = share.bits;
                    if i == from { bits -= moved; }
                    if i == to { bits += moved; }
                    demand.weight * (-C * bits / demand.elements).exp()
                }).sum()
            };
            let movable = shares[from % demands.len()].bits;
            for part in [0.01, 0.1, 0.5] {
                prop_assert!(rate(part * movable) >= rate(0.0) * (1.0 - 1e-9));
            }
        }

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
