//! CBFM paper, Fig. 9: a weighted CBFM, which gives one pair of attributes more of the memory.
//!
//! One cut {1,2}: the blocks of {1,3} and {2,3} share M as x : 1 - x.

use super::cbfm_fig_7::{BITS, ELEMENTS, PROBES};
use super::parallel::in_parallel;
use super::random::Random;
use super::result::{Chart, ChartAxis, ChartScale, Curve, CurveKind};
use super::statistics::rate_of;
use super::uniform::{FULL, ONE_CUT, PAIR, Uniform, ask, matrix_rate};
use super::{Findings, Found, Settings};
use crate::filters::{FilterSpec, MatrixSpec};

const SHARES: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.99];
const QUERIES: [(u32, &str); 3] = [(0b101, "{1,3}"), (PAIR, "{2,3}"), (FULL, "full")];

pub(super) fn run(settings: &Settings) -> Found {
    let divisor = settings.scale.pick(4096, 64, 1);
    let (bits, elements) = (BITS / divisor, ELEMENTS / divisor);
    let runs = settings.scale.pick(2, 12, 4) as usize;
    let negatives = settings.scale.pick(1_000, 100_000, 1_000_000);
    let specs = SHARES.map(|share| {
        MatrixSpec::wcbfm(&[share, 1.0 - share, 0.5], ONE_CUT, PROBES, bits)
            .expect("the weights are positive and the matrix has thousands of cells")
    });
    let jobs = in_parallel(settings.threads, SHARES.len() * runs, |job| {
        let seed = settings.run_seed(job % runs);
        let data = Uniform::new(seed, elements);
        let filter = data.fill(&FilterSpec::Matrix(specs[job / runs].clone()));
        let mut random = Random::new(seed, 9);
        let mut hits = [0; QUERIES.len()];
        for _ in 0..negatives {
            let query = data.negative(&mut random, 1.0);
            for (hits, (mask, _)) in hits.iter_mut().zip(QUERIES) {
                *hits += u64::from(u8::from(ask(&*filter, &query, mask) == Some(true)));
            }
        }
        hits
    });
    let rate = |spec: &MatrixSpec, mask| matrix_rate(spec, elements as f64, 1.0, mask);
    let mut found = Findings::new([
        format!(
            "M = 2^{} bits, n = {elements}, k = {PROBES}, all single values known (α = 1), {runs} filters of {negatives} negatives for each weight.",
            bits.ilog2()
        ),
        "The figure does not follow from the paper's formula (1). It claims two orders for two attributes and 1.69 for all. The gain of a pair is at most 34 at n = 5 million and below 2^k = 64 at any n; and the full query gets worse with every weight but equal ones, until the matrix is overloaded.".into(),
        "The formula is (1) with a term that it omits: a value that occurs has cells of its own element in its row.".into(),
    ]);
    let mut curves: Vec<(Vec<_>, Vec<_>)> = vec![(Vec::new(), Vec::new()); QUERIES.len()];
    for ((share, spec), runs) in SHARES.into_iter().zip(&specs).zip(jobs.chunks(runs)) {
        for (number, (mask, name)) in QUERIES.into_iter().enumerate() {
            let hits: Vec<u64> = runs.iter().map(|hits| hits[number]).collect();
            let formula = rate(spec, mask);
            let measured = rate_of(&hits, negatives, Some(formula));
            found.cell(format!("x = {share}, query {name}")).formula(formula).measured(measured);
            curves[number].0.push((share, measured.mean, measured.std_error));
            curves[number].1.push((share, formula, 0.0));
        }
    }
    let best = |mask| {
        specs.iter().map(|spec| rate(&specs[0], mask) / rate(spec, mask)).fold(0.0, f64::max)
    };
    found
        .cell("largest gain of the pair {1,3}")
        .orders(2)
        .formula(best(0b101))
        .because("x = 0.99; even all of the memory would give 34");
    found
        .cell("largest gain of the full query")
        .printed(1.69, 0.01)
        .formula(best(FULL))
        .because("equal weights are the best for it");
    let curves = curves.into_iter().zip(QUERIES);
    let curves = curves.flat_map(|((measured, formula), (_, name))| {
        [
            Curve::new(name, CurveKind::Measured, measured),
            Curve::new(format!("{name}, formula"), CurveKind::Formula, formula),
        ]
    });
    found.charts.push(Chart {
        name: "cbfm-fig-9".into(),
        title: "Weighted CBFM: false-positive rates by the share of {1,3}".into(),
        caption: "What {1,3} gains, {2,3} loses, and the full query with it.".into(),
        x: ChartAxis::new("x: share of the memory for {1,3}", ChartScale::Linear),
        y: ChartAxis::new("false-positive rate", ChartScale::Log),
        curves: curves.collect(),
    });
    Ok(found)
}
