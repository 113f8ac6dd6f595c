//! SCBF paper, Tables 2 and 3: the probability that a counter overflows, by its bits.

use super::counters::{COUNTERS, LEAST, PART, PROBES, at_least_poisson, shares};
use super::statistics::binomial_reaches;
use super::{Findings, Found, Settings};
use crate::filters::sizing::counter_reaches;
use std::f64::consts::{E, LN_2, PI};

/// Bits of a counter, the probability printed for it, and how many digits that has.
pub(super) const PRINTED: [(u32, f64, i32); 5] =
    [(1, 0.033_88, 4), (2, 0.000_18, 2), (3, 4.48e-10, 3), (4, 1.54e-23, 3), (5, 3.89e-55, 3)];

/// Elements of the first row of Table 1.
const ELEMENTS: u64 = 25_639;

pub(super) fn run(settings: &Settings) -> Found {
    let mut found = Findings::new([
        "j = 2^bits. The paper's formula is (e ln 2 / j)^j / sqrt(2 π j). Every printed figure is that without the e, so too small by e^j: the conclusion that a split filter overflows far less than a counting filter is an artefact. The formula is also that of one counter, not of the largest of all.".into(),
        format!("Measured: the share of {COUNTERS} counters that reach j, with k = {PROBES}, m = {PART} and n = {ELEMENTS}. The formula beside it is the exact binomial of n and 1/m."),
    ]);
    let measured = shares(settings, true, ELEMENTS);
    for (bits, printed, digits) in PRINTED {
        let j = f64::from(1 << bits);
        let stirling = (E * LN_2 / j).powf(j) / (2.0 * PI * j).sqrt();
        found
            .cell(format!("{bits} bits, j = {j}: as printed"))
            .printed_to(printed, digits)
            .formula(stirling)
            .because(format!("the formula without e gives {:.3e}", stirling * (-j).exp()));
        let exact = binomial_reaches(ELEMENTS as f64, 1.0 / PART as f64, 1 << bits);
        let cell = found.cell(format!("{bits} bits, j = {j}: one counter")).formula(exact);
        match LEAST.iter().position(|&least| u32::from(least) == 1 << bits) {
            Some(place) => cell.measured(at_least_poisson(settings, measured[place], exact)),
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
