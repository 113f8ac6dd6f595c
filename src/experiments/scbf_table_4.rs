//! SCBF paper, Table 4: overflow of the counting Bloom filter beside that of the split one.

use super::counters::{COUNTERS, LEAST, PROBES, at_least_poisson, shares};
use super::scbf_tables_2_3::PRINTED as SPLIT;
use super::{Findings, Found, Settings};
use crate::filters::sizing::counter_reaches;
use std::f64::consts::LN_2;

/// The probability printed for the counting filter, and how many digits it has. That for the split
/// filter is the one of Tables 2 and 3.
const PRINTED: [(f64, i32); 4] = [(0.1534, 4), (0.005_56, 3), (7.15e-7, 3), (2.22e-16, 3)];

pub(super) fn run(settings: &Settings) -> Found {
    // The load k n / M next to ln 2.
    let elements = (COUNTERS as f64 * LN_2 / f64::from(PROBES)).round() as u64;
    let mut found = Findings::new([
        format!(
            "The upper tail of a Poisson distribution of mean ln 2. Measured: shares of {COUNTERS} counters with k = {PROBES} and n = {elements}, which is a load of {:.6}.",
            f64::from(PROBES) * elements as f64 / COUNTERS as f64
        ),
        "Splitting changes nothing to first order: both structures have the same probability."
            .into(),
    ]);
    let measured = [false, true].map(|split| shares(settings, split, elements));
    for ((printed, digits), (bits, printed_split, split_digits)) in PRINTED.into_iter().zip(SPLIT) {
        let formula = counter_reaches(LN_2, 1 << bits);
        let place = LEAST.iter().position(|&least| u32::from(least) == 1 << bits);
        for (which, name, printed, digits) in
            [(0, "CBF", printed, digits), (1, "SCBF", printed_split, split_digits)]
        {
            let cell = found
                .cell(format!("{bits} bits, {name}"))
                .printed_to(printed, digits)
                .formula(formula);
            if let Some(place) = place {
                cell.measured(at_least_poisson(settings, measured[which][place], formula));
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
