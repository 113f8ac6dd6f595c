//! SCBF paper: the deletion error of a scalable split counting filter.

use super::numbers::element;
use super::parallel::in_parallel;
use super::statistics::rate_of;
use super::{Findings, Found, Settings};
use crate::filters::sizing::{scalable_fpr, split_design, split_fpr};
use crate::filters::{MembershipFilter, SplitCountingFilter};
use crate::hashing::Digester;

/// Rate of a slice, as the paper takes it.
const RATES: [f64; 2] = [0.01, 0.001];

/// Slices of the chain.
const SLICES: [u32; 4] = [2, 4, 8, 16];

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 40) as usize;
    let queries = settings.scale.pick(1_000, 100_000, 500_000);
    let counters = settings.scale.pick(2_000, 20_000, 20_000);
    let mut found = Findings::new([
        format!(
            "A chain of d split counting filters of {counters} counters, each full. A removal that is asked for an element which was never inserted is carried out if a slice takes the element for contained: P_d = 1 - (1 - P)^d. P is the rate of a slice with its n, (1 - (1 - 1/m)^n)^k, next to the rate that it was made for. {runs} chains, {queries} absent elements each."
        ),
        "An element that was inserted is removed from a wrong slice with at most 1 - (1 - P)^(d-1): only the other d - 1 slices can err. This is measured with elements of the last slice, because the other slices are asked first.".into(),
        "At P = 0.001 a chain keeps P_d within 1 % with at most 10 slices, and within 5 % with at most 51. The paper prints the formula and no numbers.".into(),
    ]);
    for rate in RATES {
        let (probes, part, elements) = split_design(counters, rate);
        let slice_rate = split_fpr(part as f64, probes, elements as f64);
        for slices in SLICES {
            let hits = in_parallel(settings.threads, runs, |run| {
                let digester = Digester::new(settings.run_seed(run));
                let element = |number: u64| element(digester, number);
                let mut chain: Vec<SplitCountingFilter> = Vec::new();
                for slice in 0..u64::from(slices) {
                    let mut filter = SplitCountingFilter::new(part, probes, 4);
                    for number in slice * elements..(slice + 1) * elements {
                        filter.insert(element(number));
                    }
                    chain.push(filter);
                }
                let inserted = u64::from(slices) * elements;
                let absent = (inserted..inserted + queries)
                    .filter(|&number| chain.iter().any(|slice| slice.contains(element(number))));
                let absent = absent.count() as u64;
                let others = &chain[..chain.len() - 1];
                let last = (inserted - elements..inserted)
                    .filter(|&number| others.iter().any(|slice| slice.contains(element(number))));
                (absent, last.count() as u64)
            });
            for (what, trials, links, pick) in [
                (
                    "never inserted, yet removed",
                    queries,
                    slices,
                    (|hits| hits.0) as fn(&(u64, u64)) -> u64,
                ),
                ("removed from a wrong slice", elements, slices - 1, |hits| hits.1),
            ] {
                let formula = scalable_fpr(slice_rate, links);
                let hits: Vec<u64> = hits.iter().map(pick).collect();
                found
                    .cell(format!("P = {rate}, d = {slices}: {what}"))
                    .formula(formula)
                    .measured(rate_of(&hits, trials, Some(formula)));
            }
        }
    }
    Ok(found)
}
