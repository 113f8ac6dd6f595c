//! CMDBF paper, Fig. 9: distinct host pairs in each second, exact, by MDBF and by CMDBF.

use super::busy::{Busy, Hosts, busy};
use super::captures::{ExperimentCapture, count_capture};
use super::result::{ChartScale, Curve, CurveKind};
use super::statistics::{ENOUGH_RUNS, mean_of};
use super::{Experiment, Found, Settings};
use crate::elements::ElementKind;
use crate::filters::sizing::best_probes;
use crate::filters::{CmdbfSpec, Combination, FilterSpec, MdbfSpec};
use crate::pipeline::SliceResult;

/// The filters of Table 1 for two attributes.
const BITS: u64 = 32_768;
const PROBES: u32 = 4;

const SECOND: i64 = 1_000_000_000;

/// Points by which the paper reports CMDBF nearer to the exact count than MDBF: "about" 10.
const PAPER_POINTS: f64 = 10.0;
const ABOUT: (f64, f64) = (8.0, 12.0);

/// Captures that are drawn.
const DRAWN: usize = 3;

/// Most functions of a filter.
const MOST_PROBES: u32 = 32;

pub(super) fn fig_9(settings: &Settings) -> Found {
    let (captures, mut found) = busy(settings)?;
    found.remarks.extend([
        format!("MDBF 8 KiB, CMDBF 12 KiB (L = 2, k = {PROBES}, m = 32,768). The error of a second is (raw count - exact) / exact; shown is its mean over the seconds, and the standard error from their spread. There is no formula for it: MDBF misses every new pair of two hosts that were seen before, so the error is the traffic's."),
        format!("The paper's k is {PROBES}; the best k is (m/n) ln 2 for the n pairs of the fullest second, at most {MOST_PROBES}. With it both make fewer errors by false positives, but MDBF still loses new pairs of known hosts."),
        "The paper's own trace is not public; its figure shows CMDBF about 10 points more exact than MDBF, where formulas (3) and (7), for values that were never seen, would give 4.".into(),
    ]);
    let mut points = Vec::new();
    for busy in &captures {
        if let Some(difference) = one_capture(busy, &mut found)
            && busy.hosts == Hosts::Many
        {
            points.push(difference);
        }
    }
    if points.len() > 1 {
        let captures = points.len();
        found
            .cell("mean over the captures of many hosts: CMDBF nearer by")
            .unit("points")
            .measured(mean_of(&points))
            .because(format!(
                "{captures} captures, k = {PROBES}; ± is from their spread; the paper's figure is of one trace"
            ));
    }
    Ok(found)
}

/// The structures that are compared; the combined filters differ in their hash functions.
const STRUCTURES: [(&str, Option<Combination>); 3] = [
    ("MDBF", None),
    ("CMDBF, the same functions for both hosts", Some(Combination::XorSame)),
    ("CMDBF, functions of their own", Some(Combination::XorIndependent)),
];

