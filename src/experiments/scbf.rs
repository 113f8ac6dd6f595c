//! SCBF paper: the design of a split counting filter (Table 1), the overflow of its counters (Tables
//! 2 to 4), and the deletion error of a scalable one.

use super::result::Measured;
use super::runs::{element, false_positives, in_parallel};
use super::statistics::{binomial_reaches, mean_of};
use super::{Experiment, Found, Settings};
use crate::bits::CounterArray;
use crate::filters::sizing::{counter_reaches, scalable_fpr, split_design, split_fpr};
use crate::filters::{CountingFilter, MembershipFilter};
use crate::hashing::{Digester, Probes};
use std::f64::consts::{E, LN_2, PI};
use std::ops::Range;

/// Functions, and counters a part, of the first row of the SCBF paper's Table 1.
const PROBES: u32 = 10;
const PART: u64 = 36_864;
const COUNTERS: u64 = PROBES as u64 * PART;

/// The smallest counts that a counter of 1, 2 and 3 bits cannot hold.
const LEAST: [u8; 3] = [2, 4, 8];

/// Digits of P; k, m and n as printed.
const DESIGNS: [(i32, u32, u64, u64); 4] = [
    (3, 10, 36_864, 25_639),
    (4, 14, 26_331, 19_229),
    (5, 17, 21_684, 15_383),
    (6, 20, 18_432, 12_819),
];

pub(super) fn table_1(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 500_000, 2_500_000);
    let mut found = Experiment::new([
        format!(
            "M = 45 · 1024 · 8 = {COUNTERS} counters. By formula k = ceil(lb 1/P), M/k and M ln² 2 / ln(1/P); as this program designs such a filter, m and n are rounded down. M counts counters, not bits: with 4 bits each the table needs 180 KB, not 45."
        ),
        format!(
            "Rates: {runs} filters with 4-bit counters and {queries} queries each; the formula is (1 - (1 - 1/m)^n)^k. The text's other formula, n = m ln 2, gives other n as soon as k is rounded up."
        ),
    ]);
    for (digits, k, m, n) in DESIGNS {
        let target = 10.0_f64.powi(-digits);
        let (probes, part, elements) = split_design(COUNTERS, target);
        let exact_k = target.recip().log2().ceil();
        for (what, printed, formula, designed) in [
            ("k", f64::from(k), exact_k, f64::from(probes)),
            ("m", m as f64, COUNTERS as f64 / exact_k, part as f64),
            ("n", n as f64, COUNTERS as f64 * LN_2 * LN_2 / target.recip().ln(), elements as f64),
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
            Box::new(CountingFilter::split(m, k, 4))
        });
        let formula = split_fpr(m as f64, k, n as f64);
        let label = format!("P = 1e-{digits}, rate at the printed n");
        let cell = found.rate(label, formula, hits, queries).printed_to(target, 1);
        if formula > target {
            cell.because(format!(
                "k is rounded up, so the printed n misses P by {:.1} %",
                100.0 * (formula / target - 1.0)
            ));
        }
    }
    Ok(found)
}

/// Bits of a counter, the probability printed for it, and how many digits that has.
const OVERFLOWS: [(u32, f64, i32); 5] =
    [(1, 0.033_88, 4), (2, 0.000_18, 2), (3, 4.48e-10, 3), (4, 1.54e-23, 3), (5, 3.89e-55, 3)];

/// Elements of the first row of Table 1.
const ELEMENTS: u64 = 25_639;

pub(super) fn tables_2_3(settings: &Settings) -> Found {
    let mut found = Experiment::new([
        "j = 2^bits. The paper's formula is (e ln 2 / j)^j / sqrt(2 π j). Every printed figure is that without the e, so too small by e^j: the conclusion that a split filter overflows far less than a counting filter is an artefact. The formula is also that of one counter, not of the largest of all.".into(),
        format!("Measured: the share of {COUNTERS} counters that reach j, with k = {PROBES}, m = {PART} and n = {ELEMENTS}. The formula beside it is the exact binomial of n and 1/m."),
    ]);
    let measured = shares(settings, true, ELEMENTS);
    for (bits, printed, digits) in OVERFLOWS {
        let j = f64::from(1 << bits);
        let stirling = (E * LN_2 / j).powf(j) / (2.0 * PI * j).sqrt();
        found
            .cell(format!("{bits} bits, j = {j}: as printed"))
            .printed_to(printed, digits)
            .formula(stirling)
            .because(format!("the formula without e gives {:.3e}", stirling * (-j).exp()));
        let exact = binomial_reaches(ELEMENTS as f64, 1.0 / PART as f64, 1 << bits);
        let cell = found.cell(format!("{bits} bits, j = {j}: one counter")).formula(exact);
        match measured.get(bits as usize - 1) {
            Some(&share) => cell.measured(at_least_poisson(settings, share, exact)),
            None => cell.because("too rare to be measured"),
        };
        let of_one = counter_reaches(LN_2, 1 << bits);
        let of_any = -(COUNTERS as f64 * (-of_one).ln_1p()).exp_m1();
        found
            .cell(format!("{bits} bits, j = {j}: any counter"))
            .formula(of_any)
            .because("at a load of ln 2");
    }
    Ok(found)
}

/// The probability printed for the counting filter, and how many digits it has. That for the split
/// filter is the one of Tables 2 and 3.
const OVERFLOWS_OF_COUNTING: [(f64, i32); 4] =
    [(0.1534, 4), (0.005_56, 3), (7.15e-7, 3), (2.22e-16, 3)];

