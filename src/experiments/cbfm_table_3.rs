//! CBFM paper, Table 3: memory of a BFM and of a CBFM with the cuts {1,3} and {1,2} for 1000
//! elements of three attributes, if single attributes shall have the rate ε.

use super::parallel::in_parallel;
use super::random::Random;
use super::result::Measured;
use super::statistics::rate_of;
use super::uniform::{Uniform, ask};
use super::{Findings, Found, Settings};
use crate::filters::matrix_sizing::{attribute_size, cells, table_probes};
use crate::filters::sizing::bloom_fpr;
use crate::filters::{FilterSpec, MatrixSpec};

const ELEMENTS: u64 = 1000;
const MEGABYTE: f64 = (1_u64 << 23) as f64;
const CUTS: &[u32] = &[0b101, 0b011];

/// Digits of ε, megabytes of a BFM and of a CBFM as printed.
const PRINTED: [(i32, f64, f64); 5] = [
    (1, 13_125.0, 2.74),
    (2, 105_007.0, 10.96),
    (3, 354_328.05, 24.65),
    (4, 839_932.53, 43.81),
    (5, 1_640_339.20, 68.46),
];

/// What the last digit of a printed memory is worth.
const LAST_DIGIT: f64 = 0.01;

/// Rates that are measured; the others would need too many queries.
const MEASURED_DIGITS: i32 = 3;

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 20) as usize;
    let queries = settings.scale.pick(1_000, 100_000, 1_000_000);
    let mut found = Findings::new([
        "m = floor(n lb(e) lb(1/ε)), 1 MB = 2^23 bits. By formula: (m+1)^3 for the BFM (the text's m^d forgets the flag position), (m+1)^2 + m for the CBFM; formula (4) cannot be used for cuts that overlap, it would give 0.0023 MB in the first row. Counted: cells added up combination by combination.".into(),
        format!("Rates are those of a query for one attribute, k = floor(-lb ε), {runs} CBFMs of {queries} queries each."),
    ]);
    for (digits, bfm, cbfm) in PRINTED {
        let rate = 10.0_f64.powi(-digits);
        let size = attribute_size(rate, ELEMENTS as f64).floor();
        let beside = size + 1.0;
        for (name, cuts, printed, formula) in
            [("BFM", &[][..], bfm, beside.powi(3)), ("CBFM", CUTS, cbfm, beside.powi(2) + size)]
        {
            let counted = cells(&[size as u64; 3], cuts).map_or(f64::INFINITY, |n| n as f64);
            let cell = found
                .cell(format!("ε = 1e-{digits}, {name} memory"))
                .unit("MB")
                .printed(printed, LAST_DIGIT)
                .formula(formula / MEGABYTE)
                .measured(Measured::exactly(counted / MEGABYTE));
            if digits <= 2 && cuts.is_empty() {
                cell.because(format!(
                    "{:.4} was printed with its integer part cut and its fraction rounded up, the carry lost",
                    formula / MEGABYTE
                ));
            }
        }
        if digits <= MEASURED_DIGITS {
            let probes = table_probes(rate);
            let spec = FilterSpec::Matrix(MatrixSpec::cbfm(3, size as u64, CUTS, probes));
            let hits = in_parallel(settings.threads, runs, |run| {
                let seed = settings.run_seed(1_000 * digits as usize + run);
                let data = Uniform::new(seed, ELEMENTS);
                let filter = data.fill(&spec);
                let mut random = Random::new(seed, 2);
                (0..queries)
                    .filter(|_| {
                        let query = data.negative(&mut random, 0.0);
                        ask(&*filter, &query, 0b001) == Some(true)
                    })
                    .count() as u64
            });
            let formula = bloom_fpr(size, probes, ELEMENTS as f64);
            found
                .cell(format!("ε = 1e-{digits}, CBFM rate of one attribute"))
                .printed_to(rate, 1)
                .formula(formula)
                .measured(rate_of(&hits, queries, Some(formula)))
                .because(format!(
                    "k is rounded down, so the rate is {:.1} % above ε",
                    100.0 * (formula / rate - 1.0)
                ));
        }
    }
    Ok(found)
}
