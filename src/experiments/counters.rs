//! Counters of the split and of the counting Bloom filter: the share of them that reaches a count.

use super::Settings;
use super::parallel::in_parallel;
use super::result::Measured;
use super::statistics::mean_of;
use crate::bits::CounterArray;
use crate::hashing::{Digester, Probes};

/// Functions, and counters a part, of the first row of the SCBF paper's Table 1.
pub(super) const PROBES: u32 = 10;
pub(super) const PART: u64 = 36_864;
pub(super) const COUNTERS: u64 = PROBES as u64 * PART;

/// The counts asked for: what a counter of 1, 2 and 3 bits cannot hold.
pub(super) const LEAST: [u8; 3] = [2, 4, 8];

/// The share of counters that reach each of [`LEAST`] with this many elements, over independent
/// runs.
pub(super) fn shares(settings: &Settings, split: bool, elements: u64) -> [Measured; LEAST.len()] {
    let runs = settings.scale.pick(3, 100, 400) as usize;
    let shares = in_parallel(settings.threads, runs, |run| {
        let digester = Digester::new(settings.run_seed(run));
        // Wide counters, so that none is saturated.
        let mut counters = CounterArray::new(COUNTERS, 8);
        let range = if split { PART } else { COUNTERS };
        for number in 0..elements {
            let digest = digester.digest(&number.to_le_bytes());
            let positions = Probes::new(digest, 0, PROBES, range);
            for (part, position) in positions.enumerate() {
                let begin = if split { part as u64 * PART } else { 0 };
                counters.increment(begin + position);
            }
        }
        let mut reached = [0_u64; LEAST.len()];
        for position in 0..COUNTERS {
            let count = counters.get(position);
            for (reached, least) in reached.iter_mut().zip(LEAST) {
                *reached += u64::from(u8::from(count >= least));
            }
        }
        reached.map(|reached| reached as f64 / COUNTERS as f64)
    });
    std::array::from_fn(|place| {
        let runs: Vec<f64> = shares.iter().map(|shares| shares[place]).collect();
        mean_of(&runs)
    })
}

/// The measurement with an error of at least that of a Poisson count of what the formula says: of
/// events as rare as one in a few runs the spread of the runs says little.
pub(super) fn at_least_poisson(settings: &Settings, measured: Measured, formula: f64) -> Measured {
    let runs = settings.scale.pick(3, 100, 400) as f64;
    Measured {
        std_error: measured
            .std_error
            .max((formula / (COUNTERS as f64 * runs)).sqrt() * independent(formula)),
        ..measured
    }
}

/// Counters that share their throws vary less than independent ones; of rare events not at all
/// less.
fn independent(formula: f64) -> f64 {
    if formula < 1e-3 { 1.0 } else { 0.0 }
}
