//! CBFM paper: how long a query takes (Fig. 10), and that its time grows with the number of attributes
//! (Fig. 12) and not with that of elements.

use super::cbfm_memory::SIZE;
use super::cbfm_rates::{PROBES, sizes};
use super::ratios::{HOW, Operation, Times, each, time_each};
use super::result::{ChartScale, Curve, Measured};
use super::runs::Random;
use super::uniform::{
    Digests, FULL, ONE_CUT, PAIR, TWO_CUTS, Uniform, ask, structures, structures_of,
};
use super::{Experiment, Found, Settings};
use crate::filters::matrix_sizing::maximal_legal_subsets;
use crate::filters::{ElementDigests, MembershipFilter};
use crate::hashing::{Digest, Digester};
use std::hint::black_box;

/// The paper's claim: a query of the CBFM takes 2 to 3 times as long as one of the BFM.
const CLAIM: (f64, f64) = (2.0, 3.0);

pub(super) fn fig_10(settings: &Settings) -> Found {
    let (bits, elements) = sizes(settings);
    let queries = settings.scale.pick(200, 20_000, 20_000);
    let rounds = settings.scale.pick(3, 101, 101) as usize;
    let data = Uniform::new(settings.seed, elements);
    let mut random = Random::new(settings.seed, 10);
    let present = data.present(&mut random, queries);
    let absent: Vec<Digests> = (0..queries).map(|_| data.negative(&mut random, 1.0)).collect();
    let mut found = Experiment::new([
        format!(
            "M = 2^{} bits, n = {elements}, k = {PROBES} for every structure: memory and k are both equal. One thread, {rounds} rounds of {queries} queries whose digests are computed before. The values of queries that are not contained all occur (α = 1).",
            bits.ilog2()
        ),
        HOW.into(),
        "Times are those of this machine; the paper's come from another machine and program and cannot be compared. Ratios can be compared: a Cartesian join looks through a row for a partial query, and a matrix at its maximal combinations only.".into(),
    ]);
    let filters: Vec<_> =
        structures(bits, PROBES).into_iter().map(|(name, spec)| (name, data.fill(&spec))).collect();
    for (what, queries, mask) in [
        ("full, contained", &present, FULL),
        ("full, not contained", &absent, FULL),
        ("{2,3}, contained", &present, PAIR),
        ("{2,3}, not contained", &absent, PAIR),
    ] {
        let answering = filters.iter();
        let answering = answering.filter(|(_, filter)| ask(&**filter, &queries[0], mask).is_some());
        let answering: Vec<_> = answering.collect();
        let operations = answering.iter();
        let times = Times::measure(
            rounds,
            operations.map(|(_, filter)| each(queries, move |query| ask(&**filter, query, mask))),
        );
        for (place, (name, _)) in answering.iter().enumerate() {
            found.cell(format!("{name}: {what}")).time(times.time(place));
        }
        let place = |name: &str| answering.iter().position(|(other, _)| *other == name);
        let Some(bfm) = place("BFM") else { continue };
        for name in ["CBFM, one cut", "CBFM, two cuts"] {
            if let Some(cbfm) = place(name) {
                found
                    .cell(format!("{name} / BFM: {what}"))
                    .claimed(f64::midpoint(CLAIM.0, CLAIM.1), CLAIM.0, CLAIM.1)
                    .ratio(times.ratio(cbfm, bfm))
                    .because("the paper says 2 to 3; memory and k are equal here");
            }
        }
    }
    Ok(found)
}

/// Largest deviation of a ratio from 1 that counts as no growth.
const NO_GROWTH: f64 = 0.1;

