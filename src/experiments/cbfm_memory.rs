//! CBFM paper: the memory of a BFM and of a CBFM. Table 2 has the elements that fit into 1 MB, Table 3
//! the memory of 1000 elements, both with the cuts {1,3} and {1,2} and the rate ε for single
//! attributes; Fig. 11 and the last figure have the memory by the number of attributes.

use super::result::{ChartScale, Curve, Measured};
use super::runs::in_parallel;
use super::uniform::{Uniform, hits};
use super::{Experiment, Found, Settings};
use crate::filters::matrix_sizing::{attribute_size, cells, cells_of_disjoint_cuts, table_probes};
use crate::filters::sizing::bloom_fpr;
use crate::filters::{FilterSpec, MatrixSpec};
use std::f64::consts::LN_2;
use std::ops::RangeInclusive;

/// Bits of 1 MB.
const MEGABYTE: f64 = (1_u64 << 23) as f64;

/// The cuts {1,3} and {1,2}.
const CUTS: &[u32] = &[0b101, 0b011];

/// Digits of ε, elements in a BFM and in a CBFM as printed.
const PRINTED_ELEMENTS: [(i32, f64, f64); 5] =
    [(1, 42.0, 604.0), (2, 21.0, 302.0), (3, 14.0, 201.0), (4, 10.0, 151.0), (5, 8.0, 121.0)];

pub(super) fn table_2(_: &Settings) -> Found {
    let mut found = Experiment::new([
        "m = n lb(e) lb(1/ε) positions an attribute. By formula: the n, no whole number, with which the matrix has exactly 2^23 cells: (m+1)^3 for the BFM, (m+1)^2 + m for the CBFM. Counted: the largest whole n whose matrix, with m rounded down and its cells added up combination by combination, fits.".into(),
        "No rule gives both printed columns: the BFM's are rounded down, the CBFM's to the nearest whole number.".into(),
    ]);
    for (digits, bfm, cbfm) in PRINTED_ELEMENTS {
        let rate = 10.0_f64.powi(-digits);
        let elements = |size: f64| size * LN_2 / rate.recip().log2();
        // (m+1)^3 = M, and m^2 + 3m + 1 = M.
        let exact_bfm = elements(MEGABYTE.cbrt() - 1.0);
        let exact_cbfm = elements((5.0 + 4.0 * MEGABYTE).sqrt() / 2.0 - 1.5);
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
    found
        .cell("elements in the same memory, CBFM / BFM")
        .printed(14.0, 1.0)
        // m is in proportion to n, so the ratio is the same for every ε.
        .formula(((5.0 + 4.0 * MEGABYTE).sqrt() / 2.0 - 1.5) / (MEGABYTE.cbrt() - 1.0))
        .because("the same for every ε");
    Ok(found)
}

fn megabytes(rate: f64, elements: f64, cuts: &[u32]) -> f64 {
    let size = attribute_size(rate, elements) as u64;
    cells(&[size; 3], cuts).map_or(f64::INFINITY, |cells| cells as f64 / MEGABYTE)
}

fn largest(rate: f64, cuts: &[u32]) -> f64 {
    let mut most = 0_u32;
    while megabytes(rate, f64::from(most + 1), cuts) <= 1.0 {
        most += 1;
    }
    f64::from(most)
}

const TABLE_3_ELEMENTS: u64 = 1000;

/// Digits of ε, megabytes of a BFM and of a CBFM as printed.
const PRINTED_MEMORY: [(i32, f64, f64); 5] = [
    (1, 13_125.0, 2.74),
    (2, 105_007.0, 10.96),
    (3, 354_328.05, 24.65),
    (4, 839_932.53, 43.81),
    (5, 1_640_339.20, 68.46),
];

/// Value of the last printed digit.
const LAST_DIGIT: f64 = 0.01;

/// Rates that are measured; the others would need too many queries.
const MEASURED_DIGITS: i32 = 3;

pub(super) fn table_3(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 20) as usize;
    let queries = settings.scale.pick(1_000, 100_000, 1_000_000);
    let mut found = Experiment::new([
        "m = floor(n lb(e) lb(1/ε)), 1 MB = 2^23 bits. By formula: (m+1)^3 for the BFM (the text's m^d forgets the flag position), (m+1)^2 + m for the CBFM; formula (4) cannot be used for cuts that overlap, it would give 0.0023 MB in the first row. Counted: cells added up combination by combination.".into(),
        format!("Rates are those of a query for one attribute, k = floor(-lb ε), {runs} CBFMs of {queries} queries each."),
    ]);
    for (digits, bfm, cbfm) in PRINTED_MEMORY {
        let rate = 10.0_f64.powi(-digits);
        let size = attribute_size(rate, TABLE_3_ELEMENTS as f64).floor();
        let beside = size + 1.0;
        let both = [beside.powi(3), beside.powi(2) + size];
        found
            .cell(format!("ε = 1e-{digits}, BFM / CBFM memory"))
            .orders(3)
            .formula(both[0] / both[1])
            .because("about m, so it grows with the digits of ε");
        for (name, cuts, printed, formula) in
            [("BFM", &[][..], bfm, both[0]), ("CBFM", CUTS, cbfm, both[1])]
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
                let data = Uniform::new(seed, TABLE_3_ELEMENTS);
                let [hits] = hits(&*data.fill(&spec), data.negatives((seed, 2), 0.0, queries), [1]);
                hits.unwrap_or(0)
            });
            let formula = bloom_fpr(size, probes, TABLE_3_ELEMENTS as f64);
            let label = format!("ε = 1e-{digits}, CBFM rate of one attribute");
            found.rate(label, formula, hits, queries).printed_to(rate, 1).because(format!(
                "k is rounded down, so the rate is {:.1} % above ε",
                100.0 * (formula / rate - 1.0)
            ));
        }
    }
    Ok(found)
}

