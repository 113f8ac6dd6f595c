//! CMDBF paper, Table 1 with negatives whose values occur: where formulas (3) and (7) end.

use super::cmdbf_table_1::{false_positives, stage_rate};
use super::parallel::in_parallel;
use super::statistics::rate_of;
use super::{Findings, Found, Settings};

const PROBES: u32 = 4;
const ATTRIBUTES: [usize; 4] = [2, 3, 4, 5];

pub(super) fn run(settings: &Settings) -> Found {
    let runs = settings.scale.pick(2, 20, 100) as usize;
    let negatives = settings.scale.pick(500, 10_000, 10_000);
    let jobs = in_parallel(settings.threads, 2 * ATTRIBUTES.len() * runs, |job| {
        let kind = job / runs;
        let attributes = ATTRIBUTES[kind / 2];
        // The first attribute only, or all of them, each from an element of its own.
        let known = if kind.is_multiple_of(2) { 1 } else { attributes };
        let seed = settings.run_seed(1_000_000 + job);
        false_positives(seed, attributes, PROBES, negatives, |random, attribute, values| {
            if attribute < known {
                let element = random.below((values.len() / attributes) as u64) as usize;
                values[element * attributes + attribute]
            } else {
                random.next() as u32
            }
        })
    });
    let stage = stage_rate(PROBES);
    let mut found = Findings::new([
        "Formulas (3) and (7) are the best case. If the values of a negative occur, each in another element, an MDBF says yes with certainty and a CMDBF with f, however many attributes there are. Drawn at random, one in 10,000 does occur together by chance; the measurement ignores that.".into(),
    ]);
    for (kind, runs) in jobs.chunks(runs).enumerate() {
        let attributes = ATTRIBUTES[kind / 2];
        let (known, what) = if kind.is_multiple_of(2) {
            (1, "one value occurs")
        } else {
            (attributes, "all values occur")
        };
        let attribute_stage = stage.powi((attributes - known) as i32);
        for (which, name, rate) in
            [(0, "MDBF", attribute_stage), (1, "CMDBF", attribute_stage * stage)]
        {
            let hits: Vec<u64> = runs.iter().map(|hits| hits[which]).collect();
            let published = stage.powi((attributes + which) as i32);
            found
                .cell(format!("L={attributes} k={PROBES} {name}, {what}"))
                .formula(rate)
                .measured(rate_of(&hits, negatives, Some(rate)))
                .because(format!(
                    "with fresh values it is {published:.6}, {:.0} times less",
                    rate / published
                ));
        }
    }
    Ok(found)
}
