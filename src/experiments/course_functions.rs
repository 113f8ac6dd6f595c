//! Course report, Fig. 2: the best number of functions, and the rate 0.6185^(m/n) that it gives.

use super::numbers::false_positives;
use super::result::{ChartScale, Curve, CurvePair, Measured};
use super::statistics::rate_of;
use super::{Experiment, Found, Settings};
use crate::filters::BloomFilter;
use crate::filters::sizing::bloom_fpr;
use std::f64::consts::LN_2;

/// Bits an element.
const BITS: [u64; 4] = [4, 8, 12, 16];

/// The printed base, and the value of its last digit.
const BASE: (f64, f64) = (0.618_5, 1e-4);

pub(super) fn fig_2(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 20) as usize;
    let elements = settings.scale.pick(500, 50_000, 50_000);
    let queries = settings.scale.pick(1_000, 100_000, 1_000_000);
    let mut found = Experiment::new([
        format!(
            "n = {elements}, m/n = 4, 8, 12 and 16 bits; {runs} filters for each number of functions, {queries} absent elements each."
        ),
        "With k = (m/n) ln 2 half of the bits are set and the rate is 2^-k = 0.6185^(m/n). k is a whole number, so the rate of a filter is a little above that. The report's text has k in inverse proportion to m/n; it is in proportion.".into(),
    ]);
    let mut curves = Vec::new();
    let mut by_share = Vec::new();
    let mut best = CurvePair::new("the best k");
    for bits in BITS {
        let m = bits * elements;
        let pair = one_size(&mut found, bits, elements, &mut best, |probes| {
            let hits = false_positives(settings, (runs, elements, queries), || {
                Box::new(BloomFilter::new(m, probes))
            });
            let formula = bloom_fpr(m as f64, probes, elements as f64);
            (formula, rate_of(hits, queries, Some(formula)))
        });
        for curve in pair.curves() {
            // (1 - p)^k with k = -(m/n) ln p: the same formula by p.
            let by_p = |&(k, y, error): &(f64, f64, f64)| ((-k / bits as f64).exp(), y, error);
            let points = curve.points.iter().rev().map(by_p).collect();
            by_share.push(Curve::new(&*curve.name, curve.kind, points));
            curves.push(curve);
        }
    }
    for (name, title, caption, x, curves) in [
        (
            "course-fig-2-a",
            "Rate by the share p of clear bits",
            "Points measured, lines by formula, exp(-(m/n) ln p ln(1 - p)); the least of each curve is at p = 1/2.",
            "p: share of clear bits",
            by_share,
        ),
        (
            "course-fig-2",
            "Rate by the number of functions",
            "Points measured, lines by formula; the least of each curve is at (m/n) ln 2.",
            "functions (k)",
            curves,
        ),
        (
            "course-fig-2-c",
            "Least rate by the memory of an element",
            "Measured with the best whole k, beside 0.6185^(m/n).",
            "bits an element (m/n)",
            best.curves().collect(),
        ),
    ] {
        let axes = [(x, ChartScale::Linear), ("false-positive rate", ChartScale::Log)];
        found.chart(name, title, caption, axes, curves);
    }
    Ok(found)
}

/// Adds the cells of filters with this many bits an element. `rate` returns the rate with a number
/// of functions, by formula and as measured.
fn one_size(
    found: &mut Experiment,
    bits: u64,
    elements: u64,
    best_rates: &mut CurvePair,
    mut rate: impl FnMut(u32) -> (f64, Measured),
) -> CurvePair {
    let per_element = bits as f64;
    let exact = per_element * LN_2;
    let bound = (-exact * LN_2).exp();
    let printed = BASE.0.powf(per_element);
    found
        .cell(format!("m/n = {bits}: 0.6185^(m/n)"))
        .printed(printed, printed * per_element * BASE.1 / BASE.0)
        .formula(bound);
    let best = whole(exact, (bits * elements) as f64, elements as f64);
    found
        .cell(format!("m/n = {bits}: best k"))
        .formula(exact)
        .measured(Measured::exactly(f64::from(best)))
        .rounded(1.0)
        .because("the whole k with the least rate by formula");
    let mut pair = CurvePair::new(format!("m/n = {bits}"));
    for probes in 1..=exact.ceil() as u32 + 4 {
        let (formula, measured) = rate(probes);
        pair.push(f64::from(probes), formula, measured);
        let label = format!("m/n = {bits}, k = {probes}: rate");
        let cell = found.cell(label).formula(formula).measured(measured);
        if probes == best {
            best_rates.push(per_element, bound, measured);
            cell.because(format!(
                "the best k; {:.1} % above 0.6185^(m/n)",
                100.0 * (formula / bound - 1.0)
            ));
        }
    }
    pair
}

/// Returns the better of the two whole numbers next to the best k.
fn whole(exact: f64, bits: f64, elements: f64) -> u32 {
    let below = (exact.floor() as u32).max(1);
    let [a, b] = [below, below + 1].map(|probes| bloom_fpr(bits, probes, elements));
    if a <= b { below } else { below + 1 }
}