/// ε and n of Fig. 11.
const RATE: f64 = 0.1;
const ELEMENTS: f64 = 100.0;

pub(super) fn fig_11(_: &Settings) -> Found {
    let size = attribute_size(RATE, ELEMENTS).floor();
    let mut found = Experiment::new([format!(
        "n = {ELEMENTS}, ε = {RATE}, so m = {size}. By formula (m+1)^d, and (4) for the cut; counted by adding up the combinations. The figure has no numbers; its text says two orders."
    )]);
    let curves = memory_curves(size, 1..=4, &mut found, |found, attributes, [bfm, cbfm]| {
        if attributes > 2 {
            found
                .cell(format!("d = {attributes}, BFM / CBFM"))
                .orders(2)
                .formula((size + 1.0).powi(2) / (2.0 * size + 1.0))
                .measured(Measured::exactly(bfm / cbfm))
                .because("\"two orders\"");
        }
    });
    found.chart(
        "cbfm-fig-11",
        "Memory by the number of attributes, n = 100, ε = 0.1",
        "One cut pair from three attributes on.",
        MEMORY_AXES,
        curves,
    );
    Ok(found)
}

const MEMORY_AXES: [(&str, ChartScale); 2] =
    [("attributes (d)", ChartScale::Linear), ("memory", ChartScale::Bytes)];

/// Adds the bytes of a BFM with `size` positions an attribute, and of a CBFM with the cut {1,2}
/// from three attributes on, and what `add` adds to them. Returns their curves.
fn memory_curves(
    size: f64,
    attributes: RangeInclusive<u32>,
    found: &mut Experiment,
    add: impl Fn(&mut Experiment, u32, [f64; 2]),
) -> [Curve; 2] {
    let mut curves = ["BFM", "CBFM"].map(|name| Curve::measured(name, []));
    for attributes in attributes {
        let is_cut = attributes > 2;
        let cuts: [&[u32]; 2] = [&[], if is_cut { &[0b11] } else { &[] }];
        let cut_sizes: &[u32] = if is_cut { &[2] } else { &[] };
        let whole = (size + 1.0).powi(attributes as i32);
        let formulas = [whole, cells_of_disjoint_cuts(size, attributes, cut_sizes)];
        let bytes = std::array::from_fn(|place| {
            let cells = cells(&vec![size as u64; attributes as usize], cuts[place]);
            let counted = cells.map_or(f64::INFINITY, |cells| cells as f64 / 8.0);
            let curve = &mut curves[place];
            found
                .cell(format!("d = {attributes}, {}", curve.name))
                .unit("bytes")
                .formula(formulas[place] / 8.0)
                .measured(Measured::exactly(counted));
            curve.points.push((f64::from(attributes), counted, 0.0));
            counted
        });
        add(found, attributes, bytes);
    }
    curves
}

/// Positions an attribute of the last figure, and of the experiments on times.
pub(super) const SIZE: f64 = 16.0;

pub(super) fn sixteen_positions(_: &Settings) -> Found {
    let mut found = Experiment::new([
        "m = 16: a BFM has 17^d cells; beside it a CBFM with the cut {1,2}, from three attributes on. The text speaks of data of three attributes, yet d runs to 8. The figure has no numbers.".into(),
    ]);
    let curves = memory_curves(SIZE, 2..=8, &mut found, |_, _, _| {});
    found.chart(
        "cbfm-memory",
        "Memory with 16 positions an attribute",
        "17^d bits for the BFM; one cut takes a factor of 17² / 33 = 8.8.",
        MEMORY_AXES,
        curves,
    );
    Ok(found)
}