pub(super) fn query_n(settings: &Settings) -> Found {
    let (bits, _) = sizes(settings);
    let most = settings.scale.pick(1_000, 80_000, 5_000_000);
    let numbers = [most / 64, most / 16, most / 4, most];
    let queries = settings.scale.pick(200, 20_000, 20_000);
    let rounds = settings.scale.pick(3, 151, 151) as usize;
    let mut found = Experiment::new([
        format!(
            "M = 2^{} bits and k = {PROBES} for every structure and every n; full queries for elements that are contained, so that every place is looked at. {queries} queries a round, {rounds} rounds, one thread. A ratio within {NO_GROWTH} of 1 is called no growth.",
            bits.ilog2()
        ),
        HOW.into(),
    ]);
    for (name, spec) in structures(bits, PROBES) {
        let filled: Vec<_> = numbers
            .iter()
            .map(|&elements| {
                let data = Uniform::new(settings.seed, elements);
                let mut random = Random::new(settings.seed, elements);
                // The number of queries is the same for every n, so that the queries themselves
                // take the same room.
                (data.fill(&spec), data.present(&mut random, queries))
            })
            .collect();
        let times = Times::measure(
            rounds,
            filled
                .iter()
                .map(|(filter, present)| each(present, move |query| ask(&**filter, query, FULL))),
        );
        for (place, elements) in numbers.iter().enumerate().skip(1) {
            found
                .cell(format!("{name}: n = {elements} / n = {}", numbers[0]))
                .claimed(1.0, 1.0 - NO_GROWTH, 1.0 + NO_GROWTH)
                .ratio(times.ratio(place, 0))
                .because("the paper says that it does not grow with n");
        }
    }
    Ok(found)
}

/// Attributes up to which Fig. 12 goes.
const MOST_ATTRIBUTES: u64 = 8;

/// Elements of Fig. 12, few enough for the two attributes of 16 positions each.
const FEW_ELEMENTS: u64 = 10;

/// An element of any number of attributes: its digests, and that of the whole.
type Element = (Vec<Digest>, Digest);

pub(super) fn fig_12(settings: &Settings) -> Found {
    let most = settings.scale.pick(3, 7, MOST_ATTRIBUTES) as usize;
    let queries = settings.scale.pick(200, 20_000, 20_000) as usize;
    let rounds = settings.scale.pick(3, 41, 41) as usize;
    let mut found = Experiment::new([
        format!(
            "d = 2 to {most} attributes, 16 positions each, k = {PROBES}, n = {FEW_ELEMENTS}; the others have the memory of the BFM, 17^d bits. Full queries for elements that are contained, {queries} a round, {rounds} rounds, one thread; digests are computed before. The paper's d runs to 8, where a BFM has 832 MB and all structures together 4.5 GB: --full-scale measures that too. The figure has no numbers."
        ),
        HOW.into(),
        "A query looks at k places of SBF and BFM for any d, at k d of an MDBF, k (d + 1) of a CMDBF, and in a CBFM at k for each maximal combination.".into(),
    ]);
    let digester = Digester::new(settings.seed);
    let mut filters: Vec<(&'static str, usize, Box<dyn MembershipFilter>)> = Vec::new();
    let mut asked: Vec<Vec<Element>> = Vec::new();
    for attributes in 2..=most {
        let elements = few_elements(digester, attributes);
        let bits = (SIZE as u64 + 1).pow(attributes as u32);
        let structures = structures_of(attributes, bits, PROBES, SIZE as u64, |_| SIZE as u64);
        for (name, spec) in structures {
            let mut filter = spec.build();
            for (digests, whole) in &elements {
                filter.insert(ElementDigests { whole: *whole, attributes: digests });
            }
            filters.push((name, attributes, filter));
        }
        asked.push(elements);
    }
    let operations = filters.iter().map(|(_, attributes, filter)| -> Operation<'_> {
        let elements = &asked[attributes - 2];
        Box::new(move || {
            time_each(queries, || {
                for (digests, whole) in elements.iter().cycle().take(queries) {
                    let element = ElementDigests { whole: *whole, attributes: digests };
                    black_box(filter.contains(element));
                }
            })
        })
    });
    let times = Times::measure(rounds, operations);
    add_looks(&mut found);
    let labels: Vec<_> = filters.iter().map(|&(name, attributes, _)| (name, attributes)).collect();
    add_times_by_attributes(&mut found, &labels, &times);
    Ok(found)
}

