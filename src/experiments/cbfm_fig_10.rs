//! CBFM paper, Fig. 10: how long a query takes.

use super::cbfm_fig_7::{BITS, ELEMENTS, PROBES};
use super::random::Random;
use super::ratios::{HOW, Times, time_each};
use super::uniform::{Digests, FULL, PAIR, Uniform, ask, structures};
use super::{Findings, Found, Settings};
use std::hint::black_box;

/// What a query of the CBFM takes against one of the BFM, as the paper says: 2 to 3 times as long.
const CLAIM: (f64, f64) = (2.0, 3.0);

pub(super) fn run(settings: &Settings) -> Found {
    let divisor = settings.scale.pick(4096, 64, 1);
    let (bits, elements) = (BITS / divisor, ELEMENTS / divisor);
    let queries = settings.scale.pick(200, 20_000, 20_000);
    let rounds = settings.scale.pick(3, 101, 101) as usize;
    let data = Uniform::new(settings.seed, elements);
    let mut random = Random::new(settings.seed, 10);
    let present: Vec<Digests> =
        (0..queries).map(|_| data.element(random.below(elements))).collect();
    let absent: Vec<Digests> = (0..queries).map(|_| data.negative(&mut random, 1.0)).collect();
    let mut found = Findings::new([
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
        let mut operations: Vec<Box<dyn FnMut() -> f64 + '_>> = Vec::new();
        for (_, filter) in &answering {
            operations.push(Box::new(move || {
                time_each(queries.len(), || {
                    for query in queries {
                        black_box(ask(&**filter, query, mask));
                    }
                })
            }));
        }
        let times = Times::of(rounds, &mut operations);
        drop(operations);
        for (place, (name, _)) in answering.iter().enumerate() {
            found.cell(format!("{name}: {what}")).time(times.time(place));
        }
        let place = |name: &str| answering.iter().position(|(other, _)| *other == name);
        let Some(bfm) = place("BFM") else {
            continue;
        };
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
