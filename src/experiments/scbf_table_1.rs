//! SCBF paper, Table 1: functions k, counters a part m and elements n of a split filter of 45 K
//! counters, by the rate P; and the rate that such a filter has.

use super::numbers::false_positives;
use super::result::Measured;
use super::statistics::rate_of;
use super::{Findings, Found, Settings};
use crate::filters::SplitCountingFilter;
use crate::filters::sizing::{split_design, split_fpr};

const COUNTERS: u64 = 45 * 1024 * 8;

/// Digits of P; k, m and n as printed.
const PRINTED: [(i32, u32, u64, u64); 4] = [
    (3, 10, 36_864, 25_639),
    (4, 14, 26_331, 19_229),
    (5, 17, 21_684, 15_383),
    (6, 20, 18_432, 12_819),
];

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 500_000, 2_500_000);
    let mut found = Findings::new([
        format!(
            "M = 45 · 1024 · 8 = {COUNTERS} counters. By formula k = ceil(lb 1/P), M/k and M ln² 2 / ln(1/P); as this program designs such a filter, m and n are rounded down. M counts counters, not bits: with 4 bits each the table needs 180 KB, not 45."
        ),
        format!(
            "Rates: {runs} filters with 4-bit counters and {queries} queries each; the formula is (1 - (1 - 1/m)^n)^k. The text's other formula, n = m ln 2, gives other n as soon as k is rounded up."
        ),
    ]);
    for (digits, k, m, n) in PRINTED {
        let target = 10.0_f64.powi(-digits);
        let (probes, part, elements) = split_design(COUNTERS, target);
        let ln2 = std::f64::consts::LN_2;
        let exact_k = target.recip().log2().ceil();
        for (what, printed, formula, designed) in [
            ("k", f64::from(k), exact_k, f64::from(probes)),
            ("m", m as f64, COUNTERS as f64 / exact_k, part as f64),
            ("n", n as f64, COUNTERS as f64 * ln2 * ln2 / target.recip().ln(), elements as f64),
        ] {
            found
                .cell(format!("P = 1e-{digits}, {what}"))
                .printed(printed, 0.0)
                .formula(formula)
                .measured(Measured::exactly(designed))
                // m and n are rounded down.
                .rounded(if what == "k" { 0.0 } else { 1.0 });
        }
        let hits = false_positives(settings, (runs, n, queries), || {
            Box::new(SplitCountingFilter::new(m, k, 4))
        });
        let formula = split_fpr(m as f64, k, n as f64);
        let cell = found
            .cell(format!("P = 1e-{digits}, rate at the printed n"))
            .printed_to(target, 1)
            .formula(formula)
            .measured(rate_of(&hits, queries, Some(formula)));
        if formula > target {
            cell.because(format!(
                "k is rounded up, so the printed n misses P by {:.1} %",
                100.0 * (formula / target - 1.0)
            ));
        }
    }
    Ok(found)
}