pub(super) fn table_4(settings: &Settings) -> Found {
    // The load k n / M next to ln 2.
    let elements = (COUNTERS as f64 * LN_2 / f64::from(PROBES)).round() as u64;
    let mut found = Experiment::new([
        format!(
            "The upper tail of a Poisson distribution of mean ln 2. Measured: shares of {COUNTERS} counters with k = {PROBES} and n = {elements}, which is a load of {:.6}.",
            f64::from(PROBES) * elements as f64 / COUNTERS as f64
        ),
        "Splitting changes nothing to first order: both structures have the same probability."
            .into(),
    ]);
    let measured = [false, true].map(|split| shares(settings, split, elements));
    for ((printed, digits), (bits, printed_split, split_digits)) in
        OVERFLOWS_OF_COUNTING.into_iter().zip(OVERFLOWS)
    {
        let formula = counter_reaches(LN_2, 1 << bits);
        for (which, name, printed, digits) in
            [(0, "CBF", printed, digits), (1, "SCBF", printed_split, split_digits)]
        {
            let cell = found
                .cell(format!("{bits} bits, {name}"))
                .printed_to(printed, digits)
                .formula(formula);
            if let Some(&share) = measured[which].get(bits as usize - 1) {
                cell.measured(at_least_poisson(settings, share, formula));
            }
            if which == 1 {
                cell.because("Tables 2 and 3 leave out an e");
            } else if bits == 4 {
                cell.because(
                    "2.22e-16 is 2^-52, the rounding error of 1 - sum in double precision",
                );
            }
        }
    }
    Ok(found)
}

/// Returns the share of counters that reach each of [`LEAST`] with this many elements, over
/// independent runs.
fn shares(settings: &Settings, split: bool, elements: u64) -> [Measured; LEAST.len()] {
    let runs = settings.scale.pick(3, 100, 400) as usize;
    let shares = in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        // Wide counters, so that none is saturated.
        let mut counters = CounterArray::new(COUNTERS, 8);
        let range = if split { PART } else { COUNTERS };
        for number in 0..elements {
            let digest = digester.digest(&number.to_le_bytes());
            let positions = Probes::new(digest, 0, PROBES, range);
            for (part, position) in positions.enumerate() {
                let begin = if split { part as u64 * PART } else { 0 };
                counters.increment(begin + position);
            }
        }
        let mut reached = [0_u64; LEAST.len()];
        for position in 0..COUNTERS {
            let count = counters.get(position);
            for (reached, least) in reached.iter_mut().zip(LEAST) {
                *reached += u64::from(count >= least);
            }
        }
        reached.map(|reached| reached as f64 / COUNTERS as f64)
    });
    std::array::from_fn(|place| {
        let runs: Vec<f64> = shares.iter().map(|shares| shares[place]).collect();
        mean_of(&runs)
    })
}

/// Raises the error of a measurement to at least that of a Poisson count by the formula: for events
/// as rare as one in a few runs, the spread of the runs says little. Counters that share their throws
/// vary less than independent ones, but not for rare events.
fn at_least_poisson(settings: &Settings, mut measured: Measured, formula: f64) -> Measured {
    if formula < 1e-3 {
        let runs = settings.scale.pick(3, 100, 400) as f64;
        let poisson = (formula / (COUNTERS as f64 * runs)).sqrt();
        measured.std_error = measured.std_error.max(poisson);
    }
    measured
}

/// Rate of a slice, as the paper takes it.
const RATES: [f64; 2] = [0.01, 0.001];

/// Slices of the chain.
const SLICES: [u32; 4] = [2, 4, 8, 16];

pub(super) fn deletion(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 100_000, 500_000);
    let counters = settings.scale.pick(2_000, 20_000, 20_000);
    let mut found = Experiment::new([
        format!(
            "A chain of d split counting filters of {counters} counters, each full. A removal that is asked for an element which was never inserted is carried out if a slice takes the element for contained: P_d = 1 - (1 - P)^d. P is the rate of a slice with its n, (1 - (1 - 1/m)^n)^k, next to the rate that it was made for. {runs} chains, {queries} absent elements each."
        ),
        "An element that was inserted is removed from a wrong slice with at most 1 - (1 - P)^(d-1): only the other d - 1 slices can err. This is measured with elements of the last slice, because the other slices are asked first.".into(),
        "At P = 0.001 a chain keeps P_d within 1 % with at most 10 slices, and within 5 % with at most 51. The paper prints the formula and no numbers.".into(),
    ]);
    for rate in RATES {
        let (probes, part, elements) = split_design(counters, rate);
        let slice_rate = split_fpr(part as f64, probes, elements as f64);
        for slices in SLICES {
            let hits = in_parallel(settings.threads, runs, |run| {
                let digester = Digester::new(settings.run_seed(run));
                let element = |number: u64| element(digester, number);
                let filters = (0..slices).map(|_| CountingFilter::split(part, probes, 4));
                let mut chain: Vec<CountingFilter> = filters.collect();
                let inserted = u64::from(slices) * elements;
                for number in 0..inserted {
                    chain[(number / elements) as usize].insert(element(number));
                }
                let contained = |numbers: Range<u64>, chain: &[CountingFilter]| {
                    let is_in = |number| chain.iter().any(|it| it.contains(element(number)));
                    numbers.filter(|&number| is_in(number)).count() as u64
                };
                let others = &chain[..chain.len() - 1];
                [
                    contained(inserted..inserted + queries, &chain),
                    contained(inserted - elements..inserted, others),
                ]
            });
            for (which, what, trials, links) in [
                (0, "never inserted, yet removed", queries, slices),
                (1, "removed from a wrong slice", elements, slices - 1),
            ] {
                let label = format!("P = {rate}, d = {slices}: {what}");
                let hits = hits.iter().map(|hits| hits[which]);
                found.rate(label, scalable_fpr(slice_rate, links), hits, trials);
            }
        }
    }
    Ok(found)
}
