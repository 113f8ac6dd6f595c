//! CBFM paper, Fig. 12: the time of a query by the number of attributes.

use super::cbfm_memory::SIZE;
use super::ratios::{HOW, Times, time_each};
use super::result::{Chart, ChartAxis, ChartScale, Curve, CurveKind};
use super::{Findings, Found, Settings};
use crate::filters::{
    BloomLayout, BloomSpec, CartesianSpec, CmdbfSpec, Combination, ElementDigests, FilterSpec,
    MatrixSpec, MdbfSpec, MembershipFilter,
};
use crate::hashing::{Digest, Digester};
use std::hint::black_box;

const PROBES: u32 = 6;

/// Elements, few enough for the two attributes of 16 positions each.
const ELEMENTS: u64 = 10;

/// The structures by name, each for `attributes` and with the memory of a BFM of 16 positions an
/// attribute.
fn structures(attributes: usize) -> Vec<(&'static str, FilterSpec)> {
    let size = SIZE as u64;
    let bits = (size + 1).pow(attributes as u32);
    let matrix =
        |cuts: &[u32]| FilterSpec::Matrix(MatrixSpec::cbfm(attributes, size, cuts, PROBES));
    let share = |stages: usize| (bits / stages as u64).max(64);
    let sbf = BloomSpec { bits: bits.max(64), probes: PROBES, layout: BloomLayout::Anywhere };
    let mdbf = MdbfSpec { attributes, bits: share(attributes), probes: PROBES };
    let cmdbf = CmdbfSpec {
        attributes,
        bits: share(attributes + 1),
        probes: PROBES,
        combination: Combination::Joint,
    };
    let cartesian = CartesianSpec { attributes, size, probes: PROBES };
    let mut structures = vec![
        ("SBF", sbf.into()),
        ("MDBF", mdbf.into()),
        ("CMDBF", cmdbf.into()),
        ("CBF (Cartesian)", cartesian.into()),
        ("BFM", matrix(&[])),
    ];
    // With two attributes, a cut of both leaves no pair.
    if attributes > 2 {
        structures.push(("CBFM, one cut", matrix(&[0b11])));
        structures.push(("CBFM, two cuts", matrix(&[0b11, 0b101])));
    }
    structures
}

pub(super) fn run(settings: &Settings) -> Found {
    let most = settings.scale.pick(3, 6, 7) as usize;
    let queries = settings.scale.pick(200, 20_000, 20_000) as usize;
    let rounds = settings.scale.pick(3, 41, 41) as usize;
    let mut found = Findings::new([
        format!(
            "d = 2 to {most} attributes, 16 positions each, k = {PROBES}, n = {ELEMENTS}; the others have the memory of the BFM, 17^d bits. Full queries for elements that are contained, {queries} a round, {rounds} rounds, one thread; digests are computed before. The paper's d runs to 8, where a BFM has 832 MB; its figure has no numbers."
        ),
        HOW.into(),
        "A query looks at k places of SBF and BFM for any d, at k d of an MDBF, k (d + 1) of a CMDBF, and in a CBFM at k for each maximal combination.".into(),
    ]);
    let digester = Digester::new(settings.seed);
    let all: Vec<usize> = (2..=most).collect();
    let elements: Vec<Vec<(Vec<Digest>, Digest)>> = all
        .iter()
        .map(|&attributes| {
            let element = |number: u64| {
                let digests: Vec<Digest> = (0..attributes as u64)
                    .map(|attribute| {
                        digester.digest(&[number, attribute].map(u64::to_le_bytes).concat())
                    })
                    .collect();
                let full = (1_u32 << attributes) - 1;
                let whole = Digest::join(full, digests.iter().copied());
                (digests, whole)
            };
            (0..ELEMENTS).map(element).collect()
        })
        .collect();
    let mut filters: Vec<(&'static str, usize, Box<dyn MembershipFilter>)> = Vec::new();
    for (place, &attributes) in all.iter().enumerate() {
        for (name, spec) in structures(attributes) {
            let mut filter = spec.build();
            for (digests, whole) in &elements[place] {
                filter.insert(ElementDigests { whole: *whole, attributes: digests });
            }
            filters.push((name, place, filter));
        }
    }
    let mut operations: Vec<Box<dyn FnMut() -> f64 + '_>> = Vec::new();
    for (_, place, filter) in &filters {
        let elements = &elements[*place];
        operations.push(Box::new(move || {
            time_each(queries, || {
                for (digests, whole) in elements.iter().cycle().take(queries) {
                    black_box(
                        filter.contains(ElementDigests { whole: *whole, attributes: digests }),
                    );
                }
            })
        }));
    }
    let times = Times::of(rounds, &mut operations);
    let mut curves: Vec<Curve> = Vec::new();
    let place_of = |name: &str, place: usize| {
        let mut filters = filters.iter();
        filters.position(|(other, at, _)| *other == name && *at == place)
    };
    for (operation, (name, place, _)) in filters.iter().enumerate() {
        let attributes = all[*place];
        let time = times.time(operation);
        found.cell(format!("d = {attributes}, {name}")).time(time);
        // How it grows: against the same structure with the fewest attributes.
        let first = (0..*place).find_map(|place| Some((place, place_of(name, place)?)));
        if let Some((first, base)) = first {
            found
                .cell(format!("d = {attributes} / d = {}, {name}", all[first]))
                .ratio(times.ratio(operation, base));
        }
        let point = (attributes as f64, time.mean, time.std_error);
        match curves.iter_mut().find(|curve| curve.name == *name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve::new(*name, CurveKind::Measured, vec![point])),
        }
    }
    found.charts.push(Chart {
        name: "cbfm-fig-12".into(),
        title: "Time of a query by the number of attributes".into(),
        caption: "Full queries for contained elements, median of the rounds.".into(),
        x: ChartAxis::new("attributes (d)", ChartScale::Linear),
        y: ChartAxis::new("ns a query", ChartScale::Linear),
        curves,
    });
    Ok(found)
}
