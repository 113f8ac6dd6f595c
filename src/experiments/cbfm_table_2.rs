//! CBFM paper, Table 2: how many elements fit into 1 MB (2^23 bits) if single attributes shall have
//! the rate ε, in a BFM and in a CBFM with the cuts {1,3} and {1,2}.

use super::result::Measured;
use super::{Findings, Found, Settings};
use crate::filters::matrix_sizing::{attribute_size, cells};
use std::f64::consts::LN_2;

const CELLS: f64 = (1_u64 << 23) as f64;

const CUTS: &[u32] = &[0b101, 0b011];

/// Digits of ε, elements in a BFM and in a CBFM as printed.
const PRINTED: [(i32, f64, f64); 5] =
    [(1, 42.0, 604.0), (2, 21.0, 302.0), (3, 14.0, 201.0), (4, 10.0, 151.0), (5, 8.0, 121.0)];

pub(super) fn run(_: &Settings) -> Found {
    let mut found = Findings::new([
        "m = n lb(e) lb(1/ε) positions an attribute. By formula: the n, no whole number, with which the matrix has exactly 2^23 cells: (m+1)^3 for the BFM, (m+1)^2 + m for the CBFM. Counted: the largest whole n whose matrix, with m rounded down and its cells added up combination by combination, fits.".into(),
        "No rule gives both printed columns: the BFM's are rounded down, the CBFM's to the nearest whole number.".into(),
    ]);
    for (digits, bfm, cbfm) in PRINTED {
        let rate = 10.0_f64.powi(-digits);
        let elements = |size: f64| size * LN_2 / rate.recip().log2();
        // (m+1)^3 = M, and m^2 + 3m + 1 = M.
        let exact_bfm = elements(CELLS.cbrt() - 1.0);
        let exact_cbfm = elements((5.0 + 4.0 * CELLS).sqrt() / 2.0 - 1.5);
        for (name, cuts, printed, exact) in
            [("BFM", &[][..], bfm, exact_bfm), ("CBFM", CUTS, cbfm, exact_cbfm)]
        {
            let most = largest(rate, cuts);
            let reason = if printed > most {
                format!(
                    "{printed} elements do not fit, they need {:.4} MB: rounded to the nearest",
                    megabytes(rate, printed, cuts)
                )
            } else if printed < most {
                format!(
                    "{most} fit as well, since m = {} is rounded down",
                    attribute_size(rate, most).floor()
                )
            } else {
                String::new()
            };
            // The rounding of m and of n makes less than one element of difference.
            found
                .cell(format!("ε = 1e-{digits}, {name}"))
                .printed(printed, 0.0)
                .formula(exact)
                .measured(Measured::exactly(most))
                .rounded(1.0)
                .because(reason);
        }
    }
    Ok(found)
}

fn megabytes(rate: f64, elements: f64, cuts: &[u32]) -> f64 {
    let size = attribute_size(rate, elements) as u64;
    cells(&[size; 3], cuts).map_or(f64::INFINITY, |cells| cells as f64 / CELLS)
}

fn largest(rate: f64, cuts: &[u32]) -> f64 {
    let mut most = 0_u32;
    while megabytes(rate, f64::from(most + 1), cuts) <= 1.0 {
        most += 1;
    }
    f64::from(most)
}
