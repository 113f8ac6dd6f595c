//! SCBF paper, Table 4: overflow of the counting Bloom filter beside that of the split one.

use super::counters::{COUNTERS, LEAST, PROBES, at_least_poisson, shares};
use super::{Findings, Found, Settings};
use crate::filters::sizing::counter_reaches;
use std::f64::consts::LN_2;

/// Bits of a counter, the probability printed for the counting filter and half of its last digit, and
/// that for the split filter.
const PRINTED: [(u32, f64, f64, f64); 4] = [
    (1, 0.1534, 5e-5, 0.033_88),
    (2, 0.005_56, 5e-6, 0.000_18),
    (3, 7.15e-7, 5e-10, 4.48e-10),
    (4, 2.22e-16, 5e-19, 1.54e-23),
];

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
    for (bits, printed, half_digit, printed_split) in PRINTED {
        let formula = counter_reaches(LN_2, 1 << bits);
        let place = LEAST
            .iter()
            .position(|&least| u32::from(least) == 1 << bits);
        for (which, name, printed, spread) in [
            (0, "CBF", printed, half_digit),
            (1, "SCBF", printed_split, printed_split * 0.006),
        ] {
            let cell = found
                .cell(format!("{bits} bits, {name}"))
                .paper(printed, spread)
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