/// Returns structures with this k, and their slices.
fn runs(
    capture: &ExperimentCapture,
    probes: u32,
    names: &[(&'static str, Option<Combination>)],
) -> Vec<(&'static str, Vec<SliceResult>)> {
    let slices = |&(name, combination): &(&'static str, Option<Combination>)| {
        let spec: FilterSpec = match combination {
            None => MdbfSpec { attributes: 2, bits: BITS, probes }.into(),
            Some(combination) => {
                CmdbfSpec { attributes: 2, bits: BITS, probes, combination }.into()
            }
        };
        let (path, pairs) = (&capture.path, ElementKind::HOST_PAIR);
        (name, count_capture(path, pairs, Some(SECOND), Some(spec), Vec::new()).1)
    };
    names.iter().map(slices).collect()
}

/// Returns the errors of the raw counts, in per cent, second by second.
fn errors(slices: &[SliceResult]) -> Vec<f64> {
    let errors = slices.iter().filter_map(|slice| match (slice.first, slice.exact) {
        (Some(first), Some(exact)) if exact > 0 => {
            Some(100.0 * (first as f64 / exact as f64 - 1.0))
        }
        _ => None,
    });
    errors.collect()
}

/// Cells and figure of a capture; by how many points CMDBF is nearer with the paper's k.
fn one_capture(busy: &Busy, found: &mut Experiment) -> Option<f64> {
    let Busy { capture, most, .. } = busy;
    let published = runs(capture, PROBES, &STRUCTURES);
    let nearer = add_errors(found, busy, PROBES, &published);
    let best_k = best_probes(BITS as f64, *most as f64, MOST_PROBES);
    if best_k != PROBES {
        let [mdbf, _, cmdbf] = STRUCTURES;
        add_errors(found, busy, best_k, &runs(capture, best_k, &[mdbf, cmdbf]));
    }
    add_chart(found, &capture.name, &published);
    nearer
}

/// Adds the errors of the structures with this k; returns by how many points CMDBF is nearer.
fn add_errors(
    found: &mut Experiment,
    busy: &Busy,
    probes: u32,
    runs: &[(&'static str, Vec<SliceResult>)],
) -> Option<f64> {
    let (name, kind) = (&busy.capture.name, busy.hosts.words());
    let mut all = Vec::new();
    for (structure, slices) in runs {
        let errors = errors(slices);
        found
            .cell(format!("{name}: {structure}, k = {probes}"))
            .unit("%")
            .measured(mean_of(&errors))
            .because(format!("{kind}; seconds: {}", errors.len()));
        all.push(errors);
    }
    let (mdbf, cmdbf) = (all.first()?, all.last()?);
    // Second by second, so that the traffic's own spread is no error of the difference.
    let points = cmdbf.iter().zip(mdbf).map(|(c, m)| m.abs() - c.abs());
    let points = mean_of(&points.collect::<Vec<f64>>());
    let cell = found
        .cell(format!("{name}: CMDBF nearer by, k = {probes}"))
        .unit("points")
        .measured(points);
    // A few seconds say little of their spread, and one says nothing.
    if probes == PROBES && mdbf.len() >= ENOUGH_RUNS {
        cell.claimed(PAPER_POINTS, ABOUT.0, ABOUT.1).because(
            "another trace; what MDBF loses depends on how often hosts talk to several others",
        );
    }
    Some(points.mean)
}

/// Adds the chart of a capture if it has several seconds, and few are drawn yet.
fn add_chart(found: &mut Experiment, name: &str, runs: &[(&'static str, Vec<SliceResult>)]) {
    let drawn = found.charts.len();
    if drawn >= DRAWN || runs[0].1.len() < 2 {
        return;
    }
    let mut curves = vec![curve("exact", CurveKind::Exact, &runs[0].1, |slice| slice.exact)];
    for (structure, slices) in runs {
        curves.push(curve(structure, CurveKind::Measured, slices, |slice| slice.first));
    }
    found.chart(
        format!("cmdbf-fig-9-{}", drawn + 1),
        format!("Host pairs a second: {name}"),
        format!("Exact, and raw counts of MDBF (8 KiB) and CMDBF (12 KiB), k = {PROBES}."),
        [("second", ChartScale::Linear), ("distinct host pairs", ChartScale::Linear)],
        curves,
    );
}

fn curve(
    name: &str,
    kind: CurveKind,
    slices: &[SliceResult],
    value: impl Fn(&SliceResult) -> Option<u64>,
) -> Curve {
    let first = slices.first().map_or(0, |slice| slice.start_ns);
    let points = slices.iter().filter_map(|slice| {
        let second = (slice.start_ns.saturating_sub(first)) as f64 / SECOND as f64;
        Some((second, value(slice)? as f64, 0.0))
    });
    Curve::new(name, kind, points.collect())
}
