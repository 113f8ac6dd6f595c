//! CBFM paper, text: the time of a query does not grow with the number of elements.

use super::cbfm_fig_7::{BITS, PROBES};
use super::random::Random;
use super::ratios::{HOW, Times, time_each};
use super::uniform::{Digests, FULL, Uniform, ask, structures};
use super::{Findings, Found, Settings};
use std::hint::black_box;

/// By how much a ratio may be away from 1 that is called no growth.
const NO_GROWTH: f64 = 0.1;

pub(super) fn run(settings: &Settings) -> Found {
    let divisor = settings.scale.pick(4096, 64, 1);
    let bits = BITS / divisor;
    let most = settings.scale.pick(1_000, 80_000, 5_000_000);
    let numbers = [most / 64, most / 16, most / 4, most];
    let queries = settings.scale.pick(200, 20_000, 20_000);
    let rounds = settings.scale.pick(3, 151, 151) as usize;
    let mut found = Findings::new([
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
                // As many different ones everywhere, so that the queries themselves take the same
                // room.
                let present: Vec<Digests> =
                    (0..queries).map(|_| data.element(random.below(elements))).collect();
                (data.fill(&spec), present)
            })
            .collect();
        let mut operations: Vec<Box<dyn FnMut() -> f64 + '_>> = Vec::new();
        for (filter, present) in &filled {
            operations.push(Box::new(move || {
                time_each(present.len(), || {
                    for query in present {
                        black_box(ask(&**filter, query, FULL));
                    }
                })
            }));
        }
        let times = Times::of(rounds, &mut operations);
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
