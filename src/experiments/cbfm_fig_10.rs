//! CBFM paper, Fig. 10: how long a query takes.

use super::cbfm_fig_7::{BITS, ELEMENTS, PROBES};
use super::random::Random;
use super::statistics::mean_of;
use super::uniform::{Digests, FULL, PAIR, Uniform, ask, structures};
use super::{Findings, Found, Settings};
use std::hint::black_box;
use std::time::Instant;

pub(super) fn run(settings: &Settings) -> Found {
    let divisor = settings.scale.pick(4096, 64, 1);
    let (bits, elements) = (BITS / divisor, ELEMENTS / divisor);
    let queries = settings.scale.pick(200, 50_000, 50_000);
    let rounds = settings.scale.pick(2, 7, 7);
    let data = Uniform::new(settings.seed, elements);
    let mut random = Random::new(settings.seed, 10);
    let present: Vec<Digests> = (0..queries)
        .map(|_| data.element(random.below(elements)))
        .collect();
    let absent: Vec<Digests> = (0..queries)
        .map(|_| data.negative(&mut random, 1.0))
        .collect();
    let mut found = Findings::new([
        format!(
            "M = 2^{} bits, n = {elements}, k = {PROBES}; one thread, {rounds} rounds of {queries} queries whose digests are computed before. The values of queries that are not contained all occur (α = 1).",
            bits.ilog2()
        ),
        "Times are those of this machine; the paper's, of another machine and program, are no measure for them. What can be compared is their order: a Cartesian join looks through a row for a partial query, and a matrix at its maximal combinations only.".into(),
    ]);
    for (name, spec) in structures(bits, PROBES) {
        let filter = data.fill(&spec);
        for (what, queries, mask) in [
            ("full, contained", &present, FULL),
            ("full, not contained", &absent, FULL),
            ("{2,3}, contained", &present, PAIR),
            ("{2,3}, not contained", &absent, PAIR),
        ] {
            if ask(&*filter, &queries[0], mask).is_none() {
                continue;
            }
            let round = || {
                let started = Instant::now();
                for query in queries {
                    black_box(ask(&*filter, query, mask));
                }
                started.elapsed().as_nanos() as f64 / queries.len() as f64
            };
            // The first round brings the filter into the cache.
            round();
            let times: Vec<f64> = (0..rounds).map(|_| round()).collect();
            found.cell(format!("{name}: {what}")).time(mean_of(&times));
        }
    }
    Ok(found)
}