/// Adds the places that a query looks at, which need no memory to be counted.
fn add_looks(found: &mut Experiment) {
    for attributes in 2..=MOST_ATTRIBUTES {
        let full = (1 << attributes) - 1;
        let of_cuts = |cuts: &[u32]| maximal_legal_subsets(full, cuts).len() as u64;
        // A cut of all attributes is no cut of a pair.
        let cut = |cuts: &[u32]| if attributes > 2 { of_cuts(cuts) } else { 1 };
        for (name, looks) in [
            ("SBF, CBF, BFM", of_cuts(&[])),
            ("MDBF", attributes),
            ("CMDBF", attributes + 1),
            ("CBFM, one cut", cut(ONE_CUT)),
            ("CBFM, two cuts", cut(TWO_CUTS)),
        ] {
            let places = u64::from(PROBES) * looks;
            found
                .cell(format!("d = {attributes}, {name}: places of a query"))
                .measured(Measured::exactly(places as f64));
        }
    }
}

/// Cuts that leave more maximal combinations than there are attributes: d, the cuts, and why.
const SUB_QUERIES: [(u32, &[u32], &str); 6] = [
    (3, ONE_CUT, "one pair"),
    (5, &[0b0_0011, 0b1_1100], "{1,2}, {3,4,5}: 2 · 3"),
    (6, &[0b00_0011, 0b00_1100, 0b11_0000], "three pairs: 2 · 2 · 2"),
    (6, &[0b00_0111, 0b11_1000], "{1,2,3}, {4,5,6}: 3 · 3"),
    (5, TRIPLES_OF_FIVE, "all triples of five: the pairs"),
    (3, TWO_CUTS, "{1,2}, {1,3}"),
];

const TRIPLES_OF_FIVE: &[u32] = &[
    0b0_0111, 0b0_1011, 0b0_1101, 0b0_1110, 0b1_0011, 0b1_0101, 0b1_0110, 0b1_1001, 0b1_1010,
    0b1_1100,
];

pub(super) fn sub_queries(_: &Settings) -> Found {
    let mut found = Experiment::new([
        "A query is answered by its maximal combinations without a cut. The paper says that there are at most d. For disjoint cuts there are as many as the product of their sizes, which is larger.".into(),
    ]);
    for (attributes, cuts, reason) in SUB_QUERIES {
        let number = maximal_legal_subsets((1 << attributes) - 1, cuts).len();
        found
            .cell(format!("d = {attributes}, {reason}"))
            .claimed(attributes.into(), 1.0, attributes.into())
            .measured(Measured::exactly(number as f64));
    }
    Ok(found)
}

fn few_elements(digester: Digester, attributes: usize) -> Vec<Element> {
    let element = |number: u64| {
        let digest =
            |attribute: u64| digester.digest(&[number, attribute].map(u64::to_le_bytes).concat());
        let digests: Vec<Digest> = (0..attributes as u64).map(digest).collect();
        let whole = Digest::join((1_u32 << attributes) - 1, digests.iter().copied());
        (digests, whole)
    };
    (0..FEW_ELEMENTS).map(element).collect()
}

/// Adds the cells and the chart of times, which are in the order of `labels`: a structure, and its
/// number of attributes.
fn add_times_by_attributes(
    found: &mut Experiment,
    labels: &[(&'static str, usize)],
    times: &Times,
) {
    let mut curves: Vec<Curve> = Vec::new();
    for (operation, &(name, attributes)) in labels.iter().enumerate() {
        let time = times.time(operation);
        found.cell(format!("d = {attributes}, {name}")).time(time);
        // Growth is shown against the same structure with the fewest attributes.
        let base = labels.iter().position(|&(other, _)| other == name).unwrap_or(operation);
        if base < operation {
            found
                .cell(format!("d = {attributes} / d = {}, {name}", labels[base].1))
                .ratio(times.ratio(operation, base));
        }
        Curve::add_measured(&mut curves, name, attributes as f64, time);
    }
    found.chart(
        "cbfm-fig-12",
        "Time of a query by the number of attributes",
        "Full queries for contained elements, median of the rounds.",
        [("attributes (d)", ChartScale::Linear), ("ns a query", ChartScale::Linear)],
        curves,
    );
}
